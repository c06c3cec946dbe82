"""Reads runs: TREC, ranx and MS MARCO files of any length, plain, gzipped or from a pipe.

    rankings(path)           -> iterator  one (query, documents, scores) per query, best first
    mark(documents, judged)  -> bytes     a ranking as one byte per position: its grade, UNJUDGED or ABSTAINED

Ids are bytes exactly as they stand in the file: "0012" is not "12", and a no-break space is a character like any other.

A run is read in one of two ways, the second for what the first cannot prove. Each has a form for runs in which a query's lines
do not stand together, which holds the whole run.

    fast   blocks of whole lines, split once; column positions and the order of the scores are proved, not parsed
    lines  line by line; names file and line of whatever is wrong

Both give the same rankings; a test compares them on thousands of small files.
"""

import os
from itertools import islice, repeat
from math import isfinite
from operator import eq

from harness.columns import Unproven, columns, spaced, stretches
from harness.qrels import Qrels, json_queries, read_pairs, read_qrels  # noqa: F401  runs are of no use without them
from harness.source import Source, found_fields, show, visible
from metrics import EXCLUDED, RecordError, plural

UNJUDGED = EXCLUDED  # the byte of a position whose passage is in no judgment
ABSTAINED = EXCLUDED - 1  # the byte of a position whose pair was left out of the judgments on purpose
EXACT_DIGITS = 15  # decimals of up to 15 digits differ as floats wherever they differ as text
DIGITS = b"0123456789"

RUN_COLUMNS = "6 fields (qid Q0 docid rank score tag)"
MARCO_COLUMNS = "3 fields (qid docid rank)"


def rankings(path, ties="trec", depth=None, drop_self=False, marco=False):
    """Yield (query, documents, scores) for each query of a run, best first; the rank column is not looked at.

    Scores descend; equal ones keep the file's order with ties="input", and stand by document id descending, byte by
    byte, with ties="trec". depth keeps the first so many positions. drop_self removes the document whose id is the query's,
    before ranks are counted. marco reads MS MARCO's three columns (qid docid rank), where the score is minus the rank.
    Scores are numbers, or their text as bytes: float() takes both.

    A query can come twice, when its lines turn out to be scattered over the file: the last one counts.
    Raises RecordError that names file and line for a wrong number of columns, a score that is no finite number, and a
    document that is ranked twice for a query.
    """
    with Source(path) as source:
        for way in _ways(source, marco):
            try:
                yield from arrange(way(source, marco), ties, depth, drop_self)
                return
            except Unproven:
                source.rewind()


def prove(path, start, end):
    """Yield (query, documents, scores) of a part of a run that begins and ends with a query, in the order of its lines.

    Raises Unproven for anything but well-formed lines of plain text in which each query's lines stand together.
    """
    with Source(path, start, end) as source:
        if source.file is not source.raw or _ways(source, False)[0] is not _fast:
            raise Unproven
        yield from _fast(source, False)


def _ways(source, marco):
    """The ways to read a run, each for what the one before cannot prove."""
    if source.is_json():
        return (_json_queries,)
    return PLAIN_WAYS if marco else FAST_WAYS + PLAIN_WAYS


def arrange(queries, ties, depth, drop_self):
    """Each (query, documents, scores) in its final order, as rankings says."""
    for query, documents, scores in queries:
        if drop_self and query in documents:
            place = documents.index(query)
            documents, scores = (column[:place] + column[place + 1:] for column in (documents, scores))
        yield query, *_order(documents, scores, ties, depth)


def _order(documents, scores, ties, depth):
    """A query's first `depth` documents and their scores, best first."""
    if sorted(scores, reverse=True) != scores:
        documents, scores = _sort(documents, scores)
    if depth and depth < len(scores):
        end = depth
        while end < len(scores) and scores[end] == scores[depth - 1]:
            end += 1  # any document of the group that the depth cuts may come to stand above it
        documents, scores = documents[:end], scores[:end]
    if ties == "trec":
        equal = bytes(map(eq, scores, islice(scores, 1, None)))
        if 1 in equal:
            documents = _sort_ties(documents, equal)
    return (documents, scores) if depth is None or len(documents) <= depth else (documents[:depth], scores[:depth])


