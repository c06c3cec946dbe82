"""Evaluates a search function on a golden set: the rankings become a record, and metrics.py scores it.

    from harness.golden import evaluate, load_golden
    result = evaluate(load_golden("golden.jsonl"), search, k=5)
    result.metrics["hit"], result.types["numeric"]["ndcg"], result.questions[0]["rank"]
"""

from itertools import compress
from typing import NamedTuple
from unicodedata import normalize

from harness.documents import given_chunks, given_documents, plain, shown
from harness.golden_items import GoldenSet, check_chunks, check_documents, load_golden, span_needs
from harness.relevance import ChunkIndex, basis, unused
from harness.searching import Found, search_all
from metrics import RecordError, measure, parse_record, quote, summarize

METRICS = ("hit", "recall", "mrr", "mrr_uncut", "ndcg", "precision")
PLACE = "retrieval"  # of the panel in the record
MODEL = "search"
CUTOFFS = (1, 3, 5, 10)


class Evaluation(NamedTuple):
    """What came of a run. Values are fractions in [0, 1], unrounded; None where undefined.

    metrics: {metric: value} at k over the answerable questions; types: {type: {"n": …, metric: value}}; questions: one dict
    per answerable question; unanswerable: the same for the others, where they were searched; attainable: metrics over the
    questions that the index can answer, or None if that is all of them; panel: the metrics.Panel; record: the record;
    relevance: what decided what is relevant (relevance.basis); notes: what a reader should know of that.
    """

    golden: GoldenSet
    k: int
    depth: int
    metrics: dict
    types: dict
    questions: list
    unanswerable: list
    attainable: dict | None
    panel: object
    record: dict
    summary: dict
    warnings: list
    relevance: str
    notes: list

    @property
    def searched(self):
        """Every question that was searched."""
        return self.questions + self.unanswerable

    @property
    def errors(self):
        """The questions whose search failed."""
        return [row for row in self.searched if row["error"]]

    def failure(self, max_errors=0):
        """Why a run with more than `max_errors` failed searches is void, in words; None for a run that is not."""
        if len(self.errors) <= max_errors:
            return None
        first = self.errors[0]
        return (f"{len(self.errors)} of {len(self.searched)} searches failed, more than max-errors ({max_errors}) allows; the first:"
                f" {first['id']}: {first['error']}")


def depth_for(k):
    """How many results are asked for and kept: at least 10, and 2 k, so that hit@k can be seen beside hit@2k."""
    return max(10, 2 * k)


def evaluate(golden, search, k=5, *, depth=None, chunks=None, docs=None, timeout=None, unanswerable=False, identity=None):
    """The Evaluation of a search function on a golden set.

    golden: a GoldenSet, or the path of one. search: question -> chunk ids, best first (a parameter named k receives the
    depth). depth: how many results count (at least k); chunks: the chunks of the index, needed where relevance is by spans:
    a JSON Lines path, a list of dicts or objects with id, doc, start, end and text, or a dict of them by id; docs: their
    documents, to check quotes and chunks against: a path, several, or {id: text}. timeout: seconds for each call;
    unanswerable: search those questions too, unscored; identity: what the record says of the search. A search that fails
    gives a row with an error, which scores zero. Raises RecordError, also when most results are in none of the chunks.
    """
    if not callable(search):
        raise RecordError(f"search: expected a function that takes a question and gives chunk ids, best first, got {shown(search)}")
    check_lengths(k, depth)
    documents = given_documents(docs)
    chunks = given_chunks(chunks, documents)
    golden = golden if isinstance(golden, GoldenSet) else load_golden(golden)
    problems = []
    check_documents(golden.items, documents, problems)
    check_chunks(golden.items, chunks, problems)
    if problems:
        raise RecordError(problems)
    return evaluate_made(golden, lambda: search, k, ChunkIndex(chunks), depth=depth, timeout=timeout, unanswerable=unanswerable,
                         identity=identity)


