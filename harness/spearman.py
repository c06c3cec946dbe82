"""Spearman's rank correlation with average ranks for ties, exact in its ranks; cosine similarity for STS rows.

python -m harness spearman GOLD PRED       two files of numbers, paired by position
python -m harness spearman ROWS            one JSON Lines file: {"gold": 3.5, "cosine": 0.81} or {"gold": 3.5, "a": […], "b": […]}
"""

from math import frexp, fsum, isfinite, isqrt, ldexp, sqrt
from typing import NamedTuple

from harness.files import read_text
from harness.verdicts import named
from metrics import RecordError, quote

COSINE_SLACK = 1e-5  # similarities computed in 32-bit floats leave [-1, 1] by a few millionths


class Correlation(NamedTuple):
    """A rank correlation, or why there is none."""

    value: float | None
    reason: str | None  # why it is undefined
    pairs: int


def doubled_ranks(values):
    """Twice the average rank of each value, as integers: (10, 20, 20) has the ranks 1, 2.5, 2.5, so [2, 5, 5].

    Equal values share the mean of the ranks they span, which may end in a half; doubled, every rank is an integer.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = start + 1 + end  # first rank start + 1, last rank end: twice their mean is their sum
        start = end
    return ranks


def spearman(gold, pred, names=("gold", "pred")):
    """Spearman's rho of two lists of numbers paired by position: a Correlation with a value in [-1, 1] or a reason.

    Pearson's correlation of the average ranks (Spearman 1904; with ties the 6 sum d^2 shortcut is wrong). All sums are
    integers, so identical order gives exactly 1.0 and reversed order exactly -1.0. Undefined, with the reason: fewer
    than two pairs, a value that is None or NaN, a list in which all values are equal. Infinities rank like any number.
    By hand: (1, 2, 2, 4) against (10, 30, 20, 40) has the ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4; the deviations from 2.5
    give 4.5 / sqrt(4.5 * 5) = 3 / sqrt(10) = 0.9487.
    Raises RecordError for lists of unequal length and for values that are no numbers; `names` names the lists in it.
    """
    if len(gold) != len(pred):
        raise RecordError(f"{names[0]} and {names[1]}: expected lists of one length, got length {len(gold)} and length "
                          f"{len(pred)}; every value needs its partner")
    reason = undefined_reason(gold, names[0]) or undefined_reason(pred, names[1])
    if reason:
        return Correlation(None, reason, len(gold))
    first, second = doubled_ranks(gold), doubled_ranks(pred)
    middle = len(gold) + 1  # twice the mean rank
    covariance = sum((x - middle) * (y - middle) for x, y in zip(first, second))
    squares = sum((x - middle) ** 2 for x in first) * sum((y - middle) ** 2 for y in second)
    return Correlation(ratio_to_root(covariance, squares), None, len(gold))


def undefined_reason(values, name):
    """Why a list has no rank correlation, or None. Raises RecordError for a value that is neither a number nor None."""
    for position, value in enumerate(values, 1):
        if number(value, f"{name}: position {position}") is None or value != value:
            return (f"{name}: position {position} holds no number ({'null' if value is None else 'NaN'}), "
                    f"so it has no rank; remove the pair from both lists or measure it")
    if len(values) < 2:
        return f"{name}: at least 2 pairs are needed, got {len(values)}"
    if all(value == values[0] for value in values):
        return f"{name}: all {len(values)} values are equal ({quote(values[0])}), so there is no order to compare"
    return None


def ratio_to_root(numerator, square):
    """numerator / sqrt(square) of integers, |numerator| <= sqrt(square): exact where the root is, else to the last bit."""
    root = isqrt(square)
    if root * root == square:
        return numerator / root
    shift = 128  # far more bits than a float has, so that cutting the root off can't show
    size = isqrt((numerator * numerator << 2 * shift) // square)
    return (size if numerator >= 0 else -size) / (1 << shift)


def cosine(a, b):
    """The cosine similarity of two vectors of floats: (1, 0) and (1, 1) give 1 / sqrt(2).

    Sums are correctly rounded and the vectors scaled by powers of two, so a vector with itself gives exactly 1.0, and
    large or tiny components neither overflow nor vanish. Raises ValueError where a vector has no direction.
    """
    a, b = scaled(a), scaled(b)
    norms = fsum(x * x for x in a) * fsum(y * y for y in b)
    return max(-1.0, min(1.0, fsum(x * y for x, y in zip(a, b)) / sqrt(norms)))


def scaled(vector):
    """A vector times the power of two that brings its largest component into [1/2, 1); exact, and keeps its direction."""
    largest = max(map(abs, vector), default=0)
    if not largest or not isfinite(largest):
        raise ValueError("has no direction (all zero)" if not largest else "holds an infinite component")
    exponent = -frexp(largest)[1]
    return [ldexp(component, exponent) for component in vector]


def read_numbers(path):
    """The numbers of a file: a JSON list, or one number a line, or one object with "score" a line.

    NaN, Infinity and null are read, for `spearman` to judge. Raises RecordError that lists every bad place.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        values = [(f"position {position}", value) for position, value in enumerate(parse(text, path), 1)]
    else:
        lines = [(f"line {place}", line) for place, line in enumerate(text.split("\n"), 1) if line.strip()]
        values = [(place, parse(line, f"{path}: {place}")) for place, line in lines]
    numbers, problems = [], []
    for place, value in values:
        try:
            numbers.append(number(value["score"] if isinstance(value, dict) and "score" in value else value, place))
        except RecordError as problem:
            problems.append(f"{path}: {problem}")
    if problems:
        raise RecordError(problems)
    return numbers


