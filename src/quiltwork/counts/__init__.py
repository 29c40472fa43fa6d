"""Counts for everyone: the geometric mechanism, released once, and each consumer's optimum.

`chains` has the optimal mechanism for people or moments tied by a chain.
"""

from quiltwork._lazy import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
