"""Tests of svg_figures.py: numbers, text, scales, marks, and the look of a file. check_svg is what every drawn file must pass."""

import math
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import svg_figures
from svg_figures import (
    COLOURS,
    SERIES,
    Figure,
    Scale,
    balance,
    blend,
    change,
    clean,
    contrast,
    count,
    distinct,
    fold,
    ink_over,
    label,
    number,
    push,
    round_axis,
    score,
    shorten,
    spaced,
    text_width,
    tick_decimals,
    ticks,
    wrap,
)
from tests import ROOT, TestCase

NAMESPACE = "{http://www.w3.org/2000/svg}"
ALLOWED = {
    "svg": {"width", "height", "viewBox", "font-size", "role", "aria-labelledby"}, "title": {"id"}, "desc": {"id"}, "style": set(),
    "rect": {"class", "x", "y", "width", "height", "rx", "fill-opacity"}, "circle": {"class", "cx", "cy", "r", "stroke-width"},
    "line": {"class", "x1", "y1", "x2", "y2", "stroke-width", "stroke-dasharray"},
    "path": {"class", "d", "fill", "fill-opacity", "stroke-width", "stroke-dasharray", "stroke-linejoin"},
    "text": {"class", "x", "y", "font-size", "font-weight", "text-anchor", "{http://www.w3.org/XML/1998/namespace}space"}, "tspan": {"class", "font-weight"}}
NUMERIC = {"x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height", "font-size", "stroke-width", "fill-opacity"}
COORDINATE = re.compile(r"-?(0|[1-9]\d*)(\.\d)?")
# Names that break a writer or a layout, one of each kind.
HARD_NAMES = ["a<b>&\"c'", "x" * 60, "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "\u05de\u05d5\u05d3\u05dc \u05e2\u05d1\u05e8\u05d9",
              "\u6a21\u578b\u4e00\u4e8c\u4e09" * 6, "\u202eevil", "e\u0301" * 30, "\U0001f600" * 20, "two  spaces"]


def text_boxes(root):
    """(text, left, top, right, bottom) of every text, estimated with the widest likely font."""
    for text in root.iter(NAMESPACE + "text"):
        size = float(text.get("font-size", 12))
        bold = text.get("font-weight") == "600"
        width = text_width(text.text or "", size, bold)
        for run in text.iter(NAMESPACE + "tspan"):
            width += text_width(run.text or "", size, run.get("font-weight") == "600")
        left = float(text.get("x")) - width * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")]
        y = float(text.get("y"))
        yield "".join(text.itertext()), left, y - 0.73 * size, left + width, y + 0.2 * size


def check_svg(test, content):
    """Fail unless a drawn file is well-formed, restrained, accessible, styled in both themes, and its texts lie clear in the card."""
    root = ElementTree.fromstring(content)
    test.assertIsNone(re.search(r"\b(nan|NaN|inf|None)\b", content))
    test.assertLess(len(content.encode("utf-8")), 40 * 1024)
    test.assertNotIn("\r", content)
    test.assertTrue(content.endswith("</svg>\n"))
    for element in root.iter():
        tag = element.tag.removeprefix(NAMESPACE)
        test.assertLessEqual(set(element.keys()), ALLOWED[tag], tag)
        for name in NUMERIC & set(element.keys()):
            if name not in ("stroke-width", "fill-opacity"):
                test.assertRegex(element.get(name), rf"^{COORDINATE.pattern}$")
            if name in ("width", "height", "r"):
                test.assertGreaterEqual(float(element.get(name)), 0)
    test.assertEqual([element.tag.removeprefix(NAMESPACE) for element in root][:4], ["title", "desc", "style", "rect"])
    test.assertTrue(root[0].text.strip() and root[1].text.strip())
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    test.assertEqual(len(ids), len(set(ids)))
    test.assertEqual(root.get("aria-labelledby").split(), ids)
    test.assertEqual(root.get("role"), "img")
    light, dark = root[2].text.split("@media (prefers-color-scheme:dark)")
    used = {name for element in root.iter() for name in element.get("class", "").split()}
    for theme in (light, dark):
        test.assertEqual(used, set(re.findall(r"\.([\w-]+)\{", theme)))
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = list(text_boxes(root))
    for text, left, top, right, bottom in boxes:
        test.assertTrue(left >= 4 and right <= width - 4 and top >= 4 and bottom <= height - 4, f"outside the card: {text!r}")
    for index, (text, left, top, right, bottom) in enumerate(boxes):
        for other, left2, top2, right2, bottom2 in boxes[index + 1:]:
            overlap = min(right, right2) - max(left, left2) > 0.5 and min(bottom, bottom2) - max(top, top2) > 0.5
            test.assertFalse(overlap, f"{text!r} overlaps {other!r}")
    for text in root.iter(NAMESPACE + "text"):
        test.assertGreaterEqual(float(text.get("font-size", 12)), 12)
    return root


