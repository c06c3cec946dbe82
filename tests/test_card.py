"""Cards: what is marked is checked and rewritten, everything else is left as it is."""

import json
import re
from contextlib import chdir, redirect_stderr, redirect_stdout
from decimal import Decimal
from io import StringIO
from subprocess import CompletedProcess

import metrics
from harness.addresses import AddressError, Library, words_of
from harness.card import main
from harness.markdown import Markdown
from harness.printed import Value, find_printed, is_right, reprint
from tests import DATA, ROOT, TestCase

RECORDS = DATA / "card" / "records"


def library():
    return Library(metrics.load_records(RECORDS)[0])


class PrintedNumbers(TestCase):
    """Numbers as they stand in prose."""

    def test_rounding_follows_the_printed_digits(self):
        for text, value, right in (
                ("56.21%", 0.56214, True), ("56.2%", 0.56214, True), ("56%", 0.56214, True), ("56.22%", 0.56214, False),
                ("0.5621", 0.56214, True), ("0.56", 0.56214, True), ("56.21", 0.56214, False), ("0.5621%", 0.56214, False),
                ("56,21 %", 0.56214, True), ("+5.6 pp", 0.0562, True), ("5.6 percentage points", 0.0562, True),
            ("\u22120.012", -0.0123, True),
                ("-0.000", 0.0001, True), ("**56.21%**", 0.56214, True), ("<b>0.56</b>", 0.56214, True),
            ("[0.1, 0.2]", 0.2, True),
                ("0.1\u20130.2", 0.2, True), ("p < 0.001", 0.0002, True), ("p < 0.001", 0.001, False),
            ("p &lt; 0.05", 0.04, True),
                ("1.2e-05", 0.0000123, True), ("\u5171 0.5", 0.5, True), ("\u51710.5", 0.5, True), ("1.3e-05", 0.0000123, False),
            (".582", 0.5821, True), (".58%", 0.0058, True), ("(-.05)", -0.05, True), ("< .001", 0.0002, True), (".582", 0.5, False),
            ("undefined", None, True), ("0.5", None, False), ("1", 0.5, True)):
            with self.subTest(text=text, value=value):
                self.assertEqual(is_right(find_printed(text, "share"), Value(value)), right)

    def test_an_exact_tie_has_two_right_numbers(self):
        for text, right in (("0.12", True), ("0.13", True), ("0.11", False), ("0.14", False)):
            with self.subTest(text=text):
                self.assertEqual(is_right(find_printed(text, "share"), Value(0.125)), right)
        self.assertEqual(reprint(find_printed("0.99", "share"), Value(0.125)), "0.12")
        self.assertEqual(reprint(find_printed("0.99", "share"), Value(0.375)), "0.38")

    def test_no_binary_rounding_decides(self):
        # 1.005 is below 1.005 in binary, and above it in the digits that the record gives.
        self.assertEqual(reprint(find_printed("9.00%", "share"), Value(0.010051)), "1.01")
        self.assertTrue(is_right(find_printed("1.01%", "share"), Value(0.01005)))

    def test_a_new_number_keeps_the_style(self):
        for text, kind, value, new in (
                ("56.21%", "share", 0.5734, "57.34"), ("56,21 %", "share", 0.5734, "57,34"),
            ("+1.20 pp", "share", -0.012, "-1.20"),
                ("\u22120.012", "share", -0.5, "\u22120.500"), ("+0.3", "share", 0.0, "+0.0"), ("970", "count", 1234, "1,234"),
                ("1.234", "count", 12345, "12.345"), ("1\u202f234", "count", 99, "99"), ("1,234", "raw", 12345.6, "12,346"),
                ("p < 0.001", "share", 0.02, "= 0.020"), ("1.2e-05", "share", 0.00234, "2.3e-3"),
            ("0.5", "share", None, "undefined"), (".582", "share", 0.6914, ".691"), ("-.5%", "share", 0.012, "+1.2"),
            ("1 612", "count", 1734, "1 734"), ("1 612.5", "raw", 1734.52, "1 734.5"),
                ("undefined", "share", 0.5, "0.5000")):
            with self.subTest(text=text, value=value):
                printed = find_printed(text, kind)
                self.assertEqual(reprint(printed, Value(value, kind)), new)

    def test_what_is_no_number(self):
        for text in ("v2", "", "word", "\u00e42", "1undefined", "56.21% of", "5 |", "1.2.3.4 .", "v.5", "1..5", ",582"):
            with self.subTest(text=text):
                self.assertIsNone(find_printed(text, "share"))

    def test_spaces_group_thousands(self):
        for space in " \u00a0\u2007\u2009\u202f":
            for kind in ("count", "raw"):
                with self.subTest(space=space, kind=kind):
                    self.assertEqual(find_printed(f"of 1{space}234{space}567", kind).number, Decimal(1234567))
        for text, number in (("in 2020 612", 612), ("1 61", 61), ("of 12 6123", 6123), ("a1 612", 612), ("3: 225", 225)):
            with self.subTest(text=text):
                self.assertEqual(find_printed(text, "count").number, Decimal(number))

    def test_a_comma_in_a_count_groups(self):
        self.assertEqual(find_printed("12,345", "count").number, Decimal(12345))
        self.assertEqual(find_printed("0,345", "share").number, Decimal("0.345"))


