"""Untrusted model folders: only files that the manifest lists are read, and nothing in them is run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_dripper.config import Config
from scrapy_dripper.engines import files
from scrapy_dripper.engines.base import ModelError
from scrapy_dripper.engines.qwen3.folder import load_prepared
from scrapy_dripper.engines.tagger import Tagger, engine

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto

PREPARED = Path(__file__).parents[1] / "engines" / "qwen3" / "prepared"
CANARY = b"\1\2\3\4" * 4

Load = Callable[[Path], Any]


def load_tagger(folder: Path) -> Tagger:
    return Tagger.load(Config(model=str(folder)))


@pytest.fixture(params=["tagger", "prepared"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Load]:
    """A copy of each kind of folder, and its loader."""
    source, load = (engine.bundled(), load_tagger) if request.param == "tagger" else (PREPARED, load_prepared)
    return Path(shutil.copytree(source, tmp_path / "model")), load


def graph_of(folder: Path) -> Path:
    return min(folder.glob("*.onnx"))


def relist(folder: Path, *names: str) -> None:
    """Write the manifest's hashes again, as an attacker would."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    key = "files" if "files" in manifest else "weights_sha256"
    manifest[key] = {**manifest[key], **files.hashes(folder, [*manifest[key], *names])}
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_whole_folders_load(either: tuple[Path, Load]) -> None:
    """A model card, a licence and files that tools leave behind are ignored."""
    folder, load = either
    for name in ("README.md", "LICENSE.txt", ".gitattributes"):
        (folder / name).write_text("words")
    (folder / ".cache").mkdir()

    load(folder)


DAMAGE: dict[str, Callable[[Path, Path], Any]] = {
    "missing": lambda graph, outside: graph.unlink(),
    "changed": lambda graph, outside: graph.write_bytes(graph.read_bytes()[:-1] + b"\0"),
    "another file": lambda graph, outside: (graph.parent / "custom_ops.so").write_bytes(b"x"),
    "another graph": lambda graph, outside: shutil.copy(graph, graph.with_name("other.onnx")),
    "a folder": lambda graph, outside: (graph.parent / "code").mkdir(),
    "a link out": lambda graph, outside: (graph.rename(outside), graph.symlink_to(outside)),
    "a link to itself": lambda graph, outside: (graph.unlink(), graph.symlink_to(graph)),
    "a pipe": lambda graph, outside: (graph.unlink(), os.mkfifo(graph)),
    "a folder of its name": lambda graph, outside: (graph.unlink(), graph.mkdir()),
    "a manifest out": lambda graph, outside: (
        (graph.parent / "manifest.json").rename(outside),
        (graph.parent / "manifest.json").symlink_to(outside),
    ),
    "an endless manifest": lambda graph, outside: (
        (graph.parent / "manifest.json").unlink(),
        (graph.parent / "manifest.json").symlink_to("/dev/zero"),
    ),
    "a deep manifest": lambda graph, outside: (graph.parent / "manifest.json").write_text("[" * 100_000),
    "a huge manifest": lambda graph, outside: (graph.parent / "manifest.json").write_text(" " * (files.MOST_JSON + 2)),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_folder_that_is_not_as_it_was_made_is_refused(either: tuple[Path, Load], damage: str) -> None:
    """One sentence says what to do, without a traceback."""
    folder, load = either
    DAMAGE[damage](graph_of(folder), folder.parent / "outside")

    with pytest.raises(ModelError) as raised:
        load(folder)
    said = str(raised.value)
    assert "\n" not in said
    assert any(
        advice in said for advice in ("restore the", "remove it, or", "set DRIPPER_MODEL", "scrapy-dripper export")
    )


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../outside", "..", ".", "", "a\\b", "c:x", "x\0y"])
def test_a_manifest_names_files_of_its_folder_only(tmp_path: Path, name: str) -> None:
    """Other files are not even hashed, because a match would reveal what is in a file."""
    (tmp_path / "outside").write_text("secret")
    folder = tmp_path / "model"
    folder.mkdir()

    with pytest.raises(ModelError, match="not a regular file of the folder"):
        files.check(folder, {name: files.sha256(tmp_path / "outside")}, "do something")


# Graphs


def weights(location: str, name: str = "w") -> Any:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("offset", "0"), ("location", location), ("length", "16")):
        tensor.external_data.add(key=key, value=value)
    return tensor


