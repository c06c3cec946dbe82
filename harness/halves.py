"""Reads the two halves of a long run in two processes, where a second core is free.

What both bring together is what one would have read; whatever cannot be proved in halves is left to one process.
"""

import marshal
import os

from harness.columns import Unproven
from harness.runs import prove
from harness.source import BLOCK

WORTHWHILE = 64 * 2**20  # bytes; a shorter file is read sooner than a second process has begun to pay


def free_cores():
    """How many cores this process may use and nobody else is using, as far as the last minute tells."""
    try:
        return len(os.sched_getaffinity(0)) - os.getloadavg()[0]
    except (AttributeError, OSError):  # not every system tells
        return 0


def in_halves(path, collect):
    """[collect(queries) of each half], or None if the file is not worth two processes or cannot be proved in halves.

    queries yields (query, documents, scores) as harness.runs.rankings does, unordered; collect makes of them something that
    marshal can write.
    """
    if not (hasattr(os, "fork") and os.path.isfile(path) and os.path.getsize(path) >= WORTHWHILE and free_cores() >= 1.5):
        return None
    middle = split_point(path)
    if not middle:
        return None
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        _work_and_exit(path, middle, collect, receiver, sender)
    os.close(sender)
    try:
        with os.fdopen(receiver, "rb") as pipe:
            first = collect(prove(path, 0, middle))
            second = pipe.read()
    except BaseException as error:  # also Ctrl-C: nobody wants the other half any more
        from signal import SIGKILL

        os.kill(child, SIGKILL)
        os.waitpid(child, 0)
        if isinstance(error, Unproven):
            return None
        raise
    _, status = os.waitpid(child, 0)
    return [first, marshal.loads(second)] if status == 0 else None


def _work_and_exit(path, middle, collect, receiver, sender):
    """The second process: its half goes into the pipe; it leaves without a word, and on failure without a half."""
    status = 1
    try:
        os.close(receiver)
        content = marshal.dumps(collect(prove(path, middle, None)))
        with os.fdopen(sender, "wb") as pipe:
            pipe.write(content)
        status = 0
    finally:
        os._exit(status)


def split_point(path):
    """Where, past the middle of a file, a line begins another query than the line before; None if not within two blocks."""
    with open(path, "rb") as file:
        start = os.path.getsize(path) // 2
        file.seek(start)
        lines = file.read(2 * BLOCK).splitlines(keepends=True)[:-1]
    queries = [line.split(None, 1)[:1] for line in lines]
    place = next((place for place in range(2, len(lines)) if queries[place] != queries[place - 1]), None)
    return start + sum(map(len, lines[:place])) if place else None
