"""Reads pages in every way without access to sockets. Prints the results and who asked for a socket."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WATCHED = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "urllib.", "ftplib.", "webbrowser.")


def main(folder: Path) -> None:
    """Read the pages of ``html/`` below a folder."""
    # On import, Trafilatura's dependencies check for IPv6.
    import scrapy_dripper.fallback.trafilatura_output  # noqa: F401
    from scrapy_dripper.cli import main as command
    from scrapy_dripper.config import Config
    from scrapy_dripper.data import Document
    from scrapy_dripper.extractor import Extractor
    from scrapy_dripper.testing import FakeEngine
    from tests.security.checks import Silent

    asked: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(WATCHED):
            asked.append(f"{event} {arguments!r}"[:300])
            raise PermissionError(event)

    sys.addaudithook(hook)
    base = json.loads((folder / "base.json").read_text())
    documents = [Document(path.read_bytes(), f"{base}/pages/{path.name}") for path in sorted(folder.glob("html/*"))]
    everything = {"metadata_field": "m", "content_field": "c", "processes": 0}
    written: list[str] = []
    for engine, more in (
        (None, {}),
        (FakeEngine(), {}),
        (FakeEngine(), {"markdown": {"links": "citations", "tables": "linear"}}),
        (Silent(), {"fallback": "trafilatura"}),
        (Silent(), {"fallback": "html"}),
    ):
        extractor = Extractor(Config(**everything, **more), engine=engine)  # type: ignore[arg-type]
        texts = [Document(d.html.decode("utf-8", "replace"), d.url) for d in documents]  # type: ignore[union-attr]
        found = [*extractor.extract(documents), *extractor.extract(texts)]
        written += [repr((one.text, one.markdown, one.main_html, one.title)) for one in found]
    code = 0
    if find_spec("scrapy_dripper_lab"):
        figures = folder / "figures.json"
        arguments = ["evaluate", str(folder), "--json", str(figures), "--jobs", "1"]
        code = command([*arguments, "--predictions", str(folder / "predictions.jsonl")])
        written.append(figures.read_text(encoding="utf-8"))
    print("\n" + json.dumps({"asked": asked, "written": written, "code": code}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
