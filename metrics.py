"""Recomputes every number of a retrieval evaluation from its record, and checks it against the published summary.

    python metrics.py --directory .          check the summaries in ./records (or in . itself)
    python metrics.py --directory . --write  write them

What is here, in this order:

    files        read_json, write_whole, run_command     strict JSON in, whole files out, errors without tracebacks
    records      load_record -> Panel, Table, Checks     validation in one place; RecordError lists every problem
    metrics      hit, precision, recall, ndcg, mrr       each a ratio of per-query sums
    statistics   interval, compare, holm                 Student's t on per-query influences
    summaries    summarize, differences                  what a summary holds, and where a stored one differs
    screen       tables, explain, main                   the command line

A record holds ranked relevance grades and no texts; records/README.md describes the format. This file imports only the
standard library and works when it is copied alone beside somebody's records.
"""

import os
import sys
from collections import namedtuple
from itertools import compress
from math import exp, fsum, inf, isfinite, lgamma, log, log1p, log2, pi, sqrt
from operator import and_, gt, lt, sub, truediv

FORMAT = 1
EXCLUDED = 255  # the byte of an excluded position in a ranking
MAX_GRADE = 100  # 2^100 - 1 is still an exact float; a larger grade is a mistake
MAX_BYTES = 128 * 2**20  # the largest file that is read: parsed JSON takes about ten times its size in memory


# Files and errors


class RecordError(ValueError):
    """Bad input. `problems` lists every problem as text: file, place, what was expected, what was found."""

    def __init__(self, problems):
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class _Refused:
    """Stands in a parsed JSON value for something that strict JSON does not allow, until its place is known."""

    def __init__(self, why):
        self.why = why


def quote(value):
    """A value as an error shows it: JSON text of at most 60 characters."""
    import json

    text = value.why if isinstance(value, _Refused) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def read_bytes(path):
    """The bytes of a file of at most MAX_BYTES. Raises RecordError for what cannot be read."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise RecordError(f"{path}: the size is over the limit of {MAX_BYTES:,} bytes; split the record")
    return content


def decode_utf8(content, name):
    """Bytes as text, without a byte-order mark. Raises RecordError that names the first byte that is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise RecordError(f"{name}: not UTF-8: byte 0x{byte:02x} at offset {error.start}; save it as UTF-8") from None


def parse_json(text, name):
    """The value of a JSON text. Stricter than the json module: no NaN or Infinity, no number out of range, no key twice.

    Raises RecordError with line and column, or with the place inside the value.
    """
    import json

    refused = []

    def refuse(why):
        refused.append(_Refused(why))
        return refused[-1]

    def finite(digits):
        number = float(digits)
        return number if isfinite(number) else refuse(f"expected a finite number, got {quote(digits)[1:-1]}")

    def unique(pairs):
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        keys = [key for key, _ in pairs]
        return refuse(f"duplicate key {quote(next(key for key in keys if keys.count(key) > 1))}")

    def integer(digits):  # only used after int() has refused a number of thousands of digits
        return int(digits) if len(digits) < 400 else refuse(f"the number {digits[:12]}... is too large")

    hooks = {"object_pairs_hook": unique, "parse_float": finite,
             "parse_constant": lambda word: refuse(f"{word} is not valid JSON")}
    try:
        try:
            value = json.loads(text, **hooks)
        except json.JSONDecodeError as error:
            what = "it is empty" if not text.strip() else error.msg[0].lower() + error.msg[1:]
            place = f"line {error.lineno} column {error.colno}"
            raise RecordError(f"{name}: {place}: not valid JSON: {what}") from None
        except ValueError:
            value = json.loads(text, parse_int=integer, **hooks)
    except RecursionError:
        raise RecordError(f"{name}: nested too deeply") from None
    if refused:
        raise RecordError([f"{name}: {place}: {item.why}" for place, item in _refusals(value, "")])
    return value


def _at(place, key):
    """The place of a member: a.b, or a[3] for a number."""
    step = f"[{key}]" if isinstance(key, int) else str(key)
    return step if not place else place + step if isinstance(key, int) else f"{place}.{step}"


def _refusals(value, place):
    """Every (place, _Refused) inside a parsed value."""
    if isinstance(value, _Refused):
        yield place or "top level", value
    elif isinstance(value, (dict, list)):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _refusals(member, _at(place, key))


def read_json(path):
    """(value, SHA-256 of the bytes) of a JSON file, read strictly as parse_json does. Raises RecordError."""
    from hashlib import sha256

    content = read_bytes(path)
    return parse_json(decode_utf8(content, path), path), sha256(content).hexdigest()


def dump_json(value):
    """A value as JSON text, always the same bytes: members in their order, two spaces, LF at the end."""
    import json

    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def write_whole(path, text):
    """Write a text file whole or not at all: to a temporary file beside it, flushed, then renamed over it."""
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise RecordError(f"{path}: cannot be written: {error.strerror}; the old file is as it was") from None


def run_command(body):
    """Run a command and return its exit status, 2 for bad input and 130 for Ctrl-C; problems go to stderr, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to stop
    try:
        status = body()
        sys.stdout.flush()
        return status
    except RecordError as error:
        shown = error.problems[:20]
        hidden = len(error.problems) - len(shown)
        return _stop([f"error: {problem}" for problem in shown] + [f"and {hidden:,} more problems"] * (hidden > 0), 2)
    except BrokenPipeError:
        return _stop([], 141)
    except OSError as error:
        return _stop([f"error: {error.filename or 'output'}: {error.strerror or error}"], 2)
    except (MemoryError, RecursionError) as error:
        return _stop([f"error: the input is too large ({type(error).__name__})"], 2)
    except KeyboardInterrupt:
        return _stop(["interrupted"], 130)


def _stop(lines, status):
    """Say why on stderr and leave nothing for the interpreter to flush into a closed or full output."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    for line in lines:
        print(line, file=sys.stderr)
    return status


# Records: from JSON to checked, immutable values

Record = namedtuple("Record", "name sha256 blocks warnings")
Panel = namedtuple("Panel", "place models depth cutoffs max_grade useful gain gains comparisons tolerance"
                            " ids types counts rankings selected reasons")
Table = namedtuple("Table", "place measure models comparisons datasets")  # datasets: {name: (queries, {model: scores})}
Checks = namedtuple("Checks", "place checks")  # checks: {name: (values, direction, threshold)}

PANEL_KEYS = {"about", "models", "depth", "cutoffs", "grades", "reference", "comparisons", "tolerance", "queries"}
QUERY_KEYS = {"id", "type", "reference_grade_counts", "rankings", "selected"}


def load_record(path):
    """The record in a file. Raises RecordError that lists every problem."""
    value, sha256 = read_json(path)
    return parse_record(value, os.fspath(path), sha256)


def parse_record(value, name, sha256=""):
    """The record in a parsed JSON value. Raises RecordError that lists every problem, each with its place."""
    problems, warnings, blocks = [], [], {}
    if not isinstance(value, dict):
        raise RecordError(f"{name}: top level: expected an object, got {_kind(value)}")
    for place, block in find_blocks(value):
        read = _read_panel if _is_panel(block) else _read_checks if "checks" in block else _read_table
        blocks[place] = read(block, place, problems, warnings)
    if not blocks:
        problems.append("no panel, public table or checks; expected at least one of them")
    if problems:
        raise RecordError([f"{name}: {problem}" for problem in problems])
    return Record(os.path.basename(name), sha256, blocks, [f"{name}: {warning}" for warning in warnings])


