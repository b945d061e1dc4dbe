"""Duplicates that a reader sees once are dropped, and deliberate repetitions are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.choose.duplicates import without_duplicates
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.page import Page
from scrapy_dripper.testing import page as page_of

LINE = "The ferry leaves the northern pier at nine and comes back after dark."
LONG = [
    "The harbour was built of granite blocks that were cut on the island and brought over the sound on flat boats, "
    "eighty of them in a summer.",
    "Two cranes stood on its mole until the war, when one was taken away and the other fell into the basin in the "
    "storm of the following spring.",
    "What is left of them can be seen at low water from the steps behind the customs house, where the boats of the "
    "pilots are moored.",
]


def page(body: str) -> Page:
    return page_of(f"<main>{body}</main>")


def kept(body: str, p: list[float] | None = None) -> list[str]:
    """Return the texts that are kept on a page whose blocks are all main."""
    cut = page(body)
    chances = np.array(p or [0.9] * len(cut.blocks), dtype=np.float32)
    main = without_duplicates(ScoredPage(cut, Labels(chances)), np.ones(len(cut.blocks), dtype=np.bool_))
    return [text for text, stays in zip(cut.blocks.text, main, strict=True) if stays]


@pytest.mark.parametrize(
    "body",
    [
        f"<p>{LINE}</p><div hidden><p>{LINE}</p></div>",
        f"<p>{LINE}</p><p>Then.</p><div style='display: none'>{LINE}</div>",
        f"<div aria-hidden=true>{LINE}</div><p>First.</p><p>{LINE}</p>",
        f"<p>{LINE}</p><p>Then.</p><noscript><p>{LINE}</p></noscript>",
        f"<div><p>{LINE}</p></div><div class='slide slick-cloned'><p>{LINE}</p></div>",
        f"<div class=hidden-xs><p>{LINE}</p></div><div class=visible-xs><p>{LINE}</p></div>",
        f"<h2 class='d-none d-md-block'>{LINE}</h2><h2 class=d-md-none>{LINE}</h2>",
        f"<div class='hidden md:block'>{LINE}</div><div class=md:hidden>{LINE}</div>",
        f"<div class=hidden><p>{LINE}</p></div><h2>Title</h2><p>{LINE}</p>",
        f"<p>{LINE}</p><p>Then.</p><div class='gated w-condition-invisible'><p>{LINE}</p></div>",
        f"<p>{LINE}</p><p>Then.</p><div class=qu-display--none><p>{LINE}</p></div>",
        f"<div class=plan__mobileCopy>{LINE}</div><div class=plan__desktopCopy>{LINE}</div>",
        f"<div class=mobile-title>{LINE}</div><img src=a.png><div class=desktop-title>{LINE}</div>",
    ],
)
def test_texts_that_a_reader_sees_once_are_kept_once(body: str) -> None:
    assert kept(body).count(LINE) == 1


@pytest.mark.parametrize(
    "body",
    [
        f"<p>{LINE}</p><p>Then.</p><p>{LINE}</p>",
        "".join(f"<section><h2>{n}</h2><p>Once {n}.</p><p>{LINE}</p></section>" for n in "abcdef"),
        f"<h2>{LINE}</h2><p>One.</p><h2>{LINE}</h2><p>Two.</p>",
        f"<ol><li>{LINE}<pre>a</pre></li><li>Wait.</li><li>{LINE}</li></ol>",
        f"<pre>{LINE}</pre><p>Then.</p><pre>{LINE}</pre>",
        f"<div class=code><code>{LINE}</code><br><br><code>{LINE}</code></div>",
        f"<table><tr><td><p>{LINE}</p><p>b</p></td><td><p>c</p><p>{LINE}</p></td></tr></table>",
        f"<div><p>One.</p><p>{LINE}</p></div><div><p>Two.</p><p>{LINE}</p></div>",
        f"<p>{LINE}</p><p>Then.</p><blockquote><p>{LINE}</p></blockquote>",
        f"<ul><li><a href=#ferry>{LINE}</a><p></p></li></ul><h2 id=ferry>{LINE}</h2><p>At nine.</p>",
        f"<div class=mobile-toc><a href=#ferry>{LINE}</a></div><h2 id=ferry>{LINE}</h2><p>At nine.</p>",
        f"<div role=tabpanel><p>{LINE}</p><p>One.</p></div><div role=tabpanel hidden><p>{LINE}</p><p>Two.</p></div>",
        f"<div><p><a href=/ferry>{LINE}</a></p><p><a href=/ferry>{LINE}</a></p></div>",
        *(
            f"<p>{LINE}</p><div class='{name}'><p>Then.</p><p>{LINE}</p></div>"
            for name in ("overflow-hidden", "overflow-x-hidden", "backface-hidden")
        ),
        "".join(f"<p>Review {n}.</p><div aria-hidden=true>{LINE}</div>" for n in "abc"),
        f"<ul><li>Deep Teal<li>{LINE}</ul><ul><li class='swatch hidden'>Deep Teal<li>Mint</ul>",
    ],
)
def test_deliberate_repetitions_are_kept(body: str) -> None:
    assert kept(body) == page(body).blocks.text


def test_the_visible_one_becomes_main_if_the_hidden_one_is() -> None:
    cut = page(f"<p>{LINE}</p><p>Then.</p><div hidden><p>{LINE}</p></div>")
    p = np.array([0.2, 0.9, 0.9], dtype=np.float32)
    main = without_duplicates(ScoredPage(cut, Labels(p)), np.array([False, True, True]))

    assert main.tolist() == [True, True, False]


def test_an_entry_of_the_contents_does_not_become_main_for_a_caption() -> None:
    body = f"<div class=mobile-toc><a href=#f>{LINE}</a></div><p>At nine.</p><figcaption>{LINE}</figcaption>"
    main = np.array([False, True, True])

    assert without_duplicates(ScoredPage(page(body), Labels(main.astype(np.float32))), main).tolist() == main.tolist()


ELEMENTS = st.recursive(
    st.sampled_from(["<p>{0}</p>", "<h2>{1}</h2>", "<ul><li>{1}<li>{2}</ul>", "<a href=/x>{1}</a>", "<pre>{2}</pre>"]),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag.split()[0]}>",
        st.sampled_from(["div", "section class=mobile", "div hidden", "blockquote", "div class=cloned", "a href=/y"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=15,
)


@given(st.lists(ELEMENTS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_no_text_of_a_page_is_lost(parts: list[str], random: object) -> None:
    """Each dropped text is equal to a kept one or part of it, and no more blocks are main than before."""
    cut = page("".join(parts).format(*LONG) + "<p>End.</p>")
    chances = np.array([random.random() for _ in cut.blocks.text], dtype=np.float32)  # type: ignore[attr-defined]
    before = chances > 0.3
    after = without_duplicates(ScoredPage(cut, Labels(chances)), before)
    text = "\n".join(t for t, stays in zip(cut.blocks.text, after, strict=True) if stays)

    assert all(t in text for t, was in zip(cut.blocks.text, before, strict=True) if was)
    assert after.sum() <= before.sum()
