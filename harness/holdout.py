"""Keeps some questions apart from tuning: splits a golden set, notes every use of the holdout, and looks for a gap."""

import json
import os
from hashlib import sha256
from math import fsum, sqrt

from harness.golden_items import PARTS, read_items
from harness.locks import locked, make_folder
from metrics import RecordError, decode_utf8, parse_json, read_bytes, t_95, write_whole

LEDGER = "holdout-ledger.jsonl"
SMALL_GAP = 0.05  # a gap within this is none worth acting on


def fraction(item):
    """A number in [0, 1) that depends on nothing but an item's id."""
    return int.from_bytes(sha256(item.id.encode()).digest()[:6], "big") / 2**48


def split_items(items, share, before=None):
    """{id: "tuning" or "holdout"} for every item.

    An item stays where `before` ({id: part}) or its own `split` has it. The others are placed by the hash of their id, within
    bounds: of the first n items of a type and answerability, the holdout has its share of n, give or take less than one.
    What comes later in the file decides nothing, so that added items never move an earlier one.
    """
    parts = {item.id: (before or {}).get(item.id) or item.split for item in items}
    strata = {}
    for item in items:
        strata.setdefault((item.type, item.answerable), []).append(item)
    for members in strata.values():
        held = 0
        for count, item in enumerate(members, 1):
            if parts[item.id] is None:
                behind = share * count - held
                chosen = behind >= 1 or behind > 0 and fraction(item) < share
                parts[item.id] = "holdout" if chosen else "tuning"
            held += parts[item.id] == "holdout"
    return parts


def read_parts(folder):
    """{id: part} of an earlier split in a folder; empty without one. Raises RecordError."""
    parts, problems = {}, []
    for part in PARTS:
        path = os.path.join(folder, f"{part}.jsonl")
        if os.path.exists(path):
            parts.update({item.id: part for item in read_items([path], problems, [])})
    if problems:
        raise RecordError(problems)
    return parts


def write_parts(items, parts, folder):
    """Write tuning.jsonl and holdout.jsonl, each item with its `split`; gives {part: path}."""
    paths = {part: os.path.join(folder, f"{part}.jsonl") for part in PARTS}
    rows = {part: [{**item.value, "split": part} for item in items if parts[item.id] == part] for part in PARTS}
    if empty := [part for part in PARTS if not rows[part]]:
        raise RecordError(f"{paths[empty[0]]}: no question in this part; expected more questions or another share")
    make_folder(folder)
    for part, path in paths.items():
        write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[part]))
    return paths


def note_holdout(golden, path, **what):
    """Enter a use of holdout questions, if a golden set has any, in the ledger at path; gives the number of uses, or None."""
    from harness.runlog import LOG_FOLDER, now

    held = sum(item.split == "holdout" for item in golden.items)
    if not held:
        return None
    return note_use(path or os.path.join(LOG_FOLDER, LEDGER),
                    {"time": now(), "golden": golden.name, "golden_sha256": golden.sha256, "holdout_questions": held, **what})


def note_use(path, entry):
    """Add one use of the holdout to its ledger, a JSON Lines file; gives how many uses it holds now."""
    make_folder(os.path.dirname(path))
    with locked(path):
        old = decode_utf8(read_bytes(path), path) if os.path.exists(path) else ""
        for number, line in enumerate(old.splitlines(), 1):
            parse_json(line, f"{path}: line {number}")
        write_whole(path, old + json.dumps(entry, ensure_ascii=False) + "\n")
    return old.count("\n") + 1


def welch(one, other):
    """(difference, low, high) of two means of independent values, with its 95% interval (Welch 1947).

    welch([1, 1, 0, 1], [0, 1, 0, 0]) is 0.5 -+ t_95(6) * sqrt(0.25 / 4 + 0.25 / 4). None without two values on each side.
    """
    if min(len(one), len(other)) < 2:
        return None, None, None
    means = [fsum(values) / len(values) for values in (one, other)]
    errors = [fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
              for values, mean in zip((one, other), means)]
    difference, error = means[0] - means[1], fsum(errors)
    if not error:
        return difference, difference, difference
    freedom = error**2 / fsum(e * e / (len(values) - 1) for e, values in zip(errors, (one, other)))
    half = t_95(freedom) * sqrt(error)
    return difference, difference - half, difference + half


def gap(rows, metric):
    """How much better the tuning questions do than the holdout, as a dict with a verdict in words; None without both."""
    values = [[row[metric] for row in rows if row["part"] == part and row[metric] is not None] for part in PARTS]
    if not all(values):
        return None
    difference, low, high = welch(*values)
    sizes = f"{len(values[0])} tuning and {len(values[1])} holdout questions"
    if low is None or min(map(len, values)) < 10:
        verdict, warn = f"{sizes} are too few to tell; have at least 10 in each part", False
    elif low > 0:
        verdict, warn = "the holdout does worse: what was tuned fits the tuning questions better than new ones", True
    elif high <= SMALL_GAP:
        verdict, warn = f"no gap above {SMALL_GAP} in {sizes}", False
    else:
        verdict, warn = f"{sizes} are too few to tell: a gap up to {high:.3f} would look like this too", False
    return {"metric": metric, "tuning": fsum(values[0]) / len(values[0]), "holdout": fsum(values[1]) / len(values[1]),
            "n": [len(values[0]), len(values[1])], "difference": difference, "low": low, "high": high,
            "verdict": verdict, "warn": warn}
