"""Metadata from each of its sources."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.config import Config
from scrapy_dripper.data import Breadcrumb, Document, Metadata
from scrapy_dripper.declared import read_declared
from scrapy_dripper.declared.elements import heading_text
from scrapy_dripper.declared.metadata import detected_language, metadata_of
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page import read
from scrapy_dripper.page.parse import parse

URL = "https://example.org/news/1"
LATER = (dt.date.today() + dt.timedelta(days=40)).isoformat()


def about(head: str = "", body: str = "<p>Text.</p>", url: str = URL) -> Metadata:
    return metadata_of(parse(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"), url)


def ld(*values: Any) -> str:
    return "".join(f'<script type="application/ld+json">{json.dumps(value)}</script>' for value in values)


def article(**values: Any) -> str:
    return ld({"@type": "Article", **values})


# ---------------------------------------------------------------------- what a page is about
KEYWORDS = '<meta name=keywords content="seo, spam">'
TAGS = "<meta property=article:tag content=sea><meta property=article:tag content=moon>"
CC = "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.parametrize(
    ("head", "body", "tags", "categories", "license_"),
    [
        (KEYWORDS, "", ("seo", "spam"), (), None),
        (KEYWORDS + TAGS, "", None, (), None),
        (KEYWORDS + article(keywords=["sea", "moon", "sea"]), "", None, (), None),
        (article(keywords="sea; moon", articleSection="Science", license=CC), "", None, None, None),
        (
            KEYWORDS,
            "<a rel='category tag' href=/s>Science</a> <a rel=tag href=/1>#sea</a><a rel=tag href=/2>moon</a>"
            f"<a rel=license href={CC}>CC BY</a>",
            *(None,) * 3,
        ),
        (f'<link rel=license href={CC}><meta property="article:section" content=Science>', "", (), None, None),
        ('<meta name="dcterms.rights" content="All rights reserved">', "", (), (), "All rights reserved"),
    ],
)
def test_tags_categories_and_licence(
    head: str, body: str, tags: Any, categories: tuple[str, ...] | None, license_: str | None
) -> None:
    """What editors say comes before what is written for search engines. None stands for the usual value here."""
    found = about(head, f"<h1>Tides</h1><p>Text.</p>{body}")
    usual = CC if CC in head + body or license_ == CC else license_

    assert found.tags == (("sea", "moon") if tags is None else tags)
    assert found.categories == (("Science",) if categories is None else categories)
    assert found.license == usual
    assert Metadata.from_dict(json.loads(json.dumps(found.as_dict()))) == found


# ---------------------------------------------------------------------- the way of a page
def test_a_page_has_its_metadata_on_request() -> None:
    """It is read before the head and the scripts are removed from the tree."""
    document = Document("<title>Tides</title><script type=application/ld+json>{}</script><h1>Tides</h1><p>Text.", URL)
    for config, there in ((Config(), False), (Config(metadata_field="metadata"), True)):
        page = read(document, config)
        assert (page.headline, page.metadata is not None) == ("Tides", there)


TEASER = (
    "<article class=teaser><h2><a href=/{0}>A story about {0}</a></h2><p class=byline>By Ann Bell</p>"
    "<time datetime=2024-05-0{1}>{1} May</time><p itemprop=author>Ben Carr</p><p>By Cleo Dane, 3 June 2023</article>"
)
TEASERS = TEASER.format("boats", 1) + TEASER.format("piers", 2)


@pytest.mark.parametrize("heading", ["<h1>The harbour</h1>", ""])
def test_a_list_of_teasers_is_by_nobody(heading: str) -> None:
    found = about("<title>The harbour</title>", heading + TEASERS)
    assert (found.title, found.authors, found.date_published) == ("The harbour", (), None)


def test_teasers_below_an_article_do_not_date_it() -> None:
    article = "<article class=teaser><h1><a href=/tides>Tides</a></h1><p>By Eve Fox, 7 June 2022<p>It rises.</article>"
    found = about("<title>Tides</title>", TEASERS + article + TEASERS)
    assert (found.title, found.authors, found.date_published) == ("Tides", ("Eve Fox",), "2022-06-07")


@pytest.mark.parametrize("href", ["#p1", "/t/tides?p=1#p1", "/members/1/"])
def test_the_first_post_of_a_thread_names_its_author(href: str) -> None:
    quote = "<aside><h3><a href=/quoted>Another page</a></h3></aside>"
    heading = f"<div class=post><h3><a href='{href}'>Tides</a></h3>"
    post = heading + "<p class=author>{1}</p><time datetime=2024-05-0{0}></time>" + quote + "</div>"
    found = about("<title>Tides</title>", "<h1>Tides</h1>" + post.format(1, "Anna") + post.format(2, "Ben"))
    assert (found.authors, found.date_published) == (("Anna",), "2024-05-01")


def test_plain_values_and_back() -> None:
    whole = Metadata("t", ("A B", "C D"), "2024-05-01T10:00:00Z", "2024-05-02", breadcrumbs=(Breadcrumb("x", "y"),))
    values = json.loads(json.dumps(whole.as_dict()))
    assert Metadata.from_dict(values) == whole
    assert (values["author"], values["date"]) == ("A B; C D", "2024-05-01")
    assert values["authors"] == ["A B", "C D"]
    assert values["breadcrumbs"] == [{"name": "x", "url": "y"}]
    assert Metadata().as_dict()["author"] is None


def test_no_control_characters() -> None:
    found = Metadata("a\x1bb", ("c\x1bd",), breadcrumbs=(Breadcrumb("e\x1bf"),)).without_controls()
    assert "\x1b" not in json.dumps(found.as_dict(), ensure_ascii=False).replace("\\u001b", "\x1b")


# ---------------------------------------------------------------------- titles
PARTS = " - ".join(f"part {n}" for n in "one two three four five six seven eight nine ten".split())
SAND = '<meta property="og:site_name" content="Sand">'
SPRING = "Tides rise in a new spring"


@pytest.mark.parametrize(
    ("body", "title", "expected"),
    [
        (f"{SAND}<h1>Tides</h1>", "Tides | Sand", "Tides"),
        (f"{SAND}<h1>Sand</h1><h1>Tides</h1>", "Tides | Sand", "Tides"),
        (f"{SAND}<h1>Sand</h1><h2>Tides</h2><h2>More</h2>", "Tides - Sand", "Tides"),
        (f"{SAND}<h1>Sand</h1>", "Tides - Sand", "Tides"),
        ("<h1>Example.org</h1>", "Tides - Example.org", "Tides"),
        ('<meta property="og:site_name" content="Sand Daily">', "Tides: a story | Sand Daily", "Tides: a story"),
        ('<meta property="og:site_name" content="sand daily">', "Sand Daily » Tides", "Tides"),
        (SAND, "Tides － Sand", "Tides"),
        (SAND, "Sand › Tides", "Tides"),
        (SAND, "Tides ● Sand", "Tides"),
        (SAND, "Tides_Coast_Sand", "Tides_Coast"),
        (SAND, "Sand | Tides | Coast | Sand", "Tides | Coast"),
        (SAND, "Tides - Sand | Sand", "Tides"),
        (SAND, "Sand: Tides - Sand", "Sand: Tides"),
        (SAND, "Tides - and their moon", "Tides - and their moon"),
        ("<h1>The tide comes in twice a day</h1>", "Tide comes in twice a day", "The tide comes in twice a day"),
        ("<h1>Subscribe</h1><h1>Tides of the year</h1>", "Tides of the year", "Tides of the year"),
        ("<h1>Subscribe</h1><h1>Follow</h1>", "Tides of the year", "Tides of the year"),
        ("<h1>Sea and sand</h1>", "Tides", "Sea and sand"),
        (f"{SAND}<h1>Sand</h1>", "", "Sand"),
        ("<p>Text.", "", None),
        ('<h1><a href="/">The Sand</a></h1><h2>Tides</h2>', "The Sand » Tides", "Tides"),
        ('<a href="https://example.org"><h1>The Sand</h1></a>', "The Sand - Tides", "Tides"),
        ('<h1><a href="/news/">Coast</a></h1>', "Tides of the year - Coast", "Tides of the year"),
        ('<h1><a href="/news/">Tides</a></h1>', "Tides | Page 2", "Tides"),  # a thread, above its second page
        ('<h1><a href="..">Tides</a></h1>', "Tides · The Sand", "Tides"),  # a chapter of a book
        ('<h1><a href="#tides">Tides</a></h1>', "The Sand - Tides", "Tides"),
        ('<h1><a href="https://example.com/">Tides</a></h1>', "Tides", "Tides"),
        ("<h1 class=site-logo>Coast</h1>", "(3) Tides 2026 - Coast", "Tides 2026"),  # and three unread messages
        ("<p>Sand", "(99+) Tides", "Tides"),
        ("<p>Sand", "(500) Days of tides", "(500) Days of tides"),
        ("<h1 class=site-title><a href=/>Coast</a></h1>", "Coast - All about the sea", "All about the sea"),
        ("<h1>Early tides surprise</h1><h2>News</h2>", "Tides surprise early | News | Coast", "Early tides surprise"),
        ("<h1 class=brand-name>Tides</h1>", "Tides - Coast", "Tides"),
        ("<h1>Coast</h1><h2 itemprop=headline>Tides</h2>", "", "Tides"),
        ("<h1>Coast</h1>" + 2 * "<h2 itemprop=headline>Tides</h2>", "", "Coast"),  # a list of articles
        ("<h1>Tides</h1><h2 itemprop=headline>Spring tides</h2>", "Tides - Coast", "Tides"),  # which has one
        ("<h1>Chapter 3</h1><h2>Why tides turn</h2>", "Chapter 3 of 12 :: Why tides turn :: Sand", "Why tides turn"),
        # A lone <title> may say it in other words; where the data agrees with it, the <h1> is a logo or a slogan.
        ("<h1>The sea</h1>", "Tides", "The sea"),
        ('<meta property="og:title" content="Tides"><h1>Coast</h1>', "Tides", "Tides"),
        ('<meta property="og:title" content="Tides"><h1>Coast</h1>', "Coast | Tides", "Tides"),
        (article(headline="Tides of the year") + "<h1>Coast</h1>", "Tides of the year - Coast", "Tides of the year"),
        ('<meta property="og:title" content="Tides"><h1>The coast: tides</h1>', "Tides", "The coast: tides"),
        # A book has its name on each page, above that of the chapter.
        ("<h1>The Book of Sand</h1><h2>Tides</h2>", "Tides - The Book of Sand", "Tides"),
        ("<h1>The Book</h1><h2>Tides: the moon</h2>", "Tides: the moon - The Book", "Tides: the moon"),
        ("<h1>Who builds piers</h1>", "The town of Sand: Who builds piers", "Who builds piers"),
        ("<h2>潮汐</h2>", "潮汐_海岸网", "潮汐"),
        (f'{SAND}<meta property="og:title" content="Sand">', "Tides", "Tides"),
        ('<h1><a href="/">The Sand</a></h1>', "", "The Sand"),  # nothing else
        (f"<h1>{'x' * 1_000}</h1>", "Tides", "Tides"),
        ("<h1>part eight</h1><h1>Sand</h1>", PARTS, "part eight"),
        ("<h1>part nine</h1><h1>Sand</h1>", PARTS, PARTS),
        ("<h1>Tides and sand</h1><h1>Sand</h1>", "Tides and moon", "Tides and sand"),  # most words, or few
        ("<h1>Tides at the pier</h1><h1>Sand</h1>", "Tides today", "Tides today"),
        ('<h1><a href="/"><svg><title>Sign</title></svg>The Sand</a></h1>', "", "The Sand"),
        ('<meta property="og:site_name" content="海岸网">', "春潮高涨-海岸网", "春潮高涨"),
        ('<meta property="og:site_name" content="海岸">', "春潮-内河-海岸", "春潮-内河"),
        # A line that is most of the title says where the name of the site is, and that an only <h1> is a section.
        (f"<div>{SPRING}</div>", f"{SPRING} - Sand", SPRING),
        (f"<font>{SPRING}</font>", f"The Sand: {SPRING}", SPRING),
        (f"<p>Coast &gt; Sea<br>\n{SPRING}\n<br>", f"{SPRING}-Sea-The Sand", SPRING),
        (f"<h1>Coast</h1><p>{SPRING}", f"{SPRING} / Coast", SPRING),
        (f"<h1>Coast</h1><p>{SPRING}", SPRING, SPRING),
        ("<div>二零二六年春潮高涨</div>", "二零二六年春潮高涨-内河-海岸网", "二零二六年春潮高涨"),
        (
            "<p>A year of the coast",
            "Tides - A year of the coast in ten pictures",
            "Tides - A year of the coast in ten pictures",
        ),
        ("<p>Tides of the new year", "Tides of the new year again", "Tides of the new year again"),
        ("<p>The Sand", "Tides | The Sand", "Tides | The Sand"),
        ("", "Untitled Document", None),
        ("<h1>Tides</h1>", "Untitled-2", "Tides"),
        ('<meta property="og:title" content="Tides">', "无标题文档", "Tides"),
        ("", "Untitled love songs", "Untitled love songs"),
    ],
)
def test_title(body: str, title: str, expected: str | None) -> None:
    """The name of the site is none."""
    assert about(f"<title>{title}</title>", body).title == expected


def test_the_front_page_has_the_name_of_its_site() -> None:
    head = f'{SAND}<meta property="og:title" content="Sand"><title>Sand | News</title>'

    assert about(head, url="https://example.org/").title == "Sand"


@pytest.mark.parametrize(
    "heading",
    [
        "Rope &amp; knots",
        'Rope &amp; knots<a class="headerlink" href="#rope" title="Link to this heading">¶</a>',
        'Rope &amp; knots <a class="x" href="#rope">#</a>',
        '<a href="#rope" aria-hidden="true">#</a> Rope &amp; knots',
        'Rope &amp; knots<a href="#rope">\u200b</a>',
        "Rope &amp; kn\xadots\u200b",
        'Rope &amp; knots<a href="#rope"><span>Permalink to this headline</span></a>',
        'Rope &amp; knots<span class="mw-editsection">[<a href="/edit">edit</a>]</span>',
        "Rope &amp; knots [ edit | edit source ]",
        '<span class="descriptor">Title:</span>Rope &amp; knots',
        "Rope &amp; knots [Bearbeiten]",
        "# Rope &amp; knots #",
        '<a class="anchor" href="#rope">Rope &amp; knots</a>',
        'Rope &amp; <a href="/knots">knots</a>',
    ],
)
def test_a_title_has_no_signs_of_links_to_it(heading: str) -> None:
    assert (
        about("<title>Rope &amp; knots \xb6 - Harbour</title>", f"<h1>{heading}</h1><p>Text.").title == "Rope & knots"
    )


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("<span>Flat in Mill Lane</span><span>Sand, Tides</span>", "Flat in Mill Lane Sand, Tides"),
        ("<span><span>The sea.</span></span><b><span>A year</span></b>", "The sea. A year"),
        ("<span>T</span><span>ides</span>", "Tides"),
        ("<a id=sand></a><a href=#sand><span>Tides of Sand</span></a>", "Tides of Sand"),
        ("<b>Ti</b>De<span>s</span><sup>2</sup>", "TiDes2"),
        ("<span>春</span><span>潮</span>", "春潮"),
        ("<span>Category</span><span>:</span><span>Tides</span>", "Category:Tides"),
        ("<span>Category</span><span>:</span><span>Tides of Sand</span>", "Category:Tides of Sand"),
        ("".join(f"<span>{letter}</span>" for letter in "THE SEA"), "THE SEA"),
        ("<span>\n  Sea</span><span>Town</span>", "SeaTown"),
        ("<span>About 1,</span><span>000 boats at 10:</span><span>30 today</span>", "About 1,000 boats at 10:30 today"),
        ("<span>The CO</span><span>2</span> of ships", "The CO2 of ships"),
        ("<span>Galaxy S24</span><span>128GB black</span>", "Galaxy S24 128GB black"),
        ("<span>A</span><span>Midsummer Night's Dream</span>", "A Midsummer Night's Dream"),
        ("<span>T</span><span>HE TIDES of Sand</span>", "THE TIDES of Sand"),
        ("Ti<script>1</script>des and <big>m</big>oons", "Tides and moons"),
        ("<time>12 May</time>Tides rise", "12 May Tides rise"),
        ("<ruby>潮<rt>shio</rt></ruby>の<ruby>音<rp>(</rp><rt>oto</rt></ruby>", "潮の音"),
        ('<span class="product-descriptor">Tides:</span> a year', "Tides: a year"),
        ('<span class="descriptor">A year of</span> tides', "A year of tides"),
    ],
)
def test_a_title_parts_what_style_sheets_set_apart(heading: str, title: str) -> None:
    assert about("", f"<h1>{heading}</h1><p>Text.").title == title


@pytest.mark.parametrize("heading", ["Learning C#", "§ 12 The name", "# 1 in the charts", "[edit]", "Array[int]"])
def test_a_title_keeps_what_belongs_to_it(heading: str) -> None:
    assert about("", f"<h1>{heading}</h1><p>Text.").title == heading


# ---------------------------------------------------------------------- authors
ANN, BOTH = ("Ann Bell",), ("Ann Bell", "Bo Chan")
LISTED = {"@type": "ItemList", "itemListElement": [{"@type": "Article", "author": "Ann Bell", "headline": "x"}]}


def beside(line: str) -> str:
    """Return an article with a line beside its headline. No class says that the line is a byline."""
    return f"<article><h1>Tides</h1>{line}<p>The sea came in at noon.</p></article>"


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        ('<meta name="author" content="Ann Bell and Bo Chan">', "", BOTH),
        ('<meta name="citation_author" content="Ann Bell"><meta name="citation_author" content="Bo Chan">', "", BOTH),
        ('<meta name="DC.creator" content="Ann Bell; Bo Chan">', "", BOTH),
        ('<meta name=article:author content="https://e.org"><meta name=byl content="Ann Bell and Bo Chan">', "", BOTH),
        (ld({"@type": "BlogPosting", "author": ["Ann Bell", {"@type": "Person", "name": "Bo Chan"}]}), "", BOTH),
        (ld({"@graph": [{"@type": ["Article", "NewsArticle"], "author": [{"@id": "#a"}, {"@id": "#b"}]},
            {"@type": "Person", "@id": "#a", "name": "Ann Bell"},
            {"@type": "Person", "@id": "#b", "givenName": "Bo", "familyName": "Chan"}]}), "", BOTH),
        ("", '<span itemprop="author" itemscope><b itemprop="name">Ann Bell and Bo Chan</b>, reporters</span>', BOTH),
        ("", '<span itemprop="author">By Ann Bell and Bo Chan</span>', BOTH),
        ("", '<a rel="author" href="/a">Ann Bell</a><p class="byline">By Ann Bell and Bo Chan | May 6, 2024</p>', ANN),
        ("", '<p class="post-author">by <a href="/ann">Ann Bell</a> and <a href="/bo">Bo Chan</a></p>', BOTH),
        ("", beside("<p>By Ann Bell</p>"), ANN),
        ("", beside("<div>Posted on October 3, 2025 by <a href=/u/reed7>reed7</a> in Tides</div>"), ("reed7",)),
        ("", beside("<p>Von Anna Maier, 3. März 2026</p>"), ("Anna Maier",)),
        ("", beside("<p>By <a href=/ann>Ann Bell</a>, Staff Writer</p>"), ANN),
        ("", beside("<p><span>By</span> <a href=/ann>Ann Bell</a> and <a href=/bo>Bo Chan</a></p>"), BOTH),
        ("", beside("<div><span>3 March 2026</span> by <b>Ann van Bell</b></div>"), ("Ann van Bell",)),
        ("", beside("<p>By the time that the tide came in, all had left.</p>"), ()),
        ("", beside("<p>By night</p>"), ()),
        # Without capital letters, the number of words tells a name from a sentence: "With a pencil, the boy wrote ..."
        ("", beside("<p>بقلم سمير بن علي حداد</p>"), ("سمير بن علي حداد",)),
        ("", beside("<p>بقلم رصاص كتب الولد اسمه على الورقة</p>"), ()),
        ("", beside("<p>Tides are caused by The Moon And Sun of our days, which are said to be the strongest of all."),
         ()),
        # Commenters are not authors.
        ("", beside("<div class=comment><p>By Ann Bell</p></div>"), ()),
        ("", '<div class="comments"><p class="comment"><b class="author">Ann Bell</b> Nice.</p></div>', ()),
        ("", '<div itemprop="review"><span itemprop="author">Bo Chan</span></div>', ()),
        # A forum says more of an author than the name.
        ("", '<h1>Tides</h1><article><div class="post-author"><a href="/u/7">reed7</a><dl><dt>Posts:</dt><dd>120</dd>'
             "<dt>Joined</dt></dl></div><p>When is low water?</p></article>", ("reed7",)),
        # A thing is not written by its brand, and a list of articles by nobody.
        (ld({"@type": "Product", "name": "Oak table"}), "<h1>Oak table</h1><p>by <a href=/b>North Sea Tables</a>", ()),
        (ld({"@type": "CollectionPage", "name": "News", "mainEntity": LISTED}), "", ()),
    ],
    ids=range(27),
)  # fmt: skip
def test_authors(head: str, body: str, expected: tuple[str, ...]) -> None:
    assert about(head, body).authors == expected


# ---------------------------------------------------------------------- dates
@pytest.mark.parametrize(
    ("head", "body", "published", "modified"),
    [
        (article(datePublished="2024-05-06T07:08:09+02:00", dateModified="2024-05-07"), "", "2024-05-06T07:08:09+02:00",
         "2024-05-07"),
        ('<meta property="article:published_time" content="2024-05-06">'
         '<meta property="og:updated_time" content="2024-05-07">', "", "2024-05-06", "2024-05-07"),
        ('<meta name="citation_publication_date" content="2024/05/06">', "", "2024-05-06", None),
        ('<meta name="published" content="May 6, 2024">', "", "2024-05-06", None),
        ("", '<meta itemprop="datePublished" content="2024-05-06"><i itemprop="dateModified">May 7, 2024</i>',
         "2024-05-06", "2024-05-07"),
        ("", '<time datetime="2024-05-06T07:08Z">yesterday</time>', "2024-05-06T07:08:00Z", None),
        ("", '<p>Updated <time class="updated" datetime="2024-05-07">7</time><time>6. Mai 2024</time>', "2024-05-06",
         "2024-05-07"),
        ("", '<span class="post-date">May 6, 2024</span>', "2024-05-06", None),
        ("", "<h1>Tides</h1><p>by Ann <span>May 6, 2024</span>", "2024-05-06", None),
        ("", "<h1>Tides</h1><p>Ann, 6 May 2024<div class=comment><time>7 May 2024</time></div>", "2024-05-06", None),
        ("", "<i>Last updated: 7 May 2024</i><h1>Tides</h1>", None, "2024-05-07"),
        ("", f"<h1>Tides</h1><p>On May 6, 2024 {'the tide came in ' * 5}</p>", None, None),
        ('<script type="application/ld+json"><!-- {"@type": "Report", "datePublished": "2024-05-06"}; --></script>', "",
         "2024-05-06", None),
        # Drafts are changed before their publication, but not years before: then a page was published again.
        (article(datePublished="2024-05-06", dateModified="2024-05-01"), "", "2024-05-06", "2024-05-01"),
        (article(datePublished="2024-05-06", dateModified="2019-05-01"), "", "2019-05-01", "2019-05-01"),
        # The date of an event, or one in the future, is not that of the page.
        ("", f"<h1>Regatta</h1><time datetime='{LATER}'>{LATER}</time><p>Come and see.", None, None),
        ("", f"<h1>Regatta</h1><p class=date>{LATER}</p><p>Come and see.", None, None),
        ("", "<h1>Regatta</h1><div class='event-card'><time datetime='2024-05-06'>6 May</time></div>", None, None),
        ("", "<h1>Regatta</h1><div itemtype='https://schema.org/Event'><time itemprop=startDate datetime=2024-05-06>6 "
             "May</time></div>", None, None),
        (article(datePublished=LATER), f"<h1>Regatta</h1><p>{LATER}", None, None),
    ],
    ids=range(20),
)  # fmt: skip
def test_dates(head: str, body: str, published: str | None, modified: str | None) -> None:
    found = about(head, body)
    assert (found.date_published, found.date_modified) == (published, modified)


def test_the_date_in_the_url_is_the_last_resort() -> None:
    """The last change comes before it, if no other date is known."""
    changed = '<meta property="article:modified_time" content="2024-05-07T01:02:03Z">'
    assert about(changed).date == "2024-05-07"
    assert about(url="https://example.org/2024/05/06/tides").date == "2024-05-06"
    assert about("<meta name=date content=2024-05-07>", url="https://example.org/2024/05/06/tides").date == "2024-05-07"


# ---------------------------------------------------------------------- breadcrumbs
STEPS = (
    Breadcrumb("Home", "https://example.org/"),
    Breadcrumb("News", "https://example.org/news"),
    Breadcrumb("Tides"),
)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (
            ld({"@type": "BreadcrumbList", "itemListElement": [
                {"@type": "ListItem", "position": 3, "name": "Tides"},
                {"@type": "ListItem", "position": "1", "item": {"@id": "/", "name": "Home"}},
                {"@type": "ListItem", "position": 2, "name": "News", "item": "/news"}]}),
            "",
        ),
        (
            "",
            '<ol itemscope itemtype="https://schema.org/BreadcrumbList">'
            + "".join(
                f'<li itemprop="itemListElement" itemscope itemtype="https://schema.org/ListItem">{one}</li>'
                for one in ('<a itemprop="item" href="/"><i itemprop="name">Home</i></a> ›',
                            '<a itemprop="item" href="/news"><i itemprop="name">News</i></a> ›',
                            '<i itemprop="name">Tides</i>'))
            + "</ol>",
        ),
        (
            "",
            '<ol vocab="https://schema.org/" typeof="BreadcrumbList">'
            '<li property="itemListElement" typeof="ListItem"><a property="item" href="/"><b property="name">Home</b>'
            '<li property="itemListElement" typeof="ListItem"><a property="item" href="/news"><b property=name>News</b>'
            '<li property="itemListElement" typeof="ListItem"><b property="name">Tides</b></ol>',
        ),
        ("", '<nav aria-label="Breadcrumb"><a href="/">Home</a> / <a href="/news">News</a> / <b>Tides</b></nav><p>x'),
        ("", '<div class="my-breadcrumbs"><a href="/">Home</a>&nbsp;» <a href="/news">News</a>&nbsp;» Tides</div><p>x'),
    ],
    ids=["json-ld", "microdata", "rdfa", "label", "class"],
)  # fmt: skip
def test_breadcrumbs(head: str, body: str) -> None:
    assert about(head, body).breadcrumbs == STEPS


def test_a_menu_is_not_breadcrumbs() -> None:
    assert about("", '<nav class="breadcrumb">' + "<a href=/x>x</a> " * 50 + "</nav>").breadcrumbs == ()


# ---------------------------------------------------------------------- the rest
@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ('<link rel="canonical" href="/tides">', "https://example.org/tides"),
        ('<base href="https://sand.example/"><link rel="canonical" href="tides">', "https://sand.example/tides"),
        ('<meta property="og:url" content="https://example.org/tides">', "https://example.org/tides"),
        ('<link rel="canonical" href="javascript:x()">', None),
        ('<link rel="canonical" href="http://[">', None),
        (f'<link rel="canonical" href="/{"a" * 3_900}">', f"https://example.org/{'a' * 3_900}"),
        (f'<link rel="canonical" href="/{"a" * 4_000}">', None),
        ("", None),
    ],
)
def test_canonical(head: str, expected: str | None) -> None:
    found = about(head)
    assert found.canonical == expected
    assert found.url == (expected or URL)


@pytest.mark.parametrize(
    ("head", "pictures", "found"),
    [
        ('<meta property="og:image" content="/tide.png">', "", True),
        ('<meta name="twitter:image" content="https://example.org/tide.png">', "", True),
        ('<meta property="og:image" content="data:image/png;base64,x"><link rel=image_src href="/tide.png">', "", True),
        (article(image=[{"@type": "ImageObject", "url": "/tide.png"}]), "", True),
        (ld([{"@type": "Article", "image": {"@id": "#i"}}, {"@id": "#i", "contentUrl": "/tide.png"}]), "", True),
        # If none is declared, it is the first large picture of the article.
        ("", '<img src="/tide.png" width="640" height="400">', True),
        ("", '<img src="/me.png" width="64"><figure><img src="/tide.png"></figure>', True),
        ("", '<img src="/logo.png" width="900"><picture><img src="/tide.png"></picture>', True),
        ("", '<div class="avatar"><img src="/me.png" width="400"></div><img src="/tide.png" width="400">', True),
        ("", '<img src="data:image/png;base64,x" data-src="/tide.png" width="800">', True),
        ("", '<img srcset="/small.png 200w, /tide.png 1200w" sizes="100vw">', True),
        ("", '<figure><img src="/icon-tide.png"></figure>', False),
        ("", '<figure><img src="/tide.png" width="80"></figure>', False),
        ("", '<figure><img src="/tide.png" width="240"></figure>', False),
        ("", '<img src="/tide.png">', False),
    ],
    ids=range(15),
)  # fmt: skip
def test_image(head: str, pictures: str, found: bool) -> None:
    outside = '<img src="/banner.png" width="1200"><article>'
    image = about(head, f"{outside}<h1>Tides</h1>{pictures}<p>The sea came in.</p></article>").image
    assert image == ("https://example.org/tide.png" if found else None)


@pytest.mark.parametrize(
    "page",
    [
        "<html lang=de-AT><p>x",
        "<html xml:lang=de_AT><p>x",
        "<meta http-equiv=content-language content=de-AT><p>x",
        "<meta property=og:locale content=de_AT><p>x",
        '<script type=application/ld+json>{"@type": "Article", "inLanguage": "de-AT"}</script><p>x',
    ],
)
def test_language(page: str) -> None:
    assert metadata_of(parse(page), URL).language == "de-AT"


@pytest.mark.parametrize(
    ("head", "field", "expected"),
    [
        ('<meta property="og:site_name" content="The Sand">', "site_name", "The Sand"),
        (article(publisher={"@type": "Organization", "name": "The Sand"}), "site_name", "The Sand"),
        (ld({"@type": "WebSite", "name": "The Sand"}), "site_name", "The Sand"),
        ('<meta name="application-name" content="The Sand">', "site_name", "The Sand"),
        ("", "site_name", "example.org"),
        # Values are plain text.
        (ld({"@type": "CollectionPage", "name": "News", "mainEntity": LISTED}), "title", "News"),
        (article(headline="Tom &amp; <b>Ann</b>"), "title", "Tom & Ann"),
        (article(description=" a\n b "), "description", "a b"),
        ("<h1><b>Ti<i>d</i></b>es <span>and <u>moons</u></span></h1>", "title", "Tides and moons"),
    ],
)
def test_other_values(head: str, field: str, expected: str) -> None:
    assert getattr(about(head), field) == expected


def test_headings_in_a_heading_are_part_of_it() -> None:
    """Their text would otherwise be read once for each heading around it."""
    found = read_declared(parse(f"<title>Tides</title>{'<h1><span>' * 40}Tides rise<h2>Twice</h2>"))
    assert [heading_text(one) for one in (*found.headings, *found.subheadings)] == ["Tides rise Twice", "Twice"]


@given(st.lists(st.sampled_from(["<a></a>", "<span>", "</span>", "A tide", "1,"]), min_size=3))
def test_a_heading_of_any_markup_has_all_its_letters(parts: list[str]) -> None:
    (heading,) = read_declared(parse(f"<h1>{''.join(parts)}</h1><p>Sand.")).headings
    assert heading_text(heading).replace(" ", "") == "".join(heading.text_content().split())


# ---------------------------------------------------------------------- how much is read
STEP = Breadcrumb("A", "https://example.org/a")


def comment(levels: int) -> str:
    return "<h1>Tides</h1><div class=comment>" + "<div>" * levels + "<p class=byline>By Ann Bell"


@pytest.mark.parametrize(
    ("head", "body", "name", "expected"),
    [
        (f"<meta name=description content='{'x' * 15_000}'>", "", "description", "x" * 10_000),
        (f"<meta property=og:site_name content='{'x' * 300}'>", "", "site_name", "x" * 200),
        (f"<meta name=keywords content='{','.join(map(str, range(40)))}'>", "", "tags", tuple(map(str, range(30)))),
        ("", f"<div class=event>{'<div>' * 4}<time datetime=2024-05-06>", "date_published", None),
        ("", f"<div class=event>{'<div>' * 8}<time datetime=2024-05-06>", "date_published", "2024-05-06"),
        ("", comment(7), "authors", ()),
        ("", comment(8), "authors", ("Ann Bell",)),
        ("", f"<h1>Tides</h1><p>By Ann Bell | {'x' * 90}</p>", "authors", ("Ann Bell",)),
        ("", f"<h1>Tides</h1><p>By Ann Bell | {'x' * 120}</p>", "authors", ()),
        ("", "<h1>潮</h1><p>作者： 山田太郎</p>", "authors", ("山田太郎",)),
        ("", "<h1>潮</h1><p>作者： 山田太郎一</p>", "authors", ()),
        ("", f"<h1>Tides</h1>{'<br>' * 150}<p>By Ann Bell</p>", "authors", ("Ann Bell",)),
        ("", f"<h1>Tides</h1>{'<br>' * 250}<p>By Ann Bell</p>", "authors", ()),
        (article(datePublished="2024-06-30", dateModified="2024-05-01"), "", "date_published", "2024-06-30"),
        (article(datePublished="2024-06-30", dateModified="2024-02-01"), "", "date_published", "2024-02-01"),
        ("", f"<nav aria-label=breadcrumb>{'<a href=/a>A</a>' * 18}</nav>", "breadcrumbs", (STEP,) * 18),
        ("", f"<nav aria-label=breadcrumb>{'<a href=/a>A</a>' * 21}</nav>", "breadcrumbs", ()),
        ("", f"<nav aria-label=breadcrumb>{'<br>' * 200}<a href=/a>A</a></nav>", "breadcrumbs", (STEP,)),
        ("", f"<nav aria-label=breadcrumb>{'<br>' * 400}<a href=/a>A</a></nav>", "breadcrumbs", ()),
    ],
)  # fmt: skip
def test_limits(head: str, body: str, name: str, expected: object) -> None:
    assert getattr(about(head, body), name) == expected


@pytest.mark.parametrize(("things", "authors"), [(9_000, ("Ann Ek",)), (12_000, ())])
def test_values_beyond_the_largest_number_are_not_read(things: int, authors: tuple[str, ...]) -> None:
    """It is for all scripts of a page together."""
    many: list[Any] = [{"@type": "Thing", "name": "x"}] * things
    last = {"@type": "Article", "headline": "Tides", "author": {"@type": "Person", "name": "Ann Ek"}}

    assert about(ld(many, [*many, last])).authors == authors


# ---------------------------------------------------------------------- the language of pages that declare none
IN_LANGUAGES = {
    "de": "Zweimal am Tag steigt das Wasser bis an die alte Mauer, bleibt dort so lange, wie man für eine Tasse Tee "
    "braucht, und zieht sich dann wieder über den Sand zurück. Die Tafel im Hafenamt sagt, wann das geschieht, und in "
    "hundert Jahren hat sie sich nur ein einziges Mal geirrt, im Winter des großen Sturms, von dem man erzählt.",
    "en": "Twice a day the sea comes up to the old wall, stays there for the time that it takes to drink a cup of tea, "
    "and goes out again over the sand. The table in the harbour office says when, and in a hundred years it has been "
    "wrong only once, in the winter of the great storm, of which the people of the village still talk to this day.",
}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", None),
        (IN_LANGUAGES["en"][:290], None),
        (IN_LANGUAGES["en"][:310], "en"),
        ("x = 1; y[i] += z(3) " * 30, None),
        ("Ada Bo Cy Dee Eve Fox Gus Hal Ivy Jo Kit Lou Max Ned Oz Pat Quin Ray Sue Ty " * 6, None),
        ((IN_LANGUAGES["en"] + "海水每天两次涨到旧墙边，停留一杯茶的时间。") * 3, None),
    ],
)
def test_a_text_tells_its_language(text: str, language: str | None) -> None:
    """But for one that is short, code, a list of names, or Chinese among as much English."""
    assert detected_language(text) == language


@given(st.text(st.characters(), max_size=700))
def test_no_text_is_too_odd(text: str) -> None:
    found = detected_language(text + "\ud800" * 300)

    assert found is None or len(found) == 2


def test_a_page_that_declares_no_language_has_that_of_its_main_content() -> None:
    html = "<title>Die Flut</title><nav><a href=/>Home</a></nav><h1>Die Flut</h1><p>{}</p><p>{}</p>"
    page = html.format(IN_LANGUAGES["de"], "Ende. ".join([IN_LANGUAGES["de"]] * 3))
    extractor = Extractor(Config(metadata_field="metadata"))

    found, declared = extractor.extract([page, "<html lang=nl>" + page])

    assert found.metadata is not None
    assert found.metadata.language == "de"
    assert declared.metadata is not None
    assert declared.metadata.language == "nl"
