import json
import math
import random
import unittest
from fractions import Fraction

from harness.spearman import correlate_rows, cosine, doubled_ranks, main, read_row, spearman
from metrics import RecordError
from tests import EXTERNAL_DATA, TestCase

CASES = EXTERNAL_DATA.parent / "cases" / "spearman_cases.json"


def plain_ranks(values):
    """Average ranks by counting: one more than the smaller values, and half of the other equal ones."""
    return [1 + sum(other < value for other in values) + Fraction(sum(other == value for other in values) - 1, 2)
            for value in values]


def plain_rho(x, y):
    """Pearson's correlation of the average ranks, written down plainly."""
    x, y = plain_ranks(x), plain_ranks(y)
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    return float(covariance) / math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))


class Ranks(TestCase):
    def test_ties_share_their_mean_rank(self):
        self.assertEqual(doubled_ranks([10, 20, 20]), [2, 5, 5])
        self.assertEqual(doubled_ranks([5, 6, 7, 8, 7]), [2, 4, 7, 10, 7])
        self.assertEqual(doubled_ranks([]), [])

    def test_zeros_tie_and_near_values_do_not(self):
        self.assertEqual(doubled_ranks([0.0, -0.0, 1.0]), [3, 3, 6])
        self.assertEqual(doubled_ranks([0.1 + 0.2, 0.3]), [4, 2])