class NumberTest(TestCase):
    def test_coordinates_have_one_decimal_and_no_negative_zero(self):
        self.assertEqual([number(value) for value in (0, -0.04, 1 / 3, 100.0, 99.96, -2.25, 10)], ["0", "0", "0.3", "100", "100", "-2.2", "10"])

    def test_what_is_not_finite_is_refused(self):
        for value in (math.nan, math.inf, -math.inf):
            self.assertRaises(ValueError, number, value)

    def test_scores_changes_and_counts(self):
        self.assertEqual([score(0.9187), score(1), score(0), score(None), score(math.nan)], ["0.919", "1.000", "0.000", "n/a", "n/a"])
        self.assertEqual([change(0.068), change(-0.013), change(0.0), change(-0.0001), change(None)],
                         ["+0.068", "\u22120.013", "0.000", "\u22120.0001", "n/a"])
        self.assertEqual([count(1204), count(1, "query", "queries"), count(2, "query", "queries"), count(0, "row")],
                         ["1,204", "1 query", "2 queries", "0 rows"])


    def test_halves_are_rounded_as_their_decimals_are_read(self):
        self.assertEqual([score(value) for value in (0.1175, 0.1165, 0.0625, 1.0005, 0.11749999)], ["0.118", "0.117", "0.063", "1.001", "0.117"])
        self.assertEqual([score(0.3 - 0.1825), change(-0.1175), score(2.675, 2)], ["0.118", "\u22120.118", "2.68"])  # 0.11749999999999999

    def test_nothing_but_zero_reads_as_zero(self):
        self.assertEqual([change(value) for value in (-0.0004, 0.0004, 0.00004, -0.00004, 1e-9, 0, -0.0)],
                         ["\u22120.0004", "+0.0004", "<+0.0001", ">\u22120.0001", "<+0.0001", "0.000", "0.000"])
        self.assertEqual([score(value) for value in (0.0004, 0.00004, -0.0004, 0, 1e-13)], ["0.0004", "<0.0001", "\u22120.0004", "0.000", "0.000"])
        self.assertEqual([change(1e-9, 10), change(4e-12, 10), score(0, 0), score(7, 0)], ["+0.0000000010", "<+0.00000000001", "0", "7"])
        self.assertEqual([score(1e300, 0)[:3], score(math.inf), change(-math.inf)], ["100", "inf", "\u2212inf"])


