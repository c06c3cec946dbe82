"""Optional cross-checks against independent programs and published rankings; each skips, and says so, where its peer is missing.

    pip install pytrec_eval-terrier scipy        into an environment of your own
    RETRIEVAL_DATA=FOLDER                        with runs/COLLECTION/{qrels.txt,expected.json,runs/*.trec.gz}
    RETRIEVAL_ALL=1                              every run there instead of two of each collection
"""

import contextlib
import importlib.util
import io
import itertools
import json
import os
import random
import unittest

import metrics
from tests import EXTERNAL_DATA, TestCase

RUNS = EXTERNAL_DATA / "runs"
CUTOFFS = (1, 3, 5, 10, 20, 50)
NAMES = {"ndcg": "ndcg_cut_{}", "recall": "recall_{}", "hit": "success_{}", "precision": "P_{}"}


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed: this cross-check did not run")


@needs("pytrec_eval")
class PytrecEval(TestCase):
    def test_random_panels(self):
        """nDCG with linear gain, recall, success (Hit) and, where every list is long enough, P: per query, to 1e-12."""
        import pytrec_eval

        measures = {f"{name}.{','.join(map(str, CUTOFFS))}" for name in ("ndcg_cut", "recall", "success", "P")}
        compared = 0
        for seed in range(12):
            qrels, run, value = self.random_input(random.Random(seed))
            panel = metrics.parse_record(value, "random.json").blocks[""]
            theirs = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=panel.useful).evaluate(run)
            for k in CUTOFFS:
                ours = metrics.query_values(panel, "m", k)
                for (metric, name), (index, query) in itertools.product(NAMES.items(), enumerate(panel.ids)):
                    own = ours[metric][index]
                    if own is None or metric == "precision" and len(panel.rankings["m"][index]) < k:
                        continue
                    self.assertAlmostEqual(own, theirs[query][name.format(k)], delta=1e-12, msg=(seed, metric, k, query))
                    compared += 1
        self.assertGreater(compared, 5000)

    @staticmethod
    def random_input(pick):
        useful, qrels, run, queries = pick.randint(1, 3), {}, {}, []
        for number in range(40):
            query = f"q{number}"
            judged = qrels[query] = {f"d{i}": pick.choice([0, 0, 1, 2, 3]) for i in range(pick.randint(1, 80))}
            pool = [*judged, *(f"u{i}" for i in range(40))]
            ranking = pick.sample(pool, pick.randint(1, min(60, len(pool))))
            run[query] = {document: float(len(ranking) - rank) for rank, document in enumerate(ranking)}
            known = list(judged.values())
            queries.append({"id": query, "reference_grade_counts": {str(grade): known.count(grade) for grade in (1, 2, 3)},
                            "rankings": {"m": [judged.get(document, 0) for document in ranking]}})
        grades = {"useful": useful, "gain": "linear"}
        return qrels, run, {"models": {"m": {}}, "cutoffs": list(CUTOFFS), "grades": grades, "queries": queries}


