"""Scores runs against qrels, with the field's measures and trec_eval's definitions.

    python -m harness score QRELS RUN… [--metrics nDCG@10,R@100] [--per-query] [--format text|json|markdown|trec]

QRELS and RUN are TREC, BEIR or ranx files, plain or gzipped; - is standard input; a RUN can be a folder of runs.
"""

import gc
import os
import sys
from collections import namedtuple
from math import fsum

from harness.halves import in_halves
from harness.measures import Scale, parse_measure
from harness.qrels import read_qrels
from harness.runs import UNJUDGED, arrange, mark, no_query_in_common, none_judged, rankings
from harness.source import printable, some, text_of, visible
from metrics import MAX_GRADE, RecordError, aligned, plural

# option -> (default or, for a choice, the choices with the default first; what it does). argparse takes longer to load
# than a run of 50,000 lines takes to score, so this table is read by parse_options.
OPTIONS = {
    "--metrics": ("nDCG@10,P@10,R@100,RR@10,Success@5,Judged@10",
                  "comma-separated: nDCG, P, R, RR, Success, AP or Judged, with @k; all but P, Success and Judged also without"),
    "--gain": (("linear", "exponential"), "of a grade, in nDCG: the grade itself, or 2^grade - 1"),
    "--useful": ("1", "the lowest grade that counts as relevant"),
    "--max-grade": ("3", "the largest grade of the scale; a larger one is an error"),
    "--ties": (("trec", "input"), "order of equal scores: document id descending, or as in the file"),
    "--missing": (("zero", "skip"), "a judged query that the run lacks: scores 0, or is left out"),
    "--no-relevant": (("zero", "skip"), "a query without relevant judgments: scores 0, or is left out"),
    "--unjudged": (("zero", "drop"), "a document without judgment: not relevant, or removed before ranks are counted"),
    "--format": (("text", "json", "markdown", "trec"), "of the output; trec is trec_eval's"),
}
FLAGS = {
    "--per-query": "show every query too",
    "--drop-self": "remove the document whose id is the query's, before ranks are counted",
    "--marco": "the runs have MS MARCO's three columns: qid docid rank",
}
EXTENSIONS = {".trec", ".run", ".txt", ".tsv", ".json", ".res"}
FIXED = "duplicates=error"  # a document twice under one query is refused; there is no other policy


def parse_options(argv):
    """(options, files): {name: value} by OPTIONS and FLAGS, and everything that is no option. Raises RecordError."""
    values = {name: default if isinstance(default, str) else default[0] for name, (default, _) in OPTIONS.items()}
    values |= dict.fromkeys(FLAGS, False)
    files, words = [], iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "-" or not word.startswith("-"):
            files.append(word)
        elif word in FLAGS:
            values[word] = True
        elif name in OPTIONS:
            value = value if equals else next(words, None)
            choices = OPTIONS[name][0]
            if value is None or (isinstance(choices, tuple) and value not in choices):
                expected = "a value" if isinstance(choices, str) else f"one of {', '.join(choices)}"
                raise RecordError(f"{name}: expected {expected}, got {value or 'nothing'}")
            values[name] = value
        else:
            raise _no_such_option(name)
    return values, files


def _no_such_option(name):
    """The error for an option that there is none of, with what is likely to be meant."""
    if name in ("--qrels", "--run", "--runs"):
        return RecordError(f"{name}: files are given by position: score QRELS RUN…")
    from harness.arguments import closest

    known = [*OPTIONS, *FLAGS]
    return RecordError(f"{name}: no such option; expected one of {', '.join(known)}{closest(name, known)}")


def help_text():
    """The usage, made from the tables of options."""
    lines = [__doc__]
    for name, (default, what) in OPTIONS.items():
        shown = f"{default} by default" if isinstance(default, str) else f"{', '.join(default)}; the first by default"
        lines.append(f"  {name:14}{what}\n{'':16}({shown})")
    return "\n".join(lines + [f"  {name:14}{what}" for name, what in FLAGS.items()]) + "\n"


