"""Make, measure and explain models: what no crawl runs.

Nothing outside of this package imports it. The command line finds its commands by name when they are called.
"""
