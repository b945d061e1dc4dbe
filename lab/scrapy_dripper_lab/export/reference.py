"""Run the checkpoint in PyTorch, to compare an exported graph with it, and to find out how the model answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import DynamicCache, Qwen3ForCausalLM

from scrapy_dripper.cli.console import UsageError
from scrapy_dripper.config import Config
from scrapy_dripper.engines.base import EngineError
from scrapy_dripper.engines.qwen3.decoder import Decoded, DecodeTask, Floats
from scrapy_dripper.engines.qwen3.engine import Qwen3Engine, drafting_tagger
from scrapy_dripper.engines.qwen3.folder import Prepared, load_prepared, model_folder
from scrapy_dripper.engines.qwen3.grammar import Grammar, Ids
from scrapy_dripper_lab.export.checkpoint import hashes
from scrapy_dripper_lab.export.validate import LogitCheck, probes


class Reference:
    """A checkpoint in single precision, on the CPU."""

    def __init__(self, folder: Path) -> None:
        self._model = Qwen3ForCausalLM.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, use_safetensors=True
        )
        self._model.eval()
        ends = self._model.generation_config.eos_token_id
        self._ends = frozenset(ends if isinstance(ends, list) else [ends])
        self._cache: DynamicCache | None = None

    def checks(self, tokenizer: Tokenizer, template: str, grammar: Grammar, context: int) -> list[LogitCheck]:
        """Return the logits of the labels on a few prompts."""
        labels = [grammar.main, grammar.other]
        return [
            LogitCheck(ids.tolist(), rows.tolist(), self._logits(ids, rows)[:, labels].tolist())
            for ids, rows in probes(tokenizer, template, grammar, context)
        ]

    def head(self, tokens: Sequence[int]) -> Floats:
        """Return the columns [H, N] of the head for N tokens."""
        columns: Floats = self._model.lm_head.weight.detach()[tokens].T.numpy()
        return columns

    @torch.no_grad()
    def ranges(self, ids: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """Return the largest keys and values [kv_heads, head_dim] of each layer in a text.

        Rotation turns a pair of channels of a key by an angle that depends on the position. So both have the length of
        the pair.
        """
        cache, found = DynamicCache(config=self._model.config), []
        self._model.model(input_ids=torch.tensor([ids]), past_key_values=cache, use_cache=True)
        for layer in cache.layers:
            pairs = layer.keys[0].unflatten(2, (2, -1)).norm(dim=2).amax(1)
            found.append((pairs.repeat(1, 2).numpy(), layer.values[0].abs().amax(1).numpy()))
        return found

    @torch.no_grad()
    def likelihoods(
        self, tokenizer: Tokenizer, template: str, grammars: Mapping[str, Grammar], context: int
    ) -> dict[str, float]:
        """Return the log-likelihood per block of an answer in each format, whichever labels it has.

        The prompt is read once, and then the answers: nothing is generated.
        """
        found, self._cache = {}, None
        for name, grammar in grammars.items():
            ids, rows = probes(tokenizer, template, grammar, context)[-1]
            start = int(rows[0]) + 1 - int(grammar.answer(1).places[0])
            if self._cache is None:
                self._cache = DynamicCache(config=self._model.config)
                first = self._step(torch.from_numpy(ids[:start]), last=True)
            after = self._step(torch.from_numpy(ids[start:]))
            likely = torch.cat([first, after]).numpy()
            labels = likely[rows + 1 - start][:, [grammar.main, grammar.other]]
            forced = np.setdiff1d(np.arange(len(ids) - start), rows + 1 - start)
            total = likely[forced, ids[start:][forced]].sum() + np.logaddexp(*labels.T).sum()
            found[name] = float(total) / len(rows)
            self._cache.crop(start - len(ids))  # the answer is removed again
        self._cache = None
        return found

    @torch.no_grad()
    def write(self, prompt: Ids, tokens: int) -> Ids:
        """Return the tokens that greedy decoding adds to a prompt, up to the end of the model's answer."""
        self._cache = DynamicCache(config=self._model.config)
        likely = self._step(torch.from_numpy(prompt), last=True)
        found: list[int] = []
        while len(found) < tokens and (token := int(likely[0].argmax())) not in self._ends:
            found.append(token)
            likely = self._step(torch.tensor([token]))
        self._cache = None
        return np.array(found, dtype=np.int64)

    def _step(self, ids: torch.Tensor, *, last: bool = False) -> torch.Tensor:
        """Read tokens after those in the cache. Return the log-probabilities [S, V] after each, or after the last."""
        states = self._model.model(input_ids=ids[None], past_key_values=self._cache, use_cache=True).last_hidden_state
        found: torch.Tensor = self._model.lm_head(states[0, -1:] if last else states[0]).log_softmax(1)
        return found

    @torch.no_grad()
    def _logits(self, ids: Ids, rows: Ids) -> Floats:
        hidden = self._model.model(input_ids=torch.from_numpy(ids)[None], use_cache=False).last_hidden_state[0]
        logits: Floats = self._model.lm_head(hidden[torch.from_numpy(rows)]).numpy()
        return logits


SPARE = 64
"""Number of tokens that a free answer may have more than a constrained one."""
_labels = re.compile(r'(\d{1,7})[":\s]{0,8}(main|other)').findall


class FreeDecoder:
    """Decodes without a grammar, as the Dripper paper does for its ablation (section 5.4).

    An answer is read as by the package of the published weights: what names no label is skipped, of two labels of a
    block the last one counts, and a block without a label is other.
    """

    def __init__(self, checkpoint: Path, prepared: Prepared) -> None:
        self.limit = prepared.context - SPARE
        self._reference, self._tokenizer = Reference(checkpoint), prepared.tokenizer()

    def decode(self, tasks: Sequence[DecodeTask]) -> list[Decoded | EngineError]:
        """Return the labels of each task, or an error if the answer has none."""
        return [self._decode(task) for task in tasks]

    def close(self) -> None:
        """Do nothing: the memory is freed with this object."""

    def _decode(self, task: DecodeTask) -> Decoded | EngineError:
        n = len(task.answer)
        ids = self._reference.write(task.prompt, len(task.answer.ids) + SPARE)
        answer = self._tokenizer.decode(ids.tolist())
        found = {int(number): label == "main" for number, label in _labels(answer)}
        if not any(1 <= number <= n for number in found):
            return EngineError(f"the free answer labels no block ({answer[:100]!r})")
        main = np.array([found.get(k, False) for k in range(1, n + 1)], dtype=np.bool_)
        margins = np.where(main, np.float32(1), np.float32(-1))
        return Decoded(main, margins, passes=len(ids), positions=len(task.prompt) + len(ids), kept=0)


def free_engine(config: Config, checkpoint: Path) -> Qwen3Engine:
    """Return the configured model, decoded without a grammar, from the checkpoint that it was exported from.

    Raise ModelError if the model cannot be used, and :exc:`UsageError` if it is of another checkpoint.
    """
    prepared = load_prepared(model_folder(config))
    if not checkpoint.is_dir() or hashes(checkpoint) != prepared.source.get("files"):
        raise UsageError(f"{prepared.folder} was not exported from {checkpoint}: name its checkpoint")
    return Qwen3Engine(prepared, drafting_tagger(config), FreeDecoder(checkpoint, prepared))
