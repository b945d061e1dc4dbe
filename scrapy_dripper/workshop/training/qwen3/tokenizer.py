"""Train a byte-level BPE tokenizer for simplified HTML on the training pages of a small model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PAD, END = "<|pad|>", "<|end|>"

# A tag, the beginning of an attribute, a number, a word and a class name are units, and punctuation ends at the next
# tag. So no token extends from one block into the next, or from the answer's quotation marks into a label.
_UNITS = (
    r"</?[A-Za-z][A-Za-z0-9-]*>?"
    r'| (?:class|id|_item_id)="'
    r"|\p{N}{1,3}"
    r"| ?\p{L}+(?:[-_]{1,2}\p{L}+)*"
    r"| ?[^\s\p{L}\p{N}<]+|<|\s+"
)
_LABELS = ('{"1":"main","2":"other"}', '{"1": "main", "2": "other"}', "1main2other")
_NUMBERED = 400  # block numbers up to this one are single tokens
_REPEATS = 1_000  # enough to outweigh the words of pages


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Return a tokenizer with at most ``vocabulary`` tokens, trained on simplified HTML."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_UNITS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[PAD, END],
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(texts), trainer)
    return tokenizer


def _corpus(texts: Iterable[str]) -> Iterator[str]:
    yield from texts
    for _ in range(_REPEATS):
        yield from _LABELS
        yield " ".join(map(str, range(1, _NUMBERED)))
