"""The records of the guide to search and retrieval. ``tests/crawl/test_docs.py`` runs its spider."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from scrapy_dripper.derived import plain_chunks
from scrapy_dripper.output.chunks import chunks
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.page.parse import parse

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "rag.md"


def test_a_record_is_of_a_chunk_with_its_path(tmp_path: Path) -> None:
    """An item without chunks has none."""
    html = "<h1>Backup</h1><p>Copy all of it, every night.</p><h2 id=again>Restore</h2><p>Copy all of it back.</p>"
    found = chunks(content_list(parse(html)), "https://e.org/", size=50)
    lines = [{"url": "https://e.org/", "chunks": plain_chunks(found)}, {"url": "https://e.org/empty"}]
    feed = tmp_path / "pages.jsonl"
    feed.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    (code,) = re.findall(r"```python\n(# records.py.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    names: dict[str, Any] = {}
    exec(code, names)

    made = [tuple(record.values()) for record in names["records"](feed)]

    first = ("https://e.org/#0", "https://e.org/", "Backup\n\n# Backup\n\nCopy all of it, every night.")
    second = ("https://e.org/#1", "https://e.org/#again", "Backup > Restore\n\n## Restore\n\nCopy all of it back.")
    assert made == [first, second]
