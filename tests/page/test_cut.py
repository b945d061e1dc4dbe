"""The blocks of many pages are the same as when the bundled model was trained.

``python tests/page/test_cut.py`` updates ``cut.json``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from scrapy_dripper.page.blocks import CUT, cut
from scrapy_dripper.page.parse import parse

PAGES = Path(__file__).parents[1] / "structured"
KNOWN = Path(__file__).with_name("cut.json")


def digest(html: str) -> str:
    """Return a hash of the text, the element and the flags of each block."""
    page = cut(parse(f"<html><body>{html}</body></html>"))
    nodes = page.blocks.context
    tags = [str(page.tree.nodes[node].tag) for node in nodes]
    rows = list(zip(page.blocks.text, tags, page.tree.flags[nodes].tolist(), strict=True))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:12]


def digests() -> dict[str, str]:
    pages = sorted(PAGES.glob("*/*.html"))
    return {f"{page.parent.name}/{page.stem}": digest(page.read_text(encoding="utf-8")) for page in pages}


def test_blocks_are_cut_as_the_model_has_learnt_it() -> None:
    known, found = json.loads(KNOWN.read_text(encoding="utf-8")), digests()
    changed = [page for page, value in known["pages"].items() if page in found and found[page] != value]
    assert known["cut"] == CUT, "CUT was raised: train the model again ('make train'), then run this file as a script"
    assert not changed, (
        f"{len(changed)} pages are cut into other blocks than those that the bundled model was trained on, for example "
        f"{', '.join(changed[:5])}. Compare 'make evaluate' before and after. If the figures are the same, run this "
        "file as a script to update cut.json. Otherwise, raise CUT in scrapy_dripper/page/blocks.py, train the model "
        "again ('make train'), and then run this file"
    )
    assert len(known["pages"]) > 100


if __name__ == "__main__":
    KNOWN.write_text(json.dumps({"cut": CUT, "pages": digests()}, indent=0) + "\n", encoding="utf-8")
