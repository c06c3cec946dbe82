"""Says what changed between two versions of a record, and how much each change moved each metric.

    python -m harness diff OLD.json NEW.json

A record holds grades and no passages, so whether a changed grade at a rank is the same passage labelled anew or another
passage can't always be known. The rule is in `changed_part`, and harness/docs/diff.md says what follows from it.
"""

from itertools import compress
from math import fsum
from operator import and_
from typing import NamedTuple

import metrics
from harness.diff_text import PARTS, lines_of
from harness.verdicts import named
from metrics import EXCLUDED, Panel, RecordError, Table

SETTINGS = ("depth", "cutoffs", "max_grade", "useful", "gain", "comparisons", "tolerance")


class Shared(NamedTuple):
    """Two versions of a panel, cut down to the queries and models of both, in one order."""

    old: Panel
    new: Panel


class Move(NamedTuple):
    """How one metric of one model moved, and by which part; whole, the sum of the parts, is None where a version lacks it."""

    model: str
    metric: str
    cutoff: int | None
    old: float | None
    new: float | None
    parts: dict

    @property
    def whole(self):
        return None if self.old is None or self.new is None else self.new - self.old


# Where two panels differ


def narrowed(panel, ids, models):
    """A panel with only these queries, in this order, and these models."""
    place = {query: index for index, query in enumerate(panel.ids)}
    at = [place[query] for query in ids]
    pick = lambda column: tuple(column[index] for index in at)  # noqa: E731
    return panel._replace(ids=tuple(ids), models={model: panel.models[model] for model in models}, counts=pick(panel.counts),
                          types=panel.types and pick(panel.types), comparisons=(),
                          rankings={model: pick(panel.rankings[model]) for model in models},
                          selected=panel.selected and {model: pick(panel.selected[model]) for model in models})


def shared(old, new):
    """The Shared of two panels: the queries in the order of the old one."""
    known = set(new.ids)
    ids = [query for query in old.ids if query in known]
    models = [model for model in old.models if model in new.models]
    return Shared(narrowed(old, ids, models), narrowed(new, ids, models))


def changed_part(old, new, old_counts, new_counts):
    """What a changed ranking of grades says: (ranking after the labels changed, whether the rest is a changed ranking).

    Without passage ids this is a rule, not knowledge. Where the reference has as many passages of each grade as before, or the
    ranking shows the same grades in another order, the ranking changed. Otherwise labels changed at the ranks that both have,
    and a change of length is a changed ranking.
    """
    if old == new or old_counts == new_counts or sorted(old) == sorted(new):
        return old, old != new
    common = min(len(old), len(new))
    return new[:common] + old[common:], len(old) != len(new)


def relabelled(pair):
    """The old rankings with the new labels, as far as changed_part finds labels changed."""
    return {model: tuple(changed_part(*columns)[0] for columns in zip(pair.old.rankings[model], pair.new.rankings[model],
                                                                      pair.old.counts, pair.new.counts))
            for model in pair.old.models}


def shared_selected(pair):
    """{model: selected prefix lengths}, new where both versions have them."""
    return pair.new.selected if pair.old.selected and pair.new.selected else None


# What moved a metric


def stages(old, new, members):
    """(part, panel, members) of each step from the old panel to the new one; members(panel) gives 1 or 0 per query.

    Queries that are in one version only go first and come last; between that the labels change, then the rankings, then the
    reference (the ideal and the known useful passages), then the scale of grades. The parts telescope: they sum to the whole.
    """
    pair = shared(old, new)
    stay = list(map(and_, members(pair.old), members(pair.new)))
    labelled = pair.old._replace(rankings=relabelled(pair))
    ranked = labelled._replace(rankings=pair.new.rankings, selected=shared_selected(pair))
    referred = ranked._replace(counts=pair.new.counts)
    scaled = referred._replace(max_grade=new.max_grade, useful=new.useful, gain=new.gain, gains=new.gains)
    yield "", old, members(old)
    for part, panel in (("population", pair.old), ("label", labelled), ("ranking", ranked), ("ideal", referred),
                        ("scale", scaled)):
        yield part, with_gains(panel, old, new), stay
    yield "population", new, members(new)


def with_gains(panel, old, new):
    """A panel between two scales, with gains for the grades of both, so that a new grade has one before the scale changes."""
    top = max(old.max_grade, new.max_grade)
    counts = tuple(own + (0,) * (top + 1 - len(own)) for own in panel.counts)
    return panel._replace(counts=counts, gains=metrics.gain_table(panel.gain, top), max_grade=top)


