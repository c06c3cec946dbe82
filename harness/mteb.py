"""Reads benchmark results: MTEB result JSON in every shape found in the wild, and this project's own plain result files.

| shape | looks like |
| --- | --- |
| modern | `{"task_name": …, "scores": {"test": [{"ndcg_at_10": …, "main_score": …, "hf_subset": …, "languages": […]}]}}` |
| old | `{"mteb_dataset_name": …, "test": {"ndcg_at_10": …}}`, or one object per subset inside the split |
| oldest | the same with families of measures: `"cos_sim": {"spearman": …}` |
| hybrid | any mix: both names, lists of rows at top level, subset objects under "scores" |
| plain | `{"model": …, "unit": "fraction", "results": [{"task": …, "measure": "ndcg@10", "score": …}]}` |

Only the measures that a suite asks for are looked at, so whatever else a file holds (NaN, lists, text, null) is no
obstacle; a measure that is asked for and isn't a number is named.
"""

import os
import re
import sys
from typing import NamedTuple

from harness.averages import exact
from metrics import RecordError, decode_utf8, quote, read_bytes

# Keys of a result file that are about the run; in an old file every other key with an object or a list is a split.
ABOUT = {"dataset_revision", "mteb_dataset_name", "mteb_version", "task_name", "evaluation_time", "kg_co2_emissions", "date",
         "evaluation_phases", "scores", "query_prefix"}
# Objects inside a split that are families of measures, not subsets.
FAMILIES = {"cos_sim", "cosine", "dot", "dot_score", "euclidean", "manhattan", "max", "similarity"}
META = "model_meta.json"
NOISE = 1e-9  # a correlation computed in floats can be 1.0000000000000002
PLAIN_KEYS = {"model", "unit", "results"}
ENTRY_KEYS = {"task", "measure", "score", "record", "record_model", "rows", "split", "subset", "query_prefix", "revision"}


class Row(NamedTuple):
    """The measures of one split and subset."""

    measures: dict  # an MTEB key such as "ndcg_at_10" -> whatever the file holds
    prefix: str | None  # the query prefix, where the file records it
    place: str  # file and place, for errors


class Result(NamedTuple):
    """What a model's files say about one task."""

    task: str
    revision: str | None  # of the data set
    rows: dict  # (split, subset) -> Row
    path: str


class Model(NamedTuple):
    """A model's results by task name."""

    name: str
    results: dict
    notes: list  # what a reader should know about how they were put together


class Reading(NamedTuple):
    """A measure as read from a row: its value, or why it is missing, or what is wrong with it."""

    value: object = None  # a Fraction
    missing: str | None = None
    problem: str | None = None


class Problem(str):
    """The text of a problem that many results may have; those of one `cause` are told as one by `by_cause`."""

    def __new__(cls, text, cause):
        problem = super().__new__(cls, text)
        problem.cause = cause
        return problem


def cause_of(problem, place):
    """What a problem is but for its place, the values in it and the advice after it."""
    plain = re.sub(r'"(?:[^"\\]|\\.)*"|\d[\d.,]*', "", problem.removeprefix(place))
    return getattr(problem, "cause", None) or re.split("; |, got ", plain)[0]


def by_cause(problems, most=3):
    """Problems with those of one cause as one text, with their number and the first, where there are more than `most`."""
    causes = {}
    for problem in problems:
        causes.setdefault(getattr(problem, "cause", problem), []).append(problem)
    return [text for same in causes.values()
            for text in (same if len(same) <= most else [f"{len(same):,} problems of one kind, the first: {same[0]}"])]


def named(text):
    """A name or key from a file, as errors and notes show it: in quotation marks, on one line, shortened."""
    import json

    text = json.dumps(text, ensure_ascii=False)
    return text if len(text) <= 90 else text[:86] + '..."'


def printable(line):
    """A line of text without the characters that a terminal or page would act on, line ends among them."""
    return line if line.isprintable() else "".join(character if character.isprintable() else "\ufffd" for character in line)


def clean(name):
    """A name from a file as one printable line."""
    return printable(" ".join(name.split())) or "(no name)"


# Measures


