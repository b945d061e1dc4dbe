"""``scrapy dripper --follow URL -o folder/``: a site as a folder of Markdown."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from scrapy_dripper.commands.site import delay_of, readable
from tests.crawl.crawling import Site, answer, eventually, page
from tests.crawl.processes import COMMAND, Done, Program, run, scrapy_command
from tests.internet import internet_command, public

XML = "application/xml"
HTML = "text/html; charset=utf-8"


@pytest.fixture
def shop(site: Site) -> Site:
    """A site with links, a sitemap, pages that fail, and a part that robots.txt forbids."""
    links = "".join(
        f'<a href="{href}">link</a>'
        for href in ("/page/1", "/page/2#part", "/moved", "/gone", "/private/1", "http://127.0.0.2:1/else", "/a.pdf")
    )
    site.routes.update(
        {
            "/": (HTML, page("home", links).encode()),
            "/page/2": (HTML, page(2, '<a href="/page/3?lang=de">next</a><a href="/">home</a>').encode()),
            "/moved": (HTML, b""),
            "/gone": (HTML, b"gone"),
            "/empty": (HTML, b"<p hidden>nothing</p>"),
            "/robots.txt": (
                "text/plain",
                f"User-agent: *\nDisallow: /private/\nSitemap: {site.url('/map.xml')}\n".encode(),
            ),
            "/map.xml": (
                "application/xml",
                "".join(
                    (
                        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
                        *(f"<url><loc>{site.url(path)}</loc></url>" for path in ("/page/1", "/island", "/empty")),
                        "<url><loc>http://127.0.0.2:1/else</loc></url></urlset>",
                    )
                ).encode(),
            ),
        }
    )
    site.status["/gone"] = 404
    return site


def follow(url: str, folder: Path, *args: str) -> Done:
    """Run the command at full speed."""
    return run(
        internet_command, ["dripper", "--follow", url, "-o", f"{folder}/", "-s", "DOWNLOAD_DELAY=0", *args], COMMAND
    )


def index(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the records of the index by the path of their URL."""
    lines = (folder / "index.jsonl").read_text(encoding="utf-8").splitlines()
    assert len({json.loads(line)["url"] for line in lines}) == len(lines)
    return found(folder / "index.jsonl")


def test_a_site_becomes_a_folder_of_markdown(shop: Site, tmp_path: Path) -> None:
    """All pages of the host are there once, with front matter; robots.txt and the sitemap are obeyed."""
    done = follow(shop.url("/"), tmp_path / "out")

    assert done.returncode == 0, done.stderr
    found = index(tmp_path / "out")
    pages = {"/", "/page/1", "/page/2", "/page/3?lang=de", "/island", "/empty"}
    failed = {"/gone": "HTTP 404", "/moved": "an empty response", "/private/1": "Forbidden by robots.txt"}
    assert set(found) == pages | set(failed)
    assert {path: record["error"] for path, record in found.items() if path in failed} == failed
    files = {record["file"] for record in found.values()} - {None}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*files, "index.jsonl"}
    written = (tmp_path / "out" / found["/page/3?lang=de"]["file"]).read_text(encoding="utf-8")
    address = shop.url("/page/3?lang=de")
    assert written.startswith(f'---\ntitle: "Page 3?lang=de"\nurl: "{address}"\n')
    assert "\n---\n\n" in written
    assert "MAIN text of page 3?lang=de" in written
    assert found["/page/1"]["source"] == "fallback:html"
    assert found["/page/1"]["title"] == "Page 1"
    assert not any(path.startswith(("/private", "/a.pdf")) for path in shop.seen)
    assert "6 pages in" in done.stderr
    assert "1 of them without main content, 3 not to be had" in done.stderr


def test_allow_and_deny(shop: Site, tmp_path: Path) -> None:
    """They are for all pages but the first, from links and from the sitemap."""
    follow(shop.url("/"), tmp_path, "--allow", "/page/", "--deny", "lang=")

    assert set(index(tmp_path)) == {"/", "/page/1", "/page/2"}


