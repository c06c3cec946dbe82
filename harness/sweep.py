"""Tries ways to cut and normalize documents on a golden set, and says which does best and whether the difference is real.

    python -m harness sweep GOLDEN.jsonl --docs DOCS.jsonl --size 400,800 --split fixed,paragraph --output sweep

One axis at a time (split, normalize, size, overlap), each at the best of the ones before; or --grid for every combination.
"""

import os
import sys
from itertools import product
from typing import NamedTuple

from harness.chunker import SPLITS, chunk_documents
from harness.documents import plain, read_documents, shown
from harness.evaluation import METRICS, PLACE, check_lengths, depth_for, evaluate_made, per_question
from harness.files import canonical_hash
from harness.golden_items import load_golden
from harness.golden_run import check_synonyms, embedded
from harness.holdout import note_holdout
from harness.identity import Cache, code_version
from harness.normalize import NORMALIZATIONS, normalizer, read_synonyms
from harness.relevance import ChunkIndex
from harness.searching import apart, foreign, load_function, with_depth
from metrics import RecordError, compare, dump_json, parse_record, write_whole

AXES = ("split", "normalize", "size", "overlap")


class Setting(NamedTuple):
    """One configuration of the sweep."""

    split: str
    normalize: str
    size: int
    overlap: int

    def __str__(self):
        return f"split {self.split}, normalize {self.normalize}, size {self.size}, overlap {self.overlap}"


class Sweep(NamedTuple):
    """All that the runs of a sweep share."""

    golden: object
    documents: dict
    build: str | None
    replace: object
    k: int
    timeout: float
    metric: str
    common: dict  # the part of the configuration that is the same in every run
    cache: Cache


def main(argv):
    """The command; gives its exit status."""
    arguments = parser().parse_args(argv)
    return apart(lambda out: run(arguments, out))


def run(arguments, out):
    """Everything that the command does, with its results printed to out; gives its exit status."""
    axes = axes_of(arguments)
    sweep = prepare(arguments)
    plan = planned(axes, arguments.grid)
    print(plan_text(axes, plan, arguments.grid, sweep), flush=True, file=out)
    if note_holdout(sweep.golden, arguments.ledger, search=sweep.common["build"], k=sweep.k, sweep=len(plan)):
        print("warning: this set has holdout questions, and a sweep tunes on them; sweep tuning.jsonl instead", file=sys.stderr)
    results = Results(sweep, arguments.output, len(plan))
    winners = run_grid(axes, plan, results) if arguments.grid else run_axes(axes, results)
    report = results.write(winners)
    print(sweep_text(report), end="", file=out)
    return status(report, arguments.max_errors)


def status(report, max_errors):
    """2 if too many searches failed in any run, else 0."""
    failed = [row for row in report["runs"] if row["errors"] > max_errors]
    for row in failed:
        print(f"error: {row['errors']} searches failed with {setting_of(row)}, more than --max-errors {max_errors}:"
              f" {row['first_error']}", file=sys.stderr)
    return 2 if failed else 0


