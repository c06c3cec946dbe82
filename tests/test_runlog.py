"""The log of runs: daily files, marks, comparable runs, the chart."""

import json
import threading
from xml.etree import ElementTree

from harness.runlog import add, comparable_runs, completed, entry_lines, failed_entry, falls, plot, read_log
from metrics import RecordError
from tests import DATA
from tests.in_process import TestCase

GOLDEN, DOCS = DATA / "golden" / "golden.jsonl", DATA / "golden" / "docs.jsonl"


def entry(time="2026-03-01T10:00:00Z", hit=0.8, **changes):
    values = {"hit": hit, "mrr": 0.5, "ndcg": 0.6, "precision": None}
    return {"time": time, "golden_sha256": "abc", "k": 5, "depth": 10, "index": None, "questions": {"causal": 4}, "errors": 0,
            "metrics": {"overall": values, "causal": {"hit": 0.75}}, **changes}


class Log(TestCase):
    def add(self, *entries):
        return [add(self.folder / "log", found) for found in entries]

    def test_one_file_a_day_with_all_its_runs(self):
        self.add(entry(), entry(), entry("2026-03-01T23:59:59Z"), entry("2026-03-02T00:00:00Z"))
        self.assertEqual(sorted(path.name for path in (self.folder / "log").glob("*.json")), ["2026-03-01.json", "2026-03-02.json"])
        self.assertEqual(len(json.loads((self.folder / "log" / "2026-03-01.json").read_text())["runs"]), 3)
        self.assertEqual([found["time"][8:10] for found in read_log(self.folder / "log")], ["01", "01", "01", "02"])

    def test_a_fall_of_005_or_more_needs_review(self):
        found = self.add(entry(hit=0.85), entry(hit=0.8), entry(hit=0.7501))
        self.assertNotIn("needs_review", found[0])
        self.assertEqual(found[1]["needs_review"], [{"group": "overall", "metric": "hit", "before": 0.85, "after": 0.8}])  # a float gives 0.0499…
        self.assertNotIn("needs_review", found[2])
        self.assertEqual(found[1]["compared_with"], "2026-03-01T10:00:00Z")

    def test_falls_of_types_and_of_values_that_are_gone(self):
        before = {"overall": {"hit": 0.8, "mrr": 0.5, "ndcg": None}, "causal": {"hit": 0.5}}
        after = {"overall": {"hit": 0.9, "mrr": None, "ndcg": 0.1}, "causal": {"hit": 0.4}}
        self.assertEqual([(fall["group"], fall["metric"], fall["after"]) for fall in falls(before, after)],
                         [("overall", "mrr", None), ("causal", "hit", 0.4)])
        self.assertEqual(len(falls(before, {"overall": after["overall"]})), 2)

    def test_runs_on_something_else_are_not_comparable_and_say_so(self):
        found = self.add(entry(), entry(hit=0.1, golden_sha256="other"), entry(hit=0.1, k=3), entry(hit=0.1, index={"model": "m"}), entry(hit=0.7))
        self.assertEqual([row.get("not_comparable", "").rpartition(": ")[2] for row in found],
                         ["", "another golden set", "another golden set, another k", "another k, another index identity", "another index identity"])
        self.assertEqual([bool(row.get("needs_review")) for row in found], [False, False, False, False, True])
        self.assertEqual(found[4]["compared_with"], found[0]["time"])
        self.assertEqual(len(comparable_runs(read_log(self.folder / "log"))), 2)

    def test_a_run_that_decided_relevance_otherwise_is_not_comparable(self):
        found = self.add(entry(relevance="spans"), entry(relevance="chunk ids", hit=0.1))
        self.assertIn("another basis of relevance", found[1]["not_comparable"])
        self.assertNotIn("needs_review", found[1])

    def test_a_failed_run_is_shown_and_compared_with_nothing(self):
        failed = failed_entry("golden.jsonl", "my_rag:search", "86 of 86 searches failed", "2026-03-01T11:00:00Z")
        found = self.add(entry(), failed, entry(hit=0.7))
        self.assertEqual(entry_lines(found[1]), ["2026-03-01T11:00:00Z  FAILED, not comparable: 86 of 86 searches failed"])
        self.assertEqual(found[2]["compared_with"], found[0]["time"])
        self.assertEqual(found[2]["needs_review"][0]["after"], 0.7)
        self.assertNotIn("\x1b", entry_lines({**failed, "failed": "bad\x1b[31m\nword"})[0])
        entries = read_log(self.folder / "log")
        self.assertEqual((len(entries), len(completed(entries))), (3, 2))
        self.assertIn("2 runs", plot(entries))
        self.write("log/2026-03-01.json", json.dumps({"runs": [{**failed, "failed": 7}]}))
        with self.assertRaisesRegex(RecordError, r"runs\[0\].failed: expected text"):
            read_log(self.folder / "log")

    def test_a_fall_of_a_type_is_said_in_questions(self):
        values = {kind: {"overall": {"hit": 0.8}, "causal": {"hit": hit, "mrr": hit}} for kind, hit in (("before", 0.75), ("after", 0.625))}
        found = self.add(entry(questions={"causal": 8}, metrics=values["before"]), entry(questions={"causal": 8}, metrics=values["after"]))
        self.assertEqual(entry_lines(found[1])[-1], "    causal: hit 0.750 -> 0.625 (1 of 8 questions), mrr 0.750 -> 0.625")

    def test_runs_at_once_are_all_kept(self):
        folder = self.folder / "log"
        threads = [threading.Thread(target=add, args=(folder, entry())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(read_log(folder)), 8)

    def test_bad_logs(self):
        self.assertEqual(read_log(self.folder / "missing"), [])
        for text, words in (("[]", "expected an object"), ('{"runs": [{"time": 5}]}', r"runs\[0\].time: expected a time"), ("{", "not valid JSON")):
            self.write("log/2026-03-01.json", text)
            with self.subTest(text), self.assertRaisesRegex(RecordError, words):
                read_log(self.folder / "log")
            with self.assertRaises(RecordError):
                add(self.folder / "log", entry())
            self.assertEqual((self.folder / "log" / "2026-03-01.json").read_text(), text)
        with self.assertRaisesRegex(RecordError, "cannot be made"):
            add(self.write("file", ""), entry())

    def test_lines(self):
        lines = entry_lines(self.add(entry(), entry(hit=0.5, errors=2))[1])
        self.assertEqual(lines, ["2026-03-01T10:00:00Z  k 5  hit 0.500  mrr 0.500  ndcg 0.600  2 failed",
                                 "  needs review, compared with the run of 2026-03-01T10:00:00Z:", "    overall: hit 0.800 -> 0.500 (1 of 4 questions)"])


class Plot(TestCase):
    def test_is_a_figure_with_a_line_per_metric_and_its_breaks(self):
        runs = [entry(f"2026-03-0{day}T10:00:00Z", hit=0.9 - 0.01 * day, k=5 if day < 4 else 3) for day in range(1, 7)]
        runs[2]["needs_review"] = [{}]
        text = plot(runs)
        root = ElementTree.fromstring(text.encode())
        lines = [path.get("d") for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("stroke-linejoin")]
        self.assertEqual(len(lines), 6)  # three in the key, three in the plot
        self.assertEqual([line.count("M") for line in lines], [1, 1, 1, 2, 2, 2])
        self.assertIn("1 run to review", text)
        self.assertEqual(text, plot(runs))

    def test_of_one_run_and_of_none(self):
        ElementTree.fromstring(plot([entry()]).encode())
        with self.assertRaisesRegex(RecordError, "no runs"):
            plot([])


class Command(TestCase):
    def test_run_twice_and_show(self):
        for size in (200, 20):
            result = self.run_command("harness", "golden", "run", GOLDEN, "--docs", DOCS, "--size", size, "--log", "log")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("logged 2", result.stderr)
        shown = self.run_command("harness", "golden", "log", "log", "--plot", "log.svg")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("needs review", shown.stdout)
        refused = self.run_command("harness", "golden", "log", "log", "--plot", "log.png")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("expected a file ending in .svg", refused.stderr)
        ElementTree.parse(self.folder / "log.svg")
        empty = self.run_command("harness", "golden", "log", "nowhere")
        self.assertEqual(empty.returncode, 2)
        self.assertIn("nowhere: no runs", empty.stderr)
