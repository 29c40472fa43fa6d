"""Privacy constraints on a group of records; joined by `&`."""

from quiltwork.tables.constraints.constraint import (
    Conjunction,
    Constraint,
    Custom,
    as_constraint,
)
from quiltwork.tables.constraints.distributions import (
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.constraints.sizes import KAnonymity, LDiversity

__all__ = [
    "Conjunction",
    "Constraint",
    "Custom",
    "EntropyLDiversity",
    "KAnonymity",
    "LDiversity",
    "RecursiveLDiversity",
    "TCloseness",
    "as_constraint",
]
