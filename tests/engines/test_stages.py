"""Why a block has its label: the stage that changed it last."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.engines.stages import MODEL, final, reasons

PAGES = st.integers(0, 6).flatmap(lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1))


def test_the_last_stage_that_changed_a_label_is_its_reason() -> None:
    stages = [(MODEL, [1, 0, 0, 1]), ("a", [1, 1, 1, 1]), ("b", [1, 0, 1, 0]), ("c", [1, 1, 1, 0])]

    found = reasons((name, np.array(labels, dtype=bool)) for name, labels in stages)

    assert found == [MODEL, "c", "a", "b"]


@given(PAGES)
def test_a_label_has_a_reason_if_it_is_not_the_models(labels: list[list[bool]]) -> None:
    stages = [(f"stage {i}" if i else MODEL, np.array(one, dtype=bool)) for i, one in enumerate(labels)]

    found = reasons(stages)

    assert [reason != MODEL for reason in found] == (final(stages) != stages[0][1]).tolist()
