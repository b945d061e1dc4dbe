"""Tell from the scripts of a page how it writes formulas: the settings of MathJax and KaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_dollar_setting = re.compile(
    r"inlineMath['\"]?\s*:\s*(?:\{\s*['\"]?\[\+\]['\"]?\s*:\s*)?\[[^\]]{0,60}\[\s*['\"]\\?\$['\"]"
    r"|inlineMath['\"]?\s*:\s*(?:\{\s*['\"]?\[\+\]['\"]?\s*:\s*)?\[\s*\[[^\]]{0,60}\]\s*,\s*\[\s*['\"]\$['\"]"
    r"|left['\"]?\s*:\s*['\"]\$['\"]"
).search


@dataclass(frozen=True, eq=False)
class Notation:
    """The notation of formulas in the text of a page. Its scripts are searched when a text may hold a formula."""

    scripts: Sequence[str] = ()
    """The texts and the URLs of the scripts."""

    @cached_property
    def dollars(self) -> bool:
        """True if ``$..$`` is a formula."""
        return any(
            "$" in script and ("inlineMath" in script or "delimiters" in script) and _dollar_setting(script)
            for script in self.scripts
        )

    @cached_property
    def loaded(self) -> bool:
        """True if the page loads MathJax or KaTeX, with any configuration."""
        folded = (script.encode("utf-8", "surrogatepass").lower() for script in self.scripts)  # faster than (?i)
        return any(b"mathjax" in script or b"katex" in script for script in folded)
