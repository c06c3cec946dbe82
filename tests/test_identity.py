"""Identity of an index and its queries, the version of the code, the cache."""

import json

from harness.identity import Cache, check_metas, code_version
from metrics import RecordError
from tests import DATA, TestCase

GOLDEN, CHUNKS = DATA / "golden" / "golden.jsonl", DATA / "golden" / "chunks.jsonl"
META = {"model": "m", "version": "1", "dimensions": 384}


class Metas(TestCase):
    def check(self, index, query):
        return check_metas(self.write("index.json", json.dumps(index)), self.write("query.json", json.dumps(query)))

    def test_equal_ones_give_the_identity_of_the_index(self):
        index = {**META, "chunk_size": 800}
        self.assertEqual(self.check(index, {**META, "built": "today"}), index)
        self.assertIsNone(check_metas(None, None))

    def test_any_mismatch_stops(self):
        for change in ({"model": "n"}, {"version": "2"}, {"dimensions": 768}, {"dimensions": "384"}, {"dimensions": 384.0}, {"pooling": "cls"}):
            with self.subTest(change), self.assertRaisesRegex(RecordError, f"{next(iter(change))}: .* in .*index.json, but .* in .*query.json"):
                self.check({**META, "pooling": "mean"}, {**META, "pooling": "mean", **change})

    def test_missing_fields_and_files_stop(self):
        for key in META:
            with self.subTest(key), self.assertRaisesRegex(RecordError, f"query.json: {key}: missing"):
                self.check(META, {name: value for name, value in META.items() if name != key})
        path = self.write("index.json", json.dumps(META))
        with self.assertRaisesRegex(RecordError, "gone.json: cannot be read"):
            check_metas(path, self.folder / "gone.json")
        for pair, words in (((path, None), "--query-meta"), ((None, path), "--index-meta")):
            with self.assertRaisesRegex(RecordError, words):
                check_metas(*pair)
        with self.assertRaisesRegex(RecordError, "expected an object"):
            self.check([], META)

    def test_the_command_stops_before_it_searches(self):
        index, query = self.write("index.json", json.dumps(META)), self.write("query.json", json.dumps({**META, "version": "2"}))
        result = self.run_command("harness", "golden", "run", GOLDEN, "--chunks", CHUNKS, "--index-meta", index, "--query-meta", query, "--log")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn('version: "1"', result.stderr)
        self.assertFalse((self.folder / "eval_logs").exists())


class Caching(TestCase):
    def test_keys_are_canonical(self):
        cache = Cache(self.folder / "cache")
        cache.put({"a": 1, "b": [2]}, {"value": 3})
        self.assertEqual(cache.get({"b": [2], "a": 1}), {"value": 3})
        self.assertIsNone(cache.get({"a": 1, "b": [3]}))
        self.assertEqual(len(cache.path({"a": 1}).rpartition("/")[2]), 64 + len(".json"))

    def test_a_file_that_is_not_sound_or_not_of_this_configuration_is_not_used(self):
        cache = Cache(self.folder / "cache")
        for text in ("", "{", "[]", '{"configuration": {"a": 2}, "value": 1}'):
            with open(cache.path({"a": 1}), "w") as file:
                file.write(text)
            self.assertIsNone(cache.get({"a": 1}))

    def test_the_code_version_is_of_the_source(self):
        self.assertNotEqual(code_version("json"), code_version("string"))
        self.assertEqual(code_version("json"), code_version("json"))

    def test_a_run_is_taken_from_the_cache_until_anything_changes(self):
        self.write("counted.py", "import pathlib\ndef search(question):\n    with open('calls', 'a') as file: file.write('x')\n    return ['tomatoes-2']\n")
        meta = self.write("meta.json", json.dumps(META))

        def run(*more):
            result = self.run_command("harness", "golden", "run", GOLDEN, "--search", "counted:search", "--cache", "cache",
                                      "--index-meta", meta, "--query-meta", meta, "--format", "json", *more)
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout), len((self.folder / "calls").read_text())

        first, calls = run()
        self.assertEqual(calls, 10)
        self.assertEqual(run(), (first, 10))
        self.assertEqual(run("--k", 3)[1], 20)
        self.write("counted.py", (self.folder / "counted.py").read_text() + "# changed\n")
        self.assertEqual(run()[1], 30)
        meta = self.write("meta.json", json.dumps({**META, "version": "2"}))
        self.assertEqual(run()[1], 40)
