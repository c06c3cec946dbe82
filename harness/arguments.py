"""Types and errors of the command line: each says what was expected, and what was probably meant."""

import os
from argparse import ArgumentParser, ArgumentTypeError, HelpFormatter, RawDescriptionHelpFormatter

from metrics import RecordError, printable


class Parser(ArgumentParser):
    """An ArgumentParser whose errors are two lines: what is wrong, and where the usage is told."""

    def __init__(self, **settings):
        written = "\n" in (settings.get("description") or "").strip()  # a text in several lines keeps them
        layout = RawDescriptionHelpFormatter if written else HelpFormatter
        super().__init__(**{"allow_abbrev": False, "formatter_class": layout, **settings})

    def parse_args(self, args=None, namespace=None):
        """The options; an error that names the closest option for a word that is none."""
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            known = [name for name in self._option_string_actions if name.startswith("--")]
            meant = closest(rest[0].partition("=")[0], known) if rest[0].startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{meant}")
        return options

    def error(self, message):
        """Print the message and end with 2."""
        command = self.prog.removeprefix("python -m harness ")
        self.exit(2, f"{printable(f'{command}: error: {message}')}\n({command} --help tells more)\n")


def closest(word, known):
    """The end of a message about a word that is not known: which known one is likely to be meant, if any is."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), list(lower), 1)
    return f"; did you mean {lower[near[0]]}?" if near else ""


def positive(text):
    """An integer of at least 1."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise ArgumentTypeError(f"expected an integer of at least 1, got {text[:60]}")
    return int(text)


def share(text):
    """A number above 0 and at most 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"expected a number above 0 and at most 1, got {text}")
    return value


def exact_share(text):
    """A share as the decimal that it was written as: 0.95 is no binary fraction."""
    from decimal import Decimal

    share(text)
    return Decimal(text)


def cutoffs(text):
    """Increasing cutoffs of a comma-separated list."""
    return sorted(set(map(positive, text.split(","))))


def pair(text):
    """[base, candidate] of BASE=CANDIDATE."""
    base, equals, candidate = text.partition("=")
    if not (base and candidate):
        raise ArgumentTypeError(f"expected BASE=CANDIDATE, got {text}")
    return [base, candidate]


def filled(text):
    """A text that is not empty: a file's name, say."""
    if not text.strip():
        raise ArgumentTypeError(f"expected a text that is not empty, got {ascii(text)}")
    return text


def unicode_text(text):
    """A text that is not empty and can be written as UTF-8: what stands in a record."""
    try:
        filled(text).encode("utf-8")
    except UnicodeEncodeError:
        raise ArgumentTypeError(f"expected a text in UTF-8, got {ascii(text)}") from None
    return text


def named_file(text):
    """(name, file) of NAME=FILE."""
    name, _, path = text.partition("=")
    if not (name and path):
        raise ArgumentTypeError(f"expected NAME=FILE, got {text}")
    return unicode_text(name), path


def read_once(parser, inputs):
    """A usage error if standard input is given more than once. inputs: [(option, file)]."""
    options = [option for option, path in inputs if path == "-"]
    if len(options) > 1:
        parser.error(f"standard input (-) can be read once, got it for {' and for '.join(options)}")


def keep_inputs(output, inputs):
    """Raise RecordError if a file that will be written is one of those that are read, under whatever name."""
    if not os.path.isfile(output):
        return
    target = os.stat(output)
    for path in inputs:
        try:
            same = os.path.samestat(target, os.stat(0 if path == "-" else path))
        except OSError:
            continue  # whoever reads it says what is wrong with it
        if same:
            raise RecordError(f"{output}: the output would replace the input {path}; write to another file")
