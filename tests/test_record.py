"""record: what a panel and a public table hold, the policies, the sections of a file, and the command's errors."""

import json
import random
from unittest import mock

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
        made = self.make(*self.both, "--depth", 10, "--unjudged", "exclude")
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
        for word in ("1 of 2 judged queries", "t2", "1 query of the run not judged", "t8", "1 negative grade"):
            self.assertIn(word, said)
        self.assertIn("useful from grade 2; 2 of 7 positions excluded as unjudged\n", said)

    def test_ties(self):
        self.assertEqual(self.rankings("--ties", "input")["q0001"]["old"][:2], [1, 3])
        self.assertEqual(self.rankings("--ties", "trec")["q0001"]["old"][:2], [1, 3])  # d3 > d1
        self.old.write_text("t1 Q0 d1 1 5.0 x\nt1 Q0 d3 2 5.0 x\n")
        self.assertEqual(self.rankings("--ties", "input")["q0001"]["old"], [3, 1])
        self.assertEqual(self.rankings("--ties", "trec")["q0001"]["old"], [1, 3])

    def test_unjudged_as_zero_leaves_the_count_of_zeros_open(self):
        made = self.make(*self.both)
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
        self.assert_refused("holds a panel, not sections", *self.both, "--output", self.folder / "made.json", "--section", "graded")
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
            ("before the first --qrels", ["--type", "a"]),
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


class DefaultsTest(RecordCase):
    """Binary judgments of relevant passages alone, as BEIR and MS MARCO have them, give what trec_eval's conventions give."""

    def setUp(self):
        super().setUp()
        self.qrels = self.write("b.qrels", "query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t1\n2\ta\t1\n")
        self.run = self.write("b.run", "1 Q0 x 1 5 t\n1 Q0 a 2 4 t\n1 Q0 y 3 3 t\n2 Q0 z 1 2 t\n2 Q0 a 2 1 t\n")
        self.both = ["--qrels", self.qrels, "--run", f"m={self.run}"]

    def summary(self, *arguments):
        return summarize(parse_record(self.make(*self.both, *arguments), "made.json"))["models"]["m"]

    def test_binary_positives_only(self):
        found = self.summary("--gain", "linear")
        second = 1 / 1.584962500721156  # the discount of rank 2
        self.assertAlmostEqual(found["ndcg"]["3"], (second / (1 + second) + second) / 2, delta=1e-11)
        self.assertEqual(
            [found[name]["3"] for name in ("hit", "recall", "mrr")], [1.0, 0.75, 0.5], "the unjudged first passage counts"
        )
        self.assertIn("useful from grade 1: no judgment is higher; 3 of 5 positions unjudged, which count as grade 0\n", self.printed.getvalue())

    def test_useful_is_2_where_a_judgment_reaches_it_in_any_collection(self):
        graded = self.write("g.qrels", "9 0 a 2\n")
        run = self.write("g.run", "9 Q0 a 1 1 t\n")
        made = self.make(*self.both, "--qrels", graded, "--run", f"m={run}")
        self.assertEqual(made["grades"]["useful"], 2)
        self.assertEqual(self.make(*self.both, "--useful", "2")["grades"]["useful"], 2)
        self.assertIn("useful from grade 2: no judgment is that high", self.printed.getvalue())

    def test_a_panel_of_mostly_excluded_positions_is_warned_of(self):
        self.make(*self.both, "--unjudged", "exclude")
        self.assertIn("3 of 5 positions excluded as unjudged\n", self.printed.getvalue())
        self.assertIn("warning: more than half", self.printed.getvalue())
        self.make(*self.both, "--unjudged", "exclude", "--depth", "2")
        self.assertIn("2 of 4 positions excluded as unjudged\n", self.printed.getvalue())
        self.assertNotIn("warning", self.printed.getvalue())

    def test_judgments_of_another_collection_are_warned_of(self):
        self.run.write_text("1 Q0 x 1 5 t\n1 Q0 y 2 4 t\n2 Q0 x 1 2 t\n")
        self.make(*self.both)
        self.assertIn(
            "warning: none of the 3 passages of run m is judged: are these the judgments of this collection?",
            self.printed.getvalue(),
        )

    def test_ids_that_are_no_utf8_matter_only_if_they_are_kept(self):
        self.qrels.write_bytes(b"caf\xe9 0 a 1\n")
        self.run.write_bytes(b"caf\xe9 Q0 a 1 1 t\n")
        self.assertEqual(self.make(*self.both)["queries"][0]["id"], "q0001")
        with self.assertRaises(RecordError) as raised:
            self.make(*self.both, "--keep-ids")
        self.assertIn("caf\\xe9", str(raised.exception))


