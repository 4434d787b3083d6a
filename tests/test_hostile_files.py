"""Models, libraries and manifests that mean harm: refused with a DataError, without running them
and in little memory.
"""

from __future__ import annotations

import ast
import json
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pip install 'suffice[fit]'")

from robustness import hostile_files as hostile
from robustness.artefact_targets import rehash_manifest, small_gate
from tests.small_world import FILMS

import suffice
from suffice.errors import DataError, InputError, NotReadyError
from suffice.gate.gate import Gate
from suffice.integrations.onnx import OnnxEncoder
from suffice.retrieval.links import MentionLinks, TitleIndex, mention_links
from suffice.storage import (
    MANIFEST,
    BadRecords,
    new_artefact,
    open_artefact,
    read_json_array,
    read_jsonl,
)
from suffice.storage.artefacts import OnnxTrees, array_from_bytes, open_onnx, read_array

ROWS = np.zeros((2, 3), dtype=np.float32)
FEW = 8 * 1024 * 1024  # bytes that a refusal may cost


@pytest.fixture
def gate_folder(tmp_path: Path) -> Path:
    small_gate(tmp_path / "gate")
    return tmp_path / "gate"


def altered(folder: Path, part: str, content: bytes) -> Path:
    """The artefact with this file in it, and a manifest that knows its hash: whoever alters one can
    alter the other.
    """
    (folder / part).write_bytes(content)
    rehash_manifest(folder, part)
    return folder


def cost(refused: Callable[[], Any]) -> int:
    """The most memory that Python asked for until the DataError came."""
    tracemalloc.start()
    try:
        with pytest.raises((DataError, InputError)):
            refused()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- networks


def test_a_small_gate_is_a_gate(gate_folder: Path) -> None:
    assert 0 < Gate.load(gate_folder).check("Who taught Ada?", ["Mary taught Ada."]).p_complete < 1


NETWORKS = {
    "nothing": b"",
    "no ONNX at all": b"\x80\x04K\x01.",  # a pickle
    "cut off": hostile.tree_model(3)[:-40],
    "an operator that nobody knows": hostile.network_with_weights(
        hostile.oversized_weights([1, 3]), 3, "LaunchRockets"
    ),
    "weights that claim terabytes": hostile.network_with_weights(
        hostile.oversized_weights([2**20, 2**20]), 3
    ),
    "weights beyond any machine": hostile.network_with_weights(
        hostile.oversized_weights([2**31, 2**31, 4]), 3
    ),
    "weights of a negative size": hostile.network_with_weights(hostile.oversized_weights([-4]), 3),
    "weights at an absolute path": hostile.network_with_weights(
        hostile.external_weights("/etc/hostname", 3), 3
    ),
    "weights that never end": hostile.network_with_weights(
        hostile.external_weights("/dev/zero", 3), 3
    ),
    "weights outside the folder": hostile.network_with_weights(
        hostile.external_weights("../../secret", 3), 3
    ),
    "weights in a file beside it": hostile.network_with_weights(
        hostile.external_weights("w.bin", 3), 3
    ),
    "four terabytes when it runs": hostile.expanding_network(3),
    "another number of columns": hostile.tree_model(4),
    "a column that is not there": hostile.tree_model(3, nodes_featureids=[10**8, 0, 0]),
    "a tree that bites its tail": hostile.tree_model(3, nodes_truenodeids=[0, 0, 0]),
    "a branch into nowhere": hostile.tree_model(3, nodes_truenodeids=[77, 0, 0]),
    "a leaf of another target": hostile.tree_model(3, target_ids=[10**8, -1]),
    "attributes of unlike length": hostile.tree_model(3, nodes_values=[0.5]),
    "very many targets": hostile.tree_model(3, n_targets=2**40),
}


@pytest.mark.parametrize("what", NETWORKS)
def test_a_malicious_network_is_an_error(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 12)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError):
        OnnxTrees(NETWORKS[what], columns=3).p(ROWS)
    assert capfd.readouterr() == ("", "")  # onnxruntime prints nothing either


@pytest.mark.parametrize("part", ["hit.onnx", "boosted.onnx"])
def test_a_gate_with_a_malicious_network_does_not_load(part: str, gate_folder: Path) -> None:
    for content in (NETWORKS["cut off"], NETWORKS["another number of columns"], b"\0" * 100):
        with pytest.raises(DataError):
            Gate.load(altered(gate_folder, part, content))


