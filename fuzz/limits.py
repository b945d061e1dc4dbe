"""Limits for the cost of an input: proportional to its size, and well above the cost of real pages."""

from __future__ import annotations

SECONDS, SECONDS_PER_MB = 0.3, 6.0
"""CPU seconds of one extraction. 47 development pages, including the 25 largest, took up to a tenth of that. 400,000
characters of ``<li>a`` take half of it."""
TRAFILATURA, TRAFILATURA_PER_MB = 1.0, 12.0
"""Additional CPU seconds for Trafilatura as a fallback. It needs that much for many short paragraphs."""
MEMORY, MEMORY_PER_CHAR = 64_000_000, 400
"""Bytes by which memory may grow during one extraction. 400,000 characters of ``<p>x`` take a third of that."""
OUTPUT, OUTPUT_LEAST = 20, 1_000
"""Characters of each form of the output per character of the document, and the minimum size of a document."""
INSTRUMENTED = 1.5
"""How much slower instrumented code may be. Python code is up to four times slower, and a call of a regular expression
is as fast. The value is low, because every candidate is tried again in a clean process."""
HANG = 8.0
"""Multiple of the time limit after which the process of an input is killed."""


def seconds(size: int, *, trafilatura: bool = False) -> float:
    """Return the CPU seconds that a document of ``size`` characters may take.

    For a large document, that is less than two seconds for 100,000 characters with any extractor.
    """
    more = TRAFILATURA + TRAFILATURA_PER_MB * size / 1e6 if trafilatura else 0.0
    return SECONDS + SECONDS_PER_MB * size / 1e6 + more


def output(size: int) -> int:
    """Return the characters that each form of the output may have: Main-HTML, Markdown, text, content list.

    The content list is measured as JSON without white space.
    """
    return OUTPUT * max(size, OUTPUT_LEAST)


def memory(size: int) -> int:
    """Return the bytes by which memory may grow for a document of ``size`` characters."""
    return MEMORY + MEMORY_PER_CHAR * size
