"""The command line of `record`: collections in the order of their options, and what does not fit together is an error."""

from argparse import Action

from harness.arguments import (
    Parser,
    closest,
    cutoffs,
    exact_share,
    filled,
    named_file,
    pair,
    positive,
    read_once,
    share,
    unicode_text,
)
from harness.measures import parse_measure
from metrics import MAX_GRADE

NO_SECTION = {"queries", "models", "cutoffs", "datasets", "measure", "checks", "signature", "about"}  # names with a meaning


class Step(Action):
    """Keeps the options of collections in the order in which they stand."""

    def __call__(self, parser, namespace, value, option=None):
        namespace.steps = [*(namespace.steps or []), (self.dest, value)]


class Collection:
    """One --qrels and the options after it."""

    def __init__(self, qrels, dataset=None):
        self.qrels, self.dataset = qrels, dataset
        self.runs, self.type, self.types, self.exclude = {}, None, None, None


def read_options(argv, description):
    """(options, collections) of the command line. Ends with 2 and a message on anything that does not fit together."""
    parser = make_parser(description)
    options = parser.parse_args(argv)
    return options, _collections(parser, options)


def input_files(options, collections):
    """(option, file) of every file that is read."""
    files = [("--models", options.models)]
    for collection in collections:
        files += [("--qrels", collection.qrels), ("--types", collection.types), ("--exclude", collection.exclude)]
        files += [(f"--run {model}", path) for model, path in collection.runs.items()]
    return [(option, path) for option, path in files if path is not None]


def make_parser(description=""):
    """The parser of the command line."""
    parser = Parser(prog="python -m harness record", description=description)
    each = parser.add_argument_group("a collection (repeat from --qrels on)")
    each.add_argument("--dataset", action=Step, type=unicode_text, metavar="NAME",
                      help="the data set's name, before its --qrels (with --table)")
    each.add_argument("--qrels", action=Step, type=filled, metavar="FILE", help="judgments: TREC, BEIR or ranx JSON")
    each.add_argument("--run", action=Step, type=named_file, metavar="NAME=FILE",
                      help="a model's run: TREC or ranx JSON, plain or gzipped")
    each.add_argument("--type", action=Step, type=unicode_text, metavar="TYPE", help="the type of the collection's queries")
    each.add_argument("--types", action=Step, type=filled, metavar="FILE", help="two columns: query id, type")
    each.add_argument("--exclude", action=Step, type=filled, metavar="FILE",
                      help="pairs on which a judge abstained: qid docid, or as qrels")
    parser.add_argument("--output", required=True, metavar="FILE", help="the record that is written, NAME.json")
    parser.add_argument("--section", type=unicode_text, metavar="NAME", help="write under this name; the file's other sections stay")
    parser.add_argument("--depth", type=positive, help="positions kept of each ranking (50)")
    parser.add_argument("--cutoffs", type=cutoffs, help="comma-separated (1,3,5,10,20,50 as far as the depth goes)")
    parser.add_argument("--max-grade", type=positive, default=3, help="the largest grade (3)")
    parser.add_argument("--useful", type=positive, help="the lowest useful grade (2, or 1 if no judgment reaches 2; with --table 1)")
    parser.add_argument("--gain", choices=["exponential", "linear"], help="(exponential; with --table linear)")
    parser.add_argument("--models", type=filled, metavar="FILE", help="JSON: an object of each model's identity")
    parser.add_argument("--about", type=unicode_text, metavar="TEXT", help="a sentence that is kept in the record")
    parser.add_argument("--ties", choices=["input", "trec"], default="trec",
                        help="equal scores: file order, or docid descending (trec)")
    parser.add_argument("--unjudged", choices=["zero", "exclude"], default="zero",
                        help="an unjudged position is grade 0, or excluded (zero)")
    parser.add_argument("--keep-ids", action="store_true", help="keep the query ids; without it they become q0001, q0002, …")
    parser.add_argument("--drop-self", action="store_true", help="remove the document whose id is the query's")
    parser.add_argument("--marco", action="store_true", help="the runs have MS MARCO's three columns: qid docid rank")
    parser.add_argument("--comparison", dest="comparisons", action="append", type=pair, metavar="BASE=CANDIDATE")
    parser.add_argument("--tolerance", type=share, help="the largest difference that counts as the same")
    parser.add_argument("--select-share", type=exact_share, help="select the positions with this share of the top score")
    parser.add_argument("--select-min", type=positive, help="select at least this many positions (1)")
    parser.add_argument("--select-max", type=positive, help="and at most this many (20)")
    parser.add_argument("--table", action="store_true", help="make a public table of per-query scores")
    parser.add_argument("--measure", type=unicode_text, help="the table's measure (nDCG@10)")
    parser.set_defaults(steps=None)
    return parser