class OutputTest(RecordCase):
    """Nothing that a file holds is lost without a word."""

    def setUp(self):
        super().setUp()
        self.qrels, self.run = self.write("q", "1 0 a 1\n"), self.write("r", "1 Q0 a 1 1 t\n")
        self.both = ["--qrels", self.qrels, "--run", f"m={self.run}"]
        self.table = ["--table", "--dataset", "d", *self.both]
        self.output = self.folder / "r.json"

    def refused(self, *arguments, **more):
        """What the command says when it refuses, and that the output is as it was."""
        output = more.get("output", self.output)
        before = output.read_bytes() if output.is_file() else None
        with self.assertRaises((RecordError, SystemExit)) as raised:
            self.main(*arguments, "--output", output)
        self.assertEqual(output.read_bytes() if output.is_file() else None, before)
        return f"{raised.exception} {self.printed.getvalue()}"

    def test_a_file_with_sections_is_not_replaced(self):
        self.main(*self.both, "--output", self.output, "--section", "pipeline")
        self.main(*self.table, "--output", self.output, "--section", "public")
        self.assertIn("holds the sections pipeline, public; name one with --section", self.refused(*self.both))
        self.assertIn("holds a public table", self.refused(*self.both, "--section", "public"))
        self.output.write_text('{"a": {"b": {"checks": {"x": {"value": 1, "at_least": 0}}}}, "note": "text"}')
        self.assertIn("holds the section b", self.refused(*self.both, "--section", "a"))
        self.assertIn('holds "text"', self.refused(*self.both, "--section", "note"))

    def test_a_block_of_the_same_kind_is_made_again(self):
        for arguments in (self.both, self.table):
            self.output.unlink(missing_ok=True)
            self.main(*arguments, "--output", self.output)
            first = self.output.read_bytes()
            self.main(*arguments, "--output", self.output)
            self.assertEqual(self.output.read_bytes(), first)
        self.assertIn("holds a public table", self.refused(*self.both))
        self.write("empty.json", "")
        self.main(*self.both, "--output", self.folder / "empty.json")

    def test_a_block_at_the_top_takes_no_sections(self):
        for text, kind in (
            ('{"measure": "AP", "datasets": {"d": {"queries": 1, "scores": {"m": [1]}}}}', "a public table"),
            ('{"checks": {"x": {"value": 1, "at_least": 0}}}', "checks"),
            ("[]", "[]"),
        ):
            self.output.write_text(text)
            self.assertIn(f"holds {kind}", self.refused(*self.both, "--section", "X"))
        self.output.write_text('{"a": 1}')
        self.assertIn("no block of a record", self.refused(*self.both))
        self.output.write_text("no JSON")
        self.assertIn("not valid JSON", self.refused(*self.both))

    def test_names_of_sections(self):
        self.write("r.json", '{"odd": {"checks": {"a": {"value": 1, "at_least": 0}}}}')
        for name in ("", " ", "a.b", *"queries models cutoffs datasets measure checks signature about".split(), "\udcff"):
            with self.subTest(name):
                self.assertIn("--section: expected", self.refused(*self.both, "--section", name))
        self.assertIn("control character", self.refused(*self.both, "--section", "a\x1b"))

    def test_the_whole_file_is_checked_not_only_the_new_block(self):
        self.output.write_text('{"odd": {"checks": {"a": {"value": 1, "at_least": 2, "passed": true}}}}')
        self.assertIn("odd", self.refused(*self.both, "--section", "new"))

    def test_names_of_files(self):
        for name in ("mine", "mine-summary.json", "mine.JSON", ".json", "mine.json.gz"):
            with self.subTest(name):
                self.assertIn("expected NAME.json", self.refused(*self.both, output=self.folder / name))
        self.assertEqual(self.main(*self.both, "--output", "/dev/null"), 0)

    def test_inputs_are_not_replaced(self):
        self.write("m.json", '{"m": {}}')
        qrels, run = self.write("q.json", '{"1": {"a": 1}}'), self.write("n.json", '{"1": {"a": 1}}')
        both = ["--qrels", qrels, "--run", f"m={run}", "--models", self.folder / "m.json"]
        (self.folder / "link.json").symlink_to(run)
        for name in ("m.json", "q.json", "n.json", "link.json"):
            with self.subTest(name):
                self.assertIn("would replace the input", self.refused(*both, output=self.folder / name))

    def test_what_cannot_be_written_is_named_where_it_comes_from(self):
        self.assertIn("--about: expected a text in UTF-8", self.refused(*self.both, "--about", "\udcff"))
        models = self.write("models.json", '{"m": {"name": "\\ud800"}}')
        self.assertIn(f"{models}: m: a lone surrogate", self.refused(*self.both, "--models", models))
        models.write_text('{"m": 3}')
        self.assertIn(f"{models}: m: expected an object, got 3", self.refused(*self.both, "--models", models))

    def test_a_record_over_the_limit_of_the_reader_is_not_written(self):
        with mock.patch.object(record, "MAX_BYTES", 100):
            self.assertIn("over the limit of 100 bytes", self.refused(*self.both))


