"""A complete Scrapy project that uses scrapy-dripper, with a small website of its own to crawl."""
