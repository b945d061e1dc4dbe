"""All settings: the name, type, default, check and documentation of each.

A :class:`Config` is read from Scrapy settings (``DRIPPER_BATCH_SIZE``), from command-line flags (``--batch-size``) and,
for the options of a single page, from a request's ``meta["dripper"]`` (``{"favor": "recall"}``). A setting that is a
dict has a class of its own, with an option for each key: ``DRIPPER_LIMITS["bytes"]`` is ``config.limits.bytes``. The
functions at the end say whether the methods that options name can run. They import no method of this package, because
the process of a crawl with workers runs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from scrapy_dripper import checks
from scrapy_dripper.checks import FALLBACKS, METHODS, came, did_you_mean, short
from scrapy_dripper.rules import WANTED, RuleError, Rules, read_rules

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PREFIX = "DRIPPER_"
"""Start of the names of settings."""
NEARLY = "DRIP"
"""Start of names that may be misspelt ones."""


class ConfigError(ValueError):
    """An option has an invalid value. The message names the setting, what it takes and what it got."""


class ModelError(RuntimeError):
    """The engine cannot be loaded. The message says what to do."""


def _crawl(default: Any, check: Callable[[Any], Any], doc: str, *, per_request: bool = False) -> Any:
    """Declare an option of the crawl. Its check is one of :mod:`~scrapy_dripper.checks`, or the class of a dict."""
    return field(default=default, metadata={"check": check, "doc": doc, "per_request": per_request})


_page = partial(_crawl, per_request=True)
"""Declare an option that a request can set as well."""


@dataclass(frozen=True, slots=True)
class OutputField:
    """A field of the output. What is written of it below is all that there is to it: items, JSON, the commands and the
    messages of workers follow from this."""

    key: str
    """Its key in JSON, and the attribute of extractions that holds it."""
    what: str
    """What it is, for the documentation."""
    value: Callable[[Any], Any]
    """Its value in an extraction, as plain JSON values."""
    make: str = ""
    """Dotted path of the function that makes the value from a :class:`~scrapy_dripper.derived.FieldSource`,
    if the field is asked for; empty if extractions have it anyway."""
    of_metadata: bool = False
    """True if it is one of the page's metadata, which are then read."""
    is_content: bool = False
    """True for main content. In an item, all such fields hold that of the same document."""
    in_page_item: str | None = None
    """The field of a :class:`~scrapy_dripper.PageItem`, which other classes may have as well, if the option names
    none."""
    flag: str = ""
    """The flag of ``scrapy-dripper extract`` that adds the value to JSON, if it is not always there."""


def _field(default: str | None, what: str, **output: Any) -> Any:
    """Declare an option that names a field of items, with the arguments of :class:`OutputField`."""
    doc = f"Item field that receives {what}; None for no field."
    option = _page(default, checks.optional(checks.field_name), doc)
    return field(default=default, metadata={**option.metadata, "output": {"what": what, **output}})


@dataclass(frozen=True, slots=True)
class PageLimits:
    """The limits of one page (``DRIPPER_LIMITS``)."""

    bytes: int = _page(
        10_000_000,
        checks.whole(1),
        "Bytes of a page to parse, or characters if it is given as text. A larger page is not even decoded.",
    )
    nodes: int = _page(100_000, checks.whole(1), "Elements of a page, with those of its head; never more than 200,000.")
    depth: int = _page(500, checks.whole(256), "Depth of elements; a deeper page is flattened, without losing text.")
    blocks: int = _page(
        10_000, checks.whole(1), "Blocks of a page that are labelled. A long article has a few hundred."
    )
    output: int = _page(
        20,
        checks.whole(1),
        "Length of each form of the output (Main-HTML, Markdown, text, the content list as JSON, chunks), as a "
        "multiple of the size of the page. A page of less than 1,000 characters counts as 1,000.",
    )


