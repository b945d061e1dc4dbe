"""``scrapy-dripper corpus templates``: learn rules for the pages of each template of a host, with datatrove."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace

from scrapy_dripper.cli.console import say
from scrapy_dripper.cli.corpus import ArchiveRun, add_inputs, config_values, corpus_steps, lost, totals
from scrapy_dripper.cli.options import add_command, add_options, configured

TEMPLATES_EXAMPLES = """\
examples:
  scrapy-dripper corpus templates 'shards/*.warc.gz' -o rules/
  scrapy-dripper corpus extract 'shards/*.warc.gz' -o pages/ --templates rules/

The pages of each host are clustered by their layouts, over all archives. The engine labels a few pages of each cluster.
DIR/HOST.1.toml and so on have what is kept and what is dropped, as CSS and XPath for DRIPPER_RULES. You can edit them.
After an interruption, repeat the command.

exit codes: 0 every task was done, 1 a task failed or a record could not be read, 2 wrong usage or an output that cannot
be written, 130 Ctrl-C
"""


def add_templates(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    templates = add_command(
        commands, "templates", _templates, "learn rules for the pages of each template of a host", TEMPLATES_EXAMPLES
    )
    add_inputs(templates, "the folder of the rules")
    add_options(templates, ("engine", "model", "batch_size", "favor", "comments", "limits"))


def _templates(arguments: argparse.Namespace) -> int:
    """Learn the templates of all archives and return the exit code."""
    steps = corpus_steps()
    from scrapy_dripper_lab.corpus.templates import LAYOUTS, LEAST_CLUSTER, LayoutStep, TemplateLearner

    config = replace(configured(arguments), fallback="none")
    run = ArchiveRun(arguments, {"config": config_values(config)})
    layouts, logs = run.folder / "layouts", run.folder / "logs"
    if not run.pipeline(
        "layouts",
        logs / "layouts",
        steps.ListedArchives(run.root, run.listed, max_bytes=10 * config.limits.bytes),
        LayoutStep(config),
        steps.RowWriter(layouts, LAYOUTS),
    ):
        return 1
    if not run.pipeline("templates", logs / "templates", TemplateLearner(layouts, run.folder, config)):
        return 1
    shutil.rmtree(layouts, ignore_errors=True)
    read, found = totals(logs / "layouts")["FastWARC"], totals(logs / "templates")["Templates"]
    say(
        f"{read['pages']:,} pages, {found['clusters']:,} clusters of at least {LEAST_CLUSTER} pages, "
        f"{found['labelled']:,} pages labelled, {found['templates']:,} templates"
    )
    if found["gone"]:
        say(f"{found['gone']:,} pages are no longer where they were")
    return 1 if lost(read) or found["gone"] else 0
