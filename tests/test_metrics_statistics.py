"""Intervals, p-values and Holm's adjustment of metrics.py against closed forms and values worked out by hand."""

import itertools
import math
import random

import metrics
from tests import TestCase
from tests.test_metrics import adjusted, series_tail

ONES = [1] * 4
A, B = [0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.6]


class StudentsT(TestCase):
    def test_one_and_two_degrees_of_freedom(self):
        """df 1: p = 1 - 2 atan(t) / pi; df 2: p = 1 - t / sqrt(2 + t^2)."""
        for t in (0.01, 0.5, 1, 2, 12.7, 300):
            self.assertAlmostEqual(metrics.t_tail(t, 1), 1 - 2 * math.atan(t) / math.pi, delta=1e-13)
            self.assertAlmostEqual(metrics.t_tail(t, 2), 1 - t / math.sqrt(2 + t * t), delta=1e-13)

    def test_finite_series(self):
        for df, t in itertools.product((3, 4, 5, 10, 29, 30, 99, 500, 1001), (0.001, 0.3, 1, 1.96, 2.5, 4, 7)):
            self.assertAlmostEqual(metrics.t_tail(t, df), series_tail(t, df), delta=1e-12, msg=(t, df))

    def test_many_degrees_of_freedom_approach_the_normal_tail(self):
        for t in (0.5, 1, 1.96, 3, 5):
            normal = math.erfc(t / math.sqrt(2))
            self.assertAlmostEqual(metrics.t_tail(t, 10**7), normal, delta=1e-7)
            self.assertGreater(metrics.t_tail(t, 1000), normal)

    def test_far_tails_stay_probabilities(self):
        for df, t in itertools.product((1, 2, 7, 1000, 10**6), (0, 1e-200, 1e-9, 50, 1e8, 1e150, 1e200)):
            p = metrics.t_tail(t, df)
            self.assertTrue(0 <= p <= 1, (t, df, p))
            self.assertEqual(metrics.t_tail(-t, df), p)
        self.assertEqual(metrics.t_tail(0, 5), 1)
        self.assertAlmostEqual(metrics.t_tail(1e8, 1) / (2e-8 / math.pi), 1, delta=1e-9)

    def test_falls_as_t_grows(self):
        for df in (1, 3, 40, 969):
            tails = [metrics.t_tail(step / 20, df) for step in range(200)]
            self.assertEqual(tails, sorted(tails, reverse=True))

    def test_quantiles(self):
        """Half widths of a 95% interval, from tables."""
        for df, t in ((1, 12.706204736175), (2, 4.302652729696), (3, 3.182446305284), (4, 2.776445105198), (9, 2.262157162740),
                      (29, 2.045229642133), (99, 1.984216951509)):
            self.assertAlmostEqual(metrics.t_95(df), t, delta=1e-9)
            self.assertAlmostEqual(metrics.t_tail(metrics.t_95(df), df), 0.05, delta=1e-13)
        self.assertAlmostEqual(metrics.t_95(10**6), 1.959966, delta=1e-6)


class Intervals(TestCase):
    def test_mean_of_ones(self):
        value, low, high = metrics.mean_interval([1, 0, 1, 0], ONES)
        half = 3.182446305284 * math.sqrt(1 / 3 / 4)
        self.assertEqual(value, 0.5)
        self.assertAlmostEqual(low, 0.5 - half, delta=1e-9)
        self.assertAlmostEqual(high, 0.5 + half, delta=1e-9)

    def test_ratio(self):
        """3 of 6 over 1/2 and 2/4: no query pulls. 1/1 and 1/3: the ratio 1/2, influences (1 - 1/2)/2 and (1 - 3/2)/2."""
        self.assertEqual(metrics.mean_interval([1, 2], [2, 4]), (0.5, 0.5, 0.5))
        value, low, high = metrics.mean_interval([1, 1], [1, 3])
        error = math.sqrt((0.25**2 + 0.25**2) / 1 / 2)
        self.assertAlmostEqual(high - value, 12.706204736175 * error, delta=1e-9)
        self.assertAlmostEqual(value - low, 12.706204736175 * error, delta=1e-9)

    def test_undefined(self):
        self.assertEqual(metrics.mean_interval([], []), (None, None, None))
        self.assertEqual(metrics.mean_interval([0, 0], [0, 0]), (None, None, None))
        self.assertEqual(metrics.mean_interval([1], [2]), (0.5, None, None))
        self.assertEqual(metrics.mean_interval([1, 0, 0], [2, 0, 0]), (0.5, None, None))

    def test_queries_without_denominator_say_nothing(self):
        self.assertEqual(metrics.mean_interval([1, 0, 0, 1], [2, 0, 1, 1]), metrics.mean_interval([1, 0, 1], [2, 1, 1]))

    def test_coverage(self):
        """Of 95% intervals for the mean of 12 uniform numbers about 95 in 100 hold one half."""
        pick = random.Random(1)
        holds = 0
        for _ in range(800):
            _, low, high = metrics.mean_interval([pick.random() for _ in range(12)], [1] * 12)
            holds += low <= 0.5 <= high
        self.assertAlmostEqual(holds / 800, 0.95, delta=0.025)


