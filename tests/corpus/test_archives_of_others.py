"""Archives of other tools, and hostile ones: all pages are read, and what cannot be read is counted."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("scrapy_dripper.corpus.records", reason="needs FastWARC 2", exc_type=ImportError)

from scrapy_dripper.corpus.records import pages
from tests.corpus.zoo import HONEST, HOSTILE, LIMIT, Animal

ROOT = Path(__file__).parents[2]
ZOO = [*HONEST, *HOSTILE]
PATIENCE = 120
MOST_MEMORY = 64_000
"""KiB that reading all archives may take beyond their own size. The largest would take 20 MB, if it was not a bomb."""

READ_ALL = """
import io, resource
from scrapy_dripper.corpus.records import as_page, responses
from tests.corpus.zoo import HONEST, HOSTILE, LIMIT
zoo = [*HONEST, *HOSTILE]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for animal in zoo:
    for one in responses(io.BytesIO(animal.data), LIMIT, lambda reason: None):
        as_page(one, LIMIT)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("animal", ZOO, ids=lambda animal: animal.name)
def test_all_that_can_be_read_is_read_and_the_rest_counted(animal: Animal) -> None:
    skipped: Counter[str] = Counter()
    found = [page.body for page in pages(io.BytesIO(animal.data), LIMIT, lambda reason: skipped.update([reason.value]))]

    assert found == animal.bodies
    assert skipped == animal.skipped


def test_no_archive_takes_much_time_or_memory() -> None:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    said = subprocess.run(
        [sys.executable, "-c", READ_ALL],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout

    assert int(said) < MOST_MEMORY
