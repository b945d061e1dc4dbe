"""A client for OpenAI-compatible endpoints, with retries and concurrent requests."""

from __future__ import annotations

import json
import os
import queue
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from html import unescape
from http.client import HTTPException
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.egress import Connect, handlers, within
from scrapy_dripper.inspection.answers import AnswerError

MAX_BYTES = 32_000_000
ATTEMPTS = 5
CHARS_OF_TOKEN = 4
"""Assumed number of characters per token, if the endpoint does not report tokens."""
_RETRIED = frozenset({408, 409, 425, 429})
_REFUSED = frozenset({401, 403, 404})
_MAX_WAIT = 60.0
_EXCERPT_CHARS = 200
KEY_PART = 8
"""Number of letters and digits of a key, one after the other, that no message may repeat."""
_escaped = re.compile(r"\\[uUx]\{?0{0,6}([0-9a-fA-F]{2})\}?")
_others = re.compile(r"[\W_]+")
T = TypeVar("T")
R = TypeVar("R")


class ModelAnswer(NamedTuple):
    """The answer of a model, and the number of tokens."""

    text: str
    tokens: tuple[int, int]
    """Number of tokens in the request and the answer. If the endpoint does not report them, four characters count as a
    token.
    """


class EndpointError(Exception):
    """The endpoint gave no answer. ``refused`` is True if it would refuse other requests as well."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class _RetryError(Exception):
    """A request may succeed later. ``wait`` is the delay in seconds that the endpoint asks for, or 0."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, which would send the key to another host."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


