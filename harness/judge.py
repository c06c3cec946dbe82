"""The command `judge`: grades answers for faithfulness and relevance with a model, and says how far the grades can be trusted.

    judge ANSWERS.jsonl --model NAME        judge answers, then report
    judge report JUDGED.jsonl               the report again, beside the retrieval metrics of a record
    judge calibrate JUDGED.jsonl HUMAN.jsonl    agreement with people
    judge refusals ANSWERS.jsonl            who declined to answer what: needs no judge
"""

import argparse
import os
import queue
import re
import sys
import threading

from harness import judge_client
from harness.arguments import Parser
from harness.files import Progress
from harness.judge_report import add_report_arguments, print_report, refusal_lines, refusal_table, report_for
from harness.judged import Journal, key_of, messages_for, read_answers, schema_for
from harness.locks import locked
from harness.verdicts import NoVerdict, load_rubric, parse_verdict, printable
from metrics import RecordError

MOST_LOST = 5  # answers in a row without any reply: the server is gone, and the rest would only be marked unjudged


def main(argv):
    """Run one of the commands; return 0, 1 below a floor, 2 for bad input or a server that cannot be used."""
    commands = {"report": report, "calibrate": calibrate, "refusals": refusals}
    if argv and argv[0] in commands:
        return commands[argv[0]](argv[1:])
    return judge(argv)


def _arguments(argv):
    parser = Parser(
        prog="python -m harness judge", description="Grade answers for faithfulness and relevance with a model on a server.",
        epilog="Also: judge report JUDGED, judge calibrate JUDGED HUMAN, judge refusals ANSWERS; each has its own --help. "
               f"A credential, where the server wants one, is read from the environment variable {judge_client.KEY_VARIABLE}.")
    parser.add_argument(
        "answers", metavar="ANSWERS.jsonl", help="id, question, type, answerable, answer, chunks [{id, text}] a line"
    )
    parser.add_argument("--model", required=True, help="the judge's name on the server")
    parser.add_argument("--url", default="http://localhost:11434", help="the server (%(default)s)")
    parser.add_argument("--api", choices=tuple(judge_client.APIS), default="ollama", help="what the server speaks (%(default)s)")
    parser.add_argument("--allow-remote", action="store_true", help="let questions, chunks and answers leave this machine")
    parser.add_argument("--output", default="judged.jsonl", help="the judged answers; continues what is there (%(default)s)")
    parser.add_argument("--generator", help="the model, or its digest, that wrote the answers: it must not be the judge")
    parser.add_argument("--allow-self", action="store_true", help="let a model judge its own answers")
    parser.add_argument("--model-digest", help="the judge's SHA-256, where the server does not tell it")
    parser.add_argument(
        "--format", choices=judge_client.OpenAI.formats, help="reply format over openai (the strictest that works)"
    )
    _add_numbers(parser)
    add_report_arguments(parser)
    arguments = parser.parse_args(argv)
    if arguments.format and arguments.api != "openai":
        parser.error("--format is for --api openai; over Ollama the schema is always sent")
    return arguments


def _add_numbers(parser):
    defaults = judge_client.Options()
    for name, kind, default, what in (
            ("--context", _whole(64), defaults.context, "tokens that the model reads, prompt and reply (Ollama only)"),
            ("--max-tokens", _whole(16), defaults.max_tokens, "tokens of a reply"),
            ("--seed", _whole(0), defaults.seed, "seed of the model's sampling"),
            ("--retries", _whole(0), 2, "further tries after a try without a verdict"),
            ("--timeout", _seconds, 120.0, "seconds until a try is given up, from connecting to the last byte"),
            ("--workers", _whole(1, 64), 1, "requests at a time")):
        parser.add_argument(name, type=kind, default=default, metavar="N", help=f"{what} (%(default)s)")


def _whole(least, most=10**9):
    def number(text):
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"expected an integer from {least} to {most}, got {text}")
        return value

    number.__name__ = "integer"
    return number


def _seconds(text):
    value = float(text)
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0 and at most 86400, got {text}")
    return value


