"""Every path of a small chain: what an adversary could compute with unlimited patience."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np


class Paths:
    """All sequences of positive probability of a chain and their probabilities."""

    def __init__(self, transition, initial, length: int) -> None:
        size = len(transition)
        everything = np.array(list(product(range(size), repeat=length)))
        chance = np.asarray(initial)[everything[:, 0]]
        for t in range(1, length):
            chance = chance * np.asarray(transition)[everything[:, t - 1], everything[:, t]]
        possible = np.ones(len(everything), dtype=bool)
        possible &= np.asarray(initial)[everything[:, 0]] > 0
        for t in range(1, length):
            possible &= np.asarray(transition)[everything[:, t - 1], everything[:, t]] > 0
        self.length = length
        self.states = everything[possible]
        self.chance = chance[possible]

    def given(self, node: int) -> dict[int, np.ndarray]:
        """For each possible state of a node, the conditional probabilities of all paths."""
        column = self.states[:, node - 1]
        return {
            int(x): np.where(column == x, self.chance, 0) / self.chance[column == x].sum()
            for x in np.unique(column)
        }

    def influence(self, node: int, quilt: tuple[int, ...]) -> float:
        """Definition 2.2 word for word, over states of positive probability."""
        columns = self.states[:, [q - 1 for q in quilt]]
        _, group = np.unique(columns, axis=0, return_inverse=True)
        group = group.ravel()
        laws = [np.bincount(group, weights=law) for law in self.given(node).values()]
        return max((log_ratio(p, q) for p in laws for q in laws if p is not q), default=0.0)

    def leakage(self, answers: np.ndarray, scale: float, nodes=None) -> float:
        """What the answers with two-sided geometric noise of this scale tell, at most.

        `answers` has one row per path; the ratio of likelihoods is largest at a value of the
        answer in every coordinate.
        """
        grid = np.array(list(product(*(np.unique(column) for column in answers.T))))
        distance = np.abs(answers[:, None, :] - grid[None]).sum(axis=-1)
        kernel = np.exp(-distance / scale)
        worst = 0.0
        for node in nodes or range(1, self.length + 1):
            laws = [law @ kernel for law in self.given(node).values()]
            worst = max([worst, *(log_ratio(p, q) for p in laws for q in laws if p is not q)])
        return worst


def log_ratio(p: np.ndarray, q: np.ndarray) -> float:
    """Max log p/q: 0/0 says nothing, x/0 says everything."""
    if ((q == 0) & (p > 0)).any():
        return math.inf
    both = (p > 0) & (q > 0)
    return float(np.log(p[both] / q[both]).max(initial=-math.inf))


def separators(node: int, length: int):
    """Every set of other nodes, with the nodes it leaves near `node`."""
    others = [t for t in range(1, length + 1) if t != node]
    for size in range(len(others) + 1):
        for quilt in combinations(others, size):
            low = max([q for q in quilt if q < node], default=0)
            high = min([q for q in quilt if q > node], default=length + 1)
            yield quilt, high - low - 1
