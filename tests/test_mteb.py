import contextlib
import io
import json
import os
import unittest
from fractions import Fraction

from harness.mteb import Row, parse_result_json, read_measure, read_models, read_result, result_files
from metrics import RecordError
from tests import DATA, EXTERNAL_DATA, TestCase

SHAPES = DATA / "benchmarks" / "shapes"
FORMATS = EXTERNAL_DATA / "benchmarks" / "mteb" / "formats"


def shape(name):
    return read_result(str(SHAPES / f"{name}.json"))[1][0]


def read(result, where, measure):
    return read_measure(result.rows[where], measure)


class Shapes(TestCase):
    def test_every_shape_gives_task_rows_and_values(self):
        half = Fraction(1, 2)
        expected = {
            "modern": ("RiverRetrieval", "1" * 40, "ndcg@10", {("test", "de"): half, ("test", "fr"): Fraction(7, 10)}),
            "literal_nan": ("NanRetrieval", "main", "ndcg@10", {("test", "default"): Fraction(1, 4)}),
            "odd_values": ("OddRetrieval", None, "ndcg@10", {("test", "default"): half}),
            "hybrid": ("HybridRetrieval", "2" * 40, "ndcg@10", {("dev", "default"): Fraction(3, 8)}),
            "list_at_top_level": ("TopListRetrieval", None, "ndcg@10", {("test", "default"): Fraction(1, 8)}),
            "objects_under_scores": ("ObjectRetrieval", None, "main", {("test", "en"): half, ("test", "ja"): Fraction(1, 4)}),
            "old": ("OldRetrieval", None, "ndcg@10", {("dev", "default"): Fraction(5, 16)}),
            "old_minimal": ("MinimalRetrieval", None, "ndcg@10", {("test", "default"): Fraction(55002, 100000)}),
            "old_subsets": ("OldMining", "3" * 40, "f1", {("test", "de-en"): Fraction(3, 4), ("test", "fr-en"): half,
                                                         ("validation", "de-en"): Fraction(1, 4)}),
            "old_splits": ("OldLengths", "4" * 40, "ndcg@1", {("test_1024", "default"): half,
                                                              ("test_256", "default"): Fraction(1)}),
            "oldest_sts": ("OldestSTS", "5" * 40, "spearman", {("test", "default"): Fraction(5, 8)}),
            "oldest_sts_subsets": ("OldestMultilingualSTS", None, "spearman", {("test", "en-en"): Fraction(3, 4),
                                                                               ("test", "ko-ko"): Fraction(-1, 4)}),
            "sts": ("ModernSTS", "6" * 40, "spearman", {("test", "default"): half}),
        }
        self.assertEqual(set(expected), {path.stem for path in SHAPES.glob("*.json")})
        for name, (task, revision, measure, values) in expected.items():
            with self.subTest(name):
                result = shape(name)
                self.assertEqual((result.task, result.revision), (task, revision))
                self.assertEqual({where: read_measure(row, measure).value for where, row in result.rows.items()}, values)

    def test_only_what_is_asked_for_is_judged(self):
        result, where = shape("odd_values"), ("test", "default")
        self.assertEqual(read(result, where, "ndcg@10").value, Fraction(1, 2))
        for measure, word in {"ndcg@1": "a list", "ndcg@3": "a string", "ndcg@20": "an object", "ndcg@100": "true"}.items():
            with self.subTest(measure):
                problem = read(result, where, measure).problem
                self.assertIn("number expected", problem)
                self.assertIn(word, problem)
                self.assertIn("odd_values.json: test: default", problem)
        self.assertEqual(read(result, where, "ndcg@5").missing, "null")
        self.assertEqual(read(result, where, "ndcg@50").missing, "NaN")

    def test_a_percentage_is_refused(self):
        problem = read(shape("odd_values"), ("test", "default"), "ndcg@1000").problem
        for part in ("ndcg_at_1000", "72.4", "outside 0..1"):
            self.assertIn(part, problem)
        self.assertIn("outside 0..1", read(shape("literal_nan"), ("test", "default"), "hit_rate@10").problem)

    def test_another_cutoff_is_named(self):
        problem = read(shape("old_minimal"), ("test", "default"), "ndcg@5").problem
        self.assertIn("no ndcg@5; it holds ndcg@10", problem)

    def test_a_correlation_may_be_negative_and_a_trace_over_one(self):
        self.assertEqual(read_measure(Row({"cosine_spearman": 1.0000000000000002}, None, "x"), "spearman").value, 1)
        self.assertIn("outside -1..1", read_measure(Row({"cosine_spearman": -1.5}, None, "x"), "spearman").problem)
        self.assertIn("outside 0..1", read_measure(Row({"ndcg_at_10": -0.5}, None, "x"), "ndcg@10").problem)
        self.assertIn("too large", read_measure(Row({"ndcg_at_10": 10**400}, None, "x"), "ndcg@10").problem)


