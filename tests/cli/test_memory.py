"""Commands that get too little memory."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_dripper.cli import main
from scrapy_dripper.cli.console import OUT_OF_MEMORY


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as on Linux")
@pytest.mark.parametrize(
    ("command", "kilobytes"),
    [
        ("extract page.html", 50_000),
        ("doctor", 200_000),
        *(
            (name, 300_000)
            for name in ("extract page.html", "extract page.html --jobs 1", "inspect page.html", "doctor")
        ),
    ],
)
def test_little_memory(tmp_path: Path, command: str, kilobytes: int) -> None:
    """A command with too little memory says so in one sentence, and not in a traceback."""
    (tmp_path / "page.html").write_text("<p>The tides rise and fall twice a day.</p>")
    script = f"ulimit -v {kilobytes}; exec {sys.executable} -m scrapy_dripper {command}"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    assert "Traceback" not in done.stdout + done.stderr
    if kilobytes < 300_000:
        assert done.returncode == 2
        assert re.fullmatch(r"scrapy-dripper: expected an address space of at least .*`ulimit -v`\n", done.stderr)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("x.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_memory_that_runs_out_later(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the lack of memory breaks, the command says what it is."""

    def fail(*_: object, **__: object) -> None:
        raise error

    (tmp_path / "page.html").write_text("<p>The tides rise and fall twice a day.</p>")
    monkeypatch.setattr("scrapy_dripper.cli.extract._extract", fail)
    assert main(["extract", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err == f"scrapy-dripper: {OUT_OF_MEMORY}\n"
