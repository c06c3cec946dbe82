"""Opens files of any kind and size, and shows what stands in them: plain or gzipped, pipes, standard input.

    Source(path)      a file that can be read again from the start: blocks of whole lines, lines, fields
    show, printable   bytes as a message or a table shows them; visible does the same for a text
    text_of           bytes as text for a file that is written
"""

import os
import sys
from functools import cache

from metrics import RecordError

BLOCK = 128 * 1024  # bytes read at once: the tokens of a block stay in the processor's cache
LONGEST_LINE = 2**20  # bytes; a longer line is no line of a run
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOW_PROGRESS = 16 * 2**20  # bytes; a smaller file is read before anybody looks


class Source:
    """A file to read, unzipped on the way, that can be read again from the start. "-" is standard input.

    Every failure is a RecordError: a missing or changed file, a directory, a damaged or truncated gzip file.
    """

    def __init__(self, path, start=0, end=None):
        self.start, self.end = start, end  # the part of an unzipped file that is read
        piped = os.fspath(path) == "-"
        self.name = "standard input" if piped else visible(os.fspath(path))  # it stands in messages
        self.progress = None
        try:
            if piped and not sys.stdin:
                raise RecordError("standard input: closed; expected a run or qrels on it")
            self.raw = sys.stdin.buffer if piped else open(path, "rb", BLOCK)
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

    def is_json(self):
        """Whether the file is JSON, by its name or its first character that is no white space."""
        return self._named_json() or self._begins_as_json()

    def why_json(self):
        """Why is_json took the file for JSON, and what to do if it is none: the end of a message."""
        named, begins = self._named_json(), self._begins_as_json()
        signs = ["its name ends in .json"] * named + ["its first character is {"] * begins
        remedies = ["another name"] * named + ["the lines of another query first"] * begins
        return f"; read as JSON because {' and '.join(signs)}; if it holds columns, it needs {' and '.join(remedies)}"

    def _named_json(self):
        return self.name.removesuffix(".gz").endswith(".json")

    def _begins_as_json(self):
        self.rewind()
        start = self.read(4096).removeprefix(BYTE_ORDER_MARK).lstrip()
        self.rewind()
        return start[:1] == b"{"

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
        _reuse_memory()
        rest = b"" if self.start else self.read(3)
        if rest[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise RecordError(f"{self.name}: UTF-16, by its first two bytes; save it as UTF-8")
        rest = rest.removeprefix(BYTE_ORDER_MARK)
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


@cache
def _reuse_memory():
    """Have glibc keep the memory of one block's lists for the next one, instead of giving it back and getting it anew.

    It keeps pieces up to the size of the largest that was freed. Without that a tenth of the time goes into page faults. Once is enough.
    """
    bytes(4 * 2**20)


def printable(token):
    """An id as a table shows it: control characters, and bytes that are no UTF-8, are escaped."""
    return visible(token.decode("utf-8", "backslashreplace"))


def visible(text):
    """A text on one line that steers no terminal: what is not printable is escaped, a line feed as \\x0a."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character):
    return f"\\x{ord(character):02x}" if ord(character) < 256 else ascii(character)[1:-1]


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


def found_fields(fields, width):
    """What a line holds in place of the expected fields, and the likely reason."""
    why = "; a space inside an id, or in the run's tag?" if len(fields) > width else ""
    if width == 4 and len(fields) == 6:
        why = "; this looks like a run: are the qrels and the run swapped?"
    if width == 6 and len(fields) == 4 and fields[3].isdigit():
        why = "; this looks like qrels: are the qrels and the run swapped?"
    return f"{len(fields)} fields: {show(b' '.join(fields))}{why}"
