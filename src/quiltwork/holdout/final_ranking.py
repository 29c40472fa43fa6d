"""The end of a competition: intervals for all teams at once, and who is really ahead of whom.

Every team names one submission before anything is scored on the rows that were kept apart, so what
is scored is fixed beforehand, and no tree of questions has to be paid for. Intervals are those of
Clopper and Pearson where rows are independent and right or wrong, those of bets where values lie
between or rows come in clusters, and by the belief's own rate otherwise. Two teams are compared row
by row: McNemar's exact test, or a bet on the difference. Holm's procedure covers all pairs and both
directions. O(teams² · rows), with about ten passes where bets are laid.

Theorem: docs/theory/final-ranking.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import InvalidInputError
from quiltwork.exact import counted
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.metrics import Metric, truth_of_score
from quiltwork.report.charts import Estimate, IntervalChart
from quiltwork.results import ChartedResult

FloatArray = NDArray[np.float64]
_UP = 1 + 2.0**-30
_STEP = 2.0**-38
_HALVINGS = 40


@dataclass(frozen=True)
class FinalScore:
    """A team at the end.

    Attributes:
        rank: by the score; equal scores share one.
        team: whose.
        number: the submission that she named.
        value: the metric's value on the rows that were kept apart.
        low: where its truth begins, for all teams together.
        high: where it ends.
        first: the best rank that she may have in truth.
        last: the worst.
        group: 1 for all that cannot be told apart from the leader, 2 for those of the others who
            cannot be told apart from the best of these, and so on.
        tied: the teams that she cannot be told apart from.
    """

    rank: int
    team: str
    number: int
    value: float
    low: float
    high: float
    first: int
    last: int
    group: int
    tied: tuple[str, ...]


@dataclass(frozen=True)
class FinalRanking(ChartedResult):
    """How a competition ended.

    Attributes:
        metric: its name; larger is better.
        rows: that were kept apart.
        confidence: with which all intervals and all differences hold together.
        method: how intervals and differences were computed.
        scores: best first.
    """

    schema = ("final-ranking", 1)

    metric: str
    rows: int
    confidence: float
    method: str
    scores: tuple[FinalScore, ...]

    def explain(self) -> str:
        """Say who is ahead, and of whom that cannot be said."""
        leaders = [one.team for one in self.scores if one.group == 1]
        if len(self.scores) == 1:
            ahead = f"{leaders[0]} is the only team"
        elif len(leaders) == 1:
            ahead = f"{leaders[0]} is ahead of everybody else"
        else:
            ahead = f"{leaders[0]} leads, and cannot be told apart from {', '.join(leaders[1:])}"
        lines = [
            f"{ahead}, by {self.metric} on {counted(self.rows, 'row')} that nobody was scored on "
            "before.",
            f"With probability {self.confidence:g} all intervals hold and every team that is said "
            f"to be ahead of another is ({self.method}).",
        ]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each team, best first."""
        return [
            {**vars(one), "tied": " ".join(one.tied) if one.tied else ""} for one in self.scores
        ]

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return header and rows as tables and files show them."""
        header = ["rank", "team", "submission", "value", "low", "high", "ranks", "group"]
        rows: list[list[object]] = [
            [
                *(one.rank, one.team, one.number),
                *(f"{number:.6g}" for number in (one.value, one.low, one.high)),
                f"{one.first}" if one.first == one.last else f"{one.first} to {one.last}",
                one.group,
            ]
            for one in self.scores
        ]
        return header, rows

    def chart(self) -> IntervalChart:
        """Describe every team's score with its interval."""
        return IntervalChart(
            f"Final {self.metric.replace('_', ' ')}",
            f"Lines are where the truth is, for all teams together, with probability "
            f"{self.confidence:g}.",
            self.metric.replace("_", " "),
            tuple(Estimate(one.team, one.value, one.low, one.high) for one in self.scores),
        )


def read_ranking(body: Mapping[str, Any]) -> FinalRanking:
    """Read what `FinalRanking.body` wrote."""
    try:
        scores = tuple(FinalScore(**{**one, "tied": tuple(one["tied"])}) for one in body["scores"])
        told = {name: body[name] for name in ("metric", "rows", "confidence", "method")}
        return FinalRanking(**told, scores=scores)
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInputError(f"the ranking cannot be read: {error}.") from None


