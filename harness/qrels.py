"""Reads judgments: TREC's four columns, BEIR's three, ranx JSON, and pairs without grades.

    read_qrels(path)  -> Qrels  every judgment: {query: {document: grade}}
    read_pairs(path)  -> {query: {documents}}

Ids are bytes exactly as they stand in the file. Well-formed files are read in columns, all others line by line, with the same
result; a test compares both.
"""

from collections import namedtuple
from itertools import islice

from harness.columns import Unproven, columns, spaced, stretches
from harness.source import Source, found_fields, show, some, visible
from metrics import MAX_GRADE, RecordError, plural

QRELS_COLUMNS = "4 fields (qid iter docid grade) or 3 (BEIR: query-id corpus-id score)"
BEIR_HEADER = [b"query-id", b"corpus-id", b"score"]

# judged: {query: {document: grade}}, in file order; a negative grade is kept as 0 and counted in a warning
Qrels = namedtuple("Qrels", "name judged warnings")


def read_qrels(path, max_grade=3):
    """The judgments of a qrels file: TREC's four columns, BEIR's three with or without header, or ranx JSON.

    A judgment that stands there twice alike is counted in a warning. Raises RecordError that names the line for a
    wrong number of columns, a grade that is no integer or over max_grade, and two different grades of one pair.
    """
    with Source(path) as source:
        if source.is_json():
            return _json_qrels(source, max_grade)
        try:
            return Qrels(source.name, _fast_qrels(source, max_grade), [])
        except Unproven:
            source.rewind()
            return _line_qrels(source, max_grade)


class _Heads(dict):
    """The query that begins a line of qrels, by the token that holds it and the grade before it: b"2\\nq7", each split once.

    `grades` holds the grade of each such token.
    """

    def __init__(self, max_grade):
        self.grades, self.known = {}, {str(grade).encode(): grade for grade in range(max_grade + 1)}

    def __missing__(self, token):
        grade, line_feed, query = token.partition(b"\n")
        if not (line_feed and query and grade in self.known):
            raise Unproven
        self.grades[token] = self.known[grade]
        self[token] = query
        return query


def _fast_qrels(source, max_grade):
    """{query: {document: grade}} of well-formed qrels, in any order of lines. Raises Unproven for all others."""
    judged, heads, width = {}, _Heads(max_grade), 0
    for block in source.blocks():
        block = spaced(block)
        if not width:
            fields = block[:block.index(b"\n")].split(b" ")
            width = len(fields)
            if [field.lower() for field in fields] == BEIR_HEADER:
                block = block[block.index(b"\n") + 1:]
        if block:
            for query, documents, grades in _judgments(block, width, heads):
                known = judged.setdefault(query, {})
                before = len(known)
                known.update(zip(documents, grades))
                if len(known) - before != len(documents):
                    raise Unproven  # a pair that is judged twice
    if not judged:
        raise Unproven
    return judged


def _judgments(block, width, heads):
    """(query, documents, grades) of each stretch of lines of one query in a block of qrels."""
    if not 3 <= width <= 4:
        raise Unproven
    tokens = columns(block, width)
    documents = tokens[width - 2::width - 1]
    if not (all(documents) and (width == 3 or all(tokens[1::3]))):
        raise Unproven
    ends = tokens[::width - 1]
    ends[0] = b"0\n" + ends[0]  # as if a line stood before the first one, and one after the last
    ends[-1] += b"\n-"
    queries = list(map(heads.__getitem__, ends))
    grades = list(map(heads.grades.__getitem__, islice(ends, 1, None)))
    queries.pop()
    for start, end in stretches(queries):
        yield queries[start], documents[start:end], grades[start:end]


def _line_qrels(source, max_grade):
    judged, first, repeats, negatives, width = {}, {}, [], 0, 0
    for number, fields in source.lines():
        if not width:
            width = 3 if len(fields) == 3 else 4
            if [field.lower() for field in fields] == BEIR_HEADER:
                continue
        place = f"{source.name}: line {number}"
        if len(fields) != width:
            expected = QRELS_COLUMNS if width == 4 else "3 fields (query-id corpus-id score), as in the lines before"
            raise RecordError(f"{place}: expected {expected}, got {found_fields(fields, width)}")
        query, document, grade = fields[0], fields[-2], parse_grade(fields[-1], max_grade, place)
        negatives += grade < 0
        documents = judged.setdefault(query, {})
        if document in documents:
            line, given = first[query, document]
            if given != grade:
                raise RecordError(f"{place}: query {show(query)}, document {show(document)}: grade {grade} here,"
                                  f" {given} on line {line}; expected one judgment of the pair")
            repeats.append((query, document))
        documents[document] = max(grade, 0)
        first.setdefault((query, document), (number, grade))
    if not judged:
        raise RecordError(f"{source.name}: no judgments; expected lines of {QRELS_COLUMNS}")
    return Qrels(source.name, judged, _qrels_warnings(source.name, repeats, negatives))


