"""Recomputes every number of a retrieval evaluation from its record, and checks it against the published summary.

    python metrics.py --directory .          check the summaries in ./records (or in . itself)
    python metrics.py --directory . --write  write them

    files        read_json, write_whole, run_command   strict JSON in, whole files out, errors without tracebacks
    records      load_record -> Panel, Table, Checks   validation in one place; RecordError lists every problem
    metrics      hit, precision, recall, ndcg, mrr     each a ratio of per-query sums
    statistics   mean_interval, compare, holm          Student's t on per-query influences
    summaries    summarize, differences                what a summary holds, and where a stored one differs
    screen       block_tables, render, explain, main   the command line

A record holds ranked relevance grades and no texts; records/README.md describes the format. This file imports only the
standard library and works when it is copied alone beside somebody's records.
"""

import os
import sys
from collections import namedtuple
from itertools import compress, repeat
from math import exp, fsum, inf, isfinite, lgamma, log, log1p, log2, pi, sqrt
from operator import and_, contains, getitem, gt, lt, mul, sub

FORMAT = 1
EXCLUDED = 255  # the byte of an excluded position in a ranking
EXCLUDED_BYTE = b"\xff"
MAX_GRADE = 100  # 2^100 - 1 is still an exact float; a larger grade is a mistake
MAX_COUNT = 10**18  # of passages; sums of such counts are still printed whole
MAX_DEPTH = 100_000  # of a ranking or a cutoff; an ideal is as long as the cutoff where the reference is
MAX_CUTOFFS = 100
TOLERANCE = 1e-9  # the largest difference of two numbers that count as the same
MAX_BYTES = 128 * 2**20  # the largest file that is read: parsed JSON takes about ten times its size in memory


# Files and errors


class RecordError(ValueError):
    """Bad input. `problems` lists every problem as text: file, place, what was expected, what was found."""

    def __init__(self, problems):
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class _Refused(str):
    """Stands in a parsed JSON value for something that strict JSON does not allow, and says why, until its place is known."""


MISSING = _Refused("nothing")  # stands for a value that one of two summaries lacks


def quote(value):
    """A value as an error shows it: JSON text of at most 68 characters, with its kind where that is not plain."""
    import json

    try:
        text = value if isinstance(value, _Refused) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "a deeply nested value"
    kind = {str: " (a string)", list: " (a list)", dict: " (an object)"}.get(type(value), "")
    return (text if len(text) <= 68 else text[:65] + "...") + kind