class Rho(TestCase):
    def test_identity_and_reversal_are_exact(self):
        generator = random.Random(1)
        for size in (2, 3, 10, 99, 500):
            values = [generator.randint(0, size // 2) for _ in range(size)] + [-1]
            self.assertEqual(spearman(values, values).value, 1.0)
            self.assertEqual(spearman(values, [-value for value in values]).value, -1.0)
            self.assertEqual(spearman(values, [math.exp(value / 50) for value in values]).value, 1.0)

    def test_by_hand(self):
        self.assertEqual(spearman([1, 2, 2, 4], [10, 30, 20, 40]).value, 3 / math.sqrt(10))
        self.assertEqual(spearman([1, 2, 3], [0.9, 0.7, 0.8]).value, -0.5)
        self.assertEqual(spearman([1, 2, 3, 4], [1, 3, 0, 2]).value, 0.0)

    def test_against_the_definition(self):
        generator = random.Random(2)
        for _ in range(300):
            size = generator.randint(2, 30)
            x = [generator.randint(0, 5) for _ in range(size)]
            y = [generator.choice([generator.random(), generator.randint(0, 3)]) for _ in range(size)]
            if len(set(x)) > 1 and len(set(y)) > 1:
                self.assertAlmostEqual(spearman(x, y).value, plain_rho(x, y), delta=1e-14)

    def test_infinities_rank(self):
        self.assertEqual(spearman([-math.inf, 0, 1, math.inf], [1, 2, 3, 10**400]).value, 1.0)

    def test_undefined_with_the_reason(self):
        for gold, pred, reason in [
            ([], [], "at least 2 pairs are needed, got 0"), ([1], [2], "at least 2 pairs are needed, got 1"),
            ([3, 3, 3], [1, 2, 3], "gold: all 3 values are equal (3)"), ([1, 2], [7.0, 7.0], "pred: all 2 values are equal"),
            ([1, 2, None, 4], [2, 1, 3, 4], "gold: position 3 holds no number (null)"),
            ([1, 2], [1, math.nan], "pred: position 2 holds no number (NaN)"),
        ]:
            with self.subTest(reason):
                correlation = spearman(gold, pred)
                self.assertIsNone(correlation.value)
                self.assertIn(reason, correlation.reason)

    def test_unequal_lengths_are_an_error(self):
        with self.assertRaisesRegex(RecordError, "length 3 and length 2"):
            spearman([1, 2, 3], [1, 2])

    def test_what_is_no_number_is_an_error(self):
        for value in ("1", True, [1], {"a": 1}):
            with self.subTest(value), self.assertRaisesRegex(RecordError, "pred: position 2: number expected"):
                spearman([1, 2], [1, value])

    @unittest.skipUnless(CASES.exists(), f"no {CASES}: correlations computed by scipy are not part of the repository")
    def test_against_scipy(self):
        def numbers(values):
            return [float(value) for value in values]

        compared = 0
        for case in json.loads(CASES.read_text(encoding="utf-8"))["cases"]:
            x, y = numbers(case["x"]), numbers(case["y"])
            if len(x) != len(y):
                self.assertRaises(RecordError, spearman, x, y)
                continue
            expected = case["scipy"]["propagate"]
            if expected["statistic"] == "NaN":
                self.assertIsNone(spearman(x, y).value, case["name"])
            else:
                self.assertAlmostEqual(spearman(x, y).value, expected["statistic"], delta=1e-12, msg=case["name"])
                compared += 1
        self.assertGreater(compared, 15)


class Cosine(TestCase):
    def test_by_hand(self):
        self.assertEqual(cosine([1.0, 0.0], [1.0, 1.0]), 1 / math.sqrt(2))
        self.assertEqual(cosine([1.0, 0.0], [0.0, 3.0]), 0.0)
        self.assertEqual(cosine([1.0, 2.0], [-2.0, -4.0]), -1.0)

    def test_a_vector_with_itself_is_exactly_one(self):
        generator = random.Random(6)
        for scale in (1e-300, 1e-5, 1.0, 1e300):
            vector = [generator.uniform(-1, 1) * scale for _ in range(50)]
            self.assertEqual(cosine(vector, vector), 1.0)
            self.assertEqual(cosine(vector, [-component for component in vector]), -1.0)

    def test_rows(self):
        self.assertEqual(read_row({"gold": 5, "a": [1, 0], "b": [1, 1]}), (5, 1 / math.sqrt(2), None))
        self.assertEqual(read_row({"gold": 5, "cosine": 0.5, "subset": "en-de"}), (5, 0.5, "en-de"))

    def test_bad_rows(self):
        for row, message in [
            ({"gold": 1}, "expected {"), ({"cosine": 0.5}, "expected {"), ({"gold": 1, "cosine": 0.5, "a": [1]}, "expected {"),
            ({"gold": 1, "cosine": 87.0}, "outside|in -1..1"), ({"gold": "1", "cosine": 0.5}, "gold: number expected"),
            ({"gold": 1, "a": [0, 0], "b": [1, 2]}, "no direction"), ({"gold": 1, "a": [1, 2], "b": [1]}, "one length"),
            ({"gold": 1, "a": [], "b": []}, "a: expected a list"), ({"gold": 1, "a": [1, "2"], "b": [1, 2]}, "a: expected a list"),
            ({"gold": 1, "a": [10**400], "b": [1]}, "too large"), ({"gold": 1, "cosine": 0.5, "subset": 3}, "subset"),
            ([1], "expected {"),
        ]:
            with self.subTest(row), self.assertRaisesRegex(ValueError, message):
                read_row(row)

    def test_mean_of_subsets_is_not_the_pooled_correlation(self):
        rows = [read_row({"gold": gold, "cosine": cosine, "subset": subset}) for subset, cosines in
                (("one", (0.1, 0.2, 0.3)), ("two", (0.9, 0.7, 0.8))) for gold, cosine in zip((1, 2, 3), cosines)]
        report = correlate_rows(rows)
        self.assertEqual(report["mean"], 0.25)
        self.assertAlmostEqual(report["pooled"].value, 0.11952286093343938, delta=1e-15)


class Command(TestCase):
    def spearman(self, *arguments):
        return self.run_command("harness", "spearman", *arguments)

    def test_two_files_in_two_forms(self):
        gold = self.write("gold.json", "[1, 2, 2, 4]\n")
        pred = self.write("pred.txt", "10\n30\r\n\n{\"score\": 20}\n40\n")
        result = self.spearman(gold, pred)
        self.assertEqual((result.stdout, result.stderr, result.returncode), ("spearman    0.9486832980505138  4 pairs\n", "", 0))

    def test_identity_prints_one(self):
        gold = self.write("gold.txt", "3\n1\n2\n")
        self.assertEqual(json.loads(self.spearman(gold, gold, "--format", "json").stdout),
                         {"spearman": 1.0, "pairs": 3, "undefined": []})

    def test_undefined_is_said_and_is_no_success(self):
        gold, pred = self.write("gold.txt", "1\n2\nNaN\n"), self.write("pred.txt", "1\n2\n3\n")
        result = self.spearman(gold, pred, "--format", "json")
        self.assertEqual(result.returncode, 1)
        self.assertIsNone(json.loads(result.stdout)["spearman"])
        self.assertIn("gold.txt: position 3 holds no number (NaN)", result.stderr)

    def test_rows_with_subsets(self):
        rows = self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in [
            {"gold": 1, "a": [1, 0], "b": [0, 1], "subset": "en"}, {"gold": 2, "a": [1, 0], "b": [1, 1], "subset": "en"},
            {"gold": 1, "cosine": 0.9, "subset": "de"}, {"gold": 2, "cosine": 0.1, "subset": "de"}]))
        result = self.spearman(rows)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line.split() for line in result.stdout.splitlines()], [
            ["en", "1.0", "2", "pairs"], ["de", "-1.0", "2", "pairs"], ["mean", "of", "subsets", "0.0", "4", "pairs"],
            ["pooled", "0.0", "4", "pairs"]])

    def test_bad_input(self):
        good = self.write("good.txt", "1\n2\n3\n")
        for name, content, message in [
            ("short.txt", "1\n2\n", "length 3 and length 2"), ("text.txt", "1\nx\n3\n", "text.txt: line 2: expected a number"),
            ("bool.json", "[1, true, [2]]", "bool.json: position 2: number expected, got true"),
            ("bad.json", "[1, 2", "expected a number"),
            ("bytes.txt", b"1\n\xff\n", "not UTF-8"), ("deep.json", "[" * 200_000, "expected a number"),
        ]:
            with self.subTest(name), self.assertRaises(RecordError) as raised:
                main([str(good), str(self.write(name, content))])
            self.assertIn(message, str(raised.exception))
            self.assertNotIn("(a string)", str(raised.exception))
        result = self.spearman(good, self.folder / "none.txt")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, "^error: .*none.txt: cannot be read")

    def test_numbers_alone_lack_their_partner(self):
        for content in ("1\n2\n3\n", "[1, 2, 3]", '{"score": 1}\n', "3 4\n", ""):
            path = self.write("g.txt", content)
            with self.subTest(content), self.assertRaises(RecordError) as raised:
                main([str(path)])
            self.assertEqual(raised.exception.problems, [
                f'{path}: no row like {{"gold": 3.5, "cosine": 0.81}} in it; to correlate two files of numbers, give PRED too'])
        with self.assertRaisesRegex(RecordError, "line 2: "):
            main([str(self.write("rows.jsonl", '{"gold": 1, "cosine": 0.1}\n5\n'))])
        with self.assertRaisesRegex(RecordError, "cannot be read"):
            main([str(self.folder / "none.txt")])
