"""The metrics, populations and summaries of metrics.py: values worked out by hand, a second implementation in exact fractions that is
written from the definitions, and what must not change a number."""

import copy
import doctest
import functools
import json
import math
import random
from fractions import Fraction
from math import log2

import metrics
from tests import DATA, TestCase

X = {"grade": None, "excluded": True}


def panel(queries, cutoffs=(1, 3), **more):
    """A panel's JSON value; queries are (id, counts, {model: ranking}), or these and a dict of further members."""
    rows = [{"id": name, "reference_grade_counts": counts, "rankings": rankings, **(more_members[0] if more_members else {})}
            for name, counts, rankings, *more_members in queries]
    return {"models": {model: {} for model in queries[0][2]}, "cutoffs": list(cutoffs), "queries": rows, **more}


def summarize(value, name="x.json"):
    """The summary of a JSON value, as it is stored."""
    return json.loads(metrics.dump_json(metrics.summarize(metrics.parse_record(value, name))))


def random_panel(seed):
    """A panel with everything in it: excluded positions, empty rankings, types, selected lengths, any scale."""
    pick = random.Random(seed)
    top = pick.randint(1, 4)
    scale = {"max": top, "useful": pick.randint(1, top), "gain": pick.choice(["exponential", "linear"])}
    models, queries = ["m1", "m2", "m3"][:pick.randint(1, 3)], []
    for number in range(pick.randint(1, 9)):
        pool = [pick.choices(range(top + 1), [5, *[2] * top])[0] for _ in range(pick.randint(0, 12))]
        counts = {str(grade): pool.count(grade) for grade in range(top + 1) if pool.count(grade) or pick.random() < 0.3}
        if pick.random() < 0.5:
            counts.pop("0", None)
        rankings = {}
        for model in models:
            ranking = pick.sample(pool, pick.randint(0, min(8, len(pool))))
            rankings[model] = [copy.copy(X) if pick.random() < 0.3 else grade for grade in ranking]
        selected = {model: pick.randint(0, len(ranking)) for model, ranking in rankings.items()}
        queries.append((f"q{number}", counts, rankings, {"type": pick.choice("tu"), "selected": selected}))
    more = {"tolerance": 0.3} if seed % 2 else {}
    return panel(queries, sorted(pick.sample(range(1, 12), pick.randint(1, 3))), grades=scale, **more)


