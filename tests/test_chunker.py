"""Cutting documents into chunks."""

from harness.chunker import SPLITS, chunk_documents, heading, paragraph, windows
from harness.documents import Document, read_documents
from tests import DATA, TestCase


def parts(text, cuts):
    return [text[start:end] for start, end in cuts]


class Cutting(TestCase):
    def test_windows(self):
        self.assertEqual(windows(0, 10, 4, 0), [(0, 4), (4, 8), (8, 10)])
        self.assertEqual(windows(0, 10, 4, 1), [(0, 4), (3, 7), (6, 10)])
        self.assertEqual(windows(5, 8, 4, 3), [(5, 8)])
        self.assertEqual(windows(0, 3, 1, 0), [(0, 1), (1, 2), (2, 3)])

    def test_paragraphs(self):
        text = "a\nb\n\nc\r\n\r\nd\n \t\n\ne"
        self.assertEqual(parts(text, paragraph(text)), ["a\nb", "c", "d", "e"])

    def test_headings(self):
        text = "before\n# A\ntext\n```\n# no heading\n```\n## B\n#no heading\n### C"
        self.assertEqual(parts(text, heading(text)),
                         ["before\n", "# A\ntext\n```\n# no heading\n```\n", "## B\n#no heading\n", "### C"])

    def test_a_fence_is_closed_only_by_its_own_kind(self):
        text = "~~~\n```\n# inside\n~~~\n# out\n"
        self.assertEqual(parts(text, heading(text)), ["~~~\n```\n# inside\n~~~\n", "# out\n"])

    def test_a_long_paragraph_is_cut_and_a_short_one_is_not_joined(self):
        chunks = chunk_documents({"d": Document("d", "abcdef\n\ngh\n\n \n\ni")}, "paragraph", 4, 1)
        self.assertEqual([(chunk.id, chunk.text) for chunk in chunks.values()],
                         [("d:0-4", "abcd"), ("d:3-6", "def"), ("d:8-10", "gh"), ("d:15-16", "i")])

    def test_every_chunk_is_where_it_says(self):
        documents = read_documents([DATA / "golden" / "docs.jsonl"])
        for split in SPLITS:
            for size, overlap in ((40, 0), (40, 39), (7, 3), (9999, 0)):
                chunks = chunk_documents(documents, split, size, overlap)
                for chunk in chunks.values():
                    self.assertEqual(documents[chunk.doc].text[chunk.start:chunk.end], chunk.text)
                    self.assertLessEqual(len(chunk.text), size)
                covered = {(chunk.doc, at) for chunk in chunks.values() for at in range(chunk.start, chunk.end)}
                for document in documents.values():
                    missing = [character for at, character in enumerate(document.text) if (document.id, at) not in covered]
                    self.assertEqual("".join(missing).strip(), "", (split, size, overlap))

    def test_nothing_from_nothing(self):
        self.assertEqual(chunk_documents({"d": Document("d", " \n\n ")}, "paragraph"), {})
        self.assertEqual(chunk_documents({"d": Document("d", "")}), {})
