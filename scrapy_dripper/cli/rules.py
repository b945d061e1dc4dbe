"""``scrapy-dripper rules check`` and ``learn``: show what rules select, and make rules of the labels of an engine."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.cli.console import Outcomes, UsageError, say, why
from scrapy_dripper.cli.inputs import Source, find_sources, read_page
from scrapy_dripper.cli.options import a_url, add_command, add_options, add_url, configured
from scrapy_dripper.config import Config
from scrapy_dripper.data import SUSPECT
from scrapy_dripper.paths import replace_file
from scrapy_dripper.rules import SiteRule

if TYPE_CHECKING:
    from scrapy_dripper.extractor import OneWorker

EXAMPLES = """\
examples:
  scrapy-dripper rules check rules.toml page.html --url https://example.com/news/1

Rules override the labels of the model. If a rule selects no blocks of a page, its line says "nothing". As in a crawl,
a page for which a selector takes too long is given up after 30 seconds.

exit codes: 0 every rule selected something on at least one of its pages, 1 a rule selected nothing on any of them, a
page has no rules, or a page cannot be read, 2 wrong usage or a wrong rule (one sentence says which), 130 Ctrl-C
"""
LEARN_EXAMPLES = """\
examples:
  scrapy-dripper rules learn https://example.com/news/1 https://example.com/news/2 -o rules.toml
  scrapy-dripper rules learn pages/ --url https://example.com/ --engine qwen3 --model qwen3/ -o rules.toml

The pages should be of one kind. FILE says what is kept and dropped of them, as CSS and XPath for DRIPPER_RULES. Edit it
and try it with "rules check". Of several pages of a host, only places that two of them have are in it.

exit codes: 0 the rules were written, 1 a page could not be used, 2 wrong usage, 130 Ctrl-C
"""
SHOWN = 5
"""Number of blocks shown for each rule."""
LONGEST_TEXT = 70
"""Number of characters shown for each block."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    rules = commands.add_parser("rules", help="try rules for the pages of a site, or learn them", allow_abbrev=False)
    parts = rules.add_subparsers(title="commands", metavar="COMMAND")
    check = add_command(parts, "check", _check, "show which blocks of pages each rule selects", EXAMPLES)
    check.add_argument("rules", metavar="FILE", help="the rules, TOML or JSON")
    check.add_argument("pages", nargs="+", metavar="PAGE", help="pages, as for extract")
    add_url(check)
    learn = add_command(
        parts, "learn", _learn, "write rules that keep and drop what an engine does on a few pages", LEARN_EXAMPLES
    )
    learn.add_argument("pages", nargs="+", metavar="PAGE", help="pages, as for extract")
    learn.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="a new file for the rules, TOML"
    )
    learn.add_argument("--url", type=a_url, help="URL of the site of files; by default the one that they declare")
    add_options(learn, ("engine", "model", "favor", "comments", "limits"))


def _learn(arguments: argparse.Namespace) -> int:
    """Write the rules and return the exit code."""
    import numpy as np

    from scrapy_dripper.engines import profile_of
    from scrapy_dripper.extractor import Extractor
    from scrapy_dripper.page import PageError, read
    from scrapy_dripper.rules import host_of
    from scrapy_dripper.sites.templates import TemplateExample, read_example, rules_of, to_toml, usable_rules
    from scrapy_dripper.sites.templates import template_labels as compared

    config = replace(configured(arguments), fallback="none")
    if arguments.output.exists():
        raise UsageError(f"{arguments.output} exists: name another file, because somebody may have edited this one")
    outcomes = Outcomes()
    sources = [replace(one, url=arguments.url or "") for one in find_sources(arguments.pages, outcomes.fail)]
    examples: dict[str, list[TemplateExample]] = defaultdict(list)
    with Extractor(config) as extractor:
        for source in sources:
            try:
                document = read_page(source, config)
                host = host_of(document.url)
                if not host:
                    raise ValueError("its URL is unknown, and so is its site: --url gives it, also for several files")
                (found,) = extractor.extract([document])
                if not any(found.labels):
                    raise ValueError(found.error or "the model found no main content")
                page = read(document, config, profile_of(extractor.engine), extractor.engine.limits.max_blocks)
                if len(found.labels) == len(page.blocks):  # not if a method has read a part of the page
                    example = read_example(compared(page, []).example(np.array(found.labels)))
                    if example.paths:
                        examples[host].append(example)
                        continue
                raise ValueError("its blocks, or the names of its elements, are too many or too long to learn from")
            except (OSError, ValueError, PageError) as error:
                outcomes.fail(source.name, why(error))
    texts = []
    for host, own in examples.items():
        rules = usable_rules(rules_of(own, host, min(2, len(own))))
        texts.append(to_toml(rules, f"learnt from the labels of {config.engine} on {len(own)} of its pages"))
    if not texts:
        say("there is no page to learn from, so nothing was written")
        return 1
    replace_file(arguments.output, "\n".join(texts))
    return 1 if outcomes.failed else 0


def _check(arguments: argparse.Namespace) -> int:
    """Show what each rule selects and return the exit code."""
    from scrapy_dripper.extractor import OneWorker

    config = Config(rules=arguments.rules, fallback="none")
    outcomes = Outcomes()
    sources = find_sources(arguments.pages, outcomes.fail, arguments.url)
    selects: dict[SiteRule, bool] = {}
    worker = OneWorker(config)
    for source in sources:
        try:
            lines = list(_lines(source, config, worker))
        except (OSError, ValueError) as error:
            outcomes.fail(source.name, why(error))
            continue
        if not lines:
            outcomes.fail(
                source.name, "no rule is for this page; rules are chosen by URL, which --url gives for a file"
            )
            continue
        print(on_one_line(source.name))
        for line, rule, takes in lines:
            print(on_one_line(f"  {line}"))
            selects[rule] = selects.get(rule, False) or takes
    worker.close()
    for rule in (rule for rule, takes in selects.items() if not takes):
        outcomes.fail(f"{rule.kind} {rule.pattern} {rule.selector}", "selects nothing on any of these pages")
    return 1 if outcomes.failed else 0


def _lines(source: Source, config: Config, worker: OneWorker) -> Iterator[tuple[str, SiteRule, bool]]:
    """Yield a line for each rule of a page, the rule, and whether it selects something.

    Raise ValueError for a page that cannot be read, or that stops the worker, so that it would block this process.
    """
    from scrapy_dripper.choose.user_rules import found
    from scrapy_dripper.page import PageError, read

    document = read_page(source, config)
    tried = worker.extract(document, config)
    if tried is not None and tried.fallback_reason in SUSPECT:
        raise ValueError(f"{tried.fallback_reason}: {tried.error}")
    try:
        page = read(document, config)
    except PageError as error:
        raise ValueError(f"{error.reason}: {error}") from None
    for one in found(page, config.rules):
        texts = [" ".join(page.blocks.text[block].split()) for block in one.blocks[:SHOWN]]
        shown = ", ".join(f'"{text[:LONGEST_TEXT]}{"..." if len(text) > LONGEST_TEXT else ""}"' for text in texts)
        more = ", ..." if len(one.blocks) > SHOWN else ""
        takes = "nothing"
        if one.blocks:
            takes = f"{len(one.blocks)} {'block' if len(one.blocks) == 1 else 'blocks'}: {shown}{more}"
        elif one.nodes:
            takes = "nothing: it selects parts of blocks, which are kept or dropped as a whole"
        yield f"{one.rule.kind:<5}  {one.rule.pattern}  {one.rule.selector}  {takes}", one.rule, bool(one.blocks)
