"""Convert Main-HTML to a list of typed items, in one walk over the tree: where it begins, and what each tag does."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lxml import etree

from scrapy_dripper.characters import unbroken
from scrapy_dripper.declared import Notation
from scrapy_dripper.output.main_html import to_html
from scrapy_dripper.output.reader import (
    MAX_NESTING,
    Enter,
    Format,
    Leave,
    OpenList,
    Reader,
    Separator,
    numbers_of,
    skip,
    stanzas,
    tells_of_window,
)
from scrapy_dripper.page.nodes import SHORT, SLATE, in_sentence, inner_text, short_text
from scrapy_dripper.page.tags import KINDS, LONGEST_CLASS, UNSEEN, Kind
from scrapy_dripper.structures import NEAR
from scrapy_dripper.structures.callouts import alert_of, callout, callout_title, has_callout_class
from scrapy_dripper.structures.code import code_block, has_code_class, with_code_lines
from scrapy_dripper.structures.embeds import is_post, quoted
from scrapy_dripper.structures.footnotes import (
    NOTE_IN_PLACE,
    NOTE_TAG,
    footnotes,
    gathered,
    note_in_place,
    without_label,
)
from scrapy_dripper.structures.formulas import MATH_TAGS, formula, has_math_class
from scrapy_dripper.structures.headings import anchor_of, has_word, header_link, is_edit_link, is_self_link, self_link
from scrapy_dripper.structures.hidden import tabs_of
from scrapy_dripper.structures.images import (
    FIGURE_CLASSES,
    PLAYER_TAGS,
    caption_of,
    emoji,
    has_place,
    holds_blocks,
    image,
    is_button,
    is_figure,
    player,
    same_image,
    with_caption,
)
from scrapy_dripper.structures.items import (
    Deleted,
    Emphasis,
    Footnote,
    FootnoteMark,
    Footnotes,
    Image,
    Item,
    Items,
    Link,
    List,
    ListItem,
    Paragraph,
    Post,
    Quote,
    Ruby,
    Run,
    Runs,
    Strong,
    Sub,
    Sup,
    Text,
    ThematicBreak,
    Title,
    line_text,
    without_empty_posts,
)
from scrapy_dripper.structures.tables import table


def content_list(
    root: etree._Element,
    base_url: str = "",
    notation: Notation | None = None,
    growth: int = sys.maxsize,
    posts: Mapping[etree._Element, Post] | None = None,
    html: str | None = None,
) -> Items:
    """Return the content of a tree, such as that of Main-HTML, as items in document order.

    Relative URLs are resolved against ``base_url``; URLs that cannot be resolved are kept as they are. ``notation``
    is how the page writes formulas; by default, scripts in the tree tell. ``growth`` limits the characters that
    resolving relative URLs adds in total. ``posts`` are the marks of the posts of a thread, by their elements.
    ``html`` is the tree as HTML, if the caller has that: it tells in microseconds what is not in the tree.
    """
    if notation is None:
        notation = Notation([text for one in root.iter("script") for text in (one.get("src"), one.text) if text])
    enter, other = (_ENTER, _other) if not posts else ({}, _in_thread(posts))
    html = to_html(root) if html is None else html
    if "data-bbox" in html:
        from scrapy_dripper.output.boxes import has_boxes, with_boxes  # for few pages

        enter, other = ({}, with_boxes(enter, other)) if has_boxes(root) else (enter, other)
    reader = Reader(root, base_url, notation, enter, other, tabs_of(root, html), growth)
    items = _without_copies(with_code_lines(gathered(reader.read(root))))
    if reader.inline_notes:
        items = (*items, Footnotes(tuple(reader.inline_notes)))
    return without_empty_posts(items) if posts else items


def _in_thread(posts: Mapping[etree._Element, Post]) -> Enter:
    """Return the handler of all elements of a page with posts, which reads the elements around posts as plain blocks.

    The list or table by which a site arranges the posts says nothing about their text.
    """
    around: set[etree._Element] = set()
    for post in posts:
        element: etree._Element | None = post
        while element is not None and element not in around:
            around.add(element)
            element = element.getparent()
    opened = [Post()]

    def enter(reader: Reader, element: etree._Element) -> Leave:
        if element not in around:
            return _ENTER.get(element.tag, _other)(reader, element)
        reader.flush()
        mark = posts.get(element)
        if mark is None:
            return reader.flush
        reader.items.append(mark)
        opened.append(mark)

        def leave() -> None:
            reader.flush()
            opened.pop()
            reader.items.append(opened[-1])

        return leave

    return enter


def _without_copies(items: Items) -> Items:
    """Return the items with each picture of a gallery once. A carousel holds its pictures again, to go round."""
    made: list[Item] = []
    gallery: set[Image] = set()
    for item in items:
        if type(item) is not Image:
            gallery.clear()
        elif item in gallery:
            continue
        else:
            gallery.add(item)
        made.append(item)
    return tuple(made)


# ---------------------------------------------------------------------- inline tags
_for_screen_readers = re.compile(
    r"(?:^|\s)(?:sr-only|screen-?reader(?:s?-?text|-only)?|(?:u-)?visually-?hidden|element-invisible|show-for-sr"
    r"|a11y-hidden)(?:\s|$)",
    re.I,
).search
_of_researcher = re.compile(r"https?://(?:www\.)?orcid\.org/").match
_word = re.compile(r"\w").search


def inline(reader: Reader, _element: etree._Element) -> Leave:
    """Enter an element that has no format of its own."""
    if reader.loose:
        reader.touch()
    return None


def _format(form: Format) -> Enter:
    def enter(reader: Reader, _element: etree._Element) -> Leave:
        if form not in (Sub, Sup):
            reader.touch()
        return reader.line.close if reader.line.open(form) else None

    return enter


def _span(reader: Reader, element: etree._Element) -> Leave:
    if reader.loose:
        reader.touch()
    name = element.get("class")
    if name:
        if has_math_class(name) and add_formula(reader, element):
            return skip
        if is_edit_link(name):  # in a heading or, since MediaWiki 1.43, beside it
            return skip
        for_screen_readers = _for_screen_readers(name)
        if for_screen_readers and _is_kind_of_frame(element):
            return skip
        if for_screen_readers and reader.line.begun:
            text = short_text(element)  # a longer text does not just repeat the line
            if text is not None and (tells_of_window(text) or reader.line.says(numbers_of(text))):
                return skip
            reader.line.separate(Separator.SPACE)
            return lambda: reader.line.separate(Separator.SPACE)
        if reader.frame.notes and reader.footnotes.leads_back(element, None):
            return skip
        if reader.frame.notes and NOTE_TAG in name:
            return skip
        if NOTE_IN_PLACE in name and _note_in_place(reader, element):
            return skip
    return None


def _is_kind_of_frame(element: etree._Element) -> bool:
    """Return True for what is alone in the caption of code, such as ``Terminal window`` in Expressive Code."""
    caption = element.getparent()
    if caption is None or caption.tag != "figcaption" or len(caption) > 1 or (caption.text or "").strip():
        return False
    code = caption.getnext()
    return code is not None and code.tag == "pre"


def _note_in_place(reader: Reader, element: etree._Element) -> bool:
    """Read a footnote that is written in place of its mark. Return False for other elements."""
    if reader.frame.notes or reader.frame.title:
        return False
    content, shown = note_in_place(element)
    if content is None:
        return False
    reader.push(reader.frame._replace(notes=1))
    items = without_label(reader.read(content), shown)
    reader.pop()
    if items:
        label = reader.footnotes.free_label(shown)
        reader.inline_notes.append(Footnote(label, items))
        reader.line.run(FootnoteMark(label))
    return True


def _anchor(reader: Reader, element: etree._Element) -> Leave:
    href = element.get("href")
    if href and href[0] == "#":
        return _anchor_here(reader, element, href)
    reader.touch()
    if not href or (reader.frame.title and is_self_link(element)):
        return skip if href else None
    if _of_researcher(href) and has_word(element) and _is_unseen(element):
        return skip  # the sign of ORCID beside the name of an author
    url = reader.resolve(href)
    if reader.frame.title and reader.leads_here(url):
        return None  # the headline of a post, which themes link to the page that it is on
    return _link(reader, element, url)


def _link(reader: Reader, element: etree._Element, url: str) -> Leave:
    if not url or not reader.line.open(Link, url, unbroken(element.get("title") or "")):
        return None
    return reader.line.close


def _anchor_here(reader: Reader, element: etree._Element, href: str) -> Leave:
    """Enter a link to a place on the page: a mark of a footnote, the sign of a heading, or an ordinary link."""
    name = element.get("class")
    if name and header_link(name) and not has_word(element):
        return skip
    if reader.frame.notes and reader.footnotes.leads_back(element, href):
        return skip
    if reader.frame.title:
        reader.touch()
        return None if has_word(element) and not is_self_link(element) else skip
    label = reader.footnotes.label(element, href) if href != "#" else None
    if label is not None:
        reader.line.run(FootnoteMark(label))  # right behind the word
        return skip
    reader.touch()
    if href == "#" or reader.footnotes.is_mark(element, href):  # a mark whose footnote is not main content
        return None
    if name and self_link(name) and _is_unseen(element):
        return skip
    return _link(reader, element, reader.resolve(href))


def _is_unseen(element: etree._Element) -> bool:
    """Return True for a link that shows a sign, with a text for screen readers only."""
    seen = [element.text, *(child.tail for child in element)]
    others = (child for child in element if not _for_screen_readers(child.get("class") or ""))
    return not any(text and text.strip() for text in seen) and not any(map(has_word, others))


def code_tag(reader: Reader, element: etree._Element) -> Leave:
    """Read the content of an element as code."""
    reader.touch()
    name = element.get("class")
    if name and has_math_class(name) and add_formula(reader, element):
        return skip
    reader.line.open_code()
    return reader.line.close_code


def _quotation(reader: Reader, _element: etree._Element) -> Leave:
    reader.touch()
    reader.line.text("\u201c")

    def leave() -> None:
        reader.line.pending = Separator.NOTHING
        reader.line.text("\u201d")

    return leave


def _line_break(reader: Reader, _element: etree._Element) -> Leave:
    line = reader.line
    if reader.frame.flat:
        line.separate(Separator.SPACE)
    elif line.pending < Separator.BREAK:
        line.separate(Separator.BREAK)
    elif reader.frame.table_depth:
        line.separate(Separator.BREAKS)
    else:
        reader.flush()
    return None


def _ruby(reader: Reader, element: etree._Element) -> Leave:
    reader.touch()
    if reader.frame.ruby:
        return None
    line = reader.new_line()
    reader.push(reader.frame._replace(line=line, flat=True, ruby=True))
    line.text(element.text or "")
    parts: list[Run] = []
    for child in element:
        if child.tag in ("rt", "rtc"):
            base, reading = line.take(), "".join(inner_text(child).split())
            parts += [Ruby(base, reading)] if base and reading else base
        elif isinstance(child.tag, str) and child.tag != "rp":
            reader.walk(child)
        line.text(child.tail or "")
    parts += line.take()
    reader.pop()
    for part in parts:
        if type(part) is Text:
            reader.line.text(part.text)
        else:
            reader.line.run(part)
    return skip


def add_formula(reader: Reader, element: etree._Element) -> bool:
    """Add an element as a formula. Return False if it is not one."""
    made = formula(element)
    if made is None:
        return False
    if made.latex:
        reader.line.run(made)
    return True


def _math(reader: Reader, element: etree._Element) -> Leave:
    reader.touch()
    return skip if add_formula(reader, element) else None


def _script(reader: Reader, element: etree._Element) -> Leave:
    if element.get("type", "").strip().lower() == "math/asciimath" and (element.text or "").strip():
        reader.line.text(f"`{(element.text or '').strip()}`")  # as authors write AsciiMath in the text
    else:
        add_formula(reader, element)
    return skip


def image_tag(reader: Reader, element: etree._Element) -> Leave:
    """Add an element as an image."""
    if element.tag == "picture" and any(child.tag not in ("img", "source") for child in element):
        return None
    inner = element.find("img") if element.tag == "picture" else element
    inner = element if inner is None else inner
    if add_formula(reader, inner):
        return skip
    character = emoji(inner)
    if _word(character):  # the name of an emoji
        character = ""
    picture = None if character else image(element, reader.resolve)
    if picture is None and reader.frame.table_depth and not reader.line.begun and not is_button(element):
        character = character or " ".join((inner.get("alt") or "").split())  # a check mark or a cross
    if character:
        reader.line.text(character)
    elif picture is not None and not _is_repeated(reader, element, picture):
        reader.line.image(picture, same_image)
    return skip


MOST_COPIES = 4
"""Maximum number of times that a page has an image that says and opens nothing, unless it is an ornament. Two of them
may be copies for pages without scripts."""


def _is_repeated(reader: Reader, element: etree._Element, picture: Image) -> bool:
    """Return True for an ornament, such as a star: an image that a page has often, and that says and opens nothing."""
    says = picture.alt or picture.title or has_place(element) or next(element.iterancestors("a"), None) is not None
    return not says and reader.count_image(picture.src) > MOST_COPIES


def _box(reader: Reader, element: etree._Element) -> Leave:
    """Record the state of a task's checkbox, at the beginning of its list entry."""
    around = reader.frame.open_list
    if (
        (element.get("type") or "").lower() == "checkbox"
        and around is not None
        and around.kind != "definition"
        and not (reader.items or reader.line.begun or element.get("name"))
    ):
        around.checked = element.get("checked") is not None
    return skip


