"""The sweep: its plan, its winners, resuming, and search functions of one's own."""

import json

from harness.sweep import Setting, axes_of, parser, planned, start_of
from metrics import RecordError
from tests import DATA
from tests.in_process import TestCase

GOLDEN, DOCS = DATA / "golden" / "golden.jsonl", DATA / "golden" / "docs.jsonl"

BUILD = """
from harness.bm25 import BM25
def build_index(chunks):
    with open("built", "a") as file:
        file.write("x")
    index = BM25({chunk["id"]: chunk["text"] for chunk in chunks})
    return lambda question: index.search(question, 10)
def no_function(chunks):
    return 7
def broken(chunks):
    raise ValueError("no GPU")
def failing(chunks):
    return lambda question: None
def stops_in_the_third(chunks):
    import pathlib
    runs = len(pathlib.Path("built").read_text()) if pathlib.Path("built").exists() else 0
    if runs == 2 and pathlib.Path("stop").exists():
        raise KeyboardInterrupt
    return build_index(chunks)
"""

FIRST = """
def first(chunks):
    return lambda question: [chunks[0]["id"]]
def renamed(chunks):
    return lambda question: [chunks[0]["id"] + "-x"]
def with_ghost(chunks):
    return lambda question: [chunks[0]["id"], "ghost"]
"""


def axes(*options):
    return axes_of(parser().parse_args(["golden.jsonl", "--docs", "docs.jsonl", *options]))


class Plan(TestCase):
    def test_one_axis_at_a_time_and_every_combination(self):
        found = axes("--split", "fixed,paragraph", "--normalize", "no,nfkc", "--size", "100,200,400", "--overlap", "0,150")
        self.assertEqual(len(planned(found, False)), 1 + 1 + 1 + 2 + 1)
        self.assertEqual(planned(found, False)[0], Setting("fixed", "no", 100, 0))
        self.assertEqual(len(planned(found, True)), 2 * 2 * (3 + 2))  # an overlap of 150 is not below a size of 100

    def test_starts_where_the_overlap_is_below_the_size(self):
        self.assertEqual(start_of(axes("--size", "100,400", "--overlap", "150,0")), Setting("fixed", "no", 100, 0))

    def test_wrong_values(self):
        for options, words in ((("--size", "0"), "--size"), (("--size", "4.5"), "--size"), (("--size", "100,"), "--size"), (("--size", "-1"), "--size"),
                               (("--overlap", "x"), "--overlap"), (("--split", "sentence"), "--split"), (("--normalize", "NFC"), "--normalize"),
                               (("--size", "100,100"), "twice"), (("--size", "100", "--overlap", "100"), "below a size")):
            with self.subTest(options), self.assertRaisesRegex(RecordError, words):
                axes(*options)