class Comments(TestCase):
    """Which comments of a text are comments."""

    def bodies(self, text):
        return [comment.body.strip() for comment in Markdown(text).comments]

    def test_code_is_text(self):
        for text in ("```\n<!-- a -->\n```\n", "~~~ html\n<!-- a -->\n```\n~~~\n", "`<!-- a -->`\n", "``x ` <!-- a --> ``\n",
                     "    <!-- a -->\n",
                     "text\n\n    code\n\n    <!-- a -->\n", "\t<!-- a -->\n", "> ```\n> <!-- a -->\n> ```\n",
                     "- ```\n  <!-- a -->\n  ```\n",
                     "- item\n\n      <!-- a -->\n", "\\<!-- a -->\n", "````\n```\n<!-- a -->\n````\n",
                     "`two\nlines <!-- a -->`\n", "```\n<!-- a -->"):
            with self.subTest(text=text):
                self.assertEqual(self.bodies(text), [])

    def test_what_only_looks_like_code(self):
        for text in ("`<!-- a -->\n", "text\n    <!-- a -->\n", "- item\n\n  <!-- a -->\n", "1. item\n\n   <!-- a -->\n",
                     "```\n```\n<!-- a -->\n",
                     "`x` <!-- a -->\n", "> ```\n<!-- a -->\n", "\\`<!-- a -->`\n", "one ` two\n\n<!-- a --> `\n",
                     "\ufeff<!-- a -->",
                     "```not `a fence\n<!-- a -->\n", "- a\n  - b\n\n    <!-- a -->\n"):
            with self.subTest(text=text):
                self.assertEqual(self.bodies(text), ["a"])

    def test_a_code_span_ends_with_its_block(self):
        for text in ("- one ` two\n- <!-- a --> `\n", "# one ` two\n<!-- a --> `\n", "one ` two\n# <!-- a --> `\n",
                     "one ` two\n> <!-- a --> `\n", "one `\n---\n<!-- a --> `\n", "one `\n1. <!-- a --> `\n",
                     "| ` | <!-- a --> ` |\n|---|---|\n", "one `\n```\n` <!-- b -->\n```\n<!-- a --> `\n"):
            with self.subTest(text=text):
                self.assertEqual(self.bodies(text), ["a"])

    def test_html_has_no_code(self):
        for text in ("one `\n<!-- a --> `\n", "<!-- b --> `<!-- a -->`\n", "<p>\n`<!-- a -->`\n</p>\n", "<div>\n```\n<!-- a -->\n",
                     "- <!-- b --> `<!-- a -->`\n", "<p>\n\n`<!-- b -->` <!-- a -->\n"):
            with self.subTest(text=text):
                self.assertEqual([body for body in self.bodies(text) if body == "a"], ["a"])
        self.assertEqual(self.bodies("<p>\n\n`<!-- b -->` <!-- a -->\n"), ["a"])
        self.assertEqual(self.bodies("<b>\\<!-- b --></b> `<!-- a -->`\n"), [])

    def test_a_fence_ends_with_its_list_item(self):
        for text in ("- ```\n  code\n\n<!-- a -->\n", "- item\n\n  ```\n  code\ntext <!-- a -->\n", "1. ```\n<!-- a -->\n", "- - x\n  ```\n<!-- a -->\n",
                     "- x\n  - ```\n    code\n  <!-- a -->\n", "text\n    ```\n<!-- a -->\n", "\n    ```\n<!-- a -->\n",
                     "```\n    ```\n<!-- b -->\n```\n<!-- a -->\n", "```\n> ```\n<!-- b -->\n```\n<!-- a -->\n",
                     "1. x\n\n  ```\n<!-- b -->\n  ```\n<!-- a -->\n", "- x\n# h\n  ```\n<!-- b -->\n  ```\n<!-- a -->\n"):
            with self.subTest(text=text):
                self.assertEqual(self.bodies(text), ["a"])
        for text in ("- ```\n  <!-- a -->\n\n  <!-- b -->\n  ```\n", "- x\n  - y\n    ```\n    <!-- a -->\n    ```\n",
                     "- ```\n  x\n```\n<!-- a -->\n"):
            with self.subTest(text=text):
                self.assertEqual(self.bodies(text), [])

    def test_a_comment_ends_at_the_first_end(self):
        self.assertEqual(self.bodies("<!-- old <!-- metrics: x --> <!-- b -->"), ["old <!-- metrics: x", "b"])
        self.assertEqual(self.bodies("<!-- one\n```\ntwo --> <!-- b -->\n"), ["one\n```\ntwo", "b"])

    def test_front_matter_is_no_text(self):
        self.assertEqual(self.bodies("---\nlicense: mit\n# <!-- a -->\n---\n<!-- b -->"), ["b"])
        self.assertEqual(self.bodies("---\n\n<!-- a -->\n\n---\n"), ["a"])  # two lines drawn across the page


