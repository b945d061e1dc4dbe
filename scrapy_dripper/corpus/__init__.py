"""Archive a crawl, run it again from its archive, and extract the pages of archives.

:mod:`~scrapy_dripper.corpus.archive` writes the responses of a crawl to a WARC file, and runs a crawl again from such
files. It only needs FastWARC. :mod:`~scrapy_dripper.corpus.steps` has pipeline steps for datatrove, which need the
extra ``[corpus]``.
"""
