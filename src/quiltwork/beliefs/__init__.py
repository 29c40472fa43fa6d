"""Beliefs: what an adversary may believe about the data.

`MarkovChain`, `CyclicChain`, `HiddenChain`, `ChainBox`, `Clusters`, `Network` and the Gaussian ones
hold validated, immutable data and answer questions about it; what a belief means for privacy is
computed in `quiltwork.influence`.
"""

from quiltwork.beliefs.alternatives import Candidate, candidates, plausible
from quiltwork.beliefs.base import Belief
from quiltwork.beliefs.box import ChainBox
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.clusters import Clusters
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.beliefs.gaussian import Gaussian, GaussianSeries
from quiltwork.beliefs.gaussian_rows import GaussianRows
from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.hidden import HiddenChain
from quiltwork.beliefs.network import Network
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.sets import (
    as_beliefs,
    belief_from_json,
    beliefs_from_json,
    beliefs_to_json,
)
from quiltwork.beliefs.states import Label

__all__ = [
    "Belief",
    "Candidate",
    "ChainBox",
    "Clusters",
    "CyclicChain",
    "Gaussian",
    "GaussianRows",
    "GaussianSeries",
    "Grid",
    "HiddenChain",
    "Label",
    "MarkovChain",
    "Network",
    "as_beliefs",
    "belief_from_json",
    "beliefs_from_json",
    "beliefs_to_json",
    "candidates",
    "plausible",
    "split_sequences",
]


def __dir__() -> list[str]:
    return sorted(__all__)
