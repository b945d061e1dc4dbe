"""The parent's side of a worker process: start it, send requests, enforce time limits, kill it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from scrapy_dripper import workers
from scrapy_dripper.checks import ENGINES, FALLBACKS
from scrapy_dripper.config import Config, ConfigError, ModelError
from scrapy_dripper.data import Extraction, FallbackReason
from scrapy_dripper.workers.wire import PARTS, Message, Task, pack_config, pack_tasks, receive, send, unpack_extraction

Relay = Callable[[dict[str, Any], list[bytes]], Message]
"""Answers a worker's request to a model in another process."""
OnSlow = Callable[["int | None"], None]
"""Called when a worker turns out to be slow, with the index of the task that takes long, or None if it is unknown."""

_MAIN = Path(__file__).parents[1] / "child" / "__main__.py"
_ENVIRONMENT = frozenset(
    "PATH HOME LANG LC_ALL LC_CTYPE TZ TMPDIR TEMP TMP SYSTEMROOT SYSTEMDRIVE WINDIR "
    "LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH NVIDIA_TF32_OVERRIDE".split()
)
_PREFIXES = ("CUDA_", "CUDNN_", "CUBLAS_", "ORT_")
"""Environment variables that a worker inherits, by name and by prefix. Those of the prefixes choose and configure the
GPU. Keys and proxies are not among them: ``NVIDIA_`` is no prefix because of ``NVIDIA_API_KEY``."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Variables that limit the threads of numerical libraries, because each one takes address space."""
SLOW_SECONDS = 0.5
"""Duration of a step after which its worker is set aside: other pages no longer wait for it. Ordinary steps take a
twentieth of it."""
# A process group of its own keeps Ctrl-C away from the worker. A session of its own would do so, too, but Linux divides
# CPU time among sessions first (sched(7), autogroup). The crawl, which mostly sleeps, would then wait some hundred
# milliseconds for each of its turns. Python 3.10 only supports sessions.
_HAS_GROUPS = sys.version_info >= (3, 11) and os.name == "posix"
_OWN_GROUP: dict[str, Any] = {"process_group": 0} if _HAS_GROUPS else {"start_new_session": True}
STARVED = 3.0
"""Upper bound of the time in which a worker waits for a core and that does not count, as a multiple of the limit."""
_END_SECONDS = 5.0
_LAST_SECONDS = 1.0
_ANSWER_BYTES = 64 << 20
_ANSWER_GROWTH = 128
"""The size limit of an answer is ``_ANSWER_BYTES`` plus ``_ANSWER_GROWTH`` times the size of the documents."""


class StartError(OSError):
    """A worker process cannot be started; the message says why."""


class WorkerError(Exception):
    """A worker process ended, or had to be killed, before it answered; the message says how."""

    def __init__(self, reason: FallbackReason, message: str, task: int | None = None, form: str | None = None) -> None:
        """``reason`` is ``timeout`` or ``worker_error``; ``task`` is the index of the task in progress, if known, and
        ``form`` the form of the output, if one was being made.
        """
        super().__init__(message)
        self.reason, self.task, self.form = reason, task, form


class StepClock:
    """Measures the time that a step of a worker takes, from the creation of the object on.

    If the machine is busy, a worker has to wait for a core. Linux reports this *run delay*. It does not count, within
    bounds: a step ends after four times its limit at the latest. On other systems, all of the time counts.
    """

    def __init__(self, pid: int, limit: float, now: float) -> None:
        """``pid`` is the worker's process, ``limit`` the step's limit in seconds, and ``now`` the present time."""
        self.limit = limit
        self._pid, self._since = pid, now
        self._first: float | None = None

    def look(self, now: float, stood_still: float) -> float:
        """Return the seconds of the step that count so far.

        ``stood_still`` is the time since the last call, in seconds, for which the calling process itself was suspended.
        """
        self._since += stood_still
        delay = run_delay(self._pid)
        if self._first is None:  # read at the first look, because most steps end before it
            self._first = delay
        return now - self._since - min(delay - self._first, STARVED * self.limit)