def _cite(reader: Reader, element: etree._Element) -> Leave:
    """Separate the name of a quoted person from the quotation, as the style sheets of forums do."""
    around = element.getparent()
    if around is not None and around.tag == "div":
        around = around.getparent()
    if reader.line.begun or around is None or around.tag != "blockquote":
        return None
    return lambda: reader.line.separate(Separator.LOOSE)


_INLINE: dict[Any, Enter] = {
    "input": _box,
    **dict.fromkeys(("wbr", "rp", "source", "track"), lambda _reader, _element: skip),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), code_tag),
    **dict.fromkeys(("em", "i", "var", "dfn"), _format(Emphasis)),
    **dict.fromkeys(("strong", "b"), _format(Strong)),
    **dict.fromkeys(("del", "s", "strike"), _format(Deleted)),
    **dict.fromkeys(("img", "image", "picture"), image_tag),
    "sub": _format(Sub),
    "sup": _format(Sup),
    "span": _span,
    "a": _anchor,
    "q": _quotation,
    "cite": _cite,
    "br": _line_break,
    "ruby": _ruby,
    **dict.fromkeys(MATH_TAGS - {"img", "script"}, _math),
    "script": _script,
}
"""Handlers by tag."""


# ---------------------------------------------------------------------- block tags
_digits = re.compile(r"\s*(\d{1,9})\s*").fullmatch
_of_docs = re.compile(r"(?:^|\s)lst-kix_(\w{1,64})-(\d)(?=\s|$)").search
"""Matches the class of a list in a published Google Docs document, with its name and level."""
LONGEST_AMOUNT, LONGEST_ENTRY = 20, 80
"""Maximum length of an amount that stands beside the rest of its entry, and of that rest, in characters."""
_amount = re.compile(rf"[\d¼-¾⅐-⅞](?:[^,;:!?]|,\d){{0,{LONGEST_AMOUNT - 1}}}").fullmatch
_ENDS = (".", "!", "?", ":", "。")
_bullets = frozenset("•·▪▢□‣◦*–-")
_STEP = "step|schritt|étape|paso|passo|krok|stap|steg|trin|vaihe|adım|lépés|pas|βήμα|шаг|крок|步骤|步驟|단계|ステップ"
_own_number = re.compile(rf"(?:(?:{_STEP})\s?)?0?(\d{{1,4}})[.):]?", re.I).fullmatch
"""Matches ``3.`` and ``Step 3``."""
_LEVELS = {f"h{level}": level for level in range(1, 7)}


