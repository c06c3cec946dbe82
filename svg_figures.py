"""Draws charts as self-contained SVG text, the same bytes every time, for light and for dark pages.

colours    COLOURS, SERIES, contrast, blend
numbers    number, rounded, score, change, count
text       clean, plain, label, distinct, text_width, shorten, wrap, balance, fold
scales     Scale, ticks, round_axis, spaced, push
drawing    Figure: a card with title and subtitle, and the marks, axes, cells and keys on it

    figure = Figure("speed", "Speed by size", "Mean of 5 runs, in seconds")
    scale, values = round_axis(0, 1.7, 100, 700)
    figure.x_axis(scale, values, figure.y + 40)
    figure.mark(scale(1.5), figure.y + 20, SERIES[1])
    figure.y += 60
    text = figure.svg("One run took 1.5 seconds.")

One file that imports only the standard library: copy it where it is needed. Lengths are pixels of the drawing; y grows downwards.
"""

import math
import re
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

# ---- colours ---------------------------------------------------------------------------------------------------------

# role -> (on a light page, on a dark page)
COLOURS = {
    "card": ("#ffffff", "#0d1117"),
    "edge": ("#d1d9e0", "#3d444d"),
    "grid": ("#e3e7ec", "#262c36"),
    "axis": ("#818b98", "#656c76"),
    "ink": ("#1f2328", "#f0f6fc"),
    "muted": ("#59636e", "#9198a1"),
    "base": ("#6e7781", "#9198a1"),
    "candidate": ("#0550ae", "#6cb6ff"),
    "third": ("#b84a00", "#f0a03c"),
    "fourth": ("#007a5c", "#2fbf95"),
}


class Series(NamedTuple):
    """How one series is drawn: its colour, its marker (with its radius, also in small panels) and its line."""

    role: str
    marker: str
    radius: float
    small: float
    width: float
    dash: str | None


SERIES = (
    Series("base", "ring", 5.5, 4.4, 1.8, "5 3"),
    Series("candidate", "dot", 3.8, 3.4, 2.4, None),
    Series("third", "diamond", 5.4, 4.8, 2, "8 3"),
    Series("fourth", "square", 3.8, 3.4, 2, "2 3"),
)
CHANGED, WORSENED, UNCHANGED, NEUTRAL = SERIES[1], SERIES[2], SERIES[1]._replace(role="base"), SERIES[1]._replace(role="ink")


def channels(colour):
    """The red, green and blue of "#rrggbb", each 0 to 255."""
    return tuple(int(colour[at:at + 2], 16) for at in (1, 3, 5))


