"""Every way the child process can end, or not start, and that nothing is left of it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from children import ARTICLE, DANGEROUS, HOSTILE, SECONDS, SENTENCE, SMALL, AllMain, Make, comes_true, gone, pid_of

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.extraction import Document, FallbackReason
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.fallback import fall_back
from scrapy_dripper.sandbox import Sandbox, process
from scrapy_dripper.sandbox.messages import MAX_HEADER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="looks at processes as POSIX has them")


def check_rescue(one: Extractor, reason: FallbackReason, error: str) -> None:
    """A page falls back with a reason, the next ones are read by another child."""
    before = pid_of(one)
    bad = one.extract([Document(HOSTILE, "http://example.com/bad")])[0]

    assert (bad.fallback_reason, bad.url) == (reason, "http://example.com/bad")
    assert error in (bad.error or "")
    assert before is None or gone(before)


def test_a_parser_that_is_stuck_is_killed(extractor: Make) -> None:
    """In bounded time, in the middle of a native call; another child reads the next page."""
    one = extractor(sandbox="always", fallback="empty")
    one._sandbox._timeout = 0.4
    check_rescue(one, FallbackReason.TIMEOUT, "within DRIPPER_TIMEOUT = 0.4 seconds")
    one._sandbox._timeout = SECONDS

    assert one.extract([SMALL])[0].text == "one\ntwo"


def test_a_page_that_takes_too_much_memory(extractor: Make) -> None:
    """The limit is named; its fallback gets the first part of the page, in another child if that one is gone."""
    one = extractor(sandbox_memory=256)
    page = f"<body>{ARTICLE}" + f"<p {' '.join(f'a{i}' for i in range(100))}>x" * 20_000
    bad = one.extract([page])[0]

    assert (bad.fallback_reason, bad.source, bad.truncated) == (FallbackReason.OVERSIZE, "fallback:trafilatura", True)
    assert "DRIPPER_SANDBOX_MEMORY = 256 MiB" in (bad.error or "")
    assert SENTENCE.strip() in (bad.text or "")
    assert one.extract([DANGEROUS])[0].fallback_reason is None


KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
ENDINGS = {
    "kill -9": (f"ready(); asked(); {KILLED}", "signal SIGKILL"),
    "kill -9 in the middle of the question": (f"ready(); sys.stdin.buffer.read(1); {KILLED}", "signal SIGKILL"),
    "a crash": ("ready(); asked(); os.kill(os.getpid(), signal.SIGSEGV)", "signal SIGSEGV"),
    "an exit": ("ready(); asked(); sys.exit(3)", "exit code 3"),
    "half an answer": ("ready(); asked(); say(b'{', lengths=(9, 9)); sys.exit(0)", "exit code 0"),
    "nonsense": ("ready(); asked(); say(b'x' * 1_000, lengths=(7, 7)); wait()", "nonsense"),
    "a huge header": (f"ready(); asked(); say(b'', lengths=({MAX_HEADER + 1}, 0)); wait()", "nonsense"),
    "a huge body": ("ready(); asked(); say(b'{}', lengths=(2, 1 << 60)); wait()", "nonsense"),
    "no object": ("ready(); asked(); say(b'[]'); wait()", "nonsense"),
    "no answer": ("ready(); asked(); say(b'{}', b'[]'); wait()", "nonsense"),
    "no tree": ("ready(); asked(); say(b'{\"truncated\": false}', b'[]'); wait()", "nonsense"),
    "no such reason": ('ready(); asked(); say(b\'{"reason": "no", "message": ""}\'); wait()', "nonsense"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_child_that_ends_or_answers_nonsense(ending: str, extractor: Make, fake: Callable[[str], None]) -> None:
    """The page has its reason, and its fallback, which must not run here either, is none where there is no child."""
    code, error = ENDINGS[ending]
    fake(code)
    one = extractor()
    check_rescue(one, FallbackReason.SANDBOX_ERROR, error)
    assert pid_of(one) is None


def test_an_error_in_the_child_is_the_pages(extractor: Make, fake: Callable[[str], None]) -> None:
    """What would have been an exception here comes as the reason of that page, and the child goes on."""
    fake('ready()\nwhile True: asked(); say(b\'{"error": "KeyError: 1", "peak": 0}\')')
    one = extractor(fallback="empty")
    (bad,) = one.extract([DANGEROUS])
    assert (bad.fallback_reason, bad.error) == (FallbackReason.PARSE_ERROR, "KeyError: 1")
    assert pid_of(one) is not None


def test_a_child_that_does_not_end_is_ended(
    extractor: Make, fake: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crawl does not wait for it longer than a few seconds when it closes."""
    monkeypatch.setattr(process, "_END_SECONDS", 0.1)
    fake("ready(); wait()")
    one = extractor(sandbox="always")
    pid = pid_of(one)
    assert pid is not None
    one.close()
    assert comes_true(lambda: gone(pid))