class Oracle:
    """The results of a panel, worked out again in fractions, query by query."""

    def __init__(self, value):
        self.value, self.models, self.cutoffs = value, list(value["models"]), value["cutoffs"]
        scale = value.get("grades", {})
        self.top, self.useful = scale.get("max", 3), scale.get("useful", 2)
        self.exponential = scale.get("gain", "exponential") == "exponential"
        self.tolerance = value.get("tolerance")

    def gain(self, grade):
        return 2**grade - 1 if self.exponential else grade

    def count(self, query, grade):
        return query["reference_grade_counts"].get(str(grade), 0)

    def prefix(self, query, model, k):
        return query["rankings"][model][:query["selected"][model] if k is None else k]

    def retained(self, query, model, k):
        return [position for position in self.prefix(query, model, k) if not isinstance(position, dict)]

    def is_eligible(self, query, k):
        return all(self.retained(query, model, k) or not self.prefix(query, model, k) for model in self.models)

    def known(self, query):
        return sum(self.count(query, grade) for grade in range(self.useful, self.top + 1))

    def ratio(self, metric, query, model, k):
        """(numerator, denominator) of one query."""
        grades = self.retained(query, model, k)
        ranks = [rank for rank, grade in enumerate(grades, 1) if grade >= self.useful]
        if metric == "hit":
            return Fraction(bool(ranks)), 1
        if metric in ("precision", "selected_precision"):
            return Fraction(len(ranks)), len(grades)
        if metric == "recall":
            return (Fraction(len(ranks), self.known(query)), 1) if self.known(query) else (Fraction(0), 0)
        if metric == "mrr":
            return Fraction(1, ranks[0]) if ranks else Fraction(0), 1
        best = [grade for grade in range(self.top, 0, -1) for _ in range(self.count(query, grade))][:k]
        ideal = sum(self.gain(grade) / log2(rank + 1) for rank, grade in enumerate(best, 1))
        gained = sum(self.gain(grade) / log2(rank + 1) for rank, grade in enumerate(grades, 1))
        return Fraction(gained / ideal if ideal else 0.0), 1

    @staticmethod
    def estimate(pairs):
        total = sum(d for _, d in pairs)
        return sum(n for n, _ in pairs) / total if total else None

    def comparison(self, metric, queries, base, candidate, k):
        pairs = [(self.ratio(metric, query, base, k), self.ratio(metric, query, candidate, k)) for query in queries]
        pairs = [pair for pair in pairs if pair[0][1] or pair[1][1]]
        values = [[n / d if d else Fraction(0) for n, d in pair] for pair in pairs]
        entry = {"wins": sum(new > old for old, new in values), "ties": sum(new == old for old, new in values),
                 "losses": sum(new < old for old, new in values), "difference": None, "low": None, "high": None, "p": None}
        old, new = [self.estimate([pair[side] for pair in pairs]) for side in (0, 1)]
        if old is not None and new is not None:
            entry["difference"] = float(new - old)
            size = len(pairs)
            if size > 1:
                means = [Fraction(sum(pair[side][1] for pair in pairs), size) for side in (0, 1)]
                pulls = [(c[0] - new * c[1]) / means[1] - (b[0] - old * b[1]) / means[0] for b, c in pairs]
                center = sum(pulls) / size
                error = math.sqrt(sum((pull - center) ** 2 for pull in pulls) / (size - 1) / size)
                half = quantile(size - 1) * error
                entry["low"], entry["high"] = entry["difference"] - half, entry["difference"] + half
                if max(pulls) - min(pulls) > 1e-12:
                    entry["p"] = series_tail(entry["difference"] / error, size - 1)
        if self.tolerance:
            inside = entry["low"] is not None and max(-entry["low"], entry["high"]) <= self.tolerance
            entry["within_tolerance"] = None if entry["low"] is None else inside
        return entry

    def population(self, queries):
        wanted = [(metric, k) for metric in ("hit", "precision", "recall", "ndcg", "mrr") for k in self.cutoffs]
        if all("selected" in query for query in self.value["queries"]):
            wanted.append(("selected_precision", None))
        eligible = {k: [query for query in queries if self.is_eligible(query, k)] for _, k in wanted}
        comparisons = []
        for candidate in self.models[1:]:
            entries = {own: self.comparison(own[0], eligible[own[1]], self.models[0], candidate, own[1]) for own in wanted}
            family = [entry["p"] for entry in entries.values() if entry["p"] is not None]
            for entry in entries.values():
                entry["p_holm"] = None if entry["p"] is None else adjusted(entry["p"], family)
            comparisons.append({"base": self.models[0], "candidate": candidate, **self.nested(entries)})
        return {
            "queries": len(queries), "graded_pairs": sum(sum(query["reference_grade_counts"].values()) for query in queries),
            "eligible": {str(k): len(eligible[k]) for k in self.cutoffs},
            "excluded_positions": {model: {str(k): self.excluded(queries, model, k) for k in self.cutoffs} for model in self.models},
            "models": {model: self.nested({(metric, k): self.estimate([self.ratio(metric, query, model, k) for query in eligible[k]])
                                           for metric, k in wanted}) for model in self.models},
            "comparisons": comparisons}

    def excluded(self, queries, model, k):
        return sum(isinstance(position, dict) for query in queries for position in self.prefix(query, model, k))

    @staticmethod
    def nested(entries):
        nested = {}
        for (metric, k), entry in entries.items():
            if k is None:
                nested[metric] = entry
            else:
                nested.setdefault(metric, {})[str(k)] = entry
        return nested

    def summary(self):
        queries = self.value["queries"]
        return {**self.population(queries), "answerable": self.population([query for query in queries if self.known(query)]),
                "types": {kind: self.population([query for query in queries if query["type"] == kind])
                          for kind in {query["type"] for query in queries}}}


