"""Similar elements of a page: the posts of a thread, and the cards of a list.

Posts are those of forums, questions and answers, and comments: each has main text, and a date or an author. Cards are
the teasers of articles and the products of a shop: each has a title with a link, and says something about it. No model
is involved, and no label is changed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np

from scrapy_dripper.declared.authors import byline
from scrapy_dripper.declared.dates import iso_date
from scrapy_dripper.declared.elements import text_of
from scrapy_dripper.page.nodes import SHORT
from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.tags import LONGEST_CLASS, TAGS
from scrapy_dripper.page.vocabulary import AMOUNT, CURRENCIES, either
from scrapy_dripper.structures import NEARLY_ALL
from scrapy_dripper.structures.hidden import hidden_blocks
from scrapy_dripper.structures.items import Card

LONGEST_LINE = 100
"""Maximum length of a line with a date or a price, in characters."""
LONGEST_BYLINE = 50
"""Maximum length of a line with a date or an author that is no text itself, in characters."""
LONGEST_LABEL = 20
"""Maximum length of what is before a date or a price and says what it is of, in characters."""
LONGEST_NAME, MOST_NAME_WORDS = 40, 5
"""Maximum length of an author's name, in characters and in words."""
LEVELS = 12
"""Maximum number of elements between a post and its date."""
LEAST_HELD = 0.1
"""The share of the main text that posts hold at least. Where they hold less, others have not been found."""
SHORTEST_POST = 20
"""Of the elements of a kind with main text, half must have as many characters of it to be posts, beside dates."""

_QUOTE = TAGS["blockquote"]
_NOT_HERE = Flag.QUOTE | Flag.NAV | Flag.FOOTER | Flag.HIDDEN
"""Where the dates and names are those of others: in what a post quotes, and around the thread."""

# How long ago a post was written, which is the date that many forums show.
_AGO = (
    r"(?:\d{1,3}|an?|one|few)\s(?:second|sec|minute|min|hour|hr|day|week|month|mo|year|yr)s?\.?\sago",
    r"\d{1,3}(?:[smhdwy]|(?:min|hr|mo|yr)s?)\sago",
    r"vor\s\S{1,10}\s(?:sekunde|minute|stunde|tag|woche|monat|jahr)\w{0,2}",
    *(r"il y a \d{1,3}\s\w{1,9}", r"hace \d{1,3}\s\w{1,9}", r"há \d{1,3}\s\w{1,9}", r"\d{1,3}\s\w{1,9} (?:geleden|fa)"),
)
_DAYS = (
    *("today", "yesterday", "heute", "gestern", "aujourd'hui", "hier", "ayer", "hoy", "oggi", "ieri", "vandaag"),
    *("gisteren", "dzisiaj", "wczoraj", "сегодня", "вчера"),
)
_AGO_EAST = (
    r"(?:\d{1,3}|半)\s?(?:秒|分钟|分鐘|分|小时|小時|時間|天|日|周|週|个月|個月|か月|月|年)(?:以?前)",
    r"(?:昨天|昨日|前天|今天)\s?\d{1,2}[:：]\d\d",
    r"^(?:(?:发表|发布|回复|發表|發佈|回覆)[于於])?\W*(?:昨天|昨日|前天|今天|刚刚|剛剛)\W*$",
)
# What a date is of, if it is not that of the post.
_NOT_OF_POST = (
    "(?:last |zuletzt )?(?:edited|bearbeitet|editado|modificato|modifié)",
    *("joined", "join date", "registered", "registriert", "member since", "birthday", "active", "viewed"),
    *("start date", "thread starter", "last (?:post|reply|activity)", "neuester beitrag", "modified", "updated"),
    r"\S{1,30} (?:wrote|schrieb|a écrit|escribió)\b",
)
_NOT_OF_POST_EAST = (
    *("注册(?:时间|日期|于)", "註冊(?:時間|日期)", "最后(?:登录|访问|回复|编辑)", "最後(?:登錄|登入|回覆|編輯)"),
    *("本[帖贴]最[后後]由", "更新[于於]"),
)
# Whole names of the elements that hold the author of a post, and parts of their names.
_AUTHORS = (
    *("author", "user", "username", "user-?name", "nick", "nickname", "poster", "member", "creator", "commenter"),
    *("display-?name", "fn", "names?", "byline", "from", "owner", "postauthor", "topic-?starter", "login", "hnuser"),
)
_AUTHOR_PARTS = (
    "(?:[Aa]uthor|[Uu]ser|[Cc]omment|[Pp]oster|[Mm]ember)[-_]?(?:[Nn]ame|[Ll]ink|[Ii]nfo|[Dd]etails?)",
    "[a-z](?:Author|User|Username|Name)(?![A-Za-z])",
)
# Parts of the addresses of members' pages.
_PROFILES = (
    r"/(?:users?|members?|profiles?|u|authors?|people|usuarios?|membres?|benutzer|mitglieder)[/.?=-]",
    r"[?&](?:u|uid|user|user_id|userid|mode=viewprofile)=",
    *("/@", r"(?:member|profile|memberlist)\.php", "(?:^|/)space-uid-"),
)
# What is in the same elements as names.
_NOBODY = frozenset({"[email protected]"}).union(
    "author login logged member offline online op poster profile quote reply report share user "
    "发表于 發表於 发布于 發佈於 回复 回覆 楼主 樓主 来自 只看该作者 只看楼主".split()
)
# Class names that differ among the posts of a thread.
_STATES = frozenset("odd even alt alternate first last new unread row bg rowodd roweven firstpost".split())

