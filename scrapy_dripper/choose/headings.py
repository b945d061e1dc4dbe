"""Choose the headings: the headline with the facts that stand below it, and each heading whose section is main.

Data sets differ on whether the headline is main content, so models are unreliable here. Readers always want it. A model
sees a price, or the authors of a paper, as facts about the page. Readers choose, cite and plan with them. And a model
decides block by block, so it leaves a heading out above main text, or keeps one such as "Related links" above nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain, islice, takewhile

import numpy as np

from scrapy_dripper.choose.mask import mask_of
from scrapy_dripper.choose.scored import ELSEWHERE, LIKELY, LONGEST_LINE, UNSEEN, ScoredPage
from scrapy_dripper.declared import leads_away, link_level
from scrapy_dripper.declared.elements import names_site
from scrapy_dripper.declared.names import LINE, Match
from scrapy_dripper.declared.schema_org import tokens
from scrapy_dripper.page.page import Bools, Flag, Page, block_behind, is_gap
from scrapy_dripper.page.tags import LONGEST_CLASS, MEDIA, TAGS, tag_mask
from scrapy_dripper.page.vocabulary import AMOUNT, CURRENCIES, REPLIES, STANDFIRSTS, TITLES, either
from scrapy_dripper.structures import NEARLY_ALL

BODY_WORDS = 10
"""Minimum number of words in a main block that is body text, as opposed to a date, a name or a label."""
PLAIN_WORDS = 5
"""Minimum number of words in a headline without heading markup, and in a standfirst."""
SUBLINE_WORDS = 7
"""Minimum number of words in a heading between the headline and the text that is a sentence."""
LEAD_PROBABILITY = 0.4
"""Minimum probability for a sentence between the headline and the text to be main."""
LEAD_BLOCKS = 4
"""Number of blocks below the headline that may hold such a sentence, including dates and authors."""
DESCRIPTION_LETTERS = 20
"""Minimum number of letters that the beginnings of a standfirst and of a description have in common."""
MOST_JOINED = 4
"""Maximum number of blocks of a heading that is read as one."""
SUBTITLE_WORDS = 3
"""Minimum number of words of a part of the title that a heading below the headline repeats."""

ANYWHERE = "https://example.org/page"
"""The URL of a page whose URL is not known: a link to ``/`` leads up from it."""

_NO_LEAD = UNSEEN | ELSEWHERE | Flag.ASIDE | Flag.LIST | Flag.LINK | Flag.BUTTON | Flag.FIGURE
_HEADING = Flag.HEADING
_UNSEEN = Flag.FOOTER | Flag.DIALOG | Flag.HIDDEN
_ELSEWHERE = Flag.NAV | Flag.ASIDE
_LISTED = Flag.LIST | Flag.BUTTON | Flag.FORM
_H1 = TAGS["h1"]
_RANKS = np.zeros(max(TAGS.values()) + 1, dtype=np.int8)
_RANKS[[TAGS[f"h{rank}"] for rank in range(1, 7)]] = range(1, 7)
_standfirst = re.compile(rf"[\s_-](?:{either(STANDFIRSTS)})(?=[\s_-]|$)").search
_title = re.compile(rf"[\s_-](?:{either(TITLES)})(?=[\s_-]|$)").search
_ends_sentence = re.compile(r"[.!?…。！？][\"”»“’」』]?\Z").search


def with_headline(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the headline as the first main block or, if the user drops it, without the headline.

    Main blocks above the headline, if they have no body text and are less than half of the main text, are removed
    unless they are prices or the model is sure of them; they are dates, categories and breadcrumbs. The lead below it
    becomes main (:func:`_lead`). If nothing is main, or no headline is found, the labels are returned unchanged.
    """
    page, p = scored.page, scored.probabilities
    found = headline(page, main)
    if found is None:
        return main
    labels: Bools = main.copy()
    _, end = _joined_headings(page).get(found, (0, found + 1))
    labels[_lead(scored, main, found, end)] = True
    if page.config.title == "drop":
        if scored.flags[found] & _HEADING or "\n" not in page.blocks.text[found]:  # or else it also says who and when
            labels[found:end] = False
        return labels
    labels[found:end] = True
    above, texts = np.flatnonzero(main[:found]).tolist(), page.blocks.text
    no_body = _HEADING | Flag.NOSCRIPT
    if not any(not scored.flags[i] & no_body and len(tokens(texts[i])) >= BODY_WORDS for i in above):
        lost = [i for i in above if p[i] < LIKELY and not may_be_price(texts[i])]
        if 2 * scored.size[lost].sum() < scored.size[main].sum():
            labels[lost] = False
    return labels