class Addresses(TestCase):
    """What an address names."""

    def test_numbers(self):
        for address, value in (
                ("retriever v2 hit@1", 0.5), ("retriever upstream hit@1", 0.25), ("retriever answerable v2 hit@1", 2 / 3),
                ("retriever type generated v2 hit@1", 1.0), ('retriever type "written by hand" v2 hit@1', 0.0),
            ("retriever v2 mrr@3", 0.625),
                ("retriever upstream precision@3", 0.4), ("retriever v2 nDCG@1", 0.5), ("retriever queries", 4),
            ("retriever answerable queries", 3),
                ("retriever eligible@1", 4), ("retriever graded_pairs", 25), ("retriever v2 excluded@3", 0),
            ("retriever v2-upstream hit@1", 0.25),
                ("retriever v2 - upstream hit@1 difference", 0.25), ("retriever v2-upstream mrr@3 wins", 2),
            ("retriever v2-upstream mrr@3 losses", 1),
                ("promotion public scifact v2", 0.75), ("promotion scifact v2", 0.75), ("promotion public average upstream", 0.6),
                ("promotion public scifact queries", 2), ("promotion public average datasets", 1),
            ('promotion "trec covid" v2', 0.25),
                ("promotion public scifact v2-upstream difference", 0.15), ("serving passed", 1), ("serving failed", 1),
                ("serving cosine", 0.999), ("serving drift threshold", 0.01), ("serving cosine values", 2),
            ("serving drift failing", 1)):
            with self.subTest(address=address):
                self.assertAlmostEqual(library().resolve(address).number, value, 9)

    def test_an_address_that_names_nothing_tells_what_is_there(self):
        for address, said in (
                ("retreiver v2 hit@1", "closest: retriever"), ("retriever v3 hit@1", "closest: v2"),
            ("retriever v2 htt@1", "closest: hit@1"),
                ("retriever v2 hit@2", "closest: hit@3, hit@1"), ("retriever v2", "no metric"),
            ("retriever", "no model, comparison or count"),
                ("retriever answerabel v2 hit@1", "no model"),
            ("retriever type written_by_hand v2 hit@1", "closest: written by hand"),
                ("retriever v2-upstrem hit@1 p", "closest: v2-upstream"),
            ("retriever v2-upstream hit@1 q", "no number of a comparison"),
                ("retriever v2 hit@1 extra", "nothing is expected"), ("retriever table hit,ndgc", "closest: ndcg"),
            ("retriever table @2", "no cutoff"),
                ("retriever types", "expected the word table"), ("promotion public scifct v2", "closest: scifact"),
                ("promotion public \"trec covid\" upstream", "absent models were not measured"),
            ("serving cosin", "closest: cosine"), ("", "is empty"),
                ("serving cosine maximum", "no number of a check"), ('retriever "v2', "no model")):
            with self.subTest(address=address), self.assertRaisesRegex(AddressError, re.escape(said)):
                library().resolve(address)

    def test_quoted_words_are_names(self):
        self.assertEqual([word.text for word in words_of("a \"b c\",'d \"e' f&amp;g")], ["a", "b c", 'd "e', "f&g"])
        value = json.loads((RECORDS / "retriever.json").read_text())
        for old, new in (("upstream", "table"), ("v2", "a --> b")):
            value["models"][new] = value["models"].pop(old)
            for query in value["queries"]:
                query["rankings"][new] = query["rankings"].pop(old)
        own = Library([("x.json", metrics.parse_record(value, "x.json"))])
        self.assertEqual(own.resolve('x "table" hit@1').number, 0.25)
        self.assertEqual(own.resolve('x "a --&gt; b" hit@1').number, 0.5)

    def test_a_name_with_a_minus_that_could_be_two_pairs_is_refused(self):
        models = ["c", "b-c", "a", "a-b"]
        value = {"models": {model: {} for model in models}, "cutoffs": [1], "comparisons": [["b-c", "a"], ["c", "a-b"]],
                 "queries": [{"id": "1", "reference_grade_counts": {}, "rankings": {model: [0] for model in models}}]}
        own = Library([("x.json", metrics.parse_record(value, "x.json"))])
        with self.assertRaisesRegex(AddressError, "two comparisons"):
            own.resolve("x a-b-c hit@1 wins")
        self.assertEqual(own.resolve("x a - b-c hit@1 ties").number, 1)

    def test_tables_are_those_of_metrics(self):
        summary = metrics.summarize(metrics.load_record(RECORDS / "retriever.json"))
        self.assertEqual(library().resolve("retriever table").rows, metrics.panel_rows(summary))
        self.assertEqual(library().resolve("retriever types table").rows, metrics.type_rows(summary["types"], (1, 3)))
        rows = library().resolve("retriever answerable table mrr,hit @3 v2").rows
        self.assertEqual(rows, [["", "v2"], ["Hit@3", "100.00%"], ["MRR@3", "0.8333"]])
        self.assertEqual(library().resolve("retriever answerable table hit @3 v2 transposed").rows,
                         [["", "Hit@3"], ["v2", "100.00%"]])
        self.assertEqual(library().resolve("promotion table v2").rows[0], ["data set", "queries", "v2"])
        self.assertEqual(len(library().resolve("serving table").rows), 3)


