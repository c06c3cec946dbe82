"""Tests of figures.py: which figures a record gets, that each draws what the summary holds, and that hard inputs stay readable."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys

import figures
import metrics
from tests import ROOT, TestCase
from tests.test_svg_figures import HARD_NAMES, check_svg, text_boxes


def panel(models, queries=12, cutoffs=(1, 3, 10), types=(), selected=False, ranking=None, **more):
    """A panel whose model number m ranks its one best passage at rank 1 + (query * 7 + m * 3) % 5; ranking(query, m) may differ."""
    def default(query, m):
        place = (query * 7 + m * 3) % 5
        return [0] * place + [3] + [1, 0, 2, 0, 0][:5 - place]

    rows = []
    for query in range(queries):
        row = {"id": f"q{query}", "reference_grade_counts": {"1": 2, "2": 2, "3": 2},
               "rankings": {model: (ranking or default)(query, m) for m, model in enumerate(models)}}
        if types:
            row["type"] = types[query % len(types)]
        if selected:
            row["selected"] = {model: min(2, len(row["rankings"][model])) for model in models}
        rows.append(row)
    identities = models if isinstance(models, dict) else {model: {} for model in models}
    return {"models": identities, "cutoffs": list(cutoffs), "queries": rows, **more}


def table(models, datasets=("one", "two", "three"), queries=8, absent=(), score=None):
    """A public table of made-up scores; absent holds (data set, model) pairs."""
    score = score or (lambda d, m, query: (query * 3 + m * 2 + d) % 10 / 10)
    return {"measure": "nDCG@10", "datasets": {
        name: {"queries": queries, "scores": {model: [score(d, m, query) for query in range(queries)]
                                              for m, model in enumerate(models) if (name, model) not in absent}}
        for d, name in enumerate(datasets)}}


def plan(value, name="record.json"):
    """{figure name: drawing function's name} of a record made in memory."""
    return {source.name: draw.__name__ for source, draw in figures.plan(metrics.parse_record(value, name))}


def drawn(value, name="record.json"):
    """{figure name: SVG text} of a record made in memory."""
    return {source.name: draw(source) for source, draw in figures.plan(metrics.parse_record(value, name))}


def texts(content):
    """Every text of a figure."""
    from xml.etree.ElementTree import fromstring

    return [text for text, *_ in text_boxes(fromstring(content))]


class ChoiceTest(TestCase):
    """The figures follow from the shape of the blocks."""

    def test_panels(self):
        cases = [
            (panel(["a", "b"]), {"record": "draw_depth"}),
            (panel(["a"]), {"record": "draw_depth"}),
            (panel(["a", "b"], tolerance=0.01), {"record": "draw_parity"}),
            (panel(["a", "b", "c"], tolerance=0.01), {"record.b": "draw_parity", "record.c": "draw_parity"}),
            (panel(["a", "b"], selected=True), {"record": "draw_table"}),
            (panel({"a": {}, "b": {"predecessor": "a"}}), {"record": "draw_table"}),
            (panel(["a", "b", "c"], comparisons=[["a", "b"], ["b", "c"]]), {"record": "draw_waterfall"}),
            (panel(["a", "b", "c"], comparisons=[["a", "c"], ["b", "c"]]), {"record": "draw_waterfall"}),
            (panel("abcd", comparisons=[["a", "b"], ["b", "c"], ["c", "d"]]), {"record": "draw_waterfall"}),
            (panel(["a", "b", "c"]), {"record": "draw_models"}),
            (panel("abcdefghijkl"), {"record": "draw_models"}),
            (panel(["384", "128", "32"]), {"record": "draw_widths"}),
            (panel({"full": {"name": "m", "dimensions": 384}, "cut": {"name": "m", "dimensions": 64}}), {"record": "draw_widths"}),
            (panel({"small": {"name": "s", "dimensions": 384}, "large": {"name": "l", "dimensions": 768}}), {"record": "draw_depth"}),
            (panel(["a", "b"], types=["x", "y"]), {"record": "draw_depth", "record.types": "draw_types"}),
        ]
        for value, expected in cases:
            self.assertEqual(plan(value), expected)

    def test_tables_and_sections(self):
        self.assertEqual(plan(table(["a", "b"])), {"record": "draw_datasets"})
        self.assertEqual(plan(table(["a"])), {"record": "draw_datasets"})
        self.assertEqual(plan(table(["a", "b", "c"])), {"record.b": "draw_datasets", "record.c": "draw_datasets"})
        self.assertEqual(plan(table("abcdef")), {"record": "draw_scores"})
        self.assertEqual(plan(table(["64", "32"])), {"record": "draw_widths"})
        self.assertEqual(plan({**table(["a", "b"]), "comparisons": []}), {"record": "draw_scores"})
        both = {"public": table(["full", "half"]), "deep": {"graded": panel({"full": {"dimensions": 8}, "half": {"dimensions": 4}})}}
        self.assertEqual(plan(both), {"record.public": "draw_widths", "record.deep.graded": "draw_widths"})
        checks = {"checks": {"cosine": {"value": 1, "at_least": 0.9}}}
        self.assertEqual(plan({"a": checks, "b": table(["a", "b"])}), {"record.b": "draw_datasets"})

    def test_repeated_candidates_are_told_apart(self):
        value = {**table(["a", "b", "c"]), "comparisons": [["a", "c"], ["b", "c"]]}
        self.assertEqual(list(plan(value)), ["record.a.c", "record.b.c"])

    def test_file_names_are_safe_and_do_not_collide(self):
        self.assertEqual(figures.file_part("serving-x_1"), "serving-x_1")
        names = ["a.b", "a/b", "a\\b", "a b", "..", "a~b", "a~2e~b", "CON:", "\u05d0"]
        parts = [figures.file_part(name) for name in names]
        self.assertEqual(len(set(parts)), len(parts))
        self.assertFalse([part for part in parts if re.search(r"[./\\: ]", part)])
        self.assertEqual(list(plan({"a": {"b": panel(["a", "b"])}}, "x.y.json")), ["x~2e~y.a.b"])


class HardTest(TestCase):
    """Inputs at the edge draw something true and readable."""

    def check(self, value):
        contents = drawn(value)
        for name, content in contents.items():
            with self.subTest(figure=name):
                check_svg(self, content)
        return contents

    def test_hard_names(self):
        pairs = list(zip(HARD_NAMES, HARD_NAMES[1:] + HARD_NAMES[:1]))
        for first, second in pairs:
            self.check(panel([first, second], types=["x", first]))
        first, second, third = HARD_NAMES[:3]
        for names in (HARD_NAMES[:3], HARD_NAMES[3:6], HARD_NAMES[6:9]):
            first, second, third = names
            self.check(panel(names, types=names))
            self.check(panel(names, comparisons=[[first, second], [second, third]]))
            self.check(panel([first, second], tolerance=0.01, selected=True))
            self.check(panel([first, second], selected=True, types=names))
            self.check({**table([first, second], names, absent=[(third, first)]), "measure": first})
            self.check(table([first], names))
            self.check({**table(HARD_NAMES, names, absent=[(third, first)]), "measure": second})
            self.check({"sections " + first: {**panel({first: {"dimensions": 8}, second: {"dimensions": 4}, third: {"dimensions": 2}})}})

    def test_a_name_is_drawn_as_itself(self):
        content = self.check(panel(["a<b>&\"c'", "plain"]))["record"]
        self.assertIn("a<b>&\"c'", texts(content))
        self.assertIn("a&lt;b&gt;&amp;\"c'", content)

    def test_twelve_models(self):
        models = [f"organisation-{m % 3}/embedding-model-{m}-large" for m in range(12)]
        self.check(panel(models, types=["x", "y"]))
        self.check(panel(models, comparisons=[[models[0], models[5]], [models[1], models[6]]]))
        self.check(panel(models, comparisons=[]))
        self.check(table(models, [f"data set {d}" for d in range(9)], absent=[("data set 3", models[2])]))
        self.check(panel([str(2 ** m) for m in range(12)]))
        self.check(table([str(2 ** m) for m in range(12)]))

    def test_one_query_and_one_model(self):
        for models in (["a"], ["a", "b"], ["a", "b", "c"], ["64", "32"]):
            self.check(panel(models, queries=1, types=["x"]))
            self.check(panel(models, queries=1, cutoffs=[10]))
            self.check(table(models, ["only"], queries=1))
        self.check(panel(["a", "b"], queries=1, tolerance=0.01))
        content = self.check(panel(["a", "b"], queries=1, selected=True))["record"]
        self.assertIn("too few to tell", texts(content))
        self.check(panel(["a", "b", "c"], queries=1, comparisons=[["a", "b"], ["b", "c"]]))

    def test_all_zero_all_one_and_all_equal(self):
        for ranking in (lambda query, m: [0, 0, 0], lambda query, m: [3, 3, 2, 2, 1, 1], lambda query, m: [0, 2, 0], lambda query, m: []):
            for more in ({}, {"tolerance": 0.01}, {"selected": True}, {"types": ["x", "y"]}):
                self.check(panel(["a", "b"], ranking=ranking, **more))
            self.check(panel(["a", "b", "c"], ranking=ranking, comparisons=[["a", "b"], ["b", "c"]]))
            self.check(panel(["a", "b", "c", "d"], ranking=ranking, types=["x"]))
            self.check(panel(["64", "32", "16"], ranking=ranking))
        for value in (0, 1, 0.5):
            for models in (["a"], ["a", "b"], "abcde", ["64", "32"]):
                self.check(table(models, score=lambda d, m, query, value=value: value))

    def test_nothing_that_can_be_scored(self):
        """Every position excluded: no query counts, and nothing is drawn as zero."""
        excluded = {"grade": None, "excluded": True}
        for more in ({}, {"tolerance": 0.01}, {"types": ["x"]}):
            contents = self.check(panel(["a", "b"], ranking=lambda query, m: [excluded, excluded], **more))
            self.assertNotIn("0.000", texts(contents["record"]))
            self.assertIn("n/a", " ".join(texts(contents["record"])))
        self.check(panel(["a", "b", "c"], ranking=lambda query, m: [excluded], comparisons=[["a", "b"], ["b", "c"]]))
        self.check(panel("abcd", ranking=lambda query, m: [excluded], types=["x"]))
        self.check(panel(["64", "32"], ranking=lambda query, m: [excluded]))

    def test_a_model_that_was_not_measured(self):
        absent = [("one", "old"), ("two", "new")]
        content = self.check(table(["old", "new"], absent=absent))["record"]
        self.assertIn("old not measured", texts(content))
        self.assertIn("new not measured", texts(content))
        self.assertEqual(texts(content).count("Average (1 data set)"), 0)
        self.check(table(["old", "new"], ["one"], absent=[("one", "old")]))
        content = self.check(table("abcdef", absent=[("one", "a")]))["record"]
        self.assertIn("not measured", texts(content))
        self.check(table(["64", "32"], absent=[("one", "64"), ("two", "32")]))

    def test_many_cutoffs_and_large_numbers(self):
        self.check(panel(["a", "b"], cutoffs=list(range(1, 60))))
        self.check(panel(["a", "b"], cutoffs=list(range(1, 60)), tolerance=0.01))
        self.check(panel(["a", "b"], cutoffs=[1, 10, 100, 1000, 100000]))
        self.check(panel(["a", "b"], cutoffs=[7, 1000], tolerance=0.01))
        self.check(panel(["a", "b"], queries=1500, types=["x"]))
        self.check(table(["1024", "512"], [f"a data set with a long name {d}" for d in range(5)]))

    def test_values_too_small_to_be_told_from_zero(self):
        for models in (["a"], ["a", "b"], "abcde", ["64", "32"]):
            self.check(table(models, score=lambda d, m, query: (m + query) * 1e-9))

    def test_tolerances_of_any_size(self):
        for tolerance in (1e-9, 0.00004, 0.005, 0.25, 1):
            self.check(panel(["a", "b"], tolerance=tolerance))


class TruthTest(TestCase):
    """What is said in words follows from the numbers, losses included."""

    @staticmethod
    def at_rank(*ranks):
        return lambda query, m: [0] * (ranks[m] - 1 + query % 2) + [3]

    def test_a_loss_is_called_a_loss(self):
        content = drawn(panel(["old", "new"], ranking=self.at_rank(1, 3), selected=True))["record"]
        self.assertIn("new trails old: nDCG@10", content)
        self.assertIn("worse", texts(content))
        content = drawn(panel(["a", "b", "c"], ranking=self.at_rank(3, 1, 2), comparisons=[["a", "b"], ["b", "c"]]))["record"]
        self.assertRegex(content, r"<title[^>]*>b adds 0\.\d+ nDCG@10, c loses 0\.\d+<")
        self.assertIn("stroke-third", content)
        content = drawn(table(["old", "new"], score=lambda d, m, query: 0.9 - m * 0.5 - query / 100 * (1 + m)))["record"]
        self.assertIn("new is clearly behind old on 3 of 3 data sets", content)
        content = drawn(panel(["old", "new"], ranking=self.at_rank(1, 3), cutoffs=[1]))["record"]
        self.assertIn("new trails old", content)

    def test_no_claim_without_a_clear_interval(self):
        content = drawn(panel(["old", "new"], ranking=lambda query, m: [3] if (query + m) % 2 else [0, 3]))["record"]
        self.assertIn("No clear difference", content)
        content = drawn(table(["old", "new"], score=lambda d, m, query: (query + m) % 2))["record"]
        self.assertIn("no clear difference on 3 data sets", content)

    def test_leading_everywhere_is_said_only_when_it_is_so(self):
        content = drawn(panel(["old", "new"], queries=40, cutoffs=[1, 2], ranking=lambda query, m: [3, 3] if m and query % 4 else [0]))["record"]
        self.assertIn("new leads old at every depth", content)

    def test_over_the_tolerance(self):
        contents = drawn(panel(["fp32", "same", "worse"], tolerance=0.01, ranking=lambda query, m: [0, 3] if m == 2 else [3]))
        self.assertIn("same: all 15 scores exactly as fp32", contents["record.same"])
        self.assertNotIn("over", texts(contents["record.same"]))
        self.assertIn("over", texts(contents["record.worse"]))
        self.assertRegex(contents["record.worse"], r"worse: \d+ of 15 scores more than 0.01 off fp32")

    def test_the_narrowest_width_that_keeps_the_score(self):
        keep = lambda *means: drawn(table(["8", "4", "2"], ["one"], score=lambda d, m, query: means[m]))["record"]  # noqa: E731
        self.assertIn("4 of 8 dimensions keep 99.5% of nDCG@10 on one", keep(0.8, 0.796, 0.4))
        self.assertIn("4 of 8 dimensions keep 50% of nDCG@10", keep(0.8, 0.4, 0.2))
        self.assertIn("2 of 8 dimensions keep all of nDCG@10", keep(0.8, 0.8, 0.9))
        self.assertIn("at 3 embedding widths", keep(0, 0, 0))

    def test_the_values_are_those_of_the_summary(self):
        value = panel(["old", "new"], types=["x", "y"])
        record = metrics.parse_record(value, "record.json")
        summary = metrics.summarize(record)
        contents = drawn(value)
        for metric in ("hit", "recall", "precision", "ndcg"):
            for model in ("old", "new"):
                shown = summary["models"][model][metric]
                self.assertIn(f"{metrics.TITLES[metric]} of {model}: " + ", ".join(f"{shown[k]:.3f} at {k}" for k in shown), contents["record"])
        for kind in ("x", "y"):
            self.assertIn(f"{summary['types'][kind]['models']['new']['ndcg']['10']:.3f}", texts(contents["record.types"]))

    def test_steps_that_were_not_declared_are_computed(self):
        declared = drawn(panel("abc", comparisons=[["a", "b"], ["b", "c"], ["a", "c"]]))["record"]
        self.assertEqual(drawn(panel("abc", comparisons=[["a", "c"], ["b", "c"]]))["record"], declared)


class CommandTest(TestCase):
    def setUp(self):
        super().setUp()
        self.write("records/retriever.json", json.dumps(panel(["old", "new"])))
        self.write("records/retriever-summary.json", "{}")
        self.write("records/public.json", json.dumps({"sets": table(["old", "new"])}))

    def run_figures(self, *arguments):
        """The command as a function, without the cost of a process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = metrics.run_command(lambda: figures.main(arguments))
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def test_draws_into_a_new_folder_and_finds_it_current(self):
        result = self.run_figures("--directory", ".", "--output", "drawn")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.folder / "drawn")), ["public.sets.svg", "retriever.svg"])
        for name in os.listdir(self.folder / "drawn"):
            check_svg(self, (self.folder / "drawn" / name).read_text(encoding="utf-8"))
        result = self.run_figures("--directory", "records", "--output", "drawn", "--check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("2 figures", result.stdout)

    def test_output_is_relative_to_where_the_command_runs(self):
        result = self.run_command("figures.py", "--directory", ".", "--output", "../figures", cwd=self.folder / "records")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.folder / "figures")), ["public.sets.svg", "retriever.svg"])

    def test_check_names_each_file_that_is_missing_extra_or_different(self):
        self.run_figures("--directory", ".", "--output", "drawn")
        (self.folder / "drawn" / "retriever.svg").unlink()
        path = self.folder / "drawn" / "public.sets.svg"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        self.write("drawn/old.svg", "<svg/>")
        before = path.read_bytes()
        result = self.run_figures("--directory", ".", "--output", "drawn", "--check")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout.replace("\\", "/").splitlines(),
                         ["drawn/public.sets.svg: not what would be drawn", "drawn/retriever.svg: missing", "drawn/old.svg: extra, no record has this figure"])
        self.assertEqual(path.read_bytes(), before)
        result = self.run_figures("--directory", ".", "--output", "nowhere", "--check")
        self.assertEqual(result.returncode, 1)
        self.assertFalse((self.folder / "nowhere").exists())

    def test_one_figure(self):
        result = self.run_figures("--directory", ".", "--output", "drawn", "--figure", "retriever")
        self.assertEqual((result.returncode, os.listdir(self.folder / "drawn")), (0, ["retriever.svg"]))
        result = self.run_figures("--directory", ".", "--output", "drawn", "--figure", "retriever.svg", "--check")
        self.assertEqual(result.returncode, 0)
        result = self.run_figures("--directory", ".", "--output", "drawn", "--figure", "retreiver")
        self.assertEqual(result.returncode, 2)
        self.assertIn('no figure "retreiver"; expected one of: public.sets, retriever', result.stderr)

    def test_an_extra_file_is_named_and_kept(self):
        self.write("drawn/old.svg", "<svg/>")
        result = self.run_figures("--directory", ".", "--output", "drawn")
        self.assertEqual(result.returncode, 0)
        self.assertIn("old.svg: no record has this figure", result.stderr)
        self.assertTrue((self.folder / "drawn" / "old.svg").exists())

    def test_bad_input_draws_nothing_and_names_every_problem(self):
        self.write("records/bad.json", "{")
        self.write("records/worse.json", json.dumps({**panel(["a"]), "cutoffs": []}))
        result = self.run_command("figures.py", "--directory", ".", "--output", "drawn")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("bad.json: line 1", result.stderr)
        self.assertIn("worse.json: cutoffs", result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertFalse((self.folder / "drawn").exists())

    def test_nothing_to_draw(self):
        self.write("checks/a.json", json.dumps({"checks": {"cosine": {"value": 1, "at_least": 0.9}}}))
        self.write("empty/notes.txt", "")
        for directory, said in (("checks", "nothing to draw"), ("empty", "no records"), ("nowhere", "nowhere")):
            result = self.run_figures("--directory", directory, "--output", "drawn")
            self.assertEqual(result.returncode, 2)
            self.assertIn(said, result.stderr)
            self.assertNotIn("Traceback", result.stderr)

    def test_an_output_that_is_a_file(self):
        self.write("drawn", "a file")
        for more in ((), ("--check",)):
            result = self.run_figures("--directory", ".", "--output", "drawn", *more)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, r"^error: drawn: ")

    def test_figures_whose_names_differ_in_case_only_are_refused(self):
        self.write("records/two.json", json.dumps({"A": panel(["x"]), "a": panel(["x"])}))
        result = self.run_figures("--directory", ".", "--output", "drawn")
        self.assertEqual(result.returncode, 2)
        self.assertIn("two.a.svg", result.stderr)

    def test_the_same_bytes_on_every_hash_seed(self):
        for seed in "01":
            self.run_command("figures.py", "--directory", ".", "--output", f"seed{seed}", env={"PYTHONHASHSEED": seed})
        for name in ("public.sets.svg", "retriever.svg"):
            self.assertEqual(*((self.folder / f"seed{seed}" / name).read_bytes() for seed in "01"))

    def test_the_three_scripts_work_alone(self):
        for name in ("figures.py", "svg_figures.py", "metrics.py"):
            shutil.copy(ROOT / name, self.folder)
        result = subprocess.run([sys.executable, "-W", "error", str(self.folder / "figures.py")], cwd="/", capture_output=True, text=True,
                                env={**os.environ, "PYTHONPATH": ""})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(os.listdir(self.folder / "figures")), 2)

    def test_the_scripts_work_among_the_records_too(self):
        for name in ("figures.py", "svg_figures.py", "metrics.py"):
            shutil.copy(ROOT / name, self.folder / "records")
        result = subprocess.run([sys.executable, "-W", "error", "figures.py", "--output", "../figures"], cwd=self.folder / "records",
                                capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(self.folder / "figures")), ["public.sets.svg", "retriever.svg"])


class StoredTest(TestCase):
    def test_the_stored_figures_are_what_the_records_draw(self):
        every = figures.planned(ROOT / "records")
        contents = figures.draw(every)
        self.assertEqual(figures.differences(contents, figures.stored_figures(ROOT / "figures"), True), [])
        for name, content in contents.items():
            with self.subTest(figure=name):
                check_svg(self, content)
