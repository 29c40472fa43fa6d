"""What boards are held to: trees enumerated, tails in exact fractions, climbers, honest teams."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import OneBit
from quiltwork.holdout.concentration import Concentration, concentration
from quiltwork.holdout.counting import exponents, ladder_levels, one_bit_levels
from quiltwork.holdout.ladder import least_width
from quiltwork.holdout.metrics import parse_metric, true_score_interval


@pytest.mark.parametrize("limit", [None, 1, 2, 3])
@pytest.mark.parametrize("kind", [qw.Ladder, OneBit])
def test_no_contestant_can_come_to_more_submissions_than_are_counted(kind, limit):
    """Every sequence of four scores on six rows; what is compared has one of the transcripts."""
    rows, submissions, steps = 6, 4, 3
    heard = defaultdict(set)
    for scores in itertools.product(range(rows + 1), repeat=submissions):
        board = kind(np.arange(rows), submissions=submissions, steps=steps, announcements=limit)
        told: list[tuple[int, float | None]] = []
        for at, score in enumerate(scores):
            if board.announces:
                heard[len(told)].add((at, *told))
            moved = board.submit("x", lambda rows, s=score: rows < s)
            if moved is not None:
                told.append((at, moved.score))
    counted = {qw.Ladder: ladder_levels, OneBit: one_bit_levels}[kind](submissions, steps, limit)
    assert sum(map(len, heard.values())) > (submissions if limit is None else 0)
    for announced, transcripts in heard.items():
        if announced <= steps:  # a Ladder that shows 1 has nothing to compare
            assert len(transcripts) <= round(math.exp(counted[announced]))


@pytest.mark.parametrize(
    ("submissions", "steps", "limit", "means"), [(5, 3, None, 1), (500, 83, 20, 1), (40, 9, 4, 3)]
)
def test_the_shares_of_all_nodes_add_up_to_no_more_than_the_whole(submissions, steps, limit, means):
    count = min(submissions, steps + 1, limit or steps + 1)
    nodes = [math.comb(submissions, b + 1) * math.comb(steps + 1, b) for b in range(count)]
    found = exponents(ladder_levels(submissions, steps, limit), 0.05, means)
    assert len(found) == count
    spent = sum(
        Fraction(number) * 2 * means * Fraction(math.exp(-one))
        for number, one in zip(nodes, found, strict=True)
    )
    assert 0.4 * 0.05 <= spent <= 0.05
    uniform = math.log(2 * means * sum(nodes) / 0.05)
    assert found[-1] <= uniform + math.log(2) + 1e-6  # what early announcements cost late ones


def law_of_sum(chances):
    """The exact law of how many of independent events occur."""
    law = [Fraction(1)]
    for chance in chances:
        law = [
            (law[k] * (1 - chance) if k < len(law) else 0) + (law[k - 1] * chance if k else 0)
            for k in range(len(law) + 1)
        ]
    return law


def missed(found, rows, law, scale, truth, exponent):
    """How likely it is that the ends lie on one side of the truth, on either side; exact."""
    above = below = Fraction(0)
    for count, chance in enumerate(law):
        mean = count * scale
        above += chance * (found.lower(rows, float(mean), exponent) > truth)
        below += chance * (found.upper(rows, float(mean), exponent) < truth)
    return max(above, below)


def test_binomial_ends_miss_as_seldom_as_they_say_in_exact_fractions():
    rows, exponent, worst = 40, 3.0, 0.0
    for truth in [Fraction(k, 40) for k in range(1, 40)]:
        alike = law_of_sum([truth] * rows)
        spread = [min(Fraction(2) * truth * i / (rows - 1), Fraction(1)) for i in range(rows)]
        mean = sum(spread) / rows
        for law, true in ((alike, truth), (law_of_sum(spread), mean)):
            found = missed(concentration(None), rows, law, Fraction(1, rows), true, exponent)
            worst = max(worst, float(found))
            assert found <= Fraction(math.exp(-exponent))
    assert worst > 0.2 * math.exp(-exponent)
    too_sharp = Concentration(2.0, "a control", 1.8)
    truth = Fraction(9, 10)
    law = law_of_sum([truth] * rows)
    assert missed(too_sharp, rows, law, Fraction(1, rows), truth, exponent) > math.exp(-exponent)


def test_clusters_of_any_sizes_count_as_rows_over_the_largest():
    sizes = [4, 4, 2, 1, 1, 4, 3, 4, 2, 4, 1, 4]
    labels = [at for at, size in enumerate(sizes) for _ in range(size)]
    found, rows = concentration(qw.Clusters(labels)), len(labels)
    assert found.weight == pytest.approx(1 / 4, rel=1e-9)
    worst = 0.0
    for truth in [Fraction(k, 20) for k in range(1, 20)]:
        law = {0: Fraction(1)}
        for size in sizes:  # all rows of a cluster agree
            then: dict[int, Fraction] = defaultdict(Fraction)
            for total, chance in law.items():
                then[total + size] += chance * truth
                then[total] += chance * (1 - truth)
            law = then
        whole = [law.get(total, Fraction(0)) for total in range(rows + 1)]
        for exponent in (1.0, 2.5):
            off = missed(found, rows, whole, Fraction(1, rows), truth, exponent)
            worst = max(worst, float(off) / math.exp(-exponent))
            assert off <= Fraction(math.exp(-exponent))
        if truth == Fraction(1, 2):
            as_rows = missed(concentration(None), rows, whole, Fraction(1, rows), truth, 2.5)
            assert as_rows > math.exp(-2.5)  # as if rows were independent: wrong
    assert worst > 0.2


@pytest.mark.parametrize("name", ["accuracy", "neg_mean_absolute_error", "r2", "f1"])
def test_the_truth_of_a_score_lies_between_the_ends_of_its_means(name):
    metric = parse_metric(name, (0, 1) if "error" in name or name == "r2" else None, "1", 0.3, 0.2)
    found, rows, exponent = concentration(None), 3000, 8.0
    rng = np.random.default_rng(3)
    for _ in range(50):
        means = rng.random(len(metric.signs)) / len(metric.signs)
        ends = true_score_interval(metric, found, rows, exponent, *[metric.score(means)] * 2)
        for side in (-1, 1):
            moved = [
                found.upper(rows, one, exponent)
                if side * sign > 0
                else found.lower(rows, one, exponent)
                for one, sign in zip(means, metric.signs, strict=True)
            ]
            assert ends.low - 1e-9 <= metric.score(moved) <= ends.high + 1e-9
        if len(means) == 1 and 0 < metric.score(means) < 1:
            assert ends.high - ends.low < 2.1 * metric.spread(found.width_at(rows, exponent))


def half_length(board, standing):
    low, high = board.interval(standing)
    return (high - low) / 2


@pytest.mark.parametrize(("limit", "goal"), [(20, 0.06), (8, 0.045), (None, 0.07)])
def test_an_announced_score_of_85_percent_is_known_as_well_as_is_said(limit, goal):
    """12,000 rows and 500 submissions: the widest is that of the last announcement."""
    rows = 12_000
    steps = least_width(None, rows, 500, 0.05, announcements=limit)[1]
    levels = ladder_levels(500, steps, limit)
    for announced in (0, len(levels) - 1):
        exponent = exponents(levels, 0.05)[announced]
        ends = true_score_interval(
            parse_metric("accuracy"),
            concentration(None),
            rows,
            exponent,
            0.85 - 1 / (2 * steps),
            0.85 + 1 / (2 * steps),
        )
        assert (ends.high - ends.low) / 2 <= (goal if announced else 0.04)
    board = qw.Ladder(np.arange(rows), submissions=500, announcements=limit)
    first = board.submit("ada", lambda data: data < 0.85 * rows)
    assert board.steps == steps
    assert half_length(board, first) <= 0.04 < goal
    assert board.interval(first).low < 0.85 < board.interval(first).high


def test_after_the_last_announcement_nothing_is_compared():
    looked = []

    def right_on(share):
        def values(rows):
            looked.append(share)
            return rows < share * 1000

        return values

    board = qw.Ladder(np.arange(1000), submissions=6, steps=20, announcements=2)
    assert board.submit("ada", right_on(0.5)).score == 0.5
    assert board.submit("bob", right_on(0.5)) is None
    assert board.submit("bob", right_on(0.7)).score == 0.7
    del looked[:]
    assert not board.announces
    assert board.submit("ada", right_on(0.99)) is None
    assert (looked, board.best, board.remaining) == ([], 0.7, 2)
    assert "2 announcements" in board.explain()


TRUE, ROWS, TRIES = 0.5, 600, 120


def climbers(rng):
    """Six ways to climb, each a function (heard so far, number of try) → votes, right or wrong."""
    coins = rng.integers(0, 2, (TRIES, ROWS)).astype(bool)

    def boosted(kept, at):  # majority of what was announced, with one more vote
        return np.mean([*kept, coins[at]], axis=0) + rng.random(ROWS) * 1e-3 > 0.5

    def flips(kept, at):  # change a few rows of the best
        best = kept[-1].copy() if kept else coins[0].copy()
        rows = rng.choice(ROWS, 8, replace=False)
        best[rows] = ~best[rows]
        return best

    def restarts(kept, at):
        return coins[at]

    def halves(kept, at):  # flip a whole block of the best
        best = kept[-1].copy() if kept else coins[0].copy()
        start = at * 10 % ROWS
        best[start : start + 10] ^= True
        return best

    def bandit(kept, at):  # mix two of the announced
        if len(kept) < 2:
            return coins[at]
        return np.where(coins[at], kept[-1], kept[-2])

    def grow(kept, at):  # trust the announced in proportion to how often
        if not kept:
            return coins[at]
        return rng.random(ROWS) < 0.1 + 0.8 * np.mean(kept, axis=0)

    return (boosted, flips, restarts, halves, bandit, grow)


def climbed(seed, which, limit):
    """The intervals of every announcement, on labels that nothing predicts."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, ROWS).astype(bool)
    climb, kept = climbers(rng)[which], []
    board = qw.Ladder(
        np.arange(ROWS), submissions=TRIES, announcements=limit, confidence=0.8, steps=80
    )
    for at in range(TRIES):
        votes = climb(kept, at)
        if board.submit("climber", lambda rows, v=votes: v[rows] == labels[rows]) is not None:
            kept.append(votes)
    return board, [board.interval(one) for one in board.standings()]


