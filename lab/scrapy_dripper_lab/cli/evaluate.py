"""``scrapy-dripper evaluate DATA``: measure the extraction on annotated pages, beside other extractors."""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from scrapy_dripper.characters import printable, to_json
from scrapy_dripper.checks import METHODS
from scrapy_dripper.cli.console import PROGRAM, UsageError, say
from scrapy_dripper.cli.options import add_command, add_options, configured, count
from scrapy_dripper.config import Config
from scrapy_dripper.engines import load_engine
from scrapy_dripper.engines.files import sha256
from scrapy_dripper.engines.tagger.engine import MANIFEST, bundled
from scrapy_dripper.learning import training_pages
from scrapy_dripper_lab.endpoint import Endpoint, key_in
from scrapy_dripper_lab.evaluation.figures import Evaluation, Figures
from scrapy_dripper_lab.evaluation.language_models import ENDPOINT, JUDGED, PROMPTS, TIMEOUT, LanguageModel
from scrapy_dripper_lab.evaluation.measure import FREE, OURS, Setup, Stored, measured, read_stored
from scrapy_dripper_lab.evaluation.peers import check_peers
from scrapy_dripper_lab.evaluation.text_measures import load_cut
from scrapy_dripper_lab.extras import extra
from scrapy_dripper_lab.folds import load_sets
from scrapy_dripper_lab.prompts import INSTALLED, prompt_of
from scrapy_dripper_lab.sets import PageSet, SetChoice

