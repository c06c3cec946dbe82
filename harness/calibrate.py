"""The command `judge calibrate`: compares a judge's scores with people's, score by score."""

from harness.agreement import agreement_lines, agreement_report, read_scale
from harness.arguments import Parser
from harness.files import read_jsonl, read_text
from harness.judged import read_id, read_judged
from harness.verdicts import SCORES, named, printable
from metrics import RecordError, dump_json, parse_json, quote


def main(argv):
    """Print agreement, kappa, base rates, the confusion matrix and the disagreements; return 0, or 1 below a floor."""
    parser = Parser(
        prog="python -m harness judge calibrate", description="Compare a judge's scores with people's."
    )
    parser.add_argument("judged", metavar="JUDGED.jsonl", help="what `judge` wrote, or lines with id and scores")
    parser.add_argument("human", metavar="HUMAN.jsonl", help="lines with id and a person's scores")
    parser.add_argument("--score", action="append", metavar="NAME", help=f"which score ({' and '.join(SCORES)})")
    parser.add_argument("--scale", default="0-2", help="lowest and highest score, such as --scale=-2:2 (%(default)s)")
    parser.add_argument("--min-kappa", type=_kappa, metavar="K", help="exit 1 where a quadratic kappa is lower or undefined")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = parser.parse_args(argv)
    scale = read_scale(arguments.scale)
    names = tuple(arguments.score or SCORES)
    if is_judged(arguments.human) and not is_judged(arguments.judged):
        raise RecordError(f"{arguments.human}: this is what `judge` wrote, and {arguments.judged} is not; expected the judged file "
                          "first and people's scores second: swap the two")
    judged, unjudged = read_scores(arguments.judged, names, scale)
    human, undecided = read_scores(arguments.human, names, scale)
    report = {name: calibration(name, judged, human, scale) for name in names}
    for entry in report.values():
        entry["only_human"] = [key for key in entry["only_human"] if key not in unjudged]
        entry["only_judge"] = [key for key in entry["only_judge"] if key not in undecided]
    report.update(unjudged=unjudged, undecided=undecided)
    print(
        dump_json(report) if arguments.json else "\n".join(map(printable, _lines(report, names))),
        end="" if arguments.json else "\n",
    )
    kappas = [report[name]["kappa"]["quadratic"]["value"] for name in names]
    floor = arguments.min_kappa
    return int(floor is not None and any(value is None or value < floor for value in kappas))


def _kappa(text):
    value = float(text)
    if not -1 <= value <= 1:
        raise ValueError
    return value


_kappa.__name__ = "kappa from -1 to 1"


def is_judged(path):
    """Whether a file is what `judge` wrote: its lines have a verdict's key."""
    first = next(filter(str.strip, read_text(path).split("\n")), "")
    try:
        value = parse_json(first, path)
    except RecordError:  # which reading all of it will tell, with the line
        return False
    return isinstance(value, dict) and "key" in value


def read_scores(path, names, scale):
    """({id: scores}, ids without scores) of a judged file or of plain lines. Raises RecordError that lists every problem.

    A line gives its scores itself or under "verdict"; null there, or for a score, is an answer that was not scored.
    """
    rows = list(enumerate(read_judged(path), 1)) if is_judged(path) else read_jsonl(path)
    scores, without, problems = {}, [], []
    for number, row in rows:
        place = f"{path}: line {number}"
        if not isinstance(row, dict):
            problems.append(f"{place}: expected an object, got {quote(row)}")
            continue
        key = read_id(row, "id", place, problems)
        if key in scores or key in without:
            problems.append(f"{place}: id {named(key)} stands there twice; expected one line each")
        given = row.get("verdict", row)
        if given is None or (isinstance(given, dict) and all(name in given and given[name] is None for name in names)):
            without.append(key)
            continue
        scores[key] = given
        problems += _score_problems(given, names, scale, place)
    if problems:
        raise RecordError(problems)
    return scores, without


def _score_problems(given, names, scale, place):
    if not isinstance(given, dict):
        return [f"{place}: verdict: expected an object, got {quote(given)}"]
    return [
        f"{place}: {name}: expected an integer {scale[0]} to {scale[-1]}, got {quote(given[name]) if name in given else 'nothing'}"
        for name in names
        if type(given.get(name)) is not int or given[name] not in scale
    ]


def calibration(name, judged, human, scale):
    """The agreement report of one score over the answers that both scored, with the disagreements, the largest first."""
    common = [key for key in judged if key in human]
    if not common:
        raise RecordError("no answer was scored by both: expected ids that stand in both files")
    pairs = [(key, judged[key][name], human[key][name]) for key in common]
    report = agreement_report([one for _, one, _ in pairs], [other for _, _, other in pairs], scale)
    apart = [{"id": key, "judge": one, "human": other, "note": _note(judged[key])} for key, one, other in pairs if one != other]
    report["disagreements"] = sorted(apart, key=lambda item: -abs(item["judge"] - item["human"]))
    report["only_judge"] = [key for key in judged if key not in human]
    report["only_human"] = [key for key in human if key not in judged]
    return report


def _note(given):
    return given["note"] if isinstance(given.get("note"), str) else ""


def _lines(report, names):
    lines = []
    for name in names:
        entry = report[name]
        lines += [
            f"{name}: {entry['n']:,} answers scored by both",
            *(f"  {line}" for line in agreement_lines(entry, "judge", "human")),
        ]
        lines.append(f"  disagreements: {len(entry['disagreements']):,}")
        lines += [
            f"    {item['id']}: judge {item['judge']}, human {item['human']}"
            + (f", {named(item['note'])}" if item["note"] else "")
            for item in entry["disagreements"]
        ]
        lines.append("")
    first = report[names[0]]
    lines.append(f"left out: unjudged {len(report['unjudged']):,}, not scored by people {len(report['undecided']):,}, "
                 f"in the judged file only {len(first['only_judge']):,}, in the human file only {len(first['only_human']):,}")
    return lines
