"""The inspector in a real browser: clicks, keys and the slider, and the limits of a hostile page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.crawl.report import InspectCommand, Row, table_file
from scrapy_dripper.data import Extraction, FallbackReason
from tests.inspection.browser import AXE, WHY_NOT, Tab, launched
from tests.inspection.conftest import PAGE, Inspect

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

Open = Callable[..., Tab]
READY = "html[data-ready]"
MODEL = [2, 3, 4, 5, 6]
"""The blocks of PAGE that the model calls main."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


@pytest.fixture
def opened(browser: Any, inspected: Inspect) -> Iterator[Open]:
    """Open the inspector of a page."""
    contexts = []

    def open_file(html: str = PAGE, *flags: str, scheme: str = "light") -> Tab:
        path = inspected(html, *flags)
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": 1400, "height": 850}))
        return Tab(contexts[-1].new_page(), path, READY)

    yield open_file
    for context in contexts:
        context.close()


def test_blocks_are_tinted_by_their_probability(opened: Open) -> None:
    tab = opened()

    def alpha(number: int) -> float:
        colour = tab.block(number).evaluate("node => getComputedStyle(node).backgroundColor")
        return float(colour.rpartition(",")[2].strip(" )")) if colour.startswith("rgba") else 1.0

    tints = {number: alpha(number) for number in range(1, 9)}
    probabilities = [block[0] for block in data_of_tab(tab)["blocks"]]
    assert max(tints, key=lambda i: tints[i]) in {i for i, p in enumerate(probabilities, 1) if p >= 0.9}
    assert tints[3] > 0.2 > 0.05 > tints[8]
    assert tab.labels() == MODEL
    assert tab.wrong == []


def data_of_tab(tab: Tab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tab.page.text_content("#data"))
    return found


def test_pointing_at_a_block_says_what_is_known_of_it(opened: Open) -> None:
    tab = opened()
    data = data_of_tab(tab)

    tab.block(1).hover()
    card = tab.page.inner_text("#card")

    probability, _, flags, reasons, _ = data["blocks"][0]
    assert card.startswith("block 1\nother\n")
    assert f"{probability:.2f}" in card
    assert all(data["flags"][flag] in card for flag in flags)
    assert all(data["groups"][group] in card for group, _ in reasons)
    assert "Home About us" in card
    tab.block(3).hover()
    assert tab.page.inner_text("#card").startswith("block 3\nmain\n")