class Comparisons(TestCase):
    def test_paired(self):
        """Differences 0.1, 0.1, 0.1, 0.2: mean 0.125, standard error 0.025, t = 5 with 3 degrees of freedom."""
        entry = metrics.compare((A, ONES), (B, ONES))
        self.assertAlmostEqual(entry["difference"], 0.125, delta=1e-15)
        self.assertAlmostEqual(entry["p"], 0.015392438073, delta=1e-12)
        self.assertAlmostEqual(entry["low"], 0.125 - 3.182446305284 * 0.025, delta=1e-11)
        self.assertAlmostEqual(entry["high"], 0.125 + 3.182446305284 * 0.025, delta=1e-11)
        self.assertEqual((entry["wins"], entry["ties"], entry["losses"]), (4, 0, 0))
        self.assertNotAlmostEqual(entry["p"], 0.287208140444, delta=1e-3, msg="that is the unpaired test")

    def test_swapped(self):
        entry, other = metrics.compare((A, ONES), (B, ONES)), metrics.compare((B, ONES), (A, ONES))
        self.assertEqual((other["difference"], other["low"], other["high"]), (-entry["difference"], -entry["high"], -entry["low"]))
        self.assertEqual((other["p"], other["losses"]), (entry["p"], 4))

    def test_same_gain_everywhere(self):
        """0.1 more for each of three queries, in floats 0.1, 0.09999999999999998, 0.10000000000000003: no p-value, above all not 0."""
        entry = metrics.compare(([0.1, 0.2, 0.3], [1] * 3), ([0.2, 0.3, 0.4], [1] * 3))
        self.assertIsNone(entry["p"])
        self.assertAlmostEqual(entry["difference"], 0.1, delta=1e-15)
        self.assertEqual(entry["wins"], 3)

    def test_paired_by_id_not_by_position(self):
        """The same queries in another order; sorted by id, two are won, one is lost, and the mean difference is 1/30."""
        old = {"q1": 0.2, "q2": 0.9, "q3": 0.5}
        new = {"q2": 0.8, "q3": 0.6, "q1": 0.3}
        entry = metrics.compare((list(old.values()), [1] * 3), ([new[query] for query in old], [1] * 3))
        self.assertEqual((entry["wins"], entry["losses"]), (2, 1))
        self.assertAlmostEqual(entry["difference"], 1 / 30, delta=1e-15)

    def test_different_denominators(self):
        """Base 1/2, 2/2, 0/0 and candidate 1/1, 1/4, 1/1: the differences of the influences of 3/4 and of 3/6."""
        entry = metrics.compare(([1, 2, 0], [2, 2, 0]), ([1, 1, 1], [1, 4, 1]))
        old = [(1 - 0.75 * 2) / (4 / 3), (2 - 0.75 * 2) / (4 / 3), 0]
        new = [(1 - 0.5 * 1) / 2, (1 - 0.5 * 4) / 2, (1 - 0.5 * 1) / 2]
        error = math.sqrt(sum((c - b) ** 2 for b, c in zip(old, new)) / 2 / 3)
        self.assertAlmostEqual(entry["difference"], 0.5 - 0.75, delta=1e-15)
        self.assertAlmostEqual(entry["high"], -0.25 + 4.302652729696 * error, delta=1e-9)
        self.assertAlmostEqual(entry["p"], metrics.t_tail(0.25 / error, 2), delta=1e-12)
        self.assertEqual((entry["wins"], entry["ties"], entry["losses"]), (2, 0, 1))

    def test_undefined(self):
        none = {"difference": None, "low": None, "high": None, "p": None, "wins": 0, "ties": 0, "losses": 0}
        self.assertEqual(metrics.compare(([], []), ([], [])), none)
        self.assertEqual(metrics.compare(([0, 0], [0, 0]), ([0, 0], [0, 0])), none)
        one_sided = metrics.compare(([0, 0], [0, 0]), ([1, 0], [1, 1]))
        self.assertEqual((one_sided["difference"], one_sided["p"], one_sided["wins"]), (None, None, 1))
        single = metrics.compare(([0.25], [1]), ([0.5], [1]))
        self.assertEqual((single["difference"], single["low"], single["high"], single["p"], single["wins"]), (0.25, None, None, None, 1))

    def test_order_of_the_queries(self):
        pick = random.Random(2)
        base, candidate = ([[pick.random() for _ in range(60)], [pick.choice([1, 2, 3]) for _ in range(60)]] for _ in range(2))
        order = pick.sample(range(60), 60)
        mixed = [[[column[i] for i in order] for column in sums] for sums in (base, candidate)]
        self.assertEqual(metrics.compare(*mixed), metrics.compare(base, candidate))

    def test_input_is_left_alone(self):
        base, candidate = ([0, 1, 0], [1, 1, 0]), ([1, 1, 0], [2, 1, 0])
        metrics.compare(base, candidate)
        self.assertEqual((base, candidate), (([0, 1, 0], [1, 1, 0]), ([1, 1, 0], [2, 1, 0])))


class Holm(TestCase):
    def test_by_hand(self):
        """0.01 * 3, then 0.03 * 2, then the larger of that and 0.04 * 1."""
        for found, expected in zip(metrics.holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]):
            self.assertAlmostEqual(found, expected, delta=1e-15)

    def test_edges(self):
        self.assertEqual(metrics.holm([]), [])
        self.assertEqual(metrics.holm([None]), [None])
        self.assertEqual(metrics.holm([0.2]), [0.2])
        self.assertEqual(metrics.holm([0.9, 0.8]), [1, 1])
        self.assertEqual(metrics.holm([0.02, 0.02, 0.02]), [0.06] * 3)
        self.assertEqual(metrics.holm([0.0, 1.0]), [0.0, 1.0])

    def test_undefined_ones_are_no_members(self):
        self.assertEqual(metrics.holm([None, 0.01, None, 0.04]), [None, 0.02, None, 0.04])

    def test_against_the_definition(self):
        pick = random.Random(3)
        for _ in range(200):
            family = [pick.choice([pick.random(), round(pick.random() / 9, 2)]) for _ in range(pick.randint(1, 12))]
            for own, found in zip(family, metrics.holm(family)):
                self.assertAlmostEqual(found, adjusted(own, family), delta=1e-15)
                self.assertGreaterEqual(found, own)
