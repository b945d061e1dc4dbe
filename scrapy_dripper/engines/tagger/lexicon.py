"""Keywords in class and id attributes, and words in text, that indicate the purpose of a part of a page."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

KEYWORDS: dict[str, str] = {
    "nav": r"nav|menu|topbar|toolbar",
    "breadcrumb": r"breadcrumb|crumb",
    "header": r"header|masthead|banner|^top\b|site-?title|logo",
    "footer": r"foot|bottom|colophon|copyright",
    "sidebar": r"side|aside|rail\b|widget|secondary|left-?col|right-?col",
    "comment": r"comment|disqus|respond|discussion",
    "reply": r"repl(?:y|ies)|answer|post-?body|message|posting|cooked",
    "related": r"relat|recommend|similar|more-|also|upsell|cross-?sell|suggest|trending|popular|latest|you-may",
    "share": r"shar(?:e|ing)|social|facebook|twitter|follow|sns\b|addthis|instagram|linkedin",
    "advert": r"\bads?\b|advert|sponsor|promo|outbrain|taboola|adsense|banner-ad|affiliate",
    "consent": r"cookie|consent|gdpr|privacy|legal|disclaimer",
    "overlay": r"modal|popup|overlay|dialog|drawer|offcanvas|toast|lightbox|tooltip|dropdown",
    "newsletter": r"newsletter|subscri|signup|sign-up|mailing|opt-?in",
    "account": r"login|log-in|signin|account|user-?menu|register|profile|avatar",
    "search": r"search",
    "pages": r"pag(?:er|inat|ing|e-num)|prev|next|load-?more|showmore",
    "meta": r"meta|byline|author|\bdate|time|posted|publish|info\b",
    "taxonomy": r"\btags?\b|categor|label|badge|topic|chip",
    "content": r"content|\bmain|body|inner|wysiwyg|rte\b",
    "article": r"article|entry|story|\bpost\b|blog|news",
    "prose": r"text|prose|markdown|paragraph|rich|copy\b|description|excerpt|summary|intro|lead\b|lede|abstract",
    "title": r"title|headline|heading|subhead",
    "product": r"product|\bsku|variant|\bitem\b|goods|pdp",
    "price": r"price|cart|buy|shop|checkout|stock|shipping|delivery|basket|quantity|wishlist|currency",
    "review": r"review|rating|star|testimonial|feedback",
    "spec": r"spec|attribute|feature|detail|param|property",
    "grid": r"card|grid|tile|teaser|\blist|listing|result|feed|collection|archive",
    "media": r"gallery|carousel|slide|swiper|image|thumb|media|photo|video|player|figure|caption|credit",
    "forum": r"thread|topic|forum|question|vote|answer|quote|signature|cooked|bbs",
    "toc": r"\btoc|table-of-contents|\bindex|anchor|on-this-page",
    "hidden": r"hidden|\bhide|sr-only|visually|screen-?reader|collapse|d-none|invisible|noprint|offscreen",
    "panel": r"faq|accordion|panel|\btabs?\b|toggle|expand",
    "action": r"cta|button|btn|hero|call-to|jumbotron|contact",
    "code": r"code|highlight|snippet|syntax|example|api",
    "skip": r"skip|jump|print|back-?to-?top|scroll",
    "language": r"lang|locale|country|region|translat",
    "filter": r"filter|facet|sort|refine|option|select|swatch",
    "layout": r"wrap|container|row\b|\bcol|section|block|module|region|page\b",
    "standfirst": r"sub-?title|sub-?head|\bdek\b|\bdeck\b|standfirst|stand-first|chapo|chapeau|kicker|teaser-?text|"
    r"sommario|occhiello|anleser|vorspann|untertitel|entradilla|bajada|\bsapo\b|ingress|manchet|\bstrap\b|strapline|"
    r"\blead\b|\blede\b|intro\b|underrubrik|oberzeile|catenaccio|copete|volanta",
    "amount": r"price|prix|preis|precio|prezzo|amount|prijs|\bcena\b|\bpris\b|cost|salary|rent\b",
    "place": r"address|adresse|location|direccion|indirizzo|venue|adres\b|street|locality",
    "template": r"elementor|wp-|wpb|et_pb|shopify|drupal|field--|mw-|squarespace|framer|w-",
}
"""Groups of keywords in class and id attributes. The order is part of the feature schema."""

CONTENT_NAMES = frozenset(
    # microformats and WordPress
    "e-content h-entry hentry entry-content post-content single-content post-entry entry-body post_content "
    # news systems
    "article-body article__body articlebody article-content article__content article_body article_content story-body "
    "story-content story__content article-text articletext c-article-body body-text news-content newscontent "
    "content-body content__body td-post-content post-body post__content post__body blog-content blog-post-content "
    # wikis and documentation
    "mw-parser-output markdown-body rst-content md-content theme-doc-markdown documentwrapper devsite-article-body "
    # recipes
    "wprm-recipe-container tasty-recipes recipe-content recipe mv-create-card easyrecipe "
    # forums
    "postcontent post_message messagetext message-body topic-body "
    # ids
    "main-content maincontent main_content article post-content-body bodycontent story".split()
)
"""Class names and ids, in lower case, of elements that hold the main content on many sites. Add names here freely: a
name is only a candidate, and the model decides."""

CONTENT = 1 << len(KEYWORDS)
"""The bit of :data:`CONTENT_NAMES`, behind those of the keywords."""

SCHEMA_TYPES: dict[str, str] = {
    "article": "article newsarticle blogposting techarticle report scholarlyarticle liveblogposting",
    "product": "product productgroup offer individualproduct vehicle car book movie softwareapplication "
    "mobileapplication",
    "list": "itemlist collectionpage offercatalog searchresultspage blog",
    "forum": "discussionforumposting qapage question answer comment",
    "faq": "faqpage",
    "recipe": "recipe",
    "organisation": "organization localbusiness corporation store professionalservice service hotel restaurant "
    "medicalbusiness dentist legalservice",
    "event": "event course jobposting howto videoobject apireference",
}
"""Groups of schema.org types by the subject of the page."""

PAGE_KINDS: dict[str, str] = {
    "article": "article",
    "product": "product og:product product.item product.group",
    "website": "website blog",
}
"""Groups of values of ``og:type``."""

_camel = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_top = re.compile(r"top\b").match
_groups = [re.compile(pattern.replace(r"|^top\b", "")).search for pattern in KEYWORDS.values()]
_HEADER = 1 << list(KEYWORDS).index("header")


_is_literal = re.compile(r"[\w-]+").fullmatch


def _literals() -> dict[str, tuple[int, int]]:
    """Map the literals at the beginning of all keywords to two bit sets.

    The first holds the groups with a keyword that is the literal or a beginning of it. The second holds those with a
    keyword that goes on after the literal or a beginning of it.
    """
    own: dict[str, tuple[int, int]] = {}
    for bit, pattern in enumerate(KEYWORDS.values()):
        for keyword in re.findall(r"(?:\(.*?\)|[^|(])+", pattern):
            fixed = re.match(r"(?:\\b|\^)?((?:[\w-](?!\?))+)", keyword)
            assert fixed is not None
            whole, begun = own.get(fixed[1], (0, 0))
            own[fixed[1]] = (whole | 1 << bit, begun) if _is_literal(keyword) else (whole, begun | 1 << bit)
    found = {}
    for literal in own:
        whole = begun = 0
        for end in range(1, len(literal) + 1):
            more = own.get(literal[:end], (0, 0))
            whole, begun = whole | more[0], begun | more[1]
        found[literal] = whole, begun
    return found


def _longest(words: Collection[str]) -> str:
    """Return a pattern for the longest of some words, with a branch for each next letter."""
    rest: dict[str, list[str]] = {}
    for word in filter(None, words):
        rest.setdefault(word[0], []).append(word[1:])
    branches = "|".join(re.escape(letter) + _longest(ends) for letter, ends in rest.items())
    if len(rest) == 1 and "" not in words:
        return branches  # without a group, the pattern is compiled in half the time
    return branches and f"(?:{branches}){'?' if '' in words else ''}"


_bits_of = _literals()
_literals_in = re.compile(f"(?=({_longest(_bits_of)}))").findall
"""Finds the longest literal at each place of a text. They may overlap."""


@lru_cache(maxsize=1 << 12)
def keywords(names: str) -> int:
    """Return the bit set of :data:`KEYWORDS`, and :data:`CONTENT`, in a node's class and id attributes.

    Results are cached, so callers must limit the length of ``names``.
    """
    bits = content_bit(names)
    for name in names.split():
        bits |= _name_keywords(name)
    if names[:3].lower() == "top" and _top(_normal(names)):  # only at the beginning
        bits |= _HEADER
    return bits


def content_bit(names: str) -> int:
    """Return :data:`CONTENT` if a node's class and id attributes have one of the :data:`CONTENT_NAMES`, or else 0."""
    return 0 if CONTENT_NAMES.isdisjoint(names.lower().split()) else CONTENT


