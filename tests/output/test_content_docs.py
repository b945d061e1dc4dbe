"""The example in docs/reference/content-list.md matches the output."""

from __future__ import annotations

import json
import re
from pathlib import Path

from scrapy_dripper.output.content_json import to_json
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.output.markdown import markdown
from scrapy_dripper.page.parse import parse

TEXT = (Path(__file__).parents[2] / "docs/reference/content-list.md").read_text(encoding="utf-8")


def snippet(fence: str, language: str) -> str:
    found = re.search(rf"^{fence}{language}\n(.*?)\n{fence}$", TEXT, re.S | re.M)
    assert found is not None
    return found[1]


def test_example() -> None:
    content = content_list(parse(snippet("```", "html")))

    assert to_json(content) == json.loads(snippet("```", "json"))
    assert markdown(content) == snippet("````", "markdown")
