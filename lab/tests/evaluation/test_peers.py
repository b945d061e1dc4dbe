"""Other extractors, called with their defaults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper_lab.evaluation import peers
from scrapy_dripper_lab.evaluation.peers import PEERS, Peer, check_peers, installed_peers

SENTENCE = "The ferry to the island leaves the harbour at noon, and it comes back when the tide allows it to."
REST = (
    "What they call the caf\u00e9 is the bar on board of it, which is open all the way.",
    "Nobody knows who built the pier, but it was there before the railway came, and it will be there after it.",
    "The captain has been on this line for thirty years, and he says that he has not seen the same sea twice.",
)
PARAGRAPHS = "".join(f"<p>{SENTENCE} {text} {SENTENCE} {text}</p>" for text in REST)
PAGE = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Ferries</title></head><body>
<nav><a href="/">Home</a> <a href="/shop">Shop</a></nav>
<article><h1>Ferries to the island</h1>{PARAGRAPHS}</article>
<footer><p>Copyright 2026</p><p><a href="/terms">Terms</a></p></footer></body></html>""".encode()


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_returns_the_text_of_a_page(name: str) -> None:
    """Each adapter fits its library, if that is installed."""
    if name not in installed_peers([name]):
        pytest.skip(f"{name} is not installed")

    text = PEERS[name].load()(PAGE)
    if name == "justext-study":
        assert text == "", "the study knows the stop words of German only"
        return
    assert SENTENCE in " ".join(text.split())
    assert ("cafe" if name == "newspaper4k" else "caf\u00e9") in text, "newspaper4k writes ASCII letters"
    assert "<p>" not in text
    if name.endswith("-html"):
        assert "# Ferries" in text or name == "readability-html", "Markdown, as of HTML"


def test_section_4_2_the_settings_of_the_study_of_business_pages() -> None:
    """Its jusText reads German; its Trafilatura leaves out tables."""
    pytest.importorskip("justext")
    german = (
        "Wir bauen seit vielen Jahren die Fahrräder, die in der Stadt und auf dem Land gefahren werden, und das so, "
    )
    page = f"<html><body><p>{german * 3}</p><p>Das ist so</p><table><tr><td>Preis<td>9</table></body></html>"
    assert PEERS["justext-study"].load()(page.encode()) == (german * 3).strip()
    assert "Preis" not in PEERS["trafilatura-study"].load()(page.encode())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["html2text", "readability"], "pip install readability-lxml"),  # a peer and its package can differ in name
        (["trafilatura-html"], "pip install trafilatura no_such_module"),
        (["trafilatra"], r"trafilatura, resiliparse, .*readability, .*got 'trafilatra'"),
    ],
)
def test_what_is_missing_is_named_before_the_run(
    names: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the packages to install, such as that for Markdown of HTML, or with the known names."""
    monkeypatch.setitem(peers.PEERS, "readability", Peer("readability-lxml", "no_such_module", lambda m, html: ""))
    monkeypatch.setitem(peers.PEERS, "trafilatura-html", replace(PEERS["trafilatura-html"], also="no_such_module"))
    with pytest.raises(UsageError, match=message):
        check_peers(names)