def chain(site: Site, last: int) -> None:
    """Let each page link to the next only. There is no robots.txt and no sitemap."""
    for number in range(last + 1):
        link = f'<a href="/{number + 1}">next</a>' if number < last else ""
        site.routes[f"/{number}"] = (HTML, page(number, link).replace("<a href='/'>Menu</a>", "").encode())
    for path in ("/robots.txt", "/sitemap.xml"):
        site.status[path] = 404


def test_the_largest_number_of_pages_and_the_command_that_goes_on(site: Site, tmp_path: Path) -> None:
    """No page is downloaded twice. When the site is whole, the next command begins again."""
    chain(site, 9)

    first = follow(site.url("/0"), tmp_path, "--max-pages", "4")
    assert set(index(tmp_path)) == {"/0", "/1", "/2", "/3"}
    assert "4 pages in" in first.stderr
    assert "--max-pages is reached: the same command with a larger number goes on" in first.stderr
    other = follow(site.url("/7"), tmp_path)
    assert (other.returncode, "holds an unfinished crawl of" in other.stderr) == (2, True)

    second = follow(site.url("/0"), tmp_path)
    assert set(index(tmp_path)) == {f"/{number}" for number in range(10)}
    assert second.stderr.splitlines()[-1] == f"10 pages in {tmp_path}"
    assert site.seen.count("/2") == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".md") == ["index.jsonl"]

    third = follow(site.url("/0"), tmp_path)
    assert third.stderr.splitlines()[-1] == f"10 pages in {tmp_path}"
    assert site.seen.count("/2") == 2
    assert len(list(tmp_path.glob("*.md"))) == 10


def on_a_terminal(arguments: list[str], settings: Mapping[str, Any]) -> None:
    """Run a command that takes standard error for a terminal."""
    sys.stderr.isatty = lambda: True  # type: ignore[method-assign]
    scrapy_command(arguments, settings)


def test_a_terminal_shows_the_progress(site: Site, tmp_path: Path) -> None:
    """It has the number of pages, the rate and, if the length of the crawl is known, the rest."""
    chain(site, 5)
    arguments = ["dripper", "--follow", site.url("/0"), "-o", f"{tmp_path}", "-s", "DOWNLOAD_DELAY=0.02"]

    part = run(on_a_terminal, [*arguments, "--max-pages", "4"], COMMAND).stderr
    whole = run(on_a_terminal, arguments, COMMAND).stderr
    quiet = follow(site.url("/0"), tmp_path / "quiet").stderr

    assert re.search(r"^ *0%\|.*\| 0/4 \[", part, re.MULTILINE)
    assert re.search(r"^100%\|.*\| 4/4 \[\d\d:\d\d<00:00, .*(?:page/s|s/page)\]", part, re.MULTILINE)
    assert re.search(r"^6page \[\d\d:\d\d, .*(?:page/s|s/page)\]", whole, re.MULTILINE)  # with the four before
    assert "page [" not in quiet


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for other processes")
def test_ctrl_c_loses_nothing(site: Site, tmp_path: Path) -> None:
    """The command can be interrupted at any time, and goes on."""
    chain(site, 40)
    interrupted = 0
    while not interrupted or (tmp_path / ".crawl").exists():
        arguments = ["dripper", "--follow", site.url("/0"), "-o", f"{tmp_path}", "-s", "DOWNLOAD_DELAY=0.02"]
        seen = len(site.seen)
        program = Program(scrapy_command, arguments, COMMAND)
        eventually("18 pages asked for", lambda: len(site.seen) >= seen + 18 or not program.is_running)  # noqa: B023
        if program.is_running:
            program.send_signal()
        program.end()
        interrupted += "the same command goes on" in "".join(program.logged)
        assert interrupted < 10

    assert interrupted
    assert set(index(tmp_path)) == {f"/{number}" for number in range(41)}
    assert all(site.seen.count(f"/{number}") == 1 for number in range(41))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("name", ["pages", "pages.parquet"])
