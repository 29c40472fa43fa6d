"""The budget: what many releases cost together, and a ledger that never forgets.

`Accountant` keeps the total of one series, `plan` finds the noise for releases to come,
`compose` has the theorems as functions, and `Ledger` keeps budgets in SQLite or PostgreSQL.
"""

from quiltwork._lazy import offered

__getattr__, __dir__, __all__ = offered(__name__, __file__)
