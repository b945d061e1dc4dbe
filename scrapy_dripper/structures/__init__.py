"""The structures of a page, such as code, formulas and footnotes: a file for each.

A file holds the names by which generators mark the structure, tells it from other elements, and reads it as items.
"""