def test_a_crawl_that_is_killed_loses_nothing(name: str, site: Site, tmp_path: Path) -> None:
    """After any number of kills, each page is there once, and none that was written is downloaded again."""
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra [corpus]")
    links = {"/": "".join(f'<a href="/page/{n}">link</a>' for n in range(20))}
    links |= {f"/page/{n}": f'<a href="/page/{n + 20}?utm_source=x">on</a>' for n in range(20)}
    for path, html in links.items():
        site.routes[path] = (HTML, page(path, html).encode())
    place = tmp_path / name
    lines = place / "index.jsonl" if name == "pages" else tmp_path / "pages.parquet.crawl" / "pages.jsonl"
    written: dict[str, int] = {}
    for rest in (b'\n{"url": "http://127.0.0.1/cut', b"", b"\n{"):  # of a line in which it is killed
        arguments = ["dripper", "--follow", site.url("/"), "-o", f"{place}", "-s", "DOWNLOAD_DELAY=0.02"]
        program = Program(scrapy_command, arguments, COMMAND)
        eventually("six more pages written", lambda: len(found(lines)) >= len(written) + 6)  # noqa: B023
        program.kill()
        lines.write_bytes(lines.read_bytes()[:-1] + rest)
        assert set(written) < set(found(lines))
        assert {path: site.seen.count(path) for path in written} == written
        written = {path: site.seen.count(path) for path in found(lines)}

    done = follow(site.url("/"), place)

    records = index(place) if name == "pages" else table(place)
    paths = {"/", "/sitemap.xml", *(f"/page/{n}" for n in range(40))}
    assert set(records) == paths - {"/sitemap.xml"}
    assert all(record["source"] for record in records.values())
    assert {path: site.seen.count(path) for path in written} == written
    assert done.stderr.splitlines()[-1] == f"41 pages in {place}"
    left = {path.name for path in tmp_path.iterdir()} if name != "pages" else {path.suffix for path in place.iterdir()}
    assert left == ({"pages.parquet"} if name != "pages" else {".md", ".jsonl"})


@pytest.mark.parametrize("name", ["pages", "pages.jsonl"])
def test_two_commands_with_one_output(name: str, site: Site, tmp_path: Path) -> None:
    """The second one is refused and changes nothing, until the first one has ended, even if that was killed."""
    site.routes["/"] = (HTML, page("home", '<a href="/silent">link</a>').encode())
    site.raw["/silent"] = [(b"", "keep")]
    place = tmp_path / name
    first = Program(scrapy_command, ["dripper", "--follow", site.url("/"), "-o", f"{place}"], COMMAND)
    eventually("the silent page asked for", lambda: "/silent" in site.seen)
    seen = len(site.seen)

    second = follow(site.url("/"), place)
    first.kill()

    assert f"another command is writing {place}" in second.stdout + second.stderr
    assert (second.returncode, len(site.seen)) == (2, seen)
    del site.raw["/silent"]
    assert follow(site.url("/"), place).stderr.splitlines()[-1] == f"2 pages in {place}"
    assert not [path for path in tmp_path.rglob("*") if "crawl" in path.name]


def found(lines: Path) -> dict[str, dict[str, Any]]:
    """Return the whole records of an index that is being written, by the path of their URL."""
    whole = [line for line in lines.read_text(encoding="utf-8").split("\n")[:-1] if line] if lines.exists() else []
    return {"/" + record["url"].split("/", 3)[3]: record for record in map(json.loads, whole)}


def as_json(value: Any) -> Any:
    """Return what is JSON as text in a table."""
    return json.loads(value) if isinstance(value, str) else value


