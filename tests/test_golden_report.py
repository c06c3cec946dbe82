"""The report of a golden run: what it says, in every form."""

import json
import re

from harness.documents import read_chunks
from harness.evaluation import evaluate
from harness.golden_items import load_golden
from harness.golden_page import html_report
from harness.golden_report import markdown_report, report_of, text_report
from harness.relevance import ChunkIndex
from tests import DATA, TestCase
from tests.test_pages import Outline

FOLDER = DATA / "golden"


class Report(TestCase):
    def report(self, search, k=5, production_k=None, **options):
        chunks = read_chunks(FOLDER / "chunks.jsonl")
        golden = load_golden(FOLDER / "golden.jsonl", chunks=chunks)
        result = evaluate(golden, search, k=k, chunks=chunks, **options)
        return report_of(result, {"search": "test", "index": None}, ChunkIndex(chunks), production_k)

    def test_the_lowest_type_first_and_overall_last(self):
        report = self.report(lambda question: ["tomatoes-2", "compost-4"])
        kinds = [row["type"] for row in report["matrix"]]
        self.assertEqual(kinds, ["causal", "procedural", "numeric", "negative", "factual", "overall"])
        self.assertEqual([row["n"] for row in report["matrix"]], [2, 2, 3, 2, 1, 10])
        overall = report["matrix"][-1]["hit"]
        self.assertEqual(overall["value"], 0.3)
        self.assertAlmostEqual(overall["high"], 0.3 + 2.262157162741 * (0.21 / 9) ** 0.5, places=9)

    def test_intervals_are_cut_to_0_and_1_in_every_form(self):
        few = self.report(lambda question: ["tomatoes-2", "compost-4"])  # hit 0.3 of 10: -0.05 to 0.65
        most = self.report(lambda question: [f"{name}-{number}" for number in range(1, 6) for name in ("tomatoes", "compost", "bees")], k=10)
        self.assertEqual(few["matrix"][-1]["hit"]["low"], 0)
        ends = [cell[end] for report in (few, most) for row in report["matrix"] for cell in row.values() if isinstance(cell, dict)
                for end in ("low", "high") if cell[end] is not None]
        self.assertEqual([end for end in ends if not 0 <= end <= 1], [])
        self.assertTrue({0, 1} <= set(ends))
        self.assertIn("0.300 [0.00, 0.65]", text_report(few))

    def test_says_when_reranking_could_pay(self):
        near = ["bees-1", "compost-1", "tomatoes-1", "tomatoes-4", "bees-2"]
        report = self.report(lambda question: near + ["tomatoes-2", "compost-2"])
        ranking = report["reranking"]
        self.assertEqual((ranking["hit"], ranking["hit_wide"]), (0.1, 0.4))
        self.assertEqual(ranking["sentence"], "Reranking could pay: 3 of 10 questions have their first relevant chunk at rank 6 to 7, so the best"
                                              " order of the first 7 would lift hit@5 from 0.100 to 0.400.")
        others = ["bees-1", "compost-1", "tomatoes-1", "tomatoes-4", "ghost"]
        self.assertIn("hit@5 and hit@6 are both 0.1", self.report(lambda question: ["bees-2", *others])["reranking"]["sentence"])
        self.assertIsNone(self.report(lambda question: ["bees-2"], k=10, depth=10)["reranking"])

    def test_says_nothing_of_reranking_where_no_more_than_k_results_came(self):
        near = ["bees-1", "bees-2", "compost-1", "tomatoes-1", "tomatoes-4", "tomatoes-5"]
        report = self.report(lambda question, top_k=5: near[:top_k])
        sentence = "The search gave at most 5 results, so nothing can be said about reranking; 10 are asked for where it has a parameter named k."
        self.assertEqual((report["reranking"]["sentence"], report["reranking"]["wide"]), (sentence, None))
        self.assertIn(sentence, text_report(report))
        failed = self.report(lambda question: None)
        self.assertIsNone(failed["reranking"])
        self.assertNotIn("eranking", text_report(failed) + markdown_report(failed) + html_report(failed))

    def test_missed_questions_with_what_came_instead(self):
        report = self.report(lambda question: ["bees-1", "bees-2", "bees-3", "compost-1", "compost-2", "compost-3"])
        rows = {row["id"]: row for row in report["missed"]}
        self.assertEqual(list(rows), ["q1", "q2", "q3", "q4", "q5", "q7", "q8"])
        self.assertEqual((rows["q7"]["rank"], rows["q1"]["rank"]), (6, None))
        self.assertEqual(rows["q1"]["came"][0], {"id": "bees-1", "text": "# Bees"})
        self.assertIn("q7 (causal): Why does a heap smell? -- first relevant chunk at rank 6", text_report(report))

    def test_duplicates_short_results_errors_and_production(self):
        def search(question):
            if "hive" in question or "tomato seeds" in question:
                raise OSError("index <gone>")
            return ["bees-1", "bees-1"]

        report = self.report(search, production_k=8)
        self.assertEqual([row["id"] for row in report["errors"]], ["q1", "q2"])
        self.assertEqual(list(report["duplicates"]), [f"q{number}" for number in range(3, 11)])
        self.assertEqual(report["fewer_than_k"], [f"q{number}" for number in range(3, 11)])
        for form in (text_report, markdown_report, html_report):
            shown = form(report).replace("\\", "")
            self.assertIn("production passes on 8 chunks", shown)
            self.assertIn("8 questions got fewer than 5 results", shown)
            self.assertIn("the search failed" if form is not html_report else "index &lt;gone&gt;", shown)
        self.assertEqual(self.report(lambda question: ["bees-1"], production_k=5)["warnings"], [])

    def test_json_holds_no_surprises_and_texts_are_one_line(self):
        report = self.report(lambda question: ["bees-1"])
        report["missed"][0]["question"] = "one\ntwo\x1b[31m | <b>"
        json.dumps(report, allow_nan=False)
        self.assertNotIn("\x1b", text_report(report) + markdown_report(report))
        self.assertIn("one two \\[31m \\| \\<b\\>", markdown_report(report))

    def test_the_page_nests_and_lists_every_question(self):
        source = html_report(self.report(lambda question: ["tomatoes-2"], unanswerable=True))
        found = Outline(source)
        self.assertEqual(found.open, [])
        self.assertEqual(len(re.findall(r"<tr>", source.partition('id="questions"')[2].partition("</table>")[0])), 1 + 11)
        self.assertIn("not scored", found.words)
