"""Accounting: what many releases from the same data cost together, and how to plan them.

`Accountant` keeps the total of one series; `compose` has the theorems as functions.
"""

from quiltwork.accounting.accountant import Accountant
from quiltwork.accounting.spending import Spending

__all__ = ["Accountant", "Spending"]
