"""Asides, dialogs and page turns: what stands beside a text, is laid over it, or turns the pages of a manual.

Asides are lines to other articles, quotations that repeat the text, messages of forms, forms that sign up for mails,
the small print of a mail, and panels that ask for consent to cookies. Dialogs wait for a click. By page turns, at the
head and foot of a manual, a reader turns its pages: next, previous, up, contents, index. Texinfo, DocBook, LaTeX2HTML,
man pages and authors write them as text within the content.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import chain

import numpy as np

from scrapy_dripper.characters import spaced
from scrapy_dripper.declared.elements import MOST_ELEMENTS
from scrapy_dripper.page.nodes import SHORT, short_text
from scrapy_dripper.page.page import Bools, Flag, Page, Tree
from scrapy_dripper.page.tags import TAGS
from scrapy_dripper.page.vocabulary import Group, NamePattern, complete, either, whole

# ---------------------------------------------------------------------- what stands beside a text
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
    *("sie erhalten dies(?:e|en) (?:e-?mail|newsletter|nachricht)", "(?:newsletter )?abbestellen"),
    *("im browser (?:an)?sehen", "vous recevez (?:cet? |cette )(?:e-?mail|courriel|newsletter|lettre)"),
    *("se (?:désabonner|désinscrire)", "recib(?:es|e|iste) este (?:correo|e-?mail|boletín)", "darse de baja"),
    *("cancelar (?:la )?suscripción", "ricevi questa (?:e-?mail|newsletter)", "annulla (?:l'iscrizione|iscrizione)"),
    *("disiscriviti", "você está recebendo este", "cancelar (?:a )?inscrição"),
    *("(?:je|u) ontvangt deze (?:e-?mail|nieuwsbrief)", "(?:uitschrijven|afmelden)", "otrzymujesz t[ęe] wiadomość"),
    *("wypisz się", "вы получили это письмо", "отписаться", "配信(?:停止|解除)", "退订", "수신 ?거부"),
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
_message = complete(MESSAGES, having=("message", "text", "output", "msg", "thank", "alert-"))
_sign_up = whole(SIGN_UPS, having=("subscri", "sign", "mailing", "opt", "abonne"))
_pull_quote = complete((r"(?:[\w-]{0,40}[-_])?pull-?quotes?(?:[-_][\w-]{0,40})?",), having=("pull",))
LINKED = 0.8
"""Minimum share of a line to another article, without its first words, in links."""
LONGEST_MESSAGE = 80
"""Maximum number of words in the messages of a form, around a form that signs up for mails, and in the small print of a
mail."""
MOST_ASIDE_WORDS = 250
"""Maximum number of words in a panel that asks for consent, and in all asides that are left out of a page however sure
the model is of them."""
PANEL_LEVELS = 3
"""Number of elements between the first line of a panel and the panel, and between the messages of a form and an element
that holds the form as well."""


def without_asides(page: Page, main: Bools, matching: Callable[[NamePattern], list[int]]) -> Bools:
    """Return the labels of a page without its asides. The headline stays, and so does a page with nothing else.

    ``matching`` returns the nodes with a class or id that a pattern finds.
    """
    labels: Bools = main.copy()
    spans = (consent_panels(page, main, matching), _lines(page, main), _around_forms(page, matching))
    for a, b in (*chain(*spans), *page_turns(page, main, matching)):
        labels[a:b] = False
    for a, b in _repeated(page, labels, matching):
        labels[a:b] = False
    return unless_all(page, main, labels)


def _lines(page: Page, main: Bools) -> Iterator[tuple[int, int]]:
    """Yield the lines to other articles, and the small print of a mail, which ends with the element around it."""
    tree, blocks = page.tree, page.blocks
    for i in np.flatnonzero(main & (blocks.links > 0) & (blocks.chars() <= SHORT)).tolist():
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
            words = sum(len(line.split()) for line in blocks.text[i : min(end, i + LONGEST_MESSAGE)])
            yield i, end if words <= LONGEST_MESSAGE else i + 1


def _around_forms(page: Page, matching: Callable[[NamePattern], list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the messages that a form shows after it was sent, and the invitations to sign up for mails, by their names
    and the form beside, or the field for a text in them.
    """
    tree = page.tree
    forms = np.flatnonzero(tree.tag == TAGS["form"]).tolist()
    if not forms:
        return
    spans: list[tuple[int, int]] = []
    fields = np.flatnonzero(tree.tag == TAGS["input"]).tolist()
    fields = [i for i in fields if (tree.nodes[i].get("type") or "text").lower() in ("text", "email")]
    for levels, nodes, needed in (
        (PANEL_LEVELS, matching(_message), forms),
        (0, matching(_sign_up), fields),
    ):
        for node in nodes:
            around = node
            for _ in range(levels):
                around = max(0, int(tree.parent[around]))
            if bisect_left(needed, around) < bisect_left(needed, int(tree.end[around])):
                spans.append((int(tree.block_start[node]), int(tree.block_end[node])))
    words = page.blocks.words_before() if spans else []
    yield from ((a, b) for a, b in spans if words[b] - words[a] <= LONGEST_MESSAGE)


