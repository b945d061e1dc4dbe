"""Site memory and templates: use the pages of a host seen so far to label the blocks of another one."""

from scrapy_dripper.sites.columns import MemoryFileError
from scrapy_dripper.sites.hosts import Hosts
from scrapy_dripper.sites.memory import SiteMemory, furniture, read, write
from scrapy_dripper.sites.places import digest, hashes, parts_of, places
from scrapy_dripper.sites.template import Outcome, Said, read_lesson, say, unpack_rules
from scrapy_dripper.sites.templates import Templates, is_audited, read_templates, write_templates

__all__ = [
    "Hosts",
    "MemoryFileError",
    "Outcome",
    "Said",
    "SiteMemory",
    "Templates",
    "digest",
    "furniture",
    "hashes",
    "is_audited",
    "parts_of",
    "places",
    "read",
    "read_lesson",
    "read_templates",
    "say",
    "unpack_rules",
    "write",
    "write_templates",
]