def values(panel, members, cutoffs):
    """{(model, metric, cutoff): value or None} over some queries of a panel."""
    found = {}
    for item in metrics.measure(panel, cutoffs) if panel.ids else ():
        allowed = list(map(and_, item.eligible, members))
        for model, sums in item.sums.items():
            found[model, item.metric, item.cutoff] = metrics.ratio(*(list(compress(column, allowed)) for column in sums))
    return found


def moves(old, new, members):
    """The Move of every metric that both versions have; an undefined step in between goes to the next defined one."""
    cutoffs = tuple(k for k in old.cutoffs if k in new.cutoffs)
    if not cutoffs:
        return
    steps = [(part, values(panel, own, cutoffs)) for part, panel, own in stages(old, new, members)]
    for model, metric, cutoff in steps[0][1]:
        key = model, metric, cutoff
        if key in steps[-1][1]:
            before, last = steps[0][1][key], steps[-1][1][key]
            parts = telescope([(part, found.get(key)) for part, found in steps]) if None not in (before, last) else {}
            yield Move(*key, before, last, parts)


def telescope(steps):
    """{part: sum of what its steps moved} of (part, value) pairs; a value that is None is passed over."""
    parts, at = {part: [] for part in PARTS}, steps[0][1]
    for part, value in steps[1:]:
        if value is not None:
            parts[part].append(value - at)
            at = value
    return {part: fsum(pieces) for part, pieces in parts.items()}


POPULATIONS = {"all": lambda panel: [1] * len(panel.ids),
               "answerable": lambda panel: [1 if sum(counts[panel.useful:]) else 0 for counts in panel.counts]}


def of_type(kind):
    """The members function of one type of queries."""
    return lambda panel: [1 if own == kind else 0 for own in panel.types] if panel.types else [0] * len(panel.ids)


# The report


def panel_report(old, new, members):
    """What changed in a panel, as plain values."""
    pair = shared(old, new)
    ids = set(pair.old.ids)
    other_selected = {query for model in pair.old.models
                      for query, was, now in zip(pair.old.ids, *(selected_of(own, model) for own in pair)) if was != now}
    report = {
        "settings": {key: [getattr(old, key), getattr(new, key)] for key in SETTINGS if getattr(old, key) != getattr(new, key)},
        "models": {"added": [model for model in new.models if model not in old.models],
                   "removed": [model for model in old.models if model not in new.models],
                   "identity": [model for model in old.models if model in new.models and old.models[model] != new.models[model]]},
        "queries": {"old": len(old.ids), "new": len(new.ids), "shared": len(ids),
                    "added": [query for query in new.ids if query not in ids],
                    "removed": [query for query in old.ids if query not in ids],
                    "order": [query for query in new.ids if query in ids] != list(pair.old.ids),
                    "type": [query for query, was, now in zip(pair.old.ids, *types_of(pair)) if was != now],
                    "selected": [query for query in pair.old.ids if query in other_selected]},
        "grades": list(changed_grades(pair)), "rankings": list(changed_rankings(pair)), "reference": reference_report(pair),
        "reasons": reasons_differ(old, new)}
    report["metrics"] = [{"model": move.model, "metric": move.metric, "cutoff": move.cutoff, "old": move.old, "new": move.new,
                          "difference": move.whole, "parts": move.parts} for move in moves(old, new, members)]
    return report


def types_of(pair):
    """The types of both versions, None where a version has none."""
    return [own.types or [None] * len(own.ids) for own in pair]


def selected_of(panel, model):
    return panel.selected[model] if panel.selected else [None] * len(panel.ids)


def reasons_differ(old, new):
    """Whether a position that is excluded in both versions has another reason; by query and not by its place in the file."""
    own = [{(model, panel.ids[index], rank): reason for (model, index, rank), reason in panel.reasons.items()}
           for panel in (old, new)]
    return any(own[1].get(position, reason) != reason for position, reason in own[0].items())


def changed_grades(pair):
    """Each grade that counts as labelled anew: query, model, rank, old and new grade (None for an excluded position)."""
    later = relabelled(pair)
    for model in pair.old.models:
        for query, old, new in zip(pair.old.ids, pair.old.rankings[model], later[model]):
            for rank, (was, now) in enumerate(zip(old, new), 1) if old != new else ():
                if was != now:
                    yield {"query": query, "model": model, "rank": rank, "old": grade(was), "new": grade(now)}


def grade(byte):
    return None if byte == EXCLUDED else byte


