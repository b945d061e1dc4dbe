"""Find files by a name or a glob, and replace a file in a folder that others may write to as well."""

from __future__ import annotations

import glob
import os
import secrets
from pathlib import Path


def matches(name: str) -> list[str]:
    """Return the files and folders of a name or a glob, in order of name.

    What exists is found by its name, whatever characters it has. A file that is named ``-`` is returned as ``./-``, so
    that it is not taken for standard input.
    """
    found = [name] if os.path.lexists(name) else sorted(glob.glob(name, recursive=True))
    return [os.path.join(os.curdir, one) if one == "-" else one for one in found]


def replace_file(path: Path, content: str | bytes, until_whole: Path | None = None) -> None:
    """Write a file, with a text as UTF-8, in place of the one of that name. Raise OSError, naming it, if that fails.

    The file is never half written: it is in the folder ``until_whole``, by default its own, under another name before.
    A link in its place is replaced, and what it leads to is left alone.
    """
    beside = (until_whole or path.parent) / f".{secrets.token_hex(8)}.new"
    try:
        with beside.open("xb") as file:
            file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)
        beside.replace(path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        beside.unlink(missing_ok=True)
