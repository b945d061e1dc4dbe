"""``scrapy dripper URL``: the spiders of a page or a whole site that a user names, and the folder that they write."""
