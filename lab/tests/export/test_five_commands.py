"""The commands of docs/guides/gpu.md lead from published weights to a crawl. The tests use a small checkpoint.

pip is left out. On a machine without a GPU, the commands are run as they stand, for what they say then, and with
``--device cpu``, for what they do.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")  # the extra [export]
pytest.importorskip("onnxruntime_genai")

import onnxruntime

from lab.tests.export.published import NAME, TEMPLATE, write_package, write_published
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.base import EngineError
from scrapy_dripper.engines.qwen3.folder import load_prepared
from scrapy_dripper.engines.qwen3.profile import PROFILES
from scrapy_dripper.page import read
from scrapy_dripper_lab.export.reference import free_engine
from scrapy_dripper_lab.export.validate import PROBE_LABELS, probe_pages, stored_checks

ROOT = Path(__file__).parents[3]
GPU = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
SPIDER = """
import scrapy

class News(scrapy.Spider):
    name = "news"

    async def start(self):
        yield scrapy.Request({url!r})

    def parse(self, response):
        yield {{"main_html": None, "by": None}}
"""


def commands() -> list[str]:
    """Return the commands of the guide without comments, one per line."""
    text = (ROOT / "docs" / "guides" / "gpu.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"These steps lead to a crawl.*?```\n(.*?)```", text, re.S)
    return [line.partition("  #")[0].strip() for line in block.splitlines()]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the weights, the package that has their prompt, and a Scrapy project."""
    folder = tmp_path_factory.mktemp("machine")
    write_published(folder / NAME)
    write_package(folder / "packages")
    page = folder / "page.html"
    page.write_text("<h1>Tides</h1><p>The sea rises and falls twice a day.</p><p>So it does.</p>", encoding="utf-8")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    (folder / "settings.py").write_text(
        'SPIDER_MODULES = ["spiders"]\nADDONS = {"scrapy_dripper.Addon": 500}\nDRIPPER_META_FIELD = "by"\n'
        'DRIPPER_PROCESSES = 1\nDRIPPER_FALLBACK = "empty"\nTELNETCONSOLE_ENABLED = False\nDRIPPER_TIMEOUT = 300\n'
    )
    (folder / "spiders.py").write_text(SPIDER.format(url=page.as_uri()))
    return folder