def find_blocks(value, place=""):
    """The (place, object) of every block in a record: panels, public tables, checks. Any other object is a section."""
    if _is_panel(value) or value.keys() & {"datasets", "measure", "checks"}:
        yield place, value
    else:
        for key, member in value.items():
            if isinstance(member, dict):
                yield from find_blocks(member, _at(place, key))


def _is_panel(value):
    return isinstance(value.get("queries"), list) or len(value.keys() & {"queries", "models", "cutoffs"}) > 1


def _kind(value):
    """The JSON name of a value's type, with the value where it is short."""
    for kind, name in ((bool, ""), (dict, "an object"), (list, "a list"), (str, "the string "), ((int, float), "the number ")):
        if isinstance(value, kind):
            return name + quote(value) if not isinstance(value, (dict, list)) else name
    return "null"


def _members(value, place, problems):
    """The object, or an empty one after noting that it is none."""
    if isinstance(value, dict):
        return value
    problems.append(f"{place}: expected an object, got {_kind(value)}")
    return {}


def _warn_unknown(value, known, place, warnings):
    warnings += [f"{_at(place, key)}: unknown key, not used; expected one of: {', '.join(sorted(known))}"
                 for key in value if key not in known]


def _is_count(value):
    return type(value) is int and value >= 0


def _name_problem(text):
    """What is wrong with an id or a name, or None. Control characters and lone surrogates break reports and files."""
    if not isinstance(text, str):
        return f"expected a string, got {_kind(text)}"
    if not text.strip():
        return "expected an id, got an empty string"
    if not text.isprintable():
        for character in text:
            if character < " " or character == "\x7f":
                return f"a control character U+{ord(character):04X} in {quote(text)}"
            if "\ud800" <= character <= "\udfff":
                return f"a lone surrogate U+{ord(character):04X} in {ascii(text)}"
    return None


def _check_names(names, place, problems):
    problems += [f"{place}: {problem}" for name in names if (problem := _name_problem(name))]


def _is_sorted_counts(values):
    return (isinstance(values, list) and values and all(type(k) is int and k >= 1 for k in values)
            and all(map(lt, values, values[1:])))


def _read_scale(value, place, problems):
    """(max grade, useful grade, gain name) of a panel's `grades`."""
    grades = _members(value, place, problems)
    top, useful, gain = grades.get("max", 3), grades.get("useful", min(2, grades.get("max", 3)) if "max" in grades else 2), grades.get("gain", "exponential")
    if not (type(top) is int and 1 <= top <= MAX_GRADE):
        problems.append(f"{_at(place, 'max')}: expected an integer 1 to {MAX_GRADE}, got {quote(top)}")
        top = 3
    if not (type(useful) is int and 1 <= useful <= top):
        problems.append(f"{_at(place, 'useful')}: expected an integer 1 to {top}, got {quote(useful)}")
        useful = 1
    if gain not in ("exponential", "linear"):
        problems.append(f'{_at(place, "gain")}: expected "exponential" or "linear", got {quote(gain)}')
        gain = "linear"
    return top, useful, gain


def _read_comparisons(value, models, place, problems):
    """The (base, candidate) pairs: the declared ones, or the first model against each other one."""
    names = list(models)
    if value is None:
        return tuple((names[0], other) for other in names[1:])
    if not isinstance(value, list):
        problems.append(f"{place}: expected a list of [base, candidate] pairs, got {_kind(value)}")
        return ()
    pairs = []
    for index, pair in enumerate(value):
        if not (isinstance(pair, list) and len(pair) == 2 and pair[0] != pair[1] and all(model in names for model in pair)):
            known = ", ".join(map(quote, names))
            problems.append(f"{place}[{index}]: expected two different models of {known}, got {quote(pair)}")
        elif tuple(pair) in pairs:
            problems.append(f"{place}[{index}]: {quote(pair)} is there already")
        else:
            pairs.append(tuple(pair))
    return tuple(pairs)


def _read_panel(value, place, problems, warnings):
    """A Panel, after noting every problem of the object."""
    _warn_unknown(value, PANEL_KEYS, place, warnings)
    before = len(problems)
    for key in ("models", "cutoffs", "queries"):
        if key not in value:
            problems.append(f"{_at(place, key)}: missing")
    models = _members(value.get("models", {}), _at(place, "models"), problems)
    _check_names(models, _at(place, "models"), problems)
    if not models and "models" in value:
        problems.append(f"{_at(place, 'models')}: no models; expected at least one")
    for model, identity in models.items():
        _members(identity, _at(_at(place, "models"), model), problems)
    depth, cutoffs, tolerance = value.get("depth"), value.get("cutoffs", [1]), value.get("tolerance")
    if "depth" in value and not (_is_count(depth) and depth >= 1):
        problems.append(f"{_at(place, 'depth')}: expected an integer of at least 1, got {quote(depth)}")
        depth = None
    if not _is_sorted_counts(cutoffs):
        problems.append(f"{_at(place, 'cutoffs')}: expected increasing integers, each at least 1, got {quote(cutoffs)}")
    elif depth and cutoffs[-1] > depth:
        problems.append(f"{_at(place, 'cutoffs')}: cutoff {cutoffs[-1]} is beyond the depth of {depth}")
    if "tolerance" in value and not (_is_score(tolerance) and tolerance > 0):
        problems.append(f"{_at(place, 'tolerance')}: expected a number above 0 and at most 1, got {quote(tolerance)}")
    scale = _read_scale(value.get("grades", {}), _at(place, "grades"), problems)
    comparisons = _read_comparisons(value.get("comparisons"), models, _at(place, "comparisons"), problems) if models else ()
    if len(problems) > before:
        return None
    queries = _Queries(models, depth, scale[0], place, problems, warnings)
    queries.read(value["queries"])
    if len(problems) > before:
        return None
    panel = Panel(place, models, depth, tuple(cutoffs), *scale, gain_table(scale[2], scale[0]), comparisons, tolerance,
                  *queries.columns())
    _check_declared(value.get("reference", {}), panel, queries.graded_pairs, _at(place, "reference"), problems, warnings)
    return panel