_digit = re.compile(r"\d").search
_digits = re.compile(r"\d{1,20}").sub
_word = re.compile(r"\w").search
_letter = re.compile(r"[^\W\d_]").search
_ago = re.compile(
    rf"\b(?:{either(_AGO)})\b|\b(?:{either(_DAYS)}),?\s(?:\w{{1,4}}\s){{0,2}}\d|^(?:{either(_DAYS)})$|{either(_AGO_EAST)}",
    re.I,
).search
_not_of_post = re.compile(rf"\b(?:{either(_NOT_OF_POST)})|{either(_NOT_OF_POST_EAST)}", re.I).search
_machine = re.compile(r"\d{4}-\d\d-\d\d(?!\d)").match
_is_author = re.compile(rf"(?:^|[\s_-])(?:{either(_AUTHORS)})(?:$|[\s_-])|{either(_AUTHOR_PARTS)}").search
_profile = re.compile(either(_PROFILES)).search
_says = re.compile(r"\s(?:says?|said|wrote|writes|schrieb|sagte?|dice|dit|a dit|offline|online)?\s?:?$", re.I).sub
_edited = re.compile(r"\b(?:bearbeitet|bewerkt|redigerad|edytowany|отредактировано)\b", re.I).search
"""Stands behind the date."""
_day_month = re.compile(r"(?<!\d)(\d{1,2})[/-](\d{1,2})[/-]\d{4}(?!\d)").search

Kind: TypeAlias = "tuple[str, str]"
"""What the elements of posts have in common: the tag and a class name."""
AuthorMarks: TypeAlias = "Mapping[int, list[tuple[int, int, str]]]"
"""What names somebody, by block: a number that says how surely it does, the number of its element, and the name."""


class ThreadPost(NamedTuple):
    """A post on a page."""

    node: int
    """The number of its element."""
    author: str = ""
    """The name of its author; empty if it is not known."""
    date: str = ""
    """Its date in ISO 8601; empty if it is not known, as with "yesterday"."""
    body: int = 0
    """The number of the ``<blockquote>`` with its text, if the site has one for every post. 0 for other sites, on which
    a post quotes another text."""


class PostMarks(NamedTuple):
    """What may mark the posts of a page, whatever is main."""

    dates: Mapping[int, str]
    """The dates of blocks (:func:`dates_of`)."""
    names: AuthorMarks


