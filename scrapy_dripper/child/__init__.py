"""The code that runs in a worker process. :mod:`scrapy_dripper.workers` is the parent's side."""
