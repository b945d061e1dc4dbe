"""An OpenAI-compatible endpoint on this machine that answers as a test wants it to."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import lxml.html


@dataclass(frozen=True)
class Reply:
    """One HTTP answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    close: bool = False
    drip: float = 0.0
    """Seconds between two bytes of the body."""


@dataclass(frozen=True)
class Request:
    """One HTTP request as it came."""

    path: str
    headers: dict[str, str]
    payload: dict[str, Any]

    @property
    def question(self) -> str:
        """The user's message."""
        return str(self.payload["messages"][-1]["content"])

    @property
    def head(self) -> dict[str, Any]:
        """What the question says about the page."""
        found: dict[str, Any] = json.loads(self.question.split("\n", 1)[0])
        return found

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The blocks that the question lists: number, tag and text."""
        lines = [line for line in self.question.split("\n")[1:] if "_item_id=" in line]
        found = map(lxml.html.fromstring, lines)
        return [{"id": int(one.get("_item_id")), "tag": one.tag, "text": one.text_content()} for one in found]


def chat(content: Any, finish: str = "stop") -> Reply:
    """Return a chat completion with this content."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    return Reply(body=json.dumps({"object": "chat.completion", "choices": [choice]}).encode())


def labels(request: Request) -> dict[str, str]:
    """Return what a good reader says: headings and paragraphs are main, except those of the margin."""
    margin = re.compile("Read more|Copyright").match
    return {
        str(b["id"]): "main" if b["tag"] in ("p", "h1") and not margin(b["text"]) else "other" for b in request.blocks
    }


def good(request: Request) -> Reply:
    """Answer as asked."""
    return chat(json.dumps(labels(request)))


Answerer = Callable[[Request], Reply]


class FakeEndpoint:
    """A server whose answers are taken from ``script``, the last for ever."""

    def __init__(self) -> None:
        self.script: list[Answerer | Reply] = [good]
        self.requests: list[Request] = []
        self.release = threading.Event()
        self.lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                reply = fake.answer(Request(self.path, dict(self.headers), json.loads(data)))
                if reply.hang:
                    fake.release.wait(20)
                if reply.hang or reply.close:
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                if not reply.drip:
                    self.wfile.write(reply.body)
                with contextlib.suppress(OSError):  # the client has gone
                    for byte in reply.body if reply.drip else b"":
                        self.wfile.write(bytes((byte,)))
                        if fake.release.wait(reply.drip):
                            return

            def log_message(self, *arguments: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def answer(self, request: Request) -> Reply:
        """Note a request and return what the script has for it."""
        with self.lock:
            self.requests.append(request)
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return step if isinstance(step, Reply) else step(request)

    def close(self) -> None:
        """Let hanging requests go and stop."""
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