class Malformed(TestCase):
    def assert_refused(self, content, *parts):
        path = self.write("bad.json", content)
        with self.assertRaises(RecordError) as raised:
            read_result(str(path))
        for part in ("bad.json", *parts):
            self.assertIn(part, str(raised.exception))

    def test_not_json(self):
        self.assert_refused("", "it is empty")
        self.assert_refused('{"task_name": "A",\n "scores": {"test"}}', "line 2 column 19")
        self.assert_refused(b'{"task_name": "\xff"}', "not UTF-8")
        self.assert_refused("[" * 100_000, "nested too deeply")
        self.assert_refused('{"task_name": "A", "test": {"ndcg_at_10": ' + "9" * 5000 + "}}", "too large")

    def test_not_a_result(self):
        self.assert_refused("[1]", "expected a benchmark result")
        self.assert_refused('{"name": "a model"}', "not a benchmark result")
        self.assert_refused('{"task_name": "A", "scores": {}}', "no split with scores")
        self.assert_refused('{"task_name": "A", "scores": {"test": []}}', "no split with scores")

    def test_what_cannot_be_told_apart(self):
        self.assert_refused('{"task_name": "A", "mteb_dataset_name": "B", "test": {"ndcg_at_10": 1}}', "two task names: A, B")
        self.assert_refused('{"task_name": "A", "test": {"ndcg_at_10": 0.5, "ndcg_at_10": 0.6}}', 'duplicate key "ndcg_at_10"')
        rows = '[{"ndcg_at_10": 0.5, "hf_subset": "en"}, {"ndcg_at_10": 0.6, "hf_subset": "en"}]'
        self.assert_refused('{"task_name": "A", "scores": {"test": ' + rows + "}}", 'subset "en" stands twice')

    def test_rows_of_the_wrong_kind(self):
        self.assert_refused('{"task_name": "A", "scores": {"test": [0.5]}}', "test: row 0", "got 0.5")
        self.assert_refused('{"task_name": "A", "scores": {"test": 0.5}}', "test: row 0", "got 0.5")
        self.assert_refused('{"task_name": "A", "scores": {"test": [{"hf_subset": ["en"]}]}}', "test: row 0")

    def test_nan_stands_in_mteb_files_only(self):
        self.assertNotEqual(*[parse_result_json("[NaN]", "x")[0]] * 2)
        self.assert_refused('{"model": "a", "unit": "fraction", "results": [{"task": "A", "measure": "ndcg@10", "score": Infinity}]}',
                            "outside 0..1")


