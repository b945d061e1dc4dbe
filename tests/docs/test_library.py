"""docs/guides/library.md lists all public names, and its examples run, such as an engine wherever one can be named;
and the records of docs/guides/rag.md."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import scrapy_dripper
from scrapy_dripper import Config, Extractor, FallbackReason, ModelError
from scrapy_dripper.derived import plain_chunks
from scrapy_dripper.output.chunks import chunks
from scrapy_dripper.output.content_list import content_list
from scrapy_dripper.page.parse import parse

TEXT = (Path(__file__).parents[2] / "docs" / "guides" / "library.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.S))
ENGINE = "long_blocks.LongBlocks"
PAGE = (
    "<nav><a href='/'>Home</a> <a href='/news'>News of the day and of the week</a></nav>"
    f"<article><p>{'The tide comes in twice a day. ' * 5}</p></article><footer>Imprint</footer>"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The documented files in a folder that modules are imported from."""
    for name, code in FILES.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("long_blocks", None)


def test_every_public_name_is_documented() -> None:
    """The table has these names and no others. Each is listed by ``dir``, and imported when it is asked for."""
    table = TEXT[: TEXT.index("```")]

    assert set(re.findall(r"(?:^\| |, )`([A-Za-z]\w+)`", re.sub(r"(?m)\|[^|]*\|$", "", table), re.M)) == set(
        scrapy_dripper.__all__
    )
    assert set(scrapy_dripper.__all__) <= set(dir(scrapy_dripper))
    assert all(getattr(scrapy_dripper, name) is not None for name in scrapy_dripper.__all__)


@pytest.mark.parametrize("name", ["one_page.py", "extract.py", "plain_words.py"])
def test_the_first_examples_run(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """They print the page in Markdown."""
    runpy.run_path(str(folder / name))

    assert "The rise and fall of the sea." in capsys.readouterr().out


def test_an_extractor_takes_a_dotted_path(folder: Path) -> None:
    """A page falls back with the reason if it exceeds the engine's limits, or if the engine cannot label it."""
    extractor = runpy.run_path(str(folder / "with_an_engine.py"))["extractor"]

    good, short, long = extractor.extract([PAGE, "<p>Hello</p>", "<p>A line</p>" * 6_000])

    assert (good.source, good.labels) == ("long_blocks", (False, True, False))
    assert good.text.startswith("The tide comes in")
    assert (short.fallback_reason, short.error) == (FallbackReason.ENGINE_ERROR, "too little text to tell")
    assert long.fallback_reason is FallbackReason.OVERSIZE


@pytest.mark.usefixtures("folder")
def test_an_engine_refuses_options_with_advice() -> None:
    with pytest.raises(ModelError, match="leave DRIPPER_MODEL out"):
        Extractor(Config(model="/srv/model"), engine=ENGINE)


# ---------------------------------------------------------------------- services
class FastAPI:
    """Stands in for FastAPI, which is not required by anything here."""

    def post(self, path: str) -> Callable[[Any], Any]:
        return lambda function: function


class Request:
    """A request with a page as its body."""

    async def body(self) -> bytes:
        return b"<h1>Tides</h1><p>The tide comes in twice a day, and goes out again.</p>"


def test_the_service_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop stays free meanwhile, and JSON can hold the answer."""
    fastapi = ModuleType("fastapi")
    fastapi.FastAPI, fastapi.Request = FastAPI, Request  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastapi", fastapi)
    extract = runpy.run_path(str(folder / "service.py"))["extract"]

    async def both() -> list[Any]:
        return await asyncio.gather(extract(Request()), extract(Request(), "https://example.org/"))

    first, second = json.loads(json.dumps(asyncio.run(both())))

    assert first == second
    assert first["markdown"].startswith("# Tides\n\nThe tide comes in twice a day")


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "rag.md"


def test_a_record_is_of_a_chunk_with_its_path(tmp_path: Path) -> None:
    """An item without chunks has none."""
    html = "<h1>Backup</h1><p>Copy all of it, every night.</p><h2 id=again>Restore</h2><p>Copy all of it back.</p>"
    found = chunks(content_list(parse(html)), "https://e.org/", size=50)
    lines = [{"url": "https://e.org/", "chunks": plain_chunks(found)}, {"url": "https://e.org/empty"}]
    feed = tmp_path / "pages.jsonl"
    feed.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    (code,) = re.findall(r"```python\n(# records.py.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    names: dict[str, Any] = {}
    exec(code, names)

    made = [tuple(record.values()) for record in names["records"](feed)]

    first = ("https://e.org/#0", "https://e.org/", "Backup\n\n# Backup\n\nCopy all of it, every night.")
    second = ("https://e.org/#1", "https://e.org/#again", "Backup > Restore\n\n## Restore\n\nCopy all of it back.")
    assert made == [first, second]
