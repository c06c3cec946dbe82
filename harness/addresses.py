"""Finds what an address in a card names: a number, a table or a model-index, computed by metrics.py from the records.

    RECORD [SECTION] [answerable | type NAME] WHAT

Names with spaces, commas or a special meaning are put in quotes. harness/docs/card.md lists every WHAT.
"""

import html
import re
from difflib import get_close_matches
from functools import cached_property
from typing import NamedTuple

import metrics
from harness.printed import Value
from harness.verdicts import named

SCOPES = ("answerable", "type", "types")
BLOCKS = ("table", "model-index")
DIFFERENCE_KEYS = {"difference": "share", "low": "share", "high": "share", "p": "share", "p_holm": "share",
                   "wins": "count", "ties": "count", "losses": "count"}
CHECK_KEYS = {"value": "raw", "threshold": "raw", "failing": "count", "values": "count"}
NAMES = {alias.lower(): name for name, title in metrics.TITLES.items() for alias in (name, title, title.replace(" ", "_"))}


class AddressError(ValueError):
    """An address that names nothing; says what is there."""


class Word(NamedTuple):
    """A word of an address; a quoted one is always a name."""

    text: str
    quoted: bool = False


class Rows(NamedTuple):
    """A table: rows of cells, the head first."""

    rows: list


class Results(NamedTuple):
    """What a model-index holds: {model's name: [(data set, measure, value), …]}."""

    models: dict


class Selection(NamedTuple):
    """What of a table is wanted; an empty one is everything."""

    metrics: list
    cutoffs: list
    models: list
    transposed: bool


def words_of(address):
    """An address as Words: split at spaces and commas outside quotes."""
    words = []
    for match in re.finditer(r'"([^"]*)"|\'([^\']*)\'|[^\s,"\']+|["\']', html.unescape(address)):
        text = next(filter(None, match.groups()), None)
        quoted = match[0][0] in "\"'" and len(match[0]) > 1
        words.append(Word(text or "" if quoted else match[0], quoted))
    return words


def choose(word, known, what):
    """The known name that a word is. Raises AddressError that names the closest ones."""
    text = word.text if isinstance(word, Word) else word
    if text in known:
        return text
    close = get_close_matches(text.lower(), {name.lower(): name for name in map(str, known)}, 3, 0.5)
    by_lower = {str(name).lower(): str(name) for name in known}
    names = ", ".join(map(str, known)) or "none"
    names = names if len(names) <= 300 else names[:297] + "..."
    near = f"; closest: {', '.join(by_lower[name] for name in close)}" if close else ""
    raise AddressError(f"no {what} {named(text)}{near}; expected one of: {names}")


class Library:
    """The records of a folder and what metrics.py makes of their blocks, each computed once."""

    def __init__(self, records):
        """records: (path, Record) pairs, as metrics.load_records gives them."""
        self.records = {record.name.removesuffix(".json"): record for _, record in records}
        self.summaries = {}

    def summary(self, record, place):
        """The results of one block."""
        if (record, place) not in self.summaries:
            self.summaries[record, place] = metrics.summarize_block(self.records[record].blocks[place])
        return self.summaries[record, place]

    def resolve(self, address):
        """The Value, Rows or Results of an address. Raises AddressError."""
        words = words_of(address)
        if not words:
            raise AddressError("the address is empty; expected a record's name and what of it is printed")
        record = choose(words[0], self.records, "record")
        place, rest = self.find_place(record, words[1:])
        block, summary = self.records[record].blocks[place], self.summary(record, place)
        if isinstance(block, metrics.Panel):
            return PanelAddress(" ".join([record, *filter(None, [place])]), block, summary).resolve(rest)
        resolve = resolve_table if isinstance(block, metrics.Table) else resolve_checks
        return resolve(block, summary, rest)

    def find_place(self, record, words):
        """(place of the block that the first words name, the words after it)."""
        places = list(self.records[record].blocks)
        for length in range(len(words), 0, -1):
            if (path := ".".join(word.text for word in words[:length])) in places:
                return path, words[length:]
        if len(places) == 1:
            return places[0], words
        if "" in places:
            return "", words
        given = words[0] if words else Word("")
        return choose(given, places, f"section of {record}"), words