def _sort(documents, scores):
    """Documents and scores by score descending; equal scores keep their order."""
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    return [documents[place] for place in order], [scores[place] for place in order]


def _sort_ties(documents, equal):
    """The documents with each group of equal scores by id descending; equal[i] is 1 where positions i and i + 1 tie, else 0."""
    documents = documents[:]
    start, equal = equal.index(1), equal + b"\0"
    while start >= 0:
        end = equal.index(0, start) + 1
        documents[start:end] = sorted(documents[start:end], reverse=True)
        start = equal.find(1, end)
    return documents


def _fast(source, _):
    """The queries of a well-formed run whose lines stand together. Raises Unproven for all others."""
    seen, query, documents, scores, shape = set(), None, [], [], None
    for block in source.blocks():
        for next_query, more_documents, more_scores, next_shape in _segments(spaced(block)):
            if next_query == query:
                documents += more_documents
                scores += more_scores
                shape = shape if shape == next_shape else None
                continue
            if query is not None:
                yield _proved(query, documents, scores, shape)
            if next_query in seen:
                raise Unproven
            seen.add(next_query)
            query, documents, scores, shape = next_query, more_documents, more_scores, next_shape
    if query is None:
        raise Unproven
    yield _proved(query, documents, scores, shape)


def _fast_scattered(source, _):
    """The queries of a run that is well-formed, but whose lines do not stand together."""
    queries = {}
    for block in source.blocks():
        for query, documents, scores, _ in _segments(spaced(block)):
            held = queries.setdefault(query, ([], []))
            held[0].extend(documents)
            held[1].extend(scores)
    if not queries:
        raise Unproven
    for query, (documents, scores) in queries.items():
        yield _proved(query, documents, scores, None)


def _segments(block):
    """(query, documents, scores, shape of the scores) of each stretch of lines of one query in a block of a run."""
    tokens = columns(block, 6)
    if not (all(tokens[1::5]) and all(tokens[3::5])):
        raise Unproven
    heads = tokens[:-1:5]
    heads[0] = tokens[-1] + b"\n" + heads[0]  # as if the last line's tag stood before the first line
    documents, scores = tokens[2::5], tokens[4::5]
    shape = _decimal_shape(scores)
    for start, end in stretches(heads):
        tag, line_feed, query = heads[start].partition(b"\n")
        if not (tag and line_feed and query):
            raise Unproven
        yield query, documents[start:end], scores[start:end], shape


def _proved(query, documents, scores, shape):
    """The query, its documents, which are all different, and its scores, which compare as numbers do."""
    distinct = set(documents)
    if len(distinct) != len(documents) or b"" in distinct:
        raise Unproven
    return query, documents, scores if shape or _decimal_shape(scores) else _as_numbers(scores)


def _decimal_shape(scores):
    """(width, place of the point) if all scores are plain decimals of that one shape, whose bytes order them; or None."""
    size, width, point = len(scores), len(scores[0]), scores[0].find(b".")
    joined = b" ".join(scores)
    same = (point >= 0 and 1 < width <= EXACT_DIGITS + 1  # a point alone is no number
            and len(joined) == size * (width + 1) - 1  # else the last one could be shorter: 2.5 after 2.50, an equal number
            and joined[point::width + 1] == b"." * size
            and joined[width::width + 1] == b" " * (size - 1)
            and joined.translate(None, DIGITS) == b". " * (size - 1) + b".")
    return (width, point) if same else None


def _as_numbers(scores):
    try:
        numbers = list(map(float, scores))
    except ValueError:
        raise Unproven from None
    if not all(map(isfinite, numbers)) or b"_" in b"".join(scores):  # float() takes 1_000 for a thousand
        raise Unproven
    return numbers


