"""The command `labels`: makes the reference of a record from the labels of two judges, and checks an extended reference.

    labels JUDGE_A.jsonl JUDGE_B.jsonl --open-pairs FILE.jsonl
    labels JUDGE_A.jsonl JUDGE_B.jsonl [--adjudicator C.jsonl] --output qrels.txt
    labels extend OLD-QRELS NEW-QRELS

A label is a line {"query": id, "passage": id, "grade": 0 to 3}, or {"query": id, "passage": id, "abstain": true}.
"""

import os
from collections import Counter, namedtuple

from harness.agreement import WEIGHTS, agreement_report, read_scale, show_interval
from harness.arguments import Parser
from harness.files import read_jsonl, sha256_of
from harness.judged import read_id
from harness.verdicts import named, printable
from metrics import RecordError, dump_json, quote, write_whole

ABSTAINED = "abstained"  # the reasons are those of an excluded position in a record
UNJUDGED = "unjudged"
NEEDED = "needs the adjudicator"
ENDINGS = ("-excluded.txt", "-statement.json")
OUTCOMES = ("agreed", "adjudicated", "abstained", "open")

# outcome: one of OUTCOMES; grade: where there is one; why: what happened to an excluded pair
Decision = namedtuple("Decision", "outcome grade why", defaults=(None, ""))


def main(argv):
    """Make a reference, or check an extended one; return 0, 1 where an extended one has lost or changed a grade."""
    if argv and argv[0] == "extend":
        from harness.labels_extend import main as extend

        return extend(argv[1:])
    arguments = _arguments(argv)
    scale = read_scale(arguments.scale)
    files = [arguments.first, arguments.second] + ([arguments.adjudicator] if arguments.adjudicator else [])
    _check_independent(files)
    _check_outputs(arguments, files)
    first, second, *third = (read_labels(path, scale) for path in files)
    decisions = decide(first, second, third[0] if third else {}, arguments.adjudicator)
    statement = make_statement(files, scale, first, second, third[0] if third else {}, decisions)
    _check_open(arguments, decisions)
    if arguments.output:
        _write(arguments, decisions, statement)
    print("\n".join(map(printable, statement_lines(statement, arguments))))
    return 0


def _arguments(argv):
    parser = Parser(
        prog="python -m harness labels",
        description="Make qrels from the labels of two independent judges.",
        epilog="Also: labels extend OLD-QRELS NEW-QRELS; it has its own --help.",
    )
    parser.add_argument("first", metavar="JUDGE_A.jsonl", help="query, passage and grade, or abstain: true, a line")
    parser.add_argument("second", metavar="JUDGE_B.jsonl", help="another judge's labels of the same pairs")
    parser.add_argument("--adjudicator", metavar="C.jsonl", help="labels of the pairs on which the two differ")
    parser.add_argument(
        "--output", metavar="QRELS", help="the qrels; beside it -excluded.txt and -statement.json are written"
    )
    parser.add_argument(
        "--allow-open", action="store_true", help="leave out pairs that are still open, as unjudged, instead of stopping"
    )
    parser.add_argument("--open-pairs", metavar="FILE.jsonl", help="write the pairs that need the adjudicator, without any grade; "
                                                                   "alone, without --output, this is all that is done")
    parser.add_argument("--scale", default="0-3", help="lowest and highest grade (%(default)s)")
    arguments = parser.parse_args(argv)
    if not (arguments.output or arguments.open_pairs):
        parser.error("expected --output QRELS, or --open-pairs FILE.jsonl to list what the adjudicator decides first")
    return arguments


# Labels in


def read_labels(path, scale):
    """{(query, passage): grade, or None for an abstention} of a file of labels. Raises RecordError that lists every problem."""
    labels, problems, lines = {}, [], {}
    for number, value in read_jsonl(path):
        place = f"{path}: line {number}"
        if not isinstance(value, dict):
            problems.append(f"{place}: expected an object, got {quote(value)}")
            continue
        found = []
        pair = tuple(_name(value, key, place, found) for key in ("query", "passage"))
        grade = _grade(value, scale, place, found)
        if not found and pair in labels:
            found.append(f"{place}: {_pair(pair)}: labelled on line {lines[pair]} already; expected one label a pair")
        problems += found
        if not found:
            labels[pair], lines[pair] = grade, number
    if problems:
        raise RecordError(problems)
    return labels


