"""NFKC and synonyms."""

from harness.normalize import normalizer, read_synonyms
from metrics import RecordError
from tests import TestCase


class Normalizing(TestCase):
    def test_nfkc(self):
        self.assertEqual(normalizer("nfkc")("Ｆｕｌｌ ﬁ x²"), "Full fi x2")
        self.assertEqual(normalizer("no")("Ｆ"), "Ｆ")

    def test_synonyms_are_whole_words_in_any_case_longest_first(self):
        path = self.write("map.json", '{"error": ["fault", "fault code"], "c++": ["cpp"], "USB": ["usb stick"]}')
        change = normalizer("synonyms", read_synonyms(path))
        self.assertEqual(change("Fault CODE, faults, FAULT; Cpp usb stick"), "error, faults, error; c++ USB")

    def test_both(self):
        change = normalizer("nfkc+synonyms", read_synonyms(self.write("map.json", '{"error": ["fault"]}')))
        self.assertEqual(change("ｆａｕｌｔ"), "error")

    def test_problems(self):
        for text, words in (("[]", "expected an object"), ("{}", "expected an object"), ('{"a": "b"}', "a: expected a list"),
                            ('{"a": ["b"], "c": ["B"]}', "synonym of"), ('{"a": [" "]}', "a: expected a list")):
            with self.subTest(text), self.assertRaisesRegex(RecordError, words):
                read_synonyms(self.write("map.json", text))
        with self.assertRaisesRegex(RecordError, "--synonyms"):
            normalizer("synonyms")
        with self.assertRaisesRegex(RecordError, "expected one of"):
            normalizer("lower")
