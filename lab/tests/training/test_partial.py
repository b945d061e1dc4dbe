"""Pages of which only some facts are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lightgbm")  # the extra [train]

from lab.tests.training.test_training import QUICK, in_this_process, pages
from scrapy_dripper.engines.tagger.features import ABSENT
from scrapy_dripper_lab.sets import DataError, SetChoice, load_set
from scrapy_dripper_lab.training.__main__ import main
from scrapy_dripper_lab.training.prepare import Example, completed, estimated_f1, example
from tests.learning.pages import write_listed

__all__ = ["in_this_process", "pages"]

RECIPE = """<html><head>
<script type="application/ld+json">{"@type": "Recipe", "recipeInstructions": "Stir it all well."}</script>
</head><body><nav><a href=/>Home page</a> <a href=/x>Recipes of the year</a></nav>
<p>A dish for the long evenings of winter.</p><ul><li>two large eggs</li></ul><p>Stir it all well.</p></body></html>"""


def write_recipe(folder: Path, name: str, **more: object) -> None:
    record = {"id": name, "host": f"{name}.example", "kind": "recipe", "facts": {"ingredient": ["two large eggs"]}}
    write_listed(folder, RECIPE, {**record, **more})


def only_page(folder: Path) -> Example:
    (sample,) = load_set(SetChoice(folder)).samples
    found = example(sample)
    assert found is not None
    return found


@pytest.fixture
def recipe(tmp_path: Path) -> Example:
    write_recipe(tmp_path, "one")
    return only_page(tmp_path)


def test_what_is_known(recipe: Example) -> None:
    """A given and a declared fact are main, and a menu is not. Nothing is known of other blocks."""
    known = dict(zip(recipe.texts, zip(recipe.main.tolist(), (recipe.weight > 0).tolist(), strict=True), strict=True))

    assert known.pop("two large eggs") == (True, True)
    assert known.pop("Stir it all well.") == (True, True)
    assert known.pop("A dish for the long evenings of winter.") == (False, False)
    assert set(known.values()) == {(False, True)}
    assert recipe.partial


def test_the_nearest_of_equal_short_facts_to_the_name_is_main(tmp_path: Path) -> None:
    """A price is also in links to other homes, of which nothing is known. A fact of the text may be on the page twice,
    too."""
    page = (
        "<title>A house by the sea</title><ul><li><p>490,000 EUR</p><p>Another flat</p></ul><main><h1>A house by the "
        "sea</h1><p>490,000 EUR</p><p>Four rooms and a garden.</p></main><div><p>Four rooms and a garden.</p></div>"
    )
    facts = {"price": ["490,000 EUR"], "text": ["Four rooms and a garden."]}
    write_listed(tmp_path, page, {"id": "one", "host": "one.example", "kind": "estate", "facts": facts})
    found = only_page(tmp_path)
    labels = [*zip(found.texts, found.main.tolist(), (found.weight > 0).tolist(), strict=True)]

    assert [one for one in labels if one[0] in ("490,000 EUR", "Four rooms and a garden.")] == [
        ("490,000 EUR", False, False),
        ("490,000 EUR", True, True),
        ("Four rooms and a garden.", True, True),
        ("Four rooms and a garden.", False, False),
    ]


def test_the_rest_has_the_labels_of_other_trees_with_a_low_weight(recipe: Example) -> None:
    whole = completed(recipe, np.full(len(recipe.main), 0.9))
    rest = recipe.weight == 0

    assert whole.main[rest].all()
    assert (whole.main == recipe.main)[~rest].all()
    assert 0 < whole.weight[rest].max() < recipe.weight.max()


def test_the_quality_of_such_a_page_sees_lost_facts(recipe: Example) -> None:
    assert estimated_f1(recipe, recipe.main) == 1
    assert estimated_f1(recipe, np.zeros_like(recipe.main)) == 0
    assert 0 < estimated_f1(recipe, np.ones_like(recipe.main)) < 1


@pytest.mark.usefixtures("pages")
def test_training_on_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each page is also seen without declarations. The facts that are kept have a table, and the words none."""
    for i in range(4):
        write_recipe(tmp_path / "facts", f"r{i}")
    assert main(["pages", "--set", "facts:0.3", "--out", "model", *QUICK]) == 0

    manifest = json.loads(Path("model/manifest.json").read_text())
    assert manifest["copies"] == {"bare": 4}
    assert set(manifest["facts_kept"]) == {"ingredient"}
    assert "facts" not in manifest["set_f1"]
    assert "Facts that are kept" in capsys.readouterr().out
    assert "| ingredient | ours | 4 | " in Path("model/README.md").read_text()


def test_a_copy_declares_nothing(tmp_path: Path) -> None:
    write_recipe(tmp_path, "one")
    (sample,) = load_set(SetChoice(tmp_path)).samples
    bare = example(replace(sample, copy_of="one"))
    assert bare is not None
    for name, column in zip(bare.features.names, bare.matrix.T, strict=True):
        assert name not in ABSENT or (column == np.float32(ABSENT[name])).all()


@pytest.mark.parametrize("facts", ["text", {"ingredient": "text"}, {"ingredient": [1]}])
def test_facts_of_another_form(tmp_path: Path, facts: object) -> None:
    write_recipe(tmp_path, "one", facts=facts)

    with pytest.raises(DataError, match="line 1: expected"):
        load_set(SetChoice(tmp_path))


def test_evaluation_measures_no_partial_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scrapy_dripper.cli import main as command

    write_recipe(tmp_path, "one")

    assert command(["evaluate", str(tmp_path)]) == 2
    assert "only some facts are known" in capsys.readouterr().err
