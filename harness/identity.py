"""Says what exactly was evaluated: the identity of an index and of its queries, the version of the code, and a cache by both."""

import os
import sys
from itertools import accumulate

from harness.documents import plain
from harness.files import canonical_hash, sha256_of
from harness.locks import make_folder
from metrics import RecordError, dump_json, quote, read_json, write_whole

REQUIRED = ("model", "version", "dimensions")


def check_metas(index_path, query_path):
    """The identity of an index, after checking that queries are embedded as its documents were; None without both paths.

    Each file is a JSON object with model, version and dimensions. These, and whatever else both files have, must be equal.
    Raises RecordError for a mismatch and for a missing file.
    """
    if index_path is None and query_path is None:
        return None
    if index_path is None or query_path is None:
        given, missing = ("--index-meta", "--query-meta") if query_path is None else ("--query-meta", "--index-meta")
        raise RecordError(f"{given} needs {missing} beside it: an index and its queries must come from one model")
    metas, problems = [], []
    for path in (index_path, query_path):
        value, _ = read_json(path)
        if not isinstance(value, dict):
            raise RecordError(f"{path}: top level: expected an object with {', '.join(REQUIRED)}, got {quote(value)}")
        problems += [f"{path}: {key}: missing" for key in REQUIRED if value.get(key) in (None, "")]
        metas.append(value)
    index, query = metas
    problems += [f"{key}: {plain(index[key])} in {index_path}, but {plain(query[key])} in {query_path};"
                 " build the index anew or embed the queries with its model"
                 for key in index if key in query and (type(index[key]), index[key]) != (type(query[key]), query[key])]
    if problems:
        raise RecordError(problems)
    return index


def code_version(*names):
    """A hash over the source of the harness's own retrieval code and of what is named: "module:function" or "file.py:function".

    Of a user's code it takes in every module that it imports from the current folder or from its own, and what those import.
    """
    own = ("harness.bm25", "harness.chunker", "harness.normalize", "harness.relevance", "harness.searching", "harness.evaluation")
    files = [*map(module_file, own), *(file for name in names for file in sources(name.rpartition(":")[0] or name))]
    return canonical_hash(sorted({sha256_of(path) for path in files if path and os.path.isfile(path)}))


def module_file(name):
    """The file of a module, or None."""
    from importlib.util import find_spec

    try:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec else None


def sources(name):
    """The files of a module (or the file of that name) and of all that it imports from its folder or the current one.

    They are read, not imported: a module may open a data base that belongs to the thread that does so. What a function
    such as import_module names is not seen.
    """
    start = name if name.endswith(".py") else module_file(name)
    if not start or not start.endswith(".py"):
        return []
    folder = os.path.dirname(os.path.abspath(start))
    installed = os.path.basename(folder) == "site-packages" or folder == os.path.dirname(os.__file__)
    roots = [os.getcwd()] if installed else [os.getcwd(), folder]
    files, waiting = set(), [os.path.abspath(start)]
    while waiting:
        if (file := waiting.pop()) not in files:
            files.add(file)
            waiting += imported_files(file, roots)
    return sorted(files)


def imported_files(file, roots):
    """The files in the folders `roots` of what a Python file imports anywhere in it; none for one that cannot be parsed."""
    import ast

    try:
        with open(file, "rb") as opened:
            tree = ast.parse(opened.read())
    except (OSError, SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [path for alias in node.names for path in files_of(alias.name, roots)]
        elif isinstance(node, ast.ImportFrom):
            above = [os.path.normpath(os.path.join(file, *[".."] * node.level))]  # a relative import: one folder up for each dot
            for alias in node.names:
                found += files_of(".".join(filter(None, (node.module, alias.name))), above if node.level else roots)
    return found


def files_of(name, roots):
    """The files of a dotted name: its packages' and its own, in each of the folders where there are any."""
    paths = [os.path.join(root, part) for root in roots for part in accumulate(name.split("."), os.path.join)]
    candidates = [file for path in paths for file in (f"{path}.py", os.path.join(path, "__init__.py"))]
    return [os.path.abspath(file) for file in candidates if os.path.isfile(file)]


class Cache:
    """JSON values in a folder, each in a file named by the SHA-256 of the canonical configuration that it came of."""

    def __init__(self, folder):
        self.folder = os.fspath(folder)
        make_folder(self.folder)

    def path(self, configuration):
        """The file of a configuration."""
        return os.path.join(self.folder, canonical_hash(configuration) + ".json")

    def get(self, configuration):
        """The value, or None where there is none or where it cannot be read any more."""
        path = self.path(configuration)
        if not os.path.exists(path):
            return None
        try:
            entry, _ = read_json(path)
        except RecordError:
            return None
        return entry.get("value") if isinstance(entry, dict) and entry.get("configuration") == configuration else None

    def put(self, configuration, value):
        """Keep a value."""
        write_whole(self.path(configuration), dump_json({"configuration": configuration, "value": value}))
