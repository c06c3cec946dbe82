"""Turns runs and qrels into a record: a panel of ranked grades, or a public table of per-query scores.

    python -m harness record --qrels Q --run NAME=FILE … --output records/X.json [--section NAME]
    python -m harness record --table --measure nDCG@10 --dataset NAME --qrels Q --run NAME=FILE … --output …

Every --qrels starts a collection; the --run, --type, --types and --exclude after it belong to it. The queries are
written one a line, so that a diff shows which of them changed.
"""

import json
import os
import sys

from harness.files import read_text
from harness.measures import Scale, parse_measure
from harness.qrels import read_pairs, read_qrels
from harness.runs import ABSTAINED, UNJUDGED, mark, no_query_in_common, rankings
from harness.source import Source, count_of, show, some, text_of
from metrics import MAX_GRADE, RecordError, parse_json, parse_record, read_json, write_whole

REASONS = {UNJUDGED: "unjudged", ABSTAINED: "abstained"}


class Collection:
    """One --qrels and the options after it."""

    def __init__(self, qrels, dataset=None):
        self.qrels, self.dataset = qrels, dataset
        self.runs, self.type, self.types, self.exclude = {}, None, None, None


# Reading a collection


class Ranked:
    """A collection's judgments and, for each model, the marks and scores of every judged query."""

    def __init__(self, collection, options):
        self.qrels = read_qrels(collection.qrels, options.max_grade)
        self.abstained = read_pairs(collection.exclude) if collection.exclude else {}
        for query, documents in self.abstained.items():
            for document in documents & self.qrels.judged.get(query, {}).keys():
                del self.qrels.judged[query][document]  # an excluded pair is in no count
        self.notes = list(self.qrels.warnings)
        self.models = {model: self._read(path, options) for model, path in collection.runs.items()}

    def _read(self, path, options):
        """{query: (marks, scores)} of the judged queries of one run, cut at the depth."""
        ranked, unknown = {}, set()
        for query, documents, scores in rankings(path, options.ties, options.depth, options.drop_self, options.marco):
            if query not in self.qrels.judged:
                unknown.add(query)
                continue
            judged = self.qrels.judged[query]
            if query in self.abstained:
                judged = {**judged, **dict.fromkeys(self.abstained[query], ABSTAINED)}
            ranked[query] = mark(documents, judged), scores
        if not ranked:
            raise no_query_in_common(path, unknown, self.qrels.judged)
        self._note_unmatched(path, ranked, unknown)
        return ranked

    def _note_unmatched(self, path, ranked, unknown):
        missing = [query for query in self.qrels.judged if query not in ranked]
        if missing:
            judged = count_of(len(self.qrels.judged), "judged query")
            self.notes.append(f"{path}: {len(missing):,} of {judged} not in the run, with an empty ranking: {some(missing)}")
        if unknown:
            queries = count_of(len(unknown), "query")
            self.notes.append(f"{path}: {queries} of the run not judged and left out: {some(sorted(unknown))}")


# A panel


def make_panel(collections, options):
    """(panel as a JSON value, notes): the queries of every collection, in the order of their qrels."""
    models = list(collections[0].runs)
    panel = {"about": options.about} if options.about else {}
    panel |= {"models": identities(models, options), "depth": options.depth, "cutoffs": options.cutoffs,
              "grades": {"max": options.max_grade, "useful": options.useful, "gain": options.gain}}
    if options.comparisons:
        panel["comparisons"] = options.comparisons
    if options.tolerance is not None:
        panel["tolerance"] = options.tolerance
    queries, notes, graded = [], [], 0
    for collection in collections:
        ranked = Ranked(collection, options)
        notes += ranked.notes
        kinds = _kinds(collection, ranked.qrels)
        for query, judged in ranked.qrels.judged.items():
            counts = _grade_counts(judged, options)
            graded += sum(counts.values())
            queries.append(_panel_query(query, kinds, counts, ranked, options))
    if not options.keep_ids:
        width = max(4, len(str(len(queries))))
        for number, query in enumerate(queries, 1):
            query["id"] = f"q{number:0{width}}"
    panel["reference"] = {"queries": len(queries), "graded_pairs": graded}
    panel["queries"] = queries
    return panel, notes


