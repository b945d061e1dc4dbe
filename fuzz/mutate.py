"""Structure-aware mutations of HTML, like those by broken templates, bad encodings and hostile authors."""

from __future__ import annotations

import re
from random import Random

from lxml.html.defs import tags

tokens_of = re.compile(rb"<[^<>]*>|[^<]+|<").findall
_is_tag = re.compile(rb"</?[a-zA-Z]").match
_attributes_of = re.compile(rb"""\s[\w:-]+=(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)""").findall

TAGS = (
    *(tag.encode() for tag in sorted(tags)),
    *b"svg math foreignObject desc annotation-xml annotation semantics mi mo mn mrow mfrac msqrt msub mtable mtr mtd "
    b"mtext my-tag lite-youtube amp-img xmp listing plaintext keygen bgsound template slot search rb o:p "
    b'p"x svg:g a\xc3\xa9'.split(),
)

ATTRIBUTES = (
    b"href=javascript:alert(1)", b'href="jav&#x09;ascript:x"', b"href='//[bad'", b"src='data:image/png;base64,AAAA'",
    b"srcset=,,,", b"alt='x < y \\(z\\)'", b'title=\'a"b\'', b"style='display:none'", b"hidden", b"onclick=alert(1)",
    b"onload='x()'", b"rowspan=2", b"colspan=1000", b"rowspan=0", b"colspan=-1", b"colspan=99999999999",
    b"start=99999999999999999999", b"start=-3", b"dir=rtl", b"shadowrootmode=open", b"encoding='text/html'",
    b"xmlns='http://www.w3.org/2000/svg'", b"xlink:href=javascript:x", b"datetime=2026-13-45", b"name=\x00", b"=", b'"',
    b"'", b"/", b"a=b=c", b"\xff=\xfe", b"content='0;url=javascript:x'", b"open=( separators=,;", b"poster=/p.png",
    b"data-a='<script>'", b"onerror=alert`1`", b"srcdoc='<p>x'",
)  # fmt: skip
"""Attributes that pages seldom have. Others come from the page that pieces are taken from."""

SNIPPETS = (
    b"<![CDATA[ <p>in</p> ]]>", b"<!-- c -->", b"<!-- <p> -- > ", b"<!--[if IE]><p>ie</p><![endif]-->", b"<![if !IE]>",
    b"<!-->", b"<!--->", b"<!--a--!>", b"<?php echo '>' ?>", b"<?xml version='1.0' encoding='utf-16'?>",
    b"<!DOCTYPE x [", b"<!ENTITY a '&b;'>", b"</>", b"< p>", b"<", b">", b"<a", b"<a href='", b"</p", b"</br>",
    b"</body>", b"</html>", b"<template shadowrootmode=open><p>t</p></template>", b"<template><div>t</template>",
    b"<template>", b"<svg><foreignObject><p>f</p></foreignObject><p>out</svg>",
    b"<svg><title>t</title><desc><p>d</desc><image/></svg>", b"<svg><style><p>x</style></svg>",
    b"<math><mtext><p>x</mtext><mglyph><style><!--</style><img title='--&gt;&lt;p&gt;'>",
    b"<math><annotation-xml encoding=text/html><p>a</annotation-xml></math>", b"<table><caption><table>",
    b"<table><tr><td><table><tr><td>x<td>y</table></table>", b"<table>t<tr>u<td>v</table>", b"<tr><td>x", b"<td>",
    b"</table>", b"<select><option>a<option selected>b<p>c</select>", b"<select>", b"<textarea>", b"<title>",
    b"<xmp><b>", b"<plaintext>", b"<frameset><frame src=a><noframes><p>n</noframes></frameset>", b"<frameset>",
    b"<noscript><p>n</noscript>", b"<noscript><img src=x onerror=y></noscript>",
    b"<script>document.write('<p>')</script>", b"<script>", b"<style>", b"<script><!--<script></script>-->",
    b"<iframe srcdoc='<script>x</script>'></iframe>", b"<object data=x><embed src=y></object>",
    b"<base href='http://[x'>", b"<base href=//other/>", b"<meta charset=utf-16>", b"<meta charset=shift_jis>",
    b"<meta http-equiv=refresh content=0>", b"<head>", b"<body class=two>", b"<html lang=xx>", b"<p><p><p>",
    b"<a><a><a>", b"<b><i></b></i>", b"<li>", b"<dd>", b"<ul><ul><li>x<ol><li>y</ul></ol>",
    b"<dl><dt>a<dd>b<div><dt>c</div></dl>", b"\\(x\\)", b"\\[", b"$$a_b$$", b"$", b"`a`", b"`` ` ``", b"*", b"**a**",
    b"_", b"~~~", b"```\n", b"# ", b"1. ", b"- ", b"[a](b)", b"![", b"](javascript:x)", b"|", b"---\n", b"\\",
    b"&lt;script&gt;alert(1)&lt;/script&gt;", b"&amp;lt;b&gt;", b"&#0;", b"&#xD800;", b"&#x110000;", b"&#1;",
    b"&#xfffe;", b"&nbsp;", b"&NotEqualTilde;", b"&amp", b"&#", b"&zwj;", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe",
    b"\xfe\xff", b"\x1b$B", b"\x1b(J", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\xe2\x80\xae", b"\xe2\x80\xa8",
    b"\xc2\xa0", b"\xc2\x85", b"\x0b", b"\x0c", b"\x1c", b"\r", b"\t", b"\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81",
    b"\xe4\xb8\xad\xe6\x96\x87", b"\xd8\xb9\xd8\xb1", b"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9", b"\xef\xbf\xbf",
)  # fmt: skip
"""Pieces that pages seldom have, of markup and of Markdown."""

