"""The command line of metrics.py: what is checked, what is said where, exit statuses, and unfriendly surroundings.

Where no process is needed the command runs in this one; streams, signals, locales and hash seeds get processes of their own.
"""

import contextlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import unittest
from pathlib import Path

import metrics
from tests import ROOT, TestCase
from tests.test_metrics_records import run_main

X = {"grade": None, "excluded": True, "reason": "abstained"}
RECORD = {
    "models": {"old": {"name": "Old"}, "new": {"name": "New"}}, "depth": 4, "cutoffs": [1, 3],
    "queries": [
        {"id": "q1", "type": "fact", "reference_grade_counts": {"3": 1, "2": 1, "1": 2},
         "rankings": {"old": [1, X, 3, 0], "new": [3, 2, 1]}},
        {"id": "q2", "type": "fact", "reference_grade_counts": {"2": 2}, "rankings": {"old": [0, 2], "new": [2, 0, 2]}},
        {"id": "q3", "type": "list", "reference_grade_counts": {"1": 1}, "rankings": {"old": [X, 1], "new": [1]}}]}
TABLE = {"measure": "nDCG@10", "datasets": {"scifact": {"queries": 3, "scores": {"old": [0.5, 0.25, 1], "new": [0.5, 0.5, 1]}}}}


def changed(value, *path_and_new):
    """A copy of a JSON value with one member replaced: changed(value, "a", 0, "b", new)."""
    copy = json.loads(json.dumps(value))
    *path, key, new = path_and_new
    member = copy
    for step in path:
        member = member[step]
    member[key] = new
    return copy


class CommandCase(TestCase):
    def setUp(self):
        super().setUp()
        self.directory = self.folder / "kept"
        self.directory.mkdir()

    def put(self, name, value):
        path = self.directory / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    def take(self, name):
        return json.loads((self.directory / name).read_text(encoding="utf-8"))

    def main(self, *arguments, status=0):
        found, out, problems = run_main("--directory", self.directory, *arguments)
        self.assertEqual(found, status, out + problems)
        return out, problems

    def files(self):
        return {path.name: path.read_bytes() for path in self.directory.iterdir() if path.is_file()}


