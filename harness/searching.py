"""Calls a search function for every question and survives whatever it does.

A search that raises, calls sys.exit, hangs, or returns something else than ids gives a Found with an error.
"""

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Mapping, Set
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, signature
from operator import attrgetter
from typing import NamedTuple

from harness.documents import as_id, shown
from harness.files import Progress
from metrics import RecordError

LONGEST = 86_400  # seconds for one search
WORKER = "golden-search"
TIMEOUTS_IN_A_ROW = 3  # after as many, the rest is not searched: it would take hours to say the same


class Found(NamedTuple):
    """What a search gave for one question: distinct ids, best first; the ids that came again; and an error or None."""

    ids: tuple
    duplicates: tuple
    error: str | None


def load_function(name):
    """The function that "module:function" or "path/to/file.py:function" names. Raises RecordError that says what failed."""
    module, _, attribute = name.rpartition(":")
    if not module or not attribute or module != module.strip() or "/" in module and not module.endswith(".py"):
        raise RecordError(f"{name}: expected MODULE:FUNCTION such as my_rag:search,"
                          " or FILE.py:FUNCTION such as ../rag/my_rag.py:search")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    load = module_of_file if module.endswith(".py") else import_module
    function = foreign(lambda: attrgetter(attribute)(load(module)), f"{name}: cannot be loaded")
    if not callable(function):
        raise RecordError(f"{name}: expected a function, got {shown(function)}")
    return function


def module_of_file(path):
    """The module in a file, loaded once; what it imports is also found in its own folder."""
    path = os.path.abspath(path)
    if path not in sys.modules:
        if (folder := os.path.dirname(path)) not in sys.path:
            sys.path.append(folder)
        spec = spec_from_file_location(path, path)
        sys.modules[path] = module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[path]
            raise
    return sys.modules[path]


def foreign(call, problem):
    """What a call into foreign code gives; whatever it raises, or its exit, becomes a RecordError."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise RecordError(f"{problem}: {type(error).__name__}: {one_line(error)}") from None


def one_line(error):
    """An exception's message on one line of at most 200 characters."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(no message)"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 200 else text[:197] + "..."


def with_depth(search, depth):
    """The search as a function of the question alone: one that has a parameter k is asked for `depth` results."""
    try:
        k = signature(search).parameters.get("k")
    except (TypeError, ValueError):
        k = None
    if k is None:
        return search
    if k.kind is Parameter.POSITIONAL_ONLY:
        return lambda question: search(question, depth)
    return lambda question: search(question, k=depth)


def distinct(result, depth):
    """(ids, duplicates): the first `depth` distinct ids of what a search returned; reads no further than that.

    distinct(["a", "a", 7, "7", "b"], 2) is (("a", "7"), ("a",)). Raises RecordError for what is no sequence of ids.
    """
    if isinstance(result, (str, bytes, Mapping, Set)) or not hasattr(result, "__iter__"):
        got = shown(result)
        if type(result).__name__ == "coroutine":
            result.close()
            got = "a coroutine: wrap the search in asyncio.run"
        raise RecordError(f"expected a list of chunk ids, best first, got {got}")
    ids, duplicates = {}, {}
    for rank, value in enumerate(result, 1):
        try:
            name = as_id(value)
        except ValueError as error:
            raise RecordError(f"rank {rank}: {error}") from None
        if name in ids:
            duplicates[name] = None
        else:
            ids[name] = None
        if len(ids) == depth:
            break
    return tuple(ids), tuple(duplicates)


def found(search, question, depth):
    """The Found of one call."""
    try:
        return Found(*distinct(search(question), depth), None)
    except KeyboardInterrupt:
        raise
    except RecordError as error:
        return Found((), (), one_line(error))
    except BaseException as error:  # also SystemExit: a search that gives up is a failure of that question only
        return Found((), (), f"raised {type(error).__name__}: {one_line(error)}")


class Worker:
    """A thread that makes the search and calls it, so that a call that hangs can be left behind.

    The search is made in the thread that calls it: a data base connection often belongs to the thread that opened it.
    """

    def __init__(self, make, depth):
        self.make, self.depth = make, depth
        self.questions, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        self.thread = threading.Thread(target=self._work, name=WORKER, daemon=True)
        self.thread.start()

    def _work(self):
        try:
            search = with_depth(self.make(), self.depth)
        except BaseException as error:
            self.answers.put(error)
            return
        self.answers.put(None)
        while (question := self.questions.get()) is not None:
            try:
                self.answers.put(found(search, question, self.depth))
            except BaseException as error:  # an interrupt: the waiting thread raises it
                self.answers.put(error)

    def started(self):
        """Wait until the search is made. Raises what making it raised."""
        if (error := self.answers.get()) is not None:
            raise error
        return self

    def ask(self, question, timeout):
        """The Found of a question, or None after `timeout` seconds."""
        self.questions.put(question)
        try:
            answer = self.answers.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stop(self):
        """End the thread."""
        self.questions.put(None)
        self.thread.join()


def search_all(questions, make, depth, timeout=None):
    """A Found per question. `make` gives the search function; timeout in seconds for each call, None for no limit."""
    if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout <= LONGEST):
        raise RecordError(f"timeout: expected seconds above 0 and at most {LONGEST:,}, got {shown(timeout)}")
    with Progress(len(questions), "questions") as progress:
        if timeout is None:
            search, results = with_depth(make(), depth), []
            for question in questions:
                results.append(found(search, question, depth))
                progress.step()
            return results
        return _search_in_threads(questions, make, depth, timeout, progress)


def _search_in_threads(questions, make, depth, timeout, progress):
    """search_all with a time limit."""
    worker, results, in_a_row = Worker(make, depth).started(), [], 0
    for question in questions:
        if in_a_row == TIMEOUTS_IN_A_ROW:
            results.append(Found((), (), f"not searched: {TIMEOUTS_IN_A_ROW} searches in a row timed out"))
            continue
        if worker is None:
            worker = Worker(make, depth).started()
        result = worker.ask(question, timeout)
        in_a_row = in_a_row + 1 if result is None else 0
        if result is None:
            worker = None  # it still hangs; its thread cannot keep the process from ending
            result = Found((), (), f"timed out after {timeout:g} s")
        results.append(result)
        progress.step()
    if worker:
        worker.stop()
    return results


def apart(body):
    """body(out) with everything that searches print sent to stderr, so that it never mixes with the results written to out.

    Ends the process at once if a search left a thread behind that would disturb or prevent its end; else gives the status of body.
    """
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        try:
            status = body(out)
        except RecordError as error:
            if not left_behind():
                raise
            print("\n".join(f"error: {problem}" for problem in error.problems), file=sys.stderr)
            status = 2
        if left_behind():
            for stream in (out, sys.stderr):
                stream.flush()
            os._exit(status)
    return status


def left_behind():
    """Whether a thread of a search is still there."""
    return any(thread.name == WORKER or not thread.daemon
               for thread in threading.enumerate() if thread is not threading.main_thread())
