"""The door for scrapy-poet: ``def parse(self, response, main: MainContent)``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_dripper.crawl.dripper import Dripper
from scrapy_dripper.extraction import Extraction, FallbackReason, Metadata
from scrapy_dripper.fallback import nothing
from scrapy_dripper.output.content_json import from_json, to_json

try:
    from scrapy_poet.page_input_providers import PageObjectInputProvider
    from web_poet.serialization import SerializedLeafData, register_serialization
except ImportError as error:
    raise ImportError(
        "scrapy_dripper.providers needs scrapy-poet: pip install 'scrapy-dripper[poet]'", name=error.name
    ) from error

MainContent = Extraction
"""What to ask for in a callback or a page object."""

NOTHING = 'the response is not HTML, or extraction is off (DRIPPER_ENABLED, meta["dripper"])'


class DripperProvider(PageObjectInputProvider):
    """Provide :class:`MainContent`. Where a response has none, not being HTML, all its texts are None."""

    provided_classes = {MainContent}  # noqa: RUF012 (declared by the base class)
    name = "dripper_main_content"

    async def __call__(
        self,
        to_provide: set[Callable[..., Any]],  # noqa: ARG002 (there is one class to provide)
        request: Request,
        response: Response,
        crawler: Crawler,
    ) -> Sequence[Any]:
        """Return the extraction of the response, waiting for its batch."""
        # At this point the response is not tied to its request yet.
        extraction = await Dripper.from_crawler(crawler).extract(response, request)
        return [extraction or nothing(response.url, None, NOTHING)]


def _serialize(main: Extraction) -> SerializedLeafData:
    content = None if main.content is None else to_json(main.content)
    values = {**asdict(replace(main, content=None)), "content": content}
    return {"json": json.dumps(values, ensure_ascii=False).encode()}


def _deserialize(cls: type[Extraction], data: SerializedLeafData) -> Extraction:
    values = json.loads(data["json"])
    reason, content, about = (values[name] for name in ("fallback_reason", "content", "metadata"))
    values["fallback_reason"] = None if reason is None else FallbackReason(reason)
    values["content"] = None if content is None else from_json(content)
    values["metadata"] = None if about is None else Metadata.from_dict(about)
    for name in ("labels", "probabilities"):
        values[name] = tuple(values[name])
    return cls(**values)


register_serialization(_serialize, _deserialize)
