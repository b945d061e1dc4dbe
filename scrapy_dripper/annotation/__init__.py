"""Label pages by reading them: what ``scrapy-dripper annotate`` is made of. See docs/guides/annotation.md."""