def post_marks(page: Page) -> PostMarks:
    """Return the dates and the names of authors on a page."""
    return PostMarks(dates_of(page), names_of(page))


def thread_posts(page: Page, main: Bools, marks: PostMarks | None = None) -> list[ThreadPost]:
    """Return the posts of a page whose blocks are labelled, in document order; empty if it has fewer than two.

    A reply in a post is a post of its own. A post without main text is none. ``marks`` are those of the page, if they
    are known.
    """
    texts, (dates, names) = page.blocks.text, marks or post_marks(page)
    authors = [i for i in sorted(names) if len(texts[i]) <= LONGEST_BYLINE]
    lines = {*authors, *(i for i in dates if len(texts[i]) <= LONGEST_BYLINE and _digit(texts[i]))}
    size = [
        len(text) if kept and i not in lines else 0
        for i, (text, kept) in enumerate(zip(texts, main.tolist(), strict=True))
    ]
    chars = list(accumulate(size, initial=0))
    posts = _posts(page, dates, authors, chars) or _posts(page, dict.fromkeys(authors, ""), authors, chars)
    named: dict[int, str] = {}
    dated: dict[int, int] = {}
    for _, i, name in sorted((-score, i, name) for some in names.values() for score, i, name in some):
        named.setdefault(_post_of(page, i, posts), name)
    for i in dates:
        dated.setdefault(_post_of(page, int(page.blocks.context[i]), posts), i)
    known = sorted(posts & (named.keys() | dated.keys()))
    no_heading = page.tree.flags[page.blocks.context] & Flag.HEADING == 0  # a post may repeat the headline
    bodies = _quoted_bodies(page, known, [0, *np.cumsum(no_heading * size).tolist()])
    found = []
    for node in known:
        line = dated.get(node)
        author = named.get(node) or ("" if line is None else before_date(texts[line]))
        found.append(ThreadPost(node, author, "" if line is None else dates[line], bodies.get(node, 0)))
    held = sum(chars[page.tree.block_end[post.node]] - chars[page.tree.block_start[post.node]] for post in found)
    return found if len(found) > 1 and held >= LEAST_HELD * chars[-1] else []


def _quoted_bodies(page: Page, posts: Sequence[int], chars: Sequence[int]) -> dict[int, int]:
    """Return the outer ``<blockquote>`` of each post if all posts have one of the same class, with nearly all text."""
    start, end = page.tree.block_start, page.tree.block_end
    inside, bodies = set(posts), dict[int, int]()
    for i in np.flatnonzero(page.tree.tag == _QUOTE).tolist():
        bodies.setdefault(_post_of(page, i, inside), i)
    size = {node: chars[end[node]] - chars[start[node]] for node in (*posts, *bodies.values())}
    told = [node for node in posts if size[node]]
    if not all(node in bodies and size[bodies[node]] >= NEARLY_ALL * size[node] for node in told):
        return {}
    return bodies if len({page.tree.names[bodies[node]] for node in told}) == 1 else {}


def _post_of(page: Page, node: int, posts: Collection[int]) -> int:
    """Return the innermost post around a node, or 0."""
    for _ in range(2 * LEVELS):
        if node <= 0 or node in posts:
            break
        node = int(page.tree.parent[node])
    return node if node in posts else 0


