"""Ties the numbers and tables of a model card or README to the records: checks them, and rewrites those that are marked.

    python -m harness card check README.md [--directory records]
    python -m harness card update README.md
"""

import os
import re
from difflib import SequenceMatcher
from typing import NamedTuple

import metrics
from harness.addresses import AddressError, Everything, Library, Results, Rows, Value, has_word
from harness.markdown import Markdown, cell_spans
from harness.printed import doubt, find_printed, hint, is_right, is_whole, reprint, unrounded
from harness.verdicts import named
from metrics import RecordError, decode_utf8, read_bytes, write_whole

MARKER = re.compile(r"\s*(?P<close>/?)\s*(?P<word>[^\W\d_]+)\s*(?P<colon>:?)\s*(?P<address>.*?)\s*\Z", re.DOTALL)
LINE_START = re.compile(r"\ufeff?[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*")  # quotation marks and list markers
YAML_COMMENT = re.compile(r"^(?P<indent>[ \t]*)#(?P<body>[^\r\n]*)", re.MULTILINE)


class Marker(NamedTuple):
    """A comment that speaks to this program: start and end in the text, its address; a closing one has close set."""

    start: int
    end: int
    close: bool
    address: str


class Finding(NamedTuple):
    """What is not as the record gives it: the line, and what to say."""

    line: int
    text: str


class Edit(NamedTuple):
    """New text for a part of a card."""

    start: int
    end: int
    text: str


