"""Floors: gate, ratchet, JUnit XML, and the tests that a user derives from them."""

import io
import json
import unittest
from decimal import Decimal
from xml.etree import ElementTree

from harness.gate import Measured, Verdict, check_same, exact, floor_tests, gate, gate_text, junit, ratchet, read_floors
from harness.golden import evaluate, load_golden
from metrics import RecordError
from tests import DATA
from tests.in_process import TestCase

GOLDEN, DOCS = DATA / "golden" / "golden.jsonl", DATA / "golden" / "docs.jsonl"
QUESTIONS = {"causal": 4, "numeric": 6}


def run(hit=0.8, causal=0.75, numeric=0.9, **changes):
    """A Measured."""
    values = {"overall": {"hit": hit, "mrr": 0.5, "ndcg": 0.7}, "causal": {"hit": causal, "mrr": 0.5}, "numeric": {"hit": numeric, "mrr": 0.5}}
    return Measured("abc", 5, QUESTIONS, values)._replace(**changes)


def entry(time="2026-01-01T00:00:00Z", errors=0, **values):
    """An entry of the log."""
    measured = run(**values)
    return {"time": time, "golden_sha256": "abc", "k": 5, "questions": QUESTIONS, "errors": errors, "metrics": measured.values}


class Case(TestCase):
    def floors(self, text=None, **floors):
        value = {"golden_sha256": "abc", "k": 5, "questions": QUESTIONS, **floors}
        return self.write("floors.json", text or json.dumps(value))


class Gate(Case):
    def test_overall_each_type_and_one_type(self):
        path = self.floors(overall={"hit": 0.8}, each_type={"hit": 0.7}, types={"numeric": {"hit": 0.95, "mrr": 0.5}})
        found = [(verdict.group, verdict.metric, verdict.holds) for verdict in gate(path, run())]
        self.assertEqual(found, [("overall", "hit", True), ("causal", "hit", True), ("numeric", "hit", False), ("numeric", "mrr", True)])

    def test_the_measured_value_is_compared_and_not_the_printed_one(self):
        verdict = Verdict("overall", "hit", exact(0.25), exact(0.24963))
        self.assertEqual((f"{verdict.value:.2f}", verdict.holds), ("0.25", False))
        self.assertEqual(verdict.message, "hit dropped to 0.2496 (floor 0.2500)")

    def test_080_passes_080(self):
        for value in (0.8, 4 / 5, 0.1 * 8, 1 - 0.2, 0.7999999999999999, sum([0.1] * 8)):
            self.assertTrue(Verdict("overall", "hit", exact(0.80), exact(value)).holds, value)
        self.assertFalse(Verdict("overall", "hit", exact(0.80), exact(0.79999999)).holds)

    def test_messages(self):
        self.assertEqual(Verdict("overall", "hit", exact(0.81), exact(0.7812)).message, "hit dropped to 0.781 (floor 0.810)")
        self.assertEqual(Verdict("numeric", "hit", exact(0.8), exact(1)).message, "numeric: hit holds at 1.000 (floor 0.800)")
        self.assertEqual(Verdict("numeric", "precision", exact(0.8), None).message, "numeric: precision has no value (floor 0.800)")
        self.assertEqual(Verdict("overall", "hit", exact(0.5), exact(0.5 - 1e-12)).message,
                         "hit dropped to 0.499999999999 (floor 0.500000000000)")
        self.assertTrue(gate_text([Verdict("overall", "hit", exact(0.1), exact(0.2)), Verdict("overall", "mrr", exact(0.3), exact(0.2))])
                        .startswith("FAIL mrr"))

    def test_refuses_floors_that_were_set_on_something_else(self):
        path = self.floors(overall={"hit": 0.8})
        for changes, words in (({"golden_sha256": "other"}, "another golden set"), ({"k": 3}, "another k"),
                               ({"questions": {"causal": 4, "numeric": 7}}, "another mix of types")):
            self.assertNotIn("a string", self.refusal(path, run(**changes)))
            with self.subTest(words), self.assertRaisesRegex(RecordError, words):
                gate(path, run(**changes))
        with self.assertRaisesRegex(RecordError, "no question of type"):
            check_same(read_floors(self.floors(types={"legal": {"hit": 0.5}})), run(), "floors.json")

    def refusal(self, path, measured):
        with self.assertRaises(RecordError) as caught:
            gate(path, measured)
        return str(caught.exception)

    def test_floors_on_another_basis_of_relevance(self):
        path = self.floors(overall={"hit": 0.8}, relevance="spans")
        self.assertEqual(len(gate(path, run(relevance="spans"))), 1)
        self.assertIn("another basis of relevance", self.refusal(path, run(relevance="chunk ids")))
        self.assertEqual(len(gate(self.floors(overall={"hit": 0.8}), run(relevance="chunk ids"))), 1)  # it may be left out

    def test_bad_floors(self):
        for text, words in (("[]", "expected an object"), ('{"overall": {"hit": 0.5}}', "golden_sha256: missing.*which golden check GOLDEN.jsonl prints"),
                            ('{"golden_sha256": "abc", "k": 5, "questions": {}}', "no floors")):
            with self.subTest(text), self.assertRaisesRegex(RecordError, words):
                read_floors(self.floors(text))
        for floors, words in (({"overall": {"hit": 1.5}}, "overall.hit: expected a metric"), ({"overall": {"hit": True}}, "overall.hit"),
                              ({"overall": {"hitt": 0.5}}, "overall.hitt"), ({"each_type": []}, "each_type: expected an object"),
                              ({"types": {"causal": {"hit": "0.5"}}}, "types.causal.hit"), ({"types": 3}, "types: expected"),
                              ({"overal": {"hit": 0.5}}, "overal: unknown key")):
            with self.subTest(floors), self.assertRaisesRegex(RecordError, words):
                read_floors(self.floors(**floors))

    def test_junit_is_xml_with_one_test_per_floor(self):
        results = [Verdict("overall", "hit", exact(0.5), exact(0.4)), Verdict('a<b>&"c\x07', "mrr", exact(0.5), exact(0.6))]
        suite = ElementTree.fromstring(junit(results).encode())
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "1"))
        self.assertEqual([case.get("classname") for case in suite], ["golden.overall", 'golden.a<b>&"c\ufffd'])
        self.assertEqual(suite[0][0].get("message"), "hit dropped to 0.400 (floor 0.500)")
        self.assertEqual(len(suite[1]), 0)


