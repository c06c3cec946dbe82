"""The HTML page builder."""

from html.parser import HTMLParser

from harness.pages import TABLE_SCRIPT, Cell, Column, bullets, page, paragraph, table, text
from tests import TestCase

VOID = {"meta", "input", "br"}


class Outline(HTMLParser):
    """Checks that tags nest, and collects tags, attributes and text."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise ValueError(f"</{tag}> closes something else")

    def handle_data(self, data):
        self.words.append(data)


class Page(TestCase):
    def outline(self, source):
        found = Outline(source)
        self.assertEqual(found.open, [])
        return found

    def test_asks_the_network_for_nothing(self):
        source = page("Title", paragraph("Words") + table("rows", [Column("id")], [["a"]], filters=True), TABLE_SCRIPT)
        found = self.outline(source)
        self.assertEqual({name for name, _ in found.attributes} & {"src", "href", "action", "srcset", "onclick"}, set())
        for word in ("http:", "https:", "//fonts", "@import", "url(", "fetch(", "XMLHttpRequest"):
            self.assertNotIn(word, source)
        self.assertIn("default-src 'none'", dict(found.attributes).get("content", "") + source)
        self.assertEqual(found.tags.count("script"), 1)
        self.assertIn("prefers-color-scheme:dark", source)

    def test_everything_foreign_is_shown_as_it_is(self):
        hostile = '</td><script>alert(1)</script>"\'&\x00\ud800'
        source = page(hostile, paragraph(hostile) + bullets([hostile]) + table("a b", [Column(hostile, choice=True)], [[hostile]], [hostile], True))
        found = self.outline(source)
        self.assertNotIn("script", found.tags)
        self.assertGreaterEqual("".join(found.words).count('</td><script>alert(1)</script>"\'&\ufffd\ufffd'), 5)
        source.encode("utf-8")

    def test_text_keeps_what_can_be_shown(self):
        self.assertEqual(text("Å\u200b\u2028\n<"), "Å\u200b\u2028\n&lt;")
        self.assertEqual(text("\x1b[31m\x85"), "\ufffd[31m\ufffd")

    def test_cells_carry_what_they_sort_by(self):
        source = table("rows", [Column("id"), Column("score", number=True)], [["a", Cell("<b>0.5</b>", 0.4999)], ["b", None]], ["all", 1])
        found = self.outline(source)
        self.assertEqual([value for name, value in found.attributes if name == "data-key"], ["a", "0.4999", "b", "", "all", "1"])
        self.assertIn("<tfoot>", source)
        self.assertNotIn("data-filters", source)

    def test_choices_are_the_values_of_their_column(self):
        source = table("rows", [Column("id"), Column("type", choice=True)], [["1", "b"], ["2", "a"], ["3", "b"]], filters=True)
        self.assertIn('<option value="">all</option><option>a</option><option>b</option>', source)
        self.assertIn('data-filters="rows"', source)
