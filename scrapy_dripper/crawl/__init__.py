"""A crawl of Scrapy: its pages in batches, its items, the sites that it remembers, its stats and its report."""
