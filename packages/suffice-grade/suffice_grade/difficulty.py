"""The distance of a question from its evidence: GRADE's retrieval difficulty.

    D_r(question) = 1 - aggregate over the documents it needs of similarity(question, document)

The default aggregate is the minimum: one needed document that is unlike the question is enough to
break the chain. The paper also uses the mean and the power mean (p = -2). Quartiles of D_r are the
columns of the difficulty matrix, and hops are its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import InputError, did_you_mean
from suffice.protocols import Encoder
from suffice.retrieval.corpus import searchable_text
from suffice.types import Document

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
POWER = -2.0
FLOOR = 0.01  # a power mean needs positive similarities; below this, all documents are equally far


def _power_mean(values: Floats, starts: Ints, counts: Ints) -> Floats:
    powers = np.add.reduceat(np.maximum(values, FLOOR) ** POWER, starts) / counts
    means: Floats = powers ** (1 / POWER)
    return means


# Arguments: all similarities, the offset of each question's first one, and how many it has.
AGGREGATIONS: Mapping[str, Callable[[Floats, Ints, Ints], Floats]] = {
    "min": lambda values, starts, counts: np.minimum.reduceat(values, starts),
    "power": _power_mean,
    "mean": lambda values, starts, counts: np.add.reduceat(values, starts) / counts,
}


@dataclass(frozen=True)
class Similarities:
    """Similarities to the needed documents, concatenated over questions, and the count of each."""

    values: Floats
    counts: Ints

    def difficulty(self, aggregation: str = "min") -> Floats:
        """D_r: (questions,); NaN if a question needs no document."""
        if aggregation not in AGGREGATIONS:
            raise InputError(
                f"no aggregation is named {aggregation!r}",
                hint=did_you_mean(aggregation, AGGREGATIONS),
            )
        found = np.full(len(self.counts), np.nan)
        some = self.counts > 0
        if some.any():
            starts = (np.cumsum(self.counts) - self.counts)[some]
            found[some] = 1.0 - AGGREGATIONS[aggregation](self.values, starts, self.counts[some])
        return found


def similarities(
    questions: Sequence[str], needed: Sequence[Sequence[Document]], encoder: Encoder
) -> Similarities:
    """Cosine of each question with each document it needs; each document is encoded once."""
    if len(questions) != len(needed):
        raise InputError(
            f"{len(questions)} questions and {len(needed)} lists of documents, expected one each"
        )
    rows: dict[str, int] = {}
    texts = (searchable_text(document) for documents in needed for document in documents)
    at = np.fromiter((rows.setdefault(text, len(rows)) for text in texts), np.intp)
    counts = np.fromiter(map(len, needed), np.intp, len(needed))
    if not len(at):
        return Similarities(np.zeros(0), counts)
    question_vectors: npt.NDArray[Any] = encoder.encode(list(questions), query=True)
    row_vectors: npt.NDArray[Any] = encoder.encode(list(rows))
    cosines = np.einsum(
        "ij,ij->i", question_vectors[np.repeat(np.arange(len(questions)), counts)], row_vectors[at]
    )
    return Similarities(cosines.astype(np.float64), counts)


@dataclass(frozen=True)
class Quantiles:
    """The inner edges of equal shares, and each question's bin: 0 is the easiest, -1 is NaN."""

    edges: tuple[float, ...]
    bins: Ints


def split_by_quantiles(values: npt.ArrayLike, *, parts: int = 4) -> Quantiles:
    """Quartiles, or another number of parts. Equal values share the lower bin."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or parts < 1:
        raise InputError(
            f"values have shape {column.shape} and parts is {parts}, "
            "expected one value a question and at least one part"
        )
    known = ~np.isnan(column)
    bins = np.full(len(column), -1, np.intp)
    if not known.any():
        return Quantiles((), bins)
    edges = np.quantile(column[known], np.arange(1, parts) / parts)
    bins[known] = np.searchsorted(edges, column[known], side="left")
    return Quantiles(tuple(edges.tolist()), bins)