class PanelAddress:
    """Resolves what stands after the record and its section, for a panel."""

    def __init__(self, title, panel, summary):
        self.title, self.panel, self.scope, self.summary = title, panel, summary, summary

    def resolve(self, words):
        """The Value, Rows or Results that the words name."""
        words = list(words)
        if words and words[0].text in SCOPES and not words[0].quoted:
            scope = words.pop(0).text
            if scope == "types":
                return self.types(words)
            words = self.enter(scope, words)
        first = words[0] if words else Word("")
        if first.text in BLOCKS and not first.quoted:
            selection = self.select(words[1:])
            return Results(self.results(selection)) if first.text == "model-index" else self.table(selection)
        return self.number(words)

    def enter(self, scope, words):
        """Narrow to a population; gives the words after it."""
        if scope == "answerable":
            self.scope = self.summary["answerable"]
            self.title += " answerable"
            return words
        kind = choose(words[0] if words else Word(""), self.summary.get("types", {}), "type of query")
        self.scope = self.summary["types"][kind]
        self.title += f" {kind}"
        return words[1:]

    def types(self, words):
        if "types" not in self.summary:
            raise AddressError("this panel has no types of queries")
        if [word.text for word in words] != ["table"]:
            raise AddressError("after types: expected the word table and nothing more")
        return Rows(metrics.type_rows(self.summary["types"], self.panel.cutoffs))

    def select(self, words):
        """The Selection that the words after "table" name."""
        found = Selection([], [], [], any(word == Word("transposed") for word in words))
        for word in words:
            if word.quoted or word.text in self.panel.models:
                found.models.append(choose(word, self.panel.models, "model"))
            elif word.text.startswith("@") or word.text.isdecimal():
                found.cutoffs.append(choose(word.text.removeprefix("@"), list(self.scope["eligible"]), "cutoff"))
            elif word.text.lower() in NAMES:
                found.metrics.append(NAMES[word.text.lower()])
            elif word.text != "transposed":
                choose(word, [*metrics.TITLES, *self.panel.models, *(f"@{k}" for k in self.panel.cutoffs), "transposed"],
                       "metric, cutoff or model")
        return found

    def narrowed(self, selection):
        """The population's block with only what is selected."""
        block, kept = self.scope, set(selection.metrics or metrics.TITLES)
        models = {model: {metric: values for metric, values in block["models"][model].items() if metric in kept}
                  for model in selection.models or block["models"]}
        return {**block, "models": models, "eligible": {k: block["eligible"][k] for k in selection.cutoffs or block["eligible"]},
                "comparisons": [pair for pair in block["comparisons"] if {pair["base"], pair["candidate"]} <= models.keys()]}

    def table(self, selection):
        rows = metrics.panel_rows(self.narrowed(selection))
        if len(rows) == 1:
            raise AddressError("the table has no rows; this panel has no such metric")
        return Rows(list(map(list, zip(*rows))) if selection.transposed else rows)

    def results(self, selection):
        """{model's name: results}; at cutoff 10, or the largest below it, where no cutoff is selected."""
        usual = str(max((k for k in self.panel.cutoffs if k <= 10), default=self.panel.cutoffs[0]))
        block = self.narrowed(selection._replace(cutoffs=selection.cutoffs or [usual]))
        found = {}
        for model, values in block["models"].items():
            identity = self.panel.models[model].get("name")
            name = identity if isinstance(identity, str) and identity else model
            rows = found.setdefault(name if name not in found else model, [])
            for metric in (metric for metric in metrics.TITLES if metric in values):
                if metric not in metrics.METRICS:
                    rows.append((self.title, metric, values[metric]))
                    continue
                rows += [(self.title, f"{metric}@{k}", values[metric][k]) for k in block["eligible"]]
        return found

    def number(self, words):
        """The Value of a count, a model's metric, or one number of a comparison."""
        pair, rest = self.find_pair(words)
        if pair:
            metric, k = self.metric(rest[0] if rest else Word(""))
            key = choose(rest[1] if len(rest) > 1 else Word("difference"), DIFFERENCE_KEYS, "number of a comparison")
            no_more(rest[2:])
            entry = pair[metric][k] if k else pair[metric]
            return Value(entry[key], DIFFERENCE_KEYS[key], "" if key in ("p", "p_holm") else metric)
        first = words[0] if words else Word("")
        if first.text in ("queries", "graded_pairs") and not first.quoted:
            no_more(words[1:])
            return Value(self.scope[first.text], "count")
        if first.text.startswith("eligible@") and not first.quoted:
            no_more(words[1:])
            return Value(self.scope["eligible"][choose(first.text.partition("@")[2], self.scope["eligible"], "cutoff")], "count")
        if not first.quoted and first.text not in self.scope["models"]:
            choose(first, [*self.scope["models"], *self.pair_names(), "queries", "graded_pairs", "eligible@K", "table"],
                   "model, comparison or count")
        model = choose(first, self.scope["models"], "model")
        second = words[1] if len(words) > 1 else Word("")
        no_more(words[2:])
        if second.text.startswith("excluded@"):
            excluded = self.scope["excluded_positions"][model]
            return Value(excluded[choose(second.text.partition("@")[2], excluded, "cutoff")], "count")
        metric, k = self.metric(second)
        values = self.scope["models"][model][metric]
        return Value(values[k] if k else values, "share", metric)

    def metric(self, word):
        """(metric, cutoff as a key or None) of a word such as nDCG@10."""
        name, at, k = word.text.partition("@")
        there = next(iter(self.scope["models"].values()))
        known = [*(f"{metric}@{k}" for metric in metrics.METRICS for k in self.scope["eligible"]),
                 *(metric for metric in metrics.TITLES if metric in there and metric not in metrics.METRICS)]
        metric = NAMES.get(name.lower(), name)
        choose(Word(f"{metric}{at}{k}"), known, "metric")
        return metric, k or None

    def pair_names(self):
        return [f"{pair['candidate']}-{pair['base']}" for pair in self.scope["comparisons"]]

    def find_pair(self, words):
        """(the comparison that the first words name, the words after it), or (None, words)."""
        return find_pair(self.scope["comparisons"], words)