def table(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a Parquet file by the path of their URL."""
    pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra [corpus]")
    rows = pq.read_table(path).to_pylist()
    assert len({row["url"] for row in rows}) == len(rows)
    return {"/" + row["url"].split("/", 3)[3]: row for row in rows}


def test_several_sites(site: Site, tmp_path: Path) -> None:
    """Each has its own number of pages, and no page leads from one to another, also if that is one of the user's."""
    hosts = ("site.example", "other.example", "inside.example")
    links = "".join(f'<a href="{href}">link</a>' for href in ("/page/1", "/page/2", "/page/3", "/page/4"))
    inside = f'<a href="{public(site, "/private/by-link", "inside.example")}">link</a>'
    site.routes["/"] = (HTML, page("home", links + inside).encode())
    site.routes["/inside"] = (HTML, page("inside").replace("href='/'", "").encode())
    named = public(site, "/private/map.xml", "inside.example")
    site.routes["/robots.txt"] = ("text/plain", f"Sitemap: {named}\nSitemap: /map.xml\n".encode())
    site.routes["/map.xml"] = (XML, b"<urlset></urlset>")
    first, *others = (public(site, path, host) for path, host in zip(("/", "/", "/inside"), hosts, strict=True))
    (tmp_path / "sites.txt").write_text("\n".join(["# mine", *others, "", public(site, "/own", hosts[1])]))
    arguments = (first, tmp_path / "out", "--urls", f"{tmp_path / 'sites.txt'}")

    done, again = follow(*arguments, "--max-pages", "4"), follow(*arguments)

    assert "9 pages in" in done.stderr
    assert "--max-pages is reached" in done.stderr
    records = [json.loads(line) for line in (tmp_path / "out" / "index.jsonl").read_text().splitlines()]
    assert Counter(urlsplit(one["url"]).hostname for one in records) == dict(zip(hosts, (5, 6, 1), strict=True))
    assert again.stderr.splitlines()[-1] == f"12 pages in {tmp_path / 'out'}"
    assert site.seen.count("/private/map.xml") == 1  # for its own site
    refused = follow(first, tmp_path / "out", "--urls", f"{tmp_path / 'none.txt'}")
    assert (refused.returncode, "none.txt cannot be read: No such file" in refused.stderr) == (2, True)


def test_how_far_links_are_followed(site: Site, tmp_path: Path) -> None:
    """Parameters that say where a reader comes from make no other page."""
    chain(site, 5)
    tracked = "".join(
        f'<a href="/1?{tail}">x</a>' for tail in ("utm_source=a&b=%201", "b=%201&fbclid=2", "b=%201&gid=3")
    )
    site.routes["/0"] = (HTML, page(0, f"{tracked}<a href=/1>next</a>").encode())
    del site.status["/sitemap.xml"]

    follow(site.url("/0"), tmp_path, "--depth", "2")

    assert set(index(tmp_path)) == {"/0", "/1", "/1?b=%201", "/1?b=%201&gid=3", "/2", "/"}
    assert "/sitemap.xml" not in site.seen


def test_pages_with_the_same_text(site: Site, tmp_path: Path) -> None:
    """The index says which page had a text first, also of a page that an earlier command has written."""
    chain(site, 4)
    words = [f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(400)]
    texts = {1: words, 2: [*words[:200], "other", *words[201:]], 3: words[::-1], 4: words}
    for number, text in texts.items():
        body = f"<html><body><main><p>{' '.join(text)}</p></main><a href=/{number + 1}>next</a></body></html>"
        site.routes[f"/{number}"] = (HTML, body.encode())
    site.status["/5"] = 404

    for most in ("3", "9"):
        follow(site.url("/0"), tmp_path, "--max-pages", most, "-s", "DRIPPER_FALLBACK=trafilatura")

    found = index(tmp_path)
    one, two = site.url("/1"), site.url("/2")
    assert [found[f"/{n}"]["duplicate_of"] for n in range(5)] in (
        [None, None, one, None, one],
        [None, two, None, None, one],  # if the second page has been extracted before the first one
    )
    assert len({found[f"/{n}"]["content_hash"] for n in range(5)}) == 4


@pytest.mark.parametrize("name", ["site.jsonl", "site.parquet"])
def test_one_file_with_chunks(name: str, shop: Site, tmp_path: Path) -> None:
    """It has a record for each URL. A file of another site is refused, and one of this site replaced."""
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="needs the extra [corpus]")
    read = found if name.endswith("jsonl") else table
    for _ in range(2):
        done = follow(shop.url("/"), tmp_path / name, "--chunks")

        assert done.returncode == 0, done.stderr
        assert [path.name for path in tmp_path.iterdir()] == [name]
        records = read(tmp_path / name)
        assert (len(records), records["/gone"]["error"]) == (9, "HTTP 404")
        assert "MAIN text of page 1, which is about nothing in particular." in records["/page/1"]["markdown"]
        (chunk,) = as_json(records["/page/1"]["chunks"])
        assert (chunk["markdown"], chunk["url"]) == (records["/page/1"]["markdown"], shop.url("/page/1"))
        assert not records["/empty"]["markdown"]
        assert as_json(records["/page/1"]["metadata"])["title"] == "Page 1"

    other = follow(public(shop, "/"), tmp_path / name)
    assert (other.returncode, "has pages of another site" in other.stderr) == (2, True)
    (tmp_path / name).write_bytes(b"no table")
    if name.endswith("parquet"):
        assert "is no table of pages" in follow(shop.url("/"), tmp_path / name).stderr


