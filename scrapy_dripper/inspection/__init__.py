"""``scrapy-dripper inspect``: show what was extracted of a page and why, and take answers (docs/guides/inspect.md)."""