def evaluate_made(golden, make, k, index, *, depth=None, timeout=None, unanswerable=False, identity=None, results=None):
    """evaluate, with a function that makes the search where it is called, or with Founds per question id from a cache.

    index: the ChunkIndex. Raises RecordError.
    """
    depth = depth_for(k) if depth is None else depth
    check_lengths(k, depth)
    if not index.by_document and (needs := span_needs(golden.items)):
        raise RecordError(needs)
    items = [item for item in golden.items if item.answerable or unanswerable]
    if results is None:
        results = dict(zip((item.id for item in items), search_all([item.question for item in items], make, depth, timeout)))
    results = {item.id: results.get(item.id, NOT_FOUND) for item in items}
    return assess(golden, results, k, depth, index, identity or {})


NOT_FOUND = Found((), (), "no result for this question")


def check_lengths(k, depth):
    """Raise RecordError unless 1 <= k <= depth; a depth of None is the default one."""
    if type(k) is not int or k < 1:
        raise RecordError(f"k: expected a whole number of at least 1, got {quote(k)}")
    if depth is not None and (type(depth) is not int or depth < k):
        raise RecordError(f"depth: expected a whole number of at least k = {k}, got {quote(depth)}")


def assess(golden, results, k, depth, index, identity):
    """The Evaluation of given results, {question id: Found}."""
    scored = [item for item in golden.items if item.answerable]
    strangers = unknown_ids(results, index)  # first: no other problem matters then
    relevances = {item.id: index.relevance(item) for item in golden.items if item.id in results or item.answerable}
    if index.chunks and not any(relevances[item.id].chunks for item in scored):
        raise RecordError(f"{golden.name}: no question has a relevant chunk in this index; is it the index of these documents?")
    by = basis(golden, index)
    if failed := sum(bool(found.error) for found in results.values()):  # who reads the record must see it: they score as misses
        identity = {**identity, "failed_searches": failed}
    record = {PLACE: panel_value(scored, results, relevances, k, depth,
                                 {**identity, "golden_sha256": golden.sha256, "k": k, "relevance": by})}
    attained = [item for item in scored if relevances[item.id].chunks]
    if any(relevance.cut for relevance in relevances.values()):
        whole = {name: relevance._replace(cut=()) for name, relevance in relevances.items()}
        record["attainable"] = panel_value(attained, results, whole, k, depth, record[PLACE]["models"][MODEL])
    parsed = parse_record(record, "golden.json")
    summary = summarize(parsed)
    panel, block = parsed.blocks[PLACE], summary[PLACE]
    rows = question_rows(panel, scored, results, relevances, k, depth)
    others = [row_of(item, results[item.id], relevances[item.id], k) for item in golden.items
              if not item.answerable and item.id in results]
    attainable = {"n": len(attained), **values_at(summary["attainable"], k, depth)} if "attainable" in record else None
    return Evaluation(golden, k, depth, values_at(block, k, depth),
                      {kind: {"n": part["queries"], **values_at(part, k, depth)} for kind, part in block["types"].items()},
                      rows, others, attainable, panel, record, summary,
                      [*golden.warnings, *strangers,
                       *(spelling_warnings(scored, results, relevances) or nothing_found(results, relevances, index))],
                      by, [sentence for sentence in [unused(golden, index)] if sentence])


def unknown_ids(results, index):
    """A warning that counts and names the returned ids that are in no chunk of the index. Raises RecordError if most are.

    Some may be younger than the file of chunks; if it is more than half, results and chunks are of two indexes, and the
    metrics would say nothing.
    """
    returned = list(dict.fromkeys(name for found in results.values() for name in found.ids))
    unknown = [name for name in returned if name not in index.chunks] if index.chunks else []
    if not unknown:
        return []
    listed = ", ".join(map(plain, unknown[:10])) + (", …" if len(unknown) > 10 else "")
    sentence = f"{len(unknown):,} of {len(returned):,} returned ids are in no chunk of {index.name} ({listed})"
    if 2 * len(unknown) > len(returned):
        raise RecordError(f"{sentence}; ids there are such as {', '.join(map(plain, list(index.chunks)[:3]))};"
                          " expected the chunks of the index that is searched")
    return [f"{sentence}; they count as not relevant"]