class _Queries:
    """Reads a panel's queries into columns: ids, types, counts, rankings, selected, reasons."""

    def __init__(self, models, depth, top, place, problems, warnings):
        self.models, self.depth, self.top, self.place = models, depth or inf, top, place
        self.problems, self.warnings = problems, warnings
        self.grades = bytes(range(top + 1))
        self.places, self.types, self.counts, self.selected, self.reasons = {}, [], [], [], {}
        self.rankings = {model: [] for model in models}
        self.graded_pairs = 0
        self.expected = f"expected a grade 0 to {top} (an integer) or an excluded position"

    def read(self, queries):
        """Read every query; problems are noted, with the query's id."""
        where = _at(self.place, "queries")
        if not isinstance(queries, list) or not queries:
            got = "an empty list: no records to score" if queries == [] else _kind(queries)
            self.problems.append(f"{where}: expected a list of queries, got {got}")
            return
        for index, query in enumerate(queries):
            self.read_query(query, _at(where, index))
        if self.problems:
            return
        for what, column in (("type", self.types), ("selected", self.selected)):
            missing = column.count(None)
            if 0 < missing < len(column):
                first = _at(_at(where, column.index(None)), what)
                self.problems.append(f"{first}: missing here and in {missing:,} of {len(column):,} queries;"
                                     " expected in every query or in none")

    def read_query(self, query, place):
        """Read one query into the columns."""
        query = _members(query, place, self.problems)
        if not query.keys() <= QUERY_KEYS:
            _warn_unknown(query, QUERY_KEYS, place, self.warnings)
        missing = [key for key in ("id", "reference_grade_counts", "rankings") if key not in query]
        name = f' (query {quote(query["id"])})' if "id" in query else ""
        self.problems += [f"{_at(place, key)}: missing{name}" for key in missing]
        if missing:
            return
        self.read_id(query["id"], place)
        kind = query.get("type")
        if "type" in query and (problem := _name_problem(kind)):
            self.problems.append(f"{_at(place, 'type')}: {problem}{name}")
        self.types.append(kind)
        counts = self.read_counts(query["reference_grade_counts"], _at(place, "reference_grade_counts"), name)
        self.counts.append(counts)
        rankings = _members(query["rankings"], _at(place, "rankings"), self.problems)
        if rankings.keys() != self.models.keys():
            self.problems += [f"{_at(place, 'rankings')}: no ranking of model {quote(model)}{name}"
                              for model in self.models if model not in rankings]
            self.problems += [f"{_at(place, 'rankings')}: {quote(model)} is no model of this panel{name}"
                              for model in rankings if model not in self.models]
            return
        for model, ranking in rankings.items():
            self.rankings[model].append(self.read_ranking(ranking, model, counts, place, name))
        self.selected.append(self.read_selected(query["selected"], place, name) if "selected" in query else None)

    def read_id(self, name, place):
        if problem := _name_problem(name):
            self.problems.append(f"{_at(place, 'id')}: {problem}")
        elif name in self.places:
            self.problems.append(f"{_at(place, 'id')}: duplicate query id {quote(name)}, also at {self.places[name]}")
        else:
            self.places[name] = place
            if name != name.strip():
                self.warnings.append(f"{_at(place, 'id')}: a space at the edge of {quote(name)}; ids are compared as they are")

    def read_counts(self, counts, place, name):
        """How many passages of the reference carry each grade: a tuple indexed by grade; -1 for grade 0 where it is left out."""
        found = [-1] + [0] * self.top
        for key, count in _members(counts, place, self.problems).items():
            grade = int(key) if key.isascii() and key.isdigit() and len(key) < 4 else -1
            if str(grade) != key or grade > self.top:
                self.problems.append(f'{place}: expected grades 0..{self.top} as "0" to "{self.top}", got {quote(key)}{name}')
            elif not _is_count(count):
                self.problems.append(f"{_at(place, key)}: expected an integer of at least 0, got {quote(count)}{name}")
            else:
                found[grade] = count
                self.graded_pairs += count
        return tuple(found)

    def read_ranking(self, ranking, model, counts, place, name):
        """A ranking as bytes: a grade each, or EXCLUDED."""
        place = f"{_at(place, 'rankings')}.{model}"
        if not isinstance(ranking, list):
            self.problems.append(f"{place}: expected a list of positions, got {_kind(ranking)}{name}")
            return b""
        if len(ranking) > self.depth:
            self.problems.append(f"{place}: {len(ranking)} positions, over the depth of {self.depth}{name}")
        try:
            packed = bytes(ranking)
        except (TypeError, ValueError):
            packed = None
        # bytes() takes true for 1, so the types are looked at too
        if packed is None or packed.translate(None, self.grades) or not set(map(type, ranking)) <= {int}:
            packed = self.read_positions(ranking, model, place, name)
        for grade, count in enumerate(counts):
            if packed.count(grade) > count >= 0:
                self.problems.append(f"{place}: grade {grade}: {packed.count(grade)} ranked, but {count} in reference_grade_counts{name}")
        return packed

    def read_positions(self, ranking, model, place, name):
        """The slow way, for a ranking with excluded positions or problems."""
        packed = bytearray()
        for index, position in enumerate(ranking):
            if type(position) is int and 0 <= position <= self.top:
                packed.append(position)
            elif problem := _excluded_problem(position):
                rank = f"{name[:-1]}, rank {index + 1})"
                self.problems.append(f"{place}[{index}]: {self.expected}, got {quote(position)}{problem}{rank}")
            else:
                packed.append(EXCLUDED)
                self.reasons[model, len(self.counts) - 1, index] = position.get("reason")
        return bytes(packed)

    def read_selected(self, selected, place, name):
        """{model: number of leading positions the pipeline would return}."""
        place = _at(place, "selected")
        for model in _members(selected, place, self.problems).keys() | self.models.keys():
            length = len(self.rankings[model][-1]) if model in self.models else 0
            if not (_is_count(selected.get(model)) and selected[model] <= length):
                got = quote(selected[model]) if model in selected else "nothing"
                self.problems.append(f"{_at(place, model)}: expected an integer 0 to {length}, got {got}{name}")
        return selected

    def columns(self):
        typed, selected = self.types[0] is not None, self.selected[0] is not None
        return (tuple(self.places), tuple(self.types) if typed else None, tuple(self.counts),
                {model: tuple(column) for model, column in self.rankings.items()},
                {model: tuple(row[model] for row in self.selected) for model in self.models} if selected else None, self.reasons)


def _excluded_problem(position):
    """Why a position is not {"grade": null, "excluded": true, "reason": …}, or None."""
    if not isinstance(position, dict):
        return '; an excluded position is {"grade": null, "excluded": true}' if position is None else ""
    if "grade" not in position:
        return "; grade is missing"
    if "excluded" in position and not isinstance(position["excluded"], bool):
        return f"; excluded: expected true or false, got {quote(position['excluded'])}"
    if position["grade"] is not None:
        return f"; excluded beside grade {quote(position['grade'])}" if position.get("excluded") else "; write the grade alone"
    if not position.get("excluded"):
        return "; grade null needs excluded true"
    if not isinstance(position.get("reason", ""), str):
        return f"; reason: expected a string, got {quote(position['reason'])}"
    unknown = position.keys() - {"grade", "excluded", "reason"}
    return f"; unknown key {quote(min(unknown))}" if unknown else None


def _check_declared(declared, panel, graded_pairs, place, problems, warnings):
    """Compare the counts that a panel declares with the counts that it holds."""
    held = {"queries": len(panel.ids), "graded_pairs": graded_pairs,
            "excluded_positions": {model: sum(map(lambda r: r.count(EXCLUDED), panel.rankings[model])) for model in panel.models}}
    declared = _members(declared, place, problems)
    _warn_unknown(declared, held, place, warnings)
    for key in held.keys() & declared.keys():
        if declared[key] != held[key] or isinstance(declared[key], bool):
            problems.append(f"{_at(place, key)}: {quote(declared[key])} declared, but the file holds {quote(held[key])}")


def _is_score(value):
    return type(value) in (int, float) and 0 <= value <= 1


def _read_table(value, place, problems, warnings):
    """A Table of per-query scores by data set and model."""
    _warn_unknown(value, {"about", "measure", "models", "comparisons", "datasets"}, place, warnings)
    if problem := _name_problem(value.get("measure")):
        problems.append(f"{_at(place, 'measure')}: {problem}")
    names = dict(_members(value.get("models", {}), _at(place, "models"), problems))
    datasets = {}
    where = _at(place, "datasets")
    for dataset, block in _members(value.get("datasets"), where, problems).items():
        at = _at(where, dataset)
        block = _members(block, at, problems)
        scores = _members(block.get("scores"), _at(at, "scores"), problems)
        names.update((model, None) for model in scores if model not in names)
        for model, column in scores.items():
            _check_scores(column, block.get("queries"), _at(_at(at, "scores"), model), problems)
        if not (_is_count(block.get("queries")) and block["queries"]):
            problems.append(f"{_at(at, 'queries')}: expected the number of queries, got {quote(block.get('queries'))}")
        datasets[dataset] = (block.get("queries"), scores)
    _check_names([*datasets, *names], where, problems)
    if not names:
        problems.append(f"{where}: no scores; expected at least one data set with a model")
    comparisons = _read_comparisons(value.get("comparisons"), names, _at(place, "comparisons"), problems) if names else ()
    return Table(place, value.get("measure"), tuple(names), comparisons, datasets)


