"""Choose the main blocks of short pages, on which the expected F1 is unreliable.

The tagger was trained on whole pages and is unsure of a single paragraph. A short page only has no main content if
there is evidence for that: it is a shell that a script fills, a bot wall, or an error page.
"""

from __future__ import annotations

import math
import re

import numpy as np

from scrapy_dripper.choose.scored import ELSEWHERE, LIKELY, UNSEEN, ScoredPage
from scrapy_dripper.page.page import Bools, Flag
from scrapy_dripper.page.vocabulary import BOILERPLATE, ERROR_CODE, ERROR_REASON, ERRORS, WAITING, WALLS, either, whole

SHELL_PROBABILITY = 0.1
"""If no block outside of the boilerplate has a higher probability, the page is a shell."""
SHARE_OF_BEST = 0.3
"""Minimum probability of a main block on a short page, as a share of the highest one."""
LONGEST_ERROR = 120
"""Maximum number of words on a bot wall or an error page. A page with likely content and more words is neither."""
LONGEST_SURE_ERROR = 40
"""The same if the model is sure of a block. It has learnt that fragments are main as a whole."""
PROSE_WORDS = 15
"""Minimum number of words of a block of prose."""

_BOILERPLATE = Flag.NAV | Flag.ASIDE | Flag.FORM | Flag.DIALOG
_ENDS = Flag.HEADER | Flag.FOOTER
_CONTENT = Flag.ARTICLE | Flag.MAIN

_boilerplate_name = whole(BOILERPLATE)
_error_name = re.compile(
    rf"(?:http |error |status )*"
    rf"(?:{ERROR_CODE}\W{{0,9}}(?:error|{ERROR_REASON}|page not found)?|{ERROR_REASON}|error|page not found)\W{{0,9}}",
    re.I,
).fullmatch
"""Matches the title or heading of an error page."""
_error = re.compile(either(ERRORS, WALLS), re.I).match
"""Matches the beginning of a text that is shown instead of content."""
_waits = re.compile(rf"(?:{either(WAITING)})(?:\W{{1,3}}please(?: wait)?)?\W*$", re.I).match
"""Matches a text to read while a page loads. A page with content can have one in the place of a part."""


def with_short_page(scored: ScoredPage, main: Bools) -> Bools:
    """Return the labels of a page, corrected if it is a short one.

    A fragment, which has no boilerplate, is main as a whole, unless the user has corrected pages of its site. If
    nothing was main, the likely blocks outside of the boilerplate become main. If there are none, or if the page is an
    error page or a bot wall, nothing is main.
    """
    p, unseen = scored.probabilities, scored.flags & UNSEEN != 0
    boilerplate = _boilerplate(scored, at_once=bool(main.any()))
    chosen = main
    if not boilerplate.any() and not scored.labels.is_corrected:
        chosen = main | ~unseen
    elif not main.any():
        outside = ~boilerplate & ~unseen
        chosen = outside & (p >= max(SHELL_PROBABILITY, SHARE_OF_BEST * p.max(where=outside, initial=0)))
    shown = chosen & ~unseen if (chosen & ~unseen).any() else chosen
    most = LONGEST_SURE_ERROR if p.max(where=shown, initial=0) >= LIKELY else LONGEST_ERROR
    return np.zeros_like(main) if _without_content(scored, shown, most) else chosen


def shows_prose(scored: ScoredPage) -> bool:
    """Return True if a page has more prose than an error page or a bot wall has, and does not say that it is one."""
    blocks, flags = scored.page.blocks, scored.flags
    prose = (scored.size >= PROSE_WORDS) & (flags & (UNSEEN | ELSEWHERE) == 0) & (2 * blocks.link_chars < scored.chars)
    return bool(scored.size[prose].sum() > LONGEST_ERROR) and not _without_content(scored, prose, math.inf)


def is_menu(scored: ScoredPage, main: Bools) -> bool:
    """Return True if all main blocks of a page are boilerplate, such as menus, or if nothing is main."""
    return not (main & ~_boilerplate(scored, at_once=False)).any()


def _boilerplate(scored: ScoredPage, *, at_once: bool) -> Bools:
    """Return which blocks are boilerplate: menus, header, footer, forms, blocks of links.

    The header of an article and a single link, such as "Read more", are not boilerplate. With ``at_once``, the result
    only needs to show whether there is any boilerplate, so class names, which take the longest, may be skipped.
    """
    blocks, flags = scored.page.blocks, scored.flags
    boilerplate: Bools = (flags & _BOILERPLATE != 0) | ((flags & _ENDS != 0) & (flags & _CONTENT == 0))
    linked = 2 * blocks.link_chars >= scored.chars
    boilerplate |= linked & (blocks.links > 1 if linked.sum() == 1 else True)
    if at_once and boilerplate.any():
        return boilerplate
    return boilerplate | scored.page.within(scored.names.matching(_boilerplate_name))


def _without_content(scored: ScoredPage, chosen: Bools, most: float) -> bool:
    """Return True if the title or the chosen blocks show that the page is an error page, a bot wall or a shell.

    Return False if the chosen blocks have more than ``most`` words.
    """
    if scored.size[chosen].sum() > most:
        return False
    title, said = scored.page.title or "", scored.page.blocks.text
    texts = [said[i] for i in np.flatnonzero(chosen)[:2].tolist()]
    names = [title, *(said[i] for i in np.flatnonzero(chosen & (scored.flags & Flag.HEADING != 0)).tolist())]
    return (
        any(_error_name(name.strip()) for name in names)
        or any(map(_error, [*names, *texts]))
        or any(map(_waits, [title, *texts]))
    )
