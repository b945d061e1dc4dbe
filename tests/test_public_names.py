"""The names that ``import scrapy_dripper`` gives."""

from __future__ import annotations

import subprocess
import sys

import scrapy_dripper


def test_every_name_of_the_front_door_is_there() -> None:
    """Each is in ``__all__``, listed by ``dir`` and imported when asked for."""
    assert set(scrapy_dripper.__all__) <= set(dir(scrapy_dripper))
    assert all(getattr(scrapy_dripper, name) is not None for name in scrapy_dripper.__all__)


def test_the_extractor_needs_no_scrapy() -> None:
    """Other programs, such as batch engines, can use it without Scrapy's imports."""
    code = "import sys; from scrapy_dripper import Extractor; print({'scrapy', 'twisted'} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"