class CommandLineTest(RecordCase):
    def setUp(self):
        super().setUp()
        self.qrels, self.run = self.write("q", "1 0 a 1\n"), self.write("r", "1 Q0 a 1 1 t\n")

    def refused(self, *arguments):
        with self.assertRaises((RecordError, SystemExit)) as raised:
            self.make(*arguments)
        return f"{raised.exception} {self.printed.getvalue()}"

    def test_a_run_before_the_first_qrels_belongs_to_it(self):
        made = self.make("--run", f"a={self.run}", "--qrels", self.qrels, "--run", f"b={self.run}")
        self.assertEqual(list(made["models"]), ["a", "b"])
        late = ["--run", f"a={self.run}", "--qrels", self.qrels, "--run", f"a={self.run}", "--qrels", self.qrels]
        self.assertIn("each --qrels starts the next one", self.refused(*late))

    def test_what_the_words_should_have_been(self):
        both = ["--qrels", self.qrels, "--run", f"bm25={self.run}", "--run", f"dense-v1={self.run}"]
        for expected, arguments in (
            ("--run: expected NAME=FILE, got bm25", ["--qrels", self.qrels, "--run", "bm25", self.run]),
            ("--comparison bm25=densev1: no --run of model densev1; did you mean dense-v1?", ["--comparison", "bm25=densev1"]),
            ("two different models", ["--comparison", "bm25=bm25"]),
            ("each pair once", ["--comparison", "bm25=dense-v1", "--comparison", "bm25=dense-v1"]),
            ("looks like a run: are the qrels and the run swapped?", ["--qrels", self.run, "--run", f"bm25={self.qrels}"]),
            ("looks like qrels: are the qrels and the run swapped?", ["--qrels", self.qrels, "--run", f"bm25={self.qrels}"]),
            ("--qrels and for --run new", ["--qrels", "-", "--run", "old=x", "--run", "new=-"]),
            ("--exclude: expected a text that is not empty", ["--exclude", ""]),
            ("--select-min <= --select-max", ["--select-share", "1", "--select-min", "9", "--select-max", "3"]),
            ("only with --select-share", ["--select-min", "9"]),
            ("did you mean --unjudged?", ["--unjugded", "zero"]),
        ):
            with self.subTest(expected):
                self.assertIn(expected, self.refused(*([] if "--qrels" in arguments else both), *arguments))

    def test_options_that_would_change_nothing(self):
        table = ["--table", "--dataset", "d", "--qrels", self.qrels, "--run", f"m={self.run}"]
        kinds = self.write("kinds", "1 x\n")
        for name, value in (
            ("--tolerance", "0.1"),
            ("--select-share", "0.5"),
            ("--select-min", "1"),
            ("--select-max", "1"),
            ("--cutoffs", "1"),
            ("--depth", "10"),
            ("--type", "x"),
            ("--types", kinds),
        ):
            with self.subTest(name):
                self.assertIn(f"{name}: not with --table", self.refused(*table, name, value))
        self.assertIn("--depth, --keep-ids: not with --table", self.refused(*table, "--depth", "3", "--keep-ids"))
        self.assertIn("--measure, --dataset: only with --table", self.refused(*table[1:], "--measure", "AP"))
        self.assertIn("--type: expected a text that is not empty", self.refused(*table[3:], "--type", ""))


