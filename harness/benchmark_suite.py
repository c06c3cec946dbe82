"""Suites: which tasks an average is over, how each is measured, and what follows from a model's results.

A suite is a JSON file, see `load_suite`; the shipped ones are in harness/suites. `score` turns a suite and a model's
results into a Score: the average by each rule, or what lacks.
"""

from pathlib import Path
from typing import NamedTuple

from harness.averages import RULES, Task, average, mean
from harness.files import canonical_hash, read_text
from harness.mteb import Problem, cause_of, measure_keys, named, read_measure
from metrics import RecordError, parse_json, quote

FOLDER = Path(__file__).parent / "suites"
SHIPPED = ("j-vdr", "vidore", "clipb", "mmteb", "mteb-en", "coir", "lemb", "sts-m", "sts-en")  # in the order of tables
SUITE_KEYS = {"name", "title", "source", "notes", "measure", "type", "rule", "tasks"}
TASK_KEYS = {"task", "aliases", "type", "measure", "splits", "subsets", "languages", "group", "query_prefix"}


class Required(NamedTuple):
    """A task that a suite asks for."""

    name: str
    aliases: tuple  # other names under which results are accepted
    type: str
    measure: str  # "ndcg@10", "spearman", "main" for a result's own main score
    places: tuple  # every (split, subset) that must hold a score
    languages: tuple
    group: str | None
    prefix: str | None  # the query prefix it must be measured with


class Suite(NamedTuple):
    """A set of required tasks and the rule of their average."""

    name: str
    title: str
    source: str
    notes: tuple
    measure: str
    rule: str
    tasks: tuple  # of Required
    sha256: str  # of the suite's content, so that two averages can be told apart


class Score(NamedTuple):
    """What a model's results give for a suite."""

    averages: dict | None  # rule -> Fraction; None where something lacks
    tasks: dict  # task -> {(split, subset): Fraction}, what is there
    missing: dict  # task -> the places that lack, in words; none named where there is no result at all
    notes: list


# Reading




def load_suite(name):
    """The Suite of a shipped name (in any case) or of a file.

    A file needs name, measure and tasks; each task is a name, or an object that needs "task" and may have aliases, type,
    measure, splits (default ["test"]), subsets (default ["default"]), languages, group and query_prefix. Raises RecordError
    that lists every problem of the file, or the names of the shipped suites.
    """
    if str(name).lower() in SHIPPED:
        path = FOLDER / f"{str(name).lower()}.json"
    elif Path(name).exists():
        path = Path(name)
    else:
        raise RecordError(f"{name}: no such suite: expected a file or one of {', '.join(SHIPPED)}")
    return parse_suite(parse_json(read_text(path), str(path)), str(path))


def parse_suite(value, name):
    """The Suite of a parsed suite file. Raises RecordError that lists every problem."""
    if not isinstance(value, dict):
        raise RecordError(f"{name}: expected a suite (an object), got {quote(value)}")
    if isinstance(value.get("tasks"), list):  # a task's name alone is a task with all that the suite says
        value = {**value, "tasks": [{"task": task} if isinstance(task, str) else task for task in value["tasks"]]}
    problems = [f"{name}: unknown key {named(key)}; expected some of {', '.join(sorted(SUITE_KEYS))}"
                for key in sorted(value.keys() - SUITE_KEYS)]
    problems += [f"{name}: {key}: expected text, got {quote(value.get(key))}" for key in ("name", "measure")
                 if not isinstance(value.get(key), str) or not value[key]]
    problems += [f"{name}: {key}: expected text, got {quote(value[key])}" for key in ("title", "source", "type")
                 if not isinstance(value.get(key, ""), str)]
    if value.get("rule", "two-step") not in tuple(RULES):
        problems.append(f"{name}: rule: expected one of {', '.join(RULES)}, got {named(value['rule'])}")
    if not texts(value.get("notes", [])):
        problems.append(f"{name}: notes: expected a list of texts, got {quote(value['notes'])}")
    if not isinstance(value.get("tasks"), list) or not value["tasks"]:
        problems.append(f"{name}: tasks: expected a list of tasks, got {quote(value.get('tasks'))}")
    else:
        problems += task_problems(value["tasks"], name)
    if problems:
        raise RecordError(problems)
    tasks = tuple(parse_task(entry, value) for entry in value["tasks"])
    return Suite(value["name"], value.get("title", value["name"]), value.get("source", ""), tuple(value.get("notes", ())),
                 value["measure"], value.get("rule", "two-step"), tasks, canonical_hash(value))