def read_bytes(path):
    """The bytes of a file of at most MAX_BYTES. Raises RecordError for what cannot be read."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise RecordError(f"{path}: the size is over the limit of {MAX_BYTES:,} bytes; split the file")
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
        return number if isfinite(number := float(digits)) else refuse(f"expected a finite number, got {digits[:60]}")

    def integer(digits):  # only used after int() has refused a number of thousands of digits
        return int(digits) if len(digits) < 400 else refuse(f"the number {digits[:12]}... is too large")

    def unique(pairs):
        if len(members := dict(pairs)) == len(pairs):
            return members
        keys = [key for key, _ in pairs]
        return refuse(f'duplicate key "{next(key for key in keys if keys.count(key) > 1)}"')

    hooks = {"object_pairs_hook": unique, "parse_float": finite, "parse_constant": lambda word: refuse(f"{word} is not valid JSON")}
    try:
        try:
            value = json.loads(text, **hooks)
        except json.JSONDecodeError as error:
            what = error.msg[0].lower() + error.msg[1:] if text.strip() else "it is empty"
            raise RecordError(f"{name}: line {error.lineno} column {error.colno}: not valid JSON: {what}") from None
        except ValueError:
            value = json.loads(text, parse_int=integer, **hooks)
        problems = [f"{name}: {place or 'top level'}: {why}" for place, why in _refusals(value, "")] if refused else ()
    except RecursionError:
        raise RecordError(f"{name}: nested too deeply") from None
    if problems:
        raise RecordError(problems)
    return value


def _at(place, key):
    """The place of a member: a.b for a key, a[3] for an index."""
    return f"{place}[{key}]" if isinstance(key, int) else f"{place}.{key}" if place else key


def _refusals(value, place):
    if isinstance(value, _Refused):
        yield place, value
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
    """Write a text file whole or not at all: to a temporary file beside it, flushed, then renamed. Raises RecordError.

    A link stays a link, and a device or pipe such as /dev/stdout is written to, never replaced.
    """
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        content = text.encode("utf-8")
        if os.path.abspath(path) == "/dev/stdout":  # opened anew it would start at the beginning of a file
            print(text, end="", flush=True)
        elif os.path.exists(path) and not os.path.isfile(path) or os.path.abspath(path).startswith("/dev/"):
            with open(path, "ab") as device:
                device.write(content)
        else:
            _replace(target, temporary, content)
    except UnicodeEncodeError as error:
        odd = ascii(text[error.start])
        raise RecordError(f"{path}: cannot be written: a lone surrogate {odd} in it; expected Unicode text") from None
    except OSError as error:
        why = error.strerror if os.path.isdir(os.path.dirname(target)) else f"there is no folder {os.path.dirname(path)}"
        raise RecordError(f"{path}: cannot be written: {why}" + "; the old file is as it was" * os.path.exists(path)) from None


def _replace(target, temporary, content):
    """Put new content in a file's place, with the old one's permissions, and leave no temporary file behind."""
    file = open(temporary, "xb")  # noqa: SIM115 - before the try, so that a file that was there already is not removed
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def run_command(body):
    """Run a command and return its exit status, 2 for bad input and 130 for Ctrl-C; problems go to stderr, never a traceback."""
    from signal import SIGTERM, default_int_handler, signal

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no reason to stop
    try:
        signal(SIGTERM, default_int_handler)  # ends like Ctrl-C, so that temporary files go
        status, problems = body(), []
        print(end="", flush=True)
    except RecordError as error:
        hidden = len(error.problems) - 20
        status, problems = 2, [f"error: {problem}" for problem in error.problems[:20]] + [f"and {hidden:,} more problems"] * (hidden > 0)
    except BrokenPipeError:
        status, problems = 141, []
    except OSError as error:
        status, problems = 2, [f"error: {error.filename or 'output'}: {error.strerror or error}"]
    except (MemoryError, RecursionError) as error:
        status, problems = 2, [f"error: the input is too large ({type(error).__name__})"]
    except KeyboardInterrupt:
        status, problems = 130, ["interrupted"]
    for stream, lines in ((sys.stdout, []), (sys.stderr, problems)):
        try:
            if stream:
                print(*map(printable, lines), sep="\n", end="\n" * bool(lines), file=stream, flush=True)
        except OSError:  # leave nothing for the interpreter to flush into a closed or full output
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return status


def printable(text):
    """A text in which control characters stand as \\x1b: what comes from a file must not steer the terminal."""
    return text.translate(CONTROLS)


CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


# Records: from JSON to checked, immutable values

Record = namedtuple("Record", "name sha256 blocks warnings")  # blocks: {place: Panel, Table or Checks}
Panel = namedtuple("Panel", "place models depth cutoffs max_grade useful gain gains comparisons tolerance"
                            " ids types counts rankings selected reasons")
Table = namedtuple("Table", "place measure models comparisons datasets")  # datasets: {name: (queries, {model: scores})}
Checks = namedtuple("Checks", "place checks")  # checks: {name: (values, "at_least" or "at_most", threshold)}

PANEL_KEYS = {"about", "models", "depth", "cutoffs", "grades", "reference", "comparisons", "tolerance", "queries"}
QUERY_KEYS = {"id", "type", "reference_grade_counts", "rankings", "selected"}
NUMBER = (int, float)  # compared with the type itself, since true is an int to isinstance


def load_record(path):
    """The record in a file. Raises RecordError that lists every problem."""
    value, sha256 = read_json(path)
    return parse_record(value, os.fspath(path), sha256)


def parse_record(value, name, sha256=""):
    """The record in a parsed JSON value. Raises RecordError that lists every problem, each with its place."""
    reader, blocks = _Reader(), {}
    found, unused = find_blocks(reader.object(value, "top level"), name)
    for path, block in found:
        place = ".".join(path)
        read = reader.panel if _is_panel(block) else reader.checks if "checks" in block else reader.table
        blocks[place] = read(block, place)
        for key in path:
            reader.name(key, place or "top level", "a section name")
            reader.expect("." not in key and key != "signature", place, "section names without dots, and not signature", key)
    reader.name(os.path.basename(name), "file name", "a name")
    reader.warnings += [f"{'.'.join(path)}: not used: no panel, public table or checks in it" for path in unused]
    if not blocks and not reader.problems:
        reader.problems.append("no panel, public table or checks in it; expected at least one of them")
    if reader.problems:
        raise RecordError([f"{name}: {problem}" for problem in reader.problems])
    return Record(os.path.basename(name), sha256, blocks, [f"{name}: {warning}" for warning in reader.warnings])


def find_blocks(value, name):
    """([(path, object)] of every block in a record, paths of what holds none); any object that is no block is a section to walk into."""
    sections, found, unused = [((), value)], [], []
    while sections:
        path, section = sections.pop()
        if isinstance(section, dict) and (_is_panel(section) or section.keys() & {"datasets", "measure", "checks"}):
            found.append((path, section))
        elif isinstance(section, dict) and path[-1:] != ("about",):
            sections += [((*path, key), member) for key, member in reversed(section.items()) if isinstance(member, (dict, list))]
        unused += [path] * (path[-1:] != ("about",))
        if len(path) > 100:
            raise RecordError(f"{name}: nested too deeply: expected sections at most 100 deep")
    walked = {path[:length] for path, _ in found for length in range(len(path) + 1)}
    return found, [path for path in unused if path not in walked and path[:-1] in walked]


def _is_panel(value):
    return isinstance(value.get("queries"), list) or len(value.keys() & {"queries", "models", "cutoffs"}) > 1


def _is_count(value, least=0):
    return type(value) is int and value >= least


def _is_number(value, low=-1e300, high=1e300):
    return type(value) in NUMBER and low <= value <= high


class _Reader:
    """Turns parsed JSON into blocks; notes every problem and warning on the way, each with its place."""

    def __init__(self):
        self.problems, self.warnings, self.query = [], [], ""

    def expect(self, holds, place, expected, value, hint=""):
        """Note a problem unless it holds; gives back whether it does."""
        if not holds:
            self.problems.append(f"{place}: expected {expected}, got {quote(value)}{hint}{self.query}")
        return holds

    def object(self, value, place, known=None):
        """The object, or an empty one after noting that it is none; keys that are not known are warned of."""
        if not self.expect(isinstance(value, dict), place, "an object", value):
            return {}
        if known and not value.keys() <= known:
            self.warnings += [f"{_at(place, key)}: unknown key, not used; expected one of {', '.join(sorted(known))}{self.query}"
                              for key in value if key not in known]
        return value

    def name(self, text, place, what):
        """Note what is wrong with an id or a name: control characters and lone surrogates break reports and files."""
        if self.expect(isinstance(text, str) and text.strip(), place, f"{what}, a string that is not empty", text):
            for odd in () if text.isprintable() else text:
                if ord(odd) in CONTROLS or odd in "\t\n" or "\ud800" <= odd <= "\udfff":
                    kind = "control character" if odd < "\xa0" else "lone surrogate"
                    self.problems.append(f"{place}: {kind} U+{ord(odd):04X} in {ascii(text)}; expected {what} that can be printed")
                elif not odd.isprintable() and not odd.isspace():
                    self.warnings.append(f"{place}: {ascii(text)} has U+{ord(odd):04X}, which is not seen; names are compared as they are")

    def panel(self, value, place):
        """A Panel, or None after noting what is wrong."""
        found = len(self.problems)
        value = self.object(value, place, PANEL_KEYS)
        self.problems += [f"{_at(place, key)}: missing" for key in ("models", "cutoffs", "queries") if key not in value]
        models = self.object(value.get("models", {}), at := _at(place, "models"))
        self.expect(models or "models" not in value, at, "at least one model", models)
        for model, identity in models.items():
            self.name(model, at, "a model's name")
            self.object(identity, _at(at, model))
        depth, cutoffs, tolerance = value.get("depth", inf), value.get("cutoffs", [1]), value.get("tolerance", 1)
        self.expect(depth == inf or _is_count(depth, 1), _at(place, "depth"), "an integer of at least 1", depth)
        increasing = (isinstance(cutoffs, list) and 0 < len(cutoffs) <= MAX_CUTOFFS and all(map(_is_count, cutoffs))
                      and all(map(lt, [0, *cutoffs], [*cutoffs, MAX_DEPTH + 1])))
        expected = f"at most {MAX_CUTOFFS} increasing integers k, each at least 1 and at most {MAX_DEPTH:,}"
        if self.expect(increasing, at := _at(place, "cutoffs"), expected, cutoffs) and _is_count(depth):
            self.expect(cutoffs[-1] <= depth, at, f"none beyond the depth of {depth}", cutoffs)
        self.expect(_is_number(tolerance, 0, 1) and tolerance, _at(place, "tolerance"), "a number above 0 and at most 1", tolerance)
        scale = self.scale(value.get("grades", {}), _at(place, "grades"))
        pairs = self.comparisons(value.get("comparisons"), list(models), _at(place, "comparisons"))
        columns = self.queries(value["queries"], _at(place, "queries"), models, depth, scale[0]) if len(self.problems) == found else None
        if len(self.problems) > found:
            return None
        panel = Panel(place, models, value.get("depth"), tuple(cutoffs), *scale, gain_table(scale[2], scale[0]), pairs,
                      value.get("tolerance"), *columns)
        held = {"queries": len(panel.ids), "graded_pairs": _graded_pairs(panel.counts), "excluded_positions":
                {model: sum(ranking.count(EXCLUDED) for ranking in rankings) for model, rankings in panel.rankings.items()}}
        for key, count in self.object(value.get("reference", {}), at := _at(place, "reference"), held.keys()).items():
            if key in held and list(differences(count, held[key], 0)):
                self.problems.append(f"{_at(at, key)}: {quote(count)} declared, but the file holds {quote(held[key])}")
        return panel

    def scale(self, value, place):
        """(max grade, useful grade, gain) of a panel's `grades`."""
        grades = self.object(value, place, {"max", "useful", "gain"})
        top, gain = grades.get("max", 3), grades.get("gain", "exponential")
        fine = self.expect(_is_count(top, 1) and top <= MAX_GRADE, _at(place, "max"), f"an integer 1 to {MAX_GRADE}", top)
        useful = grades.get("useful", min(2, top) if fine else 2)
        self.expect(not fine or _is_count(useful, 1) and useful <= top, _at(place, "useful"), f"an integer 1 to {top}", useful)
        self.expect(gain in ("exponential", "linear"), _at(place, "gain"), '"exponential" or "linear"', gain)
        return top, useful, gain

    def comparisons(self, value, models, place):
        """The (base, candidate) pairs: the declared ones, or the first model against each other one."""
        if value is None or not self.expect(isinstance(value, list), place, "a list of [base, candidate] pairs", value):
            return tuple((models[0], other) for other in models[1:])
        for index, pair in enumerate(value):
            known = isinstance(pair, list) and len(pair) == 2 and pair[0] != pair[1] and all(model in models for model in pair)
            self.expect(known and pair not in value[:index], f"{place}[{index}]", f"a new pair of two of the models {models}", pair)
        return tuple(tuple(pair) for pair in value if isinstance(pair, list))

    def queries(self, value, place, models, depth, top):
        """The columns of a Panel: ids, types, counts, rankings, selected, reasons."""
        found, ids, types, counts, selected = len(self.problems), {}, [], [], []
        rankings = {model: [] for model in models}
        self.depth, self.top, self.reasons, self.grades = depth, top, {}, bytes((*range(top + 1), EXCLUDED))
        self.no_counts = {str(grade): -1 if grade == 0 else 0 for grade in range(top + 1)}
        some = self.expect(isinstance(value, list) and value, place, "a list of at least one query (no records to score)", value)
        for index, query in enumerate(value if some else ()):
            self.query, at = "", f"{place}[{index}]"
            query = self.object(query, at, QUERY_KEYS)
            self.query = f' (query "{query["id"]}")' if isinstance(query.get("id"), str) else ""
            if missing := [f"{at}.{key}: missing{self.query}" for key in ("id", "reference_grade_counts", "rankings") if key not in query]:
                self.problems += missing
                continue
            self.query_id(query["id"], f"{at}.id", ids)
            types.append(query.get("type"))
            if "type" in query:
                self.name(types[-1], f"{at}.type", "a type")
            counts.append(self.counts(query["reference_grade_counts"], f"{at}.reference_grade_counts"))
            own = self.object(query["rankings"], f"{at}.rankings")
            if self.expect(own.keys() == models.keys(), f"{at}.rankings", f"a ranking of each of the models {list(models)}", list(own)):
                for model in models:
                    rankings[model].append(self.ranking(own[model], f"{at}.rankings.{model}", counts[-1], model, index))
                selected.append(self.selected(query["selected"], f"{at}.selected", own) if "selected" in query else None)
        self.query = ""
        for what, column in (("type", types), ("selected", selected)):
            if 0 < (missing := column.count(None)) < len(column):
                self.problems.append(f"{place}[{column.index(None)}].{what}: missing here and in {missing:,} of {len(column):,} queries;"
                                     " expected in every query or in none")
        if len(self.problems) > found:
            return None
        return (tuple(ids), tuple(types) if any(types) else None, tuple(counts), {model: tuple(own) for model, own in rankings.items()},
                {model: tuple(own[model] for own in selected) for model in models} if all(selected) else None, self.reasons)

    def query_id(self, query_id, place, ids):
        """Add a query's id; ids is {id: place}."""
        self.name(query_id, place, "a query id")
        if isinstance(query_id, str):
            if query_id in ids:
                self.problems.append(f'{place}: duplicate query id "{query_id}", also at {ids[query_id]}')
            if query_id != query_id.strip():
                self.warnings.append(f"{place}: a space at the edge of {quote(query_id)}; ids are compared as they are")
            ids[query_id] = place

    def counts(self, counts, place):
        """How many passages of the reference carry each grade, as a tuple by grade; -1 for grade 0 where it is left out."""
        if (isinstance(counts, dict) and counts.keys() <= self.no_counts.keys() and set(map(type, counts.values())) <= {int}
                and min(counts.values(), default=0) >= 0 and max(counts.values(), default=0) <= MAX_COUNT):
            return tuple({**self.no_counts, **counts}.values())
        for key, count in self.object(counts, place).items():
            self.expect(key in self.no_counts, place, f'grades 0..{self.top}, written "0" to "{self.top}"', key)
            self.expect(_is_count(count) and count <= MAX_COUNT, f"{place}.{key}", f"an integer 0 to {MAX_COUNT}", count)
        return ()

    def ranking(self, ranking, place, counts, model, query):
        """A ranking as bytes: a grade each, or EXCLUDED; the reasons of excluded positions go to self.reasons."""
        if not self.expect(isinstance(ranking, list), place, "a list of positions", ranking):
            return b""
        if len(ranking) > self.depth:
            self.problems.append(f"{place}: {len(ranking)} positions, over the depth of {self.depth}{self.query}")
        grades, packed, kinds, problem = ranking, None, set(map(type, ranking)), ""
        excluded = [index for index, position in enumerate(ranking) if type(position) is dict] if dict in kinds else ()
        if excluded:
            grades = ranking.copy()
            for index in excluded:
                grades[index] = EXCLUDED
                self.reasons[model, query, index] = ranking[index].get("reason")
                problem = problem or _position_problem(ranking[index])
        if kinds <= {int, dict} and not problem:
            try:
                packed = bytes(grades)
            except ValueError:  # a number under 0 or over 255
                packed = None
        if packed is None or packed.translate(None, self.grades) or packed.count(EXCLUDED) != len(excluded):
            for index, position in enumerate(ranking):
                plain = type(position) is int and 0 <= position <= self.top
                self.expect(plain or isinstance(position, dict) and not _position_problem(position), f"{place}[{index}]",
                            f"a grade 0 to {self.top} (an integer, 0..{self.top}) or an excluded position", position,
                            f"{_position_problem(position)}, at rank {index + 1}")
            return b""
        for grade, count in enumerate(counts):
            if packed.count(grade) > count >= 0:
                shown = f"{packed.count(grade)} ranked, but {count} in reference_grade_counts"
                self.problems.append(f"{place}: grade {grade}: {shown}{self.query}")
        return packed

    def selected(self, selected, place, rankings):
        """{model: number of leading positions the pipeline would return}."""
        own = self.object(selected, place, rankings.keys())
        for model, ranking in rankings.items():
            length = len(ranking) if isinstance(ranking, list) else 0
            self.expect(_is_count(own.get(model)) and own[model] <= length, f"{place}.{model}", f"an integer 0 to {length}", own.get(model))
        return own

    def table(self, value, place):
        """A Table of per-query scores by data set and model."""
        value = self.object(value, place, {"about", "measure", "models", "comparisons", "datasets"})
        self.name(value.get("measure"), _at(place, "measure"), "a measure")
        models, datasets, where = dict(self.object(value.get("models", {}), _at(place, "models"))), {}, _at(place, "datasets")
        for dataset, block in self.object(value.get("datasets"), where).items():
            block = self.object(block, at := _at(where, dataset), {"about", "queries", "scores"})
            queries, scores = block.get("queries"), self.object(block.get("scores"), f"{at}.scores")
            counted = self.expect(_is_count(queries, 1), f"{at}.queries", "the number of queries", queries)
            for model, column in scores.items():
                models.setdefault(model)
                listed = self.expect(isinstance(column, list), f"{at}.scores.{model}", "a list of scores", column)
                if listed and counted and len(column) != queries:
                    self.problems.append(f"{at}.scores.{model}: {len(column)} scores, but {queries} queries declared")
                for index, score in enumerate(column if listed else ()):
                    self.expect(_is_number(score, 0, 1), f"{at}.scores.{model}[{index}]", "a number 0 to 1", score, ", outside 0..1")
            datasets[dataset] = (queries, scores)
        for name in (*datasets, *models):
            self.name(name, where, "a name")
        self.expect(any(scores for _, scores in datasets.values()), where, "at least one data set with scores", list(datasets))
        pairs = self.comparisons(value.get("comparisons"), list(models), _at(place, "comparisons"))
        return Table(place, value.get("measure"), tuple(models), pairs, datasets)

    def checks(self, value, place):
        """Checks: measured values, each against a threshold."""
        self.object(value, place, {"about", "checks"})
        checks, where = {}, _at(place, "checks")
        for name, check in self.object(value["checks"], where).items():
            self.name(name, where, "a name")
            check = self.object(check, at := _at(where, name), {"about", "value", "values", "at_least", "at_most", "passed"})
            direction = "at_least" if "at_least" in check else "at_most"
            values = check.get("values", [check.get("value")])
            numbers = isinstance(values, list) and values and all(map(_is_number, values))
            one, once = ("value" in check) != ("values" in check), ("at_least" in check) != ("at_most" in check)
            fine = self.expect(numbers and one, at, "a number as value, or a list of numbers as values", check)
            if self.expect(once and _is_number(check[direction]), at, "one threshold, a number as at_least or at_most", check) and fine:
                checks[name] = (tuple(values), direction, check[direction])
                passed = check_verdict(*checks[name])["passed"]
                if check.get("passed", passed) is not passed:
                    self.problems.append(f"{at}.passed: {quote(check['passed'])} declared, but the values give {quote(passed)}")
        self.expect(value["checks"], where, "at least one check", value["checks"])
        return Checks(place, checks)