def _check_scores(column, queries, place, problems):
    """One score per query, each a number from 0 to 1."""
    if not isinstance(column, list):
        problems.append(f"{place}: expected a list of scores, got {_kind(column)}")
        return
    if _is_count(queries) and len(column) != queries:
        problems.append(f"{place}: {len(column)} scores, but {queries} queries declared")
    for index, score in enumerate(column):
        if not _is_score(score):
            problems.append(f"{place}[{index}]: expected a number 0 to 1, got {quote(score)}: outside 0..1")


def _read_checks(value, place, problems, warnings):
    """Checks: measured values against a threshold each."""
    _warn_unknown(value, {"about", "checks"}, place, warnings)
    checks = {}
    where = _at(place, "checks")
    for name, check in _members(value["checks"], where, problems).items():
        at = _at(where, name)
        check = _members(check, at, problems)
        directions = [key for key in ("at_least", "at_most") if key in check]
        values = check.get("values", [check.get("value")])
        numbers = isinstance(values, list) and values and all(type(v) in (int, float) for v in values)
        if not numbers or ("value" in check) == ("values" in check):
            problems.append(f"{at}: expected a number as value, or a list of numbers as values, got {quote(values)}")
        elif len(directions) != 1 or type(check[directions[0]]) not in (int, float):
            problems.append(f"{at}: expected one threshold, a number as at_least or at_most, got {quote(check)}")
        else:
            checks[name] = (tuple(values), directions[0], check[directions[0]])
            passed = check_verdict(*checks[name])["passed"]
            if check.get("passed", passed) is not passed:
                problems.append(f"{_at(at, 'passed')}: {quote(check['passed'])} declared, but its values give {quote(passed)}")
    _check_names(checks, where, problems)
    if not value["checks"]:
        problems.append(f"{where}: no checks; expected at least one")
    return Checks(place, checks)


# Metrics: each gives, over all queries, the numerators and denominators of a ratio

# What a model shows of each query at one cutoff: the retained grades (cut first, then excluded positions dropped) and how many of
# them are useful; and what the reference knows: the number of useful passages, and the ideal DCG.
Cut = namedtuple("Cut", "retained useful known ideal useless gains")
LOG2_RANK = [log2(rank + 1) for rank in range(1, 1001)]


def gain_table(gain, max_grade):
    """The gain of each grade 0 to max_grade: the grade itself (linear) or 2^grade - 1 (exponential; Burges et al. 2005)."""
    return tuple(2**grade - 1 if gain == "exponential" else grade for grade in range(max_grade + 1))


def dcg(grades, gains):
    """Discounted cumulative gain of retained grades (bytes), rank 1 first: the sum of gain / log2(rank + 1), correctly rounded.

    Järvelin and Kekäläinen 2002, with the discount from rank 1 on.

    >>> dcg(bytes([3, 0, 1]), gain_table("exponential", 3))  # 7 / 1 + 0 + 1 / 2
    7.5
    """
    while len(grades) > len(LOG2_RANK):
        LOG2_RANK.append(log2(len(LOG2_RANK) + 2))
    return fsum(map(truediv, map(gains.__getitem__, grades), LOG2_RANK))


def ideal_grades(counts, k):
    """The k best grades of a reference, best first, as bytes; counts[grade] passages carry each grade.

    >>> list(ideal_grades((84, 2, 0, 1), 5))  # grade 0 gains nothing and is left out
    [3, 1, 1]
    """
    best = b""
    for grade in range(len(counts) - 1, 0, -1):
        best += bytes((grade,)) * min(counts[grade], k - len(best))
    return best


def hit(cut):
    """Hit: 1 for a query with a useful passage among the retained positions, over 1.

    Retained [0, 2, 3] and [1], useful from 2: (1 + 0) / (1 + 1) = 0.5.
    """
    return [1 if useful else 0 for useful in cut.useful], [1] * len(cut.useful)


def precision(cut):
    """Pooled precision: useful retained positions over retained positions.

    Retained [0, 2, 3] and [1], useful from 2: (2 + 0) / (3 + 1) = 0.5, where the mean of the two would be 1/3.
    """
    return cut.useful, list(map(len, cut.retained))


def recall(cut):
    """Recall: the share of the known useful passages that is found, over 1; 0 over 0 for a query that has none.

    2 of 4 found, 1 of 1 found, and a query without useful passages: (2/4 + 1/1 + 0) / (1 + 1 + 0) = 0.75.
    """
    return ([useful / known if known else 0 for useful, known in zip(cut.useful, cut.known)],
            [1 if known else 0 for known in cut.known])


def ndcg(cut):
    """nDCG: DCG over the ideal DCG of the k best grades in the reference, over 1; 0 where the reference has no gain.

    Retained [0, 3] at k = 2 of a reference with one 3 and one 1, exponential: (7 / log2 3) / (7 + 1 / log2 3) = 0.578766.
    """
    known = {}  # most queries share their grades at small k, once the zeros at the end are gone
    for grades in cut.retained:
        grades = grades.rstrip(b"\0")
        if grades not in known:
            known[grades] = dcg(grades, cut.gains)
    return ([known[grades.rstrip(b"\0")] / ideal if ideal else 0.0 for grades, ideal in zip(cut.retained, cut.ideal)],
            [1] * len(cut.ideal))


def mrr(cut):
    """MRR: one over the rank, among the retained positions, of the first useful one, over 1; 0 without one.

    Retained [0, 2, 3] and [1], useful from 2: (1/2 + 0) / (1 + 1) = 0.25.
    """
    useless = cut.useless
    return ([1 / (len(grades) - len(grades.lstrip(useless)) + 1) if useful else 0.0
             for grades, useful in zip(cut.retained, cut.useful)], [1] * len(cut.useful))


METRICS = {"hit": hit, "precision": precision, "recall": recall, "ndcg": ndcg, "mrr": mrr}
TITLES = {"hit": "Hit", "precision": "Precision", "recall": "Recall", "ndcg": "nDCG", "mrr": "MRR", "selected_precision": "Selected precision"}


def cut_panel(panel, lengths):
    """({model: Cut}, eligible): every model's prefixes, of one length or of a length per query and model ({model: lengths}).

    Cut, then drop, never backfill. A query whose prefix is not empty but wholly excluded, in any model, is eligible in none.
    """
    longest = lengths if isinstance(lengths, int) else panel.cutoffs[-1]
    useless, dropped = bytes(range(panel.useful)), bytes((EXCLUDED,))
    known = [sum(counts[panel.useful:]) for counts in panel.counts]
    ideal = [dcg(ideal_grades(counts, longest), panel.gains) for counts in panel.counts]
    cuts, eligible = {}, [1] * len(panel.ids)
    for model, rankings in panel.rankings.items():
        ends = lengths[model] if isinstance(lengths, dict) else [lengths] * len(rankings)
        retained = [ranking[:end].translate(None, dropped) for ranking, end in zip(rankings, ends)]
        eligible = [1 if was and (kept or not end or not ranking) else 0
                    for was, kept, end, ranking in zip(eligible, retained, ends, rankings)]
        useful = [len(grades.translate(None, useless)) for grades in retained]
        cuts[model] = Cut(retained, useful, known, ideal, useless, panel.gains)
    return cuts, eligible


# One metric at one cutoff over all queries: {model: (numerators, denominators)}, and which queries are eligible there.
Measured = namedtuple("Measured", "metric cutoff eligible sums")


