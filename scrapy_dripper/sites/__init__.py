"""Site memory: use the pages of a host seen so far to recognise blocks that the site repeats."""

from scrapy_dripper.sites.memory import SiteMemory
from scrapy_dripper.sites.places import digest, hashes, parts_of, places
from scrapy_dripper.sites.repeated import furniture
from scrapy_dripper.sites.storage import MemoryFileError, read, write

__all__ = ["MemoryFileError", "SiteMemory", "digest", "furniture", "hashes", "parts_of", "places", "read", "write"]
