"""Recomputes published averages from the scores that stand beside them, and says what agrees.

python -m harness benchmark audit [NAME|TABLE.json] [--omit N] [--format text|markdown|json]

For every published average: the recomputed one by each rule, over which of the tasks, and, where none agrees after
rounding, the smallest sets of tasks without which it would. Numbers are kept as they were printed, so rounding is
judged by their own decimals. The exit status is 1 where a published average does not follow from the scores.
"""

import re
from pathlib import Path
from typing import NamedTuple

from harness.averages import RULE_WORDS, RULES, Task, agreement, average, decimals_of, exact, half_unit, smallest_omissions
from harness.benchmark_suite import texts
from harness.files import Progress, read_text
from harness.mteb import named, printable
from metrics import RecordError, parse_json, plural, quote

FOLDER = Path(__file__).parent / "audit"
EXAMPLE = "jina-embeddings-v4"
TABLE_KEYS = {"title", "source", "unit", "suites"}
SUITE_KEYS = {"name", "measure", "rule", "source", "note", "places", "groups", "types", "tasks", "models"}
MODEL_KEYS = {"also", "published", "scores"}
UNITS = {"percent": 100, "fraction": 1}
MODEL_SHAPE = '{"published": {"table 1": "73.98"}, "scores": {"LakeRetrieval": "74.10", "WaterSTS": {"en": "80.2"}}}'
SHAPES = {"places": '{"table 1": null, "table 4": "LakeRetrieval"}', "groups": '{"lakes": ["LakeRetrieval"]}',
          "types": '{"WaterSTS": "STS"}', "models": f'{{"blue": {MODEL_SHAPE}}}'}  # as errors show them
PRINTED = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,12})?")
SHOWN_SETS = 4  # how many sets of omitted tasks a line names


class Printed(NamedTuple):
    """A number as it was printed."""

    text: str
    value: object  # Fraction
    decimals: int


class AuditSuite(NamedTuple):
    """The published tables of one suite."""

    name: str
    measure: str
    rule: str
    source: str
    note: str
    places: dict  # where averages are published -> the tasks they are over
    types: dict  # task -> type
    tasks: tuple
    models: dict  # name -> AuditModel


class AuditModel(NamedTuple):
    """What is published of one model."""

    also: str | None  # its name in another table
    published: dict  # place -> Printed
    scores: dict  # task -> {language or "": Printed}


class Finding(NamedTuple):
    """What follows for one published average."""

    model: str
    place: str
    published: Printed
    averages: dict | None  # rule -> Fraction; None without scores
    listed: int  # tasks with scores, of
    tasks: int
    missing: list  # tasks or languages that lack
    verdict: str  # agrees, within rounding, another rule, omission, differs, no scores
    rule: str | None  # the rule that agrees, where it is another one
    omission: object = None  # averages.Omission, where one was searched
    near: object = None  # the same for smaller sets that explain it within the rounding of the listed scores only


# Reading


def load_table(name):
    """(title, source, unit, [AuditSuite]) of a shipped audit's name or of a file. Raises RecordError listing every problem."""
    path = FOLDER / f"{name}.json"
    if not re.fullmatch(r"[\w-][\w.-]*", str(name)) or not path.exists():
        path = Path(name)
    return parse_table(parse_json(read_text(path), str(path)), str(path))


def parse_table(value, name):
    """(title, source, unit, [AuditSuite]) of a parsed audit file."""
    problems = []
    check_members(value, TABLE_KEYS, ("unit", "suites"), name, problems)
    if not problems and value["unit"] not in tuple(UNITS):
        problems.append(f'{name}: unit: expected "percent" or "fraction", got {named(value["unit"])}; they are never guessed')
    if not problems and (not isinstance(value["suites"], list) or not value["suites"]):
        problems.append(f"{name}: suites: expected a list of suites, got {quote(value['suites'])}")
    if problems:
        raise RecordError(problems)
    suites = [parse_suite(suite, value["unit"], f"{name}: suites[{number}]", problems)
              for number, suite in enumerate(value["suites"])]
    if problems:
        raise RecordError(problems)
    return str(value.get("title", name)), str(value.get("source", "")), value["unit"], suites


