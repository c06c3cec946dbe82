"""Writes a record's judgments and rankings for other tools, so that they can recompute what metrics.py printed.

    python -m harness export RECORD --to trec|beir|ranx|csv --output DIR [--at K]

A record holds grades and no documents, so the documents get neutral ids: the first passage of grade 3 that a model ranks
for query q0001 is q0001-3-1 in every model, and an excluded position is a document that no judgment knows.
"""

import os
import sys

from harness.arguments import Parser, keep_inputs, positive
from harness.source import visible
from metrics import EXCLUDED, Panel, RecordError, Table, load_record, plural, quote, write_whole

QRELS_HEADER = "query-id\tcorpus-id\tscore\n"  # BEIR's


class Ranked:
    """A panel as judgments and runs with document ids.

    judgments: [(query, document, grade)]; runs: {model: [(query, [document of each position])]}.
    """

    def __init__(self, panel, at):
        cuts = {model: [_cut(ranking, at) for ranking in rankings] for model, rankings in panel.rankings.items()}
        kept = [place for place in range(len(panel.ids)) if at is None or _eligible(panel, cuts, place, at)]
        self.judgments = [row for place in kept for row in _judgments(panel.ids[place], panel.counts[place])]
        self.runs = {model: [(panel.ids[place], _documents(panel.ids[place], rankings[place])) for place in kept]
                     for model, rankings in cuts.items()}
        self.queries = len(kept)
        self.excluded = sum(ranking.count(EXCLUDED) for rankings in cuts.values() for ranking in rankings)


def _cut(ranking, at):
    """The whole ranking; or, at a cutoff, the retained positions of the prefix: cut first, then excluded positions dropped."""
    return ranking if at is None else ranking[:at].translate(None, bytes((EXCLUDED,)))


def _eligible(panel, cuts, place, at):
    """Whether a query counts at a cutoff: in no model is its prefix wholly excluded."""
    return all(cuts[model][place] or not panel.rankings[model][place] for model in panel.models)


def _judgments(query, counts):
    """(query, document, grade) of every judged passage, best first. Without a count of grade 0, no 0 is written."""
    return [(query, f"{query}-{grade}-{number}", grade) for grade in range(len(counts) - 1, -1, -1)
            for number in range(1, counts[grade] + 1)]


def _documents(query, ranking):
    """A document id per position: the i-th position of a grade is the i-th document of that grade."""
    seen = [0] * 256
    documents = []
    for grade in ranking:
        seen[grade] += 1
        documents.append(f"{query}-{'excluded' if grade == EXCLUDED else grade}-{seen[grade]}")
    return documents


# The formats: each gives {file name: text}


def trec_files(panel, ranked, names):
    """qrels.txt and MODEL.trec."""
    _check_no_spaces(panel)
    files = {"qrels.txt": "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in ranked.judgments)}
    for model, queries in ranked.runs.items():
        files[f"{names[model]}.trec"] = _trec_run(queries, names[model])
    return files


def _trec_run(queries, tag):
    """A run's lines. Scores fall by one from rank to rank, so that every reader keeps the order."""
    return "".join(f"{query} Q0 {document} {rank} {len(documents) - rank + 1} {tag}\n"
                   for query, documents in queries for rank, document in enumerate(documents, 1))


def beir_files(panel, ranked, names):
    """qrels/test.tsv with BEIR's header, and MODEL.trec: BEIR has no file format for runs."""
    files = trec_files(panel, ranked, names)
    del files["qrels.txt"]
    rows = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in ranked.judgments)
    return {"qrels/test.tsv": QRELS_HEADER + rows, **files}


def ranx_files(panel, ranked, names):
    """qrels.json and MODEL.json: {query: {document: grade or score}}."""
    import json

    judged = {}
    for query, document, grade in ranked.judgments:
        judged.setdefault(query, {})[document] = grade
    files = {"qrels.json": json.dumps(judged, ensure_ascii=False) + "\n"}
    for model, queries in ranked.runs.items():
        run = {query: {document: len(documents) - place for place, document in enumerate(documents)}
               for query, documents in queries}
        files[f"{names[model]}.json"] = json.dumps(run, ensure_ascii=False) + "\n"
    return files


def csv_files(panel, ranked, names):
    """positions.csv, a row per position, and reference.csv, how many passages carry each grade.

    An excluded position has no grade, but its reason.
    """
    kinds = panel.types or ("",) * len(panel.ids)
    rows = [(model, panel.ids[place], kinds[place], rank, "" if grade == EXCLUDED else grade,
             panel.reasons.get((model, place, rank - 1)) or "")
            for model, rankings in panel.rankings.items() for place, ranking in enumerate(rankings)
            for rank, grade in enumerate(ranking, 1)]
    reference = [(query, kind, grade, count) for query, kind, counts in zip(panel.ids, kinds, panel.counts)
                 for grade, count in enumerate(counts) if count >= 0]
    return {"positions.csv": _csv([("model", "query", "type", "rank", "grade", "excluded"), *rows]),
            "reference.csv": _csv([("query", "type", "grade", "passages"), *reference])}


