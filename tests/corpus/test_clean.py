"""``scrapy-dripper corpus clean`` drops the documents that simple reference computations name, even if processes are
killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main

pa = pytest.importorskip("pyarrow", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")
pytest.importorskip("py3langid", reason="needs the extra [corpus]")

import pyarrow.parquet as pq  # noqa: E402
from datatrove.data import Document  # noqa: E402

from scrapy_dripper.corpus.filters import Language, Quality, Repetition, UrlList, WordList  # noqa: E402
from scrapy_dripper.corpus.table import schema  # noqa: E402
from scrapy_dripper.corpus.words import words  # noqa: E402

VOCABULARY = """about above across after again air almost along animal answer area around autumn bank bird boat bread
bridge bright brother build built carry castle centre change child church city clear cloud coast cold colour common
country cross daily dark deep door dream early earth east evening every family farm father field fire fish floor flower
follow forest garden gentle glass grass great green ground harbour harvest heavy high hill history horse house island
journey kitchen known lake land large late learn leave letter light little long market meadow metal middle mill morning
mother mountain music narrow night noise north number ocean open orange order other paper path people picture plain
plant play poor power quiet rain reach read river road roof room round sail salt school season shadow shape sheep ship
shore short silver simple slow small snow south spring stone storm story street strong summer sun table tall teach
thick thin through tower town trade travel tree under valley village voice walk wall warm watch water weather west wheel
white wide wild wind window winter wood word work world write year yellow young""".split()
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
        table = [{"id": f"{number}-{at}", "url": url, "text": text} for at, (url, text) in enumerate(rows)]
        if table:
            pq.write_table(pa.Table.from_pylist(table, schema=schema()), folder / f"{number:05d}.parquet")
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all finished files."""
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def steps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the documents in and out of each step."""
    return {
        step["name"]: (step["before"], step["after"])
        for step in json.loads((folder / "clean" / "stats.json").read_text())
    }


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
    shingles = [{tuple(one[at : at + 5]) for at in range(len(one) - 4)} for one in map(words, texts)]
    group = list(range(len(texts)))
    for one in range(len(texts)):
        for other in range(one):
            share = len(shingles[one] & shingles[other]) / len(shingles[one] | shingles[other])
            assert share < 0.2 or share > 0.85  # Between them, MinHash may find a pair or not.
            if share > 0.85:
                group = [group[other] if mark == group[one] else mark for mark in group]
    return len(set(group))


def test_the_counts_are_those_of_sets_and_pairs(tmp_path: Path) -> None:
    """As many documents are left as with SHA-256 and the Jaccard index of all pairs, however they are divided among
    files.
    """
    pages = corpus(random.Random(20))
    folder = extraction(tmp_path, [pages[0:17], pages[17:18], [], pages[18:]])

    assert main(["corpus", "clean", str(folder)]) == 0

    texts = [text for _, text in pages if text]
    unique = {hashlib.sha256(text.encode()).digest(): text for text in texts}
    good = [text for text in unique.values() if len(words(text)) > 50 and "same line" not in text]
    left = near(good)
    assert left < len(good) < len(unique) < len(texts) < len(pages)
    assert steps(folder) == {
        "text": (len(pages), len(texts)),
        "exact duplicates": (len(texts), len(unique)),
        "language": (len(unique), len(unique)),
        "quality": (len(unique), len(unique) - 1),
        "repetition": (len(unique) - 1, len(good)),
        "near duplicates": (len(good), left),
    }
    found = rows(folder / "clean")
    assert len(found) == left
    assert {row["text"] for row in found} <= set(good)
    assert {(row["language"], row["url"] in dict(pages)) for row in found} == {("en", True)}
    schemas = {str(pq.read_schema(path)) for path in (folder / "clean").glob("*.parquet")}
    assert schemas == {str(schema(["language", "language_score"]))}
    assert not (folder / "clean" / "work").exists()


def test_what_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """If the command or a task is killed (kill -9) at any moment, the documents are the same as otherwise."""
    chance = random.Random()
    pages = corpus(chance)
    for name in ("whole", "killed"):
        extraction(tmp_path / name, [pages[at::3] for at in range(3)])
    assert main(["corpus", "clean", str(tmp_path / "whole")]) == 0

    command = [sys.executable, "-m", "scrapy_dripper", "corpus", "clean", str(tmp_path / "killed"), "--workers", "2"]
    for _ in range(3):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(1, 8))
        victim = chance.choice([process.pid, *_children(process.pid)])
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        if victim == process.pid:
            process.wait()
        else:
            assert process.wait() == 0
    assert subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0

    assert steps(tmp_path / "killed") == steps(tmp_path / "whole")
    whole, killed = (Counter(row["id"] for row in rows(tmp_path / name / "clean")) for name in ("whole", "killed"))
    assert killed == whole
    assert set(killed.values()) == {1}


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def test_lists_and_languages(tmp_path: Path) -> None:
    """Lists and languages decide which documents stay. Changed lists are refused in a folder that was begun."""
    chance = random.Random(3)
    german = " ".join(
        "Die Gezeiten sind das Steigen und Fallen des Meeres, das vom Mond und von der Sonne verursacht wird.".split()
        + [f"Am {day}. Tag kam das Wasser in der Stadt Nummer {day * 7} früher als am Tag davor." for day in range(12)]
    )
    pages = [
        ("https://good.example/a", prose(chance)),
        ("https://www.bad.example/b", prose(chance)),
        ("https://good.example/private/c?x=1", prose(chance)),
        ("https://good.example/d", prose(chance) + " And Forbidden,\nfruit of them."),
        ("https://good.example/e", german),
    ]
    folder = extraction(tmp_path / "in", [pages])
    urls, phrases = tmp_path / "urls.txt", tmp_path / "words.txt"
    urls.write_text("# hosts\nbad.example\nhttps://good.example/private/\n")
    phrases.write_text("forbidden fruit\n")
    arguments = ["corpus", "clean", str(folder), "--language", "en", "--urls", str(urls), "--words", str(phrases)]

    assert main(arguments) == 0

    assert [row["url"] for row in rows(folder / "clean")] == ["https://good.example/a"]
    dropped = {step["name"]: step["dropped"] for step in json.loads((folder / "clean" / "stats.json").read_text())}
    assert dropped["language"] == {"de": 1}
    assert dropped["URL list"] == {"host": 1, "path": 1}
    assert dropped["word list"] == {"word": 1}

    phrases.write_text("other\n")
    assert main(arguments) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "main_html"}, "extract with --text markdown or text"),
        ({"language": "english"}, "(got english)"),
        ({"unfinished": "00000"}, "0 of 1 tasks"),
        ({"note": "run.json"}, "it has no run.json"),
        ({"urls": "none.txt"}, "none.txt"),
        ({"words": "long.txt"}, "expected 1 to 10 words a line"),
    ],
)
def test_what_cannot_be_cleaned_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], message: str
) -> None:
    (tmp_path / "long.txt").write_text("word " * 11)
    folder = extraction(tmp_path / "in", [[("https://example.org/", "text")]], text=change.get("text", "markdown"))
    for name in ("unfinished", "note"):
        for file in folder.rglob(change.get(name, "-")):
            file.unlink()
    options = [f"--{name}={tmp_path / change[name]}" for name in ("urls", "words") if name in change]
    options += [f"--language={change['language']}"] if "language" in change else []
    assert main(["corpus", "clean", str(folder), *options]) == 2
    assert message in capsys.readouterr().err


def test_nothing_left_is_no_error(tmp_path: Path) -> None:
    """Each step reports no documents."""
    folder = extraction(tmp_path, [[("https://example.org/", None)]])
    assert main(["corpus", "clean", str(folder)]) == 0
    assert steps(folder) == {
        "text": (1, 0),
        **dict.fromkeys(["exact duplicates", "language", "quality", "repetition", "near duplicates"], (0, 0)),
    }
    assert rows(folder / "clean") == []


def judged(step: Any, text: str, **metadata: Any) -> Any:
    """Return the result of a filter for a text."""
    return step.filter(Document(text, "1", metadata=metadata))


def test_rules_that_hold_for_a_language_hold_for_that_only() -> None:
    """A German text needs no English stop words, and a Chinese character does not count as a short word."""
    german = " ".join(f"Wort{chr(97 + at % 26)}{chr(97 + at // 26)} steht hier" for at in range(60))
    chinese = "潮汐是海水在月球和太阳引力作用下所产生的周期性运动，人们把白天的称潮夜间的称汐。" * 3
    assert judged(Quality(), german, language="de") is True
    assert judged(Quality(), german, language="en") == (False, "gopher_enough_stop_words")
    assert judged(Quality(), chinese, language="zh") is True
    assert judged(Quality(), chinese, language="en")[0] is False
    assert judged(Repetition(), chinese)[0] is False


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The tides are the rise and fall of sea levels caused by the Moon.", "en"),
        ("Die Gezeiten sind Wasserbewegungen der Ozeane, die der Mond verursacht.", "de"),
        ("潮汐是海水在月球和太阳引力作用下所产生的周期性运动。", "zh"),
        ("潮汐とは、月や太陽の引力によって海面が上がったり下がったりする現象である。", "ja"),
        ("Приливы и отливы вызваны притяжением Луны и Солнца.", "ru"),
    ],
)
def test_language(text: str, language: str) -> None:
    document = Document(text, "1")
    assert Language().filter(document) is True
    assert document.metadata["language"] == language
    assert Language((language,)).filter(document) is True


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("http://bad.example/", (False, "host")),
        ("https://WWW.Sub.bad.example:8080/x", (False, "host")),
        ("https://notbad.example/", True),
        ("https://good.example/a/b/c#d", (False, "path")),
        ("https://good.example/a/bc", True),
        ("https://sub.good.example/a/b", True),
        ("https://[broken/", True),
        (None, True),
    ],
)
def test_addresses(tmp_path: Path, url: str | None, verdict: Any) -> None:
    file = tmp_path / "urls"
    file.write_text("bad.example\nwww.good.example/a/b/\n")
    assert judged(UrlList(str(file)), "text", url=url) == verdict


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [("a BAD, word", False), ("badly", True), ("two  words", False), ("two\nother words", True), ("看不好的书", False)],
)
def test_words_of_a_list(tmp_path: Path, text: str, is_kept: bool) -> None:
    file = tmp_path / "words"
    file.write_text("bad\nTwo Words\n不好\n", encoding="utf-8")
    assert (judged(WordList(str(file)), text) is True) == is_kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's a well-known fact.", ["It's", "a", "well-known", "fact"]),
        ("[a](https://e.org/b_c?d=e) 3.5 %", ["a", "3.5"]),
        ("## **x** -- y | z |\n|---|---|", ["x", "y", "z"]),
        ("हिन्दी में।", ["हिन्दी", "में"]),
        ("海は、広い", ["海", "は", "広", "い"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_tables_and_lists_are_no_clutter() -> None:
    """The signs of Markdown count neither for nor against a text."""
    rows = [f"| {name.title()} | [the {name} of it](https://example.org/{name}) | with 5 % |" for name in VOCABULARY]
    assert judged(Quality(), "\n".join(rows[:60]), language="en") is True
    headings = [f"- #### {name} of it\n\n  And the {name}." for name in VOCABULARY[:40]]
    assert judged(Quality(), "\n\n".join(headings), language="en") is True
    assert judged(Quality(), " #".join(headings), language="en") == (False, "gopher_too_many_hashes")
    assert judged(Quality(), "12 345 6789 0.5 " * 60, language="de") == (False, "gopher_below_alpha_threshold")