def _joined_headings(page: Page) -> dict[int, tuple[int, int]]:
    """Return the headings of several blocks that together, and not by the first alone, are the name of the page: by the
    first block, the node and the block behind the last.

    No standard allows blocks in a heading. Those are not joined that are shown otherwise than the rest of it.
    """
    tree, blocks, names, found = page.tree, page.blocks, page.declared.names, dict[int, tuple[int, int]]()
    number = tree.block_end - tree.block_start
    for node in np.flatnonzero((_RANKS[tree.tag] > 0) & (number > 1) & (number <= MOST_JOINED)).tolist():
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        flags = np.bitwise_or.reduce(tree.flags[blocks.context[a:b]] | tree.flags[blocks.leaf[a:b]])
        first, *rest = (tokens(text[:LONGEST_LINE]) for text in blocks.text[a:b])
        if not flags & ~tree.flags[node] & (UNSEEN | ELSEWHERE | Flag.ASIDE | Flag.BUTTON) and (
            names.match([*first, *chain(*rest)], h1=True) > names.match(first, h1=True)
        ):
            found.setdefault(a, (node, b))
    return found


def _lead(scored: ScoredPage, main: Bools, found: int, end: int) -> list[int]:
    """Return the blocks of the lead, which is between the end of the headline and the first main block.

    It has sentences that are likely enough, and the standfirst, which models often mistake for a summary. A standfirst
    is what a description in the page's head says, a heading that repeats another part of its title, or named as such.
    """
    below = range(end, min(end + LEAD_BLOCKS, len(main)))
    page, flags, texts = scored.page, scored.flags, scored.page.blocks.text
    name = letters_of(" ".join(texts[found:end]))
    descriptions = [text for text in map(letters_of, page.declared.descriptions) if text and text != name]
    subtitles = {"".join(words) for words in page.declared.names.words if len(words) >= SUBTITLE_WORDS} - {name}
    lead: dict[str, int] = {}  # by text, because themes repeat a standfirst for narrow screens
    for i in takewhile(lambda i: not main[i], below):
        if flags[i] & _NO_LEAD:
            continue
        letters, size, is_heading = letters_of(texts[i]), len(tokens(texts[i])), flags[i] & _HEADING != 0
        if (
            (is_heading and letters in subtitles)
            or (size >= PLAIN_WORDS and (_is_named_so(page, i, _standfirst) or _is_one_of(letters, descriptions)))
            or (
                scored.probabilities[i] >= LEAD_PROBABILITY
                and size >= (SUBLINE_WORDS if is_heading else BODY_WORDS)
                and (letters != name if is_heading else _ends_sentence(texts[i].rstrip()[-2:]))
            )
        ):
            lead.setdefault(letters, i)
    return list(lead.values())


def _is_named_so(page: Page, block: int, search: Callable[[str], re.Match[str] | None]) -> bool:
    """Return True if the element of a block, or the one around it that begins with it, has a name that is found."""
    tree, node = page.tree, int(page.blocks.context[block])
    around = (node, max(0, int(tree.parent[node])))
    return any(
        tree.block_start[i] == block and search(f" {tree.names[i][:LONGEST_CLASS].lower()}") is not None for i in around
    )


def letters_of(text: str) -> str:
    return "".join(tokens(text[:LONGEST_LINE]))


