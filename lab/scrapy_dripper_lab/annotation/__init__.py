"""Label pages by models or people: the parts of ``scrapy-dripper annotate``. See docs/lab/annotation.md."""
