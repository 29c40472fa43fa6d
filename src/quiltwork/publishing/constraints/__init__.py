"""Privacy constraints on a group of records; one module each, joined by `&`."""

from quiltwork.publishing.constraints.base import (
    Conjunction,
    Constraint,
    Custom,
    as_constraint,
)
from quiltwork.publishing.constraints.k_anonymity import KAnonymity
from quiltwork.publishing.constraints.l_diversity import LDiversity

__all__ = ["Conjunction", "Constraint", "Custom", "KAnonymity", "LDiversity", "as_constraint"]
