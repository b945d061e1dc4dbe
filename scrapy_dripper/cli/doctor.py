"""``scrapy-dripper doctor``: check what is installed, whether it works, and the settings of a project."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, Any

from scrapy_dripper.characters import on_one_line
from scrapy_dripper.checks import did_you_mean, short
from scrapy_dripper.cli.console import OUT_OF_MEMORY, PROGRAM
from scrapy_dripper.config import PREFIX, Config, ConfigError
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.machine import cores, free_memory, is_out_of_memory

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
    parser = commands.add_parser(
        "doctor",
        help="check the installation, the engine, and the settings of a project",
        description="Check the installation, the engine, and the settings of a project.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)


class _Report:
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
    """Print the report and return the exit code."""
    report = _Report()
    _versions(report)
    config = _project(report)
    if config is not None and config.enabled:
        _engine(report, config)
    things = "1 thing is" if report.wrong == 1 else f"{report.wrong} things are"
    print(f"\nnot ready: {things} wrong" if report.wrong else "\nready")
    return 1 if report.wrong else 0


def _versions(report: _Report) -> None:
    print(f"{PROGRAM} {version(PROGRAM)}, Python {platform.python_version()}, {platform.platform()}")
    free = free_memory()
    memory = "" if free is None else f", {_gib(free)} of memory free"
    print(f"{cores()} {'core' if cores() == 1 else 'cores'}{memory}, {sys.executable}")
    report.part("packages")
    found, missing = [], []
    for line in requires(PROGRAM) or ():  # those of all extras
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing += [name] * ("extra ==" not in line)
    report.say(", ".join(sorted(set(found) - {f"{PROGRAM} {version(PROGRAM)}"})))
    for name in missing:
        report.complain(f"{name} is missing: pip install {name}")
    _runtime(report)


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def _runtime(report: _Report) -> None:
    from scrapy_dripper.engines.runtime import check_runtime

    try:
        check_runtime("The engine")
    except ModelError as error:
        report.complain(str(error))
        return
    import onnxruntime

    providers = ", ".join(name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers())
    report.say(f"onnxruntime {onnxruntime.__version__}: {providers}")


# A project


def _project(report: _Report) -> Config | None:
    """Return the options of the project in the current folder, or the defaults without one; None if they are wrong."""
    from scrapy.utils.project import get_project_settings, inside_project

    from scrapy_dripper.crawl.report import Report

    report.part("project")
    try:
        if not inside_project():
            report.say("none in this folder: the following is for the default settings")
            return Config()
        settings = get_project_settings()
    except Exception as error:  # the settings module can raise anything
        report.complain(f"its settings cannot be imported: {type(error).__name__}: {error}")
        return None
    report.say(f"{settings['BOT_NAME']}, settings in {os.environ.get('SCRAPY_SETTINGS_MODULE', 'no module')}")
    wrong = report.wrong
    _components(report, settings)
    own = {name: settings[name] for name in settings if isinstance(name, str) and name.startswith(PREFIX)}
    for problem in [*_mistyped(settings), *_problems(own)]:
        report.complain(problem)
    for name, value in own.items():
        report.say(f"{name} = {short(value)}")
    if not own:
        report.say("all settings have their defaults")
    broken = report.wrong > wrong
    _spiders(report, settings)
    if broken:
        return None
    try:
        config = Config.from_settings(settings)
        Report(config)  # checks that the report can be written
    except ConfigError as error:
        report.complain(str(error))
        return None
    return config


def _mistyped(names: Iterable[Any]) -> Iterator[str]:
    """Yield a problem for each name that is similar to that of a setting."""
    known = [PREFIX + option.name.upper() for option in fields(Config)]
    for name in names:
        if isinstance(name, str) and name.startswith("DRIP") and not name.startswith(PREFIX):
            meant = did_you_mean(name, known)
            yield f"{name} is not a setting of {PROGRAM}{meant or f': they begin with {PREFIX}'}"


def _problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of single settings."""
    from scrapy.settings import Settings

    for name, value in values.items():
        if problem := _problem(Settings({name: value})):
            yield problem


def _problem(settings: BaseSettings) -> str:
    try:
        Config.from_settings(settings)
    except ConfigError as error:
        return str(error)
    return ""


