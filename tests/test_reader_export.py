"""The reader's files: their numbers are those of a plain transformer, and weights come out as they
went in.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from suffice.gate.reader import (
    JOINT_FILE,
    MAX_HITS,
    PAIR_FILE,
    READER_KIND,
    READER_VERSION,
    SHIPPED_READER,
    Reader,
    _Window,
)
from suffice.storage import new_artefact
from suffice_research.training.reader_export import (
    BASE_POSITIONS,
    HIDDEN,
    WORDS,
    check_weights,
    exported_weights,
    to_levels,
    write_models,
)
from suffice_research.training.reader_weights import read_weights, write_weights

Arrays = dict[str, np.ndarray]


def a_linear_map(draw: np.random.Generator, name: str, to: int, of: int = HIDDEN) -> Arrays:
    matrix = draw.normal(0, of**-0.5, (to, of))
    return {f"{name}.weight": matrix, f"{name}.bias": draw.normal(0, 0.1, to)}


@pytest.fixture(scope="module")
def weights() -> Arrays:
    """Of a reader with one layer for each stage and sixty words."""
    draw = np.random.default_rng(3)
    found: Arrays = {"whole": draw.normal(0, 0.3, HIDDEN), WORDS: draw.normal(0, 1, (60, HIDDEN))}
    for name, rows in (("positions", BASE_POSITIONS), ("types", 2), ("slots", MAX_HITS)):
        found[f"{name}.weight"] = draw.normal(0, 0.3, (rows, HIDDEN))
    for name in (
        "norm",
        *(f"{stage}.0.{one}" for stage in ("pair", "joint") for one in ("norm", "final")),
    ):
        found |= {
            f"{name}.weight": draw.normal(1, 0.1, HIDDEN),
            f"{name}.bias": draw.normal(0, 0.1, HIDDEN),
        }
    for stage in ("pair", "joint"):
        for part in ("query", "key", "value", "out"):
            found |= a_linear_map(draw, f"{stage}.0.{part}", HIDDEN)
        found |= a_linear_map(draw, f"{stage}.0.up", 4 * HIDDEN)
        found |= a_linear_map(draw, f"{stage}.0.down", HIDDEN, 4 * HIDDEN)
    for name, size in {
        "needed": 1,
        "evidence": 1,
        "relevance": 1,
        "complete": 1,
        "count": 6,
        "answer": 4,
    }.items():
        found |= a_linear_map(draw, f"to_{name}", size)
    found |= a_linear_map(draw, "to_place", 2, 2 * HIDDEN) | a_linear_map(
        draw, "to_set", HIDDEN, 2 * HIDDEN
    )
    # Half precision is what a training writes; words are the base's, in int8.
    halves = {name: one.astype(np.float16).astype(np.float32) for name, one in found.items()}
    levels, scale = to_levels(halves[WORDS])
    return {**halves, WORDS: levels * scale[:, None]}


class PlainReader:
    """The same, straight from `reader_model`, in numpy."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.weights = weights

    def linear(self, x: np.ndarray, name: str) -> Any:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> Any:
        even = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        return even * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def layer(self, x: np.ndarray, name: str) -> Any:
        query, key, value = (
            self.linear(x, f"{name}.{part}").reshape(len(x), 12, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(HIDDEN / 12)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        read = (shares / shares.sum(-1, keepdims=True) @ value).transpose(1, 0, 2)
        x = self.norm(x + self.linear(read.reshape(len(x), -1), f"{name}.out"), f"{name}.norm")
        made = self.linear(np.maximum(self.linear(x, f"{name}.up"), 0), f"{name}.down")
        return self.norm(x + made, f"{name}.final")

    def run(self, windows: list[tuple[int, list[int], int]]) -> dict[str, Any]:
        """Windows are a slot, ids and the length of the question's part."""
        own, tokens, blocks, slots = self.weights, [], [], []
        for slot, ids, head in windows:
            kinds = own["types.weight"][(np.arange(len(ids)) >= head).astype(int)]
            x = own[WORDS][ids] + own["positions.weight"][: len(ids)] + kinds
            x = self.layer(self.norm(x, "norm"), "pair.0")
            tokens.append(x)
            blocks.append([x[0], *(x[at : at + 4].mean(0) for at in range(1, len(x), 4))])
            slots += [slot] * len(blocks[-1])
        y = np.concatenate(
            [own["whole"][None], np.concatenate(blocks) + own["slots.weight"][slots]]
        )
        y = self.layer(y, "joint.0")
        ends = np.cumsum([len(one) for one in blocks])
        above = np.split(y[1:], ends[:-1])
        firsts = np.stack([one[0] for one in above])
        about = np.tanh(self.linear(np.concatenate([y[0], firsts.max(0)]), "to_set"))
        spans = [
            self.linear(
                np.concatenate([x, up[[0, *(1 + np.arange(len(x) - 1) // 4)]]], 1), "to_place"
            )
            for x, up in zip(tokens, above, strict=True)
        ]
        return {
            "needed": self.linear(firsts, "to_needed")[:, 0],
            "relevance": np.array([self.linear(x[0], "to_relevance")[0] for x in tokens]),
            "complete": self.linear(about, "to_complete")[0],
            "counts": self.linear(about, "to_count"), "answer": self.linear(about, "to_answer"),
            "evidence": [self.linear(one[1:], "to_evidence")[:, 0] for one in above],
            "spans": spans,
        }  # fmt: skip


def written(weights: Arrays, folder: Path, *, exact: bool = False) -> Reader:
    with new_artefact(folder, kind=READER_KIND, version=READER_VERSION) as draft:
        write_models(weights, draft, exact=exact)
        shutil.copy(SHIPPED_READER / "tokenizer.json", draft / "tokenizer.json")
    return Reader(folder, threads=1)


@pytest.mark.parametrize(("exact", "by"), [(True, 1e-3), (False, 0.15)])
def test_the_files_say_what_a_plain_transformer_says(
    weights: Arrays, tmp_path: Path, exact: bool, by: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    import suffice.gate.reader as module

    monkeypatch.setattr(module, "CLS", 1)
    monkeypatch.setattr(module, "SEP", 2)
    reader = written(weights, tmp_path / "reader", exact=exact)
    # Windows whose last block has one to four tokens.
    asked, texts = [5, 6, 7], [[9], [10, 11, 12], list(range(20, 45)), list(range(13, 39))]
    windows = [_Window(slot, ids, []) for slot, ids in zip((0, 1, 1, 31), texts, strict=True)]
    found = reader._run(asked, windows)._asdict()
    rows = [(one.hit, [1, *asked, 2, *one.ids, 2], len(asked) + 2) for one in windows]
    wanted = PlainReader(weights).run(rows)
    for name, value in wanted.items():
        several = isinstance(value, list)
        pairs = zip(value, found[name], strict=True) if several else [(value, found[name])]
        for one, other in pairs:
            np.testing.assert_allclose(other, one, atol=by, err_msg=name)


def test_weights_come_out_as_they_went_in(weights: Arrays, tmp_path: Path) -> None:
    first = written(weights, tmp_path / "first")
    taken = exported_weights(first.folder)
    check_weights(taken)
    words = taken.pop(WORDS)
    paths = write_weights(taken, tmp_path / "start", small=False, limit=4_000_000)
    assert len(paths) > 1
    again = {**read_weights(paths), WORDS: words}
    write_models(again, tmp_path)
    for file in (PAIR_FILE, JOINT_FILE):
        assert (tmp_path / file).read_bytes() == (first.folder / file).read_bytes()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("joint.0.up.bias", None, "joint.0.up.bias is absent"),
        ("joint.0.up.bias", np.zeros(3), r"joint.0.up.bias is \(3,\), expected \(1536,\)"),
        ("distances.weight", np.zeros((32, 12)), "distances.weight is .*, expected none"),
        ("whole", np.full(HIDDEN, np.nan), "whole has NaN"),
    ],
)  # fmt: skip
def test_other_weights_than_a_readers_are_refused(
    weights: Arrays, name: str, value: np.ndarray | None, message: str
) -> None:
    other = {one: kept for one, kept in weights.items() if one != name}
    if value is not None:
        other[name] = value
    with pytest.raises(SystemExit, match=message):
        check_weights(other)
