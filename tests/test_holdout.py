"""Tuning and holdout: the split, the ledger, the gap."""

import json
import random
from math import sqrt

from harness.golden_items import load_golden
from harness.holdout import gap, note_use, split_items, welch
from metrics import RecordError, t_95
from tests import DATA
from tests.in_process import TestCase

GOLDEN, DOCS = DATA / "golden" / "golden.jsonl", DATA / "golden" / "docs.jsonl"


def line(number, kind="factual", **more):
    return json.dumps({"id": f"q{number}", "question": "Why?", "type": kind, "relevant_chunks": ["tomatoes-2"], **more}) + "\n"


class Case(TestCase):
    def items(self, lines):
        return load_golden(self.write("golden.jsonl", "".join(lines))).items


class Split(Case):
    def test_each_type_has_its_share_give_or_take_less_than_one(self):
        kinds = {"factual": 30, "numeric": 8, "negative": 3}
        items = self.items([line(f"{kind}{number}", kind) for kind, count in kinds.items() for number in range(count)])
        for share in (0.1, 0.3, 0.5):
            parts = split_items(items, share)
            for kind, count in kinds.items():
                held = sum(parts[item.id] == "holdout" for item in items if item.type == kind)
                self.assertLess(abs(held - share * count), 1, (kind, share))

    def test_added_items_never_move_an_earlier_one(self):
        lines = [line(number, ("factual", "numeric")[number % 3 == 0]) for number in range(60)]
        whole = split_items(self.items(lines), 0.3)
        for count in (1, 7, 30, 59):
            part = split_items(self.items(lines[:count]), 0.3)
            self.assertEqual(part, {name: whole[name] for name in part})
        shuffled = self.items(random.Random(1).sample(lines, 60))
        first = {name: whole[name] for name in list(whole)[:40]}
        again = split_items(shuffled, 0.3, first)
        self.assertEqual({name: again[name] for name in first}, first)

    def test_an_item_that_names_its_part_stays_there(self):
        items = self.items([line(number, split="holdout") for number in range(5)] + [line(number) for number in range(5, 10)])
        parts = split_items(items, 0.3)
        self.assertEqual([parts[f"q{number}"] for number in range(10)], ["holdout"] * 5 + ["tuning"] * 5)

    def test_command(self):
        golden = self.write("golden.jsonl", "".join(line(number) for number in range(20)))
        result = self.run_command("harness", "golden", "split", "golden.jsonl")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("factual: 14 tuning, 6 holdout", result.stdout)
        before = (self.folder / "holdout.jsonl").read_text()
        self.write("golden.jsonl", "".join(line(number) for number in range(-5, 0)) + golden.read_text())  # added at the front
        result = self.run_command("harness", "golden", "split", "golden.jsonl")
        self.assertIn("20 where they were", result.stdout)
        after = (self.folder / "holdout.jsonl").read_text()
        self.assertLessEqual(set(before.splitlines()), set(after.splitlines()))
        self.assertEqual(json.loads(after.splitlines()[0])["split"], "holdout")
        self.assertEqual(self.run_command("harness", "golden", "split", "golden.jsonl", "--share", 1).returncode, 2)
        other = self.write("other.jsonl", line("other"))
        refused = self.run_command("harness", "golden", "split", other)
        self.assertIn("hold questions that are not in", refused.stderr)
        self.assertEqual((self.folder / "holdout.jsonl").read_text(), after)
        one = self.write("one/golden.jsonl", line(1))
        result = self.run_command("harness", "golden", "split", one, "--share", 0.01, "--output", "one")
        self.assertIn("no question in this part", result.stderr)


class Ledger(Case):
    def test_every_use_is_kept(self):
        path = self.folder / "ledger.jsonl"
        self.assertEqual([note_use(path, {"time": str(number)}) for number in range(3)], [1, 2, 3])
        self.assertEqual([json.loads(entry)["time"] for entry in path.read_text().splitlines()], ["0", "1", "2"])

    def test_a_ledger_that_is_not_sound_stops_the_run(self):
        path = self.write("ledger.jsonl", '{"time": "0"}\n{"ti\n')
        with self.assertRaisesRegex(RecordError, "ledger.jsonl: line 2"):
            note_use(path, {"time": "1"})

    def test_a_run_on_holdout_questions_is_entered_and_one_on_tuning_is_not(self):
        text = "".join(line(number, split=("tuning", "holdout")[number % 2]) for number in range(30))
        golden = self.write("golden.jsonl", text)
        ledger = self.folder / "eval_logs" / "holdout-ledger.jsonl"
        chunks = DATA / "golden" / "chunks.jsonl"
        self.assertEqual(self.run_command("harness", "golden", "run", golden, "--chunks", chunks, "--part", "tuning").returncode, 0)
        self.assertFalse(ledger.exists())
        both = self.run_command("harness", "golden", "run", golden, "--chunks", chunks, "--format", "json")
        self.assertEqual(both.returncode, 0, both.stderr)
        self.assertEqual(json.loads(both.stdout)["holdout_uses"], 1)
        self.assertEqual(json.loads(ledger.read_text())["holdout_questions"], 15)
        self.run_command("harness", "golden", "run", golden, "--chunks", chunks, "--part", "holdout")
        self.assertEqual(len(ledger.read_text().splitlines()), 2)
        self.run_command("harness", "golden", "run", golden, "--chunks", chunks, "--log", "logs")
        self.assertEqual(len((self.folder / "logs" / "holdout-ledger.jsonl").read_text().splitlines()), 1)
        for name in ("tuning", "holdout"):
            self.write(f"{name}.jsonl", "".join(row for row in text.splitlines(True) if f'"{name}"' in row))
        two = self.run_command("harness", "golden", "run", "tuning.jsonl", "holdout.jsonl", "--chunks", chunks)
        self.assertIn("Tuning and holdout", two.stdout)


class Gap(TestCase):
    def rows(self, tuning, holdout):
        return [{"part": "tuning", "hit": value} for value in tuning] + [{"part": "holdout", "hit": value} for value in holdout]

    def test_welch_by_hand(self):
        difference, low, high = welch([1, 1, 0, 1], [0, 1, 0, 0])
        half = t_95(6) * sqrt(0.25 / 4 + 0.25 / 4)
        self.assertEqual(difference, 0.5)
        self.assertAlmostEqual(low, 0.5 - half, places=12)
        self.assertAlmostEqual(high, 0.5 + half, places=12)
        self.assertEqual(welch([1], [0, 1]), (None, None, None))

    def test_warns_of_a_gap_that_the_interval_supports(self):
        found = gap(self.rows([1] * 18 + [0] * 2, [1] * 6 + [0] * 14), "hit")
        self.assertTrue(found["warn"])
        self.assertAlmostEqual(found["difference"], 0.6)
        self.assertGreater(found["low"], 0)

    def test_says_when_there_are_too_few_to_tell(self):
        for rows in (self.rows([1] * 9, [0] * 9), self.rows([1] * 10 + [0] * 5, [1] * 5 + [0] * 6), self.rows([1], [0])):
            found = gap(rows, "hit")
            self.assertFalse(found["warn"])
            self.assertIn("too few to tell", found["verdict"])

    def test_no_gap(self):
        self.assertIn("no gap above", gap(self.rows([1] * 20, [1] * 20), "hit")["verdict"])
        self.assertIsNone(gap(self.rows([1, 0], []), "hit"))