def series_tail(t, df):
    """The two-sided tail of Student's t by the finite series for whole degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = math.atan(abs(t) / math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    if df % 2:
        term, total = cosine, cosine if df > 1 else 0.0
        for step in range(3, df - 1, 2):
            term *= cosine**2 * (step - 1) / step
            total += term
        return 1 - 2 / math.pi * (angle + sine * total)
    term, total = 1.0, 1.0
    for step in range(2, df, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    return 1 - sine * total


def adjusted(own, family):
    """Holm's adjustment of one p-value: the largest, over those up to it, of the p-value times the number of p-values not below it."""
    return max(min(1.0, p * sum(other >= p for other in family)) for p in family if p <= own)


@functools.cache
def quantile(df):
    """The t with a two-sided tail of 0.05, by halving."""
    low, high = 1.0, 13.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if series_tail(middle, df) > 0.05 else (low, middle)
    return low


class AgainstTheDefinitions(TestCase):
    def test_random_panels(self):
        undefined = compared = 0
        for seed in range(70):
            value = random_panel(seed)
            with self.subTest(seed=seed):
                summary = summarize(value)
                del summary["signature"]
                self.agree(summary, Oracle(value).summary(), "")
                undefined += "undefined" in json.dumps(summary)
                compared += '"p_holm": 0.' in json.dumps(summary)
        self.assertGreater(min(undefined, compared), 15)  # the panels do reach those cases

    def agree(self, found, expected, place):
        if isinstance(expected, dict):
            self.assertEqual(set(found) - {"undefined"}, set(expected), place)
            for key in expected:
                self.agree(found[key], expected[key], f"{place}.{key}")
            if ".models." in place and place.endswith(("m1", "m2", "m3")) or ".comparisons" in place and place.endswith("]"):
                missing = [key for key, value in self.walk(found) if value is None and (key == "p" or ".models." in place)]
                self.assertEqual(len(found.get("undefined", ())), len(missing), f"{place}: a reason for each undefined value")
        elif isinstance(expected, list):
            self.assertEqual(len(found), len(expected), place)
            for index, (own, other) in enumerate(zip(found, expected)):
                self.agree(own, other, f"{place}[{index}]")
        elif isinstance(expected, (float, Fraction)):
            self.assertIsInstance(found, float, place)
            self.assertAlmostEqual(found, float(expected), delta=2e-10 if place.endswith(("p", "p_holm")) else 1e-11, msg=place)
        else:
            self.assertEqual((type(found), found), (type(expected), expected), place)

    def walk(self, value):
        for key, member in value.items():
            if isinstance(member, dict):
                yield from self.walk(member)
            else:
                yield key, member


