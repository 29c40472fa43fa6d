"""The budget: what many releases cost together, and a ledger that never forgets.

`spending` records what one release spent, whatever made it, and `payment` is how every system pays:
debit, draw, store. `accounting` adds up what was spent, `ledger` keeps it in SQLite or PostgreSQL.
"""

from quiltwork._offered import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
