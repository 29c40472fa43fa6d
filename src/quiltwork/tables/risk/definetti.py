"""The deFinetti attack: a model learns sensitive values from published groups, and is scored.

A group shows which sensitive values its members have, not who has which. Someone who knows the
members' quasi-identifiers learns from all groups together which go with which value, and with that
who in a group most likely has which of its values (Kifer, Attacks on privacy and deFinetti's
theorem, SIGMOD 2009). Here the model is naive Bayes, starting from the groups' frequencies; in
turns, it is fitted to the guesses, and the guesses are computed from it and scaled (Sinkhorn) until
every group has each of its values as often as published. The score counts actual records. Nothing
is random. Cost: O(pairs of person and possible value × quasi-identifiers) per round.
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
from quiltwork.tables.table import Table, as_table, check_same_roles

ROUNDS = 10
"""How often the model is fitted; on Adult its score hardly changes after two rounds."""
SCALINGS = 8
SURE = 0.9
MOST_PAIRS = 700_000
"""The most pairs of record and possible value; of larger tables every n-th group is used."""
MOST_LINKED = 16_000_000
"""The most pairs of person and possible value, if people may fit several groups."""
_BINS = 64  # of a column of numbers, for the model
_TINY = 1e-30

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LearnerScore(ResultBase):
    """How well sensitive values are guessed by a model trained on the groups.

    Attributes:
        attribute: the sensitive column.
        people: the number of records whose value was guessed.
        by_group: the share of them with the most common value of their group.
        learned: the share that the model guesses right.
        sure: the number of records about which the model is at least 90 % sure.
        sure_right: of these, the number guessed right.
        sure_by_group: the number of records in groups where one value has 90 %.
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
        """How much more often the model is right than the group's own frequencies."""
        return self.learned - self.by_group


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The pairs of a person and a value that the person may have, perhaps from several groups.

    Attributes:
        person: of each pair, ascending.
        cell: of each pair, the index into the groups' counts.
        value: of each pair, its code.
        starts: the index at which the pairs of each person start.
    """

    person: Ints
    cell: Ints
    value: Ints
    starts: Ints


def definetti(publication: Publication) -> tuple[LearnerScore, ...]:
    """Attack a publication as someone who knows everybody's quasi-identifiers and group.

    For a table with more than 700,000 pairs of record and possible value, every n-th group is
    attacked.

    Raises:
        InvalidInputError: if the argument is not a publication.

    >>> import pandas
    >>> from quiltwork.tables import KAnonymity, LDiversity, anonymize
    >>> frame = pandas.DataFrame({
    ...     "age": [20, 20, 20, 20, 30, 30, 30, 30] * 10, "sex": [*"fffmfmmm"] * 10})
    >>> frame["ill"] = frame["sex"].map({"f": "flu", "m": "cold"})
    >>> table = Table(frame, None, ["age", "sex"], "ill")
    >>> score, = definetti(anonymize(table, KAnonymity(9) & LDiversity(2), m=0))
    >>> score.by_group, score.learned  # two groups of both sexes and both values
    (0.75, 1.0)
    """
    published = require_local(publication)
    source, labels, rows = published.source, published.labels, published.rows
    scores = []
    for name in source.sensitive:
        column = sensitive_column(source, name)
        truth = column.codes[rows].astype(np.int64)
        counts = value_counts(
            labels, truth.astype(np.int32), published.boxes.count, len(column.values)
        )
        attacked = _thinned(counts)
        people = np.flatnonzero(attacked[labels])
        links = np.arange(len(people)), labels[people]
        quasi = [_binned(column, rows[people]) for column in source.encoded.quasi]
        scores.append(_attack(name, quasi, links, counts, truth[people]))
    return tuple(scores)


def definetti_of_texts(published: Table, original: Table) -> tuple[LearnerScore, ...]:
    """Attack a table of published texts as someone who knows the quasi-identifiers of its people.

    `original` contains these people with their sensitive values, which are used for the score only;
    its orders and hierarchies define how labels are read. A person who fits several groups may be
    in each of them; people who fit none are left out.

    Raises:
        InvalidInputError: if columns do not match, or nobody fits a group.
        UnsupportedError: for too many pairs of person and possible value.
    """
    check_same_roles(as_table(published), as_table(original))
    row, group = fitting_groups(published, original, np.arange(original.encoded.rows))
    if not len(row):
        raise InvalidInputError(
            "No row of the original table fits a published group. Declare its hierarchies and "
            "orders, or pass the table from which it was published."
        )
    people, person = np.unique(row, return_inverse=True)
    links = person.astype(np.int64), group
    quasi = [_binned(column, people) for column in original.encoded.quasi]
    scores = []
    groups = published.groups
    for name in published.sensitive:
        published_column, column = (
            sensitive_column(table, name) for table in (published, original)
        )
        counts = value_counts(
            groups.labels, published_column.codes, groups.count, len(published_column.values)
        )
        truth = match_codes(column.values, published_column.values)[column.codes[people]]
        scores.append(_attack(name, quasi, links, counts, truth))
    return tuple(scores)


def _thinned(counts: ValueCounts) -> NDArray[np.bool_]:
    """Choose every n-th group, so that there are not too many pairs of person and value."""
    variety = np.bincount(counts.group, minlength=len(counts.sizes))
    pairs = int((variety * counts.sizes).sum())
    return np.asarray(np.arange(len(counts.sizes)) % -(-pairs // MOST_PAIRS) == 0)


def _binned(column: Column, rows: Ints) -> Ints:
    """Return a column's codes for the model; many numbers are binned into about equal sizes."""
    codes = column.codes[rows].astype(np.int64)
    # Categories have no order to bin by.
    if column.kind == "categorical" or len(column.values) <= _BINS:
        return codes
    cumulative = np.cumsum(np.bincount(codes, minlength=len(column.values)))
    return np.asarray((cumulative[codes] - 1) * _BINS // len(codes), dtype=np.int64)


def _attack(
    name: str, quasi: Sequence[Ints], links: tuple[Ints, Ints], counts: ValueCounts, truth: Ints
) -> LearnerScore:
    """Train the model on one sensitive column, and score it."""
    pairs = _candidates(links, counts)
    weight = counts.records[pairs.cell].astype(np.float64)
    by_group = _per_person(pairs, weight)
    learned = learned_shares(quasi, pairs, counts, by_group)
    group_score, learner_score = (_score(pairs, shares, truth) for shares in (by_group, learned))
    return LearnerScore(
        attribute=name,
        people=len(truth),
        by_group=group_score[0],
        learned=learner_score[0],
        sure=learner_score[1],
        sure_right=learner_score[2],
        sure_by_group=group_score[1],
    )


def _candidates(links: tuple[Ints, Ints], counts: ValueCounts) -> _Candidates:
    """Expand every link of a person and a group to the values of the group."""
    variety = np.bincount(counts.group, minlength=len(counts.sizes))
    person, group = links
    per_link = variety[group]
    total = int(per_link.sum())
    if total > MOST_LINKED:
        raise UnsupportedError(
            f"{total:,} pairs of person and possible value are too many; use a sample of groups."
        )
    cell = concatenated_ranges(counts.starts[group], per_link)
    people = np.repeat(person, per_link)
    starts = np.searchsorted(people, np.arange(int(people[-1]) + 1))
    return _Candidates(people, cell, counts.value[cell], starts)


def learned_shares(
    quasi: Sequence[Ints], pairs: _Candidates, counts: ValueCounts, start: Floats
) -> Floats:
    """Return, for every pair, the probability that the model gives it.

    In each round the model is P(x | value) for every quasi-identifier, estimated from the present
    shares with one record added everywhere. The shares become the product of these, scaled in turns
    to the published number of records of every cell and to 1 for every person.
    """
    shares = start
    values = counts.values
    for _ in range(ROUNDS):
        total = np.bincount(pairs.value, shares, values)
        score = np.zeros(len(shares))
        for codes in quasi:
            domain = int(codes.max()) + 1
            cell_of = (
                codes[pairs.person] * values + pairs.value
            )  # computed anew each round: keeping all would fill memory
            weight_of = np.bincount(cell_of, shares, domain * values).reshape(domain, values)
            score += np.log((weight_of + 1) / (total + domain)).ravel()[cell_of]
        # Subtract the maximum before exp, against underflow.
        score -= np.maximum.reduceat(score, pairs.starts)[pairs.person]
        shares = _per_person(pairs, np.maximum(np.exp(score), _TINY))
        # Sinkhorn: alternate scaling to the groups' counts and to 1 per person.
        for _ in range(SCALINGS):
            received = np.bincount(pairs.cell, shares, len(counts.records))
            factor = counts.records / np.maximum(received, _TINY)
            shares = _per_person(pairs, np.maximum(shares * factor[pairs.cell], _TINY))
    return shares


def _per_person(pairs: _Candidates, weight: Floats) -> Floats:
    """Scale weights so that each person's add up to 1."""
    sums = np.add.reduceat(weight, pairs.starts)
    return np.asarray(weight / sums[pairs.person], dtype=np.float64)


def _score(pairs: _Candidates, shares: Floats, truth: Ints) -> tuple[float, int, int]:
    """Return the share of people guessed right, the number of sure guesses, and of right sure ones.

    A person with several most likely values counts in parts.
    """
    values = int(pairs.value.max()) + 1
    keys, pair_of = np.unique(pairs.person * values + pairs.value, return_inverse=True)
    by_value = np.bincount(pair_of.reshape(-1), shares)
    person, value = keys // values, keys % values
    starts = np.searchsorted(person, np.arange(len(truth)))
    highest = np.maximum.reduceat(by_value, starts)
    best = by_value >= highest[person] * (1 - 1e-9)
    hit = np.add.reduceat((best & (value == truth[person])).astype(np.float64), starts)
    hit /= np.add.reduceat(best.astype(np.float64), starts)
    is_sure = highest >= SURE - 1e-9
    return float(hit.mean()), int(is_sure.sum()), int(np.count_nonzero(is_sure & (hit == 1)))