# Scoring

# A run's label, {measure: [a value per query]}, the queries of those values, the judged queries that the run lacks, the number of
# judged queries without relevant documents that were left out, the number of queries without judgments, and how many of the
# positions that were looked at are unjudged.
Scored = namedtuple("Scored", "label values queries missing empty unknown unjudged positions")


class Scorer:
    """Scores run after run against the same qrels under the same policies."""

    def __init__(self, qrels, measures, options):
        self.qrels, self.measures, self.options = qrels, measures, options
        cutoffs = [measure.k for measure in measures]
        self.longest = None if None in cutoffs else max(cutoffs)
        self.scale = Scale(_number(options, "--max-grade"), _number(options, "--useful"), options["--gain"], self.longest)
        self.references = {query: self.scale.reference(judged) for query, judged in qrels.judged.items()}
        # to drop unjudged documents before ranks are counted, the whole ranking is needed
        depth = None if options["--unjudged"] == "drop" else self.longest
        self.policies = options["--ties"], depth, options["--drop-self"]

    def score(self, path):
        """The Scored of one run. Raises RecordError if no query of it is judged."""
        marks, unknown = self._marks(path)
        missing = [query for query in self.references if query not in marks]
        tops = [ranking[:self.longest] for ranking in marks.values()]
        unjudged, positions = sum(top.count(UNJUDGED) for top in tops), sum(map(len, tops))
        if self.options["--unjudged"] == "drop":
            dropped = bytes((UNJUDGED,))
            marks = {query: ranking.translate(None, dropped) for query, ranking in marks.items()}
        queries = [query for query in self.references if query in marks or self.options["--missing"] == "zero"]
        kept = [query for query in queries if self.references[query].known or self.options["--no-relevant"] == "zero"]
        results = self.scale.results([marks.get(query, b"") for query in kept], [self.references[query] for query in kept])
        values = {name: of(results, k) for name, of, k in self.measures}
        return Scored(label_of(path), values, kept, missing, len(queries) - len(kept), len(unknown), unjudged, positions)

    def _marks(self, path):
        """({judged query: marks}, the queries without judgments) of a run."""
        if not (halves := self._halves(path)):
            halves = [self._collect(rankings(path, *self.policies, self.options["--marco"]))]
        marks, unknown = halves[0]
        for more_marks, more_unknown in halves[1:]:
            marks |= more_marks
            unknown |= more_unknown
        if not marks:
            raise no_query_in_common(path, unknown, self.qrels.judged)
        return marks, unknown

    def _halves(self, path):
        """What two processes read, or None: then one has to. A query in both halves has its lines scattered."""
        if path == "-" or self.options["--marco"]:
            return None
        halves = in_halves(path, lambda queries: self._collect(arrange(queries, *self.policies)))
        return halves if halves and not (halves[0][0].keys() & halves[1][0].keys() or halves[0][1] & halves[1][1]) else None

    def _collect(self, queries):
        """({judged query: marks}, the queries without judgments) of ordered rankings."""
        marks, unknown, judged = {}, set(), self.qrels.judged
        for query, documents, _ in queries:
            if query in judged:
                marks[query] = mark(documents, judged[query])
            else:
                unknown.add(query)
        return marks, unknown


def mean(values):
    """The mean of the values, summed without rounding error; None without any."""
    return fsum(values) / len(values) if values else None


def _number(options, name):
    digits, top = options[name], MAX_GRADE if name == "--max-grade" else int(options["--max-grade"])
    if not (digits.isascii() and digits.isdigit() and len(digits) < 4 and 1 <= int(digits) <= top):
        raise RecordError(f"{name}: expected an integer from 1 to {top}, got {digits}")
    return int(digits)


def label_of(path):
    """A run's name in tables: its file's, without folder and the usual extensions."""
    if path == "-":
        return "stdin"
    name, extension = os.path.splitext(os.path.basename(path).removesuffix(".gz"))
    return visible(name if extension in EXTENSIONS else name + extension)


