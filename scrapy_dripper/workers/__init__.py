"""Processes that can be killed, in which pages go their whole way, from bytes to Markdown.

A worker is a fresh interpreter, never a fork, so it does not matter what the crawl has loaded before. It never imports
the crawl's main script. What it answers is plain data, of which nothing can run.
"""

from scrapy_dripper.workers.errors import StartError, WorkerError
from scrapy_dripper.workers.pool import Pool, processes
from scrapy_dripper.workers.shared import Shared, shared_pool
from scrapy_dripper.workers.wire import Task

__all__ = ["Pool", "Shared", "StartError", "Task", "WorkerError", "processes", "shared_pool"]
