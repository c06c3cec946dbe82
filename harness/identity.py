"""Says what exactly was evaluated: the identity of an index and of its queries, the version of the code, and a cache by both."""

import os
import sys

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
    problems += [f"{key}: {quote(index[key])} in {index_path}, but {quote(query[key])} in {query_path};"
                 " build the index anew or embed the queries with its model"
                 for key in index if key in query and (type(index[key]), index[key]) != (type(query[key]), query[key])]
    if problems:
        raise RecordError(problems)
    return index


def code_version(*names):
    """A hash over the source files of modules, given by name, and of the harness's own retrieval code."""
    own = ("harness.bm25", "harness.chunker", "harness.normalize", "harness.relevance", "harness.searching", "harness.evaluation")
    files = {name: getattr(sys.modules.get(name), "__file__", None) or module_file(name) for name in (*own, *names)}
    return canonical_hash({name: sha256_of(path) for name, path in files.items() if path and os.path.isfile(path)})


def module_file(name):
    """The file of a module that is not imported yet, or None."""
    from importlib.util import find_spec

    try:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec else None


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
