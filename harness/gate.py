"""Floors under the metrics of a golden set: gate a run on them, raise them, and test them.

A floors file:

    {"golden_sha256": "…", "k": 5, "questions": {"factual": 30, "numeric": 22},
     "overall": {"hit": 0.85, "ndcg": 0.7}, "each_type": {"hit": 0.6}, "types": {"numeric": {"hit": 0.8}}}

overall holds for all questions, each_type for every type, types for one type in place of each_type. The first three keys say
what the floors were set on; a run on anything else is refused. In a test file, for pytest or unittest:

    from harness.gate import floor_tests
    TestRetrieval = floor_tests("floors.json", lambda: evaluate("golden.jsonl", search, k=5))
"""

import os
from decimal import ROUND_DOWN, Decimal
from typing import NamedTuple

from harness.evaluation import METRICS
from metrics import RecordError, dump_json, quote, read_json, write_whole

SLACK = Decimal("0.05")
DIGITS = Decimal("1e-12")  # absorbs the last bit of floating point, and is far below anything that is ever printed
KEYS = {"golden_sha256", "k", "questions", "overall", "each_type", "types"}
FIRST_FLOORS = {"overall": ("hit", "mrr", "ndcg"), "each_type": ("hit",)}


class Verdict(NamedTuple):
    """One floor and what was measured. group is "overall" or a type; value is None where nothing was measured."""

    group: str
    metric: str
    floor: Decimal
    value: Decimal | None

    @property
    def holds(self):
        return self.value is not None and self.value >= self.floor

    @property
    def message(self):
        """What a failed test says; more digits where three would show two equal numbers."""
        where = "" if self.group == "overall" else f"{self.group}: "
        if self.value is None:
            return f"{where}{self.metric} has no value (floor {self.floor:.3f})"
        digits = 3
        while f"{self.value:.{digits}f}" == f"{self.floor:.{digits}f}" and self.value != self.floor:
            digits += 1
        verb = "holds at" if self.holds else "dropped to"
        return f"{where}{self.metric} {verb} {self.value:.{digits}f} (floor {self.floor:.{digits}f})"


def exact(value):
    """A measured or written number as a Decimal of 12 digits after the point; None stays None. Never a rounded display."""
    return None if value is None else Decimal(repr(value)).quantize(DIGITS)


class Measured(NamedTuple):
    """What a gate needs of a run: where it stands, what it was measured on, and {group: {metric: value}}."""

    golden_sha256: str
    k: int
    questions: dict
    values: dict


def measured(evaluation):
    """The Measured of an Evaluation."""
    types = {kind: {name: block[name] for name in METRICS} for kind, block in evaluation.types.items()}
    return Measured(evaluation.golden.sha256, evaluation.k, {kind: block["n"] for kind, block in evaluation.types.items()},
                    {"overall": evaluation.metrics, **types})


def read_floors(path):
    """The floors in a file. Raises RecordError that lists every problem."""
    value, _ = read_json(path)
    if not isinstance(value, dict):
        raise RecordError(f"{path}: top level: expected an object with {', '.join(sorted(KEYS))}, got {quote(value)}")
    problems = [f"{path}: {key}: unknown key; expected one of {', '.join(sorted(KEYS))}" for key in value if key not in KEYS]
    problems += [f"{path}: {key}: missing; it says what the floors were set on" for key in ("golden_sha256", "k", "questions")
                 if key not in value]
    types = value.get("types", {})
    groups = [("overall", value.get("overall", {})), ("each_type", value.get("each_type", {}))]
    if isinstance(types, dict):
        groups += [(f"types.{kind}", floors) for kind, floors in types.items()]
    else:
        problems.append(f"{path}: types: expected an object, got {quote(types)}")
    for place, floors in groups:
        problems += [f"{path}: {place}{problem}" for problem in floor_problems(floors)]
    if not problems and not any(floors for _, floors in groups):
        problems.append(f"{path}: no floors; expected at least one under overall, each_type or types")
    if problems:
        raise RecordError(problems)
    return value


def floor_problems(floors):
    """What is wrong with an object of floors."""
    if not isinstance(floors, dict):
        return [f": expected an object of floors, got {quote(floors)}"]
    return [f".{name}: expected a metric ({', '.join(METRICS)}) with a number 0 to 1, got {quote(floor)}"
            for name, floor in floors.items() if name not in METRICS or type(floor) not in (int, float) or not 0 <= floor <= 1]


def check_same(floors, run, path):
    """Refuse to compare floors with a run on other questions, another k or another mix of types. Raises RecordError."""
    held = {"golden_sha256": run.golden_sha256, "k": run.k, "questions": run.questions}
    problems = []
    for key, what in (("golden_sha256", "golden set"), ("k", "k"), ("questions", "mix of types")):
        if floors[key] != held[key]:
            problems.append(f"{path}: {key}: the floors were set on another {what}: {quote(floors[key])}, but this run has"
                            f" {quote(held[key])}; set new floors on this one")
    unknown = sorted(floors.get("types", {}).keys() - run.questions.keys())
    problems += [f"{path}: types: no question of type {quote(kind)}" for kind in unknown]
    if problems:
        raise RecordError(problems)