class Ratchet(Case):
    def held(self):
        return json.loads((self.folder / "floors.json").read_text())

    def test_raises_to_the_last_value_minus_the_slack(self):
        path = self.floors(overall={"hit": 0.5}, types={"numeric": {"hit": 0.1}})
        changes, why_not = ratchet(path, [entry(hit=0.8), entry(hit=0.79), entry(hit=0.81, numeric=0.9)])
        self.assertIsNone(why_not)
        self.assertEqual(changes, [("overall", "hit", exact(0.5), Decimal("0.760000")), ("numeric", "hit", exact(0.1), Decimal("0.733333"))])
        self.assertEqual((self.held()["overall"], self.held()["types"]), ({"hit": 0.76}, {"numeric": {"hit": 0.733333}}))  # a type of 6 may lose one question

    def test_never_lowers_a_floor(self):
        path = self.floors(overall={"hit": 0.79})
        before = path.read_bytes()
        self.assertEqual(ratchet(path, [entry()] * 3), ([], None))
        self.assertEqual(path.read_bytes(), before)

    def test_raising_twice_changes_nothing_more(self):
        path = self.floors(overall={"hit": 0.1, "ndcg": 0.1})
        self.assertEqual(len(ratchet(path, [entry(hit=1 / 3)] * 3)[0]), 2)
        self.assertEqual(ratchet(path, [entry(hit=1 / 3)] * 3), ([], None))
        self.assertLessEqual(exact(self.held()["overall"]["hit"]), exact(1 / 3) - Decimal("0.05"))

    def test_a_small_type_may_lose_one_question(self):
        path = self.floors(questions={"causal": 8, "numeric": 100}, types={"causal": {"hit": 0.1}, "numeric": {"hit": 0.1}})
        runs = [{**entry(causal=causal), "questions": {"causal": 8, "numeric": 100}} for causal in (0.875, 0.75, 0.875)]
        self.assertIsNone(ratchet(path, runs)[1])
        self.assertEqual(self.held()["types"], {"causal": {"hit": 0.75}, "numeric": {"hit": 0.85}})
        runs[1]["metrics"]["causal"]["hit"] = 0.625
        self.assertIn("causal hit went from 0.625 to 0.875", ratchet(path, runs)[1])
        thirds = [{**entry(causal=causal), "questions": {"causal": 3, "numeric": 100}} for causal in (1 / 3, 2 / 3, 2 / 3)]
        path = self.floors(questions={"causal": 3, "numeric": 100}, types={"causal": {"hit": 0.1}})
        self.assertEqual(ratchet(path, thirds)[1], None)
        self.assertTrue(Verdict("causal", "hit", exact(self.held()["types"]["causal"]["hit"]), exact(1 / 3)).holds)

    def test_waits_for_stable_runs(self):
        path = self.floors(overall={"hit": 0.5})
        self.assertIn("2 of 3", ratchet(path, [entry()] * 2)[1])
        self.assertIn("hit went from 0.700 to 0.800", ratchet(path, [entry(hit=0.7), entry(), entry()])[1])
        self.assertIn("2 failed searches", ratchet(path, [entry(), entry(errors=2), entry()])[1])
        self.assertEqual(self.held()["overall"], {"hit": 0.5})
        self.assertEqual(len(ratchet(path, [entry(hit=0.1), entry(), entry(), entry()])[0]), 1)  # the first is long ago

    def test_a_fall_of_exactly_the_slack_is_stable(self):
        self.assertIsNone(ratchet(self.floors(overall={"hit": 0.1}), [entry(hit=0.85), entry(hit=0.8), entry(hit=0.85)])[1])

    def test_makes_a_file_that_is_not_there(self):
        path = self.folder / "floors.json"
        self.assertIn("1 of 3", ratchet(path, [entry()])[1])
        self.assertFalse(path.exists())
        self.assertIsNone(ratchet(path, [entry()] * 3)[1])
        self.assertEqual(self.held(), {"golden_sha256": "abc", "k": 5, "questions": QUESTIONS, "overall": {"hit": 0.75, "mrr": 0.45, "ndcg": 0.65},
                                       "each_type": {}, "types": {"causal": {"hit": 0.5}, "numeric": {"hit": 0.733333}}})
        self.assertTrue(all(verdict.holds for verdict in gate(path, run())))

    def test_refuses_floors_of_another_golden_set(self):
        with self.assertRaisesRegex(RecordError, "another golden set"):
            ratchet(self.floors(golden_sha256="other", overall={"hit": 0.5}), [entry()] * 3)