def _position_problem(position):
    """What keeps an object from being {"grade": null, "excluded": true, "reason": ...}; empty where nothing does."""
    if not isinstance(position, dict):
        return '; write {"grade": null, "excluded": true}' if position is None else ""
    grade, excluded = position.get("grade", MISSING), position.get("excluded", MISSING)
    if grade is None and excluded is True and (len(position) == 2 or len(position) == 3 and isinstance(position.get("reason"), str)):
        return ""
    unknown = position.keys() - {"grade", "excluded", "reason"}
    return ("; grade is missing" if grade is MISSING else f"; unknown key {min(unknown)}" if unknown
            else "; write the grade alone" if grade is not None and excluded is MISSING
            else f"; excluded: expected true or false, got {quote(excluded)}" if not isinstance(excluded, (bool, _Refused))
            else f"; excluded stands beside grade {quote(grade)}" if grade is not None
            else "; grade null needs excluded true" if excluded is not True
            else "" if position.get("reason") is None else "; reason: expected a string")


def _graded_pairs(counts):
    return sum(max(own[0], 0) + sum(own[1:]) for own in counts)


# Metrics: each gives, over all queries, the numerators and the denominators of a ratio

# What one model shows at one cutoff, a list over the queries each: the retained grades (cut first, then excluded positions dropped),
# how many of them are useful, and their DCG; and of the reference: how many useful passages it knows, and the ideal DCG.
Cut = namedtuple("Cut", "retained useful dcg known ideal useless")
DISCOUNTED = {}  # {gains: the discounted gain of each grade, a tuple for each rank}; made as far as it is needed


