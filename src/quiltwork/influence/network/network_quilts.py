"""Quilt families of networks: for each node its quilts, nearby sets and influences.

"exact" computes every influence by elimination, and is refused if that needs too large a table.
"approx" needs only the tables around a node, for networks of any width: marginals are replaced by
their worst case, which gives the projective influence.

Theorem: docs/theory/networks.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from quiltwork.beliefs import Network
from quiltwork.beliefs.elimination import MOST_ENTRIES
from quiltwork.caching import cached_by_owner
from quiltwork.errors import UnsupportedError
from quiltwork.influence.network.exact_networks import (
    around,
    blanket_bound,
    influence_given,
    quilt_ratios,
    rounded_up,
)
from quiltwork.influence.network.separators import Quilt, quilts_of
from quiltwork.influence.quilts.chains import baseline
from quiltwork.influence.quilts.families import ListedFamily
from quiltwork.influence.quilts.protocol import InfluenceMethod, QuiltFamily, quilt_families
from quiltwork.influence.quilts.quilt_bound import default_quilts
from quiltwork.influence.ratios import BoolArray, log_ratios
from quiltwork.wording import argument

_FEW_NODES = 12
"""Up to this size, quilts of networks with impossible values are computed from the full joint."""


@quilt_families.register
def _(
    belief: Network, length: int | None, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    if method in ("group", "entry"):
        return baseline(belief.length, method)
    if method in ("spectral", "contraction"):
        raise UnsupportedError(
            f"{argument('method', method)} needs a Markov chain, and this belief is a network; "
            "use 'exact' or 'approx'."
        )
    return iter(network_families(belief, method))


@default_quilts.register
def _(belief: Network) -> InfluenceMethod:
    return "exact" if belief.largest_table <= MOST_ENTRIES else "approx"


@cached_by_owner
def network_families(network: Network, method: str) -> list[ListedFamily]:
    """Return one family per node, cached as long as the network exists.

    Raises:
        UnsupportedError: for "exact" if elimination needs a table of more than 2^22 entries.
    """
    if method == "exact":
        _refuse_wide(network)
    possible = _possible_states(network) if method == "exact" else None
    family = _exact_family if possible is not None else _approx_family
    return [family(network, node, possible) for node in range(network.length)]


def _refuse_wide(network: Network) -> None:
    """Refuse exact influence if elimination needs too large a table."""
    if network.largest_table > MOST_ENTRIES:
        raise UnsupportedError(
            f"Exact influence in this network needs tables of {network.largest_table:,} entries "
            f"(elimination of width {network.treewidth}), and the limit is {MOST_ENTRIES:,}; use "
            f"{argument('method', 'approx')}, whose bounds hold for any width."
        )


def _possible_states(network: Network) -> list[BoolArray]:
    """The possible states of each node."""
    if network.positive:
        return [np.ones(size, dtype=np.bool_) for size in network.sizes]
    return [network.joint([node]).support() for node in range(network.length)]


def _exact_family(
    network: Network, node: int, possible: Sequence[BoolArray] | None
) -> ListedFamily:
    """The family of a node with exact influences."""
    assert possible is not None  # noqa: S101  (only called then)
    if possible[node].sum() == 1:
        return ListedFamily.known(range(node + 1, node + 2))
    deterministic = frozenset(i for i, states in enumerate(possible) if states.sum() == 1)
    quilts = quilts_of(network, node)
    if network.positive or network.length > _FEW_NODES:
        influences = _local_influences(network, quilts, possible[node])
        if not network.positive:
            influences = [
                (quilt, _from_joint(network, quilt)) for quilt, _ in _undominated(influences)
            ]
    else:
        influences = [(quilt, _from_joint(network, quilt)) for quilt in quilts]
    return set_family(node, _undominated(influences), deterministic)


def _local_influences(
    network: Network, quilts: Sequence[Quilt], states: BoolArray
) -> list[tuple[Quilt, float]]:
    """Influences from the tables around a node and its marginal: exact if nothing is impossible."""
    node = quilts[0].node
    joint = network.joint([node])
    law = joint.values[states]
    tilt = log_ratios(law, law, np.ones(len(law), dtype=np.bool_))
    influences = []
    for quilt in quilts:
        if not quilt.separator:
            influences.append((quilt, 0.0))
            continue
        try:
            ratios, margin = quilt_ratios(around(network, quilt), states)
        # this quilt needs too large a table: another one decides
        except UnsupportedError:
            continue
        total = ratios + tilt
        np.fill_diagonal(total, 0.0)
        largest = max(0.0, float(total.max()))
        influences.append((quilt, rounded_up(largest, margin + 8 * joint.roundings * 2.0**-52)))
    return influences


def _from_joint(network: Network, quilt: Quilt) -> float:
    """The influence of a quilt from the joint law of the node and the separator; inf if
    too large.
    """
    if not quilt.separator:
        return 0.0
    try:
        joint = network.joint([quilt.node, *sorted(quilt.separator)])
    except UnsupportedError:
        return float("inf")
    return influence_given(joint, len(quilt.separator))


def _approx_family(
    network: Network, node: int, possible: Sequence[BoolArray] | None
) -> ListedFamily:
    """The family of a node with projective influences, for any marginals and remote part."""
    states = np.ones(network.sizes[node], dtype=np.bool_)
    if len(states) == 1:
        return ListedFamily.known(range(node + 1, node + 2))
    influences = []
    for quilt in quilts_of(network, node):
        if not quilt.separator:
            influences.append((quilt, 0.0))
            continue
        try:
            ratios, margin = quilt_ratios(around(network, quilt), states)
        except UnsupportedError:
            if len(quilt.nearby) == 1:
                influences.append((quilt, blanket_bound(network, node)))
            continue
        influences.append((quilt, rounded_up(float((ratios + ratios.T).max()), 2 * margin)))
    return set_family(node, _undominated(influences), frozenset())


def _undominated(influences: Sequence[tuple[Quilt, float]]) -> list[tuple[Quilt, float]]:
    """Keep a quilt only if its influence is below that of every quilt with no more nearby nodes."""
    frontier: list[tuple[Quilt, float]] = []
    least = float("inf")
    for quilt, influence in sorted(influences, key=lambda pair: (len(pair[0].nearby), pair[1])):
        if influence < least:
            frontier.append((quilt, influence))
            least = influence
    return frontier


def set_family(
    node: int, influences: Sequence[tuple[Quilt, float]], deterministic: frozenset[int]
) -> ListedFamily:
    """Return the family of one node; nodes with one possible state are not charged."""
    owner, start, stop = [], [], []
    for index, (quilt, _) in enumerate(influences):
        for first, last in consecutive_runs(sorted(quilt.nearby - deterministic)):
            owner.append(index)
            start.append(first + 1)
            stop.append(last + 1)
    return ListedFamily(
        nodes=range(node + 1, node + 2),
        owner=np.array(owner, dtype=np.int64),
        start=np.array(start, dtype=np.int64),
        stop=np.array(stop, dtype=np.int64),
        quilts=tuple(tuple(i + 1 for i in sorted(quilt.separator)) for quilt, _ in influences),
        influence=np.array([influence for _, influence in influences]),
    )


def consecutive_runs(nodes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Split ascending numbers into maximal runs (first, last)."""
    first = 0
    for index in range(1, len(nodes) + 1):
        if index == len(nodes) or nodes[index] != nodes[index - 1] + 1:
            yield nodes[first], nodes[index - 1]
            first = index
