"""Other extractors to compare with. Each takes the bytes of a page and returns text.

The methods of this package are measured as users get them, except for Trafilatura, which has its own defaults.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module, metadata, util
from types import ModuleType

from scrapy_dripper.checks import METHODS
from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.config import Config, MethodOptions
from scrapy_dripper.fallback import method
from scrapy_dripper.page.charset import decode_html


@dataclass(frozen=True, slots=True)
class Peer:
    """An extractor: its distribution, and how to call it with its default options."""

    distribution: str
    module: str
    call: Callable[[ModuleType, bytes], str | None]
    also: str = ""
    """Another distribution and module that the call needs."""

    def load(self) -> Callable[[bytes], str]:
        """Return the extraction function."""
        module = import_module(self.module)
        return lambda html: self.call(module, html) or ""


def _method(name: str, options: MethodOptions | None = None) -> Peer:
    """Return one of our methods."""
    config, module = Config(methods=options or MethodOptions()), METHODS[name].module
    return Peer(
        {"": "scrapy-dripper", "readability": "readability-lxml"}.get(module, module),
        module or "scrapy_dripper.fallback",
        lambda _, html: method(name)(decode_html(html), "", config, len(html)).text,
    )


def canonical_markdown(html: str) -> str:
    """Return the Markdown that two papers compare (Dripper, 4.2.2): html2text's, without links, images and wrapping."""
    from html2text import HTML2Text  # of an extra

    writer = HTML2Text(bodywidth=0)
    writer.ignore_links = writer.ignore_images = True
    return str(writer.handle(html)) if html.strip() else ""


def _with_markdown(html_of: Callable[[ModuleType, bytes], str | None]) -> Callable[[ModuleType, bytes], str]:
    return lambda module, html: canonical_markdown(html_of(module, html) or "")


def _newspaper(module: ModuleType, html: bytes) -> str:
    article = module.Article("http://localhost/", fetch_images=False)
    article.download(input_html=decode_html(html))
    article.parse()
    return str(article.article_html)


def _justext_of_the_study(module: ModuleType, html: bytes) -> str:
    found = module.justext(html, module.get_stoplist("German"), max_link_density=0.2, stopwords_low=0.3)
    return "\n".join(one.text for one in found if not one.is_boilerplate and one.words_count >= 5)


PEERS: dict[str, Peer] = {
    "trafilatura": Peer("trafilatura", "trafilatura", lambda m, html: m.extract(html)),
    "resiliparse": Peer(
        "resiliparse",
        "resiliparse.extract.html2text",
        lambda m, html: m.extract_plain_text(decode_html(html), main_content=True),
    ),
    # This is better than the defaults if the true texts leave out readers' comments.
    "trafilatura-no-comments": Peer(
        "trafilatura", "trafilatura", lambda m, html: m.extract(html, include_comments=False)
    ),
    "boilerpy3": Peer(
        "boilerpy3",
        "boilerpy3.extractors",
        lambda m, html: m.DefaultExtractor(raise_on_failure=False).get_content(decode_html(html)),
    ),
    "html2text": Peer("html2text", "html2text", _with_markdown(lambda _, html: decode_html(html))),
    "r4-paper": _method("r4", MethodOptions(form="paper")),
    **{name: _method(name) for name in METHODS if name != "trafilatura"},
    # Extractors that return HTML, in the mode HTML+Markdown of the Dripper paper (table 2).
    "magic-html": Peer(
        "magic-html",
        "magic_html",
        _with_markdown(lambda m, html: m.GeneralExtractor().extract(decode_html(html), base_url="")["html"]),
        also="html2text",
    ),
    "readability-html": Peer(
        "readability-lxml",
        "readability",
        _with_markdown(lambda m, html: m.Document(decode_html(html)).summary(html_partial=True)),
        also="html2text",
    ),
    "trafilatura-html": Peer(
        "trafilatura",
        "trafilatura",
        _with_markdown(lambda m, html: m.extract(html, output_format="html")),
        also="html2text",
    ),
    "newspaper4k": Peer("newspaper4k", "newspaper", _with_markdown(_newspaper), also="html2text"),
    "rs-trafilatura": Peer(
        "rs-trafilatura",
        "rs_trafilatura",
        lambda m, html: m.extract_bytes(html, output_markdown=True).content_markdown,
    ),
    # The settings of Yadav's study (table 1).
    "trafilatura-study": Peer(
        "trafilatura",
        "trafilatura",
        lambda m, html: m.extract(html, include_comments=False, include_tables=False, favor_precision=True),
    ),
    "justext-study": Peer("justext", "justext", _justext_of_the_study),
}


def installed_peers(names: Sequence[str]) -> dict[str, str]:
    """Return the versions of those of the named peers that are installed."""
    versions: dict[str, str] = {}
    for name in names:
        with suppress(UsageError):
            versions |= check_peers([name])
    return versions


def check_peers(names: list[str]) -> dict[str, str]:
    """Return the versions of peers by name. Raise :exc:`UsageError` if one is unknown or not installed."""
    versions = {}
    for name in names:
        if name not in PEERS:
            raise UsageError(f"expected peers from {', '.join(PEERS)} (got {name!r})")
        peer = PEERS[name]
        try:
            if any(util.find_spec(one.split(".")[0]) is None for one in (peer.module, peer.also) if one):
                raise metadata.PackageNotFoundError
            versions[name] = metadata.version(peer.distribution)
        except metadata.PackageNotFoundError:
            packages = " ".join(filter(None, (peer.distribution, peer.also)))
            raise UsageError(
                f"the peer {name} is not installed: run 'pip install {packages}', or leave it out of --peers"
            ) from None
    return versions


def quiet() -> None:
    """Silence the peers' logs, because errors are counted anyway."""
    for name in {peer.module.split(".")[0] for peer in PEERS.values()} - {"scrapy_dripper"}:
        logging.getLogger(name).setLevel(logging.CRITICAL)
