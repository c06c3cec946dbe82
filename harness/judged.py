"""Answers in, judged answers out: reads both files, and keeps the second one so that no verdict is lost or paid for twice.

    read_answers    ANSWERS.jsonl -> Answers
    read_judged     judged.jsonl -> its rows, one an answer
    Journal         judged.jsonl while it is written: appended line by line, whole again after a kill
"""

import io
import json
import os
import re
import sys
from collections import namedtuple

from harness.files import canonical_hash, read_jsonl
from harness.verdicts import SCORES, is_refusal, named
from metrics import RecordError, decode_utf8, parse_json, quote, read_bytes, write_whole

# refused: the answer declines to answer; missed: no relevant chunk was retrieved (None where nobody says)
Answer = namedtuple("Answer", "id question type answerable refused missed answer chunks")


def read_answers(path, rubric):
    """The answers of a JSONL file. Raises RecordError that lists every problem with its line.

    Needed: id, question, answerable, answer, chunks [{id, text}] in retrieved order. Optional: type; refused, which overrules what the
    answer's text seems to say; relevant_chunks (ids, as in a golden set), which tells a retrieval miss apart.
    """
    problems, answers, lines = [], [], {}
    for number, value in read_jsonl(path):
        place = f"{path}: line {number}"
        found = []
        answer = _answer(value, place, found, rubric)
        if not found and answer.id in lines:
            found.append(f"{place}: id {named(answer.id)} stands on line {lines[answer.id]} already; each answer needs its own")
        problems += found
        if not found:
            lines[answer.id] = number
            answers.append(answer)
    if problems:
        raise RecordError(problems)
    return answers


def _answer(value, place, problems, rubric):
    """One answer; problems are added to the list."""
    if not isinstance(value, dict):
        problems.append(f"{place}: expected an object, got {quote(value)}")
        return None
    name = read_id(value, "id", place, problems)
    text = {key: _typed(value, key, str, "a text", place, problems) for key in ("question", "answer")}
    if text["question"] is not None and not text["question"].strip():
        problems.append(f"{place}: question: expected a text, got a blank one")
    answerable = _typed(value, "answerable", bool, "true or false", place, problems)
    kind = _typed(value, "type", str, "a text", place, problems) if value.get("type") is not None else "untyped"
    refused = _typed(value, "refused", bool, "true or false", place, problems) if value.get("refused") is not None else None
    chunks = _chunks(value, place, problems)
    missed = _missed(value, chunks, answerable, place, problems)
    if refused is None and text["answer"] is not None:
        refused = is_refusal(text["answer"], rubric)
    return Answer(name, text["question"], kind, answerable, refused, missed, text["answer"], chunks)


def _typed(value, key, kind, wanted, place, problems):
    if isinstance(value.get(key), kind):
        return value[key]
    problems.append(f"{place}: {key}: expected {wanted}, got {quote(value[key]) if key in value else 'nothing'}")
    return None


def read_id(value, key, place, problems):
    """An id as a text: 7 and "7" are the same id. A problem is added to the list where there is none."""
    name = value.get(key)
    if type(name) is int or (isinstance(name, str) and name.strip()):
        return str(name)
    problems.append(f"{place}: {key}: expected a text or an integer, got {quote(name) if key in value else 'nothing'}")
    return None


def _chunks(value, place, problems):
    """The chunks as (id, text) pairs; a chunk that was retrieved twice counts once, at its first rank."""
    chunks = {}
    for position, chunk in enumerate(_typed(value, "chunks", list, "a list of chunks", place, problems) or []):
        here = f"{place}: chunks[{position}]"
        if not isinstance(chunk, dict):
            problems.append(f"{here}: expected an object with id and text, got {quote(chunk)}")
            continue
        name, text = read_id(chunk, "id", here, problems), _typed(chunk, "text", str, "a text", here, problems)
        if name in chunks and chunks[name] != text:
            problems.append(f"{here}: id {named(name)} stands there twice with different texts; give each chunk its own")
        chunks.setdefault(name, text)
    return tuple(chunks.items())


def _missed(value, chunks, answerable, place, problems):
    """Whether retrieval missed every relevant chunk, or None where the answer names none."""
    if value.get("relevant_chunks") is None or not answerable:
        return None
    relevant = _typed(value, "relevant_chunks", list, "a list of chunk ids", place, problems) or []
    if not relevant:
        return None  # relevance may be given as spans only
    return not {str(name) for name in relevant} & {name for name, _ in chunks}


def messages_for(answer, rubric):
    """What the judge is sent: the rubric, then question, chunks and answer as JSON, so that no text can pass for another part."""
    shown = {"question": answer.question, "chunks": [{"id": name, "text": text} for name, text in answer.chunks],
             "answer": answer.answer}
    return [{"role": "system", "content": rubric["system"]},
            {"role": "user", "content": json.dumps(shown, ensure_ascii=False)}]


