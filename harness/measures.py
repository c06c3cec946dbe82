"""The measures of `score` and of public tables, under the field's names and with trec_eval's definitions.

    nDCG@10  nDCG   discounted gain over that of the best possible ranking; metrics.py does the arithmetic
    P@10            relevant documents among the first 10, over 10, also where fewer were returned
    R@100    R      relevant documents found, over all relevant documents of the query
    RR@10    RR     one over the rank of the first relevant document
    Success@5       1 if a relevant document is among the first 5
    AP@100   AP     the mean, over all relevant documents, of the precision at the rank of each one that was found
    Judged@10       documents with a judgment among the first 10, over 10

A measure is one function in MEASURES. Each takes the Results of a run and a cutoff (None: the whole ranking) and returns a
fraction per query; each is 0 for a query without relevant documents, as in trec_eval.
"""

from collections import namedtuple
from functools import cached_property
from math import fsum

from harness.runs import UNJUDGED
from metrics import RecordError, dcg, dcg_terms, gain_table, ideal_grades

# What the judgments know of a query: how many documents are relevant, and the best grades, best first, as bytes.
Reference = namedtuple("Reference", "known ideal")


class Results:
    """A run's results for the measures: lists with an entry per query. What several measures need is computed once.

    marks: a byte per position, UNJUDGED or the grade; relevant: 1 or 0 per position; known, ideal: as in Reference.
    """

    def __init__(self, marks, references, scale):
        self.marks, self.scale = marks, scale
        self.known, self.ideal = zip(*references) if references else ((), ())
        self.relevant = [ranking.translate(scale.as_relevant) for ranking in marks]
        self.counts = {}

    def found(self, k):
        """How many relevant documents each query has among its first k."""
        if k not in self.counts:
            self.counts[k] = [relevant.count(1, 0, k) for relevant in self.relevant]
        return self.counts[k]

    @cached_property
    def terms(self):
        """The terms of each query's DCG, as far as any cutoff looks, without the zeros at the end."""
        as_grades, longest, table = self.scale.as_grades, self.scale.longest, self.scale.gains.table
        return [dcg_terms(ranking[:longest].translate(as_grades).rstrip(b"\0"), table) for ranking in self.marks]


class Gains(dict):
    """The DCG of ideal grades (bytes), each computed once: many queries have the same."""

    def __init__(self, gain, max_grade):
        self.table = gain_table(gain, max_grade)

    def __missing__(self, grades):
        self[grades] = value = dcg(grades, self.table)
        return value


def ndcg(results, k):
    """DCG over the DCG of the k best judged grades.

    Ranked [0, 3], judged one 3 and one 1, linear, k = 2: (3 / log2 3) / (3 + 1 / log2 3) = 0.521310.
    """
    gains = results.scale.gains
    return [fsum(terms[:k]) / gains[ideal[:k]] if ideal else 0.0 for terms, ideal in zip(results.terms, results.ideal)]


def precision(results, k):
    """Relevant [1, 0] at k = 5: 1 / 5 = 0.2, since trec_eval divides by k."""
    return [found / k for found in results.found(k)]


def recall(results, k):
    """Relevant [1, 0, 1] of 4 known, at k = 2: 1 / 4 = 0.25."""
    return [found / known if known else 0.0 for found, known in zip(results.found(k), results.known)]


def reciprocal_rank(results, k):
    """Relevant [0, 0, 1]: 1 / 3; at k = 2: 0."""
    return [1 / (relevant.index(1) + 1) if relevant.find(1, 0, k) >= 0 else 0.0 for relevant in results.relevant]


def success(results, k):
    """Relevant [0, 0, 1] at k = 2: 0; at k = 3: 1."""
    return [1.0 if found else 0.0 for found in results.found(k)]


def average_precision(results, k):
    """Relevant [1, 0, 1] of 4 known: (1/1 + 2/3) / 4 = 0.416667."""
    return [_precision_sum(relevant[:k]) / known if known else 0.0 for relevant, known in zip(results.relevant, results.known)]


def _precision_sum(relevant):
    ranks = [rank for rank, found in enumerate(relevant, 1) if found]
    return fsum(found / rank for found, rank in enumerate(ranks, 1))


def judged(results, k):
    """Marks [2, UNJUDGED, 0] at k = 5: 2 / 5 = 0.4."""
    return [(min(len(marks), k) - marks.count(UNJUDGED, 0, k)) / k for marks in results.marks]


MEASURES = {"nDCG": ndcg, "P": precision, "R": recall, "RR": reciprocal_rank, "Success": success,
            "AP": average_precision, "Judged": judged}
NEEDS_CUTOFF = {"P", "Success", "Judged"}
ALIASES = {"MAP": "AP", "MRR": "RR", "Recall": "R", "Precision": "P", "Hit": "Success"}

Measure = namedtuple("Measure", "name of k")


def parse_measure(text):
    """The Measure of a name such as nDCG@10, R@50 or RR. Raises RecordError that lists the names."""
    family, at, cutoff = text.partition("@")
    known = {name.lower(): name for name in MEASURES} | {name.lower(): of for name, of in ALIASES.items()}
    family = known.get(family.lower())
    if not family or bool(at) != bool(cutoff) or (cutoff and not _is_cutoff(cutoff)):
        shown = ", ".join(f"{name}@k" for name in MEASURES)
        meant = "" if family else _meant(text)
        raise RecordError(f"measure {text or '(empty)'}: expected one of {shown}, with a cutoff k of at least 1{meant}")
    if family in NEEDS_CUTOFF and not cutoff:
        raise RecordError(f"measure {text}: {family} needs a cutoff, such as {family}@10")
    return Measure(family + at + cutoff, MEASURES[family], int(cutoff) if cutoff else None)


def _meant(text):
    """Which measure a misspelt one is likely to be, with its cutoff."""
    from harness.arguments import closest  # not at the top: argparse loads slowly, and score has no other use for it

    family, at, cutoff = text.partition("@")
    return closest(text, [name + at + cutoff for name in [*MEASURES, *ALIASES]]) if family else ""


def _is_cutoff(digits):
    return digits.isascii() and digits.isdigit() and digits[0] != "0" and len(digits) < 8


class Scale:
    """How grades become gains and relevance: the largest grade, the lowest relevant one, and the gain's name.

    longest is the largest cutoff that will be asked for, None for the whole ranking.
    """

    def __init__(self, max_grade, useful, gain, longest):
        self.max_grade, self.useful, self.longest = max_grade, useful, longest
        self.gains, self.ideals = Gains(gain, max_grade), {}
        self.as_grades = bytes(mark if mark <= max_grade else 0 for mark in range(256))
        self.as_relevant = bytes(1 if useful <= mark <= max_grade else 0 for mark in range(256))

    def reference(self, judged):
        """The Reference of a query's judgments, {document: grade}."""
        held = bytes(judged.values())
        counts = tuple(map(held.count, range(self.max_grade + 1)))
        if counts not in self.ideals:  # many queries have as many documents of each grade as another
            self.ideals[counts] = ideal_grades(counts, sum(counts) if self.longest is None else self.longest)
        return Reference(sum(counts[self.useful:]), self.ideals[counts])

    def results(self, marks, references):
        """The Results of rankings, given as marks, and the references of the same queries."""
        return Results(marks, references, self)
