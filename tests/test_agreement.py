"""Agreement and kappa against values worked out by hand, and, where the data is there, against scikit-learn's."""

import json
import unittest

from harness.agreement import WEIGHTS, agreement, agreement_lines, agreement_report, confusion, kappa, read_scale
from metrics import RecordError
from tests import EXTERNAL_DATA, TestCase


def kappas(first, second, scale=(0, 1, 2)):
    """The three kappas without their intervals."""
    counts = confusion(first, second, scale)
    return [kappa(counts, weights)[0] for weights in WEIGHTS]


class Kappa(TestCase):
    def test_by_hand(self):
        # agreement 3/4, by chance 1/4 * 1/2 + 3/4 * 1/2 = 1/2
        self.assertEqual(kappas([0, 1, 1, 1], [0, 0, 1, 1], (0, 1)), [0.5, 0.5, 0.5])
        self.assertEqual(kappas([0, 1, 2], [0, 1, 2]), [1, 1, 1])
        # every score as often in both, all mirrored: the quadratic one is -1, plain 0 since 1 meets 1 as often as by chance
        self.assertEqual(kappas([0, 1, 2], [2, 1, 0]), [0, -0.5, -1])

    def test_the_scale_is_fixed_beforehand(self):
        # of 0, 2, 3 against 0, 3, 3 with 1 on the scale: distances 0 1 0; expected linear (0+3+3 + 2+1+1 + 3+0+0)/9 = 13/9
        self.assertAlmostEqual(kappas([0, 2, 3], [0, 3, 3], (0, 1, 2, 3))[1], 1 - (1 / 3) / (13 / 9), places=14)
        # without 1: distances 0 1 0; expected (0+2+2 + 1+1+1 + 2+0+0)/9 = 1
        self.assertAlmostEqual(kappas([0, 2, 3], [0, 3, 3], (0, 2, 3))[1], 1 - 1 / 3, places=14)

    def test_constant_raters_are_undefined(self):
        for first, second in (([2, 2], [2, 2]), ([2, 2], [1, 1]), ([0, 1, 2], [2, 2, 2]), ([1], [1]), ([], [])):
            self.assertEqual(kappas(first, second), [None, None, None])
        self.assertEqual(agreement_report([2, 2], [2, 1], (0, 1, 2))["undefined"], ["kappa: the first rater gave 2 throughout"])
        self.assertEqual(agreement_report([], [], (0, 1))["undefined"], ["kappa: no pair was scored by both"])

    def test_high_agreement_and_low_kappa(self):
        first, second = [2] * 27 + [0] * 3, [2] * 29 + [0]
        report = agreement_report(first, second, (0, 1, 2))
        # agreement 28/30, by chance (27 * 29 + 3) / 900 = 786/900
        self.assertAlmostEqual(report["agreement"]["value"], 28 / 30, places=14)
        self.assertAlmostEqual(report["kappa"]["plain"]["value"], (840 - 786) / (900 - 786), places=14)

    def test_the_interval(self):
        # 45 15 / 25 15 of 100: kappa (0.6 - 0.54) / 0.46; the standard error of Fleiss, Cohen and Everitt, term by term as they print it
        counts, n = [[45, 15], [25, 15]], 100
        value, low, high = kappa(counts)
        chance, rows, columns = 0.54, [0.6, 0.4], [0.7, 0.3]
        same = sum(counts[i][i] / n * (1 - (rows[i] + columns[i]) * (1 - value)) ** 2 for i in (0, 1))
        apart = (1 - value) ** 2 * sum(counts[i][j] / n * (columns[i] + rows[j]) ** 2 for i, j in ((0, 1), (1, 0)))
        error = ((same + apart - (value - chance * (1 - value)) ** 2) / n) ** 0.5 / (1 - chance)
        self.assertAlmostEqual(value, 0.06 / 0.46, places=14)
        self.assertAlmostEqual(low, value - 1.959963984540054 * error, places=12)
        self.assertAlmostEqual(high, value + 1.959963984540054 * error, places=12)

    def test_no_interval_claims_certainty(self):
        self.assertEqual(kappa([[3, 0], [0, 2]]), (1, None, None))


