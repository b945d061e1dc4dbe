"""Small inputs that expand to large ones: nested entities, compressed bodies and JSON that is nested deeply."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.cli.inputs import READ_FACTOR, Source, read_source
from scrapy_dripper.commands.frontier import records
from scrapy_dripper.learning import is_ours
from scrapy_dripper.rules import RuleError, read_rules
from tests.programs import python

resource = pytest.importorskip("resource")

TEXT = "<p>Words of the article: rivers, harbours, bridges and gardens.</p>"


def laughs(mark: str = "", levels: int = 12, system: str = "") -> str:
    """Return a document type in which each entity stands for ten of the one before."""
    tens = [f"{mark or '&'}l{i};" * 10 for i in range(levels - 1)]
    entities = "".join(f'<!ENTITY {mark} l{i} "{ten}">' for i, ten in enumerate(tens, 1))
    use = f"{mark}l{levels - 1};" if mark else ""
    return f'<!DOCTYPE html {system}[<!ENTITY {mark} l0 "laughter">{entities}{use}]>'


XHTML = '<?xml version="1.0"?>{}<html xmlns="http://www.w3.org/1999/xhtml"><body>{}<p>&l11;</p></body></html>'
PAGES = {
    "html": laughs() + f"<html><body>{TEXT}<p>&l11;</p>",
    "html in attributes": laughs() + f"<html><body>{TEXT}<p title='&l11;'><a href='&l11;'>&l11;</a>",
    "xhtml": XHTML.format(laughs(), TEXT),
    "parameter entities": XHTML.format(laughs("%"), TEXT),
    "with a DTD": XHTML.format(laughs(system='PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd" '), TEXT),
    "quadratic": f'<!DOCTYPE html [<!ENTITY a "{"a" * 100_000}">]><html><body>{TEXT}<p>' + "&a;" * 100_000,
    "itself": f'<!DOCTYPE html [<!ENTITY a "&b;"><!ENTITY b "&a;">]><html><body>{TEXT}<p>&a;</p>',
    "formula": f"{TEXT}<p><span class=MathJax data-mathml='{laughs()}<math><mi>&l11;</mi></math>'>x</span></p>",
    "deep recovery": laughs() + "<div>" * 3_000 + f"{TEXT}<p>&l11;",
}  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux to limit memory")
def test_entities_are_never_expanded(tmp_path: Path) -> None:
    """The source of a billion laughs stays as short as it is, in a process without memory for more."""
    for name, html in PAGES.items():
        (tmp_path / name).write_text(html)
    done = python("-m", "tests.security.bombs_process", tmp_path, OMP_NUM_THREADS="1", MALLOC_ARENA_MAX="2")
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout.splitlines()[-1])

    assert found.keys() == PAGES.keys()
    for name, answers in found.items():
        for length, text, error in answers:
            assert "rivers, harbours" in text, (name, error)
            assert length < 10 * len(PAGES[name]), name
            assert "laughterlaughter" not in text


# Bodies that are packed

ARTICLE = "<html><body><nav><a href=/>Home</a></nav><article><h1>How bees keep warm</h1>" + "".join(
    f"<p>In winter the bees of hive {i} hold close together, eat honey and shiver with the muscles of their wings. The "
    "heat is kept in the middle of the cluster, where the queen sits, and the bees outside change places with those "
    "inside so that none of them grows too cold.</p>"
    for i in range(6)
)


def packed(size: int) -> bytes:
    """Return the gzip of a number of bytes, without holding them in memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    megabyte = b"<p>words</p>" * 87_381
    pieces = [packer.compress(TEXT.encode())]
    pieces += [packer.compress(megabyte) for _ in range(size // len(megabyte))]
    return b"".join([*pieces, packer.flush()])


class Counted(gzip.GzipFile):
    """Counts what is unpacked."""

    unpacked = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        Counted.unpacked += len(data)
        return data


def test_a_gzipped_file_is_unpacked_up_to_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bomb is unpacked up to ten times ``--max-bytes``. No other input is lost."""
    (tmp_path / "bomb.html.gz").write_bytes(packed(30 << 20))
    (tmp_path / "many.html.gz").write_bytes(gzip.compress(b"<p>" + b"words " * 100_000) * 50)
    (tmp_path / "twice.html.gz").write_bytes(gzip.compress(packed(30 << 20)))
    (tmp_path / "cut.html.gz").write_bytes(gzip.compress(TEXT.encode())[:-12])
    (tmp_path / "good.html.gz").write_bytes(gzip.compress(ARTICLE.encode()))

    monkeypatch.setattr(gzip, "GzipFile", Counted)
    assert main(["extract", str(tmp_path), "--max-bytes", "1000000", "-f", "jsonl"]) == 1
    out, err = capsys.readouterr()
    assert Counted.unpacked < 21_000_000  # of two bombs of 30 million bytes

    assert [json.loads(line)["id"] for line in out.splitlines() if json.loads(line)["text"]] == ["good"]
    assert f"bomb.html.gz: over 10,000,000 bytes, {READ_FACTOR} times --max-bytes" in err
    assert "many.html.gz: over 10,000,000 bytes" in err
    assert "twice.html.gz: nothing extracted: not_html, the document is a gzip file" in err
    assert "cut.html.gz: " in err


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs an endless file")
def test_an_endless_file_is_read_up_to_a_limit() -> None:
    with pytest.raises(ValueError, match="over 1,000 bytes"):
        read_source(Source("/dev/zero", "zero"), 1_000)


Reader = tuple[str, Callable[[Path], Any], type[Exception] | None]

READERS: dict[str, Reader] = {
    "rules": ("rules.json", lambda folder: read_rules(folder / "rules.json"), RuleError),
    "a learnt model": ("manifest.json", is_ours, None),
    "the index of a site": ("index.jsonl", lambda folder: list(records(folder / "index.jsonl")), None),
}


DEEP = pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])


@DEEP
@pytest.mark.parametrize("kind", READERS)
def test_deep_json_is_damage(kind: str, deep: str, tmp_path: Path) -> None:
    """What only ignores damaged lines or folders ignores these, too."""
    check(READERS[kind], deep, tmp_path)


def check(reader: Reader, deep: str, tmp_path: Path) -> None:
    """Read a deep file. Its name is in the error, if there is one."""
    name, read, error = reader
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "1.html").write_text("<p>Text</p>")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(deep)

    if error is None:
        assert not read(tmp_path)
    else:
        with pytest.raises(error, match=name):
            read(tmp_path)
