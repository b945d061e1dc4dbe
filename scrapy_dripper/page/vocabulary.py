"""The names and words by which the steps after the model, and the writer of Main-HTML, recognise parts of pages.

Each group is a tuple of entries, which :func:`either` joins to a regular expression. To extend a group, add what the
pages of a generator or a language have, in lower case, and a page that has it to the tests of the module that uses the
group. An entry is plain text, or text with simple alternatives; repetitions need a bound. *Whole names* stand between
white space, hyphens and underscores, so ``logo`` matches ``site-logo`` but not ``logos``. *Parts* match anywhere in a
name. The features of the tagger have a list of their own (:mod:`scrapy_dripper.engines.tagger.lexicon`), because a
model only fits the names that it was trained with.
"""

from __future__ import annotations

from typing import TypeAlias

Group: TypeAlias = tuple[str, ...]


def either(*groups: Group) -> str:
    """Return a regular expression that matches any entry of some groups, to be used inside brackets."""
    return "|".join(entry for group in groups for entry in group)


# ---------------------------------------------------------------------- parts of a page, by class or id
FURNITURE: Group = (
    *("nav", "navbar", "navigation", "menu", "mainmenu", "topmenu", "sitemenu"),
    *("footer", "sitefooter", "pagefooter", "siteheader", "pageheader", "topheader"),
    *("sidebar", "breadcrumb", "breadcrumbs", "toolbar", "topbar"),
)
"""Whole names of menus, and of what is around the content of each page of a site."""

CLOSING: Group = (
    *("copyright", "licence", "license", "author", "share", "social", "relat", "tags", "meta"),
    *("nav", "pager", "pagination"),
)
"""Parts of names of what ends a page, and not its text."""

SITE_NAMES: Group = (
    *("sitetitle", "site-title", "site_title", "sitename", "site-name", "site_name", "sitelogo", "site-logo"),
    *("site_logo", "menu-title", "logo", "brand"),
)
"""Whole names of the name of a site, which is never the headline of a page."""

BESIDE: Group = (
    *("ico", "icon", "icons", "logo", "logos", "avatar", "avatars", "badge", "badges", "emblem"),
    *(
        "share",
        "sharing",
        "social",
        "sponsor",
        "sponsors",
        "sponsored",
        "ad",
        "ads",
        r"advert\w*",
        "banner",
        r"promo\w*",
    ),
    *("tracking", "pixel", "spacer", "newsletter", "related", "author", "profile"),
)
"""Whole names of images that are beside the content."""

# ---------------------------------------------------------------------- comments, by class or id
COMMENT_SYSTEMS: Group = (
    *("respond", "replies", "reply[-_]?list", "replies[-_]?list", "commento", "giscus", "isso-thread", "livefyre"),
    *("utterances", "wpdcom", "hyvor-talk-view"),
)
"""Names of the elements in which themes and services show comments, complete."""

COMMENT_PLACES: Group = (
    *("area", "block", "body", "box", "children", "component", "container", "content", "disqus", "entry", "feed"),
    *("form", "group", "holder", "inner", "item", "list", "main", "module", "outer", "page", "panel", "post", "region"),
    *("reply", "replies", "respond", "root", "row", "section", "template", "text", "thread", "tree", "view", "widget"),
    *("wrap", "wrapper"),
)
"""What may follow ``comment`` or ``comments`` in the name of an element that holds comments."""

NO_COMMENTS: Group = (
    *("no", "has", "have", "with", "without", "open", "hide", "show", "toggle", "recent", "latest", "last", "top"),
    *("fa", "icon", "hljs", "token", "code"),
)
"""What may not stand before ``comment``: states of a page, lists on other pages, icons, and comments in code."""

# ---------------------------------------------------------------------- what is shown and hidden, by class or id
UNFOLDING: Group = ("accord", "collaps", "expand", "toggl", "fold", "more", "faq", "pane")
"""Parts of names of what a script unfolds on a click."""

APPEARING: Group = (
    *("slid", "carousel", "swiper", "reveal", "fade", "anim", "aos", "wow", "lazy", "drop-?down"),
    *("answer", "spoiler", "step", "solution", "translat", "transcript", "full-?text"),
)
"""Parts of names of what a script shows in time, or on request."""

CLONES: Group = ("clone", "cloned", "clones", "duplicate")
"""Whole names of the copies that a carousel makes of its first and last items."""

SCREENS: Group = (
    *("mobile", "desktop", "tablet", "tablets", "phone", "handheld", "touch", "xs", "sm", "md", "lg", "xl", "xxl"),
    *("small", "medium", "large"),
)
"""Names of screen sizes."""

