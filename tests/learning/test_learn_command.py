"""``scrapy-dripper learn`` makes a user's own model from corrected pages, and reports the gain."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper import Document, Extractor
from scrapy_dripper.cli import main
from scrapy_dripper.config import Config
from scrapy_dripper.engines.files import sha256
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.engines.tagger.engine import CORRECTIONS
from scrapy_dripper.engines.tagger.learnt import LEARNT
from scrapy_dripper.learning import TRAINING_PAGES
from scrapy_dripper.page import read
from tests.learning.conftest import SITE, TOPICS, correct, html, is_main, page_of

ROOT = Path(__file__).parents[2]
NEW = TOPICS[6]
"""The topic of a page that nobody has corrected."""


def learn(*arguments: object) -> int:
    """Run the command."""
    return main(["learn", *map(str, arguments)])


def labels(model: Path | None, url: str) -> dict[str, bool]:
    """Return the labels of a page that was not corrected, by the texts of its blocks."""
    extractor = Extractor(Config(model=str(model) if model else None))
    found = extractor.extract([Document(html(NEW), url)])[0]
    return dict(zip(page_of(NEW).page.blocks.text, found.labels, strict=True))


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learnt from six corrected pages."""
    folder = tmp_path_factory.mktemp("learnt")
    for topic in TOPICS[:6]:
        correct(folder / "corrections", topic)
    assert learn(folder / "corrections", "-o", folder / "my-model") == 0
    return folder / "my-model"


def test_corrected_pages_to_corrected_labels(
    corrections: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The inspector's export is learnt, the gain is printed, and a new page has the right labels."""
    out = tmp_path / "my-model"
    assert learn(corrections, "-o", out) == 0
    said = capsys.readouterr()
    right = {text: is_main(text) for text in page_of(NEW).page.blocks.text}

    assert labels(None, f"{SITE}/{NEW}") != right
    assert labels(out, f"{SITE}/{NEW}") == right
    (row,) = [line.split() for line in said.out.splitlines() if line.startswith("tides.example")]
    assert row[1] == "6"
    assert float(row[2]) < 0.7
    assert row[3:] == ["1.000", f"+{1 - float(row[2]):.3f}", "learnt"]
    assert "6 pages corrected" in said.err
    assert f"--model {out}" in said.err


def test_the_guide_shows_the_gain_of_four_corrected_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/guides/bad-pages.md has the table of the command, and the README its figures."""
    for topic in TOPICS[:4]:
        correct(tmp_path / "corrections", topic)
    assert learn(tmp_path / "corrections", "-o", tmp_path / "my-model") == 0
    table = capsys.readouterr().out

    assert table in (ROOT / "docs/guides/bad-pages.md").read_text(encoding="utf-8")


def test_a_subdomain_is_the_site_too_and_other_sites_are_as_they_were(learnt: Path) -> None:
    """The probabilities of other sites are bit for bit the same."""
    right = {text: is_main(text) for text in page_of(NEW).page.blocks.text}

    assert labels(learnt, f"https://en.tides.example/{NEW}") == right
    for url in ("https://nottides.example/", "https://example/", "", "http://["):
        document = [Document(html(NEW), url)]
        mine, bundled = (Extractor(config).extract(document)[0] for config in (Config(model=str(learnt)), Config()))
        assert mine.probabilities == bundled.probabilities
        assert mine.labels == bundled.labels


def test_workers_and_the_command_line_use_it(learnt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for topic in TOPICS[6:]:
        (tmp_path / f"{topic}.html").write_text(html(topic).replace("canonical", "x"), encoding="utf-8")

    pages = [str(tmp_path / f"{topic}.html") for topic in TOPICS[6:]]
    listing = tmp_path / "new.jsonl"
    assert main(["extract", *pages, "--model", str(learnt), "--jobs", "2", "-f", "jsonl", "-o", str(listing)]) == 0

    # These files have no URL, and so no site.
    texts = [json.loads(line)["text"] for line in listing.read_text(encoding="utf-8").splitlines()]
    assert all("fisherman" in text for text in texts)
    said = f"what --model has learnt cannot apply to {len(pages)} of {len(pages)} pages"
    assert said in capsys.readouterr().err
    Path(pages[-1]).write_text(html(TOPICS[-1]), encoding="utf-8")  # which declares its URL
    for arguments in ([pages[0], "--url", f"{SITE}/x"], [str(tmp_path), "--url", SITE], [pages[-1]]):
        assert main(["extract", *arguments, "--model", str(learnt), "-f", "text"]) == 0
        done = capsys.readouterr()
        assert ("fisherman" in done.out, done.err) == (False, "")


def test_corrections_hold_on_a_page_without_menus(learnt: Path) -> None:
    """A page of which nothing says that it is around the content is main as a whole only on other sites."""
    bare = re.sub(r"<(nav|footer)>.*?</\1>", "", html(NEW), flags=re.S)

    (page,) = Extractor(Config(model=str(learnt))).extract([Document(bare, f"{SITE}/{NEW}")])

    assert ("Twice a day" in page.text, "fisherman" in page.text) == (True, False)


def test_the_same_corrections_give_the_same_bytes(learnt: Path, tmp_path: Path) -> None:
    """Their folder and order do not matter."""
    again = tmp_path / "again"
    for topic in reversed(TOPICS[:6]):
        correct(again / topic, topic)
    first, second = learnt, tmp_path / "second"
    learn(*sorted(again.iterdir(), reverse=True), "-o", second)

    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_a_site_that_does_not_gain_is_left_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels that equal the model's own teach nothing. The gain from a single page is unknown."""

    def as_the_model(text: str) -> bool:
        return "Home" not in text and "Copyright" not in text

    for topic in TOPICS[:3]:
        correct(tmp_path / "fine", topic, "https://fine.example", main=as_the_model)
    correct(tmp_path / "fine", TOPICS[3], "https://single.example")
    out = tmp_path / "my-model"

    assert learn(tmp_path / "fine", "-o", out) == 1
    said = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:] for line in said.out.splitlines() if ".example" in line}
    assert rows["fine.example"] == ["3", "1.000", "1.000", "+0.000", "left", "as", "it", "was"]
    assert rows["single.example"][2:] == ["-", "-", "left", "as", "it", "was"]
    assert "no site has gained, so nothing was written" in said.err
    assert not out.exists()

    assert learn(tmp_path / "fine", "-o", out, "--every") == 0
    assert sorted(json.loads((out / LEARNT).read_text())["sites"]) == ["fine.example", "single.example"]


