"""Draw `main-content.svg`, the picture in the README: a page cut into blocks, and the Markdown of the main blocks.

`python docs/draw.py` writes it. It uses generic fonts and a white background, so that it looks the same on the package
index, on the site and in dark mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

MAIN, OTHER, INK, FAINT = "#1a7f5a", "#9aa0a6", "#202124", "#5f6368"
WIDTH, HEIGHT = 880, 430

# Left, top, width, height, probability of main, content of the block.
BLOCKS = (
    (20, 62, 400, 26, 0.00, "Home   News   Weather   Log in"),
    (20, 96, 290, 34, 0.99, "Free fall"),
    (20, 138, 290, 58, 0.99, "Without air, the speed is v = √(2gh); a ticket to the tower costs $5."),
    (20, 204, 290, 54, 0.98, "def speed(h): return (2 * 9.81 * h) ** 0.5"),
    (20, 266, 290, 58, 0.97, "From the top it takes 3.4 seconds."),
    (320, 96, 100, 110, 0.02, "Most read"),
    (320, 214, 100, 110, 0.01, "Advert"),
    (20, 332, 400, 34, 0.01, "We value your privacy. Accept all"),
    (20, 374, 400, 26, 0.00, "Contact   Imprint   © Example"),
)
MARKDOWN = (
    "## Free fall",
    "",
    "Without air, the speed is",
    r"$v = \sqrt{2 g h}$; a ticket to",
    r"the tower costs \$5.",
    "",
    "```python",
    "def speed(h):",
    "    return (2 * 9.81 * h) ** 0.5",
    "```",
    "",
    "From the top it takes 3.4 seconds.",
)


def text(left: float, top: float, words: str, size: int = 13, color: str = INK, **attributes: str) -> str:
    """Return a line of text."""
    family = attributes.pop("family", "Helvetica, Arial, sans-serif")
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return (
        f'<text x="{left}" y="{top}" font-family="{family}" font-size="{size}" fill="{color}" '
        f'xml:space="preserve"{more}>{escape(words)}</text>'
    )


def box(left: float, top: float, width: float, height: float, color: str, fill: str = "none") -> str:
    """Return a rectangle with round corners."""
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="{color}" '
        'stroke-width="1.5"/>'
    )


def wrapped(words: str, most: int) -> Iterator[str]:
    """Yield lines of at most ``most`` characters, unless a single word is longer."""
    line = ""
    for word in words.split(" "):
        if line and len(line) + 1 + len(word) > most:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def block(left: int, top: int, width: int, height: int, probability: float, words: str) -> Iterator[str]:
    """Yield a block of the page, in the color of its label, with its probability of main."""
    main = probability > 0.5
    color = MAIN if main else OTHER
    yield box(left, top, width, height, color, "#e8f5ef" if main else "#f4f4f5")
    heading, code = words == "Free fall", words.startswith("def ")
    lines = ["def speed(h):", "    return (2 * 9.81 * h) ** 0.5"] if code else list(wrapped(words, width // 7))
    for number, line in enumerate(lines):
        style = {"font_weight": "bold"} if heading else {"family": "Menlo, Consolas, monospace"} if code else {}
        size = 17 if heading else 12
        yield text(left + 10, top + (23 if heading else 18) + 17 * number, line, size, INK if main else FAINT, **style)
    yield text(
        left + width - 8, top + height - 7, f"{probability:.2f}", 11, color, text_anchor="end", font_weight="bold"
    )


def picture() -> str:
    """Return the picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="A web page cut into blocks; the main ones become Markdown">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        box(8, 8, 424, 404, "#c8ccd0"),
        *(f'<circle cx="{26 + 16 * dot}" cy="26" r="5" fill="#d5d8db"/>' for dot in range(3)),
        text(84, 31, "https://example.org/free-fall", 12, FAINT),
        text(20, 54, "blocks, and how likely each is main content (a sketch)", 12, FAINT),
    ]
    for one in BLOCKS:
        parts += block(*one)
    parts += [
        f'<path d="M446 210 h50 m-12 -9 l12 9 l-12 9" fill="none" stroke="{MAIN}" stroke-width="3"/>',
        box(512, 62, 356, 304, MAIN, "#fbfdfc"),
        text(512, 54, "Markdown, beside Main-HTML and a list of typed items", 12, FAINT),
    ]
    parts += [text(528, 92 + 22 * n, line, 14, family="Menlo, Consolas, monospace") for n, line in enumerate(MARKDOWN)]
    parts.append(text(512, 392, "main blocks are kept, others stay behind", 12, FAINT))
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("main-content.svg").write_text(picture(), encoding="utf-8")
