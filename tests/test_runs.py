"""The reader of runs and qrels: its fast way and its plain ways agree on any input, and its errors say what is wrong."""

import gzip
import json
import os
import random
import shutil
import threading
from unittest import mock

from harness import columns, export, fuse, qrels, record_options, runs, score, source
from metrics import RecordError
from tests import DATA, ROOT, TestCase


def outcome(path, **options):
    """What a run reads as: {query: (documents, scores)}, or the error's text."""
    try:
        return {query: (documents, list(map(float, scores))) for query, documents, scores in runs.rankings(path, **options)}
    except RecordError as error:
        return str(error)


def qrels_outcome(path, max_grade=3):
    try:
        return qrels.read_qrels(path, max_grade)
    except RecordError as error:
        return str(error)


def with_score(line, token):
    """A run's line with another score."""
    fields = line.split()
    return " ".join([*fields[:4], token or "5.", *fields[5:]])


class RandomRun:
    """A small run, mostly well-formed, with one oddity or none."""

    NUMBERS = (".5", "5.", "0.5", ".50", "0.50", "5.0", "5.00", "05.0", "5", "0.0", "-5", "-.5", "+5", "00.5")
    NO_NUMBERS = (".", "-", "+", "..", "-.", "+.", ".-", "--", "0..", "5-5", "5e", "e5", ".e5", "0x5")
    SCORES = ("{:.6f}", "{:.2f}", "{:.1f}", "{:.0f}", "{:g}", "{:e}", "-{:.3f}", "{:.17f}", "+{:.2f}", "{:08.3f}")
    ODDITIES = {  # what befalls one line
        "tab": lambda line: line.replace(" ", "\t", 1),
        "two spaces": lambda line: line.replace(" ", "  ", 1),
        "space before": lambda line: " " + line,
        "space after": lambda line: line + " ",
        "carriage return": lambda line: line + "\r",
        "return inside": lambda line: line.replace(" ", "\r", 1),
        "form feed": lambda line: line.replace(" ", "\f", 1),
        "blank": lambda line: "\n" + line,
        "spaces only": lambda line: "  \n" + line,
        "no-break space": lambda line: line.replace("d", "d\u00a0"),
        "nan": lambda line: line.replace(".", "nan", 1),
        "underscore": lambda line: line.replace(".", "_", 1),
        "infinity": lambda line: " ".join([*line.split()[:4], "inf", "t"]),
        "overflow": lambda line: " ".join([*line.split()[:4], "1e999", "t"]),
        "no tag": lambda line: line.rpartition(" ")[0],
        "long tag": lambda line: line + " x",
        "broken line": lambda line: line.replace(" ", "\n", 3).replace("\n", " ", 2),
        "twice": lambda line: line + "\n" + line,
        "other tag": lambda line: line + "x",
        "query alone": lambda line: line.split()[0],
        "unusual rank": lambda line: line.replace(" Q0", " 0"),
        "zero byte": lambda line: line.replace("d", "d\0"),
        "point alone": lambda line: with_score(line, "."),
        "shorter score": lambda line: with_score(line, line.split()[4][:-1]),
        "no document": lambda line: line.replace(" d", " ", 1),
    }

    def __init__(self, generator):
        self.generator = generator
        lines = []
        for query in range(generator.randint(1, 5)):
            lines += self.query_lines(f"q{query}" if generator.random() < 0.9 else "q é".replace(" ", ""))
        if generator.random() < 0.15:
            generator.shuffle(lines)
        if lines and generator.random() < 0.5:
            place = generator.randrange(len(lines))
            lines[place] = self.ODDITIES[generator.choice(list(self.ODDITIES))](lines[place])
        ending = "\r\n" if generator.random() < 0.1 else "\n"
        text = ending.join(lines) + generator.choice((ending, "", ending * 2))
        self.content = ("\ufeff" * (generator.random() < 0.1) + text).encode()

    def query_lines(self, query):
        generator = self.generator
        style = generator.choice(self.SCORES[:2] if generator.random() < 0.6 else self.SCORES)
        top, count = generator.choice((1, 12, 1e20 if generator.random() < 0.05 else 130)), generator.choice((1, 2, 3, 6, 12))
        scores = [generator.choice((round(generator.random() * top, 1), generator.random() * top)) for _ in range(count)]
        if generator.random() < 0.8:
            scores.sort(reverse=True)
        names = generator.sample(range(20), count)
        tokens = self.short_tokens(count) if generator.random() < 0.15 else list(map(style.format, scores))
        return [f"{query} Q0 d{name} {rank} {token} tag" for rank, (name, token) in enumerate(zip(names, tokens), 1)]

    def short_tokens(self, count):
        """Scores that are one number in many spellings, or nearly a number, often of one width."""
        generator = self.generator
        if generator.random() < 0.3:  # all alike, but one cut short: 2.50, 2.50, 2.5
            token = generator.choice(("2.50", "2.5", ".50", "0.500"))
            tokens = [token] * count
            tokens[generator.choice((-1, generator.randrange(count)))] = token[:-1]
            return tokens
        some = self.NUMBERS + self.NO_NUMBERS * (generator.random() < 0.3)
        if generator.random() < 0.6:
            some = [token for token in some if len(token) == len(generator.choice(some))] or ["5.5"]
        return [generator.choice(some) for _ in range(count)]


