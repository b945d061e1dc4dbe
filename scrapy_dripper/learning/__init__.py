"""``scrapy-dripper learn``: what corrected pages teach about their sites, and how near a text is to its truth."""
