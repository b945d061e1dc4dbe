"""Nothing in a page makes a parser, a fallback or an evaluation send a request or read a file, and the libraries that
run the model report to no one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crawl.crawling import Site
from tests.programs import python

SECRET = "canary-in-a-file-7c1f"
TEXT = "<p>Words of the article, enough of them to be one: rivers, harbours, bridges and gardens.</p>" * 3

PAGES = {
    "doctype": '<!DOCTYPE html SYSTEM "{url}/a.dtd"><html><body>{text}</body></html>',
    "public": '<!DOCTYPE html PUBLIC "-//X//Y" "{url}/b.dtd" [<!ENTITY % p SYSTEM "{url}/p.dtd"> %p;]><body>{text}',
    "entity": '<!DOCTYPE html [<!ENTITY e SYSTEM "{url}/e"><!ENTITY f SYSTEM "{file}">]><body>{text}<p>a &e; &f; b</p>',
    "xhtml": '<?xml version="1.0" encoding="utf-8"?><?xml-stylesheet href="{url}/s.xsl" type="text/xsl"?>'
    '<!DOCTYPE html [<!ENTITY f SYSTEM "{file}"><!ENTITY % q SYSTEM "{file}">%q;]>'
    '<html xmlns="http://www.w3.org/1999/xhtml"><body>{text}<p>x &f; y</p></body></html>',
    "xinclude": '<html xmlns:xi="http://www.w3.org/2001/XInclude"><body>{text}<xi:include href="{file}" parse="text"/>'
    '<xi:include href="{url}/x"/><p><xi:include href="file:///etc/hostname" parse="text"></xi:include></p>',
    "head": '<head><base href="{url}/base/"><link rel=stylesheet href=a.css><link rel=canonical href="{url}/canonical">'
    '<style>@import "{url}/c.css"; @font-face{{src:url({url}/f)}}</style><meta http-equiv=refresh content="0;{url}/r">'
    '<meta property="og:image" content="{url}/o.png"><link rel=alternate type=application/rss+xml href="{url}/feed">'
    '<script type="application/ld+json">{{"@context":"{url}/ctx","@type":"Article","url":"{url}/u"}}</script>'
    '<script src="{url}/s.js"></script></head><body>{text}',
    "body": '{text}<img src="{url}/i.png" srcset="{url}/j.png 2x"><iframe src="{url}/f"></iframe>'
    '<object data="{url}/o"></object><embed src="{url}/e"><video src="{url}/v" poster="{url}/p"></video>'
    '<svg><image href="{url}/svg"/><use href="{url}/use#x"/></svg>'
    '<a href="{url}/a" ping="{url}/ping">a</a><p style="background:url({url}/bg)">b</p>',
    "formulas": '{text}<math definitionurl="{url}/d"><mi href="{url}/h">x</mi></math><p><span class="MathJax" '
    'data-mathml=\'<!DOCTYPE math SYSTEM "{url}/m.dtd" [<!ENTITY f SYSTEM "{file}">]><math><mi>&f;</mi></math>\'>x'
    '</span></p>',
    "links": '{text}<p><a href="{file}">a</a> <img src="{file}"> <a href="\\\\host\\share">b</a></p>',
    "deep": '<!DOCTYPE html SYSTEM "{url}/deep.dtd" [<!ENTITY f SYSTEM "{file}">]>' + "<div>" * 3_000 + "{text}<p>&f;",
    "attributes": "<p " + " ".join(f"a{i}=1" for i in range(1_500)) + '>{text}</p><!ENTITY f SYSTEM "{file}">&f;',
    "template": "<template><div></template>{text}<table><tr><td colspan=2><img src={url}/t.png><tr><td>a<td>b</table>",
}  # fmt: skip


def test_no_page_makes_us_ask_for_anything(tmp_path: Path, site: Site) -> None:
    """Tagger, fallbacks, metadata, both Markdown writers and evaluations."""
    url = site.url("")
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    (tmp_path / "base.json").write_text(json.dumps(url))
    for part in ("html", "ground-truth"):
        (tmp_path / part).mkdir()
    with (tmp_path / "predictions.jsonl").open("w") as predictions:
        for name, page in PAGES.items():
            html = page.format(url=url, file=secret.as_uri(), text=TEXT)
            (tmp_path / "html" / f"{name}.html").write_text(html)
            truth = {"url": f"{url}/{name}", "ground_truth": {"main_content": "Words of the article", "title": name}}
            (tmp_path / "ground-truth" / f"{name}.json").write_text(json.dumps(truth))
            predictions.write(json.dumps({"id": name, "text": "Words of something"}) + "\n")

    done = python("-m", "tests.security.hostile_process", tmp_path)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout.splitlines()[-1])

    assert found["asked"] == []
    assert site.seen == []
    assert found["code"] == 0
    assert [one[:500] for one in found["written"] if SECRET in one] == []
    extractions = found["written"][: 12 * len(PAGES)]
    assert sum("rivers, harbours" in one for one in extractions) > 0.95 * len(extractions)  # they were read


_RUN = """
from scrapy_dripper import Extractor

extractor = Extractor()
print(extractor.extract(["<p>A page with some text in it, and nothing else at all.</p>"])[0].source)
"""


def test_nothing_is_left_behind_for_somebody_to_collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    folders = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    done = python("-c", _RUN, **folders)

    assert done.stdout.strip() == "tagger"
    assert [path for path in tmp_path.rglob("*") if "Microsoft" in str(path)] == []
