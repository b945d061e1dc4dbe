"""The core of a crawl: collect pages in batches, extract the batches in workers or a thread, and fill items."""
