"""Layouts, balance, the cost of tokens, and the commands that choose and measure pages."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

import scrapy_dripper.engines
import scrapy_dripper.extractor
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper_lab.annotation.prompt import TEMPLATE
from scrapy_dripper_lab.corpus.cost import Tokens, flops, savings
from tests.cli.conftest import Run
from tests.corpus.shards import record

pytest.importorskip("sklearn", reason="needs the extra [sample]")
pytest.importorskip("py3langid", reason="needs the extra [sample]")

from scrapy_dripper_lab.corpus.sampling import OTHER, balanced, clusters, layout, representatives, shares

counts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 30), max_size=8)
WORDS = "The river runs past the old stone bridge, and the market is held there on every second winter morning."
GERMAN = "Der Fluss fließt an der alten Brücke vorbei, und dort ist jeden zweiten Morgen Markt."


@given(counts, st.integers(0, 100))
def test_equal_shares(groups: dict[str, int], n: int) -> None:
    """Everything is distributed, and no group gets more than its count. Groups that could take more differ by at most
    one.
    """
    given_ = shares(groups, n)
    assert sum(given_.values()) == min(n, sum(groups.values()))
    assert all(given_[name] <= groups[name] for name in groups)
    most = max(given_.values(), default=0)
    assert all(given_[name] >= most - 1 for name in groups if given_[name] < groups[name])


def test_shares_by_weight() -> None:
    """The rest of a small group is distributed among the others by their weights. A group without a weight gets
    nothing.
    """
    assert shares({"a": 100, "b": 100, "c": 100}, 30, {"a": 2, "b": 1}) == {"a": 20, "b": 10, "c": 0}
    assert shares({"a": 5, "b": 100, "c": 100}, 30, {"a": 2, "b": 2, "c": 1}) == {"a": 5, "b": 17, "c": 8}
    assert shares({"a": 1, "b": 1}, 10) == {"a": 1, "b": 1}


@given(st.lists(st.tuples(*(st.sampled_from("abc"),) * 3), max_size=40), st.integers(0, 50))
def test_a_sample_is_a_sample(pages: list[tuple[str, str, str]], n: int) -> None:
    """No page is chosen twice, the number is as requested, and the same inputs give the same pages."""
    languages, formats, hosts = ([page[k] for page in pages] for k in range(3))
    chosen = balanced(languages, formats, hosts, n)
    assert len(set(chosen)) == len(chosen) == min(n, len(pages))
    assert chosen == sorted(chosen) == balanced(languages, formats, hosts, n)


def test_section_4_1_rare_languages_and_formats_are_not_rare_in_a_sample() -> None:
    """20 pages are chosen from 100 English articles on one host, 10 forums on ten hosts, and 10 German articles."""
    languages = ["en"] * 110 + ["de"] * 10
    formats = ["article"] * 100 + ["forum"] * 10 + ["article"] * 10
    hosts = ["one"] * 100 + [f"forum{n}" for n in range(10)] + ["de1", "de2"] * 5
    chosen = balanced(languages, formats, hosts, 20)
    assert Counter((languages[i], formats[i]) for i in chosen) == {
        ("en", "article"): 5,
        ("en", "forum"): 5,
        ("de", "article"): 10,
    }
    four = balanced(languages, formats, hosts, 4)
    assert len({hosts[i] for i in four}) == 4, "each host has a page before one has a second"
    paper = balanced(languages, formats, hosts, 20, {"en": 95, OTHER: 5})
    assert Counter(languages[i] for i in paper) == {"en": 19, "de": 1}


def test_section_5_2_equation_1_and_table_1() -> None:
    """The costs of the paper's table 1 follow from its lengths. The mean cost is above that of the mean lengths."""
    assert flops(0, 0) == 0
    assert flops(1, 0) == 28 * 1024 + 28 * 1024**2
    assert flops(2, 3) == 28 * 1024 * (4 + 6 + 9) + 28 * 1024**2 * 5
    assert flops(44705.9, 2303.7) == pytest.approx(6.18e13, rel=0.01)
    assert flops(44705.9, 2303.7) < 1.102e14
    assert flops(31987, 675) == pytest.approx(3.206e13, rel=0.05)


