"""A gate on disk: one artefact folder with its models, its records as JSON, and a manifest that says what made it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import DataError, InputError, NotReadyError
from suffice.gate.extraction import ABSENT_COLUMNS, HIT_COLUMNS, SET_COLUMNS
from suffice.gate.features import FEATURES
from suffice.gate.model import GateModel
from suffice.storage import new_artefact, open_artefact, read_json_object, write_atomically

__all__ = [
    "GATE_KIND",
    "GATE_VERSION",
    "HARDENED",
    "PRESETS",
    "PROBE_QUESTION",
    "SHIPPED_MODELS",
    "feature_schema",
    "open_gate",
    "read_record",
    "readable_gate",
    "write_gate",
]

GATE_KIND, GATE_VERSION = "gate", 1
PRESETS = FAST, QUALITY, HARDENED = (
    "fast",
    "quality",
    "hardened",
)  # any gate is opened as hardened, none is made so
PROBE_QUESTION = "Who taught Ada's teacher in 1843?"  # a question, and a hit that names the same
SHIPPED_MODELS = Path(__file__).parent.parent / "models"
REFIT_COMMAND = "fit it again: suffice fit … --out {path}"


def feature_schema() -> str:
    """A hash of every column the models look at: a gate fitted on others cannot be used."""
    columns = [
        HIT_COLUMNS,
        ABSENT_COLUMNS,
        SET_COLUMNS,
        [(one.family, one.name) for one in FEATURES],
    ]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()


def write_gate(
    path: Path, card: Mapping[str, Any], models: Mapping[str, GateModel], records: Mapping[str, Any]
) -> None:
    """Whole or not at all. The model called "" stands in the folder itself, others in a folder of their name."""
    settings = {**card, "schema": feature_schema(), "model": models[""].settings}
    inputs = {"examples": card["data"]}
    with new_artefact(
        path,
        kind=GATE_KIND,
        version=GATE_VERSION,
        settings=settings,
        inputs=inputs,
        seed=card["seed"],
    ) as folder:
        for name, model in models.items():
            model.save(folder / name)
        for name, record in records.items():
            write_atomically(folder / f"{name}.json", json.dumps(record, sort_keys=True) + "\n")


def open_gate(path: Path | None, preset: str) -> tuple[Path, dict[str, Any]]:
    """The folder of a gate, by path or by the preset of the one that ships, and its card; each file is as it was written.

    NotReadyError where it is no gate, a newer one, or was fitted with other features; DataError where it is damaged.
    """
    if preset not in PRESETS:
        raise InputError(f"preset is {preset!r}, expected one of {', '.join(PRESETS)}")
    folder = (
        SHIPPED_MODELS / f"gate-{FAST if preset == HARDENED else preset}" if path is None else path
    )
    refit = (
        "python -m suffice_research.training.gate"
        if path is None
        else REFIT_COMMAND.format(path=folder)
    )
    card = dict(open_artefact(folder, kind=GATE_KIND, version=GATE_VERSION, rebuild=refit).settings)
    if card.pop("schema", None) != feature_schema():
        raise NotReadyError(
            f"{folder} was fitted with other features than this suffice has", hint=refit
        )
    card.pop("model", None)
    encoders = (card.get("encoder"), card.get("reranker"))
    if (
        type(card.get("k")) is not int
        or card["k"] < 1
        or not all(isinstance(one, str | None) for one in encoders)
    ):
        raise DataError(
            f"the card of {folder} says nothing sound of k and of its encoders", hint=refit
        )
    return folder, card


@contextmanager
def readable_gate(folder: Path) -> Iterator[None]:
    """DataError where what is read from the folder is not what `write` wrote: of another kind, or not fitting together."""
    try:
        with np.errstate(invalid="raise"):  # numbers so large that their difference is none
            yield
    except (DataError, NotReadyError):
        raise
    except (
        InputError,
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        raise DataError(
            f"the gate in {folder} cannot be read: {error!r:.300}",
            hint=REFIT_COMMAND.format(path=folder),
        ) from error


def read_record(folder: Path, name: str, *wanted: str) -> dict[str, Any]:
    """One of a gate's records; DataError where something that is wanted is not in it."""
    record = {entry.key: entry.value for entry in read_json_object(folder / f"{name}.json")}
    try:
        json.dumps(record, allow_nan=False)
    except ValueError as error:
        raise DataError(
            f"{folder / name}.json holds a number that is none",
            hint=REFIT_COMMAND.format(path=folder),
        ) from error
    if lost := [key for key in wanted if key not in record]:
        raise DataError(
            f"{folder / name}.json has no {', '.join(lost)}", hint=REFIT_COMMAND.format(path=folder)
        )
    return record