class Verify(CommandCase):
    def setUp(self):
        super().setUp()
        self.put("x.json", RECORD)
        self.main("--write")
        self.summary = self.take("x-summary.json")

    def lines(self, *arguments):
        out, problems = self.main(*arguments, status=1)
        self.assertEqual(problems, "")
        return [line for line in out.splitlines() if line.startswith("x-summary.json")]

    def test_reproduced(self):
        out, problems = self.main()
        count = int(out.splitlines()[-1].split()[1].replace(",", ""))
        self.assertEqual(out.splitlines()[-1], f"x-summary.json: {count:,} values reproduced")
        self.assertEqual(count, len(list(self.leaves({key: member for key, member in self.summary.items() if key != "signature"}))))
        self.assertEqual(problems, "")

    def leaves(self, value):
        for member in value.values() if isinstance(value, dict) else value:
            if isinstance(member, (dict, list)):
                yield from self.leaves(member)
            else:
                yield member

    def test_a_changed_value_is_named_with_both_values_and_their_difference(self):
        self.put("x-summary.json", changed(self.summary, "models", "new", "hit", "3", 0.75))
        line, total = self.lines()
        self.assertEqual(line, "x-summary.json: models.new.hit.3: stored 0.75, recomputed 0.666666666667, difference -0.0833333")
        self.assertRegex(total, r"x-summary.json: 1 differences? in \d+ values")

    def test_kinds_of_difference(self):
        for path, new, says in (
                (("queries", 4), 4, "queries: stored 4, recomputed 3, difference -1"),
                (("queries", 3.0), 3.0, "queries: stored 3.0, recomputed 3"),
                (("comparisons", 0, "base", "new"), "new", 'comparisons[0].base: stored "new"'),
                (("models", "old", "hit", "1", None), None, "models.old.hit.1: stored null, recomputed 0.0"),
                (("comparisons", 0, "hit", "1", "wins", True), True, "comparisons[0].hit.1.wins: stored true, recomputed 2"),
                (("types", "fact", "eligible", "1", "2"), "2", 'types.fact.eligible.1: stored "2"'),
                (("signature", "record", "y.json"), "y.json", 'signature.record: stored "y.json"'),
                (("signature", "sha256", "00"), "00", "signature.sha256: stored \"00\""),
                (("models", "old", "recall", "3", 10**400), 10**400, "models.old.recall.3: stored 1000")):
            with self.subTest(says):
                self.put("x-summary.json", changed(self.summary, *path[:-1], new))
                lines = self.lines()
                self.assertEqual(len(lines), 2)
                self.assertIn(says, lines[0])

    def test_missing_and_extra_values(self):
        less = json.loads(json.dumps(self.summary))
        del less["models"]["old"]["mrr"]["3"], less["types"]["list"]
        less["models"]["old"]["map"] = 0.5
        less["comparisons"].append({})
        self.put("x-summary.json", less)
        places = [line.split(": ")[1] for line in self.lines()]
        for place in ("models.old.mrr.3", "types.list", "models.old.map", "comparisons[1]"):
            self.assertIn(place, places)
        self.assertEqual(len(places), 5)

    def test_another_kind_of_json(self):
        for stored in ([], "x", 3, None):
            self.put("x-summary.json", json.dumps(stored))
            self.assertEqual(len(self.lines()), 2)
        self.put("x-summary.json", '{"models": {')
        out, problems = self.main(status=2)
        self.assertIn("x-summary.json: line 1 column", problems)

    def test_tolerance(self):
        self.put("x-summary.json", changed(self.summary, "models", "new", "hit", "3", 0.667))
        self.main(status=1)
        self.main("--tolerance", "0.001")
        self.main("--tolerance", "1e-4", status=1)
        self.put("x-summary.json", changed(self.summary, "models", "new", "hit", "3", 0.666666666667 + 5e-10))
        self.main()
        self.main("--tolerance", "0", status=1)
        self.put("x-summary.json", changed(self.summary, "graded_pairs", 99))
        self.main("--tolerance", "1000", status=1)

    def test_record_without_summary_and_summary_without_record(self):
        self.put("y.json", TABLE)
        self.put("z-summary.json", {})
        out, _ = self.main(status=1)
        self.assertIn("y-summary.json: missing: y.json has no summary", out)
        self.assertIn("z-summary.json: a summary without a record", out)
        self.assertRegex(out, r"x-summary.json: \d+ values reproduced")
        (self.directory / "z-summary.json").unlink()
        self.main(status=1)
        self.main("--record", "x")

    def test_records_in_both_folders_are_checked(self):
        """A record put beside the folder records/ must not take the others out of the check."""
        self.main("--write")
        inner = self.directory / "records"
        inner.mkdir()
        (inner / "y.json").write_text(json.dumps(TABLE), encoding="utf-8")
        out, _ = self.main(status=1)
        self.assertIn("y-summary.json: missing", out)
        self.main("--write")
        self.assertIn("y-summary.json", self.main()[0])
        (inner / "z-summary.json").write_text("{}", encoding="utf-8")
        self.assertIn("z-summary.json: a summary without a record", self.main(status=1)[0])
        (inner / "z-summary.json").unlink()
        (inner / "x.json").write_bytes((self.directory / "x.json").read_bytes())
        self.assertIn("x.json is in it and in its folder records/ too", self.main(status=2)[1])

    def test_what_is_broken_beside_records_is_a_note(self):
        inner = self.directory / "records"
        inner.mkdir()
        (self.directory / "x.json").rename(inner / "x.json")
        self.main("--write")
        self.put("package.json", "{")
        self.assertIn("skipped: ", self.main()[1])
        (inner / "broken.json").write_text("{", encoding="utf-8")
        self.assertIn("broken.json: line 1", self.main(status=2)[1])

    def test_markdown_holds_tables_alone(self):
        self.main("--write")
        out, notes = self.main("--format", "markdown")
        self.assertNotIn("reproduced", out)
        self.assertIn("values reproduced", notes)

    def test_record_names(self):
        self.put("y.json", TABLE)
        for name in ("y", "y.json", str(self.directory / "y.json")):
            out, _ = self.main("--record", name, status=1)
            self.assertIn("y-summary.json: missing", out)
            self.assertNotIn("x-summary.json", out)
        self.assertIn("x-summary.json", self.main("--record", "x", "y", status=1)[0])
        self.assertIn("x-summary.json", self.main("--record", "x", "--record", "y", status=1)[0])
        self.assertIn("nowhere", self.main("--record", "x", "nowhere", status=2)[1])
        self.put("bad.json", "{")
        self.main("--record", "x")
        self.assertIn("bad.json", self.main(status=2)[1])

    def test_skipped_json_is_named(self):
        self.put("package.json", {"name": "x", "nested": {"more": [1]}})
        self.put("list.json", [1])
        _, problems = self.main()
        self.assertIn("package.json: skipped", problems)
        self.assertIn("list.json: skipped", problems)

    def test_json_differences(self):
        self.put("x-summary.json", changed(self.summary, "models", "new", "hit", "3", 0.75))
        out, problems = self.main("--format", "json", status=1)
        report = json.loads(out)
        self.assertEqual(report["differences"], [{"file": "x-summary.json", "place": "models.new.hit.3", "stored": 0.75,
                                                  "recomputed": self.summary["models"]["new"]["hit"]["3"]}])
        self.assertEqual(report["summaries"], {"x.json": self.summary})


