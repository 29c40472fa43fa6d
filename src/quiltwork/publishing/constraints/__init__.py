"""Privacy constraints on a group of records; one module each, joined by `&`."""

from quiltwork.publishing.constraints.base import (
    Conjunction,
    Constraint,
    Custom,
    as_constraint,
)
from quiltwork.publishing.constraints.entropy import EntropyLDiversity
from quiltwork.publishing.constraints.k_anonymity import KAnonymity
from quiltwork.publishing.constraints.l_diversity import LDiversity
from quiltwork.publishing.constraints.recursive import RecursiveLDiversity
from quiltwork.publishing.constraints.t_closeness import TCloseness

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