class TextTest(TestCase):
    def test_width_by_hand(self):
        self.assertAlmostEqual(text_width("k = 1"), (579 + 318 + 838 + 318 + 636) * 12 / 1000)
        self.assertAlmostEqual(text_width("k = 1", 18, True), (579 + 318 + 838 + 318 + 636) * 18 / 1000 * 1.12)
        self.assertAlmostEqual(text_width("\u00e9", 10), 8.38)  # not in the table
        self.assertEqual(text_width("\u6a21", 10), 10)
        self.assertEqual(text_width("e\u0301"), text_width("e"))

    def test_every_printable_ascii_character_has_an_advance(self):
        self.assertEqual(len(svg_figures.ADVANCES), 126 - 32 + 1)
        self.assertTrue(all(270 < advance <= 1000 for advance in svg_figures.ADVANCES))

    def test_shorten_keeps_both_ends_and_fits(self):
        self.assertEqual(shorten("short", 100), "short")
        one, other = (shorten("a-very-long-model-name-" + end, 100) for end in ("v1", "v2"))
        self.assertNotEqual(one, other)
        for name in HARD_NAMES:
            for width in (20, 60, 100):
                self.assertLessEqual(text_width(shorten(name, width)), width)

    def test_shorten_never_starts_with_a_loose_combining_mark(self):
        for width in range(20, 120, 3):
            head, _, tail = shorten("e\u0301" * 30, width).partition("\u2026")
            self.assertFalse(tail.startswith("\u0301"))
            self.assertTrue(head.endswith("\u0301") or not head)

    def test_label_keeps_right_to_left_text_apart_and_drops_direction_controls(self):
        self.assertEqual(label("plain"), "plain")
        self.assertEqual(label("\u05d0\u05d1"), "\u2068\u05d0\u05d1\u2069")
        self.assertEqual(label("\u202eevil\u2069"), "evil")
        self.assertEqual(label(" two \n lines\t"), "two lines")
        self.assertEqual(label("\u202e"), "(no name)")

    def test_wrap_balance_and_fold_fit(self):
        text = "one two three four five six seven eight nine ten"
        for lines in (wrap(text, 90), balance(text, 90)):
            self.assertEqual(" ".join(lines), text)
            self.assertLessEqual(max(map(text_width, lines)), 90)
        self.assertEqual(len(wrap(text, 90)), len(balance(text, 90)))
        self.assertEqual(fold("rerank-ltr-minilm", 62, 12, True), ["rerank-", "ltr-", "minilm"])
        for name in HARD_NAMES:
            lines = fold(name, 62)
            self.assertLessEqual(len(lines), 3)
            self.assertLessEqual(max(map(text_width, lines)), 62)

    def test_fold_adds_no_line_without_a_name(self):
        self.assertEqual(len(fold("x" * 60, 62, 12, True)), 1)
        for name in ["x" * 60, "x" * 60 + "-", "a- " + "y" * 60, *HARD_NAMES]:
            self.assertFalse([line for line in fold(name, 62, 12, True) if not line.strip() or "no name" in line], name)

    def test_fold_keeps_a_long_first_word(self):
        for name in ("Contriever", "e5-multilingual", "HybridMiniLM", "multilingualencoder"):
            lines = fold(name, 62, 12, True)
            self.assertEqual(lines[0][:3], name[:3])
            self.assertEqual(lines[-1][-2:], name[-2:])
            self.assertFalse([line for line in lines if "no" in line and "(" in line])

    def test_names_that_differ_get_labels_that_differ(self):
        cases = [([f"data set number {number} with a long long name" for number in range(30)], 140),
                 ([f"data set number {number} with a long long name" for number in range(30)], 80),
                 (["x" * 60 + str(number) for number in range(4)] + ["x" * 30 + "1" + "x" * 31, "x" * 62], 90),
                 (["a-" * 20 + middle + "-b" * 20 for middle in "pqr"], 100), (HARD_NAMES, 60),
                 (["two  spaces", "two spaces", "\u202etwo spaces"], 200), (["e\u0301" * 30 + end for end in "ab"], 60),
                 (["e\u0301" * 20 + middle + "e\u0301" * 20 for middle in ("e", "e\u0300")], 60),
                 (["\u05de" * 40 + middle + "\u05de" * 40 for middle in "ab"], 80)]
        for names, width in cases:
            labels = distinct(names, width)
            self.assertEqual(len(set(labels)), len(names), labels)
            self.assertLessEqual(max(map(text_width, labels)), width, labels)
        self.assertEqual(distinct(["a", "\u05d0"], 50), [label("a"), label("\u05d0")])
        self.assertEqual(distinct(["data set number 1 by year", "data set number 2 by year"], 130),
                         ["data set number 1\u2026", "data set number 2\u2026"])
        self.assertEqual(distinct(["two  spaces", "two spaces"], 200), ["two spaces", "two spaces (2)"])
        self.assertEqual(distinct([], 200), [])

    def test_column_heads_stay_apart(self):
        figure = Figure("x", "X")
        figure.headers([(100, "x" * 40 + "1" + "x" * 40), (200, "x" * 40 + "2" + "x" * 40)], 80)
        self.assertEqual(len(set(re.findall("<text[^>]*>(x[^<]*)<", "".join(figure.elements)))), 2)

    def test_no_break_spaces_hold(self):
        self.assertEqual(wrap("one two\u00a0three", 75), ["one", "two\u00a0three"])

    def test_the_spaces_between_runs_are_preserved(self):
        figure = Figure("x", "X")
        figure.runs(20, 50, [("k = 1:", "muted", False), (" 0.5", "ink", True)])
        self.assertIn('xml:space="preserve"', figure.elements[-1])
        self.assertIn(">\u00a00.5</tspan>", figure.elements[-1])
        figure.text(20, 70, "alone")
        self.assertNotIn("xml:space", figure.elements[-1])

    def test_no_text_takes_no_room(self):
        figure = Figure("x", "X")
        before = figure.y, len(figure.elements)
        figure.paragraph(" ")
        self.assertEqual((figure.y, len(figure.elements)), before)

    def test_what_xml_cannot_hold_is_replaced(self):
        self.assertEqual(clean("ab\x03c\ud800\ufffe\x00"), "ab\ufffdc\ufffd\ufffd\ufffd")
        self.assertEqual(clean("tab\tand \U0001f600"), "tab\tand \U0001f600")


