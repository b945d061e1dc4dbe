"""Damaged inputs of ``corpus sample``, ``tokens`` and ``clean``."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper_lab.cli.corpus_pages import PageInputs
from tests.cli.conftest import Run
from tests.corpus.zoo import AFTER, PLAIN


@pytest.mark.parametrize("damage", ["cut", "mixed"])
def test_damaged_gzip_among_the_inputs_of_a_corpus(damage: str, tides: Path, tmp_path: Path, capsys: Any) -> None:
    """As in `extract`, the file is named, and the others are read."""
    packed = gzip.compress(tides.read_bytes())
    (tmp_path / "bad.html.gz").write_bytes(packed[:-9] if damage == "cut" else packed[:20] + b"\xff" * 40)

    pages = list(PageInputs([str(tmp_path)], 1_000_000))
    assert [name for name, _ in pages] == [str(tides)]
    assert f"{tmp_path / 'bad.html.gz'}: " in capsys.readouterr().err


def test_a_damaged_archive_among_the_inputs_of_a_corpus(tides: Path, run: Run, capsys: Any) -> None:
    """It is read as far as possible, and named once with what is lost, and the exit code of the commands is 1."""
    Path("cut.warc").write_bytes(AFTER + PLAIN[:-40])
    Path("none.warc").write_bytes(b"no archive")

    inputs = PageInputs(["cut.warc", "none.warc", str(tides)], 1_000_000)
    assert [[Path(name).name for name, _ in inputs] for _ in range(2)] == [[tides.name, "cut.warc"]] * 2
    assert inputs.failed
    said = capsys.readouterr().err
    assert said.count("cut.warc: records that cannot be read: cut_off 1") == 1
    assert said.count("none.warc: records that cannot be read: broken_archive 1") == 1
    assert [run("corpus", "tokens", name).code for name in ("cut.warc", tides)] == [1, 0]


def test_only_the_folder_of_an_extraction_is_cleaned(tmp_path: Path, run: Run) -> None:
    for needed in ("datatrove", "pyarrow", "spacy"):
        pytest.importorskip(needed, reason="needs the extra [clean]")
    (tmp_path / "run.json").write_text('{"tasks": 1}')
    done = run("corpus", "clean", tmp_path)
    assert (done.code, "was not written by `scrapy-dripper corpus extract`" in done.err) == (2, True)
