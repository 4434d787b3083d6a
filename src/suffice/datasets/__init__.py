"""Data sets in their original formats, read one record at a time, and the gold that goes with them."""

from suffice.datasets.dataset import Dataset, Summary, check_gold, describe
from suffice.datasets.gold import Example, Gold, Split, split

__all__ = ["Dataset", "Example", "Gold", "Split", "Summary", "check_gold", "describe", "split"]