class ScaleTest(TestCase):
    def test_linear_and_logarithmic(self):
        self.assertEqual(Scale(0, 1, 100, 300)(0.5), 200)
        self.assertAlmostEqual(Scale(1, 100, 0, 50, log=True)(10), 25)
        self.assertEqual(Scale(0, 1, 300, 100)(0.25), 250)

    def test_equal_limits_get_a_range(self):
        for value in (0, 0.7, -0.7, 1):
            scale = Scale(value, value, 0, 100)
            self.assertTrue(0 <= scale(value) <= 100)
        self.assertEqual((Scale(0, 0, 0, 1).low, Scale(0, 0, 0, 1).high), (0, 1))
        self.assertAlmostEqual(Scale(10, 10, 0, 100, log=True)(10), 50)

    def test_a_logarithmic_scale_refuses_zero(self):
        self.assertRaises(ValueError, Scale, 0, 1, 0, 1, log=True)

    def test_ticks_are_exact_multiples(self):
        self.assertEqual(ticks(0, 1, 2), [0, 0.5, 1])
        self.assertEqual(ticks(0, 0.3, 3), [0, 0.1, 0.2, 0.3])  # 3 * 0.1 is 0.30000000000000004
        self.assertEqual(ticks(-0.02, 0.07, 4), [-0.02, 0, 0.02, 0.04, 0.06])
        self.assertEqual(ticks(0, 1204, 5), [0, 200, 400, 600, 800, 1000, 1200])

    def test_step_thresholds(self):
        steps = [svg_figures.tick_step(0, top, 1) for top in (1.4, 1.42, 3.16, 3.17, 7.07, 7.08)]
        self.assertEqual(steps, [(1, 0), (2, 0), (2, 0), (5, 0), (5, 0), (1, 1)])

    def test_tick_decimals(self):
        self.assertEqual([tick_decimals(values) for values in ([0, 0.5, 1], [0, 0.15], [0, 100.0], [5])], [1, 2, 0, 0])

    def test_round_axis_begins_and_ends_at_ticks_around_the_values(self):
        for low, high in ((0.0123, 0.4), (-3, 5), (0, 0), (0.7, 0.7), (-0.02, 0), (0.4999, 0.5001), (0, 1)):
            scale, values = round_axis(low, high, 0, 240)
            self.assertEqual((scale.low, scale.high), (values[0], values[-1]))
            self.assertTrue(scale.low <= low and high <= scale.high)
            self.assertGreaterEqual(len(values), 2)

    def test_spaced_labels_never_touch(self):
        self.assertEqual(spaced([0, 10, 20, 30, 100], [20] * 5), [0, 3, 4])
        self.assertEqual(spaced([0, 5], [20, 20]), [1])
        self.assertEqual(spaced([3], [20]), [0])
        self.assertEqual(spaced([], []), [])

    def test_push_separates_and_clamps(self):
        self.assertEqual(push([50, 52], 0, 100), [44, 58])
        self.assertEqual(push([52, 50], 0, 100), [58, 44])
        self.assertEqual(push([10, 90], 0, 100), [10, 90])
        self.assertEqual(push([1, 1], 0, 100), [0, 14])
        self.assertEqual(push([100, 100, 100], 0, 100), [72, 86, 100])
        self.assertEqual(push([], 0, 100), [])