def dates_of(page: Page) -> dict[int, str]:
    """Return the dates of the blocks that are no longer than a line and have one; empty if it cannot be read.

    Those for machines come first.
    """
    tree, blocks = page.tree, page.blocks
    day_first = (tree.nodes[0].get("lang") or "").lower() not in ("", "en", "en-us")
    numbers = [
        (int(one[1]), int(one[2])) for text in blocks.text if len(text) <= LONGEST_LINE and (one := _day_month(text))
    ]
    if any(first > 12 or second > 12 for first, second in numbers):  # one date tells the order of all
        day_first = any(first > 12 for first, _ in numbers)
    start = tree.block_start.tolist()
    machine: dict[int, str] = {}
    for i in tree.tells:
        element = tree.nodes[i]
        said = element.get("datetime") or element.get("title")
        if said and _machine(said):
            machine.setdefault(start[i], said)
    found: dict[int, str] = {}
    for i in np.flatnonzero((tree.flags[blocks.context] & _NOT_HERE) == 0).tolist():
        text = blocks.text[i]
        if len(text) > LONGEST_LINE or not (i in machine or _digit(text) or _ago(text)):
            continue
        other = _not_of_post(text)
        is_other = other is not None and not _word(text[: other.start()])
        label = blocks.text[i - 1] if i else ""
        is_other = is_other or (len(label) <= LONGEST_LABEL and not _digit(label) and _not_of_post(label) is not None)
        if is_other or _edited(text):
            continue
        said = [machine.get(i, ""), text[: other.start()] if other else text]
        if not day_first and _day_month(said[1]):
            said[1] = said[1].replace("-", "/")
        date = next(filter(None, (iso_date(value, day_first) for value in said if _digit(value))), None)
        if date or _ago(said[1]):
            found[i] = date or ""
    return {i: found[i] for i in sorted(found, key=lambda i: i not in machine)}


def names_of(page: Page) -> AuthorMarks:
    tree = page.tree
    start, tells = tree.block_start, set(tree.tells)
    is_small = (tree.block_end - start <= 1) & (start < len(page.blocks)) & (tree.flags & _NOT_HERE == 0)
    known: dict[str, bool] = {}
    found: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for i in np.flatnonzero(is_small).tolist():
        names, get = tree.names[i], tree.nodes[i].get
        if names not in known:
            known[names] = _is_author(names[:LONGEST_CLASS]) is not None
        score = int(known[names])
        if i in tells:
            score += 4 if get("itemprop") in ("author", "creator") or "author" in (get("rel") or "") else 0
            score += 2 if (href := get("href")) and _profile(href[:LONGEST_CLASS]) else 0
        if score and (name := _name(text_of(tree.nodes[i], 2 * LONGEST_NAME))):
            found[int(start[i])].append((score, i, name))
    return found


def _posts(page: Page, seeds: Mapping[int, str], authors: Sequence[int], chars: Sequence[int]) -> set[int]:
    """Return the elements of posts around the blocks ``seeds``, which have dates or authors.

    ``authors`` are the blocks with names, in order, and ``chars`` the characters of main text before each block.
    """
    chosen, kinds = smallest(page, seeds, chars)
    number = Counter(kinds.values())
    start, end = page.tree.block_start.tolist(), page.tree.block_end.tolist()
    starts = sorted(start[node] for node in chosen)
    groups: defaultdict[Kind, list[int]] = defaultdict(list)
    apart: Counter[Kind] = Counter()
    opened: list[int] = []
    for node, i in sorted(chosen.items()):
        kind = kinds[node]
        while opened and page.tree.end[opened[-1]] <= node:
            opened.pop()
        if number[kind] == 1 and held(starts, start[node], end[node]) > 1:
            continue  # the element around the whole thread, with the date of the thread
        if opened and kinds[opened[-1]] != kind:
            # A part of a post, such as its text below a line for small screens, repeats the date or names nobody.
            is_named = held(authors, start[node], end[node])
            if not is_named or (seeds[i] and seeds[i] == seeds[chosen[opened[-1]]]):
                continue
        apart[kind] += not (opened and kinds[opened[-1]] == kind)
        groups[kind].append(node)
        opened.append(node)
    for kind in [kind for kind in groups if not kind[1] and apart[kind] == 1]:
        del groups[kind]  # without a class, the elements around each other are of one kind
    starts = sorted(start[node] for nodes in groups.values() for node in nodes)
    return {one for nodes in groups.values() for one in outermost(page, nodes, starts)}


def held(blocks: Sequence[int], start: int, end: int) -> int:
    """Return how many of some blocks, given in order, are in a range."""
    return bisect_left(blocks, end) - bisect_left(blocks, start)


