"""The complexity score and its levels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.page.parse import parse
from scrapy_dripper.workshop.evaluation.complexity import Complexity, complexity, levels, scores

measures = st.builds(Complexity, *(st.floats(0, 10),) * 4)


def of(body: str) -> Complexity:
    return complexity(parse(f"<html><head><title>t</title></head><body>{body}</body></html>"))


@pytest.mark.parametrize(
    ("measure", "less", "more"),
    [
        ("structure", "<p>a</p>", "<div><div><p>a</p></div></div>"),
        ("structure", "<p>a</p>", "<p>a</p><p>b</p><p>c</p>"),
        ("sparsity", "<div><div><div><p>a</p></div></div></div>", "<div>a<p>b</p>c<p>d</p>e</div>"),
        ("diversity", "<p>a</p>", "<p>a</p><table><tr><td>b</table>"),
        ("diversity", "<img src=a><ul><li>a</ul>", "<img src=a><ul><li>a</ul><pre>b</pre>"),
        ("diversity", "<p>one or two $5</p>", r"<p>so \(x = 1\)</p>"),
        ("links", "<p>some text <a>x</a></p>", "<p><a>some text</a> x</p>"),
    ],
)
def test_a_more_complex_page_measures_more(measure: str, less: str, more: str) -> None:
    """Each measure grows with what it is named after."""
    assert getattr(of(less), measure) < getattr(of(more), measure)


def test_measures_by_hand() -> None:
    """html, body, p, a and b are nested; the link has 4 of 8 characters, and the text after it is not in it."""
    found = of("<p>12<a><b>3456</b></a>78</p>")

    assert found.links == 0.5
    assert found.diversity == 0
    assert found.structure == pytest.approx(1.609, abs=0.001)  # log of depth 5 times width 1


def test_what_no_reader_sees_does_not_count() -> None:
    """Scripts, styles, templates and comments do not make a page more complex."""
    hidden = "<script>var a = '<table>$$'</script><style>p{}</style><template><ul><li>x</ul></template><!-- $$ -->"
    assert of(f"<p>a</p>{hidden}") == of("<p>a</p>")


def test_levels_are_cut_at_the_30th_and_70th_percentile() -> None:
    """Of ten different pages three are simple, four are medium and three are hard."""
    pages = [Complexity(float(k), 0, 0, 0) for k in (5, 3, 9, 0, 1, 8, 2, 7, 4, 6)]

    found = levels(pages)

    assert [found.count(name) for name in ("simple", "mid", "hard")] == [3, 4, 3]
    assert found[3] == "simple"
    assert found[2] == "hard"
    assert levels([]) == []


@given(st.lists(measures, min_size=1, max_size=20))
def test_scores_are_from_0_to_1_and_keep_the_order(pages: list[Complexity]) -> None:
    """A page that is at least as complex in every measure has no lower score."""
    found = scores(pages)
    assert all(-1e-9 <= value <= 1 + 1e-9 for value in found)
    for a, one in zip(pages, found, strict=True):
        for b, other in zip(pages, found, strict=True):
            if all(getattr(a, name) <= getattr(b, name) for name in Complexity.__slots__):
                assert one <= other + 1e-9