def changed_rankings(pair):
    """Each ranking that changed: query, model, first rank that differs once the labels are the new ones, lengths."""
    later = relabelled(pair)
    for model in pair.old.models:
        for query, old, new in zip(pair.old.ids, later[model], pair.new.rankings[model]):
            if old != new:
                first = next((rank for rank, (was, now) in enumerate(zip(old, new), 1) if was != now),
                             min(len(old), len(new)) + 1)
                yield {"query": query, "model": model, "first_rank": first, "old_length": len(old), "new_length": len(new)}


def reference_report(pair):
    """What changed in the reference: pairs, and the queries whose counts changed, with every old grade kept or not.

    A grade 0 that a version leaves uncounted is not compared.
    """
    report = {"old_pairs": 0, "new_pairs": 0, "expanded": [], "not_kept": []}
    for query, old, new in zip(pair.old.ids, pair.old.counts, pair.new.counts):
        top = max(len(old), len(new))
        old, new = (own + (0,) * (top - len(own)) for own in (old, new))
        report["old_pairs"] += sum(count for count in old if count > 0)
        report["new_pairs"] += sum(count for count in new if count > 0)
        if old != new:
            change = {str(own): [was, now] for own, (was, now) in enumerate(zip(old, new)) if was != now}
            kept = all(now >= was for was, now in zip(old, new) if was >= 0 and now >= 0)
            report["expanded" if kept else "not_kept"].append({"query": query, "counts": change})
    return report


def table_report(old, new):
    """What changed in a public table. Its scores have no query ids: they are compared only where their number is the same."""
    datasets, summaries = {}, [metrics.summarize_table(own)["datasets"] for own in (old, new)]
    for name in dict.fromkeys([*old.datasets, *new.datasets]):
        if name not in old.datasets or name not in new.datasets:
            datasets[name] = {"change": "added" if name in new.datasets else "removed"}
            continue
        (was, before), (now, after) = old.datasets[name], new.datasets[name]
        models = {}
        for model in dict.fromkeys([*before, *after]):
            if before.get(model) != after.get(model):
                models[model] = {"old": summaries[0][name]["means"].get(model), "new": summaries[1][name]["means"].get(model)}
                if was == now and model in before and model in after:
                    models[model]["scores_changed"] = sum(map(float.__ne__, map(float, before[model]), map(float, after[model])))
        if was != now or models:
            datasets[name] = {"change": "changed", "queries": [was, now], "models": models}
    settings = {key: [getattr(old, key), getattr(new, key)] for key in ("measure", "models", "comparisons")
                if getattr(old, key) != getattr(new, key)}
    return {"settings": settings, "datasets": datasets}


def checks_report(old, new):
    """What changed in checks: the verdicts of both versions, None where one lacks the check."""
    names = dict.fromkeys([*old.checks, *new.checks])
    both = {name: [metrics.check_verdict(*own.checks[name]) if name in own.checks else None for own in (old, new)]
            for name in names}
    return {"checks": {name: pair for name, pair in both.items() if old.checks.get(name) != new.checks.get(name)}}


def block_report(old, new, members):
    """What changed in one block."""
    if old is None or new is None or type(old) is not type(new):
        return {"change": "added" if old is None else "removed" if new is None else "of another kind"}
    if isinstance(old, Panel):
        return panel_report(old, new, members)
    return table_report(old, new) if isinstance(old, Table) else checks_report(old, new)


def is_change(report):
    """Whether a block's report says that something changed."""
    if "grades" not in report:
        return any(report.values())
    queries, models = report["queries"], report["models"]
    return bool(report["settings"] or any(models.values()) or any(queries[key]
                                                                  for key in ("added", "removed", "order", "type", "selected"))
                or report["grades"] or report["rankings"] or report["reference"]["expanded"] or report["reference"]["not_kept"]
                or report["reasons"])


def wanted_metrics(words):
    """(metric, cutoff or None) of words such as ndcg or nDCG@10; a cutoff of None is every one. Raises RecordError."""
    from harness.addresses import NAMES

    found = []
    for word in words:
        name, at, k = word.partition("@")
        if name.lower() not in NAMES or at and not k.isdecimal():
            raise RecordError(f"--metric: expected one of {', '.join(metrics.TITLES)}, with @K or without, got {named(word)}")
        found.append((NAMES[name.lower()], int(k) if at else None))
    return found


