import json
import re
import unittest
import xml.etree.ElementTree as ElementTree
from fractions import Fraction

from harness.benchmark import compare, compare_all, main
from harness.benchmark_audit import EXAMPLE, audit_suite, contradictions, load_table, parse_table
from harness.benchmark_output import FORMATS, escape, figure, percent, quoted
from harness.benchmark_suite import FOLDER, SHIPPED, load_suite, parse_suite, score, suite_of_results
from harness.mteb import Model, Result, Row, read_models
from metrics import RecordError
from tests import EXTERNAL_DATA, ROOT, TestCase

PREFIX = "Given a claim, find documents that refute the claim"
REAL = EXTERNAL_DATA / "benchmarks" / "mteb" / "jina-embeddings-v4"


def suite(*tasks, **more):
    return parse_suite({"name": "S", "measure": "ndcg@10", "tasks": list(tasks), **more}, "s.json")


def model(name, **tasks):
    """A Model whose tasks are {subset: value} or one value."""
    results = {}
    for task, values in tasks.items():
        values = values if isinstance(values, dict) else {"default": values}
        rows = {("test", subset): Row({"ndcg_at_10": value, "main_score": value}, None, f"{name}/{task}.json: test: {subset}")
                for subset, value in values.items()}
        results[task] = Result(task, "r1", rows, f"{name}/{task}.json")
    return Model(name, results, [])


class ShippedSuites(TestCase):
    def test_the_nine_of_the_paper(self):
        self.assertEqual(sorted(SHIPPED), sorted(path.stem for path in FOLDER.glob("*.json")))
        suites = {name: load_suite(name.upper()) for name in SHIPPED}
        self.assertEqual({name: (len(each.tasks), each.measure) for name, each in suites.items()}, {
            "j-vdr": (43, "ndcg@5"), "vidore": (10, "ndcg@5"), "clipb": (4, "ndcg@5"), "mmteb": (18, "ndcg@10"),
            "mteb-en": (10, "ndcg@10"), "coir": (10, "ndcg@10"), "lemb": (6, "ndcg@10"), "sts-m": (14, "spearman"),
            "sts-en": (9, "spearman")})
        for each in suites.values():
            self.assertEqual(each.rule, "two-step")
            self.assertTrue(all(task.type and task.languages for task in each.tasks), each.name)
            self.assertIn("arXiv:2506.18902", each.source)

    def test_the_prefix_and_the_languages(self):
        for name in ("mmteb", "mteb-en"):
            self.assertEqual({task.name: task.prefix for task in load_suite(name).tasks if task.prefix}, {"ArguAna": PREFIX})
        scores = {task.name: len(task.places) for task in load_suite("j-vdr").tasks}
        self.assertEqual(sorted(scores.values())[-5:], [1, 10, 10, 17, 20])

    def test_an_unknown_suite_names_the_known(self):
        with self.assertRaisesRegex(RecordError, "nonesuch: no such suite.*mteb-en"):
            load_suite("nonesuch")


class SuiteFiles(TestCase):
    def test_every_problem_is_listed(self):
        with self.assertRaises(RecordError) as raised:
            parse_suite({"name": 1, "measure": "ndcg@10", "rule": "median", "cutof": 5, "tasks": [
                {"task": "A", "splits": []}, {"task": "A"}, {"task": "B", "aliases": ["A"], "subset": ["x"]}, 7]}, "s.json")
        for part in ("name: expected text", "rule: expected one of", 'unknown key "cutof"',
                     "tasks[0]: splits: expected at least one",
                     'tasks[1]: "A" stands twice', 'tasks[2]: unknown key "subset"', 'tasks[2]: "A" stands twice',
                     "tasks[3]: expected a task's name, or an object"):
            self.assertIn(part, str(raised.exception))
        for value in (None, [], {"name": "S", "measure": "ndcg@10", "tasks": []}):
            self.assertRaises(RecordError, parse_suite, value, "s.json")


    def test_a_task_may_be_its_name_alone(self):
        plain = {"name": "S", "measure": "ndcg@10", "type": "retrieval", "tasks": ["A", {"task": "B", "group": "g"}]}
        whole = {**plain, "tasks": [{"task": "A"}, {"task": "B", "group": "g"}]}
        self.assertEqual(parse_suite(plain, "s.json"), parse_suite(whole, "s.json"))
        self.assertEqual(parse_suite(plain, "s.json").tasks[0].measure, "ndcg@10")
        self.assertRaisesRegex(RecordError, 'tasks\\[1\\]: "A" stands twice', parse_suite, {**plain, "tasks": ["A", "A"]}, "s.json")


