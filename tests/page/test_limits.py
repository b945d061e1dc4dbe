"""Page limits: each error names what was found, each can cut off instead, and no ordinary page comes near one."""

from __future__ import annotations

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, FallbackReason
from scrapy_dripper.page import Page, PageError, read

PARAGRAPHS = "<body>" + "".join(f"<p a=1 b=2>word{i}</p>" for i in range(100))


def page(html: str, **options: object) -> Page:
    return read(Document(html), Config(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"bytes": 1_000}, 'over DRIPPER_LIMITS["bytes"] = 1,000 bytes'),
        ({"nodes": 60}, '102 elements, over DRIPPER_LIMITS["nodes"] = 60'),
        ({"blocks": 50}, '100 blocks, over DRIPPER_LIMITS["blocks"] = 50'),
    ],
)
def test_a_page_over_a_limit(limits: dict[str, int], message: str) -> None:
    """The error names the setting, its value, and the number in the page."""
    with pytest.raises(PageError) as caught:
        page(PARAGRAPHS, limits=limits)
    assert caught.value.reason is FallbackReason.OVERSIZE
    assert str(caught.value) == message


@pytest.mark.parametrize(("limits", "words"), [({"nodes": 60}, 58), ({"blocks": 50}, 50)])
def test_its_first_part(limits: dict[str, int], words: int) -> None:
    cut = page(PARAGRAPHS, oversize="truncate", limits=limits)
    assert cut.over is not None
    assert cut.blocks.text[: words - 1] == [f"word{i}" for i in range(words - 1)]
    assert len(cut.blocks) == words


@pytest.mark.parametrize("limits", [{"nodes": 102}, {"blocks": 100}, {"bytes": 2_096}])
def test_a_page_at_a_limit(limits: dict[str, int]) -> None:
    found = page(PARAGRAPHS, limits=limits)
    assert (len(found.blocks), found.over) == (100, None)


def test_no_setting_allows_more_elements_than_the_maximum() -> None:
    """The error then names no setting, because a higher one would change nothing."""
    with pytest.raises(PageError, match=r"^more than 200,000 elements$") as raised:
        page("<br>" * 200_000, limits={"nodes": 1_000_000})
    assert raised.value.limit is None


def test_a_deep_page_is_flattened() -> None:
    """A page deeper than the setting loses no text and does not fall back."""
    html = "<p>before</p>" + "<div>" * 600 + "<p>inside</p>" + "</div>" * 600 + "<p>after</p>"
    assert page(html, limits={"depth": 700}).tree.depth.max() == 602
    flat = page(html)
    assert flat.blocks.text == ["before", "inside", "after"]
    assert flat.tree.depth.max() < 210
    assert flat.over is None