def test_a_network_can_have_weights_beside_it_but_not_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 12)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "w.bin").write_bytes(b"\0" * 12)
    (inside / "link.bin").symlink_to(tmp_path / "secret")
    for name, network in (("beside", "w.bin"), ("link", "link.bin")):
        (inside / f"{name}.onnx").write_bytes(
            hostile.network_with_weights(hostile.external_weights(network, 3), 3)
        )
    open_onnx(inside / "beside.onnx", threads=1)
    with pytest.raises(DataError, match="escapes"):
        open_onnx(inside / "link.onnx", threads=1)


def test_a_damaged_encoder_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("[" * 5000, encoding="utf-8")
    (tmp_path / "model.onnx").write_bytes(NETWORKS["cut off"])
    with pytest.raises(InputError, match="is not a tokenizer"):
        OnnxEncoder(tmp_path)


# --- arrays


ARRAYS = {
    "four terabytes in the header": hostile.oversized_array_header((2**39,)),
    "more than numbers can say": hostile.oversized_array_header((2**62, 2**62)),
    "a negative size": hostile.oversized_array_header((-1,)),
    "less than there is": hostile.oversized_array_header((0,)),
    "texts of a gigabyte each": hostile.oversized_array_header((3,), "<U268435456"),
    "an archive that unfolds to 64 MB": hostile.zip_bomb(64 * 1024 * 1024),
    "a header that is a program": b"\x93NUMPY\x01\x00\x10\x00__import__('os')",
    "a header without end": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{",
    "nothing": b"",
}


@pytest.mark.parametrize("what", ARRAYS)
def test_an_array_with_a_false_header_is_an_error_before_memory_is_allocated(
    what: str, tmp_path: Path, gate_folder: Path
) -> None:
    (tmp_path / "a.npy").write_bytes(ARRAYS[what])
    assert cost(lambda: read_array(tmp_path / "a.npy")) < FEW
    with pytest.raises(DataError):
        array_from_bytes(ARRAYS[what], "a block")
    with pytest.raises(DataError):
        Gate.load(altered(gate_folder, "question.npy", ARRAYS[what]))


def test_an_array_of_objects_is_never_unpickled(tmp_path: Path, gate_folder: Path) -> None:
    trap = tmp_path / "sprung"
    content = hostile.pickled_array(str(trap))
    np.load((altered(gate_folder, "question.npy", content)) / "question.npy", allow_pickle=True)
    trap.rmdir()  # it works: whoever unpickles it makes the folder
    for refused in (
        lambda: Gate.load(gate_folder),
        lambda: read_array(gate_folder / "question.npy"),
        lambda: array_from_bytes(content, "a block"),
    ):
        with pytest.raises(DataError, match=r"objects"):
            refused()
    assert not trap.exists()


def test_arrays_of_any_shape_round_trip(tmp_path: Path) -> None:
    for one in (
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.eye(3)),
        np.zeros((0, 4), np.float32),
        np.array(3),
        np.array([b"a"]),
    ):
        np.save(tmp_path / "a.npy", one)
        found = read_array(tmp_path / "a.npy")
        assert found.dtype == one.dtype
        np.testing.assert_array_equal(found, one)


def test_links_beyond_the_documents_are_an_error(tmp_path: Path) -> None:
    mention_links(FILMS, TitleIndex.of(FILMS)).save(tmp_path / "links")
    beyond = np.load(tmp_path / "links" / "targets.npy").copy()
    beyond[0] = 10**6
    np.save(tmp_path / "links" / "targets.npy", beyond)
    rehash_manifest(tmp_path / "links", "targets.npy")
    with pytest.raises(DataError, match="point beyond the 8 there are"):
        MentionLinks.load(tmp_path / "links")


# --- manifests


@pytest.fixture
def artefact(tmp_path: Path) -> Path:
    with new_artefact(tmp_path / "made", kind="gate", version=1) as folder:
        (folder / "part.json").write_text("{}", encoding="utf-8")
    (tmp_path / "secret").write_text("{}", encoding="utf-8")
    return tmp_path / "made"


