"""Reads the documents that a golden set is about and the chunks that an index is made of.

Positions are counted in characters of the document's text. Ids of any kind (questions, documents, chunks) are text; a
whole number is the text of its digits, so that 7 and "7" are one id.
"""

import os
from operator import index
from typing import NamedTuple

from harness.files import read_jsonl, read_text
from metrics import RecordError, quote


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


def shown(value):
    """A value of any kind as an error shows it: its type's name, and the value where it can be written."""
    try:
        return f"{type(value).__name__} {quote(value)}"
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
            got = "nothing" if value is None else shown(value)
            raise ValueError(f"expected an id (text or a whole number), got {got}") from None
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
                problems.append(f"{place}: id: duplicate document id {quote(document.id)}")
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
        problems.append(f"{place}: text: expected a string, got {quote(text)}")
        return None
    try:
        return as_id(value.get("id")), text
    except ValueError as error:
        problems.append(f"{place}: id: {error}")
        return None


def read_chunks(path, documents=None):
    """The chunks of an index as {id: Chunk}, in the order of the file.

    One {"id": …, "text": …, "doc": …, "start": …, "end": …} a line; text is needed for the embedded search, the rest for
    relevance by spans. A chunk with doc and text but no start is looked up in the document. Raises RecordError.
    """
    chunks, problems = {}, []
    for line, value in read_jsonl(path):
        place = f"{path}: line {line}"
        if (members := read_members(value, place, problems)) is None:
            continue
        name, text = members
        if name in chunks:
            problems.append(f"{place}: id: duplicate chunk id {quote(name)}")
        try:
            chunks[name] = Chunk(name, *_position(value, text, documents), text)
        except ValueError as error:
            problems.append(f"{place}: {error}")
    known = sum(chunk.doc is not None for chunk in chunks.values())
    if 0 < known < len(chunks):
        problems.append(f"{path}: {known:,} of {len(chunks):,} chunks have a position; expected all of them or none")
    if problems:
        raise RecordError(problems)
    return chunks


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
            raise ValueError(f"start: missing, and the text is in document {quote(doc)} {times:,} times; expected once")
        start = documents[doc].text.index(text)
        return doc, start, start + len(text)
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        raise ValueError(f"start, end: expected whole numbers, 0 <= start < end, got {quote(start)} and {quote(end)}")
    return doc, start, end
