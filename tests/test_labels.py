"""Labels of two judges become qrels; an extended reference keeps every grade."""

import contextlib
import io
import json
import unittest

from harness import labels
from harness.labels import Decision, decide, read_labels
from harness.labels_extend import compare_references
from metrics import RecordError, run_command
from tests import TestCase

SCALE = (0, 1, 2, 3)


def label(passage, grade, query="q1", **more):
    """One label; grade None is an abstention."""
    said = {"abstain": True} if grade is None else {"grade": grade}
    return {"query": query, "passage": passage, **said, **more}


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


class LabelCase(TestCase):
    def run_labels(self, *arguments):
        """(status, stdout, stderr) of the command in this process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run_command(lambda: labels.main([str(argument) for argument in arguments]))
        return status, out.getvalue(), err.getvalue()

    def make(self, first, second, third=None, *options):
        """Run the command on labels; return (status, stdout, stderr)."""
        arguments = [self.write("a.jsonl", lines(*first)), self.write("b.jsonl", lines(*second))]
        if third is not None:
            arguments += ["--adjudicator", self.write("c.jsonl", lines(*third))]
        return self.run_labels(*arguments, "--output", self.folder / "qrels.txt", *options)

    def text(self, name):
        return (self.folder / name).read_text(encoding="utf-8")


FIRST = [label("p1", 3), label("p2", 0), label("p3", 2), label("p4", None), label("p5", 1, "q2"), label("p6", 2, "q2")]
SECOND = [label("p6", 0, "q2"), label("p1", 3), label("p2", 1), label("p3", None), label("p4", None), label("p5", 1, "q2")]
THIRD = [label("p2", 2), label("p6", None, "q2")]


class Making(LabelCase):
    def test_all_outcomes(self):
        status, out, err = self.make(FIRST, SECOND, THIRD)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(self.text("qrels.txt"), "q1 0 p1 3\nq1 0 p2 2\nq2 0 p5 1\n")
        self.assertEqual(self.text("qrels-excluded.txt"), "q1 p3 abstained\nq1 p4 abstained\nq2 p6 abstained\n")
        statement = json.loads(self.text("qrels-statement.json"))
        counts = {
            name: statement[name] for name in ("pairs", "queries", "agreed", "adjudicated", "abstained", "open", "both_graded")
        }
        self.assertEqual(
            counts, {"pairs": 6, "queries": 2, "agreed": 2, "adjudicated": 1, "abstained": 3, "open": 0, "both_graded": 4}
        )
        self.assertEqual(statement["abstained_by"], {"adjudicator": 1, "both": 1, "second": 1})
        self.assertEqual(statement["grades"], {"0": 0, "1": 1, "2": 1, "3": 1})
        # 3 0 1 2 against 3 1 1 0: squared distances 0 1 0 4; each of 3 0 1 2 against each of 3 1 1 0: 9+4+4+9... summed by hand:
        # 3: 0 4 4 9 = 17, 0: 9 1 1 0 = 11, 1: 4 0 0 1 = 5, 2: 1 1 1 4 = 7; expected 40 / 16, observed 5 / 4; kappa 1/2
        self.assertEqual(statement["kappa"]["quadratic"]["value"], 0.5)
        self.assertEqual([file["role"] for file in statement["files"]], ["first judge", "second judge", "adjudicator"])
        self.assertIn("6 pairs of 2 queries: 2 agreed, 1 adjudicated, 3 abstained, 0 still open", out)
        self.assertIn("kappa, quadratic: 0.500", out)

    def test_open_pairs_stop_the_command(self):
        status, out, err = self.make(FIRST, SECOND, None, "--open-pairs", self.folder / "open.jsonl")
        self.assertEqual((status, out), (2, ""))
        self.assertIn('2 of 6 pairs are still open, the first: query "q1", passage "p2": needs the adjudicator', err)
        self.assertFalse((self.folder / "qrels.txt").exists())
        # the adjudicator sees neither judge's grade
        self.assertEqual(self.text("open.jsonl"), '{"query": "q1", "passage": "p2"}\n{"query": "q2", "passage": "p6"}\n')

    def test_open_pairs_alone_are_only_listed(self):
        a, b = self.write("a.jsonl", lines(*FIRST)), self.write("b.jsonl", lines(*SECOND, label("p9", 1)))
        status, out, err = self.run_labels(a, b, "--open-pairs", self.folder / "open.jsonl")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("open.jsonl: 2 pairs for the adjudicator\n", out)
        self.assertIn("still open, but not the adjudicator's to decide: only the second judge labelled it: 1\n", out)
        self.assertEqual(self.text("open.jsonl"), '{"query": "q1", "passage": "p2"}\n{"query": "q2", "passage": "p6"}\n')
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.jsonl", "b.jsonl", "open.jsonl"])
        c = self.write("c.jsonl", lines(*THIRD))
        status, out, _ = self.run_labels(a, b, "--adjudicator", c, "--open-pairs", self.folder / "open.jsonl")
        self.assertEqual((status, self.text("open.jsonl")), (0, ""))

    def test_the_advice_is_not_the_option_just_used(self):
        first, second = FIRST, SECOND + [label("p9", 1)]
        _, _, err = self.make(first, second)
        self.assertIn("--open-pairs FILE lists 2 for the adjudicator, whose labels --adjudicator reads; 1 need the label of the judge "
                      "who gave none; --allow-open leaves them out", err)
        _, _, err = self.make(first, second, None, "--open-pairs", self.folder / "open.jsonl")
        self.assertIn("open.jsonl lists 2 for the adjudicator", err)
        self.assertNotIn("--open-pairs", err)
        _, _, err = self.make(first, second, THIRD)
        self.assertNotIn("for the adjudicator,", err)

    def test_there_must_be_something_to_write(self):
        a, b = self.write("a.jsonl", lines(*FIRST)), self.write("b.jsonl", lines(*SECOND))
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as err:
            labels.main([str(a), str(b)])
        self.assertIn("expected --output QRELS, or --open-pairs FILE.jsonl", err.getvalue())
        for taken in ("q.txt", "q-excluded.txt", "../" + self.folder.name + "/q-statement.json"):
            status, _, said = self.run_labels(a, b, "--output", self.folder / "q.txt", "--open-pairs", self.folder / taken)
            self.assertEqual(status, 2)
            self.assertIn("is written by --output", said)

    def test_open_pairs_can_be_left_out_as_unjudged(self):
        status, out, _ = self.make(FIRST, SECOND + [label("p9", 1)], THIRD[:1], "--allow-open")
        self.assertEqual(status, 0)
        self.assertIn("q2 p6 unjudged\nq1 p9 unjudged\n", self.text("qrels-excluded.txt"))
        self.assertEqual(json.loads(self.text("qrels-statement.json"))["open_because"],
                         {"needs the adjudicator": 1, "only the second judge labelled it": 1})
        self.assertNotIn("p6", self.text("qrels.txt"))

    def test_an_abstention_is_not_overruled(self):
        decisions = decide({("q", "p"): None}, {("q", "p"): 2}, {("q", "p"): 2})
        self.assertEqual(decisions, {("q", "p"): Decision("abstained", None, "first")})

    def test_the_adjudicator_is_used_only_where_the_judges_differ(self):
        status, out, _ = self.make(
            [label("p1", 3), label("p2", 1)], [label("p1", 3), label("p2", 2)], [label("p1", 0), label("p2", 3)]
        )
        self.assertEqual(self.text("qrels.txt"), "q1 0 p1 3\nq1 0 p2 3\n")
        self.assertIn("labels of the adjudicator that were not needed, and not used: 1", out)

    def test_an_adjudicator_of_other_pairs(self):
        status, _, err = self.make(FIRST, SECOND, THIRD + [label("p77", 1)])
        self.assertEqual(status, 2)
        self.assertIn('c.jsonl: query "q1", passage "p77": neither judge labelled this pair', err)

    def test_one_judge_twice(self):
        status, _, err = self.make(FIRST, FIRST)
        self.assertEqual(status, 2)
        self.assertIn("the same labels as", err)

    def test_labels_are_not_written_over(self):
        a, b = self.write("a.jsonl", lines(*FIRST)), self.write("b.jsonl", lines(*SECOND))
        for options in (["--output", a], ["--output", self.folder / "q.txt", "--open-pairs", b]):
            self.assertEqual(self.run_labels(a, b, "--allow-open", *options)[0], 2)
        self.assertEqual((self.text("a.jsonl"), self.text("b.jsonl")), (lines(*FIRST), lines(*SECOND)))

    def test_constant_judges_have_no_kappa(self):
        status, out, _ = self.make([label("p1", 1), label("p2", 1)], [label("p2", 1), label("p1", 1)])
        self.assertEqual((status, json.loads(self.text("qrels-statement.json"))["kappa"]["linear"]["value"]), (0, None))
        self.assertIn("the first rater gave 1 throughout", out)

    def test_the_record_command_takes_the_files(self):
        self.make(FIRST, SECOND, THIRD)
        run = self.write("run.txt", "q1 Q0 p3 1 3 r\nq1 Q0 p1 2 2 r\nq2 Q0 p6 1 2 r\nq2 Q0 p5 2 1 r\n")
        done = self.run_command(
            "harness",
            "record",
            "--qrels",
            self.folder / "qrels.txt",
            "--exclude",
            self.folder / "qrels-excluded.txt",
            "--run",
            f"r={run}",
            "--output",
            self.folder / "record.json",
            "--depth",
            "5",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        record = json.loads(self.text("record.json"))
        excluded = {"grade": None, "excluded": True, "reason": "abstained"}
        self.assertEqual([query["rankings"]["r"] for query in record["queries"]], [[excluded, 3], [excluded, 1]])

    def test_every_problem_is_listed_with_its_line(self):
        bad = [
            label("p1", 1),
            label("p1", 2),
            label("p2", 4),
            label("p3", True),
            label("p 4", 1),
            label("p5", 1, ""),
            {"query": "q", "passage": "p"},
            label("p6", 1, abstain=True),
            label("p7", None, abstain="yes"),
            [],
            label("p8", 1.0),
            {**label("p9", None), "grade": None},
        ]
        with self.assertRaises(RecordError) as caught:
            read_labels(self.write("a.jsonl", lines(*bad)), SCALE)
        problems = [problem.partition("a.jsonl: ")[2] for problem in caught.exception.problems]
        expected = [
            'line 2: query "q1", passage "p1": labelled on line 1',
            "line 3: grade: expected an integer 0 to 3, got 4",
            "line 4: grade: expected",
            "line 5: passage: expected an id without spaces",
            "line 6: query: expected a text",
            "line 7: expected a grade or abstain: true, got neither",
            "line 8: expected a grade or abstain: true, got both",
            "line 9: abstain: expected true or false",
            "line 10: expected an object",
            "line 11: grade: expected an integer",
        ]
        self.assertEqual(len(problems), len(expected), problems)
        for problem, start in zip(problems, expected):
            self.assertTrue(problem.startswith(start), (problem, start))

    def test_bad_files(self):
        good = self.write("good.jsonl", lines(*FIRST))
        for content in ("", "{", b"\xff", '{"query": "q", "query": "p", "passage": "x", "grade": 1}'):
            bad = self.write("bad.jsonl", content)
            status, out, err = self.run_labels(good, bad, "--output", self.folder / "q.txt")
            self.assertEqual((status, out), (2, ""))
            self.assertIn("bad.jsonl", err)
        self.assertEqual(self.run_labels(good, self.folder, "--output", self.folder / "q.txt")[0], 2)
        self.assertEqual(
            self.run_labels(
                good, self.write("b.jsonl", lines(*SECOND)), "--allow-open", "--output", self.folder / "no" / "q.txt"
            )[0],
            2,
        )


class Extending(LabelCase):
    OLD = "q1 0 p1 3\nq1 0 p2 0\nq2 0 p1 1\n"

    def extend(self, new, *options):
        return self.run_labels("extend", self.write("old.txt", self.OLD), self.write("new.txt", new), *options)

    def test_a_kept_reference(self):
        status, out, _ = self.extend(self.OLD + "q1 0 p3 2\nq2 0 p2 1\nq2 0 p3 0\n")
        self.assertEqual(status, 0)
        self.assertIn("3 old grades kept, 3 pairs added (grade 0: 1, grade 1: 1, grade 2: 1)", out)
        self.assertIn("can have moved: nDCG, through the ideal, in 2 queries", out)
        self.assertIn("can have moved: recall, through the ideal, in 1 query", out)
        self.assertIn(
            "cannot have moved: Hit, precision and MRR at unchanged depth, as long as no added pair stands in a ranking", out
        )

    def test_only_zeros_move_nothing(self):
        _, out, _ = self.extend(self.OLD + "q1 0 p3 0\n")
        self.assertIn("cannot have moved: nDCG\ncannot have moved: recall\n", out)
        self.assertIn("no metric can have moved", self.extend(self.OLD)[1])

    def test_a_lost_and_a_changed_grade(self):
        status, out, _ = self.extend("q1 0 p1 2\nq2 0 p1 1\n")
        self.assertEqual(status, 1)
        self.assertIn("lost: query q1, passage p2", out)
        self.assertIn("changed: query q1, passage p1: 3 is now 2", out)
        self.assertIn("any metric can have moved", out)

    def test_runs_settle_what_hit_and_precision_do(self):
        new = self.OLD + "q1 0 p3 2\n"
        run = self.write("run.txt", "q1 Q0 p1 1 3 r\nq1 Q0 p2 2 2 r\nq1 Q0 p3 3 1 r\n")
        self.assertIn("cannot have moved: Hit, precision and MRR down to rank 2", self.extend(new, "--run", run, "--depth", 2)[1])
        self.assertIn(
            "can have moved: Hit, precision and MRR: added pairs within the first 3 positions of a run: 1",
            self.extend(new, "--run", run, "--depth", 3)[1],
        )

    def test_new_and_newly_answerable_queries(self):
        _, out, _ = self.extend(self.OLD + "q2 0 p9 2\nq3 0 p1 1\n")
        self.assertIn("new queries: 1", out)
        self.assertIn("newly answerable queries: 1", out)

    def test_with_new_queries_only_the_old_ones_are_said_to_stay(self):
        new = self.OLD + "q3 0 p1 3\n"
        run = self.write("run.txt", "q1 Q0 p1 1 3 r\n")
        for out in (self.extend(new)[1], self.extend(new, "--run", run)[1]):
            self.assertNotIn("cannot have moved:", out)
            for title in ("nDCG\n", "recall\n", "Hit, precision and MRR"):
                self.assertIn(f"cannot have moved over the queries of the old reference alone: {title}", out)

    def test_what_it_says_holds_in_the_metrics(self):
        """The claim itself: with the added useful passage unranked, nDCG and recall fall; Hit, precision and MRR stay."""
        from metrics import parse_record, query_values

        def values(counts):
            panel = {
                "models": {"m": {}},
                "cutoffs": [2],
                "queries": [{"id": "q", "reference_grade_counts": counts, "rankings": {"m": [0, 3]}}],
            }
            return {name: column[0] for name, column in query_values(parse_record(panel, "r.json").blocks[""], "m", 2).items()}

        old, new = values({"3": 1}), values({"3": 1, "2": 1})
        moved = {name for name in old if old[name] != new[name]}
        result = compare_references({("q", "a"): 3}, {("q", "a"): 3, ("q", "b"): 2})
        self.assertEqual(moved, {name for name, queries in result["can_move"].items() if queries})

    def test_json_and_bad_files(self):
        result = json.loads(self.extend(self.OLD + "q1 0 p3 2\n", "--json")[1])
        self.assertEqual((result["can_move"], result["ranked"]), ({"ndcg": ["q1"], "recall": ["q1"]}, None))
        self.assertEqual(self.extend("q1 0 p1\n")[0], 2)
        self.assertEqual(self.extend("q1 0 p1 7\n")[0], 2)


if __name__ == "__main__":
    unittest.main()
