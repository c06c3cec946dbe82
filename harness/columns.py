"""Splits blocks of lines into columns, and proves that every line has them: several times faster than line by line.

Whatever cannot be proved raises Unproven; then the lines are read one by one, and that way finds out what is wrong.
"""

from itertools import islice


class Unproven(Exception):
    """The fast way cannot prove its result; the plain one decides."""


def spaced(block):
    """A block whose fields are separated by spaces and whose lines end in line feeds alone."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if b"\t" in block:
        block = block.replace(b"\t", b" ")
    if b"\r" in block or b"\v" in block or b"\f" in block:
        raise Unproven
    return block


def columns(block, width):
    """The tokens of a block in which every line is proved to have `width` fields, with single spaces between them.

    Split at spaces alone, the last field of a line and the first of the next are one token with a line feed in it, at every
    multiple of width - 1. As many line feeds as lines then show that no other token holds one, once the caller has found
    one in each of those; and that no token between them is empty is for the caller to see, too.
    """
    tokens = block[:-1].split(b" ")
    lines, over = divmod(len(tokens), width - 1)
    if over != 1 or block.count(b"\n") != lines:
        raise Unproven
    return tokens


def stretches(values):
    """(start, end) of each stretch of equal values."""
    start, length, size = 0, 1, len(values)
    while start < size:
        value, end = values[start], start + length
        if end > size or values[end - 1] != value or (end < size and values[end] == value):
            end = _stretch_end(values, start)
        if values[start:end].count(value) != end - start:  # equal values stand apart, which halving does not see
            end = start + next((place for place, other in enumerate(islice(values, start, end)) if other != value))
        yield start, end
        start, length = end, end - start  # most queries have as many lines as the one before


def _stretch_end(values, start):
    """Where the values stop being equal to the one at start, by halving, which is right if equal values stand together."""
    value, last, end = values[start], start, len(values)
    while end - last > 1:
        middle = (last + end) // 2
        if values[middle] == value:
            last = middle
        else:
            end = middle
    return end
