"""Main-HTML is safe to display: nothing in it runs or loads resources."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.checks import METHODS
from scrapy_dripper.config import Config
from scrapy_dripper.data import Extraction, Metadata
from scrapy_dripper.engines.base import Engine
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.output.content_json import to_json
from scrapy_dripper.structures.items import Link, Paragraph, Text
from scrapy_dripper.testing import FakeEngine
from tests.crawl.crawling import Site
from tests.security.checks import Silent, dangers, elements
from tests.security.chromium import CHROMIUM, show
from tests.security.rendering import PYTHON
from tests.security.vectors import VECTORS, page

rendered = PYTHON["markdown-it-py"]
PARSING = [
    name for name, method in METHODS.items() if name != "sore" and (not method.module or find_spec(method.module))
]
WAYS = ["all main", *(f"fallback {name}" for name in PARSING)]
LIVE = [
    "<script>RUN</script>",
    "<p onclick=RUN>words</p>",
    "<a href=javascript:RUN>words</a>",
    "<svg onload=RUN></svg>",
    "<script src=LOAD></script>",
    "<math><mi>x</mi><script type=math/tex><img src=none.png onerror=RUN></script></math>",
]
"""Vectors that certainly work in a browser of today."""


@cache
def extracted(way: str) -> list[Extraction]:
    """Return the extraction of each vector."""
    engine: Engine = FakeEngine() if way == "all main" else Silent()
    config = Config() if way == "all main" else Config(fallback=way.split()[1])
    return Extractor(config, engine=engine).extract([page(i) for i in range(len(VECTORS))])


@pytest.mark.parametrize("way", WAYS)
def test_main_html_holds_nothing_that_runs(way: str) -> None:
    """This holds for the model and the fallbacks, by two parsers; and the article is still there."""
    found = extracted(way)

    assert {i: bad for i, one in enumerate(found) if (bad := dangers(one.main_html or ""))} == {}
    if way != "fallback trafilatura":  # what releases of libxml2 before 2.14 copy as it is (CVE-2018-8048)
        assert [one.main_html for one in found if re.search(r"<!--|&amp;\{", one.main_html or "")] == []
    if way.split()[-1] in ("r4", "justext", "readability"):
        return  # they leave out so short an article
    lost = [VECTORS[i] for i, one in enumerate(found) if "Words before it" not in (one.main_html or "")]
    assert lost == []


@pytest.mark.parametrize("links", ["keep", "citations", "drop"])
def test_tables_in_html_within_markdown(links: str) -> None:
    """Complex tables are written as HTML with addresses and text of the page."""
    cells = "".join(f"<tr><td colspan=2>{vector}</td></tr>" for vector in VECTORS if "<plaintext" not in vector)
    cells = re.sub("RUN|LOAD", "/x", cells)
    for table in (f"<table>{cells}</table>", "<table><tr><td rowspan=2><a href='java&#10;script:x()'>a</a><td>"
                  "&lt;img src=x onerror=x()><td>$&lt;img src=x onerror=x()>$<tr><td><p>b<p>c</table>"):  # fmt: skip
        (found,) = Extractor(Config(markdown={"links": links}), engine=FakeEngine()).extract([f"<p>Words.</p>{table}"])
        assert dangers(rendered(found.markdown or "")) == []


def test_no_element_hides_a_property_of_the_document() -> None:
    """Scripts of a page that shows Main-HTML still find ``document.cookie`` and ``form.action``, not an element."""
    names = ["cookie", "body", "getElementById", "forms"]
    body = "".join(
        f"<form name={n} id=f{n}><p>words</p><input name={n} id={n} value=x><button id={n}>words</button>"
        f"<img name={n} id={n} src=x.png></form><a name={n}>words</a>"
        for n in names
    )
    (found,) = Extractor(engine=FakeEngine()).extract([f"<h1>Heading</h1>{body}"])
    hidden = [(tag, attributes) for tag, attributes in elements(found.main_html or "")
              if tag != "a" and {attributes.get("name"), attributes.get("id")} & set(names)]  # fmt: skip

    assert hidden == []
    assert '<a name="cookie">' in (found.main_html or "")


@given(st.text(st.sampled_from("<>/!-\"'=&;{}`$ \t\n\0abx:scriptjavonermgd#\\[]()"), max_size=80))
def test_no_string_of_markup_makes_a_script(text: str) -> None:
    """Pieces of tags, comments and addresses come in any order."""
    html = f"<p>Words</p>{text}<p>words</p><img src=x onerror='{text}'><a title='{text}' href='{text}'>words</a>"
    (found,) = Extractor(Config(fallback="empty"), engine=FakeEngine()).extract([html])

    assert dangers(found.main_html or "") == []
    assert dangers(rendered(found.markdown or "")) == []


CONTROLS = "".join(map(chr, [*range(1, 9), 11, *range(14, 32), *range(0x7F, 0xA0)]))


def hostile_callable(html: str, url: str) -> str:
    return html + "".join(f"&#{ord(character)};" for character in CONTROLS)


def hostile_extraction(html: str, url: str) -> Extraction:
    title, text, url = (f"{name}{CONTROLS}" for name in ("title", "text", "/url"))
    content = to_json((Paragraph((Link(url, (Text(text),)),)),))
    return Extraction("", title, html, text, text, "mine", error=text, content=content, metadata=Metadata(title))


@pytest.mark.parametrize("fallback", [None, *PARSING, hostile_callable, hostile_extraction])
def test_no_control_character_reaches_a_terminal(fallback: Any) -> None:
    """ESC and CSI begin terminal commands; no form of the output has one, whatever its source."""
    options = {} if fallback is None else {"fallback": fallback, "limits": {"blocks": 1}}
    config = Config(content_field="content", metadata_field="about", **options)
    text = (
        f"<title>{' ' * 1_024}T{CONTROLS}</title><base href='http://x/{CONTROLS}/'>"
        + f"<meta name=author content='A{CONTROLS}'>"
        + f"<article><p>{'words ' * 200}<p title='a{CONTROLS}b'>words{CONTROLS}\x1b]0;x\x07\x9b31m&#155;2J&#27;"
        + f"<a href='y{CONTROLS}'>link</a><img src='i{CONTROLS}' alt='b{CONTROLS}'><pre>c{CONTROLS}</pre></article>"
    )
    (found,) = Extractor(config, engine=FakeEngine()).extract([text])

    assert found.source == (f"fallback:{getattr(fallback, '__name__', fallback)}" if fallback else FakeEngine.name)
    assert found.metadata is not None
    lists = [json.dumps(one, ensure_ascii=False) for one in (found.content or [], found.metadata.as_dict())]
    for form in (found.title, found.main_html, found.markdown, found.text, *lists):
        assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\\\\u00", form or "")
    assert not re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", found.error or "")
    assert found.title
    assert found.main_html
    assert found.markdown
    assert found.text


@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium or Chrome in the path")
def test_a_browser_runs_nothing(site: Site, tmp_path: Path) -> None:
    """The output is shown by itself and inside a page, and clicked everywhere: no script runs, only pictures load."""
    shown = [one.main_html or "" for one in extracted("all main")]
    shown += [rendered(one.markdown or "") for one in extracted("all main")]
    together = ["".join(shown[i : i + 22]) for i in range(0, len(shown), 22)]
    controls = [page(VECTORS.index(vector)).replace("ran(", "ran(5000+") for vector in LIVE]
    visit = show([*together, *controls], [*shown, *controls], site, tmp_path)

    live = {f"/load/{VECTORS.index(vector)}" for vector in LIVE if "LOAD" in vector}
    assert {id_ for id_ in visit.ran if id_ < 5_000} == set()
    assert visit.ran == {5_000 + VECTORS.index(vector) for vector in LIVE if "RUN" in vector}  # or it proves nothing
    assert {path for path in visit.asked if path.startswith("/load/")} == live
