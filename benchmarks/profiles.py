"""Measure how closely the profile v1.0 matches the training data of published weights.

The report has the share of pages with identical simplified HTML, the rule behind each page that differs, and the CPU
time of each step. The reference is a file of JSON Lines, optionally compressed with xz: ``id``, ``simplified`` (the
output of the reference implementation) and ``html`` (the input; without it, the page with that name in the folder).
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from corpus import DEFAULT
from report import heading, publish, table

from scrapy_dripper.engines.qwen3 import balance
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.engines.qwen3.simplify import FOOT, HEAD, simplify

TRUNCATE_CHARS = 200
RESULTS = Path(__file__).parent / "results"

_template = re.compile(r"(</?)template(?=[\s>])", re.I)
_tag = re.compile(r"<[a-zA-Z][^\s<>/]*(?:\s[^<>]*)?>")
_attribute = re.compile(r"""\s([a-zA-Z-]+)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)""")


def simplified(text: str, seconds: Counter[str] | None = None, profile: str = "v1.0") -> str:
    """Return the simplified HTML of a document, as one document."""
    seconds = Counter() if seconds is None else seconds
    start = time.process_time()
    root = PROFILES[profile].parse(text)
    parsed = time.process_time()
    page = PROFILES[profile].cut(root, "")
    cut = time.process_time()
    blocks = simplify(page, TRUNCATE_CHARS)
    seconds.update(parse=parsed - start, cut=cut - parsed, simplify=time.process_time() - cut, blocks=len(blocks))
    return HEAD + "".join(blocks) + FOOT


def last_attribute_wins(text: str) -> str:
    """Return a document in which only the last of several attributes with the same name on a tag is kept."""

    def once(tag: re.Match[str]) -> str:
        kept = tag[0]
        found = list(_attribute.finditer(kept))
        later: set[str] = set()
        for attribute in reversed(found):
            if attribute[1].lower() in later:
                kept = kept[: attribute.start()] + kept[attribute.end() :]
            later.add(attribute[1].lower())
        return kept

    return _tag.sub(once, text)


def with_items_closed_late(text: str) -> str:
    """Return a document in which items and cells without an end tag end with their list or table."""
    with mock.patch.object(balance, "_OPTIONAL", frozenset[str]()):
        return balance.balanced(text)


def with_templates(text: str) -> str:
    """Return a document with meaningless elements in place of its templates."""
    return _template.sub(r"\1x-template", text)


# Changes that the reference makes to a document. If the profile gives the same after a change, that is the difference.
TRANSFORMS: dict[str, Callable[[str], str]] = {
    "repeated attribute: the last one counts, the first one here, as in browsers": last_attribute_wins,
    "unclosed item: it ends with its list, here where the next one begins": with_items_closed_late,
    "template not closed in order: its content is shown, here it is not, as in browsers": with_templates,
}


def rule(text: str, ours: str, theirs: str) -> str:
    """Return the name of the rule that makes the profile's simplified HTML differ from the reference's."""
    if theirs == HEAD + FOOT:
        return "body in the head: the reference drops it with the head, here it is the page"
    for name, transform in TRANSFORMS.items():
        if simplified(transform(text)) == theirs:
            return name
    if max(ours.count("<body"), theirs.count("<body")) > 1:
        return "second <body>: what comes of it differs"
    return "not explained"


def _beginning(ours: str, theirs: str) -> str:
    """Return how the blocks of two simplified documents differ in number, or that they differ otherwise."""
    difference = ours.count(" _item_id=") - theirs.count(" _item_id=")
    return f"{difference:+d} blocks" if difference else "the same number of blocks"


def main() -> None:
    """Print the report and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", type=Path, help="JSON lines of the reference, plain or .xz")
    parser.add_argument("--data", type=Path, default=DEFAULT, help="folder of the pages (default: %(default)s)")
    parser.add_argument("--profile", choices=tuple(TRUNCATE_CHARS), default="v1.0")
    parser.add_argument("--output", type=Path, help="file to write (default: in results/)")
    options = parser.parse_args()
    profile = options.profile
    open_text = lzma.open if options.reference.suffix == ".xz" else open
    with open_text(options.reference, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]

    seconds: Counter[str] = Counter()
    total: Counter[str] = Counter()
    same: Counter[str] = Counter()
    different: list[tuple[str, str]] = []
    for row in rows:
        kind = "small cases" if "html" in row else "pages"
        text = row.get("html") or (options.data / f"{row['id']}.html").read_text(encoding="utf-8", errors="replace")
        ours = simplified(text, seconds if kind == "pages" else None, profile)
        total[kind] += 1
        if ours == row["simplified"]:
            same[kind] += 1
        else:
            why = rule(text, ours, row["simplified"]) if profile == "v1.0" else _beginning(ours, row["simplified"])
            different.append((row["id"], why))

    shares = [(kind, str(n), str(same[kind]), f"{same[kind] / n:.1%}") for kind, n in total.items()]
    pages = max(1, total["pages"])
    parts = [
        heading("profiles.py", ["scrapy-dripper", "lxml"]),
        f"Simplified HTML of the profile {profile}, byte for byte that of the reference:",
        table(("", "all", "identical", "share"), shares),
        "Those that differ, " + ("each by one rule:" if profile == "v1.0" else "and in how many blocks or otherwise:"),
        "\n".join(f"{name}  {why}" for name, why in different) or "none",
        "CPU milliseconds and blocks per page, on average:",
        table(
            ("step", "mean"),
            [(step, f"{1000 * seconds[step] / pages:.2f}") for step in ("parse", "cut", "simplify")]
            + [("blocks", f"{seconds['blocks'] / pages:.1f}")],
        ),
    ]
    publish(
        "\n\n".join(parts),
        options.output or RESULTS / ("profile.txt" if profile == "v1.0" else f"profile-{profile}.txt"),
    )


if __name__ == "__main__":
    main()