def measure_keys(measure):
    """The MTEB keys of a measure: "ndcg@10" is `ndcg_at_10`; "spearman" is that of cosine similarity, under two names."""
    if measure == "spearman":
        return ("cosine_spearman", "cos_sim_spearman")
    return ("main_score",) if measure == "main" else (measure.replace("@", "_at_"),)


def measure_range(measure):
    """The lowest and highest value a measure can take as a fraction."""
    return (-1, 1) if measure == "main" or measure.endswith(("spearman", "pearson", "kendall")) else (0, 1)


def read_measure(row, measure):
    """The Reading of one measure of a Row. A row without the measure, or with a value outside its range, is a problem."""
    key = next((key for key in measure_keys(measure) if key in row.measures), None)
    if key is None:
        return Reading(problem=f"{row.place}: no {measure}; it holds {held_measures(row, measure)}")
    value = row.measures[key]
    if value is None or value != value:
        return Reading(missing="null" if value is None else "NaN")
    if isinstance(value, (bool, str, list, dict)):
        return Reading(problem=f"{row.place}: {key}: number expected, got {quote(value)}")
    low, high = measure_range(measure)
    if not low - NOISE <= value <= high + NOISE:
        return Reading(problem=f"{row.place}: {key}: expected a fraction, got {float_text(value)}, which is outside "
                               f"{low}..{high}; if the file is in percent, divide it by 100")
    return Reading(max(exact(low), min(exact(high), exact(value))))


def float_text(value):
    """A number as an error shows it."""
    return f"{float(value):g}" if abs(value) < 10**300 else "a number too large"


def held_measures(row, wanted):
    """The measures a row holds, those of the wanted kind first, as text for an error."""
    kind = re.split("[@_]", wanted)[-1 if wanted == "spearman" else 0]
    names = sorted((key for key in row.measures if not key.startswith("nauc")), key=lambda key: (kind not in key, key))
    shown = ", ".join(name.replace("_at_", "@") for name in names[:8])
    return (shown or "no measure at all") + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# One file


def parse_result_json(text, name):
    """The value of a result file's JSON. Unlike metrics.parse_json it lets NaN and Infinity stand: MTEB writes them.

    Raises RecordError for text that isn't JSON, for a key that stands twice, and for nesting without end.
    """
    import json

    def unique(pairs):
        members = dict(pairs)
        if len(members) != len(pairs):
            keys = [key for key, _ in pairs]
            raise RecordError(f"{name}: duplicate key {named(next(key for key in keys if keys.count(key) > 1))}; "
                              f"which of the values holds is not known")
        return members

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        what = "it is empty" if not text.strip() else error.msg[0].lower() + error.msg[1:]
        raise RecordError(f"{name}: line {error.lineno} column {error.colno}: not valid JSON: {what}") from None
    except RecursionError:
        raise RecordError(f"{name}: nested too deeply") from None
    except ValueError as error:
        raise error if isinstance(error, RecordError) else RecordError(f"{name}: a number is too large") from None


def read_result(path):
    """(model name or None, [Result]) of one file of any shape. Raises RecordError that names what isn't understood."""
    value = parse_result_json(decode_utf8(read_bytes(path), path), path)
    if not isinstance(value, dict):
        raise RecordError(f"{path}: expected a benchmark result (a JSON object), got {quote(value)}")
    if "results" in value and "task_name" not in value:
        return read_plain(value, path)
    return None, [read_mteb(value, path)]


def read_mteb(value, path):
    """The Result of one MTEB file that is already parsed."""
    names = {value[key] for key in ("task_name", "mteb_dataset_name") if isinstance(value.get(key), str)}
    if len(names) > 1:
        raise RecordError(f"{path}: two task names: {', '.join(sorted(names))}; which one it belongs to is not known")
    scores = value.get("scores")
    if not names and not isinstance(scores, dict):
        raise RecordError(f"{path}: not a benchmark result: expected task_name with \"scores\", or mteb_dataset_name with splits")
    if not isinstance(scores, dict):
        scores = {key: member for key, member in value.items() if key not in ABOUT and isinstance(member, (dict, list))}
    rows = {}
    for split, content in scores.items():
        for subset, row in split_rows(content, f"{path}: {split}", value.get("query_prefix")):
            if (split, subset) in rows:
                raise RecordError(f"{path}: {split}: subset {named(subset)} stands twice; which of the rows holds is not known")
            rows[split, subset] = row
    if not rows:
        raise RecordError(f"{path}: not a benchmark result: no split with scores; expected \"scores\" or splits at top level")
    task = names.pop() if names else os.path.basename(path).removesuffix(".json").split("@")[-1]
    revision = value.get("dataset_revision")
    return Result(clean(task), revision if isinstance(revision, str) else None, rows, path)