def blend(over, under, opacity):
    """The colour "#rrggbb" seen where one colour lies over another with this opacity."""
    mixed = (round(opacity * top + (1 - opacity) * bottom) for top, bottom in zip(channels(over), channels(under)))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def luminance(colour):
    """The relative luminance of "#rrggbb" (WCAG 2), 0 for black to 1 for white."""
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
              for value in (channel / 255 for channel in channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """The contrast of two colours (WCAG 2): 1 for equal ones, 21 for black on white."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def ink_over(role, opacity):
    """The text colours (light page, dark page) that read on a role's colour laid over the card with this opacity.

    Ink as long as its contrast is 4.5:1, else black or white, whichever is clearer: one of the two always reaches it.
    """
    chosen = []
    for ink, colour, card in zip(COLOURS["ink"], COLOURS[role], COLOURS["card"]):
        ground = blend(colour, card, opacity)
        best = max(("#ffffff", "#000000"), key=lambda text: contrast(text, ground))
        chosen.append(ink if contrast(ink, ground) >= 4.5 else best)
    return tuple(chosen)


# ---- numbers ---------------------------------------------------------------------------------------------------------

MINUS = "\u2212"


def number(value):
    """A coordinate: one decimal, no trailing zeros, no -0. Raises ValueError for what isn't finite."""
    if not math.isfinite(value):
        raise ValueError(f"cannot draw at {value}")
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def rounded(value, decimals):
    """A number as text with so many decimals, halves rounded away from zero as a reader of its decimals does: 0.1175 is "0.118".

    f"{0.1175:.3f}" is "0.117", because the float nearest to 0.1175 lies below it. Digits after the twelfth decimal are a float's
    noise. Only zero itself reads as zero: what is smaller than shown gets a decimal more, or "<" or ">" before its sign.
    """
    from decimal import ROUND_HALF_UP, Decimal

    if not abs(value) < 1e15:  # where a float has no decimals left
        return f"{value:.{decimals}f}"
    exact = Decimal(repr(round(float(value), max(12, decimals)) + 0.0))
    for places in (decimals, decimals + 1):
        near = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
        if near or not exact:
            return f"{near:f}"
    return f"{'<' if exact > 0 else '>-'}{Decimal(1).scaleb(-decimals - 1):f}"


def score(value, decimals=3):
    """A score as text: 0.919; a missing one (None or NaN) is "n/a"; see rounded."""
    return "n/a" if missing(value) else rounded(value, decimals).replace("-", MINUS)


def change(value, decimals=3):
    """A change as text: +0.068 or, with a minus sign, \u22120.013; only no change at all, 0.000, has no sign; see rounded."""
    text = score(value, decimals)
    if missing(value) or not value > 0 or not text.strip("0."):
        return text
    return text.replace("<", "<+") if "<" in text else "+" + text


def count(value, singular="", plural=None):
    """A count as text: "1,204", or with a noun "1,204 rows", "1 row"."""
    noun = singular if value == 1 else plural or singular + "s" if singular else ""
    return f"{value:,} {noun}".rstrip()


def missing(value):
    """True for None and NaN: nothing to draw."""
    return value is None or value != value


# ---- text ------------------------------------------------------------------------------------------------------------

# Advances of DejaVu Sans, the widest likely fallback, per 1000 em for the characters 32 to 126: whatever font a reader
# has, text takes no more room than this.
ADVANCES = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
    *[636] * 10, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748,
    787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,
    635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838)
OTHERS = {"\u00a0": 318, "\u2026": 1000, "\u2014": 1000}
UNKNOWN, WIDE, EMOJI = 838, 1000, 1300
BOLD = 1.12
NO_BREAK = "\u00a0"
ELLIPSIS = "\u2026"
ISOLATE, POP = "\u2068", "\u2069"
FONTS = '-apple-system,BlinkMacSystemFont,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif'

# What XML 1.0 cannot hold at all, not even escaped.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Characters that turn the direction of the text around them: in a name they could reorder a whole line.
DIRECTION_CONTROL = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text):
    """The text with every character that XML cannot hold replaced by U+FFFD."""
    return NOT_XML.sub("\ufffd", str(text))


def plain(text):
    """A foreign text as one line without control characters of any kind."""
    return " ".join(DIRECTION_CONTROL.sub("", clean(text)).split()) or "(no name)"


def label(text, width=math.inf, size=12, bold=False):
    """A foreign name, safe inside a sentence: one line, at most so wide, right-to-left text kept apart from what surrounds it."""
    return isolate(shorten(plain(text), width, size, bold))


def isolate(text):
    """The text, marked as one that does not turn what surrounds it if it has a character that is written from right to left."""
    if text.isascii():
        return text
    from unicodedata import bidirectional

    turned = any(bidirectional(character) in ("R", "AL", "AN") for character in text)
    return ISOLATE + text + POP if turned else text


def distinct(names, width, size=12, bold=False):
    """The labels of names, no two alike: names that are shortened to the same text are cut where they differ, else numbered.

    "data set number 1 by year" and "data set number 2 by year" become "data set number 1…" and "data set number 2…", or with
    less room "data…1 by…" and "data…2 by…".
    """
    names = [plain(name) for name in names]
    texts = [shorten(name, width, size, bold) for name in names]
    for first_difference in (False, True, True, True):  # a cut at the first difference may leave smaller groups alike
        for group in alike(texts):
            at = shared_length([names[index] for index in group]) if first_difference else None
            cut = [cut_at(names[index], at, width, size, bold) for index in group]
            if len(set(cut)) == len(group) or first_difference and len(set(cut)) > 1:
                for index, text in zip(group, cut):
                    texts[index] = text
    for group in alike(texts):
        for place, index in enumerate(group[1:], 2):
            suffix = f" ({place})"
            texts[index] = shorten(names[index], width - text_width(suffix, size, bold), size, bold) + suffix
    return [isolate(text) for text in texts]


