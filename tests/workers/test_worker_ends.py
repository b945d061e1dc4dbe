"""All ways in which a worker can end or fail to start. Nothing of it is left. A step's clock only counts the time in
which its worker could run."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_dripper.config import Config, ConfigError
from scrapy_dripper.data import FallbackReason
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.workers import process
from scrapy_dripper.workers.pool import FIRST_STARTS, Pool, Workers
from scrapy_dripper.workers.process import STARVED, StartError, StepClock, WorkerError, run_delay
from tests.programs import python
from tests.workers.children import Pools, comes_true, gone, own, rescue, task, worker_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="looks at processes as POSIX has them")

TIMEOUT, DEAD = FallbackReason.TIMEOUT, FallbackReason.WORKER_ERROR


def check(pool: Pool, texts: list[str], reason: FallbackReason, words: str, at: int | None) -> None:
    """Check that a batch raises the right error for the right page, and that nothing is left of the worker."""
    (pid,) = pool.pids or [0]
    with pytest.raises(WorkerError, match=words) as told:
        pool.extract([task(text) for text in texts])
    assert (told.value.reason, told.value.task) == (reason, at)
    assert pool.pids == []
    assert not pid or gone(pid)


def test_the_page_that_is_read_or_written_is_known(pools: Pools) -> None:
    """While a batch is labelled, the page is unknown."""
    pool = pools()
    check(pool, ["one", "DIE", "two"], DEAD, "ended by SIGKILL", None)
    with pytest.raises(WorkerError) as told:
        pool.extract([rescue("one"), rescue("THEN DIE"), rescue("two")])
    assert told.value.task == 1


KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
STEP = "say(json.dumps({'say': 'step', 'task': 1, 'sizes': []}).encode())"
DONE = "say(json.dumps({'say': 'done', 'extractions': [{}, {}], 'sizes': []}).encode())"
ENDINGS = {
    "kill -9": (f"ready(); asked(); {KILLED}", "ended by SIGKILL", None),
    "kill -9 at a page": (f"ready(); asked(); {STEP}; {KILLED}", "ended by SIGKILL", 1),
    "kill -9 in the middle of the question": (f"ready(); sys.stdin.buffer.read(1); {KILLED}", "SIGKILL", None),
    "a crash": ("ready(); asked(); os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV", None),
    "an exit": ("ready(); asked(); sys.exit(3)", "exit code 3", None),
    "half an answer": ("ready(); asked(); say(b'{', lengths=(9, 9)); sys.exit(0)", "exit code 0", None),
    "no JSON": ("ready(); asked(); say(b'x' * 1_000, lengths=(7, 7)); wait()", "invalid answer", None),
    "no object": ("ready(); asked(); say(b'[]'); wait()", "invalid answer", None),
    "no answers": ("ready(); asked(); say(b'{\"sizes\": []}'); wait()", "invalid answer", None),
    "a task that is none": (f"ready(); asked(); {STEP.replace('1', '2')}; wait()", "invalid answer", None),
    "no extractions": (f"ready(); asked(); {STEP}; {DONE}; wait()", "invalid answer", 1),
    "too few": (f"ready(); asked(); {DONE.replace('{}, {}', '{}')}; wait()", "invalid answer", None),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_worker_that_ends_or_answers_nonsense(ending: str, pools: Pools, fake: Callable[[str], None]) -> None:
    code, words, at = ENDINGS[ending]
    fake(code)
    pool = pools()
    pool.start()
    check(pool, ["one", "two"], DEAD, words, at)


def test_logs_of_a_worker_are_forwarded(pools: Pools, caplog: pytest.LogCaptureFixture) -> None:
    """This includes the loading of the engine. A record that cannot be formatted affects no page."""
    pool = pools(config=own(engine="tests.workers.engines.talkative"))
    with caplog.at_level(logging.INFO):
        (found,) = pool.extract([task("LOG")])
    assert found.fallback_reason is None
    words = [record.getMessage() for record in caplog.records if record.name == "tests.workers.engines"]
    assert words == [
        "loading",
        "a word from the worker",
        "a log record cannot be formatted: '%d of these'",
    ]


def test_threads_of_the_users_may_log_at_any_time(pools: Pools) -> None:
    """Log records never get into the middle of an answer."""
    pool = pools(config=own(engine="tests.workers.engines.Chatty"))
    (first,) = pool.extract([task("one")])
    for number in range(30):
        (found,) = pool.extract([task(f"number {number}" * 100)])
        assert worker_of(found) == worker_of(first)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ImportError('no such thing')", "ImportError: no such thing"),
        ("sys.exit(7)", "exit code 7"),
        ("say(b'x' * 100)", "Expecting value"),
        ("say(b'{\"sizes\": []}')", "expected the message that the worker is ready"),
        ('say(b\'{"failed": "Trouble", "message": "no room", "sizes": []}\')', "no room"),
    ],
)
def test_a_worker_that_does_not_start(code: str, words: str, pools: Pools, fake: Callable[[str], None]) -> None:
    """The error has the worker's last words if there are any, and nothing is left of it."""
    fake(code)
    pool = pools()
    for attempt in (pool.start, lambda: pool.extract([task("one")])):
        with pytest.raises(StartError, match=words):
            attempt()
        assert pool.pids == []


