"""The history of golden runs: one JSON file a day, each run marked where a metric fell, and a chart of it all.

The log records and marks; it changes nothing else.
"""

import os
import re
from datetime import datetime, timezone
from decimal import Decimal

from harness.evaluation import METRICS
from harness.gate import exact
from harness.golden_report import one_line
from harness.locks import locked, make_folder
from metrics import RecordError, dump_json, quote, read_json, write_whole

LOG_FOLDER = "eval_logs"
FALL = Decimal("0.05")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
COMPARABLE = {"golden_sha256": "golden set", "k": "k", "depth": "depth", "index": "index identity",
              "relevance": "basis of relevance"}


def now():
    """The time in UTC, to the second: 2026-01-31T08:15:00Z."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def entry_of(evaluation, configuration, time):
    """The log's entry for a run: when, on what, with which configuration, and every metric overall and by type."""
    types = {kind: {name: block[name] for name in METRICS} for kind, block in evaluation.types.items()}
    return {"time": time, "golden": evaluation.golden.name, "golden_sha256": evaluation.golden.sha256, "k": evaluation.k,
            "depth": evaluation.depth, "index": configuration.get("index"), "relevance": evaluation.relevance,
            "configuration": configuration,
            "questions": {kind: block["n"] for kind, block in evaluation.types.items()}, "errors": len(evaluation.errors),
            "metrics": {"overall": evaluation.metrics, **types}}


def failed_entry(golden, search, why, time):
    """The log's entry for a run that failed, which has no values and is comparable with none."""
    return {"time": time, "golden": golden, "search": search, "failed": why}


def completed(entries):
    """The entries of runs that did not fail."""
    return [entry for entry in entries if "failed" not in entry]