def parse_grade(token, max_grade, place):
    """A grade: an integer up to max_grade. Raises RecordError with the place."""
    digits = token[1:] if token[:1] in (b"-", b"+") else token
    if not digits.isdigit() or len(digits) > 9:
        raise RecordError(f"{place}: expected an integer as grade, got {show(token)}")
    if int(token) > max_grade:
        raise RecordError(f"{place}: expected a grade in 0..{max_grade}, got {show(token)};"
                          f" --max-grade allows grades up to {MAX_GRADE}")
    return int(token)


def _qrels_warnings(name, repeats, negatives):
    warnings = []
    if repeats:
        query, document = repeats[0]
        warnings.append(f"{name}: {plural(len(repeats), 'judgment')} repeated alike, counted once;"
                        f" the first is query {show(query)}, document {show(document)}")
    if negatives:
        warnings.append(f"{name}: {plural(negatives, 'negative grade')}, counted as grade 0: no gain, not relevant")
    return warnings


def _json_qrels(source, max_grade):
    judged, negatives, empty = {}, 0, []
    for query, documents in json_queries(source):
        for document, grade in documents.items():
            _check_json_grade(grade, max_grade, f"{source.name}: query {show(query)}, document {show(document)}")
            negatives += grade < 0
            judged.setdefault(query, {})[document] = max(grade, 0)
        if not documents:
            empty.append(query)
    if not judged:
        raise RecordError(f"{source.name}: no judgments; expected {{query: {{document: grade}}}}, got {some(empty)} without any")
    warnings = _qrels_warnings(source.name, [], negatives)
    if empty:
        warnings.append(f"{source.name}: {plural(len(empty), 'query')} without a judgment, left out: {some(empty)}")
    return Qrels(source.name, judged, warnings)


def _check_json_grade(grade, max_grade, place):
    if type(grade) is not int or grade > max_grade:
        expected = f"a grade in 0..{max_grade}" if type(grade) is int else "an integer as grade"
        swapped = "; are the qrels and the run swapped?" if type(grade) is float else ""
        raise RecordError(f"{place}: expected {expected}, got {grade}{swapped}")


def json_queries(source):
    """(query, {document: number}) of a ranx JSON file, {query: {document: number}}; ids as bytes.

    A query can have no document: that is an empty ranking.
    """
    from metrics import quote

    content = _json_content(source)
    if not isinstance(content, dict) or not content:
        raise RecordError(f"{source.name}: top level: expected an object {{query: {{document: number}}}}, got {quote(content)}")
    for query, documents in content.items():
        if not isinstance(documents, dict):
            raise RecordError(f"{source.name}: query {visible(query)}: expected an object {{document: number}},"
                              f" got {quote(documents)}")
        for document, number in documents.items():
            if type(number) not in (int, float) or abs(number) > 1e308:
                place = f"{source.name}: query {visible(query)}, document {visible(document)}"
                raise RecordError(f"{place}: expected a number, got {quote(number)}")
        yield _id(query), {_id(document): number for document, number in documents.items()}


def _json_content(source):
    """The value of a file that is read as JSON. The error says why it is, since columns can be taken for JSON, too."""
    from metrics import decode_utf8, parse_json

    content = source.read()
    try:
        return parse_json(decode_utf8(content, source.name), source.name)
    except RecordError as error:
        why = source.why_json()
        raise RecordError([problem + why for problem in error.problems]) from None


def _id(text):
    return text.encode("utf-8", "surrogatepass")


def read_pairs(path):
    """{query: {documents}} of a file of pairs: qid docid, or the columns of qrels, whose grades are not looked at."""
    pairs = {}
    with Source(path) as source:
        for number, fields in source.lines():
            if not 2 <= len(fields) <= 4:
                raise RecordError(f"{source.name}: line {number}: expected a pair (qid docid) or the columns of qrels,"
                                  f" got {found_fields(fields, 4)}")
            pairs.setdefault(fields[0], set()).add(fields[2 if len(fields) == 4 else 1])
    return pairs
