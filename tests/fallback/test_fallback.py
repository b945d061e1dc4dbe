"""The output of each fallback. None of them can stop a crawl."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from lxml.html import HtmlElement

from scrapy_dripper import fallback as fallback_module
from scrapy_dripper.checks import METHODS, Method
from scrapy_dripper.config import Config, ConfigError, check_methods
from scrapy_dripper.data import Document, Extraction, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.fallback import fall_back, methods
from scrapy_dripper.fallback.methods import FIRST_PART
from scrapy_dripper.page import recover

SENTENCE = "The tide comes in twice a day, and every sandcastle on this beach has to reckon with that. "
PAGE = f"""<!DOCTYPE html><html><head><title> Tides &amp; sand </title><script>x = 1</script></head><body>
<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h2>Tides</h2>
<p>{SENTENCE * 3}<b>Mind</b> the <i>gap</i>, see <a href="/more">more</a> or <a href="java\tscript:x()">less</a>,
and run <code>a_b</code>.</p>
<ol><li>first</li><li>second</li></ol>
<table><tr><th>High</th><th>Low</th></tr><tr><td>6:12</td><td>12:40</td></tr></table>
<p><img src="/tide.png" alt="A tide table">{SENTENCE * 3}</p></article>
<footer onclick="x()">Imprint</footer></body></html>"""
URL = "http://example.com/tides/"
REASON = FallbackReason.NO_MAIN


def forms(result: Extraction) -> tuple[str, str, str]:
    """Return Main-HTML, Markdown and text, which the fallback must have written."""
    assert result.main_html is not None
    assert result.markdown is not None
    assert result.text is not None
    return result.main_html, result.markdown, result.text


def run(html: str | bytes, **options: object) -> Extraction:
    return fall_back(Document(html, URL), Config(**options), REASON, "no main block")  # type: ignore[arg-type]


def test_trafilatura() -> None:
    """One run gives the main content in three forms, with links, images, tables and kinds of lists."""
    result = run(PAGE)
    assert result.source == "fallback:trafilatura"
    assert (result.url, result.title) == (URL, "Tides & sand")
    assert (result.fallback_reason, result.error) == (REASON, "no main block")
    main_html, markdown, text = forms(result)
    for part in (
        "<h2>Tides</h2>",
        "<strong>Mind</strong>",
        '<a href="/more">more</a>',
        "<td>6:12</td>",
        "<ol><li>first</li><li>second</li></ol>",
        'alt="A tide table"',
    ):
        assert part in main_html
    for part in ("## Tides", "**Mind**", "[more](http://example.com/more)", "`a_b`", "1. first", "| 6:12 | 12:40 |"):
        assert part in markdown
    assert "Mind the gap, see more or less" in text
    assert "tide.png" not in text
    for output in (main_html, markdown, text):
        assert "Imprint" not in output
        assert "script:" not in output.replace("\t", "")


def test_trafilatura_text_is_close_to_its_own() -> None:
    """The single run has the same words as Trafilatura's own text output."""
    import trafilatura

    own = trafilatura.extract(PAGE, url=URL, include_comments=False)
    assert own is not None
    assert forms(run(PAGE))[2].split() == own.split()


COMMENTED = PAGE.replace(
    "<footer",
    "<div id='comments' class='comments-area'><ol class='comment-list'>"
    f"<li class='comment'><p>READER says that {SENTENCE}</p></li></ol></div><footer",
)


@pytest.mark.parametrize(("comments", "there"), [("auto", False), ("drop", False), ("keep", True)])
def test_trafilatura_with_comments(comments: str, there: bool) -> None:
    """Comments follow the article in all three forms."""
    result = run(COMMENTED, comments=comments)
    for form in forms(result):
        assert "sandcastle" in form
        assert form.rfind("READER says") > form.index("sandcastle") if there else "READER says" not in form