@pytest.mark.parametrize("line", ["SIGALRM", "SIGXCPU"])
def test_its_own_limits_on_time(line: str, extractor: Make, fake: Callable[[str], None]) -> None:
    """The second line, for a crawl that is dead itself: to a live one that is a timeout too."""
    fake(f"ready(); asked(); os.kill(os.getpid(), signal.{line})")
    check_rescue(extractor(fallback="empty"), FallbackReason.TIMEOUT, "DRIPPER_TIMEOUT")


def test_the_second_line_ends_a_child_that_is_stuck() -> None:
    code = "import time; from scrapy_dripper.sandbox.child import _second_line; _second_line(0.2); time.sleep(600)"
    done = subprocess.run([sys.executable, "-c", code], timeout=SECONDS)
    assert done.returncode == -signal.SIGALRM


def test_killed_from_outside_between_two_pages(extractor: Make) -> None:
    """Neither of them did it, and neither pays for it."""
    one = extractor(sandbox="always")
    pid = pid_of(one)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert comes_true(lambda: _is_zombie(pid))

    found = one.extract([SMALL, SMALL])

    assert [x.fallback_reason for x in found] == [None, None]
    assert pid_of(one) not in (None, pid)
    assert gone(pid)


def test_the_fallback_can_die_too(extractor: Make, fake: Callable[[str], None]) -> None:
    """There is no third way: the page comes out empty and says why."""
    fake("ready(); asked(); os.kill(os.getpid(), signal.SIGKILL)")
    bad = extractor(metadata_field="metadata").extract([HOSTILE])[0]

    assert (bad.source, bad.text) == ("fallback:empty", "")
    assert (bad.error or "").count("signal SIGKILL") == 2
    assert bad.metadata is not None


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise ImportError('no such thing')", "ImportError: no such thing"),
        ("sys.exit(7)", "exit code 7"),
        ("say(b'x' * 100)", "nonsense"),
        ("say(b'{}')", "nonsense"),
    ],
)
def test_always_cannot_do_without(code: str, error: str, extractor: Make, fake: Callable[[str], None]) -> None:
    fake(code)
    with pytest.raises(
        ConfigError, match="DRIPPER_SANDBOX is 'always', but the child process cannot be started"
    ) as told:
        extractor(sandbox="always")
    assert error in str(told.value)


