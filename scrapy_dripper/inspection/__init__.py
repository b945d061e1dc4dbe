"""See what was extracted, and correct it: what ``scrapy-dripper inspect`` is made of. See docs/guides/inspect.md."""
