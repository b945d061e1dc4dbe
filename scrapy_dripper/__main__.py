"""``python -m scrapy_dripper`` is ``scrapy-dripper``."""

from __future__ import annotations

import sys

from scrapy_dripper.cli import main

if __name__ == "__main__":
    sys.exit(main())
