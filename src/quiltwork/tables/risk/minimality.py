"""What the algorithm itself gives away: the minimality attack, carried out over the whole tree.

Whoever knows the algorithm, the constraint and everybody's quasi-identifiers can make the table
again under every assignment of sensitive values that fits what is published; those that do not give
this very table are ruled out (Wong, Fu, Wang and Pei, Minimality attack in privacy preserving data
publishing, VLDB 2007). Where one tree of cuts made the table, the assignments that are left are
exactly those in which every refused cut lacks values on a side (`refusals`); groups that no refused
cut parts give nothing away. The others fall into parts of the table that have no cut in common.
Each small part is enumerated. In a larger one the attacker starts from any assignment, exchanges
values within groups until all refused cuts are explained, goes on exchanging, and counts what is
seen where while they are. Sensitive values of the source are looked at for the score alone.

However else the table was made, other values are looked for that make it too: an attacker is
certain of a value only if no other one makes this very table. Two records of a group exchange their
values, or also their providers, whom an outsider does not know; what a group publishes, and whether
it withstands its providers, is as it was. The groups are made again, and if they are the same ones
both records' values stay open. Many pairs are tried at once; those in groups that come out
otherwise are taken back, and fewer of them are tried in the next round. What is left when the tries
are used up may be certain or not. Records of which no other value is published in their group are
not counted: that is no secret. Records of a person who has several are never exchanged: which
values go together would change.

Theorem: docs/theory/anonymization.md
Cost: as the anonymization, and at most `MOST_STEPS` exchanges; or `MOST_ROWS` rows are made into
groups again at most, but at least `_FEWEST` times all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quiltwork.results import ResultBase
from quiltwork.tables.metrics.models import value_counts
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.guards import records_needed
from quiltwork.tables.partitioning.recipe import Recipe, partition
from quiltwork.tables.publication import LocalPublication, Publication, made_here
from quiltwork.tables.risk.exchanges import Part, attacked
from quiltwork.tables.risk.refusals import Refusal, Unexplained, refusals

SURE = 0.9
WEAKEST = 5
"""Groups that are named."""


@dataclass(frozen=True)
class Guesses(ResultBase):
    """How well someone who makes the table again guesses sensitive values.

    Attributes:
        least: records whose value is certain, at least.
        most: the same, at most: no other value was found for these.
        by_group: the share of all records that the most common value of their group hits.
        reached: the share that the attacker hits.
        sure: records of which the attacker is at least 90 % sure.
        sure_right: of these, those for which that is right.
        sure_by_group: records in groups in which one value has 90 %.
        weakest: texts of the groups with most records that only so are guessed surely and right.
        open: records in parts of the table where no assignment was found that explains it.
    """

    least: int
    most: int
    by_group: float
    reached: float
    sure: int
    sure_right: int
    sure_by_group: int
    weakest: tuple[tuple[str, ...], ...]
    open: int


@dataclass(frozen=True)
class Refused(ResultBase):
    """What the algorithm gives away of sensitive values.

    Attributes:
        groups: about which a refused cut says something; where the tree cannot be followed, those
            with records whose value may be certain.
        of: groups in all.
        rows: in these groups.
        most: published records whose value becomes certain, at most: no other one was found.
        nothing: whether it is proven that the algorithm gives nothing away: every assignment of
            sensitive values that fits the table would have made it.
        cuts: how many cuts of the whole tree only sensitive values can have refused; None where
            the tree cannot be followed.
        guesses: what follows for records; None where the attack was not carried out.
        left_out: rows that are not published because their groups fail, of which that is told.
    """

    groups: int
    of: int
    rows: int
    most: int
    nothing: bool
    cuts: int | None = None
    guesses: Guesses | None = None
    left_out: int = 0


def refused_cuts(publication: Publication) -> Refused:
    """Find the cuts that only sensitive values explain, and what they tell of whom.

    Where they cannot be told apart, as with several providers, find out whose value stays open.

    Raises:
        InvalidInputError: if there is no publication.

    >>> import pandas
    >>> from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize
    >>> frame = pandas.DataFrame({
    ...     "age": [20, 21, 30, 31, 40, 41, 50, 51], "ill": [*"aabbabab"]})
    >>> table = Table(frame, None, ["age"], "ill")
    >>> found = refused_cuts(anonymize(table, KAnonymity(2) & LDiversity(2), m=0))
    >>> found.groups, found.of, found.cuts  # 20 and 21 must be alike: else 20..31 were cut
    (1, 3, 1)
    >>> refused_cuts(anonymize(table, KAnonymity(2), m=0)).nothing
    True

    Theorem: docs/theory/anonymization.md
    """
    published = made_here(publication)
    recipe, count = published.recipe, published.boxes.count
    if recipe.blind or _by_size_alone(recipe):
        lost = published.suppressed if recipe.blind else 0
        return Refused(0, count, 0, 0, nothing=True, cuts=0, left_out=lost)
    encoded = published.source.encoded
    least = records_needed(recipe.constraint, alone=encoded.subject is None)
    if _only_by_cuts(published):
        try:
            found = refusals(
                records_of(encoded),
                published.labels,
                least,
                recipe.rules.split,
                recipe.constraint.eg_monotonic,
            )
        except Unexplained:
            pass
        else:
            return _followed(published, found)
    sure = without_other_value(published)
    touched = np.bincount(published.labels[sure], minlength=count) > 0
    rows = int(published.sizes[touched].sum())
    return Refused(int(touched.sum()), count, rows, int(sure.sum()), nothing=False)


def _by_size_alone(recipe: Recipe) -> bool:
    """Tell whether the algorithm does not look at sensitive values at all.

    Scores count them, and so does the order in which records with equal values part.
    """
    plain = recipe.rules.split != "fitness" and not recipe.rules.relaxed
    asked = recipe.constraint
    return plain and asked.asks_numbers_alone and asked.values_asked == 1


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
    counts = recipe.constraint.asks_numbers_alone
    return (
        alone
        and (recipe.rules.split == "range" or (recipe.rules.split == "loss" and counts))
        and not recipe.rules.relaxed
        and not recipe.quality
        and not publication.suppressed
        and encoded.subject is None
        and recipe.constraint.generalization_monotonic
    )


def _followed(publication: LocalPublication, found: Sequence[Refusal]) -> Refused:
    """Say what the refused cuts of the whole tree tell."""
    labels, guesses = publication.labels, None
    telling: list[NDArray[np.int64]] = []
    if found:
        parts = attacked(labels, _values(publication), found, publication.recipe.constraint)
        telling = [part.rows for part in parts if not part.nothing]
        guesses = _guessed(publication, parts) if telling else None
    touched = np.zeros(publication.boxes.count, dtype=bool)
    for rows in telling:
        touched[labels[rows]] = True
    return Refused(
        groups=int(touched.sum()),
        of=len(touched),
        rows=int(publication.sizes[touched].sum()),
        most=0 if guesses is None else guesses.most,
        nothing=not telling,
        cuts=len(found),
        guesses=guesses,
    )


def _values(publication: LocalPublication) -> NDArray[np.int64]:
    return publication.source.encoded.sensitive.astype(np.int64)


def _guessed(publication: LocalPublication, parts: Sequence[Part]) -> Guesses:
    """Score the attack on the actual records; groups without a refused cut are guessed as usual."""
    value, labels = _values(publication), publication.labels
    width = int(value.max()) + 1
    counts = value_counts(labels, value, publication.boxes.count, width)
    top = np.maximum.reduceat(counts.records, counts.starts)
    common = counts.records == top[counts.group]
    hits = common / np.add.reduceat(common.astype(np.int64), counts.starts)[counts.group]
    right = hits[np.searchsorted(counts.group * width + counts.value, labels * width + value)]
    by_group = float(right.mean())
    before = (top >= (SURE - 1e-9) * counts.sizes)[labels]
    surely = before.copy()
    least = most = unsettled = 0
    for part in parts:
        unsettled += 0 if part.found else len(part.rows)
        for rows, shares in part.found:
            likeliest = max(shares.values())
            best = [v for v, share in shares.items() if share >= likeliest * (1 - 1e-9)]
            hit = np.isin(value[rows], best)
            right[rows] = hit / len(best)
            most += len(rows) * (len(shares) == 1)
            least += len(rows) * (len(shares) == 1 and part.exact)
            surely[rows] = likeliest >= SURE - 1e-9
    told = np.bincount(labels[surely & ~before & (right == 1)], minlength=len(counts.sizes))
    weakest = [g for g in np.argsort(-told, kind="stable")[:WEAKEST].tolist() if told[g]]
    return Guesses(
        least=least,
        most=most + unsettled,
        by_group=by_group,
        reached=float(right.mean()),
        sure=int(surely.sum()),
        sure_right=int((surely & (right == 1)).sum()),
        sure_by_group=int(before.sum()),
        weakest=tuple(map(publication.boxes.texts_of, weakest)),
        open=unsettled,
    )


MOST_ROWS = 400_000
_FEWEST, _MOST = 6, 40
"""How often the groups are made again."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def without_other_value(publication: LocalPublication) -> Flags:
    """Tell for which published records no other value was found that makes the same groups."""
    return _Search(publication).result()


