"""Facts beside a name are written: price, authors, employer, tracks of an album, and the times of a recipe."""

from __future__ import annotations

import json

import numpy as np
import pytest

from scrapy_dripper.choose import with_facts
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.page import Page
from scrapy_dripper.page.page import Bools
from scrapy_dripper.testing import page as page_of

RECIPE = '<script type="application/ld+json">{"@type": "Recipe", "name": "Soup"}</script>'
TEXT = "<p>- Boil the roots in salted water."


def marked(page: Page) -> Bools:
    """Return the blocks that begin with a sign for main content."""
    return np.array([text.startswith("-") for text in page.blocks.text])


def added(page: Page, labels: Bools) -> list[str]:
    return [text for text, new, old in zip(page.blocks.text, labels, marked(page), strict=True) if new and not old]


def given(body: str, probability: float) -> ScoredPage:
    page = page_of(body, "https://example.org/")
    return ScoredPage(page, Labels(np.full(len(page.blocks), probability, dtype=np.float32)))


@pytest.mark.parametrize(
    ("markup", "times"),
    [
        ("<dl><dt>Total Time</dt><dd>1 hour 10 minutes</dd><dt>Rating</dt><dd>5</dd></dl>", 2),
        ("<div><span>Prep time:</span> <span>15 mins</span></div><div>Cook time: 1 h 5 min</div>", 2),
        ("<p>Zubereitungszeit: 20 Min.<p>Temps de cuisson : 2 heures<p>Tempo di cottura: 1 ora", 3),
        ("<p>調理時間 30分<p>Время приготовления: 40 минут", 2),
        ("<p>Servings 3 or 2 big<p>Yield: 36 cookies<p>Für 4 Portionen<p>4 servings<p>Calories: 305 kcal", 5),
        ("<p>0:15 Prep<br>0:40 Cook<br>6 Servings", 1),
        ("<ul><li>Author: <a href=/ann>Ann</a><li>Prep Time: 5 minutes<li>Yield: 2 cups<li>Diet: Vegan</ul>", 1),
        ("<ul><li>Author: <a href=/ann>Ann</a><li>Prep Time: 5 minutes<li>Diet: Vegan</ul>", 0),
        ("<p>Calories: 93 kcal | Carbohydrates: 6.1 g | Protein: 4.8 g | Fat: 6.5 g", 1),
        ("<p>It has 90 calories and, with cream, more fat than you would think: 12 g, or 15 g with cheese.", 0),
        ("<p>Posted 2 hours ago<p>40 minutes<p><a href=/soup>Total time: 10 minutes</a>", 0),
    ],
)
def test_a_recipe_says_how_long_it_takes_and_how_much_it_makes(markup: str, times: int) -> None:
    known = given(f"{RECIPE}<h1>Soup</h1>{markup}{TEXT}<aside>Total time: 5 minutes</aside>", 0.1)

    assert len(added(known.page, with_facts(known, marked(known.page)))) == times
    bare = given(f"<h1>Soup</h1>{markup}{TEXT}", 0.1)
    assert not added(bare.page, with_facts(bare, marked(bare.page)))


INGREDIENTS = (
    '<script type="application/ld+json">{"@type": "Recipe", "name": "Soup", "recipeIngredient": '
    '["2 cups red lentils", "1 onion", "Salz"]}</script>'
)


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<ul><li><a href=/lentils>2 cups red lentils</a><li>1 onion</ul>", ["2 cups red lentils\n1 onion"]),
        (
            "<div>2 cups</div><div>red lentils</div><div>1</div><div>onion</div>",
            ["2 cups", "red lentils", "1", "onion"],
        ),
        ("<table><tr><td>2 cups<td>red lentils<tr><td>1<td>onion</table>", ["2 cups red lentils\n1 onion"]),
        ("<form><label>1 onion</label></form><p>1 1/2 EL Salz<p>About 1 onion", ["1 onion", "1 1/2 EL Salz"]),
        # each as often as it is declared, and nothing with other words
        (
            "<ul><li>1 onion<li>Salz<li>2 cups red lentils</ul><div><p>1 onion<p>Salz</div>",
            ["1 onion\nSalz\n2 cups red lentils"],
        ),
        ("<p>3 recipes with Salz<p>Salz<br>Buy it in our shop<button>Salz</button>", []),
        ("<nav><p>1 onion</nav><p hidden>1 onion<p>1 onion, and two more for the bread of the day after", []),
    ],
)
def test_declared_ingredients_are_content(markup: str, expected: list[str]) -> None:
    known = given(f"<p>1 onion</p>{INGREDIENTS}<h1>Soup</h1>{markup}{TEXT}", 0.1)

    assert added(known.page, with_facts(known, marked(known.page))) == expected
    other = given(f"{RECIPE}<h1>Soup</h1>{markup}{TEXT}", 0.1)
    assert not added(other.page, with_facts(other, marked(other.page)))