def nothing_found(results, relevances, index):
    """A warning when results came and none is relevant to any question: their ids may be those of another index.

    Where the chunks of the index are known, unknown_ids says it better.
    """
    returned = list(dict.fromkeys(name for found in results.values() for name in found.ids))
    relevant = list(dict.fromkeys(name for relevance in relevances.values() for name in relevance.chunks))
    if index.chunks or not returned or not set(returned).isdisjoint(relevant):
        return []
    return [f"none of {len(returned):,} returned ids is a relevant chunk of any question; returned are such as"
            f" {', '.join(map(plain, returned[:3]))}, relevant such as {', '.join(map(plain, relevant[:3]))}: are they of one index?"]


def panel_value(items, results, relevances, k, depth, identity):
    """The panel of a run as a JSON value. A span that no chunk holds counts as one relevant passage that nothing can find."""
    queries = []
    for item in items:
        wanted, cut = relevances[item.id]
        names = set(wanted)
        queries.append({"id": item.id, "type": item.type, "reference_grade_counts": {"1": len(wanted) + len(cut)},
                        "rankings": {MODEL: [1 if name in names else 0 for name in results[item.id].ids[:depth]]}})
    cutoffs = sorted({cut for cut in (*CUTOFFS, k, 2 * k, depth) if cut <= depth})
    return {"models": {MODEL: identity}, "depth": depth, "cutoffs": cutoffs,
            "grades": {"max": 1, "useful": 1, "gain": "linear"}, "queries": queries}


def values_at(block, k, depth):
    """{metric: value} at k, and mrr over all results that count, from a population's summary."""
    values = block["models"][MODEL]
    return {name: values["mrr"][str(depth)] if name == "mrr_uncut" else values[name][str(k)] for name in METRICS}


def question_rows(panel, items, results, relevances, k, depth):
    """One dict per scored question, with its metrics."""
    columns = per_question(panel, k, depth)
    rows = [row_of(item, results[item.id], relevances[item.id], k) for item in items]
    for at, row in enumerate(rows):
        row.update({name: values[at] for name, values in columns.items()})
    return rows


def per_question(panel, k, depth):
    """{metric: one value per question, or None}."""
    values = {}
    for name, (numerators, denominators) in sums_at(panel, k, depth).items():
        values[name] = [n / d if d else None for n, d in zip(numerators, denominators)]
    return values


def sums_at(panel, k, depth):
    """{metric: (numerators, denominators)}, one of each per question, from metrics.measure."""
    sums = {}
    for item in measure(panel._replace(cutoffs=tuple(sorted({k, depth})))):
        if item.cutoff == k:
            sums[item.metric] = item.sums[MODEL]
        if item.cutoff == depth and item.metric == "mrr":
            sums["mrr_uncut"] = item.sums[MODEL]
    return {name: sums[name] for name in METRICS}


def select(sums, members):
    """The (numerators, denominators) of the questions whose member flag is true."""
    return tuple(list(compress(column, members)) for column in sums)


def row_of(item, result, relevance, k):
    """What a report says of one question, without its metrics."""
    wanted = set(relevance.chunks)
    ranks = [rank for rank, name in enumerate(result.ids, 1) if name in wanted]
    return {"id": item.id, "type": item.type, "question": item.question, "part": item.split,
            "rank": ranks[0] if ranks else None, "retrieved": list(result.ids), "relevant": list(relevance.chunks),
            "cut_spans": [{**span._asdict(), "reason": reason} for span, reason in relevance.cut],
            "attainable": bool(relevance.chunks), "duplicates": list(result.duplicates),
            "fewer_than_k": not result.error and len(result.ids) < k, "error": result.error}


def spelling_warnings(items, results, relevances):
    """Warn of results that would be relevant in another Unicode normal form. Ids are never changed: they are the user's."""
    warnings = []
    for item in items:
        missed = {normalize("NFC", name): name for name in relevances[item.id].chunks
                  if not name.isascii() and name not in results[item.id].ids}
        for name in results[item.id].ids if missed else ():
            if (other := missed.get(normalize("NFC", name))) is not None:
                warnings.append(f"question {item.id}: result {plain(name)} and relevant chunk {plain(other)} are different ids,"
                                " but equal after Unicode normalisation")
    return warnings
