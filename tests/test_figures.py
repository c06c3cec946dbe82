"""Tests of figures.py: which figures a record gets, that each draws what the summary holds, and that hard inputs stay readable."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal

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


def half_up(value):
    """A score with three decimals, rounded as its decimals are read: 0.0625 is "0.063"."""
    return str(Decimal(str(value)).quantize(Decimal("0.001"), ROUND_HALF_UP))


def title_of(content):
    """A figure's title, its no-break spaces as plain ones."""
    return re.search("<title[^>]*>(.*)</title>", content)[1].replace("\u00a0", " ")


def said(content):
    """Every text of a figure as one line."""
    return " ".join(texts(content))


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
            (panel(["a", "b", "c"], comparisons=[["a", "b"], ["b", "c"]]), {"record": "draw_steps"}),
            (panel(["a", "b", "c"], comparisons=[["a", "c"], ["b", "c"]]), {"record": "draw_steps"}),
            (panel("abcd", comparisons=[["a", "b"], ["b", "c"], ["c", "d"]]), {"record": "draw_steps"}),
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
        both = {"public": table(["full", "half"]), "deep": {"graded": panel({"full": {"name": "m", "dimensions": 8},
                                                                              "half": {"name": "m", "dimensions": 4}})}}
        self.assertEqual(plan(both), {"record.public": "draw_widths", "record.deep.graded": "draw_widths"})
        checks = {"checks": {"cosine": {"value": 1, "at_least": 0.9}}}
        self.assertEqual(plan({"a": checks, "b": table(["a", "b"])}), {"record.b": "draw_datasets"})

    def test_different_models_are_no_widths_of_one(self):
        sizes = {"minilm": 384, "mpnet": 768, "e5": 1024}
        cases = [({key: {"name": f"all-{key}", "dimensions": size} for key, size in sizes.items()}, "draw_models"),
                 ({key: {"dimensions": size} for key, size in sizes.items()}, "draw_models"),
                 ({key: {"name": "one model", "dimensions": size} for key, size in sizes.items()}, "draw_widths"),
                 ({"384": {"name": "minilm"}, "768": {"name": "mpnet"}}, "draw_depth"),
                 ({"384": {"name": "one model"}, "768": {}}, "draw_widths")]
        for models, expected in cases:
            self.assertEqual(plan(panel(models)), {"record": expected}, models)
        value = {"a": panel({"8": {"name": "x"}, "4": {"name": "x"}, "2": {"name": "x"}}),
                 "b": panel({"8": {"name": "y"}, "4": {"name": "y"}}), "public": table(["8", "4", "2"])}
        self.assertEqual(set(plan(value).values()), {"draw_widths"})  # each panel has its own identities

    def test_steps_are_drawn_only_of_a_declared_chain(self):
        for pairs in ([["a", "c"], ["a", "b"]], [["c", "a"], ["c", "b"]], [["a", "b"]], [["b", "a"], ["c", "b"]], [["a", "c"]],
                      [["b", "c"]], [["a", "b"], ["a", "c"]], [["a", "c"], ["b", "c"], ["c", "b"]]):
            self.assertEqual(plan(panel("abc", comparisons=pairs)), {"record": "draw_models"}, pairs)
        for pairs in ([["b", "c"], ["a", "b"]], [["b", "c"], ["a", "c"]], [["a", "c"], ["a", "b"], ["b", "c"]]):
            self.assertEqual(plan(panel("abc", comparisons=pairs)), {"record": "draw_steps"}, pairs)

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
            widths = {name: {"name": first, "dimensions": 2 ** at} for at, name in enumerate(names)}
            self.check({"sections " + first: panel(widths)})

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
        for tolerance in (5e-324, 1e-15, 1e-9, 0.00004, 0.005, 0.25, 1):
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

    def test_words_follow_the_adjusted_p(self):
        """Four wins of 2,000 queries: the interval leaves out 0, Holm's adjusted p of 0.45 does not allow a claim."""
        def few(query, m):
            return [3] if query > 3 or m == 1 else [0]

        value = panel(["old", "new"], queries=2000, cutoffs=[1, 10], ranking=few)
        entry = metrics.summarize(metrics.parse_record(value, "record.json"))["comparisons"][0]["ndcg"]["10"]
        self.assertTrue(entry["low"] > 0 and entry["p"] < 0.05 < entry["p_holm"])
        claims = r"\b(leads|trails|better|worse|adds|loses|clearly)\b"
        shapes = [({}, ["old", "new"], r"^new against old: nDCG@10 \S+ → \S+ \(higher, unadjusted\)$"),
                  ({"selected": True}, ["old", "new"], r"^new against old: nDCG@10 \S+ → \S+ \(higher, unadjusted\)$"),
                  ({"comparisons": [["a", "b"], ["b", "c"]]}, "abc",
                   r"^b is \S+ nDCG@10 higher \(unadjusted\), c is \S+ lower \(unadjusted\)$"),
                  ({}, "abcd", r"^b has the highest nDCG@10 of 4 models, no clear difference to a$")]
        for more, models, expected in shapes:
            content = drawn(panel(models, queries=2000, cutoffs=[1, 10], ranking=few, **more))["record"]
            self.assertRegex(title_of(content), expected)
            self.assertNotRegex(title_of(content), claims)
            self.assertIn("colours are unadjusted", said(content))
            self.assertIn("a Holm-adjusted p below 0.05.", said(content))
        content = drawn(panel(["old", "new"], queries=2000, cutoffs=[1, 10], ranking=few, selected=True))["record"]
        self.assertEqual(texts(content).count("higher, unadjusted"), 6)
        self.assertFalse({"better", "worse"} & set(texts(content)))

    def test_data_sets_are_clearly_ahead_only_by_the_adjusted_p(self):
        def title(*p_values):
            rows = [figures.Row("x", 0.1, 0.2, {"difference": d, "low": d / 2, "high": d * 2, "p": 0.01, "p_holm": p}) for d, p in p_values]
            pair = figures.Source("x", None, None, {}, ("old", "new"))
            return figures.datasets_title(pair, rows)

        self.assertEqual(title((0.1, 0.04), (0.1, 0.06)), "new is clearly ahead of old on 1 of 2 data sets, higher on 1 (unadjusted)")
        self.assertEqual(title((0.1, 0.06), (-0.1, None)), "new against old on 2 data sets: higher on 1 and lower on 1 (unadjusted)")
        self.assertEqual(title((0.1, 0.01), (-0.1, 0.01)), "new is clearly ahead of old on 1 of 2 data sets, clearly behind on 1")
        self.assertEqual(title((-0.1, 0.01), (-0.1, 0.05)), "new is clearly behind old on 1 of 2 data sets, lower on 1 (unadjusted)")

    def test_every_word_stands_where_metrics_prints_a_star(self):
        for path, record in metrics.load_records(ROOT / "records")[0]:
            summaries = [block for block in map(metrics.summarize_block, record.blocks.values()) if "comparisons" in block]
            for entry in (entry for block in summaries for pair in block["comparisons"] for name in metrics.METRICS
                          for entry in pair[name].values()):
                self.assertEqual(figures.claim(entry) in (2, -2), metrics.show_difference("ndcg", entry).endswith("*"), path)

    def test_the_best_of_types_is_counted_alone_and_where_there_are_values(self):
        excluded = {"grade": None, "excluded": True}

        def title(ranking, kinds="wxyz"):
            return title_of(drawn(panel("abc", types=list(kinds), ranking=ranking))["record.types"])

        tied = lambda query, m: [[3], [3] if m < 2 else [0], [excluded], [3] if m == 0 else [0]][query % 4]  # noqa: E731
        self.assertEqual(title(tied), "a is alone best in nDCG@10 on 1 of 3 query types that could be scored")
        self.assertEqual(title(lambda query, m: [3] if m == 1 else [0]), "b is alone best in nDCG@10 on 4 of 4 query types")
        self.assertEqual(title(lambda query, m: [3]), "nDCG@10 by query type and model")
        self.assertEqual(title(lambda query, m: [excluded]), "nDCG@10 by query type and model")

    def test_parity_of_nothing_is_no_parity(self):
        content = drawn(panel(["a", "b"], tolerance=0.01, ranking=lambda query, m: [{"grade": None, "excluded": True}]))["record"]
        self.assertEqual(title_of(content), "b against a: nothing could be scored")

    def test_marks_of_small_changes_lie_on_their_axis(self):
        for step in (0.0015, -0.0015, 0.0009, -0.0019, 0.0001, 0):
            low, high = figures.limits([{"difference": step, "low": step, "high": step}])
            self.assertTrue(low <= min(0, step) and max(0, step) <= high, step)
            self.assertGreaterEqual(high - low, 0.002 - 1e-12)
        content = drawn(table(["old", "new"], queries=4, score=lambda d, m, query: 0.5 + m * (0.0015 + query / 1e5)))["record"]
        axis = re.findall(r'<line class="stroke-axis" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="\2"/>', content)
        start, end = max((float(left), float(right)) for left, _, right in axis if float(right) > float(left))
        marks = [float(x) for x in re.findall(r'<circle class="fill-candidate" cx="([\d.]+)"', content) if float(x) > 450]
        self.assertEqual(len(marks), 3)  # the average has no interval, and another colour
        self.assertTrue(all(start <= x <= end for x in marks), (start, marks, end))

    def test_a_ring_is_no_base_where_a_model_is_not_compared(self):
        self.assertIn("a, or not compared with it", texts(drawn(panel("abc", comparisons=[["a", "b"]]))["record"]))
        self.assertIn("a", texts(drawn(panel("abcd"))["record"]))

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
                values = ", ".join(f"{half_up(shown[k])} at {k}" for k in shown)
                self.assertIn(f"{metrics.TITLES[metric]} of {model}: {values}", contents["record"])
        for kind in ("x", "y"):
            self.assertIn(half_up(summary["types"][kind]["models"]["new"]["ndcg"]["10"]), texts(contents["record.types"]))

    def test_a_lead_names_the_depths_where_it_is_not_clear_or_the_other_way_round(self):
        def ranking(query, m):  # at 1 one query apart, at 3 the old model finds more, at 10 the new one
            return [int(m and query == 0)] + ([0, 3] if m == 0 and query % 10 else [0, 0]) + [3, 3, 2, 2] * m
        content = drawn(panel(["old", "new"], queries=40, ranking=ranking))["record"]
        self.assertRegex(title_of(content), r"^new leads old: nDCG@10 0\.\d+ → 0\.\d+; at k = 1 no clear difference; at k = 3 trails$")
        self.assertEqual(figures.depths([1, 3, 5, 10, 50], [1, 3, 5, 10, 20, 50]), "k = 1 to 10 and 50")
        self.assertEqual(figures.depths([1, 3], [1, 3, 5]), "k = 1 and 3")
        self.assertEqual(figures.depths([1, 5, 20], [1, 3, 5, 10, 20]), "k = 1, 5 and 20")

    def test_the_highest_of_many_models_is_not_called_clear_when_it_is_not(self):
        def ranks(*means):  # a model finds its passage at the first rank in so many of ten queries
            return lambda query, m: [3] if query % 10 < means[m] else [0, 3]
        for means, expected in (((2, 9, 5, 3), "b has the highest nDCG@10 of 4 models"),
                                ((8, 9, 5, 3), "b has the highest nDCG@10 of 4 models, no clear difference to a"),
                                ((9, 2, 1, 3), "a has the highest nDCG@10 of 4 models"),
                                ((9, 8, 8, 3), "a has the highest nDCG@10 of 4 models, no clear difference to 2 of them")):
            self.assertEqual(title_of(drawn(panel("abcd", queries=20, ranking=ranks(*means)))["record"]), expected)
        value = panel("abcd", queries=20, ranking=ranks(1, 2, 9, 3), comparisons=[["a", "b"], ["a", "d"]])
        self.assertEqual(title_of(drawn(value)["record"]), "c has the highest nDCG@10 of 4 models, but is not compared")
        content = drawn(panel("abcd", queries=1, ranking=lambda query, m: [0] * m + [3]))["record"]
        self.assertEqual(title_of(content), "a has the highest nDCG@10 of 4 models, without an interval")
        self.assertIn("No model is compared", said(drawn(panel("abcd", comparisons=[]))["record"]))

    def test_an_average_over_fewer_data_sets_than_shown_says_why(self):
        contents = drawn(table(["old", "mid", "new"], absent=[("three", "mid")]) | {"comparisons": [["mid", "new"], ["old", "new"]]})
        content = contents["record.old.new"]
        self.assertEqual({text for text in texts(content) if text.endswith("*")}, {"one (8) *", "two (8) *", "Average (2 data sets) *"})
        self.assertIn("three (8)", texts(content))
        self.assertIn("the data sets on which every model of the record was measured: mid is not on three.", said(content))
        self.assertNotIn("*", said(contents["record.mid.new"]))  # shows three as not measured itself
        self.assertNotIn("*", said(drawn(table(["old", "new"]))["record"]))

    def test_a_single_query_has_no_interval_and_is_said_to_have_none(self):
        values = [panel(["a", "b"], queries=1), panel(["a", "b"], queries=1, types=["x"]), panel(["a", "b"], queries=1, tolerance=0.01),
                  panel(["a", "b"], queries=1, selected=True), table(["a", "b"], queries=1), panel("abcd", queries=1),
                  panel(["a", "b", "c"], queries=1, comparisons=[["a", "b"], ["b", "c"]]), panel(["64", "32"], queries=1)]
        for value in values:
            for name, content in drawn(value).items():
                with self.subTest(figure=name, title=title_of(content)):
                    self.assertRegex(said(content), "There is no (interval|band): ")
                    self.assertNotIn("95%", content)
        self.assertNotIn("clear", title_of(drawn(table(["a", "b"], queries=1))["record"]))
        for name, content in drawn(panel(["a", "b"], queries=2, types=["x"])).items():
            self.assertNotIn("There is no", said(content), name)

    def test_the_steps_and_their_total_start_at_zero_and_have_their_own_intervals(self):
        value = panel("abc", queries=30, comparisons=[["a", "b"], ["b", "c"], ["a", "c"]],
                      ranking=lambda query, m: [0] * (2 if query % 3 == m % 2 else 4 - m) + [3])
        block = metrics.summarize(metrics.parse_record(value, "record.json"))
        entries = [compared["ndcg"]["10"] for compared in block["comparisons"]]
        content = drawn(value)["record"]
        self.assertEqual(texts(content).count("total"), 5)
        for name, entry in zip(("b: ", "c: ", "in total: "), entries):
            self.assertIn(name + figures.change_text(entry), content)
        bars = [(float(x), float(x) + float(width)) for x, width in re.findall(r'<rect class="fill-(?:base|candidate|third)" x="([\d.]+)" '
                                                                              r'y="[\d.]+" width="([\d.]+)"', content)]
        whiskers = [tuple(map(float, ends)) for ends in re.findall(r'd="M([\d.]+) [\d.]+L([\d.]+) ', content)]
        zero = float(re.search(r'<text [^>]*x="([\d.]+)"[^>]*>0</text>', content)[1])
        self.assertEqual((len(bars), len(whiskers)), (15, 15))
        for entry, bar, whisker in zip(entries, bars, whiskers):
            self.assertAlmostEqual(bar[entry["difference"] < 0], zero, delta=0.1)
            self.assertEqual(whisker[0] < zero < whisker[1], entry["low"] < 0 < entry["high"])

    def test_widths_share_a_scale_from_zero_up_to_a_tick_above_every_curve(self):
        value = table(["64", "32", "16"], score=lambda d, m, query: (0.87 - 0.2 * m) / (1 + d) + query / 1000)
        content = drawn(value)["record"]
        labels = [float(text) for text in texts(content) if re.fullmatch(r"[01]\.\d", text)]
        self.assertEqual((labels.count(0), labels.count(max(labels))), (4, 4))  # the average and three data sets
        self.assertGreaterEqual(max(labels), 0.88)
        self.assertIn("an average over data sets has none", said(content))
        self.assertNotIn("an average", said(drawn(panel(["64", "32"]))["record"]))

    def test_the_axis_of_a_tolerance_has_ticks_out_to_its_ends(self):
        self.assertEqual(figures.parity_axis(0.028, 0.01), [-0.03, -0.02, -0.01, 0, 0.01, 0.02, 0.03])
        self.assertEqual(figures.parity_axis(0.02, 0.01), [-0.02, -0.01, 0, 0.01, 0.02])
        self.assertEqual(figures.parity_axis(0.43, 0.01), [-0.5, -0.4, -0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3, 0.4, 0.5])
        content = drawn(panel(["old", "new"], tolerance=0.001))["record"]
        self.assertTrue({"\u22120.8", "0", "+0.8"} <= set(texts(content)), texts(content))
        self.assertIn("\u00b10.00004.", said(drawn(panel(["old", "new"], tolerance=0.00004))["record"]))

    def test_a_small_change_is_no_zero(self):
        value = table(["old", "new"], score=lambda d, m, query: 0.5 - m * 0.0004)
        self.assertEqual(texts(drawn(value)["record"]).count("\u22120.0004"), 4)
        value = table(["old", "new"], score=lambda d, m, query: 0.5 - m * 0.0000004)
        self.assertEqual(texts(drawn(value)["record"]).count(">\u22120.0001"), 4)

    def test_the_difference_is_drawn_high_enough_and_names_its_unit(self):
        content = drawn(panel(["old", "new"]))["record"]
        self.assertEqual(sum(text == "Difference\u00a0in score (0 to 1)" for text in texts(content)), 4)
        bands = re.findall(r'd="(M[^"]*Z)" fill-opacity="0.22"', content)
        heights = [float(y) for band in bands for y in re.findall(r"[ML][\d.]+ ([\d.]+)", band)]
        self.assertEqual(len(bands), 4)
        self.assertGreaterEqual(max(heights[:6]) - min(heights[:6]), 59)  # the widest of the four fills the strip

    def test_one_model_leaves_no_empty_band_below(self):
        for content in (drawn(panel(["only"]))["record"], drawn(table(["only"]))["record"]):
            height = float(re.search(r' height="(\d+)"', content)[1])
            lowest = max(float(y) for y in re.findall(r'<text [^>]*y="([\d.]+)"', content))
            self.assertLess(height - lowest, 36)
            self.assertNotRegex(content, "<text [^>]*/>")

    def test_steps_that_were_not_declared_are_computed(self):
        declared = drawn(panel("abc", comparisons=[["a", "b"], ["b", "c"], ["a", "c"]]))["record"]
        self.assertEqual(drawn(panel("abc", comparisons=[["a", "c"], ["b", "c"]]))["record"], declared)


