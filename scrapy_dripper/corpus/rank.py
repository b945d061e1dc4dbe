"""The process of one rank: ``python -m scrapy_dripper.corpus.rank RANK``, with its executor on standard input."""

from __future__ import annotations

import os
import sys
import threading

import dill


def main() -> None:
    """Run the rank to its end. Raises what its pipeline raises."""
    stream = sys.stdin.buffer
    executor = dill.loads(stream.read(int.from_bytes(stream.read(8), "big")))

    def watch() -> None:
        """End this process when the one that started it has ended."""
        os.read(stream.fileno(), 1)  # the file itself: a thread in the stream would hold its lock to the end
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    executor._run_for_rank(int(sys.argv[1]), local_rank=1)  # The first one would log to the terminal as well.


if __name__ == "__main__":
    main()
