"""Data augmentation: changed copies of pages, with features that are common in crawls but rare in the sets.

Copies are used for training and never measured. A copy belongs to the host of its page, and foreign content in it comes
from pages of the same fold, so that no content of a fold leaks into the training data of its model. Copies are
deterministic: the same page, kind and donors give the same copy.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path

from lxml import html as lxml_html
from lxml.html import HtmlElement

from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.page import PageError, document_tree
from scrapy_dripper.page.blocks import cut
from scrapy_dripper_lab.alignment import align
from scrapy_dripper_lab.sets import AnnotatedPage
from scrapy_dripper_lab.training.prepare import in_processes

COPIED_SHARE = 0.7
"""Share of the pages of suitable types to copy, for most kinds."""
RUN_LEVELS, LEAST_RUN = 5, 3
"""Number of levels above a block at which it may be in a run of like siblings, and minimum length of a run."""
MOST_ADDED = 1_000
"""Maximum number of elements by which a run is made longer."""
_SEED = 0  # fixed, so that training runs with different seeds can be compared
MOST_BYTES = 1_000_000
"""Larger pages are not copied."""

_HEADINGS = (
    "Related articles|More news|Recommended for you|You may also like|Most read|Latest|Mehr zum Thema|Meistgelesen|"
    "Lire aussi|À la une|Te puede interesar|Leggi anche|Czytaj także|Читайте также|相关阅读|热门推荐|関連記事|"
    "관련 기사|اقرأ أيضا|Läs mer|İlgili haberler|Διαβάστε επίσης"
).split("|")
_NAMES = (
    "teaser card item story tile post entry box related more news list row col stream feed widget content article "
    "media promo grid module block wrap inner"
).split()
_SHORT_TEXTS = "subtitle dek standfirst chapo kicker teaser-text lead intro summary article__summary untertitel".split()
_AMOUNTS = "price amount product-price listing__price preis prix cost".split()
_ROWS = "facts details key-facts attributes specs data-list properties info-table eckdaten".split()
_PANELS = "accordion__item faq-item panel tab-pane toggle collapse-item expander wp-block-details".split()
_PRICES = ("€ {}", "{} €", "${}", "£{}", "£{} pcm", "{} kr", "CHF {}.–", "¥{}", "{} zł", "Rs. {}", "US$ {} per month")
_LABELS = (
    "Size|Area|Rooms|Bedrooms|Floor|Year built|Available from|Deposit|Address|Location|Contract|Workplace|Salary|"
    "Material|Colour|Weight|Brand|Model|Condition|Dimensions|Delivery|Level|Duration|Language|Wohnfläche|Zimmer|Baujahr|"
    "Nebenkosten|Ort|Gewicht|Farbe|Surface|Pièces|Étage|Adresse|Marque|Poids|Superficie|Habitaciones|Ubicación|Marca|Locali|Piano|"
    "Kolor|Materiał|Площадь|Этаж|Цена|面积|楼层|品牌|サイズ|重量"
).split("|")
_UNITS = ("", "", " m²", " kg", " cm", " h", " sq ft", "%", " km")
_BELOW = frozenset("a abbr b em font i span strong u td th tr tbody thead table li ul ol dl dt dd figcaption".split())
_FRAMES = frozenset(("article", "main", "section"))


@dataclass(frozen=True, slots=True)
class Donor:
    """Content of a page for the copies of others."""

    id: str
    page_type: str
    title: str
    lines: tuple[str, ...]
    """Lines of its main content. The first one is the lead."""


@dataclass(frozen=True, slots=True)
class _CopyTask:
    """A page to copy."""

    sample: AnnotatedPage
    root: HtmlElement
    main: list[HtmlElement]
    """The elements of the main blocks, in document order."""
    donors: Sequence[Donor]
    rng: random.Random


def donor(sample: AnnotatedPage) -> Donor:
    """Return the title of a page, and lines of its main content that are sentences."""
    lines = [line.strip() for line in sample.truth.split("\n") if len(line.strip()) >= 40]
    return Donor(sample.id, sample.page_type, sample.title or (lines[0][:70] if lines else ""), tuple(lines[:40]))


def make_copies(groups: Sequence[Sequence[AnnotatedPage]], folder: Path, jobs: int) -> list[AnnotatedPage]:
    """Write copies of pages to a folder and return them. Each group holds the pages of a fold."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = []
    for group in groups:
        donors = [one for one in map(donor, group) if one.title and one.lines]
        for sample in group:
            for kind in KINDS:
                rng = random.Random(f"{_SEED} {kind} {sample.id}")
                if sample.page_type in KINDS[kind].types and rng.random() < KINDS[kind].share:
                    some = rng.sample(donors, min(40, len(donors)))
                    tasks.append((sample, kind, [one for one in some if one.id != sample.id]))
    return [one for one in in_processes(partial(_copy, folder=folder), tasks, jobs, "copies") if one is not None]


