"""The round trip on a page of our own: the counts of its report, and the causes it gives for losses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "roundtrip.py"

SENTENCE = "The weaver winds the warp on the beam before the first pick, and ties it to the cloth beam again."
MARKDOWN = f"""{SENTENCE}

## Warp and weft

{SENTENCE} See [the tour](../tour.md) and `reed`.

- The shuttle goes through
- The reed beats it up

```python
def pick(n):
    return n + 1
```

| Yarn | Price |
| --- | --- |
| Wool | 12 |

![A loom](loom.png)

{SENTENCE}
"""
HTML = f"""<!DOCTYPE html><html><head><title>Weaving</title></head><body>
<nav><a href="/">Home</a> <a href="/about">About</a></nav>
<article><h1>Weaving</h1><p>{SENTENCE}</p>
<h2 id="warp">Warp and weft <a class="headerlink" href="#warp">¶</a></h2>
<p>{SENTENCE} See <a href="/tour/">the tour</a> and <code>reed</code>.</p>
<ul><li>The shuttle goes through</li><li>The reed beats it up</li></ul>
<pre><code class="language-python">def pick(n):
    return n + 1
</code></pre>
<table><thead><tr><th>Yarn</th><th>Price</th></tr></thead><tbody><tr><td>Wool</td><td>12</td></tr></tbody></table>
<p><img src="/img/loom.png" alt="A loom"></p>
<p>{SENTENCE}</p></article></body></html>
"""


def paired(folder: Path, html: str, markdown: str) -> Path:
    """Write a folder of one paired page, and one without a source."""
    page = {
        "id": "loom--site__1", "site": "loom--site", "kind": "content", "url": "https://loom.example/weaving/",
        "title": "Weaving", "markdown": markdown, "text": re.sub(r"[#|`*-]|\[|\]\(.*?\)", " ", markdown), "math": False,
    }  # fmt: skip
    (folder / "html").mkdir()
    (folder / "html" / "loom--site__1.html").write_text(html, encoding="utf-8")
    lines = [page, {"id": "loom--site__2", "site": "loom--site", "kind": "other", "url": "https://loom.example/"}]
    (folder / "pages.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder


def run(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark as a user does, with the peers that the plugin depends on."""
    command = [sys.executable, str(SCRIPT), "--data", str(data), "--output", str(data / "report.txt"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def figures(report: str, labels: str) -> dict[str, list[str]]:
    """Return the rows of the table whose header begins with some labels, by their first cell."""
    lines = report[report.index(f"\n{labels}") :].split("\n\n")[0].splitlines()
    return {cells[0]: cells[1:] for cells in (re.split(r"  +", line) for line in lines if line) if len(cells) > 2}


def test_all_of_a_page_comes_back(tmp_path: Path) -> None:
    """Each structure that page and source share is counted once, and ours keeps it; a peer has a row too."""
    done = run(paired(tmp_path, HTML, MARKDOWN), "--peers", "html2text")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == done.stdout
    found = figures(done.stdout, "the true labels")
    assert found["the true labels"] == ["there", "scrapy-dripper", "html2text"]
    expected = {
        "headings": "1", "fenced code": "1", "language of code": "1", "table cells": "4", "list items": "2",
        "links": "1", "images": "1", "inline code": "1",
    }  # fmt: skip
    assert {kind: found[kind][0] for kind in expected} == expected
    assert {found[kind][1] for kind in expected} == {"1.000 / 1.000"}
    assert found["fenced code"][2] == "0.000 / -"  # html2text indents it, which behind a list is text
    assert found["formulas"] == ["0", "- / -", "- / -"]


def test_what_a_page_does_not_show_cannot_come_back(tmp_path: Path) -> None:
    """Code that the page shows in bold is not counted, nor is what its renderer left out of a table."""
    html = HTML.replace("<code>reed</code>", "<b>reed</b>").replace("<td>12</td>", "<td></td>")
    done = run(paired(tmp_path, html, MARKDOWN), "--peers", "")

    assert done.returncode == 0, done.stderr
    found = figures(done.stdout, "the true labels")
    assert found["inline code"] == ["0", "- / -"]
    assert found["table cells"] == ["3", "1.000 / 1.000"]


def test_losses_are_blamed_on_labels_or_on_the_writer(tmp_path: Path) -> None:
    """An extra link in a block that the source has is an error of the writer."""
    html = HTML.replace("beam again.</p></article>", 'beam <a href="/again">again</a>.</p></article>')
    done = run(paired(tmp_path, html, MARKDOWN), "--peers", "")

    assert done.returncode == 0, done.stderr
    faults = done.stdout[done.stdout.index("What goes wrong in ours with the true labels") :]
    assert re.search(r"^links +more: as written +1$", faults, re.MULTILINE), faults


def test_missing_data_is_said_at_once(tmp_path: Path) -> None:
    """The message says how to get the data and which peers there are."""
    done = run(tmp_path, "--peers", "html2text")
    assert done.returncode == 1
    assert "tar -xf sites.tar.xz" in done.stderr

    done = run(paired(tmp_path, HTML, MARKDOWN), "--peers", "pandoc")
    assert done.returncode == 1
    assert "expected peers from html2text, trafilatura, markdownify, html-to-markdown (got pandoc)" in done.stderr


@pytest.mark.parametrize("limit", ["1", "5"])
def test_limit(tmp_path: Path, limit: str) -> None:
    """Pages without a source are never measured."""
    done = run(paired(tmp_path, HTML, MARKDOWN), "--peers", "", "--limit", limit)
    assert "1 pages of 1 sites." in done.stdout, done.stderr
