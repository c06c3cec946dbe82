"""Makes one self-contained HTML page to explore records: figures, tables, and every query of every panel.

    python -m harness report --output report.html [--directory records]

Each value is computed by metrics.py and stored in the page; the page sorts, filters and shows.
"""

import html
import os
import re
from math import log2

import metrics
from harness.files import Progress
from harness.pages import page, paragraph, text
from harness.report_page import SCRIPT, STYLE
from metrics import EXCLUDED, Panel, RecordError

MOST_CELLS = 100  # of a ranking's strip


def build(records, title):
    """The page as text, from the (path, Record) pairs of metrics.load_records."""
    import figures

    sections, contents = [], []
    blocks = sum(len(record.blocks) for _, record in records)
    with Progress(blocks, "blocks") as progress:
        for number, (_, record) in enumerate(records):
            drawn = figures.plan(record)
            name = record.name.removesuffix(".json")
            contents.append(f'<a href="#r{number}">{text(name)}</a>')
            sections.append(f'<h2 id="r{number}">{text(name)}</h2>')
            for at, (place, block) in enumerate(record.blocks.items()):
                own = [draw(source) for source, draw in drawn if source.block is block]
                sections.append(block_section(f"p{number}-{at}", f"{name} {place}".strip(), block, own))
                progress.step()
    lead = paragraph("Every number here is recomputed from the records. Click a query, or press Enter on it, for its arithmetic.",
                     "muted")
    body = f"<style>{STYLE}</style>\n{lead}\n<p>{' · '.join(contents)}</p>\n" + "\n".join(sections)
    return page(title, body, SCRIPT)


def block_section(key, title, block, drawn):
    """The HTML of one block: its figures, its tables, and for a panel what its models are and the explorer."""
    parts = [f"<h3>{text(title)}</h3>", *map(figure_image, drawn)]
    summary = metrics.summarize_block(block)
    for at, (heading, rows, notes) in enumerate(metrics.block_tables(title, block, summary, markdown=True)):
        shown = table_html(rows) + "".join(paragraph(note, "muted") for note in notes)
        parts.append(f"<details><summary>{text(heading)}</summary>{shown}</details>" if at
                     else f"<h4>{text(heading)}</h4>{shown}")
    if isinstance(block, Panel):
        data = json_text(panel_data(key, title, block))
        parts += [models_list(block.models), f"<h4>{text(title)}: every query</h4>",
                  f'<script type="application/json" id="{key}">{data}</script>',
                  f'<div class="explorer" data-panel="{key}">'
                  f'<p class="muted">The explorer of {len(block.ids):,} queries needs JavaScript.</p></div>']
    return "\n".join(parts)


def figure_image(svg):
    """An SVG as an image that stands in the page itself; apart from the page, so that neither's style reaches the other."""
    from base64 import b64encode

    title = html.unescape(re.search(r"<title[^>]*>(.*?)</title>", svg, re.DOTALL)[1])
    return f'<img class="figure" alt="{text(title)}" src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}">'


def table_html(rows):
    """Rows of text as a table that scrolls; all but the first column are numbers."""
    head = "".join(f'<th scope="col"{" class=number" * bool(at)}>{text(cell)}</th>' for at, cell in enumerate(rows[0]))
    body = "\n".join("<tr>" + "".join(f"<td{' class=number' * bool(at)}>{text(cell)}</td>" for at, cell in enumerate(row))
                     + "</tr>"
                     for row in rows[1:])
    return f'<div class="scroll tall" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def models_list(models):
    """What each model is, folded."""
    items = "".join(f"<li><b>{text(model)}</b> " + text(", ".join(f"{key}: {shown(value)}" for key, value in identity.items()))
                    + "</li>"
                    for model, identity in models.items())
    return f"<details><summary>The models</summary><ul>{items}</ul></details>"


def shown(value):
    """A value of an identity as text."""
    return value if isinstance(value, str) else metrics.dump_json(value).strip() if not isinstance(value, (dict, list)) \
        else " ".join(metrics.dump_json(value).split())


# The data of an explorer


