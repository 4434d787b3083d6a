"""Lists are drawn alike from the same pack and seed, and a pack that will not do is told."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from suffice_research.training.reader_lists import (
    COLON,
    Pack,
    _windows,
    collate,
    draw_lists,
    draw_pair,
    hit_tokens,
)


def made_pack(path: Path, passages: int = 60, cases: int = 20) -> Pack:
    """A pack of random tokens."""
    draw = np.random.default_rng(0)

    def rows(name: str, given: list[np.ndarray]) -> dict[str, np.ndarray]:
        starts = np.cumsum([0, *map(len, given)])
        return {name: np.concatenate(given).astype(np.uint16), f"{name}_starts": starts}

    def tokens(low: int, high: int) -> np.ndarray:
        ids = draw.integers(2000, 2400, int(draw.integers(low, high)))
        ids[9::10] = 1012  # a full stop
        return ids

    numbers = [draw.permutation(passages)[:12] for _ in range(cases)]
    ends = [np.array([one[0], 2, 6]) for one in numbers]
    arrays = {
        "names": np.array(["everyday/made", "hotpotqa"]), "source": np.arange(cases) % 2,
        "part": np.zeros(cases, np.int8), "answer": np.arange(cases) % 4,
        "kinds": np.where(np.arange(2400) % 7, 2, 5).astype(np.uint8), "shown": np.arange(passages),
        **rows("texts", [tokens(20, 260) for _ in range(passages)]),
        **rows("titles", [tokens(1, 9) for _ in range(passages)]),
        **rows("questions", [tokens(6, 14) for _ in range(3 * cases)]),
        **rows("orders", [tokens(5, 9) for _ in range(4)]),
        **rows("needed", [one[: 1 + at % 3] for at, one in enumerate(numbers)]),
        **rows("distractors", [one[3:6] for one in numbers]),
        **rows("retrieved", [one[[0, *range(6, len(one))]] for one in numbers]),
        **rows("titled", [one[:0] for one in numbers]),
        **rows("evidence", [one if at % 2 else one[:0] for at, one in enumerate(ends)]),
        **rows("answers", ends),
    }  # fmt: skip
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return Pack(path)


def pools(pack: Pack) -> dict[str, np.ndarray]:
    return {name: pack.cases_of(0, name) for name in ("everyday", "hotpotqa")}


def test_the_same_seed_draws_the_same_lists_as_ever(tmp_path):
    """A teacher's file holds no lists: training draws them again (`TeacherLabels`)."""
    made, found, lists = made_pack(tmp_path / "pack.npz"), hashlib.sha256(), []
    for seed in range(30):
        draw = np.random.default_rng(seed)
        lists.append(draw_lists(made, pools(made), 64, draw))
        for one in vars(collate(made, lists[-1], draw)).values():
            found.update(np.ascontiguousarray(one).tobytes())
    hits = [hit for some in lists for one in some for hit in one.hits]
    for hit in hits:
        found.update(repr(hit_tokens(made, hit)).encode())
    for kind in ("renames", "kept", "before", "behind"):
        assert any(getattr(hit, kind) for hit in hits), kind
    assert any(hit.cut != (0, 0) for hit in hits)
    assert any(len(hit.passages) > 1 for hit in hits)
    assert found.hexdigest() == "92756bdb5c685a871bd7124a0458d56e3754ccf47e1cc47aa87151438bdac95e"


def test_reader_and_teacher_read_the_same_tokens(tmp_path):
    """An order before a text stands behind its title for both."""
    made = made_pack(tmp_path / "pack.npz")
    for listed in draw_lists(made, pools(made), 256, np.random.default_rng(6)):
        for hit in listed.hits:
            title, text = hit_tokens(made, hit)
            (ids, _, _), *_ = _windows(made, listed, hit)
            shown = ids[len(listed.question) + 2 : -1]
            whole = [*title, *[COLON] * bool(title), *text]
            assert shown == whole[: len(shown)]


@pytest.mark.parametrize("content", [None, b"", b"text"])
def test_a_file_that_is_no_pack_is_told(tmp_path, content):
    path = tmp_path / "pack.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"pack\.npz is not a pack of `reader_data`"):
        Pack(path)


def test_other_arrays_are_no_pack(tmp_path):
    np.savez(tmp_path / "taught.npz", p=np.zeros(3))
    with pytest.raises(ValueError, match="is not a pack of `reader_data`: 'names"):
        Pack(tmp_path / "taught.npz")


def test_a_pack_too_small_for_lists_is_told(tmp_path):
    made = made_pack(tmp_path / "pack.npz", passages=12)
    with pytest.raises(ValueError, match="too few passages for lists of 12 hits"):
        draw_pair(made, 0, 12, np.random.default_rng(0))
    # The third case needs three passages, and this seed draws lists of one hit.
    with pytest.raises(ValueError, match="no case for lists of 1 hits"):
        draw_lists(made, {"everyday": np.array([2])}, 8, np.random.default_rng(29), {"everyday": 1})