def block(reader: Reader, element: etree._Element) -> Leave:
    """Enter an element that is a block of its own, and may be a footnote, a panel or a list of tabs."""
    reader.flush()
    if element in reader.tabs.lists:
        return skip
    _open_panel(reader, element)
    if not _is_note(reader, element):
        return reader.flush
    label = reader.footnotes.notes[element]
    return reader.hold(lambda items: footnotes([(label, without_label(items, label))]), notes=1)


def _open_panel(reader: Reader, element: etree._Element) -> None:
    """Add the title of a tab panel, if it is one, one level below the heading above all panels."""
    title = reader.tabs.titles.get(element)
    if title is None:
        return
    reader.flush()
    own, runs = reader.tabs.runs, (Text(title),)
    above = (item for item in reversed(reader.items[-NEAR:]) if type(item) is Title and item.runs not in own)
    if not reader.items or getattr(reader.items[-1], "runs", None) != runs:  # an element may be opened as two things
        reader.items.append(Title(min(next((item.level for item in above), 2) + 1, 6), runs))


def _is_note(reader: Reader, element: etree._Element) -> bool:
    """Return True if an element is a footnote to read as such. Of deeply nested ones, only the outer ones are."""
    notes, frame = reader.footnotes.notes, reader.frame
    return bool(notes) and not frame.flat and frame.notes < MAX_NESTING and element in notes