# ---------------------------------------------------------------------- the price of a product
def priced(body: str, price: str) -> list[str]:
    """Return the blocks that become main on a page that declares a price."""
    data = json.dumps({"@type": "Product", "name": "Lamp", "offers": {"@type": "Offer", "price": price}})
    page = page_of(f"<script type='application/ld+json'>{data}</script>{body}")
    before = np.array([text.startswith("A lamp") for text in page.blocks.text])
    after = with_facts(ScoredPage(page, Labels(np.where(before, 0.9, 0.1).astype(np.float32))), before)
    return [text for text, new in zip(page.blocks.text, after & ~before, strict=True) if new]


NAME, LAMP = "<h1>Lamp</h1>", "<p>A lamp of brass, for tables."


@pytest.mark.parametrize(
    ("body", "declared", "expected"),
    [
        *(
            (f"<div>{price}</div>{NAME}<span>{price}</span><p>Add to cart{LAMP}<div>{price}</div>", "168.00", [price])
            for price in (
                "$168.00",
                "168,00 €",
                "168.00 zł",
                "USD 168.00",
                "EUR168.00",
                "168円",
                "168:-",
                "￥168",
                "168,- kr",
            )
        ),
        *(
            (f"{NAME}<span>{price}</span>{LAMP}", "785000", [price])
            for price in ("785 000 zł", "785 000 €", "785 000,00 Kč", "785,000원", "785'000.– CHF", "785000TL")
        ),
        (f"{NAME}<span>785 000 people</span>{LAMP}", "785000", []),
        (f"{NAME}<span>€ 1.168 -15%</span>{LAMP}", "1168.0", ["€ 1.168 -15%"]),
        (f"<i>$168</i><p>Lamps<p>Rs. 168{NAME}{LAMP}", "168", ["Rs. 168"]),  # above the name, the nearest one
        (f"<p>$168{'<p>brass' * 9}{NAME}{LAMP}", "168", []),  # too far above
        (f"{NAME}<span>168<sup>50</sup> Lei</span>{LAMP}", "168.5", ["16850 Lei"]),
        (f"<h1>Sale</h1>{'<p>brass' * 40}{NAME}<span>$168</span>{LAMP}", "168.00", ["$168"]),  # the name is the title
        (f"<div>A lamp</div><span>$168.00</span>{LAMP}", "168.00", ["$168.00"]),  # without a heading
        (f"<h1>A lamp</h1><span>$98.00</span>{LAMP}", "", []),  # not declared, and it may be that of another size
        (f"<title>A lamp - $98</title><h1>A lamp</h1><a href=/a-lamp>$98.00</a>{LAMP}", "", ["$98.00"]),
        (f"<h1>A lamp</h1><p>Over $98.00{LAMP}", "", []),
        (f"<h1>A lamp</h1>{'<p>brass' * 9}<p>$98.00{LAMP}", "", []),
        (f"{NAME}<span>$99.00</span>{LAMP}", "168.00", []),  # not declared
        (f"{NAME}<span>168 00</span>{LAMP}", "168.00", []),  # a number, but no price
        (f"{NAME}<p>For $168.00 you get a lamp that is made of brass{LAMP}", "168.00", []),  # a sentence
        (f"{NAME}{LAMP}<footer>$168.00</footer>", "168.00", []),
        (f"{NAME}{LAMP}<div hidden>$168.00</div>", "168.00", []),
        (NAME + LAMP + "<p>Another lamp<div>$168.00</div>" * 9, "168.00", []),  # a list of products
        (f"{NAME}<span>$168.00</span>", "168.00", []),  # without main content
    ],
)
def test_the_price_of_a_product(body: str, declared: str, expected: list[str]) -> None:
    assert priced(body, declared) == expected


