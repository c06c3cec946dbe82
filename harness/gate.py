"""Floors under the metrics of a golden set: gate a run on them, raise them, and test them.

A floors file:

    {"golden_sha256": "…", "k": 5, "questions": {"factual": 30, "numeric": 22}, "relevance": "spans",
     "overall": {"hit": 0.85, "ndcg": 0.7}, "each_type": {"hit": 0.6}, "types": {"numeric": {"hit": 0.8}}}

overall holds for all questions, each_type for every type, types for one type in place of each_type. The first line says
what the floors were set on; a run on anything else is refused. relevance may be left out. In a test file, for pytest or unittest:

    from harness.gate import floor_tests
    TestRetrieval = floor_tests("floors.json", lambda: evaluate("golden.jsonl", search, k=5, chunks="chunks.jsonl"))
"""

import os
from decimal import ROUND_DOWN, Decimal
from typing import NamedTuple

from harness.documents import plain
from harness.evaluation import METRICS
from harness.golden_report import floor_lines
from metrics import RecordError, dump_json, quote, read_json, write_whole

SLACK = Decimal("0.05")
DIGITS = Decimal("1e-12")  # absorbs the last bit of floating point, and is far below anything that is ever printed
SET_ON = {"golden_sha256": ("golden set", "the SHA-256 of its content, which golden check GOLDEN.jsonl prints"),
          "k": ("k", "as in golden run --k"),
          "questions": ("mix of types", 'the number of answerable questions of each type, such as {"factual": 30}'),
          "relevance": ("basis of relevance", "")}
KEYS = {*SET_ON, "overall", "each_type", "types"}
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
    relevance: str | None = None


def measured(evaluation):
    """The Measured of an Evaluation."""
    types = {kind: {name: block[name] for name in METRICS} for kind, block in evaluation.types.items()}
    return Measured(evaluation.golden.sha256, evaluation.k, {kind: block["n"] for kind, block in evaluation.types.items()},
                    {"overall": evaluation.metrics, **types}, evaluation.relevance)


def read_floors(path):
    """The floors in a file. Raises RecordError that lists every problem."""
    value = {"queries": None} if os.path.isdir(path) else read_json(path)[0]
    if not isinstance(value, dict):
        raise RecordError(f"{path}: top level: expected an object with {', '.join(sorted(KEYS))}, got {quote(value)}")
    if any(isinstance(part, dict) and "queries" in part for part in (value, *value.values())):  # or the folder of one
        raise RecordError(f"{path}: the record of a run, not floors; the floors come first: golden gate FLOORS.json RECORD")
    problems = [f"{path}: {key}: unknown key; expected one of {', '.join(sorted(KEYS))}" for key in value if key not in KEYS]
    problems += [f"{path}: {key}: missing; expected what the floors were set on: {what}" for key, (_, what) in SET_ON.items()
                 if key not in value and key != "relevance"]
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
    """Refuse to compare floors with a run on other questions, another k, mix of types or basis of relevance. Raises RecordError."""
    held = set_on(run)
    problems = []
    for key, (what, _) in SET_ON.items():
        if floors.get(key, held[key] if key == "relevance" else None) != held[key]:
            problems.append(f"{path}: {key}: the floors were set on another {what}: {plain(floors[key])}, but this run has"
                            f" {plain(held[key])}; set new floors on this one")
    unknown = sorted(floors.get("types", {}).keys() - run.questions.keys())
    problems += [f"{path}: types: no question of type {plain(kind)}" for kind in unknown]
    if problems:
        raise RecordError(problems)


def set_on(run):
    """What floors are set on, of a run."""
    return {"golden_sha256": run.golden_sha256, "k": run.k, "questions": run.questions, "relevance": run.relevance}


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
    return "\n".join(floor_lines(as_json(results))) + "\n"


def as_json(results):
    """The verdicts as JSON values, failures first."""
    return [{"group": verdict.group, "metric": verdict.metric, "floor": float(verdict.floor),
             "value": None if verdict.value is None else float(verdict.value), "holds": verdict.holds, "message": verdict.message}
            for verdict in sorted(results, key=lambda verdict: verdict.holds)]


def junit(results, name="golden"):
    """The verdicts as JUnit XML: one test per floor."""
    cases = [(verdict.group, verdict.metric, None if verdict.holds else ("failure", verdict.message)) for verdict in results]
    return junit_xml(cases, name)