def split_rows(content, place, prefix):
    """The (subset, Row) pairs of one split: a list of rows, an object per subset, or the measures themselves."""
    if isinstance(content, list):
        parts = [(row.get("hf_subset", "default") if isinstance(row, dict) else None, row) for row in content]
    elif isinstance(content, dict):
        subsets = {key: member for key, member in content.items() if isinstance(member, dict) and key not in FAMILIES}
        parts = list((subsets or {"default": content}).items())
    else:
        parts = [(None, content)]
    for number, (subset, row) in enumerate(parts):
        if not isinstance(row, dict) or not isinstance(subset, str):
            raise RecordError(f"{place}: row {number}: expected an object with measures and a subset's name, got {quote(row)}")
        own = row.get("query_prefix", prefix)
        yield subset, Row(flatten(row), own if isinstance(own, str) else None, f"{place}: {subset}")


def flatten(row):
    """A row's measures with those of a family under one key each: cos_sim: {spearman: …} becomes cos_sim_spearman."""
    families = {key: member for key, member in row.items() if isinstance(member, dict) and key in FAMILIES}
    if not families:
        return row
    flat = {key: member for key, member in row.items() if key not in families}
    for family, members in families.items():
        flat.update((f"{family}_{name}", member) for name, member in members.items())
    return flat


# Plain files


def read_plain(value, path):
    """(model name, [Result]) of a plain result file that is already parsed; computes the scores it points to."""
    problems = [f"{path}: unknown key {named(key)}; expected {', '.join(sorted(PLAIN_KEYS))}"
                for key in sorted(value.keys() - PLAIN_KEYS)]
    if not isinstance(value.get("model"), str):
        problems.append(f"{path}: model: expected a name, got {quote(value.get('model'))}")
    if value.get("unit") not in ("fraction", "percent"):
        problems.append(f'{path}: unit: expected "fraction" or "percent", got {named(value.get("unit"))}; they are never guessed')
    if not isinstance(value["results"], list) or not value["results"]:
        problems.append(f"{path}: results: expected a list of results, got {quote(value['results'])}")
    if problems:
        raise RecordError(problems)
    results = {}
    for number, entry in enumerate(value["results"]):
        try:
            add_entry(results, entry, value["unit"], f"{path}: results[{number}]")
        except RecordError as error:
            problems += error.problems
    given = [entry["score"] for entry in value["results"] if isinstance(entry, dict) and is_number(entry.get("score"))]
    if value["unit"] == "percent" and len(given) > 1 and any(given) and all(abs(score) <= 1 for score in given):
        problems.append(f'{path}: unit says percent, but none of {len(given)} scores is over 1; say "unit": "fraction"')
    if problems:
        raise RecordError(problems)
    small = [score for score in given if 0 < abs(score) <= 1]
    if value["unit"] == "percent" and small:
        print(f"note: {path}: in percent, with scores of at most 1 among larger ones ({', '.join(map(str, small[:5]))}): "
              "is that a fraction?", file=sys.stderr)
    return clean(value["model"]), list(results.values())


