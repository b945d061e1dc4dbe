"""The bundled model preserves the content of articles, from HTML to text and Markdown."""

from __future__ import annotations

import random
from collections.abc import Iterator

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
STRUCTURES = (
    "<pre><code class='language-python'>{}\n{}\n{}</code></pre>",
    "<div class='highlight'><pre>{}\n{}\n{}\n{}\n{}\n{}</pre></div>",
    "<pre>{}</pre>",
    "<ul><li>{}</li><li>{}</li></ul>",
    "<ol><li>{}</li><li>{}</li><li>{}</li><li>{}<ul><li>{}</li><li>{}</li></ul></li></ol>",
    "<table><thead><tr><th>{}</th><th>{}</th><th>{}</th></tr></thead><tbody>"
    + 3 * "<tr><td>{}</td><td>{}</td><td>{}</td></tr>"
    + "</tbody></table>",
    "<dl><dt>{}</dt><dd>{}</dd><dt>{}</dt><dd>{}</dd><dt>{}</dt><dd>{}</dd></dl>",
    "<div class='admonition note'><p class='admonition-title'>Note</p><p>{}.</p></div>",
    "<div class='admonition warning'><p class='admonition-title'>Warning</p><p>{}.</p><p>{}.</p><p>{}.</p></div>",
    "<blockquote><p>{}.</p></blockquote>",
    "<blockquote><p>{}.</p><p>{}.</p><p>{}.</p></blockquote>",
    "<figure><img src='/p.jpg' alt='A loom' width=600><figcaption>{}.</figcaption></figure>",
    "<h2>{}</h2><p>{}.</p>",
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
@given(st.randoms(use_true_random=False), st.integers(1, 5), st.permutations(PARAGRAPHS))
def test_property_nothing_is_lost_of_an_article_that_is_all_content(
    extractor: Extractor, chance: random.Random, structures: int, paragraphs: list[str]
) -> None:
    html, wanted = "<title>How a cloth is made</title><article><h1>How a cloth is made</h1>", ["How a cloth is made"]
    for n in range(structures):
        structure = chance.choice(STRUCTURES)
        texts = [" ".join(chance.choices(WORDS, k=chance.randint(2, 12))) for _ in range(structure.count("{}"))]
        html += f"<p>{paragraphs[n]}</p>{structure.format(*texts)}"
        wanted += [paragraphs[n], *texts]

    (page,) = extractor.extract([f"{html}<p>{paragraphs[-1]}</p></article>"])

    assert lost(page.text or "", [*wanted, paragraphs[-1]]) == []
