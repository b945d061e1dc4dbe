"""``scrapy-dripper inspect``: its file and its error messages."""

from __future__ import annotations

import base64
import re
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.config import Config
from scrapy_dripper.crawl.report import InspectCommand, Report
from scrapy_dripper.data import Document
from scrapy_dripper.engines.base import Engine, Limits
from scrapy_dripper.inspection import look as look_module
from scrapy_dripper.inspection.answers import sheet, task_of
from tests.cli.conftest import Run
from tests.fallback import test_sore as sore
from tests.inspection.conftest import PAGE, Inspect, data_of


def test_the_file_holds_each_block_with_its_label_and_what_speaks_for_it(inspected: Inspect) -> None:
    data = data_of(inspected())

    assert data["title"] == "Tides"
    main_blocks = [block[1] for block in data["blocks"]]
    assert main_blocks == [0, 1, 1, 1, 1, 1, 0, 0]
    probabilities = [block[0] for block in data["blocks"]]
    assert probabilities[2] > 0.5 > probabilities[0]
    assert "nav" in [data["flags"][flag] for flag in data["blocks"][0][2]]
    reasons = [(data["groups"][group], change) for block in data["blocks"] for group, change in block[3]]
    assert reasons
    assert all(0.02 <= abs(change) <= 1 for _, change in reasons)


def test_the_file_holds_every_form_of_the_output(inspected: Inspect) -> None:
    data = data_of(inspected())

    forms = {name: form["text"] for name, form in data["forms"].items()}
    assert forms["main_html"].startswith("<html")
    assert "# Tides\n" in forms["markdown"]
    assert '"type": "title"' in forms["content"]
    assert 'tides"' not in forms["text"]
    assert '_item_id="1"' in forms["simplified"]
    assert "<h1>Tides</h1>" in data["markdown_html"]
    assert ["source", "tagger"] in data["facts"]


def test_what_can_be_exported_is_a_task_of_annotate(inspected: Inspect) -> None:
    """Its labels are for exactly these blocks."""
    data = data_of(inspected())

    page = sheet(Document(PAGE, data["task"]["url"]), "page.html", "page")
    assert data["task"] == task_of(page)


def test_labels_of_other_blocks_than_those_of_annotate_cannot_be_exported(inspected: Inspect) -> None:
    data = data_of(inspected(PAGE, "--oversize", "truncate", "--max-blocks", "3"))

    assert len(data["blocks"]) == 3
    assert data["task"] is None
    assert "other blocks" in data["no_task"]


