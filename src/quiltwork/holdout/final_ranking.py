"""The final ranking of a competition: simultaneous intervals, and which teams are really ahead.

Every team names one submission before anything is scored on the rows kept apart, so no adaptive
questions have to be accounted for. Intervals are Clopper–Pearson where rows are independent and
predictions right or wrong, betting intervals for other values or clusters, and the belief's own
concentration rate otherwise. Two teams are compared row by row, by McNemar's exact test or by bets
on the difference. Holm's procedure covers all pairs in both directions. O(teams² · rows), with
about ten passes where bets are used.

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
from quiltwork.holdout.metrics import Metric, true_score_interval
from quiltwork.report.charts import Estimate, IntervalChart
from quiltwork.results import ChartedResult

FloatArray = NDArray[np.float64]
_UP = 1 + 2.0**-30
_STEP = 2.0**-38
_HALVINGS = 40


@dataclass(frozen=True)
class FinalScore:
    """A team's place in the final ranking.

    Attributes:
        rank: by score; equal scores share one.
        team: of the submission.
        number: the submission that the team named.
        value: the metric's value on the rows kept apart.
        low: the lower end of its confidence interval, simultaneous for all teams.
        high: the upper end.
        first: the best rank that is statistically possible.
        last: the worst.
        group: 1 for all teams indistinguishable from the leader, 2 for those of the rest
            indistinguishable from the best of the rest, and so on.
        tied: the teams it is statistically indistinguishable from.
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
    """The final ranking of a competition.

    Attributes:
        metric: its name; larger is better.
        rows: the number of rows kept apart.
        confidence: the probability that all intervals and all comparisons hold together.
        method: how intervals and comparisons were computed.
        scores: best first.
    """

    schema = ("final-ranking", 1)

    metric: str
    rows: int
    confidence: float
    method: str
    scores: tuple[FinalScore, ...]

    def explain(self) -> str:
        """Return who is ahead, and between which teams no difference is proven."""
        leaders = [score.team for score in self.scores if score.group == 1]
        if len(self.scores) == 1:
            headline = f"{leaders[0]} is the only team"
        elif len(leaders) == 1:
            headline = f"{leaders[0]} is significantly ahead of all others"
        else:
            headline = (
                f"{leaders[0]} leads, but is not significantly ahead of {', '.join(leaders[1:])}"
            )
        lines = [
            f"{headline}, by {self.metric} on {counted(self.rows, 'row')} that were not used for "
            "scores before.",
            f"With probability {self.confidence:g} all intervals contain the true scores and every "
            f"difference called significant is real ({self.method}).",
        ]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """Return a row per team, best first."""
        return [
            {**vars(score), "tied": " ".join(score.tied) if score.tied else ""}
            for score in self.scores
        ]

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return the header and rows for tables and files."""
        header = ["rank", "team", "submission", "value", "low", "high", "ranks", "group"]
        rows: list[list[object]] = [
            [
                *(score.rank, score.team, score.number),
                *(f"{number:.6g}" for number in (score.value, score.low, score.high)),
                f"{score.first}" if score.first == score.last else f"{score.first} to {score.last}",
                score.group,
            ]
            for score in self.scores
        ]
        return header, rows

    def chart(self) -> IntervalChart:
        """Return every team's score with its interval, as a chart."""
        return IntervalChart(
            f"Final {self.metric.replace('_', ' ')}",
            f"Lines are confidence intervals that hold for all teams together with probability "
            f"{self.confidence:g}.",
            self.metric.replace("_", " "),
            tuple(
                Estimate(score.team, score.value, score.low, score.high) for score in self.scores
            ),
        )


def ranking_from_body(body: Mapping[str, Any]) -> FinalRanking:
    """Parse what `FinalRanking.body` wrote."""
    try:
        scores = tuple(FinalScore(**{**row, "tied": tuple(row["tied"])}) for row in body["scores"])
        shared = {name: body[name] for name in ("metric", "rows", "confidence", "method")}
        return FinalRanking(**shared, scores=scores)
    except (AttributeError, KeyError, TypeError) as error:
        raise InvalidInputError(f"the ranking cannot be read: {error}.") from None


