"""The meta of a request can come from outside. It can only choose what the settings allow, and names no file or
code.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrapy_dripper.checks import FALLBACKS, METHODS
from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.rules import Rules

ALLOWED = [option.name for option in fields(Config) if option.metadata["per_request"]]
FORBIDDEN = [option.name for option in fields(Config) if not option.metadata["per_request"]]


def test_what_decides_about_files_code_and_the_machine_is_no_part_of_a_request() -> None:
    """A new option is not allowed in requests until it is listed here."""
    assert {"model", "timeout", "batch_size", "processes", "warc"} <= set(FORBIDDEN)
    named = [name for name in ALLOWED if not isinstance(getattr(Config(), name), (bool, int)) and "field" not in name]
    # An engine is a method, which loads no model and runs no code of others; rules are a dict with CSS selectors, and
    # items are names, of which nothing is imported.
    allowed = "engine fallback favor comments empty rules items oversize title limits markdown chunks"
    assert set(named) <= set(allowed.split())
    keys = {name: fields(getattr(Config(), name)) for name in ("limits", "markdown", "chunks")}
    forbidden = {f"{name}.{key.name}" for name in keys for key in keys[name] if not key.metadata["per_request"]}
    assert forbidden == {"chunks.tokenizer"}


def override(config: Config, values: Any) -> Config:
    """Return the options of a request. Raise the first problem."""
    found, _, problems = config.overridden(values)
    if problems:
        raise ConfigError(problems[0])
    return found


def test_no_other_key_is_taken() -> None:
    for name in (*FORBIDDEN, "__class__", "overridden", "__post_init__", "DRIPPER_FALLBACK", "", 3, None):
        values: dict[Any, str] = {name: "x"}
        with pytest.raises(ConfigError, match="has no key"):
            override(Config(), values)


def test_a_request_names_no_callable_and_no_file() -> None:
    """If the settings name a callable, a request may only repeat that one."""
    for value in (
        "os.system", "builtins.eval", "package.module.function", print, eval, lambda html, url: html, "/etc/passwd",
        "../x", Path("/etc/passwd"), ["trafilatura"], {"trafilatura": 1}, b"trafilatura", type, object(), 1, True,
    ):  # fmt: skip
        for config in (Config(), Config(fallback="os.path.join"), Config(fallback=os.path.join)):
            with pytest.raises(ConfigError, match="fallback"):
                override(config, {"fallback": value})


@pytest.fixture
def all_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed here, all methods can run."""
    monkeypatch.setattr("scrapy_dripper.config.find_spec", lambda name: name)


@pytest.mark.usefixtures("all_extras")
def test_a_request_names_no_engine_with_a_model() -> None:
    """Its model may need a GPU, or belong to another process. Methods need neither."""
    for value in ("qwen3", "package.module.engine", print, ["r4"], None, 1):
        with pytest.raises(ConfigError, match="engine"):
            override(Config(), {"engine": value})
    assert override(Config(engine="qwen3"), {"engine": "qwen3"}).engine == "qwen3"
    assert [override(Config(), {"engine": name}).engine for name in METHODS] == list(METHODS)


@pytest.mark.usefixtures("all_extras")
def test_the_fallback_of_the_settings_may_be_named() -> None:
    config = Config(fallback="package.module.function")

    assert override(config, {"fallback": "package.module.function"}) == config
    assert [override(config, {"fallback": name}).fallback for name in FALLBACKS] == list(FALLBACKS)


WEIRD = [
    [], {}, set(), (), [[]], {"a": {"b": []}}, b"", b"bytes", object(), type, print, float("nan"), float("inf"), -1, 0,
    10**400, "9" * 5_000, "x" * 100_000, "\0", "\ud800", np.array([1, 2]), np.float64(2), Decimal("sNaN"), Decimal(3),
    1j, range(3), Ellipsis, NotImplemented, Path("x"), bytearray(b"x"), memoryview(b"x"), iter([]), Exception("x"),
    ["title", ["table"]], ["title", {}], {"title"}, [None], frozenset({"table"}), True, False, None, "", " ",
]  # fmt: skip


