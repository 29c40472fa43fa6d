"""quiltwork: private releases from data where people and moments are tied to each other.

Every public name is imported on first use, so that `import quiltwork` costs little more than
NumPy and a command pays only for the rooms it enters.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
__all__ += ["audit", "queries"]
