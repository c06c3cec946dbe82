"""Asks a model on a server for a reply, over Ollama's API or the OpenAI-compatible one.

    connect(...)          a Judge whose server answers, whose model exists and whose reply format is known
    Judge.ask(messages, schema)   one reply, or NoVerdict with the reason

Nothing but loopback is contacted unless that is allowed; no redirect is followed; every exchange has an end in bytes and in
seconds, however slowly the server drips; a credential goes into one header and nowhere else.
"""

import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.request
from collections import namedtuple
from functools import partial
from ipaddress import ip_address
from urllib.parse import urlsplit

from harness.verdicts import NoVerdict, printable
from metrics import RecordError, decode_utf8, parse_json

MOST_BYTES = 4 * 2**20  # a reply of a few hundred tokens takes a few kB, a long list of models a few hundred
PAUSE = 0.5  # seconds before the first retry of a request that failed
LONGEST_WAIT = 30.0  # seconds: what a server may ask for with Retry-After
KEY_VARIABLE = "JUDGE_API_KEY"
LOST = {"connection failed", "no reply in time"}

Options = namedtuple("Options", "temperature seed context max_tokens", defaults=(0, 7, 8192, 400))
Reply = namedtuple("Reply", "content finish prompt_tokens completion_tokens")


def check_url(url, allow_remote=False, key=""):
    """The base of a server's URL, without a trailing slash. Raises RecordError unless it is plain and, by default, loopback.

    Only "localhost" and literal loopback addresses count: what another name resolves to can change between check and use.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise RecordError(f"--url: expected a URL like http://localhost:11434: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise RecordError("--url: expected a URL that starts with http:// or https:// and names a host")
    if parts.username is not None or parts.password is not None:
        raise RecordError(f"--url: expected no user or password in the URL; put a credential into the variable {KEY_VARIABLE}")
    if parts.query or parts.fragment or any(not "!" <= letter <= "~" for letter in url):
        raise RecordError("--url: expected a host, a port and perhaps a path in plain ASCII, nothing more")
    if not _is_loopback(host):
        if not allow_remote:
            raise RecordError(f"--url: {host} is not this machine, and questions, chunks and answers would be sent there; "
                              "add --allow-remote if that is meant")
        if key and parts.scheme != "https":
            raise RecordError(f"--url: the credential in {KEY_VARIABLE} would travel unencrypted to {host}; use https://")
    return url.rstrip("/")


def check_key(key):
    """The credential, if it can stand in a header. Raises RecordError that doesn't repeat it."""
    key = key.strip()
    if any(not "!" <= letter <= "~" for letter in key):
        raise RecordError(f"{KEY_VARIABLE}: expected printable ASCII without spaces (the value isn't shown)")
    return key


