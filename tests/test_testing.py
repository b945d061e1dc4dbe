"""The tests in docs/guides/testing.md pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from scrapy_dripper import Extractor

TEXT = (Path(__file__).parents[1] / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.S))


def test_the_documented_tests_pass() -> None:
    names: dict[str, Any] = {}
    exec(FILES["test_labels.py"], names)
    names["test_sentences_are_main"]()
    exec(FILES["engines.py"], names)

    [page] = Extractor(engine=names["Sentences"]()).extract([names["PAGE"]])
    assert page.text == "High water is at noon."
