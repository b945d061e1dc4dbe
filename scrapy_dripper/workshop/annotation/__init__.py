"""Label pages by models or people: the parts of ``scrapy-dripper annotate``. See docs/guides/annotation.md."""
