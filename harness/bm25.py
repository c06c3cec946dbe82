"""A BM25 index in memory: the embedded search of the golden-set harness, so that it runs without any vector store.

BM25 as in Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with the inverse document frequency
log(1 + (N - n + 0.5) / (n + 0.5)), which is never negative. Words are runs of letters and digits in lower case, so that a
language that writes no spaces is not cut into words.
"""

import re
from collections import Counter
from heapq import nsmallest
from itertools import chain
from math import log

WORD = re.compile(r"\w+")


def words(text):
    """The words of a text, in lower case: words("It's 3.5") is ["it", "s", "3", "5"]."""
    return WORD.findall(text.lower())


class BM25:
    """An index over {id: text}.

    >>> BM25({"a": "one two", "b": "two three"}).search("three", k=1)
    ['b']
    """

    def __init__(self, texts, k1=1.5, b=0.75):
        self.ids = list(texts)
        counts = [Counter(words(text)) for text in texts.values()]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / (len(lengths) or 1) or 1
        rarity = {word: log(1 + (len(self.ids) - texts_with + 0.5) / (texts_with + 0.5))  # the inverse document frequency
                  for word, texts_with in Counter(chain.from_iterable(counts)).items()}
        self.postings = {word: [] for word in rarity}
        for place, (count, length) in enumerate(zip(counts, lengths)):
            norm = k1 * (1 - b + b * length / mean)
            for word, times in count.items():
                self.postings[word].append((place, times * (k1 + 1) / (times + norm) * rarity[word]))

    def search(self, question, k=10):
        """The ids of the k best texts, best first; equal scores in index order. A text without any of the words is no result."""
        scores = {}
        for word in words(question):
            for place, weight in self.postings.get(word, ()):
                scores[place] = scores.get(place, 0.0) + weight
        best = nsmallest(k, [(-score, place) for place, score in scores.items()])
        return [self.ids[place] for _, place in best]
