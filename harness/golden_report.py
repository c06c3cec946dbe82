"""Reports a golden run: by type and metric with intervals, what was missed and what came instead; JSON, text, Markdown.

report_of gives the whole report as a JSON value; everything else only shows it.
"""

from harness.evaluation import METRICS, select, sums_at
from harness.holdout import gap
from metrics import compare, mean_interval

TITLES = {"hit": "hit", "recall": "recall", "mrr": "mrr", "mrr_uncut": "mrr (uncut)", "ndcg": "ndcg", "precision": "precision"}
SNIPPET = 100


def report_of(evaluation, configuration, index, production_k=None):
    """The report of an Evaluation as a JSON value; index is the ChunkIndex, for the texts of what came."""
    rows, k, depth = evaluation.questions, evaluation.k, evaluation.depth
    gaps = [found for name in ("hit", "mrr", "ndcg") if (found := gap(rows, name))]
    return {
        "golden": {"name": evaluation.golden.name, "sha256": evaluation.golden.sha256, "questions": len(evaluation.golden.items),
                   "scored": len(rows), "types": {kind: block["n"] for kind, block in evaluation.types.items()}},
        "k": k, "depth": depth, "configuration": configuration, "relevance": evaluation.relevance, "notes": evaluation.notes,
        "metrics": evaluation.metrics, "matrix": matrix(evaluation),
        "attainable": evaluation.attainable, "unattainable": [
            {"id": row["id"], "attainable": row["attainable"], "spans": row["cut_spans"]} for row in rows if row["cut_spans"]],
        "reranking": reranking(evaluation), "holdout_gap": gaps,
        "warnings": [*evaluation.warnings, *warnings_of(evaluation, production_k, gaps)],
        "errors": [{"id": row["id"], "error": row["error"]} for row in evaluation.errors],
        "duplicates": {row["id"]: row["duplicates"] for row in rows if row["duplicates"]},
        "fewer_than_k": [row["id"] for row in rows if row["fewer_than_k"]],
        "missed": [missed(row, k, index) for row in rows if not row["hit"]],
        "questions": rows, "unanswerable": evaluation.unanswerable,
    }


def matrix(evaluation):
    """A row per type and one over all: {"type", "n", metric: {"value", "low", "high"}}; the lowest type first, overall last."""
    sums = sums_at(evaluation.panel, evaluation.k, evaluation.depth)
    rows = []
    for kind in sorted(set(evaluation.panel.types)):
        members = [own == kind for own in evaluation.panel.types]
        rows.append({"type": kind, "n": sum(members), **cells({name: select(pair, members) for name, pair in sums.items()})})
    rows.sort(key=lambda row: [row[name]["value"] or 0 for name in ("hit", "ndcg", "mrr")])
    return [*rows, {"type": "overall", "n": len(evaluation.panel.ids), **cells(sums)}]


def cells(sums):
    """{metric: {"value", "low", "high"}}: fractions, the 95% interval cut to 0 and 1, as no fraction is outside; None without one."""
    found = {}
    for name, pair in sums.items():
        value, low, high = mean_interval(*pair)
        found[name] = {"value": value, "low": low if low is None else max(0.0, low), "high": high if high is None else min(1.0, high)}
    return found


def reranking(evaluation):
    """hit@k beside hit@2k (or as many results as came), and a sentence on what a reranker could win.

    None where the depth is k or no search succeeded; the sentence alone where no more than k results came.
    """
    k, most = evaluation.k, max((len(row["retrieved"]) for row in evaluation.questions), default=0)
    wide = min(2 * k, evaluation.depth, most)
    if evaluation.depth == k or all(row["error"] for row in evaluation.questions):
        return None
    if wide <= k:
        return {"k": k, "wide": None,
                "sentence": f"The search gave at most {most} results, so nothing can be said about reranking; {evaluation.depth} are"
                            " asked for where it has a parameter named k."}
    pairs = [sums_at(evaluation.panel, cut, cut)["hit"] for cut in (k, wide)]
    result = compare(*pairs)
    near, far = (sum(numerators) / len(numerators) for numerators, _ in pairs)
    if not result["wins"]:
        sentence = f"hit@{k} and hit@{wide} are both {near:.3f}: reranking the first {wide} could not raise hit@{k}."
    else:
        could = "Reranking could pay" if result["difference"] >= 0.05 or (result["low"] or 0) > 0 else "Reranking could win little"
        sentence = (f"{could}: {result['wins']} of {len(evaluation.panel.ids)} questions have their first relevant chunk at rank "
                    f"{k + 1}{f' to {wide}' if wide > k + 1 else ''}, so the best order of the first {wide} would lift hit@{k} from {near:.3f} to {far:.3f}.")
    return {"k": k, "wide": wide, "hit": near, "hit_wide": far, "difference": result["difference"],
            "low": result["low"], "high": result["high"], "sentence": sentence}


