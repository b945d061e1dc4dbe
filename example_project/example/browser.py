"""Find the Chromium that renders pages, or say how to install it."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Return the path of a Chromium: ``$CHROMIUM``, one on the PATH, or playwright's own; None if there is none."""
    if chosen := os.environ.get("CHROMIUM"):
        return shutil.which(chosen)
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return _downloaded()


def _downloaded() -> str | None:
    """Return the browser of ``playwright install chromium``, or None if that was never run."""
    places = (
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH"),
        "~/.cache/ms-playwright",
        "~/Library/Caches/ms-playwright",
        "~/AppData/Local/ms-playwright",
    )
    for place in filter(None, places):
        for program in ("chrome", "Chromium", "Google Chrome for Testing", "chrome.exe"):
            found = sorted(filter(Path.is_file, Path(place).expanduser().glob(f"chromium-*/**/{program}")))
            if found:
                return str(found[-1])
    return None


def advice() -> str | None:
    """Return what to install before pages can be rendered, or None if nothing is missing."""
    steps = []
    if find_spec("scrapy_playwright") is None:
        steps.append("scrapy-playwright (pip install 'scrapy-dripper[playwright]')")
    if find_chromium() is None:
        chosen = os.environ.get("CHROMIUM")
        steps.append(
            f"the program that $CHROMIUM names, {chosen!r}, which is not there"
            if chosen
            else "a Chromium (Debian, Ubuntu: apt-get install chromium; elsewhere: playwright install chromium)"
        )
    return f"Rendering JavaScript needs {' and '.join(steps)}." if steps else None
