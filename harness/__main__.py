"""The command line: `python -m harness COMMAND …` finds the command's module, and nothing else is imported."""

import sys

# command -> (module with a main(argv) -> exit status, what it does)
COMMANDS = {
    "golden": ("harness.golden", "measure a search on a golden set of questions: run, gate, ratchet, log, split, check"),
    "sweep": ("harness.sweep", "try chunk sizes, splits, overlaps and normalizations on a golden set"),
    "judge": ("harness.judge", "grade answers with a model, report, calibrate the judge against people"),
    "labels": ("harness.labels", "make the reference of a record from two judges' labels, or check an extended one"),
    "record": ("harness.record", "turn runs and qrels into a record"),
    "score": ("harness.score", "score runs against qrels"),
    "export": ("harness.export", "write a record's judgments and rankings for other tools"),
    "fuse": ("harness.fuse", "fuse runs by reciprocal rank"),
    "card": ("harness.card", "tie the numbers and tables of a model card or README to the records"),
    "diff": ("harness.diff", "what changed between two versions of a record, and what moved each metric"),
    "report": ("harness.report", "one page to explore the records"),
    "benchmark": ("harness.benchmark", "average benchmark results by suites, or audit published averages"),
    "spearman": ("harness.spearman", "rank correlation of gold and predicted scores"),
}

USAGE = "usage: python -m harness COMMAND …   (python -m harness COMMAND --help tells more)\n"


def help_text():
    """The list of commands, one a line."""
    width = max(map(len, COMMANDS), default=0)
    return USAGE + "".join(f"\n  {name:{width}}  {what}" for name, (_, what) in COMMANDS.items())


def main(argv=None):
    """Run one command and return its exit status: 0 holds, 1 differs or misses a gate, 2 bad input or usage."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help"):
        print(help_text(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] not in COMMANDS:
        print(f"harness: no command {argv[0]!r}; expected one of: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    from importlib import import_module

    from metrics import run_command

    return run_command(lambda: import_module(COMMANDS[argv[0]][0]).main(argv[1:]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # while the modules were still being loaded
        print("interrupted", file=sys.stderr)
        sys.exit(130)
