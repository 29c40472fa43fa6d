"""Privacy constraints on a group of records; joined by `&`."""

from quiltwork.tables.constraints.base import (
    Conjunction,
    Constraint,
    Custom,
    as_constraint,
)
from quiltwork.tables.constraints.entropy import EntropyLDiversity
from quiltwork.tables.constraints.recursive import RecursiveLDiversity
from quiltwork.tables.constraints.sizes import KAnonymity, LDiversity
from quiltwork.tables.constraints.t_closeness import TCloseness

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
