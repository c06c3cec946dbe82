"""Measures `score` against other evaluators on generated runs: CPU seconds and peak memory of whole processes.

    python3 tests/benchmarks/bench_score.py [--sizes S,M,L] [--rounds 5] [--peers PYTHON] [--trec-eval PROGRAM]

PYTHON is an interpreter in which pytrec_eval, ir_measures or ranx may be installed; what is missing is named and skipped.
The tools take turns, and each round gives a ratio of its own, so that a machine whose speed drifts does not favour one.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent.parent
CUTOFFS = (1, 3, 5, 10, 20, 50)
NAMES = [f"{family}@{k}" for family in ("nDCG", "P", "R", "Success") for k in CUTOFFS]
# queries, documents per query, judged documents per query, whether few of them are relevant
SIZES = {"S": (1000, 50, 60, False), "M": (6980, 100, 40, False), "L": (6980, 1000, 3, True)}
KS = ",".join(map(str, CUTOFFS))
PYTREC_EVAL = f"""
import sys, pytrec_eval
with open(sys.argv[1]) as file: qrels = pytrec_eval.parse_qrel(file)
with open(sys.argv[2]) as file: run = pytrec_eval.parse_run(file)
found = pytrec_eval.RelevanceEvaluator(qrels, {{"ndcg_cut.{KS}", "P.{KS}", "recall.{KS}", "success.{KS}"}}).evaluate(run)
for name in next(iter(found.values())): print(name, sum(query[name] for query in found.values()) / len(found))
"""
IR_MEASURES = f"""
import sys, ir_measures
measures = [ir_measures.parse_measure(name) for name in {NAMES}]
print(ir_measures.calc_aggregate(measures, list(ir_measures.read_trec_qrels(sys.argv[1])), list(ir_measures.read_trec_run(sys.argv[2]))))
"""
RANX = f"""
import sys
from ranx import Qrels, Run, evaluate
names = [f"{{name}}@{{k}}" for name in ("ndcg", "precision", "recall", "hit_rate") for k in {CUTOFFS}]
print(evaluate(Qrels.from_file(sys.argv[1], kind="trec"), Run.from_file(sys.argv[2], kind="trec"), names, make_comparable=True))
"""


def generate(folder, name):
    """Write NAME.run and NAME.qrels, always the same: ranked lines, scores with six decimals, one neighbour in fifty tied."""
    queries, depth, judged, few = SIZES[name]
    generator = random.Random(name)
    with open(folder / f"{name}.run", "w") as run, open(folder / f"{name}.qrels", "w") as qrels:
        for query in range(1, queries + 1):
            documents = generator.sample(range(9_000_000), depth + judged)
            run.writelines(run_lines(query, documents[:depth], generator))
            for document in generator.sample(documents, judged):
                grade = int(generator.random() < 0.4) if few else generator.choices((0, 1, 2, 3), (60, 22, 12, 6))[0]
                qrels.write(f"{query} 0 {document} {grade}\n")


def run_lines(query, documents, generator):
    score = 60 + 20 * generator.random()
    for rank, document in enumerate(documents, 1):
        score -= generator.expovariate(1) * 40 / len(documents) if generator.random() > 0.02 else 0
        yield f"{query} Q0 {document} {rank} {score:.6f} system\n"


def tools(options):
    """{name: command} of what is here; the command gets the qrels and the run."""
    found = {"score": [options.peers, "-m", "harness", "score", "--metrics", ",".join(NAMES)]}
    for module, program in (("pytrec_eval", PYTREC_EVAL), ("ir_measures", IR_MEASURES), ("ranx", RANX)):
        if subprocess.run([options.peers, "-c", f"import {module}"], capture_output=True).returncode:
            print(f"{module} is not installed for {options.peers}: skipped", file=sys.stderr)
        else:
            found[module] = [options.peers, "-c", program]
    program = shutil.which(options.trec_eval)
    if program:
        found["trec_eval"] = [
            program,
            "-c",
            *(word for name in ("ndcg_cut", "P", "recall", "success") for word in ("-m", f"{name}.{KS}")),
        ]
    else:
        print(f"{options.trec_eval} is not here: skipped", file=sys.stderr)
    return found


def spent(command):
    """(CPU seconds, peak MiB) of one process, which finds compiled modules as any program does after its first start."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[:3]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)


def measure(folder, name, found, rounds):
    """Print a line per tool: median CPU, the median of the rounds' ratios (score over the tool), peak memory; then the load."""
    arguments = [str(folder / f"{name}.qrels"), str(folder / f"{name}.run")]
    results = {tool: [] for tool in found}
    for counted in range(-1, rounds):
        for tool, command in found.items():
            result = spent([*command, *arguments])
            if counted >= 0:  # the first round warms the file cache
                results[tool].append(result)
    for tool, column in results.items():
        ratios = [own / other for (own, _), (other, _) in zip(results["score"], column)]
        print(
            f"{name:4}  {tool:12}  {median(cpu for cpu, _ in column):8.3f}  {median(ratios):11.2f}  {max(peak for _, peak in column):9.1f}"
        )
    if hasattr(os, "getloadavg"):
        print(f"{name:4}  load of the last minute: {os.getloadavg()[0]:.1f} (these processes are about 1 of it)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="S,M,L")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--trec-eval", default="trec_eval", metavar="PROGRAM")
    options = parser.parse_args()
    found = tools(options)
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'size':4}  {'tool':12}  {'CPU s':>8}  {'score / it':>11}  {'peak MiB':>9}")
        for name in options.sizes.split(","):
            generate(Path(folder), name)
            measure(Path(folder), name, found, options.rounds)


if __name__ == "__main__":
    main()
