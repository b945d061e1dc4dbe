"""The tokens of an answer spell it for any labels. Otherwise, the tokenizer is rejected."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.grammar import FORMATS, AnswerTokens, Grammar, fitting
from tests.engines.qwen3.real import tokenizer_file


def spelt(tokenizer: Tokenizer, grammar: Grammar, answer: AnswerTokens, labels: list[bool]) -> str:
    """Return the text of an answer with these labels."""
    ids = answer.ids.copy()
    ids[answer.places] = np.where(labels, grammar.main, grammar.other)
    return tokenizer.decode(ids.tolist(), skip_special_tokens=False)


@given(labels=st.lists(st.booleans(), min_size=1, max_size=150))
@pytest.mark.parametrize("name", FORMATS)
def test_section_3_4_an_answer_spells_its_labels(thinking: Tokenizer, name: str, labels: list[bool]) -> None:
    """For any labels, the tokens are those of the whole text up to the last label."""
    grammar = Grammar(thinking, name)
    text = FORMATS[name].text(["main" if label else "other" for label in labels])

    answer = grammar.answer(len(labels))

    assert spelt(thinking, grammar, answer, labels) + FORMATS[name].last == text
    assert len(answer) == len(labels)
    if FORMATS[name].pieces is None:
        assert grammar.length(len(labels)) == len(thinking.encode(text, add_special_tokens=False).ids)


def test_what_the_formats_look_like() -> None:
    texts = {name: one.text(["main", "other", "main"]) for name, one in FORMATS.items()}

    assert texts["json"] == '{"1":"main","2":"other","3":"main"}'
    assert texts["json_space"] == json.dumps({"1": "main", "2": "other", "3": "main"})
    assert texts["json_colon"] == '{"1": "main","2": "other","3": "main"}'
    assert texts["mineru_v1"] == texts["json"]
    assert texts["mineru_v2"] == "</think>\n\n" + texts["json"]
    assert texts["compact"] == "1main2other3main"


@pytest.mark.parametrize(("name", "first"), [("mineru_v1", []), ("mineru_v2", ["</think>", "\n\n"])])
def test_the_tokens_of_a_state_machine(thinking: Tokenizer, name: str, first: list[str]) -> None:
    """They are those that MinerU-HTML 1.0 forces one by one, although the tokenizer has longer ones for the text."""
    pieces = [*first, "{", *('"', "1", '":"', "main", '",'), *('"', "2", '":"', "main", '",')]
    for k in range(3, 12):
        pieces += ['"', *str(k), '":"', "main", '",']
    grammar = Grammar(thinking, name)
    answer = grammar.answer(11)

    ids = [thinking.encode(piece, add_special_tokens=False).ids for piece in pieces[:-1]]
    assert [[one] for one in answer.ids.tolist()] == ids
    assert [pieces[place] for place in answer.places] == ["main"] * 11
    assert thinking.encode('{"', add_special_tokens=False).ids != [one[0] for one in ids[:2]]
    assert grammar.length(11) == len(pieces)  # the last piece closes the object


def test_the_formats_that_fit_a_tokenizer(tokenizer: Tokenizer, thinking: Tokenizer) -> None:
    """Without an end-of-thought token, no answer begins with one."""
    assert list(fitting(thinking)) == list(FORMATS)
    assert set(FORMATS) - set(fitting(tokenizer)) == {"mineru_v2"}
    assert fitting(NO_UNKNOWN) == {}


def trained(text: str, split: str, size: int = 400) -> Tokenizer:
    """Return a byte-level tokenizer that has learnt a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [text] * 3, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    )
    return tokenizer


WORDS = r"[a-z]+|[0-9]|[^a-z0-9]+"
NO_UNKNOWN = Tokenizer(models.WordLevel({"main": 0, "other": 1, "[UNK]": 2}, unk_token="[UNK]"))


@pytest.mark.parametrize(
    ("tokenizer", "answer", "problem"),
    [
        (trained("nothing of the kind", WORDS), "json", "not two single tokens"),
        (trained("main main", WORDS), "json", "not a single token"),
        (trained("maint others", r"[a-z]"), "compact", "not a single token"),
        (NO_UNKNOWN, "json", "no tokens for"),
        (trained("main other", WORDS), "mineru_v1", r"'\":\"' is not a single token"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(tokenizer: Tokenizer, answer: str, problem: str) -> None:
    """It never causes a wrong answer. The message names the format, the problem and the other formats."""
    with pytest.raises(ModelError, match=rf"answer format '{answer}' \(.*{problem}.*try another format"):
        Grammar(tokenizer, answer)


class Contextual:
    """A tokenizer that writes the comma between two labels in another way in some places."""

    def __init__(self, mark: str, where: str) -> None:
        self.mark, self.where = mark, where

    def encode(self, text: str, **_: Any) -> Any:
        text = re.sub(self.where, lambda m: m[0].replace(",", self.mark), text)
        pieces = re.findall(r"main|other|.", text)
        return SimpleNamespace(ids=[{"main": 0, "other": 1}.get(piece) or ord(piece[0]) for piece in pieces])

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join({ord("m"): "main", 1: "other", ord(self.mark): ","}.get(i) or chr(i) for i in ids)


@pytest.mark.parametrize("where", ['main","[0-9]+":"other', 'main","[0-9]*[02468]":"other', 'other","2":"main'])
def test_runs_that_depend_on_the_labels_are_refused(where: str) -> None:
    """A forced run must be the same for all choices before and after it."""
    Grammar(Contextual(",", where), "json")  # type: ignore[arg-type]

    with pytest.raises(ModelError, match="the tokens between two labels depend on the labels"):
        Grammar(Contextual(";", where), "json")  # type: ignore[arg-type]


def test_a_quotation_mark_may_be_part_of_a_label_token(tokenizer: Tokenizer) -> None:
    """There must be a choice between two tokens. It does not matter where their texts end."""
    glued = trained('{"1":"main","2":"other"} main" other"', r'[a-z]+"|[0-9]|[^a-z0-9]+')
    grammar = Grammar(glued, "json")

    assert glued.decode([grammar.main]) == 'main"'
    assert spelt(glued, grammar, grammar.answer(2), [True, False]) == '{"1":"main","2":"other"'


# ---------------------------------------------------------------------- the tokenizer of the published weights
@pytest.fixture(scope="module")
def real() -> Tokenizer:
    return Tokenizer.from_file(str(tokenizer_file()))


def test_all_answer_formats_fit(real: Tokenizer) -> None:
    """The labels are the same two tokens in each of them."""
    found = fitting(real)
    assert set(found) == set(FORMATS)
    assert {(grammar.main, grammar.other) for grammar in found.values()} == {(3817, 1575)}


@pytest.mark.parametrize("answer", FORMATS)
def test_numbers_to_2000(real: Tokenizer, answer: str) -> None:
    """A long answer is that of its text, with the blocks in order."""
    grammar, labels = Grammar(real, answer), [k % 3 == 0 for k in range(2_000)]
    text = FORMATS[answer].text(["main" if label else "other" for label in labels])
    assert spelt(real, grammar, grammar.answer(2_000), labels) == text.removesuffix(FORMATS[answer].last)
