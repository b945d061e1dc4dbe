"""What goes through the child process, and that it comes out the same."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from children import ARTICLE, DANGEROUS, SECONDS, SENTENCE, SMALL, Make, pid_of

from scrapy_dripper.config import Config
from scrapy_dripper.extraction import Document, Extraction, FallbackReason
from scrapy_dripper.page import PageError, plant
from scrapy_dripper.sandbox import Sandbox, SandboxError, process
from scrapy_dripper.sandbox.child import serve
from scrapy_dripper.sandbox.messages import receive, send
from scrapy_dripper.sandbox.trees import to_json

pytestmark = pytest.mark.skipif(os.name != "posix", reason="looks at processes as POSIX has them")


def test_only_dangerous_pages_go_there(extractor: Make) -> None:
    """The others do not even start it."""
    one = extractor()
    assert one.extract([SMALL])[0].text == "one\ntwo"
    assert pid_of(one) is None

    assert SENTENCE.strip() in (one.extract([DANGEROUS])[0].text or "")
    assert pid_of(one) is not None


def test_it_is_reused(extractor: Make) -> None:
    one = extractor(sandbox="always")
    first = pid_of(one)

    found = one.extract([SMALL, "", b"%PDF-1.4", DANGEROUS, b"<p>caf\xe9 au lait", SMALL])

    assert [x.fallback_reason for x in found] == [None, "empty_body", "not_html", None, None, None]
    assert found[4].text == "café au lait"
    assert pid_of(one) == first


def test_never_means_never(extractor: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_MAIN", Path("no-such-file"))
    one = extractor(sandbox="never")

    assert one.extract([DANGEROUS])[0].fallback_reason is None
    assert pid_of(one) is None


def without_time(extraction: Extraction) -> dict[str, Any]:
    values = {name: getattr(extraction, name) for name in Extraction.__slots__}
    return values | {"milliseconds": 0}


@pytest.mark.parametrize("fallback", ["trafilatura", "html"])
@pytest.mark.parametrize("options", [{}, {"content_types": ("paragraph",), "links": "drop", "markdown": "html2text"}])
def test_a_fallback_gives_the_same_there(extractor: Make, fallback: str, options: dict[str, Any]) -> None:
    """And so does metadata, which Trafilatura finds too."""
    html = f"<html lang=de><title>Tides</title>{ARTICLE}"
    found = []
    for sandbox in ("never", "always"):
        one = extractor(sandbox=sandbox, fallback=fallback, max_blocks=1, metadata_field="metadata", **options)
        found.append(without_time(one.extract([Document(html, "http://example.com/")])[0]))

    assert found[0] == found[1]
    assert found[0]["source"] == f"fallback:{fallback}"
    assert found[0]["metadata"].language == "de"


def test_a_callable_stays_in_the_crawl(extractor: Make) -> None:
    """It is the user's own code, and need not be importable anywhere else."""
    seen = []
    one = extractor(sandbox="always", max_blocks=1, fallback=lambda html, url: seen.append(os.getpid()) or "<p>mine")

    assert one.extract([ARTICLE])[0].text == "mine"
    assert seen == [os.getpid()]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_nodes": 50}, "DRIPPER_MAX_NODES = 50"),
        ({"max_bytes": 50}, "DRIPPER_MAX_BYTES = 50"),
        ({"max_blocks": 2}, "DRIPPER_MAX_BLOCKS = 2"),
    ],
)
def test_the_limits_hold_there(extractor: Make, options: dict[str, int], error: str) -> None:
    found = []
    for sandbox in ("never", "always"):
        one = extractor(sandbox=sandbox, fallback="empty", **options)
        found.append(one.extract([ARTICLE + "<i></i>" * 500])[0])

    assert found[0].error == found[1].error
    assert error in (found[0].error or "")
    assert found[1].fallback_reason is FallbackReason.OVERSIZE


def test_the_profile_and_flat_trees_are_the_same_there() -> None:
    """What is asked of the child is what would have been done here."""
    sandbox = Sandbox(Config(sandbox="always", timeout=SECONDS))
    html = "<header><div>x</header>" + "<div>" * 600 + "y"
    for profile, flat in (("v1.0", False), ("native", False), ("native", True)):
        here, _ = plant(Document(html), Config(), profile, flat)
        there, _ = sandbox.plant(Document(html), Config(), profile, flat)
        assert to_json(there) == to_json(here)
    sandbox.close()


def served(*requests: tuple[dict[str, Any], bytes]) -> list[tuple[dict[str, Any], bytes]]:
    """Return what the child answers to requests."""
    asked, answered = io.BytesIO(), io.BytesIO()
    for header, body in requests:
        send(asked, {"seconds": 0, "url": "", "charset": None, "text": False, "config": {}, **header}, body)
    asked.seek(0)
    serve(asked, answered)
    answered.seek(0)
    answers = []
    while answered.tell() < len(answered.getvalue()):
        answers.append(receive(answered, 1 << 20))
    assert answers[0] == ({"ready": True}, b"")
    return answers[1:]


def test_every_request_has_an_answer() -> None:
    """A tree, a fallback, metadata; a page that is none; and what is no request, which is an error and not the end."""
    tree = {"do": "plant", "profile": "native", "flat": False}
    answers = served(
        (tree, b"<p>x"),
        (tree, b""),
        ({"do": "fall_back", "reason": "oversize", "config": {"fallback": "html"}}, b"<p>x"),
        ({"do": "metadata"}, b"<title>x"),
        ({"do": "nothing"}, b""),
        ({**tree, "config": {"max_bytes": 0}}, b""),
    )
    assert [body for _, body in answers[:2]] == [
        b'[[-1,"html",0,0,0],[0,"body",0,0,0],[1,"p",0,"x",0]]',
        b"",
    ]
    assert answers[1][0]["reason"] == "empty_body"
    assert json.loads(answers[2][1])["text"] == "x"
    assert json.loads(answers[3][1])["title"] == "x"
    assert "KeyError" in answers[4][0]["error"]
    assert "DRIPPER_MAX_BYTES" in answers[5][0]["error"]


def test_running_out_of_memory_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant(*args: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("scrapy_dripper.sandbox.child.plant", plant)
    [(answer, _)] = served(({"do": "plant", "profile": "native", "flat": False}, b"<p>x"))
    assert answer["memory"] is True


def test_pages_that_are_none_raise_as_without_it() -> None:
    """A PageError that is no SandboxError: the child is well, and the fallback gets the whole document."""
    sandbox = Sandbox(Config(sandbox="always", timeout=SECONDS))
    try:
        with pytest.raises(PageError, match="a PDF") as caught:
            sandbox.plant(Document(b"%PDF-1.4"), Config())
        assert not isinstance(caught.value, SandboxError)
        assert caught.value.reason is FallbackReason.NOT_HTML
    finally:
        sandbox.close()


def test_the_child_needs_no_scrapy() -> None:
    """It starts in the time that lxml and numpy take."""
    code = "import sys, scrapy_dripper.sandbox.child as c; print(sorted({'scrapy', 'onnxruntime'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_front_door_opens_all_the_same() -> None:
    """The names of the package are there when they are asked for, and no others."""
    code = (
        "import scrapy_dripper as front\n"
        "from scrapy_dripper import *\n"
        "assert Extractor is front.Extractor and Addon.__module__ == 'scrapy_dripper.addon'\n"
        "assert set(front.__all__) <= set(dir(front))\n"
        "print(all(getattr(front, name).__name__ == name for name in front.__all__), hasattr(front, 'nothing'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