class UserTests(Case):
    """floor_tests in a user's test file."""

    def outcome(self, hit):
        golden = load_golden(GOLDEN)
        kinds = {kind: sum(item.answerable and item.type == kind for item in golden.items)
                 for kind in sorted({item.type for item in golden.items if item.answerable})}
        path = self.floors(golden_sha256=golden.sha256, questions=kinds, overall={"hit": hit}, types={"numeric": {"mrr": 0.3}})
        calls = []

        def measure():
            calls.append(1)
            return evaluate(golden, lambda question: ["tomatoes-2"], k=5)

        suite = unittest.defaultTestLoader.loadTestsFromTestCase(floor_tests(path, measure))
        result = unittest.TextTestRunner(io.StringIO()).run(suite)
        self.assertEqual((result.testsRun, len(calls)), (2, 1))
        return result

    def test_one_test_per_floor(self):
        self.assertTrue(self.outcome(0.2).wasSuccessful())

    def test_spans_with_the_chunks_of_the_index(self):
        rows = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
        path = self.write("spans.jsonl", "".join(json.dumps({**row, "relevant_chunks": None}) + "\n" for row in rows))
        kinds = {"causal": 2, "factual": 1, "negative": 2, "numeric": 3, "procedural": 2}
        floors = self.floors(golden_sha256=load_golden(path).sha256, questions=kinds, overall={"hit": 0.2}, relevance="spans")
        tests = floor_tests(floors, lambda: evaluate(path, lambda question: ["tomatoes-2"], k=5, chunks=DOCS.parent / "chunks.jsonl"))
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(tests).run(result)
        self.assertEqual((result.testsRun, result.failures, result.errors), (1, [], []))

    def broken(self, measure):
        """The last line of every failed test where measuring fails."""
        path = self.floors(golden_sha256=load_golden(GOLDEN).sha256, overall={"hit": 0.2, "mrr": 0.1})
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(floor_tests(path, measure)).run(result)
        self.assertEqual((result.testsRun, len(result.failures), len(result.errors)), (2, 2, 0))
        return [text.splitlines()[-1] for _, text in result.failures]

    def test_failed_searches_are_what_every_test_fails_with(self):
        def search(question):
            raise ConnectionError("refused")

        words = "AssertionError: 10 of 10 searches failed, more than max-errors (0) allows; the first: q1: raised ConnectionError: refused"
        self.assertEqual(self.broken(lambda: evaluate(GOLDEN, search)), [words] * 2)
        for message in self.broken(lambda: evaluate(GOLDEN, lambda question: ["ghost"], chunks=DOCS.parent / "chunks.jsonl")):
            self.assertIn("1 of 1 returned ids are in no chunk", message)

    def test_the_message_of_a_failed_one(self):
        failures = self.outcome(0.81).failures
        self.assertEqual(len(failures), 1)
        self.assertIn("test_overall_hit", failures[0][0].id())
        self.assertEqual(failures[0][1].splitlines()[-1], "AssertionError: hit dropped to 0.200 (floor 0.810)")


