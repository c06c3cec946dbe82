"""What counts as a verdict: one JSON object with scores in range and a quote that stands in a chunk, and nothing else.

    parse_verdict     a judge's reply -> a verdict, or NoVerdict with the reason
    find_quote        the chunks that hold a quote
    is_refusal        whether an answer declines to answer, from its text alone
    load_rubric       the rubric, its schema and its prompt, with the SHA-256 of its file
"""

import re
from pathlib import Path
from unicodedata import normalize

from metrics import RecordError, parse_json, quote, read_json

RUBRIC = Path(__file__).with_name("rubric.json")
SCORES = ("faithfulness", "relevance")
LONGEST_REPLY = 20_000  # characters; a verdict takes a few hundred
LONGEST_NOTE = 1_000

# Every mark becomes one: a judge that writes JSON often swaps double marks for single ones. Before NFKC, which takes
# some of them apart (U+00B4 becomes a space and an accent).
_MARKS = dict.fromkeys(map(ord, "\"'`´‘’‚‛“”„‟′″‹›«»「」『』〝〞〟＂＇"), "'")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


class NoVerdict(Exception):
    """A try that ended without a verdict.

    `reason` is one of a few fixed phrases, so that a report can count them; `detail` says what exactly; `again` is False
    where the same request would only fail again; `reply` is True where the judge replied and can be told why that was refused;
    `wait` is the number of seconds that the server asked to be left alone.
    """

    def __init__(self, reason, detail="", again=True, reply=False, wait=0.0):
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail, self.again, self.reply, self.wait = reason, detail, again, reply, wait


def load_rubric(path=RUBRIC):
    """The rubric as a dict, with "sha256" of its file. A judge is only comparable with itself under the same rubric."""
    rubric, sha256 = read_json(path)
    needed = {"version", "scale", "system", "placeholders", "retry", "schema", "refusals"}
    if not isinstance(rubric, dict) or not needed <= rubric.keys():
        raise RecordError(f"{path}: expected an object with {', '.join(sorted(needed))}")
    return {**rubric, "sha256": sha256}


def fold(text):
    """Text in the form in which quotes are compared: NFKC, one kind of quotation mark, single spaces.

    fold("“Ｔap\\u00a0 Storage”") == "'Tap Storage'"
    """
    text = normalize("NFKC", text.translate(_INVISIBLE).translate(_MARKS)).translate(_MARKS)
    return " ".join(text.split())


def named(text):
    """A name or a quotation as a message shows it: in quotes, at most 60 characters."""
    return quote(text).removesuffix(" (a string)")