def run_delay(pid: int) -> float:
    """Return how long the main thread of a process has waited for a core, in seconds since its start.

    It is the second field of ``/proc/PID/schedstat`` (Linux, Documentation/scheduler/sched-stats.rst), or 0.0 on other
    systems.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    return 0.0


class Process:
    """A worker process for one thread at a time. :meth:`check` and :meth:`kill` can be called from any thread."""

    def __init__(self, config: Config, role: str, again: bool) -> None:
        """Start the process without waiting until it is ready. Raise :exc:`StartError` if that fails.

        ``role`` is ``"pages"`` or ``"model"``. With ``again``, the engine was loaded successfully before; if loading
        fails this time, pages fall back until it succeeds.
        """
        if workers.in_worker is not None:
            workers.in_worker()
        if not sys.executable or getattr(sys, "frozen", False):
            raise StartError("there is no Python interpreter to start it with")
        self.tired = False
        """True if the worker is to be replaced after its answer, because it keeps much memory."""
        self.peak = 0
        """Peak memory as of its last answer, in bytes; 0 if the system does not report it."""
        self.aside = False
        """True if the worker has a slow page, or one that is tried alone, so that a stand-in may take its place."""
        self.idle_since = 0.0
        self._at_pages = False
        self._clock: StepClock | None = None
        self._missed: float | None = None
        self._step: int | None = None
        self._form: str | None = None
        self._on_slow: OnSlow | None = None
        # User code may need the whole environment.
        user_code = config.fallback not in FALLBACKS or config.engine not in ENGINES or config.methods.embedder
        environment = {name: value for name, value in os.environ.items() if user_code or _is_inherited(name)}
        self._startup = {
            "memory": config.worker_memory << 20 if role == "pages" else None,
            "path": _path(),
            "role": role,
            "again": again,
            "config": pack_config(config),
            "logging": logging.getLogger("scrapy_dripper").getEffectiveLevel(),
        }
        with contextlib.ExitStack() as stack:
            try:
                _keep_off_standard_streams(stack)
                # The system closes this process's end of the pipe when it ends, whatever the cause.
                life, self._life = os.pipe()
            except OSError as error:
                raise StartError(f"{type(error).__name__}: {error}") from error
            stack.callback(os.close, life)
            self._popen = self._start(life, environment | (_ONE_THREAD if role == "pages" else {}))
        self._startup["life"] = life if os.name == "posix" else None
        self.pid = self._popen.pid
        # Kills and reaps the process if its owner does not.
        self._finalizer = weakref.finalize(self, _kill, self._popen, self._life)

    def _start(self, life: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [sys.executable, "-I", str(_MAIN)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(life,) if os.name == "posix" else (),
                env=environment,
                **_OWN_GROUP,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, ValueError, MemoryError) as error:
            os.close(self._life)
            raise StartError(f"{type(error).__name__}: {error}") from error

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until the worker accepts requests.

        Raise :exc:`StartError` if it does not within ``seconds``, and :exc:`~scrapy_dripper.config.ModelError` or
        :exc:`~scrapy_dripper.config.ConfigError` if the worker raises it.
        """
        self._begin(seconds)
        try:
            self._in.write(json.dumps(self._startup).encode("ascii") + b"\n")
            self._in.flush()
            header, _ = self._next(_ANSWER_BYTES)
            failed = header.get("failed")
            if failed is None and not header.get("ready"):
                raise ValueError("expected the message that the worker is ready (got another one)")
        except (OSError, EOFError, ValueError) as error:
            raise StartError(self._post_mortem(error, seconds)) from None
        except BaseException:
            self.kill()
            raise
        finally:
            self._clock = None
        assert self._popen.stderr is not None
        self._popen.stderr.close()
        if failed is not None:
            self.kill()
            raise {"ModelError": ModelError, "ConfigError": ConfigError}.get(failed, StartError)(str(header["message"]))

    def has_ended(self) -> bool:
        """Return True if the process has ended."""
        return self._popen.poll() is not None

    def extract(self, tasks: Sequence[Task], relay: Relay | None, on_slow: OnSlow | None = None) -> list[Extraction]:
        """Return one extraction per task, in order.

        ``on_slow`` is called from another thread when a step takes long. Raise :exc:`WorkerError` if the worker
        ended or had to be killed; it cannot be used again.
        """
        header, bodies = pack_tasks(tasks)
        limits = [task.config.timeout for task in tasks]
        most = _ANSWER_BYTES + _ANSWER_GROWTH * sum(map(len, bodies))
        self._step, self._form, self._on_slow = None, None, on_slow
        with self._or_worker_error():
            self._begin(max(limits))
            self._at_pages = True
            send(self._in, {"do": "extract", **header}, bodies)
            while True:
                answer, parts = self._next(most)
                kind = answer.get("say")
                if kind == "step":
                    self._step, self._form = _number(answer["task"], len(tasks)), _name(answer.get("form"))
                    self._begin(max(limits) if self._step is None else limits[self._step])
                elif kind == "label" and relay is not None:
                    self._clock = None  # the model process has its own clock
                    reply, reply_parts = relay(answer, parts)
                    self._begin(max(limits))
                    send(self._in, reply, reply_parts)
                else:
                    break
            self._clock = None
            self.tired = self.tired or bool(answer.get("tired"))
            self.peak = int(answer["peak"])
            rows = answer["extractions"]
            if len(rows) != len(tasks):
                raise ValueError(f"expected {len(tasks)} answers (got {len(rows)})")
            return [
                unpack_extraction(task.document.url, row, parts[i * PARTS : (i + 1) * PARTS])
                for i, (task, row) in enumerate(zip(tasks, rows, strict=True))
            ]
        raise AssertionError("no exception is suppressed")

    def label(self, header: dict[str, Any], parts: list[bytes], seconds: float) -> Message:
        """Return the answer of a worker in the ``"model"`` role. Raise :exc:`WorkerError` as :meth:`extract` does."""
        with self._or_worker_error():
            self._begin(seconds)
            send(self._in, header, parts)
            return self._next(_ANSWER_BYTES + _ANSWER_GROWTH * sum(map(len, parts)))
        raise AssertionError("no exception is suppressed")

    def _next(self, most: int) -> Message:
        """Return the next message of at most ``most`` bytes, and log those that are for the log."""
        while True:
            header, parts = receive(self._out, most)
            if header.get("say") != "log":
                return header, parts
            _log(header)

    @contextlib.contextmanager
    def _or_worker_error(self) -> Iterator[None]:
        """Raise :exc:`WorkerError` if the process ends, is killed or answers nonsense; it is killed in any case."""
        try:
            yield
        except (OSError, EOFError) as error:
            missed = self._missed
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(_LAST_SECONDS)  # for the exit code of a process that has closed its pipe
            self.kill()
            if missed is not None:
                message = f"no answer within {missed:g} seconds; DRIPPER_TIMEOUT sets the limit"
                raise WorkerError(FallbackReason.TIMEOUT, message, self._step, self._form) from error
            message = f"the worker process gave no answer: {self._ending()}"
            raise WorkerError(FallbackReason.WORKER_ERROR, message, self._step, self._form) from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
            self.kill()
            message = f"the worker process sent an invalid answer ({type(error).__name__}: {error})"
            raise WorkerError(FallbackReason.WORKER_ERROR, message, self._step, self._form) from error
        except BaseException:  # After Ctrl-C, the rest of this answer would be read as the next one.
            self.kill()
            raise
        finally:
            self._clock = None

    def check(self, now: float, stood_still: float) -> None:
        """Kill the process if its step is over the limit, and set it aside before that.

        ``stood_still`` is the time in seconds for which this process was suspended and could not read an answer.
        """
        clock = self._clock
        if clock is None:
            return
        taken = clock.look(now, stood_still)
        if taken > clock.limit:
            self._missed = clock.limit
            self._popen.kill()
        elif self._at_pages and not self.aside and taken > SLOW_SECONDS:
            self.aside = True
            if self._on_slow is not None:
                self._on_slow(self._step)

    def end(self) -> None:
        """Let the process exit, and kill it if it does not."""
        with contextlib.suppress(OSError):
            self._in.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the process and release its resources."""
        self._finalizer()

    def abandon(self) -> None:
        """Forget the process without ending it, in a process that was forked from the one that started it."""
        self._finalizer.detach()
        _close(self._popen, self._life)

    def _begin(self, limit: float) -> None:
        self._clock = StepClock(self.pid, limit, time.monotonic())

    @property
    def _in(self) -> BinaryIO:
        return cast(BinaryIO, self._popen.stdin)

    @property
    def _out(self) -> BinaryIO:
        return cast(BinaryIO, self._popen.stdout)

    def _post_mortem(self, error: BaseException, seconds: float) -> str:
        """Return why a process did not start: the last line of its standard error, if there is one."""
        self._popen.kill()
        words = b""
        with contextlib.suppress(OSError, ValueError):
            assert self._popen.stderr is not None
            words = self._popen.stderr.read(10_000)
        self.kill()
        if self._missed is not None:
            return f"it was not ready after {seconds:.0f} seconds"
        last = words.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return last or (str(error) if isinstance(error, ValueError) else self._ending())

    def _ending(self) -> str:
        code = self._popen.returncode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"it was ended by {signal.Signals(-code).name}"
        return f"it ended with exit code {code}"


def _is_inherited(name: str) -> bool:
    return name in _ENVIRONMENT or name.startswith(_PREFIXES)


def _path() -> list[str]:
    """Return the import path of this process, without a current folder that has been deleted."""
    here: list[str] = []
    with contextlib.suppress(OSError):
        here = [os.getcwd()]
    return [entry for path in sys.path if isinstance(path, str) for entry in ([path] if path else here)]


def _keep_off_standard_streams(stack: contextlib.ExitStack) -> None:
    """Occupy descriptors 0 to 2 if they are closed. A pipe that got one of them would become a standard stream."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, descriptor)
        if descriptor > 2:
            return


def _kill(popen: subprocess.Popen[bytes], life: int) -> None:
    popen.kill()
    _close(popen, life)
    with contextlib.suppress(subprocess.TimeoutExpired):
        popen.wait(_END_SECONDS)


def _close(popen: subprocess.Popen[bytes], life: int) -> None:
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    with contextlib.suppress(OSError):
        os.close(life)


def _number(value: object, tasks: int) -> int | None:
    if value is None or (isinstance(value, int) and 0 <= value < tasks):
        return value
    raise ValueError(f"expected a task from 0 to {tasks - 1} (got {value!r})")


def _name(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"expected the name of a form (got {value!r})")


def _log(record: dict[str, Any]) -> None:
    level, name = record["level"], str(record["name"])
    if isinstance(level, int):
        logging.getLogger(name).log(level, "%s", record["message"])