@dataclass(frozen=True, slots=True)
class MarkdownOptions:
    """How Markdown is written (``DRIPPER_MARKDOWN``): the writer, and the arguments of
    :func:`scrapy_dripper.markdown`."""

    writer: str = _page(
        "dripper",
        checks.markdown_writer,
        "'dripper', or 'html2text', which supports only links = 'drop' and front_matter (extra [html2text], under the "
        "GPL-3).",
    )
    links: Literal["keep", "drop", "citations"] = _page(
        "keep",
        checks.one_of("keep", "drop", "citations"),
        "Links as links ('keep'), as their text ('drop'), or numbered, with the URLs at the end ('citations').",
    )
    tables: Literal["html", "linear"] = _page(
        "html",
        checks.one_of("html", "linear"),
        "Tables with spans, or with blocks in their cells, as HTML ('html'), or as simple tables in which spanning "
        "cells are repeated ('linear').",
    )
    callouts: Literal["alerts", "quotes"] = _page(
        "alerts",
        checks.one_of("alerts", "quotes"),
        "Notes, tips and warnings in boxes as GitHub alerts ('alerts'), or as block quotations that begin with their "
        "title ('quotes').",
    )
    posts: Literal["rules", "named"] = _page(
        "rules",
        checks.one_of("rules", "named"),
        "Posts of a thread parted by rules ('rules'), and also with author and date above those that do not begin with "
        "the author ('named').",
    )
    front_matter: bool = _page(
        False,
        checks.boolean,
        "Begin with YAML front matter: title, url, date, author and language, if they are known.",
    )
    types: tuple[str, ...] | None = _page(
        None,
        checks.optional(checks.content_types),
        "Types of content to keep, in the content list and in text as well; None for all.",
    )


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """How the main content is cut into chunks (``DRIPPER_CHUNKS``)."""

    size: int = _page(2_000, checks.whole(50), "Largest length of a chunk, in characters, or in tokens of 'tokenizer'.")
    overlap: int = _page(
        0,
        checks.whole(0),
        "How much of the end of a chunk may be repeated in the next one if a section goes on there, in the same unit; "
        "at most half of 'size'.",
    )
    tokenizer: str | None = _crawl(
        None,
        checks.optional(checks.path),
        "Path of a tokenizer.json, or of a folder with one, whose tokens are counted (extra [tokenizers]).",
    )


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """The arguments of the methods ``r4`` and ``sore`` (``DRIPPER_METHODS``), by the names that their papers use."""

    c: int = _crawl(3, checks.whole(1), "R^4: number of candidates, the elements that are farthest from the mean.")
    tr: float = _crawl(1.5, checks.number(1, 1_000), "R^4: ratio of text to text outside of links in a group of links.")
    hr: int = _crawl(7, checks.whole(0), "R^4: number of links that a group of links exceeds.")
    form: Literal["own", "paper"] = _crawl(
        "own",
        checks.one_of("own", "paper"),
        "R^4: 'paper' as in the paper, or 'own', in which a paragraph is a candidate only if nothing else is one.",
    )
    k: float = _crawl(0.15, checks.number(0, 1), "SORE: share of the blocks that are the core, 0 to 1.")
    d: float = _crawl(0.7, checks.number(0, 2), "SORE: distance from the core, 0 to 2, over which a block is removed.")
    outlier: float = _crawl(
        0.4,
        checks.number(0, 2),
        "SORE: distance from a phrase of 'groups', 0 to 2, up to which a block is removed, unless the core is nearer.",
    )
    groups: tuple[tuple[str, tuple[str, ...]], ...] | None = _crawl(
        None,
        checks.optional(checks.phrases),
        "SORE: dict with a list of phrases for each group of outliers that is added, replaced or, if the list is "
        "empty, left out; by default the 13 groups of the paper, in English.",
    )
    most: float = _crawl(0.6, checks.number(0, 1), "SORE: share of the words of a page, 0 to 1, that may be removed.")
    embedder: str | None = _crawl(
        None,
        checks.optional(checks.path),
        "SORE: dotted path to a callable that takes n texts and returns n vectors; by default WordLlama, for English "
        "(extra [sore]).",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The options of one crawl, or of one page. Construction checks every value and raises :exc:`ConfigError`."""

    # These comments are the headings of docs/reference/settings.md.

    # The engine and its processes
    enabled: bool = _crawl(True, checks.boolean, "Switch the plugin off without uninstalling it.")
    engine: str = _page(
        "tagger",
        checks.engine,
        "What extracts the main content: 'tagger', the small bundled model; 'qwen3', a language model on a GPU; a "
        "method without a model, one of those of DRIPPER_FALLBACK; or a dotted path to a callable that takes the "
        "configuration and returns an engine. A request can name a method.",
    )
    model: str | None = _crawl(
        None, checks.optional(checks.path), "Folder of the model; by default the model that is bundled with the engine."
    )
    device: str | None = _crawl(
        None,
        checks.optional(checks.device),
        "Device of 'qwen3': 'cpu', 'cuda:1' for the second GPU, or 'tensorrt:1' for TensorRT there; by default the "
        "CPU or the first GPU, whichever the model was exported for.",
    )
    batch_size: int = _crawl(
        8,
        checks.whole(1),
        "Largest number of pages that are labelled together. They are in memory at the same time. Larger batches are "
        "hardly faster with the tagger.",
    )
    batch_wait: float = _crawl(0.2, checks.seconds, "Longest time, in seconds, to wait for a batch to fill.")
    timeout: float = _crawl(
        30.0,
        checks.seconds,
        "Time limit, in seconds, of one step of a page (reading it, labelling its batch, writing it, its fallback). A "
        "page that takes longer falls back. Time in the queue does not count.",
    )
    processes: int | None = _crawl(
        None,
        checks.optional(checks.whole(0)),
        "Largest number of worker processes that extract pages; by default the number of cores minus one (but both of "
        "two), or plus one with 'qwen3'. With 0, a thread of the crawl extracts them, without time limits. Outside of "
        "a crawl, there is at most one, for large pages.",
    )
    worker_memory: int = _crawl(
        1_024,
        checks.whole(256),
        "Memory limit of a worker process, in MiB of address space, on Linux. A page that needs more falls back.",
    )

    # Which blocks are main
    favor: str = _page(
        "balanced",
        checks.one_of("balanced", "precision", "recall"),
        "What matters more where the tagger, or Trafilatura, is not sure: an output without boilerplate ('precision'), "
        "a complete output ('recall'), or both equally ('balanced').",
    )
    comments: str = _page(
        "auto",
        checks.one_of("auto", "keep", "drop"),
        "How to treat readers' comments: the model decides ('auto'), they are kept ('keep') or left out ('drop'), "
        "unless they are the main content, as in a forum.",
    )
    title: str = _page(
        "keep",
        checks.one_of("keep", "drop"),
        "Whether the headline, the heading that names the main content, comes first in the output ('keep') or is left "
        "out ('drop').",
    )
    rules: Rules | None = _page(
        None,
        checks.optional(read_rules),
        "Rules for the pages of hosts: CSS or XPath of the elements to keep, to drop, or to use as the whole main "
        "content. A dict, or a TOML or JSON file. A request can bring at most 20 rules, as a dict, in CSS.",
    )
    sites: str = _crawl(
        "off",
        checks.one_of("off", "memory", "templates", "all"),
        "What is learnt from the earlier pages of a host: to leave out text that stands in the same place on many of "
        "them ('memory'), to label pages that share a template by rules, without the model ('templates'), or both "
        "('all'). The results then depend on the order of the pages.",
    )

    # Pages that the model cannot process
    fallback: str | Callable[..., Any] = _page(
        "trafilatura",
        checks.fallback,
        "What extracts a page that the model cannot process: a method, 'empty' (empty texts), 'none' (the fields stay "
        "as they are) or a dotted path to a callable.",
    )
    methods: MethodOptions = _crawl(
        MethodOptions(), MethodOptions, "Arguments of the methods 'r4' and 'sore', as engines and as fallbacks."
    )
    empty: str = _page(
        "auto",
        checks.one_of("auto", "answer", "fallback"),
        "What happens to a page on which the model finds no main content: it stays empty ('answer'), the fallback "
        "extracts it ('fallback'), or the fallback does so if the engine is 'qwen3' or the page shows prose ('auto'). "
        "With 'auto', the fallback also extracts a page whose declared facts the model has lost, if it has them.",
    )
    limits: PageLimits = _page(
        PageLimits(), PageLimits, "Limits of one page. DRIPPER_OVERSIZE says what happens to a page over one of them."
    )
    oversize: str = _page(
        "fallback",
        checks.one_of("fallback", "truncate"),
        "What happens to a page over a limit: the fallback extracts it ('fallback'), or its first part is labelled "
        "('truncate').",
    )
    retry_shells: bool = _page(
        False,
        checks.boolean,
        "Whether a page that shows nothing until a script fills it is downloaded once more, in a browser, by "
        "scrapy-playwright, which waits for its loading, but not for content.",
    )

    # The output
    markdown: MarkdownOptions = _page(
        MarkdownOptions(),
        MarkdownOptions,
        "How Markdown is written: the arguments of scrapy_dripper.markdown, or 'html2text', the name of another "
        "writer.",
    )
    chunks: ChunkOptions = _page(
        ChunkOptions(),
        ChunkOptions,
        "How DRIPPER_CHUNKS_FIELD cuts the main content.",
    )
    absolute_urls: bool = _page(
        False,
        checks.boolean,
        "Make the URLs in Main-HTML absolute, like those in Markdown; by default they stay as they are on the page.",
    )

    # Items and their fields
    items: tuple[str, ...] | None = _page(
        None,
        checks.optional(checks.item_names),
        "Item classes, or their names, whose fields are filled, including subclasses ('dict' for dicts). By default "
        "all classes that have such a field, and a dict if it is the only one of its response.",
    )
    fill_by_name: bool = _page(
        True,
        checks.boolean,
        "Whether an item class gets the fields of PageItem that it has ('title', 'text', 'metadata'), although no "
        "setting names them. A dict only gets those of the settings.",
    )
    html_field: str | None = _field("main_html", "the Main-HTML", key="main_html", is_content=True)
    markdown_field: str | None = _field("markdown", "the Markdown", is_content=True)
    text_field: str | None = _field(None, "the main content as plain text", is_content=True, in_page_item="text")
    title_field: str | None = _field(None, "the page's headline", in_page_item="title")
    content_field: str | None = _field(
        None,
        "the content list, as plain JSON values",
        make="scrapy_dripper.derived:content",
        is_content=True,
        flag="--content",
    )
    chunks_field: str | None = _field(
        None,
        "the main content in chunks along its headings, as plain JSON values (DRIPPER_CHUNKS)",
        make="scrapy_dripper.derived:chunks",
        is_content=True,
        flag="--chunks",
    )
    links_field: str | None = _field(
        None,
        "the links of the main content, each with url and text",
        make="scrapy_dripper.derived:links",
        is_content=True,
        flag="--link-list",
    )
    images_field: str | None = _field(
        None,
        "the images of the main content, each with url, alt, title and caption",
        make="scrapy_dripper.derived:images",
        flag="--image-list",
    )
    videos_field: str | None = _field(
        None,
        "its videos and players, each with url, poster, title and caption",
        make="scrapy_dripper.derived:videos",
        flag="--video-list",
    )
    comments_field: str | None = _field(
        None,
        "the readers' comments below the main content, each with author, date and text, whatever DRIPPER_COMMENTS is",
        make="scrapy_dripper.derived:comments",
        flag="--comment-list",
    )
    metadata_field: str | None = _field(
        None,
        "what the page says about itself: title, authors, dates, language, site name, canonical URL, description, "
        "image, breadcrumbs, tags, categories, licence",
        value=lambda page: page.metadata.as_dict() if page.metadata else None,
        of_metadata=True,
        in_page_item="metadata",
        flag="--metadata",
    )
    tags_field: str | None = _field(None, "the page's tags or keywords, of its metadata", of_metadata=True)
    categories_field: str | None = _field(None, "the sections of the site that it is in, likewise", of_metadata=True)
    license_field: str | None = _field(None, "the URL or name of its licence, likewise", of_metadata=True)
    site_name_field: str | None = _field(None, "the name of its site, likewise", of_metadata=True)
    meta_field: str | None = _field(
        None,
        "a small dict about the extraction: source, fallback reason, error, limit, confidence, page type, quality, "
        "block counts, fingerprints, milliseconds",
        value=lambda page: page.meta(),
    )

    # Archives and reports
    warc: str | None = _crawl(
        None,
        checks.optional(checks.path),
        "WARC file to which the crawl's responses are written, compressed if its name ends in .gz.",
    )
    replay: str | None = _crawl(
        None,
        checks.optional(checks.path),
        "WARC file, or a glob for several, from which requests are answered; nothing is downloaded.",
    )
    report: str | None = _crawl(
        None,
        checks.optional(checks.path),
        "HTML file that is written when the crawl ends, with a summary and a table of its pages, which leads to the "
        "inspector's view of those to look at.",
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            value = _checked(option, getattr(self, option.name), PREFIX + option.name.upper(), option.default)
            object.__setattr__(self, option.name, value)

    def item_field(self, name: str) -> str | None:
        """Return the item field for a field of the output, or None if it is not asked for."""
        found: str | None = getattr(self, f"{name}_field")
        return found

    @property
    def reads_metadata(self) -> bool:
        """True if metadata is needed for the extraction or for front matter."""
        return self.markdown.front_matter or any(map(self.item_field, _OF_METADATA))

    @property
    def site_memory(self) -> bool:
        """True if what the pages of a host repeat is left out."""
        return self.sites in ("memory", "all")

    @property
    def templates(self) -> bool:
        """True if pages that share a template are labelled by rules."""
        return self.sites in ("templates", "all")

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Config:
        """Read the ``DRIPPER_*`` settings of a crawl. Raise :exc:`ConfigError` for an unknown name or a wrong value."""
        known = {PREFIX + option.name.upper(): option.name for option in fields(cls)}
        names = [name for name in settings if isinstance(name, str) and name.startswith(NEARLY)]
        for name in names:
            if name not in known and ((meant := did_you_mean(name, known)) or name.startswith(PREFIX)):
                meant = meant or f"; the settings are {', '.join(known)}"
                raise ConfigError(f"{name} is not a setting of scrapy-dripper{meant}")
        return cls(**{known[name]: settings[name] for name in names if name in known})

    def overridden(self, values: Mapping[Any, Any]) -> tuple[Config, int, list[str]]:
        """Return this configuration with the valid options of a request's ``meta["dripper"]`` applied.

        The second value is the number of keys that were ignored. The third has a message for each wrong option, and one
        for the first unknown key. The work does not grow with the number of keys, because each option is looked up.
        """
        allowed = {option.name: option for option in fields(self) if option.metadata["per_request"]}
        answers = {name: self._requested(allowed[name], values[name]) for name in allowed if name in values}
        right = {name: answer for name, answer in answers.items() if not isinstance(answer, ConfigError)}
        problems = [str(answer) for answer in answers.values() if isinstance(answer, ConfigError)]
        if len(values) > len(answers):
            problems.insert(0, _unknown_key('meta["dripper"]', values, allowed))
        return replace(self, **right), len(values) - len(right), problems

    def _requested(self, option: Field[Any], value: Any) -> Any:
        """Return the value to which a request sets an option, or an error. Never raises, whatever the value does.

        A request may only name an engine of :data:`METHODS`, which loads no model, a fallback of :data:`FALLBACKS`, or
        those of the settings: its meta can come from outside, and must not choose code to run.
        """
        key, now = f'meta["dripper"]["{option.name}"]', getattr(self, option.name)
        try:
            names = {"engine": METHODS, "fallback": FALLBACKS}.get(option.name)
            if names is not None and value is not None and value not in (*names, now):
                return ConfigError(
                    f"{key} must be one of {', '.join(map(repr, names))} "
                    f"(got {short(value)}); anything else is named in the settings"
                )
            if option.name == "rules" and not checks.is_none(value) and value is not now:
                value = read_rules(value, outside=True)
            found = _checked(option, value, key, now, outside=True)
            if names is not None and found != now:
                _check_method(option.name, found, self.methods)
            return found
        except ConfigError as error:
            return error
        except RuleError as error:
            return ConfigError(f"{key} must be {error}")
        except Exception as error:
            return ConfigError(f"{key} cannot be {short(value)} ({type(error).__name__})")


def _output_field(name: str, output: dict[str, Any]) -> OutputField:
    key = output.get("key", name)

    def value(page: Any) -> Any:
        return getattr(page, key, None)

    def of_metadata(page: Any) -> Any:
        found = getattr(page.metadata, key) if page.metadata else None
        return list(found) if isinstance(found, tuple) else found

    return OutputField(**{"key": key, "value": of_metadata if output.get("of_metadata") else value} | output)


OUTPUT_FIELDS: Mapping[str, OutputField] = {
    (name := option.name.removesuffix("_field")): _output_field(name, option.metadata["output"])
    for option in fields(Config)
    if "output" in option.metadata
}
"""The fields of the output, by name, as the options ``{name}_field`` declare them."""
_OF_METADATA = tuple(name for name, output in OUTPUT_FIELDS.items() if output.of_metadata)


def _checked(option: Field[Any], value: Any, name: str, now: Any, *, outside: bool = False) -> Any:
    """Return a value as the option's type. Raise :exc:`ConfigError` for the typed ``name`` if it is invalid.

    ``now`` is the value that a dict changes, and ``outside`` excludes the keys that a request may not set.
    """
    check = option.metadata["check"]
    if isinstance(check, type):
        return _with_keys(check, value, name, now, outside)
    try:
        return check(value)
    except ValueError as error:
        of_a_rule = isinstance(error, RuleError) and str(error) != WANTED  # its message says what came
        end = "" if of_a_rule else f" {came(value, error)}"
        raise ConfigError(f"{name} must be {error}{end}") from None


def _with_keys(kind: type, value: Any, name: str, now: Any, outside: bool) -> Any:
    """Return the value of an option that is a dict. Keys that are not given stay as they are ``now``."""
    if isinstance(value, kind) and not outside:
        return value
    known = {option.name: option for option in fields(kind) if option.metadata["per_request"] or not outside}
    if checks.is_none(value):
        return replace(now, **{key: option.default for key, option in known.items()})
    values = checks.as_dict(value, short_for="writer" if "writer" in known else None)
    if values is None:
        raise ConfigError(f"{name} must be a dict with some of the keys {', '.join(known)} (got {short(value)})")
    right = {
        key: _checked(option, values[key], f'{name}["{key}"]', None) for key, option in known.items() if key in values
    }
    if len(values) > len(right):
        raise ConfigError(_unknown_key(name, values, known))
    return replace(now, **right)


def _unknown_key(name: str, values: Mapping[Any, Any], known: Mapping[str, Any]) -> str:
    """Return a message about the first key of a dict that is not known."""
    wrong = next((key for key in values if key not in known), None)
    meant = did_you_mean(wrong, known) or f"; the keys are {', '.join(known)}"
    return f"{name} has no key {short(wrong)}{meant}"


def _option_names() -> Iterator[tuple[str, NamedOption]]:
    for option in fields(Config):
        kind = option.metadata["check"]
        if option.name not in PREFIXES:
            yield option.name, NamedOption(option)
            continue
        for key in fields(kind):
            yield PREFIXES[option.name] + key.name, NamedOption(key, option.name)


class NamedOption(NamedTuple):
    """An option, or a key of an option that is a dict."""

    option: Field[Any]
    of: str = ""
    """The name of the option that is a dict, if it is a key."""

    @property
    def of_a_page(self) -> bool:
        """True if a page can have its own value."""
        return bool(self.option.metadata["per_request"])


PREFIXES = {"limits": "max_", "methods": "method_", "markdown": "", "chunks": "chunk_"}
"""The options that are dicts. Each key is an option by name, with this at its beginning."""
OPTION_NAMES: Mapping[str, NamedOption] = dict(_option_names())
"""All options by name, with those of dicts: ``front_matter`` is ``markdown["front_matter"]``, and ``max_nodes`` is
``limits["nodes"]``. Flags and arguments of functions have these names."""


def check_methods(config: Config) -> None:
    """Raise :exc:`ConfigError` if the configured fallback, or the method that is the engine, cannot run here.

    It is a dotted path that does not name a function, or needs an extra that is not installed.
    """
    if isinstance(config.fallback, str) and config.fallback not in FALLBACKS:
        load(config.fallback)
    for option in ("engine", "fallback"):
        _check_method(option, getattr(config, option), config.methods)


def _check_method(option: str, name: object, methods: MethodOptions) -> None:
    """Raise :exc:`ConfigError` if an option names a method that cannot run here."""
    if not checks.is_method(name):
        return
    _, module, extra = METHODS[str(name)]
    if name == "sore" and methods.embedder is not None:
        load(methods.embedder, 'DRIPPER_METHODS["embedder"]', "texts")
    elif module and find_spec(module) is None:
        raise ConfigError(
            f"DRIPPER_{option.upper()} is {name!r}, which needs {module}: run 'pip install scrapy-dripper[{extra}]', "
            f"or choose another {option}"
        )


@lru_cache(maxsize=32)
def load(path: str, setting: str = "DRIPPER_FALLBACK", takes: str = "html, url") -> Callable[..., Any]:
    """Return the function at a dotted path, or the class if it is an engine. Raise :exc:`ConfigError`, which names the
    setting, if there is none.
    """
    try:
        found = resolve_name(path)
    except Exception as error:  # importing a user's module can raise anything
        raise ConfigError(
            f"{setting} is {path!r}, which cannot be imported ({type(error).__name__}: {error}); name a callable as "
            "package.module.function"
        ) from error
    if not callable(found) or (isinstance(found, type) and setting != "DRIPPER_ENGINE"):
        raise ConfigError(
            f"{setting} must name a function that takes ({takes}) (got {path!r}, a {type(found).__name__})"
        )
    return cast("Callable[..., Any]", found)
