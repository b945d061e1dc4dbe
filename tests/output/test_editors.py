"""Structure that pages of editors and word processors only give by styles, classes and attributes."""

from __future__ import annotations

import pytest

from scrapy_dripper.output.content_list import numeral
from scrapy_dripper.output.urls import direct
from tests.output.forms import forms_of


def markdown(body: str, head: str = "") -> str:
    """Return the Markdown of a page of which every block is main."""
    return forms_of(f"<html><head>{head}</head><body>{body}</body></html>").markdown.strip()


def test_levels_of_a_list_that_stand_apart() -> None:
    """Google Docs writes each level of a list by itself."""
    body = "".join(
        f"<ul class='lst-kix_x1-{level} start'>{''.join(f'<li>{text}</li>' for text in texts)}</ul>"
        for level, texts in ((0, ["fruit"]), (1, ["pears", "plums"]), (2, ["red"]), (0, ["bread"]), (1, ["rye"]))
    )

    assert markdown(body) == "- fruit\n  - pears\n  - plums\n    - red\n- bread\n  - rye"
    assert markdown("<ul class=lst-kix_a-0><li>a</ul><ul class=lst-kix_b-1><li>b</ul>").startswith("- a\n\n* b")


SHEET = (
    "<style>@import url(x.css);.T4{font-weight:700}.price{font-weight:700}.c4{font-size:11pt}.x4{}"
    "/* */\n.price{display:inline;font-weight:700}.verse p{color:red;"
    "white-space:pre-line} .chat .msg[data-v-1], p.post{white-space : pre-wrap}@media print{.T9{font-weight:700}"
    ".flat{white-space:pre}}</style>"
)
PUBLISHED = "<div id=banners><p>Published with it</p></div>"
SIGN = (
    "<a class=sl-anchor-link href=#b><span aria-hidden=true><svg></svg></span><span class=sr-only>Section b</span></a>"
)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        # Bold and italics by style.
        ("<p>a <span style='font-weight: bold'>b</span> c</p>", "a **b** c"),
        ("<p>a <span style='color:red;font-weight:700'>b</span> c</p>", "a **b** c"),
        ("<p>a <font style='font-style:italic'>b</font> c</p>", "a *b* c"),
        ("<p>a <span style='font-weight:400'>b</span> c</p>", "a b c"),
        ("<p><b style='font-weight:normal'>a b c</b></p>", "a b c"),  # as Google Docs copies a text
        ("<p>a <span class=T4>b</span> c</p>", "a **b** c"),
        ("<p>a <span class=price>b</span> c</p>", "a b c"),  # of the site's design
        # A title of a word processor is a heading.
        (
            "<p class='c4 title'>Minutes</p><p class='c4 subtitle'>May</p><p>We met.</p>",
            "# Minutes\n\n## May\n\nWe met.",
        ),
        # Letters and Roman numerals.
        ("<ol type=a><li>x<li>y</ol>", "- a. x\n- b. y"),
        ("<ol type=A start=3><li>x<li>y</ol>", "- C. x\n- D. y"),
        ("<ol type=i reversed><li>x<li>y</ol>", "- ii. x\n- i. y"),
        ("<ol style='list-style-type: upper-roman'><li>x<li value=9>y</ol>", "- I. x\n- IX. y"),
        ("<ol style='list-style: lower-alpha inside'><li>x</ol>", "- a. x"),
        ("<ol type=1><li>x<li>y</ol>", "1. x\n2. y"),
        ("<ol type=a>intro<li>x</ol>", "- intro\n- a. x"),  # what is no entry has no letter
        # Call-outs of older generators.
        (
            "<div class='note caution note_caution'><span class=note__title>CAUTION:</span> Hot.</div>",
            "> [!CAUTION]\n> Hot.",
        ),
        ("<div class=warning><p>Hot.</p></div>", "> [!WARNING]\n> Hot."),
        ("<aside class=note>Old.</aside>", "> [!NOTE]\n> Old."),
        (
            "<div class='admonition note'><h5 class=admonition-title>Rust</h5>Old.</div>",
            "> [!NOTE]\n> **Rust**\n>\n> Old.",
        ),
        ("<div class=note><strong>Note</strong><p>Old.</div>", "> [!NOTE]\n> Old."),
        ("<div class=note><h4>Note:</h4><p>Old.</div>", "> [!NOTE]\n> Old."),
        ("<p class=note>Old.</p>", "Old."),
        ("<ol><li>Wait.<div class=tip>Read.</div></ol>", "1. Wait.\n\n   > [!TIP]\n   > Read."),
        # The sign of a heading may have a text for screen readers.
        (f"<div><h2 id=b>Bees</h2>{SIGN}</div><p>They fly.</p>", "## Bees\n\nThey fly."),
        # Lines that a style keeps, in the element or around it.
        ("<p style='white-space: pre-line'>  Sun\nand\n\n\nrain\n</p>", "Sun\\\nand\n\nrain"),
        ("<div style='white-space:pre-wrap'>\n<p>Sun\nand <b>\nrain</b>\n</p>\n</div>", "Sun\\\nand\\\n**rain**"),
        ("<p style='white-space: pre-wrap'><i>Sun</i>\n<i>rain</i></p>", "*Sun*\\\n*rain*"),
        ("<p style='white-space: break-spaces'>Sun<br>\nrain</p>", "Sun\\\nrain"),
        ("<div class=verse><p>Sun\nrain</p></div>", "Sun\\\nrain"),
        ("<div class=msg>Sun\nrain</div><p class=post>Sun\nrain</p>", "Sun\\\nrain\n\nSun\\\nrain"),
        ("<div class='mt-2 whitespace-pre-line'>Sun\nrain</div>", "Sun\\\nrain"),
        ("<div class='text-pre-wrap'>Sun\n<span style='white-space:normal'>or\nrain</span></div>", "Sun\\\nor rain"),
        ("<p class=flat>Sun\nrain</p><p style='white-space:nowrap'>Sun\nrain</p>", "Sun rain\n\nSun rain"),
        ("<p>Sun\nrain</p>", "Sun rain"),
        # Code with such a style is a listing, unless it is in a sentence.
        ("<div><code style='white-space: pre'>if x:\n    y()\n</code></div>", "```\nif x:\n    y()\n```"),
        ("<div class=code style='white-space: pre'>if x:\n    y()</div>", "```\nif x:\n    y()\n```"),
        ("<p>Call <code style='white-space: pre-wrap'>y(\n)</code> once.</p>", "Call `y( )` once."),
        (
            "<div class=text-pre-wrap><pre><code class=ws-pre>if x:\n    y()</code></pre></div>",
            "```\nif x:\n    y()\n```",
        ),
        # The banner of a published document is left out.
        (f"{PUBLISHED}<p class=c4>We met.</p>", "We met."),
    ],
)
def test_what_editors_write(html: str, expected: str) -> None:
    assert markdown(html, SHEET) == expected