class Agreement(TestCase):
    def test_wilson(self):
        value, low, high = agreement([[3, 1], [0, 0]])
        self.assertEqual(value, 0.75)
        self.assertAlmostEqual(low, 0.3006418, places=6)
        self.assertAlmostEqual(high, 0.9544127, places=6)
        self.assertEqual(agreement([[2]])[2], 1)
        self.assertEqual(agreement([[0]]), (None, None, None))

    def test_report(self):
        report = agreement_report([0, 2, 2, 1], [0, 2, 1, 1], (0, 1, 2))
        self.assertEqual(report["confusion"], [[1, 0, 0], [0, 1, 0], [0, 1, 1]])
        self.assertEqual(report["base_rates"], {"first": [0.25, 0.25, 0.5], "second": [0.25, 0.5, 0.25]})
        text = agreement_lines(report, "judge", "human")
        self.assertEqual(text[0], "agreement        0.750 (0.301 to 0.954)")
        self.assertEqual([line.split() for line in text[-3:]], [["0", "1", "0", "0"], ["1", "0", "1", "0"], ["2", "0", "1", "1"]])

    def test_scores_off_the_scale(self):
        for score in (3, -1, True, 1.0, None, "1"):
            with self.assertRaises(RecordError):
                confusion([score], [0], (0, 1, 2))

    def test_scales(self):
        self.assertEqual(read_scale("0-2"), (0, 1, 2))
        self.assertEqual(read_scale("-2:2"), (-2, -1, 0, 1, 2))
        self.assertEqual(read_scale("-2..-1"), (-2, -1))
        for text in ("", "2", "2-0", "1-1", "0-1000", "a-b", "0-2-3"):
            with self.assertRaises(RecordError) as raised:
                read_scale(text)
            self.assertTrue(str(raised.exception).endswith(f'got "{text}"'), raised.exception)


class ScikitLearn(TestCase):
    """Optional: scikit-learn's values, on data that is not part of the repository."""

    def read(self, name):
        path = EXTERNAL_DATA / "judge" / name
        if not path.exists():
            self.skipTest(f"{path} is not there: kappa is not checked against scikit-learn's values")
        return json.loads(path.read_text(encoding="utf-8"))

    def test_cases(self):
        checked = 0
        for case in self.read("kappa_cases.json")["cases"]:
            labels = case["labels"] or sorted(set(case["x"] + case["y"]))
            with self.subTest(case["name"]):
                found = kappas(case["x"], case["y"], labels)
                if len(set(case["x"])) < 2 or len(set(case["y"])) < 2:  # scikit-learn has 0 or NaN here
                    self.assertEqual(found, [None, None, None])
                    continue
                for value, name in zip(found, ("None", "linear", "quadratic")):
                    self.assertAlmostEqual(value, case[name], places=12)
                checked += 1
        self.assertGreater(checked, 5)

    def test_people(self):
        expected = self.read("kappa_cases.json")["ragchecker_human"]
        labels = self.read("labels_280x2.json")
        for name, values in expected.items():
            with self.subTest(name):
                report = agreement_report(
                    *([item[f"{rater}_{name}"] for item in labels["items"]] for rater in ("a1", "a2")), tuple(labels["scale"])
                )
                self.assertEqual((report["n"], report["confusion"]), (280, values["confusion"]))
                self.assertAlmostEqual(report["agreement"]["value"], values["agreement"], places=12)
                for weights, key in zip(WEIGHTS, ("kappa", "kappa_linear", "kappa_quadratic")):
                    self.assertAlmostEqual(report["kappa"][weights]["value"], values[key], places=12)


if __name__ == "__main__":
    unittest.main()
