"""Where a search stops, and a calibration that makes what it stops at honest."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.gate.calibration import Platt
from suffice.numeric import sigmoid
from suffice.types import Hit
from suffice_research.training.cases import STACK, TEST
from suffice_research.training.stop_calibration import (
    SearchPath,
    _along,
    _load_paths,
    fit_stop,
    stop_of,
    stop_study,
)


def path(p: list[float], needed_at: int = 1, name: str = "made", part: str = STACK) -> SearchPath:
    """A ranking whose only needed document stands at this place."""
    found = tuple(at == needed_at for at in range(1, 21))
    return SearchPath(name, part, f"{name} {p}", 1, found, tuple(p))


def test_a_search_stops_at_the_threshold_or_goes_back_to_the_best() -> None:
    rising = path([0.1, 0.4, 0.8, 0.98])
    assert stop_of(rising, None, 0.3)[::3] == (2, True)
    assert stop_of(rising, None, 0.9)[::3] == (4, True)
    harsh = Platt(1.0, -9.0)
    assert stop_of(rising, harsh, 0.9)[::3] == (4, True)  # nothing was looked at beyond
    falling = path([0.2, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert stop_of(falling, None, 0.9)[::3] == (2, False)
    # What it goes back to was not stopped at for looking complete: the gate's own odds hold.
    assert sigmoid(np.array([stop_of(falling, harsh, 0.9).odds])) == pytest.approx(0.3)
    endless = path(np.linspace(0.1, 0.5, 10).tolist())
    assert stop_of(endless, None, 0.9)[::3] == (10, False)


@pytest.fixture(scope="module")
def flattered() -> list[SearchPath]:
    """Of sets that the gate gives p, about sigmoid(log-odds of p - 1) are complete."""
    draw, made = np.random.default_rng(7), []
    for number in range(120):
        odds = draw.normal(0, 1.5, 10)
        at = int(draw.integers(10))
        complete = draw.random() < sigmoid(odds[at : at + 1] - 1)[0]
        p = np.where(np.arange(10) < at, 0.05, sigmoid(odds[at : at + 1]))
        part, name = (STACK, TEST)[number % 2], f"set {number % 3}"
        made.append(path(p.tolist(), at + 1 if complete else 20, name, part))
    return made


def test_the_calibration_takes_back_what_stopping_flatters(flattered: list[SearchPath]) -> None:
    def too_sure(calibration: Platt | None) -> float:
        stops = [(one, stop_of(one, calibration, 0.3)) for one in flattered]
        answered = [(stop.odds, one.complete(stop.hits)) for one, stop in stops if stop.answers]
        odds, complete = map(np.array, zip(*answered, strict=True))
        return float(sigmoid(odds).mean() - complete.mean())

    assert too_sure(None) > 0.1
    assert abs(too_sure(fit_stop(flattered))) < 0.1


def test_the_study_has_a_row_for_every_judged_set(flattered: list[SearchPath]) -> None:
    study = stop_study(flattered[:30], 0.3, {})
    # Those in part `stack` are only learned from.
    assert [row[:2] for row in study.tables[0].rows] == [
        ("set 1", 5),
        ("set 0", 5),
        ("set 2", 5),
        ("all", 15),
    ]
    assert study.summary[0].startswith("All sets, as it is: p is 0.")
    assert study.summary[2].startswith("By the calibration that ships")


def test_a_path_is_followed_no_further_than_any_search_goes() -> None:
    class Said:
        def probabilities(self, pairs: list[tuple[str, list[Hit]]], documents: object) -> Any:
            return np.array([[0.1, 0.4, 0.3, 0.4, 0.2, 0.1, 0.9][len(pairs[0][1]) - 1]])

    hits = [Hit(str(at)) for at in range(7)]
    followed = _along(Said(), "q", hits, {})  # type: ignore[arg-type]
    assert followed == (0.1, 0.4, 0.3, 0.4, 0.2, 0.1)
    whole = path([*followed, 0.9])
    assert stop_of(path(list(followed)), None, 0.8) == stop_of(whole, None, 0.8)


def test_a_half_written_path_is_followed_again(tmp_path: Path) -> None:
    kept, one = tmp_path / "paths.jsonl", path([0.1, 0.9])
    kept.write_text(json.dumps(asdict(one)) + '\n{"data_set": "ma', encoding="utf-8")
    assert _load_paths(kept) == [one]
    assert _load_paths(tmp_path / "none") == _load_paths(None) == []
