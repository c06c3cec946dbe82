"""Draws the figures of retrieval records, from what metrics.py recomputes.

    python figures.py                        the records in ./records beside this file -> ./figures beside this file
    python figures.py --directory DIR --output DIR --figure NAME
    python figures.py --check                is every stored figure what would be drawn?

Which figures a record gets follows from the shape of its blocks (see choose), so any record gets its figures without code:

    draw_depth      a panel of one or two models       score over retrieval depth, and the difference below
    draw_parity     a panel with a tolerance           differences against the tolerance
    draw_table      a panel with selected prefixes     measure, before, new, change and a verdict in words
    draw_steps      models of which each is one step   what each step adds or loses
    draw_widths     models that are widths             score over embedding width
    draw_datasets   a public table of few models       data sets, both scores and the change, for each pair of models
    draw_models     any other panel                    every model and its change
    draw_scores     a public table of many models      models by data sets
    draw_types      a panel with query types           query types by measure

Words such as "leads", "better" or "clearly" are said where Holm's adjusted p is below 0.05 (see claim); where only the unadjusted
interval leaves out 0, it is "higher" or "lower". A figure over 40 KB is drawn in parts: NAME.part-1.svg, NAME.part-2.svg.
"""

import math
import os
import re
import sys
from typing import NamedTuple

import metrics
from metrics import TITLES, RecordError
from svg_figures import (
    CHANGED,
    NEUTRAL,
    SERIES,
    UNCHANGED,
    WORSENED,
    Figure,
    Scale,
    change,
    count,
    distinct,
    label,
    missing,
    plain,
    push,
    round_axis,
    score,
    spaced,
    text_width,
    tick_decimals,
)

HERE = os.path.dirname(os.path.abspath(__file__))
MAIN = "ndcg"  # the measure that titles speak of
DEPTH_METRICS = ("hit", "recall", "precision", "ndcg")
KEPT = 0.99  # the share of the full width's score that counts as keeping it
UNMEASURED = "not measured"
SMALLEST = 1e-12  # summaries have no more decimals
ADJUSTED = 0.05  # the Holm-adjusted p below which a difference is claimed in words
BUDGET = 40 * 1024  # bytes of a figure


class Source(NamedTuple):
    """What one figure is drawn from."""

    name: str  # of the figure, without .svg
    block: object  # a metrics.Panel or metrics.Table
    summary: dict  # what metrics.py makes of it
    widths: dict  # {model: embedding width} where the models are widths, else {}
    pair: tuple | None  # (base, candidate)
    part: tuple = (0, 1)  # which part of how many, where one figure does not hold all rows, columns or panels


# ---- which figures ---------------------------------------------------------------------------------------------------

def plan(record):
    """[(Source, draw), …] for every figure that a record gets."""
    stem = record.name.removesuffix(".json")
    figures = []
    for place, block in record.blocks.items():
        if isinstance(block, metrics.Checks):
            continue
        widths = widths_of(identities(record, block))
        chosen = choose(block, widths)
        if any(draw is draw_steps for _, draw, _ in chosen):
            block = with_steps(block)
        summary = metrics.summarize_block(block)
        name = ".".join(map(file_part, [stem, *filter(None, place.split("."))]))
        figures += [(Source(name + suffix, block, summary, widths, pair), draw) for suffix, draw, pair in chosen]
    return figures


def identities(record, block):
    """{model: identity} of a block's models: a panel's own, and for a table those of the panels beside it that agree on a model.

    A panel of the very models of the table comes first.
    """
    if isinstance(block, metrics.Panel):
        return block.models
    panels = [panel.models for panel in record.blocks.values() if isinstance(panel, metrics.Panel)]
    panels = [models for models in panels if set(models) == set(block.models)] or panels
    known = {}
    for model in block.models:
        said = [models[model] for models in panels if model in models]
        known[model] = said[0] if said and all(identity == said[0] for identity in said) else {}
    return known


def choose(block, widths):
    """[(suffix of the name, draw, pair), …]: what a block's shape asks for."""
    models, pairs = list(block.models), block.comparisons
    first = pairs[0] if pairs else None
    if isinstance(block, metrics.Table):
        if widths:
            return [("", draw_widths, first)]
        return each_pair(draw_datasets, pairs) if len(models) == 1 or 1 <= len(pairs) <= 3 else [("", draw_scores, None)]
    if widths:
        chosen = [("", draw_widths, first)]
    elif pairs and block.tolerance:
        chosen = each_pair(draw_parity, pairs)
    elif pairs and (block.selected or any("predecessor" in identity for identity in block.models.values())):
        chosen = each_pair(draw_table, pairs)
    elif is_chain(models, pairs):
        chosen = [("", draw_steps, first)]
    else:
        chosen = [("", draw_depth if len(models) <= 2 else draw_models, first)]
    return chosen + ([(".types", draw_types, first)] if block.types else [])


def each_pair(draw, pairs):
    """A figure a pair of models: named by the candidate where there are several, and by the base too where candidates repeat."""
    if len(pairs) < 2:
        return [("", draw, pairs[0] if pairs else None)]
    distinct = len({candidate for _, candidate in pairs}) == len(pairs)
    return [("." + ".".join(map(file_part, pair[1:] if distinct else pair)), draw, pair) for pair in pairs]


def is_chain(models, pairs):
    """Whether each of three to five models is one step from the one before: every step is compared, or of three models the
    first and the second with the last."""
    if not 3 <= len(models) <= 5:
        return False
    ends = {(models[0], models[-1]), (models[1], models[-1])}
    return set(pairs) >= set(zip(models, models[1:])) or len(models) == 3 and set(pairs) == ends


def with_steps(panel):
    """The panel with every step of its chain, and the whole way, among its comparisons."""
    models = list(panel.models)
    needed = [*zip(models, models[1:]), (models[0], models[-1])]
    return panel._replace(comparisons=(*panel.comparisons, *(pair for pair in needed if pair not in panel.comparisons)))


def widths_of(models):
    """{model: embedding width} of a {model: identity} that is one model at several widths, else {}.

    That is: keys that are numbers (384, d384, 384d), or one and the same `name` with `dimensions` that differ. Models whose names
    are known to differ are never widths of one.
    """
    names = [identity.get("name") for identity in models.values()]
    alike = len(set(map(str, names))) == 1
    if not alike and None not in names:
        return {}
    named = {model: re.fullmatch(r"(?:d|dim)?[-_ ]?(\d{1,7})[-_ ]?(?:d|dim)?", model) for model in models}
    if all(named.values()):
        found = {model: int(match[1]) for model, match in named.items()}
    elif alike and names[0]:
        found = {model: identity.get("dimensions") for model, identity in models.items()}
    else:
        return {}
    distinct = len(set(map(str, found.values()))) == len(found) > 1
    return found if distinct and all(type(width) is int and width > 0 for width in found.values()) else {}


def file_part(text):
    """A record's or a section's name as part of a file name: whatever is no letter, digit, "-" or "_" is written as ~hex~.

    Parts are joined with ".", which no part contains, so that two figures never get one name.
    """
    return "".join(character if character.isalnum() or character in "-_" else f"~{ord(character):x}~" for character in text)


# ---- reading summaries -----------------------------------------------------------------------------------------------

def headline(cutoffs):
    """The cutoff that titles and tables speak of: 10, else the largest below it, else the smallest."""
    return max((k for k in cutoffs if k <= 10), default=cutoffs[0])


def landmarks(cutoffs):
    """The cutoffs that are marked and named: all of a dozen, else as many as can stand side by side on a logarithmic axis."""
    if len(cutoffs) <= 12:
        return cutoffs
    across = Scale(cutoffs[0], cutoffs[-1], 0, 246, log=True)
    return [cutoffs[at] for at in spaced([across(k) for k in cutoffs], [text_width(f"{k:,}") for k in cutoffs])]


def value_of(block, metric, k):
    """A model's value, or a comparison's entry, for a measure at a cutoff (None: it has none); None where there is none."""
    values = (block or {}).get(metric)
    return values.get(str(k)) if k and values else values


def comparison(summary, pair):
    """The comparison of a pair of models, or None."""
    found = (block for block in summary["comparisons"] if (block["base"], block["candidate"]) == pair)
    return next(found, None)


def verdict(entry):
    """1 or -1 where the whole interval lies above or below 0, 0 where it does not, None without an interval."""
    if not entry or missing(entry["low"]):
        return None
    return (entry["low"] > 0) - (entry["high"] < 0)


