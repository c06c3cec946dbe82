"""Makes folders, and lets one process at a time change a file that several may add to, such as a log."""

import contextlib
import os

from metrics import RecordError


def make_folder(path):
    """Make a folder and those above it; nothing for an empty path. Raises RecordError."""
    try:
        if path:
            os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise RecordError(f"{path}: cannot be made: {error.strerror}") from None


@contextlib.contextmanager
def locked(path):
    """Hold the lock of a file: an empty file beside it, locked until the block ends or the process does."""
    folder, name = os.path.split(os.fspath(path))
    try:
        handle = os.open(os.path.join(folder, f".{name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        lock(handle)
        yield
    finally:
        os.close(handle)


def lock(handle):
    """Wait for the lock of an open file; where the platform has none, go on without."""
    try:
        import fcntl
    except ImportError:
        with contextlib.suppress(ImportError, OSError):
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        return
    with contextlib.suppress(OSError):  # some network file systems have no locks
        fcntl.flock(handle, fcntl.LOCK_EX)
