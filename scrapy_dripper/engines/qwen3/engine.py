"""The engine ``qwen3`` with its model in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import Engine, EngineError, Labels, Limits
from scrapy_dripper.engines.prepared import model_folder
from scrapy_dripper.engines.qwen3.decoder import Decoder
from scrapy_dripper.engines.qwen3.front import Front, check_context
from scrapy_dripper.engines.qwen3.prepared import Prepared, load_prepared
from scrapy_dripper.engines.tagger import Tagger
from scrapy_dripper.page.page import Page


class Qwen3Engine:
    """Label blocks with a Qwen3 model whose answers are restricted to labels."""

    name = "qwen3"
    limits = Limits()

    def __init__(
        self,
        prepared: Prepared,
        tagger: Engine,
        *,
        device: str = "auto",
        threads: int = 1,
        max_tokens: int | None = None,
        truncate_chars: int | None = None,
        cascade: float | None = None,
        sdpa_kernel: int | None = None,
    ) -> None:
        """Open a prepared model. Raise :exc:`ModelError` if it does not run as configured.

        The options are those of its two halves, :class:`~scrapy_dripper.engines.qwen3.front.Front` and
        :class:`~scrapy_dripper.engines.qwen3.decoder.Decoder`.
        """
        self.profile = prepared.profile
        """Name of the profile by which pages must be cut."""
        self.front = Front(
            prepared,
            tagger,
            max_tokens=max_tokens,
            truncate_chars=truncate_chars,
            cascade=cascade,
        )
        self.decoder = Decoder(prepared, device=device, threads=threads, sdpa_kernel=sdpa_kernel)
        check_context(self.decoder, max_tokens)

    @classmethod
    def load(cls, config: Config) -> Qwen3Engine:
        """Return the configured engine. Raise ModelError if it cannot work."""
        return cls(
            load_prepared(model_folder(config)),
            Tagger.load(replace(config, engine="tagger", model=None, device="auto")),
            device=config.device,
            threads=config.threads,
            max_tokens=config.max_tokens,
            truncate_chars=config.truncate_chars,
            cascade=config.cascade,
            sdpa_kernel=config.sdpa_kernel,
        )

    def label(self, pages: Sequence[Page]) -> list[Labels | EngineError]:
        """Return the labels or the error of each page. It is OversizeError for a page that is too long."""
        return self.front.label(pages, self.decoder.decode, self.decoder.limit)

    def close(self) -> None:
        """Release the session and its memory. Further calls have no effect."""
        if self.decoder.close():
            self.front.tagger.close()