def _components(report: _Report, settings: BaseSettings) -> None:
    """Report whether the add-on is installed, and whether the reactor is supported."""
    addons = {
        name if isinstance(name, str) else f"{name.__module__}.{name.__qualname__}": place
        for name, place in settings.getdict("ADDONS").items()
    }
    if any(addons.get(name) is not None for name in ADDON):
        report.say("the add-on is installed", "ok")
    else:
        report.say('the add-on is not installed: ADDONS = {"scrapy_dripper.Addon": 500} fills the items', "note")
    if settings.getbool("TWISTED_REACTOR_ENABLED", True) and settings["TWISTED_REACTOR"] not in (REACTOR, None):
        report.complain(f"TWISTED_REACTOR must be {REACTOR!r}, Scrapy's default (got {settings['TWISTED_REACTOR']!r})")


def _spiders(report: _Report, settings: BaseSettings) -> None:
    """Report the settings of spiders, and their problems."""
    from scrapy.spiderloader import SpiderLoader

    try:
        loader = SpiderLoader.from_settings(settings)
        names = loader.list()
    except Exception as error:  # a spider's module can raise anything
        report.complain(f"the spiders cannot be imported: {type(error).__name__}: {error}")
        return
    for name in names:
        custom = loader.load(name).custom_settings or {}
        own = {key: value for key, value in custom.items() if isinstance(key, str) and key.startswith(PREFIX)}
        for problem in [*_mistyped(custom), *_problems(own)]:
            report.complain(f"spider {name}: {problem}")
        if own:
            report.say(f"spider {name}: " + ", ".join(f"{key} = {short(value)}" for key, value in own.items()))


# The engine


def _engine(report: _Report, config: Config) -> None:
    from scrapy_dripper.data import Document
    from scrapy_dripper.extractor import Extractor

    report.part("engine")
    report.say(f"{config.engine}, {config.model or 'its default model'}")
    document = Document(SAMPLE, "https://example.org/tide")
    try:
        extractor = Extractor(config)
        try:
            (page,) = extractor.extract([document])
        finally:
            extractor.close()
    except (ModelError, ConfigError) as error:
        report.complain(str(error))
        return
    except Exception as error:  # a custom engine can raise anything
        report.complain(OUT_OF_MEMORY if is_out_of_memory(error) else f"{type(error).__name__}: {error}")
        return
    if page.is_empty or page.fallback_reason is not None:
        report.complain(
            f"a sample page was not extracted: {page.fallback_reason or page.source}, {page.error or 'empty'}"
        )
    else:
        report.say(f"a sample page was extracted in {page.details['milliseconds']:.0f} ms, by {page.source}", "ok")
    _workers(report, config, document)


def _workers(report: _Report, config: Config, document: Any) -> None:
    """Start one worker process, as a crawl does, and let it extract a page."""
    from scrapy_dripper.workers import StartError, Task, WorkerError, Workers, processes

    if not processes(config):
        report.say("a crawl extracts in a thread (DRIPPER_PROCESSES = 0): a single page can block it", "note")
        return
    most, free = processes(config) * config.worker_memory << 20, free_memory()
    if free is not None and most > free:
        report.say(
            f"{processes(config)} worker processes may take {_gib(most)} of memory (DRIPPER_PROCESSES, "
            f"DRIPPER_WORKER_MEMORY), and {_gib(free)} are free: if they need all of it at once, the crawl ends",
            "note",
        )
    try:
        workers = Workers(replace(config, processes=1))
        try:
            (page,) = workers.pool.extract([Task(document, config)])
        finally:
            workers.close()
    except StartError as error:
        line = f"no worker process can be started: {error}"
        if config.processes is not None:
            report.complain(f"{line}; with DRIPPER_PROCESSES = 0 none is needed")
        else:
            report.say(f"{line}; a crawl will extract in a thread", "note")
        return
    except (ModelError, ConfigError, WorkerError) as error:
        report.complain(f"in a worker process: {error}")
        return
    if page.is_empty:
        report.complain(f"a worker process found nothing on a sample page: {page.error or page.fallback_reason}")
    else:
        report.say(f"a worker process was started and tested; a crawl has up to {processes(config)}", "ok")
