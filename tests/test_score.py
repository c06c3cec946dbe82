"""score: trec_eval's measures on small hand-computed runs, every policy and output format, and agreement with a peer."""

import contextlib
import gzip
import io
import json
import os
import random
import subprocess
import sys
import unittest
from unittest import mock

from harness import halves, measures, runs, score
from metrics import RecordError
from tests import DATA, EXTERNAL_DATA, ROOT, TestCase

MANY = [f"{family}@{k}" for family in ("nDCG", "P", "R", "RR", "Success", "AP", "Judged") for k in (1, 3, 10)] + [
    "nDCG",
    "R",
    "RR",
    "AP",
]


def cases(name):
    return json.loads((DATA / "runs" / name).read_text("utf-8"))["cases"]


class ScoreCase(TestCase):
    def options(self, names=("nDCG@10",), **options):
        words = ["--metrics", ",".join(names)]
        for name, value in options.items():
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return score.parse_options(words)[0]

    def score(self, run, qrels, names=("nDCG@10",), **options):
        """{measure: mean} of a run and qrels given as paths."""
        options = self.options(names, **options)
        judged = runs.read_qrels(qrels, int(options["--max-grade"]))
        scorer = score.Scorer(judged, list(map(measures.parse_measure, names)), options)
        return {name: score.mean(values) for name, values in scorer.score(run).values.items()}

    def files(self, run=("7 Q0 d1 1 2.0 tag",), qrels=("7 0 d1 1",)):
        return self.write("a.run", "\n".join(run) + "\n"), self.write("a.qrels", "\n".join(qrels) + "\n")


class ValuesTest(ScoreCase):
    """The situations in which public tools were found to be wrong, each with the right value and the wrong ones."""

    def test_values(self):
        for case in cases("values.json"):
            with self.subTest(case["name"]):
                run, qrels = self.files(case["run"], case["qrels"])
                found = self.score(run, qrels, list(case["expected"]), **case["options"])
                for name, expected in case["expected"].items():
                    if expected is None:
                        self.assertIsNone(found[name])
                    else:
                        self.assertAlmostEqual(found[name], expected, delta=1e-12)
                    for wrong, why in case.get("wrong", {}).get(name, {}).items():
                        self.assertNotAlmostEqual(found[name], float(wrong), msg=why, delta=1e-6)

    def test_errors(self):
        for case in cases("errors.json"):
            with self.subTest(case["name"]):
                run, qrels = self.files(case.get("run", ["7 Q0 d1 1 2.0 tag"]), case.get("qrels", ["7 0 d1 1"]))
                with self.assertRaises(RecordError) as raised:
                    self.score(run, qrels)
                for name in case["names"]:
                    self.assertIn(name, str(raised.exception))

    def test_the_order_of_lines_and_the_hash_seed_change_nothing(self):
        lines = [f"q{query} Q0 d{document} 1 {(document * 7) % 5}.5 tag" for query in range(3) for document in range(9)]
        judged = [f"q{query} 0 d{document} {(document + query) % 4}" for query in range(3) for document in range(0, 9, 2)]
        run, qrels = self.files(lines, judged)
        expected = self.score(run, qrels, MANY)
        generator = random.Random(5)
        for _ in range(10):
            generator.shuffle(lines)
            generator.shuffle(judged)
            run, qrels = self.files(lines, judged)
            self.assertEqual(self.score(run, qrels, MANY), expected)

    def test_scoring_twice_gives_the_same(self):
        run, qrels = self.files(["a Q0 x 1 2.0 t", "a Q0 y 2 1.0 t"], ["a 0 y 3", "a 0 x 1"])
        scorer = score.Scorer(runs.read_qrels(qrels), [measures.parse_measure("nDCG@10")], self.options())
        self.assertEqual(scorer.score(run), scorer.score(run))

    def test_a_cutoff_asked_for_alone_equals_the_same_among_many(self):
        generator = random.Random(6)
        run, qrels = self.files(
            [f"q Q0 d{document} 1 {generator.random():.3f} t" for document in range(15)],
            [f"q 0 d{document} {generator.randrange(4)}" for document in range(0, 30, 3)],
        )
        many = self.score(run, qrels, MANY)
        for name in MANY:
            self.assertEqual(self.score(run, qrels, [name])[name], many[name])


