"""The research behind suffice: five papers done again, their data and models, and training.

Everything plugs into `suffice` by entry points: studies (`suffice reproduce magaf`), retrievers,
baselines, answering systems and the controlled collection. `training` makes the models that ship.
"""

__all__ = ["CACHING_STUDIES", "SLOW_STUDIES", "STUDY_NAMES"]

STUDY_NAMES = ("magaf", "frames", "multi-meta-rag", "grade", "par-rag")
SLOW_STUDIES = ("frames", "multi-meta-rag", "grade")  # have a slow part: --quality
CACHING_STUDIES = ("multi-meta-rag", "par-rag")  # keep vectors, scores or gates: --cache
