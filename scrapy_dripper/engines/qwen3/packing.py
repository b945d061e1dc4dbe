"""Which pages share a forward pass."""

from __future__ import annotations

from collections.abc import Sequence


def pack(sizes: Sequence[int], shared: int, full: int, most: int) -> list[list[int]]:
    """Group pages so that the device is busy with as little padding as possible; return their indices, by group.

    ``sizes`` are the tokens of each page behind the shared prefix of ``shared`` tokens. A page alone reads only its own
    tokens; pages together are padded to the longest and read the prefix too. A pass takes as long as its tokens, but no
    less than ``full`` tokens would; ``most`` is how many tokens fit into the memory of a group. A page joins a group
    if that is no slower than a pass of its own.
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