class Cards(TestCase):
    """The command on whole files."""

    def card(self, action, *cards):
        """Run the command in this process and in the test's folder."""
        out, err = StringIO(), StringIO()
        with chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
            status = metrics.run_command(lambda: main([action, *cards, "--directory", str(RECORDS)]))
        return CompletedProcess(action, status, out.getvalue(), err.getvalue())

    def test_the_command_line(self):
        self.write("card.md", "9<!-- metrics: retriever queries -->\n")
        for action, code, said in (("check", 1, "card.md:1: printed 9, but retriever queries gives 4"),
                                   ("update", 0, "1 updated of"), ("check", 0, "as the records")):
            done = self.run_command("harness", "card", action, "card.md", "--directory", RECORDS)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(said, done.stdout)
        self.assertEqual(self.run_command("harness", "card", "check").returncode, 2)
        self.assertIn("cannot be read", self.run_command("harness", "card", "check", "card.md", "--directory", "nowhere").stderr)

    def test_a_card_without_marks_says_so(self):
        self.write("bare.md", "Text <!-- a comment -->, 56%\n")
        self.write("card.md", "4<!-- metrics: retriever queries -->\n")
        said = "bare.md: no marked numbers: nothing was checked\n"
        done = self.card("check", "bare.md")
        self.assertEqual((done.returncode, done.stdout), (0, said))
        done = self.card("check", "card.md", "bare.md", "--require-marks")
        self.assertEqual((done.returncode, done.stdout),
                         (1, "card.md: 1 marked number and 0 marked tables, as the records give them\n" + said))
        self.assertEqual(self.card("check", "card.md", "--require-marks").returncode, 0)
        with self.assertRaises(SystemExit), redirect_stderr(StringIO()):
            main(["update", "card.md", "--require-marks"])

    def test_right_numbers_pass(self):
        self.write("card.md", "Hit@1 is **50.00%**<!-- metrics: retriever v2 hit@1 --> "
                              "(0.5<!-- METRICS:retriever v2 Hit@1-->) of "
                              "4<!-- metrics:\n retriever queries --> queries.\n")
        done = self.card("check", "card.md")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "card.md: 3 marked numbers and 0 marked tables, as the records give them\n"))

    def test_each_wrong_number_has_its_line(self):
        self.write("card.md", "One 50.01%<!-- metrics: retriever v2 hit@1 -->\n\ntwo 5<!-- metrics: retriever queries -->, "
                              "50<!-- metrics: retriever v2 hit@1 -->\n")
        done = self.card("check", "card.md")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines(), [
            "card.md:1: printed 50.01%, but retriever v2 hit@1 gives 50.00% (0.5)",
            "card.md:3: printed 5, but retriever queries gives 4",
            "card.md:3: printed 50, but retriever v2 hit@1 gives 0 (0.5); it reads as a fraction: % is missing",
            "card.md: 3 marked numbers and 0 marked tables; 3 not as the records give them"])

    def test_update_leaves_all_else_to_the_byte(self):
        before = ("\ufeff# Ünïcode \u2028 列\r\n\r\nTreffer: 12,34 %<!-- metrics: retriever v2 hit@1 -->.\r\n"
                  "<!-- a <!-- b -->\r\n\r\n"
                  "> <!-- metrics: serving table -->\r\n> <!-- /metrics -->\r\n"
                  "\nLF here: 9<!-- metrics: serving passed --> \t\r\n"
                  "```\r\n0.1<!-- metrics: nothing -->\r\n```\r\nlast, without a line end")
        path = self.write("card.md", before)
        self.assertEqual(self.card("update", "card.md").returncode, 0)
        table = ("> | check | worst value | threshold | failing | verdict |\r\n> | --- | ---: | ---: | ---: | ---: |\r\n"
                 "> | cosine | 0.999 | at least 0.99 | 0 of 2 | pass |\r\n> | drift | 0.02 | at most 0.01 | 1 of 1 | FAIL |\r\n")
        after = before.replace("12,34", "50,00").replace("> <!-- /metrics", table + "> <!-- /metrics").replace(" 9<", " 1<")
        self.assertEqual(path.read_bytes().decode(), after)
        stamp = path.stat().st_mtime_ns
        self.assertIn("nothing to update", self.card("update", "card.md").stdout)
        self.assertEqual((path.read_bytes().decode(), path.stat().st_mtime_ns), (after, stamp))
        self.assertEqual(self.card("check", "card.md").returncode, 0)

    def test_a_table_is_written_checked_and_rewritten(self):
        start, end = "- <!-- metrics: retriever table hit @1,3 v2 -->\n", "  <!-- /metrics -->\n"
        path = self.write("card.md", start + end)
        done = self.card("check", "card.md")
        self.assertEqual(done.returncode, 1)
        self.assertIn("card.md:1: no table in the region", done.stdout)
        self.card("update", "card.md")
        text = path.read_text()
        self.assertEqual(text, start + "  |  | v2 |\n  | --- | ---: |\n  | Hit@1 | 50.00% |\n  | Hit@3 | 75.00% |\n" + end)
        for changed, code, said in (
                (text.replace("50.00%", "51.00%"), 1, "card.md:4: printed 51.00%, but Hit@1, v2 is 50.00%"),
                (text.replace("50.00%", "**50.00%**   "), 0, "1 marked table"),
                (text.replace("  | Hit@3 | 75.00% |\n", ""), 1, "card.md:2: rows that lack: Hit@3"),
                (text.replace("| v2", "| v3"), 1, "columns that lack: v2"),
                (text.replace("50.00%", "51.00%").replace("  | Hit@3 | 75.00% |\n", ""), 1, "card.md:4: printed 51.00%"),
                (text.replace(" 50.00% |", ""), 1, "card.md:4: printed nothing, but Hit@1, v2 is 50.00%"),
                (text.replace("  | --- | ---: |\n", "  text\n"), 1, "no table in the region")):
            with self.subTest(said=said):
                path.write_text(changed)
                done = self.card("check", "card.md")
                self.assertEqual(done.returncode, code)
                self.assertIn(said, done.stdout)
                self.card("update", "card.md")
                self.assertEqual(path.read_text(), changed if code == 0 else text)

    def test_comments_in_a_region_stay(self):
        path = self.write("card.md",
                          "<!-- metrics: retriever table hit @1 v2 -->\n<!-- a note -->\n\n"
                          "| | v2 |\n|-|-|\n| Hit@1 | 1% |\n\nWords.\n"
                                     "<!-- /metrics -->\n")
        self.card("update", "card.md")
        self.assertEqual(path.read_text(),
                         "<!-- metrics: retriever table hit @1 v2 -->\n<!-- a note -->\n\n|  | v2 |\n| --- | ---: |\n"
                                           "| Hit@1 | 50.00% |\n\nWords.\n<!-- /metrics -->\n")

    def test_broken_markers_are_named_with_their_line(self):
        for text, said in (
                ("\n<!-- metrics: retriever table -->\n", ":2: this region is never closed"),
            ("<!-- /metrics -->", ":1: /metrics closes nothing"),
                ("<!-- metrics: retriever table -->\n1<!-- metrics: retriever queries -->\n<!-- /metrics -->",
                 ":2: a marker inside the region that opens in line 1"),
                ("4<!-- metrics: retriver queries -->", "closest: retriever"),
            ("4<!-- metric: retriever queries -->", "looks like a misspelt marker"),
                ("4<!-- metrics: retriever queries", "never closed; expected -->"),
            ("word<!-- metrics: retriever queries -->", 'no number right before'),
                ("4<!-- metrics: retriever queries -->, Punkte: +9,8 <!-- x -->a  word<!-- metrics: retriever queries -->",
                 'but "a word"; expected'),
                ("and a\nword<!-- metrics: retriever queries -->", 'but "word"; expected'),
                ("4<!-- metrics: retriever queries --><!-- metrics: retriever queries -->", "but nothing; expected"),
                ("of 1 004<!-- metrics: retriever queries -->", '"1 004" could be one number or two'),
                ("1 612<!-- metrics: retriever queries -->", "gives 4; put a word between two numbers"),
                ("4 |<!-- metrics: retriever queries -->", "no number right before"),
            ("<!-- metrics: -->", "the address is empty"), ("5%<!-- metrics: retriever queries -->", "is a count"),
                ("word <!-- metrics: retriever table -->\n<!-- /metrics -->", "a line of its own"),
                ("<!-- metrics: retriever tabel -->\n<!-- /metrics -->", "no model, comparison or count"),
                ("<!-- metrics: retriever model-index -->", "front matter"),
            ("<!-- metrics: x table -->\n<!-- /metrics: x -->", "a closing marker has no address"),
                ("---\na: b\n# metrics: retriever model-index\n---\n", ":3: this region is never closed"),
            ("---\na: b\n# /metrics\n---\n", ":3: # /metrics closes nothing"),
                ("---\na: b\n# metrics: retriever table\n# /metrics\n---\n", "ends in model-index"),
                ("<!-- metrics: retriever table -->\n| a |\n|---|\n\n| b |\n|---|\n<!-- /metrics -->", "2 tables in one region")):
            with self.subTest(text=text):
                path = self.write("card.md", text)
                for action in ("check", "update"):
                    done = self.card(action, "card.md")
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertRegex(done.stderr, r"^error: card\.md:\d+: ")
                    self.assertIn(said, done.stderr)
                self.assertEqual(path.read_text(), text)

    def refused(self, *texts):
        """Each text is an error of its line for check and update, and stays as it is. H, Q, D: 0.5, 4 and 0.25."""
        marks = {"H": "retriever v2 hit@1", "Q": "retriever queries", "D": "retriever v2-upstream hit@1"}
        for text in texts:
            with self.subTest(text=text):
                content = "Text.\nIt is " + re.sub("[HQD]", lambda mark: f"<!-- metrics: {marks[mark[0]]} -->", text) + "\n"
                path = self.write("card.md", content)
                for action in ("check", "update"):
                    done = self.card(action, "card.md")
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertRegex(done.stderr, r"^error: card\.md:2: ")
                self.assertEqual(path.read_text(encoding="utf-8"), content)

    def accepted(self, *texts):
        """Each text is right as it stands."""
        marks = {"H": "retriever v2 hit@1", "Q": "retriever queries", "D": "retriever v2-upstream hit@1"}
        for text in texts:
            with self.subTest(text=text):
                self.write("card.md", re.sub("[HQD]", lambda mark: f"<!-- metrics: {marks[mark[0]]} -->", text) + "\n")
                done = self.card("check", "card.md")
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_goes_on_after_the_comment_is_refused(self):
        self.refused("50.00H%", "0.50H%", "0.5H %", "0.5H**%**", "0.5H\\%", "0.5H&#37;", "0.5Hpp", "0.5H percent", "4Q,000", "4Q0", "4Qk",
                     "4Q.5", "4Q&nbsp;000", "4Q\u200b0", "4Q<!-- x -->0", "4Q\u00b2", "4Q\u4e07", "50%H%")
        self.accepted("4Q, 5", "4Q.", "4Q million", "4Q&nbsp;of", "(4Q)", "**4Q**", "4Q\u4e2a", "4Q points", "0.25D to 0.5H", "50%H-")

    def test_a_sign_that_the_number_does_not_take_is_refused(self):
        self.refused("&minus;0.25D", "&#8722;0.25D", "&ndash;0.25D", "\u20110.25D", "\uff0d0.25D", "\u20140.25D", "by - 0.25D",
                     "by \u2212 0.25D", "-**0.25**D", "-<b>0.25</b>D", "-(0.25D)", "by &minus; 0.25D", "by -\t0.25D", "--0.25D",
                     "word-0.25D")
        self.accepted("- 0.25D", "> - 0.25D", "a\n- 0.25D", "1. - 0.25D", "---\n0.25D", "by \u2014 0.25D", "0.1\u20130.25D", "+0.25D",
                      "it - 4Q", "- **0.25**D", "* 0.25D", "a\n\n---\n0.25D")

    def test_a_number_in_pieces_is_refused(self):
        self.refused("**1**4Q", "9*4*Q", "1&nbsp;4Q", "1&thinsp;4Q", "1&#44;4Q", "1<wbr>4Q", "1,<!-- x -->4Q", "&#57;50%H", "9\u200b4Q",
                     "9\u20064Q", "9**50%**H", "1,**4**Q", "v<b>4</b>Q", "\u00bd4Q", "~~50%~~H", "<del>50%</del>H", "~50%~H",
                     "10<sup>4</sup>Q", "1\u066c4Q", f"1<!-- {'x' * 2000} -->4Q", "1\u20444Q")
        self.accepted("**4**Q", "`4`Q", "<b>4</b>Q", "<td>4Q</td>", "of\u00a04Q", "~4Q", "=**4**Q", "| 4Q |")

    def test_a_count_is_a_whole_number(self):
        self.refused("0.004Q", "0,004Q", "42,4Q", ".72Q", "1.612e3Q", "4.0Q")
        self.assertIsNone(find_printed("0 225", "count"))
        for text in ("0.225", "0,225"):
            self.assertNotEqual(find_printed(text, "count").number, Decimal(225))

    def test_one_broken_card_stops_the_update_of_all(self):
        path = self.write("good.md", "9<!-- metrics: retriever queries -->")
        self.write("bad.md", "9<!-- metrics: retriever quries -->\n9<!-- metrics: nothing -->")
        self.write("latin.md", b"\xff")
        done = self.card("update", "good.md", "bad.md", "latin.md", "missing.md")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 4)
        self.assertEqual(path.read_text(), "9<!-- metrics: retriever queries -->")

    def test_the_file_behind_a_link_is_written(self):
        path = self.write("real/card.md", "9<!-- metrics: retriever queries -->")
        (self.folder / "link.md").symlink_to(path)
        self.card("update", "link.md")
        self.assertTrue((self.folder / "link.md").is_symlink())
        self.assertEqual(path.read_text(), "4<!-- metrics: retriever queries -->")

    def test_unmarked_tables_are_suggestions(self):
        self.write("card.md", "| Model | nDCG@1 | Hit@1 (%) | other |\n|---|---|---|---|\n| `example/v2` | 0.5 | 50 | 7 |\n"
                              "| **upstream** | 0.1429 | 26.00 | 1 |\n\n"
                              "| metric | V2 |\n|---|---|\n| MRR@3 | 0.83 |\n\n| v2 | Hit@1 |\n|---|---|\n| x | 99% |\n\n"
                              "| name | value |\n|---|---|\n| a | 1 |\n\n"
                              "| Hit@1 v2 |  |\n|---|---|\n")
        done = self.card("check", "card.md")
        self.assertEqual(done.returncode, 0)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0],
                         r"^suggestion: card\.md:1: this table agrees in 2 of 4 numbers with retriever; "
                         r"mark it .*<!-- metrics: retriever table -->")
        self.assertEqual([line.split(",")[0] for line in lines[1:3]],
                         ["suggestion: card.md:4: printed 0.1429 (nDCG@1", "suggestion: card.md:4: printed 26.00 (Hit@1 (%)"])
        self.assertIn("card.md:6: this table agrees with retriever answerable", lines[3])
        self.assertEqual(lines[-1], "card.md: no marked numbers: nothing was checked")

    def test_a_model_index_is_generated_and_checked(self):
        head = "---\nlicense: mit\n# metrics: retriever answerable model-index hit @1 v2; promotion public model-index v2\n"
        end = "# /metrics\nlanguage: en\n---\n# Card\n"
        path = self.write("card.md", head + end)
        self.assertEqual(self.card("check", "card.md").returncode, 1)
        self.card("update", "card.md")
        text = path.read_text()
        self.assertTrue(text.startswith(head + "model-index:\n- name: \"example/v2\"\n") and text.endswith(end))
        self.assertEqual(re.findall(r"value: (.*)", text), ["66.667", "75.000", "25.000"])
        self.assertEqual(re.findall(r'    - type: "(.*)"', text), ["hit_at_1", "ndcg_at_10", "ndcg_at_10"])
        self.assertEqual(re.findall(r'dataset:\n      type: "(.*)"\n      name: "(.*)"', text), [
            ("retriever-answerable", "retriever answerable"), ("scifact", "scifact"), ("trec-covid", "trec covid")])
        self.assertEqual(self.card("check", "card.md").returncode, 0)
        path.write_text(text.replace("66.667", "67.667"))
        done = self.card("check", "card.md")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"card\.md:15: printed value: 67\.667, but .* gives value: 66\.667")
        self.card("update", "card.md")
        self.assertEqual(path.read_text(), text)

    def test_an_unmarked_model_index_is_a_suggestion(self):
        self.write("card.md", "---\nmodel-index:\n- name: example/v2\n  results:\n  - metrics:\n"
                              "    - type: hit_at_1\n      value: 50.0\n"
                              "    - type: mrr_at_3\n      value: 0.7\n---\n# metrics: a heading\n")
        done = self.card("check", "card.md")
        self.assertEqual(done.returncode, 0)
        self.assertIn("this model-index agrees in 1 of 2 numbers with retriever", done.stdout)
        self.assertIn("card.md:9: printed 0.7 (example/v2), but retriever gives 0.6250", done.stdout)

    def test_a_commented_list_of_metrics_is_no_marker(self):
        self.write("card.md", "---\nlicense: mit\n# metrics: [accuracy]\n---\nText\n")
        self.assertEqual(self.card("check", "card.md").returncode, 0)


class Documentation(TestCase):
    """harness/docs/card.md is true."""

    def page(self, name):
        return (ROOT / "harness" / "docs" / f"{name}.md").read_text(encoding="utf-8")

    def test_every_address_in_the_page_resolves(self):
        own = Library(metrics.load_records(ROOT / "records")[0])
        addresses = [address for address in re.findall(r"(?:<!--|#) metrics: ([^`\n]*?)(?: -->|`|\n)", self.page("card"))
                     if not address.startswith("ADDRESS")]
        self.assertGreater(len(addresses), 10)
        for address in addresses:
            for part in address.split(";"):
                with self.subTest(address=part):
                    own.resolve(part)

    def test_the_page_shows_what_the_command_prints(self):
        command, shown = re.search(r"```\n\$ (.*?)\n(.*?)```", self.page("card"), re.DOTALL).groups()
        card = re.search(r"```markdown\n(.*?)```", self.page("card"), re.DOTALL)[1]
        self.assertEqual((DATA / "card" / "card.md").read_text(encoding="utf-8"), card)
        done = self.run_command(*command.split()[2:], cwd=ROOT)
        self.assertEqual((done.returncode, done.stdout), (1, shown))
