"""The provider for scrapy-poet: ``def parse(self, response, main: MainContent)``, or ``article: Article``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.data import Extraction, from_plain, nothing, to_plain

try:
    from scrapy_poet.page_input_providers import PageObjectInputProvider
    from web_poet.serialization import SerializedLeafData, register_serialization
except ImportError as error:
    raise ImportError(
        "scrapy_dripper.providers needs scrapy-poet: pip install 'scrapy-dripper[poet]'", name=error.name
    ) from error

try:
    from scrapy_dripper.crawl.article import Article, to_article
except ImportError:  # without zyte-common-items, nobody can ask for an article
    Article = None

MainContent = Extraction
"""The class to ask for in a callback or a page object."""

NOTHING = 'the response is not HTML, or extraction is off (DRIPPER_ENABLED, meta["dripper"])'


class DripperProvider(PageObjectInputProvider):
    """Provide :class:`MainContent` and, if zyte-common-items is installed, its ``Article``.

    If a response has no main content because it is not HTML, all texts are None.
    """

    provided_classes = {MainContent} if Article is None else {MainContent, Article}
    name = "dripper_main_content"

    async def __call__(
        self,
        to_provide: set[Callable[..., Any]],
        request: Request,
        response: Response,
        crawler: Crawler,
    ) -> Sequence[Any]:
        """Return the extraction of the response, or the article made from it."""
        # At this point, the response does not know its request yet.
        dripper = Dripper.from_crawler(crawler)
        found = await dripper.extract(response, request, metadata=Article in to_provide)
        found = found or nothing(response.url, None, NOTHING)
        return [found if kind is MainContent else to_article(found) for kind in to_provide]


def _serialize(main: Extraction) -> SerializedLeafData:
    return {"json": json.dumps(to_plain(main), ensure_ascii=False).encode()}


def _deserialize(cls: type[Extraction], data: SerializedLeafData) -> Extraction:  # noqa: ARG001
    return from_plain(json.loads(data["json"]))


register_serialization(_serialize, _deserialize)
