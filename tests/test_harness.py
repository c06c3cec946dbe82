"""The harness' own command line: it finds every command, and stops without a traceback."""

import subprocess
import sys
import unittest
from importlib import import_module

from harness.__main__ import COMMANDS, help_text
from tests import ROOT, TestCase


class Commands(TestCase):
    def test_every_command_has_its_module(self):
        for module, what in COMMANDS.values():
            self.assertTrue(callable(import_module(module).main))
            self.assertTrue(what)

    def test_help_names_every_command(self):
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", help_text())

    def test_usage(self):
        self.assertEqual(self.run_command("harness", "--help").returncode, 0)
        nothing = self.run_command("harness")
        self.assertEqual((nothing.returncode, nothing.stdout), (2, ""))
        unknown = self.run_command("harness", "scroe")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("no command 'scroe'; expected one of:", unknown.stderr)

    def test_importing_the_command_line_imports_no_command(self):
        code = "import sys, harness.__main__; print(*sorted(name for name in sys.modules if name.startswith(('harness.', 'metrics'))))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split(), ["harness.__main__"])


if __name__ == "__main__":
    unittest.main()
