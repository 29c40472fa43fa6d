"""Whose sensitive value stays open to someone who makes the table again, however it was made.

Such an attacker is certain of a value only if no other one makes this very table. So the search is
for other ones: two records of a group exchange their values, or also their providers, whom an
outsider does not know; what a group publishes, and whether it withstands its providers, is as it
was. The groups are made again, and if they are the same ones both records' values stay open. Many
pairs are tried at once; those in groups that come out otherwise are taken back, and fewer of them
are tried in the next round. What is left when the tries are used up may be certain or not.
Records of which no other value is published in their group are not counted: that is no secret.
Records of a person who has several are never exchanged: which values go together would change.

Theorem: docs/theory/anonymization.md
Cost: `MOST_ROWS` rows are made into groups again at most, but at least `_FEWEST` times all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.metrics.models import value_counts
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.recipe import partition
from quiltwork.tables.publication import LocalPublication

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