@pytest.mark.parametrize("limit", [5, None])
def test_six_climbers_are_never_announced_beyond_what_is_said(limit):
    above = fixed = count = 0
    for which, seed in itertools.product(range(6), range(8)):
        board, ends = climbed(seed, which, limit)
        count += len(ends)
        above += sum(not low <= TRUE <= high for low, high in ends)
        width = concentration(None).width_at(ROWS, math.log(2 / 0.2))
        fixed += board.best > TRUE + width + 1 / (2 * board.steps)
    assert count > 120
    assert above == 0
    assert fixed > 5  # a control: the width of one fixed question is climbed over


def test_forty_boards_of_twenty_honest_models_are_all_inside():
    """Models drawn without looking at the board; the truth of each is known."""
    checked = outside = 0
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = 3000
        board = qw.Ladder(np.arange(rows), submissions=20, announcements=8)
        truths = {}
        for number, truth in enumerate(rng.uniform(0.75, 0.9, 20), start=1):
            right = rng.random(rows) < truth
            truths[number] = truth
            board.submit(f"team {number}", lambda data, r=right: r[data])
        for standing in board.standings():
            low, high = board.interval(standing)
            checked += 1
            outside += not low <= truths[standing.number] <= high
            errors.append(abs(standing.score - truths[standing.number]))
    assert checked > 80
    assert outside == 0
    assert 0.002 < np.mean(errors) < 0.03
