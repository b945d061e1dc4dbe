"""No regular expression of the package takes more than linear time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from scrapy_dripper.page.vocabulary import NamePattern
from tests.linear.patterns import calls_in
from tests.linear.pump import superlinear
from tests.page.test_names import NAME_PATTERNS

ALLOWED = {
    "scrapy_dripper.commands.dripper:_regex": "checks a pattern that the user names on the command line",
    "scrapy_dripper.engines.tagger.lexicon:_literals": "reads the keywords of that module, at import",
    "scrapy_dripper.engines.qwen3.grammar:_encode": "reads what the grammar wrote, by a table of patterns",
    "scrapy_dripper.page.vocabulary:complete": "makes patterns of names, which the next test tries",
    "scrapy_dripper.page.vocabulary:whole": "makes patterns of names, which the next test tries",
}
"""Functions whose patterns need not be linear, with the reason: their text does not come from a page."""


def test_every_pattern_is_linear() -> None:
    attacked = subprocess.run(
        [sys.executable, "-m", "tests.linear.pump"], stdout=subprocess.PIPE, check=True, timeout=900
    )
    found: dict[str, Any] = json.loads(attacked.stdout)

    assert not [one for one in found["slow"] if one[0] not in ALLOWED]
    unknown = [place for place in found["unknown"] if place not in ALLOWED]
    assert not unknown, "change the pattern to a constant, or say in ALLOWED what it reads"
    assert set(ALLOWED) <= {*found["places"], *found["unknown"]}
    # Without any patterns, all of this would be true.
    assert found["uses"] > 300
    assert {"scrapy_dripper.characters", "scrapy_dripper.engines.qwen3.profile"} <= set(
        found["places"]
    )  # made in comprehensions


@pytest.mark.parametrize("pattern", NAME_PATTERNS.values(), ids=list(NAME_PATTERNS))
def test_every_pattern_of_names_is_linear(pattern: NamePattern) -> None:
    assert not superlinear(pattern.pattern, "search", 0.1)


NOT_LINEAR = [
    (r"(?:blank)(?:[-_.](?:\d+(?:x\d+)?|[0-9a-f]{8,}|image))*\.(?:gif|png)", "fullmatch"),
    (r"(?<!\w)_+|_+(?!\w)", "sub"),
    (r"[^\s{}\"<>]+\.(?:jpe?g|png)(?:[?#]\S*)?", "fullmatch"),
    (r"(?:a|a)*b", "match"),
    (r"(x+x+)+y", "search"),
    (r"<!--.*?-->", "finditer"),
    (r"\d+(?=%)", "findall"),
    (r"(?=.*b)a", "finditer"),
    (r"a{0,1001}", "match"),
]
LINEAR = [
    (r"a{0,100}b", "search"),
    (r"\ba+\b!", "search"),
    (r"\s+", "sub"),
    (r"(?:a|b)*c", "fullmatch"),
    (r"<[^<>]*>", "finditer"),
    (r"\b(\w+)\"", "findall"),
]


def test_the_attacks_tell_slow_patterns_from_quick_ones() -> None:
    found = {pattern: superlinear(re.compile(pattern, re.I), method, 0.1) for pattern, method in NOT_LINEAR + LINEAR}
    assert [pattern for pattern, attack in found.items() if attack] == [pattern for pattern, _ in NOT_LINEAR]


@pytest.mark.parametrize(
    "source", ["from re import compile", "import re as r", "import regex", "import re\nf = re.sub"]
)
def test_uses_of_re_that_hide_a_pattern_are_refused(source: str) -> None:
    with pytest.raises(AssertionError, match="expected"):
        list(calls_in("module", source))
