"""Tables of many providers: checking and making tables that colluding providers cannot undo."""

from quiltwork._lazy import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
