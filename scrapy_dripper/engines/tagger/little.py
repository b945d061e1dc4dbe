"""Little pages: what is main where there is too little text for an expected F1 to tell.

The tagger was trained on whole pages, and is unsure of a paragraph that stands alone. That nothing is main takes
evidence of a page without content: a shell that a script fills, a bot wall, an error page.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from scrapy_dripper.page.page import Flag, Page

Bools = npt.NDArray[np.bool_]

LEAST = 0.1
"""Where no block outside of the page's furniture is likelier than this, the page is a shell."""
SHARE = 0.3
"""Of the likeliest block's probability, what the others of a little page have at least to be main with it."""
SURE = 0.7
"""A page with a likelier block than this has content, whatever it says, unless it is very short."""
WORDS = 120
"""Words of a bot wall or an error page at most."""
FEW = 40
"""Words of one for which the model does not count: it has learnt that fragments are main as a whole."""

_FURNITURE = Flag.NAV | Flag.ASIDE | Flag.FORM | Flag.DIALOG
_ENDS = Flag.HEADER | Flag.FOOTER
_CONTENT = Flag.ARTICLE | Flag.MAIN
_UNSEEN = Flag.HIDDEN | Flag.NOSCRIPT

_furniture_name = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|(?:main|top|site)?menu|(?:site|page)?footer|(?:site|page|top)header|sidebar"
    r"|breadcrumbs?|toolbar|topbar)(?=[\s_-]|$)",
    re.I,
).search

_CODE = r"(?:400|401|403|404|410|429|500|502|503|504)"
_REASON = (
    r"(?:bad request|unauthori[sz]ed|forbidden|not found|gone|too many requests|internal server error|bad gateway"
    r"|service (?:temporarily )?unavailable|gateway time-?out)"
)
_error_name = re.compile(
    rf"(?:http |error |status )*"
    rf"(?:{_CODE}\W{{0,9}}(?:error|{_REASON}|page not found)?|{_REASON}|error|page not found)\W{{0,9}}",
    re.I,
).fullmatch
"""What an error page has as its title or heading."""
_error = re.compile(
    "|".join(
        (
            rf"(?:http |error )*{_CODE}\W+{_REASON}\b",
            r"(?:\w+\W+){0,3}page (?:you .{0,40}?)?(?:was |is |could |can|does )?(?:not |n.t |.t )(?:be )?"
            r"(?:found|exist|available)",
            r"just a moment\b|attention required|pardon our interruption|are you (?:a human|a robot|human)",
            r"access (?:to this page )?(?:is |has been )?denied\b|you (?:do not|don.t) have permission",
            r"(?:checking|verifying) (?:your browser|(?:that )?you are|if the site connection)",
            r"(?:our systems have detected )?unusual traffic",
            r"(?:please |you (?:need|have) to )(?:enable|turn on|activate) (?:javascript|js|cookies)\b",
            r"(?:this )?\w+ requires javascript|javascript (?:is (?:disabled|required)|must be enabled)",
            r"(?:loading|redirecting|please wait|one moment)(?:\W{1,3}please(?: wait)?)?\W*$",
            r".{0,40}\bto be redirected\b",
            r"seite nicht gefunden|page (?:introuvable|non trouvée)|página no encontrada|página não encontrada",
            r"pagina non trovata|pagina niet gevonden|nie znaleziono strony|страница не найдена|доступ запрещ[её]н",
            r"页面(?:不存在|未找到)|找不到(?:该)?页面|访问被拒绝|ページが見つかりません|페이지를 찾을 수 없",
        )
    ),
    re.I,
).match
"""How a text begins that stands in the place of content."""


def with_little(page: Page, probabilities: npt.NDArray[np.float32], main: Bools) -> Bools:
    """Return the labels of a page, mended if it is a little one. All arrays have shape (n,) for its n blocks.

    A fragment, without a page's furniture around it, is main as a whole. So is, of a page of which nothing was main,
    what stands outside of its furniture. Where there is nothing such, or the page says that it is an error or a wall,
    nothing is main.
    """
    furniture, unseen = _furniture(page, at_once=bool(main.any()))
    chosen = main
    if not furniture.any():
        chosen = main | ~unseen
    elif not main.any():
        outside = ~furniture & ~unseen
        chosen = outside & (probabilities >= max(LEAST, SHARE * probabilities.max(where=outside, initial=0)))
    if chosen.any() and _without_content(page, chosen, WORDS if probabilities[chosen].max() < SURE else FEW):
        return np.zeros_like(main)
    return chosen


def _furniture(page: Page, at_once: bool) -> tuple[Bools, Bools]:
    """Return which blocks are a page's furniture (menus, header, footer, forms, blocks of links), and which are unseen.

    The header of an article is none, nor is a link that is the only one, such as "Read more". ``at_once``: whether
    there is any is all that counts, and class names, which take longest, are not looked at where tags say it.
    """
    tree, blocks = page.tree, page.blocks
    n = len(blocks)
    flags = tree.flags[blocks.context] | tree.flags[blocks.leaf]
    furniture: Bools = (flags & _FURNITURE != 0) | ((flags & _ENDS != 0) & (flags & _CONTENT == 0))
    linked = 2 * blocks.link_chars >= np.fromiter(map(len, blocks.text), dtype=np.int64, count=n)
    furniture |= linked & (blocks.links > 1 if linked.sum() == 1 else True)
    unseen = flags & _UNSEEN != 0
    if at_once and furniture.any():
        return furniture, unseen
    change = np.zeros(n + 1, dtype=np.int64)
    named = {name for name in set(tree.names) if name and _furniture_name(name[:512])}
    for i, name in enumerate(tree.names):
        if name in named:
            change[int(tree.block_start[i])] += 1
            change[int(tree.block_end[i])] -= 1
    furniture |= np.cumsum(change)[:n] > 0
    return furniture, unseen


def _without_content(page: Page, chosen: Bools, words: int) -> bool:
    """Return True if a page, or what was chosen of it, says that it is an error page, a bot wall or a shell.

    Where more words than these were chosen, it is none.
    """
    tree, blocks = page.tree, page.blocks
    numbers = np.flatnonzero(chosen).tolist()
    if sum(len(blocks.text[i].split()) for i in numbers) > words:
        return False
    texts = [blocks.text[i] for i in numbers[:2]]
    names = [page.title or "", *(blocks.text[i] for i in numbers if tree.flags[blocks.context[i]] & Flag.HEADING)]
    return any(_error_name(name.strip()) for name in names) or any(map(_error, [*names, *texts]))
