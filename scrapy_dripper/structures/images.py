"""Images, videos and sounds: find their real URLs, and recognise figures and their captions.

Many pages load images lazily: ``src`` is a placeholder, and the real URL is in another attribute, in a ``<noscript>``
copy, or in a list of candidates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import cast
from urllib.parse import unquote, urlsplit

from lxml import etree

from scrapy_dripper.characters import unbroken
from scrapy_dripper.page.nodes import SHORT
from scrapy_dripper.page.tags import LONGEST_CLASS, PLAYERS
from scrapy_dripper.structures import NEAR
from scrapy_dripper.structures.items import Audio, Image, Items, Paragraph, Runs, Table, Video

Resolve = Callable[[str], str]
"""Resolves a URL relative to the page. Must not raise."""

LAZY_SOURCES = (
    "data-src", "data-lazy-src", "data-original", "data-lazy", "data-original-src", "data-litespeed-src",
    "data-orig-src", "data-actualsrc", "data-echo", "data-img-src", "data-ezsrc", "data-cfsrc", "data-ll-src",
    "data-flickity-lazyload", "data-defer-src",
)  # fmt: skip
"""Attributes in which lazy-loading scripts keep the URL."""

LAZY_SOURCE_SETS = (
    "data-srcset", "data-lazy-srcset", "data-original-set", "data-litespeed-srcset", "data-ezsrcset", "data-cfsrcset",
)  # fmt: skip
"""Attributes in which they keep a list of candidates, like ``srcset``."""

VIDEO_HOSTS = frozenset(
    "youtube.com youtube-nocookie.com youtu.be vimeo.com dailymotion.com dai.ly bilibili.com twitch.tv wistia.com "
    "wistia.net ted.com loom.com vidyard.com brightcove.net jwplatform.com jwplayer.com kaltura.com streamable.com "
    "rumble.com odysee.com v.qq.com youku.com nicovideo.jp rutube.ru tiktok.com cloudflarestream.com videopress.com "
    "panopto.com archive.org sproutvideo.com mediadelivery.net".split()
)
AUDIO_HOSTS = frozenset(
    "soundcloud.com spotify.com bandcamp.com mixcloud.com anchor.fm podbean.com buzzsprout.com libsyn.com "
    "simplecast.com megaphone.fm transistor.fm audioboom.com spreaker.com acast.com podcasts.apple.com deezer.com "
    "captivate.fm omny.fm".split()
)
"""Sites whose frames are players. Frames of other sites hold advertisements, maps and forms."""

PLAYER_TAGS = PLAYERS | {"video", "audio", "iframe"}
"""Tags that :func:`player` handles."""

LARGE = 100
"""An image whose longer side has at least this many pixels is not decoration, even if the page says so."""

FIGURE_CLASSES = frozenset({"wp-caption", "thumb", "thumbinner", "gallery-item", "gallerybox"})
"""Classes of figures in WordPress and MediaWiki."""
_CAPTION_CLASSES = frozenset({"wp-caption-text", "wp-caption-dd", "thumbcaption", "gallerytext", "gallery-caption"})
_EMOJI_CLASSES = frozenset({"emoji", "twemoji", "emojione", "joypixels", "wp-smiley", "smiley", "emoticon"})

_other_scheme = re.compile(r"(?!https?:|ftp:)[a-z][a-z0-9+.-]*:", re.I).match
_template = re.compile(r"[\[{]|\$\{|<%|%7B%7B", re.I).match
_placeholder_file = re.compile(
    r"(?:(?:blank|spacer|placeholder|lazy|lazy-?load(?:ing)?|loading|(?:pre|ajax-?)loader|transparent|dummy|1x1|1px)"
    r"(?:[-_.](?:\d+(?:x\d+)?|(?=\d*[a-f])[0-9a-f]{8,}|image|img|pixel|square|default|bg|gif))*\.(?:gif|png|svg|webp|jpe?g)"
    r"|(?:(?:space|pixel|trans|clear|empty|gr[ae]y|white|dot|null|none|loader|spinner)\d*|[a-z])\.(?:gif|svg)|(?:trans|clear)\.png)",
    re.I,
).fullmatch
_image_file = re.compile(r"(?=\S*\Z)[^\s{}\"<>]+?\.(?:jpe?g|png|gif|webp|avif)(?:[?#]\S*)?", re.I).fullmatch
_icon_class = re.compile(
    r"(?:^|\s)(?!(?:has|with|no)-)(?:[\w-]{0,60}[_-])?(?:ico|icons?|avatars?|badges?|emblem)(?=\s|$)|(?:^|\s)icon-",
    re.I,
).search
_icon_file = re.compile(
    r"(?:^|[/_-])ico(?:ns?)?[/_-][^/]{0,200}\.(?:svg|gif|ico)$|[_-]icons?\.(?:svg|gif|ico)$", re.I
).search
# vBulletin has the second one beside the name of a quoted user.
_button_file = re.compile(r"(?:(?:^|/)buttons?/[^/]{0,200}|(?:^|/)misc/quote_icon)\.(?:svg|gif|png)$", re.I).search
_counter_host = re.compile(r"https?://(?:[\w-]{1,60}\.){1,3}(?:sitemeter|statcounter)\.com/", re.I).match
_avatar_class = re.compile(r"(?<!has-)(?<!no-)(?<!with-)avatar", re.I).search
_avatar_file = re.compile(
    r"//(?:\w+\.)?gravatar\.com/avatar/|/(?:user_?)?avatars/|/user_avatar/|/(?:default|no|user|anonymous)[-_]?avatar\.\w",
    re.I,
).search
_NO_ADDRESS = frozenset({"//:0", "false", "null", "none", "undefined"})
"""What scripts write for an address that they have not."""
_number = re.compile(r"\s*(\d{1,6})").match
_placeholder_host = re.compile(r"https?://(?:via\.placeholder\.com|placehold\.(?:co|it)|dummyimage\.com)/", re.I).match
_split_name = re.compile(r"[-_.x]+").split
# A file is a placeholder if its name has one of the first words, and no word but those of both sets and numbers.
_PLACEHOLDER_WORDS = frozenset({"placeholder", "spinner", "loader", "lazyload", "no", "noimage", "nophoto", "nothumb"})
_NEUTRAL_WORDS = frozenset(
    "image img picture photo thumb thumbnail post video default lazy loading load bg background square small medium "
    "large grey gray white transparent available found yet svg png gif ajax".split()
)
_ORNAMENTS = frozenset(
    "arrow arrows border bullet bullets button caret checkmark chevron corner decoration divider dot dots favicon "
    "flourish hr icon icons line ornament rss rule separator squiggle swoosh tick underline".split()
)
_OF_ORNAMENTS = _ORNAMENTS | frozenset(
    "back black blank blue bold bottom brown bw center check circle close color dark dashed dotted double down email "
    "fat footer full gold gray green grey h header heading horizontal hover image img large left light line long mail "
    "medium mid middle mini minus navy next normal orange page pdf pink plus post prev print purple red right round "
    "section short side silver small solid square star thick thin title top up v vertical violet wave wavy white "
    "yellow".split()
)
"""What the name of the file of an ornament says, complete."""
_ACTIONS = frozenset(
    "bookmark comments email emailbutton fax favorite favorites mail print printbutton printer quote reply reprint "
    "reprints rss send share sharing subscribe tweet".split()
)
_NETWORKS = frozenset(
    "delicious digg facebook flickr gplus instagram kakao linkedin livejournal mastodon odnoklassniki pinterest reddit "
    "stumbleupon telegram tumblr twitter vk vkontakte weibo whatsapp youtube".split()
)
_CONTROLS = _ACTIONS | _NETWORKS
_OF_CONTROLS = _CONTROLS | _OF_ORNAMENTS | frozenset("btn button follow in logo out px this x".split())
"""What the name of the file of a control says, complete."""
_shares = re.compile(r"\bshare(?:r\b|[./?]|$)|\bintent/|/home\?status=|^(?:mailto|javascript):|^#?$", re.I).search
_host_of = re.compile(r"(?:https?:)?//[^/?#]{1,100}").match
_is_post = re.compile(r"/status/|/watch\b|/posts?/|/videos?/|/p/").search
_words_of_name = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])").findall
_hash = re.compile(r"(?=[a-f]{0,63}\d)[0-9a-f]{8,64}(?=[-_.])").sub
_file_name = re.compile(r"[\w.,@%()+-]+\.(?:jpe?g|png|gif|webp|avif|svg|bmp)", re.I).fullmatch
_icon_length = re.compile(r"\s*0*(?:[12]?\d|3[0-2])(?:\.\d+)?\s*(?:px\s*)?").fullmatch
_without_size = re.compile(r"[-_]\d{2,5}x\d{2,5}(?=\.\w+$)|-scaled(?=\.\w+$)").sub
_tracking_length = re.compile(r"\s*0*[01](?:\.\d+)?\s*(?:px\s*)?").fullmatch
_candidates = re.compile(r"([^\s,](?:\S*[^\s,])?)(?:,|([^,]*))").finditer
_descriptor = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)[wxh]\b").match


def image(element: etree._Element, resolve: Resolve) -> Image | None:
    """Return the image of an ``<img>`` or ``<picture>``, or None for a placeholder, an icon or a tracking pixel.

    The URL is the first one found in: an attribute of :data:`LAZY_SOURCES`; the largest candidate of one of
    :data:`LAZY_SOURCE_SETS`; ``src``; the largest candidate of ``srcset``, then of the ``<source>`` elements; any
    ``data-`` attribute that names an image file. Data URIs, placeholders and templates are skipped.
    """
    img, sources = element, []
    if element.tag == "picture":
        inner = next(element.iter("img"), None)
        sources = list(element.iter("source"))
        img = element if inner is None else inner
    attributes = _attributes(img)
    if _tracking_length(attributes.get("width", "")) or _tracking_length(attributes.get("height", "")):
        return None
    address = next(_addresses(attributes, [_attributes(source) for source in sources]), None)
    if address is None:
        return None
    alt, title = (unbroken(" ".join(attributes.get(name, "").split())) for name in ("alt", "title"))
    if _file_name(alt):
        alt = ""
    if _is_decoration(element, attributes, address, alt) or _is_avatar(element, attributes, address):
        return None
    return Image(resolve(address), alt, title if title != alt else "")


def _is_decoration(element: etree._Element, img: dict[str, str], address: str, alt: str) -> bool:
    """Return True for icons, avatars, and images that the page marks as decorative (WAI-ARIA, 6.6)."""
    path = _end_of_path(address)
    if _icon_class(img.get("class", "")[:LONGEST_CLASS]) or _icon_file(path) or _counter_host(address):
        return True
    if is_button(element, address):
        return True
    if alt:
        return False
    if img.get("aria-hidden") == "true" or img.get("role") in ("presentation", "none"):
        # Authors also write this for images that they have not described, so large images and figures are kept.
        large = max(_length(img.get("width")), _length(img.get("height"))) >= LARGE
        return not (
            large
            or "srcset" in img
            or "data-srcset" in img
            or any(around.tag == "figure" for around in islice(element.iterancestors(), 3))
        )
    if _icon_length(img.get("width", "")) and _icon_length(img.get("height", "")):
        return True
    return not (has_place(element) or img.get("title")) and _is_ornament(path.rpartition("/")[2])


def has_place(element: etree._Element) -> bool:
    """Return True for an image in a figure or a cell. A check mark may be all that a cell says."""
    return any(around.tag in ("figure", "td", "th") for around in islice(element.iterancestors(), 3))


def _is_ornament(file: str) -> bool:
    """Return True for the name of a file that says nothing but that it is an ornament, as in ``arrow-left-red.gif``."""
    if file.rpartition(".")[2].lower() not in ("gif", "png", "svg", "webp"):
        return False
    words = _words_of(file)
    return not _ORNAMENTS.isdisjoint(words) and _OF_ORNAMENTS.issuperset(words)


def _words_of(file: str) -> list[str]:
    """Return the words in the name of a file, without the numbers that tell its versions apart."""
    return [word.lower() for word in _words_of_name(_hash("", unquote(file).rpartition(".")[0] + "."))]


def is_button(element: etree._Element, address: str | None = None) -> bool:
    """Return True for the picture of a button: in a folder of that name, where forums keep them; or in a link or button
    by which a page is printed, sent, shared or followed, as both its address and the name of the file say.

    ``address`` is the URL of the picture, if it is not the ``src`` of the element. A large picture and one with a
    caption are none.
    """
    address = element.get("src") or "" if address is None else address
    path = _end_of_path(address)
    if _button_file(path):
        return True
    words = _words_of(path.rpartition("/")[2])
    said = _CONTROLS.intersection(words)
    if not said or not _OF_CONTROLS.issuperset(words):
        return False
    around = list(islice(element.iterancestors(), NEAR))
    link = next((one for one in around if one.tag in ("a", "button")), None)
    picture = next(element.iter("img"), element)
    if link is None or any(_length(picture.get(name)) >= LARGE for name in ("width", "height")):
        return False
    if any(one.tag == "figure" or "caption" in (one.get("class") or "") for one in around):
        return False
    href = (link.get("href") or "")[:LONGEST_CLASS].lower()
    if link.tag == "button" or _shares(href):
        return True
    host = found[0] if (found := _host_of(href)) else ""
    follows = not _NETWORKS.intersection(said).isdisjoint(host.replace("/", ".").split(".")) and not _is_post(href)
    alt = (picture.get("alt") or "").lower()
    acts = any(name in href or name == alt for name in _ACTIONS.intersection(said))
    return (follows or acts) and not _image_file(href)


def _end_of_path(address: str) -> str:
    """Return the last folder and the name of the file of a URL."""
    return "/".join(address.partition("?")[0].rsplit("/", 2)[1:])[-SHORT:]


def _is_avatar(element: etree._Element, img: dict[str, str], address: str) -> bool:
    """Return True for the picture of an author or user, judging by its class, its parents' classes, or its URL."""
    around = element.getparent()
    names = [img.get("class", "")]
    for _ in range(2):
        if around is None or around.tag not in ("a", "span", "div", "picture") or len(around) > 1:
            break
        names.append(around.get("class", ""))
        around = around.getparent()
    return any(map(_avatar_class, (name[:LONGEST_CLASS] for name in names))) or bool(
        _avatar_file(address[:LONGEST_CLASS])
    )


