"""The client against a real HTTP server on loopback that misbehaves in every way that servers do."""

import json
import os
import unittest
from types import SimpleNamespace
from unittest import mock

from harness import judge_client
from harness.judge_client import Options, Server, check_url, connect
from harness.verdicts import NoVerdict, load_rubric, parse_verdict
from metrics import RecordError
from tests import EXTERNAL_DATA, TestCase, judge_server
from tests.judge_server import DIGEST, MODEL, JudgeServer

SCHEMA = load_rubric()["schema"]
MESSAGES = [{"role": "system", "content": "grade"}, {"role": "user", "content": json.dumps(
    {"question": "q", "chunks": [{"id": "c1", "text": "Tap Storage."}], "answer": "a"})}]


class ClientCase(TestCase):
    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(judge_client, "PAUSE", 0.0))

    def serve(self, *script, **how):
        return self.enterContext(JudgeServer(script, **how))

    def judge(self, server, api="ollama", model=MODEL, seconds=20.0, options=None, retries=0, **how):
        return connect(Server(server.url, seconds=seconds, **how), api, model, options or Options(), SCHEMA, retries=retries)

    def failure(self, step, api="ollama", seconds=None, **how):
        """The NoVerdict that one step of the server leads to; seconds is how long the client waits for it."""
        judge = self.judge(self.serve(step), api, **how)
        if seconds:
            judge.server.seconds = seconds
        with self.assertRaises(NoVerdict) as caught:
            judge.ask(MESSAGES)
        return caught.exception


class Requests(ClientCase):
    def test_ollama(self):
        server = self.serve()
        judge = self.judge(server, options=Options(seed=5, context=4096, max_tokens=300))
        reply = judge.ask(MESSAGES)
        path, payload, headers = server.requests[-1]
        self.assertEqual(path, "/api/chat")
        self.assertEqual(payload, {"model": MODEL, "messages": MESSAGES, "stream": False, "truncate": False, "format": SCHEMA,
                                   "options": {"temperature": 0, "seed": 5, "num_ctx": 4096, "num_predict": 300}})
        self.assertNotIn("Authorization", headers)
        self.assertEqual(json.loads(reply.content)["evidence"], "Tap Storage.")
        self.assertEqual((reply.finish, reply.prompt_tokens, reply.completion_tokens), ("stop", 500, 50))
        self.assertEqual((judge.identity["server"], judge.identity["digest"], judge.identity["family"]),
                         ("ollama 0.9.9", DIGEST, "testfam"))

    def test_openai_takes_the_strictest_format_that_works(self):
        for formats, form, shape in (
                (("json_schema", "json_object", "text"), "json_schema", {"type": "json_schema", "json_schema": {
                    "name": "verdict", "strict": True, "schema": SCHEMA}}),
                (("json_object", "text"), "json_object with schema", {"type": "json_object", "schema": SCHEMA}),
                (("text",), "plain", None)):
            with self.subTest(form):
                server = self.serve(formats=formats)
                judge = self.judge(server, "openai")
                judge.ask(MESSAGES)
                path, payload, _ = server.requests[-1]
                self.assertEqual(
                    (path, payload.get("response_format"), payload["stream"]), ("/v1/chat/completions", shape, False)
                )
                self.assertEqual(
                    judge.identity["options"], {"temperature": 0, "seed": 7, "max_tokens": 400, "response_format": form}
                )
                self.assertEqual((judge.identity["server"], judge.identity["digest"]), ("JudgeServer/1.0", None))

    def test_no_format_works(self):
        with self.assertRaises(RecordError) as caught:
            self.judge(self.serve(formats=()), "openai")
        self.assertIn("no chat request in any reply format", str(caught.exception))

    def test_a_url_may_end_in_a_slash_or_in_its_version(self):
        for api, ending in (("ollama", "/"), ("openai", "/v1"), ("openai", "/v1/")):
            server = self.serve()
            server.url += ending
            self.judge(server, api).ask(MESSAGES)


