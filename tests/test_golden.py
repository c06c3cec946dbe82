"""Evaluating a search on a golden set, as a library and as a command."""

import json
import math
from xml.etree import ElementTree

from harness.documents import Chunk, read_chunks, read_documents
from harness.golden import evaluate, load_golden, main
from harness.runlog import read_log
from metrics import RecordError
from tests import DATA
from tests.in_process import TestCase

FOLDER = DATA / "golden"
GOLDEN, DOCS, CHUNKS = (FOLDER / name for name in ("golden.jsonl", "docs.jsonl", "chunks.jsonl"))
LOG3 = math.log2(3)


class Case(TestCase):
    def one(self, retrieved, relevant, k=5, **options):
        """The evaluation of a single question."""
        line = json.dumps({"id": "q1", "question": "Why?", "type": "causal", "relevant_chunks": relevant})
        return evaluate(load_golden(self.write("golden.jsonl", line)), lambda question: retrieved, k=k, **options)


class Metrics(Case):
    """Values by hand; what the often-copied formulas give instead is named where it differs."""

    def check(self, retrieved, relevant, k=5, **expected):
        values = self.one(retrieved, relevant, k).metrics
        for name, value in expected.items():
            self.assertAlmostEqual(values[name], value, delta=1e-11, msg=name)

    def test_a_hit_at_rank_3(self):
        self.check(["x", "y", "a", "d", "e"], ["a"], hit=1, recall=1, mrr=1 / 3, ndcg=0.5, precision=0.2)

    def test_a_relevant_duplicate_counts_once(self):
        self.check(["a", "a", "x", "y", "z"], ["a"], hit=1, mrr=1, ndcg=1, precision=1 / 4)  # not an nDCG of 1.63
        self.check(["a", "a", "x"], ["a", "b"], hit=1, recall=0.5, mrr=1, ndcg=1 / (1 + 1 / LOG3))

    def test_duplicates_do_not_push_a_hit_out(self):
        self.check(["x"] * 5 + ["a"], ["a"], hit=1, mrr=0.5, ndcg=1 / LOG3)

    def test_fewer_results_than_k_and_more_relevant_chunks_than_k(self):
        self.check(["a"], ["a", "b", "c"], hit=1, recall=1 / 3, mrr=1, ndcg=1 / (1 + 1 / LOG3 + 0.5), precision=1)
        self.check(["a", "b"], ["a", "b", "c", "d"], 2, hit=1, recall=0.5, ndcg=1, precision=1)

    def test_uncut_mrr_sees_below_k(self):
        self.check(["x1", "x2", "x3", "x4", "x5", "a"], ["a"], hit=0, mrr=0, mrr_uncut=1 / 6, ndcg=0)

    def test_no_results(self):
        self.check([], ["a"], hit=0, recall=0, mrr=0, ndcg=0)
        self.assertIsNone(self.one([], ["a"]).metrics["precision"])

    def test_duplicate_and_unknown_relevant_chunks(self):
        self.check(["a", "x"], ["a", "a"], ndcg=1, recall=1)
        self.check(["a", "x"], ["a", "ghost"], recall=0.5, ndcg=1 / (1 + 1 / LOG3))

    def test_ids_are_text(self):
        self.check([1, 2, 3], ["1"], hit=1, mrr=1)
        self.check(["90071992547409932", "90071992547409931"], ["90071992547409931"], 2, mrr=0.5, ndcg=1 / LOG3)  # equal as floats

    def test_ids_in_two_unicode_forms_stay_two_ids_and_are_named(self):
        result = self.one(["A\u030aland"], ["\u00c5land"], 1)
        self.assertEqual((result.metrics["hit"], result.metrics["mrr"]), (0, 0))
        self.assertEqual(len(result.warnings), 1)
        self.assertIn("question q1", result.warnings[0])
        self.assertIn("equal after Unicode normalisation", result.warnings[0])