def pairs_of(floors, kinds):
    """Every (group, metric, floor): overall first, then each type with its own floors or those of each_type."""
    groups = {"overall": floors.get("overall", {})}
    for kind in sorted(kinds):
        groups[kind] = {**floors.get("each_type", {}), **floors.get("types", {}).get(kind, {})}
    return [(group, name, floor) for group, some in groups.items() for name, floor in some.items()]


def verdicts(floors, run):
    """A Verdict per floor."""
    return [Verdict(group, name, exact(floor), exact(run.values[group][name]))
            for group, name, floor in pairs_of(floors, run.questions)]


def gate(path, run):
    """The Verdicts of a run (Measured) on the floors in a file. Raises RecordError where they are not comparable."""
    floors = read_floors(path)
    check_same(floors, run, path)
    return verdicts(floors, run)


def gate_text(results):
    """A gate's verdicts as lines, failures first."""
    lines = [f"{'ok  ' if verdict.holds else 'FAIL'} {verdict.message}" for verdict in sorted(results, key=lambda v: v.holds)]
    failed = sum(not verdict.holds for verdict in results)
    return "\n".join([*lines, f"{len(results) - failed} of {len(results)} floors hold"]) + "\n"


def junit(results, name="golden"):
    """The verdicts as JUnit XML: one test per floor."""
    from xml.sax.saxutils import escape, quoteattr

    from svg_figures import clean

    cases = []
    for verdict in results:
        start = f"  <testcase classname={quoteattr(clean(f'{name}.{verdict.group}'))} name={quoteattr(verdict.metric)}"
        message = clean(verdict.message)
        cases.append(f"{start}/>" if verdict.holds else
                     f"{start}>\n    <failure message={quoteattr(message)}>{escape(message)}</failure>\n  </testcase>")
    failed = sum(not verdict.holds for verdict in results)
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>',
                      f'<testsuite name={quoteattr(name)} tests="{len(results)}" failures="{failed}" errors="0">',
                      *cases, "</testsuite>", ""])


def ratchet(path, runs, slack=SLACK, stable=3):
    """Raise the floors in a file to the last run's values minus the slack, and never lower one; gives (changes, why not).

    runs: entries of the log, oldest first, all comparable with the last. It takes `stable` of them in a row that lost no
    more than the slack and had no failed search. A file that does not exist is made, with floors on hit, mrr and ndcg
    overall and on hit in each type.
    """
    last = runs[-1]
    run = Measured(last["golden_sha256"], last["k"], last["questions"], last["metrics"])
    floors = read_floors(path) if os.path.exists(path) else None
    if floors:
        check_same(floors, run, path)
    recent = runs[-stable:]
    floors = floors or {"golden_sha256": run.golden_sha256, "k": run.k, "questions": run.questions,
                        "overall": {}, "each_type": {}, "types": {}}
    wanted = pairs_of(floors, run.questions) or [(group, name, 0) for group in run.values
                                                 for name in FIRST_FLOORS["overall" if group == "overall" else "each_type"]]
    if why := unstable(recent, stable, wanted, slack):
        return [], why
    changes = []
    for group, name, old in wanted:
        new = raised(exact(run.values[group][name]), slack)
        if new is not None and new > exact(old):
            place = floors if group == "overall" else floors.setdefault("types", {})
            place.setdefault(group, {})[name] = float(new)
            changes.append((group, name, exact(old), new))
    if changes:
        write_whole(path, dump_json(floors))
    return changes, None


def raised(value, slack):
    """The floor that a value gives: slack below it, rounded down to 6 digits; None without a value."""
    return None if value is None else max(Decimal(0), value - slack).quantize(Decimal("1e-6"), ROUND_DOWN)


def unstable(runs, stable, wanted, slack):
    """Why these runs are not stable, or None."""
    if len(runs) < stable:
        return f"{len(runs)} of {stable} comparable runs; floors are raised after {stable} stable ones"
    for entry in runs:
        if entry["errors"]:
            return f"the run of {entry['time']} had {entry['errors']} failed searches"
    for group, name, _ in wanted:
        values = [exact(entry["metrics"].get(group, {}).get(name)) for entry in runs]
        if None not in values and max(values) - min(values) > slack:
            return f"{group} {name} went from {min(values):.3f} to {max(values):.3f} within the last {stable} runs"
    return None


def floor_tests(path, evaluate):
    """A unittest.TestCase class (pytest collects it too) with one test per floor in a file.

    evaluate: a function without parameters that gives an Evaluation; it is called once, before the first test.
    """
    import unittest

    class FloorTests(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.verdicts = {(verdict.group, verdict.metric): verdict for verdict in gate(path, measured(evaluate()))}

    floors = read_floors(path)
    for group, name, _ in pairs_of(floors, floors["questions"]):
        def test(self, key=(group, name)):
            verdict = self.verdicts[key]
            if not verdict.holds:
                self.fail(verdict.message)

        label = "test_" + "".join(character if character.isalnum() else "_" for character in f"{group}_{name}")
        while hasattr(FloorTests, label):
            label += "_"
        setattr(FloorTests, label, test)
    return FloorTests