def alike(texts):
    """The groups of indices, two or more, whose texts are the same."""
    groups = {}
    for index, text in enumerate(texts):
        groups.setdefault(text, []).append(index)
    return [group for group in groups.values() if len(group) > 1]


def shared_length(names):
    """How many characters the names begin with in common, without a mark's own character."""
    from os.path import commonprefix

    at = len(commonprefix(names))
    while at and any(at < len(name) and not advance(name[at]) for name in names):
        at -= 1
    return at


def cut_at(name, at, width, size, bold):
    """A name's beginning, then what follows from an index on, each as far as it fits; without an index only the beginning."""
    if text_width(name, size, bold) <= width:
        return name
    dots = text_width(ELLIPSIS, size, bold)
    if at is None:
        return "".join(fitting(clusters(name), width - dots, size, bold)).rstrip() + ELLIPSIS
    before, after = clusters(name[:at]), clusters(name[at:])
    head = fitting(before, 0.35 * (width - 2 * dots), size, bold)
    start = "".join(head).rstrip() + ELLIPSIS * (len(head) < len(before))
    room = width - text_width(start, size, bold)
    tail = after if text_width(name[at:], size, bold) <= room else fitting(after, room - dots, size, bold)
    return start + ("".join(tail).rstrip() + ELLIPSIS if len(tail) < len(after) else name[at:])


def advance(character):
    """The width of one character per 1000 em."""
    code = ord(character)
    if 32 <= code <= 126:
        return ADVANCES[code - 32]
    if character in OTHERS:
        return OTHERS[character]
    from unicodedata import category, east_asian_width

    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return EMOJI if code >= 0x1F000 else WIDE if east_asian_width(character) in "WF" else UNKNOWN


def text_width(text, size=12, bold=False):
    """The room to keep for a text, in pixels: "k = 1" at size 12 is (579 + 318 + 838 + 318 + 636) * 12 / 1000 = 32.3."""
    return sum(map(advance, text)) * size / 1000 * (BOLD if bold else 1)


def hold_edges(text):
    """A text whose spaces at the edges are no-break spaces: some renderers drop plain ones at the edge of a run."""
    inner = text.strip(" ")
    start = len(text) - len(text.lstrip(" "))
    return NO_BREAK * start + inner + NO_BREAK * (len(text) - len(inner) - start)


def shorten(text, width, size=12, bold=False):
    """The text if it fits the width, else its beginning and its end around an ellipsis: names often differ at the end."""
    if text_width(text, size, bold) <= width:
        return text
    room = width - text_width(ELLIPSIS, size, bold)
    parts = clusters(text)
    head, tail = fitting(parts, room * 0.6, size, bold), fitting(parts[::-1], room * 0.4, size, bold)[::-1]
    return "".join(head).rstrip() + ELLIPSIS + "".join(tail).lstrip()


def clusters(text):
    """The text in pieces that are seen as one character: each with the marks that combine with it."""
    parts = []
    for character in text:
        if parts and not advance(character):
            parts[-1] += character
        else:
            parts.append(character)
    return parts


def fitting(parts, width, size, bold):
    """The first of the pieces that fit the width together."""
    used = 0
    for at, part in enumerate(parts):
        used += text_width(part, size, bold)
        if used > width:
            return parts[:at]
    return parts


