"""``scrapy-dripper doctor``: check what is installed, whether it works, and the settings of a project."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Any

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.checks import METHODS, short
from scrapy_dripper.cli.console import PROGRAM
from scrapy_dripper.cli.options import add_command
from scrapy_dripper.config import PREFIX, Config, ConfigError, ModelError
from scrapy_dripper.machine import cores, free_memory

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

EXAMPLES = """\
examples:
  scrapy-dripper doctor        in the folder of a Scrapy project, it also checks its settings and those of its spiders

The command changes nothing and needs no network. It loads the model that DRIPPER_ENGINE names in the project.

exit codes: 0 ready, 1 something is wrong (each line that begins with "wrong" says what to do), 2 wrong usage,
130 Ctrl-C
"""
ADDON = ("scrapy_dripper.Addon", "scrapy_dripper.addon.Addon")
REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
SAMPLE = """<!doctype html><html lang="en"><head><title>The tide</title></head><body>
<nav><a href="/">Home</a> <a href="/shop">Shop</a> <a href="/about">About us</a></nav>
<article><h1>The tide</h1><p>Twice a day the sea comes up to the old wall, stays there for the time that it takes to
drink a cup of tea, and goes out again over the sand.</p><p>The table in the harbour office says when, and in a hundred
years it has been wrong only once, in the winter of the great storm.</p></article>
<footer><a href="/privacy">Privacy</a> <a href="/terms">Terms</a></footer></body></html>"""
"""A page on which every engine should find main content."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    add_command(commands, "doctor", run, "check the installation, the engine, and the settings of a project", EXAMPLES)


class _Findings:
    """Lines on standard output, and the number of problems."""

    def __init__(self) -> None:
        self.wrong = 0

    def part(self, title: str) -> None:
        print(f"\n{title}", flush=True)

    def say(self, line: str, mark: str = "") -> None:
        print(f"  {mark:<7}{on_one_line(line)}" if mark else f"  {on_one_line(line)}", flush=True)

    def complain(self, line: str) -> None:
        self.wrong += 1
        self.say(line, "wrong")


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 (there are no options)
    """Print the findings and return the exit code."""
    findings = _Findings()
    _versions(findings)
    config = _project(findings)
    if config is not None and config.enabled:
        _engine(findings, config)
    things = "1 thing is" if findings.wrong == 1 else f"{findings.wrong} things are"
    print(f"\nnot ready: {things} wrong" if findings.wrong else "\nready")
    return 1 if findings.wrong else 0


def _versions(findings: _Findings) -> None:
    print(f"{PROGRAM} {version(PROGRAM)}, Python {platform.python_version()}, {platform.platform()}")
    free = free_memory()
    memory = "" if free is None else f", {free / (1 << 30):.1f} GiB of memory free"
    print(f"{cores()} {'core' if cores() == 1 else 'cores'}{memory}, {sys.executable}")
    findings.part("packages")
    found, missing = [], []
    for line in requires(PROGRAM) or ():  # those of all extras
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing += [name] * ("extra ==" not in line)
    findings.say(", ".join(sorted(set(found) - {f"{PROGRAM} {version(PROGRAM)}"})))
    for name in missing:
        findings.complain(f"{name} is missing: pip install {name}")


def _project(findings: _Findings) -> Config | None:
    """Return the options of the project in the current folder, or the defaults without one; None if they are wrong."""
    from scrapy.utils.project import get_project_settings, inside_project

    from scrapy_dripper.crawl.report import Report

    findings.part("project")
    try:
        if not inside_project():
            findings.say("none in this folder: the following is for the default settings")
            return Config()
        settings = get_project_settings()
    except Exception as error:  # the settings module can raise anything
        findings.complain(f"its settings cannot be imported: {type(error).__name__}: {error}")
        return None
    findings.say(f"{settings['BOT_NAME']}, settings in {os.environ.get('SCRAPY_SETTINGS_MODULE', 'no module')}")
    wrong = findings.wrong
    _components(findings, settings)
    own = _own(settings)
    for problem in _problems(settings):
        findings.complain(problem)
    for name, value in own.items():
        findings.say(f"{name} = {short(value)}")
    if not own:
        findings.say("all settings have their defaults")
    broken = findings.wrong > wrong
    _spiders(findings, settings)
    if broken:
        return None
    try:
        config = Config.from_settings(settings)
        Report(config)  # checks that the report can be written
    except ConfigError as error:
        findings.complain(str(error))
        return None
    return config


