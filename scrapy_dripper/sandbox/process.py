"""One child process, as the crawl sees it: started, asked, ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy_dripper.sandbox.errors import StartError
from scrapy_dripper.sandbox.messages import receive, send

_MAIN = Path(__file__).with_name("__main__.py")
_ENVIRONMENT = frozenset(
    "PATH HOME LANG LC_ALL LC_CTYPE TZ TMPDIR TEMP TMP SYSTEMROOT SYSTEMDRIVE WINDIR "
    "LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH".split()
)
"""What a child gets to know of the environment: no keys, no proxies."""
# Threads of numerical libraries, each with its own address space, are of no use there.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_END_SECONDS = 5.0


class DeadError(Exception):
    """The child has ended, or had to be, without an answer; the message says how."""


class LateError(DeadError):
    """It had to be because its time was up."""


class Process:
    """A child process that has been started and is ready. Serves one thread. Raise :exc:`StartError`."""

    def __init__(self, memory: int, seconds: float) -> None:
        """``memory`` is the most it may take, in bytes; ``seconds`` the most that starting may."""
        if not sys.executable or getattr(sys, "frozen", False):
            raise StartError("there is no Python interpreter to start it with")
        self._late = False
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", str(_MAIN)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                close_fds=True,
                env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT} | _ONE_THREAD,
                start_new_session=True,  # Ctrl-C is for the crawl only
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, ValueError, MemoryError) as error:
            raise StartError(f"{type(error).__name__}: {error}") from error
        self.pid = self._popen.pid
        terms = {"memory": memory, "path": [path for path in sys.path if isinstance(path, str)]}
        try:
            with self._limited(seconds):
                self._in.write(json.dumps(terms).encode("ascii") + b"\n")
                self._in.flush()
                header, _ = receive(self._out, 0)
                if not header.get("ready"):
                    raise ValueError("no word of being ready")
        except (OSError, EOFError, ValueError) as error:
            raise StartError(self._post_mortem(error, seconds)) from None
        except BaseException:
            self.kill()
            raise
        assert self._popen.stderr is not None
        self._popen.stderr.close()

    @property
    def _in(self) -> Any:
        return self._popen.stdin

    @property
    def _out(self) -> Any:
        return self._popen.stdout

    def has_ended(self) -> bool:
        """Return True if somebody else has ended it."""
        return self._popen.poll() is not None

    def ask(self, header: Mapping[str, Any], body: bytes, seconds: float, most: int) -> tuple[dict[str, Any], bytes]:
        """Return the answer to a request, of ``most`` bytes at most.

        Raise :exc:`DeadError` if there is none within so many seconds; the process has ended then.
        """
        try:
            with self._limited(seconds):
                send(self._in, {**header, "seconds": seconds}, body)
                answer = receive(self._out, most)
        except (OSError, EOFError) as error:
            late = self._late
            self.kill()
            if late or self._popen.returncode in _OUT_OF_TIME:
                raise LateError(f"no answer within {seconds:.3g} seconds") from error
            raise DeadError(self._ending()) from error
        except (ValueError, MemoryError) as error:
            self.kill()
            raise DeadError(f"it answered nonsense ({error})") from error
        except BaseException:  # Ctrl-C in the middle of an answer: the rest of it would be the next one
            self.kill()
            raise
        return answer

    def end(self) -> None:
        """Let it end, or end it."""
        with contextlib.suppress(OSError):
            self._in.close()
        try:
            self._popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
        self.kill()

    def kill(self) -> None:
        """End it at once and leave nothing of it behind."""
        self._popen.kill()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_END_SECONDS)

    @contextlib.contextmanager
    def _limited(self, seconds: float) -> Any:
        """Kill the process when the time is up, which ends any reading and writing."""
        timer = threading.Timer(seconds, self._too_late)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _too_late(self) -> None:
        self._late = True
        self._popen.kill()

    def _post_mortem(self, error: Exception, seconds: float) -> str:
        """End the process; return why it did not start."""
        late = self._late
        self._popen.kill()
        said = self._popen.stderr.read(100_000).decode("utf-8", "replace").strip() if self._popen.stderr else ""
        self.kill()
        if late:
            return f"it was not ready within {seconds:.3g} seconds"
        if said:
            return said.splitlines()[-1]
        return f"it answered nonsense ({error})" if isinstance(error, ValueError) else self._ending()

    def _ending(self) -> str:
        code = self._popen.returncode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"it ended with signal {signal.Signals(-code).name}"
        return f"it ended with exit code {code}"


def _signals(*names: str) -> frozenset[int]:
    return frozenset(-int(getattr(signal, name)) for name in names if hasattr(signal, name))


_OUT_OF_TIME = _signals("SIGALRM", "SIGXCPU")
"""Exit codes of a process that its own limits on time have ended."""
