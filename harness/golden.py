"""The golden-set harness: measure a search on its own, after every change.

As a library:

    from harness.golden import evaluate, load_golden
    result = evaluate(load_golden("golden.jsonl"), search, k=5)   # search: question -> chunk ids, best first
    result.metrics, result.types, result.questions

As a command: `python -m harness golden run|gate|ratchet|log|split|check`; harness/docs/golden.md tells more.
"""

import os
import sys

from harness.documents import plain
from harness.evaluation import Evaluation, evaluate
from harness.golden_items import GoldenSet, load_golden, reanchored
from harness.holdout import LEDGER
from harness.runlog import LOG_FOLDER
from metrics import RecordError, quote, write_whole

__all__ = ["Evaluation", "GoldenSet", "evaluate", "load_golden", "main"]



def main(argv):
    """Run one of the subcommands."""
    arguments = parser().parse_args(argv)
    return arguments.run(arguments)


def parser():
    """The command line of `harness golden`."""
    from harness.arguments import Parser

    top = Parser(prog="python -m harness golden", description="Measure retrieval on a golden set of questions.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    add_run(commands)
    gate = add(commands, "gate", run_gate, "hold a run's record against floors: 0 they hold, 1 one does not, 2 not comparable or void")
    gate.add_argument("floors", metavar="FLOORS.json")
    gate.add_argument("record", metavar="RECORD", help="golden.json of a run, or the run's --output folder")
    gate.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML")
    ratchet = add(commands, "ratchet", run_ratchet, "raise floors to the last run's values minus a slack; never lower one")
    ratchet.add_argument("floors", metavar="FLOORS.json")
    ratchet.add_argument("--log", default=LOG_FOLDER, metavar="DIR", help="the log to read (default: %(default)s)")
    ratchet.add_argument("--slack", default="0.05", help="how far below the last run a floor stays (default: %(default)s)")
    ratchet.add_argument("--runs", type=int, default=3, help="comparable runs in a row that must be stable (default: %(default)s)")
    log = add(commands, "log", run_log, "show the history of runs")
    log.add_argument("folder", nargs="?", default=LOG_FOLDER, metavar="DIR", help="default: %(default)s")
    log.add_argument("--plot", metavar="FILE.svg", help="draw the history")
    split = add(commands, "split", run_split, "split a golden set into tuning and holdout questions, type by type")
    split.add_argument("golden", metavar="GOLDEN.jsonl")
    split.add_argument("--output", default=".", metavar="DIR", help="default: the current folder")
    split.add_argument("--share", type=float, default=0.3, help="share of the holdout (default: %(default)s)")
    check = add(commands, "check", run_check, "check a golden set against its documents and chunks")
    check.add_argument("golden", nargs="+", metavar="GOLDEN.jsonl")
    add_texts(check)
    check.add_argument("--reanchor", action="store_true", help="move spans to where their quotes are now, and rewrite the file")
    return top


def add(commands, name, run, what):
    """A subcommand."""
    found = commands.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    found.set_defaults(run=run)
    return found


def add_texts(command):
    command.add_argument("--docs", nargs="+", metavar="PATH",
                         help="documents: .jsonl with id and text, text files, folders of .md and .txt")
    command.add_argument("--chunks", metavar="FILE.jsonl",
                         help="the chunks of the index: id, text, and doc, start, end where known")


def add_run(commands):
    """`golden run` and its options."""
    run = add(commands, "run", run_run, "search every question and measure")
    run.add_argument("golden", nargs="+", metavar="GOLDEN.jsonl")
    add_texts(run)
    source = run.add_mutually_exclusive_group()
    source.add_argument("--search", metavar="MODULE:FUNCTION",
                        help="or FILE.py:FUNCTION: question -> chunk ids, best first; without it, BM25 over --chunks or --docs")
    source.add_argument("--results", metavar="FILE.jsonl",
                        help="results made elsewhere: id and retrieved (chunk ids, best first) a line")
    run.add_argument("--k", type=int, default=5, help="results that count for the metrics (default: %(default)s)")
    run.add_argument("--depth", type=int, help="results that are looked at, and that a search with a parameter k is asked for"
                     " (default: 2 k, at least 10)")
    run.add_argument("--production-k", type=int, metavar="N", help="chunks that production passes on; warns if it is not k")
    run.add_argument("--timeout", type=float, metavar="SECONDS", help="with --search: for one search (default: 30)")
    run.add_argument("--max-errors", type=int, default=0, metavar="N", help="failed searches before the run is void (default: 0)")
    run.add_argument("--part", choices=("tuning", "holdout"), help="only the questions whose split says so")
    run.add_argument("--unanswerable", action="store_true", help="search the unanswerable questions too and list what came")
    index = run.add_argument_group("the embedded search (without --search and --results)")
    index.add_argument("--split", choices=("fixed", "paragraph", "heading"),
                       help="how --docs are cut (default: fixed)")
    index.add_argument("--size", type=int, help="characters in a chunk (default: 800)")
    index.add_argument("--overlap", type=int, help="characters that neighbours share (default: 0)")
    index.add_argument("--normalize", choices=("no", "nfkc", "synonyms", "nfkc+synonyms"), help="of texts and questions (default: no)")
    index.add_argument("--synonyms", metavar="FILE.json", help='{"canonical": ["other", …]}')
    identity = run.add_argument_group("identity")
    identity.add_argument("--index-meta", metavar="FILE.json", help="model, version and dimensions that the index was built with")
    identity.add_argument("--query-meta", metavar="FILE.json", help="the same of the queries; any mismatch stops the run")
    identity.add_argument("--code-version", metavar="TEXT", help="default: a hash of the search's source and of what it imports from here")
    identity.add_argument("--cache", metavar="DIR", help="keep results, and use them again for the same configuration")
    out = run.add_argument_group("what is written")
    out.add_argument("--base", metavar="RECORD", help="compare with an earlier run: its golden.json, or its --output folder")
    out.add_argument("--format", choices=("text", "markdown", "json"), default="text", help="of the report on the screen")
    out.add_argument("--html", metavar="FILE", help="the report as one HTML page")
    out.add_argument("--output", metavar="DIR", help="records/golden.json, its summary, and the report in every form")
    out.add_argument("--log", nargs="?", const=LOG_FOLDER, metavar="DIR", help="add the run to the log (default folder: eval_logs)")
    out.add_argument("--ledger", metavar="FILE", help=f"uses of holdout questions (default: {LEDGER} in the log's folder)")
    out.add_argument("--floors", metavar="FLOORS.json", help="gate the run: exit status 1 below a floor")
    out.add_argument("--junit", metavar="FILE", help="with --floors: the verdicts as JUnit XML")


def run_run(arguments):
    """`golden run`."""
    from harness.golden_run import run
    from harness.searching import apart

    return apart(lambda out: run(arguments, out))


def run_gate(arguments):
    """`golden gate`."""
    from harness.gate import gate, gate_text, junit, read_floors, write_failed_junit

    try:
        read_floors(arguments.floors)  # first: swapped arguments are best explained from here
        results = gate(arguments.floors, measured_record(arguments.record))
    except RecordError as error:
        if arguments.junit:
            write_failed_junit(arguments.junit, arguments.floors, "; ".join(error.problems))
        raise
    print(gate_text(results), end="")
    if arguments.junit:
        write_whole(arguments.junit, junit(results))
    return 0 if all(verdict.holds for verdict in results) else 1


def measured_record(path):
    """The gate.Measured of a run's record, recomputed from its rankings. Raises RecordError for a void run's."""
    from harness.evaluation import values_at
    from harness.gate import Measured
    from metrics import summarize_panel

    panel, identity = panel_of(path)
    check_valid(path, identity)
    k = identity["k"]
    block = summarize_panel(panel._replace(cutoffs=tuple(sorted({k, panel.depth}))))
    return Measured(identity["golden_sha256"], k, {kind: part["queries"] for kind, part in block["types"].items()},
                    {"overall": values_at(block, k, panel.depth),
                     **{kind: values_at(part, k, panel.depth) for kind, part in block["types"].items()}},
                    identity.get("relevance"))


def check_valid(path, identity):
    """Raise RecordError for the record of a run in which more searches failed than its --max-errors allowed."""
    failed, allowed = (identity.get(key, 0) for key in ("failed_searches", "max_errors"))
    for key, count in (("failed_searches", failed), ("max_errors", allowed)):
        if type(count) is not int:
            raise RecordError(f"{path}: {key}: expected a number of searches, got {quote(count)}")
    if failed > allowed:
        raise RecordError(f"{path}: the record of a void run: {failed} of its searches failed, more than max-errors ({allowed}) allowed;"
                          " mend the search and run it again")


def panel_of(path):
    """(panel, identity of its search) of a run's record; path is the file or the run's output folder. Raises RecordError."""
    from harness.evaluation import MODEL, PLACE
    from metrics import Panel, load_record

    if os.path.isdir(path):
        path = os.path.join(path, "records", "golden.json")
    panel = load_record(path).blocks.get(PLACE)
    identity = panel.models.get(MODEL, {}) if isinstance(panel, Panel) else {}
    if identity.get("k") not in getattr(panel, "cutoffs", ()) or not panel.depth or not panel.types or "golden_sha256" not in identity:
        raise RecordError(f"{path}: not the record of a golden run; expected one that golden run --output wrote")
    return panel, identity


def run_ratchet(arguments):
    """`golden ratchet`."""
    from decimal import Decimal, InvalidOperation

    from harness.gate import ratchet
    from harness.runlog import comparable_runs, completed, read_log

    try:
        slack = Decimal(arguments.slack)
    except InvalidOperation:
        slack = Decimal("NaN")
    if not (slack.is_finite() and 0 <= slack <= 1) or arguments.runs < 1:
        raise RecordError(f"ratchet: expected a slack from 0 to 1 and at least 1 run, got {arguments.slack} and {arguments.runs}")
    entries = completed(read_log(arguments.log))
    if not entries:
        raise RecordError(f"{arguments.log}: no runs; add them with: golden run … --log {arguments.log}")
    changes, why_not = ratchet(arguments.floors, comparable_runs(entries), slack, arguments.runs)
    for group, name, old, new in changes:
        print(f"raised {group} {name}: {old:.6f} -> {new:.6f}")
    if not changes:
        print(f"floors unchanged: {why_not or 'none would rise'}")
    return 0


def run_log(arguments):
    """`golden log`."""
    from harness.runlog import entry_lines, plot, read_log

    if arguments.plot and not arguments.plot.endswith(".svg"):
        raise RecordError(f"--plot: expected a file ending in .svg, as the history is drawn as SVG, got {arguments.plot}")
    entries = read_log(arguments.folder)
    if not entries:
        raise RecordError(f"{arguments.folder}: no runs; add them with: golden run … --log {arguments.folder}")
    for entry in entries:
        print("\n".join(entry_lines(entry)))
    if arguments.plot:
        write_whole(arguments.plot, plot(entries))
    return 0


def run_split(arguments):
    """`golden split`."""
    from collections import Counter

    from harness.golden_items import PARTS
    from harness.holdout import read_parts, split_items, write_parts

    if not 0 < arguments.share < 1:
        raise RecordError(f"--share: expected a number between 0 and 1, got {arguments.share}")
    golden = load_golden(arguments.golden)
    folder = arguments.output
    before = read_parts(folder)
    if others := before.keys() - {item.id for item in golden.items}:
        raise RecordError(f"{folder}: tuning.jsonl and holdout.jsonl there hold questions that are not in {arguments.golden},"
                          f" such as {plain(min(others))}; take them out, or name another folder with --output")
    parts = split_items(golden.items, arguments.share, before)
    paths = write_parts(golden.items, parts, folder)
    counts = Counter((item.type, parts[item.id]) for item in golden.items)
    for kind in sorted({item.type for item in golden.items}):
        tuning, holdout = (counts[kind, part] for part in PARTS)
        print(f"{kind}: {tuning} tuning, {holdout} holdout" + ("" if tuning and holdout else "  (too few for both parts)"))
    kept = sum(item.id in before for item in golden.items)
    print(f"{paths['tuning']}, {paths['holdout']}: {len(golden.items)} questions" + (f", {kept} where they were" if before else ""))
    return 0


def run_check(arguments):
    """`golden check`."""
    from harness.documents import read_chunks, read_documents
    from harness.relevance import ChunkIndex

    documents = read_documents(arguments.docs) if arguments.docs else None
    if arguments.reanchor:
        reanchor(arguments.golden, documents)
    chunks = read_chunks(arguments.chunks, documents) if arguments.chunks else None
    golden = load_golden(arguments.golden, documents, chunks)
    for warning in golden.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    answerable = [item for item in golden.items if item.answerable]
    kinds = sorted({item.type for item in golden.items})
    print(f"{golden.name}: {len(golden.items)} questions, {len(answerable)} answerable; "
          + ", ".join(f"{sum(item.type == kind for item in golden.items)} {kind}" for kind in kinds))
    spans = sum(len(item.spans) for item in golden.items)
    checked = (f"every one of {spans} spans is at its place" if documents is not None
               else f"{spans} spans, not checked without --docs")
    print(f"{checked}; content SHA-256 {golden.sha256}")
    if chunks is not None:
        index = ChunkIndex(chunks)
        cut = [item.id for item in answerable if not index.relevance(item).chunks]
        print(f"{len(chunks)} chunks; {len(cut)} questions have no chunk that holds their span"
              + (": " + ", ".join(cut[:10]) if cut else ""))
    return 0


def reanchor(paths, documents):
    """Rewrite golden files with every span moved to where its quote is now, if it is there exactly once."""
    import json

    from harness.golden_items import read_items

    if documents is None:
        raise RecordError("--reanchor: needs --docs, the documents that the spans are in")
    for path in paths:
        problems = []
        items = read_items([path], problems, [])
        if problems:
            raise RecordError(problems)
        values = [reanchored(item, documents) for item in items]
        moved = sum(count for _, count in values)
        if moved:
            write_whole(path, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value, _ in values))
        print(f"{path}: {moved} spans moved")
