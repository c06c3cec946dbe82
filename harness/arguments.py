"""Types of command-line values, with errors that say what was expected."""

from argparse import ArgumentTypeError


def positive(text):
    """An integer of at least 1."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise ArgumentTypeError(f"expected an integer of at least 1, got {text}")
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


def cutoffs(text):
    """Increasing cutoffs of a comma-separated list."""
    return sorted(set(map(positive, text.split(","))))


def pair(text):
    """[base, candidate] of BASE=CANDIDATE."""
    base, equals, candidate = text.partition("=")
    if not (base and candidate):
        raise ArgumentTypeError(f"expected BASE=CANDIDATE, got {text}")
    return [base, candidate]
