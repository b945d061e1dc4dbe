"""The provider for scrapy-poet: ``def parse(self, response, main: MainContent)``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_dripper.crawl import Dripper
from scrapy_dripper.data import Extraction, from_plain, nothing, to_plain

try:
    from scrapy_poet.page_input_providers import PageObjectInputProvider
    from web_poet.serialization import SerializedLeafData, register_serialization
except ImportError as error:
    raise ImportError(
        "scrapy_dripper.providers needs scrapy-poet: pip install 'scrapy-dripper[poet]'", name=error.name
    ) from error

MainContent = Extraction
"""The class to ask for in a callback or a page object."""

NOTHING = 'the response is not HTML, or extraction is off (DRIPPER_ENABLED, meta["dripper"])'


class DripperProvider(PageObjectInputProvider):
    """Provide :class:`MainContent`. If a response has none because it is not HTML, all texts are None."""

    provided_classes = {MainContent}  # noqa: RUF012 (scrapy-poet's)
    name = "dripper_main_content"

    async def __call__(
        self,
        to_provide: set[Callable[..., Any]],  # noqa: ARG002
        request: Request,
        response: Response,
        crawler: Crawler,
    ) -> Sequence[Any]:
        """Return the extraction of the response."""
        # At this point, the response does not know its request yet.
        found = await Dripper.from_crawler(crawler).extract(response, request)
        return [found or nothing(response.url, None, NOTHING)]


def _serialize(main: Extraction) -> SerializedLeafData:
    return {"json": json.dumps(to_plain(main), ensure_ascii=False).encode()}


def _deserialize(cls: type[Extraction], data: SerializedLeafData) -> Extraction:  # noqa: ARG001
    return from_plain(json.loads(data["json"]))


register_serialization(_serialize, _deserialize)
