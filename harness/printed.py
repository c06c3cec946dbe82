"""Reads a number as it is printed in prose, tells whether it is a value rounded to those digits, and prints another in its style.

The one rule of rounding: a printed number is right when no number with as many digits lies nearer to the unrounded value. It
is applied to decimal digits, so that no binary rounding decides. An exact tie has two nearest numbers (0.125 at two digits:
0.12 and 0.13); both are right, and a new number takes the even one.
"""

import re
import unicodedata
from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

UNDEFINED = "undefined"
MINUS = ("-", "\u2212", "\u2013")
SPACES = " \u00a0\u2007\u2009\u202f"
UNITS = r"\\?%|\uff05|percentage[ ]points?|percent|points?|pp\b|p\.p\."
# What may stand between a number and the comment that ties it: emphasis, a closing bracket or tag, one line break.
CLOSING = r"(?:[*_`~)\]]|</\w+>)*"
# A number is no part of a word, but scripts without spaces may stand right before it.
APART = r"(?<![A-Za-z0-9_.,\u00aa-\u024f\u0370-\u052f])"
AFTER = rf"{CLOSING}[ \t]*(?:\r?\n[ \t]*)?\Z"
DIGITS = rf"\d+(?:[.,'\u2019{SPACES[1:]}]\d+)*|\.\d+"
SPACED = r"\d{1,3}(?:[ ]\d{3})+(?:[.,]\d+)?"  # a plain space groups thousands, but only where a share can't stand


def number_pattern(digits):
    """The pattern of a number, with its sign and unit, right before a comment."""
    return re.compile(
        rf"""(?P<bound>(?:<|&lt;)[{SPACES}]?)?{APART}(?P<sign>[-+\u2212\u2013]?)
        (?P<digits>{digits})(?P<power>[eE][-+]?\d+)?(?P<unit>[*_]*[{SPACES}]?(?:{UNITS}))?{AFTER}""", re.VERBOSE)


NUMBER, SPACED_NUMBER = number_pattern(DIGITS), number_pattern(f"{SPACED}|{DIGITS}")
WORD = re.compile(rf"{APART}(?P<word>{UNDEFINED}){AFTER}")


# What a reader doesn't see, before a number and after its comment: emphasis, tags of emphasis, opening brackets.
UNSEEN = re.compile(r"(?:[*_`~]|</?(?:b|strong|em|i|code|span)\b[^<>]*>)\Z", re.IGNORECASE)
BRACKETS = re.compile(r"[(\[]\Z")
BLOCK_TAG = re.compile(r"<(?:td|th|p|li|div|br|center|summary|h[1-6])\b[^<>]*>\Z", re.IGNORECASE)
GLUED = re.compile(r"(?:&#?\w+;|<!--(?:(?!-->).)*-->|-->|</?[A-Za-z][^<>]*>)\Z", re.DOTALL)
UNSEEN_AFTER = re.compile(r"(?:[*_`~\\]|</?[A-Za-z][^<>]*>|<!--.*?-->|[\u00ad\u200b-\u200f\u2060-\u2064\ufeff])*", re.DOTALL)
STRUCK = re.compile(r"~|</(?:del|s|strike|su[bp])>", re.IGNORECASE)
SIGNS = "-+\u2212\u02d7\u207b\u208b\u2795\u2796\uff0b"  # besides all dashes
SPACED_SIGNS = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"  # a space may follow; a long dash and a space end a clause
BULLET = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*[-+*]\Z|[ \t>]*[- ]+\Z")
CONTINUED = re.compile(
    r"[\w\u00b2\u00b3\u00b9\u2070-\u209f%\uff05\u2030\u00d7^]|[.,'\u2019\u00a0\u2000-\u200a\u202f]\d|\s?(?:%|\uff05)")
WORD_OF_ITS_OWN = re.compile("[\u0900-\U0003ffff]")  # scripts without spaces may follow, but not their powers of ten
POWERS = "\u5341\u767e\u5343\u4e07\u842c\u4ebf\u5104\u5146\ucc9c\ub9cc\uc5b5"


class Value(NamedTuple):
    """A number that a record gives: kind "share" (a metric, a difference, a p-value), "count" or "raw" (a check's value); metric
    says how metrics.py shows it. number is None where it is undefined."""

    number: float | int | None
    kind: str = "share"
    metric: str = ""

    @property
    def exact(self):
        """The value in decimal digits."""
        return None if self.number is None else Decimal(repr(self.number))