class Endpoint:
    """A model behind ``POST {url}/chat/completions``. Thread-safe.

    The constructor raises ValueError for an invalid URL or key, with a message that says what was expected. The key is
    only sent to this endpoint and is never part of a message.
    """

    def __init__(self, url: str, model: str, key: str | None = None, timeout: float = 300.0) -> None:
        try:
            parts = urlsplit(url)
            usable = parts.port != 0 and parts.scheme in ("http", "https") and url.isprintable() and " " not in url
        except ValueError:
            usable = False
        if not (usable and parts.hostname) or "@" in parts.netloc:
            raise ValueError("a URL such as http://localhost:8000/v1, without a user or a password in it")
        if key is not None and not (key and key.isascii() and key.isprintable()):
            raise ValueError("a key of printable ASCII characters")
        path = parts.path.rstrip("/")
        path += "" if path.endswith("/chat/completions") else "/chat/completions"
        self.url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
        self.host = parts.netloc
        self.model, self.timeout = model, timeout
        self._key = key

    def ask(self, messages: Sequence[dict[str, str]]) -> ModelAnswer:
        """Return the model's answer. Raise :exc:`EndpointError` if there is none, and :exc:`AnswerError` if it was cut
        off."""
        body = json.dumps({"model": self.model, "messages": messages, "temperature": 0}).encode()
        asked = sum(len(one["content"]) for one in messages)
        attempt = 1
        while True:
            try:
                return self._content(self._post(body), asked)
            except _RetryError as error:  # noqa: PERF203
                if attempt == ATTEMPTS:
                    raise EndpointError(f"{error}, {ATTEMPTS} times") from None
                wait = 2 ** (attempt - 1) * random.uniform(1, 1.5)
                time.sleep(min(_MAX_WAIT, max(wait, error.wait)))
                attempt += 1

    def _post(self, body: bytes) -> bytes:
        refused: list[urllib.error.HTTPError] = []
        try:
            return within(self.timeout, lambda connect: self._exchange(body, connect, refused))
        except TimeoutError:
            if refused:
                raise self._refusal(refused[0]) from None
            raise _RetryError(f"{self.host} did not answer within {self.timeout:g} seconds") from None
        except urllib.error.URLError as error:
            raise _RetryError(f"cannot reach {self.host}: {self._excerpt(str(error.reason))}") from None
        except (OSError, HTTPException) as error:
            raise _RetryError(f"{self.host} broke off: {type(error).__name__}") from None

    def _exchange(self, body: bytes, connect: Connect, refused: list[urllib.error.HTTPError]) -> bytes:
        """Return the answer. An HTTP status that says no is added to ``refused`` before its text is read."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "scrapy-dripper"}
        request = urllib.request.Request(self.url, body, headers)
        if self._key is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self._key}")
        try:
            with urllib.request.build_opener(_NoRedirect, *handlers(connect)).open(request) as response:
                answer = bytearray()
                while part := response.read1(65_536):
                    answer += part
                    if len(answer) > MAX_BYTES:
                        raise EndpointError(f"{self.host} sent more than {MAX_BYTES:,} bytes")
                return bytes(answer)
        except urllib.error.HTTPError as error:
            refused.append(error)
            with error, suppress(OSError, HTTPException):
                raise self._refusal(error, error.read(10_000).decode("utf-8", "replace")) from None
            raise self._refusal(error) from None

    def _refusal(self, error: urllib.error.HTTPError, text: str = "") -> Exception:
        """Return the error for an HTTP status and the text that came with it."""
        said = f"{self.host} answered HTTP {error.code}"
        if 300 <= error.code < 400:
            where = self._excerpt(error.headers.get("Location") or "nowhere")
            return EndpointError(f"{said}, a redirect to {where}: give the URL itself as --endpoint", refused=True)
        text = self._excerpt(_message(text))
        said = f"{said}: {text}" if text else said
        if error.code in _RETRIED or error.code >= 500:
            return _RetryError(said, _seconds(error.headers.get("Retry-After")))
        return EndpointError(said, refused=error.code in _REFUSED)

    def _content(self, data: bytes, asked: int) -> ModelAnswer:
        """Return the answer in a response. ``asked`` is the length of the messages, in characters."""
        try:
            response = json.loads(data)
            choice = response["choices"][0]
            content = choice["message"]["content"]
            cut_off = choice.get("finish_reason") == "length"
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            content, cut_off = None, False
            choice = None
        if choice is None or not isinstance(content, str | None):
            text = self._excerpt(data[:10_000].decode("utf-8", "replace"))
            raise EndpointError(f"{self.host}: expected a chat completion, choices[0].message.content (got {text!r})")
        if cut_off:
            raise AnswerError("the answer was cut off at the token limit of the endpoint")
        usage = response.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        tokens = _tokens(usage.get("prompt_tokens"), asked), _tokens(usage.get("completion_tokens"), len(content or ""))
        return ModelAnswer(content or "", tokens)

    def _excerpt(self, text: str) -> str:
        return self.clean(text)[:_EXCERPT_CHARS]

    def clean(self, text: str) -> str:
        """Return a message on one line without the key, or a note if the message repeats the key escaped or in pieces.

        Messages about an answer need this as well, because they quote it.
        """
        if self._key:
            text = text.replace(self._key, "***")
            if _repeats(text, self._key):
                return "(a message that repeats the key)"
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _repeats(text: str, key: str) -> bool:
    """Return True if a text has a part of a key, whatever stands between its letters and digits, also if they are
    escaped as in JSON, a URL or HTML."""
    plain = _escaped.sub(lambda found: chr(int(found[1], 16)), unescape(unquote(text)))
    secret, said = _others.sub("", key), f"{_others.sub('', text)} {_others.sub('', plain)}"
    part = min(KEY_PART, len(secret))
    return part > 0 and any(secret[i : i + part] in said for i in range(len(secret) - part + 1))


def _message(text: str) -> str:
    """Return the message of an error in OpenAI's format, or the text itself."""
    try:
        error: Any = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError, RecursionError):
        return text


def _tokens(reported: Any, characters: int) -> int:
    known = isinstance(reported, int) and 0 <= reported < MAX_BYTES
    return int(reported) if known else -(-characters // CHARS_OF_TOKEN)


def _seconds(header: str | None) -> float:
    try:
        return max(0.0, float(header or 0))
    except ValueError:  # a date
        return 0.0


def in_threads(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[tuple[T, R | Exception]]:
    """Yield each item with its result or exception, in order of completion. Items are consumed lazily.

    The threads are daemons, so a caller that stops early does not wait for requests that hang.
    """
    todo: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[T, R | Exception]] = queue.SimpleQueue()

    def work() -> None:
        while (task := todo.get()) is not None:
            try:
                done.put((task[0], function(task[0])))
            except Exception as error:  # noqa: PERF203
                done.put((task[0], error))

    for _ in range(threads):
        threading.Thread(target=work, daemon=True, name="annotate").start()
    running = 0
    try:
        for item in items:
            todo.put((item,))
            running += 1
            if running == threads:
                yield done.get()
                running -= 1
        for _ in range(running):
            yield done.get()
    finally:
        for _ in range(threads):
            todo.put(None)


def key_in(variable: str | None) -> str | None:
    """Return the key in an environment variable. Messages do not repeat the name, because somebody may have passed the
    key itself.
    """
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError("--api-key-env expects the name of an environment variable that holds the key (it is not set)")
    return key