def gain_table(gain, max_grade):
    """The gain of each grade 0 to max_grade: the grade itself (linear) or 2^grade - 1 (exponential; Burges et al. 2005)."""
    return tuple(2**grade - 1 if gain == "exponential" else grade for grade in range(max_grade + 1))


def dcg(grades, gains):
    """Discounted cumulative gain of retained grades (bytes), rank 1 first: the sum of gain / log2(rank + 1), correctly rounded.

    Järvelin and Kekäläinen 2002, discounted from rank 2 on.

    >>> dcg(bytes([3, 0, 1]), gain_table("exponential", 3))  # 7 / 1 + 0 + 1 / 2
    7.5
    """
    return fsum(dcg_terms(grades, gains))


def dcg_terms(grades, gains):
    """The terms of the DCG of retained grades (bytes), rank 1 first: gain / log2(rank + 1). gains is a tuple."""
    table = DISCOUNTED.setdefault(gains, [])
    while len(table) < len(grades):
        discount = log2(len(table) + 2)
        table.append(tuple(gain / discount for gain in gains))
    return list(map(getitem, table, grades))


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
    return ([useful / known if known else 0.0 for useful, known in zip(cut.useful, cut.known)],
            [1 if known else 0 for known in cut.known])


def ndcg(cut):
    """nDCG: DCG over the ideal DCG of the k best grades in the reference, over 1; 0 where the reference has no gain.

    Retained [0, 3] at k = 2 of a reference with one 3 and one 1, exponential: (7 / log2 3) / (7 + 1 / log2 3) = 0.578764.
    """
    return [own / ideal if ideal else 0.0 for own, ideal in zip(cut.dcg, cut.ideal)], [1] * len(cut.ideal)


def mrr(cut):
    """MRR: one over the rank, among the retained positions, of the first useful one, over 1; 0 without one.

    Retained [0, 2, 3] and [1], useful from 2: (1/2 + 0) / (1 + 1) = 0.25.
    """
    useless = cut.useless
    return ([1 / (len(grades) - len(grades.lstrip(useless)) + 1) if useful else 0.0
             for grades, useful in zip(cut.retained, cut.useful)], [1] * len(cut.useful))


METRICS = {"hit": hit, "precision": precision, "recall": recall, "ndcg": ndcg, "mrr": mrr}
TITLES = {"hit": "Hit", "precision": "Precision", "recall": "Recall", "ndcg": "nDCG", "mrr": "MRR",
          "selected_precision": "Selected precision"}
# One metric at one cutoff (None for selected precision) over all queries: sums is {model: (numerators, denominators)}, excluded
# is {model: excluded positions in each query's prefix}.
Measured = namedtuple("Measured", "metric cutoff eligible sums excluded")


def retained_grades(panel, lengths):
    """({model: retained grades per query}, eligible) of every model's prefixes; lengths is {model: prefix length per query}.

    Cut, then drop, never backfill. A query whose prefix is not empty but wholly excluded, in any model, is eligible in none.
    """
    retained, eligible = {}, [1] * len(panel.ids)
    for model, rankings in panel.rankings.items():
        prefixes = retained[model] = [ranking[:length] for ranking, length in zip(rankings, lengths[model])]
        if any(map(contains, prefixes, repeat(EXCLUDED))):
            retained[model] = [prefix.replace(EXCLUDED_BYTE, b"") for prefix in prefixes]
            eligible = [1 if was and (kept or not prefix) else 0 for was, kept, prefix in zip(eligible, retained[model], prefixes)]
    return retained, eligible


def measure(panel, cutoffs=None):
    """Every metric of a panel at every cutoff, as a list of Measured in the order of TITLES."""
    cutoffs = cutoffs or panel.cutoffs
    lengths = {k: dict.fromkeys(panel.models, [k] * len(panel.ids)) for k in cutoffs}
    useless, known = bytes(range(panel.useful)), [sum(counts[panel.useful:]) for counts in panel.counts]
    best = (dcg_terms(ideal_grades(counts, cutoffs[-1]), panel.gains) for counts in panel.counts)
    ideals = dict(zip(cutoffs, zip(*([fsum(own[:k]) for k in cutoffs] for own in best))))
    terms = {model: [dcg_terms(grades, panel.gains) for grades in own]
             for model, own in retained_grades(panel, lengths[cutoffs[-1]])[0].items()}
    measured = []

    def add(metrics, cutoff, lengths):
        retained, eligible = retained_grades(panel, lengths)
        cuts = {model: Cut(own, [len(grades.translate(None, useless)) for grades in own],
                           [fsum(shown[:len(grades)]) for shown, grades in zip(terms[model], own)], known, ideals.get(cutoff), useless)
                for model, own in retained.items()}
        excluded = {model: list(map(sub, map(min, map(len, panel.rankings[model]), lengths[model]), map(len, own)))
                    for model, own in retained.items()}
        measured.extend(Measured(name, cutoff, eligible, {model: function(cut) for model, cut in cuts.items()}, excluded)
                        for name, function in metrics.items())

    for k in cutoffs:
        add(METRICS, k, lengths[k])
    if panel.selected:
        add({"selected_precision": precision}, None, panel.selected)
    return sorted(measured, key=lambda item: list(TITLES).index(item.metric))


