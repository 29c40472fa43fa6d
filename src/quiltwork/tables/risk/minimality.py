"""Groups that only sensitive values explain: what the minimality attack starts from.

Whoever knows the algorithm, the constraint and everybody's quasi-identifiers can make the table
again under every assignment of sensitive values that fits what is published; those that do not give
this very table are ruled out (Wong, Fu, Wang and Pei, Minimality attack in privacy preserving data
publishing, VLDB 2007). What is ruled out depends on every cut of the tree that was refused, not
only on those of the final groups. So the whole algorithm is followed again, with a constraint that
asks for as many records and for nothing of their sensitive values.

If that gives the same groups, and sensitive values have no other way into the algorithm, nothing is
ruled out: every other assignment that fits the table meets the same cuts, with the same answers. A
cut that was made leaves unions of published groups on both sides, which fulfil the constraint as
these groups do; one that was not leaves too few records.

Theorem: docs/theory/anonymization.md
Cost: as the anonymization.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import to_fraction
from quiltwork.results import ResultBase
from quiltwork.tables.anonymization import assemble
from quiltwork.tables.constraints.constraint import Constraint, KAnonymity, LDiversity
from quiltwork.tables.constraints.distributions import EntropyLDiversity, RecursiveLDiversity
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.recipe import Recipe, partition
from quiltwork.tables.publication import LocalPublication, Publication, made_here


@dataclass(frozen=True)
class Refused(ResultBase):
    """What the algorithm gives away of sensitive values, as far as it was counted.

    Attributes:
        groups: that the algorithm would not have made by numbers of records alone: a cut of theirs,
            or of a larger part of the table above them, was refused because of sensitive values.
            Such a refusal can say something about other groups as well.
        of: groups in all.
        rows: in these groups.
        nothing: whether it is proven that the algorithm gives nothing away: every assignment of
            sensitive values that fits the table would have made it.
    """

    groups: int
    of: int
    rows: int
    nothing: bool


def refused_cuts(publication: Publication) -> Refused:
    """Count the groups that numbers of records alone do not explain.

    Raises:
        InvalidInputError: if there is no publication.

    >>> import pandas
    >>> from quiltwork.tables import Table, anonymize
    >>> frame = pandas.DataFrame({
    ...     "age": [20, 21, 30, 31, 40, 41, 50, 51], "ill": [*"aababbab"]})
    >>> table = Table(frame, None, ["age"], "ill")
    >>> refused_cuts(anonymize(table, KAnonymity(2) & LDiversity(2), m=0))  # 20 and 21 are alike
    Refused(groups=2, of=2, rows=8, nothing=False)
    >>> refused_cuts(anonymize(table, KAnonymity(2), m=0))
    Refused(groups=0, of=4, rows=0, nothing=True)

    Theorem: docs/theory/anonymization.md
    """
    published = made_here(publication)
    recipe, count = published.recipe, published.boxes.count
    if _blind(recipe):
        return Refused(0, count, 0, nothing=True)
    encoded = published.source.encoded
    least = records_needed(recipe.constraint, alone=encoded.subject is None)
    by_size = replace(recipe, constraint=KAnonymity(least))
    labels = partition(encoded, records_of(encoded), by_size)
    again = assemble(published.source, labels, by_size)
    explained = _same_groups(published, again)
    joined = len(np.unique(labels[labels >= 0])) > again.boxes.count
    return Refused(
        groups=int(count - explained.sum()),
        of=count,
        rows=int(published.sizes[~explained].sum()),
        nothing=bool(explained.all()) and not joined and _only_by_cuts(published),
    )


def records_needed(constraint: Constraint, alone: bool = True) -> int:
    """Return how many records, or people, a constraint asks for at least.

    l values need l records, if each record is `alone` with its person.
    """
    least = [1]
    for part in constraint.parts:
        if isinstance(part, KAnonymity):
            least.append(part.k)
        elif alone and isinstance(part, LDiversity | RecursiveLDiversity | EntropyLDiversity):
            least.append(math.ceil(to_fraction(part.l, "l")))
    return max(least)


def _blind(recipe: Recipe) -> bool:
    """Tell whether the algorithm does not look at sensitive values at all.

    Scores count them, and so does the order in which records with equal values part.
    """
    plain = recipe.rules.split != "fitness" and not recipe.by_content
    asks_of_size = (
        isinstance(part, KAnonymity) or (isinstance(part, LDiversity) and part.l == 1)
        for part in recipe.constraint.parts
    )
    return plain and all(asks_of_size)


def _only_by_cuts(publication: LocalPublication) -> bool:
    """Tell whether sensitive values decide nothing but whether a cut is made, without coalitions.

    Of split="loss" that is so where the number of values decides which cuts are compared. With
    coalitions, an assignment that fits the table may make a group that does not withstand them. The
    method "provider-aware" also compares with groups that are not published, of which the
    table says nothing; so do rows that are left out. Entropy, recursive diversity and t-closeness
    count a person's values, where one has several records.
    """
    recipe, encoded = publication.recipe, publication.source.encoded
    alone = len(encoded.providers) == 1 or (recipe.m == 0 and recipe.method == "baseline")
    counts = all(isinstance(part, KAnonymity | LDiversity) for part in recipe.constraint.parts)
    return (
        alone
        and (recipe.rules.split == "range" or (recipe.rules.split == "loss" and counts))
        and not recipe.by_content
        and not publication.suppressed
        and encoded.subject is None
        and recipe.constraint.generalization_monotonic
    )


def _same_groups(publication: LocalPublication, other: LocalPublication) -> NDArray[np.bool_]:
    """Tell which groups the other publication has too, with the same rows of the source."""
    found = np.full(publication.source.encoded.rows, -1, dtype=np.int64)
    found[other.rows] = other.labels
    theirs = found[publication.rows]
    low = np.full(publication.boxes.count, len(found), dtype=np.int64)
    high = np.full_like(low, -1)
    np.minimum.at(low, publication.labels, theirs)
    np.maximum.at(high, publication.labels, theirs)
    same: NDArray[np.bool_] = (low == high) & (low >= 0)
    same[same] = other.sizes[low[same]] == publication.sizes[same]
    return same
