"""Shows the report of a golden run as one self-contained HTML page."""

from harness.evaluation import METRICS
from harness.golden_report import TITLES, facts, headline, interval, number
from harness.pages import TABLE_SCRIPT, Cell, Column, bullets, page, paragraph, table, text


def html_report(report):
    """The page as text."""
    parts = [paragraph(headline(report), "muted"), matrix_table(report)]
    sections = [(heading, lines) for heading, lines in facts(report) if lines]
    for heading, lines in sections:
        if not heading:
            parts += map(paragraph, lines)
        elif not heading.startswith(("Missed", "Unanswerable")):
            parts += [f"<h2>{text(heading)}</h2>", bullets(lines)]
    missed = f"A question is missed when none of its first {report['k']} results is relevant."
    parts += ["<h2>Every question</h2>", paragraph(missed, "muted"), question_table(report), configuration(report)]
    return page("Golden run", "\n".join(parts), TABLE_SCRIPT)


def matrix_table(report):
    """Type by metric, with intervals."""
    heads = [Column("type"), Column("n", number=True), *(Column(TITLES[name], number=True) for name in METRICS)]
    rows = [[row["type"], row["n"], *(metric_cell(row[name]) for name in METRICS)] for row in report["matrix"]]
    return table("matrix", heads, rows[:-1], rows[-1])


def metric_cell(cell):
    small = interval(cell)
    return Cell(text(number(cell["value"])) + (f"<br><small>{text(small)}</small>" if small else ""), cell["value"])


def question_table(report):
    """A row per question, to sort and filter."""
    k = report["k"]
    texts = {row["id"]: row["came"] for row in report["missed"]}
    heads = [Column("id"), Column("question"), Column("type", choice=True), Column("result", choice=True),
             *(Column(name, number=True) for name in ("first rank", "recall", "ndcg")), Column(f"first {k} results")]
    rows = [[row["id"], row["question"], row["type"], result_of(row), row["rank"],
             score_cell(row["recall"]), score_cell(row["ndcg"]), results_cell(row, k, texts.get(row["id"], ()))]
            for row in report["questions"]]
    rows += [[row["id"], row["question"], row["type"], "not scored", None, None, None, results_cell(row, k, ())]
             for row in report["unanswerable"]]
    return table("questions", heads, rows, filters=True)


def result_of(row):
    return ("failed" if row["error"] else "hit" if row["hit"] else "missed" if row["attainable"] else "unattainable")


def score_cell(value):
    return Cell(text(number(value)), value)


def results_cell(row, k, came):
    """The results with the relevant ones in bold, the error if there is one, and the texts that came for a missed question."""
    wanted = set(row["relevant"])
    shown = ", ".join(f"<b>{text(name)}</b>" if name in wanted else text(name) for name in row["retrieved"][:k])
    if row["error"]:
        shown = f'<span class="bad">{text(row["error"])}</span>'
    expected = "" if row.get("hit") or not wanted else f"<br><small>expected: {text(', '.join(row['relevant']))}</small>"
    snippets = "".join(f"<li><code>{text(chunk['id'])}</code> {text(chunk['text'])}</li>" for chunk in came if chunk["text"])
    if snippets:
        expected += f"<details><summary>what came instead</summary><ul>{snippets}</ul></details>"
    return Cell(shown + expected, row["retrieved"][0] if row["retrieved"] else None)


def configuration(report):
    """What was run, at the end."""
    rows = [[name, value if isinstance(value, (str, int)) else repr(value)] for name, value in
            [("golden set SHA-256", report["golden"]["sha256"]), *report["configuration"].items()] if value is not None]
    return "<h2>Configuration</h2>" + table("configuration", [Column("name"), Column("value")], rows)
