"""What is made of an extraction: Markdown with other options, chunks, links, fingerprints and front matter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from scrapy_dripper.choose import Choice, mask_of
from scrapy_dripper.choose.comments import comments_on
from scrapy_dripper.config import OUTPUT_FIELDS, Config
from scrapy_dripper.data import Document, Extraction, Metadata, attempt, fingerprints
from scrapy_dripper.output import Written, most_chars, write
from scrapy_dripper.output.content_json import from_json, to_json
from scrapy_dripper.output.markdown import Callouts, Posts, Tables
from scrapy_dripper.output.markdown import Links as LinkForm
from scrapy_dripper.output.markdown import front_matter as yaml
from scrapy_dripper.output.markdown import markdown as of_items
from scrapy_dripper.output.urls import media, outlinks
from scrapy_dripper.structures.items import Image, Item, Items, Post, Video, line_text, plain_text

if TYPE_CHECKING:
    from scrapy_dripper.output.chunks import Chunk

_LARGER = (1, 8, 64, 512)


def markdown(
    content: Extraction | Items | Sequence[Mapping[str, Any]],
    links: LinkForm = "keep",
    tables: Tables = "html",
    callouts: Callouts = "alerts",
    posts: Posts = "rules",
    front_matter: bool = False,
    types: Collection[str] | None = None,
) -> str:
    """Return the Markdown of an extraction, of its content list, or of that list as JSON values, as items hold it.

    The arguments are those of ``DRIPPER_MARKDOWN``. Front matter needs an extraction; what it has beside title and URL
    is from the page's metadata, if that was read. Raise ValueError if it is asked for without an extraction,
    ConfigError for a wrong argument, and TypeError for HTML.
    """
    if isinstance(content, (str, bytes)):
        raise TypeError("markdown takes an extraction or its content list; for the HTML of a page, there is extract")
    asked: Any = {"links": links, "tables": tables, "callouts": callouts, "posts": posts, "types": types}
    form = Config(markdown=asked).markdown
    extraction = content if isinstance(content, Extraction) else None
    found = content if extraction is None else extraction.content
    if found is None:
        raise ValueError("the extraction has no content list: set DRIPPER_CONTENT_FIELD, or Config(content_field=...)")
    items = from_json(found) if isinstance(found, list) else cast("Items", found)
    written = of_items(
        items, links=form.links, tables=form.tables, callouts=form.callouts, posts=form.posts, types=form.types
    )
    if not front_matter:
        return written
    if extraction is None:
        raise ValueError("front_matter needs an extraction, because a content list has no title and no URL")
    known = _front_matter(extraction, extraction.metadata or Metadata())
    return f"{known}\n\n{written}" if known and written else written


@dataclass(frozen=True)
class FieldSource:
    """What the fields of the output are made of that are asked for in addition."""

    extraction: Extraction
    document: Document
    config: Config
    listed: Items | None = None
    """The content list; None if it is that of the extraction, as it comes from a fallback."""
    choice: Choice | None = None
    """What is written of the page; None for a fallback."""

    @cached_property
    def items(self) -> Items:
        """The content list. Raise ValueError if there is none."""
        if self.listed is None and self.extraction.content is None:
            raise ValueError("there is no content list, or it would be too long")
        return from_json(self.extraction.content or ()) if self.listed is None else self.listed


def content(source: FieldSource) -> list[dict[str, Any]]:
    """Return the content list as plain JSON values."""
    return to_json(source.items)


def links(source: FieldSource) -> list[dict[str, Any]]:
    """Return the links of the main content."""
    return [asdict(link) for link in outlinks(source.items)]


def images(source: FieldSource) -> list[dict[str, str]]:
    """Return the images of the main content."""
    found = media(source.items, Image)
    return [{"url": i.src, "alt": i.alt, "title": i.title, "caption": line_text(i.caption)} for i in found]


def videos(source: FieldSource) -> list[dict[str, str]]:
    """Return the videos of the main content."""
    found = media(source.items, Video)
    return [{"url": v.src, "poster": v.poster, "title": v.title, "caption": line_text(v.caption)} for v in found]


def comments(source: FieldSource) -> list[dict[str, str]]:
    """Return the readers' comments on the main content; none of a fallback. Those in which no posts are found are one.

    Raise what the writers raise.
    """
    if source.choice is None:
        return []
    scored = source.choice.scored
    page, said = scored.page, comments_on(scored, source.choice.main)
    if not said.any():
        return []
    from scrapy_dripper.structures.posts import thread_posts  # reads dates and names, which few pages need

    posts = thread_posts(page, said, scored.post_marks)
    written = write(page, mask_of(page, said, source.choice.hidden), page.config, len(source.document.html), posts)
    parts: dict[int, tuple[Post, list[Item]]] = {}
    post = Post(int(not posts))
    for item in written.content or ():
        if isinstance(item, Post):
            post = item
        else:
            parts.setdefault(post.number, (post, []))[1].append(item)
    known = [(one, _without_byline(plain_text(items), one)) for number, (one, items) in sorted(parts.items()) if number]
    return [{"author": one.author, "date": one.date, "text": text} for one, text in known if text]


def _without_byline(text: str, post: Post) -> str:
    """Return the text of a post without a first line that begins with its author."""
    from scrapy_dripper.structures.posts import LONGEST_BYLINE

    line, _, rest = text.partition("\n")
    is_byline = post.author and line.startswith(post.author) and len(line) <= LONGEST_BYLINE
    return rest if rest and is_byline else text


def chunks(source: FieldSource) -> list[dict[str, Any]]:
    """Return the main content in chunks, with a larger chunk size if the output would otherwise be too long. Raise
    ValueError if it is always.
    """
    from scrapy_dripper.output.chunks import chunks as to_chunks

    config, document = source.config, source.document
    most = most_chars(len(document.html), config.limits.output)
    form = config.markdown
    write = partial(of_items, links=form.links, tables=form.tables, callouts=form.callouts, posts=form.posts)
    for larger in _LARGER:
        made = to_chunks(
            source.items,
            document.url,
            size=config.chunks.size * larger,
            overlap=config.chunks.overlap,
            measure=measure(config),
            write=write,
        )
        if sum(len(one.markdown) + len(one.url) + sum(map(len, one.headings)) for one in made) <= most:
            return plain_chunks(made)
    raise ValueError(f"the chunks would have over {most:,} characters")


def _asked(config: Config) -> dict[str, str]:
    """Return the fields that are asked for in addition, each with the path of the function that makes it."""
    return {name: one.make for name, one in OUTPUT_FIELDS.items() if one.make and config.item_field(name)}


def plain_content(written: Written, config: Config) -> list[dict[str, Any]] | None:
    """Return a content list as plain JSON values, if an item field needs it and it can be made."""
    items = written.content
    return attempt("content", lambda: to_json(items), []) if items is not None and _asked(config) else None


def with_derived(
    extraction: Extraction, items: Items | None, document: Document, config: Config, choice: Choice | None = None
) -> Extraction:
    """Return an extraction with the fields that are made on request, and fingerprints, as far as they are configured.

    ``choice`` is what is written of the page, if labels say that. ``items`` is the content list; by default that of the
    extraction, as it comes from a fallback. Never raises: forms that cannot be made, also because an extraction that is
    not empty has no content list, are named in the details.
    """
    failed = named_failures(extraction)
    prints: dict[str, str] | None = None
    if config.meta_field is not None:
        prints = attempt("fingerprints", lambda: fingerprints(extraction.text), failed)
    made: dict[str, Any] = {}
    source = FieldSource(extraction, document, config, items, choice)
    if not (items is None and extraction.content is None and extraction.is_empty):
        for name, path in _asked(config).items():
            made[name] = attempt(name, lambda path=path: resolve_name(path)(source), failed)  # type: ignore[misc]
    extraction = replace(extraction, content=made.pop("content", None), extra=made).with_details(**(prints or {}))
    return naming(extraction, failed)


def measure(config: Config) -> Callable[[str], int]:
    """Return the function that measures the size of a chunk: in characters, or in tokens of the configured tokenizer.

    Raise :exc:`~scrapy_dripper.config.ConfigError` if the tokenizer cannot be loaded.
    """
    if config.chunks.tokenizer is None:
        return len
    from scrapy_dripper.output.chunks import counter

    return counter(config.chunks.tokenizer)


def plain_chunks(some: Sequence[Chunk]) -> list[dict[str, Any]]:
    """Return chunks as plain JSON values."""
    return [asdict(chunk) | {"headings": list(chunk.headings)} for chunk in some]


def named_failures(extraction: Extraction) -> list[str]:
    """Return the forms that could not be made of an extraction so far."""
    return list(extraction.details.get("failed", ()))


def naming(extraction: Extraction, failed: list[str]) -> Extraction:
    """Return an extraction that names the forms that could not be made, if there are any."""
    return extraction.with_details(failed=failed) if failed else extraction


def without_forms(extraction: Extraction) -> Extraction:
    """Return an extraction without what was asked for in addition, which cannot be sent, and name that."""
    forms = [form for form in ("content", *extraction.extra, "metadata") if getattr(extraction, form) is not None]
    bare = replace(extraction, content=None, extra={}, metadata=None)
    return naming(bare, [*named_failures(extraction), *forms])


def with_front_matter(extraction: Extraction, metadata: Metadata) -> Extraction:
    """Put front matter before the Markdown of an extraction, if it has any."""
    if not extraction.markdown:
        return extraction
    failed = named_failures(extraction)
    known = attempt("front_matter", lambda: _front_matter(extraction, metadata), failed)
    extraction = naming(extraction, failed)
    return replace(extraction, markdown=f"{known}\n\n{extraction.markdown}") if known else extraction


def _front_matter(extraction: Extraction, metadata: Metadata) -> str:
    return yaml(
        [
            ("title", metadata.title or extraction.title),
            ("url", extraction.url or metadata.url),
            ("date", metadata.date),
            ("author", metadata.author),
            ("language", metadata.language),
        ]
    )