def find_pair(comparisons, words):
    """(comparison, words after it), or (None, words). Raises AddressError where CANDIDATE-BASE could be two of them."""
    texts = [word.text for word in words]
    spaced = [pair for pair in comparisons if texts[:3] == [pair["candidate"], "-", pair["base"]]]
    if spaced:
        return spaced[0], words[3:]
    joined = [pair for pair in comparisons if texts[:1] == [f"{pair['candidate']}-{pair['base']}"]]
    if len(joined) > 1:
        raise AddressError(f"{named(texts[0])} could be two comparisons; write CANDIDATE - BASE with spaces")
    return (joined[0], words[1:]) if joined else (None, words)


def no_more(words):
    """Refuse words at the end of an address."""
    if words:
        rest = " ".join(word.text for word in words)
        raise AddressError(f"{named(rest)}: nothing is expected after the rest of the address")


def resolve_table(table, summary, words):
    """The Value, Rows or Results that the words name in a public table."""
    first, rest = (words[0], words[1:]) if words else (Word(""), [])
    if first.text in BLOCKS and not first.quoted:
        transposed = any(word == Word("transposed") for word in rest)
        models = [choose(word, table.models, "model") for word in rest if word != Word("transposed")] or list(table.models)
        if first.text == "model-index":
            return Results({model: [(name, table.measure.lower(), block["means"][model]) for name,
                                    block in summary["datasets"].items()
                                    if model in block["means"]] for model in models})
        kept = tuple(pair for pair in table.comparisons if set(pair) <= set(models))
        rows = metrics.table_rows(table._replace(models=tuple(models), comparisons=kept), summary)
        return Rows(list(map(list, zip(*rows))) if transposed else rows)
    average = first == Word("average")
    if not average:
        choose(first, [*summary["datasets"], "average", "table", "model-index"], "data set")
    block = summary["average"] if average else summary["datasets"][first.text]
    if rest and rest[0] == Word("datasets" if average else "queries"):
        no_more(rest[1:])
        return Value(len(block["datasets"]) if average else block["queries"], "count")
    pair, after = find_pair(block.get("comparisons", []), rest)
    if pair:
        key = choose(after[0] if after else Word("difference"), DIFFERENCE_KEYS, "number of a comparison")
        no_more(after[1:])
        return Value(pair[key], DIFFERENCE_KEYS[key])
    pairs = [f"{own['candidate']}-{own['base']}" for own in block.get("comparisons", [])]
    model = rest[0] if rest else Word("")
    if model.text not in block["means"]:
        what = "model (absent models were not measured)" if block.get("absent") else "model or comparison"
        choose(model, [*block["means"], *pairs, "datasets" if average else "queries"], what)
    no_more(rest[1:])
    return Value(block["means"][model.text])