def test_a_line_now_and_then_without_a_terminal(site: Site, tmp_path: Path) -> None:
    """It has the number of pages, the rate, and what is left, every LOGSTATS_INTERVAL seconds."""
    chain(site, 12)

    done = follow(site.url("/0"), tmp_path, "-s", "DOWNLOAD_DELAY=0.1", "-s", "LOGSTATS_INTERVAL=0.2")

    lines = re.findall(r"^(\d+) pages?, ([\d,]+) a minute, (\d+) URLs? to go, 0 not to be had$", done.stderr, re.M)
    assert len(lines) > 2
    assert not re.search(r"^1 pages|\b1 URLs", done.stderr, re.M)
    numbers = [int(one) for one, _, _ in lines]
    assert numbers == sorted(numbers)
    assert any(rate != "0" for _, rate, _ in lines)


def test_the_delay_of_robots_txt_is_kept(site: Site, tmp_path: Path) -> None:
    """Scrapy itself does not read it."""
    chain(site, 5)
    del site.status["/robots.txt"]
    site.routes["/robots.txt"] = ("text/plain", b"User-agent: *\nCrawl-delay: 0.7\n")
    began = time.monotonic()

    follow(site.url("/0"), tmp_path, "-s", "RANDOMIZE_DOWNLOAD_DELAY=False")

    assert set(index(tmp_path)) == {f"/{number}" for number in range(6)}
    assert time.monotonic() - began > 4 * 0.7


@pytest.mark.parametrize(
    ("value", "delay", "problem"),
    [
        ("0.5", 0.5, None),
        ("60", 60, None),
        ("61", 60, "61 s is too long; it is 60 s"),
        ("1e300", 60, "1e+300 s is too long; it is 60 s"),
        *((value, 0, f"{value} is not a number of seconds, and is ignored") for value in ("-5", "inf", "nan", "soon")),
    ],
)
def test_delays_that_robots_txt_may_ask_for(value: str, delay: float, problem: str | None) -> None:
    found, said = delay_of(f"User-agent: *\nCrawl-delay: {value} # be kind\n", "us")

    assert found == delay
    assert said == (problem and f"a Crawl-delay of {problem}")