class Misbehaviour(ClientCase):
    def test_each_has_its_reason(self):
        say = judge_server.says
        cases = {
            "cut at the length limit": say("{verdict}", finish="length"),
            "reply not finished": say("{verdict}", finish="content_filter"),
            "server sent no JSON": judge_server.html,
            "HTTP 404": judge_server.status(404, "model not found"),
            "HTTP 500": judge_server.status(500),
            "HTTP 503": judge_server.status(503),
            "server streamed": judge_server.stream,
            "redirect refused": judge_server.redirect("http://127.0.0.1:1/api/chat"),
            "connection failed": judge_server.drop,
            "reply too large": judge_server.huge(declared=True)}
        for api in ("ollama", "openai"):
            for reason, step in cases.items():
                with self.subTest(f"{api}: {reason}"):
                    self.assertEqual(self.failure(step, api).reason, reason)

    def test_half_a_body(self):
        error = self.failure(judge_server.half)
        self.assertEqual(error.reason, "connection failed")
        self.assertRegex(error.detail, r"the reply ended after \d+ bytes, before its end")

    def test_an_endless_body_is_cut_where_no_length_is_declared(self):
        self.assertEqual(self.failure(judge_server.huge(declared=False)).reason, "reply too large")

    def test_silence_ends(self):
        self.assertEqual(self.failure(judge_server.hang, seconds=0.15).reason, "no reply in time")

    def test_dripping_ends_although_no_single_read_is_slow(self):
        self.assertEqual(self.failure(judge_server.drip, seconds=0.3).reason, "no reply in time")

    def test_what_would_only_fail_again_is_not_tried_again(self):
        again = {step: self.failure(judge_server.status(step)).again for step in (400, 404, 408, 429, 500, 503)}
        self.assertEqual(again, {400: False, 404: False, 408: True, 429: True, 500: True, 503: True})
        self.assertFalse(self.failure(judge_server.redirect("/elsewhere")).again)

    def test_the_servers_own_words_are_shown_without_control_characters(self):
        error = self.failure(judge_server.status(400, "the input \x1b[31m exceeds\nthe context"))
        self.assertEqual(error.detail, "the input ?[31m exceeds\nthe context".replace("\n", "?"))

    def test_a_redirect_is_not_followed(self):
        other = self.serve()
        error = self.failure(judge_server.redirect(other.url + "/api/chat"))
        self.assertIn(other.url, error.detail)
        self.assertEqual((other.requests, other.gets), ([], []))

    def test_replies_of_another_shape(self):
        shapes = [[], {}, {"message": "hi"}, {"message": {"content": None}}, {"message": {"content": [{"text": "x"}]}},
                  {"choices": []}, {"choices": [1]}, {"choices": [{"message": {"content": 5}}]}, {"choices": [{}, {}]}]
        for api in ("ollama", "openai"):
            for shape in shapes:
                with self.subTest(f"{api}: {shape}"):
                    error = self.failure(lambda handler, payload, shape=shape: handler.send_json(shape), api)
                    self.assertIn(error.reason, ("server sent no reply", "server sent no JSON"))

    def test_an_error_with_status_200(self):
        error = self.failure(lambda handler, payload: handler.send_json({"error": "out of memory"}))
        self.assertEqual((error.reason, error.detail), ("server error", "out of memory"))

    def test_a_judge_that_declines(self):
        declines = {"choices": [{"message": {"content": None, "refusal": "I will not."}, "finish_reason": "stop"}]}
        self.assertEqual(self.failure(lambda handler, payload: handler.send_json(declines), "openai").reason, "judge declined")

    def test_retry_after(self):
        self.assertEqual(self.failure(judge_server.status(429, headers=[("Retry-After", "3")])).wait, 3)
        self.assertEqual(
            self.failure(judge_server.status(429, headers=[("Retry-After", "86400")])).wait, judge_client.LONGEST_WAIT
        )
        self.assertEqual(self.failure(judge_server.status(429, headers=[("Retry-After", "tomorrow")])).wait, 0)


class Context(ClientCase):
    """The prompt must have been read whole."""

    def test_a_prompt_that_was_cut(self):
        for tokens, reason in ((3, "prompt cut"), (1000, "prompt cut")):
            with self.subTest(tokens):
                error = self.failure(
                    judge_server.says("{verdict}", prompt_tokens=tokens), options=Options(context=1024, max_tokens=100)
                )
                self.assertEqual((error.reason, error.again), (reason, False))

    def test_room_for_the_reply_is_enough(self):
        judge = self.judge(
            self.serve(judge_server.says("{verdict}", prompt_tokens=924)), options=Options(context=1024, max_tokens=100)
        )
        self.assertEqual(judge.ask(MESSAGES).prompt_tokens, 924)

    def test_a_server_that_does_not_say_is_trusted_only_where_the_bytes_fit(self):
        silent = judge_server.says("{verdict}", prompt_tokens=None)
        self.assertIsNone(self.judge(self.serve(silent)).ask(MESSAGES).prompt_tokens)
        error = self.failure(silent, options=Options(context=200, max_tokens=100))
        self.assertEqual(error.reason, "prompt not known to be whole")

    def test_what_cannot_fit_is_not_sent(self):
        server = self.serve()
        judge = self.judge(server, options=Options(context=200, max_tokens=100))
        with self.assertRaises(NoVerdict) as caught:
            judge.ask([{"role": "user", "content": "word " * 101}])
        self.assertEqual((caught.exception.reason, server.prompts), ("prompt too long", []))

    def test_a_context_beyond_the_models_is_an_error(self):
        with self.assertRaises(RecordError) as caught:
            self.judge(self.serve(context=2048))
        self.assertIn("reads at most 2,048 tokens", str(caught.exception))

    def test_a_reply_that_spent_all_its_tokens_is_cut_where_no_reason_is_given(self):
        spent = judge_server.says("{verdict}", finish=None, spent=400)
        self.assertEqual(self.failure(spent).reason, "cut at the length limit")
        self.judge(self.serve(judge_server.says("{verdict}", finish=None, spent=399))).ask(MESSAGES)