def json_text(value):
    """A value as compact JSON that can stand in a script element: no "<" and no line separator in it."""
    import json

    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def panel_data(key, title, panel):
    """All that an explorer shows of a panel; values[k][metric][model][query] is what metrics.py gives, or None."""
    names, models, deepest = list(metrics.METRICS), list(panel.models), panel.cutoffs[-1]
    scored = {str(k): [metrics.query_values(panel, model, k) for model in models] for k in panel.cutoffs}
    used = sorted(set().union(*(set(ranking) for column in panel.rankings.values() for ranking in column)) - {EXCLUDED})
    longest = min(deepest, max((len(ranking) for column in panel.rankings.values() for ranking in column), default=0))
    return {
        "key": key, "title": title, "models": models, "cutoffs": list(panel.cutoffs), "max": panel.max_grade,
        "useful": panel.useful,
        "gains": list(panel.gains[:panel.max_grade + 1]), "shown": min(longest, MOST_CELLS),
        "metrics": [{"name": name, "title": metrics.TITLES[name], "percent": name in metrics.PERCENT} for name in names],
        "pairs": [[models.index(base), models.index(candidate)] for base, candidate in panel.comparisons],
        "ids": list(panel.ids), "types": panel.types and list(panel.types), "counts": [list(counts) for counts in panel.counts],
        "known": [sum(counts[panel.useful:]) for counts in panel.counts],
        "rankings": [[ranking_text(ranking[:deepest]) for ranking in panel.rankings[model]] for model in models],
        "reasons": [reasons_of(panel, model) for model in models],
        "selected": panel.selected and [list(panel.selected[model]) for model in models],
        "values": {k: [[list(map(compact, own[name])) for own in by_model] for name in names] for k, by_model in scored.items()},
        "dcg": {str(k): dcg_columns(panel, models, k) for k in panel.cutoffs},
        "ideal": {str(k): [compact(metrics.dcg(metrics.ideal_grades(counts, k), panel.gains)) for counts in panel.counts]
                  for k in panel.cutoffs},
        "discounts": [f"{log2(rank + 1):.6f}" for rank in range(1, longest + 1)],
        "terms": {grade: [f"{panel.gains[grade] / log2(rank + 1):.6f}" for rank in range(1, longest + 1)] for grade in used},
    }


def ranking_text(ranking):
    """A ranking as text, a character a position: the grade's code above that of "0", or "-" for an excluded position."""
    return "".join("-" if grade == EXCLUDED else chr(48 + grade) for grade in ranking)


def reasons_of(panel, model):
    """{query's index: {position from 0: reason}} of the excluded positions that have a reason."""
    found = {}
    for (own, query, place), reason in panel.reasons.items():
        if own == model and reason:
            found.setdefault(query, {})[place] = reason
    return found


def compact(value):
    """A number as a summary rounds it, without a needless .0."""
    value = metrics.rounded(value)
    return int(value) if value is not None and value == int(value) else value


def dcg_columns(panel, models, k):
    """The DCG of every query, a column per model."""
    retained, _ = metrics.retained_grades(panel, dict.fromkeys(models, [k] * len(panel.ids)))
    return [[compact(metrics.dcg(grades, panel.gains)) for grades in retained[model]] for model in models]


def check_names(names, directory):
    """Refuse a record's name that stands neither in a folder nor in its folder records/, and say which names are closest."""
    from harness.addresses import AddressError, choose

    known = {}
    for folder in (directory, os.path.join(directory, "records")):
        if os.path.isdir(folder):
            known.update({name.removesuffix(".json"): None for name in sorted(os.listdir(folder))
                          if name.endswith(".json") and not name.endswith("-summary.json")})
    for name in sorted(names) if known else ():  # where nothing is known, reading the folder says why
        try:
            choose(name, known, "record")
        except AddressError as error:
            raise RecordError(f"--record: {error}") from None


def main(argv):
    """Run `report`; the exit status."""
    from harness.arguments import Parser

    parser = Parser(prog="python -m harness report",
                                     description="One HTML page to explore records; it asks the network for nothing.")
    parser.add_argument("--output", default="report.html", metavar="FILE", help="the page (default: report.html)")
    parser.add_argument("--directory", metavar="DIR", help="the records (default: records, or this folder)")
    parser.add_argument("--record", nargs="+", action="extend", default=[], metavar="NAME", help="only these records")
    parser.add_argument("--title", default="Retrieval records", metavar="TEXT")
    options = parser.parse_args(argv)
    directory = options.directory or ("records" if os.path.isdir("records") else ".")
    names = {os.path.basename(name).removesuffix(".json") for name in options.record}
    check_names(names, directory)
    records, _ = metrics.load_records(directory, names)
    for path, _ in records:
        for source in (path, path.removesuffix(".json") + "-summary.json"):
            if os.path.exists(options.output) and os.path.exists(source) and os.path.samefile(options.output, source):
                raise RecordError(f"--output: {options.output} is one of the records; expected another file")
    content = build(records, options.title)
    metrics.write_whole(options.output, content)
    queries = sum(len(block.ids) for _, record in records for block in record.blocks.values() if isinstance(block, Panel))
    size = f"{queries:,} queries, {len(content.encode()):,} bytes"
    print(f"{options.output}: {len(records):,} record{'s' * (len(records) != 1)}, {size}")
    return 0
