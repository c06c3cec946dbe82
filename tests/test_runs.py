"""The reader of runs and qrels: its fast way and its plain ways agree on any input, and its errors say what is wrong."""

import gzip
import json
import os
import random
import sys
import threading
from unittest import mock

from harness import runs
from metrics import RecordError
from tests import DATA, TestCase

PLAIN_WAYS = (runs._lines_together, runs._lines_scattered)


def outcome(path, **options):
    """What a run reads as: {query: (documents, scores)}, or the error's text."""
    try:
        return {query: (documents, list(map(float, scores))) for query, documents, scores in runs.rankings(path, **options)}
    except RecordError as error:
        return str(error)


def qrels_outcome(path, max_grade=3):
    try:
        return runs.read_qrels(path, max_grade)
    except RecordError as error:
        return str(error)


class RandomRun:
    """A small run, mostly well-formed, with one oddity or none."""

    SCORES = ("{:.6f}", "{:.2f}", "{:.1f}", "{:.0f}", "{:g}", "{:e}", "-{:.3f}", "{:.17f}", "+{:.2f}", "{:08.3f}")
    ODDITIES = {  # what befalls one line
        "tab": lambda line: line.replace(" ", "\t", 1), "two spaces": lambda line: line.replace(" ", "  ", 1),
        "space before": lambda line: " " + line, "space after": lambda line: line + " ", "carriage return": lambda line: line + "\r",
        "return inside": lambda line: line.replace(" ", "\r", 1), "form feed": lambda line: line.replace(" ", "\f", 1),
        "blank": lambda line: "\n" + line, "spaces only": lambda line: "  \n" + line, "no-break space": lambda line: line.replace("d", "d\u00a0"),
        "nan": lambda line: line.replace(".", "nan", 1), "underscore": lambda line: line.replace(".", "_", 1),
        "infinity": lambda line: " ".join([*line.split()[:4], "inf", "t"]), "overflow": lambda line: " ".join([*line.split()[:4], "1e999", "t"]),
        "no tag": lambda line: line.rpartition(" ")[0], "long tag": lambda line: line + " x",
        "broken line": lambda line: line.replace(" ", "\n", 3).replace("\n", " ", 2), "twice": lambda line: line + "\n" + line,
        "other tag": lambda line: line + "x", "query alone": lambda line: line.split()[0], "unusual rank": lambda line: line.replace(" Q0", " 0"),
        "zero byte": lambda line: line.replace("d", "d\0"), "no document": lambda line: line.replace(" d", " ", 1),
    }

    def __init__(self, generator):
        self.generator = generator
        lines = []
        for query in range(generator.randint(1, 5)):
            lines += self.query_lines(f"q{query}" if generator.random() < .9 else "q é".replace(" ", ""))
        if generator.random() < .15:
            generator.shuffle(lines)
        if lines and generator.random() < .5:
            place = generator.randrange(len(lines))
            lines[place] = self.ODDITIES[generator.choice(list(self.ODDITIES))](lines[place])
        ending = "\r\n" if generator.random() < .1 else "\n"
        text = ending.join(lines) + generator.choice((ending, "", ending * 2))
        self.content = ("\ufeff" * (generator.random() < .1) + text).encode()

    def query_lines(self, query):
        generator = self.generator
        style = generator.choice(self.SCORES[:2] if generator.random() < .6 else self.SCORES)
        top, count = generator.choice((1, 12, 1e20 if generator.random() < .05 else 130)), generator.choice((1, 2, 3, 6, 12))
        scores = [generator.choice((round(generator.random() * top, 1), generator.random() * top)) for _ in range(count)]
        if generator.random() < .8:
            scores.sort(reverse=True)
        names = generator.sample(range(20), count)
        return [f"{query} Q0 d{name} {rank} {style.format(score)} tag" for rank, (name, score) in enumerate(zip(names, scores), 1)]


class FastAndPlainTest(TestCase):
    """The fast way is a proof or it gives way: on thousands of files every way reads the same."""

    def test_runs(self):
        generator, fast = random.Random(11), 0
        path = self.folder / "a.run"
        for case in range(2000):
            path.write_bytes(RandomRun(generator).content)
            options = {"ties": generator.choice(("trec", "input")), "depth": generator.choice((None, 1, 3, 10)),
                       "drop_self": generator.random() < .2}
            with mock.patch.object(runs, "BLOCK", generator.choice((40, 150, 4096))):
                found = outcome(path, **options)
            fast += self.is_fast(path)
            with mock.patch.object(runs, "_ways", lambda *_: PLAIN_WAYS):
                self.assertEqual(found, outcome(path, **options), (case, options, path.read_bytes()))
        self.assertGreater(fast, 500, "too few of the files take the fast way for this test to say anything")

    def is_fast(self, path):
        with runs.Source(path) as source:
            try:
                return bool(list(runs._fast(source, False)))
            except runs._Unproven:
                return False

    def test_qrels(self):
        generator, fast = random.Random(12), 0
        path = self.folder / "a.qrels"
        oddities = [lambda line: line.replace(" ", "\t"), lambda line: line + " ", lambda line: line.replace(" ", "  ", 1),
                    lambda line: line[:-1] + "-1", lambda line: line[:-1] + "9", lambda line: line[:-1] + "1.0", lambda line: line + "\r",
                    lambda line: line + "\n" + line, lambda line: line + "\n" + line[:-1] + "3", lambda line: "\n" + line,
                    lambda line: line.rpartition(" ")[0], lambda line: line + " x", lambda line: line[:-1] + "\u0662", lambda line: line[:-1] + "+1"]
        for case in range(1000):
            width = generator.choice((3, 4))
            lines = [f"q{generator.randrange(3) if generator.random() < .2 else line // 4} {'0 ' * (width == 4)}d{name} {generator.randrange(4)}"
                     for line, name in enumerate(generator.sample(range(30), generator.randint(1, 9)))]
            if generator.random() < .5:
                place = generator.randrange(len(lines))
                lines[place] = generator.choice(oddities)(lines[place])
            if width == 3 and generator.random() < .5:
                lines.insert(0, "query-id\tcorpus-id\tscore")
            path.write_text("\n".join(lines) + generator.choice(("\n", "", "\n\n")))
            with mock.patch.object(runs, "BLOCK", generator.choice((30, 4096))):
                found = qrels_outcome(path)
            fast += self.is_fast_qrels(path)
            with mock.patch.object(runs, "_fast_qrels", mock.Mock(side_effect=runs._Unproven)):
                self.assertEqual(found, qrels_outcome(path), (case, path.read_bytes()))
        self.assertGreater(fast, 250, "too few of the files take the fast way for this test to say anything")

    def is_fast_qrels(self, path):
        with runs.Source(path) as source:
            try:
                return bool(runs._fast_qrels(source, 3))
            except runs._Unproven:
                return False
