"""The language of code is guessed if the page does not name it."""

from __future__ import annotations

import sys

import pytest
from lxml import html

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.code.guess import magika_guess
from scrapy_dripper.output.content_list import content_list

PAGE = "<pre>def tide(hours):\n    return hours % 12</pre><pre><code class=language-c>int tide;</code></pre>"


def test_only_what_no_page_names_is_guessed() -> None:
    first, second = content_list(html.document_fromstring(PAGE), guess=lambda _: "python")

    assert (first.language, first.by) == ("python", "guess")  # type: ignore[union-attr]
    assert (second.language, second.by) == ("c", "class")  # type: ignore[union-attr]


def test_without_the_extra_the_crawl_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "magika", None)
    magika_guess.cache_clear()

    with pytest.raises(ConfigError, match=r"pip install scrapy-dripper\[guess\]"):
        Extractor(Config(guess_language=True))
