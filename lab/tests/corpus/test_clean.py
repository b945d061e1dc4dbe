"""``scrapy-dripper corpus clean`` drops the documents that simple reference computations name."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.corpus.shards import table

pa = pytest.importorskip("pyarrow", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")
pytest.importorskip("spacy", reason="needs the extra [clean]")

import pyarrow.parquet as pq  # noqa: E402

from scrapy_dripper.cli.corpus import totals  # noqa: E402
from scrapy_dripper.corpus.steps import schema  # noqa: E402

VOCABULARY = Path(__file__).with_name("vocabulary.txt").read_text().split()
STOPS = "the of and to that with have be".split()


def prose(chance: random.Random, length: int = 160) -> str:
    """Return a text that passes all rules: it has no unusual words and no repetitions."""
    made = [chance.choice(STOPS if number % 3 == 0 else VOCABULARY) for number in range(length)]
    return "\n\n".join(" ".join(made[at : at + 20]).capitalize() + "." for at in range(0, length, 20))


def extraction(folder: Path, files: list[list[tuple[str, str | None]]], **options: Any) -> Path:
    """Write URLs and texts as `corpus extract` would, and return the folder."""
    (folder / "logs" / "completions").mkdir(parents=True)
    note = {"tasks": len(files), "options": {"text": "markdown", "columns": []} | options}
    (folder / "run.json").write_text(json.dumps(note))
    for number, rows in enumerate(files):
        (folder / "logs" / "completions" / f"{number:05d}").touch()
        made = [{"id": f"{number}-{at}", "url": url, "text": text} for at, (url, text) in enumerate(rows)]
        pq.write_table(pa.Table.from_pylist(made, schema=schema()), folder / f"{number:05d}.parquet")
    return folder


def steps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the documents in and out of each step."""
    counts = {**totals(folder / "clean/logs/filters"), **totals(folder / "clean/logs/write")}
    return {name: (one["total"], one["forwarded"]) for name, one in counts.items() if one["forwarded"] + one["dropped"]}


def corpus(chance: random.Random) -> list[tuple[str, str | None]]:
    """Return prose with exact and near duplicates, and texts that the rules drop."""
    texts: list[str | None] = [prose(chance) for _ in range(30)]
    texts += [texts[at] for at in (1, 1, 4, 9)]
    for at in (2, 5, 5, 7):
        made = str(texts[at]).split(" ")
        made[chance.randrange(len(made))] = chance.choice(VOCABULARY)
        texts.append(" ".join(made))
    texts += [None, "", "Too short.", "\n\n".join(["The same line of words to be read again and again."] * 30)]
    chance.shuffle(texts)
    return [(f"https://example.org/{at}", text) for at, text in enumerate(texts)]


def near(texts: list[str]) -> int:
    """Return how many texts are left if one of each group of near duplicates stays, according to the Jaccard index."""
    shingles = [{tuple(one[at : at + 5]) for at in range(len(one) - 4)} for one in map(str.split, texts)]
    group = list(range(len(texts)))
    for one in range(len(texts)):
        for other in range(one):
            share = len(shingles[one] & shingles[other]) / len(shingles[one] | shingles[other])
            assert share < 0.2 or share > 0.85  # Between them, MinHash may find a pair or not.
            if share > 0.85:
                group = [group[other] if mark == group[one] else mark for mark in group]
    return len(set(group))


