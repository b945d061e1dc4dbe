"""Limits for the cost of an input: proportional to its size, and well above the cost of real pages."""

from __future__ import annotations

SECONDS, SECONDS_PER_MB = 0.3, 6.0
"""CPU seconds of one extraction. 47 development pages, the 25 largest among them, took up to a tenth of that; 400,000
characters of ``<li>a`` take half."""
TRAFILATURA, TRAFILATURA_PER_MB = 1.0, 12.0
"""What Trafilatura may take beside that, as a fallback: of many short paragraphs it takes as much."""
MEMORY, MEMORY_PER_CHAR = 64_000_000, 400
"""Bytes by which memory may grow during one extraction. 400,000 characters of ``<p>x`` take a third of that."""
OUTPUT, OUTPUT_LEAST = 20, 1_000
"""Characters of each form of the output by the character of the document, which counts as so many if it has fewer."""
INSTRUMENTED = 1.5
"""How much slower code may be that tells the fuzzer which lines it ran. Python code is up to four times slower, a call
into a regular expression as fast: rather too many candidates, for each is tried again in a clean process."""
HANG = 8.0
"""How many times the seconds an input may take before its process is killed."""


def seconds(size: int, *, trafilatura: bool = False) -> float:
    """Return the CPU seconds that a document of so many characters may take.

    Of a large one that is under two for 100,000 characters, whoever extracts it.
    """
    more = TRAFILATURA + TRAFILATURA_PER_MB * size / 1e6 if trafilatura else 0.0
    return SECONDS + SECONDS_PER_MB * size / 1e6 + more


def output(size: int) -> int:
    """Return the characters that each form of the output may have: Main-HTML, Markdown, text, content list.

    The last is measured as JSON without white space.
    """
    return OUTPUT * max(size, OUTPUT_LEAST)


def memory(size: int) -> int:
    """Return the bytes by which memory may grow for a document of so many characters."""
    return MEMORY + MEMORY_PER_CHAR * size
