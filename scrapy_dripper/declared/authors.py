"""The authors of a page, from its data, its bylines, and the lines beside its headline."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from scrapy_dripper.declared import Declared
from scrapy_dripper.declared.dates import MONTHS, written_date
from scrapy_dripper.declared.elements import ABOVE, LONGEST_NAME, MOST_ELEMENTS, MOST_VALUES, UNSEEN, Marked, text_of

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LONGEST_LINE = 120
"""Maximum length of a line beside the headline that names authors, in characters."""
LONGEST_WORD = 4
"""Maximum length of a name of one word, in a script without capital letters, in characters."""

# Names of meta elements, in lower case: those of news sites and publishers first, those that any page may have last.
_META = (
    "citation_author", "parsely-author", "article:author", "author", "dc.creator", "dcterms.creator", "sailthru.author",
    "byl", "og:article:author", "cxenseparse:author", "article.author", "book:author",
)  # fmt: skip
_NOBODY = frozenset(
    "admin administrator anonymous author authors blog by by: contributor default editor editorial follow guest home "
    "moderator n/a none null root staff superuser support system undefined unknown user username webmaster website "
    "wordpress".split()
) | {
    "about the author", "get in touch", "guest author", "licensed", "see all posts", "site admin", "super user",
    "the author", "topic author", "wp admin", "written by",
}  # fmt: skip
"""Words that pages have in place of an author's name."""

# The words of bylines in English, German, French, Spanish, Portuguese, Italian, Dutch, Scandinavian languages, Polish,
# Russian, Arabic, Chinese and Japanese. First those right before a name, then the verbs before these.
_BY = "by von par por di door av af przez بقلم".split()
_NAMED = "author autor auteur autore автор 作者 记者 記者 著者 text story words".split()
_VERBS = (
    "written posted published reviewed authored edited created contributed reported submitted "
    "geschrieben veröffentlicht verfasst erstellt écrit publié rédigé escrito publicado postado "
    "scritto pubblicato geschreven geplaatst gepubliceerd skriven publicerad skrevet publisert udgivet "
    "napisane opublikowane dodane опубликовано написано"
).split()
# What is by somebody: "a story by Ann Bell", "all posts by Ann Bell".
_WORKS = "article beitrag column opinion post posts recipe report review story text words".split()
# What an author is: what follows a name behind a comma.
_ROLES = (
    "writer correspondent reporter editor columnist contributor journalist author critic "
    "redakteur redakteurin korrespondent korrespondentin autor autorin journalistin reporterin "
    "journaliste correspondante rédacteur rédactrice periodista redactora redactor corresponsal "
    "jornalista repórter redator redatora giornalista redattore redattrice inviato inviata "
    "redacteur verslaggever verslaggeefster redaktör redaktør redaktor dziennikarz dziennikarka "
    "корреспондент журналист редактор обозреватель"
).split()
# What a forum says about an account, behind its name.
_ACCOUNT = (
    "posts joined member registered messages reputation likes beiträge registriert mitglied inscrit mensajes "
    "registrado mensagens messaggi iscritto berichten inlägg medlem indlæg innlegg posty сообщений регистрация"
).split()
_LEADS = frozenset((*_BY, *_NAMED))
_PARTICLES = frozenset(
    "al bin da dal de dei del della den der di do dos du el la las le los of ten ter van von y".split()
)