class EligibleTest(TestCase):
    """Where not all queries count, the number is the one of those that do."""

    @staticmethod
    def ranking(query, m):
        """Queries 0 to 2 have no graded position down to 10, query 3 none at 1."""
        excluded = {"grade": None, "excluded": True}
        return [excluded] * (10 if query < 3 else 1 if query == 3 else 0) + [0] * ((query + m) % 3) + [3]

    def drawn(self, models=("old", "new"), **more):
        return drawn(panel(list(models), queries=40, ranking=self.ranking, **more))

    def test_depth(self):
        content = self.drawn(cutoffs=[1, 3, 10, 20])["record"]
        self.assertIn("nDCG@10 over 37 of 40 queries", said(content))
        self.assertIn("Queries with a graded position: 36 of 40 at k = 1, 37 of 40 at k = 3 and 10.", said(content))
        self.assertNotIn("over 40 queries", content)
        content = drawn(panel(["old", "new"], queries=40))["record"]
        self.assertIn(", over 40 queries.", said(content))
        self.assertNotIn("Queries with", said(content))

    def test_the_note_never_leaves_out_the_cutoff_of_the_title(self):
        def ranking(query, m):
            return [{"grade": None, "excluded": True}] * query + [3]
        content = drawn(panel(["old", "new"], queries=14, cutoffs=range(1, 13), ranking=ranking))["record"]
        self.assertIn("nDCG@10 over 10 of 14 queries", said(content))
        self.assertIn("10 of 14 at k = 10", said(content))
        self.assertIn("fewer than all at other k", said(content))

    def test_types(self):
        content = self.drawn(types=["factual", "other"])["record.types"]
        self.assertIn("factual (18 of 20)", texts(content))
        self.assertIn("other (19 of 20)", texts(content))
        self.assertIn("queries that count at k = 10", said(content))
        self.assertIn("x (12)", texts(drawn(panel(["old", "new"], types=["x"]))["record.types"]))

    def test_every_other_figure_of_a_panel(self):
        for more in ({"tolerance": 0.01}, {"selected": True}, {"models": ["64", "32"]},
                     {"models": "abc", "comparisons": [["a", "b"], ["b", "c"]]}):
            content = self.drawn(**more)["record"]
            self.assertIn(", at k = 10 over 37 of 40 queries.", said(content))
        self.assertIn("nDCG@10 over 37 of 40 queries.", said(self.drawn("abcd")["record"]))
        self.assertIn("36 of 40 at k = 1", said(self.drawn(tolerance=0.01)["record"]))

    def test_selected_precision(self):
        self.assertIn("Selected precision is over 36 of 40 queries.", said(drawn(self.selected(1))["record"]))
        self.assertNotIn("Selected precision is", said(drawn(self.selected(10))["record"]))

    def selected(self, length):
        value = panel(["old", "new"], queries=40, ranking=self.ranking, selected=True)
        for row in value["queries"]:
            row["selected"] = {model: min(length, len(ranks)) for model, ranks in row["rankings"].items()}
        return value