class Card:
    """A card that has been read: .findings and .edits for what is not as the records give it, .problems for broken markers."""

    def __init__(self, path, library):
        self.path, self.library = path, library
        self.bom, self.text = read_card(path)
        self.markdown = Markdown(self.text)
        self.findings, self.edits, self.problems, self.marked = [], [], [], []
        self.numbers = self.tables = 0
        self.tables_found = list(self.markdown.tables())
        self.read_front()
        self.read_body()

    def line(self, position):
        return self.markdown.line_number(position)

    def problem(self, position, text):
        self.problems.append(f"{self.path}:{self.line(position)}: {text}")

    def find(self, position, text):
        self.findings.append(Finding(self.line(position), text))

    def marker(self, comment):
        """The Marker that a comment is, or None; a comment that looks like a misspelt one is a problem."""
        match = MARKER.match(comment.body)
        if not match or not (match["colon"] or match["close"]):
            return None
        if match["word"].lower() != "metrics":
            if SequenceMatcher(None, match["word"].lower(), "metrics").ratio() > 0.8:
                self.problem(comment.start, f"{named(match['close'] + match['word'])} looks like a misspelt marker; "
                             "expected metrics: and an address, or /metrics")
            return None
        if comment.end is None:
            self.problem(comment.start, "this comment is never closed; expected --> after the address")
            return None
        if match["close"] and (match["colon"] or match["address"]):
            self.problem(comment.start, "a closing marker has no address; expected /metrics")
        return Marker(comment.start, comment.end, bool(match["close"]), match["address"])

    def resolve(self, marker, address=None):
        """What a marker's address gives, or None after noting the problem."""
        try:
            return self.library.resolve(marker.address if address is None else address)
        except AddressError as error:
            self.problem(marker.start, f"metrics: {' '.join(marker.address.split())}: {error}")
            return None

    # The text: numbers and tables

    def read_body(self):
        """Read every marker outside code and front matter."""
        opened = None
        for comment in self.markdown.comments:
            marker = self.marker(comment)
            if not marker:
                continue
            if marker.close and opened:
                self.read_region(*opened, marker)
                opened = None
            elif marker.close:
                self.problem(marker.start,
                             "/metrics closes nothing; a region opens with metrics: ADDRESS table, and a number needs no closing")
            else:
                opened = self.read_open(marker, opened)
        if opened:
            self.problem(opened[0].start, "this region is never closed; expected <!-- /metrics --> after its table")

    def read_open(self, marker, opened):
        """Read a marker that is not a closing one; gives the region that is open after it."""
        if opened:
            self.problem(marker.start,
                         f"a marker inside the region that opens in line {self.line(opened[0].start)}; close that one first")
            return opened
        found = self.resolve(marker)
        if isinstance(found, Value):
            self.read_number(marker, found)
        elif isinstance(found, Results):
            self.problem(marker.start,
                         "a model-index stands in the front matter, between # metrics: ADDRESS model-index and # /metrics")
        return (marker, found) if isinstance(found, Rows) or found is None and has_word(marker.address, "table") else None

    def read_number(self, marker, value):
        """Compare the number before a marker with its value."""
        self.marked.append((marker.start, marker.end))
        printed = find_printed(self.text, value.kind, marker.start)
        if printed and printed.group == " " and not (value.number and abs(value.number) >= 1000):
            self.problem(printed.start, f"{named(printed.shown)} could be one number or two, and metrics: {marker.address} gives "
                         f"{unrounded(value)}; put a word between two numbers, or write one without the space")
            return
        if not printed:
            self.problem(marker.start, f"no number right before metrics: {marker.address}, but {self.before(marker)}; "
                         "expected the printed number, then the comment")
            return
        if printed.percent and value.kind == "count":
            self.problem(printed.start, f"{named(printed.shown)} is a percentage, but metrics: {marker.address} is a count")
            return
        if value.kind == "count" and not is_whole(printed):
            self.problem(printed.start, f"{named(printed.shown)} is no whole number, but metrics: {marker.address} is a count")
            return
        if reason := doubt(self.text, printed, marker.start, marker.end, value.kind):
            self.problem(printed.start, f"{named(printed.shown)} may not be the number that a reader sees: {reason}; "
                         "write the number plainly, with a space around it, then the comment")
            return
        self.numbers += 1
        if not is_right(printed, value):
            end = printed.shown_end if None in (printed.number, value.number) else printed.end
            text = reprint(printed, value)
            self.edits.append(Edit(printed.start, end, text))
            text += self.text[end:printed.shown_end]
            exact = f" ({unrounded(value)})" * (unrounded(value) != text)
            address = " ".join(marker.address.split())
            self.find(printed.start, f"printed {printed.shown}, but {address} gives {text}{exact}{hint(printed, value)}")

    def before(self, marker):
        """What stands between the comment or line before a marker and the marker, as an error quotes it."""
        ends = [comment.end for comment in self.markdown.comments if comment.end and comment.end <= marker.start]
        line = self.text.rfind("\n", 0, marker.start) + 1
        text = " ".join(self.text[max(line, marker.start - 60, *ends[-1:]):marker.start].split())
        return named(text[-30:]) if text else "nothing"

    def read_region(self, opening, found, closing):
        """Compare the table of a region with the record's; found is None where the address is wrong."""
        self.marked.append((opening.start, closing.end))
        before = self.text[self.text.rfind("\n", 0, opening.start) + 1:opening.start]
        if not LINE_START.fullmatch(before):
            self.problem(opening.start, f"a table's marker stands on a line of its own, not after {named(before)}")
            return
        tables = [table for table in self.tables_found if opening.end <= table.start and table.end <= closing.start]
        if len(tables) > 1:
            self.problem(opening.start, f"{len(tables)} tables in one region; expected one")
        elif found:
            self.tables += 1
            lines = rendered(found.rows)
            rows = [[unwrapped(line[start:end]) for start, end in cell_spans(line, 0, len(line))]
                    for line in (lines[0], *lines[2:])]
            address = " ".join(opening.address.split())
            if not tables:
                self.fill(opening, closing, lines, re.sub(r"[^\s>]", " ", before))
                self.find(opening.start, f"no table in the region of {address}; update writes it")
            elif differences := list(self.table_differences(tables[0], rows)):
                for position, text in differences:
                    self.find(position, f"{text} ({address})")
                self.edits.append(Edit(tables[0].start, tables[0].end,
                                       table_text(lines, tables[0].prefix, self.newline(opening.end))))

    def fill(self, opening, closing, lines, prefix):
        """Put the table between two markers that have none between them."""
        newline = self.newline(opening.end)
        self.edits.append(Edit(opening.end, closing.start, newline + table_text(lines, prefix, newline) + prefix))

    def newline(self, position):
        """The line end of the line that a position is in."""
        end = self.text.find("\n", position)
        return "\r\n" if end > 0 and self.text[end - 1] == "\r" else "\n"

    def table_differences(self, table, rows):
        """(position, text) for each cell that is not as it should be, and for rows and columns that lack or are too many."""
        own = [[(start, unwrapped(self.text[start:end])) for start, end in row] for row in table.rows]
        texts = [[text for _, text in row] for row in own]
        if texts[0] == rows[0] and [row[:1] for row in texts] == [row[:1] for row in rows]:
            columns, lines = range(len(rows[0])), zip(own, rows)
        else:
            yield from ((table.start, text) for text in shape_differences(texts, rows))
            columns = [at for at, head in enumerate(rows[0]) if head in texts[0]]
            labels = {row[0][1]: row for row in own if row}
            lines = ((labels[row[0]], row) for row in rows[1:] if row[0] in labels)
        heads = texts[0]
        for cells, row in lines:
            for column in columns:
                at = column if heads == rows[0] else heads.index(rows[0][column])
                start, text = cells[at] if at < len(cells) else (cells[-1][0], "")
                if text != row[column]:
                    yield start, (f"printed {text or 'nothing'}, but {row[0] or 'the head'}, {rows[0][column]} is "
                                  f"{row[column] or 'empty'}")

    # The front matter: model-index

    def read_front(self):
        """Read the markers of the front matter."""
        front = self.markdown.front
        markers = [(match, marker) for match in YAML_COMMENT.finditer(self.text, front.start("yaml"), front.end("yaml"))
                   if (marker := self.yaml_marker(match))] if front else []
        if not any(marker.close or has_word(marker.address, "model-index") for _, marker in markers):
            return  # without them, "# metrics: …" is a list of metrics that somebody commented out
        opened = None
        for _, marker in markers:
            if marker.close == (opened is None):
                self.problem(marker.start, "# /metrics closes nothing" if marker.close else
                             f"a marker inside the region that opens in line {self.line(opened.start)}; close that one first")
            elif marker.close:
                self.read_index(opened, marker)
            opened = None if marker.close else marker
        if opened:
            self.problem(opened.start, "this region is never closed; expected # /metrics after the model-index")

    def yaml_marker(self, match):
        """The Marker of a YAML comment on a line of its own, or None."""
        marker = MARKER.match(match["body"])
        speaks = marker and marker["word"].lower() == "metrics" and (marker["colon"] or marker["close"])
        return Marker(match.start(), match.end(), bool(marker["close"]), marker["address"]) if speaks else None

    def read_index(self, opening, closing):
        """Compare the lines between two markers of the front matter with the model-index that the records give."""
        from harness.model_index import lines_of, merged

        self.marked.append((opening.start, closing.end))
        parts = [self.resolve(opening, address) for address in opening.address.split(";")]
        if not all(isinstance(part, Results) for part in parts):
            if None not in parts:
                self.problem(opening.start, f"metrics: {opening.address}: expected an address that ends in model-index")
            return
        self.tables += 1
        newline = self.newline(opening.end)
        start, end = self.text.find("\n", opening.end) + 1, closing.start
        old, new = self.text[start:end].splitlines(), lines_of(merged(part.models for part in parts))
        if [line.rstrip() for line in old] != new:
            self.edits.append(Edit(start, end, "".join(line + newline for line in new)))
            if len(old) != len(new):
                self.find(opening.start, f"the model-index has {len(old)} lines, but {opening.address} gives {len(new)}")
            for at, (was, line) in enumerate(zip(old, new)) if len(old) == len(new) else ():
                if was.rstrip() != line:
                    self.findings.append(Finding(self.line(start) + at,
                                                 f"printed {was.strip()}, but {opening.address} gives {line.strip()}"))

    # Results

    def updated(self):
        """The text with every marked number and table as the records give it; all else as it was."""
        parts, at = [], 0
        for edit in sorted(self.edits):
            parts += [self.text[at:edit.start], edit.text]
            at = edit.end
        return "".join([*parts, self.text[at:]])

    def is_marked(self):
        """Whether any number or table of the card is tied to the records."""
        return bool(self.numbers or self.tables)

    def counts(self):
        """How much of the card is marked, in words."""
        return (f"{self.numbers:,} marked number{'s' * (self.numbers != 1)} and "
                f"{self.tables:,} marked table{'s' * (self.tables != 1)}")


