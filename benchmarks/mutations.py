"""Insert faults into the loop and the grammar of Qwen3, one at a time. The tests must notice each of them.

    python benchmarks/mutations.py        writes results/mutations.txt; a minute or two

Each fault is one line that somebody could get wrong. It is inserted into a copy of the package.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from report import heading, publish, table
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
FOLDER = "scrapy_dripper/engines/qwen3"
TESTS = ("tests/engines/qwen3/test_loop.py", "tests/engines/qwen3/test_grammar.py")


@dataclass(frozen=True)
class Mutation:
    """A fault: its description, its file, and the code that is replaced."""

    what: str
    file: str
    old: str
    new: str


LOOP = tuple(
    Mutation(what, f"{FOLDER}/loop.py", old, new)
    for what, old, new in (
        ("a tie is main", "choices = logits[:, 0] > logits[:, 1]", "choices = logits[:, 0] >= logits[:, 1]"),
        (
            "main and other are swapped",
            "choices = logits[:, 0] > logits[:, 1]",
            "choices = logits[:, 1] > logits[:, 0]",
        ),
        ("margins have the wrong sign", "logits[:, 0] - logits[:, 1]", "logits[:, 1] - logits[:, 0]"),
        ("all choices of a pass are final", "int(different[0]) + 1 if len(different) else self.end", "len(choices)"),
        ("the corrected label is asked again", "int(different[0]) + 1 if len", "int(different[0]) if len"),
        ("one label more is final", "int(different[0]) + 1 if len", "int(different[0]) + 2 if len"),
        ("the last difference counts", "int(different[0]) + 1 if len", "int(different[-1]) + 1 if len"),
        (
            "only the first wrong label is corrected",
            "self.labels[read] = choices",
            "self.labels[read][different[:1]] = choices[different[:1]]",
        ),
        (
            "the draft behind it is turned",
            "self.labels[read] = choices",
            "self.labels[read] = choices; self.labels[self.end :] ^= True",
        ),
        (
            "a wrong token stays read",
            "int(self.task.answer.places[self.fixed - 1])",
            "int(self.task.answer.places[self.fixed - 1]) + 1",
        ),
        (
            "a token too many is read again",
            "int(self.task.answer.places[self.fixed - 1])",
            "int(self.task.answer.places[self.fixed - 1]) - 1",
        ),
        ("logits are taken a token late", "places[self.fixed :] - 1 - self.start", "places[self.fixed :] - self.start"),
        (
            "logits of the labels before are read again",
            "places[self.fixed :] - 1",
            "places[: self.end - self.fixed] - 1",
        ),
        ("labels are written a token early", "ids[places[:-1]] = np.where", "ids[places[:-1] - 1] = np.where"),
        ("the draft is not written", "np.where(self.labels[: self.end - 1], task.main, task.other)", "task.main"),
        (
            "labels are written the wrong way round",
            "self.end - 1], task.main, task.other)",
            "self.end - 1], task.other, task.main)",
        ),
        ("the draft of the task is written into", "self.labels = task.draft.copy()", "self.labels = task.draft"),
        ("a label too many is read", "min(self.fixed + lookahead + 1,", "min(self.fixed + lookahead + 2,"),
        ("NaN is a label", "if not np.isfinite(logits).all():", "if False:"),
        ("positions forget what was read", "self.positions += len(ids) - self.start", "self.positions += len(ids)"),
        ("a page waits for no other", "if not state.done]:", "if not state.done][:1]:"),
    )
)
GRAMMAR = tuple(
    Mutation(what, f"{FOLDER}/grammar.py", old, new)
    for what, old, new in (
        ("an answer ends before its last label", "places[n - 1]) + 1 if n", "places[n - 1]) if n"),
        ("long answers are cut", "while n > len(self._answer):", "while False:"),
        ("the closing does not count", "+ self._closing if n else 0", "if n else 0"),
        ("other is main", "self._label_ids(OTHER, 1)[self._answer", "self._label_ids(MAIN, 1)[self._answer"),
        ("neighbours are not looked at", "if not np.array_equal(found, expected):", "if False:"),
        ("labels of several tokens are taken", "if len(places) != n or np.ptp", "if len(places) < n or np.ptp"),
        ("a tokenizer without the words is taken", '"".join(self._decode(ids.tolist()).split()) != ', "None and "),
        ("pieces of several tokens are taken", "if len(ids) != 1:", "if False:"),
        ("special tokens are added", "encode(text, add_special_tokens=False).ids", "encode(text).ids"),
    )
)  # fmt: skip
MUTATIONS = LOOP + GRAMMAR


def mutated(source: str, mutation: Mutation) -> str:
    """Return a module with a fault. Raise ValueError unless the code occurs exactly once."""
    if source.count(mutation.old) != 1:
        raise ValueError(f"{mutation.what}: {mutation.old!r} is in {mutation.file} {source.count(mutation.old)} times")
    return source.replace(mutation.old, mutation.new)


def caught(folder: Path, mutation: Mutation) -> str:
    """Return the first test that fails with a fault in a copy of this repository, or an empty string."""
    path = folder / mutation.file
    source = path.read_text(encoding="utf-8")
    path.write_text(mutated(source, mutation), encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS],
            cwd=folder, env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        path.write_text(source, encoding="utf-8")
    if done.returncode == 0:
        return ""
    failed = [
        line.split("::")[-1].split(" ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ]
    return failed[0] if failed else done.stdout.strip().splitlines()[-1]


def main() -> None:
    """Try all faults."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "mutations.txt")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary)
        skip = shutil.ignore_patterns("__pycache__", ".git", ".cache", ".venv*", "node_modules", "build")
        for name in ("scrapy_dripper", "benchmarks", "models", "tests/engines", "tests/conftest.py", "pyproject.toml"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=skip)
            else:
                shutil.copy(ROOT / name, copy / name)
        rows = [
            [one.what, Path(one.file).name, caught(copy, one) or "NO TEST"] for one in tqdm(MUTATIONS, unit="fault")
        ]
    survivors = sum(row[-1] == "NO TEST" for row in rows)
    tests = " and ".join(Path(one).name for one in TESTS)
    about = f"{len(rows)} faults, of which {len(rows) - survivors} make a test of {tests} fail."
    publish(
        f"{heading('mutations.py', ['numpy', 'hypothesis'])}\n\n{about}\n\n"
        + table(["fault", "in", "first test that fails"], rows),
        arguments.output,
    )


if __name__ == "__main__":
    main()
