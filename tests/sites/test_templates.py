"""Templates: what they learn, when they answer, when they leave a page to the model, and when they are forgotten."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_dripper import Document, Extraction
from scrapy_dripper.rules import host_of
from scrapy_dripper.sites import templates
from scrapy_dripper.sites.templates import Outcome, TemplateExample, Templates, is_audited, read_example, unpack_rules
from scrapy_dripper.testing import page
from tests.sites.site import FOOT, Reader, article, listing, truth, url

FREE = [number for number in range(1_000, 3_000) if not is_audited(url(number))]
"""Numbers of pages on which the model is not asked to check a template."""


def example_of(found: Extraction) -> bytes:
    """Return what templates can learn from a page."""
    return found.site.templates or b""


def test_a_template_answers_when_it_has_agreed_with_the_model() -> None:
    """The engine is then not asked, and the extraction is the same as with the model."""
    reader = Reader()
    found = [reader.read(article(number), url(number)) for number in FREE[:10]]

    assert [one.details.get("template") for one in found] == [
        "new",
        "uncovered",
        "learning",
        "learning",
        *["answered"] * 6,
    ]
    assert reader.asked == 4
    assert [one.source for one in found] == [*["fake"] * 4, *["template"] * 6]
    for number, one in zip(FREE, found, strict=False):
        assert one.text == Reader().read(article(number), url(number)).text


def test_a_headline_is_not_lost_and_structures_are_whole() -> None:
    """The rules for a model's labels also apply to a template's: the title comes first, and a list is kept whole."""
    reader = Reader(lambda text: truth(text) if "title" not in text else 0.1).learnt()
    items = "".join(f"<li>MAIN item {i} of a list that no other page has</li>" for i in range(6))
    found = reader.read(article(FREE[0], f"<p>{'MAIN text. ' * 60}</p><ul>{items}</ul>"), url(FREE[0]))

    assert found.details.get("template") == "answered"
    assert (found.text or "").startswith(f"MAIN title {FREE[0]}\n")
    assert (found.text or "").count("MAIN item") == 6
    assert found.main_html is not None
    assert "newsletter" not in found.main_html


@pytest.mark.parametrize(
    ("html", "outcome"),
    [
        (article(FREE[0], f"<p>{'MAIN text. ' * 60}</p><div class='box'>{'An offer. ' * 30}</div>"), "uncovered"),
        (article(FREE[0], "<p></p>", title="x"), "length"),
        (article(FREE[0], "<p>MAIN text.</p>" * 900), "length"),
        (article(FREE[0], "<p>MAIN text.</p>" * 160), "length"),
        (article(FREE[0], "<p>MAIN text.</p>" * 100), "answered"),
        (article(FREE[0], "<p>MAIN text.</p>" * 13), "answered"),
        (article(FREE[0], "<p>MAIN text.</p>" * 6), "length"),
        (listing(1), "new"),
        ("<html><body>MAIN text</body></html>", "new"),
    ],
)
def test_pages_that_are_left_to_the_model(html: str, outcome: str) -> None:
    """They have a new box, no main content, over four times as much of it as before, or less, or another template."""
    reader = Reader(lambda text: truth(text) if "MAIN title" not in text else 0.1).learnt()
    asked = reader.asked
    found = reader.read(html, url(FREE[0]))

    assert found.details.get("template") == outcome
    assert reader.asked == asked + (outcome != "answered")
    assert found.source == ("template" if outcome == "answered" else "fake")


def test_a_text_that_repeats_is_known_by_its_words() -> None:
    """A notice below the text is in a paragraph like all others, so its place alone does not decide."""
    notice = "<p>Subscribe to the newsletter, which comes every week and is free of charge.</p>"
    text = "<p>MAIN sentence {0}, which goes on for a while and says what {0} times {0} may come to.</p>" * 5
    reader = Reader()
    pages = [(article(number, text.format(number) + notice), url(number)) for number in FREE[:30]]
    outcomes = reader.outcomes(pages)
    found = reader.read(*pages[-1])

    assert outcomes[-1] == "answered"
    assert "Subscribe" not in (found.text or "")
    assert (found.text or "").count("MAIN sentence") == 5


def test_a_heading_on_which_the_model_differs_goes_with_the_text_below() -> None:
    """Its labels on other pages do not decide, so it is lost above no text, and kept above no other."""
    reader = Reader(lambda text: 0.9 if "MAIN" in text or text in {f"Part {i}" for i in FREE[::2]} else 0.1)
    text = "<p>MAIN sentence {0}, which goes on for a while and says what {0} times {0} may come to.</p>" * 9
    foot = f"<h3>Part {{0}}</h3>{FOOT}"
    pages = [(article(n, f"<h3>Part {n}</h3>{text.format(n)}", foot=foot.format(n)), url(n)) for n in FREE[:30]]
    reader.outcomes(pages)
    found = [reader.read(*one) for one in pages]

    assert {one.details.get("template") for one in found} == {"answered"}
    assert all((one.text or "").count("Part") == 1 for one in found)


def test_some_pages_are_audited_and_always_the_same_ones() -> None:
    reader = Reader().learnt()
    audited = [number for number in range(2_000) if is_audited(url(number))]
    outcomes = reader.outcomes((article(number), url(number)) for number in audited[:5])

    assert len(audited) == pytest.approx(100, rel=0.4)
    assert outcomes == ["audit"] * 5


def test_a_template_that_is_wrong_is_forgotten_and_learnt_anew() -> None:
    """The publisher moves the text of articles into the footer, and puts notices in its old place."""
    reader = Reader().learnt()
    audited = [number for number in range(500, 9_000) if is_audited(url(number))]
    foot = FOOT.replace("The newsletter comes", "MAIN text comes").replace("</p>", " MAIN all the text is here.</p>")
    free = iter(FREE)

    def changed(number: int) -> tuple[str, str]:
        return article(number, "<p>" + "Please subscribe. " * 20 + "</p>", foot=foot * 9, title="x"), url(number)

    first = reader.outcomes(changed(next(free)) for _ in range(3))
    check = reader.read(*changed(audited[0]))
    after = reader.outcomes(changed(next(free)) for _ in range(8))

    assert first == ["answered"] * 3
    assert check.details.get("template") == "audit"
    assert "MAIN" in (check.text or "")
    assert after[:3] == ["uncovered", "learning", "learning"]  # the checked page was the first to learn from
    assert after[-1] == "answered"
    assert "MAIN" in (reader.read(*changed(next(free))).text or "")


@pytest.mark.parametrize(
    "structure",
    ["<table><tr><th>SPEC weight<td>SPEC {0} g<tr><th>SPEC colour<td>SPEC blue</table>", "<pre>SPEC {0}</pre>"],
)
def test_a_template_does_not_inherit_a_lost_structure(structure: str) -> None:
    """The model loses it on the first pages and keeps it on others, so the template would lose it on all forty. It is
    short beside the text, and no page is among the few that are always audited.
    """
    reader = Reader()
    reader.main = lambda text: 0.9 if "SPEC" in text and reader.asked > 4 else truth(text)
    text = "<p>MAIN sentence {0}, which says what the thing is for, and what it comes with in its box.</p>" * 9
    found = [reader.read(article(n, (text + structure).format(n), title=f"MAIN thing {n}"), url(n)) for n in FREE[:40]]
    lost = ["SPEC" not in (one.text or "") for one in found]
    outcomes = [one.details.get("template") for one in found]

    assert (sum(lost[:4]), sum(lost[20:])) == (4, 0)
    assert {"answered", "audit"} <= set(outcomes[:20])
    assert outcomes[-12:].count("answered") >= 9


@pytest.mark.parametrize(
    ("html", "lost", "agreed"),
    [
        ("<ul><li>A</ul>", "A", 0.0),
        ("<ol><li>A<li>B</ol><ul><li>C</ul>", "C", 2 / 3),
        ("<table><tr><td>A<td>1</table>", "A", 0.0),
        ("<pre>A</pre>", "A", 0.0),
        ("<p>A <img src=a.png></p>", "A", 0.0),
        ("<p>A</p>", "A", 1.0),
    ],
)
def test_labels_are_compared_in_structures(html: str, lost: str, agreed: float) -> None:
    """A short one counts as much as all of the text."""
    one = page(f"<p>{'Text. ' * 200}</p>{html}")
    every = np.ones(len(one.blocks), dtype=np.bool_)
    without = np.array([not text.startswith(lost) and text != "1" for text in one.blocks.text])

    assert templates.agreement(one, every, without) == pytest.approx(agreed, abs=0.01)
    assert templates.agreement(one, every, every) == 1


def test_odd_pages_do_not_push_out_a_template_that_answers() -> None:
    """The number of templates of a host is limited. A template that answers is not replaced by those of single
    pages.
    """
    reader = Reader().learnt()
    for number in range(3 * templates.MOST_TEMPLATES):
        tag = f"x-{'abcdefghijklmnopqrstuvwxyz'[number % 26]}{'abc'[number // 26]}"
        reader.read(
            f"<html><body>{f'<{tag}><{tag}s>Odd words.</{tag}s></{tag}>' * 9}</body></html>", url(5_000 + number)
        )
    ((_, own),) = reader.templates

    assert len(own) == templates.MOST_TEMPLATES
    assert reader.read(article(FREE[0]), url(FREE[0])).details.get("template") == "answered"


def test_hosts_and_options_are_kept_apart() -> None:
    """Templates of one host do not apply to another host, or to a page with other options."""
    reader = Reader().learnt()
    other = reader.read(article(1), "https://other.org/1")
    (asking,) = reader.extractor.extract(
        [Document(article(FREE[0]), url(FREE[0]), config=reader.extractor.config.overridden({"favor": "recall"})[0])]
    )

    assert other.details.get("template") == "new"
    assert (asking.details.get("template"), example_of(asking), asking.source) == (None, b"", "fake")


def test_a_host_has_one_name(tmp_path: Path) -> None:
    """It is that of its file, or the rules of one name would replace those of another. Some hosts can have no file."""
    urls = ("http://M\xfcnchen.example/a", "https://www.xn--mnchen-3ya.example./b", "http://xn--mnchen-3ya.example:80")
    assert set(map(host_of, urls)) == {"xn--mnchen-3ya.example"}

    rules = '["xn--mnchen-3ya.example"]\nkeep = ["p"]\n'
    (tmp_path / "xn--mnchen-3ya.example.1.toml").write_text(rules)
    given = Templates(folder=tmp_path)
    assert all(map(given.rules, urls))
    assert not any(map(given.rules, ("http://" + "\U0001f600" * 100, "http://a\0b/", "http://..%2fb/")))


def test_names_that_are_too_long_teach_nothing() -> None:
    """500 classes of 900 Chinese letters are 3 MB. Such a page was lost to the fallback, or its crawl ended."""
    reader = Reader()
    boxes = "".join(f'<div class="{chr(0x4E00 + i) * 900}"><p>MAIN text {i}</p></div>' for i in range(500))
    found = [reader.read(article(number, boxes), url(number)) for number in FREE[:4]]

    assert {(one.source, one.details.get("template")) for one in found} == {("fake", "new")}


def test_an_engine_that_fails_teaches_nothing() -> None:
    reader = Reader(lambda _: 7.0)
    found = reader.read(article(1), url(1))

    assert found.fallback_reason is not None
    assert (found.details.get("template"), example_of(found), len(reader.templates)) == (None, b"", 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), min_size=1, max_size=25))
@settings(max_examples=20, deadline=None)
def test_space_is_bounded(visits: list[tuple[int, int]]) -> None:
    """For any pages, there are at most three hosts here, with a limited number of templates and rules each."""
    store = Templates(most_hosts=3)
    for number, (host, kind) in enumerate(visits):
        chance = np.random.default_rng([kind, number])
        vector = np.zeros(1_024, dtype=np.uint8)
        vector[kind * 16 : kind * 16 + 16] = 90
        places = [(-1, f"div {name:x}", 1.0, True) for name in chance.integers(0, 2**31, 500).tolist()]
        example = TemplateExample(0, Outcome.NEW, -1.0, 100, vector, places)
        store.learn(f"https://{host}.org/{number}", example.pack())

    assert len(store) <= 3
    for _, own in store:
        assert len(own) <= templates.MOST_TEMPLATES
        assert all(len(one.examples) <= templates.EXAMPLES for one in own)
        assert sum(len(data) + 1_024 for one in own for data in one.examples) <= templates.BYTES_PER_HOST
        assert all(len(one.rules) <= templates.MOST_RULES for one in unpack_rules(store.rules(f"https://{host}.org")))


def test_old_pages_are_forgotten() -> None:
    """After hundreds of pages, a template is made of the last ones only, and what they do not have has no rule."""
    store = Templates()
    reader = Reader()
    reader.read(article(0), url(0))
    old = example_of(reader.read(article(1, "<div class=old>MAIN text of an old design.</div>"), url(1)))
    new = example_of(reader.read(article(2, "<div class=new>MAIN text of a new design.</div>"), url(2)))
    for number in range(300):
        store.learn(url(number), old if number < 200 else new)
    (rules,) = unpack_rules(store.rules(url(0)))
    ((_, [one]),) = store

    assert len(one.examples) == templates.EXAMPLES
    assert ("keep", "div.new") in {(rule.kind, rule.selector) for rule in rules.rules}
    assert not any("old" in rule.selector for rule in rules.rules)


@given(st.binary(max_size=2_000))
def test_data_that_are_none_are_refused(data: bytes) -> None:
    """Such data could come from another process, or from a caller."""
    with pytest.raises(ValueError, match=r".+"):
        read_example(data)
    with contextlib.suppress(ValueError):
        assert unpack_rules(data) == []


@given(st.permutations(range(12)))
@settings(max_examples=15, deadline=None)
def test_a_template_that_answers_says_what_the_model_would(order: list[int]) -> None:
    """This holds for any order of the pages."""
    reader = Reader()
    for number in order:
        found = reader.read(article(number, "<p>MAIN sentence of an article.</p>" * (number % 5 + 1)), url(number))
        assert (found.text or "").count("MAIN sentence") == number % 5 + 1
        assert "newsletter" not in (found.text or "")


def test_what_is_kept_has_the_size_that_is_documented() -> None:
    """1.7 MB for each of 256 hosts, and of a page 512 paths, 256 texts and no text that is longer than a paragraph."""
    store = Templates()
    example = TemplateExample(0, Outcome.NEW, -1.0, 100, np.ones(1_024, dtype=np.uint8), [(-1, "p", 1.0, True)]).pack()
    for number in range(300):
        store.learn(f"https://{number}.org/", example)
    boxes = "".join(f"<div class='b{chr(97 + i // 26)}{chr(97 + i % 26)}'>{i} MAIN</div>" for i in range(600))
    large, long = (
        read_example(example_of(Reader().read(html, url(1))))
        for html in (f"<body>{boxes}</body>", f"<p>MAIN {'a' * 295}</p><p>MAIN {'b' * 296}</p><p>MAIN</p>")
    )

    assert pytest.approx(1.65e6, rel=0.02) == templates.BYTES_PER_HOST
    assert (len(store), len(large.paths), len(large.texts)) == (256, 512, 256)
    assert [text[5:6] for _, text, _ in long.texts] == ["a", ""]


@pytest.mark.parametrize(("depth", "same"), [(12, False), (13, True)])
def test_what_is_deep_in_the_content_does_not_count_for_a_layout(depth: int, same: bool) -> None:
    one, other = (page(f"{'<div>' * (depth - 2)}<p>Text</p><{tag}>Text</{tag}>") for tag in ("section", "article"))

    assert np.array_equal(templates.layout(one), templates.layout(other)) == same


@pytest.mark.parametrize(("host", "start"), [(".".join(["a" * 60] * 4), "aaa"), ("aux.example", "_aux.")])
def test_every_host_has_a_file(host: str, start: str, tmp_path: Path) -> None:
    """Also one whose name is too long for it, or that of a device."""
    reader = Reader()
    for number in FREE[:8]:
        reader.read(article(number), f"https://{host}/{number}")
    ((name, own),) = reader.templates

    assert templates.write_rules(tmp_path, name, own, "learnt") == 1
    assert [path.name.startswith(start) for path in tmp_path.iterdir()] == [True]
    assert Templates(folder=tmp_path).rules(f"https://{host}/new")