class Plain(TestCase):
    def plain(self, *results, unit="fraction", **more):
        path = self.write("plain.json", json.dumps({"model": "tiny", "unit": unit, "results": results, **more}))
        return read_result(str(path))

    def refusal(self, *results, **more):
        with self.assertRaises(RecordError) as raised:
            self.plain(*results, **more)
        return str(raised.exception)

    def test_scores_in_either_unit(self):
        model, (result,) = self.plain({"task": "A", "measure": "ndcg@10", "score": 0.55},
                                      {"task": "A", "measure": "ndcg@5", "score": 0.5, "split": "dev"})
        self.assertEqual(model, "tiny")
        self.assertEqual(read(result, ("test", "default"), "ndcg@10").value, Fraction(11, 20))
        self.assertEqual(read(result, ("dev", "default"), "ndcg@5").value, Fraction(1, 2))
        _, (result,) = self.plain({"task": "A", "measure": "spearman", "score": -36.5}, unit="percent")
        self.assertEqual(read(result, ("test", "default"), "spearman").value, Fraction(-73, 200))

    def test_percent_and_fraction_never_mix(self):
        message = self.refusal({"task": "A", "measure": "ndcg@10", "score": 72.4})
        for part in ("results[0]", "ndcg@10", "72.4", "outside 0..1"):
            self.assertIn(part, message)
        pair = [{"task": name, "measure": "ndcg@10", "score": 0.5} for name in "AB"]
        self.assertIn("none of 2 scores is over 1", self.refusal(*pair, unit="percent"))
        self.assertIn("never guessed", self.refusal(*pair, unit=None))

    def test_a_small_score_among_percentages_is_pointed_out(self):
        """It may be real (0.7%) or a fraction by mistake; only a person can tell."""
        entries = [{"task": name, "measure": "ndcg@10", "score": score} for name, score in (("A", 0.5), ("B", 60), ("C", 70))]
        with contextlib.redirect_stderr(io.StringIO()) as notes:
            self.plain(*entries, unit="percent")
            self.plain(*entries[1:], unit="percent")
        self.assertEqual(notes.getvalue().count("note: "), 1)
        self.assertIn("(0.5): is that a fraction?", notes.getvalue())

    def test_a_list_is_no_score(self):
        message = self.refusal({"task": "sts", "measure": "spearman", "score": [0.81, 0.0001]})
        for part in ("sts", "number expected", "list"):
            self.assertIn(part, message)

    def test_every_problem_is_listed(self):
        entries = 7, {"task": "A", "measure": "ndcg@10"}, {"task": 3, "measure": "ndcg@10", "score": 1, "cutof": 5}
        self.assertIn('unknown key "extra"', self.refusal(*entries, extra=1))
        message = self.refusal(*entries)
        for part in ("results[0]: expected an object", "results[1]", 'unknown key "cutof"', "task: expected text"):
            self.assertIn(part, message)
        entry = {"task": "A", "measure": "ndcg@10", "score": 0.5}
        self.assertIn("a second ndcg@10", self.refusal(entry, entry))

    def test_missing_stays_missing(self):
        _, (result,) = self.plain({"task": "A", "measure": "ndcg@10", "score": None})
        self.assertEqual(read(result, ("test", "default"), "ndcg@10").missing, "null")

    def test_scores_from_a_record_and_from_rows(self):
        self.write("panel.json", json.dumps({"models": {"v1": {"name": "v1"}}, "cutoffs": [5, 10], "queries": [
            {"id": "q1", "reference_grade_counts": {"3": 1}, "rankings": {"v1": [0, 3]}}]}))
        self.write("sts.jsonl", '{"gold": 1, "cosine": 0.1}\n{"gold": 2, "cosine": 0.3}\n{"gold": 3, "cosine": 0.2}\n')
        _, results = self.plain({"task": "A", "measure": "ndcg@5", "record": "panel.json"},
                                {"task": "B", "measure": "spearman", "rows": "sts.jsonl"})
        self.assertAlmostEqual(float(read(results[0], ("test", "default"), "ndcg@5").value), 0.6309297535714575, places=12)
        self.assertEqual(read(results[1], ("test", "default"), "spearman").value, Fraction(1, 2))
        self.assertIn("has no ndcg@3", self.refusal({"task": "A", "measure": "ndcg@3", "record": "panel.json"}))
        self.assertIn("record_model", self.refusal({"task": "A", "measure": "ndcg@5", "record": "panel.json",
                                                    "record_model": "v2"}))
        self.assertIn("give the measure spearman", self.refusal({"task": "B", "measure": "ndcg@5", "rows": "sts.jsonl"}))
        self.write("flat.jsonl", '{"gold": 1, "cosine": 0.1}\n{"gold": 1, "cosine": 0.3}\n')
        self.assertIn("undefined", self.refusal({"task": "B", "measure": "spearman", "rows": "flat.jsonl"}))


