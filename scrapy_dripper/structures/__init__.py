"""The structures of a page, such as code, formulas and footnotes: a file for each, from its names in HTML to its items.

A file holds the names by which generators mark the structure, tells it from other elements, and reads it as items. What
a formula is in LaTeX and a table in HTML is here as well.
"""

NEAR = 16
"""Number of elements to search around an element, or at its beginning. On broken pages, what follows an unclosed
element is nested in it, and each level would be searched to its end."""
NEARLY_ALL = 0.8
"""A larger share than this is nearly all: of a text in links, which is a link, of a section that is main, of posts with
an author, of the text of a post in a quotation, or of posts that are alone in larger elements."""
