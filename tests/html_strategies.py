"""Hypothesis strategies for real-world HTML."""

from __future__ import annotations

from hypothesis import strategies as st

_TAGS = (
    "div p span a b i em h1 h2 h3 ul ol li dl dt dd table tr td th thead tbody caption pre code section article nav "
    "header footer aside main form button label blockquote figure figcaption noscript details summary my-tag center "
    "script style svg math template video object xmp listing map custom-el hgroup search"
).split()
_VOID = "br hr img input wbr embed source track image area bgsound keygen".split()
_ATTRIBUTES = ["", ' class="nav"', " hidden", ' style="display:none"', ' role="main"', " href=/x", " id=a onclick=x()"]

_text = st.text(st.sampled_from("ab Zé9中文か\n\t.,|★<&"), max_size=12).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;")
)
_void = st.builds("<{}{}>".format, st.sampled_from(_VOID), st.sampled_from(["", " src=/i.png", " class=x"]))


def _element(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def build(tag: str, attributes: str, inner: list[str], close: bool) -> str:
        return f"<{tag}{attributes}>{''.join(inner)}" + (f"</{tag}>" if close else "")

    often = st.sampled_from([True, True, True, True, False])
    return st.builds(build, st.sampled_from(_TAGS), st.sampled_from(_ATTRIBUTES), st.lists(children, max_size=5), often)


def documents() -> st.SearchStrategy[str]:
    """Return documents of nested elements, some of them unclosed or misplaced."""
    nodes = st.recursive(st.one_of(_text, _void), _element, max_leaves=30)
    frames = st.sampled_from(["<html><body>{}.</body></html>", "<!doctype html><title>t</title>{}.", "{}."])
    return st.builds(lambda frame, parts: frame.format("".join(parts)), frames, st.lists(nodes, max_size=6))


def seen_documents() -> st.SearchStrategy[str]:
    """Return the same documents without elements that are hidden from readers and so from Main-HTML."""
    return documents().map(lambda html: html.replace(" hidden", "").replace(' style="display:none"', ""))


@st.composite
def markups(
    draw: st.DrawFn,
    tags: st.SearchStrategy[str],
    attributes: st.SearchStrategy[str],
    texts: st.SearchStrategy[str],
    depth: int = 0,
) -> str:
    """Return an element with text and elements in it, whether these may be there or not."""
    tag = draw(tags)
    count = draw(st.integers(0, 4 if depth < 4 else 0))
    inner = "".join(draw(markups(tags, attributes, texts, depth + 1)) for _ in range(count))
    return f"<{tag}{draw(attributes)}>{draw(texts)}{inner}</{tag}>{draw(texts)}"


_SHOWN = "div p span a b h2 ul li td table section main article header button figure my-tag label map em".split()
_GONE = "script style template textarea iframe noembed".split()


@st.composite
def worded(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """Return a document of well-formed elements with the words that a browser shows and those that it does not."""
    shown: list[str] = []
    hidden: list[str] = []

    def word(into: list[str], letter: str) -> str:
        into.append(f"{letter}{len(into)}z")
        return into[-1]

    def part(depth: int) -> str:
        kind = draw(st.sampled_from(["text", "text", "void", "gone", "svg", "video", "xmp", "element", "element"]))
        if kind == "element" and depth < 4:
            tag = draw(st.sampled_from(_SHOWN))
            return f"<{tag}>{''.join(part(depth + 1) for _ in range(draw(st.integers(0, 3))))}</{tag}>"
        if kind == "void":
            return f"<{draw(st.sampled_from(_VOID))} src=/x>"
        if kind == "gone":
            tag = draw(st.sampled_from(_GONE))
            return f"<{tag}>{word(hidden, 'h')}</{tag}>"
        if kind == "svg":
            return f"<svg><g><text>{word(hidden, 'h')}</text></g><p>{word(shown, 'w')} </svg>"
        if kind == "video":
            return f"<video><source src=/v>{word(hidden, 'h')}</video>"
        if kind == "xmp":
            return f"<xmp><b>{word(shown, 'w')} </xmp>"
        return word(shown, "w") + " "

    frame = draw(st.sampled_from(["<html><body>{}</body></html>", "<!doctype html><title>t</title>{}", "{}"]))
    return frame.format("".join(part(0) for _ in range(draw(st.integers(1, 5))))), shown, hidden
