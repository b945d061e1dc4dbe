"""The fuzzer detects each kind of violation. Documents that once broke a promise keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fuzz import checks, trial
from fuzz.cases import Case, config
from fuzz.checks import BrokenError, check, run
from scrapy_dripper.data import Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_json import from_json, sanitized, to_mineru
from tests.steps import lines_of
from tests.trees import KINDS

PAGE = Case("<p>one two</p><p>three <b>four</b></p><p>five</p>", seed=0)


def _planted(found: Extraction, name: str, value: str) -> Extraction:
    """Set a field without the constructor, which removes what an extraction may not contain."""
    changed = replace(found)
    object.__setattr__(changed, name, value)
    return changed


BROKEN: dict[str, tuple[str, Callable[[Extraction], Extraction]]] = {
    "a lost word": ("parses again", lambda e: replace(e, main_html=(e.main_html or "").replace("four", ""))),
    "another order": ("parses again", lambda e: replace(e, main_html="<p>three four<p>one two<p>five")),
    "an invented word": ("parses again", lambda e: replace(e, main_html=f"{e.main_html}<p>six")),
    "a script": ("safety", lambda e: replace(e, main_html=f"{e.main_html}<ScRiPt>x</script>")),
    "a handler": ("safety", lambda e: replace(e, main_html=f"{e.main_html}<img src=x onerror=y>")),
    "a URL that runs": ("safety", lambda e: replace(e, main_html=f"{e.main_html}<a href='jav&#9;ascript:x'>y</a>")),
    "a script in Markdown": ("safety", lambda e: replace(e, markdown="a <script>x</script>")),
    "a link in Markdown": ("safety", lambda e: replace(e, markdown="[a](javascript:x)")),
    "NUL": ("strings", lambda e: _planted(e, "text", "a\0")),
    "a command of a terminal": ("strings", lambda e: _planted(e, "title", "a\x9b2J")),
    "half a character": ("strings", lambda e: _planted(e, "markdown", "a\ud800")),
    "a control in content": ("strings", lambda e: replace(e, content=[{"type": "code", "text": "a\x1b"}])),
    "bytes": ("strings", lambda e: replace(e, title=b"t")),  # type: ignore[arg-type]
    "a label too few": ("labels", lambda e: replace(e, labels=e.labels[1:])),
    "a probability too few": ("labels", lambda e: replace(e, probabilities=e.probabilities[1:])),
    "blocks miscounted": ("labels", lambda e: e.with_details(blocks=e.details["blocks"] + 1)),
    "no text": ("fields", lambda e: replace(e, text=None)),
    "content of no known type": ("content", lambda e: replace(e, content=[{"type": "chart"}])),
    "content that is no JSON": ("content", lambda e: replace(e, content=[{"type": b"x"}])),
    "a reason that is a defect": ("reason", lambda e: replace(e, fallback_reason=FallbackReason.OUTPUT_ERROR)),
}


def test_broken_promises_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check(PAGE, checks.run(PAGE))
    whole = Extractor.extract
    for name, (kind, change) in BROKEN.items():
        monkeypatch.setattr(
            Extractor, "extract", lambda self, documents, change=change: [change(e) for e in whole(self, documents)]
        )
        with pytest.raises(BrokenError) as caught:
            checks.check(PAGE, checks.run(PAGE))
        assert caught.value.kind == kind, name


RICH = config(
    markdown={"tables": "linear"}, metadata_field="about", chunks_field="chunks", links_field="links", fallback="empty"
)
"""Asks for all forms that are not asked for by default."""


@pytest.mark.parametrize("kind", KINDS)
def test_trees_take_few_steps(kind: str) -> None:
    """`trial.STEPS` for each character. In 14 minutes of fuzzing with `--nested`, the most was 104."""
    for depth, nodes in ((3, 100), (40, 10), (250, 0)):
        tree = replace(PAGE, html=KINDS[kind](Random(f"{kind} {depth}"), depth, nodes))
        for form in (PAGE.config, RICH):
            trial.attempt(replace(tree, config=form))
        content = run(tree).content or []
        steps = lines_of(lambda content=content: to_mineru(from_json(sanitized(content))))
        assert steps <= trial.STEPS * max(len(tree.html), trial.LEAST)


def ld(value: str) -> str:
    return f'<script type="application/ld+json">{value}</script><div id=app></div>'


@pytest.mark.parametrize(
    "html",
    [
        "<my-tag>" * 240 + "x",
        "<fieldset>" + "<h1>" * 52 + "<i>" * 300,
        "<h1>" + "<button>" * 120 + "Text",
        *(
            f"<p>{before * 40}{after}"
            for before, after in (
                ("<math><mstyle>", "x"),
                ("<math><mstyle mathvariant=bold>", "x"),
                ("<math><mfenced><mstyle>", "x"),
                ("<mjx-container><mjx-math><mjx-mstyle>", "x"),
                ("<math><mtable><mtr><mtd>", "x"),
                ("<math><msup><mi>x</mi>", "y"),
                ("<math><mover>", "<mo>^</mo>"),
            )
        ),
        "<table><tr><td rowspan=2><b><i>a</i></b><b><i>b</i></b><td>c<tr><td><ul><li><b>x <i>y</i></b><ul><li>" * 20,
        *(
            ld(start * depth + middle + end * depth)
            for start, middle, end in (
                ('{"@type": "Article", "about": ', "1", "}"),
                ("[", "", "]"),
                ('{"@graph": [', "", "]}"),
            )
            for depth in (50, 900, 5_000)
        ),
    ],
    ids=lambda html: html[:40],
)
def test_elements_in_each_other_take_few_steps(html: str) -> None:
    """These took over 50 for each character, because the text around each element, or in it, was read again. 40 nested
    ``<mstyle>``, 1.4 kB, once took more than 100 seconds. JSON may be nested as deeply as its parser allows, and more.
    """
    one = replace(PAGE, html=html, config=RICH)
    check(one, run(one))
    assert trial.traced(one)[0] <= trial.STEPS * max(len(html), trial.LEAST)


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
