"""Is the evidence that was retrieved for this multi-hop question complete?"""

__version__ = "0.1.0"

__all__ = ["__version__"]
