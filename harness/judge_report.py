"""Reports on judged answers: scores with what the unjudged ones could change, refusals, and retrieval metrics beside them by type."""

import os
import sys
from math import fsum

from harness.judged import read_judged
from harness.verdicts import SCORES, named, printable
from metrics import RecordError, aligned, compare, dump_json, load_record, mean_interval, query_values, summarize

TOP = 2  # the highest score
RETRIEVAL = ("hit", "recall", "ndcg")
METRICS = (*RETRIEVAL, *SCORES)


def add_report_arguments(parser):
    """The options that every report takes."""
    parser.add_argument(
        "--record", metavar="RECORD", help="a record of the same questions' retrieval, as `golden run` makes it: file or folder"
    )
    parser.add_argument("--panel", help="the record's panel (golden, or its only one)")
    parser.add_argument("--search", metavar="MODEL", help="the record's model (its only one)")
    parser.add_argument("--cutoff", type=int, help="how deep the ranking was passed on (the record's k, or its deepest cutoff)")
    parser.add_argument("--base", metavar="JUDGED.jsonl", help="an earlier judged file to compare with, question by question")
    parser.add_argument("--base-record", metavar="RECORD", help="the record of that one's retrieval")
    parser.add_argument("--min-faithfulness", type=_floor, metavar="MEAN", help="exit 1 where the worst case is lower (0 to 2)")
    parser.add_argument("--min-relevance", type=_floor, metavar="MEAN", help="exit 1 where the worst case is lower (0 to 2)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _floor(text):
    value = float(text)
    if not 0 <= value <= TOP:
        raise ValueError
    return value


_floor.__name__ = f"mean from 0 to {TOP}"


def report_for(rows, arguments):
    """The report on judged rows as a dict."""
    retrieval = read_retrieval(arguments.record, arguments) if arguments.record else None
    report = make_report(rows, retrieval)
    if arguments.base_record and not (arguments.base and arguments.record):
        raise RecordError("--base-record: expected --base and --record with it")
    if arguments.base:
        base_retrieval = read_retrieval(arguments.base_record, arguments) if arguments.base_record else None
        report["changes"] = changes(values_of(read_judged(arguments.base), base_retrieval), values_of(rows, retrieval),
                                    {row["id"]: _with_record(row, retrieval)["type"] for row in rows})
    return report


def print_report(report, arguments):
    """Print a report, check the floors, and return the exit status."""
    failures = [f"{name}: worst case {report['overall'][name]['worst']:.3f}, floor {floor:g}" for name in SCORES
                if (floor := getattr(arguments, f"min_{name}")) is not None and report["overall"][name]["worst"] < floor]
    print(dump_json({**report, "below_floor": failures}) if arguments.json else "\n".join(map(printable, report_lines(report))),
          end="" if arguments.json else "\n")
    for failure in failures:
        print(f"below the floor: {failure}", file=sys.stderr)
    return 1 if failures else 0


# Scores


def make_report(rows, retrieval=None):
    """What is known of judged rows: overall, by type, unjudged by reason, refusals; with retrieval beside, where it is given."""
    rows = [_with_record(row, retrieval) for row in rows]
    kinds = sorted({row["type"] for row in rows})
    of = max(row["of"] for row in rows)
    report = {
        "judge": rows[0]["judge"],
        "answers": len(rows),
        "of": of,
        "overall": score_block(rows, max(0, of - len(rows))),
        "types": {kind: score_block([row for row in rows if row["type"] == kind]) for kind in kinds},
        "unjudged": _counts(row["unjudged"] for row in rows if row["verdict"] is None),
        "failed_tries": _counts(attempt["reason"] for row in rows for attempt in row["attempts"]),
        "refusals": refusal_table(rows),
        "refusal_scores": {name: {cell: score_block(group) for cell, group in cells.items()} for name, cells in _cells(rows).items()},
        "declined": declined(rows),
        "retrieval": None,
    }
    if retrieval:
        report["retrieval"] = _retrieval_block(rows, retrieval)
    return report


def _with_record(row, retrieval):
    """A row that knows from the record whether retrieval missed, and its type where it has none of its own."""
    hit = retrieval["values"]["hit"].get(row["id"]) if retrieval else None
    if hit is None:
        return row
    kind = retrieval["types"][row["id"]] if row["type"] == "untyped" else None
    return {**row, "missed": hit == 0, "type": kind or row["type"]}


def _counts(reasons):
    """{reason: how often}, the most frequent first."""
    counts = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def bounds(row, name):
    """(lowest, highest) that a row's score can be: equal for a verdict, the whole scale for an unjudged answer.

    An answer that declines an answerable question answers nothing: relevance 0, whatever the judge says, unless retrieval
    missed, so that there was nothing to answer from. Where nobody says whether it missed, it counts as not missed.
    """
    top = 0 if name == "relevance" and _declined_needlessly(row) else TOP
    if row["verdict"] is None:
        return 0, top
    score = min(row["verdict"][name], top)
    return score, score


def _declined_needlessly(row):
    return row["refused"] and row["answerable"] and not row["missed"]


def score_block(rows, missing=0):
    """n, judged, unjudged, and for each score: mean over the judged with its 95% interval, worst and best case over all.

    The worst case gives every unjudged answer the lowest score it could have, the best case the highest. So it does for the
    `missing` answers, which an unfinished run has not come to and of which nothing is known: they are not in n.
    Scores 2 and 0, and one answer unjudged or missing: mean 1, worst 2/3, best 4/3.
    """
    judged = [row for row in rows if row["verdict"] is not None]
    block = {"n": len(rows), "judged": len(judged), "unjudged": len(rows) - len(judged)}
    for name in SCORES:
        scores = [bounds(row, name)[0] for row in judged]
        value, low, high = mean_interval(scores, [1] * len(scores)) if scores else (None, None, None)
        lowest, highest = (fsum(bounds(row, name)[side] for row in rows) for side in (0, 1))
        total = len(rows) + missing
        worst, best = (lowest / total, (highest + TOP * missing) / total) if total else (None, None)
        block[name] = {
            "mean": value,
            "low": None if low is None else max(low, 0.0),
            "high": None if high is None else min(high, float(TOP)),
            "worst": worst,
            "best": best,
        }
    return block


# Refusals


def _cells(rows):
    """The rows of each cell of the 2x2 of answerable by refused."""
    cells = {name: {"answered": [], "refused": []} for name in ("answerable", "unanswerable")}
    for row in rows:
        cells["answerable" if row["answerable"] else "unanswerable"]["refused" if row["refused"] else "answered"].append(row)
    return cells


def refusal_table(rows):
    """{"answerable" or "unanswerable": {"answered": n, "refused": n}}, from the answers alone, judged or not."""
    return {name: {cell: len(group) for cell, group in cells.items()} for name, cells in _cells(rows).items()}


def declined(rows):
    """The answerable questions that were declined, apart by whether retrieval missed, with their scores and ids."""
    apart = {"retrieval_missed": True, "retrieval_found": False, "retrieval_unknown": None}
    groups = {name: [row for row in rows if row["refused"] and row["answerable"] and row["missed"] is missed]
              for name, missed in apart.items()}
    result = {name: {**score_block(group), "ids": [row["id"] for row in group]} for name, group in groups.items() if group}
    full = [row["id"] for row in rows if _declined_needlessly(row) and row["verdict"] and row["verdict"]["relevance"] > 0]
    return {**result, "relevance_counted_as_0": full} if result else {}


def refusal_lines(table, scores=None):
    """The 2x2 as lines of text: counts, and where there are scores, their means (faithfulness / relevance) beside them."""
    lines = [f"{'':14}{'number of answers':>20}" + (f"{'mean ' + ' / '.join(SCORES):>32}" if scores else ""),
             f"{'':14}{'answered':>10}{'refused':>10}" + (f"{'answered':>16}{'refused':>16}" if scores else "")]
    for name, cells in table.items():
        means = "".join(f"{_means(scores[name][cell]):>16}" for cell in cells) if scores else ""
        lines.append(f"{name:14}{cells['answered']:>10,}{cells['refused']:>10,}{means}")
    return lines


def _means(block):
    return " / ".join(_mean(block[name]) for name in SCORES)


def _mean(entry):
    return "-" if entry["mean"] is None else f"{entry['mean']:.2f}"


# Retrieval


def read_retrieval(path, arguments):
    """One model's results in a record's panel: place, model, cutoff, summary block, and per question {metric: {id: value}}."""
    path = record_path(path)
    record = load_record(path)
    panels = {place: block for place, block in record.blocks.items() if hasattr(block, "rankings")}
    place = _choose(panels, arguments.panel, "golden", f"{path}: --panel")
    panel = panels[place]
    model = _choose(panel.models, arguments.search, None, f"{path}: --search")
    wanted = panel.models[model].get("k") if isinstance(panel.models[model], dict) else None
    cutoff = arguments.cutoff or (wanted if wanted in panel.cutoffs else panel.cutoffs[-1])
    if cutoff not in panel.cutoffs:
        raise RecordError(f"{path}: --cutoff: expected one of {', '.join(map(str, panel.cutoffs))}, got {cutoff}")
    block = summarize(record)
    for name in filter(None, place.split(".")):
        block = block[name]
    values = {
        name: dict(zip(panel.ids, column)) for name, column in query_values(panel, model, cutoff).items() if name in RETRIEVAL
    }
    types = dict(zip(panel.ids, panel.types or [None] * len(panel.ids)))
    return {
        "record": str(path),
        "panel": place,
        "model": model,
        "cutoff": cutoff,
        "summary": block,
        "values": values,
        "types": types,
    }


def record_path(path):
    """A record's file: itself, or the one in the folder that `golden run --output` writes. Raises RecordError for other folders."""
    if not os.path.isdir(path):
        return path
    inside = [os.path.join(path, *parts) for parts in (("records", "golden.json"), ("golden.json",))]
    found = next(filter(os.path.isfile, inside), None)
    if found is None:
        raise RecordError(f"{path}: no {' and no '.join(inside)}; expected a record's file, or a folder that golden run --output wrote")
    return found


def _choose(known, wanted, usual, what):
    """The one that is wanted, or the usual one, or the only one."""
    if wanted is None:
        wanted = usual if usual in known else next(iter(known)) if len(known) == 1 else None
    if wanted not in known:
        names = ", ".join(named(name) for name in known) or "none"
        raise RecordError(f"{what}: expected one of: {names}" + (f"; got {named(wanted)}" if wanted is not None else ""))
    return wanted


def _retrieval_block(rows, retrieval):
    """Retrieval by type, and how far its questions are those that were judged. Raises RecordError where types contradict."""
    judged = {row["id"]: row["type"] for row in rows}
    common = [name for name in retrieval["values"]["hit"] if name in judged]
    if not common:
        raise RecordError(f"{retrieval['record']}: no question in common with the judged answers; is it another set's record?")
    for name in common:
        if retrieval["types"][name] not in (None, judged[name]):
            raise RecordError(f"{retrieval['record']}: question {named(name)} is of type {named(retrieval['types'][name])}, "
                              f"the judged answer of type {named(judged[name])}; expected the same questions")
    summary, k = retrieval["summary"], str(retrieval["cutoff"])

    def part_of(block, kind=None):
        counts = {name: sum(value is not None and (kind is None or retrieval["types"][query] == kind)
                            for query, value in retrieval["values"][name].items()) for name in RETRIEVAL}
        return {"queries": block["queries"], **{name: block["models"][retrieval["model"]][name][k] for name in RETRIEVAL},
                "n": counts}

    absent = [row for row in rows if row["id"] not in retrieval["values"]["hit"]]
    return {**{name: retrieval[name] for name in ("record", "panel", "model", "cutoff")},
            "overall": part_of(summary), "types": {kind: part_of(block, kind) for kind, block in summary.get("types", {}).items()},
            "in_both": len(common), "not_judged": [name for name in retrieval["values"]["hit"] if name not in judged],
            "not_in_record": [row["id"] for row in absent],
            "not_in_record_unanswerable": [row["id"] for row in absent if not row["answerable"]]}


# Changes


def values_of(rows, retrieval=None):
    """{metric: {id: value}} of everything that is known per question; unjudged answers and undefined values are left out."""
    rows = [_with_record(row, retrieval) for row in rows]
    values = {name: {row["id"]: bounds(row, name)[0] for row in rows if row["verdict"] is not None} for name in SCORES}
    for name in RETRIEVAL if retrieval else ():
        values[name] = {key: value for key, value in retrieval["values"][name].items() if value is not None}
    return values


def changes(before, after, types):
    """What changed over the questions that both have: {"overall": {metric: comparison}, "types": {type: the same}}.

    `types` is {id: type}. Each also has "opposed": the metrics, where a retrieval metric rose while a score fell.
    """
    kinds = {kind: [name for name in types if types[name] == kind] for kind in sorted(set(types.values()))}
    return {
        "overall": _changes(before, after, list(types)),
        "types": {kind: _changes(before, after, names) for kind, names in kinds.items()},
    }


def _changes(before, after, names):
    entry = {metric: _change(before[metric], after[metric], names) for metric in METRICS if metric in before and metric in after}
    entry = {metric: change for metric, change in entry.items() if change}
    risen = [metric for metric in RETRIEVAL if metric in entry and entry[metric]["difference"] > 0]
    fallen = [metric for metric in SCORES if metric in entry and entry[metric]["difference"] < 0]
    return {**entry, "opposed": risen + fallen if risen and fallen else []}


def _change(before, after, names):
    common = [name for name in names if name in before and name in after]
    if not common:
        return None
    ones = [1] * len(common)
    return {"n": len(common), **compare(([before[name] for name in common], ones), ([after[name] for name in common], ones))}


# Text


def report_lines(report):
    """The report as lines of text."""
    return [*_head_lines(report), "",
            *_matrix_lines(report), _interval_line(report["overall"]), "",
            *refusal_lines(report["refusals"], report["refusal_scores"]), *_declined_lines(report["declined"]),
            *_retrieval_notes(report["retrieval"]), *_change_lines(report.get("changes"))]


def _head_lines(report):
    judge, overall = report["judge"], report["overall"]
    digest = (judge.get("digest") or "unknown")[:12]
    lines = [
        f"judge: {judge['model']}, digest {digest}, {judge.get('server') or judge['api']}, rubric {judge['rubric']}"
        f" ({judge['rubric_sha256'][:12]}), generator {judge.get('generator') or 'not stated'}",
        f"answers {overall['n']:,}, judged {overall['judged']:,}, unjudged {overall['unjudged']:,}",
    ]
    if report["of"] > report["answers"]:
        lines.append(f"the run is unfinished: {report['answers']:,} of {report['of']:,} answers; overall, the worst and the"
                     " best case count the others as unjudged, and all other numbers are of those alone")
    lines += [f"  unjudged: {reason}: {count:,}" for reason, count in report["unjudged"].items()]
    return lines + [f"  tries without a verdict: {reason}: {count:,}" for reason, count in report["failed_tries"].items()]


def _matrix_lines(report):
    """The matrix of types by metrics, overall last."""
    retrieval = report["retrieval"]
    shown = retrieval["types"] if retrieval else {}
    rows = [["type", "answers", "judged", *(f"{name} (worst to best)" for name in SCORES)]]
    if retrieval:
        rows[0] += [f"{'nDCG' if name == 'ndcg' else name}@{retrieval['cutoff']} (n)" for name in RETRIEVAL]
    parts = [(kind, report["types"].get(kind), shown.get(kind)) for kind in sorted({*report["types"], *shown})]
    for kind, block, part in [*parts, ("overall", report["overall"], retrieval and retrieval["overall"])]:
        rows.append([kind, *_score_cells(block), *(_retrieval_cells(part) if retrieval else ())])
    lines = aligned(rows)
    lines.append("scores: mean over the judged (worst to best over all answers)")
    if retrieval:
        lines.append(f"retrieval: mean over the record's queries (n of them); questions with both: {retrieval['in_both']:,}")
    return lines


def _interval_line(block):
    """The means over the judged answers with their 95% intervals."""
    shown = []
    for name in SCORES:
        entry = block[name]
        interval = "no interval" if entry["low"] is None else f"{entry['low']:.2f} to {entry['high']:.2f}"
        shown.append(f"{name} {_mean(entry)} ({interval})")
    return "mean over the judged (95% interval): " + ", ".join(shown)


def _score_cells(block):
    if block is None:
        return ["0", "0", *["-"] * len(SCORES)]
    cells = [f"{block['n']:,}", f"{block['judged']:,}"]
    for name in SCORES:
        entry = block[name]
        cells.append(f"{_mean(entry)} ({entry['worst']:.2f} to {entry['best']:.2f})")
    return cells


def _retrieval_cells(part):
    if part is None:
        return ["- (0)"] * len(RETRIEVAL)
    return [f"{'-' if part[name] is None else format(part[name], '.3f')} ({part['n'][name]:,})" for name in RETRIEVAL]


def _declined_lines(apart):
    """The answerable questions that were declined."""
    words = {"retrieval_missed": "retrieval had missed", "retrieval_found": "retrieval had found it",
             "retrieval_unknown": "not known whether retrieval missed (counted as found)"}
    lines = [
        f"answerable, declined, {words[name]}: {block['n']:,} ({_listed(block['ids'])})"
        for name, block in apart.items()
        if name in words
    ]
    full = apart.get("relevance_counted_as_0")
    return lines + ([f"of these the judge gave relevance above 0, counted as 0: {len(full):,} ({_listed(full)})"] if full else [])


def _retrieval_notes(retrieval):
    if not retrieval:
        return []
    notes = [f"retrieval: {retrieval['record']}, {retrieval['model']}"]
    if retrieval["not_judged"]:
        notes.append(f"in the record, not judged: {len(retrieval['not_judged']):,} ({_listed(retrieval['not_judged'])})")
    if retrieval["not_in_record"]:
        absent, without = retrieval["not_in_record"], len(retrieval["not_in_record_unanswerable"])
        why = f"; unanswerable, so that there is nothing to retrieve: {'all' if without == len(absent) else format(without, ',')}"
        notes.append(f"judged, not in the record: {len(absent):,} ({_listed(absent)})" + why * bool(without))
    return notes


def _change_lines(changed):
    """What changed since the base, one line a population; what goes against each other is said in words."""
    if not changed:
        return []
    lines = ["", "change since the base, over the questions that both have (95% interval)"]
    for kind, entry in [*changed["types"].items(), ("overall", changed["overall"])]:
        parts = [f"{metric} {_signed(entry[metric])}" for metric in METRICS if metric in entry]
        lines.append(f"  {kind}: " + (", ".join(parts) or "no question in common"))
        if entry["opposed"]:
            risen, fallen = ([name for name in entry["opposed"] if name in group] for group in (RETRIEVAL, SCORES))
            lines.append(f"  {kind}: retrieval rose ({', '.join(risen)}) while {' and '.join(fallen)} fell")
    return lines


def _signed(change):
    interval = "" if change["low"] is None else f" ({change['low']:+.3f} to {change['high']:+.3f})"
    return f"{change['difference']:+.3f}{interval} n={change['n']:,}"


def _listed(names, most=5):
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
