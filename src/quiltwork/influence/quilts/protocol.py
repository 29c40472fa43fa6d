"""The quilts of a belief: for node i, which candidates there are, and their influence.

A quilt Q of node i separates a *nearby* set N ∋ i from the rest. The rest has at most the
max-influence e(Q|i) on X_i, so a collection of releases leaks at most min_Q [cost of N + e(Q|i)]
about X_i (`docs/theory/influence-curve.md`). The papers' methods use `quilt_families` and nothing
else of a belief; chains are swept where that is lower.

Nodes are 1-based. Nodes that share their candidates, up to translation, form one family, so that
no cost grows with the length of the series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
InfluenceMethod: TypeAlias = Literal[
    "sweep", "exact", "approx", "spectral", "contraction", "group", "entry"
]


class QuiltFamily:
    """Candidate quilts shared by some nodes, with upper bounds on e(Q|i).

    Attributes:
        nodes: the nodes that share the candidates, ascending.
        complete: whether a larger reach would add nothing.
    """

    nodes: range
    complete: bool = True

    def refined(self) -> Iterable[QuiltFamily]:
        """Families that together hold the same nodes with lower influences; none if exact."""
        return ()


@singledispatch
def quilt_families(
    belief: Any, length: int | None, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    """Yield families that together cover every node once, with quilts up to `reach` nodes away.

    The trivial quilt (everything is nearby, influence 0) is always a candidate of a node, and a
    node with one possible state has the candidate "nothing is nearby, influence 0" (an empty run:
    last node < first node). A larger `reach` only adds candidates. A family may represent many
    nodes with influences that are too high for some: `refined` sharpens it.

    Raises:
        UnsupportedError: if the method does not support this belief.
    """
    raise UnsupportedError(
        f"Quilts are not defined for a {type(belief).__name__}; leave method out, or use another "
        "belief, such as a MarkovChain."
    )