class Printed(NamedTuple):
    """A number in a text: where it starts and ends there, and how it is written. number is None for the word "undefined"."""

    start: int
    end: int  # of the digits
    shown_end: int  # of the unit
    shown: str
    number: Decimal | None = None
    places: int = 0  # the exponent of the last digit: -2 for 0.12 and -7 for 1.2e-6
    percent: bool = False
    bound: str = ""
    sign: str = ""
    power: bool = False
    mark: str = "."
    group: str = ""
    bare: bool = False  # no digit before the decimal mark


def find_printed(text, kind, end=None):
    """The Printed that a text ends with, or None; kind as in Value decides what a comma means, and whether a plain space groups
    thousands. end: where the text ends."""
    end = len(text) if end is None else end
    start = max(0, end - 200)
    if word := WORD.search(text, start, end):
        return Printed(word.start("word"), word.end("word"), word.end("word"), word["word"])
    match = (NUMBER if kind == "share" else SPACED_NUMBER).search(text, start, end)
    parts = match and split_digits(match["digits"], kind)
    if not parts:
        return None
    whole, mark, decimals, group = parts
    sign, power = match["sign"], match["power"] or ""
    number = Decimal(f"{'-' * (sign in MINUS)}{whole}.{decimals or 0}{power}")
    begin = match.start("bound") if match["bound"] else match.start("sign")
    end = match.end("power") if power else match.end("digits")
    shown_end = match.end("unit") if match["unit"] else end
    return Printed(begin, end, shown_end, text[begin:shown_end], number, int(power[1:] or 0) - len(decimals), bool(match["unit"]),
                   match["bound"] or "", sign, bool(power), mark or ".", group, not whole)


def doubt(text, printed, start, end, kind):
    """Why a reader may see another number than a Printed, in words, or "": its comment is text[start:end]."""
    shown = text[printed.shown_end:start]
    if STRUCK.search(shown) or STRUCK.search(UNSEEN_AFTER.match(text, end, end + 1000)[0]):
        return "it is struck through, or raised"
    if before := doubt_before(text[max(0, printed.start - 1000):printed.start], kind):
        return f"{quoted(before)} stands right before it"
    if after := doubt_after(text[end:end + 1000], printed, kind):
        return f"{quoted(after)} stands right after its comment"
    return ""


def is_whole(printed):
    """Whether a number is printed as counts are: no decimals, no power of ten."""
    return printed.number is None or not (printed.places < 0 or printed.power or printed.bare)


def quoted(text):
    """A piece of text in quotation marks; what can't be seen as its code point."""
    return '"' + "".join(each if each.isprintable() else f"U+{ord(each):04X}" for each in text) + '"'


def doubt_before(text, kind):
    """What stands before a number and may belong to it, or ""."""
    seen = stripped(text, UNSEEN)
    if BLOCK_TAG.search(seen):
        return ""
    if glued := GLUED.search(seen):
        return glued[0]
    if not seen:
        return ""
    category = unicodedata.category(seen[-1])
    if category in ("Cf", "Mn", "Me", "Nd", "Nl", "No") or seen != text and not re.search(rf"{APART}\Z", seen):
        return seen[-1]
    if category == "Zs" and seen[-1] != " " and re.search(r"[\d,.]\Z", seen.rstrip()):
        return seen.rstrip()[-1] + seen[-1]
    if seen[-2:-1].isdigit() and ord(seen[-1]) > 127 and category in ("Po", "Sm", "Sk", "Lm"):
        return seen[-2:]  # a mark of thousands, of decimals or of a fraction in another script
    return sign_before(stripped(seen, UNSEEN, BRACKETS), kind)


def sign_before(seen, kind):
    """A sign before a number that its pattern does not take, or "": glued, but not between two numbers, or before a space."""
    if seen and is_sign(seen[-1]):
        return "" if seen[-1] in "-\u2013" and seen[-2:-1].isdigit() else seen[-1]
    apart = seen.rstrip()
    if kind == "count" or apart[-1:] not in tuple(SPACED_SIGNS):
        entity = re.search(r"&(?:minus|#8722|#x2212|#45|#x2d|ndash|#8211|hyphen|dash);\Z", apart, re.IGNORECASE)
        return entity[0] if entity and kind != "count" else ""
    return "" if BULLET.match(apart[apart.rfind("\n") + 1:]) else apart[-1]


def is_sign(character):
    """Whether a character looks like a minus or a plus."""
    return character in SIGNS or unicodedata.category(character) == "Pd"


def stripped(text, *patterns):
    """A text without what any of the patterns finds at its end, as often as it does."""
    while match := next((found for pattern in patterns if (found := pattern.search(text))), None):
        text = text[:match.start()]
    return text