def smallest(
    page: Page, seeds: Iterable[int], chars: Sequence[int], least: int = SHORTEST_POST
) -> tuple[dict[int, int], dict[int, Kind]]:
    """Return the smallest elements around seeds of a kind of which there are several, with text, and their kinds.

    Half of the elements of a kind must have ``least`` characters.
    """
    nodes, context, parent = page.tree.nodes, page.blocks.context.tolist(), page.tree.parent.tolist()
    start, end = page.tree.block_start.tolist(), page.tree.block_end.tolist()
    kinds: dict[int, Kind] = {}
    sizes: defaultdict[Kind, dict[int, int]] = defaultdict(dict)
    around: dict[int, list[int]] = {}
    for i in seeds:
        node, levels = context[i], around.setdefault(i, [])
        while node > 0 and len(levels) < LEVELS and nodes[node].tag != "body":
            levels.append(node)
            if node not in kinds:
                kinds[node] = _kind(str(nodes[node].tag), nodes[node].get("class") or "")
                sizes[kinds[node]][node] = chars[end[node]] - chars[start[node]]
            node = parent[node]
    good: set[Kind] = set()
    for kind, some in sizes.items():
        filled = sorted(filter(None, some.values()))
        if len(filled) > 1 and filled[len(filled) // 2] >= least:
            good.add(kind)
    chosen: dict[int, int] = {}
    for i, levels in around.items():
        node = next((node for node in levels if kinds[node] in good and sizes[kinds[node]][node]), 0)
        if node:
            chosen.setdefault(node, i)
    return chosen, {node: kinds[node] for node in chosen}


def outermost(page: Page, posts: list[int], starts: Sequence[int]) -> list[int]:
    """Return the outermost elements that hold the same posts, if nearly all of these are alone in them.

    The author is often in a column beside the text and date. ``starts`` are the first blocks of all posts, in order.
    """
    tree = page.tree
    for _ in range(LEVELS if len(posts) > 1 else 0):
        up = tree.parent[posts].tolist()
        ranges = zip(tree.block_start[up].tolist(), tree.block_end[up].tolist(), strict=True)
        alone = sum(held(starts, start, end) == 1 for start, end in ranges)
        is_single = alone >= NEARLY_ALL * len(up) and len(set(up)) == len(up)
        if not is_single or min(up) <= 0 or len({tree.nodes[node].tag for node in up}) > 1:
            break
        posts = up
    return posts


def _kind(tag: str, name: str) -> Kind:
    names = _digits("", name[:LONGEST_CLASS]).split()
    return tag, " ".join(dict.fromkeys(one for one in names if one not in _STATES))


def before_date(line: str) -> str:
    """Return the name in a line such as "Ann Bell · 6 May 2024", or an empty string."""
    name = _name(line)
    return name if len(name) < len(line) - 3 else ""


def _name(text: str) -> str:
    """Return the name in the text of an element for an author, or an empty string."""
    name = byline(_says("", text)).lstrip("@")
    if not 1 < len(name) <= LONGEST_NAME or len(name.split()) > MOST_NAME_WORDS or not _letter(name):
        return ""
    return "" if name.lower() in _NOBODY or _ago(name) or _not_of_post(name) or iso_date(name) else name


# ---------------------------------------------------------------------- cards
LEAST_CARDS = 3
"""Minimum number of cards of a kind."""
SHORTEST_TEXT = 3
"""Half of the cards of a kind must have as many characters beside the title. A price is enough."""
LEAST_AUTHOR = 2
"""Minimum score of the name of an author, who has a profile or is declared. Products have names as well."""

_price = re.compile(rf"(?:{CURRENCIES})\s?{AMOUNT}|{AMOUNT}\s?(?:{CURRENCIES})", re.I).search
_LINK = TAGS["a"]


def list_cards(page: Page, main: Bools, hidden: Bools) -> list[Card]:
    """Return the cards in the main content of a page whose blocks are labelled, in document order.

    Their titles are headings or, if there are no cards with headings, links. The link, as written on the page, the
    price, the date and the author of a card may be in blocks that are not main. Blocks with text that is hidden from
    readers, given by its nodes, are left out.
    """
    tree, blocks = page.tree, page.blocks
    seen = ~hidden_blocks(page, hidden, whole=False)
    main = main & seen
    links = {
        i: href
        for i in np.flatnonzero(seen & (blocks.link_chars > 0)).tolist()
        if blocks.link_chars[i] >= NEARLY_ALL * len(blocks.text[i]) and (href := _href(page, i))
    }
    is_heading = tree.flags[blocks.context] & Flag.HEADING != 0
    headings = np.flatnonzero(main & is_heading).tolist()
    # All blocks of a card that is a link as a whole are links. Its first one is the title.
    others = [i for i, href in links.items() if main[i] and not is_heading[i] and links.get(i - 1) != href]
    return _cards(page, main, seen, headings, links) or _cards(page, main, seen, others, links)


def _href(page: Page, block: int) -> str:
    """Return the address of the link around the first text of a block; empty if it leads to the same page."""
    tree = page.tree
    node = int(page.blocks.leaf[block])
    for _ in range(LEVELS):
        if node < 0 or tree.tag[node] == _LINK:
            break
        node = int(tree.parent[node])
    href = (tree.nodes[node].get("href") or "").strip() if node >= 0 else ""
    return "" if href.startswith("#") else href


def _is_price(line: str) -> bool:
    found = _price(line)
    return found is not None and found.start() <= LONGEST_LABEL


def _cards(page: Page, main: Bools, seen: Bools, titles: Sequence[int], links: Mapping[int, str]) -> list[Card]:
    """Return the cards with the blocks ``titles``, given in order. ``links`` are blocks that are links."""
    texts, start, end = page.blocks.text, page.tree.block_start.tolist(), page.tree.block_end.tolist()
    titles = [i for i in titles if len(texts[i]) <= SHORT]
    if len(titles) < LEAST_CARDS:
        return []
    prices = {i for i, text in enumerate(texts) if len(text) <= LONGEST_LINE and _is_price(text)}
    told = main.copy()
    told[list(prices)] = True
    told[titles] = False
    chars = np.cumsum([0, *(len(text) * is_told for text, is_told in zip(texts, told.tolist(), strict=True))]).tolist()
    chosen, kinds = smallest(page, titles, chars, SHORTEST_TEXT)
    groups: defaultdict[Kind, list[int]] = defaultdict(list)
    for node in sorted(chosen):
        if held(titles, start[node], end[node]) == 1:
            groups[kinds[node]].append(node)
    dates, names = dates_of(page), names_of(page)
    found: dict[int, Card] = {}
    for nodes in groups.values():
        cards: dict[int, Card] = {}
        for inner, node in zip(nodes, outermost(page, nodes, titles), strict=True):
            title, inside = chosen[inner], [i for i in range(start[node], end[node]) if seen[i]]
            href = links.get(title) or next((links[i] for i in inside if i in links), "")
            if not href:
                continue
            price = next((i for i in inside if i in prices and i != title), None)
            date = next((i for i in inside if i in dates and i != title), None)
            marks = (mark for i in inside if i != title for mark in names.get(i, ()) if mark[0] >= LEAST_AUTHOR)
            author = max(marks, default=(0, 0, ""))[2] or ("" if date is None else before_date(texts[date]))
            short = (i for i in inside if len(texts[i]) <= LONGEST_BYLINE)
            lines = {title, price, *(i for i in short if i in dates or (author and author in texts[i]))}
            cards[title] = Card(
                title=texts[title],
                href=href,
                text="\n".join(texts[i] for i in inside if main[i] and i not in lines),
                price="" if price is None else texts[price],
                author=author,
                date="" if date is None else dates[date],
            )
        found |= cards if len(cards) >= LEAST_CARDS else {}
    return [found[i] for i in sorted(found)]