class Tampering(CommandCase):
    """A change to a record never passes: exit 1 or 2, and the place is named."""

    def check(self, record, *places, status=1):
        self.put("x.json", RECORD)
        self.main("--write")
        self.put("x.json", record)
        text = "".join(self.main(status=status))
        for place in places:
            self.assertIn(f"{place}: ", text)
        return text

    def test_flipped_grade(self):
        record = changed(RECORD, "queries", 0, "rankings", "old", 3, 1)
        self.check(record, "signature.sha256")
        record = changed(RECORD, "queries", 1, "rankings", "new", 0, 0)
        self.check(record, "models.new.hit.1", "models.new.ndcg.3", "comparisons[0].mrr.1.wins", "types.fact.models.new.hit.1",
                   "signature.sha256")

    def test_changed_count(self):
        more, fewer = (changed(RECORD, "queries", 1, "reference_grade_counts", "2", count) for count in (3, 1))
        self.check(more, "graded_pairs", "models.old.recall.3", "models.new.ndcg.3")
        text = self.check(fewer, "queries[1].rankings.new", status=2)
        self.assertIn("2 ranked, but 1 in reference_grade_counts", text)

    def test_dropped_query(self):
        self.check(changed(RECORD, "queries", RECORD["queries"][:2]), "queries", "graded_pairs", "types.list", "eligible.3")

    def test_reordered_ranking(self):
        self.check(changed(RECORD, "queries", 0, "rankings", "new", [1, 2, 3]), "models.new.ndcg.3", "models.new.mrr.3")

    def test_renamed_query(self):
        text = self.check(changed(RECORD, "queries", 2, "id", "q30"), "signature.sha256")
        self.assertIn("is not the file that the summary was made from", text)

    def test_white_space(self):
        self.check(json.dumps(RECORD) + "\n", "signature.sha256")

    def test_excluded_position_made_a_zero(self):
        self.check(changed(RECORD, "queries", 0, "rankings", "old", 1, 0), "excluded_positions.old.3", "models.old.precision.3")

    def test_changed_scale(self):
        self.check({**RECORD, "grades": {"gain": "linear"}}, "signature.panels..gain", "models.old.ndcg.3")
        self.check({**RECORD, "grades": {"useful": 1}}, "signature.panels..useful", "models.old.hit.1")

    def test_records_of_the_repository(self):
        """In every record a flipped grade, score or value is found, and a place other than the signature is named."""
        records = sorted(path for path in (ROOT / "records").glob("*.json") if not path.name.endswith("-summary.json"))
        self.assertTrue(records)
        for path in records:
            with self.subTest(path.name):
                value = json.loads(path.read_text(encoding="utf-8"))
                self.assertTrue(self.spoil(value), "nothing to spoil")
                self.put(path.name, value)
                shutil.copy(path.with_name(path.stem + "-summary.json"), self.directory)
                status, out, problems = run_main("--directory", self.directory, "--record", path.stem)
                self.assertIn(status, (1, 2))
                places = [line for line in (out + problems).splitlines() if path.stem in line and ": stored" in line or "error:" in line]
                self.assertTrue(any("signature." not in place for place in places), places)

    def spoil(self, value):
        """Change the first thing that counts in the first block."""
        if isinstance(value.get("queries"), list):
            for query in value["queries"]:
                for ranking in query["rankings"].values():
                    if ranking and isinstance(ranking[0], int):
                        ranking[0] = 0 if ranking[0] else 1
                        return True
        elif "datasets" in value:
            scores = next(iter(next(iter(value["datasets"].values()))["scores"].values()))
            scores[0] = 0.123456 if scores[0] != 0.123456 else 0.5
            return True
        elif "checks" in value:
            check = next(iter(value["checks"].values()))
            if "values" in check:
                check["values"] = [0.0, *check["values"][1:]]
            else:
                check["value"] = 0.0
            return True
        return any(self.spoil(member) for member in value.values() if isinstance(member, dict))