def query_values(panel, model, k):
    """{metric: one value or None per query} of a model at cutoff k. None: not eligible, or the query has no such value."""
    return {item.metric: [n / d if d and allowed else None for n, d, allowed in zip(*item.sums[model], item.eligible)]
            for item in measure(panel, (k,)) if item.cutoff}


# Statistics


def ratio(numerators, denominators):
    """The sum of the numerators over the sum of the denominators (integers), or None where that is 0."""
    total = sum(denominators)
    return fsum(numerators) / total if total else None


def influences(numerators, denominators):
    """How far each query pulls the ratio from where it is: (n - ratio * d) / mean d. They sum to 0."""
    value, mean = ratio(numerators, denominators), sum(denominators) / len(denominators)
    return [(n - value * d) / mean for n, d in zip(numerators, denominators)]


def standard_error(pulls):
    """The standard error of a ratio from its influences; 0 where all are 0 but for rounding."""
    return sqrt(fsum(map(mul, pulls, pulls)) / (len(pulls) - 1) / len(pulls)) if max(pulls) - min(pulls) > 1e-12 else 0.0


def t_tail(t, df):
    """The two-sided p-value of Student's t with df degrees of freedom: the regularized incomplete beta function I_x(df/2, 1/2)
    at x = df / (df + t^2), by the continued fraction of Press et al., Numerical Recipes, 6.4.

    >>> round(t_tail(5, 3), 12)
    0.015392438073
    """
    square = t * t
    if square < 1e-300:
        return 1.0
    a, b, x, rest = df / 2, 0.5, 1 / (1 + square / df), 1 / (1 + df / square)
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
    """(ratio, low, high) with its 95% interval, Student's t on the influences; None where it is undefined.

    Queries whose denominator is 0 are left out, as they say nothing about the ratio. 1, 0, 1, 0 over ones: 0.5 and
    0.5 -+ 3.182446 * sqrt(1/3 / 4).
    """
    numerators, denominators = list(compress(numerators, denominators)), list(filter(None, denominators))
    value = ratio(numerators, denominators)
    if len(numerators) < 2:
        return value, None, None
    half = t_95(len(numerators) - 1) * standard_error(influences(numerators, denominators))
    return value, value - half, value + half


def compare(base, candidate):
    """Compare two models on the same queries, each as (numerators, denominators), paired by position.

    Gives difference (candidate - base), low, high and p of the paired Student's t on the influences, and the queries won, tied and
    lost. low, high and p are None for fewer than two queries; p also where every query differs by the same amount.
    Base 0.1, 0.2, 0.3, 0.4 and candidate 0.2, 0.3, 0.4, 0.6 over ones: difference 0.125, t = 5, p = 0.0153924, 4 wins.
    """
    if not (all(base[1]) or all(candidate[1])):  # a query without any denominator says nothing about the ratio
        known = list(map(max, base[1], candidate[1]))
        base, candidate = ([list(compress(column, known)) for column in sums] for sums in (base, candidate))
    same = base[1] == candidate[1]
    old, new = (numerators if same else [n / d if d else 0.0 for n, d in zip(numerators, denominators)]
                for numerators, denominators in (base, candidate))
    wins, losses, difference, low, high, p = sum(map(gt, new, old)), sum(map(lt, new, old)), None, None, None, None
    if any(base[1]) and any(candidate[1]):
        gained = list(map(sub, new, old))
        difference = ratio(gained, base[1]) if same else ratio(*candidate) - ratio(*base)
        if len(old) > 1:
            pulls = influences(gained, base[1]) if same else list(map(sub, influences(*candidate), influences(*base)))
            error, df = standard_error(pulls), len(pulls) - 1
            low, high = difference - t_95(df) * error, difference + t_95(df) * error
            p = t_tail(difference / error, df) if error else None
    return {"difference": difference, "low": low, "high": high, "p": p, "wins": wins, "ties": len(old) - wins - losses, "losses": losses}


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
    scales = {place: {"max": block.max_grade, "useful": block.useful, "gain": block.gain, "cutoffs": list(block.cutoffs)}
              for place, block in record.blocks.items() if isinstance(block, Panel)}
    summary = {"signature": {"record": record.name, "sha256": record.sha256, "format": FORMAT, "panels": scales}}
    for place, block in record.blocks.items():
        section_at(summary, place).update(summarize_block(block))
    return summary


def section_at(summary, place):
    """The section of a summary at a place such as a.b, made where it is not there yet."""
    for key in place.split(".") if place else ():
        summary = summary.setdefault(key, {})
    return summary


def summarize_block(block):
    """The results of a Panel, Table or Checks."""
    return {Panel: summarize_panel, Table: summarize_table, Checks: summarize_checks}[type(block)](block)


def summarize_panel(panel):
    """The results of a panel over all queries, over the answerable ones and over each type."""
    measured, everything = measure(panel), [1] * len(panel.ids)
    answerable = [1 if sum(counts[panel.useful:]) else 0 for counts in panel.counts]
    summary = _population(panel, measured, everything)
    summary["answerable"] = dict(summary) if answerable == everything else _population(panel, measured, answerable)
    if panel.types:
        summary["types"] = {kind: _population(panel, measured, [1 if own == kind else 0 for own in panel.types])
                            for kind in sorted(set(panel.types))}
    return summary


def _population(panel, measured, members):
    """The results over one population: members[query] is 1 for the queries in it."""
    models, excluded = {model: {} for model in panel.models}, {model: {} for model in panel.models}
    comparisons = [{"base": base, "candidate": candidate} for base, candidate in panel.comparisons]
    eligible, families = {}, [[] for _ in comparisons]
    for item in measured:
        allowed = list(map(and_, item.eligible, members))
        sums = item.sums if all(allowed) else {model: [list(compress(column, allowed)) for column in own]
                                               for model, own in item.sums.items()}
        if item.cutoff:
            eligible[str(item.cutoff)] = sum(allowed)
            for model, shown in item.excluded.items():
                excluded[model][str(item.cutoff)] = sum(compress(shown, members))
        for model, block in models.items():
            _put(block, item, value := rounded(ratio(*sums[model])))
            if value is None:
                why = ("no query is eligible" if not any(allowed) else "no eligible query has a known useful passage"
                       if item.metric == "recall" else "no position is retained")
                block.setdefault("undefined", []).append(f"{label(item.metric, item.cutoff)}: {why}")
        for block, family in zip(comparisons, families):
            entry = compare(sums[block["base"]], sums[block["candidate"]])
            _put(block, item, entry)
            family.append((label(item.metric, item.cutoff), entry))
    for block, family in zip(comparisons, families):
        if undefined := _complete(family, panel.tolerance):
            block["undefined"] = undefined
    return {"queries": sum(members), "graded_pairs": _graded_pairs(compress(panel.counts, members)), "eligible": eligible,
            "excluded_positions": excluded, "models": models, "comparisons": comparisons}


def _put(block, item, value):
    if item.cutoff:
        block.setdefault(item.metric, {})[str(item.cutoff)] = value
    else:
        block[item.metric] = value


def label(metric, cutoff):
    """How a metric at a cutoff is written: nDCG@10."""
    return f"{TITLES[metric]}@{cutoff}" if cutoff else TITLES[metric]


