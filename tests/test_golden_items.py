"""Golden sets: what is read, and every way in which a line can be wrong."""

import json

from harness.documents import read_chunks, read_documents
from harness.golden_items import closest_document, load_golden, reanchored
from metrics import RecordError
from tests import DATA, TestCase

FOLDER = DATA / "golden"


class LoadGolden(TestCase):
    def test_reads_every_field(self):
        golden = load_golden(FOLDER / "golden.jsonl", read_documents([FOLDER / "docs.jsonl"]), read_chunks(FOLDER / "chunks.jsonl"))
        first, last = golden.items[0], golden.items[-1]
        self.assertEqual((first.id, first.type, first.answerable, first.chunks), ("q1", "factual", True, ("tomatoes-2",)))
        self.assertEqual(first.spans[0]._asdict(),
                         {"doc": "tomatoes", "start": 12, "end": 46, "quote": "Sow tomato seeds indoors in March."})
        self.assertEqual((last.id, last.answerable, last.chunks, last.spans), ("q11", False, (), ()))
        self.assertEqual(len(golden.items), 11)
        self.assertEqual(golden.warnings, ())

    def test_every_invalid_file_is_refused_with_its_place(self):
        expected = json.loads((FOLDER / "invalid" / "expected.json").read_text())
        self.assertEqual(set(expected), {path.name for path in (FOLDER / "invalid").glob("*.jsonl")})
        for name, words in expected.items():
            with self.subTest(name), self.assertRaises(RecordError) as caught:
                load_golden(FOLDER / "invalid" / name)
            for word in words:
                self.assertIn(word, str(caught.exception), name)
            self.assertIn(name, str(caught.exception))

    def test_lists_all_problems_at_once(self):
        path = self.write("golden.jsonl", '{"id": 1}\n{"id": 2, "question": "Why?", "answerable": 0}\n')
        with self.assertRaises(RecordError) as caught:
            load_golden(path)
        self.assertEqual(len(caught.exception.problems), 3)

    def test_byte_order_mark_crlf_blank_lines_and_no_last_line_end(self):
        plain = '{"id": 1, "question": "Why?", "relevant_chunks": [7, "7", "c"]}\n{"id": 2, "question": "How\u2028so?", "relevant_chunks": ["d"]}'
        one = load_golden(self.write("plain.jsonl", plain))
        other = load_golden(self.write("windows.jsonl", b"\xef\xbb\xbf\r\n" + plain.replace("\n", "\r\n \r\n").encode() + b"\r\n\r\n"))
        self.assertEqual([item.id for item in other.items], ["1", "2"])
        self.assertEqual(one.sha256, other.sha256)

    def test_int_and_text_are_one_id(self):
        golden = load_golden(self.write("golden.jsonl", '{"id": 1, "question": "Why?", "relevant_chunks": [7, "7", 90071992547409931]}\n'))
        self.assertEqual(golden.items[0].id, "1")
        self.assertEqual(golden.items[0].chunks, ("7", "90071992547409931"))
        self.assertIn("more than once", golden.warnings[0])

    def test_warns_of_a_misspelt_key_but_not_of_foreign_ones(self):
        line = '{"id": 1, "question": "Why?", "relevant_chunks": ["c"], "anwserable": true, "source": "x"}\n'
        warnings = load_golden(self.write("golden.jsonl", line)).warnings
        self.assertEqual(len(warnings), 1)
        self.assertIn("did you mean answerable", warnings[0])

    def test_content_hash_changes_with_the_content_only(self):
        lines = (FOLDER / "golden.jsonl").read_text().splitlines(keepends=True)
        whole = load_golden(FOLDER / "golden.jsonl").sha256
        self.assertEqual(load_golden(self.write("a.jsonl", "".join(reversed(lines)))).sha256, whole)
        changed = "".join(lines).replace("sown indoors", "sown outdoors")
        self.assertNotEqual(load_golden(self.write("b.jsonl", changed)).sha256, whole)
        moved = "".join(lines).replace('"start": 12, "end": 46', '"start": 13, "end": 47')
        self.assertEqual(load_golden(self.write("c.jsonl", moved)).sha256, whole)
        unquoted = moved.replace(', "quote": "Sow tomato seeds indoors in March."', "")
        self.assertNotEqual(load_golden(self.write("d.jsonl", unquoted)).sha256, whole)

    def test_several_files_are_one_set(self):
        one = self.write("one.jsonl", '{"id": 1, "question": "Why?", "relevant_chunks": ["c"]}\n')
        two = self.write("two.jsonl", '{"id": 2, "question": "How?", "relevant_chunks": ["c"]}\n')
        self.assertEqual([item.id for item in load_golden([one, two]).items], ["1", "2"])
        with self.assertRaisesRegex(RecordError, "two.jsonl: line 1: id: duplicate"):
            load_golden([one, self.write("two.jsonl", one.read_bytes())])