def measure(panel):
    """Every metric of a panel at every cutoff, as a list of Measured; selected precision last, with the cutoff None."""
    measured = []
    for k in panel.cutoffs:
        cuts, eligible = cut_panel(panel, k)
        measured += [Measured(metric, k, eligible, {model: function(cut) for model, cut in cuts.items()})
                     for metric, function in METRICS.items()]
    if panel.selected:
        cuts, eligible = cut_panel(panel, panel.selected)
        measured.append(Measured("selected_precision", None, eligible, {model: precision(cut) for model, cut in cuts.items()}))
    return sorted(measured, key=lambda item: list(TITLES).index(item.metric))


def query_values(panel, model, k):
    """{metric: one value or None per query} of a model at cutoff k. None: not eligible, or the query has no such value."""
    cuts, eligible = cut_panel(panel, k)
    values = {}
    for metric, function in METRICS.items():
        numerators, denominators = function(cuts[model])
        values[metric] = [n / d if d and allowed else None for n, d, allowed in zip(numerators, denominators, eligible)]
    return values


# Statistics


def ratio(numerators, denominators):
    """The sum of the numerators over the sum of the denominators, or None where that is 0."""
    total = fsum(denominators)
    return fsum(numerators) / total if total else None


def influences(numerators, denominators):
    """How far each query pulls the ratio from where it is: (n - ratio * d) / mean d. They sum to 0."""
    value, mean = ratio(numerators, denominators), fsum(denominators) / len(denominators)
    return [(n - value * d) / mean for n, d in zip(numerators, denominators)]


def t_tail(t, df):
    """The two-sided p-value of Student's t with df degrees of freedom: the regularized incomplete beta function I_x(df/2, 1/2)
    at x = df / (df + t^2), by the continued fraction of Press et al., Numerical Recipes, 6.4.

    >>> round(t_tail(5, 3), 12)
    0.015392438073
    """
    square = t * t
    if not square:
        return 1.0
    a, b, x, rest = df / 2, 0.5, df / (df + square), square / (df + square)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) - a * log1p(square / df) + b * log(rest))
    if x < (a + 1) / (a + b + 2):  # else the fraction converges fast on the other side only
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, rest) / b


def _beta_fraction(a, b, x):
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 1000):
        for part in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            c, d = 1 + part / c, 1 / (1 + part * d)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return fraction


T_95 = {}


def t_95(df):
    """The t whose two-sided tail is 0.05: the half width of a 95% interval in standard errors. Newton's method from below.

    >>> round(t_95(3), 9)
    3.182446305
    """
    if df not in T_95:
        t, step = 1.95, 1.0  # the tail is convex, so that steps from below never overshoot
        scale = exp(lgamma((df + 1) / 2) - lgamma(df / 2)) / sqrt(df * pi)
        while step > 1e-13 * t:
            step = (t_tail(t, df) - 0.05) / (2 * scale * (1 + t * t / df) ** (-(df + 1) / 2))
            t += step
        T_95[df] = t
    return T_95[df]


def mean_interval(numerators, denominators):
    """(ratio, low, high) with its 95% interval: Student's t on the influences; None where it is undefined.

    Queries whose denominator is 0 are left out, as they say nothing about the ratio. 1, 0, 1, 0 over ones: 0.5 and
    0.5 -+ 3.182446 * sqrt(1/3 / 4).
    """
    numerators, denominators = list(compress(numerators, denominators)), list(filter(None, denominators))
    if len(numerators) < 2:
        return ratio(numerators, denominators), None, None
    value = ratio(numerators, denominators)
    half = t_95(len(numerators) - 1) * _standard_error(influences(numerators, denominators))
    return value, value - half, value + half


def _standard_error(pulls):
    """The standard error of a ratio from its influences; 0 where they are all alike but for rounding."""
    squares = [pull * pull for pull in pulls]
    return sqrt(fsum(squares) / (len(pulls) - 1) / len(pulls)) if max(squares) > 1e-24 else 0.0


def compare(base, candidate):
    """Compare two models on the same queries, each as (numerators, denominators), paired by position.

    Gives difference (candidate - base), low, high and p of the paired Student's t on the influences, and the queries won, tied and
    lost. low, high and p are None for fewer than two queries; p also where every query differs by the same amount.
    Base 0.1, 0.2, 0.3, 0.4 and candidate 0.2, 0.3, 0.4, 0.6 over ones: difference 0.125, t = 5, p = 0.0153924, 4 wins.
    """
    known = list(map(max, base[1], candidate[1]))  # a query with neither denominator says nothing
    if not all(known):
        base, candidate = ([list(compress(column, known)) for column in sums] for sums in (base, candidate))
    values = [list(map(truediv, *sums)) if all(sums[1]) else [n / d if d else 0.0 for n, d in zip(*sums)] for sums in (base, candidate)]
    wins, losses = sum(map(gt, values[1], values[0])), sum(map(lt, values[1], values[0]))
    result = {"difference": None, "low": None, "high": None, "p": None,
              "wins": wins, "ties": len(values[0]) - wins - losses, "losses": losses}
    if not any(base[1]) or not any(candidate[1]):
        return result
    result["difference"] = difference = ratio(*candidate) - ratio(*base)
    if len(values[0]) > 1:
        error = _standard_error(list(map(sub, influences(*candidate), influences(*base))))
        half = t_95(len(values[0]) - 1) * error
        result.update(low=difference - half, high=difference + half)
        if error:
            result["p"] = t_tail(difference / error, len(values[0]) - 1)
    return result


