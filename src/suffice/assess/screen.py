"""The screen of a wary gate: hits that seem stuffed with the question's words are not read, nor what others said before them.

The gate counts what the hits hold together, and anybody's document adds to that. Two small models look at each hit as the gate
reads it, and at what supports that (`assess.support`): one says whether somebody put the question's words there, the other
whether the hit is evidence. True evidence restates its question, too: a hit that may be evidence is left out only where the
first is sure, any other where it is suspect. Of what is left, a text that stands in several hits is read in the first of them
(`assess.repeats`). `training.screen` makes the one that ships.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.assess.features import AMONG
from suffice.assess.incoming import Taken
from suffice.assess.looking import Looked, bylined, look
from suffice.assess.parts import Judge, hit_rows
from suffice.assess.reading import HIT_COLUMNS
from suffice.assess.repeats import said_once
from suffice.assess.support import SUPPORT_HIT, support
from suffice.assess.words import Words
from suffice.errors import DataError, NotReadyError, SufficeError
from suffice.files import new_artefact, open_artefact, read_json_object, write_atomically

__all__ = ["COLUMNS", "Screen", "screened_rows"]

Floats = npt.NDArray[np.floating[Any]]
KIND, VERSION, RECORD = "screen", 1, "screen.json"
SHIPPED = Path(__file__).parent.parent / "models" / "screen"
REMAKE = "python -m training.screen --data DIR"
_PARTS, _CHANCES = ("evidence", "stuffed"), ("likely", "suspect", "sure")


@dataclass(frozen=True)
class Screen:
    """What is sure to be stuffed is not believed, nor what is suspect and no likely evidence; all chances from 0 to 1."""

    evidence: Judge
    stuffed: Judge
    likely: float
    suspect: float
    sure: float

    def believed(self, taken: Sequence[Taken], words: Words) -> list[Taken]:
        """Each list without the hits that are not, and without what is said again; perhaps nothing is left."""
        seen = look(taken, words)
        rows = screened_rows(seen, words)
        stuffed = self.stuffed.p(rows)
        kept = (stuffed <= self.suspect) | ((stuffed <= self.sure) & (self.evidence.p(rows) >= self.likely))
        ends = list(accumulate(len(one.hits) for one in seen.readings))
        return [said_once(_narrowed(one, kept[start:end])) for one, start, end in zip(taken, [0, *ends], ends, strict=False)]

    def save(self, path: Path, *, card: Mapping[str, Any], seed: int) -> None:
        """Write the screen as one artefact folder; `card` says what it was made of."""
        settings = {**card, "schema": _schema()}
        with new_artefact(Path(path), kind=KIND, version=VERSION, settings=settings, seed=seed) as folder:
            record: dict[str, Any] = {name: getattr(self, name).save(folder / f"{name}.onnx") for name in _PARTS}
            record |= {name: getattr(self, name) for name in _CHANCES}
            write_atomically(folder / RECORD, json.dumps(record, sort_keys=True) + "\n")

    @classmethod
    def load(cls, path: Path | None = None) -> Screen:
        """The screen in a folder; without a path the one that ships.

        NotReadyError where it is none, or looks at other columns; DataError where it is damaged.
        """
        folder = SHIPPED if path is None else Path(path)
        if open_artefact(folder, kind=KIND, version=VERSION, rebuild=REMAKE).settings.get("schema") != _schema():
            raise NotReadyError(f"{folder} looks at other columns than this suffice has", hint=REMAKE)
        try:
            told = {entry.key: entry.value for entry in read_json_object(folder / RECORD)}
            evidence, stuffed = (Judge.load(folder / f"{name}.onnx", told[name]) for name in _PARTS)
            chances = [float(told[name]) for name in _CHANCES]
            if not all(0 <= one <= 1 for one in chances) or {evidence.columns, stuffed.columns} != {COLUMNS}:
                raise ValueError("its parts do not fit together")
            return cls(evidence, stuffed, *chances)
        except DataError:
            raise
        except (SufficeError, ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            raise DataError(f"the screen in {folder} cannot be read: {error!r:.300}", hint=REMAKE) from error


def screened_rows(seen: Looked, words: Words) -> Floats:
    """What a screen looks at in the hits of all lists: as the gate reads them, and what supports that."""
    documents = [[one.evidence.documents[hit.doc_id] for hit in one.evidence.hits] for one in seen.taken]
    supported = [
        support(asked, [one.title for one in held], [bylined(one) for one in held], words)
        for asked, held in zip(seen.asked, documents, strict=True)
    ]
    return hit_rows(seen.readings, supported)


COLUMNS = len(HIT_COLUMNS) + 2 * len(AMONG) + len(SUPPORT_HIT)


def _schema() -> str:
    """A hash of every column: a screen fitted on others cannot be used."""
    return hashlib.sha256(json.dumps([HIT_COLUMNS, AMONG, list(SUPPORT_HIT)]).encode()).hexdigest()


def _narrowed(taken: Taken, kept: npt.NDArray[np.bool_]) -> Taken:
    if kept.all():
        return taken
    hits = tuple(hit for hit, keep in zip(taken.evidence.hits, kept.tolist(), strict=True) if keep)
    names = {hit.doc_id for hit in hits}
    folded = {name: others for name, others in taken.folded.items() if name in names}
    return Taken(replace(taken.evidence, hits=hits), folded)
