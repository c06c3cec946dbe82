"""Documents, chunks and ids."""

from harness.documents import Chunk, as_id, plain, read_chunks, read_documents, shown
from metrics import RecordError
from tests import DATA, TestCase

FOLDER = DATA / "golden"


class Index:
    """A whole number of another library."""

    def __index__(self):
        return 7


class Hostile:
    """An object that fails at anything."""

    def __repr__(self):
        raise RuntimeError

    __str__ = __repr__


class Ids(TestCase):
    def test_text_and_whole_numbers(self):
        self.assertEqual([as_id(value) for value in ("7", 7, Index(), 90071992547409931, "a b")], ["7", "7", "7", "90071992547409931", "a b"])

    def test_everything_else_is_refused(self):
        for value in (None, True, 1.0, "", " ", b"a", ["a"], {}, Hostile(), "a\n", "a\x7f", "\ud800", Hostile):
            with self.subTest(type(value).__name__), self.assertRaisesRegex(ValueError, "expected an id"):
                as_id(value)

    def test_wrong_values_are_shown_in_plain_words(self):
        self.assertEqual([shown(value) for value in (None, "a", 7, ["a"])], ["None", 'the text "a"', "int 7", 'list ["a"]'])
        self.assertEqual([plain(value) for value in ("a", {"b": 1})], ['"a"', '{"b": 1}'])

    def test_ids_of_any_language(self):
        self.assertEqual(as_id("Ålesund\u2028\U0001f600"), "Ålesund\u2028\U0001f600")


class Documents(TestCase):
    def test_json_lines(self):
        documents = read_documents([FOLDER / "docs.jsonl"])
        self.assertEqual(list(documents), ["tomatoes", "compost", "bees"])
        self.assertTrue(documents["bees"].text.startswith("# Bees"))

    def test_folders_and_text_files(self):
        self.write("guide/b.md", "two")
        self.write("guide/deep/a.txt", b"\xef\xbb\xbfone\r\nline")
        self.write("guide/skipped.py", "no")
        single = self.write("single.md", "three")
        documents = read_documents([self.folder / "guide", single])
        names = [name.removeprefix(f"{self.folder.as_posix()}/") for name in documents]
        self.assertEqual(names, ["guide/b.md", "guide/deep/a.txt", "single.md"])
        self.assertEqual([document.text for document in documents.values()], ["two", "one\nline", "three"])

    def test_problems(self):
        path = self.write("docs.jsonl", '{"id": "a", "text": 7}\n{"text": "x"}\n[]\n{"id": "b", "text": "x"}\n{"id": "b", "text": "y"}\n')
        with self.assertRaises(RecordError) as caught:
            read_documents([path])
        self.assertEqual(len(caught.exception.problems), 4)
        for line in (1, 2, 3, 5):
            self.assertIn(f"docs.jsonl: line {line}:", str(caught.exception))
        self.write("empty/skipped.py", "no")
        with self.assertRaisesRegex(RecordError, "no .md or .txt file"):
            read_documents([self.folder / "empty"])
        with self.assertRaisesRegex(RecordError, "missing.md: cannot be read"):
            read_documents([self.folder / "missing.md"])


class Chunks(TestCase):
    def test_with_positions(self):
        chunks = read_chunks(FOLDER / "chunks.jsonl")
        self.assertEqual(chunks["tomatoes-1"], Chunk("tomatoes-1", "tomatoes", 0, 10, "# Tomatoes"))

    def test_positions_are_found_in_the_document(self):
        documents = read_documents([self.write("docs.jsonl", '{"id": "d", "text": "one two two"}')])
        chunks = read_chunks(self.write("chunks.jsonl", '{"id": "c", "doc": "d", "text": "one two"}'), documents)
        self.assertEqual(chunks["c"][1:4], ("d", 0, 7))
        with self.assertRaisesRegex(RecordError, "2 times; expected once"):
            read_chunks(self.write("chunks.jsonl", '{"id": "c", "doc": "d", "text": "two"}'), documents)

    def test_a_text_that_is_not_at_its_place(self):
        documents = read_documents([self.write("docs.jsonl", '{"id": "d", "text": "one two two\\nthree"}')])
        chunk = '{"id": "c", "doc": "d", "start": %d, "end": %d, "text": "%s"}'
        self.assertEqual(len(read_chunks(self.write("chunks.jsonl", chunk % (4, 7, "two")), documents)), 1)
        self.assertEqual(len(read_chunks(self.write("chunks.jsonl", chunk % (8, 17, "two\\r\\nthree")), documents)), 1)  # counted as one character
        for line, words in ((chunk % (0, 5, "three"), 'line 1: chunk "c": expected its text "three" at 0 to 5 of "d", got "one t"; it is at 12 to 17'),
                            (chunk % (8, 12, "two"), 'got "two'), (chunk % (40, 43, "two"), 'got ""'), (chunk % (0, 3, "four"), 'got "one"')):
            with self.subTest(line), self.assertRaises(RecordError) as caught:
                read_chunks(self.write("chunks.jsonl", line), documents)
            self.assertIn(words, str(caught.exception))
        many = "\n".join('{"id": %d, "doc": "d", "start": 0, "end": 3, "text": "two"}' % number for number in range(12))
        with self.assertRaises(RecordError) as caught:
            read_chunks(self.write("chunks.jsonl", many), documents)
        self.assertEqual(len(caught.exception.problems), 6)
        self.assertIn("7 more chunks whose text is not at its place", caught.exception.problems[-1])

    def test_problems(self):
        lines = ['{"id": "a", "text": "x"}', '{"id": "a", "text": "y"}', '{"id": "b", "doc": "d", "start": 5, "end": 5}',
                 '{"id": "c", "doc": "d", "start": "0", "end": 5}', '{"id": "e", "doc": "d", "start": 0, "end": 5}']
        with self.assertRaises(RecordError) as caught:
            read_chunks(self.write("chunks.jsonl", "\n".join(lines)))
        message = str(caught.exception)
        self.assertIn("line 2: id: duplicate", message)
        self.assertIn("line 3: start, end", message)
        self.assertIn("line 4: start, end", message)
        self.assertIn("1 of 2 chunks have a position", message)
