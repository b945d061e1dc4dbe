"""The bundled model preserves the content of articles, from HTML to text and Markdown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.extractor import Extractor

pytest.importorskip("markdown_it", reason="the checks need the extra [evaluate]")

from tests.structured.articles import PARAGRAPHS, articles, within
from tests.structured.features.checks import BASE_URL, FEATURES, Feature

WORDS = " ".join(PARAGRAPHS).replace(".", "").replace(",", "").split()


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    one = Extractor(Config(fallback="none"))
    yield one
    one.close()


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_each_structure_survives_in_an_article(extractor: Extractor, feature: Feature) -> None:
    pages = extractor.extract([Document(html, BASE_URL) for html in articles(feature.html)])
    found = [within(page.markdown or "") for page in pages]

    assert [feature.verdict(markdown) if markdown else "lost" for markdown in found] == ["yes"] * len(found)


TEXT = "<p>Wet wool is combed by two people, who walk away from each other."
TIME = "<div><span>Total Time</span> <span>50 mins</span></div>"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<audio controls src=/media/loom.mp3></audio>", "[loom.mp3](https://example.org/media/loom.mp3)"),
        (f"<x-text><template shadowrootmode=open><style>p{{}}</style>{TEXT}</template></x-text>", "\n\nWet wool"),
        (f'<script type=\'application/ld+json\'>{{"@type": "Recipe"}}</script>{TIME}', "Total Time 50 mins"),
    ],
)
def test_what_others_lose_survives_in_an_article(extractor: Extractor, html: str, markdown: str) -> None:
    pages = extractor.extract([Document(one, BASE_URL) for one in articles(html)])

    assert [page.url for page in pages if markdown not in (page.markdown or "")] == []


# ---------------------------------------------------------------------- generated structures
Made = tuple[str, list[str]]
"""A structure, and the texts that must come out, in order."""


def _run(rng: random.Random, least: int = 2, most: int = 9) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def _code(rng: random.Random) -> Made:
    lines = [f"{rng.choice(WORDS)}_{i} = {rng.choice(WORDS)}({i})" for i in range(rng.randint(1, 8))]
    form = rng.choice(
        (
            "<pre><code class='language-python'>{}</code></pre>",
            "<div class='highlight'><pre>{}</pre></div>",
            "<pre>{}</pre>",
        )
    )
    return form.format("\n".join(lines)), lines


def _list(rng: random.Random) -> Made:
    texts = [_run(rng) for _ in range(rng.randint(2, 6))]
    tag = rng.choice(("ul", "ol"))
    inner = [_run(rng), _run(rng)]
    nested = "<ul>" + "".join(f"<li>{text}</li>" for text in inner) + "</ul>" if rng.random() < 0.5 else ""
    items = "".join(f"<li>{text}</li>" for text in texts[:-1])
    return f"<{tag}>{items}<li>{texts[-1]}{nested}</li></{tag}>", texts + (inner if nested else [])


def _table(rng: random.Random) -> Made:
    rows = [[_run(rng, 1, 4) for _ in range(3)] for _ in range(rng.randint(2, 6))]
    head = "<tr>" + "".join(f"<th>{cell}</th>" for cell in rows[0]) + "</tr>"
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f"<table><thead>{head}</thead><tbody>{cells}</tbody></table>", [cell for row in rows for cell in row]


def _definitions(rng: random.Random) -> Made:
    pairs = [(_run(rng, 1, 3), _run(rng)) for _ in range(rng.randint(2, 4))]
    inside = "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in pairs)
    return f"<dl>{inside}</dl>", [text for pair in pairs for text in pair]


def _callout(rng: random.Random) -> Made:
    kind, texts = rng.choice(("note", "warning", "tip")), [_run(rng, 6, 14) for _ in range(rng.randint(1, 3))]
    inside = "".join(f"<p>{text}.</p>" for text in texts)
    return f"<div class='admonition {kind}'><p class='admonition-title'>{kind.title()}</p>{inside}</div>", texts


def _quotation(rng: random.Random) -> Made:
    texts = [_run(rng, 6, 14) for _ in range(rng.randint(1, 3))]
    return "<blockquote>" + "".join(f"<p>{text}.</p>" for text in texts) + "</blockquote>", texts


def _figure(rng: random.Random) -> Made:
    caption = _run(rng, 4, 10)
    return f"<figure><img src='/p.jpg' alt='A loom' width=600><figcaption>{caption}.</figcaption></figure>", [caption]


def _section(rng: random.Random) -> Made:
    heading, text = _run(rng, 2, 5), _run(rng, 8, 30)
    return f"<h2>{heading}</h2><p>{text}.</p>", [heading, text]


KINDS: tuple[Callable[[random.Random], Made], ...] = (
    *(_code, _list, _table, _definitions, _callout, _quotation, _figure, _section),
)


def lost(text: str, wanted: list[str]) -> list[str]:
    """Return the texts that are missing from a text, or out of order."""
    at, missing = 0, []
    flat = " ".join(text.split())
    for one in wanted:
        found = flat.find(one, at)
        if found < 0:
            missing.append(one)
        else:
            at = found + len(one)
    return missing


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 5), st.permutations(PARAGRAPHS))
def test_property_nothing_is_lost_of_an_article_that_is_all_content(
    extractor: Extractor, seed: int, structures: int, paragraphs: list[str]
) -> None:
    rng = random.Random(seed)
    parts: list[Made] = [("<h1>How a cloth is made</h1>", ["How a cloth is made"])]
    for n in range(structures):
        parts += [(f"<p>{paragraphs[n]}</p>", [paragraphs[n]]), rng.choice(KINDS)(rng)]
    parts.append((f"<p>{paragraphs[-1]}</p>", [paragraphs[-1]]))
    html = f"<title>How a cloth is made</title><article>{''.join(html for html, _ in parts)}</article>"

    (page,) = extractor.extract([html])

    assert lost(page.text or "", [text for _, texts in parts for text in texts]) == []
