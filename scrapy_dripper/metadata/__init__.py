"""Read the metadata of a page from its parsed tree: meta elements, JSON-LD, microdata, bylines and dates."""
