"""What a chain from a given start, or any start, can do at each time: supports and marginals.

Supports of X_t become periodic after few steps; marginals approach their limit, and from some node
on all nodes are treated as one, at the price of the remaining projective distance to the limit
(`docs/theory/max-influence.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.stationary import irreducible_stationary
from quiltwork.beliefs.structure import class_period
from quiltwork.influence.kernel import product
from quiltwork.influence.quilts.protocol import FloatArray
from quiltwork.influence.ratios import BoolArray

_SUPPORT_STEPS = 4096
MARGINAL_STEPS = 1 << 16
CONVERGED = 2.0**-36

UNSETTLED_NODES = 64
"""How many nodes of a chain that never mixes are looked at one by one after its supports settle."""


@dataclass(frozen=True, eq=False)
class Supports:
    """The possible states of X_t: `sets[t−1]` up to `settled + period − 1`, then periodic.

    `settled` is the first node of the periodic part, or None if it was not reached. `mixes` tells
    whether the periodic part forgets where it was: one recurrent class, entered in one phase.
    """

    sets: BoolArray
    settled: int | None
    period: int
    mixes: bool

    def at(self, node: int) -> BoolArray:
        """The possible states of X_node."""
        if self.settled is not None and node >= self.settled:
            node = self.settled + (node - self.settled) % self.period
        result: BoolArray = self.sets[node - 1]
        return result

    @property
    def known_prefix(self) -> int:
        """How many nodes from the first on have one possible state."""
        several = np.flatnonzero(self.sets.sum(axis=1) > 1)
        return int(several[0]) if len(several) else len(self.sets)


def supports(chain: MarkovChain, length: int) -> Supports:
    """Follow the possible states of X_1, X_2, … until they repeat. O(k²) per step."""
    step = chain.possible
    current = np.asarray(chain.support(1))
    seen: dict[bytes, int] = {}
    sets: list[BoolArray] = []
    while len(sets) < min(length, _SUPPORT_STEPS) and current.tobytes() not in seen:
        seen[current.tobytes()] = len(sets) + 1
        sets.append(current)
        current = np.asarray(step[current].any(axis=0))
    settled = seen.get(current.tobytes())
    if settled is None:
        return Supports(np.array(sets), None, 1, False)
    period = len(sets) + 1 - settled
    mixes = _forgets(chain, np.array(sets[settled - 1 :]))
    return Supports(np.array(sets), settled, period, mixes)


def _forgets(chain: MarkovChain, cycle: BoolArray) -> bool:
    visited = np.flatnonzero(cycle.any(axis=0))
    for found in chain.recurrent_classes:
        if np.array_equal(found, visited):
            period = class_period(chain.possible[np.ix_(found, found)])
            return period == len(cycle) and bool((cycle.sum(axis=0) == 1)[visited].all())
    return False


@dataclass(frozen=True, eq=False)
class Marginals:
    """Distributions of X_1..X_n, and the limit that later nodes approach; None if there is none.

    Row t−1 of `values` is proportional to the law of X_t, `limit` to what it approaches on its
    support. The projective distance between the two never grows.
    """

    values: FloatArray
    limit: FloatArray | None


def marginals(chain: MarkovChain, possible: Supports, length: int) -> Marginals:
    """Follow the distribution until it is within 2^-36 of its limit, doubling what is known.

    O(k²) per node and O(k³) per doubling; at most 65,536 nodes.
    """
    longest = min(length, MARGINAL_STEPS)
    limit = _limit(chain, possible)
    if limit is None and possible.settled is not None:
        longest = min(longest, possible.settled + UNSETTLED_NODES)
    values, power = chain.start[np.newaxis], chain.transition
    while len(values) < longest and not _converged(values, limit, possible):
        values = np.concatenate([values, product(values, power)])[:longest]
        power = product(power, power)
    return Marginals(values, limit)


def _converged(values: FloatArray, limit: FloatArray | None, possible: Supports) -> bool:
    node = len(values)
    if limit is None or possible.settled is None or node < possible.settled:
        return False
    return projective_distance(values[-1], limit, possible.at(node)) <= CONVERGED


def projective_distance(weights: FloatArray, limit: FloatArray, possible: BoolArray) -> float:
    """Return max log [m(x)π(x')/(m(x')π(x))] over possible states; +inf if a weight is 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights[possible] / limit[possible])
    return float(logs.max() - logs.min())


def _limit(chain: MarkovChain, possible: Supports) -> FloatArray | None:
    if possible.settled is None or not possible.mixes:
        return None
    visited = np.flatnonzero(possible.sets[possible.settled - 1 :].any(axis=0))
    result = np.zeros(chain.size)
    result[visited] = irreducible_stationary(chain.transition[np.ix_(visited, visited)])
    return result