def graph(initializers: Any = (), nodes: Any = (), sparse: Any = ()) -> Any:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    made = helper.make_graph([*nodes, helper.make_node("Identity", ["x"], ["y"])], "g", [x], [y], [*initializers])
    made.sparse_initializer.extend(sparse)
    return made


def attribute(**value: Any) -> Any:
    return onnx.AttributeProto(name="value", **value)


def node(one: Any) -> Any:
    made = helper.make_node("Constant", [], ["c"])
    made.attribute.append(one)
    return made


def in_node(one: Any) -> Any:
    return graph(nodes=[node(one)])


def in_model(made: Any, **more: Any) -> bytes:
    return bytes(onnx.ModelProto(ir_version=8, graph=made, opset_import=[helper.make_opsetid("", 15)], **more)
                 .SerializeToString())  # fmt: skip


def sparse(location: str) -> Any:
    return onnx.SparseTensorProto(values=weights(location), indices=weights(location), dims=[4])


PLACES: dict[str, Callable[[str], bytes]] = {
    "initializer": lambda at: in_model(graph([weights(at)])),
    "sparse initializer": lambda at: in_model(graph(sparse=[sparse(at)])),
    "attribute": lambda at: in_model(in_node(attribute(t=weights(at)))),
    "attribute, many": lambda at: in_model(in_node(attribute(tensors=[weights(at)]))),
    "attribute, sparse": lambda at: in_model(in_node(attribute(sparse_tensor=sparse(at)))),
    "attribute, many sparse": lambda at: in_model(in_node(attribute(sparse_tensors=[sparse(at)]))),
    "inner graph": lambda at: in_model(in_node(attribute(g=in_node(attribute(g=graph([weights(at)])))))),
    "inner graphs": lambda at: in_model(in_node(attribute(graphs=[graph([weights(at)])]))),
    "function": lambda at: in_model(
        graph(), functions=[onnx.FunctionProto(name="f", node=[node(attribute(t=weights(at)))])]
    ),
    "function's default": lambda at: in_model(
        graph(), functions=[onnx.FunctionProto(name="f", attribute_proto=[attribute(t=weights(at))])]
    ),
    "training": lambda at: in_model(graph(), training_info=[onnx.TrainingInfoProto(algorithm=graph([weights(at)]))]),
    "a second graph": lambda at: in_model(graph()) + onnx.ModelProto(graph=graph([weights(at)])).SerializeToString(),
}


@pytest.mark.parametrize("place", PLACES)
def test_weights_outside_of_a_graph_are_found_wherever_it_names_them(tmp_path: Path, place: str) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(PLACES[place]("../secret.bin"))

    assert files.external_data(path, "x") == {"../secret.bin"}


