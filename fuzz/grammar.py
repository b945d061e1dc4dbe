"""Markup that programs read with patterns, or that nearly matches these: sizes, file names, TeX, footnotes, tables.

A rule has alternatives. ``«name»`` stands for one alternative of the rule with that name, ``«name*»`` for many copies
of one. A pattern that is not linear is revealed by long runs of what it repeats, with an end that it does not expect.
"""

from __future__ import annotations

import re
from random import Random

MOST = 8_000
"""Maximum length of a piece, in characters."""
DEEPEST = 7
"""Maximum depth of nested rules. Below it, the shortest alternative is used."""
TIMES = (1, 1, 2, 2, 3, 3, 8, 8, 30, 30, 200, 1_000, 5_000)

RULES: dict[str, tuple[str, ...]] = {
    "piece": ("<«tag» «attribute»>«word*»", "<«tag» «attribute»>«word»</«tag»>", "<img «attribute» «attribute»>",
              "«tex»", "«tex»", "«footnote»", "«footnote»", "«table»", "«table»", "«list»", "«raw»", "«head»", "«many»",
              "<p>«mark»«mark*»«word»", "<p>«word*»«mark*»«word»", "<p>«number»"),
    "tag": ("p", "div", "a", "span", "td", "li", "pre", "code", "math", "table", "ol", "h2", "iframe", "video",
            "figure", "sup", "amp-img", "mi", "input"),
    "word": ("w", "word ", "«number»", "«space»", "«letter»", "&nbsp;", "&amp;", "«mark»", "w<br>"),
    "letter": ("a", "_", "-", "*", ".", "/", "\\", "(", "x", "é", "中", "0", "%", "'", "!"),
    "space": (" ", "\t", "\n", "&nbsp;", "\u00a0", "\u200b", "\u3000", "\r\n"),
    "digit": ("0", "1", "9", "12", "1000", "12345678"),
    "number": ("«digit»", "«digit*»", "«digit».«digit»", "«digit»,«digit*»", "«space*»«digit»«space*»", "-«digit»",
               "«digit»x«digit»", "«digit»e«digit»", "(«digit»)", "(«digit».«digit*»)", "«digit»%", "«space*»«digit»|"),
    "size": ("«number»x«number»", "_«digit»x«digit*»", "-«digit*»x«digit»", "w=«digit»&h=«digit»", "«digit»w",
             "«digit»x", "«digit»px", "«space*»«digit»"),
    "id": ("-12345678", "-deadbeef", "_«digit»", "«letter»", "%20", "../", "//", "?", "&a=b", ";x", "12345678.", "-x"),
    "file": ("blank«id*»", "blank«id*».x", "spacer«id»", "pixel«id*».gif", "«letter*».«letter»", "image«size».png",
             "«id*»", "«word»", "icon«id*».svg", "«id*».jpg?«id*»"),
    "url": ("/«file»", "http://e.com/«file»", "//e/«file»", "data:image/gif;base64,«letter*»", "java«space*»script:x",
            "?«file»", "#fn«digit»", "latex.php?«math*»", "«space*»«file»", "http://e.com/svg.image?«math*»", "«id*»"),
    "attribute": ('src="«url»"', 'src="«url»" width=«number» height=«number»', 'data-src="«url»"', 'href="«url»"',
                  'srcset="«url» «size», «url» «size»"', 'srcset="«candidate*»"', 'class="«class*»"', 'alt="«tex»"',
                  'style="«css*»"', 'alt="«word*»"', "colspan=«digit»", "rowspan=«digit»", 'title="«word*»"',
                  'data-«letter»="«word*»"', 'id="fn«digit*»"', "start=«number»", 'datetime="«number*»"',
                  "width=«size»",
                  'type="math/tex«space*»; mode=display"', 'name="«class»" content="«word*»"', 'lang="«letter*»"',
                  'poster="«url»"', "open=( separators=«letter*»", 'aria-label="«word*»"', "data-line-number=«number»"),
    "candidate": ("a «size»,", ",", "a «digit»w, ", "«space»", "«url»«space»"),
    "css": ("display:none;", "display«space*»:", "width:«number»px;", "visibility", "«word»", "width«space*»"),
    "class": ("language-", "lang-x ", "highlight", "line-number ", "footnote", "«letter»", "katex ", "MathJax ",
              "hidden", "sr-only ", "icon-", "brush:"),
    "tex": ("\\(«math*»\\)", "$$«math*»$$", "$«math*»$", "\\[«math*»",
            "\\begin{«environment»}«math*»\\end{«environment»}",
            "\\begin{«environment»}«space*»«math*»", "\\begin{«math*»", "<script type='math/tex'>«math*»</script>",
            "<script type='math/tex'>% «raw»</script>", "<math><mtable>«equation*»</mtable></math>",
            "<math><annotation encoding='application/x-tex'>«math*»</annotation></math>", "\\tag{«number»}",
            "<math><mrow>«symbol*»</mrow></math>", "<table><tr><td>«tex»<td>«number»</table>", "`«math*»`"),
    "environment": ("array}{ccc", "align", "matrix", "cases", "equation*", "tabular}{|c|", "array}{«letter*»"),
    "math": ("x", "\\frac{", "{", "}", "^", "_", "\\\\", "&", "%«word»\n", "\\left(", "\\text{$", "<![CDATA[ ", "]]>",
             "\\", "\n", "\n\n", "\\begin{«environment»}", "\\end{«environment»}", "`", "$", " ", "\\color{", "\\ ",
             "\\,"),
    "symbol": ("<mi>x</mi>", "<mo>(</mo>", "<mfrac>", "<msup><mi>x</mi>", "<mn>«digit»</mn>", "<mspace>", "<mrow>",
               "<mtext>«word»</mtext>", "<mfenced>", "<mover>"),
    "equation": ("<mlabeledtr><mtd>(«number»)<mtd>x</mlabeledtr>", "<mtr><mtd>x</mtr>", "<mtr><mtd><mtable>"),
    "footnote": ("[^1]«word*»", "[^«digit*»]: «word»", "<sup><a href=#fn«digit»>«digit*»</a></sup>",
                 "<ol><li id=fn«digit»>«word» <a href=#fnref«digit»>«back*»</a></ol>", "«reference*»<ol>«note*»</ol>",
                 "<a class=footnote-ref href=#fn1>[«digit*»]</a>", "[«word*»](«url»", "<p>[«word*»]: «url» «word»",
                 "<sup><a href=#fn1>1</a></sup><p id=fn1>«space*»«back*»«space*»x", "[«mark*»", "<p>[^1]: «word*»"),
    "reference": ("<sup><a href=#fn1>1</a></sup>", "<a href=#fn2>[2]</a>", "[^1]"),
    "note": ("<li id=fn1>n <a href=#r>«back»</a>", "<li id=fn2>n", "<li id=fn1><p>«back»"),
    "back": ("↩", "^", "\ufe0e", "↑", " ", "[", "]", "back", "&nbsp;", "a "),
    "table": ("<table>«row*»</table>", "<table><tr>«cell*»</table>", "<table>«row»«row*»<tr>«cell*»</table>«word»",
              "<table «attribute»><caption>«word*»</caption>«row*»", "<p>|«word»|«word*»|<br>|-|-|", "«cell*»",
              "<table><colgroup><col span=«digit»>«row*»", "<table><tr>«cell*»<tr><td>«word*»</table>",
              "<table>«list»"),
    "row": ("<tr>«cell»", "<tr>«cell*»", "<tr>«cell»«cell»</tr>", "<tr «attribute»>", "<thead><tr><th>x", "<tr>"),
    "cell": ("<td>w", "<td colspan=«digit»>w", "<td rowspan=«digit»>", "<th>«word»", "<td>«word*»", "<td>|", "<td>",
             "<td><table><tr><td>x", "<td colspan=1000 rowspan=1000>x", "<td>«number»", "<td><ul><li>x</ul>"),
    "many": ("«nest*»«digit*»", "«nest*»«word*»", "«nest*»«heading*»", "<a href=x title=w>«image*»",
             "<mjx-container>«svg*»", "<math>«nest*»{ a", "<p>1<span class=sr-only>1</span>"),
    "heading": ("<h2>x</h2>", "<h1>w</h1>", "<p>w"),
    "image": ("<p><img src=x>", "<img src=y>"),
    "svg": ("<svg></svg>", "<svg>"),
    "list": ("<ul>«item*»</ul>", "<ol start=«number»>«item*»", "<ul><li>«list»", "«nest*»", "«nest*»«word*»",
             "<dl>«term*»</dl>", "<p>«number».«space*»x", "<p>-«space*»x"),
    "nest": ("<ul><li>x", "<ol><li>", "<blockquote>", "<blockquote><ul><li>x", "<div>", "<figure>",
             "<div class=ln>", "<pre class=ln>1</pre>", "<span class=sr-only>", "<span class=ltx_note>",
             "<div class=mobile>", "<table><tr><td>", "<a href=/x><div>", "<annotation encoding=tex>",
             "<dl><dd>", "<b>",
             "<ol start=99999999><li>x", "<a href=x>", "<sup>", "<li>", "<details><summary>"),
    "item": ("<li>x", "<li>", "<li>«word»", "<li>x<br>y", "<li value=«digit»>x", "<li>«nest»"),
    "term": ("<dt>x", "<dd>y", "<dt>«word»<dd>", "<dt>"),
    "raw": ("<![CDATA[«space*»x", "<![CDATA[ x«space*»y", "<!--«letter*»", "<!--«word*»-->", "<?«word*»",
            "<pre>«code*»</pre>", "<pre><code>«code*»</code></pre>", "<code>«mark*»</code>",
            "%«space*»<![CDATA[«space*»"),
    "code": ("x\n", "\n", " ", "\t", "1 x\n", "`", "```\n", "<b>x</b>", "<span class=line>x</span>\n", ">>> ", "$ x\n",
             "{", "«number»\n", "<br>", "~~~\n"),
    "head": ('<base href="http://e.com/«letter*»">«link*»', "<meta «attribute»>", "<title>«word*»</title>",
             "<script type='application/ld+json'>«json*»</script>", "<link rel=canonical href='«url»'>",
             "<html lang='«letter*»'>", "<time datetime='«number*»'>", "<meta property='og:title' content='«word*»'>",
             "<script>MathJax={«json*»</script>",
             "<div id=root></div><script id='__NEXT_DATA__'>«json*»</script>",
             "<div id=root></div><script id='__NEXT_DATA__'>{\"title\":\"«word»\",\"body\":\"«piece*»\"}</script>",
             "<div id=app></div><script id='__NUXT_DATA__'>[{\"body\":1},\"«word*»\"]</script>",
             "<template id='B:1'></template>«word*»<div hidden id='S:1'>«word»</div>"),
    "link": ("<a href=x>y</a> ", "<img src=x>", "<a href=?>.</a>", "<img srcset='a 1x, b 2x'>",
             "<video src=x></video>"),
    "json": ('"author" ', '"publisher": {"name ', '{"@type": "', "[", "{", '"«word»"', ",", ":", "\\",
             "inlineMath:[['$"),
    "mark": ("*", "_", "`", "#", "[", "](", "![", "|", "-", "=", "&gt;", "~", "+", "1.", "\\", "&lt;", "&", "&nbsp;",
             "$",
             "[^1]", "---<br>", "__", "**", ":", "]", ")", "&lt;!--", "\\("),
}  # fmt: skip

_reference = re.compile(r"«(\w+)(\*?)»").sub


def piece(chance: Random, rule: str = "piece") -> bytes:
    """Return a random text of a rule, sometimes with its end cut off or an additional character after it."""
    made = _made(rule, "", chance, 0)
    end = chance.random()
    if end < 0.15:
        made = made[: -chance.choice((1, 2, 5))]
    elif end < 0.3:
        made += chance.choice(("!", "<", ">", "x", " ", '"', "\\", "]"))
    return made.encode()


def _made(rule: str, star: str, chance: Random, depth: int) -> str:
    alternatives = RULES[rule]
    chosen = chance.choice(alternatives) if depth < DEEPEST else min(alternatives, key=len)
    text = _reference(lambda match: _made(match[1], match[2], chance, depth + 1), chosen)
    if star:
        text *= min(chance.choice(TIMES), max(1, MOST // max(1, len(text))))
    return text[:MOST]