def read_card(path):
    """(byte-order mark or "", text) of a card, with its line ends as they are."""
    content = read_bytes(path)
    return "\ufeff" * content.startswith(b"\xef\xbb\xbf"), decode_utf8(content, path)


def rendered(rows):
    """The lines of a table as metrics.py writes it in Markdown."""
    return [line for line in metrics.render([("", rows, ())], markdown=True).split("\n") if line.startswith("|")]


def table_text(lines, prefix, newline):
    """Lines with what stands before and after each in the card."""
    return "".join(prefix + line + newline for line in lines)


def unwrapped(cell):
    """A cell's text without the emphasis around all of it, and without comments."""
    cell = re.sub(r"<!--.*?-->", "", cell).strip()
    match = re.fullmatch(r"(\*\*|__|\*|_|`)(.+)\1", cell)
    return match[2].strip() if match else " ".join(cell.split())


def shape_differences(texts, rows):
    """What lacks of the rows and columns of a table, and what is too many, in words."""
    for what, old, new in (("column", texts[0], rows[0]), ("row", [row[0] for row in texts[1:] if row],
                                                           [row[0] for row in rows[1:]])):
        lacking, extra = [name for name in new if name not in old], [name for name in old if name not in new]
        if lacking:
            yield f"{what}s that lack: {', '.join(lacking)}"
        if extra:
            yield f"{what}s that the record does not give: {', '.join(extra)}"
        if not lacking and not extra and old != new:
            yield f"the {what}s are in another order or number; expected {', '.join(new)}"