def test_section_4_1_3_the_counts_are_those_of_sets_and_pairs(tmp_path: Path, run: Run) -> None:
    """As many documents are left as with SHA-256 and the Jaccard index of all pairs, however they are divided among
    files. Repeated, the command runs no task again.
    """
    pages = corpus(random.Random(20))
    folder = extraction(tmp_path, [pages[0:17], pages[17:18], [], pages[18:]])

    first = run("corpus", "clean", folder, "--workers", "2")

    texts = [text for _, text in pages if text]
    assert all(f"{stage}: {len(texts)} pages in " in first.err for stage in ("hashes", "filters"))
    unique = {hashlib.sha256(text.encode()).digest(): text for text in texts}
    good = [text for text in unique.values() if len(text.split()) > 50 and "same line" not in text]
    left = near(good)
    assert left < len(good) < len(unique) < len(texts) < len(pages)
    assert steps(folder) == {
        "exact-deduplication stage 3": (len(texts), len(unique)),
        "Gopher Quality": (len(unique), len(unique) - 1),
        "Gopher Repetition": (len(unique) - 1, len(good)),
        "MinHash stage 4": (len(good), left),
    }
    found = table(folder / "clean")
    assert len(found) == left
    assert {row["text"] for row in found} <= set(good)
    assert {str(pq.read_schema(path)) for path in (folder / "clean").glob("*.parquet")} == {str(schema())}
    assert not (folder / "clean" / "work").exists()

    before = {path: path.stat().st_mtime_ns for path in (folder / "clean").glob("*.parquet")}
    again = run("corpus", "clean", folder)
    line = f"MinHash stage 4: {len(good)} in, {left} out"
    assert [(done.code, line in done.err) for done in (first, again)] == [(0, True)] * 2
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_lists(tmp_path: Path, run: Run) -> None:
    """Lists decide which documents stay. Changed lists are refused in a folder that was begun."""
    pytest.importorskip("ahocorasick", reason="needs the extra [clean]")
    chance = random.Random(3)
    pages = [
        ("https://good.com/a", prose(chance)),
        ("https://www.bad.com/b", prose(chance)),
        ("https://good.com/private/c?x=1", prose(chance)),
        ("https://good.com/d", prose(chance) + " And Forbidden fruit of them."),
    ]
    folder = extraction(tmp_path / "in", [pages])
    urls, words = tmp_path / "urls.txt", tmp_path / "words.txt"
    urls.write_text("# hosts\n\nbad.com\nhttps://good.com/private/c?x=1\n")
    words.write_text("\\bforbidden\\s+fruit\\b\n不好\n", encoding="utf-8")
    arguments = ("corpus", "clean", folder, "--urls", urls, "--words", words, "--workers", "1")

    done = run(*arguments)

    assert [row["url"] for row in table(folder / "clean")] == ["https://good.com/a"]
    assert "Url-filter: 4 in, 2 out (domain 1, url 1)" in done.err

    words.write_text("other\n")
    refused = run(*arguments)
    assert (refused.code, "begun with other options" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "main_html"}, "extract with --text markdown or text"),
        ({"unfinished": "00000"}, "0 of 1 tasks"),
        ({"note": "run.json"}, "it has no run.json"),
        ({"urls": "none.txt"}, "none.txt"),
        ({"words": "wrong.txt"}, "unterminated character set"),
    ],
)
def test_what_cannot_be_cleaned_is_named(tmp_path: Path, run: Run, change: dict[str, str], message: str) -> None:
    (tmp_path / "wrong.txt").write_text("[a-")
    folder = extraction(tmp_path / "in", [[("https://example.org/", "text")]], text=change.get("text", "markdown"))
    for name in ("unfinished", "note"):
        for file in folder.rglob(change.get(name, "-")):
            file.unlink()
    options = [f"--{name}={tmp_path / change[name]}" for name in ("urls", "words") if name in change]

    done = run("corpus", "clean", folder, *options)

    assert (done.code, message in done.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "package"), [(["--language", "en"], "fasttext"), (["--safety"], "ahocorasick")], ids=" ".join
)
def test_what_cannot_be_downloaded_is_named(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, options: list[str], package: str
) -> None:
    """The command says so before any task runs, and names the option to leave out."""
    pytest.importorskip(package, reason="needs the extra [clean]")

    def download(*_: Any) -> None:
        raise ConnectionError("no network")

    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_ASSETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("datatrove.io.download_file", download)
    folder = extraction(tmp_path / "in", [[("https://example.org/", "text")]])

    done = run("corpus", "clean", folder, *options)

    assert done.code == 2
    assert f"{options[0]} needs a file that datatrove cannot download to its cache: no network" in done.err
    assert not (folder / "clean").exists()


def test_a_missing_package_is_named(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from datatrove.utils import _import_utils

    monkeypatch.setattr(_import_utils, "_is_package_available", lambda name: name not in ("fasttext", "fasteners"))
    folder = extraction(tmp_path / "in", [[("https://example.org/", "text")]])

    done = run("corpus", "clean", folder, "--language", "en")

    assert (done.code, "pip install fasteners fasttext-numpy2-wheel" in done.err) == (2, True)


def test_nothing_left_is_no_error(tmp_path: Path, run: Run) -> None:
    """Each step reports no documents."""
    folder = extraction(tmp_path, [[("https://example.org/", None)]])
    assert run("corpus", "clean", folder, "--workers", "1").code == 0
    assert table(folder / "clean") == []
