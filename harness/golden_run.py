"""Carries out `golden run`: reads everything, checks it, searches, reports, logs, gates."""

import os
import sys
from typing import NamedTuple

from harness.bm25 import BM25
from harness.chunker import chunk_documents
from harness.documents import as_id, plain, read_chunks, read_documents
from harness.evaluation import check_lengths, depth_for, evaluate_made
from harness.files import canonical_hash, read_jsonl
from harness.golden_items import golden_set, load_golden, span_needs
from harness.golden_report import against, floor_lines, report_of
from harness.holdout import LEDGER, note_holdout
from harness.identity import Cache, check_metas, code_version
from harness.locks import make_folder
from harness.normalize import normalizer, read_synonyms
from harness.relevance import ChunkIndex, basis
from harness.runlog import LOG_FOLDER, add, entry_lines, entry_of, failed_entry, now
from harness.searching import Found, found, load_function
from metrics import RecordError, dump_json, load_record, quote, summarize, write_whole


class Source(NamedTuple):
    """Where results come from: a function that makes the search, or results by question id; its name; what else identifies it."""

    make: object
    name: str
    identity: dict
    results: dict | None = None


# What each way to search does not use: an option that would change nothing is a mistake.
CUT, TEXTS = ("split", "size", "overlap"), ("normalize", "synonyms")
WITHOUT_EFFECT = {"search": (*CUT, *TEXTS), "results": (*CUT, *TEXTS, "timeout", "cache"), "chunks": (*CUT, "timeout"),
                  "docs": ("timeout",)}
DEFAULTS = {"split": "fixed", "size": 800, "overlap": 0, "normalize": "no", "timeout": 30}


def run(arguments, out):
    """Everything that `golden run` does, with the report printed to out; gives its exit status.

    A run that fails is entered in the log and the JUnit file, if there are any: who looks in the morning must see it.
    """
    check_arguments(arguments)
    try:
        return run_checked(arguments, out)
    except RecordError as error:
        note_failure(arguments, "; ".join(error.problems))
        raise


def note_failure(arguments, why):
    """Enter a failed run in the log and the JUnit file that the options name; where they cannot be written, say so."""
    try:
        if arguments.junit:
            from harness.gate import write_failed_junit

            write_failed_junit(arguments.junit, arguments.floors, why)
        if arguments.log:
            search = arguments.search or arguments.results or "BM25"
            short = why if len(why) <= 500 else why[:497] + "..."
            add(arguments.log, failed_entry(", ".join(arguments.golden), search, short, now()))
    except RecordError as error:
        print("\n".join(f"error: {problem}" for problem in error.problems), file=sys.stderr)


def run_checked(arguments, out):
    """run, of arguments that were checked."""
    index_identity = check_metas(arguments.index_meta, arguments.query_meta)
    documents = read_documents(arguments.docs) if arguments.docs else None
    chunks = read_index(arguments, documents)
    whole = load_golden(arguments.golden, documents, chunks)
    golden = part_of(whole, arguments.part)
    index = ChunkIndex(chunks, arguments.chunks or "the documents")
    if not index.by_document and (needs := span_needs(golden.items)):
        raise RecordError(needs)
    source = source_of(arguments, chunks)
    configuration = configuration_of(arguments, golden, source, index_identity, basis(golden, index))
    check_floors(arguments, golden, configuration["relevance"])
    base = base_panel(arguments, golden, configuration["relevance"])
    make_folder(arguments.output and os.path.join(arguments.output, "records"))  # now, so that no search is for nothing
    ledger = arguments.ledger or os.path.join(arguments.log or LOG_FOLDER, LEDGER)
    uses = note_holdout(golden, ledger, search=source.name, k=arguments.k,
                        configuration_sha256=configuration["configuration_sha256"])
    evaluation = evaluate_cached(arguments, golden, index, source, configuration)
    evaluation.warnings.extend(strange_results(arguments.results, source.results, whole))
    report = report_of(evaluation, configuration, index, arguments.production_k)
    report["holdout_uses"], report["base"] = uses, base and against(evaluation, base, arguments.base)
    return publish(arguments, evaluation, configuration, report, out)


def check_arguments(arguments):
    """Raise RecordError for options that cannot be; fill in the defaults of the others."""
    check_lengths(arguments.k, arguments.depth)
    if arguments.junit and not arguments.floors:
        raise RecordError("--junit: needs --floors")
    check_effects(arguments)
    check_window(arguments.size, arguments.overlap)
    if arguments.cache and arguments.search and not arguments.index_meta:
        raise RecordError("--cache: needs --index-meta and --query-meta, as nothing else says when your index has changed")


