import random
from fractions import Fraction
from itertools import combinations

from harness import averages
from harness.averages import RULES, Task, agreement, average, averages_without, decimals_of, exact, smallest_omissions
from tests import TestCase


def task(name, *scores, type="retrieval"):
    return Task(name, type, tuple(map(exact, scores)))


class Exact(TestCase):
    def test_decimal_text_names_the_fraction(self):
        self.assertEqual(exact(0.1), Fraction(1, 10))
        self.assertEqual(exact("73.98"), Fraction(7398, 100))
        self.assertEqual(exact(1e-7), Fraction(1, 10**7))
        self.assertEqual(exact(Fraction(1, 3)), Fraction(1, 3))

    def test_decimals_as_printed(self):
        for text, decimals in {"73.98": 2, "72.70": 2, "66": 0, "66.5": 1, "1e3": 0, "5e-3": 3}.items():
            with self.subTest(text):
                self.assertEqual(decimals_of(text), decimals)


class Rules(TestCase):
    def test_task_mean_and_type_mean_differ(self):
        tasks = [task("r1", 0.5), task("r2", 0.6), task("r3", 0.7), task("s1", 0.8, type="sts")]
        self.assertEqual(average(tasks, "two-step"), Fraction(13, 20))
        self.assertEqual(average(tasks, "flat"), Fraction(13, 20))
        self.assertEqual(average(tasks, "by-type"), Fraction(7, 10))

    def test_languages_first_or_all_at_once(self):
        tasks = [task("one", 1), task("two", 0, 0)]
        self.assertEqual(average(tasks, "two-step"), Fraction(1, 2))
        self.assertEqual(average(tasks, "flat"), Fraction(1, 3))

    def test_order_does_not_matter(self):
        generator = random.Random(3)
        tasks = [task(str(number), *(generator.random() for _ in range(number % 4 + 1)), type=str(number % 3))
                 for number in range(20)]
        shuffled = generator.sample(tasks, len(tasks))
        for rule in RULES:
            self.assertEqual(average(tasks, rule), average(shuffled, rule))

    def test_no_task_no_average(self):
        self.assertEqual([average([], rule) for rule in RULES], [None] * 3)


class Agreement(TestCase):
    def verdict(self, published, recomputed, slack="0"):
        return agreement(exact(published), decimals_of(published), exact(recomputed), exact(slack))

    def test_a_half_may_go_either_way(self):
        self.assertEqual(self.verdict("74.06", "74.065"), "agrees")
        self.assertEqual(self.verdict("74.07", "74.065"), "agrees")
        self.assertEqual(self.verdict("74.08", "74.065"), "differs")

    def test_the_published_decimals_decide(self):
        self.assertEqual(self.verdict("66.5", "66.4611"), "agrees")
        self.assertEqual(self.verdict("66.50", "66.4611"), "differs")

    def test_listed_scores_are_rounded_themselves(self):
        self.assertEqual(self.verdict("85.29", "85.2967", "0.005"), "within rounding")
        self.assertEqual(self.verdict("85.29", "85.30", "0.005"), "within rounding")
        self.assertEqual(self.verdict("85.29", "85.3001", "0.005"), "differs")


class Omissions(TestCase):
    tasks = [task("a", 10), task("b", 20), task("c", 30), task("d", 80)]

    def test_the_smallest_set_and_only_sets_of_its_size(self):
        found = smallest_omissions(self.tasks, "two-step", exact(20), 2)
        self.assertEqual((found.size, found.sets, found.tried), (1, [(("d",), Fraction(20))], 4))

    def test_every_set_of_the_smallest_size_is_told(self):
        found = smallest_omissions(self.tasks, "two-step", exact(45), 0)  # 20 and 70, or 10 and 80
        self.assertEqual((found.size, found.tried), (2, 6))
        self.assertEqual([names for names, _ in found.sets], [("b", "c")])

    def test_nothing_found_says_how_far_the_search_went(self):
        found = smallest_omissions(self.tasks, "two-step", exact(99), 2, largest=2)
        self.assertEqual(found, (0, [], 4 + 6, 2))

    def test_one_task_is_always_kept(self):
        self.assertEqual(smallest_omissions(self.tasks[:2], "flat", exact(99), 2, largest=9).largest, 1)
        self.assertEqual(smallest_omissions(self.tasks[:1], "flat", exact(99), 2).largest, 0)

    def test_slack_widens_what_agrees(self):
        self.assertEqual(smallest_omissions(self.tasks, "two-step", exact("20.3"), 1, largest=1).sets, [])
        self.assertEqual(smallest_omissions(self.tasks, "two-step", exact("20.3"), 1, 1, exact("0.25")).sets,
                         [(("d",), Fraction(20))])

    def test_the_search_is_bounded(self):
        many = [task(str(number), number) for number in range(60)]
        found = smallest_omissions(many, "two-step", exact(1000), 2, largest=6)
        self.assertEqual(found.largest, 3)  # 60 + 1770 + 34220 sets; those of four would be 487,635 more
        self.assertLessEqual(found.tried, averages.SEARCH_LIMIT)

    def test_leaving_out_is_averaging_the_others(self):
        generator = random.Random(4)
        tasks = [task(f"t{number}", *(generator.randint(0, 9) for _ in range(number % 3 + 1)), type=str(number % 2))
                 for number in range(6)]
        for rule in RULES:
            for size in (1, 2):
                expected = [(tuple(left.name for left in out), average([each for each in tasks if each not in out], rule))
                            for out in combinations(tasks, size)]
                found = [(names, Fraction(total, count)) for names, total, count in averages_without(tasks, rule, size)]
                self.assertEqual(found, expected)
