"""Turns runs and qrels into a record: a panel of ranked grades, or a public table of per-query scores.

    python -m harness record --qrels Q --run NAME=FILE … --output records/X.json [--section NAME]
    python -m harness record --table --measure nDCG@10 --dataset NAME --qrels Q --run NAME=FILE … --output …

Every --qrels starts a collection; the --run, --type, --types and --exclude after it belong to it. The queries are
written one a line, so that a diff shows which of them changed.
"""

import os
import sys
from itertools import compress

from harness.arguments import keep_inputs
from harness.measures import Scale, parse_measure
from harness.qrels import read_pairs, read_qrels
from harness.record_options import input_files, read_options
from harness.runs import ABSTAINED, UNJUDGED, mark, no_query_in_common, none_judged, rankings
from harness.sections import block_text, check_replaced, compact, with_section
from harness.source import Source, show, some, text_of
from metrics import MAX_BYTES, RecordError, parse_json, parse_record, plural, quote, read_json, write_whole

REASONS = {UNJUDGED: "unjudged", ABSTAINED: "abstained"}


# Reading a collection


class Ranked:
    """A collection's judgments and, for each model, the marks and scores of every judged query."""

    def __init__(self, collection, options):
        self.qrels = read_qrels(collection.qrels, options.max_grade)
        self.abstained = read_pairs(collection.exclude) if collection.exclude else {}
        for query, documents in self.abstained.items():
            for document in documents & self.qrels.judged.get(query, {}).keys():
                del self.qrels.judged[query][document]  # an excluded pair is in no count
        self.notes = [f"note: {warning}" for warning in self.qrels.warnings]
        self.models = {model: self._read(model, path, options) for model, path in collection.runs.items()}

    def _read(self, model, path, options):
        """{query: (marks, scores)} of the judged queries of one run, cut at the depth; scores only where they are needed."""
        ranked, unknown = {}, set()
        for query, documents, scores in rankings(path, options.ties, options.depth, options.drop_self, options.marco):
            if query not in self.qrels.judged:
                unknown.add(query)
                continue
            judged = self.qrels.judged[query]
            if query in self.abstained:
                judged = {**judged, **dict.fromkeys(self.abstained[query], ABSTAINED)}
            ranked[query] = mark(documents, judged), scores if options.select_share else ()
        if not ranked:
            raise no_query_in_common(path, unknown, self.qrels.judged)
        positions, unjudged = _count_positions((marks for marks, _ in ranked.values()), UNJUDGED)
        if positions and positions == unjudged:
            self.notes.append(f"warning: {none_judged(model, positions)}")
        self._note_unmatched(path, ranked, unknown)
        return ranked

    def _note_unmatched(self, path, ranked, unknown):
        missing = [query for query in self.qrels.judged if query not in ranked]
        if missing:
            judged = plural(len(self.qrels.judged), "judged query")
            self.notes.append(f"note: {path}: {len(missing):,} of {judged} not in the run, with an empty ranking: {some(missing)}")
        if unknown:
            queries = plural(len(unknown), "query")
            self.notes.append(f"note: {path}: {queries} of the run not judged and left out: {some(sorted(unknown))}")


def _count_positions(rankings, mark):
    """(all positions, those with this mark) of rankings as marks."""
    positions = found = 0
    for marks in rankings:
        positions += len(marks)
        found += marks.count(mark)
    return positions, found


# A panel