@needs("scipy")
class Scipy(TestCase):
    def test_tails_of_students_t(self):
        from scipy.stats import t as student

        for df in (1, 2, 3, 4, 7, 10, 29, 30, 99, 224, 969, 5000, 10**4, 10**5, 10**6):
            for t in (1e-6, 0.001, 0.1, 0.5, 1, 1.5, 1.96, 2.5, 3, 5, 8, 12, 20, 37):
                expected, found = 2 * student.sf(t, df), metrics.t_tail(t, df)
                self.assertAlmostEqual(found, expected, delta=1e-10 * max(1, df / 10**5), msg=(t, df))
                if expected > 1e-280:
                    self.assertAlmostEqual(found / expected, 1, delta=2e-8, msg=(t, df))
            self.assertAlmostEqual(metrics.t_95(df), student.ppf(0.975, df), delta=1e-8 if df > 10**5 else 1e-10)

    def test_paired_t(self):
        from scipy.stats import ttest_rel

        pick = random.Random(8)
        for size in (2, 3, 5, 12, 50, 300, 2000):
            base = [pick.random() for _ in range(size)]
            candidate = [min(1, max(0, value + pick.gauss(0.02, 0.1))) for value in base]
            theirs = ttest_rel(candidate, base)
            interval = theirs.confidence_interval(0.95)
            ours = metrics.compare((base, [1] * size), (candidate, [1] * size))
            self.assertAlmostEqual(ours["p"], theirs.pvalue, delta=1e-11)
            self.assertAlmostEqual(ours["low"], interval.low, delta=1e-11)
            self.assertAlmostEqual(ours["high"], interval.high, delta=1e-11)

    def test_ratio_interval_near_the_bootstrap(self):
        """The interval of a ratio of sums agrees with the percentile bootstrap to a few hundredths of its width."""
        pick = random.Random(4)
        denominators = [pick.randint(1, 20) for _ in range(400)]
        numerators = [sum(pick.random() < 0.4 for _ in range(count)) for count in denominators]
        _, low, high = metrics.mean_interval(numerators, denominators)
        pairs = list(zip(numerators, denominators))
        ratios = sorted(sum(n for n, _ in own) / sum(d for _, d in own) for own in (pick.choices(pairs, k=400) for _ in range(2000)))
        self.assertAlmostEqual(low, ratios[50], delta=0.1 * (high - low))
        self.assertAlmostEqual(high, ratios[-50], delta=0.1 * (high - low))


@unittest.skipUnless(RUNS.is_dir(), f"{RUNS} is not there: the check against published rankings did not run")
class PublishedRankings(TestCase):
    """Records made from real runs, unjudged as zero and linear gain, against pytrec_eval's means to their six digits."""

    def test_collections(self):
        from harness import record

        found = 0
        for folder in sorted(path.parent for path in RUNS.glob("*/expected.json")):
            expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["runs"]
            names = sorted(expected) if os.environ.get("RETRIEVAL_ALL") else sorted(expected)[:: max(1, len(expected) - 1)]
            for useful, key in ((1, "mean"), (2, "mean_rel_level_2")):
                if key not in expected[names[0]]:
                    continue
                output = self.folder / f"{folder.name}-{useful}.json"
                runs = [argument for name in names for argument in ("--run", f"{name}={folder / 'runs' / name}.trec.gz")]
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    status = record.main(["--qrels", str(folder / "qrels.txt"), *runs, "--output", str(output), "--gain", "linear",
                                          "--unjudged", "zero", "--ties", "input", "--useful", str(useful), "--depth", "50"])
                self.assertEqual(status, 0)
                found += self.compare(output, expected, names, key)
        self.assertGreater(found, 100)

    def compare(self, output, expected, names, key):
        panel = metrics.load_record(output).blocks[""]
        summary, found = metrics.summarize_panel(panel), 0
        for name, (metric, theirs), k in itertools.product(names, NAMES.items(), CUTOFFS):
            if theirs.format(k) not in expected[name][key] or metric == "precision" and min(map(len, panel.rankings[name])) < k:
                continue
            values = summary["models"][name][metric]
            own = values[str(k)]
            if metric == "recall":  # there the mean is over the queries that have a useful passage; here over all
                own *= summary["answerable"]["queries"] / summary["queries"]
            with self.subTest(collection=output.name, run=name, metric=metric, k=k):
                self.assertAlmostEqual(own, expected[name][key][theirs.format(k)], delta=5.1e-7)
            found += 1
        return found


class Skipping(TestCase):
    def test_a_missing_peer_is_said(self):
        """A decorated case skips with a reason that names what is missing."""
        case = needs("no_such_peer_module")(type("Case", (unittest.TestCase,), {"test_x": lambda self: None}))
        result = unittest.TestResult()
        case("test_x").run(result)
        self.assertIn("no_such_peer_module is not installed", result.skipped[0][1])