def wrap(text, width, size=12, bold=False):
    """The text as lines that fit the width, broken at spaces but no-break ones; a word that doesn't fit a line is shortened."""
    lines = [""]
    for word in re.split("[ \t\n]+", text.strip()):
        word = shorten(word, width, size, bold)
        longer = f"{lines[-1]} {word}".lstrip()
        if text_width(longer, size, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def balance(text, width, size=12, bold=False, share=1):
    """The text wrapped into as few lines as fit the width, the last one at least this share of it long where possible."""
    lines, narrow = wrap(text, width, size, bold), width
    while len(lines) > 1 and text_width(lines[-1], size, bold) < share * width:
        narrow -= 10
        narrower = wrap(text, narrow, size, bold)
        if len(narrower) > len(lines):
            break
        lines = narrower
    return lines


def fold(text, width, size=12, bold=False, most=3):
    """A name as at most so many lines that fit the width, broken at spaces, hyphens and the like; what is left is shortened."""
    lines = [""]
    for piece in re.findall(r"[^-_/. ]+[-_/. ]?|[-_/. ]", plain(text)):
        wide = text_width((lines[-1] + piece).rstrip(), size, bold) > width
        if wide and lines[-1].strip() and piece.strip() and len(lines) < most:
            lines.append("")
        lines[-1] += piece
    return [label(line, width, size, bold) for line in lines]


# ---- scales ----------------------------------------------------------------------------------------------------------

class Scale:
    """Maps values from low to high onto pixels from start to end, linearly or by their logarithm.

    Scale(0, 1, 100, 300)(0.5) is 200. Equal limits are widened to a range that has a length.
    """

    def __init__(self, low, high, start, end, log=False):
        if log and low <= 0:
            raise ValueError(f"a logarithmic scale starts above 0, not at {low}")
        if low == high:
            low, high = (low / 2, low * 2) if log else sorted((0, 2 * low or 1))
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log
        self._from = math.log(low) if log else low
        self._by = (end - start) / ((math.log(high) if log else high) - self._from)

    def __call__(self, value):
        return self.start + ((math.log(value) if self.log else value) - self._from) * self._by

    def ticks(self, pixels=80):
        """Round values between the limits, about one per so many pixels; see ticks."""
        return ticks(self.low, self.high, max(1, round(abs(self.end - self.start) / pixels)))


def tick_step(low, high, number_wanted):
    """(factor, power): the step factor * 10**power, factor 1, 2, 5 or 10, that cuts a range into about so many parts."""
    raw = (high - low) / number_wanted
    power = math.floor(math.log10(raw))
    error = raw / 10.0 ** power
    factor = 10 if error >= math.sqrt(50) else 5 if error >= math.sqrt(10) else 2 if error >= math.sqrt(2) else 1
    return (1, power + 1) if factor == 10 else (factor, power)


def ticks(low, high, number_wanted):
    """The multiples of a round step from low to high: ticks(0, 1, 2) is [0, 0.5, 1]."""
    factor, power = tick_step(low, high, number_wanted)
    step = factor * 10.0 ** power
    return multiples(factor, power, math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9))


def multiples(factor, power, first, last):
    """The multiples first to last of factor * 10**power, each from its index: the float nearest to what its label says."""
    return [index * factor * 10 ** power if power >= 0 else index * factor / 10 ** -power for index in range(first, last + 1)]


def tick_decimals(values):
    """How many decimals the values need, at most 12: 1 for 0, 0.5, 1."""
    return max(len(f"{value:.12f}".rstrip("0").partition(".")[2]) for value in values)


def round_axis(low, high, start, end, pixels=80):
    """(Scale, its ticks) for an axis that begins and ends at a tick, with about one tick per so many pixels."""
    if low == high:
        low, high = sorted((0, 2 * low or 1))
    factor, power = tick_step(low, high, max(1, abs(end - start) / pixels))
    step = factor * 10.0 ** power
    values = multiples(factor, power, math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9))
    return Scale(values[0], values[-1], start, end), values


def spaced(positions, widths, gap=6):
    """The indices of centred labels that can stand side by side, left to right; the last always stays.

    spaced([0, 10, 20, 30, 100], [20] * 5) is [0, 3, 4].
    """
    edges = [(position - width / 2, position + width / 2) for position, width in zip(positions, widths)]
    kept, free = [], -math.inf
    for at, (left, right) in enumerate(edges):
        if left >= free and (at == len(edges) - 1 or right + gap <= edges[-1][0]):
            kept.append(at)
            free = right + gap
    return kept


