"""A Chromium to inspect files with, through Playwright: it opens a file and records everything that goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "example_project"))

from example.browser import find_chromium

WHY_NOT = (
    "needs Playwright: pip install playwright"
    if find_spec("playwright") is None
    else "needs a Chromium (Debian, Ubuntu: apt-get install chromium; elsewhere: playwright install chromium)"
    if find_chromium() is None
    else ""
)
"""Why files cannot be looked at; empty if they can."""
AXE = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser and stop it at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A tab that shows a file."""

    def __init__(self, page: Any, path: Path, ready: str) -> None:
        self.page, self.wrong = page, list[str]()
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        page.on("popup", lambda popup: self.wrong.append(f"window: {popup.url}"))
        page.on("request", lambda request: self._asked(request.url, path))
        page.goto(path.as_uri())
        page.wait_for_selector(ready, state="attached")

    def _asked(self, url: str, path: Path) -> None:
        if url != path.as_uri() and not url.startswith(("data:", "blob:", "about:")):
            self.wrong.append(f"request: {url}")

    @property
    def inside(self) -> Any:
        """The page in its frame."""
        return self.page.frame_locator("#frame")

    def block(self, number: int) -> Any:
        """Return the first piece of a block on the page."""
        return self.inside.locator(f'[data-dripper-block="{number}"]').first

    def labels(self) -> list[int]:
        """Return the numbers of the blocks that are main."""
        found = self.page.eval_on_selector_all("ol.blocks input", "boxes => boxes.map(box => box.checked)")
        return [number for number, checked in enumerate(found, 1) if checked]

    def violations(self) -> list[str]:
        """Return axe-core's violations that are serious or worse, each with its first place."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {iframes: false})")["violations"]
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in ("serious", "critical")
        ]
