"""Privacy constraints on a group of records; joined by `&`."""

from quiltwork.tables.constraints.constraint import (
    Conjunction,
    Constraint,
    Custom,
    KAnonymity,
    LDiversity,
    as_constraint,
)
from quiltwork.tables.constraints.distributions import (
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
)

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
