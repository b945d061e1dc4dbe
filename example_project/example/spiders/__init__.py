"""One spider for each way of using scrapy-dripper."""