def _pair(pair):
    return f"query {named(pair[0])}, passage {named(pair[1])}"


def _name(value, key, place, problems):
    """An id that can stand in qrels, whose columns are parted by spaces."""
    name = read_id(value, key, place, problems)
    if name is not None and (name.split() != [name] or not name.isprintable()):
        problems.append(
            f"{place}: {key}: expected an id without spaces or control characters, as qrels need it, got {named(name)}"
        )
    return name


def _grade(value, scale, place, problems):
    """A grade, or None for an abstention, which must be said in so many words."""
    grade, abstain = value.get("grade"), value.get("abstain", False)
    if type(abstain) is not bool:
        problems.append(f"{place}: abstain: expected true or false, got {quote(abstain)}")
    elif abstain and grade is not None:
        problems.append(f"{place}: expected a grade or abstain: true, got both")
    elif not abstain and grade is None:
        problems.append(f"{place}: expected a grade or abstain: true, got neither")
    elif not abstain and (type(grade) is not int or grade not in scale):
        problems.append(f"{place}: grade: expected an integer {scale[0]} to {scale[-1]}, got {quote(grade)}")
    return grade


def _check_outputs(arguments, files):
    """No output may be one of the inputs."""
    outputs = [arguments.output, *(beside(arguments.output, ending) for ending in ENDINGS)] if arguments.output else []
    if arguments.open_pairs and os.path.abspath(arguments.open_pairs) in map(os.path.abspath, outputs):
        raise RecordError(f"--open-pairs: {arguments.open_pairs} is written by --output; give another file")
    for path in filter(None, [*outputs, arguments.open_pairs]):
        if os.path.exists(path) and any(os.path.samefile(path, other) for other in files):
            raise RecordError(f"{path}: a file with labels would be written over; give another file to write")


def _check_independent(files):
    """The same file twice is one judge, whatever it is called."""
    seen = {}
    for path in files:
        sha256 = sha256_of(path)
        if sha256 in seen:
            raise RecordError(f"{path}: the same labels as {seen[sha256]}; expected judges who worked independently")
        seen[sha256] = path


# Decisions


def decide(first, second, third, adjudicator=None):
    """{pair: Decision}, in the order of the first file and then of the second.

    An abstention of either judge excludes the pair; equal grades stand; for different grades the adjudicator decides, by abstaining
    too. A pair that only one judge labelled, or that still needs the adjudicator, is open.
    """
    decisions = {}
    for pair in dict.fromkeys((*first, *second)):
        if pair not in first or pair not in second:
            decisions[pair] = Decision("open", why=f"only the {'second' if pair not in first else 'first'} judge labelled it")
        elif first[pair] is None or second[pair] is None:
            both = first[pair] is None and second[pair] is None
            decisions[pair] = Decision("abstained", why="both" if both else "first" if first[pair] is None else "second")
        elif first[pair] == second[pair]:
            decisions[pair] = Decision("agreed", first[pair])
        elif pair not in third:
            decisions[pair] = Decision("open", why=NEEDED)
        elif third[pair] is None:
            decisions[pair] = Decision("abstained", why="adjudicator")
        else:
            decisions[pair] = Decision("adjudicated", third[pair])
    unknown = [pair for pair in third if pair not in decisions]
    if unknown:
        raise RecordError(f"{adjudicator}: {_pair(unknown[0])}: neither judge labelled this pair "
                          f"({len(unknown):,} such pairs)")
    return decisions


def _check_open(arguments, decisions):
    """Open pairs stop the command where it makes qrels, but the list that the adjudicator needs is written first."""
    waiting = [pair for pair, decision in decisions.items() if decision.outcome == "open"]
    listed = [pair for pair in waiting if decisions[pair].why == NEEDED]
    if arguments.open_pairs:
        write_whole(arguments.open_pairs, "".join(dump_line({"query": query, "passage": passage}) for query, passage in listed))
    if waiting and arguments.output and not arguments.allow_open:
        raise RecordError(
            f"{len(waiting):,} of {len(decisions):,} pairs are still open, the first: {_pair(waiting[0])}: "
            f"{decisions[waiting[0]].why}; {_advice(arguments, listed, len(waiting) - len(listed))}--allow-open leaves them out"
        )


