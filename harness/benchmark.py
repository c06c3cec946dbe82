"""Says what average follows from benchmark results, by which rule, over which tasks.

python -m harness benchmark RESULTS… [--suite NAME|FILE] [--format text|markdown|json|model-index]
python -m harness benchmark audit [TABLE.json]      recompute published averages, see harness/benchmark_audit.py
"""

from typing import NamedTuple

from harness.averages import RULES
from harness.benchmark_suite import (
    SHIPPED,
    Suite,
    average_over,
    common,
    group_means,
    load_suite,
    score,
    suite_of_results,
)
from harness.mteb import by_cause, read_models
from metrics import RecordError


class Column(NamedTuple):
    """One suite of the comparison."""

    suite: Suite
    scores: dict  # model name -> Score
    averages: dict  # model name -> Fraction by the suite's rule, or None where something lacks
    shared: dict  # task -> [(split, subset)] that every model with any of the tasks has; empty where nothing lacks
    shared_averages: dict  # model name -> Fraction over these alone


def best(averages):
    """The names with the highest of several averages, all of them on a tie; none where there is nothing to compare."""
    values = {name: value for name, value in averages.items() if value is not None}
    return [name for name, value in values.items() if value == max(values.values())] if len(values) > 1 else []


def compare(suite, models, problems):
    """The Column of a suite: every model's Score, average, and the comparison over what all of them have."""
    scores = {model.name: score(suite, model, problems) for model in models}
    averages = {name: each.averages[suite.rule] if each.averages else None for name, each in scores.items()}
    taking_part = {name: each for name, each in scores.items() if each.tasks}
    lacking = any(each.missing for each in taking_part.values())
    shared = common(suite, list(taking_part.values())) if lacking and len(taking_part) > 1 else {}
    over = {name: average_over(suite, each, shared, suite.rule) for name, each in taking_part.items()} if shared else {}
    return Column(suite, scores, averages, shared, over)


def compare_all(suites, models):
    """The Columns of several suites. Raises RecordError that names every result that a suite refuses."""
    problems = []
    columns = [compare(suite, models, problems) for suite in suites]
    if problems:
        raise RecordError(by_cause(dict.fromkeys(problems)))
    return columns


def chosen_suites(names, models):
    """The suites by name or file; without any, the shipped ones that the results touch, or else one of all their tasks."""
    if names:
        return [load_suite(name) for name in names]
    measured = {task for model in models for task in model.results}
    touched = [suite for suite in map(load_suite, SHIPPED)
               if any(measured & {task.name, *task.aliases} for task in suite.tasks)]
    return touched or [suite_of_results(models)]


def as_report(columns, models):
    """The comparison as plain values for JSON: fractions in [0, 1], an average that can't be had is null."""
    return {"unit": "fraction", "models": [model.name for model in models],
            "notes": [note for model in models for note in model.notes],
            "suites": {column.suite.name: column_report(column) for column in columns}}


def column_report(column):
    """One suite's part of the report."""
    suite = column.suite
    return {"title": suite.title, "source": suite.source, "measure": suite.measure, "rule": suite.rule,
            "tasks": len(suite.tasks), "scores": sum(len(task.places) for task in suite.tasks), "suite_sha256": suite.sha256,
            "notes": list(suite.notes),
            "models": {name: score_report(suite, each) for name, each in column.scores.items()},
            "best": best(column.averages),
            "common": {"tasks": {task: len(places) for task, places in column.shared.items()},
                       "averages": {name: float(value) for name, value in column.shared_averages.items()},
                       "best": best(column.shared_averages)} if column.shared else None}


def score_report(suite, each):
    """One model's part of a suite's report."""
    averages = each.averages
    return {"average": float(averages[suite.rule]) if averages else None,
            "by_rule": {rule: float(averages[rule]) for rule in RULES} if averages else None,
            "missing": each.missing, "notes": each.notes,
            "groups": {group: float(value) for group, value in group_means(suite, each.tasks).items()},
            "tasks": {task: {"mean": float(sum(scores.values()) / len(scores)), "scores": len(scores)}
                      for task, scores in each.tasks.items()}}


def main(argv):
    """Print the averages that follow from benchmark results, or audit published ones."""
    if argv[:1] == ["audit"]:
        from harness.benchmark_audit import main as audit

        return audit(argv[1:])
    options = read_options(argv)
    models = read_models(options.results, options.merge_revisions)
    if options.model:
        models = [model for model in models if model.name in options.model] if \
            {model.name for model in models} >= set(options.model) else unknown_model(options.model, models)
    columns = compare_all(chosen_suites(options.suite, models), models)
    from harness import benchmark_output as output

    if options.figure:
        from metrics import write_whole

        write_whole(options.figure, output.figure(columns, models))
    print(output.FORMATS[options.format](columns, models, options.tasks), end="")
    return 0


def read_options(argv):
    """The parsed command line."""
    from harness.arguments import Parser

    parser = Parser(prog="python -m harness benchmark", description="What average follows from benchmark "
                                     "results. `benchmark audit` recomputes published averages.")
    parser.add_argument("results", metavar="RESULTS", nargs="+", help="result files, or folders of them: one folder is one model")
    parser.add_argument("--suite", action="append", default=[], metavar="NAME|FILE",
                        help=f"repeat for several; shipped: {', '.join(SHIPPED)} (default: those that the results touch)")
    parser.add_argument("--model", action="append", default=[], metavar="NAME", help="only this model; repeat for several")
    parser.add_argument("--format", choices=["text", "markdown", "json", "model-index"], default="text")
    parser.add_argument("--tasks", action="store_true", help="list the tasks' scores too (text and markdown)")
    parser.add_argument("--figure", metavar="FILE.svg", help="also draw the table as a figure")
    parser.add_argument("--merge-revisions", action="store_true", help="join the revisions of a model into one, and say so")
    return parser.parse_args(argv)


def unknown_model(names, models):
    """Raise RecordError for a --model that isn't there."""
    known = {model.name for model in models}
    raise RecordError([f"--model {name}: not among the results: {', '.join(sorted(known))}" for name in names if name not in known])