def read_cards(paths, directory):
    """The Cards of several files. Raises RecordError with the problems of all of them."""
    records, notes = metrics.load_records(directory)
    library = Library(records)
    cards, problems = [], []
    for path in paths:
        try:
            cards.append(Card(path, library))
            problems += cards[-1].problems
        except RecordError as error:
            problems += error.problems
    if problems:
        raise RecordError(problems)
    return cards, library


def check(cards, library, require_marks=False):
    """Print what is not as the records give it; the exit status. require_marks: a card without marks is not all right."""
    from harness.unmarked import suggestions

    everything = Everything(library)
    for card in cards:
        for line, text in sorted(card.findings, key=lambda finding: finding.line):
            print(f"{card.path}:{line}: {text}")
        for line, text in suggestions(card.markdown, everything, card.marked):
            print(f"suggestion: {card.path}:{line}: {text}")
        wrong = f"; {len(card.findings):,} not as the records give them" if card.findings else ", as the records give them"
        print(f"{card.path}: {card.counts()}{wrong}" if card.is_marked() else f"{card.path}: no marked numbers: nothing was checked")
    unmarked = require_marks and not all(card.is_marked() for card in cards)
    return 1 if unmarked or any(card.findings for card in cards) else 0


def update(cards):
    """Rewrite what is not as the records give it; the exit status."""
    changed = [card for card in cards if card.edits]
    for card in changed:
        write_whole(os.path.realpath(card.path), card.bom + card.updated())
    for card in cards:
        print(f"{card.path}: {f'{len(card.edits):,} updated of ' if card.edits else 'nothing to update in '}{card.counts()}")
    return 0


def main(argv):
    """Run `card`; the exit status."""
    from harness.arguments import Parser

    parser = Parser(prog="python -m harness card", description="Tie the numbers of a model card to the records.",
                                     epilog="Exit status: 0 all as the records give it (or updated), 1 not, 2 bad input.")
    parser.add_argument("action", choices=("check", "update"))
    parser.add_argument("cards", nargs="+", metavar="CARD", help="Markdown files")
    parser.add_argument("--directory", metavar="DIR", help="the records (default: records, or this folder)")
    parser.add_argument("--require-marks", action="store_true", help="check: exit 1 for a card in which nothing is marked")
    options = parser.parse_args(argv)
    if options.require_marks and options.action != "check":
        parser.error("--require-marks is for card check")
    directory = options.directory or ("records" if os.path.isdir("records") else ".")
    cards, library = read_cards(list(dict.fromkeys(options.cards)), directory)
    return check(cards, library, options.require_marks) if options.action == "check" else update(cards)