class Command(Case):
    def test_run_gate_and_ratchet(self):
        for _ in range(3):
            result = self.run_command("harness", "golden", "run", GOLDEN, "--docs", DOCS, "--split", "paragraph", "--log", "--output", "out")
            self.assertEqual(result.returncode, 0, result.stderr)
        made = self.run_command("harness", "golden", "ratchet", "floors.json")
        self.assertIn("raised overall hit: 0.000000 -> 0.", made.stdout)
        held = self.run_command("harness", "golden", "gate", "floors.json", "out", "--junit", "junit.xml")
        self.assertEqual((held.returncode, held.stderr), (0, ""))
        self.assertEqual(ElementTree.parse(self.folder / "junit.xml").getroot().get("failures"), "0")
        swapped = self.run_command("harness", "golden", "gate", "out/records/golden.json", "floors.json", "--junit", "junit.xml")
        self.assertEqual(swapped.returncode, 2)
        self.assertIn("the floors come first: golden gate FLOORS.json RECORD", swapped.stderr)
        self.assertIn("the floors come first", self.run_command("harness", "golden", "gate", "out", "floors.json").stderr)
        self.assertEqual(ElementTree.parse(self.folder / "junit.xml").getroot().get("errors"), "1")
        floors = self.held_with_hit_one()
        worse = self.run_command("harness", "golden", "run", GOLDEN, "--docs", DOCS, "--size", 20, "--floors", "floors.json")
        self.assertEqual(worse.returncode, 1)
        self.assertIn("FAIL hit dropped to", worse.stdout)
        other = self.run_command("harness", "golden", "run", GOLDEN, "--docs", DOCS, "--k", 3, "--floors", "floors.json")
        self.assertEqual((other.returncode, other.stdout), (2, ""))
        self.assertIn("another k", other.stderr)
        self.assertEqual(json.loads((self.folder / "floors.json").read_text()), floors)

    def held_with_hit_one(self):
        floors = json.loads((self.folder / "floors.json").read_text())
        floors["overall"]["hit"] = 1
        self.write("floors.json", json.dumps(floors))
        return floors

    def test_a_void_run_is_not_gated(self):
        items = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
        ids = [item["id"] for item in items if item.get("answerable", True)][1:]  # the first has no result
        self.write("results.jsonl", "".join(json.dumps({"id": name, "retrieved": ["bees-1"]}) + "\n" for name in ids))
        run = ("harness", "golden", "run", GOLDEN, "--results", "results.jsonl", "--output", "out")
        self.assertEqual(self.run_command(*run).returncode, 2)
        floors = self.floors(overall={"hit": 0})
        written = json.loads(floors.read_text())
        identity = json.loads((self.folder / "out/records/golden.json").read_text())["retrieval"]["models"]["search"]
        kinds = json.loads((self.folder / "out/report.json").read_text())["golden"]["types"]
        floors.write_text(json.dumps({**written, "golden_sha256": identity["golden_sha256"], "k": 5, "questions": kinds}))
        self.assertEqual(identity["failed_searches"], 1)
        void = self.run_command("harness", "golden", "gate", floors, "out", "--junit", "junit.xml")
        self.assertEqual((void.returncode, void.stdout), (2, ""))
        self.assertIn("the record of a void run: 1 of its searches failed, more than max-errors (0) allowed", void.stderr)
        self.assertEqual(ElementTree.parse(self.folder / "junit.xml").getroot().get("errors"), "1")
        self.assertEqual(self.run_command(*run, "--max-errors", 1).returncode, 0)
        allowed = self.run_command("harness", "golden", "gate", floors, "out")
        self.assertEqual((allowed.returncode, allowed.stderr), (0, ""))
        record = self.folder / "out/records/golden.json"
        record.write_text(record.read_text().replace('"failed_searches": 1', '"failed_searches": "1"'))
        self.assertIn("failed_searches: expected a number", self.run_command("harness", "golden", "gate", floors, "out").stderr)

    def test_a_record_that_is_none_of_a_run(self):
        path = self.write("other.json", '{"models": {"a": {}}, "cutoffs": [1], "queries": [{"id": "q", "reference_grade_counts": {}, "rankings": {"a": [0]}}]}')
        result = self.run_command("harness", "golden", "gate", self.floors(overall={"hit": 0.5}), path)
        self.assertEqual(result.returncode, 2)
        self.assertIn("not the record of a golden run", result.stderr)
