"""What a published table lets others learn: who is in it, what they have, what it does not say."""

from quiltwork.publishing.risk.assessment import Assessment, assess
from quiltwork.publishing.risk.definetti import Learned, definetti, definetti_on
from quiltwork.publishing.risk.downcoding import Downcoded, downcoding, downcoding_of
from quiltwork.publishing.risk.intersection import Intersection, intersection
from quiltwork.publishing.risk.minimality import Refused, refused_cuts

__all__ = [
    "Assessment",
    "Downcoded",
    "Intersection",
    "Learned",
    "Refused",
    "assess",
    "definetti",
    "definetti_on",
    "downcoding",
    "downcoding_of",
    "intersection",
    "refused_cuts",
]