def _length(value: str | None) -> int:
    """Return a length in pixels, or 0 if there is none."""
    match = _number((value or "")[:20])
    return int(match[1]) if match else 0


def _is_placeholder(address: str, name: str) -> bool:
    """Return True for an image that is shown while another one loads, or because there is none."""
    if _placeholder_file(name) or _placeholder_host(address) or address in _NO_ADDRESS:
        return True
    words = set(_split_name(name[-SHORT:].lower())[:-1])
    return (
        len(words) > 1
        and not words.isdisjoint(_PLACEHOLDER_WORDS)
        and all(word in _PLACEHOLDER_WORDS or word in _NEUTRAL_WORDS or word.isdigit() for word in words)
    )


def _attributes(element: etree._Element) -> dict[str, str]:
    return dict(cast("list[tuple[str, str]]", element.items()))


def _addresses(img: dict[str, str], sources: list[dict[str, str]]) -> Iterator[str]:
    """Yield the URLs of an image, the best first."""
    lazy = any(name.startswith("data-") for name in img)
    if lazy:
        yield from _usable(img[name] for name in LAZY_SOURCES if name in img)
        yield from _usable(largest(img[name]) for name in LAZY_SOURCE_SETS if name in img)
    yield from _usable((img.get("src", ""), largest(img.get("srcset", ""))))
    for source in sources:
        yield from _usable(largest(source[name]) for name in (*LAZY_SOURCE_SETS, "srcset") if name in source)
    if lazy:
        yield from _usable(value for name, value in img.items() if name[:5] == "data-" and _image_file(value))