def block_with_class(reader: Reader, element: etree._Element) -> Leave:
    """Enter a ``<div>``, ``<p>`` or similar element, whose meaning can depend on its class."""
    name = element.get("class")
    if element.get("data-lang") or element.get(SLATE):
        name = f"{name or ''} code"
    if name and not (len(name) <= LONGEST_CLASS and _is_plain(name)):
        if has_code_class(name):
            _open_panel(reader, element)
            if add_code(reader, element):
                return skip
        if has_math_class(name) and add_formula(reader, element):
            return skip
        if is_figure(element):
            return figure(reader, element)
        if has_callout_class(name):
            return _callout(reader, element)
        if is_edit_link(name):
            reader.flush()
            return skip
        if is_post(name) and reader.fits:
            reader.split_title()
            return reader.hold(quoted)
    return block(reader, element)


@lru_cache(4_096)
def _is_plain(name: str) -> bool:
    """Return True if a class attribute does not change the meaning of an element: most do not."""
    return not (
        has_code_class(name)
        or has_math_class(name)
        or has_callout_class(name)
        or is_edit_link(name)
        or is_post(name)
        or not FIGURE_CLASSES.isdisjoint(name.split())
    )


def _callout(reader: Reader, element: etree._Element) -> Leave:
    reader.split_title()
    alert = alert_of(element) if reader.fits else ""
    if not alert:
        return block(reader, element)
    heading = callout_title(element, alert)
    title: Runs = ()
    if heading is not None and heading not in reader.captions:
        title = reader.read_line(heading)
        reader.captions[heading] = -1

    return reader.hold(lambda items: callout(items, alert, title))


