"""Run ``corpus extract`` on the same WARC shards in one process, and with ranks and Ray actors that are killed.

All runs must give the same documents, each once. Otherwise, the script ends with an error. The command, ranks, worker
processes and actors of Ray are killed (SIGKILL) in turn, at random moments, and the command is repeated until it has
finished. Needs the extras [corpus] and [cpu], and Ray.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
from corpus import DEFAULT
from report import heading, publish, table
from scrapy.http import HtmlResponse

from scrapy_dripper.corpus.archive import response_record

ROOT = Path(__file__).parents[1]
VICTIMS = {
    "rank": "scrapy_dripper.corpus.rank",
    "worker process": "scrapy_dripper/child/",
    "actor": "ray::RankWorker",
}
"""Texts by which the command lines of processes to kill are recognised."""
Documents = dict[str, str]


def main() -> None:
    """Write the shards, run the commands and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[DEFAULT])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20, help="between two kills, at most")
    parser.add_argument("--seed", type=int, default=20)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    files = sorted(file for folder in arguments.data for file in folder.glob("*.html"))
    files = chance.sample(files, min(arguments.pages, len(files)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shards").mkdir()
        for number in range(arguments.shards):
            with (folder / "shards" / f"{number}.warc").open("wb") as shard:
                shard.writelines(record(index, files[index]) for index in range(number, len(files), arguments.shards))
        expected, _ = run(folder, "one process", ["--workers", "1"], [], chance, arguments)
        rows = [row("one process", expected, expected, Counter())]
        for title, options, victims in (
            ("2 ranks, each with a worker process", ["--processes", "1"], ["rank", "worker process", "command"]),
            ("2 actors of Ray", ["--executor", "ray"], ["rank", "actor", "command"]),
        ):
            found, killed = run(folder, title, ["--workers", "2", *options], victims, chance, arguments)
            rows.append(row(title, found, expected, killed))
    head = ["", "documents", "as one process", "lost", "killed"]
    text = [heading("corpus_kills.py", ("scrapy-dripper", "datatrove", "ray", "pyarrow", "fastwarc")), ""]
    text += [
        f"{len(files)} pages in {arguments.shards} WARC shards. No document is there twice.",
        "",
        table(head, rows),
    ]
    publish("\n".join(text), ROOT / "benchmarks" / "results" / "corpus_kills.txt")
    if any(one[1:4] != [str(len(files)), str(len(files)), "0"] for one in rows):
        sys.exit(1)


def record(number: int, file: Path) -> bytes:
    """Return a page as a WARC record."""
    response = HtmlResponse(
        f"https://example.org/{number}", headers={"Content-Type": "text/html"}, body=file.read_bytes()
    )
    return bytes(response_record(response, {"WARC-Identified-Payload-Type": "text/html"}))


def run(
    folder: Path,
    title: str,
    options: list[str],
    victims: list[str],
    chance: random.Random,
    arguments: argparse.Namespace,
) -> tuple[Documents, Counter[str]]:
    """Run the command, kill processes a few times, and repeat the command until it has finished. Return digests of the
    documents.
    """
    out = folder / title.replace(" ", "-")
    command = [sys.executable, "-m", "scrapy_dripper", "corpus", "extract", str(folder / "shards"), "-o", str(out)]
    killed: Counter[str] = Counter()
    code = 1
    while code:
        process = subprocess.Popen([*command, *options], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        while victims and killed.total() < arguments.kills and process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(arguments.seconds / 4, arguments.seconds))
            kind = victims[killed.total() % len(victims)]
            found = [process.pid] if kind == "command" else processes(process.pid, VICTIMS[kind])
            if found and process.poll() is None:
                os.kill(chance.choice(found), signal.SIGKILL)
                killed[kind] += 1
        _, said = process.communicate()
        code = process.returncode
        print(title, f"ended with {code}:", said.strip().splitlines()[-1:], dict(killed), file=sys.stderr)
        if code == 2 and "timed out during startup" not in said:  # Ray on a busy machine
            sys.exit(said)
        time.sleep(1)
    return documents(out), killed


def processes(parent: int, name: str) -> list[int]:
    """Return the descendants of a process with a name in their command line."""
    found = []
    for pid in descendants(parent):
        with suppress(OSError):
            if name in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " "):
                found.append(pid)
    return found


def descendants(pid: int) -> Iterator[int]:
    """Yield all processes that a process, or one of them, has started."""
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in file.read_text().split():
                yield int(child)
                yield from descendants(int(child))


def documents(out: Path) -> Documents:
    """Return a digest of each document, by its URL. Raise SystemExit if a document occurs twice."""
    found: Documents = {}
    for file in sorted(out.glob("*.parquet")):
        for one in pq.read_table(file).to_pylist():
            if one["url"] in found:
                sys.exit(f"{one['url']} is there twice")
            found[one["url"]] = hashlib.sha256(repr(sorted(one.items())).encode()).hexdigest()
    return found


def row(title: str, found: Documents, expected: Documents, killed: Counter[str]) -> list[str]:
    """Return a row of the report."""
    same = sum(found.get(url) == digest for url, digest in expected.items())
    kills = ", ".join(f"{count} x {kind}" for kind, count in sorted(killed.items()))
    return [title, str(len(found)), str(same), str(len(expected.keys() - found.keys())), kills or "nothing"]


if __name__ == "__main__":
    main()