class SelectionTest(RecordCase):
    def test_a_share_is_taken_of_the_decimal_that_was_written(self):
        qrels = self.write("q", "1 0 a 1\n")
        for scores in (("2.47", "2.3465", "2.3464"), ("2.47e0", "23465e-4", "2.3464"), ("0.7", "0.665", "0.66499999")):
            self.write("r", "".join(f"1 Q0 d{rank} {rank} {score} t\n" for rank, score in enumerate(scores)))
            made = self.make("--qrels", qrels, "--run", f"m={self.folder / 'r'}", "--select-share", "0.95")
            self.assertEqual(made["queries"][0]["selected"], {"m": 2}, scores)
        self.write("r.json", '{"1": {"a": 2.47, "b": 2.3465, "c": 2.3464}}')
        made = self.make("--qrels", qrels, "--run", f"m={self.folder / 'r.json'}", "--select-share", "0.95")
        self.assertEqual(made["queries"][0]["selected"], {"m": 2})


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


class ExcludingTableTest(RecordCase):
    """A table's scores are those of the panel that is made from the same input with the same policy."""

    def setUp(self):
        super().setUp()
        generator = random.Random(8)
        judged, excluded, runs = [], [], {"old": [], "new": []}
        for query in range(12):
            documents = generator.sample(range(30), 20)
            judged += [f"q{query} 0 d{document} {generator.choice((0, 1, 2, 3))}" for document in documents[:9]]
            excluded += [f"q{query} d{document}" for document in generator.sample(documents, 4)]
            for run in runs.values():
                ranked = generator.sample(documents, generator.choice((1, 4, 12)))
                run += [f"q{query} Q0 d{document} 1 {30 - rank} t" for rank, document in enumerate(ranked)]
        self.both = ["--qrels", self.write("q", "\n".join(judged))]
        for name, lines in runs.items():
            self.both += ["--run", f"{name}={self.write(name, chr(10).join(lines))}"]
        self.exclude = ["--exclude", self.write("x", "\n".join(excluded))]

    def test_cut_then_drop_never_backfill(self):
        left_out = 0
        for policy in ([], self.exclude, ["--unjudged", "exclude"], [*self.exclude, "--unjudged", "exclude"]):
            panel = self.make(*self.both, *policy, "--gain", "linear", "--useful", "1", "--cutoffs", "1,3,10", "--depth", "10")
            panel = parse_record(panel, "made.json").blocks[""]
            (self.folder / "made.json").unlink()
            for k in (1, 3, 10):
                for measure, name in (("nDCG", "ndcg"), ("RR", "mrr"), ("Success", "hit"), ("R", "recall")):
                    table = self.make("--table", "--measure", f"{measure}@{k}", "--dataset", "d", *self.both, *policy)
                    for model, scores in table["datasets"]["d"]["scores"].items():
                        values = query_values(panel, model, k)
                        kept = [place for place, value in enumerate(values["ndcg"]) if value is not None]
                        self.assertEqual(scores, [round(values[name][place] or 0, 6) for place in kept], (policy, measure, k, model))
                        left_out += len(panel.ids) - len(kept)
            (self.folder / "made.json").unlink()
        self.assertGreater(left_out, 20, "too few queries are wholly excluded for this test to say anything")
        self.assertIn("queries left out", self.printed.getvalue())

    def test_measures_that_divide_by_the_cutoff_are_refused(self):
        for policy in (self.exclude, ["--unjudged", "exclude"]):
            for measure in ("P@3", "Judged@3"):
                with self.assertRaises(SystemExit):
                    self.make("--table", "--measure", measure, "--dataset", "d", *self.both, *policy)
                self.assertIn(f"{policy[0]}", self.printed.getvalue())

    def test_a_data_set_of_which_nothing_is_left(self):
        self.write("q", "".join(f"q{query} 0 other 1\n" for query in range(12)))
        with self.assertRaises(RecordError) as raised:
            self.make("--table", "--dataset", "d", *self.both, "--unjudged", "exclude")
        self.assertIn("wholly excluded", str(raised.exception))


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
