"""Reading text and JSON lines, hashing, and progress."""

import contextlib
import io
import unittest
from unittest import mock

from harness.files import Progress, canonical_hash, read_jsonl, read_text, sha256_of
from metrics import RecordError
from tests import TestCase


class Reading(TestCase):
    def test_lines(self):
        """A byte-order mark, CRLF, blank lines and a missing last line end make no difference; U+2028 ends no line."""
        path = self.write("a.jsonl", "\ufeff{\"a\": 1}\r\n\r\n  \n{\"a\": \"x\u2028y\"}")
        self.assertEqual(read_jsonl(path), [(1, {"a": 1}), (4, {"a": "x\u2028y"})])

    def test_bad_line_is_named(self):
        path = self.write("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n')
        with self.assertRaisesRegex(RecordError, r'a\.jsonl: line 2: top level: duplicate key "a"'):
            read_jsonl(path)

    def test_nothing_in_it(self):
        for content in ("", " \n\n"):
            with self.assertRaisesRegex(RecordError, r"a\.jsonl: no lines with a value"):
                read_jsonl(self.write("a.jsonl", content))

    def test_not_utf8(self):
        with self.assertRaisesRegex(RecordError, "byte 0xe9 at offset 3"):
            read_text(self.write("a.txt", b"caf\xe9"))

    def test_no_file(self):
        for path in (self.folder / "missing", self.folder):
            with self.assertRaisesRegex(RecordError, "cannot be read"):
                read_text(path)


class Hashes(TestCase):
    def test_file(self):
        """The well-known SHA-256 of "abc" (FIPS 180-2, B.1)."""
        known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        self.assertEqual(sha256_of(self.write("abc", "abc")), known)

    def test_configuration(self):
        """The order of the keys makes no difference, everything else does."""
        self.assertEqual(canonical_hash({"a": 1, "b": [1, 2]}), canonical_hash({"b": [1, 2], "a": 1}))
        hashes = {canonical_hash(value) for value in ({"a": 1}, {"a": 1.5}, {"a": "1"}, {"a": [1]}, {"b": 1}, {})}
        self.assertEqual(len(hashes), 6)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Shown(TestCase):
    def progress(self, stream):
        with contextlib.redirect_stderr(stream), mock.patch("time.monotonic", side_effect=range(100)), Progress(4, "queries") as progress:
            for _ in range(4):
                progress.step()
        return stream.getvalue()

    def test_on_a_terminal(self):
        shown = self.progress(Terminal())
        self.assertIn("1 of 4 queries, 1.0/s, 3 s left", shown)
        self.assertIn("4 of 4 queries", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), "the line is cleared at the end")

    def test_silent_elsewhere(self):
        self.assertEqual(self.progress(io.StringIO()), "")


if __name__ == "__main__":
    unittest.main()
