"""The complexity score and its levels (Dripper paper, A.5)."""

from __future__ import annotations

import pytest

from scrapy_dripper.page.parse import parse
from scrapy_dripper_lab.evaluation.complexity import complexity, levels


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
    ],
)
def test_a_more_complex_page_scores_more(less: str, more: str) -> None:
    """Each measure grows with what it is named after."""
    assert of(less) < of(more)


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


def test_scripts_are_no_text() -> None:
    """Nor do comments make a page more complex."""
    assert of("<p>a <a>b</a></p><script>var a = '$$ a'</script>") < of("<p>a <a>b</a></p><p>$$</p>")
    assert of("<p>a</p><!-- <table> $$ -->") == of("<p>a</p>")


def test_appendix_a_5_levels_are_cut_at_30_and_70_percent() -> None:
    """Of ten different pages three are simple, four are medium and three are hard."""
    found = levels([k / 10 for k in (5, 3, 9, 0, 1, 8, 2, 7, 4, 6)])

    assert [found.count(name) for name in ("simple", "mid", "hard")] == [3, 4, 3]
    assert (found[3], found[2]) == ("simple", "hard")
    assert levels([]) == []
    assert levels([0.4]) == ["hard"]
