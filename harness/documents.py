"""Reads the documents that a golden set is about and the chunks that an index is made of.

Positions are counted in characters of the document's text. Ids of any kind (questions, documents, chunks) are text; a
whole number is the text of its digits, so that 7 and "7" are one id.
"""

import os
import re
from collections.abc import Mapping
from operator import index
from typing import NamedTuple

from harness.files import read_jsonl, read_text
from metrics import RecordError, quote

KIND = re.compile(r" \((?:a string|a list|an object)\)$")
MEMBERS = ("id", "text", "doc", "start", "end")
MOST = 5  # chunks that are named when many are not at their place


class Document(NamedTuple):
    """A text that chunks are cut from."""

    id: str
    text: str


class Chunk(NamedTuple):
    """What an index returns: document.text[start:end]. doc, start and end are None where nobody knows them."""

    id: str
    doc: str | None
    start: int | None
    end: int | None
    text: str


def plain(value):
    """A value as an error shows it, without its kind: for names, and where the words around it say what kind it is."""
    return KIND.sub("", quote(value))


def shown(value):
    """A value of any kind as an error shows it: its type's name, and the value where it can be written."""
    if value is None:
        return "None"
    try:
        return f"the text {plain(value)}" if isinstance(value, str) else f"{type(value).__name__} {plain(value)}"
    except Exception:  # a foreign object may fail at anything that is asked of it
        return type(value).__name__


def as_id(value):
    """The text of an id given as text or as a whole number (also a whole number of another library).

    Never goes through a float: 90071992547409931 stays what it is. Raises ValueError that says what is wrong.
    """
    if isinstance(value, str):
        text = str(value)
    elif type(value).__name__ in ("bool", "bool_"):
        raise ValueError(f"expected an id (text or a whole number), got {quote(bool(value))}")
    else:
        try:
            text = str(index(value))
        except (TypeError, ValueError):
            raise ValueError(f"expected an id (text or a whole number), got {'nothing' if value is None else shown(value)}") from None
    if not text.isprintable():
        text_problem(text)
    if not text.strip():
        raise ValueError("expected an id, got an empty text")
    return text


def text_problem(text):
    """Raise ValueError for the characters that no id can have: control characters and lone surrogates."""
    for character in text:
        if character < " " or character == "\x7f" or "\ud800" <= character <= "\udfff":
            kind = "a lone surrogate" if character > "\x7f" else "a control character"
            raise ValueError(f"expected an id, got {kind} U+{ord(character):04X} in {ascii(text)[:60]}")


def read_documents(paths):
    """The documents in files and folders as {id: Document}.

    A .jsonl file has one {"id": …, "text": …} a line. Any other file is one text, and a folder is every .md and .txt file
    in it; their id is the path as it was given, with /, and their line ends count as one character each. Raises
    RecordError that lists every problem.
    """
    documents, problems = {}, []
    for path in map(os.fspath, paths):
        for place, document in _documents_of(path, problems):
            if document.id in documents:
                problems.append(f"{place}: id: duplicate document id {plain(document.id)}")
            documents[document.id] = document
    if problems:
        raise RecordError(problems)
    return documents


def _documents_of(path, problems):
    """(place, Document) of everything that a path stands for."""
    if os.path.isdir(path):
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path)
                       for name in names if name.endswith((".md", ".txt")))
        if not files:
            problems.append(f"{path}: no .md or .txt file in this folder")
    elif path.endswith(".jsonl"):
        for line, value in read_jsonl(path):
            place = f"{path}: line {line}"
            if (members := read_members(value, place, problems)) is not None:
                yield place, Document(*members)
        return
    else:
        files = [path]
    for file in files:
        text = read_text(file).replace("\r\n", "\n")
        yield file, Document(os.path.normpath(file).replace(os.sep, "/"), text)


def read_members(value, place, problems):
    """(id, text) of a document or chunk, or None after noting what is wrong."""
    if not isinstance(value, dict):
        problems.append(f"{place}: expected an object with id and text, got {quote(value)}")
        return None
    text = value.get("text", "")
    if not isinstance(text, str):
        problems.append(f"{place}: text: expected text, got {quote(text)}")
        return None
    try:
        return as_id(value.get("id")), text
    except ValueError as error:
        problems.append(f"{place}: id: {error}")
        return None


def read_chunks(path, documents=None):
    """The chunks of an index as {id: Chunk}, in the order of the file.

    One {"id": …, "text": …, "doc": …, "start": …, "end": …} a line; text is needed for the embedded search, the rest for
    relevance by spans. A chunk with doc and text but no start is looked up in the document; one with all of them must be
    its document's text from start to end. Raises RecordError.
    """
    return _chunks([(f"{path}: line {line}", value) for line, value in read_jsonl(path)], path, documents)