def _complete(family, tolerance=None):
    """Complete the (label, entry) pairs of one comparison with Holm's adjustment, rounding, tolerance; gives why p-values are missing."""
    undefined = []
    for (name, entry), p_holm in zip(family, holm([entry["p"] for _, entry in family])):
        if entry["p"] is None:
            why = ("a model has no value" if entry["difference"] is None else "fewer than two queries" if entry["low"] is None
                   else "every query differs by the same amount")
            undefined.append(f"{name}: no p-value: {why}")
        counts = {key: entry.pop(key) for key in ("wins", "ties", "losses")}
        entry.update({key: rounded(entry[key]) for key in ("difference", "low", "high")})
        entry.update({key: None if p is None else float(f"{p:.10g}") for key, p in (("p", entry["p"]), ("p_holm", p_holm))}, **counts)
        if tolerance:
            entry["within_tolerance"] = None if entry["low"] is None else -tolerance <= entry["low"] and entry["high"] <= tolerance
    return undefined


def rounded(value):
    """A number to 12 decimals, so that the last bits of a platform's logarithm do not show; never -0."""
    return None if value is None else round(value, 12) + 0.0


def summarize_table(table):
    """The mean of every model on every data set, the paired comparisons, and the averages over the data sets that all models share."""
    datasets, families = {}, {pair: [] for pair in table.comparisons}
    for name, (queries, scores) in table.datasets.items():
        ones = [1] * queries
        block = datasets[name] = {"queries": queries, "means": {model: rounded(ratio(scores[model], ones)) for model in table.models
                                                                if model in scores}, "comparisons": []}
        if absent := [model for model in table.models if model not in scores]:
            block["absent"] = absent
        for base, candidate in families:
            if base in scores and candidate in scores:
                entry = {"base": base, "candidate": candidate, **compare((scores[base], ones), (scores[candidate], ones))}
                block["comparisons"].append(entry)
                families[base, candidate].append((f"{candidate} - {base} on {name}", entry))
    shared = [name for name in datasets if "absent" not in datasets[name]]
    means = {model: rounded(ratio([datasets[name]["means"][model] for name in shared], [1] * len(shared))) for model in table.models}
    summary = {"measure": table.measure, "datasets": datasets, "average": {"datasets": shared, "means": means}}
    undefined = [reason for family in families.values() for reason in _complete(family)]
    undefined += ["average: no data set was measured with every model"] * (not shared)
    return {**summary, "undefined": undefined} if undefined else summary


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


def differences(stored, recomputed, tolerance, place=""):
    """(place, stored, recomputed) wherever two summaries differ. Floats may differ by the tolerance, all else must be equal."""
    if isinstance(stored, dict) and isinstance(recomputed, dict):
        for key in [*recomputed, *(key for key in stored if key not in recomputed)]:
            yield from differences(stored.get(key, MISSING), recomputed.get(key, MISSING), tolerance, _at(place, key))
    elif isinstance(stored, list) and isinstance(recomputed, list):
        for index in range(max(len(stored), len(recomputed))):
            pair = [values[index] if index < len(values) else MISSING for values in (stored, recomputed)]
            yield from differences(*pair, tolerance, _at(place, index))
    elif _is_number(stored) and type(recomputed) is float:
        if not abs(stored - recomputed) <= tolerance:
            yield place, stored, recomputed
    elif type(stored) is not type(recomputed) or stored != recomputed:
        yield place, stored, recomputed


# Screen

PERCENT = {"hit", "precision", "recall", "selected_precision"}


def show(metric, value):
    """A value as it is printed: percent for Hit, precision and recall, four decimals for nDCG, MRR and other measures."""
    return "undefined" if value is None else f"{100 * value:.2f}%" if metric in PERCENT else f"{value:.4f}"


def show_difference(metric, entry):
    """A difference with its interval, in percentage points where the metric is in percent; = within tolerance, * Holm's p < 0.05."""
    scale, digits, unit = (100, 2, " pp") if metric in PERCENT else (1, 4, "")
    if entry["difference"] is None:
        return "undefined"
    value, *ends = (f"{scale * entry[key]:+.{digits}f}" for key in ("difference", "low", "high") if entry[key] is not None)
    interval = f" [{', '.join(ends)}]{unit}" if ends else f"{unit} (no interval)"
    star = " =" * bool(entry.get("within_tolerance")) + " *" * (entry["p_holm"] is not None and entry["p_holm"] < 0.05)
    return value + interval + star


def panel_rows(block):
    """The table of one population of a panel: a row for each metric and cutoff, a column for each model and each comparison."""
    rows = [["", *block["models"], *(f"{pair['candidate']} - {pair['base']}" for pair in block["comparisons"])]]
    columns = [*block["models"].values(), *block["comparisons"]]
    for metric in (metric for metric in TITLES if metric in columns[0]):
        for cutoff in block["eligible"] if metric in METRICS else (None,):
            cells = [column[metric][cutoff] if cutoff else column[metric] for column in columns]
            eligible = block["eligible"].get(cutoff, block["queries"])
            rows.append([label(metric, cutoff) + f" ({plural(eligible, 'query')})" * (eligible != block["queries"]),
                         *(show_difference(metric, cell) if isinstance(cell, dict) else show(metric, cell) for cell in cells)])
    return rows


def type_rows(types, cutoffs):
    """The table of a panel's types: Hit and nDCG of each model at cutoff 10, or at the largest one."""
    k = "10" if 10 in cutoffs else str(cutoffs[-1])
    columns = [(metric, model) for metric in ("hit", "ndcg") for model in next(iter(types.values()))["models"]]
    return [["type", "queries", *(f"{label(metric, k)} {model}" for metric, model in columns)],
            *([kind, f"{block['queries']:,}" + f" ({block['eligible'][k]:,} at {k})" * (block['eligible'][k] != block['queries']),
               *(show(metric, block["models"][model][metric][k]) for metric, model in columns)] for kind, block in types.items())]


def table_rows(table, summary):
    """The table of a public table: a row for each data set, then the average over those that every model was measured on."""
    rows = [["data set", "queries", *table.models, *(f"{candidate} - {base}" for base, candidate in table.comparisons)]]
    for name, block in summary["datasets"].items():
        entries = {(entry["base"], entry["candidate"]): show_difference("", entry) for entry in block["comparisons"]}
        means = [show("", block["means"][model]) if model in block["means"] else "absent" for model in table.models]
        rows.append([name, f"{block['queries']:,}", *means, *(entries.get(pair, "") for pair in table.comparisons)])
    average = summary["average"]
    return [*rows, [f"average of {len(average['datasets'])}", "", *(show("", average["means"][model]) for model in table.models),
                    *("" for _ in table.comparisons)]]


def check_rows(summary):
    """The table of checks: a row each, with the worst value, the threshold and the verdict."""
    return [["check", "worst value", "threshold", "failing", "verdict"],
            *([name, f"{own['value']:.7g}", f"at least {own['at_least']}" if "at_least" in own else f"at most {own['at_most']}",
               f"{own['failing']} of {own['values']}", "pass" if own["passed"] else "FAIL"] for name, own in summary["checks"].items())]