def printable(text):
    """Text from elsewhere without the control characters that could steer a terminal."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def find_quote(evidence, chunks):
    """The ids of the chunks that hold a quote, in their order; chunks are (id, text) pairs. Case counts."""
    wanted = fold(evidence).strip("' ")
    if not any(map(str.isalnum, wanted)):
        return []
    return [name for name, text in chunks if wanted in fold(text)]


def is_refusal(answer, rubric):
    """Whether an answer declines to answer: it is blank, or begins with a phrase that says so and does not go on with a "but".

    A heuristic over the rubric's phrases in the first 240 characters; an answer's own `refused` field overrules it.
    """
    text = fold(answer).casefold()
    if not text:
        return True
    lists = rubric["refusals"]
    end = _end_of_refusal(text[:240], lists)
    return end is not None and not any(_has(text[end:], word) for word in lists["but"])


def _end_of_refusal(text, lists):
    """Where a refusing phrase ends, or None."""
    ends = [text.find(phrase) + len(phrase) for phrase in map(_plain, lists["phrases"]) if phrase in text]
    for sentence in re.finditer(r"[^.!?。]+", text):
        # "does not contain" alone may be an answer about milk; about the documents it is a refusal.
        found = [sentence[0].find(phrase) + len(phrase) for phrase in map(_plain, lists["absent"]) if phrase in sentence[0]]
        if found and any(_has(sentence[0], word) for word in lists["sources"]):
            ends.append(sentence.start() + max(found))
    return max(ends, default=None)


def _plain(phrase):
    return fold(phrase).casefold()


def _has(text, word):
    """Whether a word stands in a text: as a whole word, or anywhere in scripts without spaces."""
    return re.search(rf"\b{re.escape(word)}\b", text) is not None if word.isascii() else word in text


def parse_verdict(reply, chunks, refused, rubric):
    """The verdict in a judge's reply: a dict with faithfulness, relevance, evidence, chunk and note.

    `chunks` are (id, text) pairs; `refused` says whether the answer declines to answer: only then the quote may be empty.
    Raises NoVerdict with the reason for anything else: no partial verdict is ever made up.
    """
    value = _one_object(reply)
    scores = {name: _score(value, name, rubric["scale"]) for name in SCORES}
    evidence, note = _text(value, "evidence"), _text(value, "note", "")
    chunk = value.get("chunk", "")
    chunk = str(chunk) if type(chunk) is int else _text(value, "chunk", "")
    for name, said in (("evidence", evidence), ("chunk", chunk), ("note", note)):
        if said and fold(said) == fold(rubric["placeholders"][name]):
            raise NoVerdict("placeholder echoed", f"{name} is the prompt's own {named(said)}", reply=True)
    return {**scores, "evidence": evidence, "chunk": _attribute(evidence, chunk, chunks, refused), "note": note[:LONGEST_NOTE]}


def _one_object(reply):
    if len(reply) > LONGEST_REPLY:
        raise NoVerdict("reply too long", f"{len(reply):,} characters, expected at most {LONGEST_REPLY:,}", reply=True)
    text = _unwrap(reply)
    try:
        value = parse_json(text, "reply")
    except RecordError as error:
        raise NoVerdict("not one JSON object", error.problems[0].removeprefix("reply: "), reply=True) from None
    if not isinstance(value, dict):
        raise NoVerdict("not one JSON object", f"expected an object, got {quote(value)}", reply=True)
    return value


def _unwrap(reply):
    """The reply without a leading think block and without one code fence around all the rest."""
    text = reply.strip().removeprefix("\ufeff")
    if text.startswith("<think>"):
        _, closed, text = text.partition("</think>")
        if not closed:
            raise NoVerdict("not one JSON object", "the think block has no end", reply=True)
        text = text.strip()
    fenced = re.fullmatch(r"(`{3,}|~{3,})[\w-]*\s(.*?)\s*\1", text, re.DOTALL)
    return fenced[2] if fenced else text


def _score(value, name, scale):
    low, high = scale
    if name not in value:
        raise NoVerdict("score missing", f"no {name}", reply=True)
    score = value[name]
    if type(score) not in (int, float) or score != score // 1:
        raise NoVerdict("score not an integer", f"{name}: expected an integer {low} to {high}, got {quote(score)}", reply=True)
    if not low <= score <= high:
        raise NoVerdict("score out of range", f"{name}: expected an integer {low} to {high}, got {quote(score)}", reply=True)
    return int(score)


def _text(value, name, default=None):
    text = value.get(name, default)
    if not isinstance(text, str):
        found = quote(text) if name in value else "none"
        raise NoVerdict("text missing", f"{name}: expected a text, got {found}", reply=True)
    return text


def _attribute(evidence, claimed, chunks, refused):
    """The id of the chunk that holds the quote: the one the judge names, or the first where it names none."""
    if not fold(evidence).strip("' "):
        if refused:
            return None
        raise NoVerdict("quote empty", "only an answer that declines to answer needs no evidence", reply=True)
    holders = find_quote(evidence, chunks)
    if not holders:
        raise NoVerdict("quote not in a chunk", f"no chunk holds {named(evidence)}", reply=True)
    if claimed and claimed not in holders:
        raise NoVerdict("quote from another chunk", f"{named(claimed)} does not hold it, {named(holders[0])} does", reply=True)
    return claimed or holders[0]