def test_a_title_without_a_style_sheet() -> None:
    """Only the class of Word is a title then."""
    assert markdown("<p class=MsoTitle>Minutes</p><p class=title>We met.</p>") == "# Minutes\n\nWe met."


def test_numerals_of_browsers() -> None:
    assert [numeral(n, "a") for n in (1, 26, 27, 703, 0)] == ["a", "z", "aa", "aaa", "0"]
    assert [numeral(n, "I") for n in (4, 9, 1994, 3999, 4000, -1)] == ["IV", "IX", "MCMXCIV", "MMMCMXCIX", "4000", "-1"]


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://www.google.com/url?q=https://b.example/x%3Fy%3D1&sa=D", "https://b.example/x?y=1"),
        ("https://www.google.co.uk/url?sa=t&url=http://b.example/", "http://b.example/"),
        ("https://www.google.com/url?q=javascript:alert(1)", "https://www.google.com/url?q=javascript:alert(1)"),
        ("https://www.google.com/search?q=https://b.example/", "https://www.google.com/search?q=https://b.example/"),
        ("https://b.example/url?q=https://c.example/", "https://b.example/url?q=https://c.example/"),
        (f"https://www.google.com/url?{'a=b&' * 99}", f"https://www.google.com/url?{'a=b&' * 99}"),
    ],
)
def test_redirect_addresses(url: str, target: str) -> None:
    assert direct(url) == target


def test_a_mark_of_a_footnote_stands_at_its_word() -> None:
    text = "<p><span>The price</span><sup><a href=#n id=r>[1]</a></sup><span> rises.</span></p>"

    assert markdown(f"{text}<p><a href=#r id=n>[1]</a> By two.</p>").startswith("The price[^1] rises.")