class FastAndPlainTest(TestCase):
    """The fast way is a proof or it gives way: on thousands of files every way reads the same."""

    def test_runs(self):
        generator, fast = random.Random(11), [0, 0]
        path = self.folder / "a.run"
        for case in range(2000):
            path.write_bytes(RandomRun(generator).content)
            options = {
                "ties": generator.choice(("trec", "input")),
                "depth": generator.choice((None, 1, 3, 10)),
                "drop_self": generator.random() < 0.2,
            }
            with mock.patch.object(source, "BLOCK", generator.choice((40, 150, 4096))):
                found = outcome(path, **options)
            ways = [self.is_proved(path, way) for way in runs.FAST_WAYS]
            fast = [fast[0] + ways[0], fast[1] + (ways[1] and not ways[0])]
            with mock.patch.object(runs, "_ways", lambda *_: runs.PLAIN_WAYS):
                self.assertEqual(found, outcome(path, **options), (case, options, path.read_bytes()))
        self.assertGreater(fast[0], 500, "too few of the files take the fast way for this test to say anything")
        self.assertGreater(fast[1], 50, "too few of the files take the fast way for scattered lines")

    def is_proved(self, path, way):
        with source.Source(path) as opened:
            try:
                return bool(list(way(opened, False)))
            except columns.Unproven:
                return False

    def test_what_is_nearly_a_number_is_refused_at_every_place_of_a_query(self):
        for token in RandomRun.NO_NUMBERS:
            for others in ((token, token), ("1.5", token), (token, "1.5"), (".50", token), ("5." + "0" * len(token), token)):
                path = self.write("a.run", "".join(f"q Q0 d{rank} {rank} {score} t\n" for rank, score in enumerate(others)))
                self.assertIn(f"expected a finite number as score, got {token}", str(outcome(path)), others)

    def test_equal_scores_of_different_length_tie(self):
        for scores in (("2.50", "2.5"), ("2.500", "2.5"), ("2.5", "2.50"), ("2.0", "2."), ("0.5", ".5"), ("2.50", "2.50", "2.5")):
            path = self.write("a.run", "".join(f"q Q0 d{rank} 1 {score} t\n" for rank, score in enumerate(scores)))
            documents = outcome(path)[b"q"][0]
            self.assertEqual(documents, sorted(documents, reverse=True), scores)

    def test_qrels(self):
        generator, fast = random.Random(12), 0
        path = self.folder / "a.qrels"
        oddities = [
            lambda line: line.replace(" ", "\t"),
            lambda line: line + " ",
            lambda line: line.replace(" ", "  ", 1),
            lambda line: line[:-1] + "-1",
            lambda line: line[:-1] + "9",
            lambda line: line[:-1] + "1.0",
            lambda line: line + "\r",
            lambda line: line + "\n" + line,
            lambda line: line + "\n" + line[:-1] + "3",
            lambda line: "\n" + line,
            lambda line: line.rpartition(" ")[0],
            lambda line: line + " x",
            lambda line: line[:-1] + "\u0662",
            lambda line: line[:-1] + "+1",
            lambda line: line[:-1] + "-1\n" + line[:-1] + "0",
            lambda line: line[:-1] + "-1\n" + line[:-1] + "-1",
            lambda line: line[:-1] + "0\n" + line[:-1] + "-0",
        ]
        for case in range(1000):
            width = generator.choice((3, 4))
            lines = [
                f"q{generator.randrange(3) if generator.random() < 0.2 else line // 4} {'0 ' * (width == 4)}d{name} {generator.randrange(4)}"
                for line, name in enumerate(generator.sample(range(30), generator.randint(1, 9)))
            ]
            if generator.random() < 0.5:
                place = generator.randrange(len(lines))
                lines[place] = generator.choice(oddities)(lines[place])
            if width == 3 and generator.random() < 0.5:
                lines.insert(0, "query-id\tcorpus-id\tscore")
            path.write_text("\n".join(lines) + generator.choice(("\n", "", "\n\n")))
            with mock.patch.object(source, "BLOCK", generator.choice((30, 4096))):
                found = qrels_outcome(path)
            fast += self.is_fast_qrels(path)
            with mock.patch.object(qrels, "_fast_qrels", mock.Mock(side_effect=columns.Unproven)):
                self.assertEqual(found, qrels_outcome(path), (case, path.read_bytes()))
        self.assertGreater(fast, 250, "too few of the files take the fast way for this test to say anything")

    def is_fast_qrels(self, path):
        with source.Source(path) as opened:
            try:
                return bool(qrels._fast_qrels(opened, 3))
            except columns.Unproven:
                return False