def panel_notes(panel, summary):
    """What a reader of the table must know: the scale, what is excluded, which queries are not eligible or without results."""
    k = panel.cutoffs[-1]
    yield (f"Useful: grade {panel.useful} or more of 0 to {panel.max_grade}. Gain: {panel.gain}."
           + " [ ]: paired 95% interval. *: Holm-adjusted p < 0.05." * bool(panel.comparisons)
           + f" =: the whole interval is within {panel.tolerance}." * bool(panel.tolerance))
    for model, rankings in panel.rankings.items():
        if excluded := summary["excluded_positions"][model][str(k)]:
            yield f"{model}: {excluded:,} of {sum(len(ranking[:k]) for ranking in rankings):,} positions excluded at {k}."
        if not all(rankings):
            yield f"{model}: 0 ranked for {_listed(panel.ids, map(len, rankings))}: zero, and no weight in pooled precision."
    for cutoff in panel.cutoffs:
        if summary["eligible"][str(cutoff)] < len(panel.ids):
            eligible = retained_grades(panel, dict.fromkeys(panel.models, [cutoff] * len(panel.ids)))[1]
            yield f"At {cutoff}: all excluded in some model, so not eligible: {_listed(panel.ids, eligible)}."
    known = [sum(counts[panel.useful:]) for counts in panel.counts]
    if not all(known):
        yield f"No relevant documents (no known useful passage): {_listed(panel.ids, known)}; in every metric but recall."


def _listed(names, unless, most=5):
    """2 queries (q1, q2): the names where `unless` is zero, at most five of them."""
    names = [name for name, good in zip(names, unless) if not good]
    more = ", ..." if len(names) > most else ""
    return f"{plural(len(names), 'query')} ({', '.join(names[:most])}{more})"


def plural(count, noun):
    """A count with its noun: 1 query, 1,204 queries, 2 models."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else many}"


def block_tables(title, block, summary, markdown=False):
    """(heading, rows, notes) of each table that shows a block; the answerable queries have a table of their own in Markdown only."""
    if isinstance(block, Table):
        absent = "; ".join(f"{name}: {', '.join(own['absent'])} absent" for name, own in summary["datasets"].items() if "absent" in own)
        yield (f"{title}: mean {block.measure}", table_rows(block, summary),
               [f"The average is over the data sets that every model was measured on ({absent})."] * bool(absent))
    elif isinstance(block, Checks):
        yield f"{title}: {summary['passed']} checks pass, {summary['failed']} fail", check_rows(summary), ()
    else:
        size, answerable = plural(summary["queries"], "query"), summary["answerable"]
        yield f"{title}: {size}, {plural(summary['graded_pairs'], 'graded pair')}", panel_rows(summary), panel_notes(block, summary)
        if markdown and 0 < answerable["queries"] < summary["queries"]:
            yield f"{title}, answerable: {plural(answerable['queries'], 'query')}", panel_rows(answerable), ()
        if "types" in summary:
            yield f"{title}, by type", type_rows(summary["types"], block.cutoffs), ()


def render(tables, markdown):
    """Tables as text with aligned columns, or as Markdown."""
    lines = []
    for heading, rows, notes in tables:
        if markdown:
            rows = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in rows]
            rows.insert(1, ["---"] + ["---:"] * (len(rows[0]) - 1))
            lines += [f"**{heading}**", "", *("| " + " | ".join(row) + " |" for row in rows), "", *notes, ""]
        else:
            lines += [heading, *(f"  {line}" for line in (*aligned(rows), *notes)), ""]
    return "\n".join(lines)


def aligned(rows):
    """Rows of cells as lines of text in columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def explain(panel, query, model, k):
    """The arithmetic of one query and model as text that can be redone by hand."""
    index, gains, retained = panel.ids.index(query), panel.gains, bytearray()
    ranking, counts, best = panel.rankings[model][index][:k], panel.counts[index], ideal_grades(panel.counts[index], k)
    lines = [f"query {query}, model {model}, the first {k} positions ({len(ranking)} ranked)",
             "  rank  grade     retained  gain  log2(retained + 1)  gain / log2"]
    for place, grade in enumerate(ranking):
        if grade == EXCLUDED:
            lines.append(f"  {place + 1:4}  excluded ({panel.reasons[model, index, place] or 'no reason given'})")
        else:
            retained.append(grade)
            discount = log2(len(retained) + 1)
            lines.append(f"  {place + 1:4}  {grade:<8}  {len(retained):8}  {gains[grade]:4}  {discount:18.6f}"
                         f"  {gains[grade] / discount:11.6f}")
    known = ", ".join(f"{count} of grade {grade}" for grade, count in enumerate(counts) if count > 0)
    terms = " + ".join(f"{gains[grade]}/log2({rank + 1})" for rank, grade in enumerate(best, 1))
    lines += [f"  DCG = {dcg(retained, gains):.6f}, the sum of the last column", f"  reference: {known or 'no graded passage'}",
              f"  ideal DCG = {dcg(best, gains):.6f} = {terms or '0'}, from the {len(best)} best grades of the reference",
              f"  useful (grade {panel.useful} or more): {sum(grade >= panel.useful for grade in retained)} of {len(retained)} retained;"
              f" {sum(counts[panel.useful:])} known in the reference"]
    for item in measure(panel, (k,)):
        numerator, denominator = (column[index] for column in item.sums[model])
        value = ("not counted, since every position is excluded in some model" if not item.eligible[index] else
                 f"{numerator / denominator:.6f}" if denominator else "undefined, there is nothing to divide by")
        prefix = "" if item.cutoff else f" (over the first {panel.selected[model][index]})"
        lines.append(f"  {label(item.metric, item.cutoff)} = {value}{prefix}")
    return "\n".join([*lines, ""])


def load_records(directory, names=()):
    """([(path, Record)], notes) of a folder and of the folder records/ in it.

    names limits them to those records; notes name the JSON files that are no records. Raises RecordError that lists every problem.
    """
    outer, inner = os.fspath(directory), os.path.join(directory, "records")
    notes, known = [], []
    records, problems = _load_folder(outer, False, names, notes, known)
    own, more = _load_folder(inner, True, names, notes, known)
    if own and not records:  # what is broken beside a folder records/ does not keep from it
        notes += [f"skipped: {problem}" for problem in problems]
        problems = []
    records, problems = records + own, problems + more
    found = [record.name.removesuffix(".json") for _, record in records]
    problems += [f"{outer}: {name}.json is in it and in its folder records/ too; keep one" for name in dict.fromkeys(found)
                 if found.count(name) > 1]
    missing = sorted(set(names) - set(found))
    if not problems and (missing or not records):
        problems.append(f"{directory}: no records{' named ' * bool(missing)}{', '.join(missing)}; expected "
                        + (f"one of: {', '.join(known)}" if known else "files such as retriever.json here or in a folder records/"))
    if problems:
        raise RecordError(problems)
    return records, notes


def _load_folder(folder, optional, names, notes, known):
    """(records, problems) of one folder, which an optional one need not be; adds to the notes, and to the known names."""
    records, problems = [], []
    if optional and not os.path.isdir(folder):
        return [], []
    try:
        files = sorted(os.listdir(folder))
    except OSError as error:
        return [], [f"{folder}: cannot be read: {error.strerror}; expected a folder with records"]
    notes += [f"{os.path.join(folder, file)}: skipped: a record's name ends in .json" for file in files
              if file.lower().endswith(".json") and not file.endswith(".json")]
    for name in (file[:-5] for file in files if file.endswith(".json") and not file.endswith("-summary.json")):
        known.append(name)
        if not names or name in names:
            try:
                _load_into(os.path.join(folder, name + ".json"), name in names or name + "-summary.json" in files, records, notes)
            except RecordError as error:
                problems += error.problems
    return records, problems


