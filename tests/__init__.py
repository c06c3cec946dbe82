"""What every test shares: warnings are errors, a folder of its own, and commands run as a user runs them."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).resolve().parent / "data"
# Public rankings and labels that are not part of the repository; checks that need them skip when they are not there.
EXTERNAL_DATA = Path(os.environ.get("RETRIEVAL_DATA", ROOT.parent / "shared" / "data"))


class TestCase(unittest.TestCase):
    """A test case in which a warning is an error."""

    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("error")

    @property
    def folder(self):
        """A fresh temporary folder, made on first use and removed after the test."""
        if not hasattr(self, "_folder"):
            self._folder = Path(tempfile.mkdtemp())
            self.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def write(self, name, content):
        """Write text or bytes to a file in the folder and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run_command(self, program, *arguments, cwd=None, stdin=None, env=None):
        """Run metrics.py, figures.py or a module such as harness in a process of its own; text in and out."""
        start = [str(ROOT / program)] if program.endswith(".py") else ["-m", program]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **(env or {})}
        return subprocess.run([sys.executable, "-W", "error", *start, *map(str, arguments)], cwd=cwd or self.folder,
                              input=stdin, capture_output=True, text=True, encoding="utf-8", env=environment)