class SourceTest(TestCase):
    """Files of every kind, and what goes wrong with them."""

    TEXT = b"".join(
        b"q%d Q0 d%d %d %d.5 t\n" % (query, document, document + 1, 90 - document)
        for query in range(40)
        for document in range(30)
    )

    def assert_refused(self, path, *expected, **options):
        found = outcome(path, **options)
        self.assertIsInstance(found, str)
        for words in expected:
            self.assertIn(words, found)

    def test_gzip_by_content_and_not_by_name(self):
        plain = outcome(self.write("a.run", self.TEXT))
        self.assertEqual(len(plain), 40)
        self.assertEqual(outcome(self.write("a.run.gz", gzip.compress(self.TEXT))), plain)
        self.assertEqual(outcome(self.write("b.run", gzip.compress(self.TEXT[:600]) + gzip.compress(self.TEXT[600:]))), plain)
        self.assertEqual(outcome(self.write("c.run.gz", self.TEXT)), plain)

    def test_a_scattered_gzip_run_is_read_twice(self):
        lines = self.TEXT.splitlines(keepends=True)
        random.Random(1).shuffle(lines)
        self.assertEqual(outcome(self.write("a.run.gz", gzip.compress(b"".join(lines)))), outcome(self.write("a.run", self.TEXT)))

    def test_a_damaged_gzip_file(self):
        whole = gzip.compress(self.TEXT)
        self.assert_refused(self.write("cut.gz", whole[: len(whole) // 2]), "cut.gz", "damaged or cut short")
        self.assert_refused(self.write("cut.gz", whole[:-4]), "cut.gz", "damaged or cut short")
        self.assert_refused(self.write("bad.gz", whole[:40] + bytes(20) + whole[60:]), "bad.gz", "gzip file is damaged")
        self.assert_refused(self.write("head.gz", whole[:5]), "head.gz", "gzip")

    def test_what_is_no_run(self):
        self.assert_refused(self.folder, "directory")
        self.assert_refused(self.folder / "none", "No such file")
        self.assert_refused(self.write("wide.run", self.TEXT.decode().encode("utf-16")), "UTF-16")
        self.assert_refused(self.write("empty.run", b""), "no results")
        self.assert_refused(self.write("blank.run", b"\n \n\t\n"), "no results")
        self.assert_refused(self.write("long.run", b"q Q0 " + b"d" * (source.LONGEST_LINE + source.BLOCK)), "a line of more than")
        self.assert_refused(self.write("binary.run", bytes(range(256)) * 4), "line 1")

    def test_a_file_that_changes_while_it_is_read(self):
        path = self.write("a.run", self.TEXT)
        with mock.patch.object(source, "BLOCK", 500), self.assertRaises(RecordError) as raised:
            for _ in runs.rankings(path):
                with open(path, "ab") as file:
                    file.write(b"q99 Q0 d 1 1.0 t\n")
        self.assertIn("changed while it was read", str(raised.exception))

    def test_a_pipe(self):
        if not hasattr(os, "mkfifo"):
            self.skipTest("no named pipes here")
        lines = self.TEXT.splitlines(keepends=True)
        random.Random(1).shuffle(lines)  # scattered, so that the pipe's content is needed twice
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(b"".join(lines),))
        writer.start()
        found = outcome(pipe)
        writer.join()
        self.assertEqual(found, outcome(self.write("a.run", self.TEXT)))

    def test_line_ends_marks_and_blank_lines_change_nothing(self):
        plain = outcome(self.write("a.run", self.TEXT))
        for content in (
            b"\xef\xbb\xbf" + self.TEXT,
            self.TEXT.replace(b"\n", b"\r\n"),
            self.TEXT[:-1],
            self.TEXT + b"\n\n",
            self.TEXT.replace(b" ", b"\t"),
            self.TEXT.replace(b"\n", b"\n\n"),
            self.TEXT.replace(b" ", b"  "),
        ):
            self.assertEqual(outcome(self.write("b.run", content)), plain)

    def test_unicode_line_separators_do_not_end_a_line(self):
        for mark in ("\u2028", "\u0085", "\u00a0", "\x1c"):
            found = outcome(self.write("a.run", f"q Q0 a{mark}b 1 2.0 t\n"))
            self.assertEqual(list(found[b"q"][0]), [f"a{mark}b".encode()])


class FormatsTest(TestCase):
    def test_ranx_json(self):
        path = self.write("a.json", json.dumps({"q1": {"a": 1, "b": 2.5, "c": 2.5}, "q2": {"x": -1}}))
        self.assertEqual(outcome(path), {b"q1": ([b"c", b"b", b"a"], [2.5, 2.5, 1.0]), b"q2": ([b"x"], [-1.0])})
        self.assertEqual(outcome(path, ties="input")[b"q1"][0], [b"b", b"c", b"a"])
        self.assertEqual(outcome(self.write("b.gz", gzip.compress(path.read_bytes()))), outcome(path))
        found = qrels.read_qrels(self.write("qrels.json", '{"q1": {"a": 1, "b": -1}}'))
        self.assertEqual(found.judged, {b"q1": {b"a": 1, b"b": 0}})
        self.assertIn("1 negative grade", found.warnings[0])

    def test_a_byte_order_mark_and_blank_lines_before_json(self):
        text = b'{"q1": {"a": 1, "b": 2}}'
        plain, judged = outcome(self.write("a.json", text)), qrels.read_qrels(self.write("a.json", text)).judged
        for start in (b"", b"\xef\xbb\xbf", b"\r\n\n  ", b"\xef\xbb\xbf\n\t"):
            self.assertEqual(outcome(self.write("run", start + text)), plain)
            self.assertEqual(outcome(self.write("run.gz", gzip.compress(start + text))), plain)
            self.assertEqual(qrels.read_qrels(self.write("judged", start + text)).judged, judged)

    def test_wrong_json(self):
        for text, expected in (
            ('{"q": {"d": "1"}}', "query q, document d"),
            ('{"q": [1]}', "query q"),
            ("{}", "top level"),
            ("[]", "top level"),
            ('{"q": {"d": NaN}}', "NaN"),
            ('{"q": {"d": 1, "d": 2}}', "duplicate"),
            ('{"q": {"d": true}}', "expected a number"),
            ("{", "line 1"),
            ('{"q": {"d": 1' + "0" * 350 + "}}", "expected a number"),
        ):
            found = outcome(self.write("a.json", text))
            self.assertIsInstance(found, str, text)
            self.assertIn(expected, found)
        for text, expected in (('{"q": {"d": 1.5}}', "are the qrels and the run swapped?"), ('{"q": {"d": 4}}', "0..3")):
            self.assertIn(expected, qrels_outcome(self.write("q.json", text)))

    def test_an_empty_ranking_is_one(self):
        path = self.write("a.json", '{"q1": {}, "q2": {"a": 1}}')
        for ties in ("trec", "input"):
            self.assertEqual(outcome(path, ties=ties, depth=3, drop_self=True), {b"q1": ([], []), b"q2": ([b"a"], [1.0])})
        found = qrels.read_qrels(path)
        self.assertEqual(found.judged, {b"q2": {b"a": 1}})
        self.assertEqual(found.warnings, [f"{path}: 1 query without a judgment, left out: q1"])
        message = qrels_outcome(self.write("b.json", '{"q1": {}}'))
        self.assertIn("no judgments; expected {query: {document: grade}}, got q1 without any", message)

    def test_columns_that_are_taken_for_json(self):
        named, begins = "read as JSON because its name ends in .json", "its first character is {"
        line, odd = "q1 Q0 d1 1 2.0 t\n", '{"a":1} Q0 d1 1 2.0 t\n'
        for name, text, expected in (
            ("a.json", line, f"{named}; if it holds columns, it needs another name"),
            ("a.json.gz", gzip.compress(line.encode()), f"{named}; if it holds columns, it needs another name"),
            ("a.json", b"q\xe9 Q0 d1 1 2.0 t\n", "not UTF-8"),
            ("a.run", odd, f"because {begins}; if it holds columns, it needs the lines of another query first"),
            ("a.json", odd, f"{named} and {begins}; if it holds columns, it needs another name and the lines of another query first"),
        ):
            self.assertIn(expected, str(outcome(self.write(name, text))))
            self.assertIn(expected, str(qrels_outcome(self.folder / name)))
        self.assertEqual(list(outcome(self.write("b.run", line + odd))), [b"q1", b'{"a":1}'])  # the advice works

    def test_names_in_messages_stay_on_one_line(self):
        path = self.write("a\n\x1b[31m\u202e.run", "q1 Q0 d1\n")
        self.assertIn("a\\x0a\\x1b[31m\\u202e.run: line 1: expected 6 fields", outcome(path))
        self.assertIn("a\\x0a\\x1b[31m\\u202e.run: line 1", qrels_outcome(path))

    def test_a_lone_surrogate_in_an_id_is_named_where_it_cannot_be_written(self):
        found = outcome(self.write("a.json", '{"q": {"\\ud800": 1}}'))
        document = found[b"q"][0][0]
        with self.assertRaises(RecordError):
            source.text_of(document, "a.json")

    def test_ms_marco(self):
        path = self.write("a.tsv", "7\td1\t2\n7\td2\t1\n8\td1\t1\n")
        self.assertEqual(outcome(path, marco=True), {b"7": ([b"d2", b"d1"], [-1, -2]), b"8": ([b"d1"], [-1])})
        self.assertIn("a rank", outcome(self.write("a.tsv", "7\td1\t1.5\n"), marco=True))
        self.assertIn("3 fields", outcome(self.write("a.tsv", "7 Q0 d1 1 1.5 t\n"), marco=True))

    def test_warnings_of_qrels(self):
        found = qrels.read_qrels(self.write("a.qrels", "1 0 a 1\n1 0 a 1\n1 0 b -2\n1 0 c -1\n"))
        self.assertEqual(found.judged, {b"1": {b"a": 1, b"b": 0, b"c": 0}})
        self.assertEqual(len(found.warnings), 2)
        self.assertIn("1 judgment repeated alike", found.warnings[0])
        self.assertIn("2 negative grades", found.warnings[1])

    def test_judgments_are_alike_if_the_given_grades_are(self):
        found = qrels.read_qrels(self.write("a.qrels", "1 0 a -1\n1 0 a -1\n1 0 b 0\n1 0 b -0\n"))
        self.assertIn("2 judgments repeated alike", found.warnings[0])
        for first, second in ((-1, 0), (0, -1), (-1, -2)):
            message = qrels_outcome(self.write("a.qrels", f"1 0 a {first}\n1 0 a {second}\n"))
            self.assertIn(f"line 2: query 1, document a: grade {second} here, {first} on line 1", str(message))

    def test_an_id_that_is_no_utf8_is_named(self):
        with self.assertRaises(RecordError) as raised:
            source.text_of(b"caf\xe9", "a.run")
        self.assertIn("caf\\xe9", str(raised.exception))

    def test_the_stated_example_files_are_read(self):
        for name in ("example.qrels", "old.trec", "new.trec"):
            self.assertTrue((DATA / "runs" / name).is_file())


class DocsTest(TestCase):
    """Every command of the page on runs prints what the page says."""

    def test_the_page(self):
        shutil.copytree(DATA / "runs", self.folder / "tests" / "data" / "runs")
        page = (ROOT / "harness" / "docs" / "runs.md").read_text("utf-8")
        for block in page.split("```\n")[1::2]:
            for step in block.removeprefix("$ ").split("\n$ "):
                command, _, expected = step.partition("\n")
                words = command.split()
                if words[0] == "cat":
                    found = (self.folder / words[1]).read_text("utf-8")
                else:
                    self.assertEqual(words[:3], ["python", "-m", "harness"])
                    done = self.run_command("harness", *words[3:])
                    found = done.stderr + done.stdout
                self.assertEqual(found.rstrip("\n"), expected.rstrip("\n"), command)

    def test_the_page_names_every_option(self):
        page = (ROOT / "harness" / "docs" / "runs.md").read_text("utf-8")
        options = [*score.OPTIONS, *score.FLAGS]
        for parser in (record_options.make_parser(), export._parser(), fuse._parser()):
            options += [name for action in parser._actions for name in action.option_strings if name.startswith("--")]
        for option in set(options) - {"--help", "--output"}:
            self.assertIn(f"{option}", page)