def _paragraph(reader: Reader, element: etree._Element) -> Leave:
    reader.split_title()
    return block_with_class(reader, element)


def _heading(reader: Reader, element: etree._Element) -> Leave:
    reader.split_title()
    if reader.frame.flat:
        return block(reader, element)
    reader.flush()
    if element in reader.footnotes.notes:
        # An empty footnote, to which content_list() moves what follows.
        reader.items.append(Footnotes((Footnote(reader.footnotes.notes[element], ()),)))
        return skip
    reader.push(reader.frame._replace(flat=True, title=_LEVELS[element.tag], anchor=anchor_of(element)))

    def leave() -> None:
        if reader.frame.title:
            reader.end_title()
        else:
            reader.flush()

    return leave


def add_code(reader: Reader, element: etree._Element) -> bool:
    """Add an element as a code block. Return False if it is not one."""
    code = None if reader.frame.flat and not reader.frame.title else code_block(element)
    if code is None:
        return False
    reader.split_title()
    if reader.frame.flat:
        return False
    reader.flush()
    if code.text:
        reader.items.append(code)
    return True


def _preformatted(reader: Reader, element: etree._Element) -> Leave:
    return skip if add_code(reader, element) else block(reader, element)


def _code(reader: Reader, element: etree._Element) -> Leave:
    return skip if add_code(reader, element) else code_tag(reader, element)


def _thematic_break(reader: Reader, element: etree._Element) -> Leave:
    if element.get("role") in ("presentation", "none") or element.get("aria-hidden") == "true":
        reader.flush()
        return skip
    reader.split_title()
    reader.flush()
    if not reader.frame.flat:
        reader.items.append(ThematicBreak())
    return skip


def _player(reader: Reader, element: etree._Element) -> Leave:
    media = player(element, reader.resolve)
    if media is not None:
        reader.split_title()
        reader.flush()
        before = reader.items[-1] if reader.items else None
        if type(before) is not type(media) or before.src != media.src:
            reader.items.append(media)
        elif media.title and not before.title:  # the <noscript> copy of a lazily loaded player
            reader.items[-1] = media
    return skip


# ---------------------------------------------------------------------- containers
def _quote(reader: Reader, element: etree._Element) -> Leave:
    name = element.get("class")
    if name and has_callout_class(name):
        return _callout(reader, element)
    reader.split_title()
    return reader.hold(lambda items: (Quote(items),) if items else ()) if reader.fits else block(reader, element)


