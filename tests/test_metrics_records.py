"""Records as data files: tests/data/valid with the values expected of them, tests/data/invalid with what the error must say.

valid/NAME.expected is a JSON object: "values" maps a place in the summary to a formula (null: undefined), "wrong" to the values of
known faults, which must not come out, and "says" lists what the report must tell. invalid/NAME.expected holds a text a line.
Bytes that no editor keeps (byte-order marks, other encodings, very deep or large files) are made here.
"""

import contextlib
import io
import json
import math
import random
import re
import resource
import shutil
import subprocess
import sys

import metrics
from tests import DATA, ROOT, TestCase

NAMES = {"log2": math.log2, "abs": abs, "min": min, "True": True, "False": False, "__builtins__": {}}
PANEL = ('{"models": {"m": {}}, "cutoffs": [1], "queries": [{"id": "q1", "reference_grade_counts": {"3": 1},'
         ' "rankings": {"m": [3]}}]}')


def run_main(*arguments):
    """(status, stdout, stderr) of the command, run in this process."""
    out, problems = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(problems):
        status = metrics.run_command(lambda: metrics.main([str(argument) for argument in arguments]))
    return status, out.getvalue(), problems.getvalue()


def value_at(summary, place):
    """The value at a place such as models.a.ndcg.3 or comparisons[0].base."""
    for part in place.split("."):
        key, *indices = re.split(r"\[(\d+)\]", part)
        summary = summary[key] if key or not indices else summary
        for index in filter(None, indices):
            summary = summary[int(index)]
    return summary


def is_near(value, expected, tolerance):
    if isinstance(value, (int, float)) and isinstance(expected, (int, float)):
        return isinstance(value, bool) == isinstance(expected, bool) and math.isclose(value, expected, rel_tol=0, abs_tol=tolerance)
    return value == expected


class DataFiles(TestCase):
    """A file of tests/data at a time, each copied into a folder of its own and run there."""

    def each(self, kind, least):
        """(file name without suffix, its expectations, the new folder) of every file of a kind."""
        paths = sorted((DATA / kind).glob("*.json"))
        self.assertGreater(len(paths), least)
        self.assertEqual({path.stem for path in paths}, {path.stem for path in (DATA / kind).glob("*.expected")})
        for path in paths:
            folder = self.folder / path.stem
            folder.mkdir()
            shutil.copy(path, folder)
            yield path.stem, path.with_suffix(".expected").read_text(encoding="utf-8"), folder

    def test_valid(self):
        for name, text, folder in self.each("valid", 50):
            with self.subTest(name):
                self.check_values(name, json.loads(text), folder)

    def check_values(self, name, expected, folder):
        status, report, notes = run_main("--directory", folder, "--write")
        self.assertEqual(status, 0, notes)
        summary = json.loads((folder / f"{name}-summary.json").read_text(encoding="utf-8"))
        for place, formula in expected["values"].items():
            value = None if formula is None else eval(formula, NAMES)
            self.assertTrue(is_near(value_at(summary, place), value, 1e-11), f"{place}: {value_at(summary, place)}, not {formula}")
        for place, faults in expected.get("wrong", {}).items():
            for fault in faults:
                self.assertFalse(is_near(value_at(summary, place), eval(fault, NAMES), 1e-7), f"{place} is {fault}, a known fault")
        for text in expected.get("says", ()):
            self.assertIn(text, report + notes)
        self.assertEqual(run_main("--directory", folder)[0], 0)

    def test_invalid(self):
        for name, text, folder in self.each("invalid", 100):
            with self.subTest(name):
                self.check_refusal(name, text.splitlines(), folder)

    def check_refusal(self, name, texts, folder):
        status, report, problems = run_main("--directory", folder, "--record", name, "--write")
        self.assertEqual((status, report), (2, ""))
        self.assertEqual([entry.name for entry in folder.iterdir()], [f"{name}.json"], "something was written")
        for text in (f"{name}.json", *texts):
            self.assertIn(text, problems)
        for line in problems.splitlines():
            self.assertRegex(line, r"^(error: |and \d)")
            self.assertTrue(line.isprintable(), ascii(line))