def identities(models, options):
    """{model: identity} from the --models file; without one, empty identities."""
    if not options.models:
        return {model: {} for model in models}
    known, _ = read_json(options.models)
    missing = [model for model in models if not isinstance(known, dict) or model not in known]
    if missing:
        raise RecordError(f"{options.models}: no identity of {', '.join(missing)}; expected an object with one per model")
    return {model: known[model] for model in models}


def _kinds(collection, qrels):
    """{query: type}, or None where no type was asked for."""
    if collection.types is None:
        return dict.fromkeys(qrels.judged, collection.type) if collection.type else None
    kinds = {}
    with Source(collection.types) as source:
        for number, fields in source.lines():
            if len(fields) != 2:
                raise RecordError(f"{source.name}: line {number}: expected 2 fields (qid type), got {len(fields)}")
            kinds[fields[0]] = text_of(fields[1], source.name)
    missing = [query for query in qrels.judged if query not in kinds]
    if missing:
        raise RecordError(f"{collection.types}: no type for {len(missing):,} of {count_of(len(qrels.judged), 'judged query')}:"
                          f" {some(missing)}")
    return kinds


def _grade_counts(judged, options):
    """reference_grade_counts. With unjudged as zero, grade 0 is left out: every passage outside the judgments is one."""
    held = bytes(judged.values())
    lowest = 1 if options.unjudged == "zero" else 0
    return {str(grade): held.count(grade) for grade in range(lowest, options.max_grade + 1)}


def _panel_query(query, kinds, counts, ranked, options):
    row = {"id": text_of(query, ranked.qrels.name)}
    if kinds:
        row["type"] = kinds[query]
    row["reference_grade_counts"] = counts
    results = {model: results.get(query, (b"", [])) for model, results in ranked.models.items()}
    row["rankings"] = {model: _positions(marks, options.unjudged) for model, (marks, _) in results.items()}
    if options.select_share is not None:
        row["selected"] = {model: _selected(scores, options, query) for model, (_, scores) in results.items()}
    return row


def _positions(marks, unjudged):
    """A ranking's positions: grades and excluded positions."""
    if unjudged == "zero":
        marks = marks.replace(bytes((UNJUDGED,)), b"\0")
    return [grade if grade < ABSTAINED else {"grade": None, "excluded": True, "reason": REASONS[grade]} for grade in marks]


def _selected(scores, options, query):
    """How many leading positions have at least the stated share of the top score, within the stated bounds."""
    scores = list(map(float, scores))
    if scores and scores[0] <= 0:
        raise RecordError(f"query {show(query)}: --select-share needs a top score above 0, got {scores[0]}")
    enough = sum(score >= options.select_share * scores[0] for score in scores)
    return min(max(enough, options.select_min), options.select_max, len(scores))


# A public table


def make_table(collections, options):
    """(public table as a JSON value, notes): each model's score of each query, rounded to 6 decimals."""
    measure = parse_measure(options.measure)
    scale = Scale(options.max_grade, options.useful, options.gain, measure.k)
    options.depth = measure.k
    models = list(dict.fromkeys(model for collection in collections for model in collection.runs))
    table, notes, datasets = {"about": options.about} if options.about else {}, [], {}
    table["measure"] = measure.name
    if options.models:
        table["models"] = identities(models, options)
    if options.comparisons:
        table["comparisons"] = options.comparisons
    for collection in collections:
        ranked = Ranked(collection, options)
        notes += ranked.notes
        references = [scale.reference(judged) for judged in ranked.qrels.judged.values()]
        scores = {}
        for model, results in ranked.models.items():
            marks = [results.get(query, (b"", []))[0] for query in ranked.qrels.judged]
            scores[model] = [round(score, 6) for score in measure.of(scale.results(marks, references), measure.k)]
        datasets[collection.dataset] = {"queries": len(references), "scores": scores}
    return {**table, "datasets": datasets}, notes


# Writing: queries and score lists one a line, the other sections of the file untouched


