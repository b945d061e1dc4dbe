"""Write a task as a self-contained web page, in which a person clicks main blocks and saves the answer as a file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from typing import Any

from scrapy_dripper.workshop.annotation.listing import Line
from scrapy_dripper.workshop.annotation.prompt import RULES

_STYLE = """\
:root { color-scheme: light dark; --main: #1a7f37; --line: #8884; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 0 1rem 4rem; }
h1 { font-size: 1.25rem; margin: 1rem 0 .25rem; overflow-wrap: anywhere; }
.from { opacity: .7; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; font: inherit; }
.bar { position: sticky; top: 0; z-index: 1; display: flex; gap: 1rem; align-items: center; padding: .6rem 0;
  background: Canvas; border-bottom: 1px solid var(--line); }
.bar span { margin-right: auto; }
button { font: inherit; padding: .3rem .9rem; cursor: pointer; }
ol { list-style: none; margin: 0; padding: 0; }
label { display: grid; grid-template-columns: 1.4rem 3rem 1fr; gap: .3rem; padding: .35rem .5rem; cursor: pointer;
  user-select: none; border-bottom: 1px solid var(--line); border-left: 4px solid transparent; }
label:hover { background: #8882; }
label:has(:checked) { border-left-color: var(--main); background: color-mix(in srgb, var(--main) 14%, transparent); }
label:has(:focus-visible) { outline: 2px solid Highlight; }
.id { text-align: right; padding-right: .5rem; opacity: .6; font-variant-numeric: tabular-nums; }
.text { overflow-wrap: anywhere; }
.hints { display: block; font-size: .8rem; opacity: .65; }
"""

_SCRIPT = """\
"use strict";
const task = JSON.parse(document.getElementById("task").textContent);
const boxes = [...document.querySelectorAll("input[type=checkbox]")];
const place = "scrapy-dripper:" + task.sha256;
let last = -1;

function count() {
  const main = boxes.filter(box => box.checked);
  document.getElementById("count").textContent = `${main.length} of ${boxes.length} blocks are main`;
  try { localStorage.setItem(place, main.map(box => box.value).join(" ")); } catch { /* private window */ }
}

function clicked(i, shift) {
  if (shift && last >= 0) {
    const [from, to] = last < i ? [last, i] : [i, last];
    for (let k = from; k <= to; k++) boxes[k].checked = boxes[i].checked;
  }
  last = i;
  count();
}

boxes.forEach((box, i) => {
  box.addEventListener("click", event => { event.stopPropagation(); clicked(i, event.shiftKey); });
  box.parentNode.addEventListener("click", event => {
    if (!event.shiftKey) return;
    event.preventDefault(); // Some browsers pass a shift-click on a label on to its box, others do not.
    box.checked = !box.checked;
    clicked(i, true);
  });
});

document.getElementById("save").addEventListener("click", () => {
  const none = !boxes.some(box => box.checked);
  if (none && !confirm("No block is main: does this page have no main content?")) return;
  const labels = Object.fromEntries(boxes.map(box => [box.value, box.checked ? "main" : "other"]));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify({ task, labels }, null, 1)], { type: "application/json" }));
  link.download = task.id + ".answer.json";
  link.click();
  URL.revokeObjectURL(link.href);
});

try {
  const main = new Set((localStorage.getItem(place) || "").split(" "));
  for (const box of boxes) box.checked = main.has(box.value);
} catch { /* private window */ }
count();
"""


def web_task(task: dict[str, Any], lines: Sequence[Line]) -> str:
    """Return the page. The labelled page's content is only text in it, and only our script and style are allowed."""
    policy = f"default-src 'none'; script-src '{_hash(_SCRIPT)}'; style-src '{_hash(_STYLE)}'; base-uri 'none'; "
    policy += "form-action 'none'"
    title = escape(task["title"] or task["id"])
    # "<" is escaped, so the text cannot contain a closing tag or the beginning of a comment.
    data = json.dumps(task).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<div class="from">{escape(task["url"]) or "URL unknown"}</div>
<details><summary>Rules</summary><pre>{escape(RULES)}</pre></details>
<div class="bar"><span id="count"></span>click: main or other; shift-click: all up to here
<button id="save">Save</button></div>
<ol>
{chr(10).join(map(_row, lines))}
</ol>
<script type="application/json" id="task">{data}</script>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _row(line: Line) -> str:
    hints = [line.path, *line.flags]
    if line.linked:
        hints.append(f"{line.linked}% links")
    if line.same_as:
        hints.append(f"same text as {line.same_as}")
    return (
        f'<li><label><input type="checkbox" value="{line.id}" autocomplete="off"><span class="id">{line.id}</span>'
        f'<span class="text">{escape(line.text)}<span class="hints">{escape(", ".join(hints))}</span></span></label>'
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
