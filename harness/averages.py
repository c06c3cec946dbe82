"""Averages of benchmark scores by named rules, computed exactly, and what explains a published average.

| function | what it gives |
| --- | --- |
| `exact` | a score as the fraction its decimal text names |
| `average` | the mean of tasks by one rule of `RULES` |
| `agreement` | whether a published, rounded number can come from a recomputed one |
| `smallest_omissions` | the smallest sets of tasks without which a published number comes out |

A task is a `Task(name, type, scores)`: its scores are one per split and language. Every value is a fractions.Fraction, so
no average depends on the order of its terms and a tie is a tie.
"""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import comb, lcm
from typing import NamedTuple

SEARCH_LIMIT = 200_000  # sets of tasks tried at most for one published number; a search beyond it would take minutes


class Task(NamedTuple):
    """A task's scores, one per split and language."""

    name: str
    type: str
    scores: tuple  # of Fraction


def exact(score):
    """The fraction that a number's decimal text names: 0.1 is 1/10, "73.98" is 7398/100, a Fraction is itself."""
    return score if isinstance(score, Fraction) else Fraction(Decimal(str(score)))


def mean(values):
    """The exact mean of Fractions. Raises ZeroDivisionError for none, so callers ask for the mean of something only."""
    values = list(values)
    return sum(values, Fraction()) / len(values)


def two_step(tasks):
    """The mean of the tasks, each the mean of its splits and languages: a task counts once, however many languages it has.

    Tasks of scores (1/2) and (0, 1, 1/2, 1/2): (1/2 + 1/2) / 2 = 1/2.
    """
    return mean(mean(task.scores) for task in tasks)


def flat(tasks):
    """The mean of all scores in one step: a task counts once for each split and language.

    Tasks of scores (1) and (0, 0): (1 + 0 + 0) / 3 = 1/3, where two steps give 1/2.
    """
    return mean(score for task in tasks for score in task.scores)


def by_type(tasks):
    """The mean over the task types of the mean over a type's tasks (each in two steps).

    Retrieval 0.5, 0.6, 0.7 and STS 0.8: (0.6 + 0.8) / 2 = 0.7, where two steps give 0.65.
    """
    types = defaultdict(list)
    for task in tasks:
        types[task.type].append(task)
    return mean(two_step(members) for members in types.values())


RULES = {"two-step": two_step, "flat": flat, "by-type": by_type}

RULE_WORDS = {
    "two-step": "the languages of a task first, then the tasks",
    "flat": "all languages of all tasks in one step",
    "by-type": "the languages of a task, then the tasks of a type, then the types",
}


def average(tasks, rule):
    """The average of a list of Tasks by a rule of RULES, or None where there is no task."""
    return RULES[rule](tasks) if tasks else None


def decimals_of(text):
    """How many decimals a number is printed with: "73.98" has 2, "66" has 0, "5e-3" has 3."""
    return max(0, -Decimal(text).as_tuple().exponent)


def half_unit(decimals):
    """Half of the last printed place: what a number rounded to that many decimals may be off by."""
    return Fraction(1, 2 * 10**decimals)


def agreement(published, decimals, recomputed, slack=Fraction()):
    """Whether a published number, rounded to `decimals`, can come from a recomputed one.

    "agrees": the recomputed value rounds to the published one (a half may go either way). "within rounding": only if
    the listed scores, which are rounded themselves, are off by up to `slack` on average. "differs": neither.
    85.29 from 85.2967 whose scores have two decimals (slack 0.005) is within rounding: 0.0067 <= 0.005 + 0.005.
    """
    difference = abs(recomputed - published)
    if difference <= half_unit(decimals):
        return "agrees"
    return "within rounding" if difference <= half_unit(decimals) + slack else "differs"


class Omission(NamedTuple):
    """What a search for omitted tasks found."""

    size: int  # tasks left out in each found set; 0 where nothing was found
    sets: list  # of (names left out, average without them)
    tried: int  # sets of that size (all sets, where nothing was found)
    largest: int  # the largest size searched


def smallest_omissions(tasks, rule, published, decimals, largest=3, slack=Fraction()):
    """The smallest sets of tasks whose omission makes the average round to the published number: an Omission.

    With a `slack`, the average without them may also be off by as much, as in `agreement`.
    Sizes 1 to `largest` are searched whole, in order, and the first size with any match ends the search; a size that
    would bring the number of sets tried beyond SEARCH_LIMIT ends it too, and `largest` says how far it came. At least one
    task is always kept. A match is no proof: with many sets of a size some match by chance, so `tried` is told.
    """
    low, high = (published + sign * (half_unit(decimals) + slack) for sign in (-1, 1))
    tried, searched = 0, 0
    for size in range(1, min(largest, len(tasks) - 1) + 1):
        sets = comb(len(tasks), size)
        if tried + sets > SEARCH_LIMIT:
            break
        tried, searched = tried + sets, size
        found = [(names, Fraction(total, count)) for names, total, count in averages_without(tasks, rule, size)
                 if low.numerator * count <= total * low.denominator and total * high.denominator <= high.numerator * count]
        if found:
            return Omission(size, found, sets, size)
    return Omission(0, [], tried, searched)


def averages_without(tasks, rule, size):
    """For every set of `size` tasks its names and the average of the others as two integers (names, numerator, denominator > 0).

    Integers, not Fractions: a search makes tens of thousands of them, and most are only compared.
    """
    parts = averaged_parts(tasks, rule)
    scale = lcm(*(total.denominator for total, _ in parts))
    totals, counts = [int(total * scale) for total, _ in parts], [count for _, count in parts]
    whole, count = sum(totals), sum(counts)
    for out in combinations(range(len(tasks)), size):
        names = tuple(tasks[index].name for index in out)
        if rule == "by-type":
            value = by_type([task for index, task in enumerate(tasks) if index not in out])
            yield names, value.numerator, value.denominator
        else:
            yield names, whole - sum(totals[index] for index in out), scale * (count - sum(counts[index] for index in out))


def averaged_parts(tasks, rule):
    """Each task's (sum, count) in an average that is a sum over a count, so that leaving tasks out is a subtraction.

    That holds for two steps and for one; by type it does not, there every average is made anew.
    """
    return [(sum(task.scores, Fraction()), len(task.scores)) if rule == "flat" else (mean(task.scores), 1) for task in tasks]