def _parse_run_line(fields, marco, place):
    """(query, document, score) of a run's line."""
    if len(fields) != (3 if marco else 6):
        hint = "; --marco reads MS MARCO's three columns" if len(fields) == 3 else ""
        raise RecordError(f"{place}: expected {MARCO_COLUMNS if marco else RUN_COLUMNS},"
                          f" got {found_fields(fields, 3 if marco else 6)}{hint}")
    query, document = (fields[0], fields[1]) if marco else (fields[0], fields[2])
    token = fields[2 if marco else 4]
    place = f"{place}: query {show(query)}, document {show(document)}"
    try:
        score = float(token)
    except ValueError:
        score = None
    if score is None or b"_" in token or not isfinite(score):
        why = ", which is out of range" if score is not None and token[-1:].isdigit() and b"_" not in token else ""
        raise RecordError(f"{place}: expected a finite number as score, got {show(token)}{why}")
    if marco and not token.isdigit():
        raise RecordError(f"{place}: expected a rank, an integer of at least 0, got {show(token)}")
    return query, document, -score if marco else score


def _lines(source, marco):
    """(line number, query, document, score) of each line of a run."""
    number = 0
    for number, fields in source.lines():
        yield number, *_parse_run_line(fields, marco, f"{source.name}: line {number}")
    if not number:
        raise RecordError(f"{source.name}: no results; expected lines of {MARCO_COLUMNS if marco else RUN_COLUMNS}")


class _Ranking:
    """One query's lines: documents, scores, and the line that each document stands on."""

    def __init__(self):
        self.lines, self.scores = {}, []

    def add(self, number, query, document, score, name):
        if self.lines.setdefault(document, number) != number:
            raise RecordError(f"{name}: line {number}: duplicate document {show(document)} for query {show(query)},"
                              f" first on line {self.lines[document]}; expected each document once per query")
        self.scores.append(score)


def _lines_together(source, marco):
    """The queries of a run whose lines stand together, one query in memory at a time."""
    seen, current, ranking = set(), None, None
    for number, query, document, score in _lines(source, marco):
        if query != current:
            if query in seen:
                raise Unproven
            if ranking:
                yield current, list(ranking.lines), ranking.scores
            seen.add(query)
            current, ranking = query, _Ranking()
        ranking.add(number, query, document, score, source.name)
    yield current, list(ranking.lines), ranking.scores


def _lines_scattered(source, marco):
    """The queries of a run in which lines of different queries stand between each other."""
    queries = {}
    for number, query, document, score in _lines(source, marco):
        if query not in queries:
            queries[query] = _Ranking()
        queries[query].add(number, query, document, score, source.name)
    for query, ranking in queries.items():
        yield query, list(ranking.lines), ranking.scores


def _json_queries(source, _):
    """The queries of a ranx JSON run: {query: {document: score}}."""
    for query, documents in json_queries(source):
        yield query, list(documents), list(map(float, documents.values()))


FAST_WAYS = (_fast, _fast_scattered)
PLAIN_WAYS = (_lines_together, _lines_scattered)


def mark(documents, judged):
    """A ranking as bytes: each document's grade, or UNJUDGED where it has none.

    >>> list(mark([b"d1", b"d7", b"d2"], {b"d1": 2, b"d2": 0}))
    [2, 255, 0]
    """
    return bytes(map(judged.get, documents, repeat(UNJUDGED)))


def none_judged(label, positions):
    """The warning of a run in which no document has a judgment, although its queries have some."""
    return f"none of the {positions:,} passages of run {label} is judged: are these the judgments of this collection?"


def no_query_in_common(name, ran, judged):
    """The error for a run and judgments whose query ids never meet, with two ids of each to compare."""
    def sample(ids):
        return ", ".join(map(show, sorted(ids)[:2]))

    return RecordError(f"{visible(os.fspath(name))}: no query id in common: {plural(len(ran), 'run query')} ({sample(ran)}),"
                       f" {plural(len(judged), 'judged query')} ({sample(judged)}); are these the same topics?")