@lru_cache(maxsize=1 << 12)
def _name_keywords(name: str) -> int:
    """Return the bit set of a single class or id. Sites combine the same names in different ways."""
    text = _normal(name)
    # Most keywords are literals. The regular expressions are only searched for groups with a keyword that begins here.
    bits = begun = 0
    for literal in _literals_in(text):
        whole, first = _bits_of[literal]
        bits |= whole
        begun |= first
    begun &= ~bits
    while begun:
        bit = begun & -begun
        begun ^= bit
        if _groups[bit.bit_length() - 1](text):
            bits |= bit
    return bits


def _normal(names: str) -> str:
    lower = names if names.islower() else _camel.sub("-", names).lower()
    return lower.replace("_", "-")


WORDS: dict[str, str] = {
    "stop": (
        "the a an and or of to in is are was were be been it its this that these those with for on as at by from not "
        "have has had he she they we you i his her their our your my me him them who which what when where how why if "
        "but so than then there here all any can could will would should may might do does did into over about after "
        "before because while also more most some such no nor only own same other very just "
        "der die das und oder ist sind war mit für auf von zu im den dem des ein eine einer nicht auch sich wird als "
        "le la les des et est sont une dans pour que qui sur avec pas plus par au aux ce cette "
        "el los las y es son en una para que con por del se su no como "
        "il lo gli di che è per non sono del della een het van niet met voor zijn op "
        "и в не на что он с как это по к из у за от для"
    ),
    "legal": (
        "copyright reserved rights trademark trademarks terms privacy policy imprint impressum disclaimer "
        "gmbh inc llc ltd"
    ),
    "consent": "cookie cookies consent gdpr accept preferences",
    "mail": "subscribe newsletter email inbox unsubscribe signup mailing",
    "account": "login log sign signin register account password username logout profile",
    "social": (
        "share facebook twitter linkedin instagram pinterest whatsapp youtube tweet follow followers telegram "
        "rss tiktok"
    ),
    "comment": "comment comments reply replies respond discussion moderated",
    "more": "read more continue view see show all learn discover explore browse expand load",
    "paging": "next previous prev page pages newer older first last back",
    "shop": (
        "cart add buy checkout wishlist basket price sale shop order quantity qty discount free off save sold stock"
    ),
    "delivery": "shipping delivery returns return refund warranty payment pay policy guarantee",
    "related": "related recommended similar also popular trending latest recent featured top you might like",
    "byline": "by posted published updated author written editor staff written min read ago edited reviewed",
    "time": (
        "january february march april may june july august september october november december jan feb mar apr jun jul "
        "aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday am pm ago hours minutes "
        "days weeks months years hour minute day week month year today yesterday"
    ),
    "site": (
        "home about contact us careers menu search navigation skip content main help support faq blog news "
        "press sitemap"
    ),
    "review": "review reviews rating ratings stars star verified helpful recommend customer customers",
    "forum": (
        "answer answers question questions votes vote views viewed asked answered upvote topic thread posts "
        "members joined quote forum"
    ),
    "advert": "advertisement sponsored ad ads promoted advertise advertising promo",
    "media": "photo image video credit courtesy getty images caption source watch play gallery illustration",
    "spec": (
        "size color colour weight material dimensions features specifications details description model brand "
        "sku ingredients width height"
    ),
    "action": "click here download get start started try free demo request book quote call today now join contact",
    "code": "function return class const var import def int string null true false example parameters method api",
}
"""Groups of words in the text of a block. The order is part of the feature schema."""

WORD_BITS: dict[str, int] = {}
for _bit, _words in enumerate(WORDS.values()):
    for _word in _words.split():
        WORD_BITS[_word] = WORD_BITS.get(_word, 0) | 1 << _bit