def check_metrics(words, wanted, old, new):
    """Refuse a metric or cutoff that no panel has in both versions: it could not move, and nothing would say why."""
    known = {}  # in the order of the panels; an ordered set
    for place, block in old.blocks.items():
        other = new.blocks.get(place)
        if isinstance(block, Panel) and isinstance(other, Panel):
            known.update(((metric, k), None) for k in block.cutoffs if k in other.cutoffs for metric in metrics.METRICS)
            known.update({("selected_precision", None): None} if block.selected and other.selected else {})
    cutoffs = ", ".join(map(str, sorted({k for _, k in known if k})))
    there = [f"{', '.join(metrics.METRICS)} at {cutoffs}"] * bool(cutoffs)
    there += ["selected_precision"] * (("selected_precision", None) in known)
    expected = ", and ".join(there) or "none, since no panel is in both"
    problems = [f"--metric: {named(word)} is not in both records; expected one of: {expected}"
                for word, (metric, k) in zip(words, wanted)
                if not any(metric == own and k in (None, cutoff) for own, cutoff in known)]
    if problems:
        raise RecordError(problems)


def keep_metrics(reports, wanted):
    """Leave in the reports only the metrics that are wanted; all where none is named."""
    for report in reports.values():
        if wanted and "metrics" in report:
            report["metrics"] = [row for row in report["metrics"]
                                 if any(row["metric"] == metric and k in (None, row["cutoff"]) for metric, k in wanted)]


def compare_records(old, new, members):
    """{place: report} of each block that changed."""
    places = dict.fromkeys([*old.blocks, *new.blocks])
    reports = {place: block_report(old.blocks.get(place), new.blocks.get(place), members) for place in places}
    return {place: report for place, report in reports.items() if is_change(report)}


# The command


def members_of(options):
    """The members function that the options ask for, and its name."""
    if options.type:
        return of_type(options.type), f"type {options.type}"
    return POPULATIONS[options.population], options.population


def check_type(kind, records):
    """Refuse a type that no panel of the two records has."""
    known = {own for record in records for block in record.blocks.values() if isinstance(block, Panel) for own in block.types
             or ()}
    if kind and kind not in known:
        raise RecordError(f"--type: no queries of type {named(kind)}; expected one of: {', '.join(sorted(known)) or 'none'}")


def read(path):
    """(parsed JSON, Record) of a file."""
    value, sha256 = metrics.read_json(path)
    return value, metrics.parse_record(value, path, sha256)


def main(argv):
    """Run `diff`; the exit status."""
    import argparse

    from harness.arguments import Parser

    def count(text):
        if not text.isdecimal():
            raise argparse.ArgumentTypeError(f"expected a whole number, got {text}")
        return int(text)

    parser = Parser(prog="python -m harness diff",
                                     description="What changed between two versions of a record, and what moved each metric.",
                                     epilog="Exit status: 0 the same, 1 something changed, 2 bad input or usage.")
    parser.add_argument("old", metavar="OLD.json")
    parser.add_argument("new", metavar="NEW.json")
    parser.add_argument("--population", choices=tuple(POPULATIONS), default="all",
                        help="over which queries the metrics are (default: all)")
    parser.add_argument("--type", metavar="NAME", help="over the queries of one type")
    parser.add_argument("--metric", nargs="+", action="extend", default=[], metavar="NAME[@K]",
                        help="only these metrics, such as ndcg@10 or hit")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--limit", type=count, default=10, metavar="N", help="how many of each list the text names (default: 10)")
    options = parser.parse_args(argv)
    (old_value, old), (new_value, new) = read(options.old), read(options.new)
    check_type(options.type, (old, new))
    members, population = members_of(options)
    wanted = wanted_metrics(options.metric)
    check_metrics(options.metric, wanted, old, new)
    reports = compare_records(old, new, members)
    keep_metrics(reports, wanted)
    same = not reports and old_value == new_value
    if options.format == "json":
        print(metrics.dump_json({"old": {"record": old.name, "sha256": old.sha256},
                                 "new": {"record": new.name, "sha256": new.sha256},
                                 "same": same, "population": population, "blocks": reports}), end="")
    else:
        print(f"{options.old} -> {options.new}")
        for place, report in reports.items():
            print(*([f"{place}:"] if place else []), *(f"  {line}" for line in lines_of(report, options.limit)), sep="\n")
        if not reports:
            print("the same" if same else "only notes changed, on which no number depends")
        elif any(report.get("metrics") for report in reports.values()):
            print(f"metrics over {population} queries; the parts, in this order, sum to the change: {', '.join(PARTS)}")
    return 0 if same else 1