def _load_into(path, wanted, records, notes):
    """Add a file to the records, or to the notes where it is no record and none is wanted of it."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise RecordError(f"{path}: cannot be read: expected a file, got a pipe or a device")  # which could wait for ever
    if not wanted and os.path.isfile(path) and not os.path.getsize(path):
        notes.append(f"{path}: skipped: it is empty")  # as a shell makes it for the output of this very command
        return
    value, sha256 = read_json(path)
    if wanted or isinstance(value, dict) and find_blocks(value, path)[0]:
        records.append((path, parse_record(value, path, sha256)))
    else:
        notes.append(f"{path}: skipped: no panel, public table or checks in it")


def _leaves(value):
    if isinstance(value, (dict, list)):
        return sum(map(_leaves, value.values() if isinstance(value, dict) else value))
    return 1


def _size(summary):
    return f"{_leaves(summary) - _leaves(summary['signature']):,} values"


def verify(records, summaries, tolerance, whole_folder):
    """(lines, found): what the stored summaries say, and each difference as (file, place, stored, recomputed)."""
    lines, found, expected = [], [], {path.removesuffix(".json") + "-summary.json" for path, _ in records}
    for (path, record), summary in zip(records, summaries):
        stored = path.removesuffix(".json") + "-summary.json"
        name = os.path.basename(stored)
        if not os.path.isfile(stored):
            found.append((name, "", MISSING, summary))
            lines.append(f"{name}: missing: {record.name} has no summary, a file of this name; --write makes it")
            continue
        own = list(differences(read_json(stored)[0], summary, tolerance))
        within = f" within {tolerance:g}" * (tolerance != TOLERANCE)
        for place, old, new in own:
            apart = f", difference {new - old:+.6g}" if _is_number(old) and _is_number(new) else ""
            lines.append(f"{name}: {place}: stored {quote(old)}, recomputed {quote(new)}{apart}")
        found += [(name, *difference) for difference in own]
        changed = f"; {record.name} is not the file that the summary was made from" * any(place == "signature.sha256" for place, *_ in own)
        result = f"{plural(len(own), 'difference')} in {_size(summary)}{changed}" if own else f"{_size(summary)} reproduced{within}"
        lines.append(f"{name}: {result}")
    for folder in dict.fromkeys(os.path.dirname(path) for path, _ in records) if whole_folder else ():
        for name in sorted(os.listdir(folder or ".")):
            if name.endswith("-summary.json") and os.path.join(folder, name) not in expected:
                found.append((name, "", name, MISSING))
                lines.append(f"{name}: a summary without a record; expected {name.replace('-summary.json', '.json')} beside it")
    return lines, found


def write_summaries(records, summaries):
    """Write every summary that is not there already to the byte, and say so."""
    lines = []
    for (path, _), summary in zip(records, summaries):
        target, new = path.removesuffix(".json") + "-summary.json", dump_json(summary)
        if os.path.exists(target) and (not os.path.isfile(target) or os.path.samefile(path, target)):
            raise RecordError(f"{target}: expected a file of its own for the output; this is the same file as the input {path}, or no file")
        old = read_bytes(target) if os.path.exists(target) else None
        changed = old != new.encode("utf-8")
        if changed:
            write_whole(target, new)
        lines.append(f"{os.path.basename(target)}: {_size(summary)} {'written' if changed else 'unchanged'}")
    return lines


def _arguments(argv):
    import argparse

    def tolerance(text):
        if not 0 <= float(text) < inf:
            raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text}")
        return float(text)

    def cutoff(text):
        if not text.isdecimal() or len(text) > 18 or int(text) < 1:
            raise argparse.ArgumentTypeError(f"k is {text[:18]}; expected an integer of at least 1")
        return int(text)

    parser = argparse.ArgumentParser(prog="metrics.py", description="Recompute every number of the records and check the summaries.",
                                     epilog="Exit status: 0 all reproduced, 1 a difference, 2 bad input or usage.", allow_abbrev=False)
    add = parser.add_argument
    add("--directory", default=".", metavar="DIR", help="a folder with records, or with a folder records/ (default: .)")
    add("--record", nargs="+", action="extend", default=[], metavar="NAME", help="only these records")
    add("--write", action="store_true", help="write the summaries instead of checking them")
    add("--format", choices=("text", "markdown", "json"), default="text")
    add("--tolerance", type=tolerance, default=TOLERANCE, metavar="T", help="the largest difference of two equal numbers (default: 1e-9)")
    add("--explain", nargs=2, metavar=("RECORD", "QUERY"), help="show the arithmetic of one query")
    add("--model", help="with --explain: only this model")
    add("--at", type=cutoff, metavar="K", help="with --explain: the cutoff (default: 10, or the largest)")
    arguments = parser.parse_args(argv)
    if not arguments.explain and (arguments.model or arguments.at):
        parser.error("--model and --at go with --explain RECORD QUERY")
    names = arguments.explain[:1] if arguments.explain else arguments.record
    folders = [os.path.realpath(os.path.join(arguments.directory, inner)) for inner in ("", "records")]
    for name in names:
        if os.path.dirname(name) and os.path.realpath(os.path.dirname(name)) not in folders:
            parser.error(f"{name} is not in {arguments.directory}; give its folder with --directory")
    arguments.names = {os.path.basename(name).removesuffix(".json") for name in names}
    return arguments


def explain_record(record, query, model, k):
    """The explanation of a query in every panel of a record that has it. Raises RecordError where none has."""
    panels = [panel for panel in record.blocks.values() if isinstance(panel, Panel)]
    if not panels:
        raise RecordError(f"{record.name}: no panel in it, so no query to explain")
    texts = []
    for panel in (panel for panel in panels if query in panel.ids):
        at = k or (10 if 10 in panel.cutoffs else panel.cutoffs[-1])
        if at > (panel.depth or MAX_DEPTH):
            raise RecordError(f"{record.name}: --at {at}: expected a cutoff within the depth of {panel.depth or MAX_DEPTH}")
        if model and model not in panel.models:
            raise RecordError(f"{record.name}: --model: expected one of {', '.join(panel.models)}, got {quote(model)}")
        texts += [explain(panel, query, own, at) for own in ([model] if model else panel.models)]
    if not texts:
        known = [name for panel in panels for name in panel.ids]
        raise RecordError(f"{record.name}: no query {quote(query)}; expected one of {_listed(known, [0] * len(known))}")
    return "\n".join(texts)


def main(argv=None):
    """The command line; gives the exit status."""
    arguments = _arguments(argv)
    records, notes = load_records(arguments.directory, arguments.names)
    for note in [*notes, *(warning for _, record in records for warning in record.warnings)]:
        print(f"note: {printable(note)}", file=sys.stderr)
    if arguments.explain:
        print(printable(explain_record(records[0][1], arguments.explain[1], arguments.model, arguments.at)))
        return 0
    summaries = [summarize(record) for _, record in records]
    lines, found = ((write_summaries(records, summaries), []) if arguments.write
                    else verify(records, summaries, arguments.tolerance, not arguments.names))
    if arguments.format == "json":
        found = [{"file": file, "place": place, "stored": None if stored is MISSING else stored,
                  "recomputed": None if recomputed is MISSING else recomputed} for file, place, stored, recomputed in found]
        print(dump_json({"summaries": {record.name: own for (_, record), own in zip(records, summaries)}, "differences": found}), end="")
    else:
        markdown = arguments.format == "markdown"
        tables = [table for (_, record), summary in zip(records, summaries) for place, block in record.blocks.items()
                  for table in block_tables(f"{record.name} {place}".strip(), block, section_at(summary, place), markdown)]
        print(render(tables, markdown))
        print(*map(printable, lines), sep="\n", file=sys.stderr if markdown else sys.stdout)  # tables alone go into a model card
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(run_command(main))
