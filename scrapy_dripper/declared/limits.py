"""How much of a page is read for what it declares. Real pages hold less; the limits bound the time for hostile ones."""

LONGEST_TEXT = 10_000
"""Maximum length of a value, in characters."""
LONGEST_URL = 4_000
"""Maximum length of a URL, in characters. A longer one is a list of pictures that a page names as one."""
LONGEST_TITLE = 500
"""Maximum length of a name of the page, in characters."""
LONGEST_NAME = 200
"""Maximum length of the name of an author, of a site or of a step, in characters."""
MOST_NODES = 20_000
"""Maximum number of values in the JSON-LD of a page, and of its facts."""
MOST_VALUES = 500
"""Maximum number of values of one name, such as the authors of a paper."""
MOST_ELEMENTS = 30
"""Maximum number of elements of a kind, such as headings, bylines or pictures."""
ABOVE = 8
"""Number of ancestors that are checked for being a comment or a teaser."""