def against(evaluation, base, name):
    """The run compared with an earlier one, the panel of its record, question by question with paired 95% intervals."""
    k = evaluation.k
    before, after = sums_at(base, k, base.depth), sums_at(evaluation.panel, k, evaluation.depth)
    order = [base.ids.index(question) for question in evaluation.panel.ids]
    before = {metric: tuple([column[at] for at in order] for column in pair) for metric, pair in before.items()}
    changed = list(zip(evaluation.panel.ids, before["hit"][0], after["hit"][0]))
    return {"name": name,
            "metrics": {metric: compare(before[metric], after[metric]) for metric in ("hit", "recall", "mrr", "ndcg")},
            "won": [question for question, old, new in changed if new > old],
            "lost": [question for question, old, new in changed if new < old]}


def warnings_of(evaluation, production_k, gaps):
    """What a reader should know before believing the numbers."""
    found = []
    if production_k is not None and production_k != evaluation.k:
        found.append(f"k is {evaluation.k}, but production passes on {production_k} chunks: measure with --k {production_k}")
    found += [f"holdout: {entry['metric']} {entry['tuning']:.3f} in tuning, {entry['holdout']:.3f} in holdout, difference "
              f"{signed(entry)}: {entry['verdict']}" for entry in gaps if entry["warn"]]
    return found


def missed(row, k, index):
    """A question without a hit at k, and what came instead."""
    came = [{"id": name, "text": " ".join(index.text(name).split())[:SNIPPET]} for name in row["retrieved"][:min(k, 3)]]
    return {key: row[key] for key in ("id", "type", "question", "rank", "relevant", "error", "attainable")} | {"came": came}


def number(value, digits=3):
    """A fraction as text, n/a where there is none."""
    return "n/a" if value is None else f"{value:.{digits}f}"


def interval(cell):
    """[low, high] of a cell as text; nothing where all questions score alike, as that tells no spread."""
    if cell["low"] is None or cell["low"] == cell["high"]:
        return ""
    return f"[{cell['low']:.2f}, {cell['high']:.2f}]"


def signed(entry):
    """A difference with its interval: +0.050 [-0.010, +0.110]."""
    if entry["difference"] is None:
        return "n/a"
    text = f"{entry['difference']:+.3f}"
    return text if entry["low"] is None else f"{text} [{entry['low']:+.3f}, {entry['high']:+.3f}]"


def one_line(text):
    """A text without line ends and control characters, for a terminal or a table."""
    return " ".join("".join(character if character.isprintable() else " " for character in str(text)).split())


def facts(report):
    """The report's lists, as (heading, lines) pairs; the same for text and Markdown."""
    k = report["k"]
    alike = any(row[name]["value"] is not None and not interval(row[name]) for row in report["matrix"] for name in METRICS)
    yield "", (["No interval: all questions of the row score alike, or there is only one."] * alike + report["notes"]
               + ([report["reranking"]["sentence"]] if report["reranking"] else []) + unattainable_lines(report))
    yield "Warnings", report["warnings"]
    yield "Failed searches", [f"{row['id']}: {row['error']}" for row in report["errors"]]
    yield "Tuning and holdout", [f"{entry['metric']}: {number(entry['tuning'])} and {number(entry['holdout'])}, difference "
                                 f"{signed(entry)}: {entry['verdict']}" for entry in report["holdout_gap"]]
    yield "Results", counted_lines(report)
    yield "Compared with the base run", base_lines(report["base"]) if report.get("base") else []
    yield f"Missed at k = {k}", [line for row in report["missed"] for line in missed_lines(row)]
    yield "Unanswerable questions, not scored", [f"{row['id']}: {row['question']} -> {', '.join(row['retrieved'][:3]) or 'nothing'}"
                                                 for row in report["unanswerable"]]
    yield "Floors", floor_lines(report.get("floors"))


def floor_lines(floors):
    """The verdicts of the floors, failures first as they come, and how many hold."""
    if not floors:
        return []
    return [*(f"{'ok  ' if floor['holds'] else 'FAIL'} {floor['message']}" for floor in floors),
            f"{sum(floor['holds'] for floor in floors)} of {len(floors)} floors hold"]