class Connecting(ClientCase):
    def refused(self, server, **how):
        with self.assertRaises(RecordError) as caught:
            self.judge(server, **how)
        return str(caught.exception)

    def test_an_unknown_model_is_found_out_although_the_server_would_answer(self):
        for api in ("ollama", "openai"):
            server = self.serve()
            self.assertIn("no model 'no-such-model'; it has: ", self.refused(server, api=api, model="no-such-model"))
            self.assertEqual(server.chats, 0)

    def test_latest_may_be_left_out_for_ollama(self):
        self.judge(self.serve(), model="test-judge").ask(MESSAGES)

    def test_the_wrong_api(self):
        class Bare(judge_server._Handler):
            def do_GET(self):
                self.send_json({"detail": "Not Found"}, 404)

        with mock.patch.object(judge_server, "_Handler", Bare):
            self.assertIn("HTTP 404", self.refused(self.serve()))

    def test_the_other_api_is_named(self):
        self.assertIn("HTTP 404: {\"detail\": \"Not Found\"}; but it has a list of models as openai: add --api openai",
                      self.refused(self.serve(apis=("/v1",))))
        self.assertIn("as ollama: add --api ollama", self.refused(self.serve(apis=("/api",)), api="openai"))
        self.assertNotIn("add --api", self.refused(self.serve(apis=("/other",))))

    def test_nobody_listens(self):
        server = self.serve()
        server.http.shutdown()
        server.http.server_close()
        with mock.patch.object(server, "http", mock.Mock()):
            self.assertIn("connection failed: Connection refused", self.refused(server))

    def test_a_503_while_starting_is_waited_out(self):
        calls = []

        class Starting(judge_server._Handler):
            def do_GET(self):
                calls.append(self.path)
                if len(calls) == 1:
                    return self.send_json({"error": "loading"}, 503)
                return super().do_GET()

        with mock.patch.object(judge_server, "_Handler", Starting):
            self.judge(self.serve(), retries=1)
        self.assertEqual(calls[:2], ["/api/tags", "/api/tags"])


class Addresses(TestCase):
    def test_loopback(self):
        for url in (
            "http://localhost:11434",
            "http://127.0.0.1",
            "http://127.8.9.1:80/",
            "http://[::1]:8000/v1",
            "https://LOCALHOST",
        ):
            with self.subTest(url):
                self.assertEqual(check_url(url), url.rstrip("/"))

    def test_everything_else_needs_consent(self):
        for url in (
            "http://example.com",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://2130706433",
            "http://127.1",
            "http://[::ffff:10.0.0.1]",
            "http://[2001:db8::1]:80",
        ):
            with self.subTest(url):
                with self.assertRaises(RecordError) as caught:
                    check_url(url)
                self.assertIn("--allow-remote", str(caught.exception))
                self.assertEqual(check_url(url, allow_remote=True), url)

    def test_no_url(self):
        for url in (
            "",
            "localhost:11434",
            "ftp://localhost",
            "file:///etc/passwd",
            "http://",
            "http://localhost:99999",
            "http://localhost:x",
            "http://user:secret@localhost",
            "http://localhost/?a=1",
            "http://localhost/#x",
            "http://local host",
            "http://[::1",
            "http://localhost/\r\nX: y",
            "http://127.0.0.1@example.com",
        ):
            with self.subTest(url):
                with self.assertRaises(RecordError) as caught:
                    check_url(url, allow_remote=True)
                self.assertNotIn("secret", str(caught.exception))


