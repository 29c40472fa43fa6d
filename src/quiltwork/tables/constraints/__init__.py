"""Privacy constraints on the records of a group; `&` joins them."""

from quiltwork.tables.constraints.constraint import (
    Conjunction,
    Constraint,
    Custom,
    as_constraint,
    score,
)
from quiltwork.tables.constraints.entropy_l_diversity import EntropyLDiversity
from quiltwork.tables.constraints.k_anonymity import KAnonymity
from quiltwork.tables.constraints.l_diversity import LDiversity
from quiltwork.tables.constraints.recursive_l_diversity import RecursiveLDiversity
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
    "score",
]
