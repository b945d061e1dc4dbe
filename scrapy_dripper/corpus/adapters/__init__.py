"""Extract tables of HTML with other engines than datatrove.

:mod:`~scrapy_dripper.corpus.adapters.arrow` has what Ray Data and Spark call, and
:mod:`~scrapy_dripper.corpus.adapters.curator` the stages for NeMo Curator. The engines themselves are not part of the
extra ``[corpus]``.
"""