def holm(p_values):
    """Holm's step-down adjustment (1979), in the order given; None stays None and is no member of the family.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted, worst = list(p_values), 0.0
    for place, (p, index) in enumerate(order):
        worst = max(worst, min(1.0, p * (len(order) - place)))
        adjusted[index] = worst
    return adjusted


# Summaries


def summarize(record):
    """The summary of a record: its shape, with each block replaced by its results, and a signature of what was computed."""
    summary = {"signature": _signature(record)}
    for place, block in record.blocks.items():
        _section(summary, place).update(summarize_block(block))
    return summary


def _signature(record):
    panels = {place: {"max": panel.max_grade, "useful": panel.useful, "gain": panel.gain, "cutoffs": list(panel.cutoffs)}
              for place, panel in record.blocks.items() if isinstance(panel, Panel)}
    return {"record": record.name, "sha256": record.sha256, "format": FORMAT, "panels": panels}


def summarize_block(block):
    """The results of a Panel, Table or Checks."""
    return {Panel: summarize_panel, Table: summarize_table, Checks: summarize_checks}[type(block)](block)


def summarize_panel(panel):
    """The results of a panel over all queries, over the answerable ones and over each type."""
    measured = measure(panel)
    everything = [1] * len(panel.ids)
    answerable = [1 if sum(counts[panel.useful:]) else 0 for counts in panel.counts]
    summary = _population(panel, measured, everything)
    summary["answerable"] = dict(summary) if answerable == everything else _population(panel, measured, answerable)
    if panel.types:
        summary["types"] = {kind: _population(panel, measured, [1 if own == kind else 0 for own in panel.types])
                            for kind in sorted(set(panel.types))}
    return summary


def _population(panel, measured, members):
    """The results over one population: members[query] is 1 for the queries in it."""
    shown = [[ranking for ranking, member in zip(rankings, members) if member] for rankings in panel.rankings.values()]
    summary = {
        "queries": sum(members),
        "graded_pairs": sum(max(counts[0], 0) + sum(counts[1:]) for counts in compress(panel.counts, members)),
        "eligible": {},
        "excluded_positions": {model: {str(k): sum(ranking.count(EXCLUDED, 0, k) for ranking in rankings) for k in panel.cutoffs}
                               for model, rankings in zip(panel.models, shown)},
        "models": {model: {} for model in panel.models},
        "comparisons": [{"base": base, "candidate": candidate} for base, candidate in panel.comparisons]}
    for item in measured:
        allowed = list(map(and_, item.eligible, members))
        sums = {model: [list(compress(column, allowed)) for column in pair] for model, pair in item.sums.items()}
        if item.cutoff:
            summary["eligible"][str(item.cutoff)] = sum(allowed)
        for model, block in summary["models"].items():
            _put(block, item, _rounded(ratio(*sums[model])), _why_undefined(item, sums[model]))
        for block in summary["comparisons"]:
            _put(block, item, compare(sums[block["base"]], sums[block["candidate"]]))
    for block in summary["comparisons"]:
        _finish(_entries(block), panel.tolerance, block)
    return summary


def _put(block, item, value, reason=None):
    """Put a value under its metric and cutoff, and the reason of an undefined one beside it."""
    if item.cutoff:
        block.setdefault(item.metric, {})[str(item.cutoff)] = value
    else:
        block[item.metric] = value
    if value is None:
        block.setdefault("undefined", []).append(f"{_label(item.metric, item.cutoff)}: {reason}")


def _label(metric, cutoff):
    return f"{TITLES[metric]}@{cutoff}" if cutoff else TITLES[metric]


def _why_undefined(item, sums):
    if not sums[0]:
        return "no query is eligible"
    return "no eligible query has a known useful passage" if item.metric == "recall" else "no position is retained"


def _entries(block):
    """(label, entry) of every compared metric and cutoff in a comparison."""
    for metric in TITLES:
        entries = block.get(metric, {})
        for cutoff, entry in ({None: entries} if "p" in entries else entries).items():
            yield _label(metric, cutoff), entry


def _finish(entries, tolerance, block):
    """Complete the entries of one comparison: Holm's adjustment within it, the tolerance, rounding, reasons."""
    entries = list(entries)
    undefined = []
    for (label, entry), p_holm in zip(entries, holm([entry["p"] for _, entry in entries])):
        queries = entry["wins"] + entry["ties"] + entry["losses"]
        entry.update({key: _rounded(entry[key]) for key in ("difference", "low", "high", "p")})
        counts = {key: entry.pop(key) for key in ("wins", "ties", "losses")}
        entry.update(p_holm=_rounded(p_holm), **counts)
        if tolerance:
            entry["within_tolerance"] = None if entry["low"] is None else -tolerance <= entry["low"] and entry["high"] <= tolerance
        if entry["p"] is None:
            why = ("fewer than two queries" if queries < 2 else "a model has no value" if entry["difference"] is None
                   else "every query differs by the same amount")
            undefined.append(f"{label}: no p-value: {why}")
    if undefined:
        block["undefined"] = undefined


def _rounded(value):
    """A number to 12 decimals, so that the last bits of a platform's logarithm do not show; never -0."""
    return None if value is None else round(value, 12) + 0.0


def summarize_table(table):
    """The mean of every model on every data set, the paired comparisons, and the averages over the data sets that all models share."""
    summary = {"measure": table.measure, "datasets": {}}
    entries = {pair: [] for pair in table.comparisons}
    for name, (queries, scores) in table.datasets.items():
        ones = [1] * queries
        block = {"queries": queries, "means": {model: _rounded(ratio(scores[model], ones)) for model in table.models if model in scores},
                 "comparisons": []}
        for base, candidate in table.comparisons:
            if base in scores and candidate in scores:
                entry = {"base": base, "candidate": candidate, **compare((scores[base], ones), (scores[candidate], ones))}
                entries[base, candidate].append((name, entry))
                block["comparisons"].append(entry)
        if absent := [model for model in table.models if model not in scores]:
            block["absent"] = absent
        summary["datasets"][name] = block
    undefined = {}
    for family in entries.values():
        _finish(family, None, undefined)
    shared = [name for name, (_, scores) in table.datasets.items() if all(model in scores for model in table.models)]
    means = {model: _rounded(ratio([summary["datasets"][name]["means"][model] for name in shared], [1] * len(shared))) for model in table.models}
    summary["average"] = {"datasets": shared, "means": means}
    if not shared:
        summary["average"]["undefined"] = ["means: no data set was measured with every model"]
    return summary


def summarize_checks(block):
    """The verdict of every check, recomputed from its values and its threshold."""
    verdicts = {name: check_verdict(*check) for name, check in block.checks.items()}
    passed = sum(verdict["passed"] for verdict in verdicts.values())
    return {"checks": verdicts, "passed": passed, "failed": len(verdicts) - passed}


def check_verdict(values, direction, threshold):
    """Whether every value is on the right side of the threshold: the worst value, how many fail, and the verdict.

    >>> check_verdict((0.9, 1.0), "at_least", 0.99)
    {'value': 0.9, 'at_least': 0.99, 'values': 2, 'failing': 1, 'passed': False}
    """
    at_least = direction == "at_least"
    failing = sum(value < threshold if at_least else value > threshold for value in values)
    return {"value": min(values) if at_least else max(values), direction: threshold,
            "values": len(values), "failing": failing, "passed": not failing}


MISSING = _Refused("nothing")  # stands for a value that one of two summaries lacks


def differences(stored, recomputed, tolerance, place=""):
    """(place, stored, recomputed) wherever two summaries differ. Floats may differ by the tolerance, all else must be equal."""
    if isinstance(stored, dict) and isinstance(recomputed, dict):
        for key in [*recomputed, *(key for key in stored if key not in recomputed)]:
            yield from differences(stored.get(key, MISSING), recomputed.get(key, MISSING), tolerance, _at(place, key))
    elif isinstance(stored, list) and isinstance(recomputed, list):
        for index in range(max(len(stored), len(recomputed))):
            pair = [values[index] if index < len(values) else MISSING for values in (stored, recomputed)]
            yield from differences(*pair, tolerance, _at(place, index))
    elif type(recomputed) is float and type(stored) in (int, float):
        if not abs(stored - recomputed) <= tolerance:
            yield place, stored, recomputed
    elif type(stored) is not type(recomputed) or stored != recomputed:
        yield place, stored, recomputed


def _leaves(value):
    """How many values a summary holds."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if members is None else sum(map(_leaves, members))


# Screen


def show(metric, value):
    """A value as it is printed: percent for Hit, precision and recall, four decimals for nDCG, MRR and other measures."""
    if value is None:
        return "undefined"
    return f"{100 * value:.2f}%" if metric in PERCENT else f"{value:.4f}"


PERCENT = {"hit", "precision", "recall", "selected_precision"}


def show_difference(metric, entry):
    """A difference with its interval, in percentage points where the metric is printed in percent; * for a Holm-adjusted p < 0.05."""
    if entry["difference"] is None:
        return "undefined"
    scale, digits, unit = (100, 2, " pp") if metric in PERCENT else (1, 4, "")
    value, low, high = (f"{scale * entry[key]:+.{digits}f}" if entry[key] is not None else "?" for key in ("difference", "low", "high"))
    star = "*" if entry["p_holm"] is not None and entry["p_holm"] < 0.05 else " "
    return f"{value} [{low}, {high}]{unit} {star}".rstrip() if star == "*" else f"{value} [{low}, {high}]{unit}"


def panel_rows(block):
    """The table of one population of a panel: a row for each metric and cutoff, a column for each model and each comparison."""
    rows = [["", *block["models"], *(f"{pair['candidate']} - {pair['base']}" for pair in block["comparisons"])]]
    for metric in TITLES:
        for cutoff in block["eligible"] if metric in METRICS else (None,):
            cells = [own.get(metric) for own in (*block["models"].values(), *block["comparisons"])]
            if cells[0] is None and cutoff is None and metric not in next(iter(block["models"].values())):
                continue
            cells = [cell[cutoff] if cutoff else cell for cell in cells]
            eligible = block["eligible"][cutoff] if cutoff else block["queries"]
            name = _label(metric, cutoff) + (f" ({eligible:,} queries)" if eligible != block["queries"] else "")
            rows.append([name, *(show_difference(metric, cell) if isinstance(cell, dict) else show(metric, cell) for cell in cells)])
    return rows


def type_rows(types, cutoffs):
    """The table of a panel's types: Hit and nDCG of each model at cutoff 10, or at the largest one."""
    k = "10" if 10 in cutoffs else str(cutoffs[-1])
    models = list(next(iter(types.values()))["models"])
    rows = [["type", "queries", *(f"{TITLES[metric]}@{k} {model}" for metric in ("hit", "ndcg") for model in models)]]
    for kind, block in types.items():
        values = [show(metric, block["models"][model][metric][k]) for metric in ("hit", "ndcg") for model in models]
        rows.append([kind, f"{block['queries']:,}", *values])
    return rows


