"""Soft clusters of claims: a mixture of Gaussians over their embeddings, with as many components as BIC asks for.

A claim belongs to every component that is likely enough to have made it. The mixture is fitted on a sample where there are many
claims, after a projection to a few dimensions, so that time and memory stay linear in the claims.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.ports import Encoder, Progress

__all__ = ["soft_clusters"]

Floats = npt.NDArray[np.floating[Any]]
DIMENSIONS = 24
SAMPLE = 6_000  # claims that a mixture is fitted on, at most
SIZES = (2, 4, 8, 16, 32, 64)
LIKELY = 0.1  # a component that is at least so likely has the claim
BLOCK = 8_192


def soft_clusters(
    texts: Sequence[str], encoder: Encoder, *, seed: int = 42, sizes: Sequence[int] = SIZES, progress: Progress | None = None
) -> list[tuple[int, ...]]:
    """The clusters of each text, the likeliest first. Fewer texts than components make one cluster of all."""
    from sklearn.decomposition import PCA  # late: slow to import
    from sklearn.mixture import GaussianMixture

    if len(texts) < 4 * min(sizes):
        return [(0,)] * len(texts)
    blocks = []
    for start in range(0, len(texts), BLOCK):
        blocks.append(np.asarray(encoder.encode(texts[start : start + BLOCK]), dtype=np.float32))
        _tell(progress, "encoding claims", min(start + BLOCK, len(texts)), len(texts))
    vectors = np.concatenate(blocks)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE])
    projection = PCA(min(DIMENSIONS, len(chosen) // 2, vectors.shape[1]), random_state=seed, svd_solver="randomized")
    sample = projection.fit_transform(vectors[chosen]).astype(np.float64)
    best, least = None, np.inf
    tried = [size for size in sizes if size * 4 <= len(sample)]
    for at, size in enumerate(tried):
        mixture = GaussianMixture(size, covariance_type="diag", random_state=seed, max_iter=40, reg_covar=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forty rounds are enough for a choice, converged or not
            mixture.fit(sample)
        bic = mixture.bic(sample)
        _tell(progress, "fitting clusters", at + 1, len(tried))
        if bic >= least:
            break
        best, least = mixture, bic
    if best is None:
        return [(0,)] * len(texts)
    found: list[tuple[int, ...]] = []
    for block in blocks:
        likely = best.predict_proba(projection.transform(block).astype(np.float64))
        for row in likely:
            order = np.argsort(-row, kind="stable")
            found.append(tuple(int(one) for one in order if row[one] >= LIKELY) or (int(order[0]),))
    return found


def _tell(progress: Progress | None, what: str, done: int, total: int) -> None:
    if progress is not None:
        progress(what, done, total)