def test_always_cannot_do_without_a_child_later_either(extractor: Make, fake: Callable[[str], None]) -> None:
    """A page that must go through a child has none of it here, nor its fallback."""
    one = extractor(sandbox="always")
    one._sandbox.close()
    fake("sys.exit(7)")

    bad = one.extract([SMALL])[0]
    assert (bad.fallback_reason, bad.source) == (FallbackReason.SANDBOX_ERROR, "fallback:empty")
    assert "cannot be started" in (bad.error or "")


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
def test_auto_goes_on_without(
    executable: str,
    extractor: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With one warning."""
    monkeypatch.setattr(sys, "executable", executable)
    one = extractor(max_blocks=1, metadata_field="metadata")
    with caplog.at_level(logging.WARNING):
        found = one.extract([DANGEROUS, DANGEROUS])

    assert [x.source for x in found] == ["fallback:trafilatura"] * 2
    assert all(SENTENCE.strip() in (x.text or "") for x in found)
    assert [r.getMessage().partition(" (")[0] for r in caplog.records] == [
        "The child process for dangerous pages cannot be started"
    ]


def test_one_that_takes_for_ever_to_start(extractor: Make, fake: Callable[[str], None]) -> None:
    fake("time.sleep(600)")
    one = extractor(timeout=0.4, fallback="empty")
    assert one.extract([DANGEROUS])[0].fallback_reason is None  # read without it
    assert pid_of(one) is None


def test_nothing_is_left_of_it(extractor: Make) -> None:
    """No process, no thread, no open file: not after closing, not after it was killed."""

    def files() -> int:
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    before = threading.active_count(), files()
    pids = []
    for _ in range(3):
        one = extractor(sandbox="always", fallback="empty")
        pids.append(pid_of(one))
        one.extract([SMALL])
        one._sandbox._timeout = 0.1
        one.extract([HOSTILE])
        one._sandbox._timeout = SECONDS
        one.extract([SMALL])
        pids.append(pid_of(one))
        one.close()
        one.close()

    assert all(pid is not None and gone(pid) for pid in pids)
    assert (threading.active_count(), files()) == before


def test_an_extractor_that_nobody_closes() -> None:
    """Its child ends with it."""
    one = Extractor(Config(sandbox="always"), AllMain())
    pid = pid_of(one)
    assert pid is not None
    del one
    assert comes_true(lambda: gone(pid))


@pytest.mark.parametrize("busy", [False, True])
def test_no_orphan_stays_when_the_crawl_is_killed(busy: bool) -> None:
    """Not even with kill -9, nor one that is in the middle of a page."""
    code = (
        "import sys, time, threading\n"
        "from scrapy_dripper.config import Config\n"
        "from scrapy_dripper.extraction import Document\n"
        "from scrapy_dripper.sandbox import Sandbox\n"
        "sandbox = Sandbox(Config(sandbox='always', timeout=20))\n"
        "sandbox.require()\n"
        "print(sandbox.pid, flush=True)\n"
        f"page = '<div>' * 2000 + '</b>' * {2_000_000 if busy else 1}\n"
        "sandbox.plant(Document(page), Config())\n"
        "time.sleep(600)\n"
    )
    crawl = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert crawl.stdout is not None
    pid = int(crawl.stdout.readline())
    assert not gone(pid)
    crawl.kill()
    crawl.wait()
    crawl.stdout.close()
    assert comes_true(lambda: gone(pid) or _is_zombie(pid))


def _is_zombie(pid: int) -> bool:
    """Return True for a process that has ended, but whom nobody has looked at: init may be slow, or no init."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_ctrl_c_is_for_the_crawl_only() -> None:
    """The child is in a session of its own, and gets no secrets of the environment."""
    os.environ["SOME_API_KEY"] = "secret"
    sandbox = Sandbox(Config(sandbox="always"))
    sandbox.require()
    assert sandbox.pid is not None
    try:
        assert os.getsid(sandbox.pid) != os.getsid(0)
        os.kill(sandbox.pid, signal.SIGINT)
        assert sandbox.plant(SMALL, Config(timeout=SECONDS))[0].tag == "html"
        environment = Path(f"/proc/{sandbox.pid}/environ")
        assert not environment.exists() or b"SOME_API_KEY" not in environment.read_bytes()
    finally:
        del os.environ["SOME_API_KEY"]
        sandbox.close()


def test_ctrl_c_in_the_middle_of_a_page(extractor: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that nobody has waited for is not the answer to the next page."""
    one = extractor(sandbox="always")
    pid = pid_of(one)
    assert pid is not None

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(process, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.extract([SMALL])
    assert gone(pid)
    assert one.extract(["<p>three"])[0].text == "three"


def test_a_fallback_without_an_extractor() -> None:
    """What the thread does that looks after pages whose own thread is stuck: each has its own time."""
    config = Config(timeout=SECONDS)
    sandbox = Sandbox(config)
    try:
        for _ in range(2):
            found = fall_back(Document(ARTICLE), config, FallbackReason.TIMEOUT, "stuck", sandbox)
            assert (found.source, found.error) == ("fallback:trafilatura", "stuck")
            assert SENTENCE.strip() in (found.text or "")
            assert sandbox.pid is not None
            sandbox._deadline = 0.0
    finally:
        sandbox.close()
