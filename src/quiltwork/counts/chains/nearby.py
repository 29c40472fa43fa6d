"""Chains close to a belief: what a slightly wrong belief may really be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.errors import InvalidInputError

_MOST_CHAINS = 512


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
