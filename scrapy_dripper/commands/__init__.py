"""Commands for the ``scrapy`` tool."""