class Write(CommandCase):
    def test_twice(self):
        self.put("x.json", RECORD)
        self.put("y.json", {"public": TABLE, "panel": RECORD})
        out, _ = self.main("--write")
        self.assertRegex(out, r"x-summary.json: \d+ values written")
        before, times = self.files(), (self.directory / "x-summary.json").stat().st_mtime_ns
        self.assertEqual(set(before), {"x.json", "x-summary.json", "y.json", "y-summary.json"})
        out, _ = self.main("--write")
        self.assertRegex(out, r"x-summary.json: \d+ values unchanged")
        self.assertEqual(self.files(), before)
        self.assertEqual((self.directory / "x-summary.json").stat().st_mtime_ns, times)
        self.main()

    def test_bytes(self):
        self.put("x.json", changed(RECORD, "queries", 0, "type", "Öl"))
        self.main("--write")
        content = (self.directory / "x-summary.json").read_bytes()
        self.assertTrue(content.endswith(b"}\n"))
        self.assertNotIn(b"\r", content)
        self.assertIn("Öl".encode(), content)

    def test_a_faulty_record_stops_every_write(self):
        self.put("a.json", RECORD)
        self.put("b.json", changed(RECORD, "queries", 0, "rankings", "old", 0, 9))
        _, problems = self.main("--write", status=2)
        self.assertIn("b.json: queries[0].rankings.old[0]", problems)
        self.assertEqual(set(self.files()), {"a.json", "b.json"})

    def test_an_interrupted_write_leaves_the_old_file(self):
        target = self.put("x-summary.json", "old")
        for broken in ("fsync", "replace"):
            original = getattr(os, broken)
            setattr(os, broken, self.interrupt)
            try:
                with self.assertRaises(KeyboardInterrupt):
                    metrics.write_whole(target, "new")
            finally:
                setattr(os, broken, original)
            self.assertEqual(self.files(), {"x-summary.json": b"old"})

    @staticmethod
    def interrupt(*_):
        raise KeyboardInterrupt

    def test_target_is_a_folder(self):
        self.put("x.json", RECORD)
        (self.directory / "x-summary.json").mkdir()
        self.assertIn("x-summary.json: ", self.main("--write", status=2)[1])
        self.assertIn("x-summary.json: ", self.main(status=1)[0])
        with self.assertRaisesRegex(metrics.RecordError, "cannot be written: Is a directory"):
            metrics.write_whole(self.directory / "x-summary.json", "text")
        self.assertEqual({entry.name for entry in self.directory.iterdir()}, {"x.json", "x-summary.json"})

    def test_target_is_the_record(self):
        path = self.put("x.json", RECORD)
        for link in (os.link, os.symlink):
            target = self.directory / "x-summary.json"
            link(path, target)
            _, problems = self.main("--write", status=2)
            self.assertIn("same file", problems)
            self.assertEqual(json.loads(path.read_text(encoding="utf-8")), RECORD)
            target.unlink()

    def test_missing_folder(self):
        with self.assertRaisesRegex(metrics.RecordError, "cannot be written: there is no folder"):
            metrics.write_whole(self.folder / "nowhere" / "x.json", "text")

    @unittest.skipIf(hasattr(os, "geteuid") and os.geteuid() == 0, "root may write to a read-only folder and read every file")
    def test_permissions(self):
        path = self.put("x.json", RECORD)
        self.directory.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(self.directory.chmod, stat.S_IRWXU)
        self.assertIn("Permission denied", self.main("--write", status=2)[1])
        self.main(status=1)
        path.chmod(0)
        self.assertIn("x.json: cannot be read: Permission denied", self.main(status=2)[1])