def reopened(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8")) | changes
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    open_artefact(folder, kind="gate", version=1, rebuild="again")


SHA = sha256(b"{}").hexdigest()
LIES: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "a file above the folder": ({"files": {"../secret": SHA}}, DataError),
    "a way out and in again": ({"files": {"x/../../secret": SHA}}, DataError),
    "an absolute path": ({"files": {"/etc/hostname": SHA}}, DataError),
    "a name that no disk holds": ({"files": {"a" * 5000: SHA}}, DataError),
    "half a letter": ({"files": {"\ud800": SHA}}, DataError),
    "an end of text": ({"files": {"part.json\0": SHA}}, DataError),
    "another hash": ({"files": {"part.json": "0" * 64}}, DataError),
    "a hash that is a number": ({"files": {"part.json": 5}}, DataError),
    "a file that is not there": ({"files": {"more.json": SHA}}, DataError),
    "the folder itself": ({"files": {".": SHA}}, DataError),
    "a list of files": ({"files": ["part.json"]}, DataError),
    "a version in words": ({"version": "one"}, DataError),
    "a version that is true": ({"version": True}, DataError),
    "a newer version": ({"version": 99}, NotReadyError),
    "another kind": ({"kind": "library"}, InputError),
    "a kind that is a list": ({"kind": ["gate"]}, DataError),
    "settings that are a text": ({"settings": "k=3"}, DataError),
    "a field too many": ({"signature": "trust me"}, DataError),
}


@pytest.mark.parametrize("what", LIES)
def test_a_false_manifest_is_an_error(what: str, artefact: Path) -> None:
    changes, error = LIES[what]
    reopened(artefact)
    with pytest.raises(error) as caught:
        reopened(artefact, **changes)
    assert caught.value.hint == "again"  # type: ignore[attr-defined]


def test_a_link_out_of_the_folder_is_an_error_even_with_the_right_hash(artefact: Path) -> None:
    (artefact / "part.json").unlink()
    (artefact / "part.json").symlink_to(artefact.parent / "secret")
    with pytest.raises(DataError, match="outside its folder"):
        reopened(artefact)


NO_MANIFESTS = {
    "lists without a floor": "[" * 100_000,
    "objects without a floor": '{"kind": ' * 20_000,
    "nothing in it": "{}",
    "a list": "[]",
    "nothing at all": "null",
    "two kinds": '{"kind": "gate", "kind": 3}',
    "a mark before it": "\ufeff{}",
}


@pytest.mark.parametrize("content", NO_MANIFESTS.values(), ids=NO_MANIFESTS)
def test_an_invalid_manifest_is_an_error(content: str, artefact: Path) -> None:
    (artefact / MANIFEST).write_text(content, encoding="utf-8")
    with pytest.raises(DataError):
        open_artefact(artefact, kind="gate", version=1, rebuild="again")


def test_a_huge_manifest_is_not_read(artefact: Path) -> None:
    with (artefact / MANIFEST).open("r+b") as stream:
        stream.truncate(2**40)  # a hole: it takes no room on the disk
    assert cost(lambda: open_artefact(artefact, kind="gate", version=1, rebuild="again")) < FEW


# --- records


@pytest.mark.parametrize(
    "deep", ["[" * 200_000, '{"a":' * 100_000, "[[]," * 100_000], ids=["lists", "objects", "both"]
)
def test_endless_nesting_is_a_bad_record(deep: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text(deep, encoding="utf-8")
    with pytest.raises(InputError):
        list(read_jsonl(path, BadRecords()))
    with pytest.raises(InputError):
        list(read_json_array(path, BadRecords()))


def test_an_endless_line_costs_no_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.storage.records.MAX_RECORD_BYTES", 1024 * 1024)
    path = tmp_path / "long.jsonl"
    with path.open("wb") as stream:
        stream.truncate(256 * 1024 * 1024)
    assert cost(lambda: list(read_jsonl(path, BadRecords()))) < FEW


# --- nothing is unpickled


LOADERS = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "torch",
    "yaml",
    "np",
    "numpy",
}
LOADING = {"load", "loads", "open", "Unpickler", "read_pickle"}


def loads_anything(tree: ast.AST) -> list[str]:
    """Calls that could run what a file says: np.load and its kin, eval, exec. json and tomllib
    cannot.
    """
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="eval" | "exec" | "compile" as name)):
                found.append(f"{name}: line {node.lineno}")
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (
                module in LOADERS and name in LOADING
            ):
                found.append(f"{module}.{name}: line {node.lineno}")
    return found


@pytest.mark.parametrize(
    "planted",
    [
        "np.load('f')",
        "np.load('f', allow_pickle=False)",
        "torch.load('f')",
        "yaml.load(x)",
        "eval('1')",
        "joblib.load(f)",
    ],
)
def test_the_rule_finds_planted_code(planted: str) -> None:
    assert loads_anything(ast.parse(planted))


def test_no_code_of_the_package_unpickles_or_evaluates() -> None:
    source = Path(suffice.__file__).parent
    found = {
        str(file.relative_to(source)): calls
        for file in sorted(source.rglob("*.py"))
        if (calls := loads_anything(ast.parse(file.read_text(encoding="utf-8"))))
    }
    assert found == {}
