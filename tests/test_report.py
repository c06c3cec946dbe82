"""The report: one page that holds what metrics.py computes, is safe for any name, and works in a browser."""

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from contextlib import chdir

import metrics
from harness.report import build, json_text, main, panel_data, ranking_text
from tests import DATA, TestCase

OUT = {"grade": None, "excluded": True, "reason": "abstained"}
ODD = "</script><script>alert(1)</script>&\"'\u2028"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def record(queries=40, name="x.json"):
    """A record whose names try to break out of the page; every fifth query has no useful passage."""
    def ranking(seed, most):
        return [OUT if (seed * place) % 13 == 5 else min(most, (seed * place * place) % 4) for place in range(1, seed % 9)]

    value = {"models": {"base": {}, ODD.strip(): {"name": "<b>bold</b>"}}, "cutoffs": [1, 3, 10], "queries": []}
    for number in range(queries):
        useful, most = (9, 3) if number % 5 else (0, 1)
        value["queries"].append({"id": f"q{number} {ODD}", "type": "odd" if number % 2 else ODD.strip(),
                                 "reference_grade_counts": {"0": 20, "1": 9, "2": useful, "3": useful},
                                 "rankings": {"base": ranking(number + 1, most), ODD.strip(): ranking(number + 3, most)}})
    value["queries"][7]["rankings"]["base"] = [OUT]  # not eligible
    value["queries"][8]["rankings"] = {model: [3] for model in value["models"]}  # tied
    return metrics.parse_record(value, name)


class Page(TestCase):
    """The page as text."""

    @classmethod
    def setUpClass(cls):
        cls.record = record()
        cls.panel = cls.record.blocks[""]
        cls.page = build([("x.json", cls.record)], f"Title {ODD}")

    def test_it_asks_for_nothing(self):
        self.assertIn("default-src 'none'", self.page)
        for link in re.findall(r"(?:src|href)=[\"']?([^\"' >]*)", self.page):
            self.assertRegex(link, "^(?:#|data:)")
        self.assertNotRegex(self.page, r"@import|url\(|fetch\(|XMLHttp")

    def test_names_stay_text(self):
        self.assertNotIn("<script>alert", self.page)
        self.assertNotIn("<b>bold", self.page)
        self.assertEqual(len(re.findall("<script", self.page)), 2)
        self.assertIn("&lt;/script&gt;&lt;script&gt;alert(1)", self.page)

    def test_the_data_are_those_of_metrics(self):
        data = json.loads(re.search(r'<script type="application/json" id="p0-0">(.*?)</script>', self.page, re.DOTALL)[1])
        self.assertEqual(data["ids"], list(self.panel.ids))
        for k in self.panel.cutoffs:
            for at, model in enumerate(self.panel.models):
                for metric, values in metrics.query_values(self.panel, model, k).items():
                    place = [own["name"] for own in data["metrics"]].index(metric)
                    self.assertEqual(data["values"][str(k)][place][at], [metrics.rounded(value) for value in values])
        self.assertEqual(data["rankings"][0][12], "".join("-" if grade == 255 else str(grade)
                                                          for grade in self.panel.rankings["base"][12]))

    def test_high_grades_and_empty_rankings(self):
        value = {"models": {"a": {}}, "cutoffs": [1], "grades": {"max": 100, "useful": 12}, "queries": [
            {"id": "1", "reference_grade_counts": {"100": 1, "12": 1}, "rankings": {"a": [100, 12, OUT]}},
            {"id": "2", "reference_grade_counts": {}, "rankings": {"a": []}}]}
        data = panel_data("p", "t", metrics.parse_record(value, "x.json").blocks[""])
        self.assertEqual(data["rankings"], [[chr(148), ""]])
        self.assertEqual([ord(own) - 48 for own in ranking_text(bytes([100, 12, 255]))], [100, 12, -3])
        self.assertEqual(json.loads(json_text(data))["rankings"], data["rankings"])
        self.assertNotIn("<", json_text(ranking_text(bytes([12]))))


class Command(TestCase):
    """The command line."""

    def test_it_writes_one_page(self):
        done = self.run_command("harness", "report", "--output", "page.html", "--directory", DATA / "card" / "records")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^page\.html: 3 records, 4 queries, [\d,]+ bytes\n$")
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        for said in ("<h2 id=\"r0\">promotion", "absent", "cosine", "retriever, answerable: 3 queries", "data:image/svg+xml"):
            self.assertIn(said, page)
        again = self.run_command("harness", "report", "--output", "again.html", "--directory", DATA / "card" / "records",
                                 env={"PYTHONHASHSEED": "7"})
        self.assertEqual(again.returncode, 0)
        self.assertEqual((self.folder / "again.html").read_text(encoding="utf-8"), page)

    def test_a_name_that_is_no_record_is_told_the_closest(self):
        for directory, said in ((DATA / "card" / "records", "expected one of: promotion, retriever, serving"),
                                (DATA / "card", "expected one of: promotion, retriever, serving")):
            with self.subTest(directory=directory), self.assertRaises(metrics.RecordError) as raised:
                main(["--record", "retreiver", "--directory", str(directory)])
            self.assertEqual(raised.exception.problems, [f'--record: no record "retreiver"; closest: retriever; {said}'])

    def test_a_record_is_never_overwritten(self):
        path = self.write("retriever.json", (DATA / "card" / "records" / "retriever.json").read_bytes())
        done = self.run_command("harness", "report", "--output", path)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^error: --output: .* is one of the records")
        for arguments in (("--output", str(self.folder)), ("--record", "none"), ("--directory", "nowhere")):
            with self.subTest(arguments), chdir(self.folder):
                self.assertRaises(metrics.RecordError, main, list(arguments))
        self.assertEqual(path.read_bytes(), (DATA / "card" / "records" / "retriever.json").read_bytes())


