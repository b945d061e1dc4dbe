"""Seeds for fuzzing: test pages, pieces of the grammar and, if available, pieces of development pages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from fuzz.cases import HEADER
from fuzz.grammar import RULES, piece

ROOT = Path(__file__).parents[1]
GOLDEN = (ROOT / "tests" / "structured", ROOT / "tests" / "fuzz" / "regressions")
DEVELOPMENT = ROOT / ".cache" / "wcxb-dev" / "html"

PIECE = 3_000
"""Size of a piece of a page in bytes. Small inputs are tried faster, and have one or two features that can go wrong."""
PIECES = 1
"""Number of pieces of each development page."""
PIECES_OF_A_RULE = 4
"""Number of pieces from each rule of the grammar."""

_tag = re.compile(rb"<[a-zA-Z/]").search


def write_seeds(corpus: Path, chance: Random) -> int:
    """Write the seeds into a folder, and return their number."""
    corpus.mkdir(parents=True, exist_ok=True)
    written = 0
    for page in (*_golden(chance), *_grammar(chance), *_development(chance)):
        header = bytes(HEADER) if chance.random() < 0.3 else chance.randbytes(HEADER - 3) + bytes(3)
        (corpus / hashlib.sha1(page).hexdigest()).write_bytes(header + page)
        written += 1
    return written


def _golden(chance: Random) -> Iterator[bytes]:
    for folder in GOLDEN:
        for path in sorted(folder.rglob("*.html")):
            data = path.read_bytes()
            yield from [data] if len(data) < 2 * PIECE else _pieces(data, chance, 3)


def _grammar(chance: Random) -> Iterator[bytes]:
    for rule in RULES:
        for _ in range(PIECES_OF_A_RULE):
            yield b"<p>one two " + piece(chance, rule)


def _development(chance: Random) -> Iterator[bytes]:
    if DEVELOPMENT.is_dir():
        for path in sorted(DEVELOPMENT.glob("*.html")):
            yield from _pieces(path.read_bytes(), chance, PIECES)


def _pieces(data: bytes, chance: Random, n: int) -> Iterator[bytes]:
    """Yield pieces of a page that begin with a tag."""
    for start in islice(iter(lambda: chance.randrange(len(data) + 1), None), n):
        tag = _tag(data, start)
        begin = tag.start() if tag else 0
        yield data[begin : begin + chance.randrange(PIECE // 6, PIECE)]