def test_more_is_learnt_upon_a_model_that_has_learnt(learnt: Path, tmp_path: Path) -> None:
    """The base's weights of other sites are kept. The output may be the same folder."""
    for topic in TOPICS[:4]:
        correct(tmp_path / "more", topic, "https://moons.example")
    out = shutil.copytree(learnt, tmp_path / "my-model")
    before = json.loads((out / LEARNT).read_text())["sites"]

    assert learn(tmp_path / "more", "--base", out, "-o", out) == 0

    after = json.loads((out / LEARNT).read_text())["sites"]
    assert list(after) == ["moons.example", "tides.example"]
    assert after["tides.example"] == before["tides.example"]


def test_what_was_learnt_is_named(learnt: Path) -> None:
    """With the manifest, ``evaluate`` can say that the model has learnt from these pages. The inspector names
    corrections as a reason.
    """
    manifest = json.loads((learnt / "manifest.json").read_text(encoding="utf-8"))
    pages = (learnt.parent / "corrections").glob("*.html")
    assert manifest[TRAINING_PAGES]["corrections"] == sorted(map(sha256, pages))
    assert manifest["learnt"]["sites"] == ["tides.example"]
    before, after = manifest["learnt"]["held_word_f1"]
    assert before < after == 1.0

    tagger = Tagger.load(Config(model=str(learnt)))

    found = tagger.influences(read(Document(html(NEW), f"{SITE}/{NEW}"), Config()))

    stories = [i for i, text in enumerate(page_of(NEW).page.blocks.text) if "fisherman" in text]
    assert all(found[CORRECTIONS][i] < -0.5 for i in stories)
    assert CORRECTIONS not in tagger.influences(read(Document(html(NEW), "https://other.example/"), Config()))


# ---------------------------------------------------------------------- what is wrong with corrections


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"cut": "0" * 64}, "its blocks have other texts than when it was labelled; label it again"),
        ({"url": ""}, "its URL is unknown, and so is its site"),
        ({"sha256": "0" * 64}, "its page is not in"),
        ({"profile": "v1.0"}, "labelled in the profile 'v1.0', expected 'native'; label it again"),
        ({}, "expected every id from 1 to 7 exactly once, as main or other (got missing: 3)"),
    ],
)
def test_a_page_that_cannot_be_used_is_named_and_the_others_are_learnt_from(
    corrections: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: dict[str, str], words: str
) -> None:
    path = next(corrections.glob("harbour*.answer.json"))
    answer = json.loads(path.read_text(encoding="utf-8"))
    answer["task"] |= damage
    if not damage:
        del answer["labels"]["3"]
    path.write_text(json.dumps(answer), encoding="utf-8")

    assert learn(corrections, "-o", tmp_path / "my-model") == 1

    said = capsys.readouterr().err
    assert words in said
    assert "harbour" in said
    assert "5 pages corrected" in said
    assert "1 failed (" in said
    assert ("1 pages without labels" in said) == (not damage or "sha256" in damage)
    assert (tmp_path / "my-model" / LEARNT).exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere", "-o", "new"], "is not a folder"),
        (["full", "-o", "new"], "holds no corrections"),
        (["pages", "-o", "new"], "holds no corrections"),
        (["corrections", "-o", "full"], "not a model that 'learn' has written"),
        (["corrections", "-o", "full/letter.txt"], "is a file: name a folder for the model"),
        (["corrections", "--base", "full", "-o", "new"], "No tagger model in"),
    ],
)
def test_what_cannot_start_leaves_nothing_behind(
    arguments: list[str], says: str, corrections: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("full", "pages"):
        (tmp_path / folder).mkdir()
    (tmp_path / "full" / "letter.txt").write_text("Dear all", encoding="utf-8")
    (tmp_path / "pages" / "harbour.html").write_text(html("harbour"), encoding="utf-8")

    assert learn(*arguments) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter.txt"]
    assert not (tmp_path / "new").exists()


def test_a_base_that_was_trained_on_the_pages_is_named(
    corrections: Path, learnt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Earlier corrections do not count, because the graphs were not trained on them."""
    said = "the base was trained on 6 of these pages"
    shutil.copytree(learnt, tmp_path / "first")
    assert learn(corrections, "--base", tmp_path / "first", "-o", tmp_path / "second") == 0
    assert said not in capsys.readouterr().err

    path = tmp_path / "first" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest[TRAINING_PAGES]["sites"] = manifest[TRAINING_PAGES].pop("corrections")
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert learn(corrections, "--base", tmp_path / "first", "-o", tmp_path / "third") == 0
    assert said in capsys.readouterr().err


def test_the_same_page_in_two_folders_counts_once(
    corrections: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    correct(tmp_path / "twice", TOPICS[0])

    assert learn(corrections, tmp_path / "twice", "-o", tmp_path / "my-model") == 0
    said = capsys.readouterr().err
    assert "6 pages corrected" in said
    assert "1 the same page again" in said