def _is_one_of(text: str, descriptions: Sequence[str]) -> bool:
    """Return True if a text is one of the descriptions. Either of them may be cut off."""
    return any(
        text == one
        or (min(len(text), len(one)) >= DESCRIPTION_LETTERS and (text.startswith(one) or one.startswith(text)))
        for one in descriptions
    )


def headline(page: Page, main: Bools) -> int | None:
    """Return the number of the block that is the headline, or None if there is none.

    The headline is the nearest heading above the first body text that shares its words with what the page says that it
    is called (:attr:`~scrapy_dripper.declared.Declared.names`). An ``h1`` comes before other headings, which may be
    subtitles, series or versions, unless it only repeats the end of the title. Without such a heading, the headline is
    a line above the text that is not a heading but has exactly the words of a name, or is the title, or the ``h1``
    above the text if there is only one, which also comes before a heading with which a name only begins. If there is
    none of these, it is the heading that is called as the page, the nearest one above the text or else the first ``h1``
    below; a short line with the words of a name whose class says that it is a title; or a hidden ``h1`` with exactly
    the words of a headline in the metadata. The name of the site and other hidden blocks are never the headline.
    """
    numbers = np.flatnonzero(main).tolist()
    if not numbers:
        return None
    names, texts = page.declared.names, [*page.blocks.text]
    flags = (page.tree.flags[page.blocks.context] | page.tree.flags[page.blocks.leaf]).tolist()
    # A notice for browsers without scripts is above the headline.
    no_body = _HEADING | (Flag.NOSCRIPT if any(not flags[i] & Flag.NOSCRIPT for i in numbers) else 0)
    body = next((i for i in numbers if not flags[i] & no_body and len(tokens(texts[i])) >= BODY_WORDS), numbers[-1])
    # Ignore flags that the text itself has, for example because of an unclosed <nav>.
    unseen, elsewhere = _UNSEEN & ~flags[body], _ELSEWHERE & ~flags[body]
    contexts = page.blocks.context.tolist()
    tags = page.tree.tag[contexts].tolist()
    for i, (node, end) in _joined_headings(page).items():
        texts[i:end] = " ".join(texts[i:end]), *[""] * (end - i - 1)
        tags[i] = page.tree.tag[node]
    named: list[tuple[Match, bool, int]] = []  # headings that share words with a name, the best one is the largest
    h1s: dict[str, tuple[int, list[str]]] = {}  # outside of menus and sidebars
    lines: tuple[list[int], list[int], list[int]] = ([], [], [])  # by their rank
    hidden: list[int] = []
    for i, text in enumerate(texts[: body + 1]):
        h1, aside = tags[i] == _H1, flags[i] & elsewhere != 0
        if len(text) > LONGEST_LINE:
            continue
        if flags[i] & unseen:
            if h1 and flags[i] & unseen == Flag.HIDDEN:
                hidden.append(i)
            continue
        words = tokens(text)
        if not flags[i] & _HEADING:
            lines[0 if aside or flags[i] & _LISTED else _line_rank(page, i, words)].append(i)
        elif words and not (names.is_other(words) or names.ends(words) or names_site(page.tree.names[contexts[i]])):
            match = names.match(words, h1=h1)
            h1 &= not aside
            letters = "".join(words)
            if match and (not aside or (match is Match.ALL and tags[i] == _H1)):
                named.append((match, h1 and letters != names.ending, i))
            if h1 and not (flags[i] & Flag.LINK and leads_away(page.tree.nodes[contexts[i]], page.url)):
                h1s[letters] = i, words
    match, _, best = max(named, default=(Match.FEW, False, -1))
    if match > Match.FIRST or (match and len(h1s) != 1):
        # Prefer an h1 that also has other words, such as a chapter number, to the heading of its first section.
        longer = (i for i, words in h1s.values() if i < best and set(tokens(texts[best])).issubset(words))
        return next(longer, best)
    seen = (i for i, own in enumerate(flags) if own & _HEADING and not own & (unseen | elsewhere))
    called = _with_page_name(page, [(i, texts[i]) for i in seen])
    only = [i for i, words in h1s.values() if len(h1s) == 1 and not (called and names.fit(words) == 0)]
    near = [i for i in called if i <= body][-1:] or [i for i in called if tags[i] == _H1]
    return next(chain(lines[2][-1:], only, near, lines[1][-1:], _drawn(page, hidden, texts[: body + 1])), None)


