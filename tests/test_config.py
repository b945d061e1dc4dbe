"""Options: defaults, checks, settings and per-request overrides."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_dripper.cli.options import OPTIONS, add_options, configured
from scrapy_dripper.config import Config, ConfigError


def callable_fallback(html: str, url: str) -> str:
    return html + url


def test_defaults() -> None:
    """Without any setting the plugin uses the bundled tagger, with Trafilatura as its fallback."""
    config = Config()

    assert (config.engine, config.model, config.fallback) == ("tagger", None, "trafilatura")
    assert (config.html_field, config.markdown_field, config.meta_field) == ("main_html", "markdown", None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("fallbak", "; did you mean fallback?"), ("colour", "; the options are enabled, engine, model,")],
)
def test_an_unknown_option_is_refused_with_the_one_that_is_meant(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"{name} is not an option of Config{meant}")):
        Config(**{name: "empty"})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("enabled", "False", False),
        ("enabled", "1", True),
        ("batch_size", "8", 8),
        ("batch_wait", "0.5", 0.5),
        ("timeout", 3, 3.0),
        ("model", Path("models/mine"), "models/mine"),
        ("model", "", None),
        ("markdown_field", None, None),
        ("meta_field", "", None),
        ("cascade", "0.9", 0.9),
        ("min_quality", "0.5", 0.5),
        ("min_quality", "", None),
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
            "DRIPPER_ENGINE must be one of 'tagger', 'qwen3' or a dotted path to a callable (got 'gpt')",
        ),
        ("device", "tpu", "DRIPPER_DEVICE must be one of 'auto', 'cpu', 'cuda' (got 'tpu')"),
        ("batch_size", 0, "DRIPPER_BATCH_SIZE must be a whole number of at least 1 (got 0)"),
        ("batch_size", 2.5, "DRIPPER_BATCH_SIZE must be a whole number of at least 1 (got 2.5)"),
        ("batch_size", True, "DRIPPER_BATCH_SIZE must be a whole number of at least 1 (got True)"),
        ("max_blocks", "many", "DRIPPER_MAX_BLOCKS must be a whole number of at least 1 (got 'many')"),
        ("batch_wait", -1, "DRIPPER_BATCH_WAIT must be a number of seconds above 0 (got -1)"),
        ("timeout", float("nan"), "DRIPPER_TIMEOUT must be a number of seconds above 0 (got nan)"),
        ("timeout", 10**400, "DRIPPER_TIMEOUT must be a number of seconds above 0"),
        ("timeout", float("inf"), "DRIPPER_TIMEOUT must be a number of seconds above 0 (got inf)"),
        ("oversize", "split", "DRIPPER_OVERSIZE must be one of 'fallback', 'truncate', 'window' (got 'split')"),
        ("fallback", "perhaps", "DRIPPER_FALLBACK must be one of 'trafilatura', 'html', 'r4',"),
        ("cascade", 1.5, "DRIPPER_CASCADE must be a number from 0 to 1 (got 1.5)"),
        ("favor", "both", "DRIPPER_FAVOR must be one of 'balanced', 'precision', 'recall' (got 'both')"),
        ("comments", False, "DRIPPER_COMMENTS must be one of 'auto', 'keep', 'drop' (got False)"),
        ("captions", "all", "DRIPPER_CAPTIONS must be one of 'auto', 'keep', 'drop' (got 'all')"),
        ("min_quality", 60, "DRIPPER_MIN_QUALITY must be a number from 0 to 1 (got 60)"),
        ("cascade", "often", "DRIPPER_CASCADE must be a number from 0 to 1 (got 'often')"),
        ("max_nodes", 0, "DRIPPER_MAX_NODES must be a whole number of at least 1 (got 0)"),
        ("max_attributes", "x", "DRIPPER_MAX_ATTRIBUTES must be a whole number of at least 1 (got 'x')"),
        ("max_text", -1, "DRIPPER_MAX_TEXT must be a whole number of at least 1 (got -1)"),
        ("max_depth", 100, "DRIPPER_MAX_DEPTH must be a whole number of at least 256 (got 100)"),
        ("worker_memory", 100, "DRIPPER_WORKER_MEMORY must be a whole number of at least 256 (got 100)"),
        ("processes", -1, "DRIPPER_PROCESSES must be a whole number of at least 0 (got -1)"),
        ("processes", "many", "DRIPPER_PROCESSES must be a whole number of at least 0 (got 'many')"),
        (
            "engine",
            "my engine.load",
            "DRIPPER_ENGINE must be one of 'tagger', 'qwen3' or a dotted path to a callable",
        ),
        ("fallback", 3, "DRIPPER_FALLBACK must be one of"),
        ("fallback", dict, "DRIPPER_FALLBACK must be one of"),
        ("html_field", 3, "DRIPPER_HTML_FIELD must be the name of a field: at most 100 letters, digits"),
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


def test_a_request_overrides_some_options() -> None:
    config = Config().override({"fallback": "empty", "max_blocks": 10, "html_field": None, "max_nodes": 20})

    assert (config.fallback, config.max_blocks, config.html_field, config.max_nodes) == ("empty", 10, None, 20)
    assert config.batch_size == Config().batch_size


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"batch_size": 3},
            "takes the keys fallback, favor, comments, captions, min_quality, retry_shells, rules, oversize",
        ),
        ({"model": "x"}, "takes the keys"),
        ({"timeout": 9}, "takes the keys"),
        ({"worker_memory": 100_000}, "takes the keys"),
        ({"processes": 100}, "takes the keys"),
        ({"engine": "os.system"}, "takes the keys"),
        ({"fallback": "os.system"}, "a callable is named in the settings"),
        ({"fallback": callable_fallback}, "a callable is named in the settings"),
        ({"max_bytes": 0}, "at least 1"),
    ],
)
def test_what_a_request_cannot_override(values: dict[str, Any], message: str) -> None:
    """Options of the crawl cannot change by page, and a request's meta cannot choose code to run."""
    with pytest.raises(ConfigError, match=message):
        Config().override(values)


def test_every_option_has_a_line_of_documentation() -> None:
    assert all(option.metadata["doc"].endswith(".") for option in fields(Config))


OPTIONAL = [
    option for option in fields(Config) if option.default is None or option.name.endswith(("_field", "_tokens"))
]


@pytest.mark.parametrize("option", OPTIONAL, ids=lambda option: option.name)
@pytest.mark.parametrize("none", [None, "None", "none", ""])
def test_none_is_none_at_every_door(option: Any, none: str | None) -> None:
    """A command line can only write it as text: -s DRIPPER_HTML_FIELD=None."""
    settings = Settings({f"DRIPPER_{option.name.upper()}": none})
    assert getattr(Config.from_settings(settings), option.name) is None

    if option.metadata["per_request"]:
        assert getattr(Config().override({option.name: none}), option.name) is None
    if option.name in OPTIONS and none is not None:
        parser = ArgumentParser()
        add_options(parser)
        flag = "--" + option.name.replace("_", "-")
        assert getattr(configured(parser.parse_args([flag, none])), option.name) is None


def test_no_option_that_may_be_none_is_missing_above() -> None:
    def accepts_none(option: Any) -> bool:
        try:
            return option.metadata["check"](None) is None
        except ValueError:
            return False

    assert [option.name for option in fields(Config) if accepts_none(option)] == [option.name for option in OPTIONAL]
