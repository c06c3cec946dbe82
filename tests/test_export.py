"""export: the files of each format, and the round trip through our own score and through pytrec_eval."""

import csv
import json
import random

from harness import export, measures, runs, score
from metrics import RecordError, parse_record, summarize
from tests import TestCase


def random_panel(seed, excluded=False, gain="linear"):
    """A panel of two models over 12 queries, each with at least one useful passage in its reference."""
    generator = random.Random(seed)
    queries = []
    for number in range(12):
        counts = [generator.randint(5, 9), generator.randint(0, 5), generator.randint(1, 4), generator.randint(0, 3)]
        judged = [grade for grade, count in enumerate(counts) for _ in range(count)]
        rankings = {}
        for model in ("old", "new/2"):
            ranking = generator.sample(judged, min(len(judged), 10))
            if excluded:
                ranking = [
                    {"grade": None, "excluded": True, "reason": "unjudged"} if generator.random() < 0.3 else grade
                    for grade in ranking
                ]
            rankings[model] = ranking
        queries.append({"id": f"q{number}", "reference_grade_counts": dict(zip("0123", counts)), "rankings": rankings})
    queries[3]["rankings"]["old"] = []
    return {
        "models": {"old": {}, "new/2": {}},
        "depth": 10,
        "cutoffs": [1, 3, 10],
        "grades": {"max": 3, "useful": 2, "gain": gain},
        "queries": queries,
    }


class ExportCase(TestCase):
    def export(self, value, *arguments):
        """The command on a record; the folder that it wrote."""
        self.write("r.json", json.dumps(value))
        self.done = self.run_command("harness", "export", "r.json", "--output", "out", *arguments)
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        return self.folder / "out"


class FilesTest(ExportCase):
    PANEL = {
        "models": {"m": {}},
        "cutoffs": [2],
        "queries": [
            {
                "id": "q1",
                "type": "x, y",
                "reference_grade_counts": {"0": 1, "1": 0, "3": 2},
                "rankings": {"m": [3, {"grade": None, "excluded": True, "reason": "abstained"}, 3, 0]},
            },
            {"id": "q2", "type": "z", "reference_grade_counts": {"2": 1}, "rankings": {"m": [0, 2]}},
        ],
    }

    def test_trec(self):
        out = self.export(self.PANEL, "--to", "trec")
        self.assertEqual((out / "qrels.txt").read_text(), "q1 0 q1-3-1 3\nq1 0 q1-3-2 3\nq1 0 q1-0-1 0\nq2 0 q2-2-1 2\n")
        self.assertEqual(
            (out / "m.trec").read_text(),
            "q1 Q0 q1-3-1 1 4 m\nq1 Q0 q1-excluded-1 2 3 m\nq1 Q0 q1-3-2 3 2 m\nq1 Q0 q1-0-1 4 1 m\n"
            "q2 Q0 q2-0-1 1 2 m\nq2 Q0 q2-2-1 2 1 m\n",
        )
        for words in ("1 excluded position", "--at K", "exponential gain", "-l 2"):
            self.assertIn(words, self.done.stderr)

    def test_at_a_cutoff(self):
        out = self.export(self.PANEL, "--to", "trec", "--at", "2")
        self.assertEqual((out / "m.trec").read_text(), "q1 Q0 q1-3-1 1 1 m\nq2 Q0 q2-0-1 1 2 m\nq2 Q0 q2-2-1 2 1 m\n")

    def test_beir_and_ranx(self):
        out = self.export(self.PANEL, "--to", "beir")
        self.assertEqual(
            (out / "qrels" / "test.tsv").read_text().splitlines()[:2], ["query-id\tcorpus-id\tscore", "q1\tq1-3-1\t3"]
        )
        self.assertTrue((out / "m.trec").is_file())
        out = self.export(self.PANEL, "--to", "ranx")
        self.assertEqual(json.loads((out / "qrels.json").read_text())["q2"], {"q2-2-1": 2})
        self.assertEqual(json.loads((out / "m.json").read_text())["q2"], {"q2-0-1": 2, "q2-2-1": 1})

    def test_csv(self):
        out = self.export(
            {"graded": self.PANEL, "public": {"measure": "nDCG@10", "datasets": {"a": {"queries": 1, "scores": {"m": [0.5]}}}}},
            "--to",
            "csv",
        )
        rows = list(csv.reader((out / "graded" / "positions.csv").read_text().splitlines()))
        self.assertEqual(
            rows[:3],
            [
                ["model", "query", "type", "rank", "grade", "excluded"],
                ["m", "q1", "x, y", "1", "3", ""],
                ["m", "q1", "x, y", "2", "", "abstained"],
            ],
        )
        self.assertEqual((out / "public" / "scores.csv").read_text(), "dataset,model,query,nDCG@10\na,m,1,0.5\n")

    def test_a_name_that_changes_is_told(self):
        value = json.loads(json.dumps(self.PANEL).replace('"m"', '"mod\u00e8le-\u00fc"'))
        out = self.export(value, "--to", "trec")
        self.assertTrue((out / "mod_le-_.trec").read_text().endswith(" mod_le-_\n"))
        self.assertIn("note: model modèle-ü is called mod_le-_ in the files\n", self.done.stderr)
        self.export(value, "--to", "csv")
        self.assertNotIn("is called", self.done.stderr)

    def test_the_record_itself_is_not_replaced(self):
        text = json.dumps(self.PANEL)
        self.write("out/m.json", text)
        done = self.run_command("harness", "export", "out/m.json", "--to", "ranx", "--output", "out")
        self.assertEqual(done.returncode, 2)
        self.assertIn("would replace the input", done.stderr)
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["m.json"])
        self.assertEqual((self.folder / "out" / "m.json").read_text(), text)

    def test_a_section_leads_nowhere_but_into_the_output(self):
        for section in (str(self.folder / "elsewhere"), "a/b", "a\\b", "C:x"):
            self.write("r.json", json.dumps({section: self.PANEL}))
            done = self.run_command("harness", "export", "r.json", "--output", "out", "--to", "trec")
            self.assertEqual(done.returncode, 2)
            self.assertIn("expected a name that can be a folder's", done.stderr)
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["r.json"])

    def test_what_cannot_be_written(self):
        with self.assertRaises(RecordError):
            export.file_names(["a/b", "a_b"])
        with self.assertRaises(RecordError):
            export.file_names(["modèle-ü", "mod_le-_"])
        with self.assertRaises(RecordError):
            export.file_names(["qrels"])
        table = {"measure": "nDCG@10", "datasets": {"a": {"queries": 1, "scores": {"m": [0.5]}}}}
        self.write("t.json", json.dumps(table))
        done = self.run_command("harness", "export", "t.json", "--to", "trec", "--output", "out")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--to csv", done.stderr)
        self.assertFalse((self.folder / "out").exists())
        spaced = json.loads(json.dumps(self.PANEL).replace('"q1"', '"q 1"'))
        self.write("s.json", json.dumps(spaced))
        done = self.run_command("harness", "export", "s.json", "--to", "trec", "--output", "out")
        self.assertIn("q 1", done.stderr)