class Explain(CommandCase):
    def setUp(self):
        super().setUp()
        self.put("x.json", RECORD)

    def test_arithmetic(self):
        """q1, old, at 3: the positions 1, excluded, 3; DCG 1 + 7/log2 3; the ideal 7 + 3/log2 3 + 1/2."""
        out, _ = self.main("--explain", "x", "q1", "--model", "old", "--at", "3")
        rows = [line.split() for line in out.splitlines()]
        self.assertIn(["1", "1", "1", "1", "1.000000", "1.000000"], rows)
        self.assertTrue(any(row[:2] == ["2", "excluded"] and "(abstained)" in row for row in rows))
        self.assertIn(["3", "3", "2", "7", "1.584963", "4.416508"], rows)
        for text in ("DCG = 5.416508", "ideal DCG = 9.392789", "7/log2(2) + 3/log2(3) + 1/log2(4)", "nDCG@3 = 0.576667", "Hit@3 = 1.000000",
                     "Precision@3 = 0.500000", "Recall@3 = 0.500000", "MRR@3 = 0.500000", "1 of 2 retained", "2 known"):
            self.assertIn(text, out)
        self.assertNotIn("model new", out)

    def test_every_model_and_the_default_cutoff(self):
        out, _ = self.main("--explain", "x.json", "q2")
        self.assertIn("model old", out)
        self.assertIn("model new", out)
        self.assertIn("nDCG@3", out)

    def test_a_query_that_is_not_eligible(self):
        out, _ = self.main("--explain", "x", "q3", "--model", "new", "--at", "1")
        self.assertIn("Hit@1 = not counted", out)

    def test_undefined_value(self):
        self.assertRegex(self.main("--explain", "x", "q3", "--model", "old", "--at", "2")[0], r"Recall@2 = undefined")

    def test_sections(self):
        self.put("y.json", {"first": RECORD, "second": {"third": changed(RECORD, "queries", RECORD["queries"][:1])}, "table": TABLE})
        self.assertEqual(self.main("--explain", "y", "q1", "--model", "new")[0].count("query q1"), 2)
        self.assertEqual(self.main("--explain", "y", "q2", "--model", "new")[0].count("query q2"), 1)

    def test_what_is_not_there(self):
        for arguments, says in ((("x", "q9"), 'no query "q9"'), (("z", "q1"), "no records named z"),
                                (("x", "q1", "--model", "third"), "third"), (("x", "q1", "--at", "5"), "depth of 4")):
            self.assertIn(says, self.main("--explain", *arguments, status=2)[1])

    def test_selected_precision_is_explained(self):
        """The record's own selected prefix of q, three long with one excluded: 1 useful of 2 retained."""
        value = {"models": {"m": {}}, "cutoffs": [3], "queries": [
            {"id": "q", "reference_grade_counts": {"2": 2}, "rankings": {"m": [2, X, 0, 2]}, "selected": {"m": 3}}]}
        self.put("s.json", value)
        self.assertIn("Selected precision = 0.500000", self.main("--explain", "s", "q")[0])