def test_each_url_has_a_line_with_what_became_of_it(site: Site, tmp_path: Path) -> None:
    """Whether it leads to itself, to another page or nowhere, or is broken. A refresh and a base that are no URLs are
    ignored, as browsers do.
    """
    long = "/long?" + "x" * 3_000
    paths = ["/cookie", "/again", "/old", "/older", "/bad", "/loop", "/page/1", "/base", "/cut", long]
    links = "".join(f'<a href="{path}">link</a>' for path in paths)
    cookie = (answer(b"", f"Location: {site.url('/')}", "Set-Cookie: seen=1", status=302), "keep")
    base = page("base", '<a href="/refresh">link</a>').replace("<head>", "<head><base href='https://[host]/'>")
    site.raw = {
        "/": [cookie, (answer(page("home", links).encode()), "keep")],
        "/cookie": [
            (answer(b"", "Location: /cookie", "Set-Cookie: seen=1", status=302), "keep"),
            (answer(page("cookie").encode()), "keep"),
        ],
        "/old": [(answer(b"", "Location: /page/1", status=301), "keep")],
        "/older": [(answer(b"", "Location: /page/2#part", status=301), "keep")],
        "/bad": [(answer(b"", "Location: /gone", status=301), "keep")],
        "/loop": [(answer(b"", "Location: /loop", status=302), "keep")],
        "/cut": [(answer(page("cut").encode(), length=9_999), "close")],
    }
    site.routes |= {
        "/again": (HTML, page("again", "<meta http-equiv=refresh content='30; url=/again'>").encode()),
        "/base": (HTML, base.encode()),
        "/refresh": (HTML, page("refresh", "<meta http-equiv=refresh content='0; url=http://['>").encode()),
    }
    site.status |= {"/gone": 404, "/robots.txt": 404, "/sitemap.xml": 404}

    done = follow(site.url("/"), tmp_path / "a", "-s", "RETRY_ENABLED=0")
    first = follow(site.url(long), tmp_path / "b")

    found = index(tmp_path / "a")
    assert {path for path, record in found.items() if "source" in record} == {
        *("/", "/cookie", "/again", "/page/1", "/page/2", "/base", "/refresh")
    }
    assert {path: record["redirects_to"] for path, record in found.items() if "redirects_to" in record} == {
        "/old": site.url("/page/1"),
        "/older": site.url("/page/2"),
    }
    assert {path: record["error"] for path, record in found.items() if not {"source", "redirects_to"} & {*record}} == {
        "/bad": f"redirects to {site.url('/gone')}: HTTP 404",
        "/loop": f"redirects to {site.url('/loop')}: max redirections reached",
        "/cut": "ResponseDataLossError",
        long: f"a URL of {len(site.url(long)):,} characters, over URLLENGTH_LIMIT = 2,083",
    }
    assert "7 pages in" in done.stderr
    assert "4 not to be had" in done.stderr
    assert site.seen.count("/again") == 2
    assert site.seen.count("/loop") < 30
    assert "over URLLENGTH_LIMIT = 2,083" in first.stderr


def test_a_page_that_is_asked_for_while_it_is_extracted(site: Site, tmp_path: Path) -> None:
    """A redirect has led there before. Its line is that of a page, and not of a redirect to itself."""
    paths = ["/old", *(f"/page/{number}" for number in range(2, 12)), "/page/1"]
    site.routes["/"] = (HTML, page("home", "".join(f'<a href="{path}">link</a>' for path in paths)).encode())
    site.raw["/old"] = [(answer(b"", "Location: /page/1", status=301), "keep")]
    site.status |= {"/robots.txt": 404, "/sitemap.xml": 404}

    follow(site.url("/"), tmp_path, "-s", "DRIPPER_BATCH_WAIT=3", "-s", "DRIPPER_BATCH_SIZE=99")

    found = index(tmp_path)
    assert set(found) == {"/", *paths}
    assert {path for path, record in found.items() if "source" not in record} == {"/old"}


def test_a_site_has_one_host(site: Site, tmp_path: Path) -> None:
    """With and without ``www.``, and on one port. A sitemap elsewhere must be named by robots.txt."""
    elsewhere = [public(site, f"/{n}", "other.example") for n in range(3)]
    links = [
        public(site, "/page/1", "www.site.example"), public(site, "/page/2", "SITE.example."),
        public(site, "/page/3", "other.example"), "http://site.example:9/", "/away", "https://site.example/",
    ]  # fmt: skip
    site.routes |= {
        "/": (HTML, page("home", "".join(f'<a href="{link}">link</a>' for link in links)).encode()),
        "/robots.txt": ("text/plain", f"Sitemap: {elsewhere[0]}\nSitemap: /list.xml\n".encode()),
        "/0": (XML, f"<urlset><url><loc>{public(site, '/page/4')}</loc></url>"
               f"<url><loc>{elsewhere[2]}</loc></url></urlset>".encode()),
        "/list.xml": (XML, b"<sitemapindex><sitemap><loc>http://third.example/x.xml</loc></sitemap></sitemapindex>"),
    }  # fmt: skip
    site.raw["/away"] = [(answer(b"", f"Location: {elsewhere[1]}", status=302), "keep")]

    done = follow(public(site, "/"), tmp_path)

    found = index(tmp_path)
    assert {path for path, record in found.items() if "source" in record} == {"/", *(f"/page/{n}" for n in (1, 2, 4))}
    assert found["/away"]["error"] == "leads to other.example, another site"
    assert "2 URLs of robots.txt and sitemaps are not followed, because they are not of this site" in done.stderr
    assert not {"/1", "/2", "/page/3"} & {*site.seen}


