"""The budget: what many releases cost together, and a ledger that never forgets.

`spending` records what one release spent, whatever made it, and `payment` is how every system pays:
debit, draw, store. `accounting` adds up what was spent, `ledger` keeps it in SQLite or PostgreSQL.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