def test_every_panel_begins_with_its_tab() -> None:
    """By the panel's id or by the tab's. The list of tabs is left out, unless a panel is missing."""
    tabs = "<ul role=tablist><li><a role=tab href=#p1>Fish</a><li><a role=tab id=t2>Meat</a></ul>"
    panels = "<div role=tabpanel id=p1>Cod and eel.</div><div role=tabpanel aria-labelledby=t2>Lamb and beef.</div>"

    assert markdown(f"<h2>Menu</h2>{tabs}{panels}") == (
        "## Menu\n\n### Fish\n\nCod and eel.\n\n### Meat\n\nLamb and beef."
    )
    assert "- Meat" in markdown(tabs + panels.replace("<div role=tabpanel aria-labelledby=t2>", "<div>"))


CODES = ("<pre><code>npm i kit</code></pre>", "<pre><code>yarn add kit</code></pre>")


@pytest.mark.parametrize(
    ("tabs", "panels"),
    [
        ("<ul class=tabs><li>npm<li>yarn</ul>", "<div class=tab-content><div>{}</div><div>{}</div></div>"),
        ("<ul class='tabs'><li><a href=#a>npm</a><li><a href=#b>yarn</a></ul>", "<div id=a>{}</div><div id=b>{}</div>"),
        (
            "<ul role=tablist><li role=tab>npm<li role=tab>yarn</ul>",
            "<div><div role=tabpanel>{}</div><div>{}</div></div>",
        ),
        (
            "<div class=tabbed-labels><label>npm</label><label>yarn</label></div>",
            "<div class=tabbed-content><div>{}</div><div>{}</div></div>",
        ),
        (
            "<div role=tablist><button role=tab>npm</button><button role=tab>yarn</button></div>",
            "<div role=tabpanel>{}</div><div role=tabpanel>{}</div>",
        ),
        (
            "<div role=tablist><button role=tab aria-controls=a>npm</button><button role=tab aria-controls=b>yarn"
            "</button></div>",
            "<div id=a class=highlight>{}</div><div id=b class=highlight>{}</div>",
        ),
        (
            "<div class=tabs><div role=tablist><button role=tab aria-controls=a>npm</button><button role=tab "
            "aria-controls=b>yarn</button></div>",
            "<div role=tabpanel id=a>{}</div><div role=tabpanel id=b>{}</div></div>",
        ),
    ],
)
def test_tabs_title_their_panels_by_reference_or_by_place(tabs: str, panels: str) -> None:
    expected = "## Kit\n\n### npm\n\n```\nnpm i kit\n```\n\n### yarn\n\n```\nyarn add kit\n```\n\nEnd."

    assert markdown(f"<h2>Kit</h2>{tabs}{panels.format(*CODES)}<p>End.</p>") == expected


@pytest.mark.parametrize(
    "html",
    [
        "<ul class=tabs><li>npm<li>yarn</ul><div><p>One.</p></div>",
        "<ul class=tabs><li>npm<li>yarn</ul><div class=tab-body><p>One.</p><pre>npm i kit</pre></div>",
        "<ul class=tabs><li>npm<li>yarn</ul><div><p>One.</p><p>Two.</p></div>",
        "<ul class=tabs><li>npm<li>yarn</ul>",
        f"<ul class=tabs><li>{'npm ' * 60}<li>yarn</ul><div class=tab-content><div>One.</div><div>Two.</div></div>",
        f"<ul class=tabs>{'<li>npm' * 1_000}<li>yarn</ul><div class=tab-content>{'<div>One.</div>' * 1_001}</div>",
        "<ul class=tabs><li><a href=#n>npm</a><li><a href=#y>yarn</a></ul><h2 id=n>A</h2><p>B.<h2 id=y>C</h2><p>D.",
    ],
)
def test_tabs_without_panels_stay(html: str) -> None:
    assert "- [yarn" in markdown(html) or "- yarn" in markdown(html)


def test_a_panel_with_its_own_title_gets_no_other() -> None:
    tabs = "<ul class=tabs><li>npm<li>yarn</ul>"
    panels = f"<div><div><h3>npm</h3>{CODES[0]}</div><div><h3>yarn</h3>{CODES[1]}</div></div>"

    assert markdown(tabs + panels).count("npm\n\n") == 1