def run(machine: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the guide other than pip, with the Python of the tests."""
    ours = command.rpartition(" && ")[2]
    words = shlex.split(ours.removeprefix("export/bin/"))
    module = {"scrapy-dripper": "scrapy_dripper", "scrapy": "scrapy"}[words[0]]
    path = os.pathsep.join([str(machine / "packages"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-m", module, *words[1:]],
        cwd=machine,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_there_are_five() -> None:
    """After the clone, two only install, and three also do something else. Every extra that they name exists."""
    clone, *found = commands()
    assert clone.startswith("git clone https://")
    assert len(found) == 5
    extras = set(re.findall(r"(\.|lab)\[(\S+?)\]", "\n".join(found)))
    assert extras == {(".", "cpu"), ("lab", "export"), (".", "gpu")}
    for folder, extra in extras:
        assert f"\n{extra} = [" in (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    assert [re.findall(r"scrapy-dripper export \S+|scrapy crawl", line) for line in found] == [
        [], [], [f"scrapy-dripper export {NAME}"], ["scrapy-dripper export --check"], ["scrapy crawl"],
    ]  # fmt: skip


@pytest.mark.skipif(GPU, reason="there is a GPU")
def test_without_a_gpu_each_says_so(machine: Path) -> None:
    """The graph can be written on any machine. Checking it, and crawling, stop with one sentence on what to install."""
    export, check, crawl = (line.replace("prepared/", "for-gpu/") for line in commands()[3:])
    done = run(machine, export)
    assert done.returncode == 0, done.stderr
    assert "asked raw, its likeliest format is json" in done.stderr
    assert "not compared yet: on the target machine, run 'scrapy-dripper export --check" in done.stderr
    prepared = load_prepared(machine / "for-gpu")
    assert (prepared.name, prepared.device, prepared.dtype) == ("MinerU-HTML", "cuda", "float16")
    assert (prepared.prompt, prepared.answer, prepared.profile) == (TEMPLATE, "json", "v1.0")
    assert prepared.source["manner"]["way"] == "raw"
    assert -0.5 < prepared.source["manner"]["likelihood"] < 0
    assert stored_checks(prepared)
    assert "comparison" not in prepared.source

    for command in (check, crawl):
        done = run(machine, command)
        assert done.returncode != 0 or command is crawl
        said = [line for line in done.stderr.splitlines() if "CUDAExecutionProvider was asked for" in line]
        assert "the package is onnxruntime, not onnxruntime-gpu: run 'pip uninstall" in said[-1]
        # Scrapy logs a traceback above the sentence.
        assert command is crawl or (len(said) == 1 and "Traceback" not in done.stderr)


def test_to_a_crawl(machine: Path) -> None:
    """The graph gives the same labels as the checkpoint, and the items of the crawl have the labelled content."""
    export, check, crawl = commands()[3:]
    done = run(machine, export.replace("--device cuda --no-validate", "--device cpu"))
    assert done.returncode == 0, done.stderr
    assert "labels are the same" in done.stderr
    done = run(machine, check)
    assert done.returncode == 0, done.stderr
    assert "labels are the same" in done.stderr
    done = run(machine, f"{crawl} -O items.json")
    assert done.returncode == 0, done.stderr

    (item,) = json.loads((machine / "items.json").read_text(encoding="utf-8"))
    assert item["by"]["source"] == "qwen3"
    assert item["by"]["blocks"] == 3


def test_section_5_4_free_against_constrained_decoding(machine: Path) -> None:
    """One command measures a model with the grammar, and its checkpoint without it (Dripper paper, figure 2).

    The checkpoint was taught two of the pages, and to end its answer, so that both give the same labels there. On
    another page they need not: its free answer may name no labels.
    """
    export = commands()[3]
    if not (machine / "prepared").is_dir():
        done = run(machine, export.replace("--device cuda --no-validate", "--device cpu"))
        assert done.returncode == 0, done.stderr
    taught = ["".join(re.sub(' _item_id="\\d+"', "", block) for block in page) for page in probe_pages()[:2]]
    pages = [*taught, "<p>Quite another page, about the gardens behind the house.</p>"]
    for part in ("html", "ground-truth"):
        (machine / "data" / part).mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(pages):
        (machine / "data" / "html" / f"p{number}.html").write_text(f"<body>{page}</body>", encoding="utf-8")
        truth = json.dumps({"url": "", "ground_truth": {"main_content": "Tides"}})
        (machine / "data" / "ground-truth" / f"p{number}.json").write_text(truth)
    command = "scrapy-dripper evaluate data --engine qwen3 --model prepared --fallback empty --jobs 1 --json out.json"
    done = run(machine, f"{command} --free {NAME}")
    assert done.returncode == 0, done.stderr

    found = json.loads((machine / "out.json").read_text(encoding="utf-8"))
    by_system = {name: [row for row in found["pages"] if row["system"] == name] for name in ("ours", "free")}
    for ours, free in list(zip(*by_system.values(), strict=True))[: len(taught)]:
        assert ours["source"] == free["source"] == "qwen3"
        assert all(ours[name] == free[name] for name in ours if name not in ("system", "seconds"))
    config = Config(engine="qwen3", model=str(machine / "prepared"))
    constrained = load_engine(config)
    for page, expected in zip(taught, PROBE_LABELS, strict=False):
        read_page = read(Document(f"<body>{page}</body>"), config, PROFILES["v1.0"])
        for engine in (constrained, free_engine(config, machine / NAME)):
            (labels,) = engine.label([read_page])
            assert not isinstance(labels, EngineError)
            assert "".join("01"[int(one)] for one in labels.main) == expected
    assert "Ours minus each peer, paired by page" in found["tables"]
    assert {row["system"].split(":")[0] for row in found["tables"]["Who answered"]} == {"ours", "free"}

    shutil.copytree(machine / NAME, machine / "other")
    (machine / "other" / "config.json").write_text("{}")
    done = run(machine, f"{command} --free other")
    assert done.returncode == 2
    assert "prepared was not exported from other: name its checkpoint" in done.stderr
