"""Identity of an index and its queries, the version of the code, the cache."""

import json
import sys

from harness.identity import Cache, check_metas, code_version
from metrics import RecordError
from tests import DATA
from tests.in_process import TestCase, as_if_alone

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
        self.assertIn('"failed"', next((self.folder / "eval_logs").glob("*.json")).read_text())


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

    def test_the_code_version_takes_in_what_is_imported_from_the_folder(self):
        self.write("my_rag.py", "import json\nfrom helpers.texts import clean\ndef search(question):\n    import lazy\n")
        self.write("helpers/__init__.py", "")
        self.write("helpers/texts.py", "from . import deep\nfrom ..no_such import x\n")
        for name in ("helpers/deep.py", "lazy.py", "unused.py", "broken.py"):
            self.write(name, "x = 1\n")
        with as_if_alone(self.folder):
            versions = {code_version("my_rag:search")}
            self.write("unused.py", "x = 2\n")
            self.assertEqual({code_version("my_rag:search"), code_version("my_rag.py:search")}, versions)
            for count, name in enumerate(("helpers/texts.py", "helpers/deep.py", "helpers/__init__.py", "lazy.py", "my_rag.py"), 2):
                self.write(name, (self.folder / name).read_text() + "# changed\n")
                versions.add(code_version("my_rag:search"))
                self.assertEqual(len(versions), count, name)
            self.write("lazy.py", "no python (")
            self.assertNotIn(code_version("my_rag:search"), versions)
        self.assertNotIn("my_rag", sys.modules)

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
        self.write("counted.py", "import helper\n" + (self.folder / "counted.py").read_text())
        for number in (1, 2):
            self.write("helper.py", f"number = {number}\n")
            self.assertEqual(run()[1], 40 + 10 * number)
