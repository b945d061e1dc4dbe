"""Find files by a name or a glob, name and replace files in a folder that others may write to as well, and lock one."""

from __future__ import annotations

import glob
import os
import re
import secrets
import sys
from pathlib import Path
from typing import BinaryIO

# What Windows takes for a device, whatever extensions follow.
_is_device = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9\xb9\xb2\xb3]) *(?:\.|\Z)", re.I).match


def matches(name: str) -> list[str]:
    """Return the files and folders of a name or a glob, in order of name.

    What exists is found by its name, whatever characters it has. A file that is named ``-`` is returned as ``./-``, so
    that it is not taken for standard input.
    """
    found = [name] if os.path.lexists(name) else sorted(glob.glob(name, recursive=True))
    return [os.path.join(os.curdir, one) if one == "-" else one for one in found]


def portable(name: str) -> str:
    """Return the beginning of a file's name so that it is no name of a device. Everything else stays as it is."""
    return f"_{name}" if _is_device(name) else name


def lock(path: Path) -> BinaryIO | None:
    """Return an open file that no other process can lock, or None if one has.

    The lock ends with the file, and with this process however it ends. Raise OSError if there can be no such file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):  # or its last owner has just removed it
            return file
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except OSError:  # of a file system without locks
        return file
    file.close()
    return None


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