class LargeTest(TestCase):
    """Many names that begin and end alike, and figures over 40 KB."""

    NAMES = [f"data set number {number} with a long long name" for number in range(30)]

    def test_shortened_names_stay_apart_in_marks_and_description(self):
        values = [table(["old", "new"], self.NAMES), table(["old"], self.NAMES), table("abcd", self.NAMES), table(["8", "4"], self.NAMES),
                  panel(self.NAMES), panel(self.NAMES, comparisons=[]), panel("abc", types=self.NAMES, queries=30)]
        for value in values:
            files = self.parts(value)
            for text in (" ".join(map(self.description, files.values())), " ".join(map(said, files.values()))):
                self.assertLessEqual(set(range(30)), {int(number) for number in re.findall(r"da\D*?(\d+)", text)})

    @staticmethod
    def description(content):
        return re.search("<desc[^>]*>(.*)</desc>", content)[1]

    def test_two_models_that_look_alike_are_told_apart(self):
        for first, second in (("a" * 60 + "1" + "b" * 60, "a" * 60 + "2" + "b" * 60), ("two  spaces", "two spaces")):
            for value in (panel([first, second], ranking=TruthTest.at_rank(1, 3)), table([first, second])):
                title = title_of(drawn(value)["record"])
                names = re.split(" trails | leads | against | is clearly ahead of ", title.removeprefix("No clear difference: "))
                self.assertNotEqual(names[0], re.split(r": nDCG|, nDCG|: no clear| on ", names[1])[0], title)

    def parts(self, value):
        record = metrics.parse_record(value, "record.json")
        files = figures.draw({source.name: (source, draw) for source, draw in figures.plan(record)})
        for name, content in files.items():
            with self.subTest(figure=name):
                check_svg(self, content)  # at most 40 KB among others
                self.assertLess(2 * len(self.description(content).encode()), len(content.encode()))
        return files

    def test_a_figure_over_the_budget_is_drawn_in_parts_that_hold_everything(self):
        sets = [f"set{number}" for number in range(60)]
        for value, names in ((table(["old", "new"], sets), sets), (table("abcdefgh", sets[:30]), sets[:30]),
                             (table(["8", "4", "2"], sets), sets), (panel([f"model-{m}" for m in range(80)], queries=3), ["model-79"]),
                             (panel([f"m-{m}" for m in range(12)], types=sets[:24], queries=24), sets[:24])):
            files = self.parts(value)
            self.assertGreater(len(files), 1)
            parts = [name for name in files if "part-" in name]
            self.assertEqual(parts, [re.sub(r"part-\d+", f"part-{at + 1}", name) for at, name in enumerate(parts)])
            words = [said(files[name]) for name in parts]
            for name in names:
                self.assertEqual(sum(bool(re.search(rf"\b{name}\b", text)) for text in words), 1, name)
            self.assertIn(f"Part 1 of {len(parts)}.", words[0])

    def test_a_figure_within_the_budget_is_one_file(self):
        self.assertEqual(list(self.parts(table(["old", "new"], self.NAMES))), ["record.svg"])
        self.assertEqual(list(self.parts(panel(HARD_NAMES[6:8], cutoffs=list(range(1, 101)), queries=3))), ["record.svg"])

    def test_what_no_division_makes_small_enough_is_refused(self):
        value = panel([str(number) for number in range(1, 150)], queries=2)
        with self.assertRaisesRegex(metrics.RecordError, r"record.svg: [\d,]+ bytes; expected at most 40,960; give its block fewer"):
            self.parts(value)


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

    def test_check_sees_any_ending_and_says_what_it_does_not_look_into(self):
        self.run_figures("--directory", ".", "--output", "drawn")
        self.write("drawn/EXTRA.SVG", "<svg/>")
        self.write("drawn/below/other.svg", "<svg/>")
        result = self.run_figures("--directory", ".", "--output", "drawn", "--check")
        self.assertEqual((result.returncode, result.stdout.replace("\\", "/")), (1, "drawn/EXTRA.SVG: extra, no record has this figure\n"))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.assertRaises(SystemExit):
            figures.main(["--help"])
        self.assertIn("subfolders are not looked into", " ".join(out.getvalue().split()))

    def test_parts_are_drawn_checked_and_named_together(self):
        self.write("records/many.json", json.dumps(table(["old", "new"], [f"set {number}" for number in range(60)])))
        parts = ["many.part-1.svg", "many.part-2.svg"]
        result = self.run_figures("--directory", ".", "--output", "drawn", "--figure", "many")
        self.assertEqual((result.returncode, sorted(os.listdir(self.folder / "drawn")), result.stderr), (0, parts, ""))
        self.assertEqual(self.run_figures("--directory", ".", "--output", "drawn").stderr, "")
        self.assertEqual(self.run_figures("--directory", ".", "--output", "drawn", "--check").returncode, 0)
        self.assertEqual(self.run_figures("--directory", ".", "--output", "drawn", "--check", "--figure", "many").returncode, 0)

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