def make_panel(collections, options):
    """(panel as a JSON value, notes, what it is in words): the queries of every collection, in the order of their qrels."""
    models = list(collections[0].runs)
    panel = {"about": options.about} if options.about else {}
    panel |= {"models": identities(models, options), "depth": options.depth, "cutoffs": options.cutoffs}
    read = [Ranked(collection, options) for collection in collections]
    useful, why = _useful(read, options)
    panel["grades"] = {"max": options.max_grade, "useful": useful, "gain": options.gain}
    if options.comparisons:
        panel["comparisons"] = options.comparisons
    if options.tolerance is not None:
        panel["tolerance"] = options.tolerance
    queries = [query for collection, ranked in zip(collections, read) for query in _panel_queries(collection, ranked, options)]
    if not options.keep_ids:
        width = max(4, len(str(len(queries))))
        for number, query in enumerate(queries, 1):
            query["id"] = f"q{number:0{width}}"
    graded = sum(sum(query["reference_grade_counts"].values()) for query in queries)
    panel["reference"] = {"queries": len(queries), "graded_pairs": graded}
    panel["queries"] = queries
    excluded, warnings = _excluded(read, options)
    size = f"{plural(len(queries), 'query')}, {plural(len(models), 'model')}, depth {options.depth}"
    return panel, [note for ranked in read for note in ranked.notes] + warnings, f"a panel of {size}; {options.gain} gain, {why}; {excluded}"


def _useful(read, options):
    """(the lowest useful grade, that in words): 2, or 1 where no judgment reaches 2, unless --useful says another."""
    highest = max((grade for ranked in read for judged in ranked.qrels.judged.values() for grade in judged.values()), default=0)
    useful = options.useful or (2 if highest >= 2 else 1)
    why = ": no judgment is higher" if not options.useful and useful == 1 else ": no judgment is that high" if highest < useful else ""
    return useful, f"useful from grade {useful}{why}"


def _excluded(read, options):
    """(how many positions are excluded for which reason, in words; a warning if most of them are)."""
    rankings = [marks for ranked in read for results in ranked.models.values() for marks, _ in results.values()]
    parts, total = [], 0
    for reason, name in REASONS.items():
        positions, excluded = _count_positions(rankings, reason)
        if excluded and (reason, options.unjudged) == (UNJUDGED, "zero"):
            parts.append(f"{excluded:,} of {plural(positions, 'position')} unjudged, which count as grade 0")
        elif excluded:
            parts.append(f"{excluded:,} of {plural(positions, 'position')} excluded as {name}")
            total += excluded
    more = ["warning: more than half of the positions are excluded, so the values speak of the others alone"
            + "; --unjudged zero counts an unjudged passage as not relevant" * (options.unjudged == "exclude")]
    return ", ".join(parts) or "no position excluded", more if total * 2 > positions else []


def identities(models, options):
    """{model: identity} from the --models file; without one, empty identities."""
    if not options.models:
        return {model: {} for model in models}
    known, _ = read_json(options.models)
    missing = [model for model in models if not isinstance(known, dict) or model not in known]
    if missing:
        raise RecordError(f"{options.models}: no identity of {', '.join(missing)}; expected an object with one per model")
    for model in models:
        if not isinstance(known[model], dict):
            raise RecordError(f"{options.models}: {model}: expected an object, got {quote(known[model])}")
        try:
            compact(known[model]).encode("utf-8")
        except UnicodeEncodeError as error:
            raise RecordError(f"{options.models}: {model}: a lone surrogate {ascii(error.object[error.start])} in it;"
                              " expected Unicode text") from None
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
        raise RecordError(f"{collection.types}: no type for {len(missing):,} of {plural(len(qrels.judged), 'judged query')}:"
                          f" {some(missing)}")
    return kinds


def _grade_counts(judged, options):
    """reference_grade_counts. With unjudged as zero, grade 0 is left out: every passage outside the judgments is one."""
    held = bytes(judged.values())
    lowest = 1 if options.unjudged == "zero" else 0
    return {str(grade): held.count(grade) for grade in range(lowest, options.max_grade + 1)}


def _panel_queries(collection, ranked, options):
    """The queries of one collection as a panel has them."""
    kinds = _kinds(collection, ranked.qrels)
    return [_panel_query(query, kinds, _grade_counts(judged, options), ranked, options)
            for query, judged in ranked.qrels.judged.items()]