class Scoring(TestCase):
    def assert_refused(self, result, asked, *parts):
        problems = []
        score(asked, result, problems)
        self.assertEqual(len(problems), 1)
        for part in parts:
            self.assertIn(part, problems[0])

    def test_two_steps_and_the_other_rules(self):
        asked = suite({"task": "A", "type": "retrieval"}, {"task": "B", "subsets": ["de", "fr"], "type": "retrieval"},
                      {"task": "C", "type": "sts"})
        averages = score(asked, model("m", A=0.5, B={"de": 0.2, "fr": 0.4}, C=1.0), []).averages
        self.assertEqual(averages, {"two-step": Fraction(3, 5), "flat": Fraction(21, 40), "by-type": Fraction(7, 10)})

    def test_a_missing_language_leaves_no_average(self):
        asked = suite({"task": "A", "subsets": ["deu", "fra", "swa"]})
        whole, partial = model("whole", A={"deu": 0.5, "fra": 0.5, "swa": 0.2}), model("partial", A={"deu": 0.45, "fra": 0.45})
        column = compare(asked, [whole, partial], [])
        self.assertEqual(column.averages, {"whole": Fraction(2, 5), "partial": None})
        self.assertEqual(column.scores["partial"].missing, {"A": ["swa"]})
        self.assertEqual(column.shared, {"A": [("test", "deu"), ("test", "fra")]})
        self.assertEqual(column.shared_averages, {"whole": Fraction(1, 2), "partial": Fraction(9, 20)})

    def test_a_missing_task_and_what_is_no_score(self):
        asked = suite({"task": "A"}, {"task": "B"}, {"task": "C"})
        each = score(asked, model("m", A=float("nan"), B=None), [])
        self.assertIsNone(each.averages)
        self.assertEqual(each.missing, {"A": ["test is NaN"], "B": ["test is null"], "C": []})

    def test_another_measure_or_cutoff_is_refused_by_name(self):
        self.assert_refused(model("m", A=0.5), suite({"task": "A"}, measure="ndcg@5"), "m/A.json", "no ndcg@5", "ndcg@10",
                            "S asks for ndcg@5 of A")
        self.assert_refused(model("m", A=0.5), suite({"task": "A", "measure": "spearman"}), "no spearman",
                            "S asks for spearman of A")

    def test_another_prefix_is_refused_by_name_and_none_is_noted(self):
        asked = suite({"task": "A", "query_prefix": PREFIX})
        result = model("m", A=0.5)
        for prefix, refused in ((PREFIX, False), (PREFIX + " ", False), ("query: ", True), ("", True)):
            row = result.results["A"].rows["test", "default"]
            result.results["A"].rows["test", "default"] = row._replace(prefix=prefix)
            if refused:
                self.assert_refused(result, asked, "A was measured with the query prefix", json.dumps(prefix), PREFIX)
            else:
                problems = []
                self.assertEqual((score(asked, result, problems).notes, problems), ([], []))
        self.assertIn("does not record its prefix", score(asked, model("m", A=0.5), []).notes[0])

    def test_a_percentage_is_refused(self):
        self.assert_refused(model("m", A=72.4), suite({"task": "A"}), "ndcg_at_10", "72.4", "outside 0..1")

    def test_an_alias_counts_and_two_names_do_not(self):
        asked = suite({"task": "A", "aliases": ["a"]})
        self.assertEqual(score(asked, model("m", a=0.5), []).averages["flat"], Fraction(1, 2))
        self.assert_refused(model("m", a=0.5, A=0.6), asked, "a second result, under another name")

    def test_refusals_of_all_suites_come_together(self):
        with self.assertRaises(RecordError) as raised:
            compare_all([suite({"task": "A"}, measure="ndcg@5"), suite({"task": "A"}, measure="mrr@5")],
                        [model("m", A=0.5), model("n", A=0.5)])
        self.assertEqual(len(raised.exception.problems), 4)

    def test_results_no_suite_knows(self):
        made = suite_of_results([model("m", X={"de": 0.5}), model("n", X={"fr": 0.5}, Y=1.0)])
        self.assertEqual([(task.name, task.measure, len(task.places)) for task in made.tasks], [("X", "main", 2), ("Y", "main", 1)])
        bare = Model("m", {"X": Result("X", None, {("test", "default"): Row({"f1": 0.5}, None, "x")}, "x")}, [])
        with self.assertRaisesRegex(RecordError, "no main score"):
            suite_of_results([bare])
        self.assertIn("left out", suite_of_results([bare, model("n", Y=1.0)]).notes[0])