def check_effects(arguments):
    """Raise RecordError for options that would have no effect together; fill in the defaults of those that are not given."""
    given = next((way for way in WITHOUT_EFFECT if getattr(arguments, way)), "docs")
    idle = [name for name in WITHOUT_EFFECT[given] if getattr(arguments, name) is not None]
    if idle:
        raise RecordError(f"{', '.join(f'--{name}' for name in idle)}: without effect with --{given}"
                          f"{'' if arguments.search or arguments.results else ' and the embedded search'}; leave out one of them")
    for name, value in DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    check_synonyms(arguments.synonyms, [arguments.normalize])


def check_synonyms(path, normalizations):
    """Raise RecordError for a map of synonyms that no normalization uses."""
    if path and not any("synonyms" in name for name in normalizations):
        raise RecordError("--synonyms: without effect unless --normalize says synonyms or nfkc+synonyms")


def check_window(size, overlap):
    """Raise RecordError unless 0 <= overlap < size."""
    if not 0 <= overlap < size:
        raise RecordError(f"--size, --overlap: expected 0 <= overlap < size, got overlap {overlap} and size {size}")


def read_index(arguments, documents):
    """The chunks of the index as {id: Chunk}: given ones, or cut from the documents for the embedded search; else None."""
    if arguments.chunks:
        return read_chunks(arguments.chunks, documents)
    if documents is None or arguments.search or arguments.results:
        return None
    return chunk_documents(documents, arguments.split, arguments.size, arguments.overlap)


def part_of(golden, part):
    """The questions of one part only."""
    if part is None:
        return golden
    items = [item for item in golden.items if item.split == part]
    if not items:
        raise RecordError(f"{golden.name}: no question has split {plain(part)}; make the split with: golden split")
    return golden_set(f"{golden.name} ({part})", items, golden.warnings)


def source_of(arguments, chunks):
    """The Source that the options name."""
    if arguments.search:
        return Source(lambda: load_function(arguments.search), arguments.search, {})
    if arguments.results:
        results = read_results(arguments.results)
        return Source(None, arguments.results, {"results_sha256": canonical_hash(results)}, results)
    if not chunks:
        raise RecordError("nothing to search: give --search MODULE:FUNCTION or --results FILE,"
                          " or --docs or --chunks for the embedded BM25")
    if not any(chunk.text for chunk in chunks.values()):
        raise RecordError(f"{arguments.chunks}: no chunk has a text, which the embedded search needs")
    identity = {"chunks_sha256": canonical_hash([list(chunk) for chunk in chunks.values()]), "normalize": arguments.normalize}
    if not arguments.chunks:
        identity.update(split=arguments.split, size=arguments.size, overlap=arguments.overlap)
    replace = read_synonyms(arguments.synonyms) if arguments.synonyms else None
    change = normalizer(arguments.normalize, replace)
    if replace:
        identity["synonyms_sha256"] = canonical_hash(replace.canonical)
    return Source(lambda: embedded(chunks, change), "BM25", identity)


def embedded(chunks, change):
    """The embedded search over chunks, with a normalization of texts and questions."""
    index = BM25({name: change(chunk.text) for name, chunk in chunks.items()})
    return lambda question, k: index.search(change(question), k)


def read_results(path):
    """{question id: retrieved ids} from a JSON Lines file, or from a JSON file with a list of the same objects."""
    if path.endswith(".json"):
        from metrics import read_json

        value, where = read_json(path)[0], "entry"
        rows = list(enumerate(value if isinstance(value, list) else [value], 1))
    else:
        rows, where = read_jsonl(path), "line"
    results, problems = {}, []
    for number, value in rows:
        place = f"{path}: {where} {number}"
        try:
            name = as_id(value["id"])
            if name in results:
                problems.append(f"{place}: id: duplicate id {plain(name)}")
            results[name] = value["retrieved"]
        except (TypeError, KeyError, ValueError):
            problems.append(f"{place}: expected an object with id and retrieved (a list of chunk ids), got {quote(value)}")
    if problems:
        raise RecordError(problems)
    return results


def strange_results(path, results, golden):
    """A warning that counts and names the results of questions that are not in the golden set."""
    strange = sorted((results or {}).keys() - {item.id for item in golden.items})
    if not strange:
        return []
    listed = ", ".join(map(plain, strange[:10])) + (", …" if len(strange) > 10 else "")
    return [f"{path}: {len(strange):,} of {len(results):,} results are of no question of the golden set ({listed});"
            " they are not used"]


def configuration_of(arguments, golden, source, index_identity, relevance):
    """What was run, as a JSON value: everything that could change a result is in it."""
    configuration = {"search": source.name, "k": arguments.k,
                     "depth": depth_for(arguments.k) if arguments.depth is None else arguments.depth,
                     "golden_sha256": golden.sha256, "relevance": relevance, "unanswerable": arguments.unanswerable,
                     **source.identity,
                     "code_version": arguments.code_version or code_version(*filter(None, [arguments.search])),
                     "index": index_identity}
    return {**configuration, "configuration_sha256": canonical_hash(configuration)}