class _Search:
    """Exchanges that were not tried yet, and the records that they are to settle."""

    def __init__(self, publication: LocalPublication) -> None:
        self.recipe, self.encoded = publication.recipe, publication.source.encoded
        self.rows, self.rng = publication.rows, np.random.default_rng(2007)
        rows, labels = self.rows, publication.labels.astype(np.int64)
        self.value = self.encoded.sensitive.astype(np.int64)
        self.owner = self.encoded.provider.astype(np.int64)
        self.group = np.full(self.encoded.rows, -1, dtype=np.int64)
        self.group[rows] = labels
        self.codes = np.stack([column.codes for column in self.encoded.quasi])
        person = self.encoded.subject
        each = np.arange(self.encoded.rows) if person is None else person
        alone = np.bincount(each)[each][rows] == 1  # else another record tells people apart
        self.free = rows[alone]
        known = np.vstack((labels, self.codes[:, rows], np.where(alone, -1, rows)))
        alike = np.unique(known, axis=1, return_inverse=True)[1]
        several, settled = self._several(labels), self._several(alike.reshape(-1))
        self.open = np.zeros(self.encoded.rows, dtype=bool)
        self.open[rows] = several & ~settled  # who is like another in all that is known
        self.most = np.bincount(labels)
        self.tries = min(_MOST, max(_FEWEST, MOST_ROWS // self.encoded.rows))

    def _several(self, labels: Ints) -> Flags:
        """Tell which published records are in a group of several values."""
        value = self.value[self.rows]
        counts = value_counts(labels, value, int(labels.max()) + 1, int(value.max()) + 1)
        several: Flags = np.bincount(counts.group)[labels] > 1
        return several

    def result(self) -> Flags:
        """Exchange until everything is settled or no tries are left."""
        second_attempt = self.recipe.method == "provider-aware" and (
            not self.recipe.rules.provider_splits  # the first one, which failed, is not known
        )
        if not second_attempt and self.open.any():
            made = self._made(self.value, self.owner)
            turn = idle = 0
            while self.tries > 0 and self.open.any() and idle < 4:
                pairs = self._pairs(turn)
                idle = 0 if len(pairs) else idle + 1
                turn += 1
                self._settle(pairs, made)
        return self.open[self.rows]

    def _made(self, value: Ints, owner: Ints) -> Ints:
        """Return the group of each row, as numbers from 0, if rows had these values."""
        world = replace(
            self.encoded,
            sensitive=value.astype(self.encoded.sensitive.dtype),
            provider=owner.astype(self.encoded.provider.dtype),
        )
        labels = partition(world, records_of(world), self.recipe)
        return np.unique(labels, return_inverse=True)[1].reshape(-1)

    def _settle(self, pairs: Ints, made: Ints) -> None:
        """Try pairs together, and without those that change groups, until the same ones come."""
        while len(pairs) and self.tries > 0:
            self.tries -= 1
            value, owner = self.value.copy(), self.owner.copy()
            value[pairs], owner[pairs] = self.value[pairs[:, ::-1]], self.owner[pairs[:, ::-1]]
            changed = _changed(made, self._made(value, owner))
            if not changed.any():
                self.open[pairs] = False
                return
            bad: Flags = np.logical_or.reduce(changed[pairs], axis=1)
            if not bad.any():  # it is elsewhere: half of them may be the cause
                bad[len(pairs) // 2 :] = True
            failed = np.bincount(self.group[pairs[bad, 0]], minlength=len(self.most))
            self.most = np.where(failed, np.maximum(failed // 3, 1), self.most)
            pairs = pairs[~bad]

    def _pairs(self, turn: int) -> Ints:
        """Pair open records with others of their group, and of their provider in every other turn.

        Neighbours along a quasi-identifier first, which are on the same side of most cuts, later
        any: records wait until one of another value comes.
        """
        rows = self.free
        group, owner = self.group[rows], self.owner[rows] * (turn % 2 == 0)
        along = self.rng.random(len(rows))
        near = self.codes[self.rng.integers(len(self.codes))][rows]
        last = near if turn % 4 < 2 else ~self.open[rows]
        found: list[tuple[int, int]] = []
        waiting: list[int] = []
        block = -1, -1
        for at in np.lexsort((along, last, owner, group)).tolist():
            row, here = int(rows[at]), (int(group[at]), int(owner[at]))
            if here != block:
                block, waiting = here, []
            if waiting and self.value[waiting[-1]] != self.value[row]:
                found.append((waiting.pop(), row))
            else:
                waiting.append(row)
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        pairs = self.rng.permutation(pairs[self.open[pairs].any(axis=1)])
        pairs = pairs[np.argsort(self.group[pairs[:, 0]], kind="stable")]
        of = self.group[pairs[:, 0]]
        return pairs[np.arange(len(of)) - np.searchsorted(of, of) < self.most[of]]


def _changed(labels: Ints, others: Ints) -> Flags:
    """Tell which rows are in a group that the other numbering does not have."""
    _, pair, size = np.unique(
        labels * (int(others.max()) + 1) + others, return_inverse=True, return_counts=True
    )
    together = size[pair.reshape(-1)]
    changed: Flags = (together != np.bincount(labels)[labels]) | (
        together != np.bincount(others)[others]
    )
    return changed
