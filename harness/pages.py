"""Builds self-contained HTML pages: one style for all, light and dark, and tables that sort and filter.

    page("Title", paragraph("Words.") + table("rows", [Column("id"), Column("score", number=True)], [["a", 0.5]]), TABLE_SCRIPT)

A page works from file:// and asks the network for nothing; its content security policy forbids it.
"""

import re
from html import escape
from typing import NamedTuple

STYLE = """
:root{color-scheme:light dark;
--page:#fff;--card:#f6f8fa;--edge:#d1d9e0;--ink:#1f2328;--muted:#59636e;--accent:#0550ae;--bad:#b84a00}
@media(prefers-color-scheme:dark){:root{
--page:#0d1117;--card:#151b23;--edge:#3d444d;--ink:#f0f6fc;--muted:#9198a1;--accent:#6cb6ff;--bad:#f0a03c}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 20px 60px;max-width:1180px;background:var(--page);color:var(--ink);
font:15px/1.5 -apple-system,BlinkMacSystemFont,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif}
h1{font-size:24px;line-height:1.25;margin:0 0 6px}h2{font-size:18px;margin:34px 0 8px}
p{margin:6px 0}.muted{color:var(--muted)}.bad{color:var(--bad);font-weight:600}
ul{margin:6px 0;padding-left:22px}code{font:13px ui-monospace,SFMono-Regular,Consolas,monospace;overflow-wrap:anywhere}
.scroll{overflow-x:auto;border:1px solid var(--edge);border-radius:6px;margin:8px 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;text-align:left;vertical-align:top;border-top:1px solid var(--edge);overflow-wrap:break-word}
thead th{border-top:0;background:var(--card);white-space:nowrap;position:sticky;top:0}
.number{text-align:right}.number,.choice{white-space:nowrap}td{max-width:420px}
small{color:var(--muted);font-size:12px}tfoot td{font-weight:600;background:var(--card)}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
th button::after{content:" \\2195";color:var(--muted)}th[aria-sort=ascending] button::after{content:" \\2191";color:var(--ink)}
th[aria-sort=descending] button::after{content:" \\2193";color:var(--ink)}
.filter{display:flex;gap:10px;align-items:center;flex-wrap:wrap;margin:10px 0}
input,select{font:inherit;color:inherit;background:var(--page);border:1px solid var(--edge);border-radius:6px;padding:4px 8px}
input[type=search]{width:min(100%,340px)}details summary{cursor:pointer}
"""

# Every table of class "data" gets sortable heads; a filter's inputs narrow the table that they name.
TABLE_SCRIPT = """
"use strict";
for (const table of document.querySelectorAll("table.data")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent;
      const number = head.classList.contains("number");
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        return (down ? -1 : 1) * (number ? x - y : x.localeCompare(y));
      };
      body.append(...[...body.rows].sort(order));
    });
  });
  const box = document.querySelector(`[data-filters="${CSS.escape(table.id)}"]`);
  if (!box) continue;
  const inputs = [...box.querySelectorAll("input,select")];
  const shown = box.querySelector("output");
  const narrow = () => {
    let count = 0;
    for (const row of body.rows) {
      row.hidden = !inputs.every(input => input.dataset.column
        ? !input.value || row.cells[input.dataset.column].textContent.trim() === input.value
        : row.textContent.toLowerCase().includes(input.value.toLowerCase()));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${body.rows.length} shown`;
  };
  inputs.forEach(input => input.addEventListener("input", narrow));
  narrow();
}
"""

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
POLICY = ("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:;"
          " base-uri 'none'; form-action 'none'")


class Column(NamedTuple):
    """A table's column: its head, whether its cells are numbers, and whether a choice of its values filters the table."""

    head: str
    number: bool = False
    choice: bool = False


class Cell(NamedTuple):
    """A table's cell: HTML to show, and the value to sort by (None sorts last)."""

    html: str
    key: object = None


def page(title, body, script=""):
    """A whole page as text; title is plain text, body is HTML, script is JavaScript or nothing."""
    run = f"<script>{script}</script>\n" if script else ""
    return ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
            f"<h1>{text(title)}</h1>\n{body}\n{run}</body>\n</html>\n")


def text(value):
    """Any text as HTML; control characters and lone surrogates are shown as U+FFFD."""
    value = str(value)
    return escape(value if value.isprintable() else UNSAFE.sub("\ufffd", value))


def paragraph(value, kind=""):
    """A paragraph of plain text; kind is "", "muted" or "bad"."""
    return f'<p class="{kind}">{text(value)}</p>' if kind else f"<p>{text(value)}</p>"


def bullets(values):
    """A list of plain texts."""
    return "<ul>" + "".join(f"<li>{text(value)}</li>" for value in values) + "</ul>"


def table(name, columns, rows, foot=None, filters=False):
    """A sortable table. rows: a Cell, a text or a number per column; foot: a row that stays last; filters: a search field
    and a choice for every column that has one."""
    heads = "".join(f'<th scope="col"{_class(column)}>{text(column.head)}</th>' for column in columns)
    body = "\n".join("<tr>" + "".join(map(_cell, columns, row)) + "</tr>" for row in rows)
    last = "<tfoot><tr>" + "".join(map(_cell, columns, foot)) + "</tr></tfoot>" if foot else ""
    return (_filters(name, columns, rows) if filters else "") + (
        f'<div class="scroll"><table class="data" id="{text(name)}"><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>{last}</table></div>")


def _class(column):
    kind = " ".join(["number"] * column.number + ["choice"] * column.choice)
    return f' class="{kind}"' if kind else ""


def _cell(column, value):
    if not isinstance(value, Cell):
        value = Cell("" if value is None else text(value), value)
    key = "" if value.key is None else text(value.key)
    return f'<td{_class(column)} data-key="{key}">{value.html}</td>'


def _filters(name, columns, rows):
    """The search field and the choices of a table."""
    choices = ""
    for at, column in enumerate(columns):
        if column.choice:
            values = sorted({str(row[at]) for row in rows})
            options = "".join(f"<option>{text(value)}</option>" for value in values)
            choices += (f'<label>{text(column.head)} <select data-column="{at}"><option value="">all</option>'
                        f"{options}</select></label>")
    return (f'<div class="filter" data-filters="{text(name)}"><label>Search <input type="search" placeholder="any text"></label>'
            f"{choices}<output class=\"muted\"></output></div>")
