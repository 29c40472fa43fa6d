"""What many releases from the same data cost together, and how to plan them."""

from quiltwork.accounting.spending import Spending

__all__ = ["Spending"]