class Output(TestCase):
    models = [model("a|b", A=0.84105, B=0.5), model("c", A=0.9, B=0.3), model("d", A=0.95), model("e", Z=1.0)]

    def show(self, form, tasks=False):
        asked = suite({"task": "A", "group": "g"}, {"task": "B", "group": "g"}, notes=["a note"])
        return FORMATS[form]([compare(asked, self.models, [])], self.models, tasks)

    def test_percentages_round_halves_away_from_zero(self):
        for value, text in {"0.84105": "84.11", "0.841049": "84.10", "-0.36505": "-36.51", "0": "0.00", "1": "100.00",
                            "-0.000001": "0.00"}.items():
            self.assertEqual(percent(Fraction(value)), text)
        self.assertEqual((percent(None), percent(Fraction(1, 2), 0)), ("missing", "50"))

    def test_text_marks_the_best_and_names_what_lacks(self):
        lines = self.show("text").splitlines()
        self.assertEqual([line.split() for line in lines[:5]], [["model", "S"], ["a|b", "67.05*"], ["c", "60.00"],
                                                                ["d", "missing"], ["e", "-"]])
        text = "\n".join(lines)
        for part in ("nDCG@10, mean of 2 tasks (2 scores), two-step", "d: missing 1 of 2 tasks: B", "none of the tasks: e",
                     "a note",
                     "over the 1 task (1 score) that all of them have: a|b 84.11, c 90.00, d 95.00 (best)"):
            self.assertIn(part, text)
        self.assertIn("  A      84.11   90.00     95.00*  missing", self.show("text", True).splitlines())

    def test_a_tie_marks_both_and_one_model_is_no_best(self):
        column = compare(suite({"task": "A"}), [model("m", A=0.1), model("n", A=0.10)], [])
        self.assertEqual(FORMATS["text"]([column], [model("m"), model("n")]).count("10.00*"), 2)
        column = compare(suite({"task": "A"}), [model("m", A=0.1)], [])
        self.assertNotIn("10.00*", FORMATS["text"]([column], [model("m")]))

    def test_markdown_is_a_table(self):
        lines = self.show("markdown").splitlines()
        self.assertEqual(lines[:6], ["| model | S |", "| --- | ---: |", "| a\\|b | **67.05** |", "| c | 60.00 |",
                                     "| d | missing |", "| e | - |"])
        self.assertEqual(escape("a\n<b>"), "a \\<b\\>")

    def test_json_holds_fractions_and_null(self):
        report = json.loads(self.show("json"))
        self.assertEqual(report["unit"], "fraction")
        block = report["suites"]["S"]
        self.assertEqual([block["models"][name]["average"] for name in ("a|b", "c", "d", "e")], [0.670525, 0.6, None, None])
        self.assertEqual((block["best"], block["common"]["best"], block["models"]["d"]["missing"]), (["a|b"], ["d"], {"B": []}))
        self.assertEqual(block["models"]["c"]["groups"], {"g": 0.6})
        self.assertRegex(block["suite_sha256"], "^[0-9a-f]{64}$")

    def test_model_index_lists_every_score_once(self):
        text = self.show("model-index")
        self.assertEqual(text.count("model-index:\n"), 1)
        self.assertEqual([line for line in text.splitlines() if line.startswith("- name")],
                         ['- name: "a|b"', '- name: "c"', '- name: "d"', '- name: "e"'])
        first = text.split('- name: "c"')[0]
        self.assertEqual([line.split()[1] for line in first.splitlines() if "value:" in line], ["84.105", "50.000", "67.053"])
        self.assertEqual(first.count('      revision: "r1"'), 2)
        self.assertIn('- name: "e"\n  results: []\n', text)
        self.assertEqual(quoted('a"\\\n\u2028\x85é😀'), '"a\\"\\\\\\n\\U00002028\\U00000085é😀"')

    def test_the_figure_says_what_the_table_says(self):
        columns = [compare(suite({"task": "A"}, {"task": "B"}, name=f"S{number}"), self.models, []) for number in range(11)]
        svg = figure(columns, self.models)
        texts = ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual([texts.count(text) for text in ("67.05", "best", "60.00", "missing", "S10", "nDCG@10")],
                         [11, 11, 11, 11, 1, 11])
        self.assertEqual(svg, figure(columns, self.models))