class Problems(TestCase):
    def test_every_problem_is_named(self):
        """The three faults of this record are reported together, each with its place."""
        value = json.loads(PANEL)
        value["queries"] = [{"id": "", "reference_grade_counts": {"3": -1}, "rankings": {"m": [0]}},
                            {"id": "b", "reference_grade_counts": {}, "rankings": {"m": ["3"]}}]
        with self.assertRaises(metrics.RecordError) as caught:
            metrics.parse_record(value, "faulty.json")
        problems = caught.exception.problems
        for place in ("queries[0].id", "queries[0].reference_grade_counts.3", "queries[1].rankings.m[0]"):
            self.assertTrue(any(problem.startswith(f"faulty.json: {place}: ") for problem in problems), (place, problems))
        self.assertEqual(str(caught.exception), "\n".join(problems))

    def test_many_problems_are_cut_short(self):
        value = json.loads(PANEL)
        value["queries"] = [{"id": f"q{i}", "reference_grade_counts": {}, "rankings": {"m": [9]}} for i in range(1000)]
        path = self.write("many.json", json.dumps(value))
        status, _, problems = run_main("--directory", path.parent)
        self.assertEqual(status, 2)
        self.assertLess(len(problems.splitlines()), 30)
        self.assertIn("980 more", problems)


