"""Extract the pages of WARC archives.

:mod:`~scrapy_dripper.corpus.reader` and :mod:`~scrapy_dripper.corpus.step` are pipeline steps for datatrove.
:mod:`~scrapy_dripper.corpus.archive` writes the responses of a crawl to a WARC file, and
:mod:`~scrapy_dripper.corpus.replay` runs a crawl again from such files. The package needs the extra ``[corpus]``; the
last two modules only need FastWARC.
"""
