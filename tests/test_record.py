"""record: what a panel and a public table hold, the policies, the sections of a file, and the command's errors."""

import json

from harness import record
from metrics import RecordError, parse_record, query_values, summarize
from tests import EXTERNAL_DATA, TestCase


class RecordCase(TestCase):
    def command(self, *arguments):
        return self.run_command("harness", "record", *arguments)

    def make(self, *arguments):
        """The JSON value that the command writes, made in this process."""
        output = self.folder / "made.json"
        self.assertEqual(self.main(*arguments, "--output", output), 0)
        return json.loads(output.read_text("utf-8"))

    def main(self, *arguments):
        import contextlib
        import io

        self.printed = io.StringIO()
        with contextlib.redirect_stdout(self.printed), contextlib.redirect_stderr(self.printed):
            return record.main(list(map(str, arguments)))


class PanelTest(RecordCase):
    def setUp(self):
        super().setUp()
        self.qrels = self.write("a.qrels", "t1 0 d1 3\nt1 0 d2 0\nt1 0 d3 1\nt2 0 d1 2\nt2 0 d9 -1\n")
        self.old = self.write("old.run", "t1 Q0 d3 1 5.0 x\nt1 Q0 d1 2 5.0 x\nt1 Q0 d7 3 1.5 x\nt1 Q0 d2 4 1.0 x\n")
        self.new = self.write("new.run", "t2 Q0 t2 1 9.0 x\nt2 Q0 d1 2 7.5 x\nt1 Q0 d1 1 3.0 x\nt8 Q0 d1 1 1.0 x\n")
        self.both = ["--qrels", self.qrels, "--run", f"old={self.old}", "--run", f"new={self.new}"]

    def rankings(self, *arguments):
        return {query["id"]: query["rankings"] for query in self.make(*self.both, *arguments)["queries"]}

    def test_a_panel(self):
        made = self.make(*self.both, "--depth", 10)
        unjudged = {"grade": None, "excluded": True, "reason": "unjudged"}
        self.assertEqual(
            made,
            {
                "models": {"old": {}, "new": {}},
                "depth": 10,
                "cutoffs": [1, 3, 5, 10],
                "grades": {"max": 3, "useful": 2, "gain": "exponential"},
                "reference": {"queries": 2, "graded_pairs": 5},
                "queries": [
                    {
                        "id": "q0001",
                        "reference_grade_counts": {"0": 1, "1": 1, "2": 0, "3": 1},
                        "rankings": {"old": [1, 3, unjudged, 0], "new": [3]},
                    },
                    {
                        "id": "q0002",
                        "reference_grade_counts": {"0": 1, "1": 0, "2": 1, "3": 0},
                        "rankings": {"old": [], "new": [unjudged, 2]},
                    },
                ],
            },
        )
        said = self.printed.getvalue()
        for word in ("1 of 2 judged queries", "t2", "1 query of the run not judged", "t8", "1 negative grade", "2 unjudged"):
            self.assertIn(word, said)

    def test_ties(self):
        self.assertEqual(self.rankings("--ties", "input")["q0001"]["old"][:2], [1, 3])
        self.assertEqual(self.rankings("--ties", "trec")["q0001"]["old"][:2], [1, 3])  # d3 > d1
        self.old.write_text("t1 Q0 d1 1 5.0 x\nt1 Q0 d3 2 5.0 x\n")
        self.assertEqual(self.rankings("--ties", "input")["q0001"]["old"], [3, 1])
        self.assertEqual(self.rankings("--ties", "trec")["q0001"]["old"], [1, 3])

    def test_unjudged_as_zero_leaves_the_count_of_zeros_open(self):
        made = self.make(*self.both, "--unjudged", "zero")
        self.assertEqual(made["queries"][0]["reference_grade_counts"], {"1": 1, "2": 0, "3": 1})
        self.assertEqual(made["queries"][0]["rankings"]["old"], [1, 3, 0, 0])
        self.assertEqual(made["reference"], {"queries": 2, "graded_pairs": 3})

    def test_abstained_pairs_are_excluded_and_in_no_count(self):
        for text in ("t1 0 d3 -1\nt1 0 d7 -1\n", "t1 d3\nt1 d7\n", "t1 d3 1\nt1 d7 1\n"):
            exclude = self.write("exclude.txt", text)
            query = self.make(*self.both, "--exclude", exclude, "--unjudged", "zero")["queries"][0]
            abstained = {"grade": None, "excluded": True, "reason": "abstained"}
            self.assertEqual(query["rankings"]["old"], [abstained, 3, abstained, 0])
            self.assertEqual(query["reference_grade_counts"], {"1": 0, "2": 0, "3": 1})

    def test_the_own_document_is_dropped_on_request(self):
        self.assertEqual(self.rankings("--drop-self", "--depth", "1")["q0002"]["new"], [2])

    def test_ids_types_and_several_collections(self):
        other = self.write("b.qrels", "query-id\tcorpus-id\tscore\nz1\td1\t1\n")
        run = self.write("b.run", "z1 Q0 d1 1 1.0 x\n")
        kinds = self.write("kinds.tsv", "t1\tlong\nt2\tshort\n")
        more = ["--qrels", other, "--run", f"new={run}", "--run", f"old={run}", "--type", "extra"]
        made = self.make(*self.both, "--types", kinds, *more, "--keep-ids")
        self.assertEqual(
            [(query["id"], query["type"]) for query in made["queries"]], [("t1", "long"), ("t2", "short"), ("z1", "extra")]
        )
        self.assertEqual(list(made["models"]), ["old", "new"])
        kinds.write_text("t1\tlong\n")
        self.assert_refused("no type for 1 of 2", *self.both, "--types", kinds)
        self.assert_refused("the same models", *self.both, "--qrels", other, "--run", f"new={run}")
        self.assert_refused("or none", *self.both, "--type", "a", "--qrels", other, "--run", f"new={run}", "--run", f"old={run}")

    def test_selected_positions(self):
        arguments = ["--select-share", "0.3", "--select-min", "1", "--select-max", "20"]
        chosen = [query["selected"] for query in self.make(*self.both, *arguments)["queries"]]
        self.assertEqual(chosen, [{"old": 3, "new": 1}, {"old": 0, "new": 2}])  # 1.5 is 0.3 of 5.0; 1.0 is not
        arguments = ["--select-share", "1", "--select-min", "3", "--select-max", "3"]
        self.assertEqual(self.make(*self.both, *arguments)["queries"][0]["selected"], {"old": 3, "new": 1})
        self.old.write_text("t1 Q0 d1 1 -5.0 x\n")
        self.assert_refused("above 0", *self.both, *arguments)

    def test_identities_comparisons_and_tolerance(self):
        models = self.write("models.json", json.dumps({"new": {"name": "n"}, "old": {"name": "o"}, "other": {}}))
        made = self.make(*self.both, "--models", models, "--comparison", "new=old", "--tolerance", "0.01", "--about", "A test.")
        self.assertEqual(
            (made["models"], made["comparisons"], made["tolerance"], made["about"]),
            ({"old": {"name": "o"}, "new": {"name": "n"}}, [["new", "old"]], 0.01, "A test."),
        )
        models.write_text('{"new": {}}')
        self.assert_refused("no identity of old", *self.both, "--models", models)

    def test_a_query_a_line(self):
        self.make(*self.both)
        lines = (self.folder / "made.json").read_text().splitlines()
        self.assertEqual(sum('"rankings"' in line for line in lines), 2)
        self.assertEqual(sum('"id"' in line for line in lines), 2)

    def test_sections_leave_each_other_alone(self):
        output = self.write("r.json", '{"notes":  "kept",\n "odd" : {"checks":{"a": {"value": 1,"at_least":0.50}} } }')
        self.main(*self.both, "--output", output, "--section", "graded")
        first = output.read_bytes()
        self.assertIn(b'"odd": {"checks":{"a": {"value": 1,"at_least":0.50}} }', first)
        self.main(*self.both, "--output", output, "--section", "graded")
        self.assertEqual(output.read_bytes(), first)
        self.main(*self.both, "--output", output, "--section", "other", "--depth", "1", "--cutoffs", "1")
        self.assertEqual(list(json.loads(output.read_bytes())), ["notes", "odd", "graded", "other"])
        self.assertTrue(output.read_bytes().startswith(first.rstrip(b"}\n")))

    def test_a_record_without_sections_is_not_taken_for_one_with(self):
        self.make(*self.both)
        before = (self.folder / "made.json").read_bytes()
        self.assert_refused("without sections", *self.both, "--output", self.folder / "made.json", "--section", "graded")
        self.assertEqual((self.folder / "made.json").read_bytes(), before)

    def assert_refused(self, expected, *arguments):
        """An error that holds these words, and no file."""
        with self.assertRaises((RecordError, SystemExit)) as raised:
            self.main(*arguments, *([] if "--output" in arguments else ["--output", self.folder / "refused.json"]))
        self.assertIn(expected, f"{raised.exception} {self.printed.getvalue()}")
        self.assertFalse((self.folder / "refused.json").exists())

    def test_the_command_ends_with_2_and_without_a_traceback(self):
        self.old.write_text("t1 Q0 d1 1 5.0 x\nt1 Q0 d1 2 4.0 x\n")
        done = self.command(*self.both, "--output", self.folder / "refused.json")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(
            done.stderr,
            f"error: {self.old}: line 2: duplicate document d1 for query t1, first on line 1;"
            " expected each document once per query\n",
        )
        self.assertFalse((self.folder / "refused.json").exists())

    def test_usage(self):
        for expected, arguments in (
            ("--qrels", []),
            ("before the first --qrels", ["--run", "a=b"]),
            ("NAME=FILE", ["--qrels", "q", "--run", "b"]),
            ("two runs", ["--qrels", "q", "--run", "a=b", "--run", "a=c"]),
            ("--run", ["--qrels", self.qrels]),
            ("--useful", [*self.both, "--useful", "4"]),
            ("--dataset", ["--table", *self.both]),
            ("beyond the depth", [*self.both, "--depth", "5", "--cutoffs", "10"]),
        ):
            with self.subTest(expected):
                self.assert_refused(expected, *arguments)

    def test_the_values_are_those_of_the_run(self):
        """A panel with linear gain and unjudged as zero scores as trec_eval does."""
        made = self.make(*self.both, "--gain", "linear", "--unjudged", "zero", "--useful", "1")
        panel = parse_record(made, "made.json").blocks[""]
        values = query_values(panel, "old", 3)
        self.assertAlmostEqual(values["ndcg"][0], (1 + 3 / 1.584962500721156) / (3 + 1 / 1.584962500721156), delta=1e-12)
        self.assertEqual((values["recall"], values["hit"]), ([1.0, 0.0], [1.0, 0.0]))