def panel_notes(panel, summary):
    """What a reader of the table must know: the scale, what is excluded, which queries are not eligible or without results."""
    k = panel.cutoffs[-1]
    notes = [f"Useful: grade {panel.useful} or more of 0 to {panel.max_grade}. Gain: {panel.gain}. "
             "[ ]: paired 95% interval. *: Holm-adjusted p < 0.05."]
    for model, rankings in panel.rankings.items():
        ranked, excluded = sum(len(ranking[:k]) for ranking in rankings), summary["excluded_positions"][model][str(k)]
        if excluded:
            notes.append(f"{model}: {excluded:,} of {ranked:,} positions excluded at {k}.")
        if empty := [name for name, ranking in zip(panel.ids, rankings) if not ranking]:
            notes.append(f"{model}: {_listed(empty)} with 0 ranked, which score zero.")
    for cutoff in panel.cutoffs:
        if summary["eligible"][str(cutoff)] < len(panel.ids):
            eligible = cut_panel(panel, cutoff)[1]
            notes.append(f"At {cutoff}: {_listed([name for name, own in zip(panel.ids, eligible) if not own])} not eligible:"
                         " all excluded in some model.")
    without = [name for name, counts in zip(panel.ids, panel.counts) if not sum(counts[panel.useful:])]
    if without:
        notes.append(f"{_listed(without)} with no relevant documents (no known useful passage): in Hit, precision, nDCG and MRR, not in recall.")
    return notes


def _listed(names, most=5):
    """2 queries (q1, q2); at most five are named."""
    more = ", ..." if len(names) > most else ""
    return f"{len(names):,} {'query' if len(names) == 1 else 'queries'} ({', '.join(names[:most])}{more})"


def block_tables(name, block, summary):
    """(heading, rows, notes) of each table that shows a block."""
    title = f"{name} {block.place}".strip()
    if isinstance(block, Panel):
        size = f"{summary['queries']:,} queries, {summary['graded_pairs']:,} graded pairs"
        yield f"{title}: {size}", panel_rows(summary), panel_notes(block, summary)
        if summary["answerable"]["queries"] not in (0, summary["queries"]):
            yield f"{title}, answerable: {summary['answerable']['queries']:,} queries", panel_rows(summary["answerable"]), []
        if "types" in summary:
            yield f"{title}, by type", type_rows(summary["types"], block.cutoffs), []
    elif isinstance(block, Table):
        yield f"{title}: mean {block.measure}", table_rows(block, summary), []
    else:
        rows = [["check", "worst value", "threshold", "failing", "verdict"]]
        for check, verdict in summary["checks"].items():
            threshold = f"at least {verdict['at_least']}" if "at_least" in verdict else f"at most {verdict['at_most']}"
            rows.append([check, f"{verdict['value']:.7g}", threshold, f"{verdict['failing']} of {verdict['values']}",
                         "pass" if verdict["passed"] else "FAIL"])
        yield f"{title}: {summary['passed']} checks pass, {summary['failed']} fail", rows, []


def table_rows(table, summary):
    """The table of a public table: a row for each data set, then the average over those that every model was measured on."""
    rows = [["data set", "queries", *table.models, *(f"{candidate} - {base}" for base, candidate in table.comparisons)]]
    for name, block in summary["datasets"].items():
        entries = {(entry["base"], entry["candidate"]): show_difference("", entry) for entry in block["comparisons"]}
        rows.append([name, f"{block['queries']:,}", *(show("", block["means"][model]) if model in block["means"] else "absent" for model in table.models),
                     *(entries.get(pair, "") for pair in table.comparisons)])
    average = summary["average"]
    rows.append([f"average of {len(average['datasets'])}", "", *(show("", average["means"][model]) for model in table.models),
                 *("" for _ in table.comparisons)])
    return rows


def render(tables, markdown):
    """Tables as text with aligned columns, or as Markdown."""
    lines = []
    for heading, rows, notes in tables:
        if markdown:
            rows = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
            rows.insert(1, ["---"] + ["---:"] * (len(rows[0]) - 1))
            lines += [f"**{heading}**", "", *("| " + " | ".join(row) + " |" for row in rows), "", *notes, ""]
        else:
            widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
            lines += [heading, *("  " + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows),
                      *(f"  {note}" for note in notes), ""]
    return "\n".join(lines)


def explain(panel, query, models, k):
    """The arithmetic of one query as text that can be redone by hand. Raises RecordError for a query that is not in the panel."""
    index = panel.ids.index(query)
    counts, gains = panel.counts[index], panel.gains
    best = ideal_grades(counts, k)
    lines = []
    for model in models:
        ranking = panel.rankings[model][index][:k]
        lines += [f"query {query}, model {model}, first {k} positions ({len(ranking)} ranked)",
                  "  rank  grade     retained  gain  log2(retained + 1)  gain / log2"]
        retained = bytearray()
        for place, grade in enumerate(ranking):
            if grade == EXCLUDED:
                reason = panel.reasons.get((model, index, place))
                lines.append(f"  {place + 1:4}  excluded" + f" ({reason})" * bool(reason))
                continue
            retained.append(grade)
            discount = log2(len(retained) + 1)
            lines.append(f"  {place + 1:4}  {grade:<8}  {len(retained):8}  {gains[grade]:4}  {discount:18.6f}  {gains[grade] / discount:11.6f}")
        known = {grade: count for grade, count in enumerate(counts) if count > 0}
        lines += [f"  DCG = {dcg(retained, gains):.6f}, the sum of the last column",
                  f"  reference: {', '.join(f'{count} of grade {grade}' for grade, count in known.items()) or 'nothing above grade 0'}",
                  f"  ideal DCG = {dcg(best, gains):.6f} = "
                  + (" + ".join(f"{gains[grade]}/log2({rank + 1})" for rank, grade in enumerate(best, 1)) or "0")
                  + f", the {len(best)} best grades of the reference"]
        useful, total = sum(grade >= panel.useful for grade in retained), sum(counts[panel.useful:])
        lines.append(f"  useful (grade {panel.useful} or more): {useful} of {len(retained)} retained; {total} known in the reference")
        for metric, values in query_values(panel, model, k).items():
            lines.append(f"  {_label(metric, k)} = " + ("undefined" if values[index] is None else f"{values[index]:.6f}"))
        if not cut_panel(panel, k)[1][index]:
            lines.append(f"  not eligible at {k}: every position is excluded in some model, so no model counts this query")
        lines.append("")
    return "\n".join(lines)