class Formats(CommandCase):
    def setUp(self):
        super().setUp()
        self.put("x.json", RECORD)
        self.put("y.json", TABLE)
        self.put("z.json", {"checks": {"a|b": {"value": 0.5, "at_least": 0.9}, "<i>": {"values": [1, 2], "at_most": 2}}})

    def test_text(self):
        out, _ = self.main("--write")
        for text in ("x.json: 3 queries, 7 graded pairs", "Hit@1 (2 queries)", "nDCG@3", "y.json: mean nDCG@10", "scifact",
                     "z.json: 1 checks pass, 1 fail", "FAIL", "new - old"):
            self.assertIn(text, out)

    def test_markdown(self):
        out, _ = self.main("--write", "--format", "markdown")
        lines = [line.strip("|").replace("\\|", "!") for line in out.splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in line.split("|")] for line in lines]
        cells = {row[0]: row[1:] for row in reversed(rows)}  # the first of each name: all queries
        self.assertEqual(cells["Hit@1 (2 queries)"][:2], ["0.00%", "100.00%"])
        self.assertEqual(cells["Hit@3"][:2], ["66.67%", "66.67%"])
        self.assertEqual(cells["Recall@3"][:2], ["50.00%", "100.00%"])
        self.assertEqual(cells["MRR@3"][:2], ["0.3333", "0.6667"])
        self.assertEqual(cells["scifact"][:3], ["3", "0.5833", "0.6667"])
        self.assertIn("a!b", cells)
        self.assertIn("&lt;i>", cells)
        for block in out.split("\n\n"):
            widths = {line.replace("\\|", "").count("|") for line in block.splitlines() if line.startswith("|")}
            self.assertLessEqual(len(widths), 1, block)

    def test_json(self):
        out, problems = self.main("--write", "--format", "json")
        self.assertEqual(list(json.loads(out)["summaries"]), ["x.json", "y.json", "z.json"])
        self.assertEqual(json.loads(out)["differences"], [])
        self.assertEqual(json.loads(out)["summaries"]["y.json"], self.take("y-summary.json"))

    def test_undefined_values_are_not_printed_as_numbers(self):
        self.put("x.json", {"models": {"m": {}}, "cutoffs": [1], "queries": [
            {"id": "q", "reference_grade_counts": {}, "rankings": {"m": [X]}}]})
        out, _ = self.main("--write", "--record", "x")
        row = next(line for line in out.splitlines() if "Hit@1" in line)
        self.assertTrue(row.endswith("undefined"), row)


class Usage(CommandCase):
    def test_bad_arguments(self):
        explain = ["--explain", "x", "q", "--at"]
        for arguments, says in (
                (["--colour"], "--colour"), (["--form", "json"], "--form"), (["--format", "html"], "html"), (["stray"], "stray"),
                (["--tolerance", "-1"], "-1"), (["--tolerance", "nan"], "nan"),
                (["--tolerance", "inf"], "inf"), (["--tolerance", "x"], "x"),
                (["--explain", "x"], "--explain"), (["--at", "3"], "--explain"), (["--model", "m"], "--explain"),
                ([*explain, "0"], "at least 1"), ([*explain, "-1"], "at least 1"), ([*explain, "1.5"], "1.5"),
                ([*explain, "9" * 5000], "--at")):
            with self.subTest(arguments=arguments):
                stream = io.StringIO()
                with contextlib.redirect_stderr(stream), self.assertRaises(SystemExit) as stopped:
                    metrics.main(arguments)
                self.assertEqual(stopped.exception.code, 2)
                self.assertIn(says, stream.getvalue())

    def test_no_records(self):
        self.assertIn("no records", self.main(status=2)[1])
        self.put("x-summary.json", {})
        self.assertIn("no records", self.main(status=2)[1])
        self.put("other.json", {"a": 1})
        self.assertIn("no records", self.main(status=2)[1])

    def test_folder_records(self):
        inner = self.directory / "records"
        inner.mkdir()
        (inner / "x.json").write_text(json.dumps(RECORD), encoding="utf-8")
        self.main("--write")
        self.assertTrue((inner / "x-summary.json").exists())
        self.put("package.json", {"name": "x"})
        out, problems = self.main()
        self.assertRegex(out, r"x-summary.json: \d+ values reproduced")
        self.assertIn("package.json: skipped", problems)


