"""Coalitions as arrays: which of several kinds of providers collude, and how many of each.

Providers that hold the same are interchangeable, so coalitions are drawn from kinds with
repetition; where many collude, those who do not are drawn instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Draws:
    """How the coalitions of a group are drawn.

    Attributes:
        kinds: how many different providers there are.
        drawn: how many are drawn.
        spared: whether those are drawn who do not collude.
        repeated: whether several providers may be of one kind.
    """

    kinds: int
    drawn: int
    spared: bool
    repeated: bool

    @property
    def number(self) -> int:
        """How many draws there are, impossible ones included."""
        if self.repeated:
            return comb(self.kinds + self.drawn - 1, self.drawn)
        return comb(self.kinds, self.drawn)

    def all(self) -> Iterator[tuple[int, ...]]:
        """Yield every draw."""
        choose = combinations_with_replacement if self.repeated else combinations
        return choose(range(self.kinds), self.drawn)

    def table(self, some: list[tuple[int, ...]]) -> Floats:
        """Return draw × kind: how many of each are drawn."""
        table = np.zeros((len(some), self.kinds))
        line = np.repeat(np.arange(len(some)), self.drawn)
        np.add.at(table, (line, np.array(some, dtype=np.int64).ravel()), 1)
        return table


def draws_of(kinds: int, providers: int, size: int) -> Draws:
    """Draw coalitions of `size` of the providers, or those they spare if these are fewer."""
    spared = providers - size
    return Draws(kinds, min(size, spared), spared < size, kinds < providers)
