"""Times rs-trafilatura for ``extract.py --rust``, in a Python that has its wheel. It needs no other package.

Writes its version, and then a line of JSON for each line that it reads: the CPU milliseconds of the page at that path.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import rs_trafilatura


def main() -> None:
    """Answer until the input ends."""
    print(json.dumps(f"{version('rs-trafilatura')} in Python {platform.python_version()}"), flush=True)
    for line in sys.stdin:
        html = Path(json.loads(line)).read_bytes()
        start = time.process_time()
        # The call of PEERS in the laboratory, which this Python does not have.
        _ = rs_trafilatura.extract_bytes(html, output_markdown=True).content_markdown
        print(json.dumps(1000 * (time.process_time() - start)), flush=True)


if __name__ == "__main__":
    main()
