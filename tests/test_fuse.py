"""fuse: reciprocal rank by hand, ties, depths, texts that stand twice, and the command."""

import json
import random
from fractions import Fraction

from harness import fuse, runs
from metrics import RecordError
from tests import TestCase


class FuseTest(TestCase):
    def test_by_hand(self):
        found = fuse.fuse([[b"a", b"b", b"c"], [b"c", b"a"]], 60, 50)
        self.assertEqual([document for document, _ in found], [b"a", b"c", b"b"])
        for (_, score), expected in zip(found, (1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62)):
            self.assertAlmostEqual(score, expected, delta=1e-17)

    def test_the_constant_and_the_depth(self):
        self.assertEqual(fuse.fuse([[b"a", b"b"], [b"b"]], 1, 1), [(b"b", 5 / 6)])

    def test_equal_sums_stand_by_id_descending(self):
        self.assertEqual([document for document, _ in fuse.fuse([[b"a", b"b"], [b"b", b"a"]], 60, 2)], [b"b", b"a"])

    def test_exactly_equal_sums_of_different_ranks_are_ties(self):
        for names in ((b"x", b"y"), (b"y", b"x")):
            ranked = [[b"f%d" % place for place in range(100)], [b"g%d" % place for place in range(100)]]
            for name, places in zip(names, ((3, 80), (24, 30))):  # 1/63 + 1/140 = 1/84 + 1/90 = 29/1260
                for documents, place in zip(ranked, places):
                    documents[place - 1] = name
            found = [row for row in fuse.fuse(ranked, 60, 200) if row[0] in names]
            self.assertEqual(found, [(b"y", 29 / 1260), (b"x", 29 / 1260)])

    def test_scores_are_exact_sums_rounded_once(self):
        generator = random.Random(7)
        ranked = [generator.sample([b"%d" % number for number in range(200)], 150) for _ in range(3)]
        sums = {}
        for documents in ranked:
            for rank, document in enumerate(documents, 1):
                sums[document] = sums.get(document, 0) + Fraction(1, 60 + rank)
        expected = sorted(((float(value), document) for document, value in sums.items()), reverse=True)
        self.assertEqual(fuse.fuse(ranked, 60, 200), [(document, value) for value, document in expected])

    def test_the_order_of_the_runs_changes_nothing(self):
        generator = random.Random(2)
        ranked = [generator.sample([b"d%d" % number for number in range(30)], 20) for _ in range(5)]
        expected = fuse.fuse(ranked, 60, 50)
        for _ in range(5):
            generator.shuffle(ranked)
            self.assertEqual(fuse.fuse(ranked, 60, 50), expected)

    def test_one_text_under_two_ids_counts_as_one_document(self):
        groups = {b"a": b"1", b"z": b"1", b"b": b"2"}
        self.assertEqual(fuse.same_texts([[b"z", b"b", b"a"], [b"x", b"a", b"b"]], groups), [[b"z", b"b"], [b"x", b"z", b"b"]])
        self.assertEqual(fuse.same_texts([[b"z"], [b"a"]], groups), [[b"a"], [b"a"]])  # both stand first: the smaller id

    def digests(self, *passages):
        lines = [json.dumps({"_id": str(place), **passage}) + "\n" for place, passage in enumerate(passages)]
        path = self.write("texts.jsonl", "".join(lines))
        found = fuse.read_texts(path, {b"%d" % place for place in range(len(passages))})
        return [found.get(b"%d" % place) for place in range(len(passages))]

    def test_empty_texts_are_no_duplicates(self):
        empty = {"text": ""}, {"text": " \n"}, {"title": "A", "text": ""}, {"title": "A", "text": "\u3000"}
        self.assertEqual(self.digests(*empty), [None] * 4)

    def test_the_title_is_part_of_the_text(self):
        found = self.digests({"title": "A", "text": "b"}, {"title": "B", "text": "b"}, {"text": "b"}, {"title": "", "text": "b"},
                             {"title": None, "text": " b"}, {"title": " A\n", "text": "b"}, {"text": "A b"})
        self.assertEqual([found.index(digest) for digest in found], [0, 1, 2, 2, 2, 0, 0])
        with self.assertRaisesRegex(RecordError, "line 1: title: expected a string, got 0"):
            self.digests({"title": 0, "text": "b"})


class CommandTest(TestCase):
    def setUp(self):
        super().setUp()
        self.write("a.run", "q1 Q0 a 1 9.0 t\nq1 Q0 b 2 8.0 t\nq2 Q0 a 1 1.0 t\n")
        self.write("b.run", "q1 Q0 c 1 0.9 t\nq1 Q0 a 2 0.8 t\n")

    def command(self, *arguments):
        return self.run_command("harness", "fuse", *arguments)

    def test_a_fused_run_can_be_read_again(self):
        done = self.command("a.run", "b.run", "--output", "fused.run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "fused.run: 2 queries, 4 lines, from 2 runs\n")
        self.assertIn("1 of 2 queries not in every run: q2", done.stderr)
        read = {query: documents for query, documents, _ in runs.rankings(self.folder / "fused.run")}
        self.assertEqual(read, {b"q1": [b"a", b"c", b"b"], b"q2": [b"a"]})
        first = (self.folder / "fused.run").read_bytes()
        self.command("a.run", "b.run", "--output", "fused.run")
        self.assertEqual((self.folder / "fused.run").read_bytes(), first)

    def test_dedupe(self):
        self.write(
            "texts.jsonl",
            "\n".join(
                json.dumps({key: name, "text": text})
                for key, name, text in (("_id", "a", "One text."), ("id", "b", "One  text.\n"), ("_id", "other", "One text."))
            ),
        )
        done = self.command("a.run", "b.run", "--dedupe", "texts.jsonl", "--output", "fused.run")
        self.assertIn("1 of 3 documents without a text", done.stderr)
        read = {query: documents for query, documents, _ in runs.rankings(self.folder / "fused.run")}
        self.assertEqual(read[b"q1"], [b"a", b"c"])

    def test_errors_leave_the_old_file(self):
        self.write("fused.run", "as it was")
        self.write("bad.run", "q1 Q0 a 1 9.0 t\nq1 Q0 a 2 8.0 t\n")
        self.write("texts.jsonl", '{"_id": "a"}\n')
        for words, expected in (
            (["a.run", "bad.run"], "bad.run: line 2: duplicate"),
            (["a.run"], "two runs"),
            (["a.run", "b.run", "--rrf", "0"], "--rrf"),
            (["a.run", "b.run", "--dedupe", "texts.jsonl"], "texts.jsonl: line 1"),
            (["a.run", "none.run"], "none.run"),
            (["a.run", "fused.run"], "would replace the input"),
            (["a.run", "b.run", "--dedupe", "fused.run"], "would replace the input"),
            (["-", "a.run", "-"], "standard input (-) can be read once"),
            (["a.run", "b.run", "--dedup", "x"], "did you mean --dedupe?"),
        ):
            done = self.command(*words, "--output", "fused.run")
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(expected, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual((self.folder / "fused.run").read_text(), "as it was")