def _usable(addresses: Iterable[str]) -> Iterator[str]:
    for written in addresses:
        address = written.strip()
        path, question, _ = address.partition("?")
        name = path.partition("#")[0].rpartition("/")[2]
        if (name or question) and not (_other_scheme(address) or _template(address) or _is_placeholder(address, name)):
            yield address


def largest(candidates: str) -> str:
    """Return the URL of the largest image of a ``srcset`` (HTML standard, 4.8.4.2.1): by width, height or density."""
    best, best_size = "", -1.0
    for candidate in _candidates(candidates):
        descriptor = _descriptor(candidate[2] or "")
        size = float(descriptor[1]) if descriptor else 1.0
        if size > best_size:
            best, best_size = candidate[1], size
    return best


def same_image(one: Image, other: Image) -> bool:
    """Return True if two adjacent images are a lazily loaded one and its ``<noscript>`` copy, in any size."""
    return one.src == other.src or _stem(one.src) == _stem(other.src)


def _stem(url: str) -> str:
    return _without_size("", url.partition("?")[0].partition("#")[0])


def emoji(element: etree._Element) -> str:
    """Return the emoji that an ``<img>`` represents, or an empty string for other images."""
    alt = element.get("alt", "").strip()
    if not alt or len(alt) > 16:
        return ""
    if not _EMOJI_CLASSES.isdisjoint(element.get("class", "").split()):
        return alt
    return alt if all(character >= "\u2190" and not character.isalnum() for character in alt) else ""