def _repeated(page: Page, main: Bools, matching: Callable[[NamePattern], list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the quotations by which a page repeats a sentence of its own text."""
    tree, texts = page.tree, page.blocks.text
    spans = {(int(tree.block_start[node]), int(tree.block_end[node])) for node in matching(_pull_quote)}
    if not spans:
        return
    inside = np.zeros(len(texts), dtype=np.bool_)
    for a, b in spans:
        inside[a:b] = True
    said = spaced(" ".join(texts[i] for i in np.flatnonzero(main & ~inside).tolist()))
    for a, b in sorted(spans)[:MOST_ELEMENTS]:
        quoted = spaced(" ".join(texts[a:b]))
        if quoted.strip() and quoted in said:
            yield a, b


# ---------------------------------------------------------------------- what is laid over a page
DIALOGS: Group = ("modal", "modal-dialog", "popup", "pop-up", "lightbox", "dialog", "overlay", "offcanvas", "mfp-hide")
"""Classes of dialogs, complete."""
CONSENT: Group = (
    *("onetrust[\\w-]{0,40}", "cookiebot[\\w-]{0,40}", "cybotcookie\\w{0,40}", "didomi[\\w-]{0,40}"),
    "usercentrics\\S{0,40}",
    "(?:eu-?)?cookies?[-_]?(?:notice|banner|bar|box|consent|alert|popup|pop-up|message|warning|modal|law|info|disclaimer)",
    "(?:cookie[-_])?consent[-_]?(?:banner|bar|box|popup|modal|manager|dialog|notice|layer)?",
    *("gdpr(?:[-_][\\w-]{0,40})?", "cc-(?:window|banner)", "cky-[\\w-]{0,40}", "iubenda[\\w-]{0,40}", "klaro"),
    *("osano[\\w-]{0,40}", "qc-cmp[\\w-]{0,40}", "moove[-_]gdpr\\S{0,40}", "tarteaucitron\\w{0,40}"),
    *("borlabs\\S{0,40}", "truste\\S{0,40}", "fc-consent\\S{0,40}"),
)
"""Classes and ids of panels that ask for consent, complete."""
CONSENT_LITERALS: Group = (
    *("onetrust", "cookie", "didomi", "usercentrics", "consent", "gdpr", "cc-", "cky-", "iubenda", "osano", "qc-cmp"),
    *("tarteaucitron", "borlabs", "truste"),
)
"""Parts of these names, one of which each has."""
ASKS: Group = (
    "(?:this|our|the) (?:web ?)?site (?:uses|makes use of) cookies",
    *("we (?:and our \\S{1,20} )?(?:use|store) cookies", "we (?:value|respect|care about) your privacy"),
    *("diese (?:web)?(?:seite|site) (?:verwendet|nutzt|benutzt) cookies", "wir (?:verwenden|nutzen|setzen) cookies"),
    *("wir (?:respektieren|schätzen) ihre privatsphäre", "(?:ce|notre) site (?:web )?utilise (?:des|les) cookies"),
    *("nous utilisons (?:des|les) cookies", "(?:este|nuestro) sitio (?:web )?(?:utiliza|usa) cookies"),
    *("(?:utilizamos|usamos) cookies", "(?:questo|il nostro) sito (?:web )?(?:utilizza|usa) (?:i )?cookie"),
    *("(?:utilizziamo|usiamo) (?:i )?cookie", "este s[ií](?:te|tio) (?:utiliza|usa) cookies"),
    *("o nosso site usa cookies", "deze (?:web)?site (?:gebruikt|maakt gebruik van) cookies", "wij gebruiken cookies"),
    *("(?:ta|nasza) strona (?:używa|wykorzystuje|korzysta z) (?:plików )?cookie", "używamy (?:plików )?cookie"),
    *("(?:этот|наш) сайт использует (?:файлы )?cookie", "мы используем (?:файлы )?(?:cookie|куки)"),
    *("(?:本|我们的?)(?:网站|網站)?使用 ?cookie", "我们重视您的隐私"),
    *("(?:当|この)(?:ウェブ)?サイトで?は、?(?:cookie|クッキー)", "(?:이|본) (?:웹)?사이트는 쿠키"),
    "denna (?:webb)?(?:plats|sida) använder cookies",
)
"""How a panel begins that asks for consent, in twelve languages."""
ACCEPTS: Group = (
    *("(?:i |yes,? i )?(?:accept|agree|allow|consent)(?: all)?(?: cookies)?", "ok(?:ay)?", "got it"),
    *("(?:alle )?akzeptieren", "(?:ich )?(?:stimme zu|zustimmen|verstanden)", "alle(?:s)? akzeptieren"),
    *("(?:tout |j')?accepte?r?", "aceptar(?: todo)?", "acepto", "accett[ao](?: tutti)?", "aceit(?:ar|o)(?: todos)?"),
    *("akkoord", "accepteren", "akceptuj[ęe]?", "принять", "принимаю", "согласен", "同意する"),
    *("(?:全部)?(?:同意|接受)", "동의", "godkänn"),
)
"""What the last button of such a panel says, complete."""

_dialog = complete(DIALOGS)
_consent = complete(CONSENT, having=CONSENT_LITERALS)
_asks = re.compile(rf"(?:{either(ASKS)})", re.I).match
_accepts = re.compile(rf"(?:^|\W)(?:{either(ACCEPTS)})\W{{0,9}}$", re.I).search
_COOKIES = ("cookie", "куки", "쿠키", "クッキー", "privacy", "privatsph", "隐私")
_DIALOG = TAGS["dialog"]
_not_shown = re.compile(r"display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden", re.I).search
LONGEST_BUTTON = 40
"""Maximum length of the text of a button, in characters."""
LEAST_LEFT = 20
"""Minimum number of main words that are left. On other pages, what is taken away is the content."""
MOST_ABOUT = 2
"""Maximum number of main blocks about cookies outside of a panel. A page with more is about them itself."""


def without_dialogs(page: Page, main: Bools, matching: Callable[[NamePattern], list[int]]) -> Bools:
    """Return the labels of a page without its dialogs that are not open, if there is other text.

    ``matching`` returns the nodes with a class or id that a pattern finds.
    """
    labels: Bools = main.copy()
    for a, b in _dialogs(page, matching):
        labels[a:b] = False
    return unless_all(page, main, labels)


def unless_all(page: Page, main: Bools, labels: Bools) -> Bools:
    """Return labels with the headline as it was, or the labels before if hardly any text is left."""
    texts, flags = page.blocks.text, page.tree.flags[page.blocks.context]
    lost = np.flatnonzero(main & ~labels).tolist()
    labels[[i for i in lost if flags[i] & Flag.HEADING and texts[i] == page.headline]] = True
    left = sum(len(texts[i].split()) for i in np.flatnonzero(labels).tolist()) if lost else LEAST_LEFT
    return labels if left >= LEAST_LEFT else main


def _dialogs(page: Page, matching: Callable[[NamePattern], list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the dialogs that are not open: those of attributes, of Bootstrap, and of classes that hide."""
    tree = page.tree
    dialogs = tree.flags & Flag.DIALOG != 0
    outermost = np.flatnonzero(dialogs & ~dialogs[np.maximum(tree.parent, 0)])
    for node in sorted({*matching(_dialog), *outermost.tolist()}):
        element = tree.nodes[node]
        names = tree.names[node].split()
        hidden = (
            element.get("aria-hidden") == "true"
            or element.get("hidden") is not None
            or (tree.tag[node] == _DIALOG and element.get("open") is None)
            or {"modal", "fade"} <= {*names}
            or "mfp-hide" in names
            or _not_shown(element.get("style") or "")
            or any(_not_shown(page.styles.get(name, "")) for name in names)
        )
        if hidden and tree.block_end[node] > tree.block_start[node]:
            yield int(tree.block_start[node]), int(tree.block_end[node])


def consent_panels(page: Page, main: Bools, matching: Callable[[NamePattern], list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the blocks a to b - 1 of each panel that asks for consent, by its name, or by how it begins."""
    tree, texts = page.tree, page.blocks.text
    if not any(map(page.text_of(main).lower().count, _COOKIES)):
        return
    about = [i for i in np.flatnonzero(main).tolist() if any(map(texts[i].lower().count, _COOKIES))]
    spans = [(int(tree.block_start[node]), int(tree.block_end[node])) for node in matching(_consent)]
    spans += [_panel(page, i) for i in about if _asks(texts[i])]
    words = page.blocks.words_before() if spans else []
    spans = [(a, b) for a, b in spans if words[b] - words[a] <= MOST_ASIDE_WORDS]
    inside = np.zeros(len(texts), dtype=np.bool_)
    for a, b in spans:
        inside[a:b] = True
    if len(about) - int(inside[about].sum()) <= MOST_ABOUT:
        yield from spans


def _panel(page: Page, first: int) -> tuple[int, int]:
    """Return the blocks of the panel that begins with a block: those of the element with its button, or it alone."""
    tree, texts = page.tree, page.blocks.text
    node = int(page.blocks.context[first])
    for _ in range(PANEL_LEVELS + 1):
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        if a == first and any(len(text) <= LONGEST_BUTTON and _accepts(text.strip()) for text in texts[a + 1 : b]):
            return a, b
        node = int(tree.parent[node])
        if node < 0 or a < first:
            break
    return first, first + 1


# ---------------------------------------------------------------------- what turns the pages of a manual
PANELS: Group = ("nav-?(?:header|footer|panel|buttons?)", "crosslinks", "prev-?next", "page-?nav(?:igation)?")
"""Classes of panels with links that turn pages, complete: of DocBook, Texinfo, TeX4ht and others."""
_PART = "(?: (?:page|chapter|section|topic|part|lesson|article|node))?"
TURNS: Group = (
    *(f"prev(?:ious)?{_PART}", f"next{_PART}", "up", "top", "home"),
    *("first", "last", "start", "node", "parent", "front"),
    *("forward", "backward", "prev-?tail", "tail", "main page", "home ?page", "title page", "(?:table of )?contents"),
    *("toc", "index", "(?:back|return|go back) to (?:the )?(?:main |table of )?(?:index|contents|toc|page|start|menu)"),
    *("zurück", "weiter", "hoch", "nach oben", "startseite", "inhalt", r"\w{0,9}verzeichnis", "zur übersicht"),
    *("(?:nächste|vorherige)[rs]?(?: seite| kapitel)?", "(?:page |chapitre )?(?:précédent|suivant)e?", "accueil"),
    *("sommaire", "table des matières", "remonter", "retour(?: au sommaire| à l.index)?", "anterior", "siguiente"),
    *("(?:volver al )?índice", "contenido", "inicio", "arriba", "próxim[oa]", "seguinte", "sumário", "conteúdo"),
    *("início", "acima", "precedente", "successiv[oa]", "indietro", "avanti", "indice", "sommario", "vorige"),
    *("volgende", "omhoog", "inhoud(?:sopgave)?", "terug", "poprzedni[ae]?", "następn[yae]", "w górę", "spis treści"),
    *("indeks", "powrót", "föregående", "nästa", "upp", "innehåll", "назад", "впер[её]д", "вверх", "наверх", "далее"),
    *("(?:предыдущ|следующ)(?:ая|ий|ее)(?: глава| раздел| страница)?", "содержание", "оглавление", "указатель"),
    *("на главную", "[前次上](?:へ|の(?:ページ|章|節))?", "目次", "索引", "トップ(?:へ)?", "ホーム", "戻る"),
    *("[上下]一[页頁章节節篇]", "上一级", "目[录錄]", "首[页頁]", "返回(?:目[录錄])?"),
    *("이전", "다음", "위로", "목차", "색인"),
)
"""What links that turn pages are called, complete, or what stands before the title of the page that they lead to."""
INDEX = r"(?:[\w-]{1,30} ){1,2}index"
"""The name of one of several indexes."""
ROLES = frozenset(
    {"prev", "previous", "next", "up", "index", "contents", "toc", "start", "first", "last", "top", "home"}
)
"""Values of ``rel`` of links that turn pages."""

_turn_panel = complete(PANELS, having=("nav", "prev"))
_turns = re.compile(rf"(?:{either(TURNS)})").fullmatch
_is_index = re.compile(INDEX).fullmatch
_pieces = re.compile(r"[^\w\s'’-]+").split
_words = re.compile(r"\w[\w'’-]*").findall
_letter = re.compile(r"[^\W\d_]").search
_LINK = TAGS["a"]
MOST_CHARS, MOST_BLOCKS = 400, 24
"""Maximum number of characters and blocks of a line that turns pages."""
SENTENCE = 12
"""Minimum number of words of what is no title of a page."""
TURN_LEVELS = 5
"""Number of elements around a block that may be a line that turns pages: a cell, a row, a table, its part, and an
element around it."""
MOST_BESIDE = 4
"""Number of main blocks between lines that turn pages and the head or foot of the content, such as a headline or a
copyright."""
MOST_LINES = 8
"""Maximum number of lines that turn pages at the head, and at the foot."""


def page_turns(page: Page, main: Bools, matching: Callable[[NamePattern], list[int]]) -> Iterator[tuple[int, int]]:
    """Yield the blocks a to b - 1 of each line that turns pages, at the head or foot of the main content.

    What stands below a heading within the text is content, whatever it is called. ``matching`` returns the nodes with a
    class or id that a pattern finds.
    """
    shown = np.flatnonzero(main).tolist()
    if not page.blocks.links[shown].any():
        return
    spans = (page.tree.block_start, page.tree.block_end)
    panels = {tuple(int(column[node]) for column in spans) for node in matching(_turn_panel)}
    is_heading = page.tree.flags[page.blocks.context] & Flag.HEADING != 0
    announces = is_heading.copy()
    announces[np.flatnonzero(main & is_heading)[:1]] = False  # the headline does so for the page
    for blocks in (shown, shown[::-1]):
        a = b = beside = found = 0
        for block in blocks:
            if a <= block < b:
                continue
            line = _line_around(page, block, panels, is_heading)
            if line is not None and not announces[shown[max(0, bisect_left(shown, line[0]) - 1)]]:
                yield line
                a, b = line
                found += 1
            else:
                beside += 1
            if beside > MOST_BESIDE or found == MOST_LINES:
                break


def _line_around(page: Page, block: int, panels: set[tuple[int, ...]], stops: Bools) -> tuple[int, int] | None:
    """Return the blocks of the largest line around a block, without any that stops it, or None if it is in none."""
    node, a, b = int(page.blocks.context[block]), block, block + 1
    found = None
    for _ in range(TURN_LEVELS):
        if node < 0 or b - a > MOST_BLOCKS or sum(map(len, page.blocks.text[a:b])) > MOST_CHARS or stops[a:b].any():
            break
        if (a, b) in panels or (page.blocks.links[a:b].any() and _turns_pages(page, node, a, b)):
            found = a, b
        node = page.around(node, a, b)
        a, b = int(page.tree.block_start[node]), int(page.tree.block_end[node])
    return found


def _turns_pages(page: Page, node: int, a: int, b: int) -> bool:
    """Return True if at least half of the links and names in some blocks of a node turn pages.

    These are two or more, or one link outside of a list, and nothing else.
    """
    tree = page.tree
    links: set[int] = set()
    names: list[str] = []
    for owners, is_tail in ((tree.text_owner, False), (tree.tail_owner, True)):
        within = owners[node : tree.end[node]]
        found = (np.flatnonzero((within >= a) & (within < b)) + node).tolist()
        if len(found) > SHORT:
            return False
        for i in found:
            link = _link_around(tree, int(tree.parent[i]) if is_tail else i)
            if link is None:
                names += _pieces((tree.nodes[i].tail if is_tail else tree.nodes[i].text) or "")
            else:
                links.add(link)
    by_role = {i for i in links if not ROLES.isdisjoint((tree.nodes[i].get("rel") or "").lower().split())}
    names += (short_text(tree.nodes[i]) or "" for i in links - by_role)
    called = [" ".join(_words(name.lower())) for name in names if _letter(name)]
    turning = len(by_role) + sum(map(bool, map(_turns, called)))
    indexes = sum(map(bool, map(_is_index, called)))
    turning += indexes if turning or indexes > 1 else 0
    others = len(by_role) + len(called) - turning
    if any(name.count(" ") >= SENTENCE for name in called):
        return False
    if turning == 1:
        return bool(links) and not others and not tree.flags[page.blocks.context[a]] & Flag.LIST
    return turning > 1 and others <= turning


def _link_around(tree: Tree, node: int) -> int | None:
    """Return the link around the text of a node, or None if there is none near."""
    for _ in range(TURN_LEVELS):
        if tree.tag[node] == _LINK:
            return node if tree.nodes[node].get("href") else None
        node = max(0, int(tree.parent[node]))
    return None
