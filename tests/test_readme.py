"""The documentation is true: its commands give the output it shows, its examples are records, its links lead somewhere."""

import json
import re
import shlex
import subprocess
import sys
import unittest

from harness.__main__ import COMMANDS
from metrics import parse_record
from tests import ROOT, TestCase

README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORDS_README = (ROOT / "records" / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


# The records that this repository is published with; whoever adds their own need not describe them here.
SHIPPED = ["dimensions", "pipeline", "promotion", "retriever", "serving-qualification", "serving"]


def blocks(text, language=""):
    """The fenced blocks of a Markdown text."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


class Readme(TestCase):
    def test_first_lines(self):
        """One sentence, then the main command with its output: a reader sees both without scrolling."""
        lines = README.splitlines()
        self.assertTrue(lines[0].startswith("# "))
        self.assertEqual(lines[4:6], ["```", "$ python metrics.py --directory ."])

    def test_shown_output_is_real(self):
        """Every line after a command stands in its output in this order; ... stands for lines left out."""
        shown = [block for block in blocks(README) if block.startswith("$ ")]
        self.assertGreaterEqual(len(shown), 2)
        for block in shown:
            command, *lines = block.splitlines()
            program, *arguments = shlex.split(command.removeprefix("$ "))
            self.assertEqual(program, "python")
            done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            output = iter(done.stdout.splitlines())
            for line in lines:
                if line != "...":
                    self.assertIn(line, output, command)

    def test_main_command_shows_every_record(self):
        self.assertEqual(re.findall(r"^(\S+)-summary\.json: [\d,]+ values reproduced$", README, re.MULTILINE), SHIPPED)

    def test_every_command_is_documented(self):
        table = README[README.index("## The harness"):]
        for command in COMMANDS:
            self.assertIn(f"`{command}`", table)
        for page in ROOT.glob("harness/docs/*.md"):
            self.assertIn(f"harness/docs/{page.name}", README)

    def test_commands_in_the_documentation_exist(self):
        for page in (ROOT / "README.md", ROOT / "records" / "README.md", *ROOT.glob("harness/docs/*.md")):
            for command in re.findall(r"python3? -m harness ([a-z][\w-]*)", page.read_text(encoding="utf-8")):
                self.assertIn(command, COMMANDS, page.name)

    def test_links_and_images(self):
        for text, folder in ((README, ROOT), (RECORDS_README, ROOT / "records")):
            for mark, words, target in re.findall(r"(!?)\[([^\]]*)\]\(([^)]+)\)", text):
                if target.startswith("#"):
                    self.assertIn(f"\n## {target[1:].replace('-', ' ')}\n", text.lower())
                    continue
                self.assertTrue((folder / target).is_file(), target)
                self.assertGreater(len(words), 30 if mark else 0, f"{target} needs a text that says the finding")

    def test_numbers_in_alt_texts_are_those_of_the_figures(self):
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README):
            figure = (ROOT / target).read_text(encoding="utf-8")
            for number in re.findall(r"\d+\.\d+", words):
                self.assertIn(number, figure, f"{target}: {words}")

    def test_marked_numbers_are_those_of_the_records(self):
        """Also that they are marked at all: every table of results stands between marks."""
        done = self.run_command("harness", "card", "check", ROOT / "README.md", "--directory", ROOT / "records")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        results = README[README.index("## Results"):README.index("## The record format")]
        unmarked = re.sub(r"<!-- metrics: .*? table.*?<!-- /metrics -->", "", results, flags=re.DOTALL)
        self.assertNotIn("\n|", unmarked)

    def test_every_figure_is_shown_or_linked(self):
        for figure in ROOT.glob("figures/*.svg"):
            if figure.name.split(".")[0] in SHIPPED:
                self.assertIn(f"figures/{figure.name}", README)

    def test_ci_calls_the_test_command(self):
        commands = blocks(README[README.index("## Tests"):])[0].splitlines()
        self.assertEqual(commands, ["python -m unittest"])
        self.assertIn(f"\n{commands[0]}\n", CI)
        self.assertIn("\npython metrics.py --directory .", CI)


class Examples(TestCase):
    def test_json_examples_are_records_without_a_word_of_warning(self):
        examples = [*blocks(README, "json"), *blocks(RECORDS_README, "json")]
        self.assertGreaterEqual(len(examples), 4)
        for example in examples:
            self.assertEqual(parse_record(json.loads(example), "example.json").warnings, [])

    def test_records_readme_speaks_of_every_record(self):
        for name in SHIPPED:
            self.assertIn(f"### {name}.json\n", RECORDS_README)


if __name__ == "__main__":
    unittest.main()
