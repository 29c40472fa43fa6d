"""A curator as Python objects, over HTTP, with the standard library alone.

`Curator` asks one, `records` is what it tells, `connection` how it is reached.
"""

from quiltwork._offered import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
