"""Cuts that were refused because of sensitive values: what the minimality attack starts from.

Whoever knows the algorithm, the constraint and the members' quasi-identifiers can ask why a group
was not cut further. If both sides of a cut would have had records enough, only sensitive values
can have stood in its way: some value, or too few of them, would have stood out on one side (Wong,
Fu, Wang and Pei, Minimality attack in privacy preserving data publishing, VLDB 2007). A refusal
that sizes explain says nothing of that kind: under k-anonymity alone there is no such group.
Cost: as one level of Mondrian, once for sizes and once for the whole constraint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.asked import check_publication
from quiltwork.publishing.constraints.base import Constraint, as_constraint
from quiltwork.publishing.constraints.k_anonymity import KAnonymity
from quiltwork.publishing.constraints.l_diversity import LDiversity
from quiltwork.publishing.partitioning.cuts import halved
from quiltwork.publishing.partitioning.guards import Guard, guard_for
from quiltwork.publishing.partitioning.mondrian import both_private
from quiltwork.publishing.partitioning.nodes import Nodes, bounds, starts_of
from quiltwork.publishing.partitioning.records import Records, records_of

if TYPE_CHECKING:
    from quiltwork.publishing.publication import Publication


@dataclass(frozen=True)
class Refused:
    """Groups that a reader can reason about: sizes allowed a cut, sensitive values did not.

    Attributes:
        groups: with a cut in the middle of a quasi-identifier that leaves records enough on both
            sides, whoever colludes, and none that the whole constraint allows.
        of: groups in all.
        records: in these groups.
    """

    groups: int
    of: int
    records: int

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name, JSON-ready."""
        return asdict(self)


def refused_cuts(publication: Publication, constraint: Constraint | Callable[..., bool]) -> Refused:
    """Count the groups that were left whole because of their sensitive values alone.

    `constraint` is what the publication was made with. The cuts are Mondrian's: each
    quasi-identifier in its middle.

    Raises:
        InvalidInputError: if there is no publication or no constraint.

    >>> import pandas
    >>> from quiltwork.publishing import Table, anonymize
    >>> frame = pandas.DataFrame({
    ...     "age": [20, 21, 30, 31, 40, 41, 50, 51], "ill": [*"aababbab"]})
    >>> asked = KAnonymity(2) & LDiversity(2)
    >>> pub = anonymize(Table(frame, None, ["age"], "ill"), asked, m=0)
    >>> refused_cuts(pub, asked)  # 20..31 would have been cut, but 20 and 21 have the same value
    Refused(groups=2, of=2, records=8)
    """
    check_publication(publication)
    encoded = publication.source.encoded
    bound = as_constraint(constraint).bind(encoded)
    records = records_of(encoded)
    if publication.suppressed:
        records = records.take(publication.rows)
    nodes = Nodes(np.argsort(publication.labels, kind="stable"), starts_of(publication.sizes))
    m = 0 if publication.method == "separate" else publication.m
    by_size = _can_be_cut(records, nodes, guard_for(encoded, KAnonymity(records_needed(bound)), m))
    refused = by_size & ~_can_be_cut(records, nodes, guard_for(encoded, bound, m))
    return Refused(
        groups=int(refused.sum()),
        of=len(refused),
        records=int(publication.sizes[refused].sum()),
    )


def records_needed(constraint: Constraint) -> int:
    """Return how many records a constraint asks for at least; l values need l records."""
    least = [part.k for part in constraint.parts if isinstance(part, KAnonymity)]
    least += [part.l for part in constraint.parts if isinstance(part, LDiversity)]
    return max(least, default=1)


def _can_be_cut(records: Records, nodes: Nodes, guard: Guard) -> NDArray[np.bool_]:
    """Tell which nodes have a cut in the middle of a quasi-identifier with both sides private."""
    low, high = bounds(records, nodes)
    found = np.zeros(nodes.count, dtype=bool)
    for axis in range(len(low)):
        trying = np.flatnonzero((low[axis] < high[axis]) & ~found)
        if len(trying):
            halves = halved(
                records,
                nodes.select(trying),
                np.full(len(trying), axis),
                low[axis, trying],
                high[axis, trying],
            )
            found[trying] = both_private(records, halves, guard)
    return found