def parser():
    """The command line of `harness sweep`."""
    from harness.arguments import Parser

    command = Parser(prog="python -m harness sweep", description="Try chunk sizes, splits, overlaps and normalizations"
                             " on a golden set, one axis at a time.")
    command.add_argument("golden", nargs="+", metavar="GOLDEN.jsonl")
    command.add_argument("--docs", nargs="+", required=True, metavar="PATH",
                         help="documents: .jsonl with id and text, text files, folders of .md and .txt")
    command.add_argument("--build", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION: chunks -> search function; without it, BM25")
    command.add_argument("--split", default="fixed", metavar="LIST", help=f"of {', '.join(SPLITS)} (default: fixed)")
    command.add_argument("--normalize", default="no", metavar="LIST", help=f"of {', '.join(NORMALIZATIONS)} (default: no)")
    command.add_argument("--size", default="800", metavar="LIST", help="characters in a chunk (default: 800)")
    command.add_argument("--overlap", default="0", metavar="LIST", help="characters that neighbours share (default: 0)")
    command.add_argument("--synonyms", metavar="FILE.json", help='{"canonical": ["other", …]}')
    command.add_argument("--grid", action="store_true", help="every combination instead of one axis at a time")
    command.add_argument("--k", type=int, default=5, help="results that count (default: 5)")
    command.add_argument("--metric", default="ndcg", choices=METRICS, help="what decides (default: ndcg)")
    command.add_argument("--timeout", type=float, metavar="SECONDS", help="with --build: for one search (default: 30)")
    command.add_argument("--max-errors", type=int, default=0, metavar="N", help="failed searches allowed in a run (default: 0)")
    command.add_argument("--code-version", metavar="TEXT",
                         help="default: a hash of the build function's source and of what it imports from here")
    command.add_argument("--ledger", metavar="FILE", help="uses of holdout questions (default: eval_logs/holdout-ledger.jsonl)")
    command.add_argument("--output", default="sweep", metavar="DIR", help="sweep.json, sweep.md and finished runs (default: sweep)")
    return command


def axes_of(arguments):
    """{axis: values in their order}. Raises RecordError that lists every wrong value."""
    axes, problems = {}, []
    for axis, known in zip(AXES, (SPLITS, NORMALIZATIONS, None, None)):
        values = [value.strip() for value in getattr(arguments, axis).split(",")]
        for value in values:
            if known and value not in known:
                problems.append(f"--{axis}: expected a list of {', '.join(known)}, got {plain(value)}")
            elif not known and not (value.isascii() and value.isdigit() and len(value) < 10 and (axis == "overlap" or int(value))):
                problems.append(f"--{axis}: expected a list of numbers of characters, got {plain(value)}")
        if len(set(values)) < len(values):
            problems.append(f"--{axis}: a value is there twice: {','.join(values)}")
        axes[axis] = values if known else [int(value) for value in values if value.isdigit()]
    if not problems and not any(overlap < size for size in axes["size"] for overlap in axes["overlap"]):
        problems.append("--overlap: expected an overlap below a size, but none is")
    if problems:
        raise RecordError(problems)
    return axes


def prepare(arguments):
    """The Sweep: everything read and checked. Raises RecordError."""
    check_lengths(arguments.k, None)
    check_synonyms(arguments.synonyms, arguments.normalize.split(","))
    if arguments.timeout is not None and not arguments.build:
        raise RecordError("--timeout: without effect unless --build names an index; the embedded search has no time limit")
    documents = read_documents(arguments.docs)
    golden = load_golden(arguments.golden, documents)
    bare = [f"{item.place}: relevant_spans: missing; chunk ids do not survive another way to cut the documents"
            for item in golden.items if item.answerable and not item.spans]
    if bare:
        raise RecordError(bare)
    replace = read_synonyms(arguments.synonyms) if arguments.synonyms else None
    for name in arguments.normalize.split(","):
        normalizer(name.strip(), replace)
    common = {"golden_sha256": golden.sha256,
              "documents_sha256": canonical_hash({name: document.text for name, document in documents.items()}),
              "build": arguments.build or "BM25", "synonyms_sha256": canonical_hash(replace.canonical) if replace else None,
              "k": arguments.k, "code_version": arguments.code_version or code_version(*filter(None, [arguments.build]))}
    return Sweep(golden, documents, arguments.build, replace, arguments.k, arguments.timeout or 30, arguments.metric, common,
                 Cache(os.path.join(arguments.output, "runs")))


def planned(axes, grid):
    """The settings that will be run: all of them for a grid, else the first of each axis with one axis varied at a time.

    One axis at a time, the later settings stand for "at the best of the axes before".
    """
    if grid:
        return [setting for values in product(*axes.values()) if possible(setting := Setting(*values))]
    first = start_of(axes)
    return [first, *(first._replace(**{axis: value}) for axis in AXES for value in axes[axis] if value != getattr(first, axis))]


def start_of(axes):
    """The first value of each axis; where that overlap is not below that size, the first pair of which it is."""
    first = Setting(*(values[0] for values in axes.values()))
    if possible(first):
        return first
    return next(found for size in axes["size"] for overlap in axes["overlap"]
                if possible(found := first._replace(size=size, overlap=overlap)))


def possible(setting):
    return setting.overlap < setting.size


def plan_text(axes, plan, grid, sweep):
    """What will be run, before it is."""
    questions = sum(item.answerable for item in sweep.golden.items)
    lines = [f"{len(plan)} runs of {questions} questions over {len(sweep.documents)} documents, k = {sweep.k}, "
             f"{sweep.common['build']}, decided by {sweep.metric}: {'every combination' if grid else 'one axis at a time'}"]
    if grid:
        lines += [f"  {number}. {setting}" for number, setting in enumerate(plan, 1)]
    else:
        lines.append(f"  1. {plan[0]}")
        number = 2
        for axis in AXES:
            others = [value for value in axes[axis] if value != getattr(plan[0], axis)]
            if others:
                upto = number + len(others) - 1
                lines.append(f"  {number if upto == number else f'{number} to {upto}'}. {axis} {', '.join(map(str, others))},"
                             " at the best of what was found before")
                number = upto + 1
    return "\n".join(lines)


class Results:
    """The runs of a sweep: measured once, kept in files, so that an interrupted sweep goes on where it was."""

    def __init__(self, sweep, folder, total):
        self.sweep, self.folder, self.total = sweep, folder, total
        self.rows, self.panels, self.skipped = {}, {}, []

    def row(self, setting):
        """The row of a setting, from this sweep, from an earlier one, or measured now."""
        if setting not in self.rows:
            configuration = {**self.sweep.common, **setting._asdict()}
            kept = self.sweep.cache.get(configuration)
            value = kept or measure_setting(self.sweep, setting)
            if not kept and not value["row"]["errors"]:
                self.sweep.cache.put(configuration, value)
            self.panels[setting] = parse_record(value["record"], "golden.json").blocks[PLACE]
            self.rows[setting] = value["row"]
            for warning in value["row"]["warnings"]:
                print(f"warning: {setting}: {warning}", file=sys.stderr)
            self.write(None)
            print(f"run {len(self.rows)} of {self.total}{' (kept)' if kept else ''}: {setting}: {self.sweep.metric} "
                  f"{value['row'][self.sweep.metric]:.4f}", file=sys.stderr)
        return self.rows[setting]

    def values(self, setting):
        """The deciding metric, one value per question, as (numerators, denominators)."""
        column = per_question(self.panels[setting], self.sweep.k, depth_for(self.sweep.k))[self.sweep.metric]
        return [value or 0.0 for value in column], [1] * len(column)

    def difference(self, setting, other):
        """How much better a setting is than another: difference, low, high, over the same questions."""
        result = compare(self.values(other), self.values(setting))
        return {key: result[key] for key in ("difference", "low", "high", "p")}

    def write(self, winners):
        """Write the results so far as JSON and as a table; gives them. winners is None while the sweep is not done."""
        report = {"complete": winners is not None, "metric": self.sweep.metric, **self.sweep.common,
                  "questions": sum(item.answerable for item in self.sweep.golden.items),
                  "planned": self.total, "runs": [{**setting._asdict(), **row} for setting, row in self.rows.items()],
                  "skipped": self.skipped, "winners": winners or []}
        write_whole(os.path.join(self.folder, "sweep.json"), dump_json(report))
        if winners is not None:
            write_whole(os.path.join(self.folder, "sweep.md"), sweep_markdown(report))
        return report


def measure_setting(sweep, setting):
    """{"row": …, "record": …} of one setting."""
    change = normalizer(setting.normalize, sweep.replace)
    chunks = chunk_documents(sweep.documents, setting.split, setting.size, setting.overlap)
    if not chunks:
        raise RecordError("the documents have no text to cut into chunks")
    evaluation = evaluate_made(sweep.golden, maker(sweep, chunks, change), sweep.k, ChunkIndex(chunks, f"those with {setting}"),
                               timeout=sweep.timeout if sweep.build else None, identity={**sweep.common, **setting._asdict()})
    spans = sum(len(row["cut_spans"]) for row in evaluation.questions)
    row = {"chunks": len(chunks), "characters": handed_on(evaluation, chunks), **evaluation.metrics,
           "warnings": evaluation.warnings[len(sweep.golden.warnings):], "unattainable_spans": spans,
           "unattainable_questions": sum(not row["attainable"] for row in evaluation.questions),
           "without_unattainable": evaluation.attainable, "errors": len(evaluation.errors),
           "first_error": f"{evaluation.errors[0]['id']}: {evaluation.errors[0]['error']}" if evaluation.errors else None}
    return {"row": row, "record": evaluation.record}


def handed_on(evaluation, chunks):
    """The characters of text in the first k chunks, which a model would read: the mean over the questions."""
    lengths = [sum(len(chunks[name].text) for name in row["retrieved"][:evaluation.k] if name in chunks)
               for row in evaluation.questions]
    return sum(lengths) / len(lengths)


def maker(sweep, chunks, change):
    """A function that builds the index and gives the search of (not yet normalized) questions."""
    if not sweep.build:
        return lambda: embedded(chunks, change)

    def make():
        build = load_function(sweep.build)
        texts = [{**chunk._asdict(), "text": change(chunk.text)} for chunk in chunks.values()]
        search = foreign(lambda: build(texts), f"{sweep.build}: cannot build an index")
        if not callable(search):
            raise RecordError(f"{sweep.build}: expected a search function back, got {shown(search)}")
        ask = with_depth(search, depth_for(sweep.k))
        return lambda question: ask(change(question))

    return make


def run_axes(axes, results):
    """One axis at a time; gives a winner per axis."""
    best, winners = start_of(axes), []
    results.row(best)
    for axis in AXES:
        tried = [best._replace(**{axis: value}) for value in axes[axis]]
        results.skipped += [str(setting) for setting in tried if not possible(setting)]
        tried = [setting for setting in tried if possible(setting)]
        for setting in tried:
            results.row(setting)
        best = max(tried, key=lambda setting: results.row(setting)[results.sweep.metric])  # the first of equals
        if len(tried) > 1:
            winners.append(winner_of(axis, best, tried, results))
    return winners


def run_grid(axes, plan, results):
    """Every combination; gives the winner per axis among the settings that differ from the best one in that axis only."""
    for setting in plan:
        results.row(setting)
    best = max(plan, key=lambda setting: results.row(setting)[results.sweep.metric])
    winners = []
    for axis in AXES:
        tried = [setting for value in axes[axis] if possible(setting := best._replace(**{axis: value}))]
        if len(tried) > 1:
            winners.append(winner_of(axis, best, tried, results))
    return winners


def winner_of(axis, best, tried, results):
    """What one axis showed: its best value, the second best, and their difference with its paired 95% interval."""
    second = max((setting for setting in tried if setting != best), key=lambda setting: results.row(setting)[results.sweep.metric])
    found = results.difference(best, second)
    supported = found["low"] is not None and found["low"] > 0
    return {"axis": axis, "winner": getattr(best, axis), "second": getattr(second, axis),
            "value": results.row(best)[results.sweep.metric],
            **found, "supported": supported, "unattainable_spans": results.row(best)["unattainable_spans"],
            "at": {other: getattr(best, other) for other in AXES if other != axis}}


def setting_of(row):
    return Setting(*(row[axis] for axis in AXES))


def tables(report):
    """The two tables: every run, best first, and a winner per axis; lists of rows, the first of them the head."""
    metric = report["metric"]
    runs = [[*AXES, "chunks", f"characters in {report['k']}", "hit", "recall", "mrr", "ndcg", "spans unattainable", f"{metric} without them"]]
    for row in sorted(report["runs"], key=lambda row: -row[metric]):
        without = row["without_unattainable"] or row
        runs.append([*(row[axis] for axis in AXES), row["chunks"], f"{row['characters']:.0f}",
                     *(f"{row[name]:.4f}" for name in ("hit", "recall", "mrr", "ndcg")),
                     row["unattainable_spans"], f"{without[metric]:.4f}"])
    winners = [["axis", "winner", "second", f"{metric} difference", "interval", "verdict", "spans unattainable"]]
    for row in report["winners"]:
        interval = "n/a" if row["low"] is None else f"[{row['low']:+.4f}, {row['high']:+.4f}]"
        verdict = "better" if row["supported"] else "not told apart"
        winners.append([row["axis"], row["winner"], row["second"], f"{row['difference']:+.4f}", interval, verdict,
                        row["unattainable_spans"]])
    return runs, winners


def sweep_text(report):
    """The results for a terminal."""
    from harness.golden_report import columns

    runs, winners = tables(report)
    lines = ["", *columns(runs)]
    if len(winners) > 1:
        lines += ["", "Winner of each axis against the second best, paired 95% interval:", "", *columns(winners)]
    lines += [f"skipped, as the overlap is not below the size: {setting}" for setting in report["skipped"]]
    return "\n".join(lines) + "\n"


def sweep_markdown(report):
    """The results as Markdown."""
    from harness.golden_report import markdown_table

    runs, winners = tables(report)
    what = f"{report['questions']} questions, k = {report['k']}, {report['build']}, decided by {report['metric']}."
    lines = ["# Sweep", "", what, "", *markdown_table(runs)]
    if len(winners) > 1:
        lines += ["", "## Winner of each axis against the second best, paired 95% interval", "", *markdown_table(winners)]
    lines += [f"\nSkipped, as the overlap is not below the size: {setting}" for setting in report["skipped"]]
    return "\n".join(lines) + "\n"