def judge(argv):
    """Judge the answers of a file that have no verdict yet, and report on all of them."""
    arguments = _arguments(argv)
    rubric = load_rubric()
    answers = read_answers(arguments.answers, rubric)
    judge = _connect(arguments, rubric)
    for warning in check_generator(judge, arguments.generator, arguments.allow_self):
        print(f"warning: {warning}", file=sys.stderr)
    keys = [key_of(judge.identity, rubric, schema_for(answer, rubric), messages_for(answer, rubric)) for answer in answers]
    if os.path.exists(arguments.output) and os.path.samefile(arguments.output, arguments.answers):
        raise RecordError(f"--output: {arguments.output} is the file with the answers; give another one")
    with locked(arguments.output):  # a second run on the same file waits: it would put the file in order under the first one
        rows = _judge_all(answers, keys, judge, rubric, arguments)
    return print_report(report_for(rows, arguments), arguments)


def _judge_all(answers, keys, judge, rubric, arguments):
    """The rows of all answers, judged in this run or before."""
    journal = Journal(arguments.output, answers, keys, judge.identity)
    if journal.torn:
        print(f"warning: {arguments.output}: the last line was unfinished; that answer is judged again", file=sys.stderr)
    try:
        _judge_missing(journal, judge, rubric, arguments)
        return journal.finish()
    except KeyboardInterrupt:
        print(f"{journal.judged():,} of {len(answers):,} answers are judged; {_kept(journal)}", file=sys.stderr)
        raise
    finally:
        journal.close()


def _kept(journal):
    """What to do after a run that stopped before its end."""
    return f"what is judged is in {journal.path}: run the same command again to continue"


def _connect(arguments, rubric):
    key = os.environ.get(judge_client.KEY_VARIABLE, "")
    server = judge_client.Server(arguments.url, arguments.allow_remote, key, arguments.timeout)
    options = judge_client.Options(seed=arguments.seed, context=arguments.context, max_tokens=arguments.max_tokens)
    judge = judge_client.connect(server, arguments.api, arguments.model, options, rubric["schema"], arguments.retries,
                                 form=arguments.format)
    judge.identity["digest"] = _digest(judge.identity["digest"], arguments.model_digest)
    judge.identity.update(rubric=rubric["version"], rubric_sha256=rubric["sha256"], generator=arguments.generator)
    return judge


def _digest(told, stated):
    """The judge's digest, as bare hexadecimal digits: what the server tells, or else what the user states."""
    told, stated = _hex(told), _hex(stated)
    if told and stated and told != stated:
        raise RecordError(f"--model-digest: the server says {told}, got {stated}; this is another model")
    return told or stated


def _hex(digest):
    return digest.lower().removeprefix("sha256:") if isinstance(digest, str) and digest else None


def check_generator(judge, generator, allow_self):
    """Warnings about a judge too close to the model that wrote the answers. Raises RecordError where it is the same model.

    The same digest is the same model; where one is not known, the same name is. A digest may be given by its first 12 digits.
    """
    if generator is None:
        return []
    known = judge.models.get(generator, {})
    digest = _hex(generator) if re.fullmatch(r"(sha256:)?[0-9a-f]{12,64}", generator.lower()) else _hex(known.get("digest"))
    own = judge.identity["digest"]
    same = digest and own and (own.startswith(digest) or digest.startswith(own))
    if same or _plain_name(generator) == _plain_name(judge.model):
        problem = f"{judge.model} would judge its own answers ({'same digest' if same else 'same name'} as --generator)"
        if not allow_self:
            raise RecordError(f"--generator: {problem}, and models favour those; take another judge, or add --allow-self")
        return [problem]
    details = known.get("details") if isinstance(known.get("details"), dict) else {}
    families = {judge.identity["family"], family(judge.model)} & {details.get("family"), family(generator)} - {None, ""}
    warnings = (
        [f"judge and generator are both of the family {', '.join(sorted(families))}: their taste may be the same"]
        if families
        else []
    )
    if not (digest and own):
        warnings.append("judge and generator were compared by name only: the digest of one of them is not known")
    return warnings


def _plain_name(name):
    return name.lower().removesuffix(":latest")


def family(name):
    """The family that a model's name begins with: "qwen" of "org/Qwen2.5-7B-Instruct"; empty for a digest."""
    if re.fullmatch(r"(sha256:)?[0-9a-f]{12,64}", name.lower()):
        return ""
    return re.match(r"[a-z]*", name.lower().rsplit("/", 1)[-1])[0]