def push(positions, low, high, gap=14):
    """The positions moved as little as needed (least squares) to be a gap apart and between low and high; same order in and out.

    push([50, 52], 0, 100) is [44, 58]. More of them than the space holds overlap the upper limit.
    """
    order = sorted(range(len(positions)), key=positions.__getitem__)
    blocks = []  # [sum, members] of neighbours that move as one
    for rank, index in enumerate(order):
        blocks.append([positions[index] - rank * gap, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, members = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total, blocks[-1][1] + members]
    start = [total / members for total, members in blocks for _ in range(members)]
    pushed = [0.0] * len(positions)
    for rank, index in enumerate(order):
        pushed[index] = max(min(start[rank], high - (len(order) - 1) * gap), low) + rank * gap
    return pushed


# ---- drawing ---------------------------------------------------------------------------------------------------------

PADDING = 20
MIDDLE = 0.36  # of the size: from the middle of a line of text down to its baseline


def element(tag, attributes, content=""):
    """One SVG element as text. Everything that is drawn passes here: values are cleaned and escaped, numbers formatted."""
    pairs = "".join(f" {name.replace('_', '-')}={quoteattr(value if isinstance(value, str) else number(value))}"
                    for name, value in attributes.items() if value is not None)
    return clean(f"<{tag}{pairs}>{content}</{tag}>" if content else f"<{tag}{pairs}/>")


class Figure:
    """A card with a title and a subtitle; draw on it, keep y at the first free line, then take the text with svg()."""

    def __init__(self, name, title, subtitle="", width=760):
        self.name, self.title, self.width = name, title, width
        self.left, self.right = PADDING, width - PADDING
        self.y = PADDING
        self.elements = []
        self.classes = {}
        self.paragraph(title, 18, "ink", True, share=1)
        if subtitle:
            self.paragraph(subtitle, size=13)

    # -- elements --

    def add(self, tag, content="", **attributes):
        """Add one element, one line of the file."""
        self.elements.append(element(tag, attributes, content))

    def paint(self, *, fill=None, stroke=None):
        """The class attribute for colours by role; notes them for the style sheet."""
        names = []
        for property_, role in (("fill", fill), ("stroke", stroke)):
            if role:
                names.append(f"{property_}-{role}")
                self.classes[names[-1]] = (property_, COLOURS[role])
        return " ".join(names)

    def text(self, x, y, value, fill="muted", size=12, bold=False, anchor="start"):
        """A text with its baseline at y; anchor "start", "middle" or "end" says which part of it x is."""
        self.runs(x, y, [(value, fill, bold)], size, anchor)

    def level(self, x, y, value, fill="muted", size=12, bold=False, anchor="start"):
        """A text with its middle at y, beside a mark or a tick there."""
        self.text(x, y + size * MIDDLE, value, fill, size, bold, anchor)

    def runs(self, x, y, runs, size=12, anchor="start"):
        """One line of text made of runs: [(text, colour role, bold), …]."""
        (value, fill, bold), *rest = runs
        content = escape(value) + "".join(
            element("tspan", {"class": self.paint(fill=fill), "font_weight": "600" if bold else "400"}, escape(hold_edges(value)))
            for value, fill, bold in rest)
        # Some renderers drop a space at the edge of a run, even a no-break one, unless they are told to preserve it.
        self.add("text", content, **{"class": self.paint(fill=fill), "xml:space": "preserve" if rest else None}, x=x, y=y,
                 font_size=None if size == 12 else size, font_weight="600" if bold else None,
                 text_anchor=None if anchor == "start" else anchor)

    def paragraph(self, text, size=12, fill="muted", bold=False, share=0.35):
        """Wrapped text from margin to margin below what is there, if it is any; see balance."""
        for line in balance(text, self.right - self.left, size, bold, share) if text.strip() else ():
            self.text(self.left, self.y + round(size * 0.8), line, fill, size, bold)
            self.y += size + 6

    def line(self, x1, y1, x2, y2, stroke="grid", width=1, dash=None):
        """A straight line."""
        self.add("line", **{"class": self.paint(stroke=stroke)}, x1=x1, y1=y1, x2=x2, y2=y2,
                 stroke_width=None if width == 1 else width, stroke_dasharray=dash)

    def curve(self, points, series):
        """A series' line through [(x, y), …], broken where y is None."""
        data = "".join(path_of(part) for part in unbroken(points) if len(part) > 1)
        if data:
            self.add("path", **{"class": self.paint(stroke=series.role)}, d=data, fill="none", stroke_width=series.width,
                     stroke_dasharray=series.dash, stroke_linejoin="round")

    def band(self, points, role="candidate", opacity="0.22"):
        """A shaded band through [(x, upper y, lower y), …], broken where a y is None."""
        for part in unbroken(points):
            outline = [(x, upper) for x, upper, _ in part] + [(x, lower) for x, _, lower in reversed(part)]
            if len(part) > 1:
                self.add("path", **{"class": self.paint(fill=role)}, d=path_of(outline) + "Z", fill_opacity=opacity)

    def bar(self, x1, y1, x2, y2, role="candidate", opacity=None, radius=None):
        """A filled rectangle between two corners, in any order."""
        self.add("rect", **{"class": self.paint(fill=role)}, x=min(x1, x2), y=min(y1, y2), width=abs(x2 - x1),
                 height=abs(y2 - y1), rx=radius, fill_opacity=opacity)

    def mark(self, x, y, series, small=False):
        """A series' marker: an open ring, a dot, a diamond or a square."""
        r = series.small if small else series.radius
        if series.marker == "ring":
            self.add("circle", **{"class": self.paint(fill="card", stroke=series.role)}, cx=x, cy=y, r=r, stroke_width=1.8)
        elif series.marker == "dot":
            self.add("circle", **{"class": self.paint(fill=series.role)}, cx=x, cy=y, r=r)
        else:
            corners = [(x, y - r), (x + r, y), (x, y + r), (x - r, y)] if series.marker == "diamond" else \
                [(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)]
            self.add("path", **{"class": self.paint(fill=series.role)}, d=path_of(corners) + "Z")

    def interval(self, x1, x2, y, role="candidate", cap=3, width=2):
        """A horizontal interval with end caps."""
        self.add("path", **{"class": self.paint(stroke=role)}, fill="none", stroke_width=width, d="".join(map(path_of, (
            [(x1, y), (x2, y)], [(x1, y - cap), (x1, y + cap)], [(x2, y - cap), (x2, y + cap)]))))

    def whisker(self, x, y1, y2, role="candidate", cap=3, width=1.4):
        """A vertical interval with end caps."""
        self.add("path", **{"class": self.paint(stroke=role)}, fill="none", stroke_width=width, d="".join(map(path_of, (
            [(x, y1), (x, y2)], [(x - cap, y1), (x + cap, y1)], [(x - cap, y2), (x + cap, y2)]))))

    # -- parts --

    def y_axis(self, scale, values, x1, x2, text=None, baseline=None):
        """Grid lines from x1 to x2 with their labels on the left; the line at the baseline is drawn as an axis."""
        text = text or plain_tick(values)
        for value in values:
            y = scale(value)
            self.line(x1, y, x2, y, "axis" if value == baseline else "grid")
            self.level(x1 - 8, y, text(value), anchor="end")

    def x_axis(self, scale, values, y, text=None, top=None):
        """An axis along y with ticks and as many labels as there is room for; with a top, grid lines up to there."""
        text = text or plain_tick(values)
        places, labels = [scale(value) for value in values], [text(value) for value in values]
        if top is not None:
            for x in places:
                self.line(x, top, x, y)
        self.line(scale.start, y, scale.end, y, "axis")
        for x in places:
            self.line(x, y, x, y + 4, "axis")
        for at in spaced(places, [text_width(value) for value in labels]):
            self.text(places[at], y + 17, labels[at], anchor="middle")

    def key(self, entries):
        """The key: [(series, text), …] side by side as long as they fit, each with a sample of its line and marker."""
        x = self.left
        self.y += 4
        for series, text in entries:
            text = label(text, self.right - self.left - 29, 13, True)
            width = 29 + text_width(text, 13, True)
            if x > self.left and x + width > self.right:
                x, self.y = self.left, self.y + 20
            middle = self.y + 8
            self.curve([(x, middle), (x + 22, middle)], series)
            self.mark(x + 11, middle, series)
            self.level(x + 29, middle, text, series.role, 13, True)
            x += width + 26
        self.y += 22

    def bars(self, rows, role="candidate"):
        """Horizontal bars from 0, [(name, value), …] with names that fit; a missing value is a gap that says so."""
        known = [value for _, value in rows if not missing(value)]
        if not known:
            self.text(self.left, self.y + 14, "no data", size=13)
            self.y += 30
            return
        names = max(text_width(name, 13) for name, _ in rows)
        low, high = min([0, *known]), max([0, *known])
        # less than a thousandth is not to be seen in the labels, and nothing at all still needs an axis
        scale, values = round_axis(low, high if high - low >= 0.001 else 1, self.left + names + 14, self.right - 54)
        bottom = self.y + 26 * len(rows) + 4
        self.x_axis(scale, values, bottom, top=self.y)
        for name, value in rows:
            middle = self.y + 15
            self.level(self.left, middle, name, "ink", 13)
            end = scale(0 if missing(value) else max(0, value))
            if not missing(value):
                self.bar(scale(0), middle - 8, scale(value), middle + 8, role)
            self.level(end + 7, middle, score(value), "muted" if missing(value) else role, bold=not missing(value))
            self.y += 26
        self.line(scale(0), self.y - 26 * len(rows), scale(0), bottom, "axis")
        self.y = bottom + 28

    def headers(self, columns, width, anchor="middle", size=12):
        """Column heads [(x, text), …] side by side, folded to the width and standing on one line, no two alike."""
        folded = [(x, fold(text, width, size, True)) for x, text in columns]
        if alike(tuple(lines) for _, lines in folded):
            folded = [(x, [text]) for (x, _), text in zip(columns, distinct([text for _, text in columns], width, size, True))]
        tallest = max(len(lines) for _, lines in folded)
        for x, lines in folded:
            for at, line in enumerate(lines):
                self.text(x, self.y + size - 2 + 14 * (tallest - len(lines) + at), line, "ink", size, True, anchor)
        self.y += 14 * tallest + 4

    def cell(self, x, y, width, height, lines, opacity, role="candidate", gap=2):
        """A shaded cell with lines of text, [(text, size, bold), …], in a colour that reads on the shade."""
        shade = f"{opacity:.2f}"
        self.bar(x, y, x + width - gap, y + height - gap, role, shade, 3)
        colours = ink_over(role, float(shade))
        name = "over-" + "-".join(colour[1:] for colour in colours)
        self.classes[name] = ("fill", colours)
        baseline = y + (height - gap - 15 * (len(lines) - 1)) / 2
        for text, size, bold in lines:
            self.add("text", escape(text), **{"class": name}, x=x + (width - gap) / 2, y=baseline + size * MIDDLE,
                     font_size=None if size == 12 else size, font_weight="600" if bold else None, text_anchor="middle")
            baseline += 15

    def svg(self, description):
        """The whole file as text: style, title, description, card and everything drawn on it."""
        height = math.ceil(self.y + PADDING - 4)
        ids = re.sub(r"[^A-Za-z0-9_-]+", "-", self.name) or "figure"
        self.paint(fill="card", stroke="edge")
        root = element("svg", {"xmlns": "http://www.w3.org/2000/svg", "width": self.width, "height": height,
                               "viewBox": f"0 0 {number(self.width)} {height}", "font_size": 12, "role": "img",
                               "aria_labelledby": f"{ids}-title {ids}-desc"}, "\n")
        card = element("rect", {"class": "fill-card stroke-edge", "x": 0.5, "y": 0.5, "width": self.width - 1,
                                "height": height - 1, "rx": 6})
        head = [element("title", {"id": f"{ids}-title"}, escape(self.title)),
                element("desc", {"id": f"{ids}-desc"}, escape(description)), element("style", {}, self._style())]
        return "\n".join([root.removesuffix("\n</svg>"), *head, card, *self.elements, "</svg>", ""])

    def _style(self):
        """The style sheet: the classes in use, first for light pages, then for dark ones."""
        light, dark = ("".join(f".{name}{{{property_}:{colours[theme]}}}\n"
                               for name, (property_, colours) in sorted(self.classes.items())) for theme in (0, 1))
        return (f"\ntext{{font-family:{escape(FONTS)};font-variant-numeric:tabular-nums}}\n{light}"
                f"@media (prefers-color-scheme:dark){{\n{dark}}}\n")


def plain_tick(values):
    """How ticks are written: all with as many decimals as one of them needs."""
    decimals = tick_decimals(values)
    return lambda value: score(value, decimals)


def path_of(points):
    """The path data through [(x, y), …]."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def unbroken(points):
    """The runs of points in which nothing is missing."""
    runs = [[]]
    for point in points:
        if any(map(missing, point)):
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]
