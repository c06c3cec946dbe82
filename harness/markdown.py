"""Finds comments and tables in a Markdown text: what stands in code is text, and neither.

Knows as much of CommonMark as that takes: fenced code, indented code (also in lists and quotations), code spans, escapes, HTML
comments over several lines, YAML front matter.
"""

import re
from bisect import bisect_left
from typing import NamedTuple

FENCE = re.compile(r"(?P<before>[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*)(?P<fence>`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})")
LIST_ITEM = re.compile(r"(?:[ ]*(?:[-+*]|\d{1,9}[.)])(?:[ ]{1,4}(?=\S)|[ ]*(?=\r?\n|\Z)|[ ]))+")
QUOTATION = re.compile(r"[ ]{0,3}>[ ]?")
TOKEN = re.compile(r"(?P<escape>\\[^\s\w])|(?P<ticks>`+)|(?P<comment><!--)")
BLANK = re.compile(r"\n[ \t>]*\r?(?:\n|\Z)")
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
        self.fence, self.quoted_fence, self.blank, self.in_code, self.item = "", False, True, False, 0
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
            self.blank = True
        elif match := FENCE.match(line):
            self.fence, self.quoted_fence = match["fence"], ">" in match["before"]
            self.blank = False
        elif not self.is_code(line):
            self.lines.append((start, end))
            self.read_tokens(start, end)

    def line_end(self, position):
        return self.text.find("\n", position) + 1 or len(self.text)

    def in_fence(self, line):
        """Leave fenced code at its closing fence, or where the quotation that it is in ends."""
        body = line.strip(" \t>\r\n")
        if body.startswith(self.fence) and not body.strip(self.fence[0]):
            self.fence = ""
        elif self.quoted_fence and not line.lstrip().startswith(">"):
            self.fence = ""
            self.position -= len(line)

    def is_code(self, line):
        """Whether a line that is not blank is indented code; keeps track of the list item that it is in."""
        while quotation := QUOTATION.match(line):
            line = line[quotation.end():]
        line = line.expandtabs(4)
        indent = len(line) - len(line.lstrip(" "))
        if self.blank and indent < self.item:
            self.item = 0 if indent < 2 else indent
        self.in_code = (self.blank or self.in_code) and indent >= self.item + 4
        self.blank = False
        if not self.in_code and (item := LIST_ITEM.match(line)):
            self.item = len(item[0])
        return self.in_code

    def read_tokens(self, position, end):
        """Find the comments that start in a line."""
        text = self.text
        while token := TOKEN.search(text, position, end):
            position = token.end()
            if token["ticks"]:
                paragraph = BLANK.search(text, position)
                last = paragraph.start() if paragraph else len(text)
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
