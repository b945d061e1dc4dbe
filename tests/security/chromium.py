"""A headless browser that shows pages of a local site."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.crawl.crawling import Site

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
  await fetch("/done/" + hits.join(","));
};
</script>"""

_SETUP = "<script>function ran(id) { parent.ran(id); } alert = confirm = prompt = () => true;</script>"


def _hits(site: Site) -> list[str] | None:
    """Return which scripts ran when the browser says it, or None if it has not asked for anything for a long time."""
    seen, since = 0, time.monotonic()
    while time.monotonic() < since + PATIENCE:
        if len(site.seen) > seen:
            seen, since = len(site.seen), time.monotonic()
        if done := [path for path in site.seen if path.startswith("/done/")]:
            return [hit for hit in done[0].removeprefix("/done/").split(",") if hit]
        time.sleep(0.1)
    return None


class Visit:
    """What happened while a browser showed pages: which scripts ran and what it requested."""

    def __init__(self, ran: set[int], asked: list[str]) -> None:
        self.ran, self.asked = ran, asked


def show(framed: Sequence[str], inserted: Sequence[str], site: Site, folder: Path) -> Visit:
    """Show some pages in frames and put others into a page, in a browser that clicks on everything in them."""
    assert CHROMIUM is not None
    pages = {"/": _HARNESS.replace("FRAMES", str(len(framed))), "/inserted": json.dumps([*inserted])}
    pages |= {f"/page/{number}": _SETUP + html for number, html in enumerate(framed)}
    for path, html in pages.items():
        site.routes[path] = ("text/html; charset=utf-8", html.encode("utf-8", "replace"))
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-popup-blocking", f"--user-data-dir={folder / 'profile'}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0", site.url("/")]
    environment = os.environ | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    with (folder / "chromium.log").open("wb") as log:
        browser = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            hits = _hits(site)
        finally:
            os.killpg(browser.pid, 9)
            browser.wait()
    if hits is None:
        raise TimeoutError((folder / "chromium.log").read_text(errors="replace")[-2_000:] + str(site.seen[-5:]))
    return Visit(set(map(int, hits)), list(site.seen))