class TableTest(RecordCase):
    def test_a_table(self):
        a, b = self.write("a.qrels", "1 0 d 1\n2 0 d 1\n"), self.write("b.qrels", "5 0 d 2\n5 0 e 1\n")
        old, new = (
            self.write("old.run", "1 Q0 d 1 1.0 x\n5 Q0 e 1 1 x\n5 Q0 d 2 0.5 x\n"),
            self.write("new.run", "2 Q0 x 1 2.0 x\n2 Q0 d 2 1.0 x\n"),
        )
        made = self.make(
            "--table",
            "--measure",
            "ndcg@10",
            "--dataset",
            "one",
            "--qrels",
            a,
            "--run",
            f"old={old}",
            "--run",
            f"new={new}",
            "--dataset",
            "two",
            "--qrels",
            b,
            "--run",
            f"old={old}",
        )
        self.assertEqual(
            made,
            {
                "measure": "nDCG@10",
                "datasets": {
                    "one": {"queries": 2, "scores": {"old": [1.0, 0.0], "new": [0.0, 0.63093]}},
                    "two": {"queries": 1, "scores": {"old": [0.859719]}},
                },
            },
        )
        self.assertEqual(summarize(parse_record(made, "made.json"))["average"]["datasets"], ["one"])


class PublicRankingsTest(RecordCase):
    """With linear gain and unjudged as zero a record's values are the stored ones of pytrec_eval, to their six digits."""

    def test_values(self):
        folder = EXTERNAL_DATA / "runs"
        if not folder.is_dir():
            self.skipTest(f"no public rankings at {folder}")
        for collection, run, useful, key in (
            ("cranfield", "minilm-l3", 1, "mean"),
            ("nfcorpus", "minilm", 2, "mean_rel_level_2"),
            ("trec-dl-2019", "tasb", 2, "mean_rel_level_2"),
        ):
            stored = json.loads((folder / collection / "expected.json").read_text())["runs"][run]
            made = self.make(
                "--qrels",
                folder / collection / "qrels.txt",
                "--run",
                f"m={folder / collection / 'runs' / run}.trec.gz",
                "--gain",
                "linear",
                "--unjudged",
                "zero",
                "--useful",
                useful,
                "--ties",
                "input",
            )
            panel = parse_record(made, "made.json").blocks[""]
            for k in (1, 10, 50):
                values = query_values(panel, "m", k)
                found = {
                    "ndcg_cut": values["ndcg"],
                    "recall": [value or 0 for value in values["recall"]],
                    "success": values["hit"],
                }
                for name, column in found.items():
                    source = stored["mean"] if name == "ndcg_cut" else stored[key]
                    self.assertAlmostEqual(
                        sum(column) / len(column), source[f"{name}_{k}"], delta=6e-7, msg=f"{collection} {name}_{k}"
                    )
