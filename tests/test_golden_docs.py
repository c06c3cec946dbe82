"""The pages on golden sets and sweeps: their examples are run, and nothing they must name is left out."""

import re
import shlex
from argparse import ArgumentParser

from harness.evaluation import METRICS
from harness.golden import parser
from harness.golden_items import KEYS
from harness.sweep import parser as sweep_parser
from tests import ROOT
from tests.in_process import TestCase

DOCS = ROOT / "harness" / "docs"


class Pages(TestCase):
    def test_examples_give_the_output_that_is_printed(self):
        for name in ("golden", "sweep"):
            page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
            examples = re.findall(r"^```\n\$ python -m (harness .*)\n((?:.*\n)*?)```$", page, re.MULTILINE)
            self.assertTrue(examples)
            for command, output in examples:
                words = [str(ROOT / word) if word.startswith("tests/") else word for word in shlex.split(command)]
                result = self.run_command(*words)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout.replace(f"{ROOT}/", ""), output)

    def test_every_command_metric_and_key_is_described(self):
        page = (DOCS / "golden.md").read_text(encoding="utf-8")
        commands = next(action.choices for action in parser()._actions if action.choices)
        for name in commands:
            self.assertIn(f"`golden {name}", page)
        for name in (*METRICS, *KEYS):
            self.assertIn(f"`{name}`" if name != "mrr_uncut" else "`mrr (uncut)`", page)

    def test_every_option_of_the_sweep_is_described(self):
        page = (DOCS / "sweep.md").read_text(encoding="utf-8")
        self.assertIsInstance(sweep_parser(), ArgumentParser)
        for action in sweep_parser()._actions:
            for option in set(action.option_strings) - {"-h", "--help", "--docs"}:
                self.assertIn(f"`{option}", page)
