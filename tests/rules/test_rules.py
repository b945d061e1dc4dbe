"""Rules are read from dicts and files, looked up by URL, and applied to the labels of a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import lxml.html
import pytest

from scrapy_dripper import Config, ConfigError, Document, Extractor
from scrapy_dripper.choose.user_rules import marks
from scrapy_dripper.rules import RuleError, SelectorError, SiteRule, find, path_of, read_rules
from scrapy_dripper.testing import FakeEngine, page

HTML = """<html><head><title>A title</title></head><body><nav><a href=/>Home</a></nav><main><h1>Title</h1>
<p>One <span class=x>inline</span> text.</p><div class=rel><p>Related one</p><p class=good>Related two</p></div></main>
<footer><p>Foot</p></footer></body></html>"""
URL = "https://www.example.com/news/1?p=2"


def test_a_file_of_toml_or_json_is_a_dict(tmp_path: Path) -> None:
    """Rules keep the order of the file. A single selector needs no list."""
    rules = {"example.com": {"drop": [".a", "//b"], "whole": "main"}, "*": {"keep": ["h1"]}}
    (tmp_path / "rules.json").write_text(json.dumps(rules), encoding="utf-8")
    (tmp_path / "rules.toml").write_text(
        '["example.com"]\ndrop = [".a", "//b"]\nwhole = "main"\n\n["*"]\nkeep = ["h1"]\n', encoding="utf-8"
    )
    expected = [
        SiteRule("example.com", "drop", ".a"),
        SiteRule("example.com", "drop", "//b"),
        SiteRule("example.com", "whole", "main"),
        SiteRule("*", "keep", "h1"),
    ]

    assert list(Config(rules=rules).rules or ()) == expected
    assert list(Config(rules=tmp_path / "rules.json").rules or ()) == expected
    if sys.version_info >= (3, 11):
        assert list(Config(rules=str(tmp_path / "rules.toml")).rules or ()) == expected


@pytest.mark.parametrize(
    ("pattern", "url", "applies"),
    [
        ("*", "", True),
        ("example.com", URL, True),
        ("https://www.Example.com", URL, True),
        ("*.example.com", URL, True),
        ("example.com", "http://news.example.com:8080/", True),
        ("ample.com", URL, False),
        ("news.example.com", URL, False),
        ("example.com/news/*", URL, True),
        ("example.com/*p=2", URL, True),
        ("example.com/news/*?q=*", URL, False),
        ("example.com/news", URL, False),
        ("example.com/n*s/*1*2", URL, True),
        ("example.com/*11*1", URL, False),
        ("example.com/", "https://example.com", True),
        ("example.com:8080", URL, True),
        ("example.com.", URL, True),
        ("[::1]", "http://[::1]/a", True),
        ("http://[::1]:8080/a", "http://[::1]:8080/a", True),
        ("Müller.de", "https://xn--mller-kva.de/", True),
        ("xn--mller-kva.de", "https://www.müller.de/", True),
        ("example.com/café/*", "https://example.com/caf%C3%A9/1", True),
        ("example.com/caf%C3%A9/*", "https://example.com/café/1", True),
        ("example.com/a*é", "https://example.com/a?q=%C3%A9", True),
        ("example.com", "", False),
        ("example.com", "http://[", False),
    ],
)
def test_the_url_of_a_page_decides(pattern: str, url: str, applies: bool) -> None:
    assert bool(read_rules({pattern: {"drop": "p"}}).of(url)) == applies


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"drop": ".rel"}, "0 0 0 -1 -1 0"),
        ({"keep": ".rel", "drop": ".good"}, "0 0 0 1 -1 0"),
        ({"drop": ".rel", "keep": ".good"}, "0 0 0 -1 1 0"),
        ({"drop": "main", "keep": "main"}, "0 -1 -1 -1 -1 0"),
        ({"whole": "main"}, "-1 1 1 1 1 -1"),
        ({"whole": "main", "drop": ".rel", "keep": "//footer"}, "-1 1 1 -1 -1 1"),
        ({"whole": [".not-there", ".good"]}, "-1 -1 -1 -1 1 -1"),
        ({"whole": ".not-there"}, "0 0 0 0 0 0"),
        ({"drop": ".x"}, "0 0 0 0 0 0"),  # inside of a block, the rest of which stays
        ({"keep": ".x"}, "0 0 1 0 0 0"),
    ],
)
def test_the_innermost_element_counts(rules: dict[str, Any], expected: str) -> None:
    found = marks(page(HTML, URL), Config(rules={"example.com": rules}).rules)

    assert " ".join(map(str, found.says)) == expected


@pytest.mark.parametrize(
    ("rules", "options", "text", "counted"),
    [
        ({"keep": "footer", "drop": ".rel"}, {"title": "drop"}, "Foot", {"drop": 2, "keep": 1}),
        ({"whole": ".rel"}, {}, "Related one\nRelated two", {"whole": 2}),  # without the headline
        ({"whole": "main"}, {"title": "drop"}, "One inline text.\nRelated one\nRelated two", {"whole": 4}),
        ({"drop": "body"}, {}, "", {"drop": 6}),
        ({"drop": ".gone"}, {}, "Title\nRelated one", {}),  # the site may have changed
        (None, {}, "Title\nRelated one", None),
    ],
)
def test_rules_go_before_the_engine(
    rules: dict[str, Any] | None, options: dict[str, Any], text: str, counted: dict[str, int] | None
) -> None:
    """The result is a subtree of the page, and has the number of blocks that rules applied to."""
    config = Config(rules=None if rules is None else {"example.com": rules}, **options)
    engine = FakeEngine(main=lambda text: 0.9 if text == "Related one" else 0.1)
    (found,) = Extractor(config, engine).extract([Document(HTML, URL)])

    assert found.text == text
    assert found.details["rules"] == found.meta()["rules"] == counted
    assert (found.source, found.fallback_reason) == ("fake", None if text else "no_main")
    if text == "Foot":
        assert "".join((found.main_html or "").split()) == "<html><body><footer><p>Foot</p></footer></body></html>"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"e.org": {"drp": "x"}}, "rules of the kinds 'whole', 'keep', 'drop'"),
        ({"e.org": {"drop": "div >"}}, "'div >' of 'e.org' is not CSS that can be used"),
        ({"e.org": {"drop": f":nth-child(n{'+1' * 300})"}}, "of 'e.org' is not CSS that can be used"),
        ({"e.org": {"drop": "//a["}}, "'//a\\[' of 'e.org' is not XPath that can be used"),
        ({"e.org": "p"}, "a dict, or a TOML or JSON file"),
        ({"e.org": {"drop": [5]}}, "selectors are strings"),
        ({"e o": {"drop": "p"}}, "rules for hosts"),
        ({5: {"drop": "p"}}, "rules for hosts"),
        ({"é" * 100: {"drop": "p"}}, "rules for hosts"),
        ({":8080": {"drop": "p"}}, "rules for hosts"),
        ({"::1": {"drop": "p"}}, "rules for hosts"),
        (5, "a dict, or a TOML or JSON file"),
        ("not-there.toml", "not-there.toml cannot be read: No such file"),
    ],
)
def test_a_wrong_rule_is_one_sentence(rules: Any, words: str) -> None:
    """What came is in it once, and it is short: cssselect names each token of a series that it cannot read."""
    with pytest.raises(ConfigError, match=f"^DRIPPER_RULES must be .*{words}") as raised:
        Config(rules=rules)
    assert str(raised.value).count("(got ") <= 1
    assert len(str(raised.value)) < 500


def written(folder: Path, name: str, data: bytes) -> Path:
    """Return a file with rules. Skip the test if it is TOML, which this Python does not read."""
    if name.endswith("toml") and sys.version_info < (3, 11):
        pytest.skip("no TOML there")
    (folder / name).write_bytes(data)
    return folder / name


DEEP = "a" + " .'b\".'" * 100_000


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", '{"a": ', ""),
        ("a.toml", '{"a": ', ""),
        ("a.json", '{"e.org": {"drop": "p"}, "e.org": {"drop": "a"}}', r"the key 'e\.org' occurs twice"),
        # Python's reader of TOML would take minutes for keys in each other.
        *(
            ("a.toml", text, "a key has more than 50 parts")
            for text in (f"{DEEP} = 1", f"[{DEEP}]", f"x = {{ y = 1, {DEEP} = 1 }}", f"[['e.org'.{DEEP}]]")
        ),
    ],
    ids=range(7),
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"is not well-formed: {problem}"):
        Config(rules=written(tmp_path, name, text.encode()))


def test_a_file_has_a_limit(tmp_path: Path) -> None:
    text = b'{"e.org": {"drop": "p"}}'.ljust(4_000_000)

    assert Config(rules=written(tmp_path, "a.json", text)).rules
    with pytest.raises(ConfigError, match="a file of at most 4,000,000 bytes"):
        Config(rules=written(tmp_path, "a.json", text + b" "))


@pytest.mark.parametrize("name", ["rules.json", "RULES.JSON", "rules.toml"])
def test_files_of_editors_on_windows_are_read(tmp_path: Path, name: str) -> None:
    text = "['e.org']\r\ndrop = 'p'\r\n" if name.endswith("toml") else '{"e.org": {"drop": "p"}}'
    rules = Config(rules=written(tmp_path, name, text.encode("utf-8-sig"))).rules

    assert list(rules or ()) == [SiteRule("e.org", "drop", "p")]


def test_a_request_brings_few_rules_and_no_xpath_and_no_file(tmp_path: Path) -> None:
    """They may come from outside, and XPath can take longer than any CSS."""
    (tmp_path / "rules.json").write_text('{"*": {"drop": "p"}}', encoding="utf-8")
    config = Config(rules={"*": {"drop": "//p"}})

    long = {"*": {"drop": ["p, " * 200 + "p"] * 2}}
    for rules in ({"*": {"drop": "//p"}}, str(tmp_path / "rules.json"), {"*": {"drop": ["p"] * 21}}, long, 5):
        found, _, problems = config.overridden({"rules": rules})
        assert found == config
        assert 'meta["dripper"]["rules"] must be ' in problems[0]
    assert list(config.overridden({"rules": {"*": {"drop": ".a"}}})[0].rules or ()) == [SiteRule("*", "drop", ".a")]
    assert config.overridden({"rules": None})[0].rules is None
    assert config.overridden({"title": "drop"})[0].rules == config.rules


# ---------------------------------------------------------------------- selectors
def selected(html: str, selector: str) -> list[int]:
    """Return the numbers of the elements of a document that a selector selects."""
    return find(selector, {node: i for i, node in enumerate(lxml.html.document_fromstring(html).iter())})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("p > b, #a", [2, 3]),
        ("p:not(#a) b", []),
        ("//p | //p/@id | //p/text()", [2]),  # XPath; texts and attributes are not selected
        ("(//p//b)[1]", [3]),
    ],
)
def test_what_a_selector_selects(selector: str, expected: list[int]) -> None:
    assert selected("<html><body><p id=a>One<b>two</b></p></body></html>", selector) == expected


def test_xpath_that_fails_on_a_page_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    """An unknown function is only detected when it is called."""
    for _ in range(2):
        assert selected("<html><body><p>One</p></body></html>", "//p[no-such-function()]") == []
    (record,) = caplog.records
    assert "//p[no-such-function()]" in record.getMessage()


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ("div >", "Expected selector"),
        ("p::before", "Pseudo-elements"),
        ("p:no-such-thing", "no-such-thing"),
        ("li:has(a, b", "Expected|unsupported"),
        ("svg|a", "[Uu]ndefined namespace"),
        ("//p[", "Invalid expression"),
        ("(count(//p))", "not a number"),
        ("//p[$x]", "variables are not supported"),
        ("", "expected from 1 to 1,000"),
        ("a" * 1_001, "expected from 1 to 1,000"),
    ],
)
def test_what_cannot_be_used_says_why(selector: str, why: str) -> None:
    with pytest.raises(SelectorError, match=why):
        path_of(selector)


def test_what_can_be_read_can_be_used_deep_in_a_stack() -> None:
    """A selector that is nested up to the parser's own limit could not."""

    def deep(left: int) -> list[int]:
        return (
            deep(left - 1) if left else selected("<html><body><p>One</p></body></html>", ":is(" * 20 + "p" + ")" * 20)
        )

    assert deep(500) == [2]


@pytest.mark.parametrize(("count", "valid"), [(10_000, True), (10_001, False)])
def test_rules_are_as_many_as_a_site_needs(count: int, valid: bool) -> None:
    rules = {"*": {"drop": [".x"] * count}}
    if valid:
        assert len(read_rules(rules)) == count
    else:
        with pytest.raises(RuleError, match="at most 10,000 of them"):
            read_rules(rules)
