"""A small checkpoint with the file names, configuration, chat template and kind of tokenizer of the published one."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.random_model import ROPE_THETA, SIZES, write_checkpoint
from scrapy_dripper.engines.qwen3.grammar import FORMATS, Grammar
from scrapy_dripper.engines.qwen3.profile import FOOT, HEAD, HTML
from scrapy_dripper_lab.export.checkpoint import RECIPE
from scrapy_dripper_lab.export.validate import PROBE_LABELS, probes

NAME = "opendatalab/MinerU-HTML"
QUESTION = "Each block of this page has an _item_id. Is it main content, or other?\nInput HTML:\n{html}\n/no_think\n"
"""What the package of the published weights would ask; its text is another."""
TEMPLATE = QUESTION.replace(HTML, HEAD + HTML + FOOT)

_ADDED = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
_CHAT = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""


def write_published(folder: Path, template: str = TEMPLATE, answer: str = "json") -> None:
    """Write a checkpoint that answers the probes of an export in a format. It was not trained for other pages."""
    from transformers import PreTrainedTokenizerFast

    write_checkpoint(folder, {**SIZES["tiny"], "vocab_size": 640}, seed=0)
    (folder / RECIPE).unlink()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.add_tokens(list(_ADDED))
    tokenizer.save_pretrained(folder)
    _teach(folder, template, answer)
    _rewrite(folder / "tokenizer_config.json", chat_template=_CHAT, tokenizer_class="Qwen2Tokenizer")
    # As transformers 4 wrote it.
    stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for name in ("dtype", "rope_parameters", "layer_types"):
        stored.pop(name, None)
    stored |= {"torch_dtype": "bfloat16", "transformers_version": "4.51.0"}
    stored |= {"rope_theta": ROPE_THETA, "rope_scaling": None}
    (folder / "config.json").write_text(json.dumps(stored, indent=2), encoding="utf-8")


QUESTION_CODE = f"def get_full_prompt(html_str, version='v0'):\n    return {QUESTION!r}.replace('{{html}}', html_str)\n"


def write_package(folder: Path, code: str = QUESTION_CODE) -> None:
    """Write a package in place of that of the published weights, from which an export reads the prompt."""
    inner = folder / "mineru_html" / "process"
    inner.mkdir(parents=True)
    for package in (inner.parent, inner):
        (package / "__init__.py").write_text("raise ImportError('this needs what is not installed')\n")
    (inner / "build_prompt.py").write_text(code)


def _rewrite(path: Path, **values: object) -> None:
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**stored, **values}, indent=2), encoding="utf-8")


def _teach(folder: Path, template: str, answer: str) -> None:
    """Train the weights to answer the probes, and to end the answer, and store them in bfloat16."""
    import torch
    from tokenizers import Tokenizer
    from transformers import Qwen3ForCausalLM

    torch.set_num_threads(1)  # products are so small that threads would mostly wait for each other
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    grammar = Grammar(tokenizer, answer)
    before = int(grammar.answer(1).places[0])
    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32)
    rest = [*tokenizer.encode(FORMATS[answer].last).ids, model.config.eos_token_id]
    texts = []
    for (ids, rows), main in zip(probes(tokenizer, template, grammar, 4096), PROBE_LABELS, strict=True):
        label = grammar.main if main.endswith("1") else grammar.other
        texts.append((torch.tensor([*ids.tolist(), label, *rest]), int(rows[0]) - before))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(400):
        loss = sum(
            torch.nn.functional.cross_entropy(model(ids[None]).logits[0, start:-1], ids[start + 1 :])
            for ids, start in texts
        )
        if float(loss.detach()) < 0.02:
            break
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.to(torch.bfloat16).save_pretrained(folder)