OPTIONS = ("engine", "model", "fallback", "methods", "empty", "favor", "sites", "oversize", "limits")
SUFFIXES = (".jsonl", ".jsonl.xz")
IN_ORDER = "What is learnt from the pages of a host depends on their order, so one process extracts all pages."
IN_SAMPLE = (
    "IN-SAMPLE: the model was trained on {known:,} of these {n:,} pages ({name}), so our figures show how well it "
    "remembers them, not how good it is on unseen pages. For honest figures, measure on held-out folds: "
    "'python -m scrapy_dripper_lab.training DATA --predictions FILE' extracts each page with a model that has not "
    "seen its host, and '--predictions FILE' scores these texts here."
)
FOLDERS_ONLY = ("rouge", "nodes", "study", "company")
"""Options that say nothing about a file of WebMainBench."""
EXAMPLES = """\
examples:
  scrapy-dripper evaluate pages/                                      the bundled model
  scrapy-dripper evaluate pages/ --peers trafilatura,readability      beside other extractors
  scrapy-dripper evaluate pages/ --predictions held-out.jsonl
  scrapy-dripper evaluate pages/ --engine qwen3 --model prepared/ --free checkpoint/      with and without the grammar
  scrapy-dripper evaluate pages/ --judge trafilatura-html --endpoint URL --endpoint-model NAME
  scrapy-dripper evaluate WebMainBench_545.jsonl                      with the metrics of its toolkit

exit codes: 0 measured, whatever the figures are, 1 --check found differences, or nothing to compare, 2 wrong usage, or
data in an unknown layout (one sentence says what is wrong), 130 Ctrl-C
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "evaluate",
        run,
        "measure the extraction on pages with known main content, beside other extractors",
        EXAMPLES,
    )
    add = parser.add_argument
    add(
        "data",
        nargs="+",
        metavar="DATA",
        help="[NAME=]FOLDER with html/ID.html and ground-truth/ID.json, or with pages.jsonl; any number of them; "
        "or one FILE.jsonl of WebMainBench (or FILE.jsonl.xz)",
    )
    add(
        "--check",
        action="store_true",
        help="compare our metrics with the scores that the toolkit of WebMainBench has stored in FILE.jsonl, to four "
        "digits, and do nothing else",
    )
    add(
        "--predictions",
        type=Path,
        metavar="FILE",
        help='score these texts as ours, without running a model: JSON Lines with "id" and "text" and, optionally, '
        '"labels" of the blocks',
    )
    add(
        "--peers",
        type=lambda value: list(dict.fromkeys(filter(None, map(str.strip, value.split(","))))),
        default=[],
        metavar="NAMES",
        help="other extractors to measure, separated by commas; a wrong name lists them all",
    )
    add(
        "--free",
        type=Path,
        metavar="DIR",
        help="the checkpoint of a qwen3 model, to decode it without a grammar as well",
    )
    add("--rouge", action="store_true", help="also measure ROUGE-5; needs the extra [evaluate]")
    add("--nodes", action="store_true", help="also measure DOM nodes (Alarte and Silva), with inferred labels")
    add(
        "--study",
        action="store_true",
        help="also measure ROUGE-1, 2 and L, sets of words, content-noise ratio, coherence and CPU time (Yadav); needs "
        "the extra [evaluate]",
    )
    add(
        "--company",
        type=_pattern,
        metavar="REGEX",
        help="add the company of a page to --csv and --json, as in Yadav's study: what the name of its file has of it, "
        "such as '^[^_]+' (the first group, if there is one)",
    )
    add("--csv", type=Path, metavar="FILE", help="write the figures of each page and system to this CSV file")
    add("--json", type=Path, metavar="FILE", help="write all figures to this JSON file")
    add("--jobs", type=count, default=os.cpu_count() or 1, metavar="N", help="processes (default: %(default)s)")
    model = parser.add_argument_group("a language model as a peer")
    add = model.add_argument
    add("--endpoint", metavar="URL", help="ask the OpenAI-compatible API at this URL, such as http://HOST/v1")
    add("--endpoint-model", metavar="NAME", help="the model to ask for")
    add(
        "--endpoint-requests",
        type=count,
        default=1_000,
        metavar="N",
        help="refuse to start if there are more pages, each of which is a request (default: %(default)s)",
    )
    add("--endpoint-prompt", choices=PROMPTS, default=PROMPTS[0], help="what is sent of a page (default: %(default)s)")
    add(
        "--endpoint-words",
        metavar="FILE",
        help="file with a prompt in place of ours, such as that of a paper, with {html} for what is sent of a page, "
        "and with --judge {first} and {second} for the two texts; "
        f"or {INSTALLED}, the prompt of that package, for blocks",
    )
    add("--endpoint-chars", type=count, default=5_000, metavar="N", help="characters of a page (default: %(default)s)")
    add("--judge", metavar="PEER", help="ask which Markdown is better, ours or that of this peer, and for no main text")
    add(
        "--endpoint-price",
        type=_price,
        default=(0.0, 0.0),
        metavar="IN,OUT",
        help="prices of a million tokens of requests, and of a million tokens of answers",
    )
    add("--api-key-env", metavar="VAR", help="the environment variable that holds the key, if needed")
    add_options(parser, OPTIONS)


def _price(text: str) -> tuple[float, float]:
    try:
        asked, answered = map(float, text.split(","))
    except ValueError:
        asked = answered = -1.0
    if not (0 <= asked < 1e6 and 0 <= answered < 1e6):
        raise argparse.ArgumentTypeError(f"expected two prices of a million tokens, such as 0.15,0.6 (got {text!r})")
    return asked, answered


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"expected a regular expression ({error})") from None


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, write the requested files, and return the exit code."""
    config = configured(arguments)
    for path in (arguments.json, arguments.csv):  # Checked before the work begins.
        if path is not None and path.is_dir():
            raise UsageError(f"{path} is a folder: name a file in it")
    if config.sites != "off":
        say(IN_ORDER)
        arguments.jobs = 1
    if arguments.check:
        return _check(arguments)
    figures = _measure(arguments, config)
    print(printable(figures.text()))
    for path in filter(None, (arguments.json, arguments.csv)):
        path.parent.mkdir(parents=True, exist_ok=True)
    if arguments.json:
        text = to_json(figures.to_json(), 1) + "\n"
        arguments.json.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    if arguments.csv:
        rows = [
            {name: printable(value) if isinstance(value, str) else value for name, value in row.items()}
            for row in figures.pages()
        ]
        with arguments.csv.open("w", encoding="utf-8", errors="replace", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return 0


def _measure(arguments: argparse.Namespace, config: Config) -> Figures:
    """Measure folders of pages with known main text, or a file of WebMainBench with the metrics of its toolkit."""
    path: Path | None = None
    if any(name.endswith(SUFFIXES) and not Path(name).is_dir() for name in arguments.data):
        path = _bench_file(arguments)
        from scrapy_dripper_lab.evaluation.webmainbench import BenchFigures, read_pages

        if unused := [name for name in FOLDERS_ONLY if getattr(arguments, name)]:
            raise UsageError(f"--{unused[0]} is for folders of pages, not for {path.name}")
    judged = [arguments.judge] if arguments.judge else []
    peers = check_peers(list(dict.fromkeys([*arguments.peers, *judged])))
    sets = [] if path else load_sets(map(SetChoice.parse, arguments.data))
    setup = _setup(arguments, config, tuple(peers), rouge=arguments.rouge or path is not None)
    samples = [sample for one in sets for sample in one.samples]
    if partial := next((one.name for one in sets if any(sample.facts for sample in one.samples)), None):
        raise UsageError(f"{partial} holds pages of which only some facts are known: 'make train' measures these")
    tasks: Iterable[Any] = samples
    ids = [sample.id for sample in samples]
    if path:
        tasks = read_pages(path)
        ids = [page.id for page in read_pages(path)]
        if not ids:
            raise UsageError(f"{path} has no pages")
    requests = len(ids) * (2 if judged else 1)
    if setup.model and requests > arguments.endpoint_requests:
        raise UsageError(f"{requests:,} requests are more than --endpoint-requests {arguments.endpoint_requests:,}")
    if setup.stored is None:
        label, notes = _model(config, sets, arguments.free)
    else:
        label, notes = _stored_texts(arguments.predictions, setup.stored, set(ids))
    for note in notes:
        say(note)
    pages = measured(setup, tasks, min(arguments.jobs, len(ids)))
    found = list(tqdm(pages, total=len(ids), unit="page", desc="evaluate", disable=None))
    sources = {(one.results[OURS].run.source or "").split(", ")[0] for one in found}
    if len(sources) == 1 and (only := sources.pop()).startswith("fallback:"):
        label += f", but {only} on all pages"
    shown = {OURS: label, **{name: f"{name} {number}" for name, number in peers.items()}}
    shown |= {FREE: f"free: {arguments.free and arguments.free.name}", ENDPOINT: f"endpoint {arguments.endpoint_model}"}
    labels = {name: shown[name] for name in found[0].results}
    if path:
        return BenchFigures({"file": path.name, "pages": len(found)}, found, labels, notes, arguments.judge)
    digest = (
        sets[0].sha256 if len(sets) == 1 else hashlib.sha256("".join(one.sha256 for one in sets).encode()).hexdigest()
    )
    about = {"folder": ", ".join(one.name for one in sets), "sha256": digest, "pages": len(samples)}
    return Evaluation(about, found, labels, notes, arguments.judge, samples, arguments.company)


def _setup(arguments: argparse.Namespace, config: Config, peers: tuple[str, ...], *, rouge: bool) -> Setup:
    """Return what is measured. Raise UsageError if a measure needs a package, or for a wrong endpoint."""
    with extra("evaluate"):
        if rouge:
            load_cut()
        if arguments.study:
            import rapidfuzz  # noqa: F401
    return Setup(
        config,
        peers,
        read_stored(arguments.predictions) if arguments.predictions else None,
        rouge=rouge,
        nodes=arguments.nodes,
        study=arguments.study,
        model=_language_model(arguments),
        judged=arguments.judge,
        checkpoint=arguments.free,
    )


def _check(arguments: argparse.Namespace) -> int:
    """Compare our metrics with stored scores."""
    path = _bench_file(arguments)
    from scrapy_dripper_lab.evaluation.webmainbench import DIGITS, check

    scores, differences = check(path, load_cut())
    lines = [f"{scores:,} stored scores compared to {DIGITS} digits; {len(differences):,} differ", *differences]
    if not scores:
        lines.append("expected a page with 'NAME_content', its text by an extractor, and 'NAME_text_edit_score'")
    print(printable("\n".join(lines)))
    return 1 if differences or not scores else 0


def _bench_file(arguments: argparse.Namespace) -> Path:
    """Return the only file. Raise UsageError if it cannot be measured, also for a missing package."""
    with extra("evaluate"):
        import html2text  # noqa: F401

        from scrapy_dripper_lab.evaluation.webmainbench import check  # noqa: F401

        load_cut()
    path = Path(arguments.data[0])
    if len(arguments.data) > 1 or not arguments.data[0].endswith(SUFFIXES):
        raise UsageError(f"expected one {SUFFIXES[0]} file, or folders only (got {' '.join(arguments.data)})")
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist: expected a file of WebMainBench, as in "
            "https://github.com/scrapy-dripper/scrapy-dripper/blob/main/docs/lab/evaluation.md"
        )
    return path


