"""The difference of two versions of a record: what changed, and parts that sum to the whole."""

import json
import random
import re
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from io import StringIO
from math import fsum
from subprocess import CompletedProcess

import metrics
from harness import diff
from harness.diff_text import lines_of
from tests import DATA, ROOT, TestCase

OLD, CHANGED = DATA / "card" / "records" / "retriever.json", DATA / "card" / "changed" / "retriever.json"
OUT = {"grade": None, "excluded": True}


def panel(value):
    return metrics.parse_record(value, "x.json").blocks[""]


class Versions(TestCase):
    """Two versions of one small record, with one change at a time."""

    def setUp(self):
        super().setUp()
        self.old = json.loads(OLD.read_text())
        self.new = deepcopy(self.old)

    def report(self, population="all"):
        return diff.panel_report(panel(self.old), panel(self.new), diff.POPULATIONS[population])

    def moved(self, report):
        """The parts that moved any metric."""
        return {part for row in report["metrics"] for part, value in row["parts"].items() if value}

    def test_the_same(self):
        report = self.report()
        self.assertFalse(diff.is_change(report))
        self.assertEqual((self.moved(report), report["grades"], report["rankings"]), (set(), [], []))

    def test_a_changed_label(self):
        # Rank 1 of q1 becomes a 3, and the reference says so.
        self.new["queries"][0]["rankings"]["upstream"][0] = 3
        self.new["queries"][0]["reference_grade_counts"] = {"0": 4, "2": 1, "3": 2}
        report = self.report()
        self.assertEqual(report["grades"], [{"query": "q1", "model": "upstream", "rank": 1, "old": 0, "new": 3}])
        self.assertEqual((report["rankings"], report["reference"]["expanded"]), ([], []))
        self.assertEqual(report["reference"]["not_kept"], [{"query": "q1", "counts": {"0": [5, 4], "3": [1, 2]}}])
        hit = next(row for row in report["metrics"] if (row["model"], row["metric"], row["cutoff"]) == ("upstream", "hit", 1))
        self.assertEqual((hit["old"], hit["new"], hit["parts"]["label"], hit["parts"]["ideal"]), (0.25, 0.5, 0.25, 0.0))
        self.assertEqual(self.moved(report), {"label", "ideal"})

    def test_a_label_that_was_withdrawn(self):
        self.new["queries"][3]["rankings"]["v2"][1] = OUT
        self.new["queries"][3]["reference_grade_counts"]["2"] = 2
        self.new["queries"][3]["reference_grade_counts"]["0"] = 3
        self.assertEqual(self.report()["grades"], [{"query": "q4", "model": "v2", "rank": 2, "old": 2, "new": None}])

    def test_a_changed_ranking(self):
        for ranking in ([0, 2, 0], [2, 0, 0], [2, 0], []):  # other passages, or the same ones in another order, or fewer
            with self.subTest(ranking=ranking):
                self.new["queries"][3]["rankings"]["upstream"] = ranking
                report = self.report()
                self.assertEqual((report["grades"], len(report["rankings"])), ([], 1))
                self.assertEqual(self.moved(report), {"ranking"})

    def test_the_same_grades_in_another_order_are_a_ranking_even_where_the_reference_changed(self):
        self.new["queries"][3]["rankings"]["v2"] = [2, 0, 2]
        self.new["queries"][3]["reference_grade_counts"]["2"] = 3
        report = self.report()
        self.assertEqual((report["grades"], report["rankings"][0]["first_rank"]), ([], 1))
        self.assertEqual(self.moved(report), {"ranking", "ideal"})

    def test_an_expanded_reference(self):
        self.new["queries"][1]["reference_grade_counts"] = {"0": 9, "2": 2, "3": 1}
        report = self.report()
        self.assertEqual(report["reference"]["expanded"], [{"query": "q2", "counts": {"0": [5, 9], "2": [0, 2]}}])
        self.assertEqual((report["reference"]["old_pairs"], report["reference"]["new_pairs"], report["reference"]["not_kept"]),
                         (25, 31, []))
        self.assertEqual(self.moved(report), {"ideal"})
        recall = next(row for row in report["metrics"] if (row["model"], row["metric"], row["cutoff"]) == ("v2", "recall", 3))
        self.assertAlmostEqual(recall["parts"]["ideal"], (1 / 3 - 1) / 3)

    def test_an_uncounted_grade_is_not_compared(self):
        del self.new["queries"][1]["reference_grade_counts"]["0"]
        self.assertEqual(len(self.report()["reference"]["expanded"]), 1)
        self.assertIn("    q2: grade 0: 5 -> uncounted", ["  " + line for line in lines_of(self.report(), 5)])

    def test_queries_that_come_and_go(self):
        self.new["queries"][2]["id"] = "q9"
        report = self.report()
        self.assertEqual((report["queries"]["added"], report["queries"]["removed"]), (["q9"], ["q3"]))
        self.assertEqual(report["metrics"][0]["difference"], 0)
        del self.new["queries"][2]
        self.assertEqual(self.moved(self.report()), {"population"})
        self.assertEqual(self.moved(self.report("answerable")), set())

    def test_no_query_in_both(self):
        for at, query in enumerate(self.new["queries"]):
            query["id"] = f"n{at}"
            query["rankings"]["v2"] = query["rankings"]["v2"][::-1]
        report = self.report()
        self.assertEqual(self.moved(report), {"population"})
        self.check_sums(report)

    def test_a_query_becomes_answerable(self):
        self.new["queries"][2]["reference_grade_counts"]["3"] = 1
        self.assertIn("population", self.moved(self.report("answerable")))
        self.assertNotIn("population", self.moved(self.report()))

    def test_the_order_of_queries_moves_nothing(self):
        self.new["queries"].reverse()
        report = self.report()
        self.assertTrue(report["queries"]["order"] and diff.is_change(report))
        self.assertEqual(self.moved(report), set())

    def test_another_scale(self):
        self.new["grades"] = {"max": 4, "useful": 3, "gain": "linear"}
        report = self.report()
        self.assertEqual(report["settings"], {"max_grade": [3, 4], "useful": [2, 3], "gain": ["exponential", "linear"]})
        self.assertEqual(self.moved(report), {"scale"})
        self.check_sums(report)

    def test_models_and_identities(self):
        self.new["models"]["v3"] = {}
        for query in self.new["queries"]:
            query["rankings"]["v3"] = [OUT]
        self.new["models"]["v2"] = {"name": "other"}
        report = self.report()
        self.assertEqual(report["models"], {"added": ["v3"], "removed": [], "identity": ["v2"]})
        self.assertTrue(all(row["new"] is None and row["difference"] is None for row in report["metrics"] if row["cutoff"] == 1
                            and row["metric"] != "recall"))

    def test_types_selected_and_reasons(self):
        self.new["queries"][0]["type"] = "written by hand"
        self.assertEqual(self.report()["queries"]["type"], ["q1"])
        for version, most in ((self.old, 1), (self.new, 2)):
            for query in version["queries"]:
                query["selected"] = {model: min(most, len(ranking)) for model, ranking in query["rankings"].items()}
                query["rankings"]["v2"].append({**OUT, "reason": "unjudged" if most == 1 else "abstained"})
            version["depth"] = 4
        report = self.report()
        self.assertEqual(report["queries"]["selected"], ["q1", "q2", "q4"])
        self.assertTrue(report["reasons"])
        self.assertEqual(self.moved(report), {"ranking"})

    def check_sums(self, report):
        for row in report["metrics"]:
            if row["difference"] is not None:
                self.assertAlmostEqual(fsum(row["parts"].values()), row["new"] - row["old"], delta=1e-15)

    def test_the_parts_sum_to_the_whole(self):
        chance = random.Random(8)

        def ranking():
            return [chance.choice((0, 0, 1, 2, 3, OUT)) for _ in range(chance.randrange(6))]

        def record():
            ids = chance.sample(range(20), 12)
            return {"models": {"a": {}, "b": {}}, "cutoffs": [1, 2, 5],
                    "grades": {"useful": chance.choice((1, 2)), "gain": chance.choice(("linear", "exponential"))},
                    "queries": [{"id": f"q{number}", "type": chance.choice("xy"), "rankings": {"a": ranking(), "b": ranking()},
                                 "reference_grade_counts": {"0": 9, "1": chance.randrange(5, 8), "2": chance.randrange(5, 9),
                                                            "3": 5}} for number in ids]}

        for _ in range(25):
            self.old, self.new = record(), record()
            old, new = panel(self.old), panel(self.new)
            for members in (*diff.POPULATIONS.values(), diff.of_type("x")):
                report = diff.panel_report(old, new, members)
                self.check_sums(report)
            summary = metrics.summarize_panel(new)
            for row in self.report()["metrics"]:
                value = summary["models"][row["model"]][row["metric"]][str(row["cutoff"])]
                self.assertEqual(metrics.rounded(row["new"]), value)