def player(element: etree._Element, resolve: Resolve) -> Video | Audio | None:
    """Return the video or audio of an element of :data:`PLAYER_TAGS`, or None if it is something else.

    Frames are only players if their site is in :data:`VIDEO_HOSTS` or :data:`AUDIO_HOSTS`.
    """
    tag = element.tag
    title = " ".join((element.get("title") or element.get("aria-label") or "").split())
    if tag in PLAYERS:
        number = element.get("videoid") or element.get("data-videoid")
        title = title or " ".join(element.get("playlabel", "").split())
        return Video(f"https://www.youtube.com/watch?v={number}", title=title) if number else None
    elements = [element, *element.iter("source")] if tag in ("video", "audio") else [element]
    written = (node.get(name, "") for node in elements for name in (*LAZY_SOURCES, "src"))
    address = next(_usable(written), None)
    if address is None:
        return None
    src = resolve(address)
    if tag == "iframe":
        host = _site(src, VIDEO_HOSTS | AUDIO_HOSTS)
        if host is None:
            return None
        return Audio(src, title) if host in AUDIO_HOSTS else Video(src, title=title)
    if tag == "audio":
        return Audio(src, title)
    poster = next(_usable((element.get("poster", ""), element.get("data-poster", ""))), "")
    return Video(src, resolve(poster) if poster else "", title)