def texts(value):
    """True for a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def task_problems(tasks, name):
    """What is wrong with the tasks of a suite file, as a list of texts."""
    problems, seen = [], {}
    for number, entry in enumerate(tasks):
        place = f"{name}: tasks[{number}]"
        if not isinstance(entry, dict) or not isinstance(entry.get("task"), str) or not entry["task"]:
            problems.append(f'{place}: expected a task\'s name, or an object with it as "task", got {quote(entry)}')
            continue
        problems += [f"{place}: unknown key {named(key)}; expected some of {', '.join(sorted(TASK_KEYS))}"
                     for key in sorted(entry.keys() - TASK_KEYS)]
        for key in sorted(TASK_KEYS & entry.keys()):
            listed = key in ("aliases", "splits", "subsets", "languages")
            if not (texts(entry[key]) and len(set(entry[key])) == len(entry[key]) if listed else isinstance(entry[key], str)):
                problems.append(f"{place}: {key}: expected {'a list of different texts' if listed else 'text'}, "
                                f"got {quote(entry[key])}")
            elif key in ("splits", "subsets") and not entry[key]:
                problems.append(f"{place}: {key}: expected at least one")
        for task in [entry["task"], *(entry["aliases"] if texts(entry.get("aliases")) else [])]:
            if task in seen:
                problems.append(f"{place}: {named(task)} stands twice, first in tasks[{seen[task]}]")
            seen[task] = number
    return problems


def parse_task(entry, suite):
    """A Required task from its checked entry; what it leaves out comes from the suite."""
    return Required(entry["task"], tuple(entry.get("aliases", ())), entry.get("type", suite.get("type", "")),
                    entry.get("measure", suite["measure"]),
                    tuple((split, subset) for split in entry.get("splits", ["test"])
                          for subset in entry.get("subsets", ["default"])),
                    tuple(entry.get("languages", ())), entry.get("group"), entry.get("query_prefix"))


def suite_of_results(models):
    """A Suite of whatever the models were measured on, each task by its own main score: for results no shipped suite knows.

    Rows without a main score are left out, and a note names their tasks. Raises RecordError where none has one.
    """
    places, without = {}, {}
    for model in models:
        for task, result in model.results.items():
            for where, row in result.rows.items():
                (places if measure_keys("main")[0] in row.measures else without).setdefault(task, {})[where] = None
    if not places:
        raise RecordError(f"no shipped suite asks for any of these tasks, and their results name no main score: "
                          f"{', '.join(sorted(without)[:6])}; write a suite file that names the measure and pass it with --suite")
    tasks = [Required(task, (), "", "main", tuple(places[task]), (), None, None) for task in sorted(places)]
    notes = (f"left out, since these results name no main score: {', '.join(sorted(without))}",) if without else ()
    return Suite("all tasks", "every task of these results, by its own main score", "", notes, "main", "two-step", tuple(tasks),
                 canonical_hash([[task.name, task.places] for task in tasks]))


# Scoring


def score(suite, model, problems):
    """The Score of a Model in a Suite. What must be refused (another measure, cutoff or prefix, a value that is no
    fraction) is added to `problems`, named; what isn't there is missing, never estimated."""
    tasks, missing, notes = {}, {}, []
    for required in suite.tasks:
        held = [model.results[name] for name in (required.name, *required.aliases) if name in model.results]
        if len(held) > 1:
            problems.append(Problem(f"{held[1].path}: {model.name}: {required.name}: a second result, under another name; the first "
                                    f"is {held[0].path}; keep one of them", f"a second result of {model.name}"))
        elif not held:
            missing[required.name] = []
        else:
            scores, lacks = task_scores(suite, required, held[0], model.name, problems, notes)
            if scores:
                tasks[required.name] = scores
            if lacks:
                missing[required.name] = lacks
    averages = None if missing else {rule: average(as_tasks(suite, tasks), rule) for rule in RULES}
    return Score(averages, tasks, missing, notes)


def task_scores(suite, required, result, model, problems, notes):
    """({(split, subset): Fraction}, what lacks, in words) of one task's Result."""
    scores, lacks, prefixes = {}, [], {}
    for where in required.places:
        row = result.rows.get(where)
        if row is None:
            lacks.append((where, None))
            continue
        reading = read_measure(row, required.measure)
        if reading.problem:
            problems.append(Problem(f"{reading.problem}; {suite.name} asks for {required.measure} of {required.name} ({model})",
                                    (suite.name, required.measure, cause_of(reading.problem, row.place))))
        elif reading.missing:
            lacks.append((where, reading.missing))
        else:
            scores[where] = reading.value
            prefixes[row.prefix] = row
    check_prefix(suite, required, prefixes, model, problems, notes)
    return scores, [place_name(required, *where) + (f" is {why}" if why else "") for where, why in lacks]


def check_prefix(suite, required, prefixes, model, problems, notes):
    """Refuse a recorded query prefix other than the required one; note where none is recorded."""
    if required.prefix is None:
        return
    for prefix, row in prefixes.items():
        if prefix is None:
            notes.append(f"{model}: {required.name}: {suite.name} asks for the query prefix {named(required.prefix)}; "
                         f"the result does not record its prefix")
        elif prefix.strip() != required.prefix.strip():
            problems.append(f"{row.place}: {model}: {required.name} was measured with the query prefix {named(prefix)}; "
                            f"{suite.name} asks for {named(required.prefix)}")


def place_name(required, split, subset):
    """A split and subset in words, only as far as the task has several: "ar", "validation", "ara-deu (test)"."""
    several = [len({where[part] for where in required.places}) > 1 for part in (0, 1)]
    if several[1]:
        return f"{subset} ({split})" if several[0] else subset
    return split if subset == "default" else f"{split} {subset}"


def as_tasks(suite, scores):
    """The averages.Task list of {task: {(split, subset): Fraction}}, in the suite's order."""
    return [Task(required.name, required.type, tuple(scores[required.name].values()))
            for required in suite.tasks if required.name in scores]


def group_means(suite, scores):
    """{group: two-step mean} of the complete tasks of each group of a suite."""
    groups = {}
    for required in suite.tasks:
        if required.group and len(scores.get(required.name, ())) == len(required.places):
            groups.setdefault(required.group, []).append(mean(scores[required.name].values()))
    return {group: mean(values) for group, values in groups.items()}


def common(suite, scores):
    """What every one of several Scores has: {task: [(split, subset)]}; empty where they share nothing."""
    shared = {}
    for required in suite.tasks:
        places = [where for where in required.places if all(where in each.tasks.get(required.name, ()) for each in scores)]
        if places:
            shared[required.name] = places
    return shared


def average_over(suite, scores, shared, rule):
    """A Score's average by a rule over the shared places alone."""
    return average(as_tasks(suite, {task: {where: scores.tasks[task][where] for where in places}
                                    for task, places in shared.items()}), rule)