def _collections(parser, options):
    """The collections of the command line, in order; a usage error for what does not fit together."""
    collections, dataset, early = [], None, {}
    for name, value in options.steps or []:
        if name == "dataset":
            dataset = value
        elif name == "qrels":
            collections.append(Collection(value, dataset))
            collections[-1].runs.update(early)
            dataset, early = None, {}
        elif name == "run":
            _add_run(parser, collections[-1].runs if collections else early, *value)
        elif not collections:
            parser.error(f"--{name} stands before the first --qrels; each --qrels starts a collection")
        else:
            setattr(collections[-1], name, value)
    _check_usage(parser, collections, options)
    read_once(parser, input_files(options, collections))
    _set_defaults(parser, options)
    return collections


def _add_run(parser, runs, model, path):
    if model in runs:
        parser.error(f"--run: model {model} has two runs in one collection; each --qrels starts the next one")
    runs[model] = path


def _set_defaults(parser, options):
    """Fill in what the command line leaves open, and check what depends on it."""
    options.gain = options.gain or ("linear" if options.table else "exponential")
    options.useful = options.useful or (1 if options.table else None)  # a panel's depends on the judgments
    options.measure, options.depth = options.measure or "nDCG@10", options.depth or 50
    options.cutoffs = options.cutoffs or [k for k in (1, 3, 5, 10, 20, 50) if k <= options.depth]
    options.select_min, options.select_max = options.select_min or 1, options.select_max or 20
    if options.select_min > options.select_max:
        parser.error(f"expected --select-min <= --select-max, got {options.select_min} and {options.select_max}")
    if options.max_grade > MAX_GRADE or (options.useful or 1) > options.max_grade:
        parser.error(f"expected --useful <= --max-grade <= {MAX_GRADE}, got {options.useful or 1} and {options.max_grade}")


def _check_usage(parser, collections, options):
    if not collections or not all(collection.runs for collection in collections):
        parser.error("expected a --qrels with at least one --run after it")
    _check_pointless(parser, collections, options)
    _check_comparisons(parser, collections, options)
    if options.section is not None and (options.section in NO_SECTION or "." in options.section):
        parser.error(f"--section: expected a name without dots that is none of {', '.join(sorted(NO_SECTION))}, got {options.section}")
    (_check_table if options.table else _check_panel)(parser, collections, options)


def _check_pointless(parser, collections, options):
    """An option that would change nothing is an error, since it was given to change something."""
    panel = {"--tolerance": options.tolerance, "--select-share": options.select_share, "--select-min": options.select_min,
             "--select-max": options.select_max, "--cutoffs": options.cutoffs, "--depth": options.depth,
             "--keep-ids": options.keep_ids or None, "--type": next((one.type for one in collections if one.type), None),
             "--types": next((one.types for one in collections if one.types), None)}
    table = {"--measure": options.measure, "--dataset": "dataset" in dict(options.steps) or None}
    given = [name for name, value in (panel if options.table else table).items() if value is not None]
    if given:
        parser.error(f"{', '.join(given)}: {'not with' if options.table else 'only with'} --table")
    if options.select_share is None and (options.select_min or options.select_max):
        parser.error("--select-min, --select-max: only with --select-share")


def _check_comparisons(parser, collections, options):
    models = {model for collection in collections for model in collection.runs}
    for base, candidate in options.comparisons or []:
        for model in (base, candidate):
            if model not in models:
                parser.error(f"--comparison {base}={candidate}: no --run of model {model}{closest(model, sorted(models))}")
        if base == candidate or options.comparisons.count([base, candidate]) > 1:
            parser.error(f"--comparison {base}={candidate}: expected two different models, each pair once")


def _check_table(parser, collections, options):
    names = [collection.dataset for collection in collections]
    if None in names or len(set(names)) < len(names):
        parser.error("--table needs a --dataset NAME of its own before each --qrels")
    measure = parse_measure(options.measure or "nDCG@10").name
    excluding = "--unjudged exclude" if options.unjudged == "exclude" else "--exclude" if any(one.exclude for one in collections) else ""
    if excluding and measure.partition("@")[0] in ("P", "Judged"):
        parser.error(f"{excluding}: not with --measure {measure}, which divides by the cutoff whatever is excluded; a panel's"
                     " precision divides by what is retained")


def _check_panel(parser, collections, options):
    models = list(collections[0].runs)
    for collection in collections[1:]:
        if set(collection.runs) != set(models):
            parser.error(f"a panel needs the same models in each collection: {', '.join(models)} in the first,"
                         f" {', '.join(collection.runs)} with {collection.qrels}")
    if len({bool(collection.type or collection.types) for collection in collections}) > 1:
        parser.error("either every collection has a --type or --types, or none")