def _language_model(arguments: argparse.Namespace) -> LanguageModel | None:
    """Return the language model, or None if none is named."""
    if arguments.endpoint is None:
        if unused := [
            name for name in ("judge", "endpoint_model", "endpoint_words", "api_key_env") if getattr(arguments, name)
        ]:
            raise UsageError(f"--{unused[0].replace('_', '-')} needs --endpoint URL and --endpoint-model NAME")
        return None
    if not arguments.endpoint_model:
        raise UsageError("--endpoint needs --endpoint-model NAME")
    key = key_in(arguments.api_key_env)
    try:
        endpoint = Endpoint(arguments.endpoint, arguments.endpoint_model, key, TIMEOUT)
    except ValueError as error:
        raise UsageError(f"--endpoint expects {error}") from None
    words = arguments.endpoint_words
    return LanguageModel(
        endpoint,
        arguments.endpoint_price,
        arguments.endpoint_prompt,
        prompt_of(words, JUDGED if arguments.judge else JUDGED[:1]) if words else None,
        arguments.endpoint_chars,
    )


def _model(config: Config, sets: Sequence[PageSet], checkpoint: Path | None) -> tuple[str, list[str]]:
    """Return the label of the model, and caveats. It is loaded once, so that a broken one is reported first."""
    load_engine(config).close()
    if checkpoint is not None:
        if config.engine != "qwen3":
            raise UsageError("--free needs --engine qwen3 and --model DIR, which was exported from the checkpoint")
        with extra("export"):
            from scrapy_dripper_lab.export.reference import free_engine
        free_engine(config, checkpoint).close()
    if config.engine in METHODS:
        return f"ours: {config.engine} {version(PROGRAM)}", []
    folder = Path(config.model) if config.model else bundled() if config.engine == "tagger" else None
    manifest = folder / MANIFEST if folder else None  # another engine may have none
    lists = training_pages(json.loads(manifest.read_bytes())) if manifest and manifest.is_file() else {}
    seen = {digest for pages in lists.values() for digest in pages}
    notes = [
        IN_SAMPLE.format(known=known, n=len(one.samples), name=one.name)
        for one in sets
        if (known := sum(sha256(sample.path) in seen for sample in one.samples))
    ]
    if not seen:
        notes.append(
            "The model's manifest does not say what it was trained on. If these pages are among its training data, our "
            "figures are too good."
        )
    which = "" if config.model is None else f" ({Path(config.model).name})"
    return f"ours: {config.engine} {version(PROGRAM)}{which}", notes


def _stored_texts(path: Path, stored: Mapping[str, Stored], ids: set[str]) -> tuple[str, list[str]]:
    if not stored.keys() & ids:
        raise UsageError(f"no id of {path} is the name of a page: expected ids such as {min(ids)!r}")
    notes = [
        f"Ours are the stored texts of {path.name}. Their figures are honest only if the model that made the texts "
        "had not seen these pages."
    ]
    if missing := len(ids - stored.keys()):
        notes.append(f"Pages that have no stored text and count as empty: {missing}.")
    if unknown := len(stored.keys() - ids):
        notes.append(f"Stored texts that belong to no page and are ignored: {unknown}.")
    return f"ours: {path.name}", notes
