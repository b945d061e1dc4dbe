"""The pages of the benchmarks: a fixed sample of the development data."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

DEFAULT = Path(__file__).parents[1] / ".cache" / "wcxb-dev" / "html"


@dataclass(frozen=True, slots=True)
class Sample:
    """One HTML file and its page type, which is ``page`` if the data have no ground truth."""

    path: Path
    kind: str


def sample(folder: Path, size: int, seed: int) -> tuple[list[Sample], list[Sample]]:
    """Return a sample of a folder's pages, with every page type by its share, and the rest, in a fixed random order.

    Raise SystemExit, saying how to get the data, if the folder has no pages.
    """
    if size < 1:
        raise SystemExit(f"--pages must be a whole number of at least 1 (got {size})")
    files = sorted(folder.glob("*.html"))
    if not files:
        raise SystemExit(
            f"{folder} has no *.html files. The benchmarks run on the development data: unpack its archive with "
            "'mkdir -p .cache && tar -xf wcxb-dev.tar.xz -C .cache', or name a folder of pages with --data."
        )
    chance = random.Random(seed)
    chance.shuffle(files)
    pages = sorted((Sample(path, _kind(path)) for path in files), key=lambda page: page.kind)
    size = min(size, len(pages))
    taken = {index * len(pages) // size for index in range(size)}
    chosen = [page for index, page in enumerate(pages) if index in taken]
    rest = [page for index, page in enumerate(pages) if index not in taken]
    chance.shuffle(chosen)
    chance.shuffle(rest)
    return chosen, rest


def _kind(path: Path) -> str:
    truth = path.parent.parent / "ground-truth" / f"{path.stem}.json"
    if not truth.is_file():
        return "page"
    return str(json.loads(truth.read_text(encoding="utf-8"))["_internal"]["page_type"]["primary"])