def rank_teams(
    metric: Metric,
    beliefs: Belief | None,
    values: Mapping[str, tuple[int, FloatArray]],
    confidence: float,
    mixing: float = 0.0,
) -> FinalRanking:
    """Rank teams by the values of rows that none of them was scored on before.

    Args:
        metric: from means of values to the score.
        beliefs: how these rows depend on each other; None for rows that are drawn independently
            from one population.
        values: of each team the submission that she named, and one value in [0, 1] for each row,
            or one column for each mean of the metric.
        confidence: of all intervals and all differences together; one half of what may fail goes
            to either.
        mixing: how likely it is at most that what was asked before tells about these rows.

    Theorem: docs/theory/final-ranking.md
    """
    if not values:
        raise InvalidInputError("Nobody has submitted anything, so there is nothing to rank.")
    beta, teams = 1 - confidence - mixing, list(values)
    tables = {team: np.asarray(table, float) for team, (_, table) in values.items()}
    rows = len(next(iter(tables.values())))
    pairs = len(teams) * (len(teams) - 1)
    compare, method = _comparison(metric, beliefs, rows, pairs, beta / 2)
    scores = {team: metric.score(_means(table)) for team, table in tables.items()}
    ends = {
        team: _interval(metric, beliefs, table, beta / (2 * len(teams)))
        for team, table in tables.items()
    }
    teams.sort(key=lambda team: (-scores[team], team))
    ahead = _ahead(teams, tables, compare, beta / 2)
    groups, left, group = dict.fromkeys(teams, 0), teams, 0
    while left:
        group += 1
        inside = [team for team in left if team not in ahead[left[0]]]
        groups.update(dict.fromkeys(inside, group))
        left = [team for team in left if team not in inside]
    found = []
    for team in teams:
        above = sum(team in below for below in ahead.values())
        tied = [o for o in teams if o != team and o not in ahead[team] and team not in ahead[o]]
        rank = 1 + sum(scores[other] > scores[team] for other in teams)
        last = len(teams) - len(ahead[team])
        low, high = (metric.shown(end) for end in ends[team])
        shown = metric.shown(scores[team])
        found.append(
            FinalScore(
                *(rank, team, values[team][0], shown, low, high),
                *(1 + above, last, groups[team], tuple(tied)),
            )
        )
    return FinalRanking(metric.name, rows, confidence, method, tuple(found))


def _means(table: FloatArray) -> list[float]:
    return [float(mean) for mean in np.atleast_1d(table.mean(axis=0))]


def _is_right_or_wrong(metric: Metric) -> bool:
    """Whether all values are 0 or 1, by the metric and not by what was submitted."""
    return metric.labels and len(metric.signs) == 1


def _sizes(beliefs: Belief | None, rows: int) -> NDArray[np.intp] | None:
    """Return which cluster each row is of; None where rows depend on each other otherwise."""
    if beliefs is None:
        return np.arange(rows)
    return np.asarray(beliefs.codes) if isinstance(beliefs, Clusters) else None


def _interval(
    metric: Metric, beliefs: Belief | None, table: FloatArray, failure: float
) -> tuple[float, float]:
    """Return where a score is in truth, but for a probability of failure/2 on each side."""
    rows, units = len(table), _sizes(beliefs, len(table))
    means = len(metric.signs)
    if units is None:
        exponent = math.log(2 * means / failure)
        score = metric.score(_means(table))
        low, high = truth_of_score(metric, concentration(beliefs), rows, exponent, score, score)
        return float(low), float(high)
    exact = beliefs is None and metric.labels
    ends = [
        clopper_pearson(int(column.sum()), rows, failure / means)
        if exact
        else bet_interval(column, units, failure / means)
        for column in table.reshape(rows, means).T
    ]
    worst, best = (
        [one[side if sign > 0 else 1 - side] for one, sign in zip(ends, metric.signs, strict=True)]
        for side in (0, 1)
    )
    return metric.score(worst), metric.score(best)