def figure(reader: Reader, element: etree._Element) -> Leave:
    """Enter a figure. Its caption is read first."""
    reader.split_title()
    figcaption = caption_of(element) if reader.fits else None
    if figcaption is None or figcaption in reader.captions or holds_blocks(figcaption):
        return block(reader, element)
    caption = reader.read_line(figcaption)
    reader.captions[figcaption] = -1
    if not caption:
        return block(reader, element)
    return reader.hold(lambda items: with_caption(items, caption, reader.captions[figcaption]))


def _figure_tag(reader: Reader, element: etree._Element) -> Leave:
    name = element.get("class")
    return skip if name and has_code_class(name) and add_code(reader, element) else figure(reader, element)


def _picture(reader: Reader, element: etree._Element) -> Leave:
    return image_tag(reader, element) if caption_of(element) is None else figure(reader, element)


def _summary(reader: Reader, _element: etree._Element) -> Leave:
    reader.flush()
    opened = not reader.frame.flat and reader.line.open(Strong)

    def leave() -> None:
        reader.flush()
        if opened:
            reader.line.close()

    return leave


def _table(reader: Reader, element: etree._Element) -> Leave:
    if _is_note(reader, element):
        return block(reader, element)
    if add_code(reader, element):
        return skip
    name = element.get("class")
    if name and has_math_class(name) and add_formula(reader, element):
        return skip
    reader.split_title()
    if reader.frame.flat or reader.frame.table_depth >= MAX_NESTING:
        return block(reader, element)
    reader.flush()
    reader.push(reader.frame._replace(table_depth=reader.frame.table_depth + 1))
    items = table(element, reader.read)
    reader.pop()
    for item in items:
        if type(item) is Paragraph and not reader.frame.table_depth:  # from a layout table
            reader.items.extend(stanzas(item))
        else:
            reader.items.append(item)
    return skip


# ---------------------------------------------------------------------- lists
def _list(reader: Reader, element: etree._Element) -> Leave:
    if element.get("class") and is_figure(element):
        return figure(reader, element)
    reader.split_title()
    if not reader.fits or element in reader.tabs.lists:
        return block(reader, element)
    reader.flush()
    opened = _opened(element)
    reader.push(reader.frame._replace(items=[], open_list=opened, nesting=reader.frame.nesting + 1))

    def leave() -> None:
        _begin_entry(reader, opened)
        reader.pop()
        _add_list(reader, opened, _level_after(element))

    return leave


def _opened(element: etree._Element) -> OpenList:
    """Return the list that an element begins, without entries."""
    if element.tag == "dl":
        return OpenList("definition")
    if element.tag != "ol":
        return OpenList("unordered")
    written = _digits(element.get("start") or "")
    start, step = int(written[1]) if written else 1, 1
    if element.get("reversed") is not None:
        step = -1
        start = start if written else sum(child.tag == "li" for child in element)
    kind = (element.get("type") or "").strip()
    letters = kind if kind in ("a", "A", "i", "I") else None
    numbered = step < 0 or letters or any(child.get("value") for child in element if child.tag == "li")
    return OpenList("ordered", start, step, start if numbered else None, letters)


def _level_after(element: etree._Element) -> int | None:
    """Return the level at which a list of Google Docs continues the list before it; None for other lists.

    Google Docs writes a nested list as lists side by side that share a name.
    """
    before = element.getprevious()
    names = ((one.get("class") or "")[:LONGEST_CLASS] if one is not None else "" for one in (element, before))
    own, other = map(_of_docs, names)
    return int(own[2]) if own and other and own[1] == other[1] else None


def _add_list(reader: Reader, ended: OpenList, level: int | None = None) -> None:
    """Add a list, or the footnotes that it consists of. With a level, it continues the list before it."""
    entries = ended.entries
    _end_terms(ended)
    if ended.labels:
        while reader.items and type(reader.items[-1]) is ThematicBreak:
            reader.items.pop()  # the rule between the text and its footnotes
        free = reader.footnotes.free_label
        named = [(ended.labels.get(i) or free(str(i + 1)), entry.items) for i, entry in enumerate(entries)]
        reader.items.extend(footnotes([(label, without_label(items, label)) for label, items in named]))
    elif entries:
        if ended.kind == "unordered":
            if len(entries) == 1 and len(entries[0].items) == 1 and type(entries[0].items[0]) is List:
                reader.items.extend(_without_layout(reader, entries[0].items[0]))
                return
            entries = [kept for entry in entries for kept in _without_empty_level(entry)]
        if ended.numeral is not None:
            made = List("unordered", tuple(_marked(entry, ended.numeral) for entry in entries))
        else:
            first = entries[0].number
            made = List(ended.kind, _numbered(entries), ended.start if first is None else first)
        before = reader.items[-1] if reader.items and level is not None else None
        if level is not None and type(before) is List and 0 < len(before.items) < SHORT:  # entries are copied
            made = _joined(before, made, level)
            reader.items.pop()
        reader.items.extend(_without_layout(reader, made))


