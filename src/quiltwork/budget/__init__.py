"""Budgets: the joint cost of many releases, and a ledger that records every one.

`spending` is the record of one release for accounting, and `payment` the order in which every
system pays: debit, draw, store. `accounting` computes the cost of many releases, `ledger` stores
them in SQLite or PostgreSQL. `monitoring` and `gaussian_monitor` analyse plain differential privacy
at every step, `deployments` and `other_libraries` bring in releases of others.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
