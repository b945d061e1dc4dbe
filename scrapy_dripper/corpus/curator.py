"""A stage for NeMo Curator 1.3. Importing this module imports Curator."""

from __future__ import annotations

from typing import Any

from nemo_curator.stages.base import ProcessingStage
from nemo_curator.stages.resources import Resources
from nemo_curator.tasks import DocumentBatch

from scrapy_dripper.config import Config
from scrapy_dripper.corpus.arrow import COLUMNS, RayExtractor


class CuratorStage(ProcessingStage[DocumentBatch, DocumentBatch]):  # type: ignore[misc]
    """Extract batches of documents, with the model loaded once for each worker.

    The HTML and the URL are columns. For Qwen3 on GPUs, give the stage one:
    ``CuratorStage(config).with_(resources=Resources(gpus=1))``.
    """

    name = "scrapy_dripper"
    resources = Resources(cpus=1.0)
    batch_size = 1  # a task is already a batch of documents

    def __init__(self, config: Config | None = None, html: str = "html", url: str = "url") -> None:
        self._config, self._html, self._url = config or Config(), html, url
        self._extract: RayExtractor | None = None

    def inputs(self) -> tuple[list[str], list[str]]:
        """Return the attributes that a task must have. Columns are not listed, because Curator only checks pandas."""
        return ["data"], []

    def outputs(self) -> tuple[list[str], list[str]]:
        """Return the attributes that a returned task has."""
        return ["data"], list(COLUMNS)

    def setup(self, worker_metadata: Any = None) -> None:  # noqa: ARG002
        """Load the model."""
        self._extract = RayExtractor(self._config, self._html, self._url)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        """Return the batch with the columns of the extraction. The number of rows does not change."""
        if self._extract is None:
            self.setup()
        assert self._extract is not None
        return DocumentBatch(
            dataset_name=task.dataset_name,
            data=self._extract(task.to_pyarrow()),
            _metadata=task._metadata,
            _stage_perf=task._stage_perf,
        )
