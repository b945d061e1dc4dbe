"""Archives of pages: WARC in, documents out, on the engines that others have built for many machines.

:mod:`~scrapy_dripper.corpus.reader` and :mod:`~scrapy_dripper.corpus.step` are steps for datatrove,
:mod:`~scrapy_dripper.corpus.archive` and :mod:`~scrapy_dripper.corpus.replay` write a crawl as WARC and read it back.
All of it needs the extra ``[corpus]``, the last two only FastWARC of it.
"""
