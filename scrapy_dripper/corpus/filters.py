"""Filters for documents by language, quality, repetition, and lists of addresses and words. They do not use the
network.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.filters.gopher_quality_filter import GopherQualityFilter
from datatrove.pipeline.filters.gopher_repetition_filter import GopherRepetitionFilter
from datatrove.utils.word_tokenizers import WordTokenizer

from scrapy_dripper.corpus.language import classify, identifier
from scrapy_dripper.corpus.words import UNSPACED, words

Verdict = bool | tuple[bool, str]

MOST_WORDS = 10
"""Number of words in the longest phrase of a list."""
MOST_SEGMENTS = 16
"""Maximum number of segments of a path that are compared with the list."""

_heading_marks = re.compile(r"(?m)^([ >*+.\d-]*)#{1,6} ").sub


class Words(WordTokenizer):  # type: ignore[misc]
    """A tokenizer for datatrove's steps, whose own tokenizers need further packages for most languages.

    Each character of a script without spaces (Chinese, Japanese, Thai and others) is a word. Punctuation does not count
    as a word, unlike with datatrove's tokenizers. Otherwise, the signs of Markdown would make tables and lists look
    like clutter.
    """

    def word_tokenize(self, text: str) -> list[str]:
        """Return the words."""
        return words(text)

    def sent_tokenize(self, text: str) -> list[str]:
        """Return the lines, because none of the steps needs sentences."""
        return text.splitlines()

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Return the positions of the lines."""
        spans, at = [], 0
        for line in text.splitlines(keepends=True):
            spans.append((at, at + len(line)))
            at += len(line)
        return spans


class Language(BaseFilter):  # type: ignore[misc]
    """Add the language of documents (``language``, an ISO 639 code) and its probability (``language_score``) to their
    metadata.

    With ``keep``, drop documents in other languages, and those whose probability is less than ``least``. The language
    is identified by py3langid, whose package includes its model. ``zxx`` stands for a text in no language.
    """

    name = "language"
    _requires_dependencies = ["py3langid"]  # noqa: RUF012 (datatrove's)

    def __init__(self, keep: tuple[str, ...] = (), least: float = 0.65) -> None:
        """Raise ValueError for a language that py3langid does not know."""
        super().__init__()
        known = {str(name) for name in identifier().labels} if keep else set()
        if unknown := sorted(set(keep) - known):
            raise ValueError(f"expected languages out of {', '.join(sorted(known))} (got {', '.join(unknown)})")
        self.keep, self.least = frozenset(keep), least

    def filter(self, document: Document) -> Verdict:
        """Return True if the language is wanted, otherwise False with the reason."""
        language, score = classify(document.text)
        document.metadata |= {"language": language, "language_score": score}
        if self.keep and language not in self.keep:
            return False, language
        return (False, "unsure") if self.keep and score < self.least else True


class Quality(BaseFilter):  # type: ignore[misc]
    """Apply the quality rules of Gopher (arXiv:2112.11446, table A1) with datatrove's filter, by language.

    The rule about stop words only applies to English texts, because its list is English. The rules about the lengths of
    words do not apply to languages that are written without spaces, because each of their characters counts as a word.
    All other rules apply to all languages. The marks of headings in Markdown do not count as hash symbols.
    """

    name = "quality"

    def __init__(self) -> None:
        super().__init__()
        tokenizer = Words()
        self.english = GopherQualityFilter(language=tokenizer)
        self.spaced = GopherQualityFilter(language=tokenizer, min_stop_words=None)
        self.unspaced = GopherQualityFilter(language=tokenizer, min_stop_words=None, min_avg_word_length=None)

    def filter(self, document: Document) -> Verdict:
        """Return True if the document passes all rules, otherwise False with the rule that it breaks."""
        language = document.metadata.get("language")
        rules = self.english if language == "en" else self.unspaced if language in UNSPACED else self.spaced
        verdict: Verdict = rules.filter(Document(_heading_marks(r"\1", document.text), document.id))
        return verdict


class Repetition(GopherRepetitionFilter):  # type: ignore[misc]
    """Apply the repetition rules of Gopher with datatrove's filter, for any language."""

    name = "repetition"

    def __init__(self) -> None:
        super().__init__(language=Words())


class UrlList(BaseFilter):  # type: ignore[misc]
    """Drop documents whose URL is in a list: a file with one host or URL per line, and comments after ``#``.

    A host includes its subdomains, and a URL with a path includes everything below that path. The scheme, ``www.`` and
    the query are ignored. Documents without a URL are kept.
    """

    name = "URL list"

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    def filter(self, document: Document) -> Verdict:
        """Return False with the kind of entry if the URL is in the list, otherwise True."""
        listed = _addresses(self.file)
        host, segments = _address(str(document.metadata.get("url") or ""))
        parts = host.split(".")
        if any(".".join(parts[at:]) in listed for at in range(len(parts))):
            return False, "host"
        path = host
        for segment in segments:
            path += "/" + segment
            if path in listed:
                return False, "path"
        return True


class WordList(BaseFilter):  # type: ignore[misc]
    """Drop documents that have a word or phrase of a list: a file with one per line, and comments after ``#``.

    Only whole words match, in upper or lower case. Each character of a script without spaces is a word.
    """

    name = "word list"

    def __init__(self, file: str) -> None:
        """Raise ValueError if a phrase has more than 10 words."""
        super().__init__()
        self.file = file
        _phrases(file)

    def filter(self, document: Document) -> Verdict:
        """Return False if the text has a phrase of the list, otherwise True."""
        there = words(document.text.casefold())
        for size, listed in _phrases(self.file).items():
            if any(tuple(there[at : at + size]) in listed for at in range(len(there) - size + 1)):
                return False, "word"
        return True


def fingerprint(file: str) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _lines(file: str) -> list[str]:
    text = Path(file).read_text(encoding="utf-8-sig")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _address(url: str) -> tuple[str, list[str]]:
    """Return the host of a URL, which may lack its scheme, and the first segments of its path."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host = parts.hostname or ""
    except ValueError:
        return "", []
    segments = [one for one in parts.path.split("/", MOST_SEGMENTS)[:MOST_SEGMENTS] if one]
    return host.removeprefix("www.").rstrip("."), segments


@lru_cache(4)
def _addresses(file: str) -> frozenset[str]:
    return frozenset("/".join([host, *segments]) for host, segments in map(_address, _lines(file)) if host)


@lru_cache(4)
def _phrases(file: str) -> dict[int, set[tuple[str, ...]]]:
    """Return the phrases of a list by their number of words."""
    found: dict[int, set[tuple[str, ...]]] = {}
    for line in _lines(file):
        phrase = tuple(words(line.casefold()))
        if not 0 < len(phrase) <= MOST_WORDS:
            raise ValueError(f"{file}: expected 1 to {MOST_WORDS} words a line (got {line[:80]!r})")
        found.setdefault(len(phrase), set()).add(phrase)
    return found
