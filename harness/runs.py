"""Reads runs and qrels: TREC, BEIR, ranx and MS MARCO files of any length, plain, gzipped or from a pipe.

    read_qrels(path)  -> Qrels     every judgment: {query: {document: grade}}
    rankings(path)    -> iterator  one (query, documents, scores) per query, best first
    mark(…)           -> bytes     a ranking as one byte per position: its grade, UNJUDGED or ABSTAINED

Ids are bytes exactly as they stand in the file: "0012" is not "12", and a no-break space is a character like any other.

A run is read in one of two ways, the second for what the first cannot prove. Each has a form for runs in which a query's lines
do not stand together, which holds the whole run.

    fast   blocks of whole lines, split once; column positions and the order of the scores are proved, not parsed
    lines  line by line; names file and line of whatever is wrong

Both give the same rankings; a test compares them on thousands of small files.
"""

import os
import sys
from collections import namedtuple
from itertools import islice, repeat
from math import isfinite
from operator import eq

from metrics import EXCLUDED, MAX_GRADE, RecordError

UNJUDGED = EXCLUDED  # the byte of a position whose passage is in no judgment
ABSTAINED = EXCLUDED - 1  # the byte of a position whose pair was left out of the judgments on purpose
BLOCK = 128 * 1024  # bytes read at once: the tokens of a block stay in the processor's cache
LONGEST_LINE = 2**20  # bytes; a longer line is no line of a run
SHOW_PROGRESS = 16 * 2**20  # bytes; a smaller file is read before anybody looks
EXACT_DIGITS = 15  # decimals of up to 15 digits differ as floats wherever they differ as text
DIGITS = b"0123456789"

RUN_COLUMNS = "6 fields (qid Q0 docid rank score tag)"
MARCO_COLUMNS = "3 fields (qid docid rank)"
QRELS_COLUMNS = "4 fields (qid iter docid grade) or 3 (BEIR: query-id corpus-id score)"
BEIR_HEADER = [b"query-id", b"corpus-id", b"score"]

# judged: {query: {document: grade}}, in file order; a negative grade is kept as 0 and counted in a warning
Qrels = namedtuple("Qrels", "name judged warnings")


class Unproven(Exception):
    """A way of reading cannot prove its result; the next one decides."""


# Files