def check_members(value, known, needed, place, problems):
    """Note an object's unknown and missing members, or that it is none; True if it can be read on."""
    if not isinstance(value, dict):
        problems.append(f"{place}: expected an object, got {quote(value)}")
        return False
    problems += [f"{place}: unknown key {named(key)}; expected some of {', '.join(sorted(known))}"
                 for key in sorted(value.keys() - known)]
    lacks = [key for key in needed if key not in value]
    problems += [f"{place}: {key} is missing" for key in lacks]
    return not lacks


def parse_suite(value, unit, place, problems):
    """One AuditSuite; what is wrong is added to `problems` (the result is then of no use)."""
    if not check_members(value, SUITE_KEYS, ("name", "models"), place, problems):
        return None
    place = f"{place} ({value['name']})"
    found = len(problems)
    problems += [f"{place}: {key}: expected text, got {quote(value[key])}" for key in ("name", "measure", "source", "note")
                 if not isinstance(value.get(key, ""), str)]
    problems += [f"{place}: {key}: expected an object, such as {example}, got {quote(value[key])}"
                 for key, example in SHAPES.items() if not isinstance(value.get(key, {}), dict)]
    if value.get("rule", "two-step") not in tuple(RULES):
        problems.append(f"{place}: rule: expected one of {', '.join(RULES)}, got {named(value['rule'])}")
    if not texts(value.get("tasks", [])):
        problems.append(f"{place}: tasks: expected a list of names, got {quote(value['tasks'])}")
    if not problems[found:] and not texts(list(value.get("types", {}).values())):
        problems.append(f"{place}: types: expected a text for each task, got {quote(value['types'])}")
    return None if problems[found:] else build_suite(value, unit, place, problems)


def build_suite(value, unit, place, problems):
    """One AuditSuite whose members are of the right kinds."""
    models = {name: parse_model(model, unit, f"{place}: {name}", problems) for name, model in value["models"].items()}
    models = {name: model for name, model in models.items() if model}
    tasks = tuple(dict.fromkeys(value.get("tasks") or [task for model in models.values() for task in model.scores]))
    problems += [f"{place}: {name}: {task}: not among the suite's tasks" for name, model in models.items()
                 for task in model.scores if task not in tasks]
    places = {where: over_tasks(over, value.get("groups", {}), tasks, f"{place}: places: {where}", problems)
              for where, over in value.get("places", {}).items()}
    return AuditSuite(value["name"], value.get("measure", ""), value.get("rule", "two-step"), value.get("source", ""),
                      value.get("note", ""), places, value.get("types", {}), tasks, models)


def over_tasks(over, groups, tasks, place, problems):
    """The tasks that a place's averages are over: all of them for null, a group's, or a single one."""
    chosen = tasks if over is None else groups.get(over, [over]) if isinstance(over, str) else None
    if not isinstance(chosen, (list, tuple)) or any(task not in tasks for task in chosen):
        problems.append(f"{place}: expected null, a group or a task, got {named(over)}")
        return ()
    return tuple(chosen)


def parse_model(value, unit, place, problems):
    """One AuditModel; what is wrong is added to `problems`."""
    if not check_members(value, MODEL_KEYS, ("published", "scores"), place, problems):
        return None
    if not isinstance(value["published"], dict) or not isinstance(value["scores"], dict):
        problems.append(f"{place}: published and scores: expected objects, such as {MODEL_SHAPE}")
        return None
    if not isinstance(value.get("also", ""), str):
        problems.append(f"{place}: also: expected the model's other name, got {quote(value['also'])}")
    published = {where: read_printed(number, unit, f"{place}: published: {where}", problems)
                 for where, number in value["published"].items()}
    scores = {}
    for task, held in value["scores"].items():
        languages = held if isinstance(held, dict) and held else {"": held}
        scores[task] = {language: read_printed(number, unit, f"{place}: {task}{': ' * bool(language)}{language}", problems)
                        for language, number in languages.items()}
    check_scale([number for held in scores.values() for number in held.values()], unit, place, problems)
    return AuditModel(value.get("also"), published, scores)


