"""Makes spellings alike, in questions and in texts: Unicode NFKC, and a map of synonyms."""

import re
from functools import reduce
from unicodedata import normalize

from harness.documents import plain
from metrics import RecordError, quote, read_json

NORMALIZATIONS = ("no", "nfkc", "synonyms", "nfkc+synonyms")


def nfkc(text):
    """Compatibility forms as plain characters: full-width letters, ligatures, superscripts (Unicode normal form KC)."""
    return normalize("NFKC", text)


def read_synonyms(path):
    """A replacing function from a JSON file {"canonical words": ["other words", …], …}. Raises RecordError."""
    value, _ = read_json(path)
    canonical, problems = {}, []
    if not isinstance(value, dict) or not value:
        raise RecordError(f'{path}: top level: expected an object such as {{"error": ["fault", "failure"]}}, got {quote(value)}')
    for word, others in value.items():
        if not isinstance(others, list) or not all(isinstance(other, str) and other.strip() for other in others):
            problems.append(f"{path}: {word}: expected a list of words, got {quote(others)}")
            continue
        for other in others:
            if canonical.setdefault(other.casefold(), word) != word:
                problems.append(f"{path}: {word}: {plain(other)} is a synonym of {plain(canonical[other.casefold()])} already")
    if problems:
        raise RecordError(problems)
    return synonyms(canonical)


def synonyms(canonical):
    """A function that replaces whole words in any case by their canonical ones: {"fault": "error"}. The longest match wins."""
    longest_first = sorted(canonical, key=lambda words: (-len(words), words))
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)

    def replace(text):
        return pattern.sub(lambda match: canonical.get(match[0].casefold(), match[0]), text)

    replace.canonical = canonical
    return replace


def normalizer(name, replace=None):
    """The function of a normalization's name; `replace` is what read_synonyms gave. Raises RecordError."""
    steps = []
    if name not in NORMALIZATIONS:
        raise RecordError(f"normalization: expected one of {', '.join(NORMALIZATIONS)}, got {plain(name)}")
    if "nfkc" in name:
        steps.append(nfkc)
    if "synonyms" in name:
        if not replace:
            raise RecordError(f"normalization {name}: needs a map of synonyms; name its file with --synonyms")
        steps.append(replace)
    return lambda text: reduce(lambda value, step: step(value), steps, text)
