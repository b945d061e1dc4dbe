"""Rules that correct a model: they name elements of a site's pages that are main content, or that are not.

Rules are read from a file or a dict, checked before the first page, and looked up by the URL of a page.
"""

from scrapy_dripper.rules.read import KINDS, WANTED, RuleError, read_rules
from scrapy_dripper.rules.ruleset import Rule, Rules, hosts_of
from scrapy_dripper.rules.selectors import find

__all__ = ["KINDS", "WANTED", "Rule", "RuleError", "Rules", "find", "hosts_of", "read_rules"]