class Source:
    """A file to read, unzipped on the way, that can be read again from the start. "-" is standard input.

    Every failure is a RecordError: a missing or changed file, a directory, a damaged or truncated gzip file.
    """

    def __init__(self, path, start=0, end=None):
        self.start, self.end = start, end  # the part of an unzipped file that is read
        self.name = "standard input" if os.fspath(path) == "-" else os.fspath(path)
        self.progress = None
        try:
            if self.name != os.fspath(path) and not sys.stdin:
                raise RecordError("standard input: closed; expected a run or qrels on it")
            self.raw = sys.stdin.buffer if self.name != os.fspath(path) else open(path, "rb", BLOCK)
        except OSError as error:
            raise RecordError(f"{self.name}: cannot be read: {error.strerror}") from None

    def __enter__(self):
        try:
            self._start()
        except OSError as error:
            self.raw.close()
            raise RecordError(f"{self.name}: cannot be read: {error.strerror}") from None
        return self

    def _start(self):
        if not self.raw.seekable():
            self.raw = self._spooled()
        self.before = os.fstat(self.raw.fileno())
        self.file = self.raw
        if self.peek(2) == b"\x1f\x8b":
            import gzip

            self.file = gzip.GzipFile(fileobj=self.raw)
        size = self.end or self.before.st_size
        if size > SHOW_PROGRESS and not self.start and sys.stderr.isatty():
            from harness.files import Progress

            self.progress = Progress(size, f"bytes of {self.name}")

    def _spooled(self):
        """A pipe's bytes in an unnamed temporary file, since they come only once."""
        import shutil
        import tempfile

        spool = tempfile.TemporaryFile()
        with self.raw as pipe:
            shutil.copyfileobj(pipe, spool, BLOCK)
        spool.seek(0)
        return spool

    def __exit__(self, *_):
        if self.progress:
            self.progress.__exit__()
        self.raw.close()

    def peek(self, size):
        """The first bytes, which will be read again."""
        content = self.raw.read(size)
        self.raw.seek(self.start)
        return content

    def read(self, size=-1):
        """The next bytes; none at the end, where the file must still be the one that was opened."""
        try:
            content = self.file.read(size if self.end is None else min(size, self.end - self.raw.tell()))
        except (OSError, EOFError) as error:
            why = "the gzip file is damaged or cut short" if self.file is not self.raw else error.strerror
            raise RecordError(f"{self.name}: cannot be read to its end: {why}") from None
        except Exception as error:  # zlib.error, which is not imported for files that are not gzipped
            if type(error).__name__ != "error":
                raise
            raise RecordError(f"{self.name}: cannot be read to its end: the gzip file is damaged") from None
        if self.progress:
            self.progress.step(self.raw.tell() - self.progress.done)
        if not content or size < 0:
            self._check_unchanged()
        return content

    def _check_unchanged(self):
        now = os.fstat(self.raw.fileno())
        if (now.st_size, now.st_mtime_ns) != (self.before.st_size, self.before.st_mtime_ns):
            raise RecordError(f"{self.name}: changed while it was read; nothing was computed from it")

    def rewind(self):
        """Start again at the first byte."""
        self.file.seek(self.start)

    def blocks(self):
        """Blocks of whole lines, each ending in a line feed, without byte-order mark and without blank lines at the end."""
        rest = b"" if self.start else self.read(3)
        if rest[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise RecordError(f"{self.name}: UTF-16, by its first two bytes; save it as UTF-8")
        rest = b"" if rest == b"\xef\xbb\xbf" else rest
        while content := self.read(BLOCK):
            end = content.rfind(b"\n") + 1
            if end:
                yield rest + content[:end]
                rest = content[end:]
            else:
                rest += content
                if len(rest) > LONGEST_LINE:
                    raise RecordError(f"{self.name}: a line of more than {LONGEST_LINE:,} bytes;"
                                      " expected lines of a run or of qrels")
        if rest:
            yield rest + b"\n"

    def raw_lines(self):
        """(line number, bytes) of every line that is not blank."""
        number = 0
        for block in self.blocks():
            for line in block[:-1].split(b"\n"):
                number += 1
                if line.strip():
                    yield number, line

    def lines(self):
        """(line number, fields) of every line that is not blank. Fields are separated by ASCII spaces and tabs."""
        for number, line in self.raw_lines():
            yield number, line.split()


def printable(token):
    """An id as a table shows it: control characters, and bytes that are no UTF-8, are escaped."""
    text = token.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def show(token):
    """An id or a field as a message shows it: printable, and at most 60 characters."""
    text = printable(token)
    return text if len(text) <= 60 else text[:57] + "..."


def some(ids):
    """The first five of some ids, as a note names them."""
    return ", ".join(map(show, ids[:5])) + (", …" if len(ids) > 5 else "")


def text_of(token, name):
    """An id as text, for a file that is written. Raises RecordError if it is not UTF-8."""
    try:
        return token.decode("utf-8")
    except UnicodeDecodeError:
        raise RecordError(f"{name}: expected ids in UTF-8, got {show(token)}; save the file as UTF-8") from None


# Qrels


def read_qrels(path, max_grade=3):
    """The judgments of a qrels file: TREC's four columns, BEIR's three with or without header, or ranx JSON.

    A judgment that stands there twice alike is counted in a warning. Raises RecordError that names the line for a
    wrong number of columns, a grade that is no integer or over max_grade, and two different grades of one pair.
    """
    with Source(path) as source:
        if source.name.endswith(".json") or source.peek(1) == b"{":
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
        block = _spaced(block)
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
    tokens = _columns(block, width)
    documents = tokens[width - 2::width - 1]
    if not (all(documents) and (width == 3 or all(tokens[1::3]))):
        raise Unproven
    ends = tokens[::width - 1]
    ends[0] = b"0\n" + ends[0]  # as if a line stood before the first one, and one after the last
    ends[-1] += b"\n-"
    queries = list(map(heads.__getitem__, ends))
    grades = list(map(heads.grades.__getitem__, islice(ends, 1, None)))
    queries.pop()
    for start, end in _stretches(queries):
        yield queries[start], documents[start:end], grades[start:end]


def _spaced(block):
    """A block whose fields are separated by spaces and whose lines end in line feeds alone."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if b"\t" in block:
        block = block.replace(b"\t", b" ")
    if b"\r" in block or b"\v" in block or b"\f" in block:
        raise Unproven
    return block


def _columns(block, width):
    """The tokens of a block in which every line is proved to have `width` fields, with single spaces between them.

    Split at spaces alone, the last field of a line and the first of the next are one token with a line feed in it, at every
    multiple of width - 1. As many line feeds as lines then show that no other token holds one, once the caller has found
    one in each of those; and that no token between them is empty is for the caller to see, too.
    """
    tokens = block[:-1].split(b" ")
    lines, over = divmod(len(tokens), width - 1)
    if over != 1 or block.count(b"\n") != lines:
        raise Unproven
    return tokens


def _stretches(values):
    """(start, end) of each stretch of equal values."""
    start, length, size = 0, 1, len(values)
    while start < size:
        value, end = values[start], start + length
        if end > size or values[end - 1] != value or (end < size and values[end] == value):
            end = _stretch_end(values, start)
        if values[start:end].count(value) != end - start:  # equal values stand apart, which halving does not see
            end = start + next((place for place, other in enumerate(islice(values, start, end)) if other != value))
        yield start, end
        start, length = end, end - start  # most queries have as many lines as the one before


def _stretch_end(values, start):
    """Where the values stop being equal to the one at start, by halving, which is right if equal values stand together."""
    value, last, end = values[start], start, len(values)
    while end - last > 1:
        middle = (last + end) // 2
        if values[middle] == value:
            last = middle
        else:
            end = middle
    return end


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
            raise RecordError(f"{place}: expected {expected}, got {_fields(fields, width)}")
        query, document, grade = fields[0], fields[-2], parse_grade(fields[-1], max_grade, place)
        negatives += grade < 0
        documents = judged.setdefault(query, {})
        if document in documents:
            if documents[document] != max(grade, 0):
                raise RecordError(f"{place}: query {show(query)}, document {show(document)}: grade {grade} here,"
                                  f" {documents[document]} on line {first[query, document]}; expected one judgment of the pair")
            repeats.append((query, document))
        documents[document] = max(grade, 0)
        first.setdefault((query, document), number)
    if not judged:
        raise RecordError(f"{source.name}: no judgments; expected lines of {QRELS_COLUMNS}")
    return Qrels(source.name, judged, _qrels_warnings(source.name, repeats, negatives))


def _fields(fields, width):
    """What a line holds in place of the expected fields, and the likely reason."""
    why = "; a space inside an id, or in the run's tag?" if len(fields) > width else ""
    return f"{len(fields)} fields: {show(b' '.join(fields))}{why}"


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
        warnings.append(f"{name}: {count_of(len(repeats), 'judgment')} repeated alike, counted once;"
                        f" the first is query {show(query)}, document {show(document)}")
    if negatives:
        warnings.append(f"{name}: {count_of(negatives, 'negative grade')}, counted as grade 0: no gain, not relevant")
    return warnings


def count_of(number, noun):
    """A number with its noun: 1 query, 2 queries."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def _json_qrels(source, max_grade):
    judged, negatives = {}, 0
    for query, document, grade in _json_pairs(source):
        if type(grade) is not int or grade > max_grade:
            expected = f"a grade in 0..{max_grade}" if type(grade) is int else "an integer as grade"
            raise RecordError(f"{source.name}: query {query}, document {document}: expected {expected}, got {grade}")
        negatives += grade < 0
        judged.setdefault(query.encode(), {})[document.encode()] = max(grade, 0)
    return Qrels(source.name, judged, _qrels_warnings(source.name, [], negatives))


def _json_pairs(source):
    """(query, document, number) of a ranx JSON file: {query: {document: number}}."""
    from metrics import decode_utf8, parse_json, quote

    content = parse_json(decode_utf8(source.read(), source.name), source.name)
    if not isinstance(content, dict) or not content:
        raise RecordError(f"{source.name}: top level: expected an object {{query: {{document: number}}}}, got {quote(content)}")
    for query, documents in content.items():
        if not isinstance(documents, dict):
            raise RecordError(f"{source.name}: query {query}: expected an object {{document: number}}, got {quote(documents)}")
        for document, number in documents.items():
            if type(number) not in (int, float):
                raise RecordError(f"{source.name}: query {query}, document {document}: expected a number, got {quote(number)}")
            yield query, document, number


def read_pairs(path):
    """{query: {documents}} of a file of pairs: qid docid, or the columns of qrels, whose grades are not looked at."""
    pairs = {}
    with Source(path) as source:
        for number, fields in source.lines():
            if not 2 <= len(fields) <= 4:
                raise RecordError(f"{source.name}: line {number}: expected a pair (qid docid) or the columns of qrels,"
                                  f" got {_fields(fields, 4)}")
            pairs.setdefault(fields[0], set()).add(fields[2 if len(fields) == 4 else 1])
    return pairs


# Runs


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
    if source.name.endswith(".json") or source.peek(1) == b"{":
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
        equal = list(map(eq, scores, islice(scores, 1, None)))
        if True in equal:
            documents = _sort_ties(documents, equal)
    return (documents, scores) if depth is None or len(documents) <= depth else (documents[:depth], scores[:depth])


def _sort(documents, scores):
    """Documents and scores by score descending; equal scores keep their order."""
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    return [documents[place] for place in order], [scores[place] for place in order]


def _sort_ties(documents, equal):
    """The documents with each group of equal scores by id descending; equal[i] says that positions i and i + 1 tie."""
    documents = documents[:]
    equal.append(False)
    end = 0
    while True in equal[end:]:
        start = equal.index(True, end)
        end = equal.index(False, start) + 1
        documents[start:end] = sorted(documents[start:end], reverse=True)
    return documents


def _fast(source, _):
    """The queries of a well-formed run whose lines stand together. Raises Unproven for all others."""
    seen, query, documents, scores, shape = set(), None, [], [], None
    for block in source.blocks():
        for next_query, more_documents, more_scores, next_shape in _segments(_spaced(block)):
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
        for query, documents, scores, _ in _segments(_spaced(block)):
            held = queries.setdefault(query, ([], []))
            held[0].extend(documents)
            held[1].extend(scores)
    if not queries:
        raise Unproven
    for query, (documents, scores) in queries.items():
        yield _proved(query, documents, scores, None)


def _segments(block):
    """(query, documents, scores, shape of the scores) of each stretch of lines of one query in a block of a run."""
    tokens = _columns(block, 6)
    if not (all(tokens[1::5]) and all(tokens[3::5])):
        raise Unproven
    heads = tokens[:-1:5]
    heads[0] = tokens[-1] + b"\n" + heads[0]  # as if the last line's tag stood before the first line
    documents, scores = tokens[2::5], tokens[4::5]
    shape = _decimal_shape(scores)
    for start, end in _stretches(heads):
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
    same = (point >= 0 and width <= EXACT_DIGITS + 1
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
                          f" got {_fields(fields, 3 if marco else 6)}{hint}")
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
    queries = {}
    for query, document, score in _json_pairs(source):
        queries.setdefault(query.encode(), {})[document.encode()] = float(score)
    for query, documents in queries.items():
        yield query, list(documents), list(documents.values())


FAST_WAYS = (_fast, _fast_scattered)
PLAIN_WAYS = (_lines_together, _lines_scattered)


def mark(documents, judged):
    """A ranking as bytes: each document's grade, or UNJUDGED where it has none.

    >>> list(mark([b"d1", b"d7", b"d2"], {b"d1": 2, b"d2": 0}))
    [2, 255, 0]
    """
    return bytes(map(judged.get, documents, repeat(UNJUDGED)))


def no_query_in_common(name, ran, judged):
    """The error for a run and judgments whose query ids never meet, with two ids of each to compare."""
    def sample(ids):
        return ", ".join(map(show, sorted(ids)[:2]))

    return RecordError(f"{name}: no query id in common: {count_of(len(ran), 'run query')} ({sample(ran)}),"
                       f" {count_of(len(judged), 'judged query')} ({sample(judged)}); are these the same topics?")