def schema_for(answer, rubric):
    """The rubric's schema, in which the chunk can only be one of the answer's, or none."""
    schema = rubric["schema"]
    chunk = {**schema["properties"]["chunk"], "enum": [*(name for name, _ in answer.chunks), ""]}
    return {**schema, "properties": {**schema["properties"], "chunk": chunk}}


def key_of(identity, rubric, schema, messages):
    """The SHA-256 that a verdict is kept under: it depends on all that the verdict depends on, and on nothing else."""
    return canonical_hash({"model": identity["digest"] or identity["model"], "options": identity["options"],
                           "rubric": rubric["sha256"], "schema": schema, "messages": messages})


def row_for(answer, key, total, outcome, identity):
    """One line of judged.jsonl. `outcome` has verdict (or None), attempts [{reason, detail}] and prompt_tokens."""
    last = outcome["attempts"][-1]["reason"] if outcome["verdict"] is None else None
    return {"id": answer.id, "type": answer.type, "answerable": answer.answerable, "refused": answer.refused,
            "missed": answer.missed, "verdict": outcome["verdict"], "unjudged": last, "attempts": outcome["attempts"],
            "prompt_tokens": outcome["prompt_tokens"], "of": total, "key": key, "judge": identity}


def line_of(row):
    """A row as one line; half a surrogate pair stays the escape that it must have been."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace").decode() + "\n"


def read_rows(path):
    """(rows, whole): every row of a judged file, and whether its last line is; one that a kill has torn is left out.

    Raises RecordError for any other line that is no row, so that a file of another kind is never taken for one, or overwritten:
    a line is torn only where it is the last, has no end, is no JSON yet, and begins as line_of writes a row.
    """
    lines = read_bytes(path).split(b"\n")
    rows, problems, torn = [], [], False
    for number, line in enumerate(lines, 1):
        name = f"{path}: line {number}"
        try:
            if line.strip():
                rows.append(_row(parse_json(decode_utf8(line, name), name), name))
        except RecordError as error:
            torn = number == len(lines) and _is_torn(line)
            problems += [] if torn else error.problems
    if problems:
        raise RecordError(problems)
    return rows, not torn


# How line_of begins every row: these texts, with a value after each. A torn text may end anywhere.
BEGINNING = ('{"id": ', ', "type": ', ', "answerable": ', ', "refused": ', ', "missed": ', ', "verdict": ')
BEGUN_VALUE = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[a-z]+', re.DOTALL)


def _is_torn(line):
    """Whether a line's bytes are a true part, from its start, of a row as line_of writes it."""
    rest = line.decode("latin-1")  # a cut may be inside a character
    for text in BEGINNING:
        if len(rest) <= len(text):
            return text.startswith(rest)
        value = BEGUN_VALUE.match(rest, len(text))
        if not rest.startswith(text) or not (value or text == BEGINNING[-1]):
            return False
        rest = rest[value.end():] if value else rest
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


NOTHING = type(None)
MOST_ANSWERS = 10**9  # more than any file holds, and few enough to divide by
# what a row's members must be, as far as anything reads them: a kind of value, and how an error calls it
ROW = {"id": (str, "a text"), "key": (str, "a text"), "type": (str, "a text"), "answerable": (bool, "true or false"),
       "refused": (bool, "true or false"), "missed": ((bool, NOTHING), "true, false or null"), "of": (int, "an integer"),
       "verdict": ((dict, NOTHING), "an object or null"), "unjudged": ((str, NOTHING), "a reason or null"),
       "attempts": (list, "a list"), "judge": (dict, "an object")}
ATTEMPT = {"reason": (str, "a text")}
IDENTITY = {**dict.fromkeys(("model", "api", "rubric", "rubric_sha256"), (str, "a text")),
            **dict.fromkeys(("server", "digest", "generator"), ((str, NOTHING), "a text or null"))}
VERDICT = {
    **dict.fromkeys(SCORES, (int, "an integer 0 to 2")),
    "chunk": ((str, NOTHING), "a chunk's id or null"),
    "note": (str, "a text"),
}


def _row(value, place):
    """A row, checked. Raises RecordError with its problems."""
    if not isinstance(value, dict) or not {"id", "key", "verdict", "judge"} <= value.keys():
        raise RecordError(f"{place}: expected a judged answer with id, key, verdict and judge; is it another file?")
    value = {**value, "missed": value.get("missed"), "unjudged": value.get("unjudged")}  # in the order in which they stand
    problems = _mismatches(value, ROW, place)
    if not problems:
        problems = _mismatches(value["judge"], IDENTITY, f"{place}: judge")
        for attempt in value["attempts"]:
            problems += _mismatches(attempt, ATTEMPT, f"{place}: attempts")
        problems += _verdict_problems(value, place)
        if not 1 <= value["of"] <= MOST_ANSWERS:
            problems.append(f"{place}: of: expected how many answers the run has, 1 to {MOST_ANSWERS:,}, got {quote(value['of'])}")
    if problems:
        raise RecordError(problems)
    return value