class ColourTest(TestCase):
    def test_contrast_by_definition(self):
        self.assertAlmostEqual(contrast("#000000", "#ffffff"), 21)
        self.assertEqual(contrast("#123456", "#123456"), 1)
        self.assertAlmostEqual(contrast("#777777", "#ffffff"), 4.478, places=3)  # the well-known grey just below 4.5
        self.assertEqual(blend("#000000", "#ffffff", 0.5), "#808080")

    def test_text_and_marks_stand_out_from_the_card_in_both_themes(self):
        for theme in (0, 1):
            card = COLOURS["card"][theme]
            for role in ("ink", "muted", "base", "candidate", "third", "fourth"):
                self.assertGreaterEqual(contrast(COLOURS[role][theme], card), 4.5, (role, theme))
            self.assertGreaterEqual(contrast(COLOURS["axis"][theme], card), 3)

    def test_text_on_every_shade_keeps_its_contrast(self):
        for role in ("base", "candidate", "third", "fourth"):
            for percent in range(101):
                for theme, text in enumerate(ink_over(role, percent / 100)):
                    ground = blend(COLOURS[role][theme], COLOURS["card"][theme], percent / 100)
                    self.assertGreaterEqual(contrast(text, ground), 4.5, (role, percent, theme))

    def test_series_differ_by_more_than_colour(self):
        self.assertEqual(len({series.marker for series in SERIES}), len(SERIES))
        self.assertEqual(len({series.dash for series in SERIES}), len(SERIES))
        self.assertEqual(SERIES[0][1:3], ("ring", 5.5))


def bar_chart(rows):
    """A figure of bars, with a key of all series so that every kind of element is in it."""
    figure = Figure("bars", "Bars", "Some values.")
    figure.key([(series, series.role) for series in SERIES])
    figure.bars([(label(name, 200, 13), value) for name, value in rows])
    return figure.svg("; ".join(f"{name}: {score(value)}" for name, value in rows))


def bar_widths(root):
    """The widths of the bars, without the card."""
    return [float(bar.get("width")) for bar in root.iter(NAMESPACE + "rect")][1:]


