"""The model-index of a Hugging Face card's front matter, from the records; and what an unmarked one holds."""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NamedTuple

from harness.benchmark_output import entry_lines, index_lines


class Entry(NamedTuple):
    """A metric of a model-index as it stands in a card: line in the front matter (from 0), model, metric type, printed value."""

    line: int
    model: str
    metric: str
    text: str
    value: Decimal


def lines_of(models):
    """The YAML lines of {model's name: [(data set, measure, value in [0, 1] or None), …]}; an undefined value has no entry."""
    return index_lines({name: [entry_lines("retrieval", dataset, None, None, None, measure, Fraction(repr(value)))
                               for dataset, measure, value in results if value is not None] for name, results in models.items()})


def merged(parts):
    """One {model: results} of several."""
    models = {}
    for part in parts:
        for name, results in part.items():
            models.setdefault(name, []).extend(results)
    return models


def read_entries(lines):
    """Every Entry of a model-index in YAML's block style; what is written in another style is not found."""
    model = metric = ""
    inside, found = False, []
    for at, line in enumerate(lines):
        if re.match(r"\S", line) and not line.startswith(("-", "#")):
            inside = line.startswith("model-index:")
        match = re.match(r"(\s*)(-?\s*)(name|type|value):\s*(.*?)\s*$", line) if inside else None
        if not match:
            continue
        text = match[4].strip("\"'")
        if match[3] == "name" and not match[1] and match[2]:
            model = text
        elif match[3] == "type":
            metric = text
        elif match[3] == "value" and (number := decimal(text)) is not None:
            found.append(Entry(at, model, metric, text, number))
    return found


def decimal(text):
    """A YAML number as a Decimal, or None."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
