"""Fuses runs by reciprocal rank: a document's score is the sum, over the runs, of 1 / (60 + its rank there).

    python -m harness fuse RUN RUN… [--rrf 60] [--depth 50] [--dedupe TEXTS.jsonl] --output FUSED

Cormack, Clarke and Büttcher 2009. Only ranks count, so the runs' scores need not be comparable.
"""

import sys
from hashlib import sha256

from harness.arguments import Parser, filled, keep_inputs, positive, read_once, unicode_text
from harness.runs import rankings
from harness.source import Source, some, text_of, visible
from metrics import RecordError, decode_utf8, parse_json, plural, quote, write_whole


def fuse(ranked, constant, depth):
    """[(document, score)] of rankings (lists of documents, best first), best first, at most depth.

    >>> fuse([["a", "b"], ["b", "c"]], 60, 2)  # b: 1/62 + 1/61
    [('b', 0.03252247488101533), ('a', 0.01639344262295082)]

    Equal scores stand by document id descending, as trec_eval reads them. Each is an exact fraction that is rounded once, so
    that equal sums of different ranks are equal: at 60, ranks 3 and 80 and ranks 24 and 30 are both 29/1260.
    """
    sums = {}
    for documents in ranked:
        for divisor, document in enumerate(documents, constant + 1):
            above, below = sums.get(document, (0, 1))
            sums[document] = above * divisor + below, below * divisor
    scores = sorted(((above / below, document) for document, (above, below) in sums.items()), reverse=True)
    return [(document, score) for score, document in scores[:depth]]


def same_texts(ranked, groups):
    """The rankings with documents of one text taken together: each text once, at its best rank.

    The text goes by the id of its member that stands highest in any run, the smallest id among equals. A document whose text is
    not known stands for itself. groups: {document: digest of its text}.
    """
    best = {}
    for documents in ranked:
        for rank, document in enumerate(documents, 1):
            group = groups.get(document, document)
            best[group] = min(best.get(group, (rank, document)), (rank, document))
    return [list(dict.fromkeys(best[groups.get(document, document)][1] for document in documents)) for documents in ranked]


def read_texts(path, wanted):
    """{document: digest of its text} of a JSON Lines file of {"_id" or "id": …, "title": …, "text": …}, if wanted.

    A document's text is its title, if it has one, and its text. Texts are the same if they differ in white space alone. An
    empty text says nothing of what the document is, so such a document gets no digest.
    """
    digests = {}
    with Source(path) as source:
        for number, line in source.raw_lines():
            place = f"{source.name}: line {number}"
            passage = parse_json(decode_utf8(line, place), place)
            name = passage.get("_id", passage.get("id")) if isinstance(passage, dict) else None
            if not isinstance(name, str) or not isinstance(passage.get("text"), str):
                raise RecordError(f'{place}: expected {{"_id": …, "text": …}}, both strings, got {quote(passage)}')
            title = passage.get("title")
            if title is not None and not isinstance(title, str):
                raise RecordError(f"{place}: title: expected a string, got {quote(title)}")
            if (document := name.encode("utf-8", "surrogatepass")) in wanted and (words := passage["text"].split()):
                digests[document] = sha256(" ".join((title or "").split() + words).encode("utf-8", "surrogatepass")).digest()
    return digests


def read_queries(paths, options):
    """{query: [the documents of each run that has it]}, queries in the order in which they first appear."""
    queries = {}
    for place, path in enumerate(paths):
        for query, documents, _ in rankings(path, options.ties, options.from_depth, options.drop_self, options.marco):
            queries.setdefault(query, {})[place] = documents
    return {query: list(ranked.values()) for query, ranked in queries.items()}


def fused_lines(queries, groups, options):
    """The lines of the fused run."""
    for query, ranked in queries.items():
        ranked = same_texts(ranked, groups) if groups else ranked
        name = text_of(query, "query")
        for rank, (document, score) in enumerate(fuse(ranked, options.rrf, options.depth), 1):
            yield f"{name} Q0 {text_of(document, 'document')} {rank} {score!r} {options.tag}\n"


def main(argv):
    """Fuse runs and write the result."""
    parser = _parser()
    options = parser.parse_args(argv)
    if len(options.runs) < 2 and not options.dedupe:
        parser.error("expected at least two runs")
    if options.tag.split() != [options.tag]:
        parser.error(f"--tag: expected one word, got {options.tag}")
    read_once(parser, [*(("RUN", path) for path in options.runs), ("--dedupe", options.dedupe)])
    keep_inputs(options.output, [*options.runs, *filter(None, [options.dedupe])])
    queries = read_queries(options.runs, options)
    partial = [query for query, ranked in queries.items() if len(ranked) < len(options.runs)]
    if partial:
        of_all = f"{len(partial):,} of {plural(len(queries), 'query')}"
        print(f"note: {of_all} not in every run: {some(partial)}", file=sys.stderr)
    groups = {}
    if options.dedupe:
        wanted = {document for ranked in queries.values() for documents in ranked for document in documents}
        groups = read_texts(options.dedupe, wanted)
        if len(groups) < len(wanted):
            of_all = f"{len(wanted) - len(groups):,} of {plural(len(wanted), 'document')}"
            print(f"note: {of_all} without a text in {visible(options.dedupe)}: kept", file=sys.stderr)
    lines = list(fused_lines(queries, groups, options))
    write_whole(options.output, "".join(lines))
    sizes = plural(len(queries), "query"), plural(len(lines), "line"), f"from {plural(len(options.runs), 'run')}"
    print(f"{visible(options.output)}: {', '.join(sizes)}")
    return 0


def _parser():
    parser = Parser(prog="python -m harness fuse", description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="TREC or ranx JSON, plain or gzipped")
    parser.add_argument("--output", required=True, metavar="FUSED", help="the run that is written, in TREC format")
    parser.add_argument("--rrf", type=positive, default=60, metavar="K", help="the constant that is added to each rank (60)")
    parser.add_argument("--depth", type=positive, default=50, help="documents kept per query (50)")
    parser.add_argument("--from-depth", type=positive, default=1000, help="documents taken from each run per query (1000)")
    parser.add_argument("--dedupe", type=filled, metavar="TEXTS.jsonl",
                        help='{"_id": …, "title": …, "text": …} a line, with or without title; of documents with one text,'
                             " one stays")
    parser.add_argument("--ties", choices=["trec", "input"], default="trec",
                        help="equal scores in the runs: docid descending, or file order (trec)")
    parser.add_argument("--drop-self", action="store_true", help="remove the document whose id is the query's")
    parser.add_argument("--marco", action="store_true", help="the runs have MS MARCO's three columns: qid docid rank")
    parser.add_argument("--tag", type=unicode_text, default="rrf", help="the last column (rrf)")
    return parser