class OddFiles(TestCase):
    def refused(self, content, *texts, name="odd.json"):
        path = self.write(name, content)
        status, report, problems = run_main("--directory", path.parent, "--write")
        self.assertEqual((status, report), (2, ""))
        self.assertFalse((path.parent / name.replace(".json", "-summary.json")).exists())
        for text in (name, *texts):
            self.assertIn(text, problems)

    def test_byte_order_mark(self):
        self.write("marked.json", b"\xef\xbb\xbf" + PANEL.encode())
        status, report, _ = run_main("--directory", self.folder, "--write")
        self.assertEqual(status, 0)
        self.assertIn("marked.json: 1 query,", report)

    def test_carriage_returns(self):
        self.write("dos.json", PANEL.replace(", ", ",\r\n"))
        self.assertEqual(run_main("--directory", self.folder, "--write")[0], 0)
        self.assertEqual(run_main("--directory", self.folder)[0], 0)

    def test_utf_16(self):
        self.refused(PANEL.encode("utf-16"), "UTF-8", "byte 0xff", "offset 0")

    def test_utf_16_without_mark(self):
        self.refused(PANEL.encode("utf-16-le"), "not valid JSON")

    def test_latin_1(self):
        content = PANEL.replace("q1", "caf\xe9").encode("latin-1")
        self.refused(content, "UTF-8", "byte 0xe9", f"offset {content.index(0xe9)}")

    def test_encoded_surrogate(self):
        self.refused(PANEL.replace("q1", "q\ud83d").encode("utf-8", "surrogatepass"), "UTF-8", "byte 0xed")

    def test_raw_control_character(self):
        self.refused(PANEL.replace("q1", "q\x001"), "line 1", "not valid JSON")

    def test_nested_lists(self):
        for name, content in {"alone.json": "[" * 100_000 + "]" * 100_000, "open.json": "[" * 100_000,
                              "extra.json": PANEL[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
                              "grade.json": PANEL.replace("[3]", "[" * 100_000 + "]" * 100_000)}.items():
            with self.subTest(name):
                self.refused(content, "nested too deeply", name=name)
                (self.folder / name).unlink()

    def test_nested_objects_of_every_depth(self):
        """Whether the JSON reader or the walk over sections gives up, the file is named."""
        for depth in (200, 900, 1100, 2500, 6000, 20_000):
            with self.subTest(depth):
                self.write("fine.json", PANEL)
                self.write("deep.json", '{"x": ' * depth + "1" + "}" * depth)
                status, _, problems = run_main("--directory", self.folder, "--write")
                self.assertIn("deep.json", problems)
                self.assertIn("skipped" if status == 0 else "nested too deeply", problems)

    def test_integer_of_any_length_is_refused_where_a_grade_stands(self):
        for digits in (20, 399, 400, 4300, 4301, 50_000):
            with self.subTest(digits):
                self.refused(PANEL.replace("[3]", f"[{'9' * digits}]"), "queries[0].rankings.m[0]")

    def test_number_too_large_anywhere(self):
        """Huge numbers are no reason to fail with anything but a RecordError, wherever they stand."""
        huge = "9" * 4300
        for old, new in (('"cutoffs": [1]', f'"cutoffs": [{huge}]'), ('{"3": 1}', f'{{"3": {huge}, "2": {huge}}}'),
                         ('"cutoffs": [1]', f'"cutoffs": [1], "depth": {huge}'), ('"cutoffs": [1]', f'"cutoffs": [1], "tolerance": {huge}'),
                         ('"cutoffs": [1]', f'"cutoffs": [1], "grades": {{"max": {huge}}}'),
                         ('"cutoffs": [1]', f'"cutoffs": [1], "reference": {{"queries": {huge}}}')):
            with self.subTest(new[:40]):
                self.write("huge.json", PANEL.replace(old, new))
                status, _, problems = run_main("--directory", self.folder, "--write")
                self.assertIn(status, (0, 2))
                self.assertEqual(bool(problems), status == 2)

    def test_cutoff_beyond_any_ranking(self):
        """A cutoff of 10^12 beside 10^18 known passages would need an ideal of 10^12 grades: an error that names the cutoffs."""
        self.refused(PANEL.replace("[1]", "[1, 1000000000000]").replace('{"3": 1}', '{"3": 1000000000000000000}'), "cutoffs")
        self.write("odd.json", PANEL.replace('{"3": 1}', '{"3": 1000000000000000000}'))
        status, _, problems = run_main("--directory", self.folder, "--explain", "odd", "q1", "--at", "1000000000000")
        self.assertEqual(status, 2)
        self.assertIn("--at", problems)

    def test_file_over_the_limit(self):
        limit = metrics.MAX_BYTES
        self.addCleanup(setattr, metrics, "MAX_BYTES", limit)
        metrics.MAX_BYTES = 1000
        self.write("large.json", PANEL + " " * (1000 - len(PANEL)))
        self.assertEqual(run_main("--directory", self.folder, "--write")[0], 0)
        self.refused(PANEL + " " * (1001 - len(PANEL)), "size", "limit", "1,000 bytes", name="larger.json")

    def test_file_far_over_the_limit_takes_bounded_memory(self):
        """A sparse file of 8 GB is refused after reading no more than the limit."""
        with open(self.write("sparse.json", ""), "wb") as file:
            file.truncate(8 * 2**30)
        code = "import metrics, sys; metrics.MAX_BYTES = 10**6; sys.exit(metrics.run_command(lambda: metrics.main(sys.argv[1:])))"
        done = subprocess.run([sys.executable, "-c", code, "--directory", str(self.folder)], cwd=ROOT, capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("sparse.json: the size is over the limit", done.stderr)

    def test_path_that_is_no_file(self):
        (self.folder / "folder.json").mkdir()
        (self.folder / "dangling.json").symlink_to(self.folder / "nowhere")
        status, _, problems = run_main("--directory", self.folder)
        self.assertEqual(status, 2)
        self.assertIn("folder.json: cannot be read: Is a directory", problems)
        self.assertIn("dangling.json: cannot be read: No such file", problems)
        with self.assertRaisesRegex(metrics.RecordError, "missing.json: cannot be read: No such file"):
            metrics.load_record(self.folder / "missing.json")
        status, _, problems = run_main("--directory", self.folder / "nowhere")
        self.assertEqual(status, 2)
        self.assertIn("nowhere: cannot be read: No such file", problems)


class ParsedRecords(TestCase):
    """load_record and parse_record: the small values that everything else relies on."""

    def test_panel(self):
        value = {"models": {"a": {"name": "A"}, "b": {}}, "depth": 4, "cutoffs": [1, 3], "tolerance": 0.5, "comparisons": [["b", "a"]],
                 "grades": {"max": 2, "useful": 1, "gain": "linear"},
                 "queries": [{"id": "q1", "type": "t", "reference_grade_counts": {"0": 2, "2": 1}, "selected": {"a": 1, "b": 0},
                              "rankings": {"b": [], "a": [0, {"grade": None, "excluded": True, "reason": "unjudged"}, 2]}}]}
        record = metrics.parse_record(value, "folder/retriever.json", "ab12")
        self.assertEqual((record.name, record.sha256, list(record.blocks), record.warnings), ("retriever.json", "ab12", [""], []))
        panel = record.blocks[""]
        self.assertEqual((panel.place, panel.depth, panel.cutoffs, panel.max_grade, panel.useful, panel.gain, tuple(panel.gains)),
                         ("", 4, (1, 3), 2, 1, "linear", (0, 1, 2)))
        self.assertEqual(panel.models, {"a": {"name": "A"}, "b": {}})
        self.assertEqual((panel.comparisons, panel.tolerance, panel.ids, panel.types, panel.counts),
                         ((("b", "a"),), 0.5, ("q1",), ("t",), ((2, 0, 1),)))
        self.assertEqual(panel.rankings, {"a": (bytes([0, metrics.EXCLUDED, 2]),), "b": (b"",)})
        self.assertEqual(panel.selected, {"a": (1,), "b": (0,)})

    def test_defaults(self):
        panel = metrics.parse_record(json.loads(PANEL), "x.json").blocks[""]
        self.assertEqual((panel.depth, panel.max_grade, panel.useful), (None, 3, 2))
        self.assertEqual((panel.gain, tuple(panel.gains)), ("exponential", (0, 1, 3, 7)))
        self.assertEqual((panel.tolerance, panel.types, panel.selected), (None, None, None))

    def test_first_model_is_the_base_of_the_others(self):
        value = json.loads(PANEL)
        value["models"], value["queries"][0]["rankings"] = {"z": {}, "a": {}, "k": {}}, {"a": [], "k": [], "z": []}
        self.assertEqual(metrics.parse_record(value, "x.json").blocks[""].comparisons, (("z", "a"), ("z", "k")))

    def test_parsing_leaves_the_value_as_it_was(self):
        value = json.loads((DATA / "valid" / "selected-precision.json").read_text(encoding="utf-8"))
        before = json.dumps(value)
        metrics.summarize(metrics.parse_record(value, "x.json"))
        self.assertEqual(json.dumps(value), before)

    def test_sha256_is_of_the_bytes(self):
        import hashlib

        path = self.write("x.json", PANEL + "\r\n")
        self.assertEqual(metrics.load_record(path).sha256, hashlib.sha256(PANEL.encode() + b"\r\n").hexdigest())

    def test_parse_json_names_its_source(self):
        with self.assertRaisesRegex(metrics.RecordError, r"golden.jsonl: line 3: .*not valid JSON"):
            metrics.parse_json('{"a": 1', "golden.jsonl: line 3")
        with self.assertRaisesRegex(metrics.RecordError, r"f: a\.b\[1\]: .*NaN"):
            metrics.parse_json('{"a": {"b": [1, NaN]}}', "f")
        with self.assertRaisesRegex(metrics.RecordError, r'f: a: duplicate key "b"'):
            metrics.parse_json('{"a": {"b": 1, "c": 2, "b": 3}}', "f")
        self.assertEqual(metrics.parse_json(' [1, 2.5, null, "\u2028", -0] ', "f"), [1, 2.5, None, "\u2028", 0])

    def test_warnings_do_not_stop(self):
        value = json.loads(PANEL)
        value["comparison"] = []
        value["queries"][0]["rankng"] = {}
        warnings = metrics.parse_record(value, "x.json").warnings
        self.assertEqual(len(warnings), 2)
        self.assertIn("x.json: comparison: unknown key", warnings[0])
        self.assertIn("x.json: queries[0].rankng: unknown key", warnings[1])

    def test_members_without_a_block_are_named(self):
        """A list of tables or a section with misspelt keys is not computed, so it must not pass in silence; a text may."""
        warnings = metrics.parse_record({"about": "text", "graded": json.loads(PANEL), "public": [{"measure": "m"}],
                                         "other": {"querys": []}}, "x.json").warnings
        self.assertEqual([warning.split(": ")[1] for warning in warnings], ["public", "other"])

    def test_quote(self):
        self.assertEqual([metrics.quote(value) for value in (None, True, 2.0, 7)], ["null", "true", "2.0", "7"])
        self.assertIn('"3"', metrics.quote("3"))
        self.assertLess(len(metrics.quote("x" * 10_000)), 80)


class Fuzz(TestCase):
    """Records with one to three random faults are either summarized or refused with a RecordError, whatever the fault."""

    EXCLUDED = {"grade": None, "excluded": True, "reason": "unjudged"}
    RECORD = {
        "panel": {
            "models": {"a": {}, "b": {}}, "depth": 5, "cutoffs": [1, 3], "grades": {"max": 3, "useful": 2, "gain": "linear"},
            "comparisons": [["a", "b"]], "tolerance": 0.1, "reference": {"queries": 2, "excluded_positions": {"a": 1, "b": 0}},
            "queries": [{"id": "q1", "type": "t", "reference_grade_counts": {"0": 4, "3": 1, "2": 1}, "selected": {"a": 1, "b": 2},
                         "rankings": {"a": [0, EXCLUDED, 3], "b": [3, 2]}},
                        {"id": "q2", "type": "u", "reference_grade_counts": {"0": 2, "3": 1}, "selected": {"a": 1, "b": 0},
                         "rankings": {"a": [3], "b": [0, 3]}}]},
        "table": {"measure": "m", "models": {"a": {}}, "comparisons": [["a", "b"]], "datasets": {
            "d": {"queries": 2, "scores": {"a": [0.1, 0.2], "b": [0.3, 0]}}, "e": {"queries": 1, "scores": {"a": [1]}}}},
        "serving": {"checks": {"k": {"value": 1, "at_least": 0.5, "passed": True}, "l": {"values": [1, 2], "at_most": 1}}}}
    VALUES = [None, True, False, 0, 1, -1, 2, 4, 255, 256, 10**19, -10**30, 10**400, 0.0, -0.0, 1.0, 0.5, 1e308, 5e-324, "", "a", "b", "3",
              "\u2028", "x\ny", [], {}, [[]], [{}], {"": 0}, {"a": 1}, [1], [0, 0], [None], {"grade": None, "excluded": True},
              {"grade": 1}, ["a", "b"], [["a", "b"]], [1, 2, 3], [True], {"3": 1}, {"0": 0}, [1e-13, 2e-13]]
    KEYS = ["a", "b", "queries", "models", "datasets", "checks", "signature", "", "x.y", "undefined", "3", "grade"]

    def paths(self, value, path=()):
        """The path of every member, however deep."""
        for key, member in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            yield (*path, key)
            yield from self.paths(member, (*path, key))

    def spoil(self, value, pick):
        *steps, key = pick.choice(list(self.paths(value)))
        member = value
        for step in steps:
            member = member[step]
        new, action = json.loads(json.dumps(pick.choice(self.VALUES))), pick.random()
        if action < 0.6:
            member[key] = new
        elif action < 0.8:
            del member[key]
        elif isinstance(member, dict):
            member[pick.choice(self.KEYS)] = new
        else:
            member.insert(key, new)

    def test_random_faults(self):
        pick, refused = random.Random(7), 0
        for _ in range(500):
            value = json.loads(json.dumps(self.RECORD))
            for _ in range(pick.choice([1, 1, 1, 2, 3])):
                self.spoil(value, pick)
            text = json.dumps(value)
            try:
                record = metrics.parse_record(value, "x.json")
                summary = json.loads(metrics.dump_json(metrics.summarize(record)))
                self.assertEqual(list(metrics.differences(summary, metrics.summarize(record), 0)), [], text)
            except metrics.RecordError as error:
                refused += 1
                self.assertTrue(error.problems and all(problem.startswith("x.json: ") for problem in error.problems), text)
            except Exception as error:
                self.fail(f"{error!r} for {text}")
        self.assertTrue(100 < refused < 450, refused)  # both kinds do occur
