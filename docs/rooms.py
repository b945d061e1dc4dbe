"""Print the packages of ``scrapy_dripper`` as a Markdown table, from its imports: ``python docs/rooms.py``.

Needs import-linter, which brings grimp.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PACKAGE = "scrapy_dripper"


def layers() -> list[list[str]]:
    """Return the names on each line of the contract in pyproject.toml, from the top."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (block,) = re.findall(r"^layers = \[\n(.*?)^\]", text, re.S | re.M)
    return [line.split(" | ") for line in re.findall(r'"(.*?)"', block)]


def lines_of(name: str) -> list[int]:
    """Return the number of lines of each module."""
    path = ROOT / PACKAGE / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [len(file.read_text(encoding="utf-8").splitlines()) for file in files]


def main() -> None:
    """Print the table and the totals."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True)
    height = {name: -i for i, line in enumerate(layers()) for name in line}
    used: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            a, b = (one.split(".")[1] if "." in one else "" for one in (module, other))
            if a and b and a != b:
                used[a].add(b)
    up = sum(height[b] >= height[a] for a in used for b in used[a])
    print("| package or module | modules | lines | longest | imports |\n|---|---:|---:|---:|---|")
    for line in layers():
        for name in line:
            sizes = lines_of(name)
            imports = ", ".join(sorted(used[name], key=lambda other: (-height[other], other)))
            print(f"| `{name}` | {len(sizes)} | {sum(sizes):,} | {max(sizes)} | {imports} |")
    sizes = [size for line in layers() for name in line for size in lines_of(name)]
    print(f"\n{len(sizes)} modules with {sum(sizes):,} lines; imports of the same or a higher line: {up}")


if __name__ == "__main__":
    main()
