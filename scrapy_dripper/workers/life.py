"""Let the system end a process as soon as the one that needs it is gone, however it ended."""

from __future__ import annotations

import os
import signal


def end_with(life: int | None) -> None:
    """Make the system end this process when the other end of a pipe is closed, which its owner's death does as well.

    Nothing is ever written to the pipe, and no other process has this end of it. A thread could not watch it, because a
    regular expression that is stuck keeps other threads from running.
    """
    if life is None:
        return
    try:
        import fcntl
        import select

        os.set_inheritable(life, False)
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
        signal.signal(signal.SIGIO, signal.SIG_DFL)  # ends the process
        if select.select([life], [], [], 0)[0]:  # the owner has already ended
            os._exit(1)
    except (ImportError, AttributeError, OSError, ValueError):  # unsupported here: it ends at its next request
        return
