"""Golden sets: questions with what a search must find for them, read from JSON Lines and checked line by line.

A line is an object with id, question, type, answerable, relevant_chunks and/or relevant_spans, and optionally
expected_answer and split ("tuning" or "holdout"). Validation is here, once; see load_golden.
"""

import os
from difflib import get_close_matches
from typing import NamedTuple

from harness.documents import as_id, plain, shown, text_problem
from harness.files import canonical_hash, read_jsonl
from metrics import RecordError, quote

KEYS = ("id", "question", "type", "answerable", "relevant_chunks", "relevant_spans", "expected_answer", "split")
PARTS = ("tuning", "holdout")
UNTYPED = "untyped"


class Span(NamedTuple):
    """A stretch of a document: characters start to end; quote is the text that must be there, or None."""

    doc: str
    start: int
    end: int
    quote: str | None


class Item(NamedTuple):
    """One question. `value` is the object it was read from, `place` its file and line."""

    id: str
    question: str
    type: str
    answerable: bool
    chunks: tuple
    spans: tuple
    expected_answer: str | None
    split: str | None
    value: dict
    place: str


class GoldenSet(NamedTuple):
    """Questions, the SHA-256 of their content, and warnings.

    The hash leaves out what changes nothing: order, spaces, line ends, and where a quoted span stands at the moment.
    """

    name: str
    sha256: str
    items: tuple
    warnings: tuple


def load_golden(paths, documents=None, chunks=None):
    """A GoldenSet from one JSON Lines file or several.

    documents ({id: Document}) checks that every quote is at its span; chunks ({id: Chunk}) checks that the chunk ids that
    count are in the index. Raises RecordError that lists every problem with file and line; also for an empty set.
    """
    paths = paths_of(paths)
    problems, warnings = [], []
    items = read_items(paths, problems, warnings)
    check_documents(items, documents, problems)
    check_chunks(items, chunks, problems)
    if problems:
        raise RecordError(problems)
    return golden_set(", ".join(map(os.fspath, paths)), items, warnings)


def paths_of(paths):
    """A list of paths from one or several. Raises RecordError."""
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(paths, (list, tuple)) or not paths or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise RecordError("golden: expected the path of a golden set, a list of paths, or what load_golden gave,"
                          f" got {shown(paths)}")
    return list(paths)


def read_items(paths, problems, warnings):
    """The items of files, as far as they are sound; what is wrong goes to the lists."""
    items = {}
    for path in paths:
        for line, value in read_jsonl(path):
            item = _Reader(value, f"{path}: line {line}", problems, warnings).read()
            if item and item.id in items:
                problems.append(f"{item.place}: id: duplicate id {plain(item.id)}, also at {items[item.id].place}")
            elif item:
                items[item.id] = item
    return list(items.values())


def golden_set(name, items, warnings=()):
    """A GoldenSet of these items. Raises RecordError if there is none to score."""
    items = tuple(items)
    if not any(item.answerable for item in items):
        raise RecordError(f"{name}: no answerable question, so there is nothing to score; expected at least one")
    content = canonical_hash([content_of(item) for item in sorted(items, key=lambda item: item.id)])
    return GoldenSet(name, content, items, tuple(warnings))


def content_of(item):
    """An item's object, its quoted spans without their places: an edit elsewhere in the document moves them."""
    spans = [{"doc": span.doc, "quote": span.quote} if span.quote else span._asdict() for span in item.spans]
    return {**item.value, "relevant_spans": spans} if spans else item.value


