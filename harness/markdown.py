"""Finds comments and tables in a Markdown text: what stands in code is text, and neither.

Knows as much of CommonMark as that takes: fenced code, indented code (also in lists and quotations), code spans, escapes, HTML
comments over several lines, YAML front matter.
"""

import re
from bisect import bisect_left
from typing import NamedTuple

FENCE = re.compile(r"(?P<before>[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})")
LIST_ITEM = re.compile(r"(?:[ ]*(?:[-+*]|\d{1,9}[.)])(?:[ ]{1,4}(?=\S)|[ ](?=[ ]*\r?\n)|(?=\r?\n|\Z)|[ ]))")
QUOTATION = re.compile(r"[ ]{0,3}>[ ]?")
TOKEN = re.compile(r"(?P<escape>\\[^\s\w])|(?P<ticks>`+)|(?P<comment><!--)")
HEADING = re.compile(r"[ \t>]*#{1,6}(?=[ \t\r\n]|\Z)")
# A line that ends the paragraph before it, and any code span: blank, or the first of another block.
HTML_TAGS = ("address|article|aside|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|"
             "figure|footer|form|h[1-6]|head|header|hr|html|legend|li|main|menu|nav|ol|p|section|summary|table|tbody|td|tfoot|th|"
             "thead|title|tr|ul")
HTML_BLOCK = rf"</?(?:{HTML_TAGS})(?=[ \t\r\n>]|/>|\Z)"
LINE_BEFORE = r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*"
HTML_LINE = re.compile(LINE_BEFORE + HTML_BLOCK, re.IGNORECASE)
COMMENT_LINE = re.compile(LINE_BEFORE + "<!--")
BLOCK = re.compile(rf"""\n(?=[ \t>]*(?:\r?(?:\n|\Z)|\#{{1,6}}(?:[ \t\r\n]|\Z)|(?:[-+*]|\d{{1,9}}[.)])(?:[ \t\r\n]|\Z)
    |`{{3,}}[^`\n]*(?:\n|\Z)|~{{3,}}|(?:=+|-+|(?:[-*_][ \t]*){{3,}})[ \t]*\r?(?:\n|\Z)|\||:?-+:?[ \t]*\||<!--|{HTML_BLOCK}))""",
                   re.VERBOSE | re.IGNORECASE)