def test_one_that_takes_for_ever_to_start(
    pools: Pools, fake: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_dripper.workers.pool.START_SECONDS", 0.3)
    fake("time.sleep(600)")
    with pytest.raises(StartError, match="it was not ready after 0 seconds"):
        pools().start()


def test_standard_streams_that_are_closed() -> None:
    """A daemon has none. A pipe must not take their descriptors, which have another meaning for the worker."""
    code = """
import os
from tests.workers.children import OWN, task
from scrapy_dripper.workers.pool import Pool
said = os.dup(1)
for closed in ([0], [1], [2], [0, 1, 2]):
    if os.fork():
        os.wait()
        continue
    for descriptor in closed:
        os.close(descriptor)
    pool = Pool(OWN, 1)
    answer = pool.extract([task("fine")])[0].text
    taken = [descriptor for descriptor in closed if os.path.exists(f"/dev/fd/{descriptor}")]
    pool.close()
    os.write(said, f"{answer} {taken}\\n".encode())
    os._exit(0)
"""
    assert python("-c", code).stdout.splitlines() == ["fine []"] * 4


def test_a_current_folder_that_is_gone(pools: Pools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be imported from it, but everything else can."""
    gone_soon = tmp_path / "gone"
    gone_soon.mkdir()
    monkeypatch.chdir(gone_soon)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    gone_soon.rmdir()
    assert pools().extract([task("fine")])[0].text == "fine"


def test_a_system_without_threads(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that cannot be monitored is not used. A new one is started once there is a thread."""
    start, turns = threading.Thread.start, iter([True] * FIRST_STARTS)

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "scrapy-dripper-keeper" and next(turns, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    pool = pools()
    with pytest.raises(StartError, match="can't start new thread"):
        pool.start()
    assert pool.pids == []
    with pytest.raises(WorkerError, match="no answer within"):
        pool.extract([task("HANG", own(timeout=1.0))])


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"engine": "tests.workers.engines.broken"}, ModelError, "no device"),
        ({"engine": "tests.workers.engines.nothing"}, ModelError, "which cannot be imported"),
        ({"engine": "tests.workers.engines.fallback"}, ModelError, "cannot be loaded"),
        ({"fallback": "tests.workers.engines.nothing"}, ConfigError, "which cannot be imported"),
        ({"fallback": "tests.workers.engines.AllMain"}, ConfigError, "must name a function"),
        ({"engine": "tagger", "model": "/no/such/folder"}, ModelError, "/no/such/folder"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(options: dict[str, str], kind: type[Exception], words: str) -> None:
    """The message is the same as without workers."""
    with pytest.raises(kind, match=words):
        Workers(own(**options))


def test_an_exception_of_the_engine_costs_no_worker(pools: Pools) -> None:
    """The page falls back in the same worker. To exceed the memory is one."""
    pool = pools(config=own(worker_memory=256))
    one, *bad = pool.extract([task("one"), task("RAISE"), task("MEMORY")])
    assert [page.fallback_reason for page in bad] == [FallbackReason.ENGINE_ERROR] * 2
    assert [page.error for page in bad] == ["ValueError: this page is not for me", "MemoryError: "]
    assert [page.text for page in bad] == [f"fallback of {worker_of(one)}"] * 2
    assert pool.pids == [worker_of(one)]


def test_a_page_that_takes_more_memory_than_there_is(pools: Pools) -> None:
    """It is oversize, and the fallback gets as much as it can process."""
    config = Config(engine="tests.workers.engines.AllMain", worker_memory=256, limits={"nodes": 10**9})
    page = "<p " + " ".join(f"a{i}" for i in range(100)) + ">x"
    pool = pools(config=config)
    (bad,) = pool.extract([task(page * 20_000, config)])
    assert bad.fallback_reason is FallbackReason.OVERSIZE
    assert "DRIPPER_WORKER_MEMORY" in (bad.error or "")


@pytest.mark.usefixtures("light")
def test_nothing_is_left_of_it(pools: Pools) -> None:
    """After closing or killing it, there is no process, thread or open file."""

    def files() -> int:
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    before = threading.active_count(), files()
    pids = []
    for _ in range(3):
        pool = pools()
        pids.append(worker_of(pool.extract([task("one")])[0]))
        with pytest.raises(WorkerError):
            pool.extract([task("SLEEP", own(timeout=0.5))])
        pids.append(worker_of(pool.extract([task("one")])[0]))
        pool.close()
        pool.close()

    assert comes_true(lambda: all(map(gone, pids)))
    assert comes_true(lambda: threading.active_count() <= before[0] and files() <= before[1], 20)


def test_a_worker_that_does_not_end_is_ended(
    pools: Pools, fake: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crawl that closes waits for a few seconds at most."""
    monkeypatch.setattr(process, "_END_SECONDS", 0.1)
    fake("ready(); wait()")
    pool = pools()
    pool.start()
    (pid,) = pool.pids
    pool.close()
    assert comes_true(lambda: gone(pid))


def test_ctrl_c_is_for_the_crawl_only(pools: Pools) -> None:
    """A worker has its own process group."""
    pool = pools()
    pool.start()
    (pid,) = pool.pids
    assert os.getpgid(pid) != os.getpgid(0)
    os.kill(pid, signal.SIGINT)
    assert worker_of(pool.extract([task("one")])[0]) == pid


def test_a_worker_needs_no_scrapy(pools: Pools) -> None:
    """It does not import Scrapy, and the crawl's own imports do not reach it."""
    import scrapy

    assert scrapy.__name__ in sys.modules
    (found,) = pools().extract([task("one")])
    work = found.details["work"]
    assert [work[name] for name in ("scrapy", "twisted", "onnxruntime", "trafilatura")] == [0] * 4


@pytest.mark.parametrize(
    ("options", "knows"),
    [({"engine": "tagger", "fallback": "html"}, False), ({"engine": "tagger"}, True), ({}, True)],
    ids=["ours", "a fallback of the user's", "an engine of the user's"],
)
def test_secrets_are_for_the_users_own_code_only(
    options: dict[str, str], knows: bool, pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only pages determine what runs, the environment has no keys."""
    for name in ("SOME_API_KEY", "NVIDIA_API_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    pool = pools(config=own(**options))
    pool.start()
    known = Path(f"/proc/{pool.pids[0]}/environ")
    if known.exists():
        assert (b"SOME_API_KEY" in known.read_bytes()) is (b"NVIDIA_API_KEY" in known.read_bytes()) is knows
        assert b"CUDA_VISIBLE_DEVICES=1" in known.read_bytes()
        assert b"OMP_NUM_THREADS=1" in known.read_bytes()
    if "engine" not in options:
        assert pool.extract([task("one")])[0].details["work"]["key"] == 1


SCRIPT = """
import scrapy
from scrapy.crawler import AsyncCrawlerProcess

def mine(html, url):
    return "<p>mine"

class PageSpider(scrapy.Spider):
    name = "pages"

    async def start(self):
        open(__file__ + ".log", "a").write("crawled\\n")
        yield scrapy.Request("data:text/html,<p>x")

    def parse(self, response):
        yield {{"url": response.url}}

process = AsyncCrawlerProcess({{
    "ADDONS": {{"scrapy_dripper.Addon": 500}},
    "DRIPPER_ENGINE": "tests.workers.engines.AllMain",
    "DRIPPER_FALLBACK": {fallback},
    "DRIPPER_PROCESSES": 1,
    "TELNETCONSOLE_ENABLED": False,
}})
process.crawl(PageSpider)
process.start()
"""


@pytest.mark.parametrize(
    ("fallback", "log", "words"),
    [("'html'", ["crawled"], ""), ("'other.mine'", [], "names something in the script that crawls")],
    ids=["ours", "by a detour"],
)
def test_a_script_without_a_main_guard_does_not_crawl_twice(
    fallback: str, log: list[str], words: str, tmp_path: Path
) -> None:
    """No worker runs it again. If a worker needs something in it, there is an error and no download."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(fallback=fallback), encoding="utf-8")
    (tmp_path / "other.py").write_text("from script import mine", encoding="utf-8")
    assert words in python(script).stderr
    assert [line for file in tmp_path.glob("*.log") for line in file.read_text(encoding="utf-8").split()] == log


SCHEDSTAT = Path("/proc/self/schedstat").exists()
BURN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


def test_time_without_a_core_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting only counts from the start of the step."""
    waited = iter([5.0, 7.0, 12.0])
    monkeypatch.setattr(process, "run_delay", lambda _: next(waited))
    clock = StepClock(1, 10.0, 100.0)
    assert clock.look(100.1, 0.0) == pytest.approx(0.1)
    assert clock.look(104.0, 0.0) == pytest.approx(2.0)
    assert clock.look(112.0, 0.0) == pytest.approx(5.0)


def test_a_step_ends_even_if_its_worker_never_gets_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after four times its limit."""
    monkeypatch.setattr(process, "run_delay", lambda _: now)
    clock = StepClock(1, 10.0, 0.0)
    now = 0.0
    clock.look(now, 0.0)
    for now in (20.0, 30.0, 39.0):
        assert clock.look(now, 0.0) < 10
    now = (1 + STARVED) * 10 + 1
    assert clock.look(now, 0.0) > 10


def test_where_the_system_does_not_say_how_long_a_process_waits() -> None:
    """All of the time counts."""
    nobody = 2**22 + 1  # over the largest number of a process
    assert run_delay(nobody) == 0.0
    clock = StepClock(nobody, 10.0, 0.0)
    assert clock.look(5.0, 0.0) == 5.0


@pytest.mark.skipif(not SCHEDSTAT, reason="needs /proc/PID/schedstat")
def test_a_starved_worker_answers_its_page(pools: Pools, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that takes 0.6 CPU seconds is answered with a limit of 2, although others use most of the only core, so
    that it takes longer. How long a worker may wait at most is another test's subject, and depends on the machine here.
    """
    monkeypatch.setattr(process, "STARVED", 100)
    pool = pools()
    pool.start()
    (pid,) = pool.pids
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {core})
    burners = [subprocess.Popen([sys.executable, "-c", BURN, str(core)]) for _ in range(3)]
    try:
        (found,) = pool.extract([task("BURN 0.6", own(timeout=2.0))])
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert found.text == "BURN 0.6"