def _mismatches(value, wanted, place):
    """What is not as it should be in an object; a member that may be null may be missing."""
    if not isinstance(value, dict):
        return [f"{place}: expected an object, got {quote(value)}"]
    return [
        f"{place}: {key}: expected {words}, got {quote(value[key]) if key in value else 'nothing'}"
        for key, (kind, words) in wanted.items()
        if not isinstance(value.get(key), kind) or (kind is int and isinstance(value[key], bool))
    ]


def _verdict_problems(row, place):
    verdict = row["verdict"]
    if verdict is None:
        return [] if row["unjudged"] and row["attempts"] else [f"{place}: expected a verdict, or a reason and tries without one"]
    problems = _mismatches(verdict, VERDICT, f"{place}: verdict")
    return problems or [f"{place}: verdict: {name}: expected an integer 0 to 2, got {verdict[name]}" for name in SCORES
                        if not 0 <= verdict[name] <= 2]


def read_judged(path):
    """The rows of a judged file that stand, one an answer. Raises RecordError for two rows of one answer, or of two judges."""
    rows, whole = read_rows(path)
    if not whole:
        print(f"warning: {path}: the last line is unfinished and was left out; judge again to complete it", file=sys.stderr)
    rows = [row for row in rows if not row.get("superseded")]
    if not rows:
        raise RecordError(f"{path}: no judged answers; expected one JSON object a line")
    seen, judges = set(), {}
    for row in rows:
        if row["id"] in seen:
            raise RecordError(f"{path}: answer {named(row['id'])} has two rows; expected one each")
        seen.add(row["id"])
        identity = row["judge"]
        judges[
            canonical_hash(
                [identity.get("digest") or identity["model"], identity.get("options"), identity["rubric_sha256"]]
            )
        ] = row["id"]
    if len(judges) > 1:
        first, second = list(judges.values())[:2]
        raise RecordError(f"{path}: {named(first)} and {named(second)} were judged by different models, options or rubrics; "
                          "their scores can't be put into one mean")
    return rows


class Journal:
    """The judged file during a run.

    On opening, verdicts under the keys of this run are taken over, and those of other answers or judges are kept at the end as
    superseded. Then rows are appended as they come. `finish` puts the rows into the answers' order, so that
    the bytes don't depend on which worker was first.
    """

    def __init__(self, path, answers, keys, identity):
        self.path, self.answers, self.keys, self.identity = path, answers, keys, identity
        self.rows, self.kept, self.torn = {}, [], False
        if os.path.lexists(path):
            self._take_over()
        self._write()
        self._file = io.FileIO(path, "ab")  # nothing is kept back, so a full disk is met once, and where it is handled

    def _take_over(self):
        rows, whole = read_rows(self.path)
        self.torn = not whole
        verdicts = {row["key"]: row for row in rows if row["verdict"] is not None}
        for answer, key in zip(self.answers, self.keys):
            row = verdicts.get(key)
            # The key doesn't hold whether the answer was taken for a refusal; without one an empty quote doesn't stand.
            if row is not None and (row["verdict"].get("chunk") is not None or answer.refused):
                self.rows[answer.id] = row_for(answer, key, len(self.answers), {"prompt_tokens": None, **row}, row["judge"])
        current = set(self.keys)
        self.kept = [{**row, "superseded": True} for key, row in verdicts.items() if key not in current]

    def missing(self):
        """(answer, key) pairs that have no verdict yet."""
        return [(answer, key) for answer, key in zip(self.answers, self.keys) if answer.id not in self.rows]

    def judged(self):
        """How many answers have a verdict."""
        return sum(row["verdict"] is not None for row in self.rows.values())

    def append(self, answer, key, outcome):
        """Add a row to the file at once."""
        row = row_for(answer, key, len(self.answers), outcome, self.identity)
        try:
            line = memoryview(line_of(row).encode())
            while line:
                line = line[self._file.write(line):]
        except OSError as error:
            raise RecordError(
                f"{self.path}: cannot be written: {error.strerror}; run the same command again to continue"
            ) from None
        self.rows[answer.id] = row

    def finish(self):
        """Put the file in order and return the rows in the order of the answers."""
        self.close()
        self._write()
        return [self.rows[answer.id] for answer in self.answers]

    def close(self):
        self._file.close()

    def _write(self):
        rows = [self.rows[answer.id] for answer in self.answers if answer.id in self.rows]
        write_whole(self.path, "".join(map(line_of, rows + self.kept)))