def _chunks(rows, name, documents):
    """read_chunks, of (place, object) pairs."""
    chunks, problems, moved = {}, [], []
    for place, value in rows:
        if (members := read_members(value, place, problems)) is None:
            continue
        own, text = members
        if own in chunks:
            problems.append(f"{place}: id: duplicate chunk id {plain(own)}")
        try:
            chunks[own] = chunk = Chunk(own, *_position(value, text, documents), text)
        except ValueError as error:
            problems.append(f"{place}: {error}")
            continue
        if why := _misplaced(chunk, documents):
            moved.append(f"{place}: chunk {plain(own)}: {why}")
    problems += moved[:MOST]
    if len(moved) > MOST:
        problems.append(f"{name}: {len(moved) - MOST:,} more chunks whose text is not at its place")
    known = sum(chunk.doc is not None for chunk in chunks.values())
    if 0 < known < len(chunks):
        problems.append(f"{name}: {known:,} of {len(chunks):,} chunks have a position; expected all of them or none")
    if problems:
        raise RecordError(problems)
    return chunks


def _misplaced(chunk, documents):
    """What is wrong with a chunk's place, where its text and its document are known; or None.

    A document that is a text file has its line ends counted as one character each, and so have its chunks.
    """
    if not documents or chunk.doc not in documents or not chunk.text:
        return None
    whole, wanted = documents[chunk.doc].text, chunk.text
    found = whole[chunk.start:chunk.end]
    if found == wanted or found == wanted.replace("\r\n", "\n"):
        return None
    where = (f"it is at {whole.index(wanted)} to {whole.index(wanted) + len(wanted)}" if whole.count(wanted) == 1
             else "expected characters, the end not included, of this text of the document")
    return (f"expected its text {plain(wanted)} at {chunk.start} to {chunk.end} of {plain(chunk.doc)},"
            f" got {plain(found)}; {where}")


def given_documents(value):
    """{id: Document} of what a caller gives: a path or several, a dict {id: text}, or objects with id and text; or None."""
    if value is None or _are_paths(value):
        return value if value is None else read_documents([value] if isinstance(value, (str, os.PathLike)) else value)
    documents, problems = {}, []
    for place, members in _given(value, "docs", "a path, a list of paths, or documents with id and text"):
        if (found := read_members(members, place, problems)) is None:
            continue
        if found[0] in documents:
            problems.append(f"{place}: id: duplicate document id {plain(found[0])}")
        documents[found[0]] = Document(*found)
    if problems:
        raise RecordError(problems)
    return documents


def given_chunks(value, documents=None):
    """{id: Chunk} of what a caller gives: a path, a dict by id, or a list of dicts or objects with id, doc, start, end, text."""
    if value is None or isinstance(value, (str, os.PathLike)):
        return value if value is None else read_chunks(os.fspath(value), documents)
    return _chunks(_given(value, "chunks", "a path, or chunks with id, doc, start, end and text"), "chunks", documents)


def _are_paths(value):
    """Whether this is a path or a list of paths."""
    return isinstance(value, (str, os.PathLike)) or (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(path, (str, os.PathLike)) for path in value))


def _given(value, name, expected):
    """(place, object with id and text) of everything in a dict by id or in a sequence. Raises RecordError."""
    if isinstance(value, (bytes, int, float)) or not hasattr(value, "__iter__"):
        raise RecordError(f"{name}: expected {expected}, got {shown(value)}")
    if isinstance(value, Mapping):
        places = [(f"{name}[{plain(key)}]", {"id": key}, member) for key, member in value.items()]
    else:
        places = [(f"{name}[{at}]", {}, member) for at, member in enumerate(value)]
    found = [(place, own, _members(member)) for place, own, member in places]
    if wrong := [f"{place}: expected an object with {', '.join(MEMBERS)}, got {shown(member)}"
                 for (place, _, member), (*_, members) in zip(places, found) if not members]:
        raise RecordError(wrong)
    return [(place, {**own, **members}) for place, own, members in found]


def _members(value):
    """What a dict or an object says of a document or chunk, as a dict; a bare text is its text."""
    if isinstance(value, str):
        return {"text": value}
    found = {key: value.get(key) if isinstance(value, Mapping) else getattr(value, key, None) for key in MEMBERS}
    return {key: member for key, member in found.items() if member is not None}


def _position(value, text, documents):
    """(doc, start, end) of a chunk, or Nones. Raises ValueError."""
    if value.get("doc") is None:
        return None, None, None
    doc, start, end = as_id(value["doc"]), value.get("start"), value.get("end")
    if start is None and end is None:
        if not documents or doc not in documents:
            return None, None, None
        times = documents[doc].text.count(text) if text else 0
        if times != 1:
            raise ValueError(f"start: missing, and the text is in document {plain(doc)} {times:,} times; expected once")
        start = documents[doc].text.index(text)
        return doc, start, start + len(text)
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        raise ValueError(f"start, end: expected whole numbers, 0 <= start < end, got {quote(start)} and {quote(end)}")
    return doc, start, end