class Evaluating(Case):
    def test_types_questions_and_record(self):
        chunks = read_chunks(CHUNKS)
        golden = load_golden(GOLDEN, chunks=chunks)
        first = {item.question: item.chunks for item in golden.items}
        first[golden.items[1].question] = ("bees-1", "tomatoes-2")
        result = evaluate(golden, first.get, k=1, chunks=chunks)
        self.assertEqual(result.metrics["hit"], 0.9)
        self.assertEqual(result.types["numeric"]["n"], 3)
        self.assertAlmostEqual(result.types["numeric"]["hit"], 2 / 3, delta=1e-11)
        self.assertAlmostEqual(result.types["numeric"]["mrr_uncut"], 2.5 / 3, delta=1e-11)
        row = result.questions[1]
        self.assertEqual((row["id"], row["rank"], row["hit"], row["mrr_uncut"]), ("q2", 2, 0, 0.5))
        self.assertEqual(len(result.questions), 10)
        self.assertEqual(result.record["retrieval"]["queries"][1],
                         {"id": "q2", "type": "numeric", "reference_grade_counts": {"1": 1}, "rankings": {"search": [0, 1]}})
        self.assertNotIn("Why", json.dumps(result.record))

    def test_a_path_will_do_and_untyped_questions_have_a_type(self):
        path = self.write("golden.jsonl", '{"id": 1, "question": "Why?", "relevant_chunks": ["a"]}')
        self.assertEqual(evaluate(path, lambda question: ["a"]).types["untyped"]["hit"], 1)

    def test_failures_stay_in_the_denominator(self):
        def search(question):
            return None if "hive" in question or "bees" in question else ["tomatoes-2"]

        result = evaluate(GOLDEN, search, k=5)
        self.assertEqual(result.metrics["hit"], 0.2)
        self.assertEqual([row["id"] for row in result.errors], ["q10"])
        self.assertEqual(result.questions[9]["hit"], 0)

    def test_unanswerable_questions_are_searched_on_demand_and_never_scored(self):
        asked = []
        result = evaluate(GOLDEN, lambda question: asked.append(question) or ["bees-1"], unanswerable=True)
        self.assertEqual(len(asked), 11)
        self.assertEqual(len(result.questions), 10)
        self.assertEqual((result.unanswerable[0]["id"], result.unanswerable[0]["retrieved"]), ("q11", ["bees-1"]))

    def test_a_span_that_a_boundary_cuts_counts_as_missed_and_both_values_are_given(self):
        text = "one two three four"
        line = {"id": 1, "question": "Where?", "relevant_spans": [{"doc": "d", "start": 4, "end": 13, "quote": "two three"}]}
        other = {"id": 2, "question": "Who?", "relevant_spans": [{"doc": "d", "start": 0, "end": 3, "quote": "one"},
                                                                 {"doc": "d", "start": 14, "end": 18, "quote": "four"}]}
        golden = self.write("golden.jsonl", json.dumps(line) + "\n" + json.dumps(other))
        cut = [{"id": "a", "doc": "d", "start": 0, "end": 8, "text": text[:8]}, {"id": "b", "doc": "d", "start": 8, "end": 16, "text": text[8:16]}]
        chunks = read_chunks(self.write("chunks.jsonl", "\n".join(map(json.dumps, cut))))
        result = evaluate(golden, lambda question: ["a", "b"], k=2, chunks=chunks)
        self.assertEqual(result.metrics["hit"], 0.5)
        self.assertEqual(result.metrics["recall"], 0.25)  # one of two spans of question 2, none of question 1
        self.assertEqual((result.attainable["n"], result.attainable["hit"], result.attainable["recall"]), (1, 1, 1))
        self.assertEqual([row["attainable"] for row in result.questions], [False, True])
        self.assertEqual([span["reason"] for row in result.questions for span in row["cut_spans"]], ["a chunk boundary cuts it"] * 2)
        self.assertEqual(set(result.summary) - {"signature"}, {"retrieval", "attainable"})

    def test_spans_need_the_chunks(self):
        path = self.write("golden.jsonl", '{"id": 1, "question": "Why?", "relevant_spans": [{"doc": "d", "start": 0, "end": 3}]}')
        with self.assertRaisesRegex(RecordError, r"line 1: relevant_spans: .* chunks of the index are needed .*chunks= in Python"):
            evaluate(path, lambda question: ["a"])

    def test_an_index_of_other_documents_is_an_error_and_not_a_zero(self):
        chunks = read_chunks(self.write("chunks.jsonl", '{"id": "a", "doc": "other", "start": 0, "end": 3, "text": "abc"}'))
        with self.assertRaisesRegex(RecordError, "index of these documents"):
            evaluate(GOLDEN, lambda question: ["a"], chunks=chunks)

    def test_chunks_and_documents_are_taken_in_every_form(self):
        golden = self.spans_only()
        rows = [json.loads(line) for line in CHUNKS.read_text().splitlines()]
        texts = {name: document.text for name, document in read_documents([DOCS]).items()}
        unplaced = [{key: row[key] for key in ("id", "doc", "text")} for row in rows]
        for chunks, docs in ((CHUNKS, None), (str(CHUNKS), DOCS), (rows, [DOCS]), (tuple(rows), texts), (read_chunks(CHUNKS), None),
                             ({row["id"]: row for row in rows}, read_documents([DOCS])), (unplaced, texts),
                             ([Chunk(**row) for row in rows], [{"id": name, "text": text} for name, text in texts.items()])):
            with self.subTest(type(chunks).__name__):
                result = evaluate(load_golden(golden), lambda question: ["tomatoes-2"], k=5, chunks=chunks, docs=docs)
                self.assertEqual((result.metrics["hit"], result.relevance), (0.2, "spans"))

    def spans_only(self):
        """The path of a golden set without chunk ids."""
        rows = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
        return self.write("spans.jsonl", "".join(json.dumps({key: value for key, value in row.items() if key != "relevant_chunks"}) + "\n" for row in rows))

    def test_wrong_types_are_errors_with_words(self):
        search = ["tomatoes-2"].copy
        for arguments, options, words in (((GOLDEN, None), {}, "search: expected a function .*got None"), ((GOLDEN, "my_rag"), {}, 'got the text "my_rag"'),
                                          ((GOLDEN, search), {"k": "5"}, "k: expected a whole number"), ((7, search), {}, "golden: expected the path .*got int 7"),
                                          ((GOLDEN, search), {"chunks": 5}, "chunks: expected a path, or chunks .*got int 5"),
                                          ((GOLDEN, search), {"chunks": [5]}, r"chunks\[0\]: expected an object with id, text.*got int 5"),
                                          ((GOLDEN, search), {"docs": 5}, "docs: expected a path"), ((GOLDEN, search), {"docs": {"bees": 5}}, r'docs\["bees"\]: expected an object'),
                                          ((GOLDEN, search), {"timeout": "5"}, "timeout: expected"), ((None, search), {}, "golden: .*got None")):
            with self.subTest(words), self.assertRaisesRegex(RecordError, words) as caught:
                evaluate(*arguments, **options)
            self.assertNotRegex(str(caught.exception), "NoneType|a string.*a string")

    def test_ids_that_are_in_no_chunk_are_counted_and_named_and_most_of_them_an_error(self):
        some = evaluate(GOLDEN, lambda question: ["tomatoes-2", "bees-1", "ghost"], chunks=CHUNKS)
        self.assertEqual(some.warnings, ['1 of 3 returned ids are in no chunk of chunks ("ghost"); they count as not relevant'])
        with self.assertRaisesRegex(RecordError, r'2 of 3 returned ids are in no chunk of chunks \("a", "b"\); ids there are such as "tomatoes-1"'):
            evaluate(GOLDEN, lambda question: ["tomatoes-2", "a", "b"], chunks=CHUNKS)
        self.assertEqual(evaluate(GOLDEN, lambda question: ["tomatoes-2", "a", "b"]).warnings, [])  # nobody knows the chunks
        self.assertEqual(evaluate(GOLDEN, lambda question: ["tomatoes-2", "a"], chunks=CHUNKS).metrics["hit"], 0.2)  # half of them

    def test_results_of_which_none_is_relevant_to_anything_are_named(self):
        warnings = evaluate(GOLDEN, lambda question: ["a", "b"]).warnings
        self.assertEqual(warnings, ['none of 2 returned ids is a relevant chunk of any question; returned are such as "a", "b", relevant such as'
                                    ' "tomatoes-2", "tomatoes-3", "tomatoes-5": are they of one index?'])
        self.assertEqual(evaluate(GOLDEN, lambda question: ["a", "bees-2"]).warnings, [])

    def test_says_what_decided_what_is_relevant(self):
        placeless = self.write("placeless.jsonl", "".join(json.dumps({"id": name}) + "\n" for name in read_chunks(CHUNKS)))
        by_ids, by_spans = (evaluate(GOLDEN, lambda question: ["tomatoes-2"], chunks=chunks) for chunks in (placeless, CHUNKS))
        self.assertEqual((by_ids.relevance, by_spans.relevance), ("chunk ids", "spans"))
        self.assertIn("10 questions have spans and chunk ids: the chunk ids decide", by_ids.notes[0])
        self.assertIn("10 questions have spans and chunk ids: the spans decide", by_spans.notes[0])
        self.assertEqual(by_spans.record["retrieval"]["models"]["search"]["relevance"], "spans")
        rows = GOLDEN.read_text() + json.dumps({"id": "q12", "question": "Why?", "relevant_chunks": ["bees-1"]}) + "\n"
        mixed = evaluate(self.write("mixed.jsonl", rows), lambda question: ["tomatoes-2"], chunks=CHUNKS)
        self.assertEqual(mixed.relevance, "spans (10) and chunk ids (1)")

    def test_k_and_depth(self):
        for k, depth in ((0, None), (-1, None), (True, None), (2.0, None), (5, 4)):
            with self.subTest((k, depth)), self.assertRaises(RecordError):
                evaluate(GOLDEN, lambda question: ["a"], k=k, depth=depth)
        self.assertEqual(evaluate(GOLDEN, lambda question: ["tomatoes-2"], k=100).metrics["hit"], 0.2)
        self.assertEqual(evaluate(GOLDEN, lambda question, k: [f"{k}"], k=20).questions[0]["retrieved"], ["40"])