@pytest.mark.parametrize("favor", ["balanced", "precision", "recall"])
def test_trafilatura_is_told_what_to_favor(favor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def bare_extraction(root: HtmlElement, **options: object) -> None:
        seen.update(options)

    monkeypatch.setattr("scrapy_dripper.fallback.trafilatura_output.bare_extraction", bare_extraction)
    run(PAGE, favor=favor)
    assert (seen["favor_precision"], seen["favor_recall"]) == (favor == "precision", favor == "recall")


@pytest.mark.parametrize(("equals", "is_read"), [(6_000, True), (10_000, False)])
def test_trafilatura_gets_no_data_in_which_its_search_takes_long(
    equals: int, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of a second at most, of which 12,000 characters with 10,000 equals signs would take more."""
    seen = []

    def bare_extraction(root: HtmlElement, **_: object) -> None:
        seen.extend(one.text for one in root.iter("script") if one.get("type"))

    monkeypatch.setattr("scrapy_dripper.fallback.trafilatura_output.bare_extraction", bare_extraction)
    run(PAGE + f'<script type="application/ld+json">"{"=" * equals:x<12000}"</script>')
    assert [text is not None for text in seen] == [is_read]


@pytest.mark.parametrize("fallback", ["trafilatura", "html"])
@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        ("<plaintext>out</plaintext></select></body>", "out</plaintext></select></body>"),
        ("<plaintext></plaintext></select></body>", "</plaintext></select></body>"),
        ("<xmp><b></plaintext></select></xmp>end", "<b></plaintext></select>end"),
        ("<listing>a</listing></plaintext></select></body>end", "aend"),
        ("</plaintext></select></body>end", "end"),
        ("<select><option>in<plaintext>in</plaintext></select></body>in", ""),
        ("<select><option>in</select></plaintext></body>end", "end"),
        ("<select></plaintext></select></body>end", "end"),
        *((f"<{tag}>in</plaintext></select></body>", "") for tag in ("textarea", "noembed", "noframes", "iframe")),
        ("<svg><style></plaintext></select></body>", ""),
        ("<script></plaintext></select></body>", ""),
        ("<!-- </plaintext></select></body>", ""),
    ],
)
def test_no_text_but_what_a_browser_shows(tags: str, shown: str, fallback: str) -> None:
    """Tags in text that is not parsed occur once, no tag becomes text, and nothing invisible is included."""
    result = run(f"<p>one two</p>{tags}", fallback=fallback)

    assert "".join((result.text or "").split()) == f"onetwo{shown}"
    assert "&amp;" not in (result.main_html or "")


def test_whole_page() -> None:
    """The output has all that a reader sees, and nothing that runs."""
    result = run(PAGE, fallback="html")
    assert result.source == "fallback:html"
    assert result.title == "Tides & sand"
    for output in forms(result):
        for part in ("Home", "Tides", "Mind", "6:12", "Imprint"):
            assert part in output
        for part in ("x = 1", "onclick", "x()"):
            assert part not in output


def test_whole_page_has_its_images_at_both_ends() -> None:
    """Images before the first block and after the last one are kept."""
    html = "<body><img src='/first.png'><p>One</p><img src='/middle.png'><p>Two</p><img src='/last.png'></body>"
    for output in forms(run(html, fallback="html"))[:2]:
        for name in ("first.png", "middle.png", "last.png"):
            assert name in output


@pytest.mark.parametrize("url", [URL, "http://[x", "https://[your-domain]/", "::", "http://x:port/", ""])
@pytest.mark.parametrize("fallback", ["trafilatura", "html"])
def test_invalid_urls(url: str, fallback: str) -> None:
    """An invalid URL of the page, or in it, has no other effect."""
    html = f"<base href='http://[y'><p>{SENTENCE * 3}<a href='//[z'>link</a><img src='//[q'></p>"
    result = fall_back(Document(html, url), Config(fallback=fallback), REASON)
    assert (result.source, result.error) == (f"fallback:{fallback}", None)
    assert all("sandcastle" in output for output in forms(result))


def test_trafilatura_has_nothing_that_runs() -> None:
    """Trafilatura reads URLs from more attributes than src. Text that looks like a tag stays text."""
    images = "".join(
        f"<img {name}='{url}//a.jpg' alt='z'>"
        for name in ("src", "data-src", "data-srcset")
        for url in ("javascript:x()", "java\tscript:x()", "data:text/html,x")
    )
    text = "so &lt;img src=x onerror=x()&gt; and <code>a&lt;b&gt;</code>"
    result = run(f"<article><p>{SENTENCE * 4}{images}</p><p>{SENTENCE * 4}{text}</p></article>")
    main_html, markdown, _ = forms(result)
    for output in (main_html, markdown):
        assert "sandcastle" in output
        assert "script:" not in output
        assert "data:" not in output
    assert "<img src=x" not in main_html
    assert "&lt;img src=x onerror=x()>" in markdown
    assert "`a<b>`" in markdown


@pytest.mark.parametrize("reason", [FallbackReason.EMPTY_BODY, FallbackReason.NOT_HTML])
@pytest.mark.parametrize("name", ["trafilatura", "html", "empty"])
def test_nothing_to_extract_from(reason: FallbackReason, name: str) -> None:
    """No extractor runs on an empty body or an image."""
    result = fall_back(Document(b"\x89PNG\r\n\x1a\n" * 100), Config(fallback=name), reason)
    assert forms(result) == ("", "", "")
    assert result.source == "fallback:empty"


def to_html(html: str, url: str) -> str:
    return f"<h1>{url}</h1><p>{len(html)} <b>characters</b></p>"


def to_extraction(html: str, url: str) -> Extraction:
    return Extraction("elsewhere", "Mine", "<p>x</p>", "x", html[:1], "mine", details={"blocks": 3})


def test_callable_that_returns_html() -> None:
    """The HTML is the Main-HTML as it is. Markdown and text are written from it."""
    result = run("<p>four</p>", fallback=to_html)
    main_html, markdown, text = forms(result)
    assert main_html == f"<h1>{URL}</h1><p>11 <b>characters</b></p>"
    assert "**characters**" in markdown
    assert text == f"{URL}\n11 characters"
    assert result.source == "fallback:to_html"


def test_callable_that_returns_an_extraction() -> None:
    """The extraction is used, but its source is overwritten."""
    result = run("<p>x</p>", fallback=to_extraction)
    assert (result.title, result.main_html, result.text, result.details) == ("Mine", "<p>x</p>", "<", {})
    assert (result.url, result.source) == (URL, "fallback:to_extraction")
    assert (result.fallback_reason, result.error) == (REASON, "no main block")


@pytest.mark.parametrize(
    ("html", "fallback", "value", "source"),
    [
        (PAGE, "empty", "", "empty"),
        (PAGE, "none", None, "none"),
        ("<html><body><script>x()</script></body></html>", "trafilatura", "", "trafilatura"),
        *(("<p>x</p>", one, "", "<lambda>") for one in (lambda *_: None, lambda *_: "", lambda *_: " \n")),
    ],
)
def test_nothing_is_found(html: str, fallback: object, value: str | None, source: str) -> None:
    """On purpose, or because there is nothing."""
    result = run(html, fallback=fallback)
    assert (result.main_html, result.markdown, result.text) == (value, value, value)
    assert (result.source, result.fallback_reason, result.error) == (f"fallback:{source}", REASON, "no main block")


def test_callable_gets_decoded_text_up_to_the_limit() -> None:
    """A fallback only gets the first max_bytes of a document."""
    seen: list[str] = []

    def look(html: str, url: str) -> str:
        seen.append(html)
        return "<p>x</p>"

    result = run(("ж" * 100).encode("utf-8"), fallback=look, limits={"bytes": 21})
    assert seen == ["ж" * 10]
    assert result.truncated
    assert not run("ж" * 20, fallback=look, limits={"bytes": 21}).truncated


@pytest.mark.parametrize(
    "problem",
    [ValueError("no"), RecursionError("deep"), MemoryError(), KeyError("x"), UnicodeDecodeError("x", b"", 0, 1, "y")],
)
def test_fallback_that_raises(
    problem: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is empty and has the error, with one warning for any number of pages."""
    monkeypatch.setattr(fallback_module, "_reported", set())

    def fail(html: str, url: str) -> str:
        raise problem

    with caplog.at_level(logging.INFO):
        results = [run("<p>x</p>", fallback=fail) for _ in range(3)]
    for result in results:
        assert forms(result) == ("", "", "")
        assert result.source == "fallback:empty"
        assert str(result.error).startswith("no main block; fallback ")
        assert type(problem).__name__ in str(result.error)
    assert len(caplog.records) == 1


def test_callable_that_returns_something_else() -> None:
    result = run("<p>x</p>", fallback=lambda html, url: 3)
    assert (result.main_html, result.source) == ("", "fallback:empty")
    assert "expected HTML, an Extraction or None (got int)" in str(result.error)


def test_dotted_path() -> None:
    path = f"{__name__}.to_html"
    check_methods(Config(fallback=path))
    result = run("<p>four</p>", fallback=path)
    assert (result.main_html, result.source) == (to_html("<p>four</p>", URL), f"fallback:{path}")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{__name__}.whisper", "cannot be imported"),
        ("my_typo.shout", "cannot be imported .ModuleNotFoundError"),
        ("my_broken_fallbacks.shout", "cannot be imported .ZeroDivisionError"),
        (f"{__name__}.URL", "must name a function"),
        (f"{__name__}.Document", "must name a function"),
    ],
)
def test_wrong_dotted_path(path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid path is detected when the crawl starts. If a page still meets it, its result is empty."""
    (tmp_path / "my_broken_fallbacks.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = Config(fallback=path)
    with pytest.raises(ConfigError, match=message):
        check_methods(config)
    assert fall_back(Document("<p>x</p>", URL), config, REASON).source == "fallback:empty"


@pytest.mark.parametrize("option", ["engine", "fallback"])
def test_a_method_whose_extra_is_missing_is_found_at_the_start(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "html", Method("methods:whole_page", "no_such_library", "needy"))
    message = rf"DRIPPER_{option.upper()} is 'html', which needs no_such_library: .*scrapy-dripper\[needy\]"
    with pytest.raises(ConfigError, match=message):
        Extractor(Config(**{option: "html"}))  # type: ignore[arg-type]


HARD = {
    "deep": "<div>" * 500 + f"<p>{SENTENCE * 5}</p>",
    "unclosed": "".join(f"<{'pbiu'[i % 4]}>word{i} " for i in range(2_000)) + SENTENCE,
    "attributes": f"<p {' '.join(f'a{i}=1' for i in range(10_000))}>{SENTENCE * 5}",
    "too deep to recover": "<div>x " * 30_100,
    "wide": "".join(f"<div><p>{SENTENCE * 3}{i}</p></div>" for i in range(2_000)),
    "end tags alone": "<div>" * 3_000 + SENTENCE + "</b></i></p>" * 3_300,
}
"""Pages a tenth as large as those for which the limits of the parser are made."""


PARTIAL = ("justext", "title_paragraphs")
"""Methods that find nothing on some of them."""


@pytest.mark.parametrize(
    ("fallback", "name"),
    [
        (fallback, name)
        for fallback in METHODS
        if fallback != "sore"  # it would take much longer
        for name in (("deep", "attributes", "wide") if fallback in PARTIAL else HARD)
    ],
)
def test_hard_pages(fallback: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that break extractors pass through the same parser as all others."""
    if METHODS[fallback].module:
        pytest.importorskip(METHODS[fallback].module)
    monkeypatch.setattr(recover, "MAX_NODES", recover.MAX_NODES // 10)
    result = run(HARD[name], fallback=fallback)
    assert result.source == f"fallback:{fallback}"
    assert ("x" if name == "too deep to recover" else "sandcastle") in forms(result)[2]


@pytest.mark.parametrize("fallback", ["trafilatura", "html"])
def test_a_page_of_many_elements_is_cut(fallback: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trafilatura takes quadratic time in elements, so it only gets the first ones. The result is marked as
    truncated."""
    monkeypatch.setattr(methods, "MAX_ELEMENTS", 100)
    html = "<html><body><div>" + "".join(f"<p>{SENTENCE}w{i}.</p>" for i in range(200)) + "</div>end</body></html>"
    result = run(html, fallback=fallback)
    assert result.truncated
    *_, text = forms(result)
    assert "w96." in text
    assert "w97." not in text
    assert "end" not in text


@pytest.mark.parametrize("fallback", ["trafilatura", "html"])
def test_a_page_that_takes_too_much_memory_keeps_its_first_part(fallback: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = methods.parse

    def limited(text: str) -> HtmlElement:
        if len(text) > FIRST_PART:
            raise MemoryError
        return parse(text)

    monkeypatch.setattr(methods, "parse", limited)
    result = run(PAGE + " " * FIRST_PART, fallback=fallback)

    assert result.source == f"fallback:{fallback}"
    assert result.truncated
    assert SENTENCE.strip() in (result.text or "")
    assert result.error == "no main block"


def test_a_callable_that_runs_out_of_memory_is_called_once() -> None:
    """It is the user's code, so it only gets whole documents."""
    sizes: list[int] = []

    def hungry(html: str, url: str) -> str:
        sizes.append(len(html))
        raise MemoryError

    assert run("x" * 2 * FIRST_PART, fallback=hungry).source == "fallback:empty"
    assert sizes == [2 * FIRST_PART]