class Endless(list[Any]):
    """A list that must not be written as a whole."""

    def __repr__(self) -> str:
        raise AssertionError("written as a whole")

    __iter__ = __repr__  # type: ignore[assignment]


def test_an_error_is_short_whatever_the_value_is() -> None:
    """The error is logged, and a value may be nested too deeply to be shown. It is not formatted or sorted as a whole,
    and one without a short form is shown as its type.
    """
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    large = (deep, ["x" * 1_000_000], {"x" * 1_000_000: deep}, [deep] * 1_000_000, {"x": deep}, Endless("xyz"))
    for value in (*large, 10**100_000, "x" * 10**7, b"x" * 10**7):
        for name in (*ALLOWED, "model"):
            with pytest.raises(ConfigError) as raised:
                override(Config(), {name: value})
            assert len(str(raised.value)) < 1_000, name


def test_any_value_is_taken_or_refused_with_one_error() -> None:
    """The middlewares catch it for unhashable values, arrays and huge numbers."""
    for name, value in product(ALLOWED, WEIRD):
        config = None
        try:
            config = override(Config(), {name: value})
        except ValueError as error:
            assert f'meta["dripper"]["{name}"]' in str(error) or "fallback" in str(error) or "ambiguous" in str(error)  # noqa: PT017
        if config is not None:
            kinds = (str, int, bool, float, tuple, Rules, type(None), type(getattr(Config(), name)))
            assert type(getattr(config, name)) in kinds
            pickle.dumps(config)  # a page goes on with its options


class Counted(dict[Any, Any]):
    """Counts how often it is asked for a key or a value."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)

    def __getitem__(self, name: Any) -> Any:
        self.asked += 1
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[Any]:
        for name in super().__iter__():
            self.asked += 1
            yield name


def test_the_work_does_not_grow_with_the_keys() -> None:
    """Otherwise, a queue that others fill could slow down the crawl. Valid keys still count."""
    known = {"limits": Counted({"blocks": 7}), "fallback": "os.system"}
    few, many = (Counted({**known, **{f"x{i}": i for i in range(n)}, "title": "drop"}) for n in (100, 100_000))

    for values in (few, many):
        config, wrong, problems = Config().overridden(values)
        assert (config.limits.blocks, config.fallback, config.title) == (7, "trafilatura", "drop")
        assert wrong == len(values) - 2
        assert "has no key 'x0'" in problems[0]
        assert len(problems) == 2
    assert few.asked == many.asked < 100
    for n in (100, 100_000):
        values = Counted({f"x{i}": i for i in range(n)})
        assert Config().overridden({"limits": values})[1] == 1
        assert values.asked < 20


class Yes:
    """An object that is equal to everything, like an array with one equal element."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("option", ["fallback", "title", "links", "comments", "favor", "oversize"])
def test_objects_that_are_equal_to_a_value_are_rejected(option: str) -> None:
    config, wrong, *_ = Config().overridden({option: Yes()})
    assert wrong == 1
    assert config == Config()


NAMES = ["\ud800", 'x><evil a="1"/', "a\0b", "a b", "1st", "__class__", "x" * 101, "xml\n", "a=b", 5, b"x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_field_has_a_name_that_every_feed_can_write(name: Any) -> None:
    with pytest.raises(ConfigError, match="DRIPPER_MARKDOWN_FIELD"):
        Config(markdown_field=name)
    _, wrong, *_ = Config().overridden({"markdown_field": name})
    assert wrong == 1


@pytest.mark.parametrize("name", ["markdown", "main_html", "_md", "body.md", "main-html", "größe", "正文", "x2"])
def test_names_of_any_language_are_taken(name: str) -> None:
    assert Config(markdown_field=name).markdown_field == name
