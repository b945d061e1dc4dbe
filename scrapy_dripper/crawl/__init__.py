"""The core of a crawl: batch pages, extract them in workers or a thread, fill items, remember sites, and report."""
