"""How far two raters agree: raw agreement, Cohen's kappa plain and weighted, and what stands behind them.

    confusion(first, second, scale)     counts[i][j]: first said scale[i], second said scale[j]
    kappa(counts, weights)              (value, low, high)
    agreement(counts)                   (value, low, high)
    agreement_report(first, second, scale)      all of it as one dict

The scale is fixed beforehand: a grade that nobody gave still lies between its neighbours, and weighted kappa depends on that.
"""

from math import fsum, sqrt

from harness.verdicts import named
from metrics import RecordError, quote

WEIGHTS = ("plain", "linear", "quadratic")
Z_95 = 1.959963984540054  # the 97.5th percentile of the normal distribution


def read_scale(text):
    """The scale that "0-2" or "-2:2" names, as a tuple of integers. Raises RecordError for anything else."""
    import re

    match = re.fullmatch(r"(-?\d{1,3})\s*(?:[-:]|\.\.)\s*(-?\d{1,3})", text.strip())
    if not match or not 0 < int(match[2]) - int(match[1]) <= 100:
        raise RecordError(f"--scale: expected the lowest and the highest score, such as 0-2 or -2:2, got {named(text)}")
    return tuple(range(int(match[1]), int(match[2]) + 1))


def confusion(first, second, scale):
    """counts[i][j], how often the first rater said scale[i] where the second said scale[j]. Raises RecordError off the scale.

    confusion([0, 2], [0, 1], (0, 1, 2)) == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    """
    place = {score: index for index, score in enumerate(scale)}
    counts = [[0] * len(scale) for _ in scale]
    for one, other in zip(first, second, strict=True):
        for score in (one, other):
            if type(score) is not int or score not in place:
                raise RecordError(f"expected scores from {scale[0]} to {scale[-1]}, got {quote(score)}")
        counts[place[one]][place[other]] += 1
    return counts


def agreement(counts):
    """(value, low, high): the share of pairs with equal scores and its 95% interval after Wilson; None for no pairs.

    3 of 4: 0.75, from 0.3006 to 0.9544.
    """
    n, same = sum(map(sum, counts)), sum(row[i] for i, row in enumerate(counts))
    if not n:
        return None, None, None
    share, z2 = same / n, Z_95**2
    half = Z_95 * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    return share, max(middle - half, 0.0), min(middle + half, 1.0)


def kappa(counts, weights="plain"):
    """(value, low, high): Cohen's kappa with its 95% interval, or all None where a rater gave one score throughout.

    kappa = 1 - observed / expected disagreement, where a pair of scores i, j disagrees by 0 or 1 (plain), |i - j| (linear) or
    (i - j)^2 (quadratic), i and j being places on the whole scale. A rater who gives one score throughout shows nothing about
    agreement: undefined. The interval is the large-sample one of Fleiss, Cohen and Everitt (1969), written as the spread of each
    pair's influence on kappa and cut at -1 and 1; None where it has no width, as after perfect agreement, since that would claim
    certainty.
    [[1, 0], [1, 2]]: observed 1/4, expected 1/4 * 1/2 + 3/4 * 1/2 = 1/2, so kappa is 1/2.
    """
    n, places = sum(map(sum, counts)), range(len(counts))
    rows, columns = [sum(row) for row in counts], [sum(column) for column in zip(*counts)]
    if not n or n in rows or n in columns:
        return None, None, None
    apart = [[_apart(i, j, weights) for j in places] for i in places]
    observed = sum(counts[i][j] * apart[i][j] for i in places for j in places)
    expected = sum(rows[i] * columns[j] * apart[i][j] for i in places for j in places)
    value = (expected - n * observed) / expected
    by_row = [sum(columns[j] * apart[i][j] for j in places) / n for i in places]
    by_column = [sum(rows[i] * apart[i][j] for i in places) / n for j in places]
    mean, lost = expected / n**2, 1 - value
    pulls = [[(apart[i][j] - lost * (by_row[i] + by_column[j])) / mean + lost for j in places] for i in places]
    variance = fsum(counts[i][j] * pulls[i][j] ** 2 for i in places for j in places) / n
    if variance < 1e-24:
        return value, None, None
    half = Z_95 * sqrt(variance / n)
    return value, max(value - half, -1.0), min(value + half, 1.0)


def _apart(i, j, weights):
    """By how much two places on the scale disagree."""
    return {"plain": int(i != j), "linear": abs(i - j), "quadratic": (i - j) ** 2}[weights]


def agreement_report(first, second, scale):
    """Everything about two raters as a dict: n, agreement, kappa (by weights), base rates, confusion, undefined."""
    counts = confusion(first, second, scale)
    n = sum(map(sum, counts))
    rates = [[sum(line) / n if n else None for line in side] for side in (counts, zip(*counts))]
    kappas = {weights: _interval(kappa(counts, weights)) for weights in WEIGHTS}
    return {"n": n, "scale": list(scale), "agreement": _interval(agreement(counts)), "kappa": kappas,
            "base_rates": {"first": rates[0], "second": rates[1]}, "confusion": counts, "undefined": _undefined(counts, scale)}


def _interval(values):
    return dict(zip(("value", "low", "high"), values))


def _undefined(counts, scale):
    """Why kappa has no value, as a list of reasons."""
    n = sum(map(sum, counts))
    if not n:
        return ["kappa: no pair was scored by both"]
    sides = (("first", [sum(row) for row in counts]), ("second", [sum(column) for column in zip(*counts)]))
    return [f"kappa: the {name} rater gave {scale[totals.index(n)]} throughout" for name, totals in sides if n in totals]


def agreement_lines(report, first, second):
    """The report as lines of text; first and second are the raters' names."""
    lines = [f"agreement        {show_interval(report['agreement'])}"]
    for weights in WEIGHTS:
        name = "kappa" if weights == "plain" else f"kappa, {weights}"
        lines.append(f"{name:16} {show_interval(report['kappa'][weights])}")
    named = {"first": first, "second": second}
    for reason in report["undefined"]:
        lines.append("undefined        " + reason.replace("the first rater", first).replace("the second rater", second))
    width = max(map(len, named.values())) + 11
    lines.append(f"{'base rates':{width}}" + "".join(f"{score:>8}" for score in report["scale"]))
    for side, rates in report["base_rates"].items():
        lines.append(f"  {named[side]:{width - 2}}" + "".join(f"{'-' if rate is None else f'{rate:.1%}':>8}" for rate in rates))
    lines.append(f"confusion (rows {first}, columns {second})")
    for score, row in zip(report["scale"], report["confusion"]):
        lines.append(f"{score:>{width}}" + "".join(f"{count:>8,}" for count in row))
    return lines


def show_interval(entry, digits=3):
    """0.554 (0.495 to 0.611), or what is undefined."""
    if entry["value"] is None:
        return "undefined"
    value = f"{entry['value']:.{digits}f}"
    if entry["low"] is None:
        return f"{value} (no interval)"
    return f"{value} ({entry['low']:.{digits}f} to {entry['high']:.{digits}f})"
