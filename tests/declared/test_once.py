"""What a page says of itself is read once, whoever asks for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from scrapy_dripper import declared
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.declared import schema_org
from scrapy_dripper.extractor import Extractor

BODY = "<p>The tide comes in twice a day, and it goes out again, as all who live at the shore have known for ever.</p>"
SCRIPTS = (
    '<script type="application/ld+json">{"@type": "Article", "headline": "Tides", "articleBody": "The tide."}</script>'
    '<script type="application/ld+json">{"@type": "WebSite", "name": "Sand"}</script>'
    "<script>MathJax = {tex: {inlineMath: [['$', '$']]}};</script>"
)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the visits of heads, the scripts that are parsed as JSON, and the pages whose scripts are searched."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            counts[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(declared, "_read_meta", counted("meta", declared._read_meta))
    monkeypatch.setattr(schema_org, "parsed", counted("parsed", schema_org.parsed))
    monkeypatch.setattr(declared, "_dollar_setting", counted("searched", declared._dollar_setting))
    return counts


@pytest.mark.parametrize(
    "options", [{}, {"metadata_field": "metadata", "content_field": "content", "links_field": "links"}]
)
@pytest.mark.parametrize(("formula", "searched"), [("", 0), ("<p>Where $h$ is the height and $t$ is the time.</p>", 1)])
def test_each_part_is_read_once(calls: Counter[str], options: dict[str, Any], formula: str, searched: int) -> None:
    html = f"<head><meta name=author content='Ann Bell'>{SCRIPTS}</head><h1>Tides</h1>{BODY * 4}{formula}{BODY * 4}"
    with Extractor(Config(**options)) as extractor:
        (found,) = extractor.extract([Document(html, "https://example.org/tides")])

    assert found.title == "Tides"
    assert calls == Counter(meta=1, parsed=2, searched=searched)