def _copy(task: tuple[AnnotatedPage, str, list[Donor]], folder: Path) -> AnnotatedPage | None:
    sample, kind, donors = task
    data = sample.path.read_bytes()
    if len(data) > MOST_BYTES or not donors:
        return None
    document = Document(data, sample.url)
    try:
        root, _ = document_tree(document, Config())
        elements = list(root.iter())
        page = cut(root, sample.url)
    except PageError:
        return None
    if not len(page.blocks):
        return None
    # cut() removes elements from its tree, so the copy is made from another tree, in which they have the same numbers.
    place = {element: i for i, element in enumerate(elements)}
    fresh, _ = document_tree(document, Config())
    same = list(fresh.iter())
    main = align(page.blocks.text, sample.truth).main
    nodes = [page.tree.nodes[node] for node, chosen in zip(page.blocks.context, main, strict=True) if chosen]
    job = _CopyTask(
        sample,
        fresh,
        [same[place[node]] for node in nodes if node in place],
        donors,
        random.Random(f"{_SEED} {kind} {sample.id} copy"),
    )
    truth = KINDS[kind].change(job)
    if truth is None:
        return None
    path = folder / f"{sample.id}+{kind}.html"
    text = lxml_html.tostring(job.root, encoding="unicode", doctype="<!DOCTYPE html>")
    path.write_text(text, encoding="utf-8", errors="replace")
    return replace(
        sample, id=path.stem, path=path, truth=truth, measure=False, copy_of=sample.id, with_snippets=(), part="copies"
    )


# ---------------------------------------------------------------------------------------------------- kinds of copies
def _cards_around(job: _CopyTask) -> str | None:
    """Add teasers of other pages around the content, and comments below it. None of them is main."""
    if not job.main:
        return None
    for _ in range(1 if job.rng.random() < 0.7 else 2):
        if job.rng.random() < 0.85:
            _after(job, _cards(job))
        else:
            _before(job, _cards(job))
    if job.sample.page_type != "forum" and job.rng.random() < 0.35:
        _after(job, _comments(job))
    return job.sample.truth


def _next_articles(job: _CopyTask) -> str | None:
    """Add one to three whole articles of other pages below the content, as sites with endless scrolling do. They are
    not main: the page is about the first one."""
    if not job.main:
        return None
    rng = job.rng
    frame = rng.choice(("article", "div", "section"))
    title = rng.choice(("h1", "h2"))
    names = [_name(rng) if rng.random() < 0.6 else _hashed(rng) for _ in range(2)]
    for one in rng.sample(job.donors, min(rng.randint(1, 3), len(job.donors)))[::-1]:
        lines = "".join(f"<p>{escape(line)}</p>" for line in one.lines[: rng.randint(3, 25)])
        byline = (
            f'<div class="{names[1]}">{escape(" ".join(one.title.split()[:2]))}</div>' if rng.random() < 0.5 else ""
        )
        _after(job, _element(frame, f"<{title}>{escape(one.title)}</{title}>{byline}{lines}", names[0]))
    return job.sample.truth


