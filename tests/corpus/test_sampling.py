"""Layouts, balance, the cost of tokens, and the commands that choose and measure pages."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

import scrapy_dripper.engines
import scrapy_dripper.extractor
from scrapy_dripper.cli import main
from scrapy_dripper.config import Config
from scrapy_dripper.testing import FakeEngine
from scrapy_dripper.workshop.annotation.prompt import TEMPLATE
from scrapy_dripper.workshop.corpus.cost import Tokens, flops, savings
from tests.corpus.shards import record

pytest.importorskip("sklearn", reason="needs the extra [sample]")
pytest.importorskip("py3langid", reason="needs the extra [sample]")

from scrapy_dripper.workshop.corpus.sampling import OTHER, balanced, clusters, layout, representatives, shares

counts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 30), max_size=8)
WORDS = "The river runs past the old stone bridge, and the market is held there on every second winter morning."


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

    def load(config: Config) -> FakeEngine:
        return Engine()

    monkeypatch.setattr(scrapy_dripper.engines, "load_engine", load)
    monkeypatch.setattr(scrapy_dripper.extractor, "load_engine", load)


def page(number: int, host: str, shell: str = "div", content: str = WORDS) -> str:
    """Return a page with a structure of its host's."""
    menu = "".join(f"<{shell} class='item-{number}'><a href='/{n}'>Item {n}</a></{shell}>" for n in range(4))
    return (
        f"<html><head><link rel=canonical href='https://{host}/{number}'></head><body>{menu}"
        f"<main><h1>Page {number}</h1><p>{content}</p></main></body></html>"
    )


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Ten pages of a host with one layout, two of another with two, one without content, one that is no page."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(10):
        (folder / f"a{number}.html").write_text(page(number, "a.example"), encoding="utf-8")
    (folder / "b0.html").write_text(page(0, "b.example"), encoding="utf-8")
    (folder / "b1.html").write_text(page(1, "b.example", "section"), encoding="utf-8")
    (folder / "c.html").write_text(page(0, "c.example", content="Nothing"), encoding="utf-8")
    (folder / "d.html").write_text("", encoding="utf-8")
    return folder


