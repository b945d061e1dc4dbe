"""Find files by a name or a glob."""

from __future__ import annotations

import glob
import os


def matches(name: str) -> list[str]:
    """Return the files and folders of a name or a glob, in order of name.

    What exists is found by its name, whatever characters it has. A file that is named ``-`` is returned as ``./-``, so
    that it is not taken for standard input.
    """
    found = [name] if os.path.lexists(name) else sorted(glob.glob(name, recursive=True))
    return [os.path.join(os.curdir, one) if one == "-" else one for one in found]