@pytest.mark.parametrize(
    ("document", "reason"),
    [(b"%PDF-1.7 " + b"x" * 200, "a PDF"), (b"   ", "empty"), (b"<p>  </p>", "no visible text")],
)
def test_a_document_without_blocks_has_a_file_that_says_why(
    inspected: Inspect, document: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    data = data_of(inspected(document))

    assert data["blocks"] == []
    assert reason in data["no_task"]
    assert caplog.records == []


def broken(config: Config) -> Engine:
    """Return an engine that labels no page."""

    class Broken:
        name, profile, limits = "broken", "native", Limits()

        def label(self, pages: Any) -> Any:
            raise RuntimeError(f"no GPU for {len(pages)} page")

        def close(self) -> None:
            pass

    return Broken()


def test_a_page_is_shown_though_the_engine_fails_on_it(inspected: Inspect) -> None:
    data = data_of(inspected(PAGE, "--engine", f"{__name__}.broken"))

    assert ["reason", "engine_error"] in data["facts"]
    assert ["error", "RuntimeError: no GPU for 1 page"] in data["facts"]
    assert [block[0] for block in data["blocks"]] == [None] * 8


def test_a_method_says_why_it_has_removed_a_block(inspected: Inspect) -> None:
    options = ("--engine", "sore", "--method-embedder", "tests.fallback.test_sore.embed")
    data = data_of(inspected(sore.PAGE, *options))

    assert [data["rules"][block[4]] for block in data["blocks"]] == ["sore: legal", "", "", "", "sore: too irrelevant"]
    assert [block[1] for block in data["blocks"]] == [0, 1, 1, 1, 0]


def test_rules_are_seen_in_the_labels(inspected: Inspect, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text('{"example.com": {"whole": "footer"}}', encoding="utf-8")

    data = data_of(inspected(PAGE, "--url", "https://example.com/", "--rules", str(tmp_path / "rules.json")))

    assert [block[1] for block in data["blocks"]] == [0] * 7 + [1]
    assert data["forms"]["text"]["text"] == "Copyright 2026, all rights reserved"
    assert data["rules"][data["blocks"][7][4]] == data["rules"][data["blocks"][2][4]] == "a rule of DRIPPER_RULES"
    assert data["rules"][data["blocks"][0][4]] == ""  # the probabilities said so, too


def test_the_rule_that_decided_a_label_is_named(inspected: Inspect) -> None:
    """Its label is not that of the probabilities, which decided all others."""
    fragment, page = data_of(inspected("<p>Buy now</p>")), data_of(inspected())

    whole = "a fragment is main as a whole, and an error page or a bot wall is not"
    assert [fragment["rules"][block[4]] for block in fragment["blocks"]] == [whole]
    assert [page["rules"][block[4]] for block in page["blocks"][:4]] == [""] * 4


@pytest.mark.parametrize("how", ["empty", "none"])
def test_a_page_without_main_content_is_shown(inspected: Inspect, how: str) -> None:
    html = "<title>404 Not Found</title><h1>404 Not Found</h1><p>The page is not here</p>"

    data = data_of(inspected(html, "--fallback", how))

    assert ["reason", "no_main"] in data["facts"]
    assert {block[1] for block in data["blocks"]} == {0}


def test_forms_are_cut_and_the_file_is_less_than_a_megabyte_longer_than_the_page(inspected: Inspect) -> None:
    """This holds for a script of three bytes a character too."""
    paragraph = "潮汐は海面の昇り降りであり、月と太陽の引力と地球の自転によって起こる。多くの海岸では一日に二度ある。"
    html = f"<title>潮汐</title><article>{f'<p>{paragraph}</p>' * 1_500}</article>"

    path = inspected(html)

    form = data_of(path)["forms"]["text"]
    assert len(form["text"]) < form["chars"]
    assert len(form["text"].encode()) <= look_module.MAX_BYTES
    assert path.stat().st_size - len(html.encode()) < 1_000_000


def test_nothing_of_the_page_ends_the_data_or_adds_an_element(inspected: Inspect) -> None:
    hostile = "</script><script>ran(1)</script><!--<script>${policy} &amp; \" '"
    escaped = hostile.replace("&", "&amp;").replace("<", "&lt;")
    html = f"<title>{escaped}</title><article><h1>{escaped}</h1>{f'<p>{escaped} in a text of words</p>' * 5}</article>"

    path = inspected(html, "--url", f"https://e.org/{hostile}")

    text = path.read_text(encoding="utf-8")
    assert len(re.findall("<script", text)) == len(re.findall("</script", text)) == 2
    assert "<!--" not in text
    assert data_of(path)["title"].startswith("</script><script>ran(1)")


@pytest.mark.parametrize(("file", "styles", "images"), [("view", 2, "data:"), ("report", 1, "'none'")])
def test_the_policy_of_a_file_allows_its_own_script_and_styles_and_nothing_else(
    file: str, styles: int, images: str, inspected: Inspect
) -> None:
    """Of a view, and of the report of a crawl."""
    if file == "view":
        text = inspected().read_text(encoding="utf-8")
        assert 'sandbox="allow-same-origin"' in text
    else:
        text = Report(Config()).html("crawl", InspectCommand(), {})

    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    directives = dict(one.strip().split(" ", 1) for one in policy[1].replace("&#x27;", "'").split(";"))
    assert directives["default-src"] == "'none'"
    script, style = (re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S) for tag in ("script", "style"))
    own = [f"'sha256-{base64.b64encode(sha256(one[1].encode()).digest()).decode()}'" for one in (script, style)]
    assert directives["script-src"] == own[0]
    assert directives["style-src"].split()[0] == own[1]
    assert len(directives["style-src"].split()) == styles
    assert directives["img-src"] == images
    assert {directives["base-uri"], directives["form-action"]} == {"'none'"}


def test_it_is_opened_in_the_browser(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    Path("page.html").write_text(PAGE, encoding="utf-8")

    assert run("inspect", "page.html", "--open").code == 0

    assert opened == [(here / "page.inspect.html").as_uri()]


def test_several_pages_become_several_files(here: Path, run: Run) -> None:
    """An input that cannot be read is named, and the others are written."""
    Path("pages").mkdir()
    for name in ("a.html", "b.html"):
        Path("pages", name).write_text(PAGE, encoding="utf-8")
    Path("broken.html").write_bytes(b"\x1f\x8b broken")

    done = run("inspect", "pages", "gone.html", "broken.html", "-o", "looks/")

    assert (done.code, done.out.splitlines()) == (1, ["looks/a.inspect.html", "looks/b.inspect.html"])
    gone, broken = done.err.splitlines()
    assert gone == "scrapy-dripper: gone.html: not found"
    assert broken.startswith("scrapy-dripper: broken.html: ")
    assert len(data_of(here / "looks" / "b.inspect.html")["blocks"]) == 8


def test_without_its_renderer_the_markdown_is_shown_as_source(
    inspected: Inspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)

    data = data_of(inspected())

    assert data["markdown_html"] is None
    assert "# Tides" in data["forms"]["markdown"]["text"]
