"""Pages with ground truth, metrics for extractions, and ``scrapy-dripper learn``: shared with the laboratory."""