def run_files(paths):
    """The files to score: a folder stands for the files in it, by name, hidden ones left out."""
    files = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = [os.path.join(path, name) for name in sorted(os.listdir(path)) if not name.startswith(".")]
        inside = [name for name in inside if os.path.isfile(name)]
        if not inside:
            raise RecordError(f"{path}: a folder without files; expected runs in it")
        files += inside
    return files


# Output


def signature(options, queries):
    """The policies under which the numbers were computed, in one line."""
    policies = {"gain": options["--gain"], "useful": options["--useful"], "grades": f"0..{options['--max-grade']}",
                "ties": options["--ties"], "missing": options["--missing"], "no-relevant": options["--no-relevant"],
                "unjudged": options["--unjudged"]}
    line = " ".join(f"{name}={value}" for name, value in policies.items())
    return f"{line} {FIXED} self={'drop' if options['--drop-self'] else 'keep'} queries={queries:,}"


def notes(scored, judged, options):
    """What a reader must know about a run's numbers, one sentence a line."""
    lines = []
    if scored.missing:
        what = "left out" if options["--missing"] == "skip" else "count 0"
        queries = plural(judged, "judged query")
        lines.append(f"{len(scored.missing):,} of {queries} not in the run, {what}: {some(scored.missing)}")
    if scored.unknown:
        lines.append(f"{plural(scored.unknown, 'query')} not judged, left out")
    if scored.empty:
        lines.append(f"no judged relevant documents for {plural(scored.empty, 'query')}: left out")
    foreign = scored.positions and scored.unjudged == scored.positions
    warnings = [f"warning: {none_judged(scored.label, scored.positions)}"] if foreign else []
    return warnings + [f"{scored.label}: {line}" for line in lines]


def means_name(runs):
    """What the rows of the means have for a query id: all; in parentheses where a query has that id."""
    ids, name = {printable(query) for run in runs for query in run.queries}, "all"
    while name in ids:
        name = f"({name})"
    return name


def rows_of(runs, measures, per_query):
    """(heading, rows) of the table: a row per run, or per query and run, and a column per measure.

    The last column is the share of unjudged documents among the positions that the longest cutoff looks at.
    """
    means = means_name(runs)
    heading = ["run", *(["query"] if per_query else []), *(measure.name for measure in measures), "unjudged"]
    rows = []
    for run in runs:
        if per_query:
            rows += [[run.label, printable(query), *(run.values[measure.name][place] for measure in measures), ""]
                     for place, query in enumerate(run.queries)]
        rows.append([run.label, *([means] if per_query else []), *(mean(run.values[measure.name]) for measure in measures),
                     f"{run.unjudged / run.positions:.1%}" if run.positions else "-"])
    return heading, rows


def _cell(value):
    return value if isinstance(value, str) else "-" if value is None else f"{value:.4f}"


def as_text(scorer, runs, qrels, options):
    """An aligned table; turned when it would be too wide."""
    heading, rows = rows_of(runs, scorer.measures, options["--per-query"])
    table = [heading, *([_cell(value) for value in row] for row in rows)]
    if len(heading) > 13 and len(rows) < len(heading):
        table = list(zip(*table))
    return "\n".join([*aligned(table), "", signature(options, len(qrels.judged)), *_all_notes(runs, qrels, options)]) + "\n"


def as_markdown(scorer, runs, qrels, options):
    """A table for a model card."""
    heading, rows = rows_of(runs, scorer.measures, options["--per-query"])
    first = heading.index("query") + 1 if "query" in heading else 1
    lines = [heading, ["---"] * first + ["---:"] * (len(heading) - first), *([_cell(value) for value in row] for row in rows)]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines]
    return "\n".join([*lines, "", signature(options, len(qrels.judged)), *_all_notes(runs, qrels, options)]) + "\n"