SHOWING: Group = ("hide", "hidden", "show", "shown", "visible", "only", "none")
"""What stands beside the name of a screen size if an element is only for some screens, as in ``d-md-none``."""

FOR_SCREENS: Group = (
    *("mobile", "desktop", "d-none", r"hidden-\w+"),
    r"hidden\s(?:\S{1,40}\s){0,9}(?:sm|md|lg|xl):(?:block|flex|grid|inline)",  # Tailwind CSS
)
"""Whole names of elements that are only for some screens, without a size or with one apart."""

# ---------------------------------------------------------------------- headings of lists of links
SOURCES: Group = (
    *("references?", "(?:useful |external )?links", "(?:further |other )?(?:resources|sources)", "further reading"),
    *("see also", "bibliography", "(?:works )?cited", "credits"),
    *("quellen", "literatur", "siehe auch", "weblinks"),
    *("r[eé]f[eé]rences", "ressources", "liens", "voir aussi", "bibliographie"),
    *("referencias", "enlaces", "fuentes", "recursos", "v[eé]ase tambi[eé]n", "bibliograf[ií]a"),
    *("refer[eê]ncias", "riferimenti", "fonti", "collegamenti"),
    *("źródła", "linki", "ссылки", "источники", "литература", "см[. ]+также", "kaynaklar"),
    *("المراجع", "المصادر", "منابع"),
    *("参考(?:资料|資料|文献|链接|文章|リンク|サイト)?", "參考(?:資料|文獻|連結)?", "引用", "资料来源"),
    *("関連リンク", "出典", "참고(?: ?(?:자료|문헌|링크))?", "출처"),
)
"""Headings of lists of links that belong to a text, complete."""

TEASES: Group = (
    "you (?:may|might) also",
    "(?:read|see|more|watch) (?:also|more|next|on this|from|about|stories)",
    *("also read", "related", "recommended"),
    *("(?:lesen|lies|sehen) sie auch", "mehr (?:zum|zu|dazu)"),
    *("(?:lire|voir) aussi", "à lire", "sur le même"),
    *("lee también", "te puede", "leia (?:também|mais)", "veja também", "leggi anche"),
    *("lees ook", "czytaj", "zobacz", "читайте", "смотрите"),
)
"""Beginnings of lines and headings above links to other pages of the site."""

# ---------------------------------------------------------------------- texts that are shown instead of content
ERROR_CODE = "(?:400|401|403|404|410|429|500|502|503|504)"
ERROR_REASON = (
    "(?:bad request|unauthori[sz]ed|forbidden|not found|gone|too many requests|internal server error|bad gateway"
    "|service (?:temporarily )?unavailable|gateway time-?out)"
)
"""The reasons that servers give with these codes (RFC 9110)."""

ERRORS: Group = (
    rf"(?:http |error )*{ERROR_CODE}\W+{ERROR_REASON}\b",
    r"(?:\w+\W+){0,3}page (?:you .{0,40}?)?(?:was |is |could |can|does )?(?:not |n.t |.t )(?:be )?"
    r"(?:found|exist|available)",
    *("seite nicht gefunden", "page (?:introuvable|non trouvée)", "página no encontrada", "página não encontrada"),
    *("pagina non trovata", "pagina niet gevonden", "nie znaleziono strony", "страница не найдена"),
    *("доступ запрещ[её]н", "页面(?:不存在|未找到)", "找不到(?:该)?页面", "访问被拒绝"),
    *("ページが見つかりません", "페이지를 찾을 수 없"),
)
"""Beginnings of the texts of error pages."""

WALLS: Group = (
    *(r"just a moment\b", "attention required", "pardon our interruption", "are you (?:a human|a robot|human)"),
    *(r"access (?:to this page )?(?:is |has been )?denied\b", "you (?:do not|don.t) have permission"),
    "(?:checking|verifying) (?:your browser|(?:that )?you are|if the site connection)",
    "(?:our systems have detected )?unusual traffic",
    r"(?:please |you (?:need|have) to )(?:enable|turn on|activate) (?:javascript|js|cookies)\b",
    r"(?:this )?\w+ requires javascript",
    "javascript (?:is (?:disabled|required)|must be enabled)",
    r".{0,40}\bto be redirected\b",
)
"""Beginnings of what bot walls, and pages that need scripts, say to a client that they do not serve."""

WAITING: Group = ("loading", "redirecting", "please wait", "one moment")
"""Texts to read while a page loads."""
