"""Prints what metrics.py costs on a record of 1,000 queries x 50 positions x 2 models, as ratios of CPU time.

    python tests/benchmarks/bench_metrics.py [--runs 9] [--peer PYTHON_WITH_PYTREC_EVAL]

The unit is starting Python and parsing the same JSON. Every program is a process of its own; the runs are interleaved, and the
least CPU time (user and system) of each counts. With --peer, or where pytrec_eval is installed, a process that feeds it the same data.
"""

import argparse
import importlib.util
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

METRICS = Path(__file__).resolve().parents[2] / "metrics.py"
PARSE = "import json, sys\njson.load(open(sys.argv[1], 'rb'))"
PEER = """
import json, sys
import pytrec_eval
record = json.load(open(sys.argv[1], 'rb'))
ks = ','.join(map(str, record['cutoffs']))
for model in record['models']:
    qrels, run = {}, {}
    for query in record['queries']:
        grades = [grade for grade in query['rankings'][model] if isinstance(grade, int)]
        judged = {f'd{rank:04}': grade for rank, grade in enumerate(grades)}
        for grade, count in query['reference_grade_counts'].items():
            judged.update({f'm{grade}{i:04}': int(grade) for i in range(count - grades.count(int(grade)))})
        qrels[query['id']] = judged
        run[query['id']] = {f'd{rank:04}': float(-rank) for rank in range(len(grades))}
    measures = {f'{name}.{ks}' for name in ('ndcg_cut', 'P', 'recall', 'success')}
    values = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    for name in next(iter(values.values())):
        print(model, name, sum(own[name] for own in values.values()) / len(values))
"""


def make_record(comparisons):
    """A record of random grades; four positions in a hundred are excluded."""
    pick, queries = random.Random(4), []
    for number in range(1000):
        pool = pick.choices((0, 1, 2, 3), (60, 22, 12, 6), k=60)
        rankings = {model: [grade if pick.random() > 0.04 else {"grade": None, "excluded": True} for grade in pick.sample(pool, 50)]
                    for model in ("base", "candidate")}
        counts = {str(grade): pool.count(grade) for grade in range(4)}
        queries.append({"id": f"q{number:04}", "reference_grade_counts": counts, "rankings": rankings})
    return {"models": {"base": {}, "candidate": {}}, "depth": 50, "cutoffs": [1, 3, 5, 10, 20, 50],
            "comparisons": [["base", "candidate"]] if comparisons else [], "queries": queries}


def cpu_seconds(command):
    """User and system time of a command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--peer", default=sys.executable if importlib.util.find_spec("pytrec_eval") else None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commands = {}
        for name, comparisons in (("without comparisons", False), ("with comparisons", True)):
            path = Path(folder, name.split()[0], "record.json")
            path.parent.mkdir()
            record = make_record(comparisons)
            queries = ",\n".join(map(json.dumps, record.pop("queries")))  # one a line, as harness record writes them
            path.write_text(f'{json.dumps(record)[:-1]}, "queries": [\n{queries}\n]}}\n', encoding="utf-8")
            subprocess.run([sys.executable, "-I", METRICS, "--directory", path.parent, "--write"], check=True, stdout=subprocess.DEVNULL)
            commands[f"metrics.py {name}"] = [sys.executable, "-I", METRICS, "--directory", path.parent]
        commands["start Python and parse"] = [sys.executable, "-I", "-c", PARSE, path]
        if arguments.peer:
            commands["pytrec_eval on the same data"] = [arguments.peer, "-c", PEER, path]
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(arguments.runs):
            for name, command in commands.items():
                best[name] = min(best[name], cpu_seconds(command))
    unit = best["start Python and parse"]
    for name, seconds in sorted(best.items(), key=lambda item: item[1]):
        print(f"{seconds / unit:6.2f}  {seconds:7.3f} s  {name}")


if __name__ == "__main__":
    main()