_by = re.compile(
    rf"(?<!\S)(?:(?:{'|'.join(_BY)})(?:\s{{0,3}}:\s{{0,3}}|\s{{1,3}}|$)|(?:{'|'.join(_NAMED)})(?:\(s\)|s|en)?\s{{0,3}}[:：]\s{{0,3}})",
    re.I,
).finditer
_lead_in = re.compile(rf"(?:{'|'.join(_VERBS)})\b|.{{0,30}}\b(?:{'|'.join(_WORKS)})$|(?:about )?the$", re.I).match
_tail = re.compile(
    r"\s{1,3}(?:[|·•»–—-]\s{1,3}|on\s{1,3}(?=\w{3,9}\s{1,3}\d|\d|\w{3,6}day\b)|(?:published|updated|posted|last)\b"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|[^\W\d]{2,20}(?::(?=\s|$)|：)"
    rf"|(?:{'|'.join(_ACCOUNT)})\b(?=$|:|\s{{0,3}}\d|\s(?:since|in|on|am|le|el|em|sedan|siden|sinds|\w{{3,9}}\s\d))"
    rf"|\d[\d.,]{{0,9}}\s(?:{'|'.join(_ACCOUNT)})\b)",
    re.I,
).search
_date = re.compile(
    r"(?:[,،]?\s{1,3}(?:(?:on|am|le|el|em|il|op|den|dnia)\s{1,3})?|^)"
    rf"(?:(?:{'|'.join(sorted(MONTHS))})\b\.?\s{{0,3}}\d|\d{{1,2}}(?:st|nd|rd|th)?[./ ]|\d{{4}})",
    re.I,
).search
_role = re.compile(
    rf",\s{{1,3}}(?:[\w'’-]{{1,20}}\s){{0,3}}(?:{'|'.join(_ROLES)})s?(?![\w'’-])[^,;|]{{0,40}}", re.I
).sub
_between = re.compile(r"\s{0,3}[;|/]\s{1,3}|\s{1,3}[•·]\s{1,3}").split
_and = re.compile(r",?\s{1,3}(?:and|&|und|et|y|e|og|och|en|with)\s{1,3}").split
_name = re.compile(r"[^\W\d_]").search
_no_name = re.compile(r"https?://|www\.|[@{}<>]|\.(?:com|org|net|html?|php)\b", re.I).search


def authors_of(declared: Declared, marked: Marked, around: Iterable[HtmlElement]) -> tuple[str, ...]:
    """Return the authors of a page. ``around`` are the elements around its headline."""
    linked = declared.linked
    found = authors(linked.names("author", "creator")) if linked.is_article else ()
    of_site = declared.site_name.casefold()
    if found and not (len(found) == 1 and found[0].casefold() == of_site):
        return found
    for name in _META:
        said = authors(declared.texts(name))
        if said and (len(said) > 1 or (said[0].casefold() != of_site and " " in said[0])):
            return said
    for element in marked.properties.get("author", ())[:MOST_ELEMENTS]:
        said = () if _is_remark(element) else authors([_person(element)])
        if said:
            return said
    if said := _bylines(marked):
        return said
    # A thing is "by" its brand.
    by_brand = linked.is_thing or any("product" in kind for kind in declared.texts("og:type"))
    return (() if by_brand else _lines(around)) or found or authors(linked.names("author", "creator"))


def authors(written: Iterable[str]) -> tuple[str, ...]:
    """Return the names of authors, each once, from texts with names separated by ``;``, ``,`` or "and"."""
    found: dict[str, str] = {}
    for text in written:
        for name in _apart(" ".join(text[: 20 * LONGEST_NAME].split())):
            cleaned = _cleaned(name)
            if cleaned:
                found.setdefault(cleaned.casefold(), cleaned)
        if len(found) >= MOST_VALUES:
            break
    return tuple(found.values())[:MOST_VALUES]


def byline(text: str) -> str:
    """Return the part of a line such as "By Ann Bell | May 6, 2024" that names authors, or an empty string."""
    text = " ".join(text[:LONGEST_NAME].split())
    text = _behind_by(text) or text
    for cut in (_tail, _date):
        end = cut(text)
        if end is not None:
            text = text[: end.start()]
    return text.strip(" ,،:：;|-–—·•→»")


def _behind_by(text: str) -> str:
    """Return what follows the "by" of a byline, which begins with it, a verb or a date; empty for other texts."""
    for found in _by(text):
        before = text[: found.start()].strip()
        if not before or _lead_in(before) or written_date(before):
            return text[found.end() :]
    return ""


