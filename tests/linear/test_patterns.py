"""No regular expression of the package takes more than linear time."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.linear.growth import superlinear
from tests.linear.patterns import Use, sites_in, uses

ALLOWED = {
    "scrapy_dripper.commands.dripper:_regex": "checks a pattern that the user names on the command line",
    "scrapy_dripper.engines.tagger.lexicon:_literals": "reads the keywords of that module, at import",
    "scrapy_dripper.engines.qwen3.grammar:Grammar._encode": "reads what the grammar wrote, by a table of patterns",
}
"""Places where patterns need not be linear, with the reason: their text is bounded, or does not come from a page."""

FOUND, UNKNOWN = uses()


def _by_module() -> dict[str, list[Use]]:
    modules: dict[str, list[Use]] = {}
    seen: set[tuple[re.Pattern[Any], str]] = set()
    for use in FOUND:
        if (use.pattern, use.method) not in seen and use.place not in ALLOWED:
            seen.add((use.pattern, use.method))
            modules.setdefault(use.place.partition(":")[0], []).append(use)
    return modules


@pytest.mark.parametrize(("module", "found"), sorted(_by_module().items()), ids=lambda value: str(value)[:80])
def test_every_pattern_is_linear(module: str, found: list[Use]) -> None:
    for use in found:
        attack = superlinear(use.pattern, use.method)
        assert attack is None, f"{use.place} .{use.method}: {attack}"


def test_every_use_of_re_is_known() -> None:
    unknown = [place for place in UNKNOWN if place not in ALLOWED]
    assert not unknown, (
        f"expected patterns that are made at import, or of constants (got others in {unknown}): change them, or say in "
        "ALLOWED what they read"
    )


def test_what_is_allowed_is_there() -> None:
    places = {use.place for use in FOUND} | set(UNKNOWN)
    assert set(ALLOWED) <= places


def test_many_patterns_are_found() -> None:
    """Without any patterns, all other tests would pass."""
    found = {use.place for use in FOUND}
    for place in (
        "scrapy_dripper.output.images:_placeholder",  # a bound method
        "scrapy_dripper.binary:_MAGIC",  # in tuples in a tuple
        "scrapy_dripper.page.balance:_raw_end",  # in a dict
        "scrapy_dripper.fallback.trafilatura_output:_tag",  # in a call in a function
    ):
        assert place in found
    assert len(found) > 150


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?:blank)(?:[-_.](?:\d+(?:x\d+)?|[0-9a-f]{8,}|image))*\.(?:gif|png)", "fullmatch"),
        (r"%?\s*<!\[CDATA\[\s*|\s*%?\s*\]\]>", "sub"),
        (r"\s*\(?\s*([0-9A-Za-z.*']{1,12})\s*\)?\s*", "fullmatch"),
        (r"(?<!\w)_+ | _+(?!\w)".replace(" ", ""), "sub"),
        (r"[\W_]*(?:\w{1,3}|back|return|jump(?: up)?(?: to)?)?[\W_]*", "fullmatch"),
        (r"\s*0*[01](?:\.\d+)?\s*(?:px)?\s*", "fullmatch"),
        (r"[^\s{}\"<>]+\.(?:jpe?g|png)(?:[?#]\S*)?", "fullmatch"),
        (r"[ \t\r]*\n\s*", "sub"),
        (r"(?<!\\)%[^\n]*\n[ \t]*", "sub"),
        (r"latex\.php\?(?:[^#]*?&)?latex=(?P<form1>[^&#]+)", "search"),
        (r"(a+)+b", "match"),
        (r"(?:a|a)*b", "match"),
        (r"a*?b?a*?c", "match"),
        (r"(x+x+)+y", "search"),
        (r"<!--.*?-->", "finditer"),
        (r"\d+(?=%)", "findall"),
        (r"(?=.*b)a", "finditer"),
    ],
)
def test_patterns_that_are_not_linear_are_noticed(pattern: str, method: str) -> None:
    assert superlinear(re.compile(pattern, re.IGNORECASE), method) is not None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"a{0,100}b", "search"),
        (r"\bword", "search"),
        (r"\ba+\b!", "search"),
        (r"\s+", "sub"),
        (r"a+b", "match"),
        (r"(?:a|b)*c", "fullmatch"),
        (r"<[^<>]*>", "finditer"),
        (r"\b(\w+)\"", "findall"),
    ],
)
def test_linear_patterns_pass(pattern: str, method: str) -> None:
    assert superlinear(re.compile(pattern), method) is None


@pytest.mark.parametrize(
    "source",
    [
        "from re import compile",
        "import re as r",
        "import regex",
        "import re\nmake = re.compile",
        "import re\nimport functools\nf = functools.partial(re.sub, 'a+')",
    ],
)
def test_uses_of_re_that_hide_a_pattern_are_refused(source: str) -> None:
    with pytest.raises(AssertionError, match="expected"):
        list(sites_in("module", source))