def _own(settings: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in settings if isinstance(name, str) and name.startswith(PREFIX)}


def _problems(settings: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the problems of single settings, and of names that are similar to theirs."""
    from scrapy.settings import Settings

    for name in settings:
        try:
            Config.from_settings(Settings({name: settings[name]}))
        except ConfigError as error:  # noqa: PERF203 (each setting by itself)
            yield str(error)


def _components(findings: _Findings, settings: BaseSettings) -> None:
    """Report whether the add-on is installed, and whether the reactor is supported."""
    addons = {
        name if isinstance(name, str) else f"{name.__module__}.{name.__qualname__}": place
        for name, place in settings.getdict("ADDONS").items()
    }
    if any(addons.get(name) is not None for name in ADDON):
        findings.say("the add-on is installed", "ok")
    else:
        findings.say('the add-on is not installed: ADDONS = {"scrapy_dripper.Addon": 500} fills the items', "note")
    if settings.getbool("TWISTED_REACTOR_ENABLED", True) and settings["TWISTED_REACTOR"] not in (REACTOR, None):
        findings.complain(
            f"TWISTED_REACTOR must be {REACTOR!r}, Scrapy's default (got {settings['TWISTED_REACTOR']!r})"
        )


def _spiders(findings: _Findings, settings: BaseSettings) -> None:
    from scrapy.spiderloader import SpiderLoader

    try:
        loader = SpiderLoader.from_settings(settings)
        names = loader.list()
    except Exception as error:  # a spider's module can raise anything
        findings.complain(f"the spiders cannot be imported: {type(error).__name__}: {error}")
        return
    for name in names:
        custom = loader.load(name).custom_settings or {}
        for problem in _problems(custom):
            findings.complain(f"spider {name}: {problem}")
        if own := _own(custom):
            findings.say(f"spider {name}: " + ", ".join(f"{key} = {short(value)}" for key, value in own.items()))


def _engine(findings: _Findings, config: Config) -> None:
    """Extract a page as a crawl does, in a worker process if there are any."""
    from scrapy_dripper.crawl.batcher import InProcess
    from scrapy_dripper.data import Document
    from scrapy_dripper.workers.pool import Workers, processes
    from scrapy_dripper.workers.process import StartError, WorkerError
    from scrapy_dripper.workers.wire import Task

    findings.part("engine")
    findings.say(f"{config.engine}, {'no model' if config.engine in METHODS else config.model or 'its default model'}")
    if not processes(config):
        findings.say("a crawl extracts in a thread (DRIPPER_PROCESSES = 0): a single page can block it", "note")
    try:
        workers = Workers(replace(config, processes=1)) if processes(config) else InProcess(config)
        try:
            (page,) = workers.pool.extract([Task(Document(SAMPLE, "https://example.org/tide"), config)])
        finally:
            workers.close()
    except StartError as error:
        findings.complain(f"no worker process can be started: {error}; with DRIPPER_PROCESSES = 0 none is needed")
    except (ModelError, ConfigError, WorkerError) as error:
        findings.complain(str(error))
    except Exception as error:  # a custom engine can raise anything
        findings.complain(f"{type(error).__name__}: {error}")
    else:
        if config.engine == "qwen3" and config.model:
            from scrapy_dripper.engines.qwen3.folder import read_manifest

            if doubt := read_manifest(config.model).doubt:
                findings.say(doubt, "note")
        if page.is_empty or page.fallback_reason is not None:
            problem = f"{page.fallback_reason or page.source}, {page.error or 'empty'}"
            findings.complain(f"a sample page was not extracted: {problem}")
            return
        milliseconds = f"{page.details['milliseconds']:.0f} ms"
        findings.say(f"a sample page was extracted in {milliseconds}, by {page.source}", "ok")