def _apart(text: str) -> list[str]:
    """Return the names in a text. A comma or an "and" separates names only if both sides are full names."""
    parts: list[str] = []
    for part in _between(text):
        part = _role("", part)
        sides = _and(part)
        names = [name for side in sides for name in (side.split(", ") if _all_full(side.split(", ")) else [side])]
        parts += names if _all_full(names) else [part]
    return parts


def _all_full(names: list[str]) -> bool:
    return len(names) == 1 or all(2 <= len(name.split()) <= 5 for name in names)


def _cleaned(name: str) -> str:
    name = name.strip(" ,;:|\"'()[]")
    name = (_behind_by(name) or name).strip()
    if not 2 <= len(name) <= LONGEST_NAME or name.casefold() in _NOBODY:
        return ""
    return "" if _no_name(name) or not _name(name) or name.casefold() in MONTHS else name


def _person(element: HtmlElement) -> str:
    """Return the name of the person that an element with the property ``author`` describes."""
    for node in list(element.iter())[:20]:
        if "name" in f"{node.get('itemprop') or ''} {node.get('property') or ''}".split():
            return node.get("content") or byline(text_of(node, LONGEST_NAME))
    return element.get("content") or byline(text_of(element, LONGEST_NAME))


def _bylines(marked: Marked) -> tuple[str, ...]:
    """Return the authors of the first byline that names any. Links of authors come first."""
    first = [element for element in marked.bylines if element.get("rel") == "author"]
    for element in first + marked.bylines:
        text = text_of(element, 2 * LONGEST_NAME)
        if 3 < len(text) < LONGEST_NAME and not _is_remark(element):
            found = authors([byline(text)])
            if found and len(found[0].split()) <= 6:
                return found
    return ()


def _lines(around: Iterable[HtmlElement]) -> tuple[str, ...]:
    """Return the authors of the first line that says "by" before a name. No class has to say that it is a byline."""
    for node in around:
        for said, line in ((node.text, node), (node.tail, node.getparent())):
            if not said or len(said) > 4 * LONGEST_LINE or node.tag in UNSEEN or line is None:
                continue
            if _LEADS.isdisjoint(re.split("[:：]", word)[0] for word in said.casefold().split()):
                continue
            text = text_of(line, 2 * LONGEST_LINE)
            if " " not in text and line.getparent() is not None:
                line = line.getparent()  # <span>by</span> <a>Ann Bell</a>
                text = text_of(line, 2 * LONGEST_LINE)
            names = _behind_by(text)
            if not names or len(text) > LONGEST_LINE or _is_remark(line):
                continue
            linked = [text_of(link, LONGEST_NAME) for link in islice(line.iter("a"), 10)]
            found = authors([byline(text)])
            if found and all(name in linked or _is_full_name(name) for name in found):
                return found
            found = authors([next((link for link in linked if link and names.startswith(link)), "")])
            if found:
                return found
    return ()


def _is_full_name(name: str) -> bool:
    """Return True for two to five words that look like a name: "Ann van Bell", and not "a click of the mouse".

    In scripts without capital letters, any words do, and a short one does alone.
    """
    words = name.split()
    if name[0].isalpha() and name[0].lower() == name[0].upper():
        return len(words) <= 5 and (len(words) > 1 or len(name) <= LONGEST_WORD)
    return (
        2 <= len(words) <= 5
        and all(word[0].isupper() or word in _PARTICLES for word in words)
        and words[-1][0].isupper()
    )


def _is_remark(element: HtmlElement) -> bool:
    """Return True for an element of a comment or of a customer's review."""
    around = islice(element.iterancestors(), ABOVE)
    said = (f"{one.get('itemprop') or ''} {one.get('class') or ''} {one.get('id') or ''}".lower() for one in around)
    return any("comment" in one or "review" in one.split() for one in said)
