"""All options, each with its name, type, default, check and a line of documentation.

A :class:`Config` is read from Scrapy settings (``DRIPPER_BATCH_SIZE``), from command-line flags (``--batch-size``) and,
for the options of a single page, from a request's ``meta["dripper"]`` (``{"favor": "recall"}``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from scrapy_dripper import checks
from scrapy_dripper.checks import CONTENT_TYPES, ENGINES, FALLBACKS, OUT_OF_PROCESS, Check, came, did_you_mean, short
from scrapy_dripper.rules import WANTED, RuleError, Rules, read_rules

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

__all__ = ["CONTENT_TYPES", "ENGINES", "FALLBACKS", "OUT_OF_PROCESS", "PREFIX", "Config", "ConfigError", "ModelError"]

PREFIX = "DRIPPER_"
"""Start of the names of settings."""


class ConfigError(ValueError):
    """An option has an invalid value. The message names the setting, what it takes and what it got."""


class ModelError(RuntimeError):
    """The engine cannot be loaded. The message says what to do."""


def _option(default: Any, check: Check, doc: str, *, per_request: bool = False) -> Any:
    return field(default=default, metadata={"check": check, "doc": doc, "per_request": per_request})


@dataclass(frozen=True, slots=True)
class Config:
    """The options of one crawl, or of one page. Construction checks every value and raises :exc:`ConfigError`."""

    enabled: bool = _option(True, checks.boolean, "Switch the plugin off without uninstalling it.")
    engine: str = _option(
        "tagger",
        checks.engine,
        "What labels the blocks: 'tagger', 'qwen3' or a dotted path to a callable that takes the "
        "configuration and returns an engine.",
    )
    model: str | None = _option(
        None, checks.optional(checks.path), "Folder of the model; by default the model that is bundled with the engine."
    )
    cascade: float | None = _option(
        None,
        checks.optional(checks.share),
        "Minimum confidence of the tagger, 0 to 1, at which a page keeps the tagger's labels and skips the engine.",
    )
    device: str = _option("auto", checks.one_of("auto", "cpu", "cuda"), "Where the model runs.")
    batch_size: int = _option(8, checks.whole(1), "Largest number of pages that are labelled together.")
    batch_wait: float = _option(0.2, checks.seconds, "Longest time, in seconds, to wait for a batch to fill.")
    timeout: float = _option(
        30.0,
        checks.seconds,
        "Time limit, in seconds, of one step of a page (reading it, labelling its batch, writing it); a page that "
        "takes longer falls back. Time in the queue does not count.",
    )
    fallback: str | Callable[..., Any] = _option(
        "trafilatura",
        checks.fallback,
        "What extracts a page that the model cannot process: 'trafilatura', 'html' (the whole cleaned page), 'r4' (by "
        "ratios of elements), 'readability', 'justext', 'title_paragraphs', 'empty', 'none' (the fields stay empty) "
        "or a dotted path to a callable.",
        per_request=True,
    )
    favor: str = _option(
        "balanced",
        checks.one_of("balanced", "precision", "recall"),
        "What matters more where the tagger, or Trafilatura, is not sure: an output without boilerplate ('precision'), "
        "a complete output ('recall'), or both equally ('balanced').",
        per_request=True,
    )
    comments: str = _option(
        "auto",
        checks.one_of("auto", "keep", "drop"),
        "How to treat readers' comments: the model decides ('auto'), they are kept ('keep') or left out ('drop').",
        per_request=True,
    )
    captions: str = _option(
        "auto",
        checks.one_of("auto", "keep", "drop"),
        "How to treat the captions of images: the model decides ('auto'), those in the main content are kept ('keep') "
        "or left out ('drop').",
        per_request=True,
    )
    min_quality: float | None = _option(
        None,
        checks.optional(checks.share),
        "Expected word F1, 0 to 1, below which a page goes to the fallback, or to the engine with DRIPPER_CASCADE. By "
        "default, no page does.",
        per_request=True,
    )
    retry_shells: bool = _option(
        False,
        checks.boolean,
        "Whether a page that shows nothing until a script fills it is downloaded once more, in a browser, by "
        "scrapy-playwright.",
        per_request=True,
    )
    rules: Rules | None = _option(
        None,
        checks.optional(read_rules),
        "Rules for the pages of hosts: CSS or XPath of the elements to keep, to drop, or to use as the whole main "
        "content. A dict, or a TOML or JSON file.",
        per_request=True,
    )
    site_memory: str = _option(
        "off",
        checks.one_of("off", "on"),
        "Whether the pages of a host are compared ('on'). Text that stands in the same place on many of them is then "
        "left out.",
    )
    templates: str = _option(
        "off",
        checks.one_of("off", "on"),
        "Whether pages that share a template are labelled by rules ('on'). The rules are learnt from the model's "
        "labels on the first of these pages, and audited on later ones.",
    )
    oversize: str = _option(
        "fallback",
        checks.one_of("fallback", "truncate", "window"),
        "What happens to a page over a limit: the fallback extracts it ('fallback'), its first part is labelled "
        "('truncate'), or, if it has too many tokens, it is labelled in overlapping windows ('window').",
        per_request=True,
    )
    max_blocks: int = _option(
        10_000, checks.whole(1), "Largest number of blocks of a page that the engine labels.", per_request=True
    )
    max_bytes: int = _option(
        10_000_000,
        checks.whole(1),
        "Largest number of bytes of a page that are parsed, or of characters if the page is given as text.",
        per_request=True,
    )
    max_nodes: int = _option(100_000, checks.whole(1), "Largest number of elements of a page.", per_request=True)
    max_attributes: int = _option(
        500_000, checks.whole(1), "Largest number of attributes of all elements of a page.", per_request=True
    )
    max_depth: int = _option(
        500,
        checks.whole(256),
        "Largest depth of elements; a deeper page is flattened, without losing text.",
        per_request=True,
    )
    max_text: int = _option(
        5_000_000,
        checks.whole(1),
        "Largest number of characters of text of a page, without scripts and the like.",
        per_request=True,
    )
    max_output: int = _option(
        20,
        checks.whole(1),
        "Largest length of each form of the output, as a multiple of the size of the page. The forms are Main-HTML, "
        "Markdown, text, and the content list as JSON.",
        per_request=True,
    )
    processes: int | None = _option(
        None,
        checks.optional(checks.whole(0)),
        "Largest number of worker processes that extract pages; by default the number of cores minus one (but both of "
        "two), or plus one with 'qwen3'. 0 extracts them in a thread of the crawl, without "
        "time limits. Outside of a crawl, there is at most one, for large pages.",
    )
    worker_memory: int = _option(1_024, checks.whole(256), "Memory limit of a worker process, in MiB of address space.")
    title: str = _option(
        "keep",
        checks.one_of("keep", "drop"),
        "Whether the headline, the heading that names the main content, comes first in the output ('keep') or is left "
        "out ('drop').",
        per_request=True,
    )
    markdown: str = _option(
        "dripper",
        checks.with_extra(checks.one_of("dripper", "html2text"), "html2text", "html2text", "html2text"),
        "What writes Markdown: 'dripper' from the content list, or 'html2text' from the Main-HTML (extra [html2text], "
        "under the GPL-3).",
        per_request=True,
    )
    links: str = _option(
        "keep",
        checks.one_of("keep", "drop", "citations"),
        "How Markdown shows links: as links ('keep'), as their text ('drop'), or numbered, with the URLs at the end "
        "('citations').",
        per_request=True,
    )
    complex_tables: str = _option(
        "html",
        checks.one_of("html", "linear"),
        "How Markdown shows tables with spans or blocks in their cells: as HTML ('html'), or as simple tables in which "
        "spanning cells are repeated ('linear').",
        per_request=True,
    )
    callouts: str = _option(
        "alerts",
        checks.one_of("alerts", "quotes"),
        "How Markdown shows notes, tips and warnings in boxes: as GitHub alerts ('alerts'), or as block quotations "
        "that begin with their title ('quotes').",
        per_request=True,
    )
    front_matter: bool = _option(
        False,
        checks.boolean,
        "Begin Markdown with YAML front matter: title, url, date, author and language, if they are known.",
        per_request=True,
    )
    guess_language: bool = _option(
        False,
        checks.boolean,
        "Guess the language of code if the page does not name it; needs the extra [guess].",
    )
    content_types: tuple[str, ...] | None = _option(
        None,
        checks.optional(checks.content_types),
        "Types of content to keep in the content list, Markdown and text; by default all.",
        per_request=True,
    )
    chunk_size: int = _option(
        2_000,
        checks.whole(50),
        "Largest number of characters of a chunk, or of tokens with DRIPPER_CHUNK_TOKENIZER.",
        per_request=True,
    )
    chunk_overlap: int = _option(
        0,
        checks.whole(0),
        "How much of a chunk, in characters or tokens, the next chunk of the same section may repeat; at most half of "
        "DRIPPER_CHUNK_SIZE.",
        per_request=True,
    )
    chunk_tokenizer: str | None = _option(
        None,
        checks.optional(checks.path),
        "Path of a tokenizer.json, or of a folder with one, whose tokens DRIPPER_CHUNK_SIZE counts; by default it "
        "counts characters.",
    )
    absolute_urls: bool = _option(
        False,
        checks.boolean,
        "Make the URLs in Main-HTML absolute, like those in Markdown; by default they stay as they are on the page.",
        per_request=True,
    )
    items: tuple[str, ...] | None = _option(
        None,
        checks.optional(checks.item_names),
        "Item classes, or their names, whose fields are filled, including subclasses ('dict' for dicts). By default "
        "all classes that have such a field, and a dict if it is the only one of its response.",
        per_request=True,
    )
    html_field: str | None = _option(
        "main_html",
        checks.optional(checks.field_name),
        "Item field that receives the Main-HTML; None for no field.",
        per_request=True,
    )
    markdown_field: str | None = _option(
        "markdown",
        checks.optional(checks.field_name),
        "Item field that receives the Markdown; None for no field.",
        per_request=True,
    )
    text_field: str | None = _option(
        None,
        checks.optional(checks.field_name),
        "Item field that receives the main content as plain text; None for no field.",
        per_request=True,
    )
    title_field: str | None = _option(
        None,
        checks.optional(checks.field_name),
        "Item field that receives the page's title; None for no field.",
        per_request=True,
    )
    content_field: str | None = _option(
        None,
        checks.optional(checks.field_name),
        "Item field that receives the content list, as plain JSON values; None for no field.",
        per_request=True,
    )
    chunks_field: str | None = _option(
        None,
        checks.optional(checks.field_name),
        "Item field that receives the main content in chunks along its headings, as plain JSON values; None for no "
        "field.",
        per_request=True,
    )
    links_field: str | None = _option(
        None,
        checks.optional(checks.field_name),
        "Item field that receives the links of the main content, each with url and text; None for no field.",
        per_request=True,
    )
    metadata: bool = _option(
        False,
        checks.boolean,
        "Read what the page says about itself: title, authors, dates, language, site name, canonical URL, description, "
        "image, breadcrumbs.",
        per_request=True,
    )
    metadata_field: str | None = _option(
        None,
        checks.optional(checks.field_name),
        "Item field that receives what the page says about itself, even if DRIPPER_METADATA is False; None for no "
        "field.",
        per_request=True,
    )
    meta_field: str | None = _option(
        None,
        checks.optional(checks.field_name),
        "Item field that receives a small dict: source, fallback reason, error, limit, confidence, page type, quality, "
        "block counts, fingerprints, milliseconds.",
        per_request=True,
    )
    warc: str | None = _option(
        None,
        checks.optional(checks.path),
        "WARC file to which the crawl's responses are written, compressed if its name ends in .gz.",
    )
    replay: str | None = _option(
        None,
        checks.optional(checks.path),
        "WARC file, or a glob for several, from which requests are answered; nothing is downloaded.",
    )

    report: str | None = _option(
        None,
        checks.optional(checks.path),
        "HTML file that is written when the crawl ends, with a summary and a table of its pages.",
    )

    def __new__(cls, *_: Any, **values: Any) -> Config:
        """Raise TypeError for a name that is not an option. It names the option that is meant."""
        known = [option.name for option in fields(cls)]
        for name in values:
            if name not in known:
                meant = did_you_mean(name, known) or f"; the options are {', '.join(known)}"
                raise TypeError(f"{name} is not an option of Config{meant}")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for option in fields(self):
            object.__setattr__(self, option.name, _checked(option, getattr(self, option.name)))

    @property
    def reads_metadata(self) -> bool:
        """True if metadata is needed on the extraction, on an item, or in front matter."""
        return self.metadata or self.metadata_field is not None or self.front_matter

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Config:
        """Read the ``DRIPPER_*`` settings of a crawl. Raise :exc:`ConfigError` for an unknown name or a wrong value."""
        values: dict[str, Any] = {}
        known = {PREFIX + option.name.upper(): option.name for option in fields(cls)}
        for name in settings:
            if not isinstance(name, str) or not name.startswith(PREFIX):
                continue
            if name not in known:
                meant = did_you_mean(name, known) or f"; the settings are {', '.join(known)}"
                raise ConfigError(f"{name} is not a setting of scrapy-dripper{meant}")
            values[known[name]] = settings[name]
        return cls(**values)

    def override(self, values: Mapping[str, Any]) -> Config:
        """Return this configuration with a request's ``meta["dripper"]`` applied.

        Raise :exc:`ConfigError` for a name that is not an option of a single request, or a wrong value. A request may
        only name a fallback of :data:`FALLBACKS`: its meta can come from outside, and must not choose code to run.
        """
        config, wrong, problems = self.overridden(values)
        if wrong:
            raise ConfigError(problems[0])
        return config

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
            unknown = next((name for name in values if name not in allowed), None)
            meant = did_you_mean(unknown, allowed)
            problems.insert(0, f'meta["dripper"] takes the keys {", ".join(allowed)} (got {short(unknown)}{meant})')
        return replace(self, **right), len(values) - len(right), problems

    def _requested(self, option: Field[Any], value: Any) -> Any:
        """Return the value to which a request sets an option, or an error. Never raises, whatever the value does."""
        key = f'meta["dripper"]["{option.name}"]'
        try:
            if option.name == "fallback" and value is not None and value not in (*FALLBACKS, self.fallback):
                return ConfigError(
                    f"{key} must be one of {', '.join(map(repr, FALLBACKS))} "
                    f"(got {short(value)}); a callable is named in the settings"
                )
            if option.name == "rules" and not checks.is_none(value) and value is not self.rules:
                value = read_rules(value, outside=True)
            return _checked(option, value, key)
        except ConfigError as error:
            return error
        except RuleError as error:
            return ConfigError(f"{key} must be {error}")
        except Exception as error:
            return ConfigError(f"{key} cannot be {short(value)} ({type(error).__name__})")


def _checked(option: Field[Any], value: Any, name: str | None = None) -> Any:
    """Return a value as the option's type. Raise :exc:`ConfigError` if it is invalid. ``name`` is what was typed."""
    try:
        return option.metadata["check"](value)
    except ValueError as error:
        of_a_rule = isinstance(error, RuleError) and str(error) != WANTED  # its message says what came
        end = "" if of_a_rule else f" {came(value, error)}"
        raise ConfigError(f"{name or PREFIX + option.name.upper()} must be {error}{end}") from None