def _advice(arguments, listed, single):
    """What settles open pairs: the adjudicator's labels, or those of the judge who gave none."""
    advice = ""
    if listed and arguments.open_pairs:
        advice = f"{arguments.open_pairs} lists {len(listed):,} for the adjudicator, whose labels --adjudicator reads; "
    elif listed:
        advice = f"--open-pairs FILE lists {len(listed):,} for the adjudicator, whose labels --adjudicator reads; "
    return advice + (f"{single:,} need the label of the judge who gave none; " if single else "")


def dump_line(value):
    """A value as one line of JSON."""
    import json

    return json.dumps(value, ensure_ascii=False) + "\n"


# Statement


def make_statement(files, scale, first, second, third, decisions):
    """How the reference came about, as a dict: files, counts, kappa before adjudication."""
    counts = Counter(decision.outcome for decision in decisions.values())
    both = [pair for pair in first if first[pair] is not None and second.get(pair) is not None]
    report = agreement_report([first[pair] for pair in both], [second[pair] for pair in both], scale)
    needed = sum(decision.outcome == "adjudicated" or decision.why == "adjudicator" for decision in decisions.values())
    return {
        "files": [
            {"role": role, "name": os.path.basename(path), "sha256": sha256_of(path)}
            for role, path in zip(("first judge", "second judge", "adjudicator"), files)
        ],
        "scale": list(scale),
        "queries": len({query for query, _ in decisions}),
        "pairs": len(decisions),
        **{outcome: counts[outcome] for outcome in OUTCOMES},
        "abstained_by": _reasons(decisions, "abstained"),
        "open_because": _reasons(decisions, "open"),
        "adjudicator_not_needed": len(third) - needed,
        "grades": {str(grade): sum(item.grade == grade for item in decisions.values()) for grade in scale},
        "both_graded": report["n"],
        "agreement": report["agreement"],
        "kappa": report["kappa"],
        "kappa_undefined": report["undefined"],
        "confusion": report["confusion"],
    }


def _reasons(decisions, outcome):
    return dict(sorted(Counter(decision.why for decision in decisions.values() if decision.outcome == outcome).items()))


def statement_lines(statement, arguments):
    """The statement as lines of text."""
    lines = [f"{statement['pairs']:,} pairs of {statement['queries']:,} queries: " +
             ", ".join(f"{statement[outcome]:,} {outcome if outcome != 'open' else 'still open'}" for outcome in OUTCOMES)]
    if arguments.open_pairs:
        lines.append(f"{arguments.open_pairs}: {statement['open_because'].get(NEEDED, 0):,} pairs for the adjudicator")
    lines += [f"  still open, but not the adjudicator's to decide: {why}: {count:,}"
              for why, count in statement["open_because"].items() if why != NEEDED]
    if arguments.output:
        grades = ", ".join(f"grade {grade}: {count:,}" for grade, count in statement["grades"].items())
        lines.append(f"{arguments.output}: {statement['agreed'] + statement['adjudicated']:,} graded pairs ({grades})")
        excluded = statement["abstained"] + statement["open"]
        lines.append(f"{beside(arguments.output, '-excluded.txt')}: {excluded:,} excluded pairs")
    lines.append(
        f"before adjudication, over {statement['both_graded']:,} pairs that both graded: agreement {show_interval(statement['agreement'])}"
    )
    for weights in WEIGHTS:
        lines.append(f"  kappa, {weights}: {show_interval(statement['kappa'][weights])}")
    lines += [f"  undefined: {reason}" for reason in statement["kappa_undefined"]]
    if statement["adjudicator_not_needed"]:
        lines.append(f"labels of the adjudicator that were not needed, and not used: {statement['adjudicator_not_needed']:,}")
    return lines


def beside(path, ending):
    """A file's name with another ending: qrels.txt -> qrels-excluded.txt."""
    return os.path.splitext(path)[0] + ending


def _write(arguments, decisions, statement):
    """The qrels are written last: where they stand, the rest stands too."""
    graded = [
        f"{query} 0 {passage} {decision.grade}\n"
        for (query, passage), decision in decisions.items()
        if decision.grade is not None
    ]
    reasons = {"abstained": ABSTAINED, "open": UNJUDGED}
    excluded = [
        f"{query} {passage} {reasons[decision.outcome]}\n"
        for (query, passage), decision in decisions.items()
        if decision.outcome in reasons
    ]
    write_whole(beside(arguments.output, "-excluded.txt"), "".join(excluded))
    write_whole(beside(arguments.output, "-statement.json"), dump_json(statement))
    write_whole(arguments.output, "".join(graded))