@pytest.mark.parametrize(
    ("price", "page_type", "probability", "is_added"),
    [
        ("$98.00", "product", 0.3, True),
        ("$98.00", "product", 0.1, False),  # it may be that of another size
        ("$98.00 $130.00", "product", 0.3, True),
        ("US$ 98.00+ US$ 130.00+", "product", 0.3, True),
        ("Price: $98.00", "product", 0.3, True),
        ("Over $98.00", "product", 0.3, False),
        ("GBP 0.00", "product", 0.3, False),  # that of an empty cart
        ("<a href=/other>$98.00</a>", "product", 0.3, False),
        ("$98.00", "article", 0.3, False),
    ],
)
def test_a_price_beside_the_name_need_not_be_declared(
    price: str, page_type: str, probability: float, is_added: bool
) -> None:
    page = page_of(f"<h1>- A lamp</h1><span>{price}</span><p>- It is of brass, for tables.")
    listed = page_of(f"<h1>- Our lamps</h1>{f'<h2>Lamp</h2><span>{price}</span>' * 9}<p>- All are of brass.")
    labels = Labels(np.full(len(page.blocks), probability, dtype=np.float32), page_types={page_type: 0.9})

    assert added(page, with_facts(ScoredPage(page, labels), marked(page))) == [price] * is_added
    labels = Labels(np.full(len(listed.blocks), 0.3, dtype=np.float32), page_types={"listing": 0.9})
    assert not added(listed, with_facts(ScoredPage(listed, labels), marked(listed)))


@pytest.mark.parametrize(
    "facts",
    [
        "<div>Lamp A <b class=p>$98</b></div><div>Lamp B <b class=p>$120</b></div>",  # a list
        "<div class=p>$5</div><div class=p>$10</div>",
        "<button>$25</button>",
        "<span>Cart: $0.00</span>",
        "<div>Try 2</div>",
        "<div>43 ft</div>",
        "<div>TL;DR</div>",
    ],
)
def test_what_is_no_price_of_the_page_stays_out(facts: str) -> None:
    page = page_of(f"<h1>- Lamps</h1>{facts}<p>- They are of brass, for tables.")
    labels = Labels(np.full(len(page.blocks), 0.3, dtype=np.float32), page_types={"article": 0.9})

    assert not added(page, with_facts(ScoredPage(page, labels), marked(page)))


PAPER = (
    "<h1>Tides of the sound</h1><p>Ada Lund<sup>1</sup>, Li Wei</p><p>University of the North</p><p>Li Wei<p>- The sea "
    "rises."
)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (["Lund, Ada", "Wei, Li"], ["Ada Lund1, Li Wei"]),
        (["Wei, Li", ""], ["Ada Lund1, Li Wei"]),
        (["Olsen, Bo", ""], []),  # of another paper
        ([], []),  # on other pages, a byline is no content
    ],
)
def test_the_authors_of_a_paper_stay_with_its_name(declared: list[str], expected: list[str]) -> None:
    """A text that only names some of them again is a menu or a reference."""
    head = "".join(f'<meta name="citation_author" content="{name}">' for name in declared)
    scored = given(f"<head>{head}</head><body>{PAPER}", 0.1)

    assert added(scored.page, with_facts(scored, marked(scored.page))) == expected


@pytest.mark.parametrize(
    ("head", "authors"),
    [
        ('<meta name="citation_author" content="N. Quist"><meta name="citation_author" content="Achebe, B.">', 2),
        ('<meta name="citation_authors" content="Quist N;Achebe B;">', 2),
        *(
            (f'<script type="application/ld+json">{{"@type": "{kind}", "author": {{"name": "N. Quist"}}}}</script>', n)
            for kind, n in (("ScholarlyArticle", 1), ("NewsArticle", 0))
        ),
    ],
)
def test_authors_are_found_by_other_forms_of_their_names(head: str, authors: int) -> None:
    body = "<h1>Eels</h1><p>Nora Quist https://orcid.org/0000-0001-0000-000X<p>Ben Achebe<p>N.<p>- They swim."
    scored = given(f"<head>{head}</head><body>{body}", 0.1)

    assert len(added(scored.page, with_facts(scored, marked(scored.page)))) == authors


def said(data: dict[str, object], body: str, probability: float = 0.1) -> list[str]:
    """Return the blocks that become main on a page with JSON-LD."""
    scored = given(f'<script type="application/ld+json">{json.dumps(data)}</script>{body}', probability)
    return added(scored.page, with_facts(scored, marked(scored.page)))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("JobPosting", ["Sand & Sons – Harbour Town", "Bergen, Norway", "Full-time"]), ("Article", [])],
)
def test_a_job_says_who_offers_it_and_where(kind: str, expected: list[str]) -> None:
    data = {
        "@type": kind,
        "hiringOrganization": {"name": "Sand & Sons"},
        "jobLocation": [{"address": {"addressLocality": "Bergen"}}],
        "employmentType": ["FULL_TIME", None],
    }
    body = (
        "<h1>Diver</h1><p>Sand &amp; Sons – Harbour Town<p>Bergen, Norway<p>All jobs of Sand &amp; Sons"
        "<div>Full-time</div><p>Bergen is a town of divers and of rain<p>- You dive.<p>Sand &amp; Sons"
    )

    assert said(data, body) == expected


