"""An item that is ready to use."""

from __future__ import annotations

from scrapy import Field, Item


class PageItem(Item):
    """A page with its main content: ``yield PageItem(url=response.url)``.

    The add-on fills all other fields, without any setting, and those of them that another class has
    (``DRIPPER_FILL_BY_NAME``). Those for Main-HTML and Markdown have the names of the settings, so None leaves them
    out.
    """

    url = Field()
    title = Field()
    markdown = Field()
    main_html = Field()
    text = Field()
    metadata = Field()
