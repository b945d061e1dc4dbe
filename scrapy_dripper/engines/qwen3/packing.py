"""Group the pages that share a forward pass."""

from __future__ import annotations

from collections.abc import Sequence


def pack(sizes: Sequence[int], shared: int, full: int, most: int) -> list[list[int]]:
    """Group pages so that the device is busy with little padding. Return the indices of the pages of each group.

    ``sizes`` are the numbers of tokens of the pages after the shared prefix of ``shared`` tokens. A page alone only
    reads its own tokens. Pages in a group are padded to the longest one, and also read the prefix. The time of a pass
    is proportional to its tokens, but at least that of ``full`` tokens. ``most`` is the maximum number of tokens in a
    group. A page joins a group if that is no slower than a pass of its own.
    """
    groups: list[list[int]] = []
    group: list[int] = []
    cost = 0
    for i in sorted(range(len(sizes)), key=sizes.__getitem__):
        padded = (len(group) + 1) * (shared + sizes[i])
        together, alone = max(full, padded), max(full, sizes[i])
        if group and padded <= most and together <= cost + alone:
            group.append(i)
            cost = together
        else:
            group, cost = [i], alone
            groups.append(group)
    return groups
