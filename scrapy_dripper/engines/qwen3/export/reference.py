"""The checkpoint in PyTorch: what an exported graph is compared with, and what the answers of a model look like."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tqdm import tqdm
from transformers import DynamicCache, Qwen3Config, Qwen3ForCausalLM

from scrapy_dripper.engines.qwen3.export import ExportError
from scrapy_dripper.engines.qwen3.export.checkpoint import read_config
from scrapy_dripper.engines.qwen3.export.validate import Check, probes
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids, fitting
from scrapy_dripper.engines.qwen3.loop import Floats


class Reference:
    """A checkpoint in single precision, on the CPU."""

    def __init__(self, folder: Path) -> None:
        config = Qwen3Config.from_dict(read_config(folder))
        self._model = Qwen3ForCausalLM.from_pretrained(
            folder, config=config, dtype=torch.float32, local_files_only=True
        )
        self._model.eval()
        self._cache: DynamicCache | None = None
        self._read: list[int] = []

    def checks(self, tokenizer: Tokenizer, template: str, grammar: Grammar, context: int) -> list[Check]:
        """Return the logits of the labels on a few prompts."""
        labels = [grammar.main, grammar.other]
        return [
            Check(ids.tolist(), rows.tolist(), self._logits(ids, rows)[:, labels].tolist())
            for ids, rows in probes(tokenizer, template, grammar, context)
        ]

    def best_answer(self, tokenizer: Tokenizer, template: str, context: int) -> tuple[str, dict[str, float]]:
        """Return the answer format that the model is most ready to write, and the score of each.

        The score is the log-likelihood, a block, of whole answers with the labels that the model prefers. Raise
        :exc:`ExportError` if the tokenizer fits no format.
        """
        grammars = fitting(tokenizer)
        if not grammars:
            raise ExportError("the tokenizer has no single tokens for main and other: this model cannot be constrained")
        asked = [
            (name, ids, rows) for name in grammars for ids, rows in probes(tokenizer, template, grammars[name], context)
        ]
        asked.sort(key=lambda one: len(one[2]))  # the formats of one prompt after each other: it is read once
        likelihood, blocks = dict.fromkeys(grammars, 0.0), dict.fromkeys(grammars, 0)
        for name, ids, rows in tqdm(asked, desc="how the model answers", unit="answer"):
            likelihood[name] += self._likelihood(ids, rows, grammars[name])
            blocks[name] += len(rows)
        self._read, self._cache = [], None
        scores = {name: likelihood[name] / blocks[name] for name in grammars}
        return max(scores, key=lambda name: scores[name]), scores

    @torch.no_grad()
    def _likelihood(self, ids: Ids, rows: Ids, grammar: Grammar) -> float:
        """Return the log-likelihood of an answer, each label replaced by the one that the model prefers."""
        answer = len(grammar.answer(len(rows)).ids)
        start = int(rows[-1]) + 1 - (answer - 1)  # of the answer; the last label is not among the ids
        labels = [grammar.main, grammar.other]
        likely = self._prefilled(ids[:start])
        total = 0.0
        for row, following in zip(rows, (*rows[1:], None), strict=True):
            # ``likely`` says what may follow the tokens so far: the first forced one, or the label itself.
            forced = torch.from_numpy(ids[start : row + 1])
            if len(forced):
                after = self._step(forced)
                total += float(torch.cat([likely, after[:-1]]).gather(1, forced[:, None]).sum())
                likely = after[-1:]
            total += float(likely[0, labels].max())
            if following is not None:
                label = grammar.main if likely[0, grammar.main] > likely[0, grammar.other] else grammar.other
                likely = self._step(torch.tensor([label]))
                start = int(row) + 2
        return total

    def _prefilled(self, prompt: Ids) -> torch.Tensor:
        """Return the log-probabilities [1, V] after a prompt, which is read unless it was the last one."""
        if self._cache is None or prompt.tolist() != self._read:
            self._cache, self._read = DynamicCache(config=self._model.config), prompt.tolist()
            self._after = self._step(torch.from_numpy(prompt), last=True)
        if added := self._cache.get_seq_length() - len(prompt):
            self._cache.crop(-added)
        return self._after

    def _step(self, ids: torch.Tensor, *, last: bool = False) -> torch.Tensor:
        """Read tokens behind those in the cache; return the log-probabilities [S, V] after each, or after the last."""
        states = self._model.model(input_ids=ids[None], past_key_values=self._cache, use_cache=True).last_hidden_state
        found: torch.Tensor = self._model.lm_head(states[0, -1:] if last else states[0]).log_softmax(1)
        return found

    @torch.no_grad()
    def _logits(self, ids: Ids, rows: Ids) -> Floats:
        hidden = self._model.model(input_ids=torch.from_numpy(ids)[None], use_cache=False).last_hidden_state[0]
        logits: Floats = self._model.lm_head(hidden[torch.from_numpy(rows)]).numpy()
        return logits


def scores_text(scores: Mapping[str, float]) -> str:
    """Return the scores of the answer formats for people."""
    return ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