def rank_teams(
    metric: Metric,
    beliefs: Belief | None,
    values: Mapping[str, tuple[int, FloatArray]],
    confidence: float,
    mixing: float = 0.0,
) -> FinalRanking:
    """Rank teams by their values on rows that were never used for scores before.

    Args:
        metric: from means of values to the score.
        beliefs: how these rows depend on each other; None for rows drawn independently from one
            population.
        values: for each team the number of its submission, and one value in [0, 1] per row, or one
            column for each mean of the metric.
        confidence: of all intervals and comparisons together; each gets half of the failure
            probability.
        mixing: a bound on the total variation distance from independence between these rows and
            those asked before.

    Theorem: docs/theory/final-ranking.md
    """
    if not values:
        raise InvalidInputError("There are no submissions yet, so there is nothing to rank.")
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
    teams.sort(key=lambda team: (-scores[team], team))  # by name where scores tie: reproducible
    ahead = _ahead(teams, tables, compare, beta / 2)
    groups, unassigned, group = dict.fromkeys(teams, 0), teams, 0
    while unassigned:
        group += 1
        # A group is everybody whom its best team is not significantly ahead of.
        members = [team for team in unassigned if team not in ahead[unassigned[0]]]
        groups.update(dict.fromkeys(members, group))
        unassigned = [team for team in unassigned if team not in members]
    places = []
    for team in teams:
        above = sum(team in below for below in ahead.values())
        tied = [o for o in teams if o != team and o not in ahead[team] and team not in ahead[o]]
        rank = 1 + sum(scores[other] > scores[team] for other in teams)
        worst_rank = len(teams) - len(ahead[team])
        low, high = (metric.shown(end) for end in ends[team])
        shown = metric.shown(scores[team])
        places.append(
            FinalScore(
                *(rank, team, values[team][0], shown, low, high),
                *(1 + above, worst_rank, groups[team], tuple(tied)),
            )
        )
    return FinalRanking(metric.name, rows, confidence, method, tuple(places))


def _means(table: FloatArray) -> list[float]:
    return [float(mean) for mean in np.atleast_1d(table.mean(axis=0))]


def _is_right_or_wrong(metric: Metric) -> bool:
    """Whether all values are 0 or 1 by the metric's definition, whatever was submitted."""
    return metric.labels and len(metric.signs) == 1


def _clusters_of(beliefs: Belief | None, rows: int) -> NDArray[np.intp] | None:
    """Return the cluster of each row; None where rows depend on each other otherwise."""
    if beliefs is None:
        return np.arange(rows)
    return np.asarray(beliefs.codes) if isinstance(beliefs, Clusters) else None


def _interval(
    metric: Metric, beliefs: Belief | None, table: FloatArray, failure: float
) -> tuple[float, float]:
    """Return a confidence interval of a score; each side fails with probability failure/2."""
    rows, units = len(table), _clusters_of(beliefs, len(table))
    means = len(metric.signs)
    if units is None:
        exponent = math.log(2 * means / failure)
        score = metric.score(_means(table))
        low, high = true_score_interval(
            metric, concentration(beliefs), rows, exponent, score, score
        )
        return float(low), float(high)
    exact = beliefs is None and metric.labels
    ends = [
        clopper_pearson(int(column.sum()), rows, failure / means)
        if exact
        else bet_interval(column, units, failure / means)
        for column in table.reshape(rows, means).T
    ]
    worst, best = (
        [
            interval[side if sign > 0 else 1 - side]
            for interval, sign in zip(ends, metric.signs, strict=True)
        ]
        for side in (0, 1)
    )
    return metric.score(worst), metric.score(best)


def clopper_pearson(successes: int, rows: int, failure: float) -> tuple[float, float]:
    """Return the Clopper–Pearson interval, with coverage at least 1 − failure.

    Rows need not be identically distributed: it also covers the mean of unequal success
    probabilities.

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
    """Return the stakes of bets, weighted equally: 1, ½, ¼, … divided by the largest cluster.

    The smallest is below 1/√rows, where a bet would detect a difference of one standard error.
    """
    return np.asarray(2.0 ** -np.arange(2 + math.ceil(math.log2(max(rows, 2)) / 2)) / largest)


def log_wealth(differences: FloatArray, bets: FloatArray, spread_over: int = 0) -> float:
    """Return the log wealth of bets on a positive sum, starting from 1.

    The stake is spread over the bets, or over `spread_over` bets of which the others are lost. If
    the expectations of independent differences add up to 0 or less, and no bet can lose more than
    it stakes, the expected wealth is at most 1.

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
    """Return a betting confidence interval for a mean of values, dependent in clusters.

    It ends where a bet against means further away would have turned 1 into 2/failure. Against a
    small mean stakes may exceed 1, because values can lose no more than the mean.

    Theorem: docs/theory/final-ranking.md
    """
    sizes = np.bincount(units).astype(float)
    largest, limit = float(sizes.max()), math.log(2 / failure) + _STEP
    small = stakes(len(sizes), largest)
    # Stakes above 1 pay off against small means, where a value can lose the mean at most.
    more = 4.0 ** np.arange(1, 1 + math.ceil(math.log(len(sizes) + 1, 4))) / largest
    bets = np.concatenate([more, small])

    def above(sums: FloatArray) -> float:
        """Return the largest mean that bets reject; sums of clusters lie in [0, size]."""
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
"""Returns the p-value of the hypothesis that the first team is no better than the second."""


