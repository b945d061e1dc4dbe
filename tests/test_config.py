"""Options: defaults, checks, settings and per-request overrides."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import BaseSettings, Settings

from scrapy_dripper.checks import ENGINES
from scrapy_dripper.cli.options import OPTIONS, add_options, configured
from scrapy_dripper.config import Config, ConfigError

LIMITS = "bytes, nodes, depth, blocks, output"


def callable_fallback(html: str, url: str) -> str:
    return html + url


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("enabled", "False", False),
        ("enabled", "1", True),
        ("batch_size", "8", 8),
        ("timeout", 3, 3.0),
        ("model", Path("models/mine"), "models/mine"),
        ("model", "", None),
        ("model", "m" * 4_096, "m" * 4_096),
        ("device", "tensorrt:1", "tensorrt:1"),
        ("markdown_field", None, None),
        ("meta_field", "", None),
        ("processes", "2", 2),
        ("processes", "0", 0),
        ("processes", "", None),
        ("engine", "package.module.load", "package.module.load"),
        ("fallback", "package.module.function", "package.module.function"),
        ("fallback", callable_fallback, callable_fallback),
    ],
)
def test_values_as_they_come_from_settings_and_command_lines(name: str, value: Any, expected: Any) -> None:
    config = Config.from_settings(Settings({f"DRIPPER_{name.upper()}": value}))

    assert getattr(config, name) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("enabled", "perhaps", "DRIPPER_ENABLED must be True or False (got 'perhaps')"),
        (
            "engine",
            "gpt",
            f"DRIPPER_ENGINE must be one of {', '.join(map(repr, ENGINES))} or a dotted path to a callable (got 'gpt')",
        ),
        ("model", "m" * 4_097, "DRIPPER_MODEL must be a non-empty string of at most 4,096 characters (got 'mmm"),
        ("batch_size", 0, "DRIPPER_BATCH_SIZE must be a whole number of at least 1 (got 0)"),
        ("batch_size", 2.5, "DRIPPER_BATCH_SIZE must be a whole number of at least 1 (got 2.5)"),
        ("batch_size", True, "DRIPPER_BATCH_SIZE must be a whole number of at least 1 (got True)"),
        ("batch_wait", -1, "DRIPPER_BATCH_WAIT must be a number of seconds above 0 (got -1)"),
        ("timeout", float("nan"), "DRIPPER_TIMEOUT must be a number of seconds above 0 (got nan)"),
        ("timeout", 10**400, "DRIPPER_TIMEOUT must be a number of seconds above 0"),
        ("timeout", float("inf"), "DRIPPER_TIMEOUT must be a number of seconds above 0 (got inf)"),
        ("oversize", "split", "DRIPPER_OVERSIZE must be one of 'fallback', 'truncate' (got 'split')"),
        ("fallback", "perhaps", "DRIPPER_FALLBACK must be one of 'trafilatura', 'html', 'r4',"),
        ("favor", "both", "DRIPPER_FAVOR must be one of 'balanced', 'precision', 'recall' (got 'both')"),
        ("comments", False, "DRIPPER_COMMENTS must be one of 'auto', 'keep', 'drop' (got False)"),
        ("worker_memory", 100, "DRIPPER_WORKER_MEMORY must be a whole number of at least 256 (got 100)"),
        ("processes", "many", "DRIPPER_PROCESSES must be a whole number of at least 0 (got 'many')"),
        ("engine", "my engine.load", "DRIPPER_ENGINE must be one of 'tagger', 'qwen3', 'trafilatura'"),
        ("fallback", dict, "DRIPPER_FALLBACK must be one of"),
        ("html_field", 3, "DRIPPER_HTML_FIELD must be the name of a field: at most 100 letters, digits"),
        ("limits", 3, f"DRIPPER_LIMITS must be a dict with some of the keys {LIMITS} (got 3)"),
        ("limits", '{"blocks": 5', "DRIPPER_LIMITS must be a dict with some of the keys bytes, nodes,"),
        ("limits", "[" * 4_000, "DRIPPER_LIMITS must be a dict"),
        ("limits", {"block": 5}, "DRIPPER_LIMITS has no key 'block'; did you mean blocks?"),
        ("limits", {"colour": 5}, f"DRIPPER_LIMITS has no key 'colour'; the keys are {LIMITS}"),
        ("limits", {"blocks": 0}, 'DRIPPER_LIMITS["blocks"] must be a whole number of at least 1 (got 0)'),
        ("limits", {"depth": 100}, 'DRIPPER_LIMITS["depth"] must be a whole number of at least 256 (got 100)'),
        ("markdown", {"links": "dropp"}, "DRIPPER_MARKDOWN[\"links\"] must be one of 'keep', 'drop', 'citations' (got"),
        *(
            ("markdown", {"types": value}, "must be a list of some of 'title', 'paragraph'")
            for value in (["title", "chart"], [], 3)
        ),
        ("markdown", "html2txt", "must be one of 'dripper', 'html2text' (got 'html2txt'; did you mean html2text?)"),
        ("chunks", {"size": 10}, 'DRIPPER_CHUNKS["size"] must be a whole number of at least 50 (got 10)'),
    ],
)
def test_a_wrong_value_says_what_was_expected_and_what_came(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Config.from_settings(Settings({f"DRIPPER_{name.upper()}": value}))

    assert message in str(raised.value)


def test_a_setting_that_does_not_exist() -> None:
    """A misspelt name is an error."""
    with pytest.raises(ConfigError, match=r"DRIPPER_BATCHSIZE is not a setting .* DRIPPER_BATCH_SIZE"):
        Config.from_settings(Settings({"DRIPPER_BATCHSIZE": 8}))
    with pytest.raises(ConfigError, match=r"DRIPER_FAVOR is not a setting .* did you mean DRIPPER_FAVOR"):
        Config.from_settings(Settings({"DRIPER_FAVOR": "recall"}))
    assert Config.from_settings(Settings({"DRIP_API_KEY": "of another package"})) == Config()


@pytest.mark.parametrize(
    "value", [{"blocks": 500}, {"blocks": "500"}, '{"blocks": 500}', BaseSettings({"blocks": 500})]
)
def test_a_dict_may_be_json(value: Any) -> None:
    """A command line can only write it as text: -s DRIPPER_LIMITS='{"blocks": 500}'. Other keys keep their defaults."""
    config = Config.from_settings(Settings({"DRIPPER_LIMITS": value}))

    assert config.limits.blocks == 500
    assert replace(config.limits, blocks=10_000) == Config().limits


def test_the_name_of_a_writer_stands_for_its_dict() -> None:
    assert Config(markdown="html2text").markdown == Config(markdown={"writer": "html2text"}).markdown
    assert Config(markdown="html2text").markdown.writer == "html2text"


def test_a_request_changes_some_keys_of_a_dict() -> None:
    """The others stay as the settings have them, and None is the default of all that a request can change."""
    crawl = Config(markdown={"links": "drop"}, limits={"blocks": 7}, chunks={"size": 50, "tokenizer": "mine"})
    values = {"markdown": {"tables": "linear"}, "limits": '{"nodes": 20}', "chunks": None}
    config, wrong, _ = crawl.overridden(values)

    assert wrong == 0
    assert (config.markdown.links, config.markdown.tables) == ("drop", "linear")
    assert (config.limits.blocks, config.limits.nodes) == (7, 20)
    assert (config.chunks.size, config.chunks.tokenizer) == (2_000, "mine")


def accepts_none(option: Any) -> bool:
    """Return True if None is a value of an option."""
    try:
        return option.metadata["check"](None) is None
    except (TypeError, ValueError):  # the class of a dict takes no argument
        return False


OPTIONAL = [option for option in fields(Config) if accepts_none(option)]


@pytest.mark.parametrize("option", OPTIONAL, ids=lambda option: option.name)
@pytest.mark.parametrize("none", [None, "None", "none", ""])
def test_none_is_none_at_every_door(option: Any, none: str | None) -> None:
    """A command line can only write it as text: -s DRIPPER_HTML_FIELD=None."""
    settings = Settings({f"DRIPPER_{option.name.upper()}": none})
    assert getattr(Config.from_settings(settings), option.name) is None

    if option.metadata["per_request"]:
        assert getattr(Config().overridden({option.name: none})[0], option.name) is None
    if option.name in OPTIONS and none is not None:
        parser = ArgumentParser()
        add_options(parser)
        flag = "--" + option.name.replace("_", "-")
        assert getattr(configured(parser.parse_args([flag, none])), option.name) is None