class ByHand(TestCase):
    """One panel of three queries and two models, every value spelled out."""

    def setUp(self):
        super().setUp()
        self.value = panel([("q1", {"3": 1, "2": 2, "1": 1, "0": 4}, {"a": [1, 3, 0, 2], "b": [X, 2, 3]}),
                            ("q2", {"2": 1}, {"a": [0, 0], "b": []}),
                            ("q3", {"1": 2}, {"a": [X, 1], "b": [1, 0]})], cutoffs=(1, 2, 4))
        self.summary = summarize(self.value)

    def test_eligible(self):
        """At 1, b's prefix of q1 and a's prefix of q3 are wholly excluded, so only q2 is left; from 2 on there are all three."""
        self.assertEqual(self.summary["eligible"], {"1": 1, "2": 3, "4": 3})
        self.assertEqual(self.summary["excluded_positions"], {"a": {"1": 1, "2": 1, "4": 1}, "b": {"1": 1, "2": 1, "4": 1}})
        self.assertEqual((self.summary["queries"], self.summary["graded_pairs"]), (3, 8 + 1 + 2))

    def check(self, model, metric, *values):
        found = self.summary["models"][model][metric]
        self.assertEqual(list(found), ["1", "2", "4"])
        for own, value in zip(found.values(), values):
            if value is None:
                self.assertIsNone(own)
            else:
                self.assertAlmostEqual(own, value, delta=1e-12)

    def test_hit(self):
        self.check("a", "hit", 0, 1 / 3, 1 / 3)
        self.check("b", "hit", 0, 1 / 3, 1 / 3)

    def test_precision(self):
        self.check("a", "precision", 0 / 1, 1 / (2 + 2 + 1), 2 / (4 + 2 + 1))
        self.check("b", "precision", None, 1 / (1 + 0 + 2), 2 / (2 + 0 + 2))

    def test_recall(self):
        """q3 has no useful passage: it is in no recall."""
        self.check("a", "recall", 0, (1 / 3 + 0) / 2, (2 / 3 + 0) / 2)
        self.check("b", "recall", 0, (1 / 3 + 0) / 2, (2 / 3 + 0) / 2)

    def test_mrr(self):
        self.check("a", "mrr", 0, (1 / 2) / 3, (1 / 2) / 3)
        self.check("b", "mrr", 0, 1 / 3, 1 / 3)

    def test_ndcg(self):
        two, four = 7 + 3 / log2(3), 7 + 3 / log2(3) + 3 / 2 + 1 / log2(5)
        pair = 1 + 1 / log2(3)
        self.check("a", "ndcg", 0, ((1 + 7 / log2(3)) / two + 0 + 1 / pair) / 3,
                   ((1 + 7 / log2(3) + 3 / log2(5)) / four + 0 + 1 / pair) / 3)
        self.check("b", "ndcg", 0, (3 / two + 0 + 1 / pair) / 3, ((3 + 7 / log2(3)) / four + 0 + 1 / pair) / 3)

    def test_undefined_says_why(self):
        self.assertEqual(self.summary["models"]["b"]["undefined"], ["Precision@1: no position is retained"])
        self.assertNotIn("undefined", self.summary["models"]["a"])

    def test_answerable(self):
        answerable = self.summary["answerable"]
        self.assertEqual((answerable["queries"], answerable["graded_pairs"], answerable["eligible"]), (2, 9, {"1": 1, "2": 2, "4": 2}))
        self.assertEqual(answerable["models"]["a"]["hit"]["2"], 0.5)
        self.assertEqual(answerable["excluded_positions"]["a"], {"1": 0, "2": 0, "4": 0})

    def test_wins(self):
        """At 4, b's first useful passage of q1 is at retained rank 1, a's at 2; q2 and q3 are tied at 0."""
        entry = self.summary["comparisons"][0]["mrr"]["4"]
        self.assertEqual((entry["wins"], entry["ties"], entry["losses"]), (1, 2, 0))
        self.assertAlmostEqual(entry["difference"], 1 / 6, delta=1e-12)

    def test_query_values(self):
        own = metrics.parse_record(self.value, "x.json").blocks[""]
        values = metrics.query_values(own, "a", 2)
        self.assertEqual(list(values), ["hit", "precision", "recall", "ndcg", "mrr"])
        self.assertEqual(values["hit"], [1, 0, 0])
        self.assertEqual(values["precision"], [1 / 2, 0, 0])
        self.assertEqual(values["recall"], [1 / 3, 0, None])
        self.assertEqual(values["mrr"], [1 / 2, 0, 0])
        self.assertAlmostEqual(values["ndcg"][2], 1 / (1 + 1 / log2(3)), delta=1e-15)
        self.assertEqual(metrics.query_values(own, "b", 1)["hit"], [None, 0, None])
        self.assertEqual(metrics.query_values(own, "b", 1)["precision"], [None, None, None])


