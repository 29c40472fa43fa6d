"""Figure 1 of the holdout paper: a chain's quilts with what is nearby and what is remote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from papers.registry import Progress, experiment
from papers.result import Figure, Findings, Row, Value
from quiltwork.report.charts import MatrixChart

if TYPE_CHECKING:
    from quiltwork.beliefs import Network
    from quiltwork.influence.network import Quilt

LENGTH = 13
NODE = 7
SHOWN = ((6, 8), (4, 9), (3,), ())
TRANSITION = ((0.9, 0.1), (0.4, 0.6))
LEVEL = 0.5

_SHADES = {"i": 1.0, "Q": 0.65, "N": 0.3, "R": 0.0}


@experiment(
    "holdout-figure-1",
    title="Quilts of a chain, with nearby and remote nodes",
    item="holdout-bayesian-dp, Figure 1",
    quick={"length": LENGTH},
    full={"length": LENGTH},
)
def figure_1(progress: Progress, length: int) -> Findings:
    """Take the chain as a network, find the quilts of its middle node, and price them."""
    from quiltwork.influence import bayesian_dp
    from quiltwork.influence.network import quilts_of

    network = chain_network(length)
    quilts = {
        tuple(v + 1 for v in sorted(quilt.separator)): quilt
        for quilt in quilts_of(network, NODE - 1, "moral")
    }
    rows = [row for nodes in SHOWN for row in _rows(network, quilts[nodes])]
    rows.append(
        Row(
            f"level of a {LEVEL}-DP mechanism against every adversary",
            bayesian_dp(network, LEVEL),
            note="the best quilt of the worst node",
        )
    )
    return Findings(
        f"Removing a quilt Q of X_{NODE} cuts the chain: the nodes left around X_{NODE} are nearby "
        "(N), the others remote (R). The larger the nearby set, the weaker its quilt: the bound is "
        f"(|N|+1)·x + h, here for x = {LEVEL}.",
        tuple(rows),
        (Figure("quilts", _chart(length, [quilts[nodes] for nodes in SHOWN])),),
    )


def chain_network(length: int) -> Network:
    """Return a stationary chain of two states as a Bayesian network."""
    from itertools import pairwise

    import networkx as nx

    from quiltwork.beliefs import MarkovChain, Network

    chain = MarkovChain(TRANSITION)
    names = [f"X{i}" for i in range(1, length + 1)]
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(pairwise(names))
    return Network(
        graph, {name: chain.transition if i else chain.stationary for i, name in enumerate(names)}
    )


def _rows(network: Network, quilt: Quilt) -> list[Row]:
    import math

    from quiltwork.influence import max_influence
    from quiltwork.influence.bayesian.networks import NodeInfluences

    name = _name(quilt)
    nodes = [v + 1 for v in sorted(quilt.separator)]
    spread = NodeInfluences(network, quilt.node).influence(quilt, "tight", math.inf)
    h: Value = "∞" if spread is None else spread
    price: Value = "∞" if spread is None else len(quilt.nearby) * LEVEL + spread
    return [
        Row(f"|N| + 1 of {name}", len(quilt.nearby)),
        Row(f"max-influence of {name}", max_influence(network, NODE, nodes)),
        Row(f"projective influence h of {name}", h),
        Row(f"(|N| + 1)·{LEVEL} + h of {name}", price),
    ]


def _chart(length: int, quilts: list[Quilt]) -> MatrixChart:
    texts = tuple(tuple(_role(quilt, v, length) for v in range(length)) for quilt in quilts)
    return MatrixChart(
        title=f"Four quilts of X{NODE} in a chain of {length} nodes",
        description=(
            f"i is X{NODE} itself, Q the quilt, N what is nearby, R what is remote. The first row "
            "is the Markov blanket, with nothing nearby; the last the empty quilt, with nothing "
            "remote."
        ),
        row_axis="quilt",
        column_axis="node",
        rows=tuple(_name(quilt) for quilt in quilts),
        columns=tuple(str(v) for v in range(1, length + 1)),
        values=tuple(tuple(_SHADES[text] for text in row) for row in texts),
        texts=texts,
    )


def _role(quilt: Quilt, node: int, length: int) -> str:
    if node == quilt.node:
        return "i"
    if node in quilt.separator:
        return "Q"
    return "R" if node in quilt.remote(length) else "N"


def _name(quilt: Quilt) -> str:
    return "{" + ", ".join(f"X{v + 1}" for v in sorted(quilt.separator)) + "}"