class AgainstDocumentsAndChunks(TestCase):
    def setUp(self):
        super().setUp()
        self.documents = read_documents([FOLDER / "docs.jsonl"])

    def problems(self, line, **against):
        with self.assertRaises(RecordError) as caught:
            load_golden(self.write("golden.jsonl", line), **against)
        return str(caught.exception)

    def test_a_quote_that_is_not_at_its_span(self):
        line = '{"id": 1, "question": "When?", "relevant_spans": [{"doc": "bees", "start": 0, "end": 5, "quote": "Bees dance"}]}'
        message = self.problems(line, documents=self.documents)
        self.assertIn("golden.jsonl: line 1: relevant_spans[0]", message)
        self.assertIn("--reanchor", message)

    def test_unknown_documents_and_ends_beyond_the_text(self):
        line = '{"id": 1, "question": "When?", "relevant_spans": [{"doc": "wasps", "start": 0, "end": 5}, {"doc": "bees", "start": 0, "end": 9999}]}'
        message = self.problems(line, documents=self.documents)
        self.assertIn('no document "wasps"', message)
        self.assertIn("end 9999 is beyond", message)

    def test_a_chunk_that_is_not_in_the_index(self):
        line = '{"id": 1, "question": "When?", "relevant_chunks": ["bees-1", "bees-99"]}'
        message = self.problems(line, chunks=read_chunks(FOLDER / "chunks.jsonl"))
        self.assertIn('line 1: relevant_chunks: no chunk "bees-99"', message)
        self.assertNotIn("bees-1\"", message)

    def test_chunk_ids_of_another_index_do_not_matter_where_spans_decide(self):
        text = (FOLDER / "golden.jsonl").read_text().replace("tomatoes-2", "old-1")
        golden = load_golden(self.write("golden.jsonl", text), chunks=read_chunks(FOLDER / "chunks.jsonl"))
        self.assertEqual(len(golden.items), 11)

    def test_reanchoring_moves_a_span_to_its_quote_if_it_is_there_once(self):
        line = ('{"id": 1, "question": "When?", "note": "kept", "relevant_spans": [{"doc": "bees", "start": 0, "end": 5, "quote": "Bees dance"},'
                ' {"doc": "bees", "start": 0, "end": 5, "quote": "ee"}]}')
        item = load_golden(self.write("golden.jsonl", line)).items[0]
        value, moved = reanchored(item, self.documents)
        start = self.documents["bees"].text.index("Bees dance")
        self.assertEqual(moved, 1)
        self.assertEqual(value["relevant_spans"][0], {"doc": "bees", "start": start, "end": start + 10, "quote": "Bees dance"})
        self.assertEqual(value["relevant_spans"][1]["start"], 0)
        self.assertEqual(value["note"], "kept")


class Documents(TestCase):
    def test_a_document_that_is_not_there_is_named_with_what_is(self):
        self.assertEqual(closest_document("runs.md", {"docs/a.md": 1, "docs/runs.md": 1}), '; did you mean "docs/runs.md"?')
        self.assertEqual(closest_document("x", dict.fromkeys("abcdef")), '; expected one of "a", "b", "c", "d", "e", ...')
