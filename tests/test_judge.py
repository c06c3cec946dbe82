"""The judge command from answers to report, against a real HTTP server on loopback."""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from harness import judge, judge_client, judge_report, judged, labels
from harness.judged import Journal, key_of, messages_for, read_answers, read_judged
from harness.verdicts import load_rubric
from metrics import RecordError, run_command
from tests import DATA, ROOT, TestCase, judge_server
from tests.judge_server import DIGEST, MODEL, OTHER, JudgeServer, good, scored, slow, status

RUBRIC = load_rubric()


def answer(name, **changes):
    """An answerable question that was answered, from two chunks."""
    return {"id": name, "question": f"What of {name}?", "type": "factual", "answerable": True, "answer": f"It is {name}.",
            "chunks": [{"id": "c1", "text": f"So it is {name}."}, {"id": "c2", "text": "Tap Storage."}], **changes}


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


class JudgeCase(TestCase):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(judge_client, "PAUSE", 0.0))
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop(judge_client.KEY_VARIABLE, None)

    def serve(self, *script, **how):
        return self.enterContext(JudgeServer(script, **how))

    def run_judge(self, *arguments):
        """(status, stdout, stderr) of the command in this process, as it is run from the command line."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run_command(lambda: judge.main([str(argument) for argument in arguments]))
        return status, out.getvalue(), err.getvalue()

    def judge(self, server, *answers, options=(), output="judged.jsonl"):
        """Judge answers; return (status, report, stderr)."""
        path = self.write("answers.jsonl", lines(*answers))
        status, out, err = self.run_judge(
            path, "--model", MODEL, "--url", server.url, "--output", self.folder / output, "--json", *options
        )
        return status, json.loads(out) if out else None, err

    def rows(self, output="judged.jsonl"):
        return [json.loads(line) for line in (self.folder / output).read_text(encoding="utf-8").splitlines()]


class Judging(JudgeCase):
    def test_verdicts_over_both_apis(self):
        for api in ("ollama", "openai"):
            with self.subTest(api):
                server = self.serve()
                status, report, err = self.judge(server, answer("a"), answer("b"), options=["--api", api], output=f"{api}.jsonl")
                self.assertEqual((status, err), (0, ""))
                self.assertEqual((report["overall"]["judged"], report["overall"]["faithfulness"]["mean"]), (2, 2))
                row = self.rows(f"{api}.jsonl")[0]
                self.assertEqual(
                    row["verdict"], {"faithfulness": 2, "relevance": 1, "evidence": "So it is a.", "chunk": "c1", "note": ""}
                )
                self.assertEqual((row["id"], row["unjudged"], row["attempts"], row["prompt_tokens"]), ("a", None, [], 500))
                self.assertEqual((row["judge"]["rubric"], row["judge"]["rubric_sha256"]), (RUBRIC["version"], RUBRIC["sha256"]))
                self.assertEqual(row["judge"]["digest"], DIGEST if api == "ollama" else None)

    def test_only_question_chunks_and_answer_are_sent(self):
        server = self.serve()
        self.judge(server, answer("a", expected_answer="SECRET", relevant_chunks=["c1"]))
        self.assertEqual(json.loads(server.prompts[0]), {
            "question": "What of a?", "answer": "It is a.",
            "chunks": [{"id": "c1", "text": "So it is a."}, {"id": "c2", "text": "Tap Storage."}]})

    def test_the_schema_knows_the_chunks(self):
        server = self.serve()
        self.judge(server, answer("a"))
        self.assertEqual(server.requests[-1][1]["format"]["properties"]["chunk"], {"type": "string", "enum": ["c1", "c2", ""]})
        self.assertEqual(RUBRIC["schema"]["properties"]["chunk"], {"type": "string"})

    def test_a_refused_reply_is_asked_for_again_with_the_reason(self):
        server = self.serve(scored(faithfulness=3), judge_server.says("no"), good)
        status, report, _ = self.judge(server, answer("a"))
        self.assertEqual((status, report["overall"]["judged"]), (0, 1))
        self.assertNotIn("refused", server.prompts[0])
        self.assertIn(
            "An earlier reply to this was refused: score out of range: faithfulness: expected an integer 0 to 2, got 3",
            server.prompts[1],
        )
        self.assertIn("not one JSON object", server.prompts[2])
        self.assertEqual(
            [attempt["reason"] for attempt in self.rows()[0]["attempts"]], ["score out of range", "not one JSON object"]
        )
        self.assertEqual(report["failed_tries"], {"not one JSON object": 1, "score out of range": 1})

    def test_what_stays_without_a_verdict_is_unjudged_and_never_zero(self):
        server = self.serve(scored(faithfulness=1), scored(evidence="made up"))
        status, report, _ = self.judge(server, answer("a"), answer("b"))
        self.assertEqual(len(server.prompts), 1 + 3)
        self.assertEqual((status, report["unjudged"]), (0, {"quote not in a chunk": 1}))
        self.assertEqual(
            [(row["verdict"] is None, row["unjudged"]) for row in self.rows()], [(False, None), (True, "quote not in a chunk")]
        )
        block = report["overall"]["faithfulness"]
        self.assertEqual((block["mean"], block["worst"], block["best"]), (1, 0.5, 1.5))

    def test_a_server_that_recovers(self):
        server = self.serve(status(503), judge_server.drop, good)
        status_, report, _ = self.judge(server, answer("a"))
        self.assertEqual((status_, report["overall"]["judged"]), (0, 1))
        self.assertEqual(set(server.prompts), {server.prompts[0]})
        self.assertEqual([attempt["reason"] for attempt in self.rows()[0]["attempts"]], ["HTTP 503", "connection failed"])

    def test_no_retry_where_it_would_only_fail_again(self):
        server = self.serve(status(400, "context overflow"))
        _, report, _ = self.judge(server, answer("a"))
        self.assertEqual((len(server.prompts), report["unjudged"]), (1, {"HTTP 400": 1}))

    def test_no_retries(self):
        server = self.serve(judge_server.says("no"))
        self.judge(server, answer("a"), options=["--retries", 0])
        self.assertEqual(len(server.prompts), 1)

    def test_an_answer_without_chunks_is_not_sent(self):
        server = self.serve()
        _, report, _ = self.judge(server, answer("a", chunks=[]))
        self.assertEqual((server.prompts, report["unjudged"]), ([], {"no chunks to quote": 1}))

    def test_a_server_that_is_gone_stops_the_run(self):
        server = self.serve(good, judge_server.drop)
        status, report, err = self.judge(server, *(answer(f"a{i}") for i in range(9)), options=["--retries", 0])
        self.assertEqual((status, report), (2, None))
        self.assertIn("no reply to 5 answers in a row", err)
        self.assertEqual(len(self.rows()), 6)

    def test_many_workers_give_the_same_bytes(self):
        answers = [answer(f"a{i}") for i in range(12)]
        for output, workers in (("one.jsonl", 1), ("four.jsonl", 4)):
            server = self.serve(slow(0.03), good, slow(0.01), good)
            self.assertEqual(self.judge(server, *answers, options=["--workers", workers], output=output)[0], 0)
        self.assertEqual((self.folder / "one.jsonl").read_bytes(), (self.folder / "four.jsonl").read_bytes())

    def test_a_refused_credential_stops_the_run(self):
        with mock.patch.dict(os.environ, {judge_client.KEY_VARIABLE: "sk-secret"}):
            status_, _, err = self.judge(self.serve(status(401, "bad sk-secret")), answer("a"))
        self.assertEqual(status_, 2)
        self.assertIn("was refused", err)
        self.assertNotIn("sk-secret", err + (self.folder / "judged.jsonl").read_text())

    def test_the_output_must_not_be_another_file(self):
        server = self.serve()
        for name, content in (
            ("answers.jsonl", None),
            ("notes.txt", "my notes"),
            ("notes.txt", "my notes\nmore"),
            ("data.jsonl", '{"id": "x"}\n'),
        ):
            if content is not None:
                self.write(name, content)
            status, _, err = self.judge(server, answer("a"), output=name)
            self.assertEqual(status, 2, err)
            self.assertIn(name, err)
            self.assertEqual((self.folder / name).read_text(), content or lines(answer("a")))

    def test_usage(self):
        path = self.write("answers.jsonl", lines(answer("a")))
        for arguments in (
            [],
            [path],
            [path, "--model", "m", "--retries", "-1"],
            [path, "--model", "m", "--timeout", "0"],
            [path, "--model", "m", "--timeout", "nan"],
            [path, "--model", "m", "--workers", "x"],
            [path, "--model", "m", "--format", "plain"],
        ):
            with contextlib.redirect_stderr(io.StringIO()), self.subTest(arguments), self.assertRaises(SystemExit) as caught:
                judge.main([str(argument) for argument in arguments])
            self.assertEqual(caught.exception.code, 2)

    def test_a_remote_url_is_not_contacted(self):
        path = self.write("answers.jsonl", lines(answer("a")))
        status, _, err = self.run_judge(path, "--model", "m", "--url", "http://192.0.2.1")
        self.assertEqual(status, 2)
        self.assertIn("--allow-remote", err)


class Resuming(JudgeCase):
    def test_what_is_judged_is_not_asked_again(self):
        server = self.serve()
        self.judge(server, answer("a"), answer("b"))
        before = (self.folder / "judged.jsonl").read_bytes()
        self.judge(server, answer("a"), answer("b"))
        self.assertEqual(len(server.prompts), 2)
        self.assertEqual((self.folder / "judged.jsonl").read_bytes(), before)

    def test_a_torn_line_is_judged_again(self):
        server = self.serve()
        self.judge(server, answer("a"), answer("bü"))
        whole = (self.folder / "judged.jsonl").read_bytes()
        for cut in (1, 2, 20, whole.index("ü".encode()) - len(whole) + 1 + 400):
            with self.subTest(cut):
                (self.folder / "judged.jsonl").write_bytes(whole[:-cut])
                status, report, err = self.judge(server, answer("a"), answer("bü"))
                self.assertEqual((status, report["overall"]["judged"]), (0, 2))
                self.assertEqual((self.folder / "judged.jsonl").read_bytes(), whole)

    def test_a_file_that_was_cut_anywhere_is_completed(self):
        server = self.serve()
        self.judge(server, answer("a"), answer("b"))
        whole = (self.folder / "judged.jsonl").read_bytes()
        for cut in (0, 1, 7, 30, len(whole) // 2, len(whole) - 1):
            with self.subTest(cut):
                (self.folder / "judged.jsonl").write_bytes(whole[:cut])
                self.assertEqual(self.judge(server, answer("a"), answer("b"))[0], 0)
                self.assertEqual((self.folder / "judged.jsonl").read_bytes(), whole)

    def test_a_file_of_another_kind_is_kept(self):
        server = self.serve()
        self.judge(server, answer("a"))
        path, row = self.folder / "judged.jsonl", (self.folder / "judged.jsonl").read_bytes()
        item = b'{"id": "q1", "question": "What?", "relevant_chunks": ["c1"]}'
        asked = json.dumps({"id": "q1", "type": "factual", "answerable": True, "question": "What?"}).encode()
        doubled = row.rstrip().replace(b'{"id": "a"', b'{"id": "a", "type": "factual"').replace(b'"of": 1', b'"of": 1, "of": 1')
        for text in (item, item[:-1], b'{"my notes": 1}', b'{"my notes": ', b"[1, 2", b"notes", asked, asked[:-3], row + item,
                     row + b'{"my notes": 1}', row + b'{"my', row.rstrip().replace(b'"of": 1', b'"of": 1, "of": 1'), doubled):
            with self.subTest(text[-60:]):
                path.write_bytes(text)
                status, _, err = self.judge(server, answer("a"))
                self.assertEqual((status, path.read_bytes()), (2, text))
                self.assertIn("judged.jsonl: line ", err)
        self.assertEqual(len(server.prompts), 1)

    def test_a_superseded_line_that_was_cut_is_dropped(self):
        server = self.serve()
        self.judge(server, answer("a"), answer("b"))
        self.judge(server, answer("a"), answer("b", answer='Another "\\.'))
        path = self.folder / "judged.jsonl"
        path.write_bytes(path.read_bytes()[:-30])
        self.assertEqual(self.judge(server, answer("a"), answer("b", answer='Another "\\.'))[0], 0)
        self.assertEqual([row["id"] for row in self.rows()], ["a", "b"])

    def test_a_line_is_torn_at_every_byte(self):
        self.judge(self.serve(), answer('"ü\\"', type="a \\ \"b\""))
        row = (self.folder / "judged.jsonl").read_bytes().rstrip()
        self.assertEqual([cut for cut in range(1, len(row)) if not judged._is_torn(row[:cut])], [])
        self.assertFalse(judged._is_torn(row))

    def test_damage_in_the_middle_is_an_error_and_the_file_is_kept(self):
        server = self.serve()
        self.judge(server, answer("a"), answer("b"))
        path = self.folder / "judged.jsonl"
        path.write_bytes(damaged := path.read_bytes().replace(b'{"id": "a"', b'{"id: "a"'))
        status, _, err = self.judge(server, answer("a"), answer("b"))
        self.assertEqual(status, 2)
        self.assertIn("judged.jsonl: line 1", err)
        self.assertEqual(path.read_bytes(), damaged)

    def test_the_unjudged_are_tried_again(self):
        self.judge(self.serve(judge_server.says("no")), answer("a"))
        self.assertIsNone(self.rows()[0]["verdict"])
        self.judge(self.serve(), answer("a"))
        self.assertEqual([row["verdict"]["relevance"] for row in self.rows()], [1])

    def test_changed_answers_are_judged_again_and_old_verdicts_are_kept_aside(self):
        server = self.serve()
        self.judge(server, answer("a"), answer("b"))
        self.judge(server, answer("a"), answer("b", answer="Another."))
        self.assertEqual(len(server.prompts), 3)
        self.assertEqual(
            [(row["id"], row.get("superseded", False)) for row in self.rows()], [("a", False), ("b", False), ("b", True)]
        )
        self.assertEqual(len(read_judged(self.folder / "judged.jsonl")), 2)
        _, report, _ = self.judge(server, answer("a"), answer("b"))
        self.assertEqual((len(server.prompts), report["answers"]), (3, 2))

    def test_the_key_depends_on_all_that_a_verdict_depends_on(self):
        first = read_answers(self.write("a.jsonl", lines(answer("a"))), RUBRIC)[0]
        messages = messages_for(first, RUBRIC)
        identity = {"model": "m", "digest": DIGEST, "options": {"seed": 1}, "server": "x"}
        variants = [
            (identity, RUBRIC, {}, messages),
            ({**identity, "digest": OTHER}, RUBRIC, {}, messages),
            ({**identity, "options": {"seed": 2}}, RUBRIC, {}, messages),
            (identity, {**RUBRIC, "sha256": "0"}, {}, messages),
            (identity, RUBRIC, {"type": "object"}, messages),
            (identity, RUBRIC, {}, messages[:1]),
        ]
        keys = [key_of(*variant) for variant in variants]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(key_of({**identity, "server": "y", "model": "alias"}, RUBRIC, {}, messages), keys[0])

    def test_an_empty_quote_does_not_outlive_the_refusal(self):
        server = self.serve(scored(evidence="", chunk=""), good)
        self.judge(server, answer("a", refused=True))
        self.judge(server, answer("a", refused=False))
        self.assertEqual((len(server.prompts), self.rows()[0]["verdict"]["chunk"]), (2, "c1"))

    def kill(self, number, stderr=subprocess.PIPE, first=good):
        """Send a signal to a run that waits for its third answer; return its status and stderr."""
        gate = judge_server.hang
        server = self.serve(first, good, gate)
        path = self.write("answers.jsonl", lines(*(answer(f"a{i}") for i in range(4))))
        output = self.folder / "judged.jsonl"
        process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error",
                "-m",
                "harness",
                "judge",
                path,
                "--model",
                MODEL,
                "--url",
                server.url,
                "--output",
                output,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        with process:
            until = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < until and not (
                    server.chats == 3 and output.read_bytes().count(b"\n") == 2):
                time.sleep(0.01)
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
        return process.returncode, err

    def continued(self):
        again = self.serve()
        answers = [answer(f"a{i}") for i in range(4)]
        self.assertEqual(self.judge(again, *answers)[0], 0)
        self.assertEqual(len(again.prompts), 2)
        self.assertEqual([row["id"] for row in self.rows()], ["a0", "a1", "a2", "a3"])

    @unittest.skipUnless(hasattr(signal, "SIGKILL"), "no SIGKILL on this platform")
    def test_killed(self):
        self.assertEqual(self.kill(signal.SIGKILL)[0], -signal.SIGKILL)
        status, out, err = self.run_judge("report", self.folder / "judged.jsonl")
        self.assertIn("the run is unfinished: 2 of 4 answers", out)
        self.continued()

    @unittest.skipIf(os.name == "nt", "no such signal on this platform")
    def test_interrupted(self):
        status, err = self.kill(signal.SIGINT)
        self.assertEqual((status, err), (130, f"2 of 4 answers are judged; what is judged is in {self.folder / 'judged.jsonl'}: "
                                              "run the same command again to continue\ninterrupted\n"))
        self.continued()

    @unittest.skipUnless(importlib.util.find_spec("pty"), "no terminals to open on this platform")
    def test_progress_on_a_terminal(self):
        import pty

        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.assertEqual(self.kill(signal.SIGINT, stderr=theirs, first=slow(0.15))[0], 130)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while part := os.read(ours, 65536):
                shown += part
        shown = shown.decode().replace("\r\n", "\n").split("\r")
        self.assertEqual(shown[0], f"0 of 4 answers, waiting for the first verdict of {MODEL}")
        self.assertTrue(any(re.match(r"[12] of 4 answers, [\d.]+/s, \d+ s left", line) for line in shown), shown)
        self.assertRegex("".join(shown), r"\x1b\[K2 of 4 answers are judged; .*again to continue\ninterrupted\n$")

    def test_a_full_disk(self):
        path = self.write("answers.jsonl", lines(answer("a")))
        first = read_answers(path, RUBRIC)
        journal = Journal(self.folder / "judged.jsonl", first, ["k"], {})
        full = mock.Mock(write=mock.Mock(side_effect=OSError(28, "No space left on device")))
        with mock.patch.object(journal, "_file", full), self.assertRaises(RecordError) as caught:
            journal.append(first[0], "k", {"verdict": None, "attempts": [{"reason": "x"}], "prompt_tokens": None})
        journal.close()
        self.assertIn("No space left on device", str(caught.exception))


class Answers(JudgeCase):
    def test_every_problem_is_listed_with_its_line(self):
        bad = [
            answer("a"),
            answer("a"),
            answer("b", question=" "),
            answer("c", answerable="yes"),
            answer("d", chunks="c1"),
            answer("e", chunks=[{"id": "c1"}, 5]),
            answer(""),
            answer("f", answer=None),
            answer("g", type=3),
            answer("h", refused="no"),
            [1],
            answer("i", chunks=[{"id": "c", "text": "x"}, {"id": "c", "text": "y"}]),
            answer("j", relevant_chunks="c1"),
            answer(True),
        ]
        with self.assertRaises(RecordError) as caught:
            read_answers(self.write("answers.jsonl", lines(*bad)), RUBRIC)
        problems = [problem.partition("answers.jsonl: ")[2] for problem in caught.exception.problems]
        expected = [
            'line 2: id "a" stands on line 1',
            "line 3: question: expected a text, got a blank",
            "line 4: answerable: expected true or false",
            "line 5: chunks: expected a list",
            "line 6: chunks[0]: text: expected a text, got nothing",
            "line 6: chunks[1]: expected an object",
            "line 7: id: expected a text or an integer",
            "line 8: answer: expected a text, got null",
            "line 9: type: expected a text",
            "line 10: refused: expected true or false",
            "line 11: expected an object",
            'line 12: chunks[1]: id "c" stands there twice',
            "line 13: relevant_chunks: expected a list",
            "line 14: id: expected a text or an integer",
        ]
        self.assertEqual(len(problems), len(expected), problems)
        for problem, start in zip(problems, expected):
            self.assertTrue(problem.startswith(start), (problem, start))

    def test_what_is_accepted(self):
        path = self.write("answers.jsonl", "\ufeff" + lines(answer(7, type=None)).replace("\n", "\r\n\r\n")
                          + lines(answer("x", answer="I don't know.", relevant_chunks=["c9"], chunks=answer("x")["chunks"] * 2)))
        first, second = read_answers(path, RUBRIC)
        self.assertEqual((first.id, first.type, first.refused, first.missed), ("7", "untyped", False, None))
        self.assertEqual((second.refused, second.missed, [name for name, _ in second.chunks]), (True, True, ["c1", "c2"]))

    def test_no_file_that_can_be_judged(self):
        for content in ("", "\n\n", "{", b"\xff\xfe", '{"id": NaN}'):
            path = self.write("answers.jsonl", content)
            status, out, err = self.run_judge(path, "--model", "m")
            self.assertEqual((status, out), (2, ""))
            self.assertIn("answers.jsonl", err)
        self.assertEqual(self.run_judge(self.folder, "--model", "m")[0], 2)
        self.assertEqual(self.run_judge(self.folder / "none.jsonl", "--model", "m")[0], 2)


class SelfPreference(JudgeCase):
    def check(self, *options, models=None):
        server = self.serve(models=models)
        status, report, err = self.judge(server, answer("a"), options=options)
        return status, err

    def test_the_same_model(self):
        twin = {MODEL: DIGEST, "twin:1b": DIGEST}
        for generator, models in (
            (MODEL, None),
            ("test-judge", None),
            ("twin:1b", twin),
            (DIGEST, None),
            ("sha256:" + DIGEST[:12], None),
        ):
            with self.subTest(generator):
                status, err = self.check("--generator", generator, models=models)
                self.assertEqual(status, 2)
                self.assertIn("would judge its own answers", err)
                status, err = self.check("--generator", generator, "--allow-self", models=models)
                self.assertEqual(status, 0)
                self.assertIn("warning: " + MODEL + " would judge its own answers", err)

    def test_the_same_family_is_a_warning(self):
        status, err = self.check("--generator", "writer:7b")
        self.assertEqual(
            (status, err), (0, "warning: judge and generator are both of the family testfam: their taste may be the same\n")
        )
        self.assertIn("of the family test", self.check("--generator", "org/Test-13B")[1])

    def test_another_model(self):
        self.assertEqual(self.check("--generator", "c" * 64), (0, ""))
        self.assertIn("compared by name only", self.check("--generator", "qwen2.5:7b")[1])

    def test_a_stated_digest(self):
        status, err = self.check("--api", "openai", "--model-digest", "sha256:" + OTHER, "--generator", OTHER)
        self.assertEqual(status, 2)
        self.assertIn("same digest", err)
        self.assertIn("the server says", self.check("--model-digest", OTHER)[1])

    def test_family(self):
        for name, stem in (("org/Qwen2.5-7B", "qwen"), ("llama3.2:3b", "llama"), ("smollm2-135m", "smollm"), ("a" * 64, "")):
            self.assertEqual(judge.family(name), stem)


def row(name, faithfulness=None, relevance=None, **changes):
    """A judged row; without scores it is unjudged."""
    verdict = None if faithfulness is None else {"faithfulness": faithfulness, "relevance": relevance, "chunk": "c", "note": ""}
    return {
        "id": name,
        "type": "factual",
        "answerable": True,
        "refused": False,
        "missed": None,
        "verdict": verdict,
        "unjudged": None if verdict else "HTTP 500",
        "attempts": [] if verdict else [{"reason": "HTTP 500", "detail": ""}],
        "prompt_tokens": None,
        "of": 1,
        "key": name,
        "judge": {"model": "m", "api": "ollama", "digest": DIGEST, "options": {}, "rubric": "1", "rubric_sha256": "r"},
        **changes,
    }


class Reports(JudgeCase):
    def test_mean_worst_and_best(self):
        block = judge_report.score_block([row("a", 2, 1), row("b", 0, 2), row("c")])
        self.assertEqual((block["n"], block["judged"], block["unjudged"]), (3, 2, 1))
        self.assertEqual(
            (block["faithfulness"]["mean"], block["faithfulness"]["worst"], block["faithfulness"]["best"]), (1, 2 / 3, 4 / 3)
        )
        self.assertEqual((block["relevance"]["mean"], block["relevance"]["worst"], block["relevance"]["best"]), (1.5, 1, 5 / 3))

    def test_nothing_judged_is_undefined_not_zero(self):
        block = judge_report.score_block([row("a"), row("b")])
        self.assertEqual(
            [block["faithfulness"][name] for name in ("mean", "low", "high", "worst", "best")], [None, None, None, 0, 2]
        )
        self.assertIn("- (0.00 to 2.00)", "\n".join(judge_report.report_lines(judge_report.make_report([row("a")]))))

    def test_the_interval(self):
        # 2, 1, 2, 1: mean 1.5, s = sqrt(1/3), t(3) = 3.182446305: 1.5 -+ t * s / sqrt(4), cut at the scale's end
        block = judge_report.score_block([row("a", 2, 2), row("b", 1, 2), row("c", 2, 2), row("d", 1, 2)])
        self.assertAlmostEqual(block["faithfulness"]["low"], 1.5 - 3.182446305 * (1 / 3) ** 0.5 / 2, places=8)
        self.assertEqual((block["faithfulness"]["mean"], block["faithfulness"]["high"]), (1.5, 2))
        self.assertEqual((block["relevance"]["low"], block["relevance"]["high"]), (2, 2))

    def test_gates_use_the_worst_case(self):
        path = self.write("judged.jsonl", lines(row("a", 2, 2), row("b", 2, 2), row("c")))
        for options, expected in (
            ([], 0),
            (["--min-faithfulness", 1.3], 0),
            (["--min-faithfulness", 1.4], 1),
            (["--min-relevance", 1.4], 1),
        ):
            self.assertEqual(self.run_judge("report", path, *options)[0], expected)
        _, out, err = self.run_judge("report", path, "--min-relevance", 1.4)
        self.assertEqual(err, "below the floor: relevance: worst case 1.333, floor 1.4\n")

    def test_an_unfinished_run_counts_what_is_missing_as_unjudged(self):
        path = self.write("judged.jsonl", lines(row("a", 2, 2, of=8)))
        status, out, err = self.run_judge("report", path, "--min-relevance", 2)
        self.assertEqual((status, err), (1, "below the floor: relevance: worst case 0.250, floor 2\n"))
        self.assertIn("the run is unfinished: 1 of 8 answers; overall, the worst and the best case count the others as unjudged", out)
        self.assertRegex(out, r"overall +1 +1 +2.00 \(0.25 to 2.00\)")
        self.assertEqual(self.run_judge("report", path, "--min-relevance", 0.25)[0], 0)
        self.write("judged.jsonl", lines(row("a", 0, 0, of=2)))
        report = json.loads(self.run_judge("report", path, "--json")[1])
        self.assertEqual([report["overall"]["relevance"][name] for name in ("mean", "worst", "best")], [0, 0, 1])
        self.assertEqual(report["types"]["factual"]["relevance"]["best"], 0)

    def test_a_floor_must_be_a_mean(self):
        path = self.write("judged.jsonl", lines(row("a", 2, 2)))
        for command, option in (("report", "--min-relevance"), ("report", "--min-faithfulness"), ("calibrate", "--min-kappa")):
            for value in ("nan", "3", "-3", "x"):
                with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                    judge.main([command, str(path), *([str(path)] if command == "calibrate" else []), f"{option}={value}"])

    def test_refusals(self):
        rows = [
            row("a", 2, 2),
            row("b", 2, 2, refused=True),
            row("c", 2, 2, refused=True, missed=True),
            row("d", 2, 2, refused=True, missed=False),
            row("e", 2, 2, refused=True, answerable=False),
            row("f", 0, 0, answerable=False),
            row("g", refused=True, missed=False),
        ]
        report = judge_report.make_report(rows)
        self.assertEqual(
            report["refusals"], {"answerable": {"answered": 1, "refused": 4}, "unanswerable": {"answered": 1, "refused": 1}}
        )
        # a refusal of an answerable question has no full marks, unless retrieval missed: b and d count 0
        self.assertEqual(
            [judge_report.bounds(one, "relevance") for one in rows], [(2, 2), (0, 0), (2, 2), (0, 0), (2, 2), (0, 0), (0, 0)]
        )
        self.assertEqual(judge_report.bounds(rows[6], "faithfulness"), (0, 2))
        declined = report["declined"]
        self.assertEqual({name: declined[name]["ids"] for name in ("retrieval_missed", "retrieval_found", "retrieval_unknown")},
                         {"retrieval_missed": ["c"], "retrieval_found": ["d", "g"], "retrieval_unknown": ["b"]})
        self.assertEqual(declined["relevance_counted_as_0"], ["b", "d"])
        text = "\n".join(judge_report.report_lines(report))
        self.assertIn("answerable, declined, retrieval had missed: 1 (c)", text)
        self.assertIn("                 number of answers   mean faithfulness / relevance\n"
                      "                answered   refused        answered         refused\n"
                      "answerable             1         4     2.00 / 2.00     2.00 / 0.67", text)

    def test_refusals_without_a_judge(self):
        path = self.write(
            "answers.jsonl", lines(answer("a"), answer("b", answer="I can't answer that."), answer("c", answerable=False))
        )
        self.assertEqual(self.run_judge("refusals", path), (0, "                 number of answers\n"
                                                               "                answered   refused\n"
                                                               "answerable             1         1\n"
                                                               "unanswerable           1         0\n", ""))

    def test_judges_are_not_mixed(self):
        other = {**row("b", 1, 1), "judge": {**row("b")["judge"], "digest": OTHER}}
        for second, problem in (
            (other, "different models, options or rubrics"),
            (row("a", 1, 1), "has two rows"),
            (row("b", 3, 1), "expected an integer 0 to 2, got 3"),
            (row("b", True, 1), "expected an integer 0 to 2, got true"),
            ({**row("b"), "attempts": []}, "expected a verdict, or a reason"),
            ({**row("b"), "of": "many"}, "of: expected an integer"),
            ({**row("b"), "of": 10**400}, "of: expected how many answers the run has"),
            ({**row("b"), "of": 0}, "of: expected how many answers the run has"),
            ({**row("b"), "judge": {"model": 5}}, "judge: model: expected a text"),
            ({"id": "b"}, "expected a judged answer"),
        ):
            path = self.write("judged.jsonl", lines(row("a", 2, 2), second, row("z", 1, 1)))
            status, out, err = self.run_judge("report", path)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(problem, err)

    def test_what_servers_and_files_say_steers_no_terminal(self):
        bad = row("a\x1b[31m", 1, 1, type="t\x1b[2J")
        path = self.write("judged.jsonl", lines(bad))
        self.assertNotIn("\x1b", self.run_judge("report", path)[1])


def record(rankings, types=("factual", "numeric"), k=1):
    """A record as the golden harness makes it: one relevant chunk a question; rankings by question."""
    queries = [{"id": name, "type": kind, "reference_grade_counts": {"1": 1}, "rankings": {"search": ranking}}
               for (name, ranking), kind in zip(rankings.items(), types)]
    return {
        "golden": {
            "models": {"search": {"k": k}},
            "depth": 2,
            "cutoffs": [1, 2],
            "grades": {"max": 1, "useful": 1, "gain": "linear"},
            "queries": queries,
        }
    }


class ByType(JudgeCase):
    def files(self):
        rows = [row("a", 2, 2), row("b", 0, 1, type="numeric")]
        return (
            self.write("judged.jsonl", lines(*rows)),
            self.write("record.json", json.dumps(record({"a": [1, 0], "b": [0, 1]}))),
        )

    def test_retrieval_stands_beside_the_judge(self):
        judged, kept = self.files()
        status, out, _ = self.run_judge("report", judged, "--record", kept, "--json")
        report = json.loads(out)
        self.assertEqual(report["retrieval"]["cutoff"], 1)
        parts = {**report["retrieval"]["types"], "overall": report["retrieval"]["overall"]}
        self.assertEqual({kind: (part["queries"], part["hit"], part["ndcg"]) for kind, part in parts.items()},
                         {"overall": (2, 0.5, 0.5), "factual": (1, 1.0, 1.0), "numeric": (1, 0.0, 0.0)})
        _, out, _ = self.run_judge("report", judged, "--record", kept)
        table = [line.split() for line in out.splitlines() if line.startswith(("factual", "numeric", "overall"))]
        self.assertEqual(
            table,
            [
                [
                    "factual",
                    "1",
                    "1",
                    "2.00",
                    "(2.00",
                    "to",
                    "2.00)",
                    "2.00",
                    "(2.00",
                    "to",
                    "2.00)",
                    "1.000",
                    "(1)",
                    "1.000",
                    "(1)",
                    "1.000",
                    "(1)",
                ],
                [
                    "numeric",
                    "1",
                    "1",
                    "0.00",
                    "(0.00",
                    "to",
                    "0.00)",
                    "1.00",
                    "(1.00",
                    "to",
                    "1.00)",
                    "0.000",
                    "(1)",
                    "0.000",
                    "(1)",
                    "0.000",
                    "(1)",
                ],
                [
                    "overall",
                    "2",
                    "2",
                    "1.00",
                    "(1.00",
                    "to",
                    "1.00)",
                    "1.50",
                    "(1.50",
                    "to",
                    "1.50)",
                    "0.500",
                    "(2)",
                    "0.500",
                    "(2)",
                    "0.500",
                    "(2)",
                ],
            ],
        )

    def test_the_cutoff_can_be_chosen(self):
        judged, kept = self.files()
        report = json.loads(self.run_judge("report", judged, "--record", kept, "--cutoff", 2, "--json")[1])
        self.assertEqual(report["retrieval"]["types"]["numeric"]["hit"], 1.0)
        self.assertIn("expected one of 1, 2, got 3", self.run_judge("report", judged, "--record", kept, "--cutoff", 3)[2])

    def test_the_record_tells_which_refusals_had_nothing_to_answer_from(self):
        _, kept = self.files()
        judged = self.write("judged.jsonl", lines(row("a", 2, 2, refused=True), row("b", 2, 2, type="untyped", refused=True)))
        report = json.loads(self.run_judge("report", judged, "--record", kept, "--json")[1])
        self.assertEqual(
            (report["declined"]["retrieval_found"]["ids"], report["declined"]["retrieval_missed"]["ids"]), (["a"], ["b"])
        )
        self.assertEqual(report["overall"]["relevance"]["mean"], 1)
        self.assertEqual(list(report["types"]), ["factual", "numeric"])  # the record's type, where the answer has none

    def test_a_type_may_be_called_overall(self):
        judged = self.write("judged.jsonl", lines(row("a", 2, 2, type="overall"), row("b", 0, 0)))
        _, out, _ = self.run_judge("report", judged)
        self.assertEqual([line.split()[:4] for line in out.splitlines() if line.startswith("overall")],
                         [["overall", "1", "1", "2.00"], ["overall", "2", "2", "1.00"]])

    def test_records_that_do_not_fit(self):
        judged, _ = self.files()
        cases = (
            (record({"x": [1], "y": [0]}), "no question in common"),
            (record({"a": [1], "b": [0]}, types=("numeric", "numeric")), "is of type"),
            ({"a": record({"a": [1]})["golden"], "b": record({"a": [1]})["golden"]}, "--panel: expected one of"),
            ({"x": 1}, "record.json"),
        )
        for value, problem in cases:
            kept = self.write("record.json", json.dumps(value))
            status, _, err = self.run_judge("report", judged, "--record", kept)
            self.assertEqual(status, 2)
            self.assertIn(problem, err)

    def test_questions_on_one_side_only_are_named(self):
        kept = self.write("record.json", json.dumps(record({"a": [1], "q": [0]})))
        judged = self.write("judged.jsonl", lines(row("a", 2, 2), row("b", 1, 1)))
        _, out, _ = self.run_judge("report", judged, "--record", kept)
        self.assertIn("in the record, not judged: 1 (q)", out)
        self.assertIn("judged, not in the record: 1 (b)\n", out)
        for others, said in (([row("u", 2, 2, answerable=False)], "2 (b, u); unanswerable, so that there is nothing to retrieve: 1\n"),
                             ([], "1 (u); unanswerable, so that there is nothing to retrieve: all\n")):
            rows = [row("a", 2, 2), *([row("b", 1, 1)] if others else []), row("u", 2, 2, answerable=False)]
            judged.write_text(lines(*rows), encoding="utf-8")
            _, out, _ = self.run_judge("report", judged, "--record", kept)
            self.assertIn(f"judged, not in the record: {said}", out)

    def test_each_column_says_over_how_many_it_is(self):
        value = record({"a": [1, 0], "q": [0, 0], "w": [0]}, types=("factual", "factual", "numeric"))
        value["golden"]["queries"][1]["reference_grade_counts"] = {"0": 2}  # nothing useful to find: no recall, and an nDCG of 0
        kept = self.write("record.json", json.dumps(value))
        judged = self.write("judged.jsonl", lines(row("a", 2, 2), row("b", 1, 1)))
        _, out, _ = self.run_judge("report", judged, "--record", kept)
        table = {line.split()[0]: re.split(r"  +", line)[-3:] for line in out.splitlines()
                 if line.startswith(("type", "factual", "numeric", "overall"))}
        self.assertEqual(table, {"type": ["hit@1 (n)", "recall@1 (n)", "nDCG@1 (n)"],
                                 "factual": ["0.500 (2)", "1.000 (1)", "0.500 (2)"],
                                 "numeric": ["0.000 (1)", "0.000 (1)", "0.000 (1)"],
                                 "overall": ["0.333 (3)", "0.500 (2)", "0.333 (3)"]})
        self.assertIn("\nretrieval: mean over the record's queries (n of them); questions with both: 1\n", out)

    def test_a_record_may_be_the_folder_of_a_golden_run(self):
        judged, kept = self.files()
        folder = self.folder / "run"
        status, _, err = self.run_judge("report", judged, "--record", self.folder)
        self.assertEqual(status, 2)
        self.assertIn("expected a record's file, or a folder that golden run --output wrote", err)
        (folder / "records").mkdir(parents=True)
        shutil.copy(kept, folder / "records" / "golden.json")
        expected = self.run_judge("report", judged, "--record", kept)[1]
        for path in (folder, folder / "records"):
            _, out, err = self.run_judge("report", judged, "--record", path, "--base", judged, "--base-record", path)
            self.assertEqual(err, "")
            self.assertEqual(out.split("\nchange since")[0].replace(str(folder / "records" / "golden.json"), str(kept)).strip(),
                             expected.strip())

    def test_recall_up_and_faithfulness_down_is_said_in_words(self):
        judged, kept = self.files()
        old = self.write("old.jsonl", lines(row("a", 2, 2), row("b", 2, 1, type="numeric")))
        old_record = self.write("old.json", json.dumps(record({"a": [0, 1], "b": [0, 1]})))
        _, out, _ = self.run_judge("report", judged, "--record", kept, "--base", old, "--base-record", old_record)
        self.assertIn("overall: retrieval rose (hit, recall, ndcg) while faithfulness fell", out)
        self.assertNotIn("numeric: retrieval rose", out)
        report = json.loads(
            self.run_judge("report", judged, "--record", kept, "--base", old, "--base-record", old_record, "--json")[1]
        )
        change = report["changes"]["overall"]
        self.assertEqual(
            (change["hit"]["difference"], change["faithfulness"]["difference"], change["faithfulness"]["losses"]), (0.5, -1, 1)
        )
        self.assertEqual(report["changes"]["types"]["factual"]["opposed"], [])

    def test_a_base_record_needs_its_base(self):
        judged, kept = self.files()
        self.assertEqual(self.run_judge("report", judged, "--base-record", kept)[0], 2)


class Calibrating(JudgeCase):
    def calibrate(self, judged, human, *options):
        return self.run_judge(
            "calibrate", self.write("judged.jsonl", lines(*judged)), self.write("human.jsonl", lines(*human)), *options
        )

    def test_against_people(self):
        judged = [row("a", 2, 2), row("b", 1, 2), row("c", 0, 1), row("d", 2, 0), row("e")]
        human = [
            {"id": "a", "faithfulness": 2, "relevance": 2},
            {"id": "b", "faithfulness": 1, "relevance": 2},
            {"id": "c", "faithfulness": 1, "relevance": 1},
            {"id": "d", "faithfulness": 2, "relevance": 2},
            {"id": "e", "faithfulness": 0, "relevance": 0},
            {"id": "z", "faithfulness": 0, "relevance": 0},
        ]
        status, out, err = self.calibrate(judged, human, "--json")
        report = json.loads(out)
        # faithfulness 2 1 0 2 against 2 1 1 2: agreement 3/4, by chance 0*1/4 + 1/4*1/2 + 1/2*1/2 = 3/8; kappa is 3/8 of 5/8
        entry = report["faithfulness"]
        self.assertEqual((entry["n"], entry["agreement"]["value"]), (4, 0.75))
        self.assertAlmostEqual(entry["kappa"]["plain"]["value"], 0.6, places=12)
        self.assertEqual(entry["confusion"], [[0, 1, 0], [0, 1, 0], [0, 0, 2]])
        self.assertEqual(entry["disagreements"], [{"id": "c", "judge": 0, "human": 1, "note": ""}])
        self.assertEqual((report["unjudged"], entry["only_human"]), (["e"], ["z"]))
        self.assertEqual([item["id"] for item in report["relevance"]["disagreements"]], ["d"])

    def test_the_files_the_wrong_way_round(self):
        judged, human = self.write("j.jsonl", lines(row("a", 2, 2))), self.write("h.jsonl", lines({"id": "a", "faithfulness": 1,
                                                                                                   "relevance": 1}))
        status, out, err = self.run_judge("calibrate", human, judged)
        self.assertEqual((status, out), (2, ""))
        self.assertIn(f"error: {judged}: this is what `judge` wrote, and {human} is not", err)
        self.assertIn("swap the two", err)
        self.assertEqual(self.run_judge("calibrate", judged, judged)[0], 0)  # two judges

    def test_constant_raters_are_undefined(self):
        judged = [row("a", 2, 1), row("b", 2, 2)]
        human = [{"id": "a", "faithfulness": 2, "relevance": 1}, {"id": "b", "faithfulness": 0, "relevance": 2}]
        status, out, _ = self.calibrate(judged, human)
        self.assertIn("kappa            undefined", out)
        self.assertIn("undefined        kappa: judge gave 2 throughout", out)
        self.assertEqual(self.calibrate(judged, human, "--score", "faithfulness", "--min-kappa", "-1")[0], 1)
        self.assertEqual(self.calibrate(judged, human, "--score", "relevance", "--min-kappa", "0.9")[0], 0)

    def test_any_two_raters(self):
        first, second = ([{"id": i, "overall": score} for i, score in enumerate(scores)] for scores in ((-2, 0, 2), (-2, 1, 2)))
        status, out, _ = self.calibrate(first, second, "--score", "overall", "--scale=-2:2", "--json")
        # distances 0 1 0 over the scale of five; expected linear disagreement (0+3+4+2+1+2+4+1+0)/9 = 17/9; kappa 1 - (1/3)/(17/9)
        self.assertAlmostEqual(json.loads(out)["overall"]["kappa"]["linear"]["value"], 1 - 3 / 17, places=12)

    def test_bad_scores(self):
        judged = [row("a", 2, 1)]
        for human, problem in (
            ([{"id": "a", "faithfulness": 3, "relevance": 1}], "expected an integer 0 to 2, got 3"),
            ([{"id": "a", "faithfulness": 2}], "relevance: expected an integer 0 to 2, got nothing"),
            ([{"id": "a", "faithfulness": True, "relevance": 1}], "got true"),
            ([{"faithfulness": 1, "relevance": 1}], "id: expected"),
            ([{"id": "b", "faithfulness": 1, "relevance": 1}], "no answer was scored by both"),
            ([5], "expected an object"),
            ([{"id": "a", "faithfulness": 1, "relevance": 1}] * 2, "stands there twice"),
        ):
            status, out, err = self.calibrate(judged, human)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(problem, err)


class Documentation(TestCase):
    def test_the_page_shows_what_the_commands_print(self):
        page = (ROOT / "harness" / "docs" / "judge.md").read_text(encoding="utf-8")
        shutil.copytree(DATA / "judge", self.folder, dirs_exist_ok=True)
        examples = re.findall(r"^```\n\$ python -m harness (.*)\n([^`]*)^```", page, re.MULTILINE)
        self.assertGreaterEqual(len(examples), 5)
        for command, output in examples:
            with self.subTest(command):
                done = self.run_command("harness", *command.split())
                self.assertEqual((done.stdout.rstrip() + "\n", done.stderr), (output, ""))

    def test_every_option_is_on_the_page(self):
        page = (ROOT / "harness" / "docs" / "judge.md").read_text(encoding="utf-8")
        for command in (
            ["judge"],
            ["judge", "report"],
            ["judge", "calibrate"],
            ["judge", "refusals"],
            ["labels"],
            ["labels", "extend"],
        ):
            main = labels.main if command[0] == "labels" else judge.main
            with contextlib.redirect_stdout(io.StringIO()) as shown, self.assertRaises(SystemExit):
                main([*command[1:], "--help"])
            options = set(re.findall(r"--[a-z][a-z-]+", shown.getvalue())) - {"--help"}
            self.assertTrue(options or command[-1] == "refusals")
            self.assertEqual({option for option in options if option not in page}, set(), command)


class Options(TestCase):
    def test_every_option_of_a_report_is_known_to_both_commands(self):
        parser = argparse.ArgumentParser()
        judge_report.add_report_arguments(parser)
        known = vars(judge._arguments(["a", "--model", "m"]))
        self.assertLessEqual(vars(parser.parse_args([])).keys(), known.keys())


if __name__ == "__main__":
    unittest.main()