def _is_loopback(host):
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """One HTTP server: `fetch` exchanges JSON with it within a size and a time."""

    def __init__(self, url, allow_remote=False, key="", seconds=120.0, most_bytes=MOST_BYTES):
        self.key = check_key(key)
        self.url = check_url(url, allow_remote, self.key)
        self.seconds, self.most_bytes = seconds, most_bytes
        self.loopback = _is_loopback(urlsplit(self.url).hostname)
        self.context = None  # made once, and only for https: it loads every certificate that the system trusts
        if self.url.lower().startswith("https:"):
            import ssl

            self.context = ssl.create_default_context()

    def fetch(self, path, payload=None):
        """Send a request, a POST where there is a payload; return (value of the JSON reply, headers). Raises NoVerdict."""
        headers = {"Accept": "application/json", "User-Agent": "retrieval-harness"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = None
        if payload is not None:
            data = json.dumps(payload).encode("ascii")
            headers["Content-Type"] = "application/json"
        address = self.url.removesuffix("/v1") + path  # many give the base of the OpenAI-compatible API with its version
        status, reply_headers, body = self._exchange(urllib.request.Request(address, data, headers))
        if self.key:
            body = body.replace(self.key.encode(), b"[credential]")
        if status != 200:
            raise self._failure(status, reply_headers, body)
        return _json(body), reply_headers

    def _exchange(self, request):
        """(status, headers, body) of one exchange, whole and in time."""
        watch = _Watch(self.seconds)
        try:
            with watch, _opener(watch, self.loopback, self.context).open(request, timeout=self.seconds) as response:
                status, reply_headers, body = response.status, response.headers, self._read(response)
        except (OSError, http.client.HTTPException) as error:
            if watch.ended or isinstance(getattr(error, "reason", error), TimeoutError):
                raise NoVerdict("no reply in time", f"none within {self.seconds:g} seconds") from None
            raise NoVerdict("connection failed", self._hide(_say(error))) from None
        if watch.ended:  # a body without a declared length looks whole when the watch has cut it
            raise NoVerdict("no reply in time", f"none within {self.seconds:g} seconds")
        return status, reply_headers, body

    def _read(self, response):
        """The body, refused as soon as it is too long, and where it ends before its declared length."""
        declared = response.headers.get("Content-Length", "")
        length = int(declared) if declared.isdecimal() and len(declared) < 16 else None
        parts, size = [], 0
        while size <= self.most_bytes and (length or 0) <= self.most_bytes:
            part = response.read(65536)
            if not part:
                break
            parts.append(part)
            size += len(part)
        else:
            raise NoVerdict("reply too large", f"more than {self.most_bytes:,} bytes", again=False)
        if length is not None and size < length:
            raise http.client.IncompleteRead(b"".join(parts), length - size)
        return b"".join(parts)

    def _failure(self, status, headers, body):
        """What a status other than 200 means: an error to raise."""
        if status in (401, 403):  # the body isn't shown: servers like to repeat parts of a credential
            state = "was refused" if self.key else "is not set"
            return RecordError(f"{self.url}: HTTP {status}: the server wants a credential; the one in {KEY_VARIABLE} {state}")
        if 300 <= status < 400:
            where = self._hide(headers.get("Location", "nowhere"))
            return NoVerdict(
                "redirect refused", f"HTTP {status} to {printable(where[:200])}; give the final address as --url", again=False
            )
        again = status in (408, 425, 429) or status >= 500
        return NoVerdict(f"HTTP {status}", self._hide(_message(body)), again, wait=_retry_after(headers))

    def _hide(self, text):
        return text.replace(self.key, "[credential]") if self.key else text


class _Watch:
    """Ends an exchange at its deadline by shutting its socket down: a read that waits returns at once."""

    def __init__(self, seconds):
        self.ended, self._socket = False, None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def hold(self, connection):
        self._socket = connection
        if self.ended:
            self._end()

    def _end(self):
        self.ended = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed in the meantime
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # the plain one, also under TLS

    def __enter__(self):
        self._timer.start()
        return self

    def __exit__(self, *_):
        self._timer.cancel()


def _opener(watch, loopback, context):
    """An opener that knows no redirects, no cookies and no errors, and for loopback no proxies: just one exchange."""

    def watched(kind):
        class Connection(kind):
            def connect(self):
                super().connect()
                watch.hold(self.sock)

        return Connection

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, request):
            return self.do_open(watched(http.client.HTTPConnection), request)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, request):
            return self.do_open(watched(http.client.HTTPSConnection), request, context=context)

    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler({} if loopback else None))
    opener.add_handler(Secure(context=context) if context else Plain())
    return opener


def _say(error):
    """An exception in one line, without Python's names where the system has its own words."""
    error = getattr(error, "reason", error)
    if isinstance(error, http.client.IncompleteRead):
        return f"the reply ended after {len(error.partial):,} bytes, before its end"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)[:200]


def _retry_after(headers):
    """Seconds that the server asks to be left alone; dates aren't read."""
    wait = headers.get("Retry-After", "")
    return min(float(wait), LONGEST_WAIT) if wait.isdecimal() and len(wait) < 10 else 0.0


