"""Scores of extracted text, of main DOM nodes and of complexity, their summaries and their intervals."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.learning.metrics import count_prf, mean_interval, neutral_prf, without_title
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.evaluation.blocks import main_nodes, node_prf
from scrapy_dripper_lab.evaluation.complexity import complexity, levels
from scrapy_dripper_lab.evaluation.text_measures import load_cut, rouge
from scrapy_dripper_lab.scores import page_title, score, snippet_rate, summarize, word_prf

texts = st.lists(st.sampled_from(["a", "A", "b", "c", "d1", "é", "日本", ".", "\n", "_"]), max_size=30).map(" ".join)


@pytest.mark.parametrize(
    ("prediction", "truth", "expected"),
    [
        ("", "", (1, 1, 1)),
        ("word", "", (0, 0, 0)),
        ("a b", "c d", (0, 0, 0)),
        ("The CAT, sat.", "the cat sat", (1, 1, 1)),
        ("b a", "a b", (1, 1, 1)),
        ("a a a a", "a a", (0.5, 1, 2 / 3)),
        ("a b c d", "a b e f", (0.5, 0.5, 0.5)),
        ("don't", "don t", (1, 1, 1)),
        ("日本語 です", "日本語です", (0, 0, 0)),
        ("snake_case", "snake case", (0, 0, 0)),
    ],
)
def test_word_prf(prediction: str, truth: str, expected: tuple[float, float, float]) -> None:
    """Words are compared as bags: order, case and punctuation do not count, the number of occurrences does."""
    assert word_prf(prediction, truth) == pytest.approx(expected)


@given(texts, texts)
def test_word_prf_is_bounded_and_symmetric(one: str, other: str) -> None:
    """Swapping the texts swaps precision and recall, and F1 lies between them. One more word lowers it."""
    assert word_prf(f"{one} zzz", one).f1 < 1
    precision, recall, f1 = word_prf(one, other)
    assert word_prf(other, one) == pytest.approx((recall, precision, f1))
    assert all(0 <= value <= 1 for value in (precision, recall, f1))
    assert min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_appendix_a_8_f1_is_the_harmonic_mean(hits: int, wrong: int, missed: int) -> None:
    """Of precision and recall, for blocks as well."""
    precision, recall, f1 = count_prf(hits, hits + wrong, hits + missed)
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall) if hits else f1)
    assert (f1 == 1) == (wrong + missed == 0)


@pytest.mark.parametrize(
    ("prediction", "snippets", "expected"),
    [
        ("Read More here", ["read more"], 1.0),
        ("read more here", ["READ MORE", "cart"], 0.5),
        ("read  more", ["read more"], 0.0),
        ("anything", [], 1.0),
    ],
)
def test_snippet_rate(prediction: str, snippets: list[str], expected: float) -> None:
    """Case does not matter, white space does; without snippets the rate is 1."""
    assert snippet_rate(prediction, snippets) == expected


def test_a_summary_has_the_means_over_pages() -> None:
    """Each number is a plain mean or count. Without pages there is no mean and no error."""
    whole = summarize(
        [score("a b", "a b c d", ["a b"], ["z", "b"]), score("a", "a"), score("", "a", ["a"], ["z"]), score("", "")]
    )

    assert (whole["pages"], whole["empty"], whole["wrongly"]) == (4, 2, 1)
    assert (whole["P"], whole["R"], whole["word F1"]) == pytest.approx((3 / 4, 2.5 / 4, (2 / 3 + 2) / 4))
    assert whole["WCXB F1"] == whole["word F1"]
    assert whole["< 0.5"] == 0.25
    assert (whole["with"], whole["without"]) == pytest.approx((0.75, 0.625)), "1 without snippets"
    assert math.isnan(summarize([])["word F1"])


def test_interval_holds_the_mean_and_shrinks_with_pages() -> None:
    """The interval of a known spread is as wide as theory says, within a tenth. That of a real difference does not
    contain zero.
    """
    for deltas in ([0.1] * 30, [-0.1] * 30, [0.1, -0.1] * 30, [0.0] * 30):
        assert mean_interval(deltas, n=500).excludes_zero is (abs(sum(deltas)) > 1)
    draw = random.Random(3)
    for count in (100, 1600):
        values = [draw.gauss(0.5, 1) for _ in range(count)]
        mean, low, high = mean_interval(values, n=4000)
        assert low < mean < high
        assert mean_interval(values, 500) == mean_interval(values, 500)
        assert mean == pytest.approx(sum(values) / count)
        assert high - low == pytest.approx(2 * 1.96 * statistics.stdev(values) / math.sqrt(count), rel=0.1)


TITLE = "A bridge over the river"


@pytest.mark.parametrize(
    ("prediction", "truth"),
    [
        (f"{TITLE}\nIt was built.", "It was built."),
        (f"{TITLE}\nIt was built.", f"{TITLE}\nIt was built."),
        ("Home\na bridge over the RIVER\nIt was built.", "Home It was built."),
        ("bridge over the river\nIt was built.", "It was built."),
    ],
)
def test_the_title_is_neutral(prediction: str, truth: str) -> None:
    """A text scores 1 with the title, with part of it, or without it."""
    assert neutral_prf(prediction, truth, [TITLE]).f1 == 1


def test_what_is_no_title_counts() -> None:
    """Another headline, one further down and a single word of it count; a headline in the truth must not be lost."""
    assert neutral_prf("It was built.", f"{TITLE}\nIt was built.", [TITLE]).recall == 3 / 8
    assert without_title("A bridge over the sea\nx", TITLE) == "A bridge over the sea\nx"
    assert without_title(f"a\nb\nc\n{TITLE}", TITLE) == f"a\nb\nc\n{TITLE}"
    assert without_title("river\nx", TITLE) == "river\nx"
    assert neutral_prf("river x", "x", [TITLE]).precision == 0.5


def test_characters_of_chinese_and_japanese_are_words() -> None:
    """A wrong character costs itself, not the whole sentence."""
    assert neutral_prf("日本語です", "日本語だ").precision == pytest.approx(3 / 5)
    assert word_prf("日本語です", "日本語だ").precision == 0


def test_the_title_of_a_page() -> None:
    assert page_title("<html><TITLE id=x>Caf\u00e9 &amp;\n bar</title>".encode("latin-1")) == "Café & bar"
    assert page_title(b"<title>never ends") == ""


@pytest.mark.parametrize(
    ("prediction", "truth", "n", "expected"),
    [
        ("", " \n", 5, (1, 1, 1)),
        ("abcde", "abcde", 5, (1, 1, 1)),
        ("abcd", "abcd", 5, (0, 0, 0)),
        ("abcdef", "abcde", 5, (0.5, 1, 2 / 3)),
        ("aaaa", "aa", 1, (0.5, 1, 2 / 3)),
        ("ababab", "ab", 2, (0.2, 1, 1 / 3)),
        ("ABCDE", "abcde", 5, (0, 0, 0)),
        (" abcde", "abcde", 5, (0.5, 1, 2 / 3)),
        ("", "abcde", 5, (0, 0, 0)),
    ],
)
def test_section_4_2_2_rouge(prediction: str, truth: str, n: int, expected: tuple[float, float, float]) -> None:
    """N-grams count as often as both texts have them; case and white space count; texts shorter than n have none."""
    assert rouge(prediction, truth, list, n) == pytest.approx(expected)


def test_section_4_2_2_the_tokens_are_those_of_jieba() -> None:
    """Every white-space character and punctuation mark is a token, and Chinese is cut into words."""
    pytest.importorskip("jieba")
    cut = load_cut()

    assert list(cut(" Hello,  \n")) == [" ", "Hello", ",", " ", " ", "\n"]
    assert Counter(cut("我来到北京清华大学"))["清华大学"] == 1
    assert rouge("我来到北京清华大学的图书馆看书", "我来到北京清华大学的图书馆看书", cut).f1 == 1


PAGE = cut(
    parse(
        "<body><ul><li>Menu</li></ul><div><h1>Tides</h1><p>It <b>comes</b> in.</p><figure><img src=a></figure></div>"
        "<footer>End</footer></body>"
    )
)


def names(labels: list[bool]) -> list[str]:
    """Return the tags of the main elements and the main texts."""
    nodes = PAGE.tree.nodes
    tags = [str(node.tag) for node in nodes]
    texts = [node.text for node in nodes] + [node.tail for node in nodes]
    chosen = main_nodes(PAGE, np.array(labels))
    return [str(name) for name, is_main in zip([*tags, *texts], chosen, strict=True) if is_main]


def test_definition_2_3_a_subtree_is_main_if_all_of_its_text_is() -> None:
    """This includes the elements around the text, and other nodes between them (Definition 2.3)."""
    assert PAGE.blocks.text == ["Menu", "Tides", "It comes in.", "End"]
    assert names([False, True, True, False]) == [
        *("div", "h1", "p", "b", "figure", "img"),
        *("Tides", "It ", "comes", " in."),
    ]

    assert names([False, False, True, False]) == ["p", "b", "It ", "comes", " in."], "not the element around"
    assert names([False] * 4) == []
    assert names([True] * 4)[:2] == ["body", "ul"], "the root of a page is its body (Definition 2.1)"


def test_section_4_precision_and_recall() -> None:
    """Ten nodes are main. Five of them are found, and also four nodes of the menu (such as its list, item and text)."""
    wanted = np.array([False, True, True, False])
    assert node_prf(PAGE, wanted, wanted) == (1, 1, 1)
    precision, recall, f1 = node_prf(PAGE, np.array([True, False, True, False]), wanted)
    assert (precision, recall) == (5 / 8, 5 / 10)
    assert f1 == pytest.approx(2 * 5 / (8 + 10))
    assert node_prf(PAGE, ~wanted & False, ~wanted & False) == (1, 1, 1)
    assert node_prf(PAGE, ~wanted & False, wanted) == (0, 0, 0)


@pytest.mark.parametrize("html", ["<img src=a.png>", "<p></p>", "<frameset></frameset>"])
def test_a_page_without_blocks_has_no_main_nodes(html: str) -> None:
    one = cut(parse(html))

    assert not main_nodes(one, np.zeros(len(one.blocks), dtype=np.bool_)).any()


def of(body: str) -> float:
    return complexity(parse(f"<html><head></head><body>{body}</body></html>"))


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("<b></b>", "<b><b><b></b></b></b>"),
        ("<b></b>", "<b></b><b></b><b></b>"),
        ("<div>a<p>b</p>c<p>d</p>e</div>", "<div><div>a</div><p></p><p>b</p></div>"),
        ("<table><tr><td>a</table>", "<table><tr><td colspan=2>a</table><table><tr><td>a</table>"),
        ("<p><code>a</code></p>", "<p><code>a</code></p><pre>b</pre>"),
        ("<p>one or two $5</p>", r"<p>so \(x = 1\)</p>"),
        (r"<p>so \(x = 1\)</p>", r"<p>so \(x = 1\) $$</p>"),
        ("<p>some text <a>x</a></p>", "<p><a>some text</a> x</p>"),
        ("<p>a <a>b</a></p><script>var a = '$$ a'</script>", "<p>a <a>b</a></p><p>$$</p>"),  # a script is no text
    ],
)
def test_a_more_complex_page_scores_more(less: str, more: str) -> None:
    """Each measure grows with what it is named after, and none with comments."""
    assert of(less) == of(f"{less}<!-- <table> $$ -->") < of(more)


def test_appendix_a_5_the_score_by_hand() -> None:
    """Five elements are nested, and html has two children. Of html, head, body, p, a and b, only p and b have text of
    their own, so the state changes 3 times. The link has 4 of 8 characters, and the text after it is not in it.
    """
    structure = ((5 / 20) ** 0.7 + (2 / 300) ** 0.7) / 2
    assert of("<p>12<a><b>3456</b></a>78</p>") == pytest.approx((structure + 3 / 6 + 0 + 4 / 8) / 4)
    table, code, formula = 0.4 / 2, 0.3 / 2, 0.3 / 2
    rich = "<p><math><mi>x</mi></math><code>a</code></p><table><tr><td>a</td></tr></table>"
    plain = "<p><span><i>x</i></span><span>a</span></p><table><tr><caption>a</caption></tr></table>"
    assert of(rich) - of(plain) == pytest.approx((table + code + formula) / 4, abs=0.02)


def test_appendix_a_5_levels_are_cut_at_30_and_70_percent() -> None:
    """Of ten different pages three are simple, four are medium and three are hard."""
    found = levels([k / 10 for k in (5, 3, 9, 0, 1, 8, 2, 7, 4, 6)])

    assert [found.count(name) for name in ("simple", "mid", "hard")] == [3, 4, 3]
    assert (found[3], found[2]) == ("simple", "hard")
    assert levels([]) == []
    assert levels([0.4]) == ["hard"]