def _other_names(job: _CopyTask) -> str | None:
    """Remove class names and ids, or replace them by generated ones; make containers meaningless."""
    how = job.rng.choices(("away", "hashed", "kept"), (0.4, 0.4, 0.2))[0]
    plain = how == "kept" or job.rng.random() < 0.5
    known: dict[str, str] = {}
    for element in job.root.iter(lxml_html.etree.Element):
        for name in ("class", "id"):
            value = element.get(name)
            if value is None or how == "kept":
                continue
            if how == "away":
                del element.attrib[name]
            else:
                words = value.split()
                element.set(name, " ".join(known.setdefault(word, _hashed(job.rng)) for word in words))
        if plain and element.tag in _FRAMES:
            element.tag = "div"
            element.attrib.pop("role", None)
    if job.main and job.rng.random() < 0.1:  # whole pages, or tables in them, are in a form
        frames = list(job.rng.choice(job.main).iterancestors("div", "section"))
        if frames:
            job.rng.choice(frames).tag = "form"
    return job.sample.truth


def _ends(job: _CopyTask) -> str | None:
    """Remove all that is behind a place in the content, so that labels do not depend on how long a page goes on."""
    if len(job.main) < 2 * LEAST_RUN:
        return None
    node: HtmlElement | None = job.main[job.rng.randint(len(job.main) // 3, len(job.main) - 2)]
    while node is not None and node.tag not in ("body", "html"):
        for after in list(node.itersiblings()):
            after.getparent().remove(after)
        node = node.getparent()
    return job.sample.truth


def _panels(job: _CopyTask) -> str | None:
    """Make the sections of a text panels that open with a click."""
    inside = {node for element in job.main for node in (element, *element.iterancestors())}
    headings: dict[tuple[HtmlElement, str], list[HtmlElement]] = {}
    for element in dict.fromkeys(job.main):
        if element.tag in ("h2", "h3", "h4", "h5") and element.getparent() is not None:
            headings.setdefault((element.getparent(), element.tag), []).append(element)
    run = max(headings.values(), key=len, default=[])
    if len(run) < 2:
        return None
    rng = job.rng
    how = rng.choice(("details", "button", "link", "tab"))
    names = [rng.choice(_PANELS) if rng.random() < 0.6 else _hashed(rng) for _ in range(3)]
    state = rng.choice(('aria-hidden="true"', 'style="display:none"', "hidden", ""))
    for i, heading in enumerate(run):
        title, tag = escape(heading.text_content().strip()), heading.tag
        content = []
        for after in heading.itersiblings():
            if after in run or after not in inside:
                break
            content.append(after)
        if how == "details":
            panel = _element("details", f"<summary>{title}</summary>", names[0])
            body = panel
        else:
            click = {
                "button": f'<{tag}><button aria-expanded="false" aria-controls="p{i}">{title}</button></{tag}>',
                "link": f'<a role="button" href="#p{i}" class="{names[2]}">{title}</a>',
                "tab": f'<div role="tab" aria-controls="p{i}"><span>{title}</span></div>',
            }[how]
            panel = _element("div", f'{click}<div id="p{i}" class="{names[1]}" {state}></div>', names[0])
            body = panel[-1]
        heading.addprevious(panel)
        body.extend(content)
        heading.drop_tree()
    return job.sample.truth


def _verses(job: _CopyTask) -> str | None:
    """Make paragraphs lines with breaks, as in lyrics and old pages. Some of the lines may be links to notes."""
    runs: dict[HtmlElement, list[HtmlElement]] = {}
    for element in dict.fromkeys(job.main):
        if element.tag == "p" and element.getparent() is not None:
            runs.setdefault(element.getparent(), []).append(element)
    run = max(runs.values(), key=len, default=[])
    if len(run) < LEAST_RUN:
        return None
    rng, noted = job.rng, job.rng.choice((0.0, 0.0, 0.3, 0.8))
    verses = []
    for element in run:
        words, lines = element.text_content().split(), []
        while words:
            size = rng.randint(4, 10)
            line, words = escape(" ".join(words[:size])), words[size:]
            lines.append(f'<a href="/{rng.randrange(10**6)}">{line}</a>' if rng.random() < noted else line)
        verses.append("<br>".join(lines))
    run[0].addprevious(_element("div", "<br><br>".join(verses), rng.choice(("", _hashed(rng), _name(rng)))))
    for element in run:
        element.drop_tree()
    return job.sample.truth


def _standfirst(job: _CopyTask) -> str | None:
    """Add a standfirst below the headline. Most have no full stop."""
    headline = _headline(job)
    lines = [line.split() for line in job.sample.truth.split("\n") if len(line.split()) > 12]
    if headline is None or not lines:
        return None
    rng = job.rng
    text = " ".join(rng.choice(lines)[: rng.randint(6, 28)])
    text = text.rstrip(".,;:。 ") + rng.choice(("", "", "."))
    tag = rng.choice(("p", "div", "h2", "h3"))
    _block(headline).addnext(_element(tag, escape(text), _any_name(rng, _SHORT_TEXTS)))
    return f"{job.sample.truth}\n{text}"


def _offer(job: _CopyTask) -> str | None:
    """Add a price, and rows of labels and values, beside the headline. Some pages also have the prices of other offers
    at their end, which are not main."""
    headline = _headline(job)
    if headline is None:
        return None
    rng = job.rng
    rows = [(label, _value(job)) for label in rng.sample(_LABELS, rng.randint(2, 8))]
    price = _price(rng)
    anchor = _block(headline)
    anchor.addnext(_rows(job, rows, _any_name(rng, _ROWS)))
    if rng.random() < 0.9:
        add = anchor.addprevious if rng.random() < 0.2 else anchor.addnext
        add(_element(rng.choice(("div", "p", "span", "strong")), price, _any_name(rng, _AMOUNTS)))
    else:
        price = ""
    if rng.random() < 0.6:
        _after(job, _cards(job, priced=True))
    return "\n".join((job.sample.truth, price, *(f"{label} {value}" for label, value in rows)))


def _little(job: _CopyTask) -> str | None:
    """Reduce the page to a paragraph, a heading with a few sentences, a list or a table, as in feeds and APIs."""
    rng = job.rng
    lines = [line for line in (x.strip() for x in job.sample.truth.split("\n")) if 20 <= len(line) <= 600]
    if len(lines) < 3:
        return None
    start = rng.randrange(len(lines) - 2)
    shape = rng.choice(("paragraph", "heading", "paragraphs", "list", "table", "bare"))
    title = next((one.title for one in job.donors), "")
    texts = lines[start : start + (1 if shape in ("paragraph", "bare") else rng.randint(1, 3))]
    if shape == "table":
        texts = [word for line in texts for word in line.split()][:12]
        rows = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in zip(texts[::2], texts[1::2]))  # noqa: B905
        texts, body = texts[: len(texts) // 2 * 2], f"<table>{rows}</table>"
    elif shape == "list":
        body = f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
    elif shape == "bare":
        body = escape(texts[0])
    else:
        body = "".join(f"<p>{escape(text)}</p>" for text in texts)
    if shape != "bare" and title and (shape in ("heading", "table") or rng.random() < 0.4):
        body, texts = f"<h1>{escape(title)}</h1>{body}", [title, *texts]
    if rng.random() < 0.5:
        words = [word for one in job.donors for word in one.title.split()[:2]]
        menu = "".join(
            f'<li><a href="/{i}">{escape(word)}</a></li>' for i, word in enumerate(words[: rng.randint(3, 9)])
        )
        body = f"<nav><ul>{menu}</ul></nav>{body}<footer><p>© {rng.randint(1999, 2026)}</p></footer>"
    new = lxml_html.document_fromstring(f"<html><head><title>{escape(title)}</title></head><body>{body}</body></html>")
    for child in list(job.root):
        job.root.remove(child)
    job.root.extend(list(new))
    return "\n".join(texts)


def _intro(job: _CopyTask) -> str | None:
    """Add an introduction above a listing, which is main as well, and cards of other kinds, which are not."""
    if not job.main:
        return None
    one = job.rng.choice(job.donors)
    _before(job, _element("div", f"<p>{escape(one.lines[0][:400])}</p>"))
    if job.rng.random() < 0.5:
        aside = _element("aside", "")
        aside.append(_cards(job))
        body = job.root.find("body")
        if body is not None:
            body.append(aside)
    return f"{one.lines[0][:400]}\n{job.sample.truth}"


def _runs(job: _CopyTask) -> str | None:
    """Shorten the longest run of like siblings with main content, or make it several times as long, so that neither
    the third nor the hundredth post, row or paragraph is another one than the tenth.
    """
    runs: dict[tuple[HtmlElement, str, str | None], list[HtmlElement]] = {}
    seen: set[HtmlElement] = set()
    for element in job.main:
        for _ in range(RUN_LEVELS):
            parent = element.getparent()
            if element in seen or parent is None or element.tag in ("body", "td", "th"):
                break
            seen.add(element)
            runs.setdefault((parent, str(element.tag), element.get("class")), []).append(element)
            element = parent
    run = max(runs.values(), key=len, default=[])
    if len(run) < LEAST_RUN:
        return None
    rng, lines = job.rng, []
    if len(run) > LEAST_RUN and rng.random() < 0.4:
        for element in run[rng.randint(1, LEAST_RUN) :]:
            element.drop_tree()
        return job.sample.truth
    size = max(1, sum(1 for _ in run[-1].iter()))
    for _ in range(min(rng.randint(10, 100), MOST_ADDED // size)):
        new = deepcopy(rng.choice(run))
        for node in new.iter(lxml_html.etree.Element):
            for name in ("text", "tail"):
                if len((getattr(node, name) or "").split()) >= 5 and (name == "text" or node is not new):
                    line = rng.choice(rng.choice(job.donors).lines)
                    setattr(node, name, line)
                    lines.append(line)
        run[-1].addnext(new)
        run.append(new)
    return "\n".join([job.sample.truth, *lines]) if lines else None


@dataclass(frozen=True, slots=True)
class CopyKind:
    """A kind of copy: how to make it, and for which page types."""

    change: Callable[[_CopyTask], str | None]
    """Changes the tree and returns the true text, or None if the page is unsuitable."""
    types: frozenset[str]
    share: float = COPIED_SHARE
    """Share of the pages of these types that are copied."""


_WRITTEN = frozenset(("article", "documentation"))
_ALL = _WRITTEN | {"forum", "product", "service", "collection", "listing", "mixed"}
KINDS: dict[str, CopyKind] = {
    "cards": CopyKind(_cards_around, _WRITTEN),
    "next": CopyKind(_next_articles, frozenset(("article",))),
    "forums": CopyKind(_cards_around, frozenset(("forum",))),
    "listings": CopyKind(_intro, frozenset(("collection", "listing"))),
    "names": CopyKind(_other_names, _ALL),
    "little": CopyKind(_little, _WRITTEN | {"service"}),
    "runs": CopyKind(_runs, _ALL, share=0.4),
    "ends": CopyKind(_ends, _ALL, share=0.35),
    "panels": CopyKind(_panels, _WRITTEN | {"service", "product"}, share=0.4),
    "verses": CopyKind(_verses, _WRITTEN, share=0.15),
    "heads": CopyKind(_standfirst, _WRITTEN, share=0.3),
    "offers": CopyKind(_offer, frozenset(("product", "service"))),
}


# ------------------------------------------------------------------------------------------------------------ material
def _headline(job: _CopyTask) -> HtmlElement | None:
    """Return the headline of a page with main content, if its title says that it is one."""
    title = (job.root.findtext(".//title") or "").casefold()
    found = next((one for one in job.root.iter("h1") if len(one.text_content().split()) > 1), None)
    named = found is not None and found.text_content().strip().casefold() in title
    return found if named and job.main else None


def _any_name(rng: random.Random, known: Sequence[str]) -> str:
    """Return a class name: mostly one of those that are known, else a generated one, or none."""
    return rng.choice((rng.choice(known), rng.choice(known), _hashed(rng), ""))


def _price(rng: random.Random) -> str:
    amount = rng.choice((rng.randint(2, 99), rng.randint(100, 999), rng.randint(1_000, 900_000)))
    text = f"{amount:,}".replace(",", rng.choice((",", ".", " ", "")))
    form = rng.choice(_PRICES)
    return form.replace("{}", text + rng.choice(("", "", ".00", ",90")))


def _value(job: _CopyTask) -> str:
    rng = job.rng
    if rng.random() < 0.5:
        return f"{rng.randint(1, 2_000)}{rng.choice(_UNITS)}"
    return " ".join(rng.choice(job.donors).title.split()[: rng.randint(1, 4)])


def _rows(job: _CopyTask, rows: Sequence[tuple[str, str]], name: str) -> HtmlElement:
    """Return rows of labels and values."""
    row, frame = job.rng.choice(
        (
            ("<dt>{}</dt><dd>{}</dd>", "dl"),
            ("<tr><th>{}</th><td>{}</td></tr>", "table"),
            ("<li>{}: {}</li>", "ul"),
            ("<li><b>{}</b> <span>{}</span></li>", "ul"),
            ("<div><span>{}</span><span>{}</span></div>", "div"),
            ("<div><div>{}</div><div>{}</div></div>", "div"),
            ("<p><strong>{}:</strong> {}</p>", "div"),
        )
    )
    texts = [row.replace("{}", escape(a), 1).replace("{}", escape(b), 1) for a, b in rows]
    return _element(frame, "".join(texts), name)


def _cards(job: _CopyTask, *, priced: bool = False) -> HtmlElement:
    rng = job.rng
    frame, item, title = (
        rng.choice(t.split()) for t in ("div div section aside", "div div article li", "h2 h3 h4 div p")
    )
    linked, summary, date = rng.random() < 0.85, rng.random() < 0.4, rng.random() < 0.4
    names = [_name(rng) for _ in range(4)] if rng.random() < 0.6 else [_hashed(rng) for _ in range(4)]
    parts = []
    for one in (rng.choice(job.donors) for _ in range(rng.randint(3, 24))):
        head = f'<a href="/{rng.randrange(10**6)}">{escape(one.title)}</a>' if linked else escape(one.title)
        inside = f'<{title} class="{names[1]}">{head}</{title}>'
        if date:
            inside += (
                f'<span class="{names[2]}">{rng.randint(1, 28)}.{rng.randint(1, 12)}.{rng.randint(2005, 2026)}</span>'
            )
        if priced:
            inside += f'<span class="{names[3]}">{_price(rng)}</span>'
        if summary:
            inside += f'<p class="{names[3]}">{escape(one.lines[0][:200])}</p>'
        parts.append(f'<{item} class="{names[0]}">{inside}</{item}>')
    inside = "".join(parts)
    if item == "li":
        inside = f"<ul>{inside}</ul>"
    heading = f"<h3>{rng.choice(_HEADINGS)}</h3>" if rng.random() < 0.7 else ""
    return _element(frame, heading + inside, rng.choice(names))


def _comments(job: _CopyTask) -> HtmlElement:
    rng = job.rng
    talk = [one for one in job.donors if one.page_type == "forum"] or list(job.donors)
    name = rng.choice(("comments", "comment-list", "responses", _hashed(rng)))
    parts = []
    for _ in range(rng.randint(2, 15)):
        one = rng.choice(talk)
        text = escape(rng.choice(one.lines)[:400])
        parts.append(
            f"<div><b>{escape(rng.choice(one.title.split()))}</b><span>{rng.randint(1, 23)}h</span><p>{text}</p></div>"
        )
    return _element("div", f"<h3>{rng.randint(2, 99)} comments</h3>{''.join(parts)}", name)


def _after(job: _CopyTask, new: HtmlElement) -> None:
    anchor = _block(job.main[-1])
    for _ in range(job.rng.randrange(3)):
        parent = anchor.getparent()
        if parent is None or parent.tag in ("body", "html"):
            break
        anchor = parent
    if anchor.tag in ("body", "html"):
        anchor.append(new)
    else:
        anchor.addnext(new)


def _before(job: _CopyTask, new: HtmlElement) -> None:
    anchor = _block(job.main[0])
    if anchor.tag in ("body", "html"):
        anchor.insert(0, new)
    else:
        anchor.addprevious(new)


def _block(element: HtmlElement) -> HtmlElement:
    """Return the element, or its nearest ancestor that can have a container as a sibling."""
    while element.tag in _BELOW and element.getparent() is not None:
        element = element.getparent()
    return element


def _element(tag: str, inside: str, name: str = "") -> HtmlElement:
    new = lxml_html.fragment_fromstring(inside, create_parent=tag)
    if name:
        new.set("class", name)
    return new


def _name(rng: random.Random) -> str:
    return rng.choice("- _ __".split()).join(rng.sample(_NAMES, 2))


def _hashed(rng: random.Random) -> str:
    return f"{rng.choice(('css-', 'sc-', '_', ''))}{rng.getrandbits(32):08x}"
