"""Extract tables of HTML with frameworks other than datatrove.

:mod:`~scrapy_dripper.corpus.adapters.arrow` has the functions for Ray Data and Spark, and
:mod:`~scrapy_dripper.corpus.adapters.curator` the stages for NeMo Curator. The frameworks themselves are not part of
the extra ``[corpus]``.
"""