def resolve_checks(block, summary, words):
    """The Value or Rows that the words name among checks."""
    first, rest = (words[0], words[1:]) if words else (Word(""), [])
    if first in (Word("passed"), Word("failed"), Word("table")):
        no_more(rest)
        return Rows(metrics.check_rows(summary)) if first.text == "table" else Value(summary[first.text], "count")
    choose(first, [*block.checks, "passed", "failed", "table"], "check")
    key = choose(rest[0] if rest else Word("value"), CHECK_KEYS, "number of a check")
    no_more(rest[1:])
    own = summary["checks"][first.text]
    return Value(block.checks[first.text][2] if key == "threshold" else own[key], CHECK_KEYS[key])


def has_word(address, text):
    """Whether an address, which may name nothing, has an unquoted word."""
    return Word(text) in words_of(address)


# The whole of `metrics` that an unmarked table or model-index is compared with


class Place(NamedTuple):
    """One population of a panel, or a public table: where it is and the number of (model, metric, cutoff)."""

    address: str
    values: dict  # {(model, metric, cutoff key or None): number}
    names: dict  # {how a model may be called, in lower case: model}


class Everything:
    """Every population of every panel of a library, made when it is first needed."""

    def __init__(self, library):
        self.library = library

    @cached_property
    def places(self):
        """The Places, in the order of the records."""
        found = []
        for name, record in self.library.records.items():
            for place, block in record.blocks.items():
                if isinstance(block, metrics.Panel):
                    summary, address = self.library.summary(name, place), " ".join(filter(None, [name, place]))
                    called = names_of(block)
                    found.append(Place(address, panel_values(summary), called))
                    found.append(Place(f"{address} answerable", panel_values(summary["answerable"]), called))
                    found += [Place(f"{address} type {quoted(kind)}", panel_values(own), called)
                              for kind, own in summary.get("types", {}).items()]
        return found


def quoted(name):
    """A name as an address writes it: in quotes where it needs them."""
    mark = "'" if '"' in name else '"'
    plain = re.fullmatch(r"[^\s,\"'<>&]+", name) and name not in (*SCOPES, *BLOCKS)
    return name if plain else mark + html.escape(name, quote=False) + mark


def names_of(panel):
    """How the models of a panel may be called in a table: by key, by their identity's name, by the last part of that name."""
    called = {}
    for model, identity in panel.models.items():
        name = identity.get("name")
        for alias in (name, name.rsplit("/", 1)[-1]) if isinstance(name, str) else ():
            called.setdefault(alias.lower(), model)
    return {**called, **{model.lower(): model for model in panel.models}}


def panel_values(block):
    """{(model, metric, cutoff key or None): number} of one population."""
    return {(model, metric, k): value for model, own in block["models"].items() for metric in metrics.TITLES if metric in own
            for k, value in (own[metric].items() if isinstance(own[metric], dict) else [(None, own[metric])])}