QUOTED_BLOCK = re.compile(r"\n(?=[ ]*>)")
CELL_END = re.compile(r"(?<!\\)\||\n|\Z")
FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?P<yaml>(?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")
YAML_LINE = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*[\w\"'.-]+[ \t]*:")
ROW = re.compile(r"[ \t>]*+(?!<!--)[^|\n]*\|")  # a comment at the start of a line ends a table
DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\r?\n?\Z")


class Comment(NamedTuple):
    """An HTML comment: start and end in the text, and what it says; end is None where it is never closed."""

    start: int
    end: int | None
    body: str


class Table(NamedTuple):
    """A table: start and end of its lines in the text, rows of (start, end) of the cells, the head first; prefix of its lines."""

    start: int
    end: int
    rows: list
    prefix: str


class Markdown:
    """A text in which comments and lines outside code have been found: .comments, .lines as (start, end) in order."""

    def __init__(self, text):
        self.text, self.comments, self.lines = text, [], []
        self.line_ends = [match.start() for match in re.finditer("\n", text)]
        front = FRONT_MATTER.match(text)
        self.front = front if front and YAML_LINE.match(front["yaml"]) else None
        self.position = self.front.end() if self.front else text.startswith("\ufeff")
        self.fence, self.quoted_fence, self.blank, self.in_code = "", False, True, False
        self.limits = {}
        self.html = False  # in a block of HTML, where nothing is code, up to the next blank line
        self.items = []  # where the text of each list item begins that the line is in, the outer first
        while self.position < len(text):
            self.read_line()

    def read_line(self):
        """Read what starts on a line; a comment or a code span may reach over later lines."""
        start, end = self.position, self.line_end(self.position)
        line = self.text[start:end]
        self.position = end
        if self.fence:
            self.in_fence(line)
        elif not line.strip(" \t>\r\n"):
            self.blank, self.html = True, False
        elif not self.html and (match := FENCE.match(line)) and indent_of(unquoted(line)) < self.item_at(indent_of(unquoted(line))) + 4:
            self.open_fence(line, match)
        elif self.html or not self.is_code(line):
            self.lines.append((start, end))
            self.html = self.html or bool(HTML_LINE.match(line))
            self.read_tokens(start, end, self.html or bool(COMMENT_LINE.match(line)))

    def line_end(self, position):
        return self.text.find("\n", position) + 1 or len(self.text)

    def item_at(self, indent):
        """Where the text of the innermost list item begins that a line with this indent can be in."""
        return max((item for item in self.items if item <= indent), default=0)

    def leave_items(self, indent):
        """Leave the list items that a line with this indent is not in."""
        while self.items and indent < self.items[-1]:
            self.items.pop()

    def enter_items(self, line):
        """Enter the list items that open in a line; it has no quotation marks."""
        at = 0
        while item := LIST_ITEM.match(line, at):
            if not at:
                self.leave_items(indent_of(line))
            at = item.end()
            self.items.append(at)

    def open_fence(self, line, match):
        """Enter fenced code, which ends with the list item that it is in."""
        body = unquoted(line)
        self.leave_items(indent_of(body))
        self.enter_items(body)
        self.fence, self.quoted_fence = match["fence"], ">" in match["before"]
        self.blank = self.in_code = False

    def in_fence(self, line):
        """Leave fenced code at its closing fence, or where the quotation or list item that it is in ends."""
        body, item = unquoted(line) if self.quoted_fence else line.expandtabs(4), self.items[-1] if self.items else 0
        text, indent = body.strip(), indent_of(body)
        if self.quoted_fence and not line.lstrip().startswith(">") or text and indent < item:
            self.fence = ""
            self.position -= len(line)
            self.leave_items(indent)
        elif text.startswith(self.fence) and not text.strip(self.fence[0]) and indent < item + 4:
            self.fence = ""

    def is_code(self, line):
        """Whether a line that is not blank is indented code; keeps track of the list item that it is in."""
        line = unquoted(line)
        indent = indent_of(line)
        if self.blank or HEADING.match(line):
            self.leave_items(indent)
        item = self.items[-1] if self.items else 0
        self.in_code = (self.blank or self.in_code) and indent >= item + 4
        self.blank = False
        if indent < item + 4:
            self.enter_items(line)
        return self.in_code

    def read_tokens(self, position, end, html):
        """Find the comments that start in a line; html: it is HTML, without code spans and escapes."""
        text = self.text
        while token := TOKEN.search(text, position, end):
            position = token.end()
            if html and not token["comment"]:
                position = token.start() + 1
            elif token["ticks"]:
                last = self.span_limit(position)
                close = re.compile(rf"(?<!`){token[0]}(?!`)").search(text, position, last)
                position = close.end() if close else position
            elif token["comment"]:
                close = text.find("-->", position)
                self.comments.append(Comment(token.start(), close + 3 if close >= 0 else None,
                                             text[position:close if close >= 0 else None]))
                position = close + 3 if close >= 0 else len(text)
            if position > end:
                end = self.line_end(position)
                self.position = end

    def span_limit(self, position):
        """Where a code span that opens before a position must end: with its paragraph, heading or cell of a table."""
        text = self.text
        start = text.rfind("\n", 0, position) + 1
        line = text[start:self.line_end(start)]
        if line.lstrip(" \t>").startswith("|"):
            return CELL_END.search(text, position).start()
        if HEADING.match(line):
            return self.line_end(position)
        quoted = line.lstrip().startswith(">")
        since, limit = self.limits.get(quoted, (0, -1))
        if not since <= position <= limit:  # each paragraph is searched once
            ends = [BLOCK.search(text, position), None if quoted else QUOTED_BLOCK.search(text, position)]
            limit = min((end.start() for end in ends if end), default=len(text))
            self.limits[quoted] = position, limit
        return limit

    def tables(self):
        """Every Table outside code: a head, a line of dashes with as many columns, and the lines after it that have a cell."""
        at, lines = 0, self.lines
        while at + 1 < len(lines):
            head, dashes = lines[at], lines[at + 1]
            text = self.text[dashes[0]:dashes[1]]
            cells = cell_spans(self.text,
                               *head) if head[1] == dashes[0] and "-" in text and "|" in text and DELIMITER.match(text) else []
            if not cells or len(cells) != len(cell_spans(self.text, *dashes)):
                at += 1
                continue
            rows, last = [cells], at + 1
            while last + 1 < len(lines) and lines[last + 1][0] == lines[last][1] and ROW.match(self.text, *lines[last + 1]):
                last += 1
                rows.append(cell_spans(self.text, *lines[last]))
            prefix = re.match(r"[ \t>]*", self.text[head[0]:head[1]])[0]
            yield Table(head[0], lines[last][1], rows, prefix)
            at = last + 1

    def line_number(self, position):
        """The number of the line that a position is in, from 1."""
        return bisect_left(self.line_ends, position) + 1


def unquoted(line):
    """A line without quotation marks, with spaces for tabs."""
    while quotation := QUOTATION.match(line):
        line = line[quotation.end():]
    return line.expandtabs(4)


def indent_of(line):
    return len(line) - len(line.lstrip(" "))


def cell_spans(text, start, end):
    """The (start, end) of every cell of a table's line, without the space around it."""
    line = text[start:end].rstrip("\r\n")
    first = re.match(r"[ \t>]*\|?", line).end()
    bars = [match.start() for match in re.finditer(r"(?<!\\)\|", line) if match.start() >= first]
    spans, at = [], first
    for bar in [*bars, len(line)]:
        if bar == len(line) and bars and not line[at:].strip():
            break  # after the last bar
        cell = line[at:bar]
        left = at + len(cell) - len(cell.lstrip())
        spans.append((start + left, start + max(left, at + len(cell.rstrip()))))
        at = bar + 1
    return spans


def plain(cell):
    """A cell's text without emphasis, links, code marks, tags and comments."""
    import html

    cell = re.sub(r"<!--.*?-->", "", cell)
    cell = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    cell = re.sub(r"</?[a-zA-Z][^>]*>", " ", cell)
    cell = re.sub(r"(?<!\\)(?:[*`]+|~~)|(?<![\w\\])_+|(?<!\\)_+(?!\w)", "", cell)
    return " ".join(html.unescape(re.sub(r"\\([^\w\s])", r"\1", cell)).split())
