"""A site is learnt if its held-out pages allow a gain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from scrapy_dripper import learning
from scrapy_dripper.engines.tagger.model import TaggerModel, bundled
from scrapy_dripper.inspection.answers import read_answers
from scrapy_dripper.learning import Correction, gain_rows, learn, of_record, total_gain
from tests.learning.conftest import TOPICS, correct, page_of


@pytest.fixture
def four(tmp_path: Path) -> list[Correction]:
    """The corrections of four pages of a site."""
    for topic in TOPICS[:4]:
        correct(tmp_path, topic)
    pages = {page.sha256: page for page in map(page_of, TOPICS[:4])}
    return [of_record(answer, pages[answer.sha256]) for answer in read_answers(tmp_path, pytest.fail)]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ((0.6, 0.7, 0.6, 0.7), "learnt"),
        ((0.5, 0.5, 0.5, 0.5), "left as it was"),
        ((0.503, 0.503, 0.503, 0.503), "left as it was"),
        ((0.9, 0.4, 0.4, 0.3), "learnt, unsure"),
        ((0.4, 0.4, 0.5, 0.5), "left as it was"),
    ],
    ids=["gain", "no change", "hardly any", "by chance", "loss"],
)
def test_a_site_is_learnt_if_it_may_gain(
    four: list[Correction], monkeypatch: pytest.MonkeyPatch, after: Sequence[float], said: str
) -> None:
    """The limit is one standard error. Sites that are not learnt do not change the total."""
    answers = iter([[0.5] * 4, *([value] for value in after)])
    monkeypatch.setattr(learning, "_f1", lambda pages, model, learnt: next(answers))

    sites, gains = learn(four, TaggerModel(bundled()))

    assert [row[-1] for row in gain_rows(gains)[1]] == [said]
    assert bool(sites) == said.startswith("learnt")
    found = total_gain(gains)
    assert found is not None
    assert found[:2] == pytest.approx((0.5, sum(after) / 4 if sites else 0.5))


def test_no_page_is_measured_by_what_it_taught(four: list[Correction], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is held out once. Then all pages are learnt."""
    taught: list[int] = []
    real = learning.fit

    def fit(examples: Sequence[object], vocabulary: dict[str, int]) -> object:
        taught.append(len(examples))
        return real(examples, vocabulary)  # type: ignore[arg-type]

    monkeypatch.setattr(learning, "fit", fit)
    monkeypatch.setattr(learning, "FOLDS", 2)
    learn(four, TaggerModel(bundled()))
    assert taught == [2, 2, 4]

    taught.clear()
    monkeypatch.setattr(learning, "FOLDS", 5)
    learn(four, TaggerModel(bundled()))
    assert taught == [3, 3, 3, 3, 4]
