"""The Python client of a curator, over HTTP, with the standard library only.

`Curator` has a method for each operation, `records` the records that they return, `connection` the
requests with their retries.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
