"""What stands beside a text or in it, and is not of it: lines to other articles, quotations that repeat it, messages of
forms, forms that sign up for mails, the small print of a mail, and panels that ask for consent.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import Group, either
from scrapy_dripper.structures.overlays import consent_panels, unless_all

READ_ALSO: Group = (
    *("read (?:also|next)", "also read", "(?:read more|more on this|don['’]t miss|recommended)(?=\\s?[:>])"),
    r"related(?: (?:article|story|stories|reading|coverage))?(?=\s?[:>])",
    *("(?:lesen|sehen) sie (?:auch|mehr)", "lies auch", "auch interessant", "mehr zum thema", "zum thema"),
    *("(?:à )?lire (?:aussi|également)", "à lire", "(?:à )?voir aussi", "sur le même (?:sujet|thème)"),
    *("le[ea] (?:también|además)", "te puede interesar", "(?:leia|veja) (?:também|mais)", "leggi anche", "lees ook"),
    *("czytaj (?:też|także|również)", "zobacz (?:też|także)", "(?:читайте|смотрите) (?:также|ещ[её])", "läs också"),
    *("関連記事", "あわせて読みたい", "相关阅读", "延伸阅读", "相關閱讀", "관련 ?기사"),
)
"""What stands before a link to another article within a text."""
MAIL: Group = (
    "you (?:are receiving|(?:have )?received?|get|got) this (?:e-?mail|mail|letter|newsletter|message)",
    *("this (?:e-?mail|message|newsletter) was sent to", "unsubscribe", "to (?:unsubscribe|stop receiving)"),
    *("(?:view|read|open) (?:this )?(?:e-?mail |newsletter )?in (?:your |a )?browser", "no longer want to receive"),
    *(
        "sie erhalten dies(?:e|en) (?:e-?mail|newsletter|nachricht)",
        "(?:newsletter )?abbestellen",
        "im browser (?:an)?sehen",
    ),
    *("vous recevez (?:cet? |cette )(?:e-?mail|courriel|newsletter|lettre)", "se (?:désabonner|désinscrire)"),
    *("recib(?:es|e|iste) este (?:correo|e-?mail|boletín)", "darse de baja", "cancelar (?:la )?suscripción"),
    *(
        "ricevi questa (?:e-?mail|newsletter)",
        "annulla (?:l'iscrizione|iscrizione)",
        "disiscriviti",
        "você está recebendo este",
    ),
    *("cancelar (?:a )?inscrição", "(?:je|u) ontvangt deze (?:e-?mail|nieuwsbrief)", "(?:uitschrijven|afmelden)"),
    *(
        "otrzymujesz t[ęe] wiadomość",
        "wypisz się",
        "вы получили это письмо",
        "отписаться",
        "配信(?:停止|解除)",
        "退订",
        "수신 ?거부",
    ),
)
"""How the small print of a mail begins."""
MESSAGES: Group = (
    *("success", "error", "errors", "failure", "invalid", "feedback", "validation", "response", "thanks", "thank-?you"),
    *("(?:form|field|success|error|validation|status|response)[-_]?(?:message|messages|text|errors?|output|msg)",),
    *("alert-(?:danger|success|error|warning)", "wpcf7-response-output", "mc4wp-response"),
)
"""Classes of the messages of a form, complete."""
SIGN_UPS: Group = ("newsletter", "subscri(?:be|ption)", "sign-?up", "mailing-?list", "opt-?in", "abonne(?:ment|r)")
"""Classes around a form that signs up for mails, or parts of them."""

_read_also = re.compile(rf"\W{{0,9}}(?:{either(READ_ALSO)})[\s:：>»|→–—-]{{0,9}}", re.I).match
_mail = re.compile(rf"\W{{0,9}}(?:{either(MAIL)})", re.I).match
_message = re.compile(rf"\s(?:{either(MESSAGES)})(?=\s|$)")
_sign_up = re.compile(rf"[\s_-](?:{either(SIGN_UPS)})(?=[\s_-]|$)")
_pull_quote = re.compile(r"\s(?:[\w-]{0,40}[-_])?pull-?quotes?(?:[-_][\w-]{0,40})?(?=\s|$)")
_words = re.compile(r"\w+").findall
LONGEST_LINE = 250
"""Maximum length of a line to another article, and of the first line of small print, in characters."""
LINKED = 0.8
"""Minimum share of such a line, without its first words, in links."""
MOST_SMALL_PRINT, LONGEST_MESSAGE = 80, 60
"""Maximum number of words in the small print of a mail, or around a form that signs up for some, and in the messages of
a form."""
MOST_ASIDE_WORDS = 300
"""Maximum number of words of asides that are left out of a page however sure the model is of them."""
MOST_QUOTES = 50
"""Maximum number of quotations to search for in the text."""
NEAR_FORM = 2
"""Number of elements between the messages of a form and an element that holds the form as well."""


def without_asides(page: Page, main: Bools, matching: Callable[..., list[int]]) -> Bools:
    """Return the labels of a page without its asides. The headline stays, and so does a page with nothing else.

    ``matching`` returns the nodes with a class or id that a pattern finds.
    """
    labels: Bools = main.copy()
    for a, b in (*consent_panels(page, main, matching), *_lines(page, main), *_around_forms(page, matching)):
        labels[a:b] = False
    for a, b in _repeated(page, labels, matching):
        labels[a:b] = False
    return unless_all(page, main, labels)


def _lines(page: Page, main: Bools) -> Iterator[tuple[int, int]]:
    """Yield the lines to other articles, and the small print of a mail, which ends with the element around it."""
    tree, blocks = page.tree, page.blocks
    for i in np.flatnonzero(main & (blocks.links > 0) & (blocks.chars() <= LONGEST_LINE)).tolist():
        text = blocks.text[i]
        if tree.flags[blocks.context[i]] & Flag.HEADING:
            continue
        start = _read_also(text)
        rest = len(text) - start.end() if start else 0
        if rest and blocks.link_chars[i] >= LINKED * rest:
            yield i, i + 1
        elif _mail(text):
            around = page.holder(i)
            end = int(tree.block_end[around]) if around >= 0 and int(tree.block_start[around]) == i else i + 1
            words = sum(len(line.split()) for line in blocks.text[i : min(end, i + MOST_SMALL_PRINT)])
            yield i, end if words <= MOST_SMALL_PRINT else i + 1


def _around_forms(page: Page, matching: Callable[..., list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the messages that a form shows after it was sent, and the invitations to sign up for mails, by their names
    and the form beside or in them.
    """
    tree = page.tree
    forms = np.flatnonzero(tree.tag == TAGS["form"]).tolist()
    if not forms:
        return
    words = page.blocks.words_before()
    for most, levels, nodes in (
        (LONGEST_MESSAGE, NEAR_FORM, matching(_message)),
        (MOST_SMALL_PRINT, 0, matching(_sign_up, "newsletter", "subscri", "sign", "mailing", "opt", "abonne")),
    ):
        for node in nodes:
            a, b = int(tree.block_start[node]), int(tree.block_end[node])
            around = node
            for _ in range(levels):
                around = max(0, int(tree.parent[around]))
            near = bisect_left(forms, around) < bisect_left(forms, int(tree.end[around]))
            if near and words[b] - words[a] <= most:
                yield a, b


def _repeated(page: Page, main: Bools, matching: Callable[..., list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the quotations by which a page repeats a sentence of its own text."""
    tree, texts = page.tree, page.blocks.text
    spans = {(int(tree.block_start[node]), int(tree.block_end[node])) for node in matching(_pull_quote, "pull")}
    if not spans:
        return
    inside = np.zeros(len(texts), dtype=np.bool_)
    for a, b in spans:
        inside[a:b] = True
    said = _spaced(" ".join(texts[i] for i in np.flatnonzero(main & ~inside).tolist()))
    for a, b in sorted(spans)[:MOST_QUOTES]:
        quoted = _spaced(" ".join(texts[a:b]))
        if quoted.strip() and quoted in said:
            yield a, b


def _spaced(text: str) -> str:
    return f" {' '.join(_words(text.lower()))} "