def _line_rank(page: Page, block: int, words: Sequence[str]) -> int:
    """Return 2 for a line with the words of a name of the page, 1 for a short one that is named as a title, else 0."""
    names, name = page.declared.names, page.declared.name
    first, *rest = page.blocks.text[block].split("\n")
    is_first = bool(rest) and max(len(tokens(line)) for line in rest) < BODY_WORDS and names.is_line(tokens(first))
    is_line = is_first or names.is_line(words) or (name.reason == LINE and words == tokens(name.text))
    if not (is_line or names.is_named(words)):
        return 0
    leads_up = link_level(page.tree.nodes[page.blocks.context[block]], page.url or ANYWHERE)
    return 0 if leads_up else 2 if is_line else int(_is_named_so(page, block, _title))


def _with_page_name(page: Page, headings: Iterable[tuple[int, str]]) -> list[int]:
    """Return those of some headings, given with their text, that are called as the page."""
    names, words = page.declared.names, tokens(page.headline or "")
    match = names.match(words, h1=True)
    is_own = match is Match.ALL or (match is Match.MOST and not names.ends(words))
    return [i for i, text in headings if is_own and letters_of(text) == "".join(words)]


def _drawn(page: Page, hidden: list[int], above: Sequence[str]) -> Iterator[int]:
    """Yield the first hidden ``h1`` that is a headline in the metadata, and is there once: a script draws it again."""
    if hidden:
        names = page.declared.names
        said = {letters_of(name) for name in page.declared.headlines if not names.is_site(tokens(name))} - {""}
        found = islice((i for i in hidden if letters_of(above[i]) in said), 1)
        yield from (i for i in found if above.count(above[i]) == 1)


LONGEST_PRICE = 30
"""Maximum length of a price, in characters."""
BLOCKS_ABOVE_NAME, BLOCKS_BELOW_NAME = 8, 40
"""Maximum number of blocks from a fact above the name of a page to it, and from the name, or the end of a recipe, to a
fact below. A price that is not declared is as near as the first, on either side."""
MOST_PRICES = 8
"""Maximum number of prices that a page states and declares. More of them are those of a list of products."""

_has_currency = re.compile(CURRENCIES, re.I).search
_sum = rf"(?:(?:[a-z]{{1,2}}\s?)?(?:{CURRENCIES})\s?{AMOUNT}|{AMOUNT}\s?(?:{CURRENCIES}))\+?"
_title_parts = re.compile(r"\s[-–—|·•:]\s|:\s").split
_amount = re.compile(r"(\d{1,3}(?:\s\d{3}){1,3}|\d[\d.,'’]{0,15}?)(?:[.,](\d{1,2}))?(?![\d.,'’]{0,15}\d)").search
_researcher = re.compile(r"(?:https?://)?(?:www\.)?orcid\.org/\S{1,40}|\b\d{4}-\d{4}-\d{4}-\d{3}[\dX]\b").sub
_length = re.compile(r"\s\(?\d{1,3}:\d\d\)?\Z").sub
_is_price = re.compile(rf"(?:[^\W\d]{{1,12}}:\s)?{_sum}(?:\W{{0,3}}{_sum}){{0,2}}", re.I).fullmatch


def may_be_price(text: str) -> bool:
    """Return True for a short text with a currency."""
    return len(text) <= LONGEST_PRICE and _has_currency(text) is not None


def name_block(scored: ScoredPage, main: Bools) -> int:
    """Return the block with the name of a page with main blocks: its ``<h1>``, or else the first main block."""
    tree, context = scored.page.tree, scored.page.blocks.context
    is_h1 = (tree.tag[context] == _H1) | (tree.tag[np.maximum(tree.parent[context], 0)] == _H1)
    headings = np.flatnonzero(is_h1 & (scored.flags & UNSEEN == 0))
    texts, title = scored.page.blocks.text, scored.page.headline
    return next((i for i in headings.tolist() if texts[i] == title), int([*headings, np.argmax(main)][0]))