def is_number(value):
    """True for a JSON number (NaN and Infinity among them)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def add_entry(results, entry, unit, place):
    """Add one entry of a plain file to the Results by task. Raises RecordError for a bad or repeated entry."""
    check_entry(entry, place)
    task, measure, where = entry["task"], entry["measure"], (entry.get("split", "test"), entry.get("subset", "default"))
    place = f"{place} ({task}, {measure})"
    value = entry_score(entry, unit, place)
    result = results.setdefault(task, Result(task, entry.get("revision"), {}, place.split(": results[")[0]))
    row = result.rows.setdefault(where, Row({}, entry.get("query_prefix"), place))
    key = measure_keys(measure)[0]
    if key in row.measures:
        raise RecordError(f"{place}: a second {measure} of this task, split and subset; the first is at {row.place}")
    row.measures[key] = value


def check_entry(entry, place):
    """Raise RecordError unless an entry of a plain file has what it needs and nothing unknown."""
    if not isinstance(entry, dict):
        raise RecordError(f"{place}: expected an object, got {quote(entry)}")
    problems = [f"{place}: unknown key {named(key)}; expected some of {', '.join(sorted(ENTRY_KEYS))}"
                for key in sorted(entry.keys() - ENTRY_KEYS)]
    texts = ENTRY_KEYS - {"score"}
    problems += [f"{place}: {key}: expected text, got {quote(entry[key])}"
                 for key in sorted(texts & entry.keys()) if not isinstance(entry[key], str)]
    problems += [f"{place}: {key} is missing" for key in ("task", "measure") if key not in entry]
    if len({"score", "record", "rows"} & entry.keys()) != 1:
        problems.append(f'{place}: expected one of "score", "record" and "rows"')
    if problems:
        raise RecordError(problems)


def entry_score(entry, unit, place):
    """The score of an entry as a fraction: given, or nDCG@k (and the like) from a record, or Spearman from STS rows.

    Files are found beside the result file. None and NaN stay what they are: the score is missing.
    """
    folder = os.path.dirname(place.split(": results[")[0])
    if "record" in entry:
        return record_score(os.path.join(folder, entry["record"]), entry.get("record_model"), entry["measure"], place)
    if "rows" in entry:
        return rows_score(os.path.join(folder, entry["rows"]), entry["measure"], place)
    value = entry["score"]
    if value is None or value != value:
        return value
    if not is_number(value):
        raise RecordError(f"{place}: number expected, got {quote(value)}")
    low, high = measure_range(entry["measure"])
    scale = 100 if unit == "percent" else 1
    if not low * scale <= value <= high * scale:
        raise RecordError(f"{place}: expected a {unit}, got {float_text(value)}, which is outside {low * scale}..{high * scale}; "
                          f"\"unit\" says which it is")
    return exact(value) / scale


def record_score(path, model, measure, place):
    """A measure such as "ndcg@10" of a record's panel, computed by metrics.py."""
    from metrics import load_record, summarize_panel

    panel = load_record(path).blocks.get("")
    if not hasattr(panel, "rankings"):
        raise RecordError(f"{place}: {path} is not a single panel; point to a record that is one")
    if model is None and len(panel.models) == 1:
        model = next(iter(panel.models))
    name, _, cutoff = measure.partition("@")
    values = summarize_panel(panel)["models"].get(model)
    if values is None:
        raise RecordError(f"{place}: record_model: expected one of {', '.join(panel.models)}, got {named(model)}")
    if not isinstance(values.get(name), dict) or cutoff not in values[name]:
        raise RecordError(f"{place}: {path} has no {measure}; its cutoffs are {', '.join(map(str, panel.cutoffs))}")
    return values[name][cutoff]


def rows_score(path, measure, place):
    """The pooled Spearman correlation of a file of STS rows. Raises RecordError where it is undefined."""
    from harness.spearman import correlate, read_rows

    if measure != "spearman":
        raise RecordError(f"{place}: STS rows give the measure spearman, not {named(measure)}")
    correlation = correlate(read_rows(path), path)
    if correlation.value is None:
        raise RecordError(f"{place}: undefined: {correlation.reason}")
    return correlation.value


# Folders


def result_files(path):
    """The result files under a path, sorted, each once: a file itself, or every .json below a folder.

    Links are followed, but no folder is entered twice, so links in a circle end. Raises RecordError for what can't be read.
    """
    if not os.path.isdir(path):
        return [path]
    found, waiting, seen = [], [path], set()
    while waiting:
        folder = waiting.pop()
        try:
            identity = os.stat(folder)
            if (identity.st_dev, identity.st_ino) in seen:
                continue
            seen.add((identity.st_dev, identity.st_ino))
            names = sorted(os.listdir(folder))
        except OSError as error:
            raise RecordError(f"{folder}: cannot be read: {error.strerror}") from None
        for name in names:
            member = os.path.join(folder, name)
            if os.path.isdir(member) and not name.startswith("."):
                waiting.append(member)
            elif name.endswith(".json") and not name.endswith(META) and not name.startswith("."):
                found.append(member)
    return sorted(found)


