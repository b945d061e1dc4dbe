"""A small random model, which is loaded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tokenizers import Tokenizer

from scrapy_dripper.engines.qwen3.engine import Qwen3Engine
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared
from tests.engines.qwen3.fakes import PREPARED, FakeTagger


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(PREPARED / "tokenizer.json"))


@pytest.fixture(scope="session")
def thinking() -> Tokenizer:
    """A tokenizer with end-of-thought tokens, like Qwen3's."""
    tokenizer = Tokenizer.from_file(str(PREPARED / "tokenizer.json"))
    tokenizer.add_special_tokens(["</think>"])
    tokenizer.add_tokens(["\n\n"])
    return tokenizer


@pytest.fixture(scope="session")
def prepared() -> Prepared:
    return load_prepared(PREPARED)


@pytest.fixture
def engine(prepared: Prepared) -> Iterator[Qwen3Engine]:
    engine = Qwen3Engine(prepared, FakeTagger())
    yield engine
    engine.close()
