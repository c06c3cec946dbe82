"""Compares unmarked tables, and an unmarked model-index, with the records: suggestions, since nobody said what they show."""

import re
from bisect import bisect_right
from decimal import Decimal
from typing import NamedTuple

from harness.addresses import NAMES
from harness.markdown import plain
from harness.model_index import read_entries
from harness.printed import Printed, Value, find_printed, is_right, show

LONGEST_FIRST = "|".join(sorted(map(re.escape, NAMES), key=len, reverse=True))
METRIC = re.compile(rf"(?<![^\W_])({LONGEST_FIRST})(?:\s?(?:@|_at_|\bat\b)\s?(\d+))?(?![^\W_])", re.IGNORECASE)


class Found(NamedTuple):
    """A printed number and what its row and column say it is; k is None where no cutoff is named."""

    line: int
    text: str
    printed: Printed
    names: str
    metric: str
    k: str | None


def suggestions(markdown, everything, marked):
    """(line, text) for what could be marked, and for each number in it that the records do not give.

    marked: the (start, end) that are marked already.
    """
    found, marked = [], sorted(marked)  # which don't overlap
    ends = [end for _, end in marked]
    for table in markdown.tables():
        after = bisect_right(ends, table.start)
        if after == len(marked) or marked[after][0] >= table.end:
            cells = table_cells(markdown, table)
            found += compared(cells, everything, markdown.line_number(table.start), "table", "table") if cells else []
    if markdown.front and not any(start < markdown.front.end() for start, _ in marked):
        entries = [index_cell(entry) for entry in read_entries(markdown.front["yaml"].splitlines())]
        entries = [entry for entry in entries if entry]
        found += compared(entries, everything, entries[0].line, "model-index", "model-index") if entries else []
    return found


def table_cells(markdown, table):
    """The Found of every cell that is a number and that a metric is named for, in the head of its column or of its row."""
    texts = [[plain(markdown.text[start:end]) for start, end in row] for row in table.rows]
    found = []
    for row, spans in zip(texts[1:], table.rows[1:]):
        for at, text in enumerate(row[1:], 1):
            names = f"{texts[0][at] if at < len(texts[0]) else ''} | {row[0]}"
            metric, printed = METRIC.search(names), find_printed(text, "share")
            if metric and printed and printed.number is not None and (printed.start, printed.shown_end) == (0, len(text)):
                printed = printed._replace(percent=printed.percent or "%" in names)
                found.append(Found(markdown.line_number(spans[at][0]), text, printed, names, NAMES[metric[1].lower()], metric[2]))
    return found


def index_cell(entry):
    """The Found of a model-index entry, or None; above 1 it is a percentage."""
    metric = METRIC.fullmatch(entry.metric)
    places = entry.value.as_tuple().exponent
    printed = Printed(0, 0, 0, entry.text, entry.value, places, abs(entry.value) > Decimal(1))
    return metric and Found(entry.line + 2, entry.text, printed, entry.model, NAMES[metric[1].lower()], metric[2])


def compared(cells, everything, line, what, word):
    """The suggestions for one table: the population that most of its numbers agree with, and the numbers that disagree."""
    best, best_right, best_known = None, -1, {}
    for place in everything.places:
        known = {cell: values for cell in cells if (values := place_values(cell, place))}
        right = sum(any(is_right(cell.printed, value) for value in values) for cell, values in known.items())
        if known and right > best_right:
            best, best_right, best_known = place, right, known
    if best is None:
        return []
    wrong = {cell: values for cell, values in best_known.items() if not any(is_right(cell.printed, value) for value in values)}
    if not best_right:
        return [(line, f"no number of this {what} is in the records; {best.address} has such models and metrics")]
    marker = f"metrics: {best.address} {word}"
    marker = f"<!-- {marker} --> … <!-- /metrics -->" if what == "table" else f"# {marker} … # /metrics"
    agree = "agrees with" if not wrong else f"agrees in {best_right} of {len(best_known)} numbers with"
    return [(line, f"this {what} {agree} {best.address}; mark it so that it is checked: {marker}"),
            *((cell.line, f"printed {cell.text} ({label(cell)}), but {best.address} gives {shown(cell, values)}") for cell,
              values in wrong.items())]


def label(cell):
    """What a cell is, from the heads of its row and column."""
    return ", ".join(filter(None, map(str.strip, cell.names.split(" | "))))


def place_values(cell, place):
    """The Values that a cell could be in one population: none, one, or one per cutoff where the cutoff is not named."""
    model = model_in(cell.names.lower(), place.names)
    return [Value(value, "share", cell.metric) for (own, metric, k), value in place.values.items()
            if own == model and metric == cell.metric and cell.k in (None, k)]


def model_in(text, names):
    """The model that a text names, the longest name first, or None."""
    for name in sorted(names, key=len, reverse=True):
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            return names[name]
    return None


def shown(cell, values):
    """A value beside a printed one; nothing is named where the cutoff is not known."""
    return " or ".join(show(value) for value in values)
