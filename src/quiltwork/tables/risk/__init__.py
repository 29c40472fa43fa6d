"""Risks of a published table: re-identification, disclosure, and five attacks."""

from quiltwork.tables.risk.assessment import Assessment, assess
from quiltwork.tables.risk.attacks import CutInfo, TableAttack
from quiltwork.tables.risk.definetti import LearnerScore, definetti, definetti_of_texts
from quiltwork.tables.risk.downcoding import DowncodingResult, downcoding, downcoding_of_texts
from quiltwork.tables.risk.intersection import Intersection, intersection, rehearse_intersection
from quiltwork.tables.risk.subtraction import SubtractionResult, subtraction

__all__ = [
    "Assessment",
    "CutInfo",
    "DowncodingResult",
    "Intersection",
    "LearnerScore",
    "SubtractionResult",
    "TableAttack",
    "assess",
    "definetti",
    "definetti_of_texts",
    "downcoding",
    "downcoding_of_texts",
    "intersection",
    "rehearse_intersection",
    "subtraction",
]