SEARCH = """
import threading, time
from harness.bm25 import BM25
index = BM25({"tomatoes-2": "sow tomato seeds sprout days", "bees-2": "hive bees eggs queen", "compost-2": "heap turned often"})
def search(question):
    print("chatter")
    return index.search(question)
def broken(question):
    raise ValueError("no index")
def stuck(question):
    threading.Thread(target=time.sleep, args=(600,)).start()
    time.sleep(600)
def chatty(question):
    while True:
        print("still searching", flush=True)
def interrupted(question):
    raise KeyboardInterrupt
"""


class Command(TestCase):
    def golden(self, *arguments):
        return self.run_command("harness", "golden", *arguments)

    def test_embedded_search_and_outputs_that_metrics_verifies(self):
        result = self.golden("run", GOLDEN, "--docs", DOCS, "--split", "paragraph", "--k", 3, "--output", "out", "--html", "page.html")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("10 of 11 questions scored, search BM25, relevance by spans, k = 3, depth 10", result.stdout)
        self.assertEqual((self.folder / "out" / "report.txt").read_text(), result.stdout)
        verified = self.run_command("metrics.py", "--directory", self.folder / "out")
        self.assertEqual(verified.returncode, 0, verified.stderr)
        report = json.loads((self.folder / "out" / "report.json").read_text())
        self.assertEqual(report["matrix"][-1]["hit"]["value"], report["metrics"]["hit"])
        self.assertEqual((self.folder / "page.html").read_text(), (self.folder / "out" / "report.html").read_text())

    def test_the_same_run_gives_the_same_bytes(self):
        runs = [self.run_command("harness", "golden", "run", GOLDEN, "--docs", DOCS, "--format", "json", env={"PYTHONHASHSEED": seed}).stdout
                for seed in ("1", "2")]
        self.assertEqual(*runs)
        self.assertEqual(json.loads(runs[0])["k"], 5)

    def test_a_search_of_ones_own(self):
        self.write("my_rag.py", SEARCH)
        result = self.golden("run", GOLDEN, "--search", "my_rag:search", "--format", "json", "--production-k", 8)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)  # what the search prints is not in it
        self.assertIn("chatter", result.stderr)
        self.assertIn("production passes on 8 chunks", report["warnings"][0])
        self.assertEqual(len(report["fewer_than_k"]), 10)

    def test_failed_searches_make_the_run_void(self):
        self.write("my_rag.py", SEARCH)
        result = self.golden("run", GOLDEN, "--search", "my_rag:broken", "--log")
        self.assertEqual(result.returncode, 2)
        self.assertIn("error: 10 of 10 searches failed, more than max-errors (0) allows; the first: q1: raised ValueError: no index", result.stderr)
        self.assertIn("q10: raised ValueError: no index", result.stdout)
        entry, = read_log(self.folder / "eval_logs")
        self.assertEqual(set(entry), {"time", "golden", "search", "failed"})
        self.assertIn("10 of 10 searches failed", self.golden("log").stdout)
        allowed = self.golden("run", GOLDEN, "--search", "my_rag:broken", "--max-errors", 10)
        self.assertEqual(allowed.returncode, 0, allowed.stderr)

    def test_a_search_that_hangs_does_not_keep_the_process(self):
        self.write("my_rag.py", SEARCH)
        result = self.run_process("harness", "golden", "run", GOLDEN, "--search", "my_rag:stuck", "--timeout", 0.1)
        self.assertEqual(result.returncode, 2)
        self.assertIn("q1: timed out after 0.1 s", result.stderr)
        self.assertIn("q10: not searched", result.stdout)
        result = self.run_process("harness", "golden", "run", GOLDEN, "--search", "my_rag:chatty", "--timeout", 0.1, "--max-errors", 10, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr[-200:])
        self.assertEqual(len(json.loads(result.stdout)["errors"]), 10)

    def test_ctrl_c(self):
        self.write("my_rag.py", SEARCH)
        result = self.run_process("harness", "golden", "run", GOLDEN, "--search", "my_rag:interrupted", "--output", "out")
        self.assertEqual((result.returncode, result.stdout), (130, ""))
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual(list((self.folder / "out").glob("**/*.json")), [])

    def test_results_made_elsewhere(self):
        lines = [json.dumps({"id": f"q{number}", "retrieved": ["tomatoes-2"]}) for number in range(1, 10)]
        result = self.golden("run", GOLDEN, "--results", self.write("results.jsonl", "\n".join(lines)), "--max-errors", 1, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["metrics"]["hit"], 0.2)
        self.assertEqual(report["errors"], [{"id": "q10", "error": "no result for this question"}])

    def test_compared_with_an_earlier_run(self):
        run = ("run", GOLDEN, "--docs", DOCS, "--split", "paragraph")
        self.golden(*run, "--k", 1, "--output", "before")
        result = self.golden(*run, "--size", 40, "--k", 1, "--base", "before", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        base = json.loads(result.stdout)["base"]
        hit = base["metrics"]["hit"]
        self.assertEqual((hit["wins"], hit["losses"]), (len(base["won"]), len(base["lost"])))
        self.assertAlmostEqual(hit["difference"], (hit["wins"] - hit["losses"]) / 10)
        self.assertLess(hit["difference"], 0)
        shown = self.golden(*run, "--size", 40, "--k", 1, "--base", "before").stdout
        self.assertIn("no longer hit: " + ", ".join(base["lost"]), shown)
        for more, words in ((("--k", 11), "below k"), (("--base", GOLDEN), "not valid JSON"), (("--base", "nowhere"), "cannot be read")):
            refused = self.golden(*run, "--base", "before", *more)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(words, refused.stderr)
        other = self.write("golden.jsonl", GOLDEN.read_text().replace("sown indoors", "sown"))
        self.assertIn("another golden set", self.golden("run", other, "--docs", DOCS, "--base", "before").stderr)

    def test_bad_usage(self):
        for arguments, words in (((), "nothing to search"), (("--docs", DOCS, "--k", 0), "k: expected"), (("--docs", DOCS, "--overlap", 900), "overlap"),
                                 (("--search", "os:path.join", "--timeout", "nan"), "timeout: expected"), (("--docs", DOCS, "--junit", "x"), "--floors"),
                                 (("--search", "no_such:f"), "ModuleNotFoundError"), (("--docs", "missing.md"), "missing.md: cannot be read"),
                                 (("--docs", DOCS, "--normalize", "synonyms"), "--synonyms"), (("--docs", DOCS, "--part", "holdout"), "golden split"),
                                 (("--search", "my:f", "--cache", "c"), "--index-meta"), (("--results", GOLDEN), "retrieved")):
            with self.subTest(arguments), self.assertRaisesRegex(RecordError, words):
                main(["run", str(GOLDEN), *map(str, arguments)])
        result = self.golden("run", GOLDEN, "--docs", "missing.md")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, "error: missing.md: cannot be read: No such file or directory\n")

    def test_options_without_effect_together_are_an_error(self):
        search, results = ("--search", "my:f"), ("--results", GOLDEN)
        for arguments, words in (((*search, "--size", 300), "--size: without effect with --search"), ((*search, "--normalize", "nfkc"), "--normalize"),
                                 ((*search, "--chunks", CHUNKS, "--overlap", 0), "--overlap"), ((*results, "--timeout", 3), "--timeout"),
                                 ((*results, "--cache", "c"), "--cache"), (("--chunks", CHUNKS, "--size", 300), "--size: without effect with --chunks"),
                                 (("--docs", DOCS, "--timeout", 3), "--timeout"), (("--docs", DOCS, "--synonyms", "s.json"), "--synonyms: without effect")):
            with self.subTest(arguments), self.assertRaisesRegex(RecordError, words):
                main(["run", str(GOLDEN), *map(str, arguments)])

    def test_chunks_of_another_index_end_in_an_error_and_not_in_zeros(self):
        self.write("my_rag.py", SEARCH + "def renamed(question):\n    return [name + '.md' for name in search(question)]\n")
        result = self.golden("run", GOLDEN, "--search", "my_rag:renamed", "--chunks", CHUNKS, "--log")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn(f"3 of 3 returned ids are in no chunk of {CHUNKS} (", result.stderr)
        self.assertIn("FAILED, not comparable: 3 of 3 returned ids", self.golden("log").stdout)

    def test_spans_without_chunks_are_one_sentence_before_any_search(self):
        golden = Evaluating.spans_only(self)
        self.write("my_rag.py", SEARCH)
        result = self.golden("run", golden, "--search", "my_rag:search")
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1))
        self.assertIn("in 9 other questions", result.stderr)
        self.assertIn("--chunks FILE.jsonl", result.stderr)
        self.assertIn("--docs", result.stderr)
        self.assertNotIn("chatter", result.stderr)

    def test_a_search_in_a_file_and_its_neighbours(self):
        self.write("rag/my_rag.py", "from neighbour import ids\ndef search(question):\n    return ids\n")
        self.write("rag/neighbour.py", "ids = ['tomatoes-2']\n")
        (self.folder / "project").mkdir()
        result = self.run_command("harness", "golden", "run", GOLDEN, "--search", "../rag/my_rag.py:search", cwd=self.folder / "project")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("search ../rag/my_rag.py:search, relevance by chunk ids", result.stdout)
        with self.assertRaisesRegex(RecordError, "MODULE:FUNCTION such as my_rag:search"):
            main(["run", str(GOLDEN), "--search", "../rag/my_rag:search"])

    def test_results_of_questions_that_are_not_in_the_set_are_named(self):
        lines = [json.dumps({"id": f"q{number}", "retrieved": ["tomatoes-2"]}) for number in range(1, 14)]
        result = self.golden("run", GOLDEN, "--results", self.write("results.jsonl", "\n".join(lines)))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('results.jsonl: 2 of 13 results are of no question of the golden set ("q12", "q13"); they are not used', result.stdout)

    def test_floors_are_in_every_report_and_junit_tells_of_a_failed_run(self):
        floors = {"golden_sha256": load_golden(GOLDEN).sha256, "k": 5, "relevance": "chunk ids",
                  "questions": {"causal": 2, "factual": 1, "negative": 2, "numeric": 3, "procedural": 2}, "overall": {"hit": 0.5, "mrr": 0.1}}
        self.write("floors.json", json.dumps(floors))
        self.write("my_rag.py", SEARCH)
        run = ("run", GOLDEN, "--floors", "floors.json", "--junit", "junit.xml", "--output", "out")
        result = self.golden(*run, "--search", "my_rag:search")
        self.assertEqual(result.returncode, 1, result.stderr)
        for name in ("txt", "md", "html", "json"):
            text = (self.folder / "out" / f"report.{name}").read_text()
            self.assertIn("hit dropped to 0.", text, name)
            self.assertIn("my" if name == "md" else "my_rag:search", text, name)
        self.assertIn("1 of 2 floors hold", result.stdout)
        self.assertIn("FAIL hit dropped to 0.", self.golden(*run, "--search", "my_rag:search", "--format", "json").stderr)
        failed = self.golden(*run, "--search", "my_rag:broken", "--log")
        self.assertEqual(failed.returncode, 2)
        suite = ElementTree.parse(self.folder / "junit.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("2", "0", "2"))
        self.assertIn("raised ValueError: no index", suite[0][0].get("message"))
        self.assertEqual(self.golden(*run, "--search", "my_rag:missing", "--log").returncode, 2)
        self.assertIn("AttributeError", ElementTree.parse(self.folder / "junit.xml").getroot()[0][0].get("message"))
        self.assertEqual(self.golden("log").stdout.count("FAILED, not comparable"), 2)
        by_spans = self.golden(*run, "--docs", DOCS)
        self.assertEqual(by_spans.returncode, 2)
        self.assertIn('floors.json: relevance: the floors were set on another basis of relevance: "chunk ids", but this run has "spans"', by_spans.stderr)

    def test_the_records_folder_gives_no_note_and_the_page_names_it_once(self):
        self.golden("run", GOLDEN, "--docs", DOCS, "--output", "out")
        verified = self.run_command("metrics.py", "--directory", "out/records")
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))
        self.assertNotIn("skipped", verified.stdout)
        self.assertNotIn("golden golden", verified.stdout)

    def test_check_and_reanchor(self):
        result = self.golden("check", GOLDEN, "--docs", DOCS, "--chunks", CHUNKS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("11 questions, 10 answerable", result.stdout)
        moved = self.write("docs.jsonl", DOCS.read_text().replace("# Bees", "# About bees"))
        golden = self.write("golden.jsonl", GOLDEN.read_bytes())
        self.assertEqual(self.golden("check", golden, "--docs", moved).returncode, 2)
        repaired = self.golden("check", golden, "--docs", moved, "--reanchor")
        self.assertEqual(repaired.returncode, 0, repaired.stderr)
        self.assertIn("2 spans moved", repaired.stdout)
        self.assertEqual(golden.read_text(), GOLDEN.read_text().replace('"start": 65, "end": 81', '"start": 71, "end": 87')
                         .replace('"start": 84, "end": 121', '"start": 90, "end": 127'))