def test_a_graph_without_weights_outside_may_still_have_the_word(tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(in_model(graph([helper.make_tensor("location", TensorProto.FLOAT, [1], [1.0])])))

    assert files.external_data(path, "x") == set()


@given(st.binary(max_size=60), st.data())
def test_bytes_that_are_no_graph_are_refused_or_name_nothing(data: bytes, chance: st.DataObject) -> None:
    """The search ends for any bytes, and raises no other error."""
    whole = bytearray(PLACES["inner graph"]("../secret.bin"))
    for _ in range(chance.draw(st.integers(0, 3))):
        whole[chance.draw(st.integers(0, len(whole) - 1))] = chance.draw(st.integers(0, 255))
    for some in (b"location" + data, data + b"location", bytes(whole)):
        with contextlib.suppress(ValueError, IndexError):  # of which external_data() makes ModelError
            list(files._locations(memoryview(some)))


@pytest.mark.parametrize("location", ["/etc/passwd", "../outside.bin", "notes.txt", "sub/../../outside.bin"])
def test_a_graph_takes_no_weights_from_other_files(either: tuple[Path, Load], location: str) -> None:
    """This holds for every release of onnxruntime, even if every hash is right."""
    folder, load = either
    (folder.parent / "outside.bin").write_bytes(CANARY)
    (folder / "notes.txt").write_bytes(CANARY)
    graph_of(folder).write_bytes(PLACES["initializer"](location))
    relist(folder)

    with pytest.raises(ModelError, match="takes weights from"):
        load(folder)


def test_a_prepared_folder_may_keep_its_weights_in_a_listed_file(tmp_path: Path) -> None:
    """The export writes models over 64 MB like this."""
    folder = Path(shutil.copytree(PREPARED, tmp_path / "model"))
    whole = onnx.load(folder / "model.onnx")
    outside = {"save_as_external_data": True, "location": "model.onnx.data", "size_threshold": 0}
    onnx.save_model(whole, folder / "model.onnx", **outside)
    relist(folder, "model.onnx.data")
    load_prepared(folder)

    (folder / "model.onnx.data").write_bytes(b"")
    with pytest.raises(ModelError, match=r"model\.onnx\.data is damaged"):
        load_prepared(folder)


def test_operators_of_a_library_are_refused(tmp_path: Path) -> None:
    """A graph cannot contain code, because no library is loaded for it."""
    pytest.importorskip("onnxruntime")
    folder = Path(shutil.copytree(engine.bundled(), tmp_path / "model"))
    made = graph(nodes=[helper.make_node("Run", ["x"], ["z"], domain="their.library", path="./custom_ops.so")])
    (folder / "blocks.onnx").write_bytes(in_model(made))
    relist(folder)

    with pytest.raises(ModelError, match="onnxruntime cannot load"):
        load_tagger(folder)


# Manifests

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["{html}", "x" * 10_000]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("kind", ["tagger", "prepared"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(chance=st.data())
def test_any_value_in_a_manifest_is_a_model_or_a_sentence(kind: str, tmp_path: Path, chance: st.DataObject) -> None:
    """Values of any type and size give no traceback, and their numbers take no memory."""
    source = engine.bundled() if kind == "tagger" else PREPARED
    folder = tmp_path / "model"
    if not folder.exists():
        shutil.copytree(source, folder)
    manifest = json.loads((source / "manifest.json").read_text(encoding="utf-8"))
    key = chance.draw(st.sampled_from(sorted(manifest)))
    if isinstance(manifest[key], dict) and manifest[key] and chance.draw(st.booleans()):
        manifest[key][chance.draw(st.sampled_from(sorted(manifest[key])))] = chance.draw(_json)
    else:
        manifest[key] = chance.draw(_json)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    said = ""
    try:
        if kind == "tagger":
            engine.Manifest.read(folder)
        else:
            load_prepared(folder)
    except ModelError as error:
        said = str(error)
    assert len(said) < 1_000


@pytest.mark.parametrize("prompt", ["{html.__class__}", "{0}{html}{html}", "%s", "{html!r}"])
def test_a_template_of_a_prompt_reaches_nothing(prompt: str) -> None:
    """The template is split at ``{html}``. Everything else in braces is text."""
    from tokenizers import Tokenizer

    from scrapy_dripper.engines.qwen3.grammar import Prompt

    tokenizer = Tokenizer.from_file(str(PREPARED / "tokenizer.json"))
    with pytest.raises(ModelError, match="exactly once"):
        Prompt(tokenizer, prompt)
    (ids,) = Prompt(tokenizer, "{0.__class__} {html} {x}").encode(["<p>{html.__class__}</p>"])
    assert "{0.__class__} <p>{html.__class__}</p> {x}" in tokenizer.decode(list(np.asarray(ids)))
