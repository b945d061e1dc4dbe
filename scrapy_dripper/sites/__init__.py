"""Site memory: what the pages of a host that were seen so far say about the blocks of another one."""

from scrapy_dripper.sites.memory import SiteMemory
from scrapy_dripper.sites.places import digest, hashes, parts_of, places
from scrapy_dripper.sites.repeated import furniture
from scrapy_dripper.sites.storage import MemoryFileError, read, write

__all__ = ["MemoryFileError", "SiteMemory", "digest", "furniture", "hashes", "parts_of", "places", "read", "write"]