def write_failed_junit(path, floors_path, why):
    """Write JUnit XML of a run that came to no verdicts: an error on every floor, or one where the floors cannot be read."""
    try:
        floors = read_floors(floors_path)
        tests = [(group, metric) for group, metric, _ in pairs_of(floors, floors["questions"])]
    except RecordError:
        tests = []
    write_whole(path, junit_xml([(*test, ("error", why)) for test in tests or [("overall", "run")]]))


def junit_xml(tests, name="golden"):
    """(group, metric, None or (kind, message)) of each test as JUnit XML; the kind is "failure" or "error"."""
    from xml.sax.saxutils import escape, quoteattr

    from svg_figures import clean

    cases = []
    for group, metric, outcome in tests:
        start = f"  <testcase classname={quoteattr(clean(f'{name}.{group}'))} name={quoteattr(metric)}"
        kind, message = outcome or (None, "")
        message = clean(message)
        cases.append(f"{start}>\n    <{kind} message={quoteattr(message)}>{escape(message)}</{kind}>\n  </testcase>" if outcome
                     else f"{start}/>")
    failures, errors = (sum(outcome is not None and outcome[0] == kind for *_, outcome in tests) for kind in ("failure", "error"))
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>',
                      f'<testsuite name={quoteattr(name)} tests="{len(tests)}" failures="{failures}" errors="{errors}">',
                      *cases, "</testsuite>", ""])


def ratchet(path, runs, slack=SLACK, stable=3):
    """Raise the floors in a file to the last run's values minus the slack, and never lower one; gives (changes, why not).

    The slack of a type is at least one question, 1 / n: one lost question of eight moves a hit by 0.125, which is no trend.
    runs: entries of the log, oldest first, all comparable with the last. It takes `stable` of them in a row that lost no
    more than the slack and had no failed search. A file that does not exist is made, with floors on hit, mrr and ndcg
    overall and on hit in each type.
    """
    last = runs[-1]
    run = Measured(last["golden_sha256"], last["k"], last["questions"], last["metrics"], last.get("relevance"))
    floors = read_floors(path) if os.path.exists(path) else None
    if floors:
        check_same(floors, run, path)
    recent = runs[-stable:]
    floors = floors or {**{key: value for key, value in set_on(run).items() if value is not None},
                        "overall": {}, "each_type": {}, "types": {}}
    wanted = pairs_of(floors, run.questions) or [(group, name, 0) for group in run.values
                                                 for name in FIRST_FLOORS["overall" if group == "overall" else "each_type"]]
    if why := unstable(recent, stable, wanted, slack):
        return [], why
    changes = []
    for group, name, old in wanted:
        new = raised(exact(run.values[group][name]), allowance(group, run.questions, slack))
        if new is not None and new > exact(old):
            place = floors if group == "overall" else floors.setdefault("types", {})
            place.setdefault(group, {})[name] = float(new)
            changes.append((group, name, exact(old), new))
    if changes:
        write_whole(path, dump_json(floors))
    return changes, None


def allowance(group, questions, slack):
    """The slack of a group: as given overall, and at least one question in a type."""
    return slack if group == "overall" else max(slack, 1 / Decimal(questions[group]))


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
        allowed = allowance(group, runs[-1]["questions"], slack)
        if None not in values and (max(values) - min(values)).quantize(Decimal("1e-9"), ROUND_DOWN) > allowed:
            return f"{group} {name} went from {min(values):.3f} to {max(values):.3f} within the last {stable} runs"
    return None


def floor_tests(path, evaluate, max_errors=0):
    """A unittest.TestCase class (pytest collects it too) with one test per floor in a file.

    evaluate: a function without parameters that gives an Evaluation; it is called once, before the first test. Where it
    raises a RecordError, or more than max_errors searches failed, every test fails with the words of that.
    """
    import unittest

    class FloorTests(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.verdicts, cls.broken = outcome_of(path, evaluate, max_errors)

    floors = read_floors(path)
    for group, name, _ in pairs_of(floors, floors["questions"]):
        def test(self, key=(group, name)):
            if self.broken or not self.verdicts[key].holds:
                self.fail(self.broken or self.verdicts[key].message)

        label = "test_" + "".join(character if character.isalnum() else "_" for character in f"{group}_{name}")
        while hasattr(FloorTests, label):
            label += "_"
        setattr(FloorTests, label, test)
    return FloorTests


def outcome_of(path, evaluate, max_errors):
    """({(group, metric): Verdict}, None) of a run, or ({}, why there are none)."""
    try:
        evaluation = evaluate()
        if why := evaluation.failure(max_errors):
            return {}, why
        return {(verdict.group, verdict.metric): verdict for verdict in gate(path, measured(evaluation))}, None
    except RecordError as error:
        return {}, str(error)
