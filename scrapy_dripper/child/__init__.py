"""What runs in a worker process, from its first line on; :mod:`scrapy_dripper.workers` is the side that asks it."""