def _csv(rows):
    import csv
    import io

    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def table_files(table):
    """scores.csv of a public table, a row per data set, model and query."""
    rows = [(dataset, model, number, score) for dataset, (_, scores) in table.datasets.items()
            for model, column in scores.items() for number, score in enumerate(column, 1)]
    return {"scores.csv": _csv([("dataset", "model", "query", table.measure), *rows])}


FORMATS = {"trec": trec_files, "beir": beir_files, "ranx": ranx_files, "csv": csv_files}


def _check_no_spaces(panel):
    broken = [query for query in panel.ids if query.split() != [query]]
    if broken:
        raise RecordError(f"query id {quote(broken[0])}: TREC files separate fields by spaces; export --to ranx keeps such ids")


def file_names(models):
    """{model: file name}: letters, digits and .@+-_ stay, anything else becomes _. Raises RecordError where two become one."""
    names = {model: "".join(c if c.isascii() and (c.isalnum() or c in ".@+-_") else "_" for c in model) for model in models}
    for model, name in names.items():
        others = [other for other in names if other != model and names[other].lower() == name.lower()]
        if others or name.lower() == "qrels":
            taken = f"by model {others[0]}" if others else "by the judgments"
            raise RecordError(f"model {model}: the file name {name} is taken {taken}; rename one of them")
    return names


def block_files(block, options):
    """({file name: text}, notes) of one block of a record."""
    if isinstance(block, Table):
        return (table_files(block), []) if options.to == "csv" else ({}, [])
    if not isinstance(block, Panel):
        return {}, []
    ranked = Ranked(block, options.at)
    notes = []
    if ranked.excluded and options.to != "csv":
        notes.append(f"{plural(ranked.excluded, 'excluded position')} written as unjudged documents, which keep their rank in"
                     " other tools: recall and success stay the same, nDCG does not; --at K writes what is retained at one"
                     " cutoff, for the same nDCG@K")
    if options.at and ranked.queries < len(block.ids):
        queries = plural(len(block.ids), "query")
        notes.append(f"{len(block.ids) - ranked.queries:,} of {queries} not eligible at {options.at}, left out")
    if options.to != "csv":
        level = f" (trec_eval -l {block.useful})" if block.useful > 1 else ""
        gain = "as in trec_eval" if block.gain == "linear" else "trec_eval's is linear, so its nDCG differs"
        notes.append(f"relevant from grade {block.useful}{level}; {block.gain} gain: {gain}")
    names = {} if options.to == "csv" else file_names(block.models)  # a table has the models' own names
    notes += [f"model {model} is called {name} in the files" for model, name in names.items() if name != model]
    return FORMATS[options.to](block, ranked, names), notes


def _folder(options, place):
    """The folder of a block: its section's, in --output. A name with a separator could lead anywhere."""
    if "/" in place or "\\" in place or ":" in place:
        raise RecordError(f"{options.record}: section {visible(place)}: expected a name that can be a folder's,"
                          " without /, \\ and :; rename the section")
    return os.path.join(options.output, *place.split(".")) if place else options.output


def main(argv):
    """Write the files of every block of a record."""
    options = _parser().parse_args(argv)
    record = load_record(options.record)
    written = {}
    for place, block in record.blocks.items():
        files, notes = block_files(block, options)
        folder = _folder(options, place)
        written |= {os.path.join(folder, *name.split("/")): text for name, text in files.items()}
        for note in notes:
            print(visible(f"note: {place + ': ' if place else ''}{note}"), file=sys.stderr)
    if not written:
        raise RecordError(f"{options.record}: no rankings to write --to {options.to}; public tables go --to csv")
    for path in written:
        keep_inputs(path, [options.record])
    for path, text in written.items():
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write_whole(path, text)
        print(visible(path))
    return 0


def _parser():
    parser = Parser(prog="python -m harness export", description=__doc__)
    parser.add_argument("record", metavar="RECORD", help="a record, such as records/retriever.json")
    parser.add_argument("--to", required=True, choices=list(FORMATS), help="the format")
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder to write to; a section has its own in it")
    parser.add_argument("--at", type=positive, metavar="K",
                        help="only what is retained at this cutoff: the first K, then without excluded positions")
    return parser