def load_records(directory, names=()):
    """([(path, Record)], notes) of a folder, or of its folder records/ when it holds none itself.

    names limits them to those records; notes name the JSON files that are no records. Raises RecordError that lists every problem.
    """
    for folder in (os.fspath(directory), os.path.join(directory, "records")):
        try:
            files = sorted(name for name in os.listdir(folder) if name.endswith(".json") and not name.endswith("-summary.json"))
        except OSError as error:
            if folder != os.fspath(directory):
                break
            raise RecordError(f"{folder}: cannot be read: {error.strerror}; expected a folder with records") from None
        records, notes, problems = [], [], []
        for name in files:
            if names and name.removesuffix(".json") not in names:
                continue
            path = os.path.join(folder, name)
            try:
                value, sha256 = read_json(path)
                if not names and not (isinstance(value, dict) and any(find_blocks(value))):
                    notes.append(f"{path}: skipped: no panel, public table or checks in it")
                    continue
                records.append((path, parse_record(value, path, sha256)))
            except RecordError as error:
                problems += error.problems
        if problems:
            raise RecordError(problems)
        if records:
            return records, notes
    raise RecordError(f"{directory}: no records" + (f" named {', '.join(sorted(names))}" if names else "")
                      + "; expected files such as retriever.json here or in a folder records/")


def summary_path(path):
    return path.removesuffix(".json") + "-summary.json"


def verify(records, summaries, tolerance, whole_folder):
    """(lines, found): what the stored summaries say against the recomputed ones, and each difference as (file, place, stored, recomputed)."""
    lines, found = [], []
    for (path, _), summary in zip(records, summaries):
        name = os.path.basename(summary_path(path))
        if not os.path.exists(summary_path(path)):
            found.append((name, "", MISSING, summary))
            lines.append(f"{name}: missing: {path} has no summary; --write makes it")
            continue
        stored = read_json(summary_path(path))[0]
        own = [(name, *difference) for difference in differences(stored, summary, tolerance)]
        found += own
        lines += [_difference_line(*difference) for difference in own]
        count = _leaves(summary) - _leaves(summary["signature"])
        lines.append(f"{name}: {len(own):,} differences in {count:,} values" if own else f"{name}: {count:,} values reproduced")
    folder = os.path.dirname(records[0][0])
    expected = {os.path.basename(summary_path(path)) for path, _ in records}
    for name in sorted(os.listdir(folder or ".")) if whole_folder else ():
        if name.endswith("-summary.json") and name not in expected:
            found.append((name, "", "a summary", MISSING))
            lines.append(f"{name}: a summary without a record; expected {name.replace('-summary.json', '.json')} beside it")
    return lines, found


def _difference_line(name, place, stored, recomputed):
    numbers = [type(value) in (int, float) for value in (stored, recomputed)]
    apart = f", difference {recomputed - stored:+.6g}" if all(numbers) else ""
    changed = " (the record was changed after its summary)" if place == "signature.sha256" else ""
    return f"{name}: {place}: stored {quote(stored)}, recomputed {quote(recomputed)}{apart}{changed}"


def write_summaries(records, summaries):
    """Write every summary that is not there already to the byte, and say so."""
    lines = []
    for (path, _), summary in zip(records, summaries):
        target, text = summary_path(path), dump_json(summary)
        if os.path.exists(target) and os.path.samefile(path, target):
            raise RecordError(f"{target}: the output and the input {path} are the same file")
        old = read_bytes(target) if os.path.exists(target) else None
        if old != text.encode("utf-8"):
            write_whole(target, text)
        state = "unchanged" if old == text.encode("utf-8") else "written"
        lines.append(f"{os.path.basename(target)}: {_leaves(summary) - _leaves(summary['signature']):,} values {state}")
    return lines


def _arguments(argv):
    import argparse

    def tolerance(text):
        value = float(text)
        if not 0 <= value < inf:
            raise ValueError
        return value

    def cutoff(text):
        if int(text) < 1:
            raise argparse.ArgumentTypeError(f"k is {text}; expected an integer of at least 1")
        return int(text)

    parser = argparse.ArgumentParser(prog="metrics.py", description="Recompute every number of the records and check the summaries.",
                                     epilog="Exit status: 0 all reproduced, 1 a difference, 2 bad input or usage.", allow_abbrev=False)
    parser.add_argument("--directory", default=".", metavar="DIR", help="a folder with records, or with a folder records/ (default: .)")
    parser.add_argument("--record", nargs="+", action="extend", default=[], metavar="NAME", help="only these records")
    parser.add_argument("--write", action="store_true", help="write the summaries instead of checking them")
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")
    parser.add_argument("--tolerance", type=tolerance, default=1e-9, help="the largest difference of two equal numbers (default: 1e-9)")
    parser.add_argument("--explain", nargs=2, metavar=("RECORD", "QUERY"), help="show one query's arithmetic")
    parser.add_argument("--model", help="with --explain: only this model")
    parser.add_argument("--at", type=cutoff, metavar="K", help="with --explain: the cutoff (default: 10, or the largest)")
    arguments = parser.parse_args(argv)
    if not arguments.explain and (arguments.model or arguments.at):
        parser.error("--model and --at go with --explain RECORD QUERY")
    arguments.names = {name.removesuffix(".json") for name in arguments.record or (arguments.explain or [])[:1]}
    return arguments


def explained(record, query, model, k):
    """The explanation of a query in every panel of a record that has it. Raises RecordError where none has."""
    panels = [panel for panel in record.blocks.values() if isinstance(panel, Panel)]
    texts = []
    for panel in panels:
        if query in panel.ids:
            if model and model not in panel.models:
                raise RecordError(f"{record.name}: no model {quote(model)}; expected one of: {', '.join(panel.models)}")
            at = k or (10 if 10 in panel.cutoffs else panel.cutoffs[-1])
            if panel.depth and at > panel.depth:
                raise RecordError(f"{record.name}: --at {at} is beyond the depth of {panel.depth}")
            texts.append(explain(panel, query, [model] if model else panel.models, at))
    if not texts:
        ids = [name for panel in panels for name in panel.ids]
        raise RecordError(f"{record.name}: no query {quote(query)}; expected one of {_listed(ids)}")
    return "\n".join(texts)


def main(argv=None):
    """The command line; returns the exit status."""
    arguments = _arguments(argv)
    records, notes = load_records(arguments.directory, arguments.names)
    if missing := arguments.names - {record.name.removesuffix(".json") for _, record in records}:
        raise RecordError(f"{arguments.directory}: no records named {', '.join(sorted(missing))}")
    for note in [*notes, *(warning for _, record in records for warning in record.warnings)]:
        print(f"note: {note}", file=sys.stderr)
    if arguments.explain:
        print(explained(records[0][1], arguments.explain[1], arguments.model, arguments.at))
        return 0
    summaries = [summarize(record) for _, record in records]
    lines, found = ((write_summaries(records, summaries), []) if arguments.write
                    else verify(records, summaries, arguments.tolerance, not arguments.names))
    if arguments.format == "json":
        keys = ("file", "place", "stored", "recomputed")
        shown = [dict(zip(keys, [None if value is MISSING else value for value in difference])) for difference in found]
        print(dump_json({"summaries": {record.name: summary for (_, record), summary in zip(records, summaries)}, "differences": shown}), end="")
        return 1 if found else 0
    tables = [table for (_, record), summary in zip(records, summaries) for place, block in record.blocks.items()
              for table in block_tables(record.name, block, _section(summary, place))]
    print(render(tables, arguments.format == "markdown"))
    print("\n".join(lines))
    return 1 if found else 0


def _section(summary, place):
    """The results of the block at a place of a summary."""
    for key in place.split(".") if place else ():
        summary = summary.setdefault(key, {})
    return summary


if __name__ == "__main__":
    sys.exit(run_command(main))