def read_log(folder):
    """Every entry in a folder of daily files, oldest first. Raises RecordError; a folder that isn't there is an empty log."""
    try:
        names = sorted(name for name in os.listdir(folder) if DAY.fullmatch(name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"{folder}: cannot be read: {error.strerror}") from None
    return [entry for name in names for entry in read_day(os.path.join(folder, name))]


def read_day(path):
    """The entries in one day's file."""
    value, _ = read_json(path)
    runs = value.get("runs") if isinstance(value, dict) else None
    if not isinstance(runs, list):
        raise RecordError(f'{path}: expected an object {{"runs": […]}}, got {quote(value)}')
    problems = [f"{path}: runs[{at}]{problem}" for at, entry in enumerate(runs) for problem in entry_problems(entry)]
    if problems:
        raise RecordError(problems)
    return runs


def entry_problems(entry):
    """What is wrong with an entry of the log, each with its place."""
    if not isinstance(entry, dict):
        return [f": expected an object, got {quote(entry)}"]
    problems = [f".{key}: expected {kind}, got {quote(entry.get(key))}"
                for key, (kind, fits) in NEEDED.items() if (key == "time" or "failed" not in entry) and not fits(entry.get(key))]
    falls = entry.get("needs_review", [])
    if not isinstance(falls, list) or not all(isinstance(fall, dict) and is_fall(fall) for fall in falls):
        problems.append(f".needs_review: expected a list of falls, got {quote(falls)}")
    problems += [f".{key}: expected text, got {quote(entry[key])}" for key in ("not_comparable", "compared_with", "failed")
                 if not isinstance(entry.get(key, ""), str)]
    return problems


def is_value(value):
    return value is None or type(value) in (int, float) and 0 <= value <= 1


def is_fall(fall):
    return (isinstance(fall.get("group"), str) and isinstance(fall.get("metric"), str) and is_value(fall.get("after"))
            and is_value(fall.get("before")) and fall.get("before") is not None)


def are_metrics(groups):
    return isinstance(groups, dict) and isinstance(groups.get("overall"), dict) and all(
        isinstance(values, dict) and all(map(is_value, values.values())) for values in groups.values())


def is_count(value):
    return type(value) is int and value >= 0


# what an entry must have: in words, and as a function that says whether a value fits
NEEDED = {"time": ("a time such as 2026-01-31T08:15:00Z", lambda value: isinstance(value, str) and bool(TIME.fullmatch(value))),
          "golden_sha256": ("text", lambda value: isinstance(value, str)),
          "k": ("a whole number", is_count), "depth": ("a whole number", is_count), "errors": ("a whole number", is_count),
          "questions": ("questions by type", lambda value: isinstance(value, dict) and all(map(is_count, value.values()))),
          "metrics": ("overall and each type with fractions 0 to 1 or null", are_metrics)}


def add(folder, entry):
    """Add a run to the log and give the entry with its marks: `compared_with`, `not_comparable`, `needs_review`."""
    make_folder(folder)
    with locked(os.path.join(folder, "log")):
        before = read_log(folder)
        if "failed" not in entry:
            entry = {**entry, **marks(entry, completed(before))}
        path = os.path.join(folder, entry["time"][:10] + ".json")
        runs = [*(read_day(path) if os.path.exists(path) else []), entry]
        write_whole(path, dump_json({"runs": runs}))
    return entry


def differing(entry, other):
    """What makes two runs not comparable, in words: a list, empty when they are comparable."""
    return [f"another {what}" for key, what in COMPARABLE.items() if entry.get(key) != other.get(key)]


def comparable_runs(entries):
    """The runs that are comparable with the last one, oldest first, and it."""
    return [entry for entry in entries if not differing(entries[-1], entry)]


def marks(entry, before):
    """What the log says of a run beside its numbers."""
    found = {}
    if before and (why := differing(entry, before[-1])):
        found["not_comparable"] = f"with the run of {before[-1]['time']}: {', '.join(why)}"
    earlier = next((other for other in reversed(before) if not differing(entry, other)), None)
    if earlier:
        found["compared_with"] = earlier["time"]
        if fallen := falls(earlier["metrics"], entry["metrics"]):
            found["needs_review"] = fallen
    return found


def falls(before, after):
    """Every metric, overall or of a type, that fell by 0.05 or more, or has no value any more."""
    fallen = []
    for group, values in before.items():
        for name, old in values.items():
            new = after.get(group, {}).get(name)
            if old is not None and (new is None or exact(old) - exact(new) >= FALL):
                fallen.append({"group": group, "metric": name, "before": old, "after": new})
    return fallen


def entry_lines(entry):
    """A run of the log as lines of text."""
    if "failed" in entry:
        return [f"{entry['time']}  FAILED, not comparable: {one_line(entry['failed'])}"]
    values = entry["metrics"]["overall"]
    numbers = "  ".join(f"{name} {values[name]:.3f}" for name in ("hit", "mrr", "ndcg") if values.get(name) is not None)
    lines = [f"{entry['time']}  k {entry['k']}  {numbers}" + (f"  {entry['errors']} failed" if entry["errors"] else "")]
    if "not_comparable" in entry:
        lines.append(f"  not comparable {entry['not_comparable']}")
    fallen = {}
    for fall in entry.get("needs_review", ()):
        new = "no value" if fall.get("after") is None else f"{fall['after']:.3f}"
        fallen.setdefault(fall["group"], []).append(f"{fall['metric']} {fall['before']:.3f} -> {new}{questions_of(fall, entry)}")
    if fallen:
        lines.append(f"  needs review, compared with the run of {entry.get('compared_with', '(unknown)')}:")
    return lines + [f"    {group}: {', '.join(falls)}" for group, falls in fallen.items()]


def questions_of(fall, entry):
    """How many questions a fall of hit is, as " (1 of 8 questions)"; nothing for other metrics, which fall by parts of one."""
    counts = entry["questions"]
    count = sum(counts.values()) if fall["group"] == "overall" else counts.get(fall["group"])
    if fall["metric"] != "hit" or fall.get("after") is None or not count:
        return ""
    return f" ({round((fall['before'] - fall['after']) * count)} of {count} questions)"


SHOWN = ("hit", "mrr", "ndcg")


def plot(entries):
    """The history as an SVG: hit, MRR and nDCG over the runs, broken where runs are not comparable."""
    from svg_figures import SERIES, Figure, Scale, count, label, score, ticks

    entries = [entry for entry in completed(entries) if entry["metrics"].get("overall")]
    if not entries:
        raise RecordError("the log has no runs to draw; add one with: golden run … --log")
    figure = Figure("golden-log", "Retrieval over time", f"{count(len(entries), 'run')}, fractions of 1, all questions; "
                    "a line is broken where the golden set, k or index changed")
    figure.key(list(zip(SERIES, SHOWN)))
    figure.y += 10
    left, right, height = figure.left + 34, figure.right - 12, 220
    across = Scale(0, max(1, len(entries) - 1), left, right)
    values = [entry["metrics"]["overall"].get(name) for entry in entries for name in SHOWN]
    low = int(min((value for value in values if value is not None), default=0) * 5) / 5  # down to a fifth
    up = Scale(min(low, 0.8), 1, figure.y + height, figure.y)
    figure.y_axis(up, ticks(up.low, 1, 5), left, right, baseline=0)
    for series, name in zip(SERIES, SHOWN):
        draw_history(figure, series, name, entries, across, up)
    figure.y += height + 8
    draw_dates(figure, entries, across)
    draw_reviews(figure, entries, across)
    last = entries[-1]["metrics"]["overall"]
    return figure.svg(f"Last run, {label(entries[-1]['time'])}: " + ", ".join(f"{name} {score(last.get(name))}" for name in SHOWN))


def draw_history(figure, series, name, entries, across, up):
    """One metric's line, broken between runs that are not comparable, with a mark on every run."""
    points = []
    for at, entry in enumerate(entries):
        value = entry["metrics"]["overall"].get(name)
        if at and differing(entry, entries[at - 1]):
            points.append((across(at), None))
        points.append((across(at), None if value is None else up(value)))
    figure.curve(points, series)
    if len(entries) <= 40:
        for x, y in points:
            if y is not None:
                figure.mark(x, y, series, small=True)


def draw_reviews(figure, entries, across):
    """A mark and the words under every run that needs review."""
    from svg_figures import count

    marked = [at for at, entry in enumerate(entries) if entry.get("needs_review")]
    if marked:
        for at in marked:
            x = across(at)
            figure.bar(x - 3, figure.y, x + 3, figure.y + 6, "third")
        figure.y += 12
        figure.paragraph(f"Squares under the chart: {count(len(marked), 'run')} to review, as a metric fell by 0.05 or more.")


def draw_dates(figure, entries, across):
    """The dates of the runs, as many as have room; a day is named once."""
    from svg_figures import spaced, text_width

    firsts = [at for at, entry in enumerate(entries) if not at or entry["time"][:10] != entries[at - 1]["time"][:10]]
    places, days = [across(at) for at in firsts], [entries[at]["time"][:10] for at in firsts]
    figure.y += 12
    for at in spaced(places, [text_width(day) for day in days]):
        anchor = "start" if at == 0 else "end" if at == len(days) - 1 and places[at] > figure.right - 60 else "middle"
        figure.text(places[at], figure.y, days[at], anchor=anchor)
    figure.y += 8
