"""Calling a search function that may do anything."""

import asyncio
import sys
import threading

from harness.searching import distinct, load_function, search_all, with_depth
from metrics import RecordError
from tests import TestCase


class Array:
    """A sequence of another library: it has no truth value."""

    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def __bool__(self):
        raise ValueError("ambiguous")


class Number:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def results(search, *questions, depth=3, timeout=None):
    return search_all(questions or ("q",), lambda: search, depth, timeout)


class Results(TestCase):
    def test_duplicates_count_once_and_the_rest_moves_up(self):
        self.assertEqual(distinct(["x", "x", "x", "a"], 3), (("x", "a"), ("x",)))
        self.assertEqual(distinct([1, "1", 2], 3), (("1", "2"), ("1",)))

    def test_reads_no_further_than_the_depth(self):
        def endless():
            number = 0
            while True:
                yield number
                number += 1

        self.assertEqual(distinct(endless(), 3), (("0", "1", "2"), ()))

    def test_any_sequence_of_ids(self):
        for value in (["a", 2], ("a", 2), iter(["a", 2]), (name for name in ("a", 2)), Array(["a", Number(2)])):
            self.assertEqual(results(lambda question, value=value: value)[0], (("a", "2"), (), None))
        self.assertEqual(results(lambda question: [])[0], ((), (), None))

    def test_what_is_no_list_of_ids_is_an_error(self):
        for value, words in ((None, "got None"), ("doc-1", "got the text"), (b"x", "got bytes"), ({"a": 1}, "got dict"), ({"a"}, "got set"),
                             (7, "got int"), ([("a", 0.5)], "rank 1"), (["a", None], "rank 2"), ([1.0], "rank 1"), ([True], "rank 1"),
                             ([{"id": "a"}], "rank 1"), ([""], "rank 1"), (["a\n"], "rank 1"), (object(), "got object")):
            found = results(lambda question, value=value: value)[0]
            self.assertEqual(found.ids, ())
            self.assertIn(words, found.error)

    def test_a_coroutine_is_named(self):
        async def search(question):
            return ["a"]

        self.assertIn("asyncio.run", results(search)[0].error)
        self.assertEqual(results(lambda question: asyncio.run(search(question)))[0].ids, ("a",))

    def test_a_search_that_raises_or_exits_fails_for_that_question_only(self):
        def search(question):
            if question == "bad":
                raise KeyError("no\nsuch")
            if question == "exit":
                sys.exit("bye")
            if question == "deep":
                return search(question)
            return [question]

        for timeout in (None, 30):
            found = results(search, "a", "bad", "exit", "deep", "b", timeout=timeout)
            self.assertEqual([row.ids for row in found], [("a",), (), (), (), ("b",)])
            self.assertEqual(found[1].error, "raised KeyError: 'no\\nsuch'")
            self.assertEqual(found[2].error, "raised SystemExit: bye")
            self.assertIn("raised RecursionError", found[3].error)

    def test_an_exception_without_a_message(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError

        def search(question):
            raise Mute

        self.assertEqual(results(search)[0].error, "raised Mute: (no message)")

    def test_ctrl_c_is_not_swallowed(self):
        def search(question):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            results(search)


class Timeouts(TestCase):
    def test_a_search_that_hangs_is_left_behind(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def search(question):
            if question == "slow":
                release.wait()
            return [question]

        found = results(search, "a", "slow", "b", timeout=0.2)
        self.assertEqual([row.ids for row in found], [("a",), (), ("b",)])
        self.assertEqual(found[1].error, "timed out after 0.2 s")

    def test_after_three_in_a_row_the_rest_is_not_searched(self):
        release = threading.Event()
        self.addCleanup(release.set)
        found = results(lambda question: release.wait(), *"abcde", timeout=0.05)
        self.assertEqual([row.error[:9] for row in found], ["timed out"] * 3 + ["not searc"] * 2)

    def test_the_search_is_made_in_the_thread_that_calls_it(self):
        threads = []

        def make():
            threads.append(threading.current_thread())
            return lambda question: threads.append(threading.current_thread()) or ["a"]

        search_all(["q"], make, 3, 5)
        self.assertIs(threads[0], threads[1])

    def test_a_search_that_cannot_be_made(self):
        def make():
            raise RecordError("no such search")

        with self.assertRaisesRegex(RecordError, "no such search"):
            search_all(["q"], make, 3, 5)


    def test_limits(self):
        for timeout in (0, -1, float("nan"), float("inf")):
            with self.subTest(timeout), self.assertRaisesRegex(RecordError, "timeout: expected"):
                results(lambda question: ["a"], timeout=timeout)


class Functions(TestCase):
    def test_a_parameter_named_k_receives_the_depth(self):
        self.assertEqual(with_depth(lambda question, k: [k], 10)("q"), [10])
        self.assertEqual(with_depth(lambda question, k, /: [k], 10)("q"), [10])
        self.assertEqual(with_depth(lambda question: [1], 10)("q"), [1])
        self.assertEqual(with_depth("abc".count, 10)("a"), 1)

    def test_loading(self):
        self.assertIs(load_function("os:path.join"), __import__("os").path.join)
        for name, words in (("os", "expected MODULE:FUNCTION"), ("os:", "expected MODULE:FUNCTION"), ("no_such_module:f", "ModuleNotFoundError"),
                            ("os:nothing", "AttributeError"), ("os:sep", "expected a function")):
            with self.subTest(name), self.assertRaisesRegex(RecordError, words):
                load_function(name)
