"""Count the tokens of texts with a model's tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from scrapy_dripper.config import ConfigError

SETTING = 'DRIPPER_CHUNKS["tokenizer"]'


@lru_cache(maxsize=4)
def counter(path: str) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text, without the special tokens around it.

    ``path`` is a ``tokenizer.json``, as found in models on the Hugging Face hub, or a folder with one. Raise
    :exc:`~scrapy_dripper.config.ConfigError` if it cannot be read.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ConfigError(f"{SETTING} needs tokenizers: pip install 'scrapy-dripper[tokenizers]'") from None

    file = Path(path)
    file = file / "tokenizer.json" if file.is_dir() else file
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception
        raise ConfigError(
            f"{SETTING} must be the path of a tokenizer.json, or of a folder with one (got {path!r}, "
            f"which cannot be read: {error})"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