def _site(url: str, sites: frozenset[str]) -> str | None:
    """Return the one of the given sites to which a URL belongs, or None."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return None
    parts = host.split(".")
    names = (".".join(parts[i:]) for i in range(max(0, len(parts) - 4), len(parts)))
    return next((name for name in names if name in sites), None)


# ---------------------------------------------------------------------- figures
def is_figure(element: etree._Element) -> bool:
    """Return True for a ``<figure>`` and its equivalents in WordPress and MediaWiki."""
    return element.tag == "figure" or not FIGURE_CLASSES.isdisjoint(element.get("class", "").split())


def caption_of(figure: etree._Element) -> etree._Element | None:
    """Return the caption of a figure: a child or grandchild with the tag or a class of captions."""
    for child in figure:
        if _is_caption(child):
            return child
        for inner in child:
            if _is_caption(inner) and not is_figure(child):
                return inner
    return None


def _is_caption(element: etree._Element) -> bool:
    return element.tag == "figcaption" or not _CAPTION_CLASSES.isdisjoint(element.get("class", "").split())


def holds_blocks(caption: etree._Element) -> bool:
    """Return True for a caption that is a text in itself: with a heading, a list, or two paragraphs."""
    if next(caption.iter("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "table", "pre"), None) is not None:
        return True
    paragraphs = caption.iter("p")
    return next(paragraphs, None) is not None and next(paragraphs, None) is not None


def with_caption(items: Items, caption: Runs, place: int) -> Items:
    """Attach the caption of a figure to its only item. Otherwise, insert it as a paragraph at its place."""
    only = items[0] if len(items) == 1 else None
    if isinstance(only, (Image, Video, Audio, Table)) and not only.caption:
        return (replace(only, caption=caption),)
    return (*items[:place], Paragraph(caption), *items[place:]) if place >= 0 else (*items, Paragraph(caption))
