"""A curator as Python objects, over HTTP, with the standard library alone.

`Curator` asks one, `records` is what it tells, `connection` how it is reached.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