_RECODINGS = (
    ("utf-16-le", b""), ("utf-16", b""), ("utf-32-be", b""), ("shift_jis", b"Shift_JIS"), ("gb18030", b"gb2312"),
    ("cp1251", b"utf-8"), ("iso-2022-jp", b"iso-2022-jp"), ("latin-1", b"utf-16"), ("utf-8", b"ISO-8859-1"),
    ("utf-7", b""),
)  # fmt: skip

_BREAKS = (b"", b"<", b">", b"/", b'"', b"'", b"=", b" ", b"\0", b"\xff")


def mutate(html: bytes, chance: Random, other: bytes = b"") -> bytes:
    """Return a document with one to eight changes, mostly to its tags. Pieces are also taken from ``other``."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4, 8))):
        html = _changed(html, chance, other)
    if chance.random() < 0.04:
        codec, declared = chance.choice(_RECODINGS)
        meta = b"<meta charset=%s>" % declared if declared and chance.random() < 0.7 else b""
        html = (meta + html).decode("utf-8", "replace").encode(codec, "xmlcharrefreplace")
    return html


def soup(chance: Random) -> bytes:
    """Return a document of tags, snippets and numbered words in random order."""
    tags = chance.sample(TAGS, chance.choice((3, 6, 12)))
    kinds = (
        lambda: b"w%d " % chance.randrange(100),
        lambda: b"<%s%s>" % (chance.choice(tags), chance.choice((b"", b" " + chance.choice(ATTRIBUTES)))),
        lambda: b"</%s>" % chance.choice(tags),
        lambda: chance.choice(SNIPPETS),
    )
    return b"".join(chance.choice(kinds)() for _ in range(chance.choice((4, 8, 15, 30, 60))))


def _changed(html: bytes, chance: Random, other: bytes) -> bytes:
    """Return a document with one change to a run of its tags and texts, or to a place in one of them."""
    tokens: list[bytes] = tokens_of(html) or [b""]
    start = chance.randrange(len(tokens))
    end = min(len(tokens), start + chance.choice((1, 1, 1, 2, 3, 5, 9, 20, len(tokens))))
    before, run, after = tokens[:start], tokens[start:end], tokens[end:]
    kind = chance.choice(("drop", "repeat", "move", "wrap", "nest", "rename", "attribute", "attribute", "break",
                          "insert", "insert", "insert", "stretch", "noise", "splice", "splice"))  # fmt: skip
    tag, one = chance.choice(TAGS), run[0]
    at = chance.randrange(len(one) + 1)
    if kind == "drop":
        run = []
    elif kind == "repeat":
        run = run * min(chance.choice((2, 3, 6, 30)), 1 + 200 // len(run))
    elif kind == "move":
        before, run = [*run, *before], []
    elif kind in ("wrap", "nest"):
        times = 1 if kind == "wrap" else chance.choice((10, 60, 210, 300))
        run = [b"<%s>" % tag] * times + run + [b"</%s>" % tag] * (times if chance.random() < 0.6 else 0)
    elif kind == "rename":
        run = [re.sub(rb"(?<=[</])[a-zA-Z][^\s/>]*", lambda _: tag, token, count=1) for token in run]
    elif kind == "attribute" and _is_tag(one):
        many = chance.choice((1, 1, 1, 1, 1, 1, 3, 100, 1_100))
        drawn = chance.choices(chance.choice((ATTRIBUTES, _attributes_of(other) or ATTRIBUTES)), k=many)
        run[0] = one[:-1].rstrip(b"/") + b" " + b" ".join(drawn) + one[-1:]
    elif kind == "break":
        run[0] = one[:at] + chance.choice(_BREAKS) + one[at + chance.choice((0, 1)) :]
    elif kind == "stretch":
        run[0] = (
            one[:at] + one[at : at + chance.choice((1, 1, 2, 4, 9))] * chance.choice((2, 10, 100, 1_000)) + one[at:]
        )
    elif kind == "noise":
        run[0] = one[:at] + chance.randbytes(chance.choice((1, 3, 30, 300))) + one[at:]
    elif kind == "splice":
        pieces: list[bytes] = tokens_of(other)
        cut = chance.randrange(len(pieces) + 1)
        run = [*run, *pieces[cut : cut + chance.choice((1, 3, 9, 30))]]
    else:
        run[0] = one[:at] + chance.choice(SNIPPETS) + one[at:]
    return b"".join([*before, *run, *after])
