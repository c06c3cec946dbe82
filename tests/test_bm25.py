"""The embedded BM25 index."""

from math import log

from harness.bm25 import BM25, words
from tests import TestCase


class Search(TestCase):
    def test_score_by_hand(self):
        # two texts of lengths 3 and 1, mean 2; "b" is in one of them: idf = log(1 + 1.5 / 1.5)
        index = BM25({"x": "a b b", "y": "a"}, k1=1.5, b=0.75)
        weight = 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 3 / 2)) * log(2)
        self.assertEqual([place for place, _ in index.postings["b"]], [0])
        self.assertAlmostEqual(index.postings["b"][0][1], weight, places=15)

    def test_best_first_and_no_text_without_a_word(self):
        index = BM25({"a": "red apple", "b": "red red pear", "c": "green"})
        self.assertEqual(index.search("red pear"), ["b", "a"])
        self.assertEqual(index.search("plum"), [])
        self.assertEqual(index.search(""), [])
        self.assertEqual(index.search("red pear", k=1), ["b"])

    def test_equal_scores_keep_the_order_of_the_index(self):
        index = BM25({name: "same words" for name in "zyxabc"})
        self.assertEqual(index.search("words", k=4), ["z", "y", "x", "a"])

    def test_words(self):
        self.assertEqual(words("It's 3.5 Grad – ÄPFEL"), ["it", "s", "3", "5", "grad", "äpfel"])

    def test_empty_indexes(self):
        self.assertEqual(BM25({}).search("word"), [])
        self.assertEqual(BM25({"a": "", "b": "!"}).search("word"), [])