def with_name_facts(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with the facts added that stand beside the name of a page, and with the tracks of an album."""
    name = name_block(scored, main)
    labels: Bools = main.copy()
    labels[[*_price(scored, main, name), *_named(scored, main, name), *_tracks(scored)]] = True
    return labels


def _price(scored: ScoredPage, main: Bools, name: int) -> Iterator[int]:
    """Yield the first price below the name, or else the nearest one right above it, that the page declares as its own,
    or that is a part of its title. If a page of a product shows no such price, any likely one right beside the name is
    one.
    """
    page, texts = scored.page, scored.page.blocks.text
    titles = (page.declared.document_title, *page.declared.headlines)
    named = [part for title in titles if _amount(title) for part in _title_parts(title) if _is_price(part.strip())]
    declared = {_cents(text) for text in (*(fact.text for fact in page.facts if fact.kind == "price"), *named)} - {""}
    is_product = scored.page_type == "product" or "product" in page.declared.types
    if not (declared or is_product):
        return
    seen = scored.flags & (UNSEEN | Flag.NAV | Flag.FOOTER | Flag.DIALOG) == 0
    short = np.flatnonzero(seen & (scored.chars <= LONGEST_PRICE)).tolist()
    # A style sheet may set the hundredths apart: "17334 Lei".
    stated = (i for i in short if may_be_price(texts[i]))
    prices = [i for i in stated if not declared.isdisjoint((_cents(texts[i]), _digits(texts[i])))]
    if not prices and is_product:
        beside = (i for i in short if abs(i - name) <= BLOCKS_ABOVE_NAME and not page.blocks.links[i])
        likely = (i for i in beside if _is_price(texts[i]) and scored.probabilities[i] >= HEADING_PROBABILITY)
        prices = [i for i in likely if _cents(texts[i]).strip("0")]  # that of an empty cart is 0
    below = (i for i in prices if name < i <= name + BLOCKS_BELOW_NAME)
    above = (i for i in reversed(prices) if name - BLOCKS_ABOVE_NAME <= i < name)
    price = next(chain(below, above), None)
    if price is not None and len(prices) <= MOST_PRICES and not main[prices].any():
        yield price


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _cents(text: str) -> str:
    """Return the first amount in a text, in hundredths: 190000 for 1.900,00, and for 1900; empty if there is none."""
    found = _amount(text)
    return _digits(found[1]) + (found[2] or "").ljust(2, "0") if found else ""


def _named(scored: ScoredPage, main: Bools, name: int) -> Iterator[int]:
    """Yield the texts beside the name that consist of declared names, each name once."""
    texts, declared = scored.page.blocks.text, scored.page.declared.beside_name
    # Initials and numbers are parts of names. Authors may be namesakes.
    left = Counter(
        frozenset(word for word in tokens(text) if not (word.isdigit() or (len(word) == 1 and word.isascii())))
        for text in declared
    )
    known = frozenset(chain.from_iterable(map(tokens, declared)))
    if not known:
        return
    regions = scored.page.declared.regions
    body = name + 1 + int(np.argmax([*((scored.size >= BODY_WORDS) & main)[name + 1 :], True]))
    for i in (
        *range(name + 1, min(name + 1 + BLOCKS_BELOW_NAME, len(texts))),
        *range(max(0, name - BLOCKS_ABOVE_NAME), name),
    ):
        if scored.flags[i] & (UNSEEN | ELSEWHERE):
            continue
        text = tokens(_researcher("", texts[i]))
        found = set(text)  # once, because each of many authors is looked for in it
        new = [one for one in left if one and one <= found and left[one]]
        if not new:
            continue
        near = known.union(*(tokens(one) for one in regions if one in texts[i]))  # "IN", but not "in"
        # Others are titles and places, but not below the text, where links lead to other jobs in town.
        words = [word for word in text if not word.isdigit()]  # without the numbers of notes
        if len(words) <= (2 if i < body else 1) * sum(word in near for word in words):
            left.subtract(new)
            yield i


def _tracks(scored: ScoredPage) -> Iterator[int]:
    """Yield the texts that are declared tracks of an album, with or without their length."""
    declared = {letters_of(track) for track in scored.page.declared.linked.tracks()} - {""}
    for i, text in enumerate(scored.page.blocks.text if declared else ()):
        if not scored.flags[i] & (UNSEEN | ELSEWHERE) and letters_of(_length("", text)) in declared:
            yield i


HEADING_PROBABILITY = 0.2
"""Minimum probability for a heading to follow its section into the main content."""
MOST_EMPTY = 3
"""Maximum number of headings without content on a page. More of them are content themselves, such as names on cards."""
LONGEST_HEADING = 12
"""Maximum number of words of a heading. A longer one says something by itself."""

_asks = re.compile(rf"(?:{either(REPLIES)})\W*(?:cancel reply\W*)?", re.I).fullmatch
_is_image = tag_mask(*MEDIA)
_BARRED = UNSEEN | ELSEWHERE | Flag.LINK | Flag.BUTTON


def with_headings(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels with headings added of whose section most is main, from its beginning, and without those of
    whose section nothing is.

    The first main block stays, and so do links, prices and the headings of written images, which are below a heading or
    right above it. Nothing is added above the first block. A heading that ends its element heads nothing, and one that
    asks for a comment has no content.
    """
    page, tree, blocks = scored.page, scored.page.tree, scored.page.blocks
    own, outer = _RANKS[tree.tag[blocks.context]], _RANKS[tree.tag[np.maximum(tree.parent[blocks.context], 0)]]
    ranks: list[int] = np.where(own, own, outer).tolist()  # of the heading that each block begins, or 0
    for start, (_, stop) in _joined_headings(page).items():
        ranks[start + 1 : stop] = [0] * (stop - start - 1)
    # A paragraph may begin with a button, such as a reference that opens a note.
    seen = (scored.flags & UNSEEN == 0) & ((scored.flags & Flag.BUTTON == 0) | (scored.size > LONGEST_HEADING))
    may_be = ~main & (scored.flags & _BARRED == 0) & (scored.probabilities >= HEADING_PROBABILITY)
    total, kept = (np.cumsum([0, *part]) for part in (scored.chars * seen, scored.chars * (seen & main)))
    images = cache(partial(_images, page, main))
    labels: Bools = main.copy()
    empty: list[int] = []
    ends = [len(main)] * 7  # where a section of each rank ends, if it begins here
    first = int(np.argmax(main)) if main.any() else len(main)
    after = shown = len(main)  # the next main block, of those that stay, and the next one that is no button
    for i in range(len(main) - 1, -1, -1):
        rank, text = ranks[i], blocks.text[i]
        end = ends[rank]
        if rank and i > first and len(text.split()) <= LONGEST_HEADING:
            if main[i] and after >= end and not blocks.links[i]:
                shows_images = blocks.images[i : end + 1].any() and images()[i : end + 1].any()
                if (shown < end or _asks(text)) and not (shows_images or _is_price(text)):
                    empty.append(i)
            elif may_be[i] and after == shown < end and i + 1 < tree.block_end[page.holder(i)]:
                labels[i] = kept[end] - kept[i] >= NEARLY_ALL * (total[end] - total[i + 1])
        if labels[i] and i not in empty[-1:]:
            after = i
        if seen[i]:
            shown = i
        if rank:
            ends[rank:] = [i] * (7 - rank)
    if len(empty) <= MOST_EMPTY:
        labels[empty] = False
    return labels


def _images(page: Page, main: Bools) -> Bools:
    """Return for each block, and for the end of the page, whether an image in it or before it is written."""
    tree = page.tree
    owners = tree.self_owner[mask_of(page, main).nodes & _is_image[tree.tag]]
    found: Bools = np.zeros(len(main) + 1, dtype=np.bool_)
    found[np.where(is_gap(owners), block_behind(owners), owners)] = True
    return found