def clopper_pearson(successes: int, rows: int, failure: float) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson: a coverage of 1 − failure, whatever the truth.

    Rows need not be alike: it holds for the mean of the chances of independent rows, too.

    >>> [round(end, 4) for end in clopper_pearson(8, 10, 0.05)]
    [0.4439, 0.9748]

    Theorem: docs/theory/final-ranking.md
    """
    from scipy.special import betaincinv

    side, missed = failure / 2, rows - successes
    low = float(betaincinv(successes, missed + 1, side)) if successes else 0.0
    high = float(betaincinv(successes + 1, missed, 1 - side)) if missed else 1.0
    return max(low - _STEP, 0.0), min(high + _STEP, 1.0)


def stakes(rows: int, largest: float) -> FloatArray:
    """Return the stakes that bets are spread over evenly: 1, ½, ¼, … over the largest unit.

    The least is below 1/√rows, where a bet would win for a difference of one standard error.
    """
    return np.asarray(2.0 ** -np.arange(2 + math.ceil(math.log2(max(rows, 2)) / 2)) / largest)


def log_wealth(differences: FloatArray, bets: FloatArray, spread_over: int = 0) -> float:
    """Return ln of what bets on a positive sum have come to, from 1.

    It is spread over the bets, or over so many of which the others are lost. Where the expectations
    of independent differences add up to 0 or less, and no bet can lose more than all, the wealth is
    expected to be at most 1.

    Theorem: docs/theory/final-ranking.md
    """
    with np.errstate(divide="ignore"):
        logs = np.array([np.log1p(bet * differences).sum() for bet in bets])
    most = float(logs.max())
    if most == -math.inf:
        return most
    return most + math.log(float(np.exp(logs - most).sum()) / (spread_over or len(bets)))


def bet_interval(
    values: FloatArray, units: NDArray[np.intp], failure: float
) -> tuple[float, float]:
    """Return where the mean of values is in truth, rows of one unit depending on each other.

    It ends where a bet that the truth is further away would have made 2/failure out of 1. Against a
    small mean stakes may be larger than one: values lose no more than the mean.

    Theorem: docs/theory/final-ranking.md
    """
    sizes = np.bincount(units).astype(float)
    largest, limit = float(sizes.max()), math.log(2 / failure) + _STEP
    small = stakes(len(sizes), largest)
    more = 4.0 ** np.arange(1, 1 + math.ceil(math.log(len(sizes) + 1, 4))) / largest
    bets = np.concatenate([more, small])

    def above(sums: FloatArray) -> float:
        """Return the largest mean that bets on more are sure of; sums of units in [0, size]."""
        inside, outside = 0.0, float(sums.sum() / sizes.sum())
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            possible = bets[bets * middle * largest <= 1]
            won = log_wealth(sums - middle * sizes, possible, len(bets)) >= limit
            inside, outside = (middle, outside) if won else (inside, middle)
        return inside

    sums = np.asarray(np.bincount(units, weights=values), float)
    low, high = above(sums), 1 - above(sizes - sums)
    return max(low - _STEP, 0.0), min(high + _STEP, 1.0)


Compare = Callable[[FloatArray, FloatArray], float]
"""A p-value of: the first team is in truth no better than the second."""


def _comparison(
    metric: Metric, beliefs: Belief | None, rows: int, pairs: int, failure: float
) -> tuple[Compare, str]:
    """Choose the test by what is public: the metric, the belief, and how many pairs there are."""
    units = _sizes(beliefs, rows)
    if len(metric.signs) > 1:
        return _by_intervals(metric, beliefs, pairs, failure), (
            "intervals of every mean, also for the differences; Holm over all pairs"
        )
    sign = metric.signs[0]

    def difference(one: FloatArray, other: FloatArray) -> FloatArray:
        return np.asarray(sign * (one - other).reshape(rows))

    if units is None:
        rate = concentration(beliefs).rate

        def far(one: FloatArray, other: FloatArray) -> float:
            mean = float(difference(one, other).mean())
            return math.exp(-rate * rows * mean**2 / 4) * _UP if mean > 0 else 1.0

        return far, f"{concentration(beliefs).theorem}, rows paired; Holm over all pairs"
    if beliefs is None and _is_right_or_wrong(metric):
        return lambda one, other: mcnemar(difference(one, other)), (
            "Clopper and Pearson's intervals, McNemar's exact test of rows paired; Holm over all "
            "pairs"
        )
    bets = stakes(int(units.max()) + 1, float(np.bincount(units).max()))

    def bet(one: FloatArray, other: FloatArray) -> float:
        sums = np.asarray(np.bincount(units, weights=difference(one, other)), float)
        return math.exp(-max(log_wealth(sums, bets), 0.0)) * _UP if sums.sum() > 0 else 1.0

    return bet, "bets on the rows, which are paired; Holm over all pairs"


def mcnemar(differences: FloatArray) -> float:
    """Return McNemar's exact one-sided p-value: as many rows won of those that differ, or more.

    Theorem: docs/theory/final-ranking.md
    """
    from scipy.special import betainc

    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    return min(float(betainc(won, lost + 1, 0.5)) * _UP, 1.0) if won else 1.0


def _by_intervals(metric: Metric, beliefs: Belief | None, pairs: int, failure: float) -> Compare:
    """Return a test whose p-value is the least level at which two intervals do not meet.

    Tried are failure, failure/2, …, down to what Holm's procedure asks of the first of all pairs.
    """
    levels = [failure / 2**k for k in range(math.ceil(math.log2(max(pairs, 1))) + 1)]
    known: dict[tuple[int, float], tuple[float, float]] = {}

    def ends(table: FloatArray, level: float) -> tuple[float, float]:
        key = (id(table), level)
        if key not in known:
            known[key] = _interval(metric, beliefs, table, level)
        return known[key]

    def compare(one: FloatArray, other: FloatArray) -> float:
        least = 1.0
        for level in levels:
            if ends(one, level)[0] <= ends(other, level)[1]:
                break
            least = level
        return least

    return compare


def _ahead(
    teams: Sequence[str], tables: Mapping[str, FloatArray], compare: Compare, failure: float
) -> dict[str, set[str]]:
    """Return whom each team is ahead of: Holm over every pair in both directions.

    Theorem: docs/theory/final-ranking.md
    """
    pairs = [(one, other) for one in teams for other in teams if one != other]
    chances = {pair: compare(tables[pair[0]], tables[pair[1]]) for pair in pairs}
    ahead: dict[str, set[str]] = {team: set() for team in teams}
    for done, pair in enumerate(sorted(pairs, key=lambda pair: chances[pair])):
        if chances[pair] * (len(pairs) - done) > failure:
            break
        ahead[pair[0]].add(pair[1])
    return ahead