class Shape(TestCase):
    def test_whole_summary(self):
        """Every member of a small summary, in the order in which it is written."""
        value = panel([("q1", {"1": 1}, {"old": [0, 1], "new": [1, 0]}, {"type": "t", "selected": {"old": 1, "new": 1}})], cutoffs=[2],
                      grades={"max": 1})
        names = ("Hit@2", "Precision@2", "Recall@2", "nDCG@2", "MRR@2", "Selected precision")
        undefined = [f"{name}: no p-value: fewer than two queries" for name in names]
        none = {"low": None, "high": None, "p": None, "p_holm": None}
        tie, win = {"difference": 0.0, **none, "wins": 0, "ties": 1, "losses": 0}, {**none, "wins": 1, "ties": 0, "losses": 0}
        second = round(1 / log2(3), 12)
        block = {
            "queries": 1, "graded_pairs": 1, "eligible": {"2": 1}, "excluded_positions": {"old": {"2": 0}, "new": {"2": 0}},
            "models": {"old": {"hit": {"2": 1.0}, "precision": {"2": 0.5}, "recall": {"2": 1.0}, "ndcg": {"2": second},
                               "mrr": {"2": 0.5}, "selected_precision": 0.0},
                       "new": {"hit": {"2": 1.0}, "precision": {"2": 0.5}, "recall": {"2": 1.0}, "ndcg": {"2": 1.0},
                               "mrr": {"2": 1.0}, "selected_precision": 1.0}},
            "comparisons": [{"base": "old", "candidate": "new", "hit": {"2": tie}, "precision": {"2": tie}, "recall": {"2": tie},
                             "ndcg": {"2": {"difference": round(1 - 1 / log2(3), 12), **win}}, "mrr": {"2": {"difference": 0.5, **win}},
                             "selected_precision": {"difference": 1.0, **win}, "undefined": undefined}]}
        signature = {"record": "x.json", "sha256": "", "format": 1,
                     "panels": {"": {"max": 1, "useful": 1, "gain": "exponential", "cutoffs": [2]}}}
        expected = {"signature": signature, **block, "answerable": block, "types": {"t": block}}
        self.assertEqual(summarize(value), expected)
        self.assertEqual(metrics.dump_json(metrics.summarize(metrics.parse_record(value, "x.json"))), metrics.dump_json(expected))

    def test_sections_mirror_the_record(self):
        own = panel([("q1", {"2": 1}, {"m": [2]})])
        table = {"measure": "nDCG@10", "datasets": {"scifact": {"queries": 2, "scores": {"m": [0.25, 0.75]}}}}
        summary = summarize({"about": "text", "graded": {"private": own}, "public": table, "empty": {}})
        self.assertEqual(list(summary), ["signature", "graded", "public"])
        self.assertEqual(list(summary["graded"]), ["private"])
        self.assertEqual(summary["graded"]["private"], {key: member for key, member in summarize(own).items() if key != "signature"})
        self.assertEqual(summary["public"], {
            "measure": "nDCG@10", "datasets": {"scifact": {"queries": 2, "means": {"m": 0.5}, "comparisons": []}},
            "average": {"datasets": ["scifact"], "means": {"m": 0.5}}})
        self.assertEqual(list(summary["signature"]["panels"]), ["graded.private"])

    def test_signature_tells_what_was_computed(self):
        value = panel([("q1", {"4": 1}, {"m": [4]})], cutoffs=[1, 7], grades={"max": 4, "useful": 3, "gain": "linear"})
        signature = metrics.summarize(metrics.parse_record(value, "folder/x.json", "ab12"))["signature"]
        self.assertEqual(signature, {"record": "x.json", "sha256": "ab12", "format": metrics.FORMAT,
                                     "panels": {"": {"max": 4, "useful": 3, "gain": "linear", "cutoffs": [1, 7]}}})

    def test_numbers_are_finite_fractions(self):
        """Every value lies in [0, 1], and no -0.0 and no NaN is written."""
        for seed in range(40):
            summary = summarize(random_panel(seed))
            text = metrics.dump_json(summary)
            self.assertNotRegex(text, r"-0\.0\b[^\d]|NaN|Infinity")
            for block in (summary, summary["answerable"], *summary["types"].values()):
                for values in block["models"].values():
                    values.pop("undefined", None)
                    for own in values.values():
                        for value in own.values() if isinstance(own, dict) else (own,):
                            self.assertTrue(value is None or 0 <= value <= 1, value)


