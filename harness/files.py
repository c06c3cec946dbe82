"""Reads text and JSON lines, hashes files and configurations, and shows progress."""

import sys
import time

from metrics import RecordError, decode_utf8, parse_json, read_bytes


def read_text(path):
    """The text of a UTF-8 file, without its byte-order mark. Raises RecordError that names the file and what is wrong."""
    return decode_utf8(read_bytes(path), path)


def read_jsonl(path):
    """The values of a JSON Lines file as (line number, value) pairs; blank lines are skipped.

    Only LF and CRLF end a line: U+2028 inside a string does not. Raises RecordError that names file and line, also
    for a file without any value.
    """
    rows = [(number, parse_json(line, f"{path}: line {number}"))
            for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]
    if not rows:
        raise RecordError(f"{path}: no lines with a value; expected one JSON object a line")
    return rows


def sha256_of(path):
    """The SHA-256 of a file's bytes, in hexadecimal digits."""
    from hashlib import sha256

    return sha256(read_bytes(path)).hexdigest()


def canonical_hash(value):
    """The SHA-256 of a JSON value written one way only: keys sorted, no spaces, ASCII."""
    import json
    from hashlib import sha256

    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode("ascii")).hexdigest()


class Progress:
    """Shows how far long work is, on stderr when that is a terminal, and nothing otherwise.

    with Progress(len(queries), "queries") as progress: … progress.step()
    """

    def __init__(self, total, what):
        self.total, self.what, self.done = total, what, 0
        self.shown = sys.stderr.isatty()
        self.start = self.last = time.monotonic()

    def __enter__(self):
        return self

    def step(self, count=1):
        """Count work as done; redraw at most ten times a second."""
        self.done += count
        now = time.monotonic()
        if self.shown and now - self.last >= 0.1:
            self.last = now
            rate = self.done / (now - self.start)
            left = (self.total - self.done) / rate
            pace = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
            sys.stderr.write(f"\r{self.done:,} of {self.total:,} {self.what}, {pace}/s, {left:,.0f} s left \x1b[K")
            sys.stderr.flush()

    def __exit__(self, *_):
        if self.shown:
            sys.stderr.write("\r\x1b[K")