def _all_notes(runs, qrels, options):
    return _name_notes(runs, options) + [line for run in runs for line in notes(run, len(qrels.judged), options)]


def _name_notes(runs, options):
    """The warning of a query whose id is the name under which the means stand."""
    if not options["--per-query"] or (name := means_name(runs)) == "all":
        return []
    if options["--format"] == "trec":
        return ["warning: a query has the id all, as the means have in this format; each run's last all of a measure is the mean"]
    return [f"warning: a query has the id all; the rows of the means are called {name}"]


TREC_NAMES = {"nDCG": "ndcg_cut_", "P": "P_", "R": "recall_", "RR": "recip_rank_", "Success": "success_", "AP": "map_cut_",
              "Judged": "judged_"}
TREC_UNCUT = {"nDCG": "ndcg", "R": "set_recall", "RR": "recip_rank", "AP": "map"}


def trec_name(measure):
    """The name under which trec_eval prints a measure."""
    family, _, cutoff = measure.name.partition("@")
    return TREC_NAMES[family] + cutoff if cutoff else TREC_UNCUT[family]


def as_trec(scorer, runs, qrels, options):
    """trec_eval's lines: measure, query or all, value; the notes go to stderr, where they are in nobody's way."""
    lines = []
    for run in runs:
        lines.append(f"{'runid':22}\tall\t{run.label}")
        for place, query in enumerate(run.queries if options["--per-query"] else []):
            name = visible(text_of(query, qrels.name))
            lines += [f"{trec_name(measure):22}\t{name}\t{_cell(run.values[measure.name][place])}" for measure in scorer.measures]
        lines += [f"{trec_name(measure):22}\tall\t{_cell(mean(run.values[measure.name]))}" for measure in scorer.measures]
    for note in [signature(options, len(qrels.judged)), *_all_notes(runs, qrels, options)]:
        print(note, file=sys.stderr)
    return "\n".join(lines) + "\n"


def as_json(scorer, runs, qrels, options):
    """Everything as one JSON object; values are not rounded, undefined ones are null."""
    from metrics import dump_json

    results = {}
    for run in runs:
        results[run.label] = {"means": {name: mean(values) for name, values in run.values.items()}, "queries": len(run.queries),
                              "missing": [text_of(query, qrels.name) for query in run.missing], "unknown": run.unknown,
                              "unjudged_positions": run.unjudged, "positions": run.positions,
                              "notes": notes(run, len(qrels.judged), options)}
        if options["--per-query"]:
            results[run.label]["per_query"] = {
                text_of(query, qrels.name): {name: values[place] for name, values in run.values.items()}
                for place, query in enumerate(run.queries)}
    return dump_json({"qrels": qrels.name, "signature": signature(options, len(qrels.judged)), "runs": results})


FORMATS = {"text": as_text, "json": as_json, "markdown": as_markdown, "trec": as_trec}


def main(argv):
    """Score runs and print the table."""
    if "-h" in argv or "--help" in argv:
        print(help_text())
        return 0
    options, files = parse_options(argv)
    if len(files) < 2 or files.count("-") > 1:
        raise RecordError("expected QRELS and at least one RUN, of which one can be -; python -m harness score --help tells more")
    measures = list({measure.name: measure for measure in map(parse_measure, options["--metrics"].split(","))}.values())
    gc.disable()  # nothing here makes cycles, and looking for them takes a tenth of the time
    try:
        qrels = read_qrels(files[0], _number(options, "--max-grade"))
        scorer = Scorer(qrels, measures, options)
        runs = [scorer.score(path) for path in run_files(files[1:])]
    finally:
        gc.enable()
    _check_labels(runs)
    for warning in qrels.warnings:
        print(f"note: {warning}", file=sys.stderr)
    sys.stdout.write(FORMATS[options["--format"]](scorer, runs, qrels, options))
    return 0


def _check_labels(runs):
    labels = [run.label for run in runs]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise RecordError(f"two runs named {', '.join(twice)}; a table needs a name for each, so rename one of the files")
