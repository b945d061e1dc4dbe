"""``scrapy-dripper corpus templates``: rules for the pages of hosts that are spread over archives."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.corpus.shards import record, shards, table, write
from tests.corpus.test_command import command, result
from tests.crawl.crawling import eventually
from tests.sites.site import FOOT, article, listing, url
from tests.sites.test_templates import FREE

pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
pytest.importorskip("datatrove", reason="needs the extra [corpus]")

from datatrove.data import Document as Row

from scrapy_dripper.config import Config
from scrapy_dripper.corpus import steps
from scrapy_dripper.sites.templates import is_audited
from scrapy_dripper_lab.corpus import templates

OWN = ("--engine", "tests.workers.engines.Truth", "--fallback", "none")
LEARN = ("--workers", "1", *OWN[:2])
ARTICLES = [(url(number), article(number).encode()) for number in FREE[:40]]
PAGES = [*ARTICLES, *((f"https://e.org/lists/{number}", listing(number).encode()) for number in range(12))]


@pytest.fixture
def rules(tmp_path: Path, run: Run) -> Path:
    """Return the folder of the rules that are learnt from ten archives, which each have four articles."""
    shards(tmp_path / "in", PAGES, 10)
    assert run("corpus", "templates", tmp_path / "in", "-o", tmp_path / "rules", *LEARN).code == 0
    return tmp_path / "rules"


def by_url(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a folder by their URL."""
    return {row["url"]: row for row in table(folder)}


def test_section_2_1_2_pages_of_one_site_in_ten_archives(tmp_path: Path, rules: Path, run: Run) -> None:
    """The rules can be read, do not depend on the number of tasks, and give the text that the engine would."""
    (file,) = rules.glob("*.toml")
    assert file.read_text() == (
        f"# Pages like {file.read_text().split()[3]} learnt from the labels of truth\n"
        '["e.org"]\nchars = [360, 360]\n'
        'drop = [\n    "nav",\n    "p.date",\n    "aside.side",\n    "footer",\n]\n'
        'keep = [\n    "header.head > h1",\n    "div.body",\n]\n'
    )
    again = tmp_path / "again"
    done = run("corpus", "templates", tmp_path / "in", "-o", again, "--tasks", 1, *LEARN)
    assert (again / file.name).read_bytes() == file.read_bytes()
    assert "52 pages, 2 clusters of at least 8 pages, " in done.err

    extract = ("corpus", "extract", tmp_path / "in", *OWN, "--workers", 1, "-o")
    assert run(*extract, tmp_path / "alone").code == 0
    texts = {name: row["text"] for name, row in by_url(tmp_path / "alone").items()}
    for name, options in (("one", ()), ("two", ("--processes", 1))):
        done = run(*extract, tmp_path / name, "--templates", rules, *options)
        assert (done.code, "templates: answered 40, " in done.err) == (0, True)
        found = by_url(tmp_path / name)
        assert Counter(row["source"] for row in found.values()) == {"template": 40, "truth": 12}
        assert {name: row["text"] for name, row in found.items()} == texts


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<div>" * 9 + "<p>MAIN deep</p>" + "</div>" * 9, "depth"),
        ("<p>MAIN wide</p>" * 30, "width"),
        ("<p class=a>MAIN</p><p class=b>MAIN</p><i class=c>MAIN</i>", "tags and classes"),
        ("<p id=a title=b lang=c data-d=e dir=ltr>MAIN</p>", "attributes"),
    ],
)
def test_section_2_1_2_the_representative_covers_most(body: str, title: str) -> None:
    """Of pages that are alike, the one with more of any of the paper's four measures is labelled first."""
    data = [Row(article(n, body if n == 3 else "<p>MAIN</p>"), str(n), metadata={"url": url(n)}) for n in range(6)]
    found = [row.metadata["coverage"] for row in templates.LayoutStep(Config())(data, 0, 1)]

    assert templates.representative(found) == 3, title


def test_what_a_person_has_edited_counts(tmp_path: Path, rules: Path, run: Run) -> None:
    """A selector can be added, and a file be deleted. A wrong one stops the command with a sentence."""
    (file,) = rules.glob("*.toml")
    learnt = file.read_text()
    file.write_text(
        learnt.replace('    "div.body",', '    "div.body",\n    "//p[@class=\'date\']",').replace('"p.date",', "")
    )
    extract = ("corpus", "extract", tmp_path / "in", "-o", tmp_path / "out", *OWN, "--templates", rules)
    assert run(*extract, "--workers", 1).code == 0
    found = by_url(tmp_path / "out")
    assert all("May 2024" in str(found[name]["text"]) for name, _ in ARTICLES)
    assert {found[name]["source"] for name, _ in ARTICLES} == {"template"}

    for text, said in (
        (learnt, "begun with other options"),
        (learnt.replace("keep", "kep"), "did you mean keep?"),
        (learnt.replace("chars = [", "chars = [true, "), "chars as two numbers"),
    ):
        file.write_text(text)
        done = run(*extract)
        assert (done.code, said in done.err) == (2, True)
    file.unlink()
    done = run(*extract)
    assert (done.code, "has no rules" in done.err) == (2, True)