def doubt_after(text, printed, kind):
    """What stands after a number's comment and may belong to the number, or ""."""
    import html

    seen = html.unescape(text[UNSEEN_AFTER.match(text).end():])
    if kind != "count" and not printed.percent and (unit := re.match(rf"\s?(?:{UNITS})", seen)):
        return unit[0]
    found = CONTINUED.match(seen)
    alone = found and WORD_OF_ITS_OWN.match(found[0]) and found[0].isalpha() and found[0] not in POWERS
    return found[0] if found and not alone else ""


def split_digits(digits, kind):
    """(whole digits, decimal mark, decimals, group mark) of digits with marks between them, or None where they are no number.

    In a count every mark groups thousands, and the first group is no 0. In a share a single point or comma is the decimal mark,
    and of two kinds the last one is. In a raw value a comma or a space before exactly three digits groups. A point may stand first: .5 is one half.
    """
    parts, marks = re.split(r"\D", digits), re.findall(r"\D", digits)
    grouped = bool(marks) and len(set(marks)) == 1 and 0 < len(parts[0]) <= 3 and all(len(part) == 3 for part in parts[1:])
    grouped = grouped and parts[0][0] != "0"
    alone = len(marks) == 1 and marks[0] in ".,"
    if grouped and (kind == "count" or not alone or kind == "raw" and marks[0] == ","):
        return "".join(parts), "", "", marks[0]
    if alone:
        return parts[0], marks[0], parts[1], ""
    if marks and marks[-1] in ".,":
        rest = split_digits(digits[:len(digits) - len(parts[-1]) - 1], "count")
        if rest and rest[3] and rest[3] != marks[-1]:
            return rest[0], marks[-1], parts[-1], rest[3]
    return None if marks else (digits, "", "", "")


def is_right(printed, value):
    """Whether a printed number is what a Value gives, at the digits it is printed with."""
    if printed.number is None or value.number is None:
        return printed.number is value.number
    exact = scaled(printed, value)
    if printed.bound:
        return exact < printed.number
    return abs(exact - printed.number) * 2 <= Decimal(1).scaleb(printed.places)


def scaled(printed, value):
    """A value in the unit of a printed number: times 100 where that is a percentage."""
    return value.exact * 100 if printed.percent else value.exact


def reprint(printed, value):
    """What belongs where a printed number stands, in its style: as many digits, the same signs and marks; without the unit."""
    if is_right(printed, value):
        return printed.shown[:printed.end - printed.start]
    if value.number is None:
        return UNDEFINED
    if printed.number is None:
        return show(value)
    number = scaled(printed, value)
    if printed.power and number:
        digits = printed_digits(printed)
        return bound_text(printed) + f"{number:.{digits}e}".replace("e+", "e").replace(".", printed.mark)
    number = number.quantize(Decimal(1).scaleb(min(printed.places, 0)), ROUND_HALF_EVEN)
    text = f"{abs(number):,f}".replace(",", "\0").replace(".", printed.mark)
    text = text.removeprefix("0") if printed.bare and printed.places < 0 else text
    grouped = printed.group or ("," if value.kind == "count" and abs(printed.number) < 1000 <= abs(number) else "")
    return bound_text(printed) + sign_text(printed, number) + text.replace("\0", grouped)


def printed_digits(printed):
    """How many decimals a number in powers of ten is printed with."""
    return len(re.split(r"[.,]", re.split("[eE]", printed.shown)[0])[1]) if re.search(r"[.,]", printed.shown) else 0


def bound_text(printed):
    """What stands for the sign of a bound that does not hold: an equals sign."""
    return "=" + printed.bound.lstrip("<&lt;") if printed.bound else ""


def sign_text(printed, number):
    """The sign of a number: a minus as it was written, a plus where there was a sign and the number is not below 0."""
    if number < 0:
        return printed.sign if printed.sign not in ("", "+") else "-"
    return "+" if printed.sign and (printed.sign == "+" or number > 0) else ""


def show(value):
    """A value as a record's own tables show it."""
    from metrics import show as show_metric

    if value.number is None:
        return UNDEFINED
    if value.kind == "share":
        return show_metric(value.metric, value.number)
    return f"{value.number:,}" if value.kind == "count" else f"{value.number:.7g}"


def unrounded(value):
    """A value as an error shows it beside the printed one."""
    if value.number is None:
        return UNDEFINED
    return f"{value.number:,}" if value.kind == "count" else repr(value.number)


def hint(printed, value):
    """What probably went wrong with a wrong number, or nothing: a percentage without its sign, or the reverse."""
    if printed.number is None or value.number is None or value.kind == "count":
        return ""
    if is_right(printed._replace(percent=not printed.percent), value):
        return "; it is a fraction printed as a percentage" if printed.percent else "; it reads as a fraction: % is missing"
    return ""