def read_printed(number, unit, place, problems):
    """A number as printed, "73.98" (or the JSON number 73.98), within its unit; None beside a problem."""
    text = str(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else number
    if not isinstance(text, str) or not PRINTED.fullmatch(text):
        problems.append(f"{place}: number expected (as printed, such as \"73.98\"), got {named(number)}")
        return None
    if abs(exact(text)) > UNITS[unit]:
        problems.append(f"{place}: expected a {unit}, got {text}, which is outside 0..{UNITS[unit]}; \"unit\" says which it is")
        return None
    return Printed(text, exact(text), decimals_of(text))


def check_scale(numbers, unit, place, problems):
    """Refuse percentages that are all at most 1: they look like fractions, and a mix would average to nonsense."""
    values = [number.value for number in numbers if number]
    if unit == "percent" and len(values) > 2 and any(values) and all(abs(value) <= 1 for value in values):
        problems.append(f"{place}: unit says percent, but none of {len(values)} scores is over 1; fractions and percentages don't mix")


# Auditing


def audit_suite(suite, largest=3, progress=None):
    """The Findings of a suite, model by model and place by place; sets of up to `largest` omitted tasks are searched."""
    findings = []
    for name, model in suite.models.items():
        for place, printed in model.published.items():
            findings.append(audit_one(suite, name, model, place, suite.places.get(place, suite.tasks), printed, largest))
            if progress:
                progress.step()
    return findings


def audit_one(suite, name, model, place, over, printed, largest):
    """The Finding for one published average."""
    tasks = as_tasks(suite, model, over, lambda number: number.value)
    missing = lacking(suite, model, over)
    if not tasks:
        return Finding(name, place, printed, None, 0, len(over), missing, "no scores", None)
    averages = {rule: average(tasks, rule) for rule in RULES}
    halves = as_tasks(suite, model, over, lambda number: half_unit(number.decimals))
    slack = {rule: average(halves, rule) for rule in RULES}
    found = {rule: agreement(printed.value, printed.decimals, averages[rule], slack[rule]) for rule in RULES}
    verdict, other, omission, near = found[suite.rule], None, None, None
    if verdict == "differs":
        other = next((rule for rule in RULES if found[rule] == "agrees"), None)
    if verdict == "differs" and not other:
        omission = smallest_omissions(tasks, suite.rule, printed.value, printed.decimals, largest)
        smaller = omission.size - 1 if omission.sets else omission.largest
        near = smallest_omissions(tasks, suite.rule, printed.value, printed.decimals, smaller, slack[suite.rule])
    if verdict == "differs":
        verdict = "another rule" if other else "omission" if omission.sets or near.sets else "differs"
    return Finding(name, place, printed, averages, len(tasks), len(over), missing, verdict, other, omission, near)


def as_tasks(suite, model, over, value):
    """The averages.Task list of a model's listed scores, each taken by value(Printed)."""
    return [Task(task, suite.types.get(task, ""), tuple(map(value, model.scores[task].values())))
            for task in over if model.scores.get(task)]


def lacking(suite, model, over):
    """The tasks, and the languages of a task, that other models list and this one doesn't."""
    lacks = [task for task in over if not model.scores.get(task)]
    for task in over:
        languages = {language for other in suite.models.values() for language in other.scores.get(task, ())}
        held = model.scores.get(task, {})
        lacks += [f"{task}: {language}" for language in sorted(languages - held.keys()) if held and language]
    return lacks


def contradictions(suite):
    """(model, [(place, Printed)]) where places give averages over the same tasks that no single number rounds to."""
    found = []
    for name, model in suite.models.items():
        same = {}
        for place, printed in model.published.items():
            same.setdefault(suite.places.get(place, suite.tasks), []).append((place, printed))
        for values in same.values():
            low = max(printed.value - half_unit(printed.decimals) for _, printed in values)
            high = min(printed.value + half_unit(printed.decimals) for _, printed in values)
            if low > high:
                found.append((name, values))
    return found


# Showing


def number_text(value, decimals):
    """A Fraction as text with so many decimals, exactly rounded, halves away from zero."""
    from harness.benchmark_output import percent

    return percent(value / 100, decimals)


def decimals_shown(suite):
    """One decimal more than anything published of a suite has, so that rounding can be seen."""
    return 1 + max((printed.decimals for model in suite.models.values() for printed in model.published.values()), default=1)


def verdict_text(finding, suite):
    """A Finding's verdict in words."""
    if finding.verdict == "omission":
        parts = [sets_text("agrees", finding.omission)] if finding.omission.sets else []
        parts += [sets_text("within rounding", finding.near)] if finding.near.sets else []
        return "; ".join(parts)
    if finding.verdict == "another rule":
        return f"agrees by another rule: {finding.rule}"
    if finding.verdict == "no scores":
        return "no task scores to recompute it from"
    if finding.verdict == "differs":
        difference = number_text(finding.published.value - finding.averages[suite.rule], decimals_shown(suite))
        searched = f"no set of up to {finding.omission.largest} left out explains it" if finding.omission.largest else "no set searched"
        return f"differs by {difference if difference.startswith('-') else '+' + difference}; {searched}"
    return finding.verdict


def sets_text(how, omission):
    """The sets of omitted tasks that explain a number, in words, with how many were tried."""
    names = " or ".join(" + ".join(left_out) for left_out, _ in omission.sets[:SHOWN_SETS])
    more = f" or {len(omission.sets) - SHOWN_SETS} more" if len(omission.sets) > SHOWN_SETS else ""
    chance = ", may be chance" if omission.size > 1 else ""
    return f"{how} only without {names}{more} ({len(omission.sets)} of {omission.tried} sets of {omission.size}{chance})"


def shown_rules(suite, findings):
    """The suite's own rule, then the others where they give another average for any model."""
    own = suite.rule
    return [own] + [rule for rule in RULES if rule != own and any(
        finding.averages and finding.averages[rule] != finding.averages[own] for finding in findings)]


def finding_rows(suite, findings):
    """A suite's Findings as rows of text, the head first."""
    rules, decimals = shown_rules(suite, findings), decimals_shown(suite)
    rows = [["model", "published in", "published", *rules, "tasks", "verdict"]]
    for finding in findings:
        values = [number_text(finding.averages[rule], decimals) if finding.averages else "-" for rule in rules]
        rows.append([finding.model, finding.place, finding.published.text, *values, f"{finding.listed} of {finding.tasks}",
                     verdict_text(finding, suite)])
    return rows


def remarks(suite, findings):
    """What stands under a suite's table: what lacks, and where published values contradict each other."""
    lines = [suite.note] if suite.note else []
    for name in dict.fromkeys(finding.model for finding in findings):
        lacks = dict.fromkeys(lack for finding in findings if finding.model == name and finding.averages
                              for lack in finding.missing)
        if lacks:
            lines.append(f"{name}: no score listed for {', '.join(lacks)}")
    return lines + [contradiction_text(suite, name, values) for name, values in contradictions(suite)]


def contradiction_text(suite, name, values):
    """Two or more published values of one average that can't both be right."""
    also = suite.models[name].also
    said = " but ".join(f"{place} says {printed.text}" for place, printed in values)
    return f"{name}{f' (also named {also})' if also else ''}: {said}: the published values contradict each other"


def total_lines(audits):
    """How many averages were audited and with what outcome."""
    findings = [finding for _, found in audits for finding in found]
    words = {"agrees": "agree", "within rounding": "within the rounding of the listed scores", "another rule": "only by another rule",
             "omission": "only without some of the tasks", "differs": "unexplained", "no scores": "without task scores"}
    counts = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in words}
    outcomes = "; ".join(f"{words[verdict]}: {counts[verdict]}" for verdict in words if counts[verdict])
    lines = [plural(len(findings), "published average") + f" ({outcomes})" * bool(outcomes)]
    pairs = sum(len(contradictions(suite)) for suite, _ in audits)
    return lines + [f"published twice with values that contradict each other: {pairs}"] * bool(pairs)


