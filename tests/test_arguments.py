"""The command line's types and errors: what was expected, what was probably meant, and no usage text above it."""

import argparse
import contextlib
import io
from decimal import Decimal

from harness import arguments
from metrics import RecordError
from tests import TestCase


class ParserTest(TestCase):
    def parser(self):
        parser = arguments.Parser(prog="python -m harness example")
        parser.add_argument("--depth", type=arguments.positive)
        parser.add_argument("--unjudged", choices=["zero", "exclude"])
        return parser

    def said(self, *words):
        with contextlib.redirect_stderr(io.StringIO()) as printed, self.assertRaises(SystemExit) as ended:
            self.parser().parse_args(words)
        self.assertEqual(ended.exception.code, 2)
        return printed.getvalue()

    def test_an_error_is_two_lines_without_the_usage(self):
        self.assertEqual(
            self.said("--depth", "0"),
            "example: error: argument --depth: expected an integer of at least 1, got 0\n(example --help tells more)\n",
        )

    def test_a_misspelt_option_names_the_closest(self):
        self.assertIn("unrecognized arguments: --unjugded zero; did you mean --unjudged?", self.said("--unjugded", "zero"))
        self.assertIn("did you mean --depth?", self.said("--dept=3"))  # no abbreviations: a later option could take them over
        self.assertNotIn("did you mean", self.said("depth"))

    def test_control_characters_of_an_argument_do_not_reach_the_terminal(self):
        self.assertNotIn("\x1b", self.said("--depth", "\x1b[31m"))

    def test_what_fits_is_given_back(self):
        self.assertEqual(vars(self.parser().parse_args(["--depth", "7"])), {"depth": 7, "unjudged": None})


class TypesTest(TestCase):
    def test_what_is_taken(self):
        for kind, text, value in (
            (arguments.positive, "12", 12),
            (arguments.share, "0.5", 0.5),
            (arguments.exact_share, "0.95", Decimal("0.95")),
            (arguments.cutoffs, "10,1,3,3", [1, 3, 10]),
            (arguments.pair, "a=b", ["a", "b"]),
            (arguments.named_file, "a=b=c", ("a", "b=c")),
            (arguments.named_file, "ü=\udcff", ("ü", "\udcff")),  # a file's name can be any bytes
            (arguments.filled, "x", "x"),
            (arguments.unicode_text, "é", "é"),
        ):
            with self.subTest(kind=kind.__name__, text=text):
                self.assertEqual(kind(text), value)

    def test_what_is_refused(self):
        for kind, texts in (
            (arguments.positive, ("0", "-1", "1.5", "", "٣", "9" * 5000)),
            (arguments.share, ("0", "1.1", "nan", "x", "")),
            (arguments.exact_share, ("0", "1.1", "nan", "x", "")),
            (arguments.cutoffs, ("1,,2", "0")),
            (arguments.pair, ("a", "=b", "a=")),
            (arguments.named_file, ("bm25", "=f", "a=", "\udcff=f")),
            (arguments.filled, ("", " ")),
            (arguments.unicode_text, ("", "\udcff")),
        ):
            for text in texts:
                with self.subTest(kind=kind.__name__, text=text[:9]), self.assertRaises(argparse.ArgumentTypeError):
                    kind(text)

    def test_closest(self):
        self.assertEqual(arguments.closest("densev1", ["bm25", "dense-v1"]), "; did you mean dense-v1?")
        self.assertEqual(arguments.closest("NDCG@5", ["nDCG@10", "P@10"]), "; did you mean nDCG@10?")
        self.assertEqual(arguments.closest("zzz", ["bm25"]), "")


class FilesTest(TestCase):
    def test_an_output_that_is_an_input_is_refused_under_any_name(self):
        path = self.write("a", "text")
        (self.folder / "link").symlink_to(path)
        for output in (path, self.folder / "link", self.folder / "." / "a"):
            with self.assertRaises(RecordError) as raised:
                arguments.keep_inputs(output, ["-", self.folder / "none", path])
            self.assertIn("would replace the input", str(raised.exception))
        arguments.keep_inputs(self.folder / "new", [path])
        arguments.keep_inputs(self.write("b", "text"), [path])