def _without_layout(reader: Reader, made: List) -> Items:
    """Return the content of a list that only lays out a section: its only entry begins with a heading.

    In another list, it is a level. In an ordered list, the heading may be a step, whose number counts, unless it is of
    the first level.
    """
    first = made.items[0].items[0] if len(made.items) == 1 and made.items[0].items else None
    is_layout = type(first) is Title and (made.kind == "unordered" or first.level == 1)
    return made.items[0].items if is_layout and reader.frame.open_list is None else (made,)


def _joined(around: List, inner: List, level: int) -> List:
    """Return a list with another one at a level of its last entry, or with its entries after its own at level 0."""
    *entries, last = around.items
    if not level or not last.items:
        return replace(around, items=(*around.items, *inner.items))
    *items, below = last.items
    if type(below) is List and below.items:
        items.append(_joined(below, inner, level - 1))
    else:
        items += below, inner
    return replace(around, items=(*entries, replace(last, items=tuple(items))))


def _numbered(entries: list[ListItem]) -> tuple[ListItem, ...]:
    """Return the entries of a list, with explicit numbers only where they break the sequence."""
    made: list[ListItem] = []
    before = None
    for entry in entries:
        following = None if before is None else before + 1
        before = following if entry.number is None else entry.number
        made.append(entry if following is not None and before != following else replace(entry, number=None))
    return tuple(made)


def _marked(entry: ListItem, kind: str) -> ListItem:
    """Return an entry whose text begins with its letter or numeral, because lists in Markdown only have numbers."""
    if entry.number is None:
        return entry
    mark = f"{numeral(entry.number, kind)}."
    first, *rest = entry.items
    if type(first) is Paragraph:
        return replace(entry, items=(Paragraph((Text(f"{mark} "), *first.runs)), *rest), number=None)
    return replace(entry, items=(Paragraph((Text(mark),)), first, *rest), number=None)


def _without_empty_level(entry: ListItem) -> tuple[ListItem, ...]:
    """Replace an entry that only holds a list by the entries of that list. It may have lost a comment, for example."""
    if len(entry.items) == 1:
        only = entry.items[0]
        if type(only) is List and only.kind == "unordered":
            return only.items
    return (entry,)


def _end_entry(reader: Reader, around: OpenList, label: str | None = None, number: int | None = None) -> None:
    """End a list entry, or the content between two entries."""
    reader.flush()
    if reader.items:
        if label is not None:
            around.labels[len(around.entries)] = label
        terms = tuple(filter(None, around.terms)) or tuple(around.terms[:1])
        mark = ""
        if around.kind == "ordered":
            mark = str(around.start + len(around.entries) if number is None else number)
        around.entries.append(
            ListItem(_on_one_line(with_code_lines(reader.items), mark), terms, around.checked, number)
        )
        reader.items.clear()
        around.terms.clear()
    around.checked = None


def _end_terms(around: OpenList) -> None:
    """End terms without a definition, so that they do not get that of the next term."""
    if any(around.terms):
        around.entries.append(ListItem((), tuple(filter(None, around.terms))))
        around.terms.clear()


def _begin_entry(reader: Reader, around: OpenList) -> None:
    """End what stands before an entry, or before the end of a list. A list there belongs to the entry before it."""
    reader.flush()
    if reader.items and around.entries and all(type(item) is List for item in reader.items):
        last = around.entries[-1]
        around.entries[-1] = replace(last, items=(*last.items, *reader.items))
        reader.items.clear()
    _end_entry(reader, around)


