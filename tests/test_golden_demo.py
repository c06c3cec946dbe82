"""The golden set about this repository's own documentation: sound, and above its floors."""

import shutil

from harness.documents import read_documents
from harness.golden_items import load_golden
from tests import ROOT
from tests.in_process import TestCase

GOLDEN = ROOT / "harness" / "demo" / "golden.jsonl"
RUN = ("harness", "golden", "run", GOLDEN, "--docs", "README.md", "records", "harness/docs", "--split", "heading", "--size", 1000, "--overlap", 200,
       "--floors", ROOT / "harness" / "demo" / "floors.json")


class Demo(TestCase):
    def test_has_questions_of_six_types_with_spans(self):
        items = load_golden(GOLDEN).items
        self.assertEqual({item.type for item in items}, {"factual", "numeric", "procedural", "causal", "negative", "out of scope"})
        self.assertGreaterEqual(sum(item.answerable for item in items), 30)
        for item in items:
            self.assertEqual(item.answerable, item.type != "out of scope")
            self.assertEqual(bool(item.spans), item.answerable)
            self.assertTrue(all(span.quote for span in item.spans))

    def test_holds_its_floors_as_the_page_says(self):
        result = self.run_command(*RUN, cwd=ROOT)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("8 of 8 floors hold", result.stdout)
        page = (ROOT / "harness" / "docs" / "golden.md").read_text(encoding="utf-8")
        self.assertIn("harness/demo/golden.jsonl --docs README.md records harness/docs --split heading --size 1000 --overlap 200", page)

    def test_reanchoring_is_possible_after_any_edit_that_keeps_the_quotes(self):
        for name in ("README.md", "records/README.md", *(str(path.relative_to(ROOT)) for path in (ROOT / "harness" / "docs").glob("*.md"))):
            self.write(name, "# A new first line\n\n" + (ROOT / name).read_text(encoding="utf-8"))
        shutil.copy(GOLDEN, self.folder / "golden.jsonl")
        broken = self.run_command("harness", "golden", "check", "golden.jsonl", "--docs", "README.md", "records", "harness/docs")
        self.assertEqual(broken.returncode, 2)
        self.assertIn("--reanchor", broken.stderr)
        mended = self.run_command("harness", "golden", "check", "golden.jsonl", "--docs", "README.md", "records", "harness/docs", "--reanchor")
        self.assertEqual(mended.returncode, 0, mended.stderr)
        self.assertEqual(load_golden(self.folder / "golden.jsonl", None).sha256, load_golden(GOLDEN).sha256)
        self.assertEqual(set(read_documents([self.folder / "records"])), {f"{self.folder.as_posix()}/records/README.md"})
