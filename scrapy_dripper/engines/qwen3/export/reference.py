"""The checkpoint in PyTorch: what an exported graph is compared with, and what the answers of a model look like."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

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
        scores: dict[str, float] = {}
        for name, grammar in fitting(tokenizer).items():
            likelihood, blocks = 0.0, 0
            for ids, rows in probes(tokenizer, template, grammar, context):
                likelihood += self._likelihood(ids, rows, grammar)
                blocks += len(rows)
            scores[name] = likelihood / blocks
        if not scores:
            raise ExportError("the tokenizer has no single tokens for main and other: this model cannot be constrained")
        return max(scores, key=lambda name: scores[name]), scores

    def _likelihood(self, ids: Ids, rows: Ids, grammar: Grammar) -> float:
        """Return the log-likelihood of an answer, each label replaced by the one that the model prefers."""
        answer = len(grammar.answer(len(rows)).ids)
        start = int(rows[-1]) + 1 - (answer - 1)  # of the answer; the last label is not among the ids
        for row in rows[:-1]:
            logits = self._logits(ids, np.array([row]))[0]
            ids[row + 1] = grammar.main if logits[grammar.main] > logits[grammar.other] else grammar.other
        places = np.arange(start - 1, len(ids))
        likely = torch.from_numpy(self._logits(ids, places)).log_softmax(1)
        forced = torch.from_numpy(ids[start:])
        label = likely[-1, [grammar.main, grammar.other]].max()
        return float(likely[:-1].gather(1, forced[:, None]).sum() + label)

    @torch.no_grad()
    def _logits(self, ids: Ids, rows: Ids) -> Floats:
        hidden = self._model.model(input_ids=torch.from_numpy(ids)[None], use_cache=False).last_hidden_state[0]
        logits: Floats = self._model.lm_head(hidden[torch.from_numpy(rows)]).numpy()
        return logits


def scores_text(scores: Mapping[str, float]) -> str:
    """Return the scores of the answer formats for people."""
    return ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