class Folders(TestCase):
    def result(self, path, task="A", value=0.5, revision="r"):
        return self.write(path, json.dumps({"task_name": task, "dataset_revision": revision, "scores": {
            "test": [{"ndcg_at_10": value, "main_score": value, "hf_subset": "default", "languages": ["eng-Latn"]}]}}))

    def models(self, *paths, **options):
        return {model.name: sorted(model.results) for model in read_models([str(self.folder / path) for path in paths], **options)}

    def test_one_folder_is_one_model(self):
        self.result("results/one/A.json")
        self.result("results/one/B.json", "B")
        self.result("results/org__two/" + "a" * 40 + "/A.json")
        self.write("results/one/.hidden.json", "nonsense")
        self.write("results/one/run.log", "nonsense")
        self.assertEqual(self.models("results"), {"one": ["A", "B"], "org/two@aaaaaaa": ["A"]})
        self.assertEqual(self.models("results/one"), {"one": ["A", "B"]})
        self.assertEqual(self.models("results/one/A.json", "results/one/B.json"), {"one": ["A", "B"]})

    def test_the_model_file_names_the_model(self):
        self.result("x/A.json")
        self.write("x/model_meta.json", json.dumps({"name": "org/m", "revision": "b" * 40,
                                                    "experiment_kwargs": {"vectors": "many"}}))
        self.assertEqual(self.models("x"), {"org/m@bbbbbbb (vectors=many)": ["A"]})

    def test_files_may_name_their_model(self):
        self.result("x/org__m@1@A.json")
        self.result("x/org__n@1@A.json")
        self.assertEqual(self.models("x"), {"org/m@1": ["A"], "org/n@1": ["A"]})

    def test_revisions_are_two_models_unless_joined(self):
        for revision, task in (("a", "A"), ("b", "B")):
            self.result(f"m/{revision * 40}/{task}.json", task)
            self.write(f"m/{revision * 40}/model_meta.json", json.dumps({"name": "org/m", "revision": revision * 40}))
        self.assertEqual(self.models("m"), {"org/m@aaaaaaa": ["A"], "org/m@bbbbbbb": ["B"]})
        self.assertEqual(self.models("m", merge=True), {"org/m": ["A", "B"]})
        [model] = read_models([str(self.folder / "m")], merge=True)
        self.assertIn("joined from 2 folders", model.notes[0])

    def test_a_task_twice_names_both_files_and_revisions(self):
        self.result("m/A.json", revision="r1")
        self.result("m/A2.json", revision="r2")
        with self.assertRaises(RecordError) as raised:
            self.models("m")
        for part in ("A2.json", "a second result for A", "r1", "r2"):
            self.assertIn(part, str(raised.exception))

    def test_two_folders_of_one_name(self):
        self.result("x/m/A.json")
        self.result("y/m/B.json", "B")
        with self.assertRaisesRegex(RecordError, "a second model named"):
            self.models("x/m", "y/m")

    def test_every_bad_file_is_named(self):
        self.result("m/A.json")
        self.write("m/b.json", "{")
        self.write("m/c.json", "[]")
        with self.assertRaises(RecordError) as raised:
            self.models("m")
        self.assertEqual(len(raised.exception.problems), 2)

    def test_nothing_there(self):
        (self.folder / "empty").mkdir()
        for path in ("empty", "none", "none/A.json"):
            with self.subTest(path), self.assertRaises(RecordError):
                self.models(path)

    def test_links_in_a_circle_end(self):
        self.result("m/A.json")
        try:
            os.symlink(self.folder / "m", self.folder / "m" / "again")
            os.symlink(self.folder, self.folder / "m" / "up")
            os.symlink(self.folder / "gone", self.folder / "m" / "broken.json")
        except OSError:
            self.skipTest("this system makes no links")
        self.assertEqual([os.path.basename(path) for path in result_files(str(self.folder / "m"))], ["A.json", "broken.json"])
        with self.assertRaisesRegex(RecordError, "broken.json: cannot be read"):
            self.models("m")


@unittest.skipUnless(FORMATS.exists(), f"no {FORMATS}: result files of public models are not part of the repository")
class RealFiles(TestCase):
    def test_every_real_shape_is_read(self):
        models = read_models([str(FORMATS)])
        files = [path for path in FORMATS.glob("*.json") if "model_meta" not in path.name]
        self.assertEqual(sum(len(model.results) for model in models), len(files))
        for model in models:
            for result in model.results.values():
                for row in result.rows.values():
                    self.assertTrue({"main_score", "ndcg_at_10", "accuracy"} & row.measures.keys(), row.place)