class MeasureNamesTest(ScoreCase):
    def test_names_in_any_case_and_under_their_other_names(self):
        for text, name in (
            ("ndcg@10", "nDCG@10"),
            ("MAP", "AP"),
            ("mrr@5", "RR@5"),
            ("Recall@100", "R@100"),
            ("Hit@1", "Success@1"),
        ):
            self.assertEqual(measures.parse_measure(text).name, name)

    def test_a_wrong_name_lists_the_right_ones(self):
        for text in ("ndgc@10", "P", "Success", "nDCG@0", "nDCG@", "nDCG@-1", "nDCG@ten", "nDCG@٣", "", "@3"):
            with self.subTest(text), self.assertRaises(RecordError) as raised:
                measures.parse_measure(text)
            self.assertIn("nDCG", str(raised.exception) if text not in ("P", "Success") else "nDCG")


class CommandTest(ScoreCase):
    RUN = ["t1 Q0 a 1 3.0 t", "t1 Q0 u 2 2.0 t", "t9 Q0 a 1 3.0 t"]
    QRELS = ["t1 0 a 1", "t1 0 b 1", "t2 0 c 1"]

    def command(self, *arguments, **more):
        return self.run_command("harness", "score", *arguments, **more)

    def test_text(self):
        self.files(self.RUN, self.QRELS)
        done = self.command("a.qrels", "a.run", "--metrics", "R@10,P@1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(
            done.stdout,
            (
                "run    R@10     P@1  unjudged\n"
                "a    0.2500  0.5000     50.0%\n"
                "\n"
                "gain=linear useful=1 grades=0..3 ties=trec missing=zero no-relevant=zero unjudged=zero duplicates=error self=keep queries=2\n"
                "a: 1 of 2 judged queries not in the run, count 0: t2\n"
                "a: 1 query not judged, left out\n"
            ),
        )

    def test_per_query_lists_a_missing_query_and_no_unjudged_one(self):
        self.files(self.RUN, self.QRELS)
        done = self.command("a.qrels", "a.run", "--metrics", "RR", "--per-query", "--format", "trec")
        self.assertEqual(
            done.stdout,
            (
                f"{'runid':22}\tall\ta\n"
                f"{'recip_rank':22}\tt1\t1.0000\n"
                f"{'recip_rank':22}\tt2\t0.0000\n"
                f"{'recip_rank':22}\tall\t0.5000\n"
            ),
        )
        self.assertIn("missing=zero", done.stderr)

    def test_a_query_named_all_is_told_from_the_mean(self):
        self.files(["all Q0 a 1 3.0 t", "t2 Q0 a 1 3.0 t"], ["all 0 a 1", "t2 0 c 1", "t2 0 a 0"])
        for form, row in (("text", "a    (all)  0.5000      0.0%\n"), ("markdown", "| a | (all) | 0.5000 | 0.0% |\n")):
            done = self.command("a.qrels", "a.run", "--metrics", "RR", "--per-query", "--format", form)
            self.assertIn(row, done.stdout)
            self.assertIn("\nwarning: a query has the id all; the rows of the means are called (all)\n", done.stdout)
        done = self.command("a.qrels", "a.run", "--metrics", "RR", "--per-query", "--format", "trec")
        rows = [line.split()[1:] for line in done.stdout.splitlines()]
        self.assertEqual(rows, [["all", "a"], ["all", "1.0000"], ["t2", "0.0000"], ["all", "0.5000"]])
        self.assertIn("each run's last all of a measure is the mean", done.stderr)
        self.assertNotIn("warning", self.command("a.qrels", "a.run", "--metrics", "RR").stdout)

    def test_names_and_ids_that_would_break_rows_or_steer_the_terminal_are_escaped(self):
        self.write("a\nb\x1b[31m.run", json.dumps({"t\n\x1b1": {"a": 1}}))
        self.write("q\x1b[2J.qrels", json.dumps({"t\n\x1b1": {"a": -1, "b": 1}, "t2": {}}))
        for form in ("text", "markdown", "trec", "json"):
            done = self.command("q\x1b[2J.qrels", "a\nb\x1b[31m.run", "--metrics", "RR", "--per-query", "--format", form)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("a\\x0ab\\x1b[31m" if form != "json" else r"a\\x0ab", done.stdout)
            self.assertTrue((done.stdout + done.stderr).replace("\n", "").replace("\t", "").isprintable(), form)
            if form != "json":
                self.assertIn("t\\x0a\\x1b1", done.stdout)

    def test_an_empty_ranking_scores_0_and_is_not_missing(self):
        self.write("a.json", '{"t1": {}}')
        self.write("a.qrels", "t1 0 a 1\nt2 0 a 1\n")
        done = self.command("a.qrels", "a.json", "--metrics", "RR,P@1", "--missing", "skip", "--format", "json", "--per-query")
        found = json.loads(done.stdout)["runs"]["a"]
        self.assertEqual((found["per_query"], found["missing"]), ({"t1": {"RR": 0.0, "P@1": 0.0}}, ["t2"]))
        self.write("a.json", '{"x": {}}')
        self.assertIn("no query id in common: 1 run query (x), 2 judged queries (t1, t2)", self.command("a.qrels", "a.json").stderr)

    def test_json_holds_everything_unrounded(self):
        self.files(self.RUN, self.QRELS)
        done = self.command("a.qrels", "a.run", "--metrics=AP,RR", "--format=json", "--per-query", "--missing=skip")
        found = json.loads(done.stdout)["runs"]["a"]
        self.assertEqual(found["means"], {"AP": 0.5, "RR": 1.0})
        self.assertEqual(found["per_query"], {"t1": {"AP": 0.5, "RR": 1.0}})
        self.assertEqual((found["missing"], found["unknown"], found["unjudged_positions"], found["positions"]), (["t2"], 1, 1, 2))

    def test_markdown(self):
        self.files(self.RUN, self.QRELS)
        done = self.command("a.qrels", "a.run", "--metrics", "R@10", "--format", "markdown")
        self.assertTrue(
            done.stdout.startswith("| run | R@10 | unjudged |\n| --- | ---: | ---: |\n| a | 0.2500 | 50.0% |\n"), done.stdout
        )

    def test_judgments_of_another_collection_are_warned_of(self):
        self.files(self.RUN, [line.replace(" a ", " z ") for line in self.QRELS])
        done = self.command("a.qrels", "a.run", "--metrics", "RR")
        self.assertIn(
            "\nwarning: none of the 2 passages of run a is judged: are these the judgments of this collection?\n", done.stdout
        )
        self.files(self.RUN, self.QRELS)
        self.assertNotIn("warning", self.command("a.qrels", "a.run", "--metrics", "RR").stdout)

    def test_a_wide_table_is_turned(self):
        self.files(self.RUN, self.QRELS)
        done = self.command("a.qrels", "a.run", "--metrics", ",".join(MANY))
        self.assertIn("\nnDCG@1      0.5000\n", done.stdout)

    def test_a_folder_of_runs(self):
        self.files(self.RUN, self.QRELS)
        self.write("runs/b.trec", "\n".join(self.RUN))
        self.write("runs/a.run.gz", gzip.compress("\n".join(self.RUN).encode()))
        self.write("runs/.hidden", "not a run")
        done = self.command("a.qrels", "runs", "--metrics", "RR")
        self.assertEqual([line.split()[:2] for line in done.stdout.splitlines()[1:3]], [["a", "0.5000"], ["b", "0.5000"]])

    def test_standard_input(self):
        self.files(self.RUN, self.QRELS)
        done = self.command("a.qrels", "-", "--metrics", "RR", stdin="\n".join(self.RUN))
        self.assertIn("stdin  0.5000", done.stdout)

    def test_usage_errors_name_what_is_expected(self):
        self.files(self.RUN, self.QRELS)
        for words, expected in (
            (["a.qrels"], "RUN"),
            (["a.qrels", "a.run", "--gain", "log"], "linear, exponential"),
            (["a.qrels", "a.run", "--gain"], "nothing"),
            (["a.qrels", "a.run", "--formt", "json"], "did you mean --format?"),
            (["--qrels", "a.qrels", "a.run"], "files are given by position: score QRELS RUN"),
            (["a.qrels", "--run", "a.run"], "files are given by position: score QRELS RUN"),
            (["a.qrels", "a.run", "--metrics", "nDGC@10"], "did you mean nDCG@10?"),
            (["a.qrels", "a.run", "--metrics", "Recal@5"], "did you mean Recall@5?"),
            (["a.run", "a.qrels"], "looks like a run: are the qrels and the run swapped?"),
            (["a.qrels", "a.run", "--useful", "4"], "1 to 3"),
            (["a.qrels", "a.run", "--max-grade", "x"], "1 to 100"),
            (["-", "-"], "one can be -"),
            (["a.qrels", "a.run", "a.run"], "two runs named a"),
            (["none.qrels", "a.run"], "none.qrels"),
            (["a.qrels", "none.run"], "none.run"),
            ([".", "a.run"], "directory"),
        ):
            with (
                self.subTest(words),
                self.assertRaises(RecordError) as raised,
                contextlib.redirect_stdout(io.StringIO()) as printed,
            ):
                score.main([str(self.folder / word) if "." in word else word for word in words])
            self.assertIn(expected, str(raised.exception))
            self.assertEqual(printed.getvalue(), "")

    def test_an_error_ends_with_2_and_without_a_traceback(self):
        self.files([*self.RUN, "t1 Q0 a 2 2.0 t"], self.QRELS)
        done = self.command("a.qrels", "a.run")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(
            done.stderr,
            "error: a.run: line 4: duplicate document a for query t1, first on line 1; expected each document once per query\n",
        )

    def test_help_names_every_option(self):
        done = self.command("--help")
        self.assertEqual(done.returncode, 0)
        for name in [*score.OPTIONS, *score.FLAGS]:
            self.assertIn(name, done.stdout)

    def test_a_full_output_device_is_an_error_without_traceback(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        run, qrels = self.files(self.RUN, self.QRELS)
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "harness", "score", qrels, run], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
            )
        self.assertEqual(done.returncode, 2)
        self.assertIn("No space left", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


@unittest.skipUnless(hasattr(os, "fork"), "one process only on this system")
class HalvesTest(ScoreCase):
    """Two processes bring together what one reads."""

    LINES = [f"q{query:03} Q0 d{document} {document} {99 - document / 4:.2f} t" for query in range(60) for document in range(20)]
    JUDGED = [f"q{query:03} 0 d{(query * 7) % 20} {query % 4}" for query in range(0, 64, 2)]

    def scored(self, lines):
        """What one process and what two make of a run, and whether two could."""
        run, qrels = self.files(lines, self.JUDGED)
        scorer = score.Scorer(runs.read_qrels(qrels), list(map(measures.parse_measure, MANY)), self.options())
        outcomes = []
        with mock.patch.object(halves, "free_cores", lambda: 9):
            for worthwhile in (2**40, 0):
                with mock.patch.object(halves, "WORTHWHILE", worthwhile):
                    try:
                        outcomes.append(scorer.score(run))
                    except RecordError as error:
                        outcomes.append(str(error))
            with mock.patch.object(halves, "WORTHWHILE", 0):
                return *outcomes, bool(scorer._halves(run))

    def test_two_processes_score_as_one(self):
        one, two, able = self.scored(self.LINES)
        self.assertTrue(able)
        self.assertEqual(one, two)
        self.assertEqual((len(one.values["RR"]), one.unknown), (32, 30))

    def test_what_cannot_be_halved_is_read_by_one(self):
        generator = random.Random(4)
        shuffled = generator.sample(self.LINES, len(self.LINES))
        apart = [line.replace("q059", "q000") for line in self.LINES]
        apart = [line for line in apart if not (line.startswith("q000") and " d1" in line)] + ["q000 Q0 d1 1 5.0 t"]
        broken_late, broken_soon = self.LINES[:-1] + ["q059 Q0"], ["q000 Q0"] + self.LINES[1:]
        twice = self.LINES + [self.LINES[-1]]
        for lines in (shuffled, apart, broken_late, broken_soon, twice, self.LINES[:20], self.LINES[:2], ["", *self.LINES]):
            one, two, able = self.scored(lines)
            self.assertFalse(able)
            self.assertEqual(one, two)


class PeerTest(ScoreCase):
    """Agreement with pytrec_eval, where it is installed, and with stored values of it, where the public rankings are at hand."""

    def test_random_runs(self):
        try:
            import pytrec_eval
        except ImportError:
            self.skipTest("pytrec_eval is not installed; the stored values of values.json are still checked")
        generator = random.Random(3)
        names = {
            "nDCG@1": "ndcg_cut_1",
            "nDCG@10": "ndcg_cut_10",
            "nDCG": "ndcg",
            "P@5": "P_5",
            "R@10": "recall_10",
            "RR": "recip_rank",
            "Success@5": "success_5",
            "AP": "map",
            "AP@10": "map_cut_10",
        }
        for _ in range(60):
            ran = {
                f"q{query}": {f"d{document}": round(generator.random(), 1) for document in generator.sample(range(40), 25)}
                for query in range(4)
            }
            judged = {
                f"q{query}": {f"d{document}": generator.choice((0, 0, 1, 2, 3)) for document in generator.sample(range(40), 12)}
                for query in range(4)
            }
            run, qrels = self.files(
                [
                    f"{query} Q0 {document} 1 {value} t"
                    for query, documents in ran.items()
                    for document, value in documents.items()
                ],
                [f"{query} 0 {document} {value}" for query, documents in judged.items() for document, value in documents.items()],
            )
            found = self.score(run, qrels, list(names))
            peer = pytrec_eval.RelevanceEvaluator(
                judged, {"ndcg_cut.1,10", "ndcg", "P.5", "recall.10", "recip_rank", "success.5", "map", "map_cut.10"}
            ).evaluate(ran)
            for name, key in names.items():
                self.assertAlmostEqual(found[name], sum(query[key] for query in peer.values()) / 4, delta=1e-9, msg=name)

    def test_public_rankings(self):
        folder = EXTERNAL_DATA / "runs"
        if not folder.is_dir():
            self.skipTest(f"no public rankings at {folder}")
        keys = {"nDCG": "ndcg_cut", "P": "P", "R": "recall", "Success": "success"}
        names = {f"{family}@{k}": f"{key}_{k}" for family, key in keys.items() for k in (1, 3, 5, 10, 20, 50)}
        for collection, run in (
            ("cranfield", "minilm"),
            ("nfcorpus", "minilm"),
            ("scifact", "minilm"),
            ("trec-dl-2019", "tasb"),
            ("trec-dl-2020", "bm25"),
        ):
            stored = json.loads((folder / collection / "expected.json").read_text())["runs"][run]
            for useful, key in ((1, "mean"), (2, "mean_rel_level_2")):
                if key in stored:
                    self.compare(folder / collection, run, stored[key], names, useful)

    def compare(self, folder, run, stored, names, useful):
        names = {name: key for name, key in names.items() if key in stored and (useful == 1 or not name.startswith("nDCG"))}
        found = self.score(folder / "runs" / f"{run}.trec.gz", folder / "qrels.txt", list(names), ties="input", useful=useful)
        for name, key in names.items():
            self.assertAlmostEqual(found[name], stored[key], delta=6e-7, msg=f"{folder.name} {run} {name} from {useful}")


if __name__ == "__main__":
    unittest.main()