class TestSample:
    """``scrapy-dripper corpus sample``."""

    def test_layouts_of_a_host_are_clusters(self) -> None:
        """Pages that differ in their text and in the digits of names are alike; others are not."""
        roots = [
            html.fromstring(page(n, "a.example", shell)) for n, shell in enumerate(("div", "div", "section", "ul"))
        ]
        found = [layout(root) for root in roots]
        assert clusters(found).tolist() == [0, 0, 1, 2]
        for one, other in ((0, 0), (3, 3), (0, 1)):
            assert (found[one] @ found[other].T)[0, 0] == pytest.approx(1)
        assert representatives(["h"] * 4, found) == {0: 2, 2: 1, 3: 1}
        assert len(representatives(["h", "i", "h", "i"], found)) == 4, "hosts have clusters of their own"
        assert representatives([], []) == {}

    def test_the_similarity_is_weighted(self) -> None:
        """Half of the tags and none of the names in common: 0.7 * 1/2."""
        one, other = (
            layout(html.document_fromstring(f"<body><div class={name}></div><{tag}></{tag}>"))
            for name, tag in (("x", "p"), ("y", "h1"))
        )
        assert (one @ other.T)[0, 0] == pytest.approx(0.35)

    def test_pages_of_files(self, pages: Path, tmp_path: Path, engine: None, capsys: Any) -> None:
        """One page stands for the ten that are alike, and what has no main content is left out."""
        out = tmp_path / "out"
        assert main(["corpus", "sample", str(pages), "-o", str(out), "-n", "50"]) == 0

        printed, said = capsys.readouterr()
        lines = [json.loads(line) for line in (out / "sample.jsonl").read_text().splitlines()]
        assert [(line["host"], line["alike"]) for line in lines] == [
            ("a.example", 10),
            ("b.example", 1),
            ("b.example", 1),
        ]
        assert {line["language"] for line in lines} == {"en"}
        for line in lines:
            assert (out / f"{line['id']}.html").read_bytes() == Path(line["file"]).read_bytes()
        assert "4 layouts, 3 candidates with main content, 3 chosen" in said
        assert "en" in printed

    def test_pages_of_an_archive(self, tmp_path: Path, engine: None, capsys: Any) -> None:
        """Hosts are those of the records, and --languages has its share."""
        texts = {
            "en": WORDS,
            "de": "Der Fluss fließt an der alten Brücke vorbei, und dort ist jeden zweiten Morgen Markt.",
        }
        archive = b"".join(
            record(f"https://h{n}.example/", page(n, "other.example", content=texts["de" if n % 2 else "en"]).encode())
            for n in range(8)
        )
        (tmp_path / "crawl.warc").write_bytes(archive)
        out = tmp_path / "out"
        assert (
            main(
                [
                    "corpus",
                    "sample",
                    str(tmp_path / "*.warc"),
                    "-o",
                    str(out),
                    "-n",
                    "4",
                    "--languages",
                    "de=75,other=25",
                ]
            )
            == 0
        )

        lines = [json.loads(line) for line in (out / "sample.jsonl").read_text().splitlines()]
        assert Counter(line["language"] for line in lines) == {"de": 3, "en": 1}
        assert all(line["host"] == line["url"].split("/")[2] for line in lines)

    @pytest.mark.parametrize(
        ("options", "expected"), [([], {"en": 6, "de": 2}), (["--languages", "equal"], {"en": 4, "de": 4})]
    )
    def test_shares_of_languages(
        self, options: list[str], expected: dict[str, int], tmp_path: Path, engine: None
    ) -> None:
        """Of 12 English and 4 German hosts, 8 pages."""
        german = "Der Fluss fließt an der alten Brücke vorbei, und dort ist jeden zweiten Morgen Markt."
        folder = tmp_path / "in"
        folder.mkdir()
        for n in range(16):
            text = page(0, f"h{n}.example", content=WORDS if n % 4 else german)
            (folder / f"{n}.html").write_text(text, encoding="utf-8")
        assert main(["corpus", "sample", str(folder), "-o", str(tmp_path / "out"), "-n", "8", *options]) == 0
        lines = (tmp_path / "out" / "sample.jsonl").read_text().splitlines()
        assert Counter(json.loads(line)["language"] for line in lines) == expected

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nowhere"], "nowhere: not found"),
            (["IN", "--languages", "en"], "expected languages with shares"),
            (["IN", "--languages", "en=-1"], "expected languages with shares"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], message: str, pages: Path, tmp_path: Path, capsys: Any) -> None:
        given_ = [str(pages) if one == "IN" else one for one in arguments]
        try:
            code = main(["corpus", "sample", *given_, "-o", str(tmp_path / "out")])
        except SystemExit as error:
            code = error.code  # type: ignore[assignment]
        assert code == 2
        assert message in capsys.readouterr().err

    def test_a_missing_extra_is_named(
        self, pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        monkeypatch.setitem(sys.modules, "scrapy_dripper.workshop.corpus.sampling", None)
        assert main(["corpus", "sample", str(pages), "-o", str(tmp_path / "out")]) == 2
        assert "pip install 'scrapy-dripper[sample]'" in capsys.readouterr().err

    def test_a_folder_with_files_is_not_touched(self, pages: Path, capsys: Any) -> None:
        assert main(["corpus", "sample", str(pages), "-o", str(pages)]) == 2
        assert "is not empty" in capsys.readouterr().err


def test_lengths_of_pages(pages: Path, tmp_path: Path, engine: None, capsys: Any) -> None:
    """Without a tokenizer, characters are counted; a page that the engine finds nothing on is left out."""
    out = tmp_path / "tokens.json"
    assert main(["corpus", "tokens", str(pages), "--json", str(out)]) == 0

    printed, said = capsys.readouterr()
    found = json.loads(out.read_text())
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
    assert prompts["mean"] == pytest.approx(with_["input, mean"] + with_["output, mean"] + len(TEMPLATE))
    assert (prompts["over 8,192"], prompts["over 32,768"]) == (0, 0)
    assert "2 pages without main content are left out" in said
    assert "pre-processing" in printed


def test_lengths_in_tokens(pages: Path, tmp_path: Path, engine: None, capsys: Any) -> None:
    """The tokenizer is a file, and never downloaded."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    out = tmp_path / "tokens.json"
    arguments = ["corpus", "tokens", str(pages), "--json", str(out), "--tokenizer"]
    assert main([*arguments, str(tmp_path / "tokenizer.json")]) == 0
    assert json.loads(out.read_text())["lengths"][0]["Markdown"] == len(f"# Page 0 {WORDS}".split())
    assert main([*arguments, str(pages)]) == 2
    assert "cannot be read" in capsys.readouterr().err
