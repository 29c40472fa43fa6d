"""Mechanisms given as tables P(answer | count): what they leak under a chain and ones near it.

Theorem: docs/theory/optimal-mechanism.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from quiltwork.audit.additive import Joint, additive_parts
from quiltwork.audit.inner import single_chains
from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs import Belief, MarkovChain
from quiltwork.beliefs.matrices import BoolArray, FloatArray
from quiltwork.errors import InvalidInputError, UnsupportedError
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


def shifted_chains(chain: MarkovChain, distance: float) -> Iterator[MarkovChain]:
    """Yield chains with `distance` of each row's mass moved between two of its entries.

    Every entry differs by at most `distance`, and by less where it would leave [0, 1]; impossible
    transitions stay impossible. The start is kept as an array. Where there are more than 512
    combinations, all rows move the same pair.
    """
    if not 0 < distance < 1:
        raise InvalidInputError(f"distance must lie between 0 and 1, not {distance!r}.")
    moves = [_moved_rows(row, distance) for row in chain.transition]
    if np.prod([len(rows) for rows in moves], dtype=float) <= _MOST_CHAINS:
        combinations = product(*moves)
    else:
        longest = max(len(rows) for rows in moves)
        combinations = zip(*(_repeated(rows, longest) for rows in moves), strict=True)  # type: ignore[assignment]
    for rows in combinations:
        yield MarkovChain(np.array(rows), np.array(chain.start), chain.states)


def _moved_rows(row: FloatArray, distance: float) -> list[FloatArray]:
    found = [np.array(row)]
    for giver, taker in permutations(np.flatnonzero(row > 0), 2):
        moved = np.array(row)
        amount = min(distance, row[giver] / 2, (1 - row[taker]))
        moved[giver] -= amount
        moved[taker] += amount
        found.append(moved)
    return found


def _repeated(rows: list[FloatArray], number: int) -> list[FloatArray]:
    return [rows[j % len(rows)] for j in range(number)]
