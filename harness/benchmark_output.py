"""How a comparison of benchmark averages is shown: text, Markdown, JSON, a figure, a model card's model-index block."""

import math
import re
from fractions import Fraction

from harness.averages import RULE_WORDS
from harness.benchmark import as_report, best
from harness.mteb import printable
from metrics import dump_json, plural

NAMED = 6  # how many missing tasks or places a line of text names; JSON names all
TITLES = {"ndcg": "nDCG", "mrr": "MRR", "map": "MAP", "main": "main score"}


def percent(value, decimals=2):
    """A Fraction in [0, 1] as a percentage, exactly rounded, halves away from zero: 0.84105 is 84.11; None is "missing"."""
    if value is None:
        return "missing"
    units = math.floor(abs(Fraction(value)) * 100 * 10**decimals + Fraction(1, 2))
    whole, rest = divmod(units, 10**decimals)
    return f"{'-' if value < 0 and units else ''}{whole}" + (f".{rest:0{decimals}}" if decimals else "")


def measure_title(measure):
    """A measure as it is written in tables: ndcg@10 is nDCG@10, spearman is Spearman."""
    name, _, cutoff = measure.partition("@")
    title = TITLES.get(name, name.capitalize())
    return f"{title}@{cutoff}" if cutoff else title


def some(names):
    """A list of names as text, shortened to the first few."""
    names = list(names)
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


# Tables


def grid(columns, models):
    """The comparison's table as rows of text cells and whether each is the best of its column: [[(text, best)]]."""
    rows = [[("model", False), *((column.suite.name, False) for column in columns)]]
    for model in models:
        rows.append([(model.name, False)] + [(cell(column, model.name), model.name in best(column.averages)) for column in columns])
    return rows


def cell(column, name):
    """A model's cell: its average, "missing" where something lacks, a dash where it has none of the tasks."""
    value = column.averages[name]
    return percent(value) if value is not None or column.scores[name].tasks else "-"


def aligned(rows):
    """Rows of (text, best) as lines of text in columns; the best carry a star."""
    texts = [[text + ("*" if is_best else " ") for text, is_best in row] for row in rows]
    widths = [max(len(row[at]) for row in texts) for at in range(len(texts[0]))]
    return [(f"{row[0]:<{widths[0]}}" + "".join(f"  {text:>{width}}" for text, width in zip(row[1:], widths[1:]))).rstrip()
            for row in texts]


def markdown_table(rows):
    """Rows of (text, best) as a Markdown table; the best are bold."""
    def line(cells):
        return "| " + " | ".join(cells) + " |"

    head, *body = [[f"**{escape(text)}**" if is_best else escape(text) for text, is_best in row] for row in rows]
    return [line(head), line(["---"] + ["---:"] * (len(head) - 1)), *map(line, body)]


def escape(text):
    """A name so that a Markdown table shows it as it is."""
    text = " ".join(text.split())
    return "".join("\\" + character if character in "\\|*_`<>[]~" else character for character in text)


def task_rows(column, models):
    """A suite's tasks as rows of cells, one column per model."""
    rows = [[("task", False), *((model.name, False) for model in models)]]
    for required in column.suite.tasks:
        values = {}
        for model in models:
            scores = column.scores[model.name].tasks.get(required.name, {})
            values[model.name] = sum(scores.values()) / len(scores) if len(scores) == len(required.places) else None
        top = best(values)
        rows.append([(required.name, False)] + [(percent(value), name in top) for name, value in values.items()])
    return rows


# What stands under the table


def details(column, models):
    """What a reader needs to trust a suite's column, as lines: rule, what lacks, the common comparison, other rules, notes."""
    suite = column.suite
    scores = sum(len(task.places) for task in suite.tasks)
    lines = [f"{measure_title(suite.measure)}, mean of {plural(len(suite.tasks), 'task')} ({plural(scores, 'score')}), "
             f"{suite.rule}: {RULE_WORDS[suite.rule]}"]
    others = [task for task in suite.tasks if task.measure != suite.measure]
    if others:
        lines.append("other measures: " + ", ".join(f"{measure_title(task.measure)} for {task.name}" for task in others))
    absent = [model.name for model in models if not column.scores[model.name].tasks]
    lines += [f"none of the tasks: {some(absent)}"] if absent else []
    for model in models:
        lines += missing_lines(column, model.name)
    if column.shared:
        lines.append(common_line(column))
    elif sum(bool(each.tasks) for each in column.scores.values()) > 1 and any(each.missing for each in column.scores.values()
                                                                            if each.tasks):
        lines.append("no score is shared by all models that have any, so they can't be compared; choose fewer with --model")
    for model in models:
        lines += other_rules(column, model.name) + column.scores[model.name].notes
    return lines + list(suite.notes)


