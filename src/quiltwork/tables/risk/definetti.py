"""What a learner makes of published groups: the deFinetti attack, carried out and scored.

A group says which sensitive values its members have, not who has which. Someone who knows the
members' quasi-identifiers learns from all groups together which go with which value, and with that
who in a group most likely has which of its values (Kifer, Attacks on privacy and deFinetti's
theorem, SIGMOD 2009). Here: a naive Bayes model, starting from the groups' frequencies; in turns it
is fitted to the guesses, and the guesses are made from it and scaled (Sinkhorn) until every group
gives out each of its values as often as published. The score counts actual records. Nothing is
drawn at random. Cost: O(pairs of person and possible value × quasi-identifiers) per round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.results import ResultBase
from quiltwork.tables.codes.distinct import concatenated_ranges
from quiltwork.tables.codes.encoding import Column, match_codes
from quiltwork.tables.generalization.published_texts import fitting_groups
from quiltwork.tables.metrics.models import ValueCounts, sensitive_column, value_counts
from quiltwork.tables.publishing.published_records import Publication, require_local
from quiltwork.tables.table import Table, check_same_roles, read_table

ROUNDS = 10
"""How often the model is fitted; on Adult its hits hardly change after two."""
SCALINGS = 8
SURE = 0.9
MOST_PAIRS = 700_000
"""Pairs of record and possible value of a publication; of a larger one, every n-th group."""
MOST_LINKED = 16_000_000
"""Pairs of person and possible value where people may fit several groups."""
_BINS = 64  # of a column of numbers, for the model
_TINY = 1e-30

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LearnerScore(ResultBase):
    """How well sensitive values are guessed by someone who learns from the groups.

    Attributes:
        attribute: the sensitive column.
        people: records whose value was guessed.
        by_group: the share of them that the most common value of their group hits.
        learned: the share that the learner hits.
        sure: records about which the learner is at least 90 % sure.
        sure_right: of these, those for which it is right.
        sure_by_group: records in groups in which one value has 90 %.
    """

    also = ("gain",)
    attribute: str
    people: int
    by_group: float
    learned: float
    sure: int
    sure_right: int
    sure_by_group: int

    @property
    def gain(self) -> float:
        """How much more often the learner is right than the group's own frequencies."""
        return self.learned - self.by_group


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Every value that every person may have, by person; a value may come from several groups.

    Attributes:
        person: of each pair, ascending.
        cell: of each pair, the index into the groups' counts.
        value: of each pair, its code.
        starts: where the pairs of each person start.
    """

    person: Ints
    cell: Ints
    value: Ints
    starts: Ints


def definetti(publication: Publication) -> tuple[LearnerScore, ...]:
    """Attack a publication as someone who knows everybody's quasi-identifiers and group.

    Of a table with more than 700,000 pairs of record and possible value, every n-th group is
    attacked.

    Raises:
        InvalidInputError: if it is no publication.

    >>> import pandas
    >>> from quiltwork.tables import KAnonymity, LDiversity, anonymize
    >>> frame = pandas.DataFrame({
    ...     "age": [20, 20, 20, 20, 30, 30, 30, 30] * 10, "sex": [*"fffmfmmm"] * 10})
    >>> frame["ill"] = frame["sex"].map({"f": "flu", "m": "cold"})
    >>> table = Table(frame, None, ["age", "sex"], "ill")
    >>> found, = definetti(anonymize(table, KAnonymity(9) & LDiversity(2), m=0))
    >>> found.by_group, found.learned  # two groups of both sexes and both values
    (0.75, 1.0)
    """
    published = require_local(publication)
    source, labels, rows = published.source, published.labels, published.rows
    found = []
    for name in source.sensitive:
        column = sensitive_column(source, name)
        truth = column.codes[rows].astype(np.int64)
        counts = value_counts(
            labels, truth.astype(np.int32), published.boxes.count, len(column.values)
        )
        kept = _thinned(counts)
        people = np.flatnonzero(kept[labels])
        links = np.arange(len(people)), labels[people]
        quasi = [_binned(column, rows[people]) for column in source.encoded.quasi]
        found.append(_attack(name, quasi, links, counts, truth[people]))
    return tuple(found)


def definetti_of_texts(published: Table, original: Table) -> tuple[LearnerScore, ...]:
    """Attack a table of published texts as someone who knows the quasi-identifiers of its people.

    `original` holds them with their sensitive values, which only the score looks at; its orders and
    hierarchies say how labels are read. A person who fits several groups may be in each of them;
    people who fit none are left out.

    Raises:
        InvalidInputError: if columns do not match, or nobody fits a group.
        UnsupportedError: for too many pairs of person and possible value.
    """
    check_same_roles(read_table(published), read_table(original))
    row, group = fitting_groups(published, original, np.arange(original.encoded.rows))
    if not len(row):
        raise InvalidInputError(
            "No row of the original table fits a published group; declare hierarchies and orders, "
            "or compare the table that was published."
        )
    people, person = np.unique(row, return_inverse=True)
    links = person.astype(np.int64), group
    quasi = [_binned(column, people) for column in original.encoded.quasi]
    found = []
    groups = published.groups
    for name in published.sensitive:
        shown, column = (sensitive_column(table, name) for table in (published, original))
        counts = value_counts(groups.labels, shown.codes, groups.count, len(shown.values))
        truth = match_codes(column.values, shown.values)[column.codes[people]]
        found.append(_attack(name, quasi, links, counts, truth))
    return tuple(found)


def _thinned(counts: ValueCounts) -> NDArray[np.bool_]:
    """Choose every n-th group, so that the pairs of person and value are not too many."""
    variety = np.bincount(counts.group, minlength=len(counts.sizes))
    pairs = int((variety * counts.sizes).sum())
    return np.asarray(np.arange(len(counts.sizes)) % -(-pairs // MOST_PAIRS) == 0)


def _binned(column: Column, rows: Ints) -> Ints:
    """Return a column's codes for the model; many numbers fall into bins of about equal size."""
    codes = column.codes[rows].astype(np.int64)
    if column.kind == "categorical" or len(column.values) <= _BINS:
        return codes
    upto = np.cumsum(np.bincount(codes, minlength=len(column.values)))
    return np.asarray((upto[codes] - 1) * _BINS // len(codes), dtype=np.int64)


def _attack(
    name: str, quasi: Sequence[Ints], links: tuple[Ints, Ints], counts: ValueCounts, truth: Ints
) -> LearnerScore:
    pairs = _candidates(links, counts)
    weight = counts.records[pairs.cell].astype(np.float64)
    start = _per_person(pairs, weight)
    guessed = learned_shares(quasi, pairs, counts, start)
    before, after = (_score(pairs, shares, truth) for shares in (start, guessed))
    return LearnerScore(
        attribute=name,
        people=len(truth),
        by_group=before[0],
        learned=after[0],
        sure=after[1],
        sure_right=after[2],
        sure_by_group=before[1],
    )


def _candidates(links: tuple[Ints, Ints], counts: ValueCounts) -> _Candidates:
    """Spread every link of a person and a group over the values of the group."""
    variety = np.bincount(counts.group, minlength=len(counts.sizes))
    person, group = links
    per_link = variety[group]
    total = int(per_link.sum())
    if total > MOST_LINKED:
        raise UnsupportedError(
            f"{total:,} pairs of person and possible value are too many; attack a sample of groups."
        )
    cell = concatenated_ranges(counts.starts[group], per_link)
    who = np.repeat(person, per_link)
    starts = np.searchsorted(who, np.arange(int(who[-1]) + 1))
    return _Candidates(who, cell, counts.value[cell], starts)


def learned_shares(
    quasi: Sequence[Ints], pairs: _Candidates, counts: ValueCounts, start: Floats
) -> Floats:
    """Return for every pair how likely the learner holds it to be.

    In each round the model is P(x | value) for every quasi-identifier, from the present shares with
    one record more for everything; the shares become the product of these, scaled in turns to the
    published number of records of every cell and to 1 for every person.
    """
    shares = start
    values = counts.values
    for _ in range(ROUNDS):
        total = np.bincount(pairs.value, shares, values)
        score = np.zeros(len(shares))
        for codes in quasi:
            domain = int(codes.max()) + 1
            place = codes[pairs.person] * values + pairs.value  # made again: all would fill memory
            seen = np.bincount(place, shares, domain * values).reshape(domain, values)
            score += np.log((seen + 1) / (total + domain)).ravel()[place]
        score -= np.maximum.reduceat(score, pairs.starts)[pairs.person]
        shares = _per_person(pairs, np.maximum(np.exp(score), _TINY))
        for _ in range(SCALINGS):
            given = np.bincount(pairs.cell, shares, len(counts.records))
            factor = counts.records / np.maximum(given, _TINY)
            shares = _per_person(pairs, np.maximum(shares * factor[pairs.cell], _TINY))
    return shares


def _per_person(pairs: _Candidates, weight: Floats) -> Floats:
    """Scale weights so that every person's sum to 1."""
    sums = np.add.reduceat(weight, pairs.starts)
    return np.asarray(weight / sums[pairs.person], dtype=np.float64)


def _score(pairs: _Candidates, shares: Floats, truth: Ints) -> tuple[float, int, int]:
    """Return the share of people whose likeliest value is theirs; those who are sure; and right.

    A person with several likeliest values counts in parts.
    """
    values = int(pairs.value.max()) + 1
    keys, place = np.unique(pairs.person * values + pairs.value, return_inverse=True)
    by_value = np.bincount(place.reshape(-1), shares)
    who, value = keys // values, keys % values
    starts = np.searchsorted(who, np.arange(len(truth)))
    highest = np.maximum.reduceat(by_value, starts)
    best = by_value >= highest[who] * (1 - 1e-9)
    hit = np.add.reduceat((best & (value == truth[who])).astype(np.float64), starts)
    hit /= np.add.reduceat(best.astype(np.float64), starts)
    sure = highest >= SURE - 1e-9
    return float(hit.mean()), int(sure.sum()), int(np.count_nonzero(sure & (hit == 1)))
