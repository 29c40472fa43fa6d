"""Exact Bayesian DP on chains: the leakage to informed adversaries, who know other time points.

A(i, S) knows X_S and attacks X_i. On a chain only the nearest known time points l < i < r on each
side carry information about X_i, and knowing everything beyond them is the worst case: unknown
values there only add independent noise. So sup over S is a maximum over pairs (l, r), each a bridge
between two known states, and costs one convolution per pair of states.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np

from quiltwork.arguments import listed
from quiltwork.audit.additive import JointStatistic, joint
from quiltwork.audit.inner import inner_chain, require_markov_chains
from quiltwork.audit.laws import (
    MOST_PRODUCTS,
    Weights,
    advance,
    check_cost,
    convolve,
    first_prefix,
    raise_too_large,
    retreat,
    supports,
    time_estimate,
)
from quiltwork.audit.node_levels import LawBlock, Laws, block_levels, rate
from quiltwork.beliefs import Belief, MarkovChain
from quiltwork.beliefs.secrets import parse_secrets
from quiltwork.errors import UnsupportedError
from quiltwork.exact import integer
from quiltwork.queries import Query

_MOST_BRIDGES = 1_000_000
_BATCH = 1000

Bridge: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Adversary:
    """The adversary A(i, S) with the largest leakage.

    Attributes:
        epsilon: the largest change of the log odds about `node`, rounded up.
        node: the time point attacked.
        left: the nearest known time point before it; None if none is known.
        right: the nearest known time point after it; None if none is known.
        belief: the belief that decides, counted from 1.
    """

    epsilon: float
    node: int | None
    left: int | None
    right: int | None
    belief: int


def strongest_adversary(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    secrets: tuple[int, int] | None = None,
    known: Sequence[int] | None = None,
) -> Adversary:
    """Return the exact Bayesian DP level of releases and the adversary A(i, S) that attains it.

    Args:
        beliefs: one chain or several with known starts.
        length: the number of time points.
        releases: pairs (query, scale) as for `leakage`.
        secrets: (start, stop), the time points attacked; all by default.
        known: the time points S; those beyond the nearest ones count as known too. None for every
            S, the empty one included.

    Cost: O(k³·V²) per pair of distances; about T² pairs for a query on the whole series, T³ for
    windows.

    >>> from quiltwork import queries
    >>> chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    >>> round(strongest_adversary(chain, 6, [(queries.count(1), 2)]).epsilon, 6)
    0.5

    Theorem: docs/theory/exact-leakage.md
    """
    chains = require_markov_chains(beliefs)
    points = integer(length, "length", 1)
    nodes = parse_secrets(secrets, points)
    rows = _read_known(known, points)
    statistic = joint(releases, chains[0].states, points)
    check_cost(inner_chain(chains[0]), points, statistic, range(1, 1))
    best = Adversary(0.0, None, None, None, 1)
    for belief, chain in enumerate(chains, start=1):
        for (left, node, right), level in _levels(chain, points, statistic, nodes, rows):
            if best.node is None or level > best.epsilon:
                after = right if right <= points else None
                best = Adversary(level, node, left or None, after, belief)
    return best


def _levels(
    chain: MarkovChain,
    length: int,
    statistic: JointStatistic,
    nodes: range,
    known: Sequence[int] | None,
) -> Iterator[tuple[Bridge, float]]:
    """Yield one level per bridge; equivalent bridges are computed once."""
    sides = Bridges(chain, length, statistic)
    todo: dict[tuple[object, ...], Bridge] = {}
    for node in nodes:
        for left, right in _ends(node, length, known):
            todo.setdefault(sides.look(left, node, right), (left, node, right))
        if len(todo) * chain.size**3 > _MOST_BRIDGES:
            raise UnsupportedError(
                f"There are more than {len(todo):,} different pairs of known neighbours with "
                f"{chain.size} states each; name the known time points, or take a shorter series."
            )
    work = len(todo) * chain.size**3 * statistic.cells**2 / 6
    if work > MOST_PRODUCTS:
        raise_too_large(inner_chain(chain), length, statistic, time_estimate(work))
    waiting = iter(todo.values())
    while batch := list(islice(waiting, _BATCH)):
        yield from _batch_levels(sides, batch)


def _ends(node: int, length: int, known: Sequence[int] | None) -> Iterator[tuple[int, int]]:
    """Nearest known neighbours; 0 and length + 1 stand for none."""
    if known is None:
        yield from product(range(node), range(node + 1, length + 2))
        return
    if node not in known:
        before = max((point for point in known if point < node), default=0)
        yield before, min((point for point in known if point > node), default=length + 1)


def _read_known(known: Any, length: int) -> list[int] | None:
    if known is None:
        return None
    return [integer(one, "A known time point", 1, length) for one in listed(known, "known")]


class Bridges:
    """What the steps on either side of a node add, given its state and that of the known end.

    Laws grow by one step at a time from each end and are kept; on a query about the whole series
    they depend on distances only.
    """

    def __init__(self, chain: MarkovChain, length: int, statistic: JointStatistic) -> None:
        self.chain, self.length, self.statistic = chain, length, statistic
        self.possible = supports(inner_chain(chain), length)
        self.whole = all(part.first == 2 and part.last == length for part in statistic.parts)
        self.kept: dict[object, list[list[Weights]]] = {}

    def look(self, left: int, node: int, right: int) -> tuple[object, ...]:
        """Return a key that is equal for bridges with the same leakage."""
        reachable = self.possible[left - 1].tobytes() if left else b""
        before = node - left if self.whole and left else (left, node)
        after = (right - node, right <= self.length) if self.whole else (node, right)
        return reachable, before, after

    def before(self, left: int, node: int) -> list[Weights]:
        """Return laws of codes given the node's state, per state of the left end (one if none)."""
        first = max(left, 1)
        if left:
            begin = [row[:, None] for row in np.eye(self.chain.size)]
        else:
            begin = [first_prefix(np.array(self.chain.start), self.statistic)]
        laws = self.kept.setdefault(("before", left > 0 if self.whole else left), [begin])
        while len(laws) <= node - first:
            step = self.statistic.gain(first + len(laws))
            laws.append([advance(one, self.chain.transition, step) for one in laws[-1]])
        found = laws[node - first]
        return [found[x] for x in np.flatnonzero(self.possible[left - 1])] if left else found

    def after(self, node: int, right: int) -> list[Weights]:
        """Return laws of codes given the node's state, per state of the right end (one if none)."""
        last, known = min(right, self.length), right <= self.length
        ends = np.eye(self.chain.size) if known else np.ones((1, self.chain.size))
        laws = self.kept.setdefault(
            ("after", known if self.whole else right), [[column[:, None] for column in ends]]
        )
        while len(laws) <= last - node:
            step = self.statistic.gain(last + 1 - len(laws))
            laws.append([retreat(one, self.chain.transition, step) for one in laws[-1]])
        return laws[last - node]


def _batch_levels(sides: Bridges, batch: list[Bridge]) -> Iterator[tuple[Bridge, float]]:
    rows, possible, owners = [], [], []
    for owner, (left, node, right) in enumerate(batch):
        for one, other in product(sides.before(left, node), sides.after(node, right)):
            law = np.array(
                [convolve(a, b, sides.statistic.cells) for a, b in zip(one, other, strict=True)]
            )
            totals = law.sum(axis=1, keepdims=True)
            if (totals > 0).sum() > 1:
                rows.append(np.divide(law, totals, where=totals > 0, out=law))
                possible.append(totals[:, 0] > 0)
                owners.append(owner)
    if not rows:
        return
    weights = np.ascontiguousarray(np.stack(rows).transpose(2, 0, 1))
    block = LawBlock(np.array(owners), weights, np.stack(possible), logs=False)
    laws = Laws(sides.chain, sides.length, sides.statistic, range(1, 2))
    found = block_levels(block, laws, [rate(scale) for scale in sides.statistic.scales])
    if found is None:
        raise UnsupportedError(
            "The noise is so small that an output is too improbable for floating point; use more "
            "noise."
        )
    for owner, leak in zip(found.nodes, found.leak, strict=True):
        yield batch[int(owner)], float(leak)
