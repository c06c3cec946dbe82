"""A real HTTP server on loopback that answers in the shapes of Ollama's API and of the OpenAI-compatible one, and misbehaves on request.

    with JudgeServer([good, status(503), good]) as server: … server.url … server.requests

Each chat request takes the next step of the script; the last one serves all further requests. A step is a function
(handler, payload) that sends whatever it likes.
"""

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "test-judge:latest"
DIGEST = "a" * 64
OTHER = "b" * 64


class JudgeServer:
    """Serves the steps of a script. `requests` holds (path, payload, headers) of every POST, in order of arrival."""

    def __init__(self, script=(), models=None, formats=("json_schema", "json_object", "text"), digest=DIGEST, context=32768,
                 apis=("/api", "/v1")):
        self.script = list(script) or [good]
        self.models = models or {MODEL: digest, "writer:7b": OTHER}
        self.formats, self.context = formats, context
        self.apis = apis  # the paths that are known; all others are 404
        self.requests, self.gets, self.chats = [], [], 0
        self.lock, self.closing = threading.Lock(), threading.Event()

    def __enter__(self):
        owner = self

        class Handler(_Handler):
            server_owner = owner

        self.http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def next_step(self):
        with self.lock:
            self.chats += 1
            return self.script[min(self.chats, len(self.script)) - 1]

    @property
    def prompts(self):
        """The user message of every chat request, without the ones that only ask for the reply format."""
        return [
            payload["messages"][-1]["content"]
            for path, payload, _ in self.requests
            if "chat" in path and not _is_probe(payload)
        ]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        """A client that goes away in the middle is what many of the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "JudgeServer/1.0", ""

    def log_message(self, *_):
        pass

    def do_GET(self):
        owner = self.server_owner
        owner.gets.append((self.path, dict(self.headers)))
        if not self.path.startswith(owner.apis):
            self.send_json({"detail": "Not Found"}, 404)
        elif self.path == "/api/tags":
            self.send_json({"models": [{"name": name, "model": name, "digest": digest, "details": {"family": "testfam"}}
                                       for name, digest in owner.models.items()]})
        elif self.path == "/api/version":
            self.send_json({"version": "0.9.9"})
        elif self.path == "/v1/models":
            self.send_json({"object": "list", "data": [{"id": name, "object": "model"} for name in owner.models]})
        else:
            self.send_json({"detail": "Not Found"}, 404)

    def do_POST(self):
        owner = self.server_owner
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        owner.requests.append((self.path, payload, dict(self.headers)))
        if self.path == "/api/show":
            self.send_json({"details": {"family": "testfam"}, "model_info": {"testfam.context_length": owner.context}})
        elif self.path == "/v1/chat/completions" and _format_of(payload) not in owner.formats:
            # word for word what llama-cpp-python sends, which also uses status 500 for it
            self.send_json({"error": {"message": "1 validation error:\n  {'loc': ('body', 'response_format', 'type')}",
                                      "type": "internal_server_error"}}, 500)
        elif _is_probe(payload):
            self.send_json(chat_value(self, "{", "length"))
        else:
            owner.next_step()(self, payload)

    def send_json(self, value, status=200, headers=()):
        self.send_bytes(json.dumps(value).encode(), status, "application/json", headers)

    def send_bytes(self, body, status=200, kind="application/json", headers=(), length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _format_of(payload):
    return payload.get("response_format", {}).get("type", "text")


def _is_probe(payload):
    return payload.get("max_tokens") == 1


def chat_value(handler, content, finish="stop", prompt_tokens=500, spent=50):
    """A chat reply in the shape of the API that was asked."""
    message = {"role": "assistant", "content": content}
    if handler.path.startswith("/api"):
        return {"model": MODEL, "message": message, "done": True, "done_reason": finish, "prompt_eval_count": prompt_tokens,
                "eval_count": spent}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": spent}}


# Steps


def verdict_for(payload, **changes):
    """A verdict on the answer that a payload asks about, with its first chunk's text as the quote."""
    shown = json.JSONDecoder().raw_decode(payload["messages"][1]["content"])[0]
    chunk = shown["chunks"][0] if shown["chunks"] else {"id": "", "text": ""}
    return {"evidence": chunk["text"], "chunk": chunk["id"], "note": "", "faithfulness": 2, "relevance": 1, **changes}


def good(handler, payload):
    handler.send_json(chat_value(handler, json.dumps(verdict_for(payload))))


def scored(**changes):
    """A step that sends a verdict with some members changed."""
    return lambda handler, payload: handler.send_json(chat_value(handler, json.dumps(verdict_for(payload, **changes))))


def says(content, **how):
    """A step that sends a text; {verdict} in it becomes a good verdict."""
    def step(handler, payload):
        handler.send_json(chat_value(handler, content.replace("{verdict}", json.dumps(verdict_for(payload))), **how))
    return step


def status(code, message="try again", headers=()):
    return lambda handler, payload: handler.send_json({"error": message}, code, headers)


def html(handler, payload):
    handler.send_bytes(b"<html><body><h1>It works!</h1></body></html>", 200, "text/html")


def hang(handler, payload):
    """Say nothing until the client goes away or the test ends."""
    handler.server_owner.closing.wait(20)


def drip(handler, payload):
    """Send a byte now and then, so that no single read takes long."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server_owner.closing.wait(0.02):
        handler.wfile.write(b" ")


def drop(handler, payload):
    """Close the connection before any reply."""
    handler.connection.shutdown(socket.SHUT_RDWR)


def half(handler, payload):
    body = json.dumps(chat_value(handler, json.dumps(verdict_for(payload)))).encode()
    handler.send_bytes(body[:len(body) // 2], length=len(body))
    handler.connection.shutdown(socket.SHUT_RDWR)


def stream(handler, payload):
    """A stream although none was asked for: lines of JSON from Ollama, server-sent events from the other API."""
    whole = json.dumps(verdict_for(payload))
    if handler.path.startswith("/api"):
        parts = [
            {"model": MODEL, "message": {"role": "assistant", "content": part}, "done": False}
            for part in (whole[:9], whole[9:])
        ]
        body = "".join(json.dumps(part) + "\n" for part in parts)
    else:
        body = "".join(
            "data: " + json.dumps({"choices": [{"delta": {"content": part}}]}) + "\n\n" for part in (whole[:9], whole[9:])
        )
    handler.send_bytes(body.encode(), kind="text/event-stream")


def redirect(where):
    return lambda handler, payload: handler.send_json({}, 302, [("Location", where)])


def huge(declared):
    """50 MB of spaces, with their number declared or not."""
    def step(handler, payload):
        handler.send_response(200)
        if declared:
            handler.send_header("Content-Length", str(50 * 2**20))
        handler.end_headers()
        for _ in range(50):
            handler.wfile.write(b" " * 2**20)
    return step


def slow(seconds, step=good):
    def later(handler, payload):
        time.sleep(seconds)
        step(handler, payload)
    return later
