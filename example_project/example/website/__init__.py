"""The example's own website: stored pages, pages made on the fly, and the server for both."""

from example.website.server import Website

__all__ = ["Website"]