def check_floors(arguments, golden, relevance):
    """Refuse floors that were set on something else before a search is made."""
    if arguments.floors:
        from harness.gate import Measured, check_same, read_floors

        kinds = sorted({item.type for item in golden.items if item.answerable})
        counts = {kind: sum(item.type == kind and item.answerable for item in golden.items) for kind in kinds}
        check_same(read_floors(arguments.floors), Measured(golden.sha256, arguments.k, counts, {}, relevance), arguments.floors)


def base_panel(arguments, golden, relevance):
    """The panel of the run to compare with, or None. Raises RecordError unless it is of the same questions."""
    if not arguments.base:
        return None
    from harness.golden import panel_of

    panel, identity = panel_of(arguments.base)
    if identity["golden_sha256"] != golden.sha256:
        raise RecordError(f"{arguments.base}: a run on another golden set"
                          f" ({identity['golden_sha256'][:12]}…, not {golden.sha256[:12]}…)")
    if identity.get("relevance") != relevance:
        raise RecordError(f"{arguments.base}: a run with relevance by {identity.get('relevance')}, not by {relevance}")
    if panel.depth < arguments.k:
        raise RecordError(f"{arguments.base}: its depth of {panel.depth} is below k = {arguments.k}")
    return panel


def evaluate_cached(arguments, golden, index, source, configuration):
    """The Evaluation, searched or from the cache."""
    cache = Cache(arguments.cache) if arguments.cache else None
    kept = cache.get(configuration) if cache else None
    results = {name: Found(tuple(ids), tuple(again), None) for name, (ids, again) in kept.items()} if kept else None
    if source.results is not None:
        results = {name: found(lambda _, ids=ids: ids, "", configuration["depth"]) for name, ids in source.results.items()}
    evaluation = evaluate_made(golden, source.make, arguments.k, index, depth=configuration["depth"],
                               timeout=arguments.timeout if arguments.search else None,
                               unanswerable=arguments.unanswerable, identity=identity_of(configuration, arguments.max_errors),
                               results=results)
    if cache and not kept and not evaluation.errors:
        cache.put(configuration, {row["id"]: [row["retrieved"], row["duplicates"]]
                                  for row in evaluation.questions + evaluation.unanswerable})
    return evaluation


def identity_of(configuration, max_errors=0):
    """What the record says of the search, and how many failed ones were allowed, if any were."""
    return {"name": configuration["search"], **{key: value for key, value in configuration.items()
                                                if value is not None and key not in ("search", "k", "depth", "unanswerable", "relevance")},
            **({"max_errors": max_errors} if max_errors else {})}


def publish(arguments, evaluation, configuration, report, out):
    """Write and show the report, log the run, gate it; gives the exit status."""
    why = evaluation.failure(arguments.max_errors)
    report["floors"] = [] if why else gated(arguments, evaluation)
    write_reports(arguments, evaluation, report)
    show(arguments.format, report, out)
    if arguments.format == "json" and report["floors"]:
        print("\n".join(floor_lines(report["floors"])), file=sys.stderr)
    if why:
        raise RecordError(why)
    if arguments.log:
        log_run(arguments.log, evaluation, configuration)
    return 0 if all(floor["holds"] for floor in report["floors"]) else 1


def log_run(folder, evaluation, configuration):
    """Add the run to the log and say on stderr what the log says of it."""
    first, *rest = entry_lines(add(folder, entry_of(evaluation, configuration, now())))
    print("\n".join([f"logged {first}", *rest]), file=sys.stderr)


def gated(arguments, evaluation):
    """The verdicts of the floors as JSON values, if there are any; also in the JUnit file."""
    if not arguments.floors:
        return []
    from harness.gate import as_json, gate, junit, measured

    verdicts = gate(arguments.floors, measured(evaluation))
    if arguments.junit:
        write_whole(arguments.junit, junit(verdicts))
    return as_json(verdicts)


def show(form, report, out):
    """Print the report."""
    from harness.golden_report import markdown_report, text_report

    print({"text": text_report, "markdown": markdown_report, "json": dump_json}[form](report), end="", file=out)


def write_reports(arguments, evaluation, report):
    """Write the files that the options ask for."""
    from harness.golden_page import html_report
    from harness.golden_report import markdown_report, text_report

    if arguments.html:
        write_whole(arguments.html, html_report(report))
    if not arguments.output:
        return
    folder = os.path.join(arguments.output, "records")
    record = os.path.join(folder, "golden.json")
    write_whole(record, dump_json(evaluation.record))
    write_whole(os.path.join(folder, "golden-summary.json"), dump_json(summarize(load_record(record))))
    for kind, form in (("txt", text_report), ("md", markdown_report), ("html", html_report), ("json", dump_json)):
        write_whole(os.path.join(arguments.output, f"report.{kind}"), form(report))
