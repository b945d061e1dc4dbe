"""Labels that are scrambled with UUIDs."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from lxml.html import document_fromstring

from scrapy_dripper.engines.scrambled import without_scrambled
from scrapy_dripper.page.blocks import cut

IDS = [str(UUID(int=2**127 + 7919 * i)) for i in range(9)]


def kept(body: str) -> list[bool]:
    """Return the labels of the blocks of a page that were all main."""
    page = cut(document_fromstring(f"<body>{body}</body>"), "")
    return without_scrambled(page, np.ones(len(page.blocks), dtype=np.bool_)).tolist()


@pytest.mark.parametrize("between", ["", " "])
def test_a_scrambled_label_is_left_out(between: str) -> None:
    letters = between.join(
        f"<span class=a>{letter}</span>{between}<span class=b>{one}</span>"
        for letter, one in zip("Sponsored", IDS, strict=True)
    )
    assert kept(f"<h2>Similar items</h2><div>{letters}</div><p>A chain.</p>") == [True, False, True]


@pytest.mark.parametrize(
    "body",
    [
        f"<p>The disks {IDS[0]}, {IDS[1]}, {IDS[2]}, {IDS[3]} and {IDS[4]} have failed.</p>",
        f"<p>{' '.join(IDS[:3])}</p>",
        f"<pre>{chr(10).join(IDS)}</pre>",
        f"<table><tr><td>{' '.join(IDS)}<td>b<tr><td>c<td>d</table>",
        f"<p>{'a-b-c-d-e ' * 20}</p>",
    ],
    ids=["a sentence", "a few", "code", "a table", "hyphens"],
)
def test_other_uuids_are_kept(body: str) -> None:
    assert all(kept(f"<h1>Disks</h1>{body}"))