def missing_lines(column, name):
    """What a model lacks of a suite, named."""
    each = column.scores[name]
    if not each.tasks:
        return []
    whole = [task for task, places in each.missing.items() if not places]
    lines = [f"{name}: missing {len(whole)} of {plural(len(column.suite.tasks), 'task')}: {some(whole)}"] if whole else []
    return lines + [f"{name}: missing of {task}: {some(places)}" for task, places in each.missing.items() if places]


def common_line(column):
    """The comparison over what every model has."""
    top = best(column.shared_averages)
    values = ", ".join(f"{name} {percent(value)}{' (best)' * (name in top)}" for name, value in column.shared_averages.items())
    scores = sum(map(len, column.shared.values()))
    return f"over the {plural(len(column.shared), 'task')} ({plural(scores, 'score')}) that all of them have: {values}"


def other_rules(column, name):
    """The averages by the other rules where they would show another number."""
    averages = column.scores[name].averages
    if not averages:
        return []
    own = percent(averages[column.suite.rule])
    other = [f"{rule} {percent(value)}" for rule, value in averages.items() if percent(value) != own]
    return [f"{name}: {own} is {column.suite.rule}; another rule gives {', '.join(other)}"] if other else []


def as_text(columns, models, tasks=False):
    """The comparison as text: the table in percent, then what each column rests on."""
    lines = aligned(grid(columns, models)) + ["", "in percent; * best; - none of the tasks"]
    lines += [note for model in models for note in model.notes]
    for column in columns:
        lines += ["", f"{column.suite.name}: {column.suite.title}", *("  " + line for line in details(column, models))]
        if tasks:
            lines += ["", *("  " + line for line in aligned(task_rows(column, models)))]
    return "\n".join(map(printable, lines)) + "\n"


def as_markdown(columns, models, tasks=False):
    """The comparison as Markdown."""
    lines = [*markdown_table(grid(columns, models)), "", "In percent; the best are bold; - none of the tasks.", ""]
    lines += [f"- {escape(note)}" for model in models for note in model.notes]
    for column in columns:
        lines += [f"- **{escape(column.suite.name)}**: {escape(column.suite.title)}"]
        lines += [f"  - {escape(line)}" for line in details(column, models)]
    for column in columns if tasks else ():
        lines += ["", f"**{escape(column.suite.name)}**", "", *markdown_table(task_rows(column, models))]
    return "\n".join(map(printable, lines)).rstrip("\n") + "\n"


def as_json(columns, models, tasks=False):
    """The comparison as JSON text; it holds the tasks always."""
    return dump_json(as_report(columns, models))


# Figure

ROW, MOST_COLUMNS = 34, 9


def figure(columns, models):
    """The comparison as an SVG: a row per model, a shaded cell per suite with its number; the best are said in words."""
    from svg_figures import Figure

    one = len(columns) == 1
    title = f"{columns[0].suite.name} averages" if one else "Benchmark averages"
    drawing = Figure("benchmark", title, f"{plural(len(models), 'model')} on {plural(len(columns), 'suite')}, in percent; "
                     "a stronger shade is a higher score")
    for start in range(0, len(columns), MOST_COLUMNS):
        draw_block(drawing, columns[start:start + MOST_COLUMNS], models)
    rules = sorted({column.suite.rule for column in columns})
    drawing.paragraph("Missing: a required score lacks. A dash: none of the tasks. "
                      + " ".join(f"{rule.capitalize()}: {RULE_WORDS[rule]}." for rule in rules))
    values = "; ".join(f"{model.name}: " + ", ".join(f"{column.suite.name} {cell(column, model.name)}" for column in columns)
                       for model in models)
    return drawing.svg(values)