def _message(body):
    """The server's own words in an error body, in either API's shape, or the beginning of what it sent."""
    text = " ".join(body[:4000].decode("utf-8", "replace").split())
    try:
        error = json.loads(body)["error"]
        text = error if isinstance(error, str) else str(error["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return printable(text[:300])


def _json(body):
    """The JSON object in a body of status 200."""
    try:
        value = parse_json(decode_utf8(body, "server"), "server")
    except RecordError as error:
        if body.lstrip().startswith((b"data:", b'{"model"')) and b"\n" in body.strip():
            raise NoVerdict("server streamed", "it sent a stream, although stream: false was asked for") from None
        raise NoVerdict("server sent no JSON", error.problems[0].removeprefix("server: ")[:200]) from None
    if not isinstance(value, dict):
        raise NoVerdict("server sent no JSON", "expected an object")
    return value


class Ollama:
    """Ollama's own API: it names the model's digest, and can be told not to cut the prompt."""

    name, formats = "ollama", ("schema",)

    def models(self, server):
        """{name: what the server says of it}; both `llama3` and `llama3:latest` are names of the latter."""
        found = {}
        for model in _rows(server.fetch("/api/tags")[0], "models"):
            name = str(model.get("model") or model.get("name"))
            found[name] = model
            found.setdefault(name.removesuffix(":latest"), model)
        return found

    def identify(self, server, name, model, options):
        """Version, digest and family. Raises RecordError where the model cannot hold the context that will be asked for."""
        shown, _ = server.fetch("/api/show", {"model": name})
        details = shown.get("details") if isinstance(shown.get("details"), dict) else {}
        lengths = shown.get("model_info") if isinstance(shown.get("model_info"), dict) else {}
        longest = next((n for key, n in lengths.items() if key.endswith(".context_length") and type(n) is int), None)
        if longest is not None and options.context > longest:
            raise RecordError(f"--context: {name} reads at most {longest:,} tokens, got {options.context:,}; a longer prompt "
                              "would be cut")
        version, _ = server.fetch("/api/version")
        return {"server": f"ollama {version.get('version', '')}".strip(), "digest": _text_or_none(model.get("digest")),
                "family": _text_or_none(details.get("family"))}

    def options(self, options, form):
        return {"temperature": options.temperature, "seed": options.seed, "num_ctx": options.context,
                "num_predict": options.max_tokens}

    def request(self, name, messages, schema, options, form):
        return "/api/chat", {"model": name, "messages": messages, "stream": False, "truncate": False, "format": schema,
                             "options": self.options(options, form)}

    def read(self, value):
        if "error" in value:
            raise NoVerdict("server error", _message(json.dumps(value).encode()))
        if value.get("done") is False:
            raise NoVerdict("server streamed", "it sent the first part of a stream, although stream: false was asked for")
        return Reply(_content(value.get("message")), value.get("done_reason"), _count(value, "prompt_eval_count"),
                     _count(value, "eval_count"))


class OpenAI:
    """The OpenAI-compatible API, as llama.cpp, llama-cpp-python, vLLM, LM Studio and others serve it."""

    name = "openai"
    # Tried in this order; the second is how llama.cpp and llama-cpp-python take a schema.
    formats = ("json_schema", "json_object with schema", "json_object", "plain")

    def models(self, server):
        return {str(model.get("id")): model for model in _rows(server.fetch("/v1/models")[0], "data")}

    def identify(self, server, name, model, options):
        _, headers = server.fetch("/v1/models")
        return {"server": printable(headers.get("Server", "")[:100]).strip(), "digest": None, "family": None}

    def options(self, options, form):
        return {"temperature": options.temperature, "seed": options.seed, "max_tokens": options.max_tokens,
                "response_format": form}

    def request(self, name, messages, schema, options, form):
        shape = {"json_schema": {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": schema}},
                 "json_object with schema": {"type": "json_object", "schema": schema},
                 "json_object": {"type": "json_object"}}.get(form)
        payload = {"model": name, "messages": messages, "stream": False, "temperature": options.temperature,
                   "seed": options.seed, "max_tokens": options.max_tokens}
        return "/v1/chat/completions", {**payload, "response_format": shape} if shape else payload

    def read(self, value):
        if "error" in value:
            raise NoVerdict("server error", _message(json.dumps(value).encode()))
        choices = value.get("choices")
        if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
            raise NoVerdict("server sent no reply", "expected exactly one choice")
        if "delta" in choices[0]:
            raise NoVerdict("server streamed", "it sent a part of a stream, although stream: false was asked for")
        usage = value.get("usage") if isinstance(value.get("usage"), dict) else {}
        return Reply(_content(choices[0].get("message")), choices[0].get("finish_reason"), _count(usage, "prompt_tokens"),
                     _count(usage, "completion_tokens"))


APIS = {"ollama": Ollama, "openai": OpenAI}


def _rows(value, key):
    rows = value.get(key)
    if not isinstance(rows, list):
        raise NoVerdict("server sent no list of models", f"expected a list {key}; is this the right --api?")
    return [row for row in rows if isinstance(row, dict)]


def _content(message):
    """The text of a reply's message."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(message, dict) and message.get("refusal"):
        raise NoVerdict("judge declined", str(message["refusal"])[:200], reply=True)
    if not isinstance(content, str):
        raise NoVerdict("server sent no reply", "expected a message with a text as its content")
    return content


def _count(value, key):
    count = value.get(key)
    return count if type(count) is int and count >= 0 else None


def _text_or_none(value):
    return value if isinstance(value, str) and value else None


class Judge:
    """A model on a server, ready to be asked. `identity` says who it is, as far as the server tells."""

    def __init__(self, server, api, model, options, schema, form, models, identity):
        self.server, self.api, self.model, self.options = server, api, model, options
        self.schema, self.form, self.models, self.identity = schema, form, models, identity

    def settings(self):
        """The options as they are sent, which a verdict's key depends on."""
        return self.api.options(self.options, self.form)

    def ask(self, messages, schema=None):
        """One reply to messages, known to rest on the whole prompt and to have come to its own end. Raises NoVerdict."""
        self._check_length(messages)
        path, payload = self.api.request(self.model, messages, schema or self.schema, self.options, self.form)
        value, _ = self.server.fetch(path, payload)
        reply = self.api.read(value)
        self._check_prompt(reply, messages)
        _check_end(reply, self.options)
        return reply

    def _check_length(self, messages):
        """Refuse what cannot fit before it is sent: a prompt has at least as many tokens as words."""
        words = _words(messages)
        if self.api.name == "ollama" and words + self.options.max_tokens > self.options.context:
            raise NoVerdict("prompt too long", f"at least {words:,} tokens and {self.options.max_tokens:,} for the reply, in a "
                                               f"context of {self.options.context:,}; raise --context", again=False)

    def _check_prompt(self, reply, messages):
        """Refuse a reply to a prompt of which the server read only a part.

        A server that does not know `truncate: false` cuts silently. What it says it read must leave room for the reply, and must
        not be fewer tokens than the prompt has words. Where it says nothing, the prompt's bytes must be few enough to fit
        in any case: no tokenizer makes more tokens than bytes.
        """
        read, words = reply.prompt_tokens, _words(messages)
        if read is not None and read < words:
            raise NoVerdict("prompt cut", f"the server read {read:,} tokens of a prompt of {words:,} words", again=False)
        if self.api.name != "ollama":
            return  # this API cannot be told a context; such servers refuse what does not fit
        room = self.options.context - self.options.max_tokens
        if read is None:
            size = sum(len(message["content"].encode("utf-8", "replace")) + 16 for message in messages)
            if size > room:
                raise NoVerdict("prompt not known to be whole", "the server does not say how much of it it read", again=False)
        elif read > room:
            raise NoVerdict("prompt cut", f"{read:,} tokens leave no room for the reply in a context of "
                                          f"{self.options.context:,}; raise --context", again=False)


def _words(messages):
    return sum(len(message["content"].split()) for message in messages)


def _check_end(reply, options):
    """Refuse a reply that did not come to its own end, also where it happens to be whole JSON."""
    spent = reply.completion_tokens
    if reply.finish in ("length", "max_tokens") or (reply.finish is None and spent is not None and spent >= options.max_tokens):
        raise NoVerdict("cut at the length limit", f"of {options.max_tokens:,} tokens; see --max-tokens", reply=True)
    if reply.finish not in (None, "stop", "eos"):
        raise NoVerdict("reply not finished", f"it ended with {str(reply.finish)[:40]!r}", reply=True)


def connect(server, api, model, options, schema, retries=2, form=None):
    """A Judge whose model is known to be on the server. Raises RecordError where that cannot be settled.

    The models are asked for first: some servers answer for any name with the one model they have.
    """
    api = APIS[api]()
    try:
        models = patiently(lambda: api.models(server), retries)
        if model not in models:
            known = ", ".join(sorted(models)) or "none"
            raise RecordError(f"--model: the server at {server.url} has no model {model!r}; it has: {known[:500]}")
        identity = patiently(lambda: api.identify(server, model, models[model], options), retries)
        identity = {"model": model, "api": api.name, **identity}
        judge = Judge(server, api, model, options, schema, form or api.formats[0], models, identity)
        if form is None and len(api.formats) > 1:
            judge.form = _probe(judge, retries)
    except NoVerdict as error:
        hint = _other_api(server, api.name) if error.reason not in LOST else ""
        raise RecordError(f"{server.url}: cannot be asked for a model as {api.name}: {error}{hint}") from None
    judge.identity["options"] = judge.settings()
    return judge


def _other_api(server, name):
    """A hint, where a server that does not speak one API has a list of models in the other."""
    for other, api in APIS.items():
        if other != name:
            with contextlib.suppress(NoVerdict, RecordError):
                api().models(server)
                return f"; but it has a list of models as {other}: add --api {other}"
    return ""


def _probe(judge, retries):
    """The strictest reply format that the server takes: it is asked for one token in each, in order."""
    options = judge.options._replace(max_tokens=1)
    for form in judge.api.formats:
        request = judge.api.request(judge.model, [{"role": "user", "content": "{}"}], judge.schema, options, form)
        try:
            patiently(partial(judge.server.fetch, *request), retries, stop=_is_about_format)
            return form
        except NoVerdict as error:
            if not _is_about_format(error):
                raise
    raise NoVerdict("server error", "it takes no chat request in any reply format")


def _is_about_format(error):
    """Whether a failure says that the reply format is unknown; llama-cpp-python does so with status 500."""
    words = ("response_format", "json_schema", "json_object", "schema", "grammar")
    return error.reason in ("HTTP 400", "HTTP 422", "HTTP 500", "HTTP 501") and any(w in error.detail for w in words)


def patiently(call, retries, stop=lambda error: False):
    """Call until it succeeds, at most 1 + retries times, with pauses. Raises the last NoVerdict."""
    for attempt in range(retries):
        try:
            return call()
        except NoVerdict as error:
            if not error.again or stop(error):
                raise
            rest(error, attempt)
    return call()


def rest(error, attempt):
    """Pause before the next try: twice as long each time, or as long as the server asks for."""
    time.sleep(max(error.wait, min(PAUSE * 2**attempt, LONGEST_WAIT)))
