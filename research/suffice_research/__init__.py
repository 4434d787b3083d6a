"""The research behind suffice: reproductions of five papers, their data and models, and training.

Everything plugs into `suffice` through entry points: studies (`suffice reproduce magaf`),
retrievers, baselines, answering systems and the controlled collection. `training` makes the shipped
models.
"""

__all__ = ["CACHING_STUDIES", "SLOW_STUDIES", "STUDY_NAMES"]

STUDY_NAMES = ("magaf", "frames", "multi-meta-rag", "grade", "par-rag")
SLOW_STUDIES = ("multi-meta-rag", "grade")  # with a slow part: --quality
CACHING_STUDIES = ("multi-meta-rag", "par-rag")  # cache vectors, scores or gates: --cache