class Audit(TestCase):
    @classmethod
    def setUpClass(cls):
        _, _, _, suites = load_table(EXAMPLE)
        cls.suites = {each.name: each for each in suites}
        cls.findings = {each.name: {(found.model, found.place): found for found in audit_suite(each, 3)} for each in suites}

    def test_the_two_step_averages_of_j_vdr(self):
        published = {model: found for (model, place), found in self.findings["J-VDR"].items() if place == "table 3"}
        self.assertEqual({model: (found.published.text, found.verdict) for model, found in published.items()}, {
            "jev4-single": ("73.98", "agrees"), "jev4-multi": ("80.55", "agrees"), "dse-qwen2-2b-mrl-v1": ("67.25", "agrees"),
            "colpali-v1.2": ("63.80", "agrees"), "jev3 + OCR": ("47.82", "agrees"), "j-clip-v2": ("40.52", "agrees")})
        for found in published.values():
            self.assertEqual(percent(found.averages["two-step"] / 100), found.published.text)
            self.assertNotEqual(percent(found.averages["flat"] / 100), found.published.text)

    def omitted(self, name, place):
        return {model: [names for names, _ in found.omission.sets] for (model, where), found in self.findings[name].items()
                if where == place and found.verdict == "omission"}

    def test_coir_agrees_only_without_code_search_net(self):
        rows = ("jina-embeddings-v2-code", "jina-embeddings-v4", "gemini-embedding-001", "voyage-code-3")
        self.assertEqual(self.omitted("COIR", "table A16"), dict.fromkeys(rows, [("COIRCodeSearchNetRetrieval",)]))
        self.assertEqual(self.findings["COIR"]["jina-embeddings-v3", "table A16"].missing, ["COIRCodeSearchNetRetrieval"])

    def test_mmteb_agrees_only_without_winogrande(self):
        found = self.omitted("MMTEB", "table A12")
        pairs = found.pop("text-embedding-3-large")
        self.assertEqual(found, dict.fromkeys(("jina-embeddings-v3", "bge-m3", "gemini-embedding-001", "voyage-3"),
                                              [("WinoGrande",)]))
        self.assertEqual(pairs, [("ArguAna", "StatcanDialogueDatasetRetrieval"), ("SpartQA", "TwitterHjerneRetrieval")])
        self.assertEqual([names for names, _ in self.findings["MMTEB"]["text-embedding-3-large", "table A12"].near.sets],
                         [("WinoGrande",)])

    def test_table_3_contradicts_table_a11(self):
        found = {name: [(place, printed.text) for place, printed in values]
                 for name, values in contradictions(self.suites["MTEB-en"])}
        self.assertEqual(found, {"jina-embeddings-v3": [("table 3", "54.33"), ("table A11", "55.39")],
                                 "jina-embeddings-v4": [("table 3", "55.97"), ("table A11", "55.91")]})
        self.assertEqual(contradictions(self.suites["LEMB"]), [])  # 74.06 and 74.07 are both roundings of 74.065

    def test_what_cannot_be_recomputed_is_said(self):
        found = self.findings["MTEB-en"]["voyage-3", "table 3"]
        self.assertEqual((found.verdict, found.averages), ("no scores", None))


def table(models, **more):
    return {"unit": "percent", "suites": [{"name": "S", "models": models, **more}]}