class Command(TestCase):
    def sweep(self, *options, golden=GOLDEN, before=None):
        if before:
            self.write("my_rag.py", before)
        return self.run_command("harness", "sweep", golden, "--docs", DOCS, *options)

    def report(self):
        return json.loads((self.folder / "sweep" / "sweep.json").read_text())

    def test_one_axis_at_a_time(self):
        result = self.sweep("--split", "fixed,paragraph", "--size", "30,120", "--overlap", "0,20", "--normalize", "no,nfkc")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("5 runs of 10 questions over 3 documents, k = 5, BM25, decided by ndcg: one axis at a time\n"))
        report = self.report()
        self.assertTrue(report["complete"])
        self.assertEqual(len(report["runs"]), 5)
        self.assertEqual([row["axis"] for row in report["winners"]], ["split", "normalize", "size", "overlap"])
        best = max(row["ndcg"] for row in report["runs"])
        self.assertEqual(report["winners"][-1]["value"], best)
        cut = {(row["split"], row["size"]): row["unattainable_spans"] for row in report["runs"] if row["overlap"] == 0}
        self.assertGreater(cut["fixed", 30], cut[report["winners"][0]["winner"], 120])
        size = report["winners"][2]
        self.assertEqual((size["winner"], size["second"], size["supported"]), (120, 30, True))
        self.assertTrue(0 < size["low"] < size["difference"] < size["high"])
        self.assertIn("| size | 120 | 30 |", (self.folder / "sweep" / "sweep.md").read_text())

    def test_equal_values_are_not_told_apart_and_the_first_wins(self):
        self.sweep("--normalize", "nfkc,no")
        winner = self.report()["winners"][0]
        self.assertEqual((winner["winner"], winner["difference"], winner["supported"]), ("nfkc", 0, False))

    def test_resumes_after_an_interrupt_and_gives_what_an_uninterrupted_one_gives(self):
        self.write("my_rag.py", BUILD)
        options = ("--build", "my_rag:stops_in_the_third", "--size", "30,60,120,240")
        self.write("stop", "")
        stopped = self.sweep(*options)
        self.assertEqual((stopped.returncode, stopped.stderr.splitlines()[-1]), (130, "interrupted"))
        self.assertNotIn("Traceback", stopped.stderr)
        self.assertEqual((self.report()["complete"], len(self.report()["runs"])), (False, 2))
        (self.folder / "stop").unlink()
        again = self.sweep(*options)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len((self.folder / "built").read_text()), 4)  # two before, two now
        self.assertIn("run 2 of 4 (kept)", again.stderr)
        resumed = self.report()
        self.sweep(*options, "--output", "fresh")
        self.assertEqual(json.loads((self.folder / "fresh" / "sweep.json").read_text()), resumed)

    def test_measures_anew_when_something_that_the_build_imports_changed(self):
        self.write("my_rag.py", "import stemming\n" + BUILD)
        for number, built in ((1, 1), (1, 1), (2, 2)):
            self.write("stemming.py", f"number = {number}\n")
            self.assertEqual(self.sweep("--build", "my_rag:build_index").returncode, 0)
            self.assertEqual(len((self.folder / "built").read_text()), built)

    def test_says_how_much_text_the_first_k_chunks_are(self):
        self.assertIn("characters in 1", self.sweep("--k", 1, "--split", "paragraph", "--size", 500, "--build", "my_rag:first", before=FIRST).stdout)
        self.assertEqual(self.report()["runs"][0]["characters"], len("# Tomatoes"))

    def test_ids_that_are_in_no_chunk(self):
        result = self.sweep("--build", "my_rag:renamed", before=FIRST)
        self.assertEqual(result.returncode, 2)
        self.assertIn("1 of 1 returned ids are in no chunk of those with split fixed", result.stderr)
        result = self.sweep("--build", "my_rag:with_ghost", before=FIRST)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('warning: split fixed, normalize no, size 800, overlap 0: 1 of 2 returned ids are in no chunk', result.stderr)

    def test_options_without_effect(self):
        for options in (("--synonyms", "s.json"), ("--timeout", 3)):
            self.assertIn(f"{options[0]}: without effect", self.sweep(*options).stderr)

    def test_grid_with_a_search_of_ones_own(self):
        self.write("my_rag.py", BUILD)
        result = self.sweep("--build", "my_rag:build_index", "--size", "60,120", "--overlap", "0,60", "--grid")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("  3. split fixed, normalize no, size 120, overlap 60", result.stdout)
        self.assertEqual(len(self.report()["runs"]), 3)

    def test_build_functions_that_fail(self):
        self.write("my_rag.py", BUILD)
        for name, words in (("no_function", "expected a search function back, got int 7"), ("broken", "cannot build an index: ValueError: no GPU"),
                            ("missing", "AttributeError"), ("failing", "10 searches failed with split fixed")):
            with self.subTest(name):
                result = self.sweep("--build", f"my_rag:{name}")
                self.assertEqual(result.returncode, 2)
                self.assertIn(words, result.stderr)
                self.assertNotIn("Traceback", result.stderr)

    def test_holdout_questions_are_entered_and_warned_of(self):
        golden = self.write("golden.jsonl", GOLDEN.read_text().replace('"answerable": true', '"answerable": true, "split": "holdout"'))
        result = self.sweep("--size", "60,120", golden=golden)
        self.assertEqual(result.returncode, 0)
        self.assertIn("a sweep tunes on them", result.stderr)
        ledger = (self.folder / "eval_logs" / "holdout-ledger.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(entry)["sweep"] for entry in ledger], [2])

    def test_questions_without_spans(self):
        golden = self.write("golden.jsonl", '{"id": 1, "question": "Why?", "relevant_chunks": ["a"]}\n')
        result = self.sweep(golden=golden)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("golden.jsonl: line 1: relevant_spans: missing", result.stderr)