class Invariance(TestCase):
    """What must not change a number."""

    def test_order_of_the_queries(self):
        for seed in range(30):
            value = random_panel(seed)
            mixed = copy.deepcopy(value)
            random.Random(seed).shuffle(mixed["queries"])
            self.assertEqual(metrics.dump_json(summarize(mixed)), metrics.dump_json(summarize(value)), seed)

    def test_order_of_the_rankings_in_a_query(self):
        for seed in range(10):
            value = random_panel(seed)
            mixed = copy.deepcopy(value)
            for query in mixed["queries"]:
                query["rankings"] = dict(reversed(query["rankings"].items()))
                query["reference_grade_counts"] = dict(reversed(query["reference_grade_counts"].items()))
            self.assertEqual(metrics.dump_json(summarize(mixed)), metrics.dump_json(summarize(value)), seed)

    def test_order_of_the_scores_in_a_table(self):
        pick = random.Random(5)
        scores = {"a": [pick.random() ** 9 for _ in range(400)], "b": [pick.random() for _ in range(400)]}
        order = pick.sample(range(400), 400)
        table, mixed = ({"measure": "m", "datasets": {"d": {"queries": 400, "scores": own}}}
                        for own in (scores, {model: [column[i] for i in order] for model, column in scores.items()}))
        self.assertEqual(summarize(mixed), summarize(table))

    def test_evaluation_twice(self):
        record = metrics.parse_record(random_panel(3), "x.json")
        self.assertEqual(metrics.dump_json(metrics.summarize(record)), metrics.dump_json(metrics.summarize(record)))
        own = record.blocks[""]
        self.assertEqual(metrics.query_values(own, "m1", 2), metrics.query_values(own, "m1", 2))

    def test_other_cutoffs(self):
        """A cutoff gives the same alone and among others, but for Holm's adjustment, which spans them."""
        value = random_panel(9)
        whole = summarize({**value, "cutoffs": [1, 2, 5]})
        for k in ("1", "2", "5"):
            alone = summarize({**value, "cutoffs": [int(k)]})
            for model in value["models"]:
                for metric in ("hit", "precision", "recall", "ndcg", "mrr"):
                    self.assertEqual(alone["models"][model][metric], {k: whole["models"][model][metric][k]})

    def test_positions_below_the_cutoff(self):
        value = panel([("q1", {"3": 2, "2": 1}, {"m": [0, 3, X]})], cutoffs=[1, 3])
        longer = copy.deepcopy(value)
        longer["queries"][0]["rankings"]["m"] += [3, 2, X]
        self.assertEqual(summarize(longer), summarize(value))

    def test_an_unjudged_zero_is_no_excluded_position(self):
        zero, left_out = (summarize(panel([("q1", {"2": 1}, {"m": [first, 2]})], cutoffs=[2]))["models"]["m"] for first in (0, X))
        self.assertEqual((zero["precision"]["2"], zero["mrr"]["2"]), (0.5, 0.5))
        self.assertEqual((left_out["precision"]["2"], left_out["mrr"]["2"]), (1.0, 1.0))

    def test_reason_changes_nothing(self):
        one, other = (summarize(panel([("q1", {"2": 1}, {"m": [{**X, "reason": reason}, 2]})])) for reason in ("abstained", "unjudged"))
        self.assertEqual(one, other)

    def test_swapped_models_mirror_the_comparison(self):
        value = random_panel(14)
        value["models"] = {"m1": {}, "m2": {}}
        for query in value["queries"]:
            for part in ("rankings", "selected"):
                query[part] = {"m1": query[part]["m1"], "m2": query[part].get("m2", [0][:0] if part == "rankings" else 0)}
        there, back = (summarize({**value, "comparisons": [pair]})["comparisons"][0] for pair in (["m1", "m2"], ["m2", "m1"]))
        for metric in ("hit", "precision", "recall", "ndcg", "mrr"):
            for k, entry in there[metric].items():
                other = back[metric][k]
                self.assertEqual((entry["wins"], entry["ties"], entry["losses"]), (other["losses"], other["ties"], other["wins"]))
                for key, mirrored in (("difference", "difference"), ("low", "high"), ("high", "low")):
                    if entry[key] is not None:
                        self.assertAlmostEqual(entry[key], -other[mirrored], delta=1e-11)
                self.assertEqual(entry["p"] is None, other["p"] is None)

    def test_ties_at_the_edge_of_ideal(self):
        """The ideal is cut inside a run of equal grades and never built longer than the cutoff."""
        self.assertEqual(metrics.ideal_grades((9, 10**17, 2, 1), 5), bytes([3, 2, 2, 1, 1]))
        self.assertEqual(metrics.ideal_grades((9, 0, 0, 0), 5), b"")
        self.assertEqual(metrics.ideal_grades((-1, 1, 0, 2), 1), bytes([3]))