def test_what_was_stopped_goes_on_where_it_was(tmp_path: Path, rules: Path) -> None:
    """After kill -9 in the second pass, the first one is not repeated, and the rules are the same."""
    begun, flag = tmp_path / "begun", tmp_path / "flag"
    waiting = article(7_000).replace("</article>", f"<p class=wait>BEGUN {begun} WAIT-FOR {flag} .</p></article>")
    other = [(f"https://other.org/{number}", waiting.encode()) for number in range(9)]
    shards(tmp_path / "in", [*PAGES, *other], 10)
    arguments = ("templates", tmp_path / "in", "-o", tmp_path / "out", *LEARN)
    process = command(*arguments)
    eventually("the file is begun", lambda: begun.exists() and begun.read_text() != "")
    layouts = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "layouts").glob("*.parquet")}
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    flag.touch()
    stats = tmp_path / "out" / "logs" / "layouts" / "stats"
    before = {path: path.stat().st_mtime_ns for path in stats.glob("*.json")}
    code, said = result(command(*arguments))

    assert code == 0, said
    assert len(layouts) == len(before) == 10
    assert {path: path.stat().st_mtime_ns for path in stats.glob("*.json")} == before
    assert (tmp_path / "out" / "e.org.1.toml").read_bytes() == (rules / "e.org.1.toml").read_bytes()
    assert (tmp_path / "out" / "other.org.1.toml").exists()


def test_damaged_records_and_pages_that_are_gone(tmp_path: Path, rules: Path, run: Run) -> None:
    """They are counted, and the rules are those of the other pages."""
    with (tmp_path / "in" / "3.warc.gz").open("ab") as file:
        file.write(b"\x1f\x8b\x08 this is no record")
    out = tmp_path / "out"
    done = run("corpus", "templates", tmp_path / "in", "-o", out, *LEARN)
    assert (done.code, "records that cannot be read: broken_archive 1" in done.err) == (1, True)
    assert (out / "e.org.1.toml").read_bytes() == (rules / "e.org.1.toml").read_bytes()

    layouts, changed = tmp_path / "layouts", tmp_path / "changed"
    (archive,) = shards(tmp_path / "one", ARTICLES, 1)
    data = steps.FastWarcReader(str(archive.parent))(None, 0, 1)
    list(steps.RowWriter(layouts, templates.LAYOUTS)(templates.LayoutStep(Config())(data, 0, 1), 0, 1))
    write(archive, [record(name, body) for name, body in ARTICLES[::2]])
    changed.mkdir()
    learner = templates.TemplateLearner(layouts, changed, Config(engine=OWN[1]))
    assert list(learner(None, 0, 1)) == []
    assert learner.stats.stats["gone"].total > 0


@pytest.mark.parametrize("processes", [0, 1])
def test_a_site_that_has_changed_loses_its_rules(tmp_path: Path, rules: Path, processes: int) -> None:
    """The publisher moves the text into the footer. The first audited page shows it, and the model labels the rest."""
    foot = FOOT.replace("The newsletter comes", "MAIN text comes").replace("</p>", " MAIN all the text is here.</p>")
    audited = next(number for number in range(500, 9_000) if is_audited(url(number)))
    numbers = [*FREE[:6], audited, *FREE[6:60]]
    changed = [
        article(number, "<p>" + "Please subscribe. " * 20 + "</p>", foot=foot * 9, title="x") for number in numbers
    ]
    data = [Row(body, str(i), metadata={"url": url(i)}) for i, body in zip(numbers, changed, strict=True)]
    config = Config(engine=OWN[1], fallback="none", batch_size=1)
    found = list(steps.DripperExtractor(config, processes=processes, templates=rules)(data, 0, 1))

    sources = [row.metadata["source"] for row in found]
    assert sources[:7] == [*["template"] * 6, "truth"]
    assert set(sources[20:]) == {"truth"}
    assert all("MAIN all the text" in row.text for row in found[20:])