def test_pointing_at_a_block_says_which_rule_decided_it(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('{"*": {"keep": "footer"}}', encoding="utf-8")
    tab = opened(PAGE, "--rules", str(tmp_path / "rules.json"))

    tab.block(8).hover()
    assert "decided by a rule: a rule of DRIPPER_RULES" in tab.page.inner_text("#card")
    tab.block(3).hover()
    assert "decided by a rule" not in tab.page.inner_text("#card")
    tab.block(8).click()
    assert "decided by a rule" not in tab.page.inner_text("#card")


def test_a_click_flips_a_label_and_undo_takes_it_back(opened: Open) -> None:
    tab = opened()

    tab.block(8).click()
    assert tab.labels() == [*MODEL, 8]
    tab.page.locator("ol.blocks label").nth(2).click()
    assert tab.labels() == [2, 4, 5, 6, 8]
    assert "2 changed" in tab.page.inner_text("#count")
    assert tab.block(8).get_attribute("data-dripper-label") == "main"

    tab.page.click("#undo")
    assert tab.labels() == [*MODEL, 8]
    tab.page.keyboard.press("u")
    assert tab.labels() == MODEL
    assert tab.page.is_disabled("#undo")


def test_the_slider_labels_all_that_was_not_labelled_by_hand(opened: Open) -> None:
    tab = opened()
    probabilities = [block[0] for block in data_of_tab(tab)["blocks"]]
    tab.block(8).click()

    for value in ("30", "60", "97"):
        tab.page.fill("#threshold", value)

    assert tab.labels() == [*(i for i, p in enumerate(probabilities, 1) if p >= 0.97 and i != 8), 8]
    assert tab.page.inner_text("#shown") == "0.97"
    tab.page.click("#undo")
    assert tab.labels() == [*MODEL, 8]
    assert tab.page.inner_text("#shown") == "model"
    tab.page.click("#reset")
    assert tab.labels() == MODEL


def test_keys_go_from_one_uncertain_block_to_the_next(opened: Open) -> None:
    tab = opened()
    tab.page.evaluate("doubts.splice(0, n, 3, 6)")  # whatever the model is sure of
    uncertain = [4, 7]

    def here() -> int:
        return int(tab.page.get_attribute("#card", "data-block"))

    visited = []
    for _ in uncertain:
        tab.page.keyboard.press("j")
        visited.append(here())
    assert visited == uncertain
    tab.page.keyboard.press("n")
    tab.page.keyboard.press("k")
    assert here() == uncertain[-1]
    before = tab.labels()
    tab.page.keyboard.press("x")
    assert set(tab.labels()) ^ set(before) == {here()}
    tab.page.keyboard.press("o")
    assert uncertain[-1] not in tab.labels()
    tab.page.keyboard.press("m")
    assert uncertain[-1] in tab.labels()
    tab.page.keyboard.press("s")
    assert uncertain[-1] in tab.labels()


def test_keys_work_in_the_page_and_can_be_switched_off(opened: Open) -> None:
    tab = opened()
    tab.block(8).click()
    tab.page.keyboard.press("u")
    assert tab.labels() == MODEL

    tab.page.keyboard.press("?")
    assert tab.page.is_visible("#overlay")
    listed = tab.page.locator("#keys kbd").all_inner_texts()
    assert set("jknpxmosue?") <= set(listed)
    tab.page.uncheck("#listen")
    tab.page.keyboard.press("Escape")
    assert not tab.page.is_visible("#overlay")
    tab.page.keyboard.press("x")
    assert tab.labels() == MODEL


def test_exported_labels_are_read_by_annotate_and_make_train(opened: Open, tmp_path: Path) -> None:
    """From a click to the folder that `make train EXTRA=...` reads."""
    pytest.importorskip("scrapy_dripper_lab")
    from scrapy_dripper_lab.sets import load_pages

    tab = opened()
    tab.block(3).click()
    tab.block(7).click()
    with tab.page.expect_download() as download:
        tab.page.keyboard.press("e")
    answers = tmp_path / "answers"
    answers.mkdir()
    assert download.value.suggested_filename == "page.answer.json"  # to lie beside page.html
    download.value.save_as(answers / download.value.suggested_filename)

    labels, folder = tmp_path / "labels.jsonl", tmp_path / "more-pages"
    assert main(["annotate", "--read-answers", str(answers), "-o", str(labels)]) == 0
    assert main(["annotate", str(tmp_path / "page.html"), "-o", str(labels), "--export", str(folder)]) == 0

    record = json.loads(labels.read_text(encoding="utf-8"))
    assert (record["labels"], record["who"]) == ([2, 4, 5, 6, 7], "human")
    (sample,) = load_pages(folder)
    assert "spring tides" in sample.truth
    assert "gravitational" not in sample.truth
    assert "Share this page" in sample.truth
    assert sample.sure == 1.0


def test_labels_set_by_hand_are_there_again_after_a_reload(opened: Open) -> None:
    tab = opened()
    tab.block(7).click()

    tab.page.reload()
    tab.page.wait_for_selector(READY, state="attached")

    assert tab.labels() == [*MODEL, 7]


def test_every_form_has_a_tab(opened: Open) -> None:
    tab = opened()
    said = {
        "text": "spring tides",
        "content": '"type": "title"',
        "simplified": "_item_id",
    }
    for name, words in said.items():
        tab.page.click(f"#tab-{name}")
        assert words in tab.page.inner_text(f"#panel-{name}")
    for name in ("main_html", "markdown"):
        tab.page.click(f"#tab-{name}")
        rendered = tab.page.frame_locator(f"#panel-{name} iframe")
        assert rendered.locator("h1").inner_text() == "Tides"
        tab.page.click(f"#panel-{name} button[value=source]")
        assert "Tides" in tab.page.inner_text(f"#panel-{name} pre")
    tab.page.focus("#tab-markdown")
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.is_visible("#panel-text")
    assert tab.wrong == []


HOSTILE = """<html><head><title>&lt;img src=x onerror="parent.ran=1"&gt;</title>
<meta http-equiv=refresh content="0;url=https://e.org/"><base href="https://e.org/" target=_top>
<link rel=stylesheet href="https://e.org/s.css"><script>parent.ran = top.ran = 2</script>
<style>@import "https://e.org/i.css"; body { background: url(https://e.org/b.png) }
@font-face { font-family: x; src: url(https://e.org/f.woff) } p { font-family: x }
p { background: \\75rl(https://e.org/c.png) }</style></head>
<body onload="top.ran=3"><img src=x onerror="top.ran=4">
<svg onload="top.ran=5"><a href="javascript:top.ran=6"><text>x</text></a></svg>
<iframe src="https://e.org/" srcdoc="<script>top.ran=7</script>"></iframe>
<form action="https://e.org/" target=_top><button formaction="javascript:top.ran=8">Go there now</button></form>
<article><h1>&lt;/script&gt;&lt;script&gt;ran=9&lt;/script&gt;</h1>
<p><a id=l href="https://e.org/" target=_top ping="https://e.org/p">Leave by this link of a few words</a></p>
<p><img name=body src=x alt=a><img name=querySelectorAll src=y alt=b>
&lt;img src=x onerror="ran=10"&gt; is a text in a paragraph that goes on for a while, and says nothing at all.</p>
<p><a id=j href="javascript:top.ran=11">Run by this link</a> <code>`&lt;img src=x onerror=ran=12&gt;`</code></p>
<p>&lt;iframe srcdoc="&lt;script&gt;top.ran=13&lt;/script&gt;"&gt;&lt;/iframe&gt; is another text.</p></article>
<input name=querySelectorAll><img name=documentElement><img name=body><form name=addEventListener></form>
</body></html>"""


def test_a_hostile_page_runs_nothing_loads_nothing_and_leads_nowhere(opened: Open) -> None:
    tab = opened(HOSTILE, "--url", 'https://e.org/"><script>ran=14</script>')
    address = tab.page.url

    for name in ("l", "j"):
        tab.inside.locator(f"#{name}").click(button="middle")
        tab.inside.locator(f"#{name}").click()
        tab.inside.locator(f"#{name}").focus()
        tab.page.keyboard.press("Enter")
    tab.inside.locator("button").click(force=True)
    for name in ("main_html", "markdown", "text", "content", "simplified", "blocks"):
        tab.page.click(f"#tab-{name}")
    for name in ("main_html", "markdown"):
        tab.page.click(f"#tab-{name}")
        shown = tab.page.frame_locator(f"#panel-{name} iframe")
        assert "says nothing at all" in shown.locator("body").inner_text()
        for link in shown.locator("a").all():
            link.click()
    tab.page.wait_for_timeout(300)

    assert tab.page.evaluate("[window.ran, frame.contentWindow.ran]") == [None, None]
    assert tab.page.url == address
    assert tab.page.evaluate("frame.contentDocument.URL") == "about:srcdoc"
    assert [said for said in tab.wrong if "e.org/c.png" not in said] == []
    # The policy alone stands in the way of an address that only a style sheet's escapes hide.
    refused = [said for said in tab.wrong if "c.png" in said and not said.startswith("request: ")]
    assert all("violates the following Content Security Policy" in said for said in refused)
    assert len(refused) >= sum(said.startswith("request: ") for said in tab.wrong)
    assert tab.page.evaluate("document.querySelectorAll('script').length") == 2
    assert tab.page.inner_text("#title").startswith("</script><script>")
    assert tab.page.locator("ol.blocks img, ol.blocks script, #card img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: cd tests/inspection/axe and say npm ci")
def test_axe_finds_nothing_serious(opened: Open, scheme: str) -> None:
    tab = opened(PAGE, scheme=scheme)
    tab.page.keyboard.press("j")
    for name in ("main_html", "content", "blocks"):
        tab.page.click(f"#tab-{name}")
        assert tab.violations() == []
    tab.page.keyboard.press("?")
    assert tab.violations() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_of_a_crawl_is_filtered_and_copies_commands(browser: Any, tmp_path: Path, scheme: str) -> None:
    hostile = "</td></table><img src=https://e.org/i.png onerror=ran(1)><script>ran(2)</script>"
    rows = [
        Row.of(Extraction(f"https://{host}/{number}?a='", hostile, "", "", hostile, hostile, fallback_reason=reason))
        for number in range(3)
        for host, reason in (("a.example", None), ("b.example", FallbackReason.NO_MAIN))
    ]
    path = tmp_path / "report.html"
    path.write_text(
        table_file(hostile, hostile, rows, {rows[0]: "report.pages/1.inspect.html"}, InspectCommand()), "utf-8"
    )
    context = browser.new_context(color_scheme=scheme, permissions=["clipboard-read", "clipboard-write"])
    tab = Tab(context.new_page(), path, "#filters:not([hidden])")

    def shown() -> list[str]:
        links = tab.page.locator("tbody tr:visible td:first-child a").all()
        return [link.get_attribute("href") for link in links]

    assert (len(shown()), tab.page.inner_text("#shown")) == (6, "6 of 6 pages")
    assert tab.page.locator("#host option").all_inner_texts() == ["all", "b.example (3)", "a.example (3)"]
    tab.page.select_option("#host", "a.example")
    assert shown() == [row.url for row in rows[::2]]
    assert tab.page.locator("tbody tr:visible >> text=look").get_attribute("href") == "report.pages/1.inspect.html"
    tab.page.select_option("#reason", "no_main")
    assert (shown(), tab.page.inner_text("#shown")) == ([], "0 of 6 pages")
    tab.page.select_option("#host", "*")
    tab.page.locator("tbody tr:visible button").first.click()
    tab.page.wait_for_selector("#copied:not(:empty)")
    words = shlex.split(tab.page.evaluate("navigator.clipboard.readText()"))
    assert words == [*InspectCommand().words.split(), "https://b.example/0?a='"]
    if AXE.is_file():
        assert tab.violations() == []
    assert tab.wrong == []
    context.close()