class Processes(CommandCase):
    """Real processes: streams, signals, locales, hash seeds."""

    def setUp(self):
        super().setUp()
        self.put("x.json", changed(RECORD, "queries", 0, "type", "Öl 模型"))

    def run_metrics(self, *arguments, cwd=None, script=ROOT / "metrics.py", **options):
        environment = {**os.environ, **options.pop("env", {})}
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([sys.executable, "-W", "error", str(script), *map(str, arguments)], cwd=cwd or self.directory,
                              env=environment, text=True, encoding="utf-8", **options)

    def run_python(self, *arguments, **options):
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **{"cwd": self.directory, **options})

    def test_exit_statuses_and_hash_seeds(self):
        """Every run gives the same bytes whatever the hash seed; statuses are 0, 1 and 2, problems on stderr, results on stdout."""
        done = [self.run_metrics("--write", env={"PYTHONHASHSEED": seed}) for seed in ("0", "1", "2")]
        self.assertEqual({(run.returncode, run.stderr) for run in done}, {(0, "")})
        self.assertEqual(len({run.stdout.replace("written", "unchanged") for run in done}), 1)
        summary = self.take("x-summary.json")
        self.put("x-summary.json", {**changed(summary, "models", "old", {}), "c": 1, "a": 2, "b": 3})
        done = [self.run_metrics(env={"PYTHONHASHSEED": seed}) for seed in ("3", "4")]
        self.assertEqual({(run.returncode, run.stderr) for run in done}, {(1, "")})
        self.assertEqual(len({run.stdout for run in done}), 1)
        self.put("x.json", {"models": {}, "cutoffs": 0, "queries": [], "c": 1, "a": 2, "b": 3, "depth": "x", "reference": []})
        done = [self.run_metrics(env={"PYTHONHASHSEED": seed}) for seed in ("5", "6")]
        self.assertEqual({(run.returncode, run.stdout) for run in done}, {(2, "")})
        self.assertEqual(len({run.stderr for run in done}), 1)
        self.assertNotIn("Traceback", done[0].stderr)

    def test_ascii_streams(self):
        for env in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
            run = self.run_metrics("--write", env=env)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn("by type", run.stdout)
        self.assertEqual(self.take("x-summary.json")["types"].keys(), {"Öl 模型", "fact", "list"})

    def test_alone_beside_records(self):
        """Copied alone beside somebody's records, isolated from everything else, it works from there and from outside."""
        shutil.copy(ROOT / "metrics.py", self.directory)
        run = self.run_python("-I", "-W", "error", "metrics.py", "--write")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        run = self.run_metrics(cwd=self.directory, script="metrics.py")
        self.assertEqual(run.returncode, 0)
        self.assertEqual({path.name for path in self.directory.iterdir()} - {"__pycache__"}, {"x.json", "x-summary.json", "metrics.py"})

    def test_repository_root_and_inside_records(self):
        for cwd, directory in ((ROOT, "."), (ROOT / "records", ".")):
            run = self.run_metrics("--directory", directory, cwd=cwd)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn("retriever-summary.json: ", run.stdout)

    @unittest.skipUnless(Path("/dev/full").exists(), "there is no /dev/full")
    def test_full_output(self):
        with open("/dev/full", "w") as full:
            run = self.run_metrics("--write", stdout=full)
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stderr, "error: output: No space left on device\n")
        with open("/dev/full", "w") as full:
            self.assertEqual(self.run_metrics("--directory", "nowhere", stderr=full).returncode, 2)

    def test_devices_and_links_are_written_to_never_replaced(self):
        """--output /dev/stdout or /dev/null by root must not put a file in the device's place."""
        link, target = self.directory / "link.txt", self.directory / "target.txt"
        target.write_text("old", encoding="utf-8")
        link.symlink_to(target)
        metrics.write_whole(link, "new\n")
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_text(encoding="utf-8"), "new\n")
        metrics.write_whole(os.devnull, "x")
        self.assertFalse(os.path.isfile(os.devnull))
        code = "import metrics; metrics.write_whole('/dev/stdout', 'one\\n'); print('two')"
        with open(target, "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=file, check=True)
        self.assertEqual(target.read_text(encoding="utf-8"), "one\ntwo\n")
        with self.assertRaisesRegex(metrics.RecordError, "cannot be written"):
            metrics.write_whole(self.directory, "x")

    def test_closed_streams(self):
        command = f'"{sys.executable}" "{ROOT / "metrics.py"}" --write >&-'
        run = subprocess.run(command, shell=True, cwd=self.directory, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_closed_pipe(self):
        """The reader goes away before anything is written: nothing on stderr."""
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as pipe:
            run = self.run_metrics("--write", stdout=pipe)
        self.assertEqual(run.stderr, "")
        self.assertNotEqual(run.returncode, 0)

    def test_interrupt(self):
        code = ("import metrics, os, signal, sys, time\n"
                "def body():\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(30)\n"
                "sys.exit(metrics.run_command(body))")
        run = self.run_python("-c", code, cwd=ROOT)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (130, "", "interrupted\n"))

    @unittest.skipUnless(hasattr(os, "mkfifo"), "there are no named pipes")
    def test_named_pipe_does_not_hang(self):
        """A pipe under a record's name has no end to wait for."""
        os.mkfifo(self.directory / "pipe.json")
        try:
            run = self.run_metrics(timeout=10)
        except subprocess.TimeoutExpired:
            self.fail("the command waits for a pipe")
        self.assertEqual(run.returncode, 2)
        self.assertIn("pipe.json", run.stderr)

    def test_odd_file_names(self):
        """A file name that is no UTF-8 or breaks a line is an error that names the file, and nothing is written."""
        for name in (b"caf\xe9.json", b"two\nlines.json"):
            with self.subTest(name=name):
                path = os.path.join(os.fsencode(self.directory), name)
                with open(path, "wb") as file:
                    file.write(json.dumps(RECORD).encode())
                run = self.run_metrics("--write")
                os.unlink(path)
                self.assertEqual(run.returncode, 2)
                self.assertNotIn("Traceback", run.stderr)
                self.assertIn("json", run.stderr)
                self.assertEqual(len(list(self.directory.glob("*-summary.json"))), 0)

    def test_imports_are_light(self):
        """Importing metrics loads neither argparse nor json: others score thousands of records through it."""
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import metrics\n"
                "print(*sorted({'argparse', 'json', 'dataclasses'} & set(sys.modules)))")
        run = self.run_python("-I", "-c", code, str(ROOT))
        self.assertEqual(run.stdout.strip(), "", run.stderr)


class Statuses(TestCase):
    def test_run_command_statuses(self):
        self.assertEqual(metrics.run_command(lambda: 0), 0)
        self.assertEqual(metrics.run_command(lambda: 1), 1)
        for error, status in ((metrics.RecordError("x"), 2), (FileNotFoundError(2, "gone", "f"), 2), (KeyboardInterrupt(), 130),
                              (RecursionError(), 2), (MemoryError(), 2)):
            with self.subTest(error=type(error)):
                self.assertEqual(self.quietly(error), status)

    def quietly(self, error):
        def body():
            raise error

        with contextlib.redirect_stderr(io.StringIO()) as stream:
            status = metrics.run_command(body)
        self.assertEqual(len(stream.getvalue().splitlines()), 1)
        return status
