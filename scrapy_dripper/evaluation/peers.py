"""Other extractors, to be measured beside ours: each takes the bytes of a page and returns its text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module, metadata, util
from types import ModuleType

from scrapy_dripper.page.decode import decode


class PeerError(Exception):
    """A peer is not known or not installed; the message is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One extractor: where it comes from, and how it is called with its defaults."""

    distribution: str
    module: str
    call: Callable[[ModuleType, bytes], str | None]

    def load(self) -> Callable[[bytes], str]:
        """Return the function that extracts."""
        module = import_module(self.module)
        return lambda html: self.call(module, html) or ""


def _readability(module: ModuleType, html: bytes) -> str:
    # It returns HTML only; the text is made by a library that we need anyway.
    plain = import_module("resiliparse.extract.html2text").extract_plain_text
    return str(plain(module.Document(_text(html)).summary(html_partial=True)))


def _justext(module: ModuleType, html: bytes) -> str:
    paragraphs = module.justext(_text(html), module.get_stoplist("English"))
    return "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)


def _html2text(module: ModuleType, html: bytes) -> str:
    writer = module.HTML2Text(bodywidth=0)
    writer.ignore_links = writer.ignore_images = True
    return str(writer.handle(_text(html)))


def _text(html: bytes) -> str:
    return decode(html)


PEERS: dict[str, Peer] = {
    "trafilatura": Peer("trafilatura", "trafilatura", lambda m, html: m.extract(html)),
    "readability": Peer("readability-lxml", "readability", _readability),
    "resiliparse": Peer(
        "resiliparse",
        "resiliparse.extract.html2text",
        lambda m, html: m.extract_plain_text(_text(html), main_content=True),
    ),
    # Better than the defaults where the truth leaves out what readers wrote below an article.
    "trafilatura-no-comments": Peer(
        "trafilatura", "trafilatura", lambda m, html: m.extract(html, include_comments=False)
    ),
    "justext": Peer("justext", "justext", _justext),
    "boilerpy3": Peer(
        "boilerpy3",
        "boilerpy3.extractors",
        lambda m, html: m.DefaultExtractor(raise_on_failure=False).get_content(_text(html)),
    ),
    "html2text": Peer("html2text", "html2text", _html2text),
}


def installed_peers(names: Sequence[str]) -> dict[str, str]:
    """Return the versions, by name, of those of some known peers that are installed."""
    versions: dict[str, str] = {}
    for name in names:
        with suppress(PeerError):
            versions |= check_peers([name])
    return versions


def check_peers(names: list[str]) -> dict[str, str]:
    """Return the versions of peers by name. Raise :exc:`PeerError` for one that is unknown or not installed."""
    versions = {}
    for name in names:
        if name not in PEERS:
            raise PeerError(f"expected peers from {', '.join(PEERS)} (got {name!r})")
        peer = PEERS[name]
        try:
            if util.find_spec(peer.module.split(".")[0]) is None:
                raise metadata.PackageNotFoundError
            versions[name] = metadata.version(peer.distribution)
        except metadata.PackageNotFoundError:
            raise PeerError(
                f"the peer {name} is not installed: run 'pip install {peer.distribution}', or leave it out of --peers"
            ) from None
    return versions


def quiet() -> None:
    """Let the peers not log what this command counts itself."""
    for peer in PEERS.values():
        logging.getLogger(peer.module.split(".")[0]).setLevel(logging.CRITICAL)
