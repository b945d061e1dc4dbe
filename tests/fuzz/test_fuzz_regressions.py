"""Documents that once broke a promise, each minimal, under every kind of configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.cases import Case, config
from fuzz.checks import BrokenError, check, run

PAGES = sorted(Path(__file__).with_name("regressions").glob("*.html"))

CASES = {
    **{f"{engine}-{seed}": Case("", engine=engine, seed=seed) for engine in ("random", "v1.0") for seed in (0, 1, 3)},
    "tagger": Case("", engine="tagger"),
    "citations": Case("", config=config(markdown={"links": "citations", "tables": "linear"}), seed=16),
    "no-images": Case("", config=config(markdown={"types": ("title", "paragraph", "code", "table", "list", "quote")})),
    "trafilatura": Case("", engine="failing", config=config(fallback="trafilatura")),
    "metadata": Case("", config=config(metadata_field="about")),
    "one-block": Case("", config=config(limits={"blocks": 1}, oversize="truncate")),
    "oversize": Case("", config=config(limits={"bytes": 30}, fallback="html")),
    "no-url": Case("", url=""),
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_regression(path: Path) -> None:
    data = path.read_bytes()
    broken = []
    for name, case in CASES.items():
        for html in (data, data.decode("utf-8", "surrogateescape")) if name == "random-0" else (data,):
            one = replace(case, html=html)
            try:
                check(one, run(one))
            except BrokenError as error:
                broken.append(f"{name}: {error.args[0]}: {error.args[1]}")
    assert not broken