class AuditTables(TestCase):
    def audit(self, published, scores, largest=3, **more):
        _, _, _, [each] = parse_table(table({"m": {"published": {"here": published}, "scores": scores}}, **more), "t.json")
        return audit_suite(each, largest)[0]

    def test_each_verdict(self):
        scores = {"a": "10.0", "b": {"de": "20.0", "fr": "40.0"}, "c": "80.0"}
        for published, verdict in {"40.0": "agrees", "40.1": "within rounding", "37.5": "another rule", "20.0": "omission",
                                   "99.9": "differs"}.items():
            with self.subTest(published):
                found = self.audit(published, scores)
                self.assertEqual(found.verdict, verdict)
        self.assertEqual(self.audit("37.5", scores).rule, "flat")
        self.assertEqual([names for names, _ in self.audit("20.0", scores).omission.sets], [("c",)])
        self.assertEqual(self.audit("99.9", scores, largest=1).omission.tried, 3)
        self.assertEqual(self.audit("99.9", {}, tasks=["a"]).verdict, "no scores")

    def test_json_numbers_and_fractions(self):
        models = {"m": {"published": {"here": 0.5}, "scores": {"a": 0.25, "b": 0.75}}}
        value = {"unit": "fraction", "suites": [{"name": "S", "models": models}]}
        self.assertEqual(audit_suite(parse_table(value, "t.json")[3][0], 3)[0].verdict, "agrees")

    def refusal(self, value):
        with self.assertRaises(RecordError) as raised:
            parse_table(value, "t.json")
        return str(raised.exception)

    def test_bad_tables(self):
        for value, part in [
            ([], "expected an object"),
            ({"unit": "percent"}, "suites is missing"),
            ({"unit": "%", "suites": [1]}, "never guessed"),
            ({"unit": "percent", "suites": []}, "expected a list of suites"),
            ({"unit": "percent", "suites": [3]}, "suites[0]: expected an object"),
            (table([]), 'models: expected an object, such as {"blue": {"published": {"table 1": "73.98"}, "scores": {"Lake'),
            (table({}, types=[1]), 'types: expected an object, such as {"WaterSTS": "STS"}, got [1]'),
            (table({"m": 3}), "m: expected an object"),
            (table({"m": {"scores": {}}}), "published is missing"),
            (table({"m": {"published": {"x": [1, 2]}, "scores": {}}}), "number expected"),
            (table({"m": {"published": {"x": "1e5"}, "scores": {}}}), "number expected"),
            (table({"m": {"published": {"x": True}, "scores": {}}}), "number expected"),
            (table({"m": {"published": {"x": "101"}, "scores": {}}}), "outside 0..100"),
            (table({"m": {"published": {"x": "50"}, "scores": {"a": "0.5", "b": "0.6", "c": "0.4"}}}), "percentages don't mix"),
            (table({"m": {"published": {}, "scores": {"a": "5"}}}, tasks=["b"]), "a: not among the suite's tasks"),
            (table({}, places={"x": "nothing"}), "places: x: expected null, a group or a task"),
            (table({}, rule="best"), "rule: expected one of"),
            (table({}, tasks=[1]), "tasks: expected a list of names"),
            (table({"m": {"published": [], "scores": {}}}), 'expected objects, such as {"published": {'),
        ]:
            with self.subTest(part):
                self.assertIn(part, self.refusal(value))
                self.assertNotIn("(a string)", self.refusal(value))