def unattainable_lines(report):
    """What spans that no chunk holds do to the metrics."""
    rows = report["unattainable"]
    if not rows:
        return []
    lost = sum(not row["attainable"] for row in rows)
    without = "  ".join(f"{name} {number(report['attainable'][name])}" for name in ("hit", "recall", "mrr", "ndcg"))
    spans = sum(len(row["spans"]) for row in rows)
    return [f"Spans that no chunk of this index holds as a whole: {spans}, in {', '.join(row['id'] for row in rows[:10])}"
            f"{', …' if len(rows) > 10 else ''}. Questions that cannot be answered from it, and count as missed above: {lost}.",
            f"Without them ({report['attainable']['n']} questions): {without}"]


def counted_lines(report):
    """Counts of duplicates and short results."""
    lines = []
    if report["duplicates"]:
        lines.append(f"{counted(report['duplicates'])} got a chunk more than once; it counts once, at its first rank: "
                     + ", ".join(list(report["duplicates"])[:10]))
    if report["fewer_than_k"]:
        lines.append(f"{counted(report['fewer_than_k'])} got fewer than {report['k']} results: "
                     + ", ".join(report["fewer_than_k"][:10]))
    return lines


def base_lines(base):
    """What changed since an earlier run."""
    lines = [f"{metric}: {signed(entry)}, {entry['wins']} won, {entry['ties']} tied, {entry['losses']} lost"
             for metric, entry in base["metrics"].items()]
    return lines + [f"{what}: {', '.join(base[key])}" for key, what in (("won", "now hit"), ("lost", "no longer hit")) if base[key]]


def counted(questions):
    """How many questions: "1 question", "2 questions"."""
    return f"{len(questions)} question" + ("s" if len(questions) != 1 else "")


def missed_lines(row):
    """One missed question."""
    why = ("the search failed" if row["error"] else "no chunk of this index holds its span" if not row["attainable"]
           else f"first relevant chunk at rank {row['rank']}" if row["rank"] else "nothing relevant came")
    came = "; ".join(f"{chunk['id']} {chunk['text'][:60]}".rstrip() for chunk in row["came"])
    return [f"{row['id']} ({row['type']}): {row['question']} -- {why}"] + ([f"    came instead: {came}"] if came else [])


def headline(report):
    """What was measured, in a line."""
    golden = report["golden"]
    return (f"{golden['name']}: {golden['scored']} of {golden['questions']} questions scored,"
            f" search {report['configuration']['search']}, relevance by {report['relevance']}, k = {report['k']}, depth {report['depth']}")


def text_report(report):
    """The report as text for a terminal."""
    lines = [headline(report), "", *columns(matrix_rows(report))]
    for heading, found in facts(report):
        if found and not heading:
            lines += ["", *map(one_line, found)]
        elif found:
            lines += ["", heading, *(f"  {indent(line)}{one_line(line)}" for line in found)]
    return "\n".join(lines) + "\n"


def matrix_rows(report):
    """The matrix as rows of texts, its head first."""
    rows = [["type", "n", *TITLES.values()]]
    for row in report["matrix"]:
        rows.append([row["type"], str(row["n"]),
                     *(f"{number(row[name]['value'])} {interval(row[name])}".rstrip() for name in METRICS)])
    return rows


def indent(line):
    """The spaces that a line begins with."""
    return line[:len(line) - len(line.lstrip(" "))]


def columns(rows):
    """Rows of texts as aligned lines, the first column to the left; all others start where their head does."""
    rows = [list(map(one_line, row)) for row in rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def markdown_report(report):
    """The report as Markdown."""
    lines = ["# Golden run", "", markdown_text(headline(report)), "", *markdown_table(matrix_rows(report))]
    for heading, found in facts(report):
        if found and not heading:
            lines += [line for sentence in found for line in ("", markdown_text(sentence))]
        elif found:
            lines += ["", f"## {heading}", "", *(f"{indent(line)[:2]}- {markdown_text(line)}" for line in found)]
    return "\n".join(lines) + "\n"


def markdown_table(rows):
    """Rows of values as a Markdown table; the first row is its head, all columns but the first are numbers."""
    head, *body = [[markdown_text(cell) for cell in row] for row in rows]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return ["| " + " | ".join(line) + " |" for line in lines]


def markdown_text(value):
    """Any text as Markdown that shows it as it is."""
    value = one_line(value)
    for mark in "\\`*_[]<>|#":
        value = value.replace(mark, "\\" + mark)
    return value