def test_savings_of_two_pages() -> None:
    pages = [Tokens("article", 1000, 100, 200, 50, 10), Tokens("forum", 3000, 300, 200, 150, 30)]
    without, with_, ratio = savings(pages).records()
    assert (without["input, mean"], without["output, median"]) == (2000, 100)
    assert (with_["input, mean"], with_["output, median"]) == (200, 20)
    assert without["FLOPs, mean"] == (flops(1000, 50) + flops(3000, 150)) / 2
    assert ratio["input, mean"] == 0.1


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that takes long blocks for main content."""

    class Engine(FakeEngine):
        def probability(self, text: str) -> float:
            return 0.9 if len(text.split()) > 8 else 0.1

    for module in (scrapy_dripper.engines, scrapy_dripper.extractor):
        monkeypatch.setattr(module, "load_engine", lambda config: Engine())


def page(number: int, host: str, shell: str = "div", content: str = WORDS) -> str:
    """Return a page with a structure of its host's."""
    menu = "".join(f"<{shell} class='item-{number}'><a href='/{n}'>Item {n}</a></{shell}>" for n in range(4))
    return (
        f"<html><head><link rel=canonical href='https://{host}/{number}'></head><body>{menu}"
        f"<main><h1>Page {number}</h1><p>{content}</p></main></body></html>"
    )


@pytest.fixture
def pages(here: Path) -> Path:
    """Ten pages of a host with one layout, two of another with two, one without content, one that is no page."""
    folder = Path("in")
    folder.mkdir()
    for number in range(10):
        (folder / f"a{number}.html").write_text(page(number, "a.example"), encoding="utf-8")
    (folder / "b0.html").write_text(page(0, "b.example"), encoding="utf-8")
    (folder / "b1.html").write_text(page(1, "b.example", "section"), encoding="utf-8")
    (folder / "c.html").write_text(page(0, "c.example", content="Nothing"), encoding="utf-8")
    (folder / "d.html").write_text("", encoding="utf-8")
    return folder


def test_layouts_of_a_host_are_clusters() -> None:
    """Pages that differ in their text and in the digits of names are alike; others are not."""
    roots = [html.fromstring(page(n, "a.example", shell)) for n, shell in enumerate(("div", "div", "section", "ul"))]
    found = [layout(root) for root in roots]
    assert clusters(found).tolist() == [0, 0, 1, 2]
    for one, other in ((0, 0), (3, 3), (0, 1)):
        assert (found[one] @ found[other].T)[0, 0] == pytest.approx(1)
    assert representatives(["h"] * 4, found) == {0: 2, 2: 1, 3: 1}
    assert len(representatives(["h", "i", "h", "i"], found)) == 4, "hosts have clusters of their own"
    assert representatives([], []) == {}


def test_the_similarity_is_weighted() -> None:
    """Half of the tags and none of the names in common: 0.7 * 1/2."""
    one, other = (
        layout(html.document_fromstring(f"<body><div class={name}></div><{tag}></{tag}>"))
        for name, tag in (("x", "p"), ("y", "h1"))
    )
    assert (one @ other.T)[0, 0] == pytest.approx(0.35)


def sampled() -> list[dict[str, object]]:
    """Return the lines about the pages that were chosen."""
    return [json.loads(line) for line in Path("out/sample.jsonl").read_text().splitlines()]


def test_a_sample_of_files(pages: Path, engine: None, run: Run) -> None:
    """One page stands for the ten that are alike, and what has no main content is left out."""
    done = run("corpus", "sample", pages, "-o", "out", "-n", "50")

    lines = sampled()
    assert [(line["host"], line["alike"]) for line in lines] == [("a.example", 10), ("b.example", 1), ("b.example", 1)]
    assert {line["language"] for line in lines} == {"en"}
    for line in lines:
        assert Path(f"out/{line['id']}.html").read_bytes() == Path(str(line["file"])).read_bytes()
    assert "4 layouts, 3 candidates with main content, 3 chosen" in done.err
    assert "en" in done.out