def _comparison(
    metric: Metric, beliefs: Belief | None, rows: int, pairs: int, failure: float
) -> tuple[Compare, str]:
    """Choose the test by public facts: the metric, the belief, and the number of pairs."""
    units = _clusters_of(beliefs, rows)
    if len(metric.signs) > 1:
        return _by_intervals(metric, beliefs, pairs, failure), (
            "intervals of every mean, also for the differences; Holm over all pairs"
        )
    sign = metric.signs[0]

    def difference(first: FloatArray, second: FloatArray) -> FloatArray:
        return np.asarray(sign * (first - second).reshape(rows))

    if units is None:
        rate = concentration(beliefs).rate

        def by_rate(first: FloatArray, second: FloatArray) -> float:
            mean = float(difference(first, second).mean())
            return math.exp(-rate * rows * mean**2 / 4) * _UP if mean > 0 else 1.0

        return by_rate, f"{concentration(beliefs).theorem}, rows paired; Holm over all pairs"
    if beliefs is None and _is_right_or_wrong(metric):
        return lambda first, second: mcnemar(difference(first, second)), (
            "Clopper and Pearson's intervals, McNemar's exact test of rows paired; Holm over all "
            "pairs"
        )
    bets = stakes(int(units.max()) + 1, float(np.bincount(units).max()))

    def by_bets(first: FloatArray, second: FloatArray) -> float:
        sums = np.asarray(np.bincount(units, weights=difference(first, second)), float)
        return math.exp(-max(log_wealth(sums, bets), 0.0)) * _UP if sums.sum() > 0 else 1.0

    return by_bets, "bets on the rows, which are paired; Holm over all pairs"


def mcnemar(differences: FloatArray) -> float:
    """Return McNemar's exact one-sided p-value, from the rows on which exactly one team is right.

    Theorem: docs/theory/final-ranking.md
    """
    from scipy.special import betainc

    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    return min(float(betainc(won, lost + 1, 0.5)) * _UP, 1.0) if won else 1.0


def _by_intervals(metric: Metric, beliefs: Belief | None, pairs: int, failure: float) -> Compare:
    """Return a test whose p-value is the least tried level at which two intervals are disjoint.

    Levels are failure, failure/2, … down to what Holm's procedure requires of the smallest p-value.
    """
    levels = [failure / 2**k for k in range(math.ceil(math.log2(max(pairs, 1))) + 1)]
    cache: dict[tuple[int, float], tuple[float, float]] = {}

    def ends(table: FloatArray, level: float) -> tuple[float, float]:
        key = (id(table), level)
        if key not in cache:
            cache[key] = _interval(metric, beliefs, table, level)
        return cache[key]

    def compare(first: FloatArray, second: FloatArray) -> float:
        least = 1.0
        for level in levels:
            if ends(first, level)[0] <= ends(second, level)[1]:
                break
            least = level
        return least

    return compare


def _ahead(
    teams: Sequence[str], tables: Mapping[str, FloatArray], compare: Compare, failure: float
) -> dict[str, set[str]]:
    """Return which teams each team is significantly ahead of: Holm over every ordered pair.

    Theorem: docs/theory/final-ranking.md
    """
    pairs = [(first, second) for first in teams for second in teams if first != second]
    p_values = {pair: compare(tables[pair[0]], tables[pair[1]]) for pair in pairs}
    ahead: dict[str, set[str]] = {team: set() for team in teams}
    for rejected, pair in enumerate(sorted(pairs, key=lambda pair: p_values[pair])):
        if p_values[pair] * (len(pairs) - rejected) > failure:
            break
        ahead[pair[0]].add(pair[1])
    return ahead
