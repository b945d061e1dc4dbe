"""Clean a corpus: the steps of AICC (arXiv:2511.16397, section 4.1.3), as pipelines of datatrove's own blocks.

The steps are exact duplicates, language, quality, lists and near duplicates, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.io import cached_asset_path_or_download
from datatrove.pipeline.dedup.exact_dedup import (
    ExactDedupConfig,
    ExactDedupFilter,
    ExactDedupSignature,
    ExactFindDedups,
)
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.filters import (
    C4BadWordsFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
    RegexFilter,
    URLFilter,
)
from datatrove.pipeline.readers import ParquetReader
from datatrove.utils.hashing import HashConfig
from datatrove.utils.lid import FT176LID
from tldextract import TLDExtract

from scrapy_dripper.corpus.steps import ROWS_TOGETHER, RowWriter, local, schema

FINDERS = 64
"""Maximum number of tasks that search for exact duplicates. Each of them opens a file of every task."""
HASH = HashConfig(precision=64, hash_fc="sha1")


@dataclass(frozen=True)
class CleaningRules:
    """The rules for documents to keep. By default, only duplicates and texts of low quality are dropped."""

    languages: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    """Hosts and URLs to drop."""
    words: tuple[str, ...] = ()
    """Regular expressions; a text that matches one of them is dropped."""
    safety: bool = False
    """Whether to use datatrove's lists of URLs and words as well."""


def stages(
    files: Sequence[str], folder: Path, columns: Iterable[str], rules: CleaningRules
) -> list[tuple[str, int, list[Any]]]:
    """Return the name, number of tasks and steps of each pipeline that cleans the documents of Parquet files, into a
    folder with a file for each of them.

    ``columns`` are the optional columns that the files have. Raise ImportError if a step needs a package that is not
    installed, OSError if it needs a file that cannot be downloaded, and ValueError for rules without a meaning.
    """
    work, tasks = folder / "work", len(files)
    table = schema([*columns, *(("language", "language_score") if rules.languages else ())])
    exact, near = ExactDedupConfig(_text, hash_config=HASH), MinhashConfig(hash_config=HASH)
    # Words are counted as in the language of the corpus. The list of stop words is English.
    language = rules.languages[0] if len(rules.languages) == 1 else "en"
    stop_words = 2 if rules.languages == ("en",) else None
    filters: list[Any] = [GopherQualityFilter(language=language, min_stop_words=stop_words)]
    filters.append(GopherRepetitionFilter(language=language))
    if rules.languages:
        filters.insert(0, LanguageFilter(list(rules.languages)))
        _need(
            "--language", lambda: cached_asset_path_or_download(FT176LID.MODEL_URL, namespace="lid", subfolder="ft176")
        )
    if rules.urls or rules.safety:
        by_url = URLFilter(extra_domains=rules.urls, extra_urls=rules.urls, use_integrated_lists=rules.safety)
        by_url.tldextractor = TLDExtract(suffix_list_urls=())  # the list in its package, without a download
        filters.append(by_url)
    if rules.safety:
        filters.append(C4BadWordsFilter(default_language=language, fail_on_missing_language=False))
        _need("--safety", lambda: filters[-1]._get_badwords(language))
    if rules.words:
        filters.append(RegexFilter("(?i)" + "|".join(rules.words)))

    def at(name: str) -> Any:
        return local(work / name)

    def read(source: Path) -> ParquetReader:
        return ParquetReader(local(source), batch_size=ROWS_TOGETHER, recursive=False, glob_pattern="*.parquet")

    finders = min(tasks, FINDERS)
    source = Path(files[0]).parent
    return [
        ("hashes", tasks, [read(source), ExactDedupSignature(at("hashes"), exact, finders)]),
        ("duplicates", finders, [ExactFindDedups(at("hashes"), at("duplicates"), exact)]),
        (
            "filters",
            tasks,
            [
                read(source),
                ExactDedupFilter(at("duplicates"), exact),
                *filters,
                RowWriter(work / "kept", table),
                MinhashDedupSignature(at("signatures"), near, language),
            ],
        ),
        ("pairs", near.num_buckets, [MinhashDedupBuckets(at("signatures"), at("pairs"), config=near)]),
        ("clusters", 1, [MinhashDedupCluster(at("pairs"), at("clusters"), near)]),
        ("write", tasks, [read(work / "kept"), MinhashDedupFilter(at("clusters")), RowWriter(folder, table)]),
    ]


def _need(option: str, download: Callable[[], Any]) -> None:
    """Download a file before any task needs it, unless it is there. Raise OSError, naming the option, if that fails."""
    try:
        download()
    except Exception as error:  # of any file system of fsspec
        raise OSError(f"{option} needs a file that datatrove cannot download to its cache: {error}") from error


def _text(document: Document) -> str:
    return str(document.text)