def claim(entry):
    """How much may be said of a change: its verdict, as 2 or -2 where Holm's adjusted p is below 0.05 as well."""
    known, adjusted = verdict(entry), (entry or {}).get("p_holm")
    return known * 2 if known and not missing(adjusted) and adjusted < ADJUSTED else known


def colour_of(entry):
    """The series that a change is drawn in, by its interval: above 0, below 0, around 0, or without an interval."""
    return {1: CHANGED, -1: WORSENED, 0: UNCHANGED}.get(verdict(entry), NEUTRAL)


def change_text(entry, decimals=3):
    """A change with its interval, in words."""
    if not entry or missing(entry["difference"]):
        return "no change computed"
    interval = "no interval" if missing(entry["low"]) else \
        f"95% interval {change(entry['low'], decimals)} to {change(entry['high'], decimals)}"
    return f"change {change(entry['difference'], decimals)} ({interval})"


def have_intervals(entries):
    """Whether any of the changes has an interval: one needs two queries."""
    return any(entry and not missing(entry["low"]) for entry in entries)


def interval_note(entries, words, claims=""):
    """These words of a footnote on intervals, and the rule that claims follow; where there are no intervals, that."""
    if not have_intervals(entries):
        return "There is no interval: fewer than two queries count."
    rule = f" Intervals and their colours are unadjusted; {claims} a Holm-adjusted p below {ADJUSTED}."
    return words + rule * bool(claims)


def limits(entries):
    """The lowest and the highest of 0, the differences and the interval ends; 0.002 apart at least, since less is not shown."""
    values = [entry[key] for entry in entries if entry for key in ("difference", "low", "high") if not missing(entry[key])]
    low, high = min([0, *values]), max([0, *values])
    more = max(0, 0.001 - (high - low) / 2)
    return low - more, high + more


def useful(panel):
    """What counts as useful, as a sentence."""
    most = " (the highest)" if panel.useful == panel.max_grade else " or more"
    return f"Useful means grade {panel.useful}{most}."


def queries(summary, k):
    """How many queries count at a cutoff, with the noun: "40 queries", or "37 of 40 queries"."""
    of, eligible = count(summary["queries"], "query", "queries"), summary["eligible"][str(k)]
    return of if eligible == summary["queries"] else f"{eligible:,} of {of}"


def over_queries(summary, k):
    """The end of a subtitle that names its cutoff where not all queries count there."""
    return f", {f'at k = {k:,} ' if summary['eligible'][str(k)] < summary['queries'] else ''}over {queries(summary, k)}"


def eligible_note(summary):
    """A footnote on the cutoffs at which not all queries count; at most four, but always with the headline's."""
    cutoffs, groups = [int(k) for k in summary["eligible"]], {}
    for k in cutoffs:
        if summary["eligible"][str(k)] < summary["queries"]:
            groups.setdefault(summary["eligible"][str(k)], []).append(k)
    main = headline(cutoffs)
    said = [f"{queries(summary, ks[0]).rpartition(' ')[0]} at {depths(ks, cutoffs)}"
            for at, ks in enumerate(groups.values()) if at < 3 or len(groups) == 4 or main in ks]
    if not said:
        return ""
    return f"Queries with a graded position: {', '.join(said)}{', and fewer than all at other k' * (len(said) < len(groups))}."


def depths(chosen, cutoffs):
    """Some of the cutoffs in words, neighbours together: "k = 1", "k = 1 and 3", "k = 1 to 5 and 50"."""
    runs = []
    for k in chosen:
        if runs and cutoffs.index(k) == cutoffs.index(runs[-1][-1]) + 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    said = [text for run in runs for text in ([f"{run[0]:,} to {run[-1]:,}"] if len(run) > 2 else map("{:,}".format, run))]
    return "k = " + " and ".join([", ".join(said[:-1])] * (len(said) > 1) + said[-1:])


def name_in_title(model):
    """A model's name as a title has room for it."""
    return label(model, 250, 18, True)


def names_in_title(pair):
    """The names of two models as a title has room for them, never the same."""
    return distinct(pair, 250, 18, True)