def parse(text, place):
    """A JSON value in which NaN and Infinity may stand, unlike in a record: other tools write scores with them."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise RecordError(f"{place}: expected a number, got {named(text.strip())}") from None


def number(value, place):
    """The value, if it is a number or None. Raises RecordError for anything else."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise RecordError(f"{place}: number expected, got {quote(value)}")
    return value


class Row(NamedTuple):
    """An STS pair: the human score, the model's similarity, and the subset (such as a language pair) it belongs to."""

    gold: float | None
    cosine: float | None
    subset: str | None


def read_rows(path):
    """The STS rows of a JSON Lines file. Raises RecordError that lists every bad line."""
    from harness.files import read_jsonl

    rows, problems = [], []
    for line, value in read_jsonl(path):
        try:
            rows.append(read_row(value))
        except ValueError as problem:
            problems.append(f"{path}: line {line}: {problem}")
    if problems:
        raise RecordError(problems)
    return rows


def rows_alone(path):
    """The STS rows of a file that came without a partner. Raises RecordError that asks for the partner where it holds no such row."""
    if '"gold"' not in read_text(path):
        raise RecordError(f'{path}: no row like {{"gold": 3.5, "cosine": 0.81}} in it; to correlate two files of numbers, give PRED too')
    return read_rows(path)


def read_row(value):
    """One STS row from its JSON object. Raises ValueError (a RecordError is one) that says what is wrong."""
    if not isinstance(value, dict) or "gold" not in value or ("cosine" in value) == ("a" in value or "b" in value):
        raise ValueError(f'expected {{"gold": number, "cosine": number}} or {{"gold": number, "a": vector, "b": vector}}, '
                         f"got {quote(value)}")
    subset = value.get("subset")
    if subset is not None and not (isinstance(subset, str) and subset.isprintable()):
        raise ValueError(f"subset: expected a name, got {quote(subset)}")
    return Row(number(value["gold"], "gold"), row_similarity(value), subset)


def row_similarity(value):
    """A row's cosine similarity, given or computed from its two vectors."""
    if "cosine" in value:
        given = number(value["cosine"], "cosine")
        if given is not None and abs(given) > 1 + COSINE_SLACK:
            raise ValueError(f"cosine: expected a value in -1..1, got {quote(given)}; percentages don't belong here")
        return given
    a, b = vector(value.get("a"), "a"), vector(value.get("b"), "b")
    if len(a) != len(b):
        raise ValueError(f"a and b: expected vectors of one length, got {len(a)} and {len(b)}")
    try:
        return cosine(a, b)
    except ValueError as problem:
        raise ValueError(f"a or b: {problem}") from None


