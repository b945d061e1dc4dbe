"""A child process that can be killed, for pages in which a parser could be stuck or take gigabytes.

The child does what is dangerous and answers in JSON, of which nothing can run: a parser that a page has taken over
does not get at the crawl. It is a fresh interpreter, never a fork, so it does not matter what has been loaded before.
"""

from scrapy_dripper.sandbox.errors import SandboxError
from scrapy_dripper.sandbox.sandbox import Sandbox

__all__ = ["Sandbox", "SandboxError"]