class FigureTest(TestCase):
    def test_all_bars_zero_have_an_axis_to_one(self):
        root = check_svg(self, bar_chart([("a", 0), ("b", 0), ("c", 0)]))
        self.assertEqual(bar_widths(root), [0, 0, 0])
        texts = [text for text, *_ in text_boxes(root)]
        self.assertTrue({"0.0", "1.0"} <= set(texts))

    def test_equal_bars_are_equally_long(self):
        widths = bar_widths(check_svg(self, bar_chart([("a", 0.7), ("b", 0.7)])))
        self.assertEqual(widths[0], widths[1])
        self.assertGreater(widths[0], 100)

    def test_a_missing_value_is_a_gap_that_says_so(self):
        for nothing in (None, math.nan):
            root = check_svg(self, bar_chart([("a", 0.5), ("b", nothing)]))
            self.assertEqual(len(bar_widths(root)), 1)
            self.assertIn("n/a", [text for text, *_ in text_boxes(root)])

    def test_nothing_but_missing_values(self):
        root = check_svg(self, bar_chart([("a", None), ("b", None)]))
        self.assertIn("no data", [text for text, *_ in text_boxes(root)])
        self.assertEqual(bar_widths(root), [])

    def test_negative_bars_end_at_zero(self):
        widths = bar_widths(check_svg(self, bar_chart([("a", -0.5), ("b", 0.5)])))
        self.assertEqual(widths[0], widths[1])

    def test_labels_are_escaped_once(self):
        content = bar_chart([("<2 ms", 0.01), (">=7, <9", 0.4), ("a&amp;b \"c\" 'd'", 0.3)])
        self.assertIn("&lt;2 ms", content)
        texts = [text for text, *_ in text_boxes(check_svg(self, content))]
        self.assertTrue({"<2 ms", ">=7, <9", "a&amp;b \"c\" 'd'"} <= set(texts))

    def test_a_control_character_is_replaced(self):
        content = bar_chart([("ab\x03c", 0.3)])
        check_svg(self, content)
        self.assertIn("ab\ufffdc", content)

    def test_hard_names_everywhere(self):
        for name in [*HARD_NAMES, "\x00\x1b[31m", "]]>", "<script>alert(1)</script>", "\ud800"]:
            figure = Figure(name, label(name, 300, 18, True), label(name, 400, 13))
            figure.key([(series, name) for series in SERIES])
            figure.headers([(150, name), (300, name)], 100)
            figure.cell(100, figure.y, 90, 38, [(label(name, 80), 12, False)], 0.3)
            figure.y += 50
            figure.paragraph(label(name) + " and some more words")
            check_svg(self, figure.svg(name))

    def test_a_line_is_broken_where_a_value_is_missing(self):
        figure = Figure("line", "Line")
        figure.curve([(0, 1), (10, None), (20, 3), (30, 4), (40, math.nan), (50, 5), (60, 6)], SERIES[1])
        figure.band([(0, 1, 2), (10, None, 2), (20, 3, 4)])
        paths = re.findall(r' d="([^"]*)"', figure.svg("Line."))
        self.assertEqual(paths, ["M20 3L30 4M50 5L60 6"])  # neither a lone point nor a lone width of the band is drawn

    def test_a_coordinate_that_is_not_finite_is_refused(self):
        self.assertRaises(ValueError, Figure("x", "X").line, 0, 0, math.nan, 1)

    def test_one_element_a_line_and_no_colour_outside_the_style(self):
        content = bar_chart([("a", 0.5)])
        body = content.split("</style>\n")[1].splitlines()
        self.assertTrue(all(re.fullmatch(r"<(\w+) .*(/>|</\1>)|</svg>", line) for line in body), body)
        self.assertNotIn("#", "\n".join(body))

    def test_the_same_bytes_for_every_hash_seed_and_from_a_copy_of_the_one_file(self):
        shutil.copy(ROOT / "svg_figures.py", self.folder)
        program = ("from svg_figures import *; f = Figure('a b', 'T'); f.key(zip(SERIES, 'abcd')); f.bars([('x', 0.5)]); "
                   "f.mark(5, 5, SERIES[2]); f.interval(1, 2, 3); print(f.svg('d'), end='')")
        outputs = {subprocess.run([sys.executable, "-I", "-W", "error", "-c", f"import sys; sys.path.insert(0, {str(self.folder)!r}); {program}"],
                                  capture_output=True, check=True, env={"PYTHONHASHSEED": seed}).stdout for seed in ("0", "1")}
        self.assertEqual(len(outputs), 1)
        check_svg(self, outputs.pop().decode())