class Command(TestCase):
    def results(self, name, **tasks):
        for task, value in tasks.items():
            self.write(f"{name}/{task}.json", json.dumps({"task_name": task, "scores": {"test": [
                {"ndcg_at_10": value, "main_score": value, "hf_subset": "default", "languages": ["eng-Latn"]}]}}))

    def benchmark(self, *arguments):
        return self.run_command("harness", "benchmark", *arguments)

    def test_a_folder_of_models_with_an_own_suite_and_a_figure(self):
        self.results("r/one", A=0.5, B=0.7)
        self.results("r/two", A=0.6)
        self.write("s.json", json.dumps({"name": "mine", "measure": "ndcg@10", "tasks": [{"task": "A"}, {"task": "B"}]}))
        result = self.benchmark("r", "--suite", "s.json", "--figure", "f.svg")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual([line.split() for line in result.stdout.splitlines()[:3]],
                         [["model", "mine"], ["one", "60.00"], ["two", "missing"]])
        self.assertIn("60.00", (self.folder / "f.svg").read_text(encoding="utf-8"))

    def test_without_a_suite_those_the_results_touch(self):
        self.results("m", ArguAna=0.5)
        self.assertEqual(self.benchmark("m").stdout.splitlines()[0].split(), ["model", "MMTEB", "MTEB-en"])
        self.results("n", Unheard=0.25)
        self.assertEqual([line.split() for line in self.benchmark("n").stdout.splitlines()[:2]],
                         [["model", "all", "tasks"], ["n", "25.00"]])

    def test_refused_by_name(self):
        self.results("m", ArguAna=0.5)
        self.write("s.json", json.dumps({"name": "mine", "measure": "ndcg@5", "tasks": [{"task": "ArguAna"}]}))
        for arguments, parts in [(("m", "--suite", "s.json"), ("m/ArguAna.json", "no ndcg@5", "mine asks for ndcg@5 of ArguAna")),
                                 (("m", "--suite", "nonesuch"), ("nonesuch: no such suite",)), (("none",), ("none",)),
                                 (("m", "--model", "x"), ("--model x", "m")), (("m", "--figure", "none/f.svg"), ("none/f.svg",))]:
            with self.subTest(arguments):
                result = self.benchmark(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                for part in parts:
                    self.assertIn(part, result.stderr)
                self.assertNotIn("Traceback", result.stderr)

    def test_problems_of_one_cause_are_told_as_one(self):
        self.results("m", **{f"Task{number}": 0.5 for number in range(30)})
        for number in range(25):
            self.write(f"m/other{number}.json", json.dumps({"name": f"{number}", "values": []}))
        self.write("m/torn.json", "{")
        with self.assertRaises(RecordError) as raised:
            main([str(self.folder / "m")])
        first, second = raised.exception.problems
        self.assertIn(f"25 problems of one kind, the first: {self.folder / 'm' / 'other0.json'}: not a benchmark result", first)
        self.assertIn("torn.json: line 1 column 2: not valid JSON", second)
        for path in (self.folder / "m").glob("[ot]*.json"):
            path.unlink()
        tasks = [f"Task{number}" for number in range(30)]
        suite = self.write("s.json", json.dumps({"name": "mine", "measure": "ndcg@5", "tasks": tasks}))
        with self.assertRaises(RecordError) as raised:
            main([str(self.folder / "m"), "--suite", str(suite)])
        [only] = raised.exception.problems
        self.assertRegex(only, r"^30 problems of one kind, the first: .*Task0\.json: test: default: no ndcg@5; it holds .* of Task0 \(m\)$")

    def test_few_problems_of_one_cause_are_each_told(self):
        self.results("m", A=7, B=8, C=0.5)
        with self.assertRaises(RecordError) as raised:
            main([str(self.folder / "m"), "--suite", str(self.write("s.json", json.dumps(
                {"name": "mine", "measure": "ndcg@10", "tasks": ["A", "B", "C"]})))])
        self.assertEqual([re.search("asks for ndcg@10 of (.)", each)[1] for each in raised.exception.problems], ["A", "B"])

    def test_audit_of_the_worked_example(self):
        result = self.benchmark("audit")
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertIn("agrees only without WinoGrande (1 of 18 sets of 1)", result.stdout)
        self.assertIn("table 3 says 54.33 but table A11 says 55.39", result.stdout)
        self.assertIn("158 published averages", result.stdout)

    def test_audit_of_an_own_table(self):
        good = table({"m|n": {"published": {"here": "50.0"}, "scores": {"a": "40.0", "b": "60.0"}}})
        path = self.write("t.json", json.dumps(good))
        result = self.benchmark("audit", path, "--format", "markdown")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| m\\|n | here | 50.0 | 50.00 | 2 of 2 | agrees |", result.stdout)
        report = json.loads(self.benchmark("audit", path, "--format", "json").stdout)
        self.assertEqual(report["suites"]["S"]["findings"][0]["recomputed"], {"two-step": 50.0, "flat": 50.0, "by-type": 50.0})
        self.write("t.json", json.dumps(table({"m": {"published": {"here": "50.9"}, "scores": {"a": "40.0", "b": "60.0"}}})))
        self.assertEqual(self.benchmark("audit", path).returncode, 1)
        result = self.benchmark("audit", "nonesuch")
        self.assertEqual((result.returncode, result.stdout), (2, ""))


@unittest.skipUnless(REAL.exists(), f"no {REAL}: results of a public model are not part of the repository")
class RealModel(TestCase):
    def test_averages_of_a_whole_model(self):
        whole = next(each for each in read_models([str(REAL)], merge=True) if "(" not in each.name)
        columns = compare_all([load_suite(name) for name in SHIPPED], [whole])
        found = {column.suite.name: percent(column.averages[whole.name], 3) for column in columns}
        self.assertEqual({name: found[name] for name in ("J-VDR", "ViDoRe", "CLIPB", "MTEB-en", "COIR", "LEMB")}, {
            "J-VDR": "80.983", "ViDoRe": "90.351", "CLIPB": "missing", "MTEB-en": "56.149", "COIR": "72.865", "LEMB": "69.876"})
        self.assertEqual(percent(columns[0].scores[whole.name].averages["flat"], 3), "77.131")


class Documentation(TestCase):
    def test_its_commands_print_what_it_shows(self):
        page = (ROOT / "harness" / "docs" / "benchmarks.md").read_text(encoding="utf-8")
        shown = re.findall(r"```\n\$ python -m harness (.*)\n([^`]*)```", page)
        self.assertEqual(len(shown), 3)
        for command, output in shown:
            with self.subTest(command):
                self.assertEqual(self.run_command("harness", *command.split(), cwd=ROOT).stdout, output)