PROBE = """<script>
const out = {}, root = document.querySelector(".explorer");
const x = new Explorer(root, JSON.parse(document.getElementById("p0-0").textContent));
const press = key => x.list.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("input")); };
const ids = () => x.order.map(query => x.data.ids[query]);
out.alerts = document.querySelectorAll(".row script, .detail script").length;
choose(x.metric, 3); choose(x.cutoff, "3"); choose(x.sort, "change"); out.change = ids();
x.down.click(); out.down = ids(); choose(x.sort, "m1"); x.down.click(); out.m1 = ids();
choose(x.sort, "file"); choose(x.outcome, "won"); out.won = ids(); choose(x.outcome, "lost"); out.lost = ids();
choose(x.outcome, "tied"); out.tied = ids();
choose(x.outcome, ""); choose(x.type, "odd"); out.type = ids(); choose(x.type, "");
choose(x.eligible, "no"); out.not_eligible = ids();
choose(x.eligible, ""); choose(x.answerable, "no"); out.not_answerable = ids(); choose(x.answerable, "");
x.search.value = "q12 "; x.search.dispatchEvent(new Event("input")); out.search = ids(); x.search.value = ""; x.arrange();
out.rows = document.querySelectorAll(".row").length;
for (let n = 0; n < 12; n++) press("ArrowDown");
press("Enter"); out.detail = x.detail.textContent; out.active = x.list.getAttribute("aria-activedescendant");
out.activeInPage = !!document.getElementById(out.active); press("End"); out.end = x.active; press("Home"); out.home = x.active;
out.cells = [...x.rows.get(0).querySelectorAll(".strip")].map(strip => strip.textContent);
out.labels = x.rows.get(0).getAttribute("aria-label");
out.ties = [fixed(0.03125, 4), fixed(3.125, 2), fixed(0.09375, 4), fixed(-0.03125, 4),
  fixed(1.005, 2), fixed(66.66666666667, 2), fixed(0, 4)];
const result = document.createElement("pre"); result.id = "result";
result.textContent = JSON.stringify(out); document.body.append(result);
</script></body>"""


@unittest.skipUnless(BROWSER, "no chromium here: the report's page is not tested in a browser (apt-get install chromium)")
class Browser(TestCase):
    """The page in headless Chromium."""

    def test_the_explorer(self):
        from html import unescape

        own = record()
        panel, base, other = own.blocks[""], "base", ODD.strip()
        page = self.write("page.html", build([("x.json", own)], "Report").replace("</body>", PROBE))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            done = subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                                   "--dump-dom", page.as_uri()],
                                  capture_output=True, text=True, encoding="utf-8", timeout=120)
        found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
        self.assertTrue(found, done.stderr[-2000:])
        out = json.loads(unescape(found[1]))
        old, new = (metrics.query_values(panel, model, 3)["ndcg"] for model in (base, other))
        change = [None if None in pair else metrics.rounded(pair[1]) - metrics.rounded(pair[0]) for pair in zip(old, new)]

        def ids(holds):
            return [panel.ids[at] for at in range(len(panel.ids)) if holds(at)]

        def ordered(values, sign):
            return [panel.ids[at] for at in sorted(range(len(values)),
                                                   key=lambda at: (values[at] is None, sign * (values[at] or 0), at))]

        self.assertEqual(out["change"], ordered(change, 1))
        self.assertEqual(out["down"], ordered(change, -1))
        self.assertEqual(out["m1"], ordered(list(map(metrics.rounded, new)), 1))
        self.assertEqual(out["won"], ids(lambda at: change[at] is not None and change[at] > 0))
        self.assertEqual(out["lost"], ids(lambda at: change[at] is not None and change[at] < 0))
        self.assertEqual(out["tied"], ids(lambda at: change[at] == 0))
        self.assertEqual(out["type"], ids(lambda at: panel.types[at] == "odd"))
        self.assertEqual(out["not_eligible"], ids(lambda at: old[at] is None))
        self.assertEqual(out["not_answerable"], ids(lambda at: not sum(panel.counts[at][2:])))
        self.assertTrue(out["won"] and out["lost"] and out["tied"] and out["not_eligible"] and out["not_answerable"])
        self.assertEqual(out["search"], [panel.ids[12]])
        self.assertTrue(0 < out["rows"] < 40)
        self.assertEqual((out["alerts"], out["end"], out["home"], out["activeInPage"]), (0, 39, 0, True))
        self.assertEqual(out["ties"], [f"{0.03125:.4f}", f"{3.125:.2f}", f"{0.09375:.4f}", f"{-0.03125:.4f}", f"{1.005:.2f}",
                                       "66.67", "0.0000"])
        self.check_arithmetic(out["detail"], panel, panel.ids[12], (base, other))

    def check_arithmetic(self, detail, panel, query, models):
        """Every number with six decimals that metrics.py explains stands in the page's arithmetic."""
        for model in models:
            numbers = re.findall(r"\d+\.\d{6}", metrics.explain(panel, query, model, 3))
            self.assertGreater(len(numbers), 6)
            for number in numbers:
                self.assertIn(number, detail)
        self.assertEqual(detail.count("excluded (abstained)"),
                         sum(panel.rankings[model][12][:3].count(metrics.EXCLUDED) for model in models))