def vector(value, name):
    """A list of floats; anything else is a ValueError."""
    if not isinstance(value, list) or not value or any(isinstance(x, bool) or not isinstance(x, (int, float)) for x in value):
        raise ValueError(f"{name}: expected a list of numbers, got {quote(value)}")
    try:
        return [float(component) for component in value]
    except OverflowError:
        raise ValueError(f"{name}: a component is too large for a 64-bit float") from None


def correlate_rows(rows, name="rows"):
    """The correlations of STS rows: {"pooled": Correlation, "subsets": {name: Correlation}, "mean": float or None}.

    Pooled ranks all rows together; the mean averages the subsets, each ranked alone (how MTEB scores languages). They
    differ, so both are told. The mean is None where a subset is undefined; rows without "subset" are one subset, "default".
    """
    subsets = {}
    for row in rows:
        subsets.setdefault(row.subset or "default", []).append(row)
    each = {subset: correlate(members, f"{name}, subset {subset}") for subset, members in subsets.items()}
    values = [correlation.value for correlation in each.values()]
    mean = None if None in values else fsum(values) / len(values)
    return {"pooled": correlate(rows, name), "subsets": each, "mean": mean}


def correlate(rows, name):
    """The Correlation of a list of rows."""
    return spearman([row.gold for row in rows], [row.cosine for row in rows], (f"{name}: gold", f"{name}: cosine"))


def main(argv):
    """Print the rank correlation of two files of numbers or of one file of STS rows; 1 where it is undefined."""
    from harness.arguments import Parser

    parser = Parser(prog="python -m harness spearman", description="Spearman's rank correlation, ties by "
                                     "average rank, exact: identical order is exactly 1, reversed order exactly -1.")
    parser.add_argument("gold", metavar="GOLD", help="numbers (a JSON list, or one a line); alone: STS rows as JSON Lines")
    parser.add_argument("pred", metavar="PRED", nargs="?", help="as many numbers, paired with GOLD by position")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    options = parser.parse_args(argv)
    if options.pred is None:
        report = correlate_rows(rows_alone(options.gold), options.gold)
    else:
        gold, pred = read_numbers(options.gold), read_numbers(options.pred)
        report = {"pooled": spearman(gold, pred, (options.gold, options.pred)), "subsets": {}, "mean": None}
    return show(report, options.format)


def show(report, form):
    """Print a report as text or JSON; the reasons of what is undefined go to stderr too. 1 where anything is undefined."""
    import sys

    reasons = dict.fromkeys(c.reason for c in [report["pooled"], *report["subsets"].values()] if c.reason)
    print(as_json(report) if form == "json" else as_text(report), end="")
    for reason in reasons:
        print(f"undefined: {reason}", file=sys.stderr)
    return 1 if reasons else 0


def as_text(report):
    """A report as lines of text: one number, or a line per subset, their mean, and the pooled value."""
    pooled, subsets = report["pooled"], report["subsets"]
    lines = [(name, correlation.value, correlation.pairs) for name, correlation in subsets.items()]
    if len(lines) > 1:
        lines += [("mean of subsets", report["mean"], pooled.pairs), ("pooled", pooled.value, pooled.pairs)]
    else:
        lines = [("spearman", pooled.value, pooled.pairs)]
    width = max(len(name) for name, _, _ in lines)
    return "".join(f"{name:{width}}  {'undefined' if value is None else str(value):>20}  {pairs:,} pairs\n"
                   for name, value, pairs in lines)


def as_json(report):
    """A report as JSON text; an undefined value is null beside its reason."""
    from metrics import dump_json

    pooled = report["pooled"]
    value = {"spearman": pooled.value, "pairs": pooled.pairs, "undefined": [pooled.reason] if pooled.reason else []}
    if len(report["subsets"]) > 1:
        value["mean_of_subsets"] = report["mean"]
        value["subsets"] = {name: {"spearman": c.value, "pairs": c.pairs, "undefined": [c.reason] if c.reason else []}
                            for name, c in report["subsets"].items()}
    return dump_json(value)