def draw_block(drawing, columns, models):
    """One table of the figure: the suites' names and measures, then a row per model."""
    from svg_figures import shorten

    names = 180 if len(columns) < MOST_COLUMNS else 140  # "nDCG@10" needs the room above nine columns
    width = (drawing.right - drawing.left - names) / max(len(columns), 4)
    drawing.y += 8
    for at, column in enumerate(columns):
        middle = drawing.left + names + at * width + width / 2 - 1
        drawing.text(middle, drawing.y + 12, shorten(column.suite.name, width - 2), "ink", anchor="middle")
        drawing.text(middle, drawing.y + 28, shorten(measure_title(column.suite.measure), width - 2), anchor="middle")
    drawing.y += 36
    for model in models:
        draw_name(drawing, model.name, names - 10)
        for at, column in enumerate(columns):
            draw_cell(drawing, drawing.left + names + at * width, width, column, model.name)
        drawing.y += ROW
    drawing.y += 8


def draw_name(drawing, name, width):
    """A model's name at the left of its row, its revision and settings on a second line."""
    from svg_figures import shorten

    name, *rest = re.split(r"(?=@| \()", " ".join(name.split()), maxsplit=1)
    drawing.text(drawing.left, drawing.y + ROW / 2 + (-3 if rest else 4), shorten(name, width), "ink")
    for part in rest:
        drawing.text(drawing.left, drawing.y + ROW / 2 + 12, shorten(part.strip(), width))


def draw_cell(drawing, left, width, column, name):
    """One number of the figure, shaded by its size, or the word for its absence."""
    value = column.averages[name]
    if value is None:
        drawing.text(left + width / 2 - 1, drawing.y + ROW / 2 + 4, cell(column, name), anchor="middle")
        return
    is_best = name in best(column.averages)
    lines = [(percent(value), 12, is_best)] + ([("best", 12, False)] if is_best else [])
    drawing.cell(left, drawing.y, width, ROW, lines, 0.04 + 0.8 * max(0.0, float(value)))


# Model card


def as_model_index(columns, models, tasks=False):
    """The YAML block of a Hugging Face model card: every score that the suites use, once, and the averages, in percent."""
    return "\n".join(index_lines({model.name: index_entries(columns, model) for model in models})) + "\n"


def index_lines(models):
    """A model-index of {model's name: entries as entry_lines gives them} as YAML lines."""
    lines = ["model-index:"]
    for name, entries in models.items():
        results = [line for entry in entries for line in entry]
        lines += [f"- name: {quoted(name)}", "  results:" if results else "  results: []", *results]
    return lines


def index_entries(columns, model):
    """The entries of one model: lines of YAML each."""
    seen = set()
    for column in columns:
        each = column.scores[model.name]
        for required in column.suite.tasks:
            result = next((model.results[name] for name in (required.name, *required.aliases) if name in model.results), None)
            for (split, subset), value in each.tasks.get(required.name, {}).items():
                if (required.name, split, subset, required.measure) not in seen:
                    seen.add((required.name, split, subset, required.measure))
                    yield entry_lines(required.type or "retrieval", required.name, subset, split, result.revision,
                                      required.measure, value)
        if column.averages[model.name] is not None:
            title = f"{column.suite.name}, {column.suite.rule} mean of {plural(len(column.suite.tasks), 'task')}"
            yield entry_lines(column.suite.tasks[0].type or "retrieval", title, None, None, None, column.suite.measure,
                              column.averages[model.name])


def entry_lines(kind, dataset, subset, split, revision, measure, value):
    """One result of a model-index as YAML lines.

    The Hub wants a data set's id as its type. Results that have none get their name as one word, so that huggingface_hub, which
    tells data sets apart by type and not by name, keeps them apart; one type for all, such as "other", would join them.
    """
    word = re.sub(r"[^\w./-]+", "-", dataset).strip("-") or "other"
    places = {"config": subset, "split": split, "revision": revision}
    return ["  - task:", f"      type: {quoted(kind.replace(' ', '-'))}", "    dataset:", f"      type: {quoted(word)}",
            f"      name: {quoted(dataset)}", *(f"      {key}: {quoted(text)}" for key, text in places.items() if text),
            "    metrics:", f"    - type: {quoted(measure.replace('@', '_at_'))}",
            f"      name: {quoted(measure_title(measure) + ' in percent')}", f"      value: {percent(value, 3)}"]


def quoted(text):
    """A text as a double-quoted YAML scalar: JSON's escapes, and YAML's own for whatever else doesn't print."""
    import json

    return "".join(character if character.isprintable() else f"\\U{ord(character):08x}"
                   for character in json.dumps(text, ensure_ascii=False))


FORMATS = {"text": as_text, "markdown": as_markdown, "json": as_json, "model-index": as_model_index}