def _on_one_line(items: Items, number: str) -> Items:
    """Return the items of an entry with its amount beside its name, and without a paragraph that repeats its mark.

    Pages that show an entry in columns write each as a block: ``<li><div>2 dl</div><div>flour</div></li>``.
    """
    first, *rest = items
    if type(first) is not Paragraph or not rest:
        return items
    said = line_text(first.runs)
    own = _own_number(said)
    if said in _bullets or (own and own[1] == number):
        return tuple(rest)
    second = rest[0]
    if len(rest) == 1 and type(second) is Paragraph and len(said) <= LONGEST_ENTRY:
        beside = line_text(second.runs)
        if _amount(beside) or (_amount(said) and len(beside) <= LONGEST_ENTRY and not beside.endswith(_ENDS)):
            return (Paragraph((*first.runs, Text(" "), *second.runs)),)
    return items


def _item(reader: Reader, element: etree._Element) -> Leave:
    around = reader.frame.open_list
    if reader.frame.flat or around is None or around.kind == "definition":
        return block(reader, element)
    _begin_entry(reader, around)
    number = around.number
    if number is not None:
        value = _digits(element.get("value") or "")
        number = int(value[1]) if value else number
        around.number = number + around.step
    label = reader.footnotes.notes.get(element) if reader.footnotes.notes else None
    return _entry(reader, around, label, number)


def _term(reader: Reader, element: etree._Element) -> Leave:
    around = reader.frame.open_list
    if reader.frame.flat or around is None or around.kind != "definition":
        return block(reader, element)
    _end_entry(reader, around)
    before = element.getprevious()
    before = element.getparent() if before is None else before
    if before is not None and before.tag in ("dd", "div"):
        _end_terms(around)
    around.terms.append(reader.read_line(element))  # empty if the term is not main content
    return skip


def _definition(reader: Reader, element: etree._Element) -> Leave:
    around = reader.frame.open_list
    if reader.frame.flat or around is None or around.kind != "definition":
        return block(reader, element)
    _end_entry(reader, around)
    return _entry(reader, around, reader.footnotes.notes.get(element))


def _entry(reader: Reader, around: OpenList, label: str | None, number: int | None = None) -> Leave:
    """Begin a list entry. With a label, it is a footnote."""
    if label is None:
        return lambda: _end_entry(reader, around, None, number)
    reader.push(reader.frame._replace(notes=reader.frame.notes + 1))

    def leave() -> None:
        reader.pop()
        _end_entry(reader, around, label)

    return leave


_ROMAN = (
    *((1_000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_LARGEST_ROMAN = 3_999


def numeral(number: int, kind: str) -> str:
    """Return a number as browsers show a list of type ``a``, ``A``, ``i`` or ``I``; numbers that a system does not have
    are decimal."""
    text = ""
    if kind in ("i", "I") and 0 < number <= _LARGEST_ROMAN:
        left = number
        for value, letters in _ROMAN:
            times, left = divmod(left, value)
            text += letters * times
    elif kind in ("a", "A"):
        left = number
        while left > 0:
            left, rest = divmod(left - 1, 26)
            text = chr(ord("a") + rest) + text
    return (text.upper() if kind in ("A", "I") else text) or str(number)


_BLOCKS: dict[Any, Enter] = {
    **{tag: block for tag, kind in KINDS.items() if kind == Kind.BLOCK},
    **dict.fromkeys(("div", "section", "article", "aside", "center"), block_with_class),
    **dict.fromkeys(("pre", "listing", "xmp", "plaintext"), _preformatted),
    **dict.fromkeys(_LEVELS, _heading),
    **dict.fromkeys(PLAYER_TAGS, _player),
    "p": _paragraph,
    "hr": _thematic_break,
    "blockquote": _quote,
    "figure": _figure_tag,
    "picture": _picture,
    "details": _callout,
    "summary": _summary,
    "code": _code,
    "table": _table,
    **dict.fromkeys(("ul", "ol", "menu", "dir", "dl"), _list),
    "li": _item,
    "dt": _term,
    "dd": _definition,
}
"""Handlers by tag."""


def _other(reader: Reader, element: etree._Element) -> Leave:
    """Enter an element without a handler: a comment, a custom element, or an inline element."""
    tag = element.tag
    if not isinstance(tag, str):
        return skip
    if "-" in tag and not in_sentence(element):
        return block_with_class(reader, element)
    return inline(reader, element)


def _button(reader: Reader, element: etree._Element) -> Leave:
    if in_sentence(element):
        return inline(reader, element)
    return _BLOCKS["button"](reader, element)


_ENTER: dict[Any, Enter] = {
    **dict.fromkeys(UNSEEN, lambda _reader, _element: skip),
    **_INLINE,
    **_BLOCKS,
    "button": _button,
}