def as_text(title, source, unit, audits):
    """The audit as text."""
    lines = [title, *([source] if source else []), f"in {unit}; " + "; ".join(
        f"{rule}: {RULE_WORDS[rule]}" for rule in dict.fromkeys(suite.rule for suite, _ in audits))]
    for suite, findings in audits:
        lines += ["", f"{suite.name} {suite.measure}".rstrip()]
        rows = finding_rows(suite, findings)
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        left = {0, 1, len(widths) - 1}
        lines += ["  " + "  ".join(text.ljust(width) if at in left else text.rjust(width)
                                   for at, (text, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
        lines += ["  " + line for line in remarks(suite, findings)]
    return "\n".join(map(printable, [*lines, "", *total_lines(audits)])) + "\n"


def as_markdown(title, source, unit, audits):
    """The audit as Markdown."""
    from harness.benchmark_output import escape, markdown_table

    lines = [f"**{escape(title)}**", "", f"{escape(source)} In {unit}.".lstrip(), ""]
    for suite, findings in audits:
        lines += [f"**{escape(suite.name)}** {escape(suite.measure)}", "",
                  *markdown_table([[(text, False) for text in row] for row in finding_rows(suite, findings)]), ""]
        lines += [f"- {escape(line)}" for line in remarks(suite, findings)] + [""]
    return "\n".join(map(printable, lines + total_lines(audits))) + "\n"


def as_json(title, source, unit, audits):
    """The audit as JSON text: numbers in the table's unit, published ones as printed."""
    from metrics import dump_json

    return dump_json({"title": title, "source": source, "unit": unit, "summary": total_lines(audits), "suites": {
        suite.name: {"measure": suite.measure, "rule": suite.rule, "source": suite.source, "note": suite.note,
                     "findings": [finding_report(finding) for finding in findings],
                     "contradictions": [{"model": name, "published": {place: printed.text for place, printed in values}}
                                        for name, values in contradictions(suite)]} for suite, findings in audits}})


def finding_report(finding):
    """One Finding as plain values."""
    return {"model": finding.model, "place": finding.place, "published": finding.published.text, "verdict": finding.verdict,
            "recomputed": {rule: float(value) for rule, value in finding.averages.items()} if finding.averages else None,
            "tasks_listed": finding.listed, "tasks": finding.tasks, "missing": finding.missing, "agreeing_rule": finding.rule,
            "omissions": omission_report(finding.omission), "omissions_within_rounding": omission_report(finding.near)}


def omission_report(omission):
    """An Omission as plain values; None where none was searched."""
    return omission and {"sets": [{"without": list(names), "average": float(value)} for names, value in omission.sets],
                         "size": omission.size, "tried": omission.tried, "largest_size_searched": omission.largest}


FORMATS = {"text": as_text, "markdown": as_markdown, "json": as_json}


def main(argv):
    """Audit a table of published averages; 1 where one doesn't follow from the scores or contradicts another."""
    from harness.arguments import Parser

    parser = Parser(prog="python -m harness benchmark audit", description="Recompute published averages.")
    parser.add_argument("table", metavar="TABLE.json", nargs="?", default=EXAMPLE,
                        help=f"a file, or the name of a shipped one (default: {EXAMPLE})")
    parser.add_argument("--omit", type=int, default=3, metavar="N", choices=range(7),
                        help="search sets of at most N omitted tasks, 0 to 6 (default 3)")
    parser.add_argument("--format", choices=FORMATS, default="text")
    options = parser.parse_args(argv)
    title, source, unit, suites = load_table(options.table)
    with Progress(sum(len(model.published) for suite in suites for model in suite.models.values()), "averages") as progress:
        audits = [(suite, audit_suite(suite, options.omit, progress)) for suite in suites]
    print(FORMATS[options.format](title, source, unit, audits), end="")
    bad = any(finding.verdict in ("another rule", "omission", "differs") for _, findings in audits for finding in findings)
    return 1 if bad or any(contradictions(suite) for suite in suites) else 0