def block_text(block, indent=""):
    """A block as JSON text: a member a line, and within `queries`, `models` and `datasets` an entry a line."""
    inner = indent + "  "
    members = [f"{inner}{_compact(key)}: {_member_text(key, value, inner)}" for key, value in block.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def _member_text(key, value, indent):
    if key == "queries" and isinstance(value, list):
        return "[\n" + ",\n".join(f"{indent}  {_compact(query)}" for query in value) + f"\n{indent}]"
    if key in ("models", "datasets", "scores") and isinstance(value, dict) and value:
        if key == "datasets":
            return block_text(value, indent)
        entries = [f"{indent}  {_compact(name)}: {_compact(entry)}" for name, entry in value.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    return block_text(value, indent) if isinstance(value, dict) and "scores" in value else _compact(value)


def _compact(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def with_section(path, section, block):
    """The text of a file in which `section` is the block; what the file's other sections hold stays byte for byte."""
    sections = {}
    if os.path.exists(path):
        text = read_text(path)
        value = parse_json(text, os.fspath(path))
        if not isinstance(value, dict) or not all(isinstance(member, (dict, str)) for member in value.values()):
            raise RecordError(f"{path}: expected an object whose members are sections, got a record without sections;"
                              " write to another file, or without --section")
        sections = _members_as_text(text)
    sections[section] = block_text(block, "  ")
    return "{\n" + ",\n".join(f"  {_compact(name)}: {text}" for name, text in sections.items()) + "\n}\n"


def _members_as_text(text):
    """{key: its value's text} of a valid JSON object."""
    decoder, sections, place = json.JSONDecoder(), {}, text.index("{") + 1
    while True:
        while text[place] in " \t\r\n,":
            place += 1
        if text[place] == "}":
            return sections
        key, place = decoder.raw_decode(text, place)
        place = text.index(":", place) + 1
        while text[place] in " \t\r\n":
            place += 1
        _, end = decoder.raw_decode(text, place)
        sections[key], place = text[place:end], end


# The command line


def main(argv):
    """Write a record from runs and qrels."""
    parser = _parser()
    options = parser.parse_args(argv)
    collections = _collections(parser, options)
    block, notes = (make_table if options.table else make_panel)(collections, options)
    problem_name = os.fspath(options.output)
    parse_record({options.section: block} if options.section else block, problem_name)
    text = with_section(options.output, options.section, block) if options.section else block_text(block) + "\n"
    write_whole(options.output, text)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"{options.output}: {_describe(block)}")
    return 0


def _describe(block):
    """One line on what was written."""
    if "datasets" in block:
        models = {model for dataset in block["datasets"].values() for model in dataset["scores"]}
        datasets = count_of(len(block["datasets"]), "data set")
        return f"a public table of {block['measure']}: {datasets}, {count_of(len(models), 'model')}"
    reasons = [position["reason"] for query in block["queries"] for ranking in query["rankings"].values()
               for position in ranking if isinstance(position, dict)]
    excluded = ", ".join(f"{reasons.count(reason):,} {reason}" for reason in REASONS.values() if reason in reasons) or "none"
    size = f"{count_of(len(block['queries']), 'query')}, {count_of(len(block['models']), 'model')}, depth {block['depth']}"
    return f"a panel of {size}; excluded positions: {excluded}"


def _parser():
    import argparse

    from harness.arguments import cutoffs, pair, positive, share

    class Step(argparse.Action):
        """Keeps the options of collections in the order in which they stand."""

        def __call__(self, parser, namespace, value, option=None):
            namespace.steps = [*(namespace.steps or []), (self.dest, value)]

    parser = argparse.ArgumentParser(prog="python -m harness record", allow_abbrev=False, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    each = parser.add_argument_group("a collection (repeat from --qrels on)")
    each.add_argument("--dataset", action=Step, metavar="NAME", help="the data set's name, before its --qrels (with --table)")
    each.add_argument("--qrels", action=Step, metavar="FILE", help="judgments: TREC, BEIR or ranx JSON")
    each.add_argument("--run", action=Step, metavar="NAME=FILE", help="a model's run: TREC or ranx JSON, plain or gzipped")
    each.add_argument("--type", action=Step, metavar="TYPE", help="the type of the collection's queries")
    each.add_argument("--types", action=Step, metavar="FILE", help="two columns: query id, type")
    each.add_argument("--exclude", action=Step, metavar="FILE", help="pairs on which a judge abstained: qid docid, or as qrels")
    parser.add_argument("--output", required=True, metavar="FILE", help="the record that is written")
    parser.add_argument("--section", metavar="NAME", help="write under this name; the file's other sections stay")
    parser.add_argument("--depth", type=positive, default=50, help="positions kept of each ranking (50)")
    parser.add_argument("--cutoffs", type=cutoffs, help="comma-separated (1,3,5,10,20,50 as far as the depth goes)")
    parser.add_argument("--max-grade", type=positive, default=3, help="the largest grade (3)")
    parser.add_argument("--useful", type=positive, help="the lowest useful grade (2; with --table 1; never over the largest)")
    parser.add_argument("--gain", choices=["exponential", "linear"], help="(exponential; with --table linear)")
    parser.add_argument("--models", metavar="FILE", help="JSON: an object of each model's identity")
    parser.add_argument("--about", metavar="TEXT", help="a sentence that is kept in the record")
    parser.add_argument("--ties", choices=["input", "trec"], default="trec",
                        help="equal scores: file order, or docid descending (trec)")
    parser.add_argument("--unjudged", choices=["exclude", "zero"], default="exclude",
                        help="an unjudged position is excluded, or grade 0 (exclude)")
    parser.add_argument("--keep-ids", action="store_true", help="keep the query ids; without it they become q0001, q0002, …")
    parser.add_argument("--drop-self", action="store_true", help="remove the document whose id is the query's")
    parser.add_argument("--marco", action="store_true", help="the runs have MS MARCO's three columns: qid docid rank")
    parser.add_argument("--comparison", dest="comparisons", action="append", type=pair, metavar="BASE=CANDIDATE")
    parser.add_argument("--tolerance", type=share, help="the largest difference that counts as the same")
    parser.add_argument("--select-share", type=share, help="select the positions with this share of the top score")
    parser.add_argument("--select-min", type=positive, default=1, help="select at least this many positions (1)")
    parser.add_argument("--select-max", type=positive, default=20, help="and at most this many (20)")
    parser.add_argument("--table", action="store_true", help="make a public table of per-query scores")
    parser.add_argument("--measure", default="nDCG@10", help="the table's measure (nDCG@10)")
    parser.set_defaults(steps=None)
    return parser


def _collections(parser, options):
    """The collections of the command line, in order; a usage error for what does not fit together."""
    collections, dataset = [], None
    for name, value in options.steps or []:
        if name == "dataset":
            dataset = value
        elif name == "qrels":
            collections.append(Collection(value, dataset))
            dataset = None
        elif not collections:
            parser.error(f"--{name} stands before the first --qrels; each --qrels starts a collection")
        elif name == "run":
            _add_run(parser, collections[-1].runs, value)
        else:
            setattr(collections[-1], name, value)
    _check_usage(parser, collections, options)
    options.gain = options.gain or ("linear" if options.table else "exponential")
    options.useful = options.useful or min(1 if options.table else 2, options.max_grade)
    options.cutoffs = options.cutoffs or [k for k in (1, 3, 5, 10, 20, 50) if k <= options.depth]
    if options.useful > options.max_grade or options.max_grade > MAX_GRADE:
        parser.error(f"expected --useful <= --max-grade <= {MAX_GRADE}, got {options.useful} and {options.max_grade}")
    return collections


def _add_run(parser, runs, value):
    model, equals, path = value.partition("=")
    if not (model and equals and path):
        parser.error(f"--run: expected NAME=FILE, got {value}")
    if model in runs:
        parser.error(f"--run: model {model} has two runs in one collection")
    runs[model] = path


def _check_usage(parser, collections, options):
    if not collections or not all(collection.runs for collection in collections):
        parser.error("expected a --qrels with at least one --run after it")
    if options.table:
        names = [collection.dataset for collection in collections]
        if None in names or len(set(names)) < len(names):
            parser.error("--table needs a --dataset NAME of its own before each --qrels")
        return
    models = list(collections[0].runs)
    for collection in collections[1:]:
        if set(collection.runs) != set(models):
            parser.error(f"a panel needs the same models in each collection: {', '.join(models)} in the first,"
                         f" {', '.join(collection.runs)} with {collection.qrels}")
    if len({bool(collection.type or collection.types) for collection in collections}) > 1:
        parser.error("either every collection has a --type or --types, or none")