@pytest.mark.parametrize("kind", ["Event", "Product"])
def test_an_event_says_where(kind: str) -> None:
    data = {"@type": kind, "location": {"name": "Great Hall", "address": "Quay Street 4, Portbeg"}}
    body = "<p>8 May 2025<h1>Songs</h1><p>Great Hall, Portbeg<p>- We sing.<p>Great Hall"

    assert said(data, body) == (["Great Hall, Portbeg"] if kind == "Event" else [])


def test_words_that_are_names_by_chance_add_nothing() -> None:
    """A country, a place on the web, and the kind of a job that is of no kind."""
    place = {"addressLocality": "Ulm", "addressRegion": "IN", "addressCountry": "US"}
    data = {
        "@type": "JobPosting",
        "jobLocation": [{"address": place}, {"@type": "VirtualLocation", "name": "Online"}],
        "employmentType": "OTHER",
    }
    body = (
        "<h1>Baker</h1><p>Contact us<p>Log in<p>Other jobs<p>Book online<p><a href=/ulm>Jobs in Ulm</a><p>Ulm, IN"
        "<p>Ulm<p>- You bake."
    )

    assert said(data, body) == ["Ulm, IN"]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ({"addressLocality": "Austin", "addressRegion": "TX", "addressCountry": "US"}, "Austin, TX, US"),
        ({"addressLocality": "London", "addressCountry": "United Kingdom"}, "London, United Kingdom"),
        ({"addressLocality": "上海"}, "上海市"),
        ("Quay 4, Portbeg", "<a href=/p>Portbeg, Quay 4</a>"),
    ],
)
def test_a_place_may_be_written_with_its_region(address: object, text: str) -> None:
    job: dict[str, object] = {"@type": "JobPosting", "jobLocation": [{"@type": "Place", "address": address}]}
    assert len(said(job, f"<h1>Baker</h1><p>{text}<p>- You bake.")) == 1

    paris: dict[str, object] = {"@type": "JobPosting", "jobLocation": {"address": {"addressLocality": "75"}}}
    assert not said(paris, "<h1>Baker</h1><p>01 75 22 33 44<p>75 jobs<p>- You bake.")


def test_names_below_the_text_lead_to_other_pages() -> None:
    job: dict[str, object] = {"@type": "JobPosting", "jobLocation": {"address": {"addressLocality": "London"}}}
    text = "<p>- You bake bread and rolls for all people of the town from midnight on."

    assert said(job, f"<h1>Baker</h1>{text}<p><a href=/l>Jobs London</a></p>") == []
    assert said(job, f"<h1>Baker</h1><p>Central London</p>{text}") == ["Central London"]


ALBUM = (
    "<h1>Harbour songs</h1><p>Favourite track: Low tide<p>- The rope is wet, and the boat is slow.<div>1.</div><div>"
    "<a href=/1>Low tide</a> 03:21</div><div>★★★ 2:10</div><div>2.</div><div>672 (1:24)</div><footer>Low tide</footer>"
)


@pytest.mark.parametrize(
    "tracks",
    [
        {"@type": "ItemList", "itemListElement": [{"item": {"name": "Low tide"}}, {"item": {"name": "672"}}]},
        [{"@type": "MusicRecording", "name": "Low tide"}, {"@type": "MusicRecording", "name": "672"}],
    ],
)
def test_an_album_keeps_its_tracks(tracks: object) -> None:
    data = json.dumps({"@type": "MusicAlbum", "name": "Harbour songs", "track": tracks})
    for script in (data, f'{{"@graph": [{data}]}}', f"[{data}]"):
        scored = given(f'<script type="application/ld+json">{script}</script>{ALBUM}', 0.1)

        assert added(scored.page, with_facts(scored, marked(scored.page))) == ["Low tide 03:21", "672 (1:24)"]


@pytest.mark.parametrize(
    "tracks", [None, "Low tide", 672, [None, 3], {"itemListElement": "x"}, [{"item": 5}, {"item": {}}], [{"name": "÷"}]]
)
def test_what_else_is_under_tracks_adds_nothing(tracks: object) -> None:
    scored = given(f'<script type="application/ld+json">{json.dumps({"track": tracks})}</script>{ALBUM}', 0.1)

    assert not added(scored.page, with_facts(scored, marked(scored.page)))
