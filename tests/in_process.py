"""Runs a harness command in this process, as a user's run would go: a process of its own costs half a second."""

import contextlib
import io
import os
import signal
import sys
from subprocess import CompletedProcess
from unittest.mock import patch

import tests
from harness.__main__ import main


@contextlib.contextmanager
def as_if_alone(folder):
    """Work in a folder; afterwards nothing that was imported from there is left, nor a path to it."""
    path, modules = list(sys.path), set(sys.modules)
    handler, here = signal.getsignal(signal.SIGTERM), os.getcwd()
    sys.path[:] = [str(tests.ROOT), *map(os.path.abspath, path)]  # a relative one would be another folder from now on
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        signal.signal(signal.SIGTERM, handler)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
        sys.path_importer_cache.clear()


def run_here(*arguments, cwd):
    """harness with these arguments as (returncode, stdout, stderr). Not for a search that hangs.

    After such a one a command ends its process at once, and threads of other tests would look like one.
    """
    out, err = io.StringIO(), io.StringIO()
    with (as_if_alone(cwd), patch("harness.searching.left_behind", return_value=False),
          contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as stop:  # argparse
            status = stop.code
    return CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


class TestCase(tests.TestCase):
    """The shared test case, its harness commands in this process; run_process starts one."""

    run_process = tests.TestCase.run_command

    def run_command(self, program, *arguments, cwd=None, stdin=None, env=None):
        if program != "harness" or stdin or env:
            return self.run_process(program, *arguments, cwd=cwd, stdin=stdin, env=env)
        return run_here(*arguments, cwd=cwd or self.folder)