def _judge_missing(journal, judge, rubric, arguments):
    """Judge what has no verdict yet; every outcome is in the file before the next one is waited for."""
    tasks = journal.missing()
    lost = 0
    with Progress(len(tasks), "answers") as progress:
        if tasks and progress.shown:  # until the first verdict, which may take a slow model minutes
            print(f"0 of {len(tasks):,} answers, waiting for the first verdict of {printable(judge.model)}", end="", file=sys.stderr,
                  flush=True)
        for answer, key, outcome in _outcomes(tasks, judge, rubric, arguments.retries, arguments.workers):
            journal.append(answer, key, outcome)
            progress.step()
            lost = lost + 1 if outcome["verdict"] is None and outcome["attempts"][-1]["reason"] in judge_client.LOST else 0
            if lost == MOST_LOST:
                last = outcome["attempts"][-1]
                raise RecordError(
                    f"{judge.server.url}: no reply to {lost} answers in a row, the last time: {last['reason']}: {last['detail']}; "
                    + _kept(journal)
                )


def _outcomes(tasks, judge, rubric, retries, workers):
    """(answer, key, outcome) for each task, as they come. Only this thread writes, so a stop never tears a line."""
    waiting, done = queue.SimpleQueue(), queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)

    def work():
        try:
            while True:
                answer, key = waiting.get_nowait()
                done.put((answer, key, judge_answer(answer, judge, rubric, retries)))
        except queue.Empty:
            pass
        except BaseException as error:  # to be raised where it is seen
            done.put(error)

    for _ in range(min(workers, len(tasks))):
        threading.Thread(target=work, daemon=True).start()  # daemons: Ctrl-C need not wait for a slow model
    try:
        for _ in tasks:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        while not waiting.empty():  # whoever stops listening wants no further requests
            try:
                waiting.get_nowait()
            except queue.Empty:
                break


def judge_answer(answer, judge, rubric, retries):
    """The outcome for one answer: {"verdict": dict or None, "attempts": [{reason, detail}], "prompt_tokens": int or None}.

    `attempts` holds the tries that failed. A judge whose reply was refused is told why; a server
    that failed is asked the same again.
    """
    messages, attempts = messages_for(answer, rubric), []
    if not answer.chunks and not answer.refused:
        nothing = {"reason": "no chunks to quote", "detail": "the answer claims something, and nothing was retrieved"}
        return {"verdict": None, "attempts": [nothing], "prompt_tokens": None}
    for attempt in range(retries + 1):
        try:
            reply = judge.ask(messages, schema_for(answer, rubric))
            verdict = parse_verdict(reply.content, answer.chunks, answer.refused, rubric)
            return {"verdict": verdict, "attempts": attempts, "prompt_tokens": reply.prompt_tokens}
        except NoVerdict as error:
            attempts.append({"reason": error.reason, "detail": error.detail})
            if not error.again or attempt == retries:
                break
            if error.reply:
                messages = _with_reason(messages_for(answer, rubric), rubric, error)
            else:
                judge_client.rest(error, attempt)
    return {"verdict": None, "attempts": attempts, "prompt_tokens": None}


def _with_reason(messages, rubric, error):
    system, user = messages
    return [system, {**user, "content": user["content"] + "\n\n" + rubric["retry"].replace("{reason}", str(error))}]


def report(argv):
    """Report on a judged file, beside the retrieval metrics of a record where one is given."""
    from harness.judged import read_judged

    parser = Parser(prog="python -m harness judge report", description="Report on judged answers.")
    parser.add_argument("judged", metavar="JUDGED.jsonl")
    add_report_arguments(parser)
    arguments = parser.parse_args(argv)
    return print_report(report_for(read_judged(arguments.judged), arguments), arguments)


def refusals(argv):
    """Print the 2x2 of answerable by refused, from the answers alone."""
    parser = Parser(prog="python -m harness judge refusals",
                                     description="Count who declined to answer what, from the answers' texts alone.")
    parser.add_argument("answers", metavar="ANSWERS.jsonl")
    arguments = parser.parse_args(argv)
    answers = [answer._asdict() for answer in read_answers(arguments.answers, load_rubric())]
    print("\n".join(refusal_lines(refusal_table(answers))))
    return 0


def calibrate(argv):
    """Compare a judge's scores with people's."""
    from harness.calibrate import main

    return main(argv)