def test_sitemaps_without_end(site: Site, tmp_path: Path) -> None:
    """A sitemap may name new ones for ever. A thousand of them are read, and one line says so."""
    site.routes["/"] = (HTML, page("home").encode())
    more = "".join(f"<sitemap><loc>{site.url(f'/map/{n}')}</loc></sitemap>" for n in range(1_005))
    index_of_all = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{more}</sitemapindex>'
    site.routes["/sitemap.xml"] = (XML, index_of_all.encode())
    done = follow(site.url("/"), tmp_path, "--deny", "page")

    assert done.returncode == 0, done.stderr
    assert len({path for path in site.seen if path.startswith("/map/")}) == 999
    assert "6 URLs of robots.txt and sitemaps are not followed" in done.stderr


@pytest.mark.parametrize(
    ("robots", "lines"),
    [
        (b"Sitemap: /a.xml\n", ["1 sitemap cannot be read, such as .*/a.xml: HTTP 500$"]),
        (b"Sitemap: /page/1\n", ["1 sitemap cannot be read, such as .*/page/1: not a sitemap$"]),
        (
            b"".join(b"Sitemap: http://127.0.0.1:%d/\n" % port for port in range(1, 16)),
            [
                "5 URLs of robots.txt and sitemaps are not followed",
                "10 sitemaps cannot be read, such as http://127.*: Conn",
            ],
        ),
        (
            b"Sitemap: http://[\nSitemap: /a.xml\n",
            ["1 URL of robots.txt and sitemaps is not followed, .* such as http://\\[$", "1 sitemap cannot be read"],
        ),
        (b"#\n" * 300_000 + b"Sitemap: /a.xml\n", []),
        (
            b"".join(b"User-agent: %d\n" % n for n in range(1_000))
            + b"".join(b"Disallow: /x%d\n" % n for n in range(1_000))
            + b"Sitemap: /a.xml\n",
            [],
        ),
    ],
    ids=["failing", "page", "on other sites", "no URL", "after 500 kB", "after 100,000 rules"],
)
def test_sitemaps_that_are_not_read(site: Site, tmp_path: Path, robots: bytes, lines: list[str]) -> None:
    """One line says so of those that robots.txt names. It may name sitemaps on ten other sites."""
    site.routes |= {"/": (HTML, page("home").encode()), "/robots.txt": ("text/plain", robots)}
    site.status |= {"/a.xml": 500, "/sitemap.xml": 500}

    done = follow(site.url("/"), tmp_path, "-s", "RETRY_ENABLED=0")

    said = re.findall(r"^\d+ (?:sitemap|URL).*", done.stderr, re.MULTILINE)
    assert len(said) == len(lines), done.stderr
    assert all(map(re.match, lines, said)), said


def test_a_first_page_that_has_moved(site: Site, tmp_path: Path) -> None:
    """One other host takes the place of the first one, and standard error says so."""
    links = f'<a href="/page/1">link</a><a href="{public(site, "/page/2")}">link</a>'
    site.routes["/new"] = (HTML, page("new", links).replace("href='/'", "").encode())
    site.raw["/"] = [(answer(b"", f"Location: {public(site, '/new', 'other.example')}", status=301), "keep")]
    site.raw["/twice"] = [(answer(b"", f"Location: {public(site, '/third', 'other.example')}", status=301), "keep")]
    site.raw["/third"] = [(answer(b"", f"Location: {public(site, '/new', 'third.example')}", status=301), "keep")]

    done = follow(public(site, "/"), tmp_path / "a")
    twice = follow(public(site, "/twice"), tmp_path / "b")
    again = follow(public(site, "/"), tmp_path / "a")

    moved = f"{public(site, '/')} redirects to {public(site, '/new', 'other.example')}, whose site is followed"
    assert moved in done.stderr
    assert moved in again.stderr  # the folder is still that of the command
    found = index(tmp_path / "a")
    assert set(found) == {"/", "/new", "/page/1"}
    assert found["/new"]["url"] == public(site, "/new", "other.example")
    assert f"{public(site, '/twice')}: leads to third.example, another site" in twice.stderr