def _panel_query(query, kinds, counts, ranked, options):
    row = {"id": text_of(query, ranked.qrels.name) if options.keep_ids else ""}
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
    """How many leading positions have at least the stated share of the top score, within the stated bounds.

    Scores are compared as the decimals that they were written as: 2.3465 is 0.95 of 2.47, which as binary fractions it is not.
    """
    from decimal import Context, Decimal

    scores = [Decimal(score.decode() if isinstance(score, bytes) else repr(score)) for score in scores]
    if scores and scores[0] <= 0:
        raise RecordError(f"query {show(query)}: --select-share needs a top score above 0, got {scores[0]}")
    least = Context(prec=1000).multiply(options.select_share, scores[0]) if scores else 0
    enough = sum(score >= least for score in scores)
    return min(max(enough, options.select_min), options.select_max, len(scores))


# A public table


def make_table(collections, options):
    """(public table as a JSON value, notes, what it is in words): each model's score of each query, rounded to 6 decimals."""
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
        retained, queries = _retained(ranked, options)
        if len(queries) < (known := len(ranked.qrels.judged)):
            notes.append(f"note: {ranked.qrels.name}: {known - len(queries):,} of {plural(known, 'query')} left out:"
                         " in some model's ranking everything up to the cutoff is excluded")
        references = [scale.reference(ranked.qrels.judged[query]) for query in queries]
        scores = {model: [round(score, 6) for score in measure.of(scale.results(marks, references), measure.k)]
                  for model, marks in retained.items()}
        datasets[collection.dataset] = {"queries": len(references), "scores": scores}
    size = f"{plural(len(datasets), 'data set')}, {plural(len(models), 'model')}"
    return {**table, "datasets": datasets}, notes, f"a public table of {measure.name}: {size}"


def _retained(ranked, options):
    """({model: marks of each eligible query}, the eligible queries): cut at the measure's cutoff, then dropped, as in a panel.

    A query of which some model's cut ranking is wholly excluded counts for no model.
    """
    excluded = bytes((ABSTAINED, UNJUDGED)[:1 + (options.unjudged == "exclude")])
    cuts = {model: [results.get(query, (b"",))[0] for query in ranked.qrels.judged] for model, results in ranked.models.items()}
    retained = {model: [marks.translate(None, excluded) for marks in column] for model, column in cuts.items()}
    eligible = [all(retained[model][place] or not cuts[model][place] for model in cuts) for place in range(len(ranked.qrels.judged))]
    if not any(eligible):
        raise RecordError(f"{ranked.qrels.name}: every query has a ranking that is wholly excluded; expected judged passages")
    return {model: list(compress(column, eligible)) for model, column in retained.items()}, list(compress(ranked.qrels.judged, eligible))


# The command line


def main(argv):
    """Write a record from runs and qrels."""
    options, collections = read_options(argv, __doc__)
    _check_output(options, collections)
    block, notes, what = (make_table if options.table else make_panel)(collections, options)
    text = with_section(options.output, options.section, block) if options.section else block_text(block) + "\n"
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise RecordError(f"{options.output}: would be over the limit of {MAX_BYTES:,} bytes for a record; lower the --depth")
    parse_record(parse_json(text, options.output), options.output)  # the whole file, not only the new block
    write_whole(options.output, text)
    for note in notes:
        print(note, file=sys.stderr)
    print(f"{options.output}: {what}")
    return 0


def _check_output(options, collections):
    """The output has a record's name, is no input, and holds nothing that would be lost."""
    path, name = options.output, os.path.basename(options.output)
    if os.path.abspath(path).startswith("/dev/") or os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        return  # a device or a pipe
    if not name.endswith(".json") or name.endswith("-summary.json") or name == ".json":
        raise RecordError(f"--output {path}: expected NAME.json, and not the NAME-summary.json that metrics.py writes beside it")
    keep_inputs(path, [file for _, file in input_files(options, collections)])
    check_replaced(path, options.section, "a public table" if options.table else "a panel")
