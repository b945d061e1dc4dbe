"""A headless browser and a local server for its requests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
PATIENCE = 120  # seconds without a request

_HARNESS = """<!doctype html><title>harness</title><body><script>
const hits = [];
window.ran = id => { hits.push(Number(id)); };
window.alert = window.confirm = window.prompt = () => true;
const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));

function stay(scope) {  // scripts may run, but nobody leaves
  const runs = address => /^javascript:/i.test(address ?? "");
  scope.addEventListener("click", event => {
    const link = event.target.closest?.("a[href],area[href]");
    if (link && !runs(link.protocol)) event.preventDefault();
  }, true);
  scope.addEventListener("submit", event => {
    if (!runs(event.submitter?.formAction) && !runs(event.target.action)) event.preventDefault();
  }, true);
}

function poke(root) {
  for (const element of root.querySelectorAll("*")) {
    for (const kind of ["mouseover", "mouseenter", "focus", "toggle", "animationstart"])
      try { element.dispatchEvent(new Event(kind)); } catch {}
    try { element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })); } catch {}
  }
}

async function frame(url) {
  const one = document.createElement("iframe");
  const loaded = new Promise(done => { one.onload = done; });
  one.src = url;
  document.body.append(one);
  await Promise.race([loaded, wait(3000)]);
  await wait(40);
  try { stay(one.contentDocument); poke(one.contentDocument); } catch {}
  await wait(20);
  one.remove();
}

async function insert(htmls) {
  const one = document.createElement("iframe");
  document.body.append(one);
  const inner = one.contentDocument;
  one.contentWindow.ran = ran;
  stay(inner);
  for (const html of htmls) {
    const place = inner.body.appendChild(inner.createElement("div"));
    place.innerHTML = html;
    place.innerHTML = place.innerHTML;  // what a browser writes, it can read otherwise
  }
  await wait(500);
  poke(inner);
}

onload = async () => {
  const waiting = Array.from({ length: FRAMES }, (_, i) => i);
  const one = async () => {
    for (let i; (i = waiting.pop()) !== undefined;) await frame("/page/" + i);
  };
  await Promise.all([insert(await (await fetch("/inserted")).json()), ...Array.from({ length: 4 }, one)]);
  await wait(200);
  await fetch("/done", { method: "POST", body: JSON.stringify(hits) });
};
</script>"""

_SETUP = "<script>function ran(id) { parent.ran(id); } alert = confirm = prompt = () => true;</script>"


def _wait(done: threading.Event, asked: list[str]) -> bool:
    """Return True when the browser is done, or False if it has not requested anything for a long time."""
    seen = -1
    while not done.wait(PATIENCE):
        if len(asked) == seen:
            return False
        seen = len(asked)
    return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing. A frame that is removed closes its connection."""


class Visit:
    """What happened while a browser showed pages: which scripts ran and what it requested."""

    def __init__(self, ran: set[int], asked: list[str]) -> None:
        self.ran, self.asked = ran, asked


def show(framed: Sequence[str], inserted: Sequence[str], folder: Path) -> Visit:
    """Show some pages in frames and put others into a page, in a browser that clicks on everything in them."""
    assert CHROMIUM is not None
    asked: list[str] = []
    done = threading.Event()
    hits: set[int] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            kind, _, name = self.path.lstrip("/").partition("/")
            if not kind:
                self._answer(_HARNESS.replace("FRAMES", str(len(framed))))
            elif kind == "page" and name.isdigit():
                self._answer(_SETUP + framed[int(name)])
            elif kind == "inserted":
                self._answer(json.dumps([*inserted]))
            else:
                self.send_error(404)

        def do_POST(self) -> None:
            asked.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer("")
            if self.path == "/done":
                hits.update(json.loads(body))
                done.set()

        def _answer(self, text: str) -> None:
            data = text.encode("utf-8", "replace")
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-popup-blocking", f"--user-data-dir={folder / 'profile'}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0", address]
    environment = os.environ | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    with (folder / "chromium.log").open("wb") as log:
        browser = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            finished = _wait(done, asked)
        finally:
            os.killpg(browser.pid, 9)
            browser.wait()
            server.shutdown()
            server.server_close()
    if not finished:
        raise TimeoutError((folder / "chromium.log").read_text(errors="replace")[-2_000:] + str(asked[-5:]))
    return Visit(hits, asked)