def part_of(source, items):
    """The items that this part of a figure shows."""
    items, (at, of) = list(items), source.part
    return items[len(items) * at // of:len(items) * (at + 1) // of]


def part_note(source):
    """The end of a subtitle that says which part this is, where there are several."""
    return f" Part {source.part[0] + 1} of {source.part[1]}." if source.part[1] > 1 else ""


def in_two_columns(figure, items, height):
    """(x, y, item) for panels of one height side by side, with the figure's y moved below them."""
    top = figure.y
    figure.y += height * ((len(items) + 1) // 2)
    for at, item in enumerate(items):
        yield figure.left + 370 * (at % 2), top + height * (at // 2), item


LEADS = {2: "leads", 1: "higher, unadjusted", 0: "no clear difference", -1: "lower, unadjusted", -2: "trails"}


def pair_title(source):
    """Who leads whom, by the headline measure."""
    if not source.pair:
        return f"{' and '.join(map(name_in_title, source.block.models))} over retrieval depth"
    base, candidate = names_in_title(source.pair)
    k = headline(source.block.cutoffs)
    before, after = (score(value_of(source.summary["models"][model], MAIN, k)) for model in source.pair)
    scores = f"{metrics.label(MAIN, k)} {before}\u00a0\u2192\u00a0{after}"
    known = claim(value_of(comparison(source.summary, source.pair), MAIN, k))
    if known == 0:
        return f"No clear difference: {candidate} against {base}, {scores}"
    if known in (None, 1, -1):
        return f"{candidate} against {base}: {scores}{f' ({LEADS[known]})' if known else ''}"
    return f"{candidate} {LEADS[known]} {base}: {scores}"


def signed(values):
    """How the ticks of an axis of changes are written."""
    decimals = tick_decimals(values)
    return lambda value: "0" if value == 0 else change(value, decimals)


def columns_of(panel):
    """The measures of a table as (metric, cutoff): all at the headline cutoff, the main one first, then selected precision."""
    return [(metric, headline(panel.cutoffs)) for metric in main_first()] + [("selected_precision", None)] * bool(panel.selected)


def main_first():
    """The metrics that have cutoffs, the main one first."""
    return sorted(metrics.METRICS, key=lambda metric: metric != MAIN)


# ---- score over depth ------------------------------------------------------------------------------------------------

def draw_depth(source):
    """Two models (or one) over retrieval depth: four panels, each with the paired difference below."""
    panel, summary = source.block, source.summary
    models = source.pair or tuple(panel.models)
    compared = comparison(summary, source.pair)
    series = dict(zip(models, SERIES[:2] if len(models) == 2 else SERIES[1:2]))
    figure = Figure(source.name, depth_title(source, compared),
                    f"Score at retrieval depth k (log scale){depth_queries(summary, panel)}. {useful(panel)}")
    figure.key([(style, model) for model, style in series.items()])
    figure.y += 8
    entries = {metric: [value_of(compared, metric, k) for k in panel.cutoffs] for metric in DEPTH_METRICS}
    strip = limits(entry for own in entries.values() for entry in own)
    for x, y, metric in in_two_columns(figure, DEPTH_METRICS, 280 if compared else 186):
        across = Scale(panel.cutoffs[0], panel.cutoffs[-1], x + 46, x + 286, log=True)
        drawn = drawn_depths(panel.cutoffs, across)
        depth_panel(figure, x, y, source, metric, series, across, drawn)
        if compared:
            own = [(k, entry) for k, entry in zip(panel.cutoffs, entries[metric]) if k in drawn]
            difference_strip(figure, x, y + 163, across, own, strip, headline(panel.cutoffs))
        figure.x_axis(across, landmarks(panel.cutoffs), y + (242 if compared else 142),
                      lambda k: f"k = {k:,}" if k == panel.cutoffs[0] else f"{k:,}")
    figure.y -= 6 if compared else 10
    figure.paragraph(" ".join(depth_notes(summary, models, entries if compared else {})))
    return figure.svg(depth_description(source, models, compared))


def drawn_depths(cutoffs, across):
    """The cutoffs that lines run through: all of fifty, else one every 3 pixels, and those that are marked or in the headline."""
    if len(cutoffs) <= 50:
        return set(cutoffs)
    drawn, free = {*landmarks(cutoffs), headline(cutoffs)}, -math.inf
    for k in cutoffs:
        if across(k) >= free:
            drawn.add(k)
            free = across(k) + 3
    return drawn


def depth_queries(summary, panel):
    """How many queries the subtitle says: those of the headline's cutoff."""
    k = headline(panel.cutoffs)
    partial = summary["eligible"][str(k)] < summary["queries"]
    return f"; {metrics.label(MAIN, k)} over {queries(summary, k)}" if partial else f", over {queries(summary, k)}"


def depth_title(source, compared):
    """ "X leads Y at every depth" where all four measures say so clearly, else the headline measure and where it is otherwise."""
    known = {claim(value_of(compared, metric, k)) for metric in DEPTH_METRICS for k in source.block.cutoffs}
    if known not in ({2}, {-2}):
        return pair_title(source) + depth_exceptions(source, compared)
    base, candidate = names_in_title(source.pair)
    return f"{candidate} {LEADS[known.pop()]} {base} at every depth"


def depth_exceptions(source, compared):
    """What a title that says which is higher must add: the depths where it is otherwise for the main measure."""
    cutoffs = source.block.cutoffs
    found = {k: claim(value_of(compared, MAIN, k)) for k in cutoffs}
    said = found[headline(cutoffs)]
    if not said:
        return ""
    others = {known: [k for k in cutoffs if found[k] == known] for known in sorted(LEADS, reverse=said > 0) if known != said}
    return "".join(f"; at {depths(where, cutoffs)} {LEADS[known]}" for known, where in others.items() if where)


def depth_notes(summary, models, entries):
    """The footnote: what the difference is, and where not all queries count."""
    if entries:
        yield f"Difference is {label(models[1], 200)} minus {label(models[0], 200)}, on one scale in all panels."
        yield interval_note((entry for own in entries.values() for entry in own), "Band: its paired 95% interval over queries.",
                            '"leads" and "trails" need')
    yield eligible_note(summary)


def depth_panel(figure, x, y, source, metric, series, across, drawn):
    """One measure: its headline values, and a line over depth for each model."""
    cutoffs, k = source.block.cutoffs, headline(source.block.cutoffs)
    down = Scale(0, 1, y + 142, y + 30)
    values = {model: [value_of(source.summary["models"][model], metric, k) for k in cutoffs] for model in series}
    figure.text(x, y + 12, TITLES[metric], "ink", 14, True)
    heading = [(f"k = {k:,}:", "muted", False)]
    for model, style in series.items():
        arrow = "\u00a0\u2192\u00a0" if len(heading) > 1 else "\u00a0"  # a renderer may drop a plain space between two runs
        role = "muted" if style.role == "base" else style.role
        heading += [(arrow, "muted", False), (score(values[model][cutoffs.index(k)]), role, role != "muted")]
    figure.runs(across.end, y + 12, heading, anchor="end")
    figure.y_axis(down, [0, 0.5, 1], across.start, across.end, baseline=0)
    for model, style in series.items():
        points = [(across(k), None if missing(value) else down(value)) for k, value in zip(cutoffs, values[model]) if k in drawn]
        draw_line(figure, points, style, [k in landmarks(cutoffs) for k in cutoffs if k in drawn])
    ends = [(style, values[model][-1]) for model, style in series.items() if not missing(values[model][-1])]
    for (style, value), place in zip(ends, push([down(value) for _, value in ends], down.end, down.start + 4)):
        figure.level(across.end + 9, place, score(value), style.role, bold=True)


def draw_line(figure, points, style, marked):
    """A series' line, with its marker on each point that is marked."""
    figure.curve(points, style)
    for point, mark in zip(points, marked):
        if mark and not missing(point[1]):
            figure.mark(*point, style, small=True)


def difference_strip(figure, x, y, across, entries, strip, main):
    """The difference over depth as a line in the band of its interval, its heading's baseline at y; one scale in all panels."""
    down = Scale(*strip, y + (79 if strip[0] == 0 else 75), y + 15)
    values = down.ticks(20)
    entry = dict(entries)[main]
    figure.runs(x, y, [("Difference", "ink", True), ("\u00a0in score (0 to 1)", "muted", False)])
    value = f"\u00a0{change(entry['difference'])}"
    figure.runs(across.end, y, [(f"k = {main:,}:", "muted", False), (value, colour_of(entry).role, True)], anchor="end")
    figure.y_axis(down, values, across.start, across.end, signed(values), baseline=0)
    figure.band([(across(k), *(None if missing(entry[end]) else down(entry[end]) for end in ("high", "low")))
                 for k, entry in entries])
    points = [(across(k), None if missing(entry["difference"]) else down(entry["difference"])) for k, entry in entries]
    draw_line(figure, points, CHANGED, [len(points) == 1])
    last = entries[-1][1]
    if len(points) == 1 and not missing(last["low"]):
        figure.whisker(points[0][0], down(last["low"]), down(last["high"]))
    if not missing(last["difference"]):
        figure.level(across.end + 9, points[-1][1], change(last["difference"]), colour_of(last).role, bold=True)


def depth_description(source, models, compared):
    """Every plotted value in words."""
    parts, marked = [], landmarks(source.block.cutoffs)
    for metric in DEPTH_METRICS:
        for model in models:
            values = (f"{score(value_of(source.summary['models'][model], metric, k))} at {k}" for k in marked)
            parts.append(f"{TITLES[metric]} of {plain(model)}: {', '.join(values)}.")
        if compared:
            values = (f"{change_text(value_of(compared, metric, k))} at {k}" for k in marked)
            parts.append(f"{TITLES[metric]}: {', '.join(values)}.")
    return " ".join(parts)


# ---- rows: data sets or models, with scores on the left and changes on the right -------------------------------------

class Row(NamedTuple):
    """A row of a dumbbell figure; what is None was not measured."""

    label: str
    base: float | None
    candidate: float | None
    entry: dict | None
    note: str = ""
    total: bool = False


def draw_datasets(source):
    """A public table of two models: rows sorted by change, then name; the average below. Of one model: bars."""
    table, summary = source.block, source.summary
    if not source.pair:
        return draw_scores_of_one(source)
    base, candidate = source.pair
    averaged = summary["average"]["datasets"]
    partly = beyond_average(table, summary, source.pair) if len(averaged) > 1 else {}
    rows, names = [], dataset_labels(summary)
    for name, block in summary["datasets"].items():
        means = block["means"]
        absent = " and ".join(called for model, called in zip(source.pair, distinct(source.pair, 100)) if model not in means)
        marked = bool(partly and name in averaged)
        rows.append(Row(names[name] + " *" * marked, means.get(base), means.get(candidate),
                        comparison(block, source.pair), f"{absent} {UNMEASURED}" if absent else ""))
    rows.sort(key=lambda row: (row.entry is None, -row.entry["difference"] if row.entry else 0, row.label))
    measured = [row.entry for row in rows]
    if len(averaged) > 1:
        rows.append(average_row(summary["average"], source.pair, bool(partly)))
    figure = Figure(source.name, datasets_title(source, rows), datasets_subtitle(table) + part_note(source))
    figure.key(zip(SERIES, source.pair))
    drawn = part_of(source, rows)
    draw_rows(figure, drawn, label(table.measure, 200), rows)
    figure.paragraph("Change is {1} minus {0}. ".format(*distinct(source.pair, 200)) + interval_note(
        measured, f"Lines are paired 95% intervals over queries{' (the average has none)' if drawn[-1].total else ''}: "
                  "grey where they include 0, an orange diamond where they lie below.", '"clearly" needs') + average_note(partly))
    return figure.svg(rows_description(drawn, base, candidate) + average_note(partly))


def average_row(average, pair, marked):
    """The row of the average, which has no interval."""
    before, after = (average["means"][model] for model in pair)
    name = f"Average ({count(len(average['datasets']), 'data set')}){' *' * marked}"
    return Row(name, before, after, {"difference": after - before, "low": None, "high": None}, total=True)


def beyond_average(table, summary, pair):
    """{data set: models not measured on it} of those that both models of the pair were measured on, but that are in no average."""
    return {name: [model for model in table.models if model not in block["means"]] for name, block in summary["datasets"].items()
            if name not in summary["average"]["datasets"] and all(model in block["means"] for model in pair)}


def average_note(partly):
    """Why an average leaves out data sets that the figure shows."""
    if not partly:
        return ""
    why = [f"{' and '.join(label(model, 100) for model in models[:2])}{' and others' * (len(models) > 2)} "
           f"{'is' if len(models) == 1 else 'are'} not on {label(name, 100)}" for name, models in partly.items()]
    return (" * In the average, which is over the data sets on which every model of the record was measured: "
            f"{'; '.join(why[:3])}{'; and so on' * (len(why) > 3)}.")


def dataset_labels(summary):
    """{data set: its name with its number of queries}, as rows have room for it."""
    blocks = summary["datasets"]
    return {name: f"{called} ({blocks[name]['queries']:,})" for name, called in zip(blocks, distinct(blocks, 140, 13))}


def datasets_subtitle(table):
    """What the numbers of a public table are."""
    return f"Mean {label(table.measure, 200)} over the queries of each data set (their number in brackets)."


def draw_scores_of_one(source):
    """A public table of one model."""
    table, summary = source.block, source.summary
    model = table.models[0]
    names = dataset_labels(summary)
    rows = [(names[name], block["means"].get(model)) for name, block in summary["datasets"].items()]
    rows.sort(key=lambda row: (missing(row[1]), -(row[1] or 0), row[0]))
    figure = Figure(source.name, f"{name_in_title(model)} on {count(len(rows), 'data set')}",
                    datasets_subtitle(table) + part_note(source))
    figure.y += 8
    rows = part_of(source, rows)
    figure.bars(rows)
    return figure.svg(" ".join(f"{name}: {score(value)}." for name, value in rows))


def datasets_title(source, rows):
    """On how many data sets the candidate is clearly ahead or behind, and on how many only by unadjusted intervals."""
    base, candidate = names_in_title(source.pair)
    known = [claim(row.entry) for row in rows if row.entry and not row.total]
    ahead, behind, of = known.count(2), known.count(-2), count(len(known), "data set")
    weak = " and ".join(f"{word} on {known.count(value)}" for value, word in ((1, "higher"), (-1, "lower")) if value in known)
    weak += " (unadjusted)" * bool(weak)
    if set(known) <= {None}:
        return f"{candidate} against {base} on {of}"
    if ahead or behind:
        both = f", clearly behind on {behind}" if ahead and behind else ""
        title = f"{candidate} is clearly {'ahead of' if ahead else 'behind'} {base} on {ahead or behind} of {of}{both}"
        return f"{title}, {weak}" if weak else title
    return f"{candidate} against {base} on {of}: {weak}" if weak else f"{candidate} against {base}: no clear difference on {of}"


def draw_models(source):
    """A panel of many models: each with its score, and its change against the model it is compared with."""
    panel, summary, k = source.block, source.summary, headline(source.block.cutoffs)
    name = metrics.label(MAIN, k)
    values = {model: value_of(summary["models"][model], MAIN, k) for model in panel.models}
    based = {}
    for base, candidate in panel.comparisons:
        based.setdefault(candidate, base)
    changes = {pair: value_of(comparison(summary, pair), MAIN, k) for pair in ((base, model) for model, base in based.items())}
    figure = Figure(source.name, models_title(values, name, changes) or f"{name} of {len(values)} models",
                    f"{name} over {queries(summary, k)}. {useful(panel)}{part_note(source)}")
    if not based:
        figure.y += 8
        rows = part_of(source, zip(distinct(values, 200, 13), values.values()))
        figure.bars(rows)
        figure.paragraph("No model is compared with another, so that no interval says how sure their order is.")
        return figure.svg(" ".join(f"{model}: {score(value)}." for model, value in rows))
    one_base = len(set(based.values())) == 1
    alone, left, right = (dict(zip(values, distinct(values, width, 13))) for width in (200, 110, 70))
    rows = []
    for model, value in values.items():
        entry = changes.get((based.get(model), model))
        named = f"{left[model]} vs {right[based[model]]}" if not one_base and model in based else alone[model]
        rows.append(Row(named, *((None, value) if model in based else (value, None)), entry))
    rest = "" if len(values) == len(based) + 1 else ", or not compared with it"
    figure.key([(SERIES[0], label(panel.comparisons[0][0], 300) + rest), (SERIES[1], "compared with it")] if one_base else
               [(SERIES[0], "compared with none"), (SERIES[1], "compared")])
    drawn = part_of(source, rows)
    draw_rows(figure, drawn, name, rows)
    against = f"against {label(panel.comparisons[0][0], 250)}" if one_base else "against the model after vs"
    figure.paragraph(f"Change is {against}. " + interval_note(
        changes.values(), "Lines are paired 95% intervals over queries: grey where they include 0, an orange diamond where they "
                          "lie below.", "a clear difference needs"))
    return figure.svg(rows_description(drawn, None, None))


def models_title(values, name, changes=None):
    """Which model has the highest value, and from which ones its change is not clear; None where there is no single one.

    changes is {(base, candidate): entry}; without them the title is about the values alone.
    """
    known = [value for value in values.values() if not missing(value)]
    if not known or known.count(max(known)) > 1:
        return None
    best = next(model for model, value in values.items() if value == max(known))
    title = f"{name_in_title(best)} has the highest {name} of {len(values)} models"
    others = {base if model == best else model: claim(entry) for (base, model), entry in (changes or {}).items()
              if best in (base, model)}
    unclear = [model for model, known in others.items() if known not in (2, -2)]
    if changes and not others:
        return f"{title}, but is not compared"
    if not unclear:
        return title
    if set(others.values()) == {None}:
        return f"{title}, without an interval"
    whom = name_in_title(unclear[0]) if len(unclear) == 1 else f"{len(unclear)} of them"
    return f"{title}, no clear difference to {whom}"


def draw_rows(figure, rows, measure, every):
    """The rows: names, scores as ring and dot with their values, and changes with their intervals; on the scales of every row."""
    names = figure.left + min(215, max(text_width(row.label, 13, row.total) for row in rows))
    values = [value for row in every for value in (row.base, row.candidate) if not missing(value)]
    low, high = min(values, default=0), max(values, default=1)
    if high - low < 0.02:
        low, high = max(0, low - 0.02), min(1, high + 0.02)
    left, left_values = round_axis(low, high, names + 66, 428)
    right, right_values = round_axis(*limits(row.entry for row in every), 500, 664)
    figure.y += 6
    figure.text(left.start, figure.y + 10, measure, "ink", bold=True)
    figure.text(right.start, figure.y + 10, "Change", "ink", bold=True)
    figure.y += 20
    top = figure.y
    bottom = top + 28 * len(rows) + 6 * any(row.total for row in rows)
    figure.x_axis(left, left_values, bottom, top=top)
    figure.x_axis(right, right_values, bottom, signed(right_values), top)
    figure.line(right(0), top, right(0), bottom, "axis")
    for row in rows:
        if row.total:
            figure.line(figure.left, figure.y + 3, figure.right, figure.y + 3, "axis")
            figure.y += 6
        draw_row(figure, row, figure.y + 14, left, right)
        figure.y += 28
    figure.y = bottom + 30


def draw_row(figure, row, y, left, right):
    """One row, its middle at y."""
    figure.level(figure.left, y, row.label, "ink", 13, row.total)
    marks = sorted((value, style) for value, style in zip((row.base, row.candidate), SERIES) if not missing(value))
    if len(marks) == 2:
        figure.line(left(marks[0][0]), y, left(marks[1][0]), y, "base", 2)
    for value, style in sorted(marks, key=lambda mark: mark[1] is SERIES[1]):
        figure.mark(left(value), y, style)
        before = len(marks) == 2 and (value, style) == marks[0]
        figure.level(left(value) + (-10 if before else 10), y, score(value), style.role,
                    bold=style is SERIES[1], anchor="end" if before else "start")
    if row.entry and not missing(row.entry["difference"]):
        style = colour_of(row.entry)
        if not missing(row.entry["low"]):
            figure.interval(right(row.entry["low"]), right(row.entry["high"]), y, style.role)
        figure.mark(right(row.entry["difference"]), y, style)
        figure.level(figure.right, y, change(row.entry["difference"]), style.role, bold=True, anchor="end")
    elif row.note:
        figure.bar(figure.right + 4, y - 8, figure.right - 6 - text_width(row.note), y + 8, "card")
        figure.level(figure.right, y, row.note, anchor="end")


def rows_description(rows, base, candidate):
    """Every row in words."""
    parts = []
    for row in rows:
        said = [f"{plain(model)} {score(value)}" if model else score(value)
                for model, value in ((base, row.base), (candidate, row.candidate)) if not missing(value)]
        said += [change_text(row.entry)] * bool(row.entry) + [row.note] * bool(row.note)
        parts.append(f"{row.label}: {', '.join(said)}.")
    return " ".join(parts)


# ---- score over embedding width --------------------------------------------------------------------------------------

class WidthPanel(NamedTuple):
    """Scores in the order of the widths, and a band: the full width's score plus the interval of the difference from it."""

    name: str
    values: list
    band: list  # (low, high) a width, (None, None) where it was not compared with the full one


def draw_widths(source):
    """One model at several embedding widths: a panel a measure (or a data set), with a line at 99% of the full width."""
    order = sorted(source.widths, key=source.widths.get)
    widths = [source.widths[model] for model in order]
    is_table = isinstance(source.block, metrics.Table)
    panels = table_width_panels(source, order) if is_table else measure_width_panels(source, order)
    top = max(0.02, *(high for _, high in map(width_reach, panels)))
    if is_table:
        measure = label(source.block.measure, 200, 18, True)
        averaged = len(source.summary["average"]["datasets"]) > 1
        title = widths_title(f"average {measure}" if averaged else f"{measure} on {panels[0].name}", widths, panels[0].values)
        subtitle = f"Mean {label(source.block.measure, 200)} at embedding width (log scale)."
    else:
        title = widths_title(panels[0].name, widths, panels[0].values)
        subtitle = (f"Score at embedding width (log scale){over_queries(source.summary, headline(source.block.cutoffs))}. "
                    f"{useful(source.block)}")
    figure = Figure(source.name, title, subtitle + part_note(source))
    figure.y += 10
    notes = " ".join(width_notes(panels, widths, is_table))
    panels = part_of(source, panels)
    for x, y, panel in in_two_columns(figure, panels, 206):
        width_panel(figure, x, y, panel, widths, top)
    figure.y -= 4
    figure.paragraph(notes)
    return figure.svg(" ".join(f"{panel.name}: " + ", ".join(
        f"{score(value)} at {width:,}" for width, value in zip(widths, panel.values)) + "." for panel in panels))


def width_notes(panels, widths, is_table):
    """The footnote: what the line and the band are, and where there is no band."""
    yield f"Dotted: {KEPT:.0%} of the score at full width ({widths[-1]:,})."
    if any(not missing(low) for panel in panels for low, _ in panel.band[:-1]):
        average = " (an average over data sets has none)" if is_table and missing(panels[0].band[-1][0]) else ""
        yield f"Band: paired 95% interval of the difference to full width{average}."
    else:
        yield "There is no band: no width is compared with the full one over two or more queries."
    yield "All panels have one vertical scale from 0."


def measure_width_panels(source, order):
    """A panel's measures, each a WidthPanel."""
    panels, k, models = [], headline(source.block.cutoffs), source.summary["models"]
    for metric in main_first():
        values = [value_of(models[model], metric, k) for model in order]
        band = width_band(source.summary, order, values[-1], lambda found: value_of(found, metric, k))
        panels.append(WidthPanel(metrics.label(metric, k), values, band))
    return panels


def table_width_panels(source, order):
    """The average over the data sets that all widths share, and each data set, as a WidthPanel."""
    average, panels = source.summary["average"], []
    if len(average["datasets"]) > 1:
        values = [average["means"][model] for model in order]
        panels.append(WidthPanel(f"Average of {len(average['datasets'])} sets", values, [(None, None)] * len(order)))
    blocks = source.summary["datasets"]
    for name, block in zip(distinct(blocks, 90, 14, True), blocks.values()):
        values = [block["means"].get(model) for model in order]
        band = width_band(block, order, values[-1], lambda found: found)
        panels.append(WidthPanel(f"{name} ({block['queries']:,})", values, band))
    return panels


def width_band(block, order, full, read):
    """(low, high) a width: the full score plus the interval of the difference from it, whichever of the two is the base."""
    band = []
    for model in order:
        ahead, behind = (read(comparison(block, pair)) for pair in ((order[-1], model), (model, order[-1])))
        if model == order[-1]:
            band.append((full, full))
        elif missing(full) or missing((ahead or behind or {}).get("low")):
            band.append((None, None))
        else:
            band.append((full + ahead["low"], full + ahead["high"]) if ahead else (full - behind["high"], full - behind["low"]))
    return band


def width_reach(panel):
    """The lowest and the highest of a panel's values and its band."""
    known = [value for value in [*panel.values, *(end for ends in panel.band for end in ends)] if not missing(value)]
    return min(known, default=0), max(known, default=0)


def smallest_kept(widths, values):
    """The smallest width from which every one keeps 99% of the full width's score, or None without that score."""
    kept = None
    for width, value in zip(reversed(widths), reversed(values)):
        if missing(value) or missing(values[-1]) or value < KEPT * values[-1]:
            break
        kept = width
    return kept


def widths_title(name, widths, values):
    """How much of the full width's score is kept by the narrowest width that keeps 99%, or else by the widest narrower one."""
    kept, full = smallest_kept(widths, values), values[-1]
    at = widths.index(kept) if kept and kept < widths[-1] else len(widths) - 2
    if not kept or not full or missing(values[at]):
        return f"{name} at {len(widths)} embedding widths"
    share = "all" if values[at] >= full else f"{int(1000 * values[at] / full) / 10:g}%"
    return f"{widths[at]:,} of {widths[-1]:,} dimensions keep {share} of {name}"


def width_panel(figure, x, y, panel, widths, top):
    """One line over the widths, its values below the axis under its points."""
    values = panel.values
    across = Scale(widths[0], widths[-1], x + 56, x + 316, log=True)
    down, ticks = round_axis(0, top, y + 144, y + 30, 34)
    figure.text(x, y + 12, panel.name, "ink", 14, True)
    figure.y_axis(down, ticks, across.start - 8, across.end + 8)
    figure.line(across.start - 8, down(0), across.end + 8, down(0), "axis")
    figure.x_axis(across, widths, down(0), "{:,}".format)
    if width_reach(panel) == (0, 0):
        said = "no value" if all(map(missing, values)) else "all 0"
        figure.text((across.start + across.end) / 2, y + 92, said, anchor="middle")
    kept = smallest_kept(widths, values)
    if kept is not None:
        line = down(KEPT * values[-1])
        figure.line(across.start - 8, line, across.end + 8, line, "base", 1.6, "1.5 3")
        figure.text(x + 324, y + 12, f"{KEPT:.0%} kept {'down to' if kept < widths[-1] else 'only at'} {kept:,}", anchor="end")
    places = [across(width) for width in widths]
    figure.band([(at, *(None if missing(end) else down(end) for end in reversed(ends))) for at, ends in zip(places, panel.band)])
    points = [(at, None if missing(value) else down(value)) for at, value in zip(places, values)]
    draw_line(figure, points, CHANGED, [True] * len(points))
    labels = [score(value) for value in values]
    for at in spaced(places, [text_width(text, 12, True) for text in labels], 3):
        figure.text(places[at], down(0) + 33, labels[at], "candidate", anchor="middle", bold=True)


# ---- a chain of steps ------------------------------------------------------------------------------------------------

def draw_steps(source):
    """Models in a chain, each one step from the one before: scores in columns, then what each step and all together change."""
    panel, summary, k = source.block, source.summary, headline(source.block.cutoffs)
    models = list(panel.models)
    steps = list(zip(models, models[1:]))
    found = [comparison(summary, pair) for pair in (*steps, (models[0], models[-1]))]
    rows = [StepsRow(metrics.label(*name), [value_of(summary["models"][model], *name) for model in models],
                     [value_of(block, *name) for block in found]) for name in columns_of(panel)]
    figure = Figure(source.name, steps_title(steps, rows[0].entries, k),
                    f"One step at a time{over_queries(summary, k)}. {useful(panel)}")
    numbers = {3: 66, 4: 56, 5: 48}[len(models)]
    names = 112 + numbers * len(models) + 12  # where the names of the steps begin
    across, values = round_axis(*limits(entry for row in rows for entry in row.entries), names + 188, figure.right - 14)
    figure.y += 10
    figure.headers([(112 + numbers * (at + 1), model) for at, model in enumerate(models)], numbers - 4, "end")
    figure.text(names, figure.y - 8, "Step", "ink", bold=True)
    figure.text(names + 176, figure.y - 8, "Change", "ink", bold=True, anchor="end")
    height = 19 * len(found) + 14
    bottom = figure.y + height * len(rows)
    figure.x_axis(across, values, bottom, signed(values), figure.y)
    for row in rows:
        figure.line(figure.left, figure.y, figure.right, figure.y)
        steps_row(figure, row, figure.y + height / 2, across, numbers, names, distinct(models, 116)[1:])
        figure.y += height
    figure.line(across(0), bottom - height * len(rows), across(0), bottom, "axis")
    figure.y = bottom + 30
    figure.paragraph(f"The steps lead from {' to '.join(label(model, 230) for model in models)}; the total is their sum before "
                     "rounding. Each bar starts at 0. " + interval_note(
                         (entry for row in rows for entry in row.entries), "Lines are paired 95% intervals over queries: blue "
                         "above 0, orange below 0, grey where they include 0.", '"adds" and "loses" need'))
    return figure.svg(" ".join(row.words(models) for row in rows))


class StepsRow(NamedTuple):
    """One measure: the models' values, and the entries of the steps and, last, of the whole way."""

    name: str
    values: list
    entries: list

    def words(self, models):
        """The row as a sentence."""
        values = ", ".join(f"{plain(model)} {score(value)}" for model, value in zip(models, self.values))
        steps = ", ".join(f"{plain(model)}: {change_text(entry)}" for model, entry in zip(models[1:], self.entries))
        return f"{self.name}: {values}; {steps}; in total: {change_text(self.entries[-1])}."


def steps_title(steps, entries, k):
    """What each step does to the main measure."""
    parts, name = [], f" {metrics.label(MAIN, k)}"
    for (_, model), entry in zip(steps, entries):
        known, model = claim(entry), label(model, 180, 18, True)
        if known:
            by = f"{score(abs(entry['difference']))}{name}"
            parts.append(f"{model} {'adds' if known > 0 else 'loses'} {by}" if known in (2, -2) else
                         f"{model} is {by} {'higher' if known > 0 else 'lower'} (unadjusted)")
            name = ""
        elif known == 0:
            parts.append(f"{model} makes no clear difference")
        else:
            parts.append(f"{model} {change(entry['difference'])}{name}")
            name = ""
    return ", ".join(parts)


def steps_row(figure, row, y, across, numbers, names, steps):
    """One measure, its middle at y: the values, then a bar from 0 for each step and one for the total."""
    figure.level(figure.left, y, row.name, "ink", 13)
    for at, value in enumerate(row.values):
        figure.level(112 + numbers * (at + 1), y, score(value), "ink", anchor="end")
    middle = y - 19 * len(steps) / 2
    for name, entry in zip([*steps, "total"], row.entries):
        total, role = entry is row.entries[-1], colour_of(entry).role
        figure.level(names, middle, name, "ink" if total else "muted", bold=total)
        figure.level(names + 176, middle, change(entry["difference"]), role, bold=True, anchor="end")
        change_bar(figure, across, entry, middle, role)
        middle += 19


def change_bar(figure, across, entry, y, role):
    """A bar from 0 to the difference, and its interval as a line."""
    if not missing(entry["difference"]):
        figure.bar(across(0), y - 7, across(entry["difference"]), y + 7, role, "0.35")
    if not missing(entry["low"]):
        figure.interval(across(entry["low"]), across(entry["high"]), y, role)


# ---- parity ----------------------------------------------------------------------------------------------------------

def draw_parity(source):
    """Two models that should be the same: every difference against the tolerance."""
    panel, summary = source.block, source.summary
    base, candidate = source.pair
    compared = comparison(summary, source.pair)
    shown = {k: f"k = {k}" if k < 1000 else f"{k:,}" for k in landmarks(panel.cutoffs)}
    groups = {TITLES[metric]: [(name, value_of(compared, metric, k)) for k, name in shown.items()] for metric in metrics.METRICS}
    entries = [value_of(compared, metric, k) for metric in metrics.METRICS for k in panel.cutoffs]
    if panel.selected:
        entries.append(value_of(compared, "selected_precision", None))
        groups[TITLES["selected_precision"]] = [("all", entries[-1])]
    tolerance = panel.tolerance
    decimals = min(12, max(3, 1 - int(f"{tolerance:e}".split("e")[1])))
    axis = parity_axis(max(2 * tolerance, *map(abs, limits(entries))), max(tolerance, SMALLEST))
    figure = Figure(source.name, parity_title(source, entries),
                    f"{label(candidate, 200, 13)} minus {label(base, 200, 13)} at cutoff k"
                    f"{over_queries(summary, headline(panel.cutoffs))}.{parity_intervals(entries, tolerance)}")
    figure.y += 10
    for x, y, (name, group) in in_two_columns(figure, list(groups.items()), 18 * max(map(len, groups.values())) + 62):
        parity_panel(figure, x, y, name, group, axis, tolerance, decimals)
    figure.y -= 8
    figure.paragraph(" ".join(parity_notes(panel, summary, entries, len(shown))))
    return figure.svg(" ".join(f"{name}: " + ", ".join(
        f"{change_text(entry, decimals)} at {where}" for where, entry in group) + "." for name, group in groups.items()))


def exactly(value):
    """A number with as many decimals as it needs: 0.00004, not 4e-05."""
    return score(value, tick_decimals([value])) if value >= SMALLEST else f"{value:g}"


def parity_intervals(entries, tolerance):
    """How many of the intervals lie wholly within the tolerance, as a sentence; nothing where there is none."""
    inside, of = (sum(map(test, entries)) for test in (lambda entry: entry.get("within_tolerance") is True,
                                                       lambda entry: not missing(entry["low"])))
    if not of:
        return ""
    return f" {inside} of {count(of, 'interval')} {'lies' if inside == 1 else 'lie'} wholly within \u00b1{exactly(tolerance)}."


def parity_notes(panel, summary, entries, shown):
    """The footnote: what is shaded, what the lines are, what is not drawn, and where not all queries count."""
    yield f"Shaded: the tolerance, \u00b1{exactly(panel.tolerance)}."
    yield interval_note(entries, "Lines are paired 95% intervals over queries, grey where they reach beyond it.")
    yield "An orange diamond marks a difference over it."
    if shown < len(panel.cutoffs):
        yield f"Drawn: {shown} of {len(panel.cutoffs)} cutoffs."
    yield eligible_note(summary)


def parity_axis(half, tolerance):
    """The ticks of an axis that ends at or beyond \u00b1half, in round multiples of the tolerance: at most 5 on each side of 0.

    parity_axis(0.028, 0.01) is [-0.03, -0.02, -0.01, 0, 0.01, 0.02, 0.03].
    """
    multiples = (factor * 10 ** power for power in range(300) for factor in (1, 2, 5))
    step = tolerance * next(multiple for multiple in multiples if half <= 5 * multiple * tolerance)
    last = math.ceil(half / step - 1e-9)
    return [float(f"{at * step:.12g}") for at in range(-last, last + 1)]


def is_over(entry, tolerance):
    """Whether a difference is larger than the tolerance, in either direction."""
    return not missing(entry["difference"]) and abs(entry["difference"]) > tolerance


def parity_title(source, entries):
    """How many of the differences stay within the tolerance."""
    base, candidate = names_in_title(source.pair)
    tolerance = source.block.tolerance
    known = [entry for entry in entries if not missing(entry["difference"])]
    if not known:
        return f"{candidate} against {base}: nothing could be scored"
    of = count(len(known), "score")
    if over := sum(is_over(entry, tolerance) for entry in known):
        return f"{candidate}: {over} of {of} more than {exactly(tolerance)} off {base}"
    if all(entry["low"] == entry["high"] == entry["difference"] == 0 for entry in known):
        return f"{candidate}: all {of} exactly as {base}"
    return f"{candidate}: all {of} within \u00b1{exactly(tolerance)} of {base}"


def parity_panel(figure, x, y, name, group, axis, tolerance, decimals):
    """One measure: a row a cutoff."""
    across = Scale(axis[0], axis[-1], x + 52, x + 252)
    top, bottom = y + 22, y + 22 + 18 * len(group)
    figure.text(x, y + 12, name, "ink", 14, True)
    figure.bar(across(-tolerance), top, across(tolerance), bottom, "base", "0.16")
    def text(value):
        return signed([value])(value)

    named = clear_labels(across, [0, -tolerance, tolerance, axis[0], axis[-1], *axis], text)
    for value in sorted({*axis, *named}):
        figure.line(across(value), top, across(value), bottom + 4)
    figure.x_axis(across, named, bottom, text)
    figure.line(across(0), top, across(0), bottom, "axis")
    for at, (where, entry) in enumerate(group):
        middle = top + 18 * at + 9
        figure.level(x + 42, middle, where, anchor="end")
        over = is_over(entry, tolerance)
        style = WORSENED if over else CHANGED if entry.get("within_tolerance") else UNCHANGED
        if not missing(entry["low"]):
            figure.interval(across(entry["low"]), across(entry["high"]), middle, style.role)
        if not missing(entry["difference"]):
            figure.mark(across(entry["difference"]), middle, style, small=True)
        figure.level(x + 314, middle, change(entry["difference"], decimals), style.role, bold=over, anchor="end")
        if over:
            figure.level(x + 319, middle, "over", style.role, bold=True)


def clear_labels(across, values, text):
    """The values, in order of size, whose labels can stand on an axis without touching one of a value before it in the list."""
    named = []
    for value in values:
        width = text_width(text(value))
        if all(abs(across(value) - across(other)) >= (width + text_width(text(other))) / 2 + 6 for other in named):
            named.append(value)
    return sorted(named)


# ---- before and new --------------------------------------------------------------------------------------------------

VERDICTS = {**LEADS, 2: "better", -2: "worse", None: "too few to tell"}


def draw_table(source):
    """A model against its predecessor: measure, before, new, change, bar, verdict."""
    panel, summary = source.block, source.summary
    base, candidate = source.pair
    compared = comparison(summary, source.pair)
    blocks = [*(summary["models"][model] for model in source.pair), compared]
    rows = [(metrics.label(*name), *(value_of(block, *name) for block in blocks)) for name in columns_of(panel)]
    figure = Figure(source.name, pair_title(source),
                    f"{label(base, 250, 13)} before, {label(candidate, 250, 13)} new"
                    f"{over_queries(summary, headline(panel.cutoffs))}. {useful(panel)}")
    across, values = round_axis(*limits(entry for *_, entry in rows), 402, 582)
    figure.y += 8
    for x, text, anchor in ((20, "Measure", "start"), (226, "Before", "end"), (296, "New", "end"), (374, "Change", "end"),
                            (610, "Verdict", "start")):
        figure.text(x, figure.y + 12, text, "ink", bold=True, anchor=anchor)
    figure.y += 22
    bottom = figure.y + 30 * len(rows)
    figure.x_axis(across, values, bottom, signed(values), figure.y)
    figure.line(across(0), figure.y, across(0), bottom, "axis")
    for name, before, after, entry in rows:
        figure.line(figure.left, figure.y, figure.right, figure.y)
        middle, role = figure.y + 15, colour_of(entry).role
        figure.level(20, middle, name, "ink", 13)
        figure.level(226, middle, score(before), "muted", 13, anchor="end")
        figure.level(296, middle, score(after), "ink", 13, True, anchor="end")
        figure.level(374, middle, change(entry["difference"]), role, 13, True, anchor="end")
        change_bar(figure, across, entry, middle, role)
        figure.level(610, middle, table_verdict(entry), role, bold=claim(entry) in (2, -2))
        figure.y += 30
    figure.y = bottom + 30
    figure.paragraph(interval_note((entry for *_, entry in rows), "Lines are paired 95% intervals over queries.",
                                   '"leads", "trails", "better" and "worse" need') + selected_note(panel, summary))
    return figure.svg(" ".join(
        f"{name}: {score(before)} before, {score(after)} new, {change_text(entry)}, {table_verdict(entry)}."
        for name, before, after, entry in rows))


def selected_note(panel, summary):
    """How many queries count for selected precision, where that is another number than at the headline's cutoff."""
    if not panel.selected:
        return ""
    eligible = sum(metrics.retained_grades(panel, panel.selected)[1])
    if eligible == summary["eligible"][str(headline(panel.cutoffs))]:
        return ""
    return f" Selected precision is over {eligible:,} of {count(summary['queries'], 'query', 'queries')}."


def table_verdict(entry):
    """A change in words."""
    if not missing(entry["low"]) and entry["low"] == entry["high"] == 0:
        return "the same"
    return VERDICTS[claim(entry)]


# ---- shaded tables ---------------------------------------------------------------------------------------------------

class Cell(NamedTuple):
    """A cell of a shaded table: a score, its change from another model, and whether it is the best of its kind."""

    value: float | None
    entry: dict | None = None
    best: bool = False


def draw_types(source):
    """Query types by measure, with the change of a compared model; by model where there are more than two."""
    panel, summary, k = source.block, source.summary, headline(source.block.cutoffs)
    models = list(panel.models)
    shown = source.pair[1] if source.pair else models[0]
    kinds = sorted(summary["types"], key=lambda kind: (-(value_of(summary["types"][kind]["models"][shown], MAIN, k) or 0), kind))
    blocks = [summary["types"][kind] for kind in kinds]
    names = [f"{kind} ({queries(block, k).rpartition(' ')[0]})" for kind, block in zip(distinct(kinds, 120, 13), blocks)]
    note = "The stronger the blue, the higher the score."
    if len(models) > bool(source.pair) + 1:
        headers, what = models, metrics.label(MAIN, k)
        cells = [best_cells([value_of(block["models"][model], MAIN, k) for model in models]) for block in blocks]
        title, note = best_title(models, cells, what), f"Bold: the highest score of each type, however small its lead. {note}"
    else:
        columns = columns_of(panel)
        headers, what = [metrics.label(*column) for column in columns], "Scores"
        cells = [[Cell(value_of(block["models"][shown], *column), value_of(comparison(block, source.pair), *column))
                  for column in columns] for block in blocks]
        title = types_title(shown, kinds, [row[0].value for row in cells], k)
        if source.pair:
            note = f"Score of {label(shown, 200)}, below it the change from {label(source.pair[0], 200)}" + (
                f", bold where its Holm-adjusted p is below {ADJUSTED}."
                if have_intervals(cell.entry for row in cells for cell in row) else f". {interval_note((), '')}")
    partial = any(block["eligible"][str(k)] < block["queries"] for block in blocks)
    brackets = f"queries that count at k = {k:,}" if partial else "number of queries"
    figure = Figure(source.name, title, f"{what} by query type (in brackets: {brackets}). {useful(panel)}{part_note(source)}")
    rows = part_of(source, zip(names, cells))
    draw_grid(figure, rows, headers)
    figure.paragraph(note)
    return figure.svg(grid_description(rows, headers))


def best_cells(values):
    """Cells in which the highest value is marked."""
    best = max((value for value in values if not missing(value)), default=None)
    return [Cell(value, best=not missing(value) and value == best) for value in values]


def best_title(models, cells, name):
    """Which model alone is best on the most query types, of those that have values."""
    scored = [row for row in cells if not all(missing(cell.value) for cell in row)]
    alone = [row for row in scored if sum(cell.best for cell in row) == 1]
    wins = [sum(row[at].best for row in alone) for at in range(len(models))]
    if wins.count(max(wins)) > 1:
        return f"{name} by query type and model"
    of = count(len(scored), "query type") + " that could be scored" * (len(scored) < len(cells))
    return f"{name_in_title(models[wins.index(max(wins))])} is alone best in {name} on {max(wins)} of {of}"


def types_title(model, kinds, values, k):
    """Where the model is strongest and where it is weakest."""
    model = name_in_title(model)
    if len(kinds) == 1 or any(map(missing, values)):
        return f"{model}: {metrics.label(MAIN, k)} by query type"
    return (f"{model}: {metrics.label(MAIN, k)} from {score(values[-1])} ({label(kinds[-1], 150, 18, True)}) "
            f"to {score(values[0])} ({label(kinds[0], 150, 18, True)})")


def draw_scores(source):
    """A public table of more than two models: models by data sets."""
    table, summary = source.block, source.summary
    average = summary["average"]
    shared, of = len(average["datasets"]), len(table.datasets)
    measure = label(table.measure, 200, 18, True)
    title = f"{measure} of {count(len(table.models), 'model')} on {count(of, 'data set')}"
    blocks = summary["datasets"]
    headers = [f"{name} ({block['queries']:,})" for name, block in zip(distinct(blocks, 80, 12, True), blocks.values())]
    note = "The best of each column is bold. The stronger the blue, the higher the score."
    means = [block["means"] for block in summary["datasets"].values()]
    if shared > 1:
        means.append(average["means"])
        headers.append(f"Average ({shared} sets)")
        title = models_title(average["means"], f"average {measure}") or title
    if 1 < shared < of:
        note += f" The average is over the {shared} data sets measured with every model."
    headers = part_of(source, headers)
    cells = [best_cells([scores.get(model) for model in table.models]) for scores in part_of(source, means)]
    rows = [(model, list(row)) for model, row in zip(distinct(table.models, 190, 13), zip(*cells))]
    figure = Figure(source.name, title, datasets_subtitle(table) + part_note(source))
    draw_grid(figure, rows, headers)
    figure.paragraph(note)
    return figure.svg(grid_description(rows, headers))


def draw_grid(figure, rows, headers):
    """A table of shaded cells: rows are [(label, cells), …]; columns that don't fit go below."""
    figure.y += 10
    left = figure.left + max(text_width(name, 13) for name, _ in rows) + 12
    width = min(104, max(66, *(width_in_two_lines(name) + 6.1 for name in headers)))
    fit = max(1, int((figure.right - left) // width))
    if len(headers) <= fit:
        width = min(124, (figure.right - left) / len(headers))
    height = 38 if any(cell.entry for _, cells in rows for cell in cells) else 28
    for first in range(0, len(headers), fit):
        figure.headers([(left + width * (at + 0.5) - 1, name) for at, name in enumerate(headers[first:first + fit])], width - 6)
        for name, cells in rows:
            figure.level(figure.left, figure.y + height / 2 - 1, name, "ink", 13)
            for at, cell in enumerate(cells[first:first + fit]):
                grid_cell(figure, left + width * at, width, height, cell)
            figure.y += height
        figure.y += 14


def width_in_two_lines(name):
    """The room that a column head needs where it may be broken once, at a space."""
    words = name.split(" ")
    return min(max(text_width(" ".join(part), 12, True) for part in (words[:at], words[at:])) for at in range(len(words)))


def grid_cell(figure, x, width, height, cell):
    """One value, with its change below where there is one; a missing value says so."""
    if missing(cell.value):
        text = UNMEASURED if text_width(UNMEASURED) < width else score(None)
        figure.level(x + width / 2 - 1, figure.y + height / 2 - 1, text, anchor="middle")
        return
    lines = [(score(cell.value), 13, cell.best)]
    if cell.entry:
        lines.append((change(cell.entry["difference"]), 12, claim(cell.entry) in (2, -2)))
    # No stronger than ink can be read on, so that neighbouring cells do not differ in the colour of their text.
    figure.cell(x, figure.y, width, height, lines, 0.04 + 0.56 * cell.value)


def grid_description(rows, headers):
    """Every cell in words."""
    said = []
    for name, cells in rows:
        values = (f"{plain(header)} {UNMEASURED if missing(cell.value) else score(cell.value)}"
                  + (f", {change_text(cell.entry)}" if cell.entry else "") for header, cell in zip(headers, cells))
        said.append(f"{name}: {'; '.join(values)}.")
    return " ".join(said)


# ---- the command line ------------------------------------------------------------------------------------------------

def planned(directory):
    """{name: (Source, draw)} for every record in a directory. Raises RecordError with the problems of all of them."""
    records, notes = metrics.load_records(directory)
    for note in [*notes, *(warning for _, record in records for warning in record.warnings)]:
        print(f"note: {note}", file=sys.stderr)
    figures, taken, problems = {}, {}, []
    for path, record in records:
        for source, draw in plan(record):
            other = taken.setdefault(source.name.casefold(), path)
            if source.name.casefold() in map(str.casefold, figures):
                problems.append(f"{path}: its figure {source.name}.svg has the name of one from {other};"
                                " rename a record, section or model")
            figures[source.name] = source, draw
    if problems:
        raise RecordError(problems)
    if not figures:
        raise RecordError(f"{directory}: nothing to draw; expected a record with a panel or a public table")
    return figures


def chosen(figures, name):
    """All figures, or the one of that name. Raises RecordError that lists the names there are."""
    if name is None:
        return figures
    name = name.removesuffix(".svg")
    if name not in figures:
        raise RecordError(f'--figure: no figure "{plain(name)}"; expected one of: {", ".join(sorted(figures))}')
    return {name: figures[name]}


def draw(figures):
    """{file name: text}. Raises RecordError that names each figure which no division makes small enough."""
    files, problems = {}, []
    for name, (source, function) in figures.items():
        texts = in_parts(source, function)
        names = [name] if len(texts) == 1 else [f"{name}.part-{at + 1}" for at in range(len(texts))]
        if any(map(over_budget, texts)):
            problems.append(f"{name}.svg: {max(map(size_of, texts)):,} bytes; expected at most {BUDGET:,}; give its block fewer "
                            "models, or shorter names")
        files.update((f"{own}.svg", text) for own, text in zip(names, texts))
    if problems:
        raise RecordError(problems)
    return files


def size_of(text):
    """The bytes of a figure."""
    return len(text.encode("utf-8"))


def over_budget(text):
    """Whether a figure is larger than one may be."""
    return size_of(text) > BUDGET


def in_parts(source, function):
    """The texts of a figure: one, or as many parts as it takes for each to be small enough, or as many as there can be."""
    texts, most = [function(source)], divisible(source, function)
    while any(map(over_budget, texts)) and len(texts) < most:
        parts = min(most, max(len(texts) + 1, math.ceil(sum(map(size_of, texts)) / BUDGET)))
        texts = [function(source._replace(part=(at, parts))) for at in range(parts)]
    return texts


def divisible(source, function):
    """Into how many parts a figure can be divided: by data set, model or query type; 1 where all belongs together."""
    if isinstance(source.block, metrics.Table):
        return len(source.block.datasets)
    return {draw_models: len(source.block.models), draw_types: len(source.summary.get("types", ()))}.get(function, 1)


def stored_figures(folder):
    """The SVG files of a folder by name, however their ending is written; not those of its subfolders."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.lower().endswith(".svg"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise RecordError(f"{folder}: cannot be read: {error.strerror}") from None
    return {name: metrics.read_bytes(os.path.join(folder, name)) for name in names}


def differences(drawn, stored, extra):
    """What to say of each file that is missing, not what would be drawn, or (where that is asked for) extra."""
    lines = [f"{name}: missing" if name not in stored else f"{name}: not what would be drawn"
             for name, text in drawn.items() if stored.get(name) != text.encode("utf-8")]
    return lines + [f"{name}: extra, no record has this figure" for name in stored if extra and name not in drawn]


def main(argv=None):
    """Draw or check; the exit status."""
    import argparse

    parser = argparse.ArgumentParser(prog="figures.py", description="Draw the figures of retrieval records.")
    parser.add_argument("--directory", default=HERE,
                        help="a folder with records, or with a folder records in it (default: where figures.py is)")
    parser.add_argument("--output", default=os.path.join(HERE, "figures"),
                        help="where the figures go (default: figures beside figures.py)")
    parser.add_argument("--figure", metavar="NAME", help="only this figure")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; name each missing, extra or outdated .svg file (subfolders are not looked into)")
    options = parser.parse_args(argv)
    drawn = draw(chosen(planned(options.directory), options.figure))
    stored = stored_figures(options.output)
    if options.check:
        lines = differences(drawn, stored, options.figure is None)
        for line in lines:
            print(os.path.join(options.output, line))
        if not lines:
            print(f"{options.output}: {count(len(drawn), 'figure')} as the records have {'it' if len(drawn) == 1 else 'them'}")
        return 1 if lines else 0
    try:
        os.makedirs(options.output, exist_ok=True)
    except OSError as error:
        raise RecordError(f"{options.output}: cannot be made: {error.strerror}") from None
    for name, text in drawn.items():
        metrics.write_whole(os.path.join(options.output, name), text)
        print(os.path.join(options.output, name))
    for name in sorted(stored.keys() - drawn.keys()) if options.figure is None else ():
        path = os.path.join(options.output, name)
        print(f"note: {path}: no record has this figure; delete it if it is an old one", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(metrics.run_command(main))
