"""Shows what changed between two versions of a record as lines of text."""

from collections import Counter

import metrics

PARTS = ("population", "label", "ranking", "ideal", "scale")  # what can move a metric, in the order in which it is applied


def some(items, limit):
    """Items as text, shortened."""
    items = list(items)
    return ", ".join(map(str, items[:limit])) + (f" and {len(items) - limit:,} more" if len(items) > limit else "")


def lines_of(report, limit):
    """A block's report as lines of text."""
    if "change" in report:
        return [f"the block is {report['change']}"]
    if "checks" in report:
        return [f"{name}: {' -> '.join(verdict_text(own) for own in pair)}" for name, pair in report["checks"].items()]
    settings = [f"{key}: {setting_text(was)} -> {setting_text(now)}" for key, (was, now) in report["settings"].items()]
    return settings + (panel_lines if "grades" in report else table_lines)(report, limit)


def setting_text(value):
    """A setting as text: models and cutoffs with commas, comparisons as base: candidate."""
    if isinstance(value, tuple):
        return ", ".join(": ".join(own) if isinstance(own, tuple) else str(own) for own in value) or "none"
    return "none" if value is None else str(value)


def verdict_text(verdict):
    if verdict is None:
        return "absent"
    bound = next(key for key in ("at_least", "at_most") if key in verdict)
    return f"{verdict['value']:.7g} ({bound.replace('_', ' ')} {verdict[bound]}: {'pass' if verdict['passed'] else 'FAIL'})"


def table_lines(report, limit):
    lines = []
    for name, own in report["datasets"].items():
        if own["change"] != "changed":
            lines.append(f"{name}: {own['change']}")
            continue
        was, now = own["queries"]
        lines += [f"{name}: {was:,} -> {now:,} queries"] * (was != now)
        for model, move in own["models"].items():
            changed = f", {move['scores_changed']:,} of {now:,} scores changed" if "scores_changed" in move else ""
            lines.append(f"{name}: {model}: " + " -> ".join("absent" if move[key] is None else f"{move[key]:.4f}"
                                                            for key in ("old", "new")) + changed)
    return lines


def panel_lines(report, limit):
    queries, models = report["queries"], report["models"]
    lines = [f"models {what}: {', '.join(models[key])}" for key, what in
             (("added", "added"), ("removed", "removed"), ("identity", "with another identity")) if models[key]]
    lines.append(f"queries: {queries['old']:,} -> {queries['new']:,}, {queries['shared']:,} in both"
                 + ", in another order" * queries["order"])
    for key, what in (("added", "added"), ("removed", "removed"), ("type", "of another type"),
                      ("selected", "with another selected prefix")):
        lines += [f"queries {what}: {len(queries[key]):,} ({some(queries[key], limit)})"] if queries[key] else []
    lines += reference_lines(report["reference"], limit)
    lines += ["reasons of excluded positions changed"] * report["reasons"]
    changes, rankings = report["grades"], report["rankings"]
    if changes:
        kinds = Counter((own["old"], own["new"]) for own in changes)
        summary = ", ".join(f"{count:,} x {grade_text(was)} -> {grade_text(now)}" for (was, now),
                            count in kinds.most_common(limit))
        among = metrics.plural(len({own["query"] for own in changes}), "query")
        lines.append(f"grades changed: {metrics.plural(len(changes), 'ranked position')} of {among} ({summary})")
        lines += [f"  {own['query']}: {own['model']}: rank {own['rank']}: {grade_text(own['old'])} -> {grade_text(own['new'])}"
                  for own in changes[:limit]] + more(changes, limit)
    if rankings:
        by_model = Counter(own["model"] for own in rankings)
        among = ", ".join(f"{model} {count:,}" for model, count in by_model.items())
        lines.append(f"rankings changed: {len(rankings):,} ({among})")
        lines += [f"  {own['query']}: {own['model']}: from rank {own['first_rank']}" + (
            f", {own['old_length']} -> {own['new_length']} positions" if own["old_length"] != own["new_length"] else "")
            for own in rankings[:limit]] + more(rankings, limit)
    return lines + metric_lines(report["metrics"])


def more(items, limit):
    return [f"  and {len(items) - limit:,} more (--limit shows them, --format json holds all)"] if len(items) > limit else []


def grade_text(value):
    return "excluded" if value is None else str(value)


def reference_lines(reference, limit):
    grown, lost = reference["expanded"], reference["not_kept"]
    if not grown and not lost:
        return []
    kept = "every old grade kept" if not lost else f"old grades not kept for {metrics.plural(len(lost), 'query')}"
    lines = [f"reference of the shared queries: {reference['old_pairs']:,} -> {reference['new_pairs']:,} graded pairs; "
             f"{metrics.plural(len(grown + lost), 'query')} changed, {kept}"]
    for own in (lost + grown)[:limit]:
        lines.append(f"  {own['query']}: " + ", ".join(f"grade {name}: {count_text(was)} -> {count_text(now)}"
                                                       for name, (was, now) in own["counts"].items()))
    return lines + more(lost + grown, limit)


def count_text(count):
    return "uncounted" if count < 0 else f"{count:,}"


def metric_lines(rows):
    """The table of what moved each metric: one line per model, metric and cutoff that moved."""
    moved = [row for row in rows if row["difference"] is None and row["old"] != row["new"] or any(row["parts"].values())]
    if not moved:
        return ["no metric moved"]
    shown = [part for part in PARTS if any(row["parts"].get(part) for row in moved)]
    table = [["metric", "model", "old", "new", "change", *(f"by {part}" for part in shown)]]
    for row in moved:
        table.append([metrics.label(row["metric"], row["cutoff"]), row["model"], *(number(row[key]) for key in ("old", "new")),
                      signed(row["difference"]), *(signed(row["parts"][part]) if row["parts"] else "" for part in shown)])
    return ["what moved each metric:", *metrics.render([("", table, ())], markdown=False).split("\n")[1:-1]]


def number(value):
    return "undefined" if value is None else f"{value:.6f}"


def signed(value):
    """A change: 0 stands only for exactly none."""
    return "undefined" if value is None else f"{value:+.6f}" if value else "0"