def test_a_sample_of_an_archive(here: Path, engine: None, run: Run) -> None:
    """Hosts are those of the records, and --languages has its share."""
    bodies = [page(n, "other.example", content=GERMAN if n % 2 else WORDS).encode() for n in range(8)]
    Path("crawl.warc").write_bytes(b"".join(record(f"https://h{n}.example/", body) for n, body in enumerate(bodies)))

    assert run("corpus", "sample", "*.warc", "-o", "out", "-n", "4", "--languages", "de=75,other=25").code == 0

    lines = sampled()
    assert Counter(line["language"] for line in lines) == {"de": 3, "en": 1}
    assert all(line["host"] == str(line["url"]).split("/")[2] for line in lines)


@pytest.mark.parametrize(
    ("options", "expected"), [([], {"en": 6, "de": 2}), (["--languages", "equal"], {"en": 4, "de": 4})]
)
def test_shares_of_languages(options: list[str], expected: dict[str, int], here: Path, engine: None, run: Run) -> None:
    """Of 12 English and 4 German hosts, 8 pages."""
    Path("in").mkdir()
    for n in range(16):
        text = page(0, f"h{n}.example", content=WORDS if n % 4 else GERMAN)
        Path(f"in/{n}.html").write_text(text, encoding="utf-8")

    assert run("corpus", "sample", "in", "-o", "out", "-n", "8", *options).code == 0
    assert Counter(line["language"] for line in sampled()) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "-o", "out"], "nowhere: not found"),
        (["in", "-o", "out", "--languages", "en"], "expected languages with shares"),
        (["in", "-o", "out", "--languages", "en=-1"], "expected languages with shares"),
        (["in", "-o", "in"], "is not empty"),
    ],
)
def test_a_sample_that_cannot_be_made(arguments: list[str], message: str, pages: Path, run: Run) -> None:
    done = run("corpus", "sample", *arguments)

    assert (done.code, message in done.err) == (2, True)


def test_a_missing_extra_is_named(pages: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setitem(sys.modules, "scrapy_dripper_lab.corpus.sampling", None)

    done = run("corpus", "sample", pages, "-o", "out")

    assert (done.code, "-e 'lab[sample]'" in done.err) == (2, True)


def test_lengths_of_pages(pages: Path, engine: None, run: Run) -> None:
    """Without a tokenizer, characters are counted; a page that the engine finds nothing on is left out."""
    done = run("corpus", "tokens", pages, "--json", "tokens.json")

    found = json.loads(Path("tokens.json").read_text())
    assert found["unit"] == "characters"
    every = found["lengths"][0]
    assert (every["page type"], every["pages"]) == ("all", 12)
    sizes = [len(path.read_text()) for path in pages.glob("[ab]*.html")]
    assert every["raw HTML"] == pytest.approx(sum(sizes) / 12)
    assert len(WORDS) < every["Markdown"] < every["Main-HTML"] < every["raw HTML"]
    without, with_, ratio = found["savings"]
    assert with_["FLOPs, mean"] < without["FLOPs, mean"]
    assert ratio["input, mean"] == pytest.approx(every["simplified HTML / raw"])
    (prompts,) = found["contexts"]
    assert prompts["mean"] == pytest.approx(
        with_["input, mean"] + with_["output, mean"] + len(TEMPLATE) - len("{html}")
    )
    assert (prompts["over 8,192"], prompts["over 32,768"]) == (0, 0)
    assert "2 pages without main content are left out" in done.err
    assert "pre-processing" in done.out


def test_lengths_in_tokens(pages: Path, engine: None, run: Run) -> None:
    """The tokenizer is a file, and never downloaded."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save("tokenizer.json")
    arguments = ("corpus", "tokens", pages, "--json", "tokens.json", "--tokenizer")

    assert run(*arguments, "tokenizer.json").code == 0
    found = json.loads(Path("tokens.json").read_text())
    assert found["lengths"][0]["Markdown"] == len(f"# Page 0 {WORDS}".split())
    wrong = run(*arguments, pages)
    assert (wrong.code, "cannot be read" in wrong.err) == (2, True)
