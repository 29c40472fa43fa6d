"""What a published table lets others learn: who is in it, what they have, what it does not say."""

from quiltwork.tables.risk.assessment import Assessment, assess
from quiltwork.tables.risk.attacks import CutsMade, TableAttack
from quiltwork.tables.risk.definetti import Learned, definetti, definetti_on
from quiltwork.tables.risk.downcoding import Downcoded, downcoding, downcoding_of
from quiltwork.tables.risk.intersection import Intersection, intersection, rehearsed
from quiltwork.tables.risk.subtraction import Subtracted, subtraction

__all__ = [
    "Assessment",
    "CutsMade",
    "Downcoded",
    "Intersection",
    "Learned",
    "Subtracted",
    "TableAttack",
    "assess",
    "definetti",
    "definetti_on",
    "downcoding",
    "downcoding_of",
    "intersection",
    "rehearsed",
    "subtraction",
]