class _Reader:
    """Reads one line's object into an Item; notes every problem with its place."""

    def __init__(self, value, place, problems, warnings):
        self.value, self.place, self.problems, self.warnings = value, place, problems, warnings
        self.sound = True

    def problem(self, key, expected, found):
        self.sound = False
        self.problems.append(f"{self.place}: {key}: expected {expected}, got {found}")

    def read(self):
        """The Item, or None after noting what is wrong."""
        if not isinstance(self.value, dict):
            self.sound = False
            self.problems.append(f"{self.place}: expected an object with id and question, got {quote(self.value)}")
            return None
        self.check_keys()
        name, answerable = self.id("id", self.value.get("id")), self.value.get("answerable", True)
        if not isinstance(answerable, bool):
            self.problem("answerable", "true or false", quote(answerable))
        kind = self.kind()
        part = self.value.get("split")
        if part is not None and part not in PARTS:
            self.problem("split", '"tuning" or "holdout"', plain(part))
        chunks, spans = self.chunks(), self.spans()
        if answerable is True and not chunks and not spans and self.sound:
            self.problem("relevant_chunks", "at least one chunk or span, as the question is answerable",
                         "none" + self.guess("relevant_chunks", "relevant_spans", "answerable"))
        if answerable is False and (chunks or spans):
            self.problem("relevant_chunks", "none, as the question is not answerable", f"{len(chunks) + len(spans)}")
        answer = self.value.get("expected_answer")
        if answer is not None and not isinstance(answer, str):
            self.problem("expected_answer", "text", quote(answer))
        question = self.text("question")
        if not self.sound:
            return None
        return Item(name, question, kind, answerable, chunks, spans, answer, part, self.value, self.place)

    def check_keys(self):
        """Warn of a key that looks like a misspelt one. Other keys are the user's own."""
        for key in self.value:
            close = get_close_matches(key, KEYS, 1, 0.8)
            if key not in KEYS and close and close[0] not in self.value:
                self.warnings.append(f"{self.place}: {key}: unknown key, not used; did you mean {close[0]}?")

    def guess(self, *wanted):
        """A hint at a misspelt key."""
        found = [key for key in self.value if key not in KEYS and get_close_matches(key, wanted, 1, 0.7)]
        return f" (is {plain(found[0])} misspelt?)" if found else ""

    def id(self, key, value):
        try:
            return as_id(value)
        except ValueError as error:
            self.sound = False
            self.problems.append(f"{self.place}: {key}: {error}")

    def text(self, key):
        """A text that is not blank and can be written to a file."""
        value = self.value.get(key)
        if not isinstance(value, str) or not value.strip():
            self.problem(key, "text", ("a blank text" if isinstance(value, str) else quote(value) if key in self.value
                                       else "nothing: it is missing" + self.guess(key)))
        elif any("\ud800" <= character <= "\udfff" for character in value):
            self.problem(key, "text", "a lone surrogate in " + ascii(value)[:60])
        return value

    def kind(self):
        """The type: a name as an id is one, and not that of the row over all types."""
        if "type" not in self.value:
            return UNTYPED
        kind = self.text("type")
        if kind == "overall":
            self.problem("type", "another name than that of all types together", '"overall"')
        try:
            text_problem(str(kind))
        except ValueError as error:
            self.sound = False
            self.problems.append(f"{self.place}: type: {error}")
        return kind

    def list(self, key):
        value = self.value.get(key)
        if value is not None and not isinstance(value, list):
            self.problem(key, "a list", quote(value))
            return []
        return value or []

    def chunks(self):
        """The distinct chunk ids."""
        names = [self.id(f"relevant_chunks[{at}]", value) for at, value in enumerate(self.list("relevant_chunks"))]
        if len(set(names)) < len(names):
            self.warnings.append(f"{self.place}: relevant_chunks: the same chunk more than once; it counts once")
        return tuple(dict.fromkeys(names))

    def spans(self):
        return tuple(self.span(value, f"relevant_spans[{at}]") for at, value in enumerate(self.list("relevant_spans")))

    def span(self, value, key):
        if not isinstance(value, dict):
            return self.problem(key, "an object with doc, start, end and quote", quote(value))
        start, end, text = value.get("start"), value.get("end"), value.get("quote")
        if type(start) is not int or type(end) is not int or not 0 <= start < end:
            self.problem(key, "whole numbers start and end, 0 <= start < end", f"{quote(start)} and {quote(end)}")
        if text is not None and (not isinstance(text, str) or not text):
            self.problem(f"{key}.quote", "the text of the span", quote(text))
        return Span(self.id(f"{key}.doc", value.get("doc")), start, end, text)


def closest_document(name, documents):
    """The end of a message about a document that is not there: which one is likely to be meant, else which there are."""
    names = list(documents)
    near = [known for known in names if known.split("/")[-1] == name.split("/")[-1]][:1]
    return f"; did you mean {plain(near[0])}?" if near else f"; expected one of {', '.join(map(plain, names[:5]))}" + ", ..." * (len(names) > 5)


def check_documents(items, documents, problems):
    """Note every span whose document or quote is not there."""
    for item in items if documents is not None else ():
        for at, span in enumerate(item.spans):
            if problem := span_problem(span, documents):
                problems.append(f"{item.place}: relevant_spans[{at}]: {problem}")


def span_problem(span, documents):
    """What is wrong with a span's place in its document, or None."""
    if span.doc not in documents:
        return f"no document {plain(span.doc)}{closest_document(span.doc, documents)}"
    text = documents[span.doc].text
    if span.quote is None:
        return f"end {span.end} is beyond the document's {len(text):,} characters" if span.end > len(text) else None
    found = text[span.start:span.end]
    if found == span.quote:
        return None
    times = text.count(span.quote)
    where = ("it is not in the document" if not times else f"it is there {times:,} times" if times > 1
             else f"it is at {text.index(span.quote)}; golden check --reanchor moves the span there")
    return f"expected the quote {plain(span.quote)} at {span.start} to {span.end} of {plain(span.doc)}, got {plain(found)}; {where}"


def check_chunks(items, chunks, problems):
    """Note every relevant chunk id that counts and is not in the index."""
    if chunks is None:
        return
    positioned = any(chunk.doc is not None for chunk in chunks.values())
    if not positioned:
        problems += span_needs(items)
    for item in items:
        if item.spans and positioned:
            continue
        problems += [f"{item.place}: relevant_chunks: no chunk {plain(name)} in the index"
                     for name in item.chunks if name not in chunks]


def span_needs(items):
    """What to say, in one sentence, of answerable questions that have spans only where no chunks with places are known."""
    bare = [item for item in items if item.answerable and not item.chunks]
    if not bare:
        return []
    others = f" and in {len(bare) - 1} other question{'s' * (len(bare) > 2)}" if len(bare) > 1 else ""
    return [f"{bare[0].place}: relevant_spans: here{others}, the chunks of the index are needed to"
            " find those that hold them: --chunks FILE.jsonl (chunks= in Python) with id, doc, start and end of each, or with id,"
            " doc and text, and --docs (docs=)"]


def reanchored(item, documents):
    """(the item's object with its spans moved to where their quotes are, number of spans moved); a quote must be there once."""
    spans, moved = [], 0
    for span, value in zip(item.spans, item.value.get("relevant_spans") or ()):
        text = documents[span.doc].text if span.doc in documents else ""
        if span.quote and span_problem(span, documents) and text.count(span.quote) == 1:
            start = text.index(span.quote)
            value, moved = {**value, "start": start, "end": start + len(span.quote)}, moved + 1
        spans.append(value)
    return ({**item.value, "relevant_spans": spans} if moved else item.value), moved