def read_models(paths, merge=False):
    """The Models in files and folders, in the order found. One folder with result files is one model.

    `merge` joins the revisions of a model into one. Raises RecordError that lists every file that isn't understood, every
    task that a model has twice, and every name that two models share.
    """
    from harness.files import Progress

    files = [(root, path) for root in map(str, paths) for path in result_files(root)]
    if not files:
        raise RecordError(f"{', '.join(map(str, paths))}: no result files; expected MTEB or plain result JSON in it")
    named, models, problems = {}, {}, []
    with Progress(len(files), "files") as progress:
        for root, path in files:
            try:
                model, results = read_result(path)
                source, name = (f"{os.path.dirname(path) or '.'}: {model}", model) if model else \
                    source_and_name(root, path, named, merge)
                add_results(models.setdefault(name, {}), source, results, merge, name)
            except RecordError as error:
                problems += [Problem(problem, cause_of(problem, path)) for problem in error.problems]
            progress.step()
    if problems:
        raise RecordError(by_cause(problems))
    return [as_model(name, sources) for name, sources in models.items()]


def add_results(sources, source, results, merge, name):
    """Add a file's results to a model's {source folder: {task: Result}}; a task that is there already is a RecordError."""
    if sources and source not in sources and not merge:
        raise RecordError(f"{results[0].path}: a second model named {named(name)}; the first is in {next(iter(sources))}; "
                          f"rename one, or join revisions with --merge-revisions")
    for result in results:
        for tasks in sources.values():
            if result.task in tasks:
                other = tasks[result.task]
                raise RecordError([Problem(
                    f"{result.path}: {name}: a second result for {result.task} (data revision {result.revision}); "
                    f"the first is {other.path} (data revision {other.revision}); keep one of them", f"a second result of {name}")])
        sources.setdefault(source, {})[result.task] = result


def as_model(name, sources):
    """A Model from its {source folder: {task: Result}}."""
    notes = [f"{name} is joined from {len(sources)} folders: " + "; ".join(
        f"{source} ({len(tasks)} tasks)" for source, tasks in sources.items())] if len(sources) > 1 else []
    return Model(name, {task: result for tasks in sources.values() for task, result in tasks.items()}, notes)


def source_and_name(root, path, named, merge):
    """(source, model name) of an MTEB file: by its own name MODEL@REVISION@TASK.json, else by its folder; `named` remembers."""
    folder, base = os.path.split(path)
    parts = base.removesuffix(".json").split("@")
    if len(parts) == 3 and all(parts):
        return f"{folder}: {parts[0]}@{parts[1]}", model_name(parts[0], parts[1], merge)
    if folder not in named:
        named[folder] = folder_name(root, folder, merge)
    return folder, named[folder]


def folder_name(root, folder, merge):
    """The model name of a folder: from its model_meta.json, else from its path below the folder that was asked for."""
    meta = os.path.join(folder, META)
    value = parse_result_json(decode_utf8(read_bytes(meta), meta), meta) if os.path.exists(meta) else {}
    if isinstance(value, dict) and isinstance(value.get("name"), str) and value["name"]:
        settings = value.get("experiment_kwargs")
        settings = settings if isinstance(settings, dict) else {}
        suffix = " " + clean("(" + ", ".join(f"{key}={settings[key]}" for key in settings) + ")") if settings else ""
        return model_name(value["name"], value.get("revision"), merge) + suffix
    relative = os.path.relpath(folder, root if os.path.isdir(root) else folder)
    if relative == ".":
        return model_name(os.path.basename(os.path.abspath(folder)), None, merge)
    first, *rest = relative.split(os.sep)
    return model_name(first, "@".join(rest), merge)


def model_name(name, revision, merge):
    """A model's name with its revision, a commit shortened to 7 digits: jinaai/jina-embeddings-v4@2623988."""
    name = clean(name).replace("__", "/")
    if merge or not isinstance(revision, str) or not revision:
        return name
    return f"{name}@{revision[:7] if re.fullmatch('[0-9a-f]{40}', revision) else clean(revision)}"