class Command(TestCase):
    """The command line."""

    def diff(self, *arguments):
        """Run the command in this process."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                status = metrics.run_command(lambda: diff.main(list(map(str, arguments))))
            except SystemExit as stop:  # argparse's way to refuse a usage
                status = stop.code
        return CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def test_exit_statuses(self):
        other = self.write("other.json", json.dumps({**json.loads(OLD.read_text()), "about": "a note"}))
        copy = self.write("copy.json", OLD.read_bytes() + b"\n\n")
        for arguments, code, said in (((OLD, copy), 0, "the same"), ((OLD, other), 1, "only notes changed"),
                                      ((OLD, CHANGED), 1, "grades changed: 2"),
                                      ((OLD, "missing.json"), 2, ""), ((OLD,), 2, ""), ((OLD, CHANGED, "--type", "none"), 2, ""),
                                      ((OLD, CHANGED, "--metric", "f1"), 2, "")):
            with self.subTest(arguments=arguments):
                done = self.diff(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(said, done.stdout)
                self.assertEqual("error: " in done.stderr, code == 2)
                self.assertNotIn("(a string)", done.stderr)  # no news where a word of the command line is meant

    def test_a_metric_that_is_not_in_both_is_refused(self):
        serving = DATA / "card" / "records" / "serving.json"
        there = "expected one of: hit, precision, recall, ndcg, mrr at 1, 3"
        for old, new, word, said in ((OLD, CHANGED, "ndcg@7", there), (OLD, CHANGED, "hit@1000", there),
                                     (OLD, OLD, "ndcg@7", there), (OLD, CHANGED, "selected_precision", there),
                                     (serving, serving, "hit", "no panel is in both")):
            with self.subTest(word=word, new=new):
                done = self.diff(old, new, "--metric", word)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f'--metric: "{word}" is not in both records', done.stderr)
                self.assertIn(said, done.stderr)

    def test_a_metric_is_looked_for_in_what_both_have(self):
        record = json.loads(OLD.read_text())
        for query in record["queries"]:
            query["selected"] = {model: len(ranking) for model, ranking in query["rankings"].items()}
        chosen = self.write("chosen.json", json.dumps(record))
        fewer = self.write("fewer.json", json.dumps({**record, "cutoffs": [1]}))
        self.assertEqual(self.diff(chosen, fewer, "--metric", "selected_precision", "hit@1").returncode, 1)
        done = self.diff(chosen, fewer, "--metric", "hit@3")
        self.assertTrue(done.stderr.endswith("mrr at 1, and selected_precision\n"), done.stderr)

    def test_json_holds_everything(self):
        report = json.loads(self.diff(OLD, CHANGED, "--format", "json", "--type", "generated").stdout)
        self.assertEqual((report["same"], report["population"], len(report["blocks"][""]["grades"])),
                         (False, "type generated", 2))
        self.assertEqual(len(report["blocks"][""]["metrics"]), 20)

    def test_other_blocks(self):
        folder = DATA / "card" / "records"
        table, checks = (json.loads((folder / name).read_text()) for name in ("promotion.json", "serving.json"))
        old = self.write("old.json", json.dumps({"table": table["public"], "served": checks, "gone": checks}))
        table["public"]["datasets"]["scifact"]["scores"]["v2"][0] = 0.7
        table["public"]["datasets"]["nfcorpus"] = table["public"]["datasets"].pop("trec covid")
        checks["checks"]["drift"]["value"] = 0.001
        del checks["checks"]["cosine"]
        new = self.write("new.json", json.dumps({"table": table["public"], "served": checks}))
        lines = self.diff(old, new).stdout.splitlines()
        for said in ("  scifact: v2: 0.7500 -> 0.8000, 1 of 2 scores changed", "  trec covid: removed", "  nfcorpus: added",
                     "  the block is removed",
                     "  drift: 0.02 (at most 0.01: FAIL) -> 0.001 (at most 0.01: pass)",
                     "  cosine: 0.999 (at least 0.99: pass) -> absent"):
            self.assertIn(said, lines)

    def test_the_page_shows_what_the_command_prints(self):
        page = (ROOT / "harness" / "docs" / "diff.md").read_text(encoding="utf-8")
        command, shown = re.search(r"```\n\$ python -m (.*?)\n(.*?)```", page, re.DOTALL).groups()
        self.assertEqual(self.run_command(*command.split(), cwd=ROOT).stdout, shown)