class RoundTripTest(ExportCase):
    """What another tool computes from the exported files is what metrics.py computes from the record."""

    def expected(self, value, k):
        summary = summarize(parse_record(value, "r.json"))["models"]
        return {
            model: {"nDCG": block["ndcg"][k], "R": block["recall"][k], "Success": block["hit"][k]}
            for model, block in summary.items()
        }

    def test_through_our_own_score(self):
        for seed in range(3):
            value = random_panel(seed)
            out = self.export(value, "--to", ("trec", "beir", "ranx")[seed])
            qrels = runs.read_qrels(out / ("qrels.txt", "qrels/test.tsv", "qrels.json")[seed])
            for k in "1", "3", "10":
                names = [f"{family}@{k}" for family in ("nDCG", "R", "Success")]
                scorer = score.Scorer(qrels, list(map(measures.parse_measure, names)), score.parse_options(["--useful", "2"])[0])
                for model, values in self.expected(value, k).items():
                    file = model.replace("/", "_") + (".json" if seed == 2 else ".trec")
                    found = scorer.score(out / file).values
                    for family, wanted in values.items():
                        self.assertAlmostEqual(score.mean(found[f"{family}@{k}"]), wanted, delta=1e-12)

    def test_through_our_own_score_at_a_cutoff_with_excluded_positions(self):
        value = random_panel(7, excluded=True)
        out = self.export(value, "--to", "trec", "--at", "3")
        scorer = score.Scorer(
            runs.read_qrels(out / "qrels.txt"),
            list(map(measures.parse_measure, ("nDCG@3", "R@3", "Success@3"))),
            score.parse_options(["--useful", "2"])[0],
        )
        for model, values in self.expected(value, "3").items():
            found = scorer.score(out / (model.replace("/", "_") + ".trec")).values
            for family, wanted in values.items():
                self.assertAlmostEqual(score.mean(found[f"{family}@3"]), wanted, delta=1e-12)

    def test_through_pytrec_eval(self):
        try:
            import pytrec_eval
        except ImportError:
            self.skipTest("pytrec_eval is not installed; the round trip through our own score is still checked")
        value = random_panel(5)
        out = self.export(value, "--to", "trec")
        with (out / "qrels.txt").open() as file:
            qrels = pytrec_eval.parse_qrel(file)
        for model in value["models"]:
            with (out / (model.replace("/", "_") + ".trec")).open() as file:
                run = pytrec_eval.parse_run(file)
            for k in "1", "3", "10":
                gained = pytrec_eval.RelevanceEvaluator(qrels, {f"ndcg_cut.{k}"}).evaluate(run)
                binary = pytrec_eval.RelevanceEvaluator(qrels, {f"recall.{k}", f"success.{k}"}, relevance_level=2).evaluate(run)
                expected = self.expected(value, k)[model]
                for family, key, found in (("nDCG", "ndcg_cut", gained), ("R", "recall", binary), ("Success", "success", binary)):
                    mean = sum(query[f"{key}_{k}"] for query in found.values()) / len(qrels)
                    self.assertAlmostEqual(mean, expected[family], delta=1e-9)
