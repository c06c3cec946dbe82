"""The command `labels extend`: checks that an expanded reference keeps every old grade, and tells which metrics can have moved."""

import sys
from collections import Counter

from harness.arguments import Parser
from harness.runs import rankings, read_qrels
from harness.verdicts import printable
from metrics import dump_json


def main(argv):
    """Check an expanded reference; return 1 where it has lost or changed a grade."""
    arguments = _arguments(argv)
    references = [read_qrels(path, arguments.max_grade) for path in (arguments.old, arguments.new)]
    for warning in (warning for reference in references for warning in reference.warnings):
        print(f"warning: {warning}", file=sys.stderr)
    old, new = map(_pairs, references)
    result = compare_references(old, new, arguments.useful)
    result["ranked"] = _ranked(arguments.run, arguments.depth, set(new) - set(old))
    print(
        dump_json(result) if arguments.json else "\n".join(map(printable, _extend_lines(result, arguments))),
        end="" if arguments.json else "\n",
    )
    return 1 if result["lost"] or result["changed"] else 0


def _arguments(argv):
    parser = Parser(
        prog="python -m harness labels extend",
        description="Check that expanded qrels keep every old grade; state which metrics can have moved.",
    )
    parser.add_argument("old", metavar="OLD-QRELS")
    parser.add_argument("new", metavar="NEW-QRELS")
    parser.add_argument("--useful", type=int, default=2, help="the lowest useful grade (%(default)s)")
    parser.add_argument("--max-grade", type=int, default=3, help="the highest grade (%(default)s)")
    parser.add_argument(
        "--run", action="append", default=[], metavar="RUN", help="a run: check which new pairs stand within its depth"
    )
    parser.add_argument("--depth", type=int, default=50, help="positions of a run that are looked at (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(argv)


def _pairs(qrels):
    """{(query, passage): grade} of judgments, ids as text."""
    return {
        (_text(query), _text(passage)): grade for query, passages in qrels.judged.items() for passage, grade in passages.items()
    }


def _text(token):
    return token.decode("utf-8", "backslashreplace") if isinstance(token, bytes) else token


def compare_references(old, new, useful=2):
    """What an expansion changed: lost and changed pairs (which it must not), added pairs, and the queries each metric can move in.

    An added pair with a gain can raise the ideal of its query, so nDCG can fall; an added useful pair raises what there is to
    find, so recall can fall. Hit, precision and MRR look only at the ranked positions, and stay where no added pair is ranked.
    """
    added = {pair: grade for pair, grade in new.items() if pair not in old}
    known = {query for query, _ in old}
    old_useful = {query for (query, _), grade in old.items() if grade >= useful}
    return {
        "kept": sum(new.get(pair) == grade for pair, grade in old.items()),
        "lost": [list(pair) for pair in old if pair not in new],
        "changed": [[*pair, grade, new[pair]] for pair, grade in old.items() if pair in new and new[pair] != grade],
        "added": len(added),
        "added_by_grade": {str(grade): count for grade, count in sorted(Counter(added.values()).items())},
        "new_queries": sorted({query for query, _ in added} - known),
        "newly_answerable": sorted(
            {query for (query, _), grade in added.items() if grade >= useful and query in known} - old_useful
        ),
        "can_move": {
            "ndcg": sorted({query for (query, _), grade in added.items() if grade > 0 and query in known}),
            "recall": sorted({query for (query, _), grade in added.items() if grade >= useful and query in known}),
        },
    }


def _ranked(runs, depth, added):
    """The added pairs that stand within the first positions of a run, or None where no run is given."""
    if not runs:
        return None
    found = {}
    for path in runs:
        for query, documents, _ in rankings(path, depth=depth):
            for document in documents:
                pair = _text(query), _text(document)
                if pair in added:
                    found[pair] = None
    return [list(pair) for pair in found]


def _extend_lines(result, arguments):
    lines = [
        f"{arguments.new}: {result['kept']:,} old grades kept, {result['added']:,} pairs added"
        + (
            " (" + ", ".join(f"grade {grade}: {count:,}" for grade, count in result["added_by_grade"].items()) + ")"
            if result["added"]
            else ""
        )
    ]
    lines += [f"lost: query {query}, passage {passage}" for query, passage in result["lost"]]
    lines += [
        f"changed: query {query}, passage {passage}: {before} is now {after}"
        for query, passage, before, after in result["changed"]
    ]
    if result["lost"] or result["changed"]:
        return lines + ["the new reference does not keep the old one: any metric can have moved"]
    if not result["added"]:
        return lines + ["no metric can have moved"]
    cannot = "cannot have moved" + " over the queries of the old reference alone" * bool(result["new_queries"])
    for metric, title in (("ndcg", "nDCG"), ("recall", "recall")):
        count = len(result["can_move"][metric])
        lines.append(
            f"can have moved: {title}, through the ideal, in {count:,} {'query' if count == 1 else 'queries'}"
            if count
            else f"{cannot}: {title}"
        )
    lines.append(_rank_line(result["ranked"], arguments.depth, cannot))
    if result["new_queries"]:
        lines.append(f"new queries: {len(result['new_queries']):,}: a mean over all queries is over another population")
    if result["newly_answerable"]:
        lines.append(
            f"newly answerable queries: {len(result['newly_answerable']):,}: they enter recall and the answerable population"
        )
    return lines


def _rank_line(ranked, depth, cannot):
    """What Hit, precision and MRR can have done; `cannot` begins what is said where they stay."""
    names = "Hit, precision and MRR"
    if ranked is None:
        return (f"{cannot}: {names} at unchanged depth, as long as no added pair stands in a ranking "
                "(name the runs with --run to check that)")
    if ranked:
        return f"can have moved: {names}: added pairs within the first {depth:,} positions of a run: {len(ranked):,}"
    return f"{cannot}: {names} down to rank {depth:,}: no added pair stands there in any run"
