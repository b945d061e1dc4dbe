"""Run a rank in a process: ``python -m scrapy_dripper.corpus.rank RANK``, with the executor on standard input."""

from __future__ import annotations

import os
import sys
import threading

import dill


def main() -> None:
    """Run the rank. Exceptions of its pipeline propagate."""
    stream = sys.stdin.buffer
    executor = dill.loads(stream.read(int.from_bytes(stream.read(8), "big")))

    def watch() -> None:
        """End this process when its parent process ends."""
        os.read(stream.fileno(), 1)  # the descriptor, because reading from the stream would hold its lock
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    executor._run_for_rank(int(sys.argv[1]), local_rank=1)  # A local rank of 0 would also log to the terminal.


if __name__ == "__main__":
    main()
