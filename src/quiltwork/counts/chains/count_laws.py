"""Mechanisms given as tables P(answer | count): what they leak under a chain and ones near it.

Theorem: docs/theory/optimal-mechanism.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quiltwork.audit.additive import Joint, additive_parts
from quiltwork.audit.inner import single_chains
from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs import Belief, MarkovChain
from quiltwork.beliefs.matrices import BoolArray, FloatArray
from quiltwork.errors import UnsupportedError
from quiltwork.queries import Count, Query

_MOST_CHAINS = 512


@dataclass(frozen=True, eq=False)
class CountLaws:
    """P(count | X_i = a) for every uncertain time point of every belief.

    Attributes:
        laws: of shape (time points over all beliefs, states, n + 1); zeros for impossible states.
        possible: which states each time point can take.
        n: the largest count.
    """

    laws: FloatArray
    possible: BoolArray
    n: int

    def spread(self, table: FloatArray) -> float:
        """The largest log-ratio of answers between two states; infinite if one rules a state out.

        Cost: O(T·k·n²).
        """
        answers = self.laws @ table
        high = np.where(self.possible[:, :, None], answers, 0.0).max(axis=1)
        low = np.where(self.possible[:, :, None], answers, np.inf).min(axis=1)
        seen = high > 0
        if not seen.any():
            return 0.0
        if (low[seen] <= 0).any():
            return float("inf")
        return max(0.0, float(np.log(high[seen] / low[seen]).max()))


def statistic_of(query: Query, chain: MarkovChain, length: int) -> Joint:
    """Read a query that counts one state."""
    if not isinstance(query, Count):
        kind = getattr(query, "kind", repr(query))
        raise UnsupportedError(
            f"The optimal mechanism is for the count of one state, not for {kind!r}; ask for "
            "queries.count(state)."
        )
    return Joint(additive_parts(query, chain.states, length), (Fraction(1),))


def count_laws(beliefs: Belief | Sequence[Belief], length: int, query: Query) -> CountLaws:
    """Return the laws of a count under one chain or several."""
    chains = single_chains(beliefs)
    statistic = statistic_of(query, chains[0], length)
    laws, possible = [np.zeros((0, chains[0].size, statistic.cells))], []
    for position, chain in enumerate(chains, start=1):
        one = Laws(chain, length, statistic, range(1, length + 1))
        if not one.in_floats:
            raise UnsupportedError(
                f"Belief {position} has states that are possible but rarer than 1e-50, which "
                "floating point cannot follow here; drop them from the chain."
            )
        for block in one.blocks(logs=False):
            laws.append(block.weights.transpose(1, 2, 0))
            possible.append(block.possible)
    known = np.zeros((0, chains[0].size), dtype=np.bool_)
    return CountLaws(np.concatenate(laws), np.concatenate([known, *possible]), statistic.cells - 1)


def table_leakage(
    beliefs: Belief | Sequence[Belief], length: int, query: Query, table: FloatArray
) -> float:
    """Return what a mechanism for a count leaks under the worst belief, in floats.

    `table[c][r]` is the probability of answer r when the count is c.
    """
    found = count_laws(beliefs, length, query)
    return found.spread(np.asarray(table, dtype=np.float64))