class Parts(TestCase):
    def test_examples_in_the_documentation(self):
        failed, tried = doctest.testmod(metrics)
        self.assertEqual(failed, 0)
        self.assertGreaterEqual(tried, 5)

    def test_gain_table(self):
        self.assertEqual(tuple(metrics.gain_table("exponential", 3))[:4], (0, 1, 3, 7))
        self.assertEqual(tuple(metrics.gain_table("linear", 3))[:4], (0, 1, 2, 3))

    def test_dcg_beyond_a_hundred_ranks(self):
        gains = metrics.gain_table("linear", 3)
        for length in (0, 1, 99, 100, 101, 2000):
            grades = bytes(rank % 4 for rank in range(length))
            self.assertEqual(metrics.dcg(grades, gains), math.fsum(grade / log2(rank + 1) for rank, grade in enumerate(grades, 1)))

    def test_formulas_in_the_metric_docstrings(self):
        """The worked examples of the docstrings of hit, precision, recall, ndcg and mrr."""
        two = summarize(panel([("q1", {"3": 1, "2": 1}, {"m": [0, 2, 3]}), ("q2", {"1": 1}, {"m": [1]})], cutoffs=[3]))["models"]["m"]
        self.assertEqual([two[metric]["3"] for metric in ("hit", "precision", "mrr")], [0.5, 0.5, 0.25])
        three = summarize(panel([("q1", {"2": 4}, {"m": [2, 2]}), ("q2", {"2": 1}, {"m": [2]}), ("q3", {}, {"m": [0]})], cutoffs=[3]))
        self.assertEqual(three["models"]["m"]["recall"]["3"], 0.75)
        one = summarize(panel([("q1", {"3": 1, "1": 1}, {"m": [0, 3]})], cutoffs=[2]))["models"]["m"]
        self.assertAlmostEqual(one["ndcg"]["2"], 0.578764, delta=5e-7)
        self.assertIn("0.578764", metrics.ndcg.__doc__)

    def test_gains_of_a_scale_of_100(self):
        """2^100 - 1 over itself is 1, and a grade below is half."""
        summary = summarize(panel([("q1", {"100": 1, "99": 1}, {"m": [99]})], cutoffs=[1], grades={"max": 100}))
        self.assertAlmostEqual(summary["models"]["m"]["ndcg"]["1"], 0.5, delta=1e-12)

    def test_differences(self):
        stored = {"a": 1, "b": [1.0, 2], "c": None, "d": "x", "e": True, "extra": 0}
        recomputed = {"a": 1.0, "b": [1.0 + 1e-12, 3, 4], "c": 0.0, "d": "y", "e": 1, "missing": 5}
        found = list(metrics.differences(stored, recomputed, 1e-9))
        self.assertEqual([place for place, *_ in found], ["b[1]", "b[2]", "c", "d", "e", "missing", "extra"])
        self.assertEqual(list(metrics.differences({"k": 1.5}, {"k": 1.6}, 0.2)), [])
        self.assertEqual(len(list(metrics.differences({"k": 2}, {"k": 3}, 10))), 1, "integers must be equal whatever the tolerance")
        self.assertEqual(len(list(metrics.differences({"k": 3.0}, {"k": 3}, 10))), 1, "3.0 is no integer")
        self.assertEqual(len(list(metrics.differences([], {}, 1))), 1)
        self.assertEqual(len(list(metrics.differences({"k": 10**400}, {"k": 0.5}, 1))), 1)

    def test_every_data_file_is_summarized_twice_alike(self):
        for path in sorted((DATA / "valid").glob("*.json")):
            record = metrics.load_record(path)
            self.assertEqual(metrics.dump_json(metrics.summarize(record)), metrics.dump_json(metrics.summarize(metrics.load_record(path))))