class Credentials(ClientCase):
    KEY = "sk-very-secret-key"

    def test_it_goes_into_one_header(self):
        server = self.serve()
        self.judge(server, key=self.KEY).ask(MESSAGES)
        self.assertEqual(server.requests[-1][2]["Authorization"], f"Bearer {self.KEY}")
        self.assertNotIn(self.KEY, json.dumps(server.requests[-1][1]))

    def test_it_is_in_no_error_although_the_server_repeats_it(self):
        for step in (judge_server.status(400, f"bad key {self.KEY}"), judge_server.redirect(f"http://x/{self.KEY}"),
                     judge_server.says(self.KEY)):
            judge = self.judge(self.serve(step), key=self.KEY)
            try:
                shown = judge.ask(MESSAGES).content
            except NoVerdict as error:
                shown = str(error)
            self.assertNotIn(self.KEY, shown)
            self.assertIn("[credential]", shown)

    def test_a_refused_one_stops_the_run_and_the_servers_words_are_kept_back(self):
        for code in (401, 403):
            judge = self.judge(self.serve(judge_server.status(code, "Incorrect key sk-v***-key")), key=self.KEY)
            with self.assertRaises(RecordError) as caught:
                judge.ask(MESSAGES)
            self.assertIn("JUDGE_API_KEY was refused", str(caught.exception))
            self.assertNotIn("sk-", str(caught.exception))

    def test_one_that_fits_no_header_is_not_shown(self):
        for key in ("secret\nvalue", "secret value", "sécret"):
            with self.assertRaises(RecordError) as caught:
                Server("http://localhost", key=key)
            self.assertNotIn("cret", str(caught.exception))

    def test_it_does_not_travel_unencrypted(self):
        with self.assertRaises(RecordError) as caught:
            Server("http://example.com", allow_remote=True, key=self.KEY)
        self.assertIn("https://", str(caught.exception))
        self.assertNotIn(self.KEY, str(caught.exception))
        Server("https://example.com", allow_remote=True, key=self.KEY)


class Proxies(ClientCase):
    def test_the_environments_proxies_are_not_asked_for_loopback(self):
        proxy, server = self.serve(), self.serve()
        with mock.patch.dict(os.environ, {"http_proxy": proxy.url, "HTTP_PROXY": proxy.url, "no_proxy": ""}):
            self.judge(server).ask(MESSAGES)
        self.assertEqual((proxy.gets, proxy.requests), ([], []))
        self.assertTrue(server.chats)


class RecordedCalls(ClientCase):
    """Replies that llama-cpp-python sent once, sent again; an optional check on data that is not part of the repository."""

    def setUp(self):
        super().setUp()
        path = EXTERNAL_DATA / "judge" / "openai_llama_cpp_python.json"
        if not path.exists():
            self.skipTest(f"{path} is not there: 11 recorded edge calls are not checked")
        self.calls = json.loads(path.read_text(encoding="utf-8"))["errors"]

    def step(self, name):
        call = self.calls[name]
        return lambda handler, payload: handler.send_bytes(call["body"].encode(), call["status"])

    def test_failures(self):
        reasons = {
            "bad_json": "HTTP 500",
            "bad_response_format": "HTTP 500",
            "context_overflow": "HTTP 400",
            "not_found": "HTTP 404",
            "get_root": "HTTP 404",
            "length_cut": "cut at the length limit",
        }
        errors = {name: self.failure(self.step(name), "openai") for name in reasons}
        self.assertEqual({name: error.reason for name, error in errors.items()}, reasons)
        self.assertIn("maximum context length is 2048 tokens", errors["context_overflow"].detail)
        self.assertTrue(judge_client._is_about_format(errors["bad_response_format"]))
        self.assertFalse(judge_client._is_about_format(errors["context_overflow"]))

    def test_replies_that_are_none_of_a_judge(self):
        self.assertEqual(self.failure(self.step("missing_messages"), "openai").reason, "prompt cut")  # it read 4 tokens
        for name, reason in (("unknown_model", "not one JSON object"), ("bad_schema", "score missing")):
            reply = self.judge(self.serve(self.step(name)), "openai").ask(MESSAGES)
            with self.assertRaises(NoVerdict) as caught:
                parse_verdict(reply.content, [("c1", "Tap Storage.")], False, load_rubric())
            self.assertEqual(caught.exception.reason, reason)

    def test_its_list_of_models_has_no_other_name(self):
        models = judge_client.OpenAI().models(SimpleNamespace(fetch=lambda path: (json.loads(self.calls["models"]["body"]), {})))
        self.assertEqual(list(models), ["smollm2-135m"])


if __name__ == "__main__":
    unittest.main()
