"""The implementation of ``scrapy-dripper inspect``, which shows what was extracted (docs/guides/inspect.md)."""