def test_a_first_page_that_cannot_be_had(site: Site, tmp_path: Path) -> None:
    """Standard error says why, in one line, and the exit status is 1. One line says that a delay without end is not
    kept.
    """
    site.status["/gone"] = 404
    site.routes["/robots.txt"] = ("text/plain", b"User-agent: *\nCrawl-delay: inf\nDisallow: /private/\n")

    gone, forbidden = follow(site.url("/gone"), tmp_path / "a"), follow(site.url("/private/"), tmp_path / "b")

    assert (gone.returncode, forbidden.returncode) == (1, 1)
    assert f"{site.url('/gone')}: HTTP 404" in gone.stderr
    assert gone.stderr.count("a Crawl-delay of inf is not a number of seconds, and is ignored") == 1
    assert "robots.txt" in forbidden.stderr
    assert "Traceback" not in gone.stderr + forbidden.stderr


@pytest.mark.parametrize(
    ("setting", "message"),
    [("DRIPER_FAVOR=recall", "did you mean DRIPPER_FAVOR?"), ("DRIPPER_MODEL=none-there", "No tagger model in")],
)
def test_a_wrong_setting_keeps_the_folder(setting: str, message: str, site: Site, tmp_path: Path) -> None:
    """Also the crawl that goes on, whether it is misspelt or the model cannot be loaded."""
    chain(site, 3)
    follow(site.url("/0"), tmp_path, "--max-pages", "2")
    before = index(tmp_path)

    done, empty = (follow(site.url("/0"), path, "-s", setting) for path in (tmp_path, tmp_path / "new"))

    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (2, True, False)
    assert (empty.returncode, (tmp_path / "new").exists()) == (2, False)
    assert index(tmp_path) == before
    follow(site.url("/0"), tmp_path)
    assert (set(index(tmp_path)), site.seen.count("/0")) == ({f"/{number}" for number in range(4)}, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"url": "https://example.org/", "file": "a.md"}\n', "has pages of another site"),
        ("my notes\n", "index.jsonl is no list of pages"),
    ],
)
def test_what_is_not_of_this_site_is_not_replaced(text: str, message: str, site: Site, tmp_path: Path) -> None:
    """Nor is a file of the user's."""
    (tmp_path / "index.jsonl").write_text(text, encoding="utf-8")

    done = follow(site.url("/"), tmp_path)

    assert (done.returncode, message in done.stdout + done.stderr) == (2, True)
    assert (tmp_path / "index.jsonl").read_text(encoding="utf-8") == text


def test_a_folder_that_becomes_unwritable(site: Site, tmp_path: Path) -> None:
    """The crawl stops at the first page that cannot be written, and goes on with that page."""
    chain(site, 3)
    name = f"{site.url('/2').removeprefix('http://')}.md".replace(":", "-").replace("/", "-")
    (tmp_path / name).mkdir()

    stopped = follow(site.url("/0"), tmp_path)
    (tmp_path / name).rmdir()
    done = follow(site.url("/0"), tmp_path)

    assert f"cannot write {tmp_path / name}: Is a directory" in stopped.stderr
    assert "stopped: the same command goes on" in stopped.stderr
    assert done.stderr.splitlines()[-1] == f"4 pages in {tmp_path}"
    assert (tmp_path / name).is_file()


def test_links_of_a_page_that_would_block_the_crawl() -> None:
    """libxml2 takes minutes for the attributes of this element."""
    run_of_attributes = " ".join(f"a{number}=1" for number in range(100_000))
    body = f"<p><a href=/1>one</a><div {run_of_attributes}></div><a href=/2>two</a>".encode()

    found = LinkExtractor().extract_links(readable(HtmlResponse("https://example.org/", body=body)))

    assert [link.url for link in found] == ["https://example.org/1", "https://example.org/2"]
