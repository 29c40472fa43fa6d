"""Who is ahead at the end: coverage and p-values by enumeration, families by simulation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout.concentration import largest_distance, mixing_steps
from quiltwork.holdout.final_ranking import (
    bet_interval,
    clopper_pearson,
    log_wealth,
    mcnemar,
    rank_teams,
    ranking_from_body,
    stakes,
)
from quiltwork.holdout.label_table import Labels
from quiltwork.holdout.metrics import parse_metric
from quiltwork.holdout.transcript import Columns

ACCURACY = parse_metric("accuracy")
ERROR = parse_metric("neg_mean_absolute_error", (0, 1))


def law_of_sum(chances):
    """The exact law of how many of independent events occur."""
    law = [Fraction(1)]
    for chance in chances:
        law = [
            (law[k] * (1 - chance) if k < len(law) else 0) + (law[k - 1] * chance if k else 0)
            for k in range(len(law) + 1)
        ]
    return law


@pytest.mark.parametrize("seed", range(12))
def test_clopper_and_pearson_cover_rows_with_unlike_chances(seed):
    rng, failure = np.random.default_rng(seed), 0.1
    rows = int(rng.integers(1, 14))
    chances = [Fraction(int(rng.integers(0, 21)), 20) for _ in range(rows)]
    truth, law = sum(chances) / rows, law_of_sum(chances)
    below = above = Fraction(0)
    for successes, chance in enumerate(law):
        low, high = clopper_pearson(successes, rows, failure)
        assert low <= successes / rows <= high
        below += chance * (high < truth)
        above += chance * (low > truth)
    assert max(below, above) <= failure / 2


def missed_by(rows, chance, failure, shorter=1.0):
    law = law_of_sum([Fraction(chance)] * rows)
    missed = Fraction(0)
    for successes, likely in enumerate(law):
        low, high = clopper_pearson(successes, rows, failure)
        middle = successes / rows
        low, high = (middle + shorter * (end - middle) for end in (low, high))
        missed += likely * (not low <= chance <= high)
    return missed


def test_an_interval_that_is_five_percent_shorter_covers_too_little():
    chances = [Fraction(k, 40) for k in range(8, 33)]
    assert max(missed_by(120, chance, 0.1) for chance in chances) <= 0.1
    assert max(missed_by(120, chance, 0.1, 0.95) for chance in chances) > 0.1


def two_point_units(rng, count, largest):
    """Independent groups: their sizes, and for each two sums with their chances."""
    sizes = rng.integers(1, largest + 1, count)
    units = []
    for size in sizes:
        ends = np.sort(rng.integers(0, 2 * size + 1, 2)) / 2
        units.append([(float(end), p) for end, p in zip(ends, rng.dirichlet([1, 1]), strict=True)])
    return sizes.astype(float), units


@pytest.mark.parametrize("seed", range(10))
def test_what_a_bet_comes_to_is_expected_to_be_one_at_most(seed):
    rng = np.random.default_rng(seed)
    sizes, units = two_point_units(rng, 7, 1 + seed % 3)
    truth = sum(end * p for unit in units for end, p in unit) / sizes.sum()
    expected = {0.0: 0.0, 0.05: 0.0}
    for outcome in itertools.product(*units):
        sums = np.array([end for end, _ in outcome])
        chance = math.prod(p for _, p in outcome)
        for off in expected:
            wealth = log_wealth(sums - (truth - off) * sizes, stakes(7, sizes.max()))
            expected[off] += chance * math.exp(wealth)
    assert expected[0.0] <= 1 + 1e-12
    assert expected[0.0] > 0.2
    assert expected[0.05] > 1.05 * expected[0.0]  # a truth that is 5 points further wins


@pytest.mark.parametrize("seed", range(5))
def test_bet_intervals_cover_groups_of_unlike_sizes(seed):
    rng, failure = np.random.default_rng(seed), 0.4
    sizes, units = two_point_units(rng, 8, 1 + seed % 3)
    codes = np.repeat(np.arange(len(sizes)), sizes.astype(int))
    truth = sum(end * p for unit in units for end, p in unit) / sizes.sum()
    below = above = told = 0.0
    for outcome in itertools.product(*units):
        sums = np.array([end for end, _ in outcome])
        values = np.repeat(sums / sizes, sizes.astype(int))
        low, high = bet_interval(values, codes, failure)
        chance = math.prod(p for _, p in outcome)
        below, above = below + chance * (high < truth), above + chance * (low > truth)
        told += chance * (high - low < 1)
    assert max(below, above) <= failure / 2
    assert told > 0.1  # where the interval is not everything


def test_stakes_are_fixed_before_the_rows_are_seen():
    assert stakes(10_000, 2.0)[0] == 0.5
    assert stakes(10_000, 1.0)[-1] <= 1 / 100
    with np.errstate(all="raise"):
        assert log_wealth(np.array([-1.0, -1.0]), stakes(2, 1.0)) <= 0


def test_bets_on_values_that_vary_little_are_sharper_than_a_range_would_allow():
    values = np.random.default_rng(0).uniform(0.2, 0.3, 4000)
    low, high = bet_interval(values, np.arange(4000), 0.05)
    hoeffding = math.sqrt(math.log(2 / 0.05) / (2 * 4000))
    assert low < 0.25 < high
    assert high - low < 0.5 * (2 * hoeffding)


def test_a_small_mean_is_known_from_below_too():
    """Stakes of at most one would leave 0: a squared error of a hundredth of the range."""
    values = np.random.default_rng(0).uniform(0, 0.005, 3000)
    low, high = bet_interval(values, np.arange(3000), 0.05)
    assert 0.0022 < low < 0.0025 < high < 0.006


@pytest.mark.parametrize("seed", range(3))
def test_large_stakes_cover_small_means_too(seed):
    """Rare values: enumeration of eight rows with unlike chances and sizes."""
    rng, failure = np.random.default_rng(seed), 0.3
    tops, chances = rng.uniform(0.02, 0.3, 8), rng.uniform(0.05, 0.9, 8)
    truth, below, above = float(tops @ chances) / 8, 0.0, 0.0
    for outcome in itertools.product((0, 1), repeat=8):
        hit = np.array(outcome)
        low, high = bet_interval(tops * hit, np.arange(8), failure)
        chance = float(np.where(hit, chances, 1 - chances).prod())
        below, above = below + chance * (high < truth), above + chance * (low > truth)
    assert max(below, above) <= failure / 2


def test_metrics_of_several_means_tell_teams_apart_that_differ():
    """F1 of three counted means: a fifth of what a union of Hoeffding's widths would allow."""
    metric, rng, rows = parse_metric("f1", None, "1", None, 0.4), np.random.default_rng(1), 3000
    true = rng.integers(0, 2, rows)
    values = {}
    for team, right in (("ada", 0.8), ("bob", 0.7), ("cyd", 0.69)):
        said = np.where(rng.random(rows) < right, true, 1 - true)
        values[team] = (1, np.asarray(metric.values(true.astype(str), said.astype(str)), float))
    ranking = rank_teams(replace(metric, labels=True), None, values, 0.95)
    assert {one.team: one.group for one in ranking.scores} == {"ada": 1, "bob": 2, "cyd": 2}
    assert ranking.scores[0].high - ranking.scores[0].low < 0.12


@pytest.mark.parametrize("chances", [(0.3, 0.3), (0.1, 0.1), (0.5, 0.5), (0.2, 0.4)])
def test_mcnemar_rejects_no_more_often_than_it_says(chances):
    """Rows that are won, lost or alike; every outcome of seven of them."""
    won, lost = chances
    kinds = ((1.0, won), (-1.0, lost), (0.0, 1 - won - lost))
    found = []
    for outcome in itertools.product(kinds, repeat=7):
        differences = np.array([value for value, _ in outcome])
        found.append((mcnemar(differences), math.prod(p for _, p in outcome)))
    for level in sorted({p for p, _ in found if p < 1}):
        assert sum(chance for p, chance in found if p <= level) <= level * (1 + 1e-9)
    assert min(p for p, _ in found) == pytest.approx(2.0**-7)


def teams_of(rng, rows, truths, copies=1):
    """Teams with a common difficulty of rows: all of their errors are correlated."""
    hard = rng.random(rows)
    mixed = 0.5 * hard + 0.5 * rng.random((len(truths), rows))
    cut = [np.quantile(0.5 * rng.random(50_000) + 0.5 * rng.random(50_000), t) for t in truths]
    return {
        f"t{at}": (1, np.repeat((mixed[at] < cut[at]).astype(float), copies))
        for at in range(len(truths))
    }


def wrong(ranking, truths):
    """Whether an interval misses its truth, and whether anybody is wrongly ahead."""
    true = {f"t{at}": truth for at, truth in enumerate(truths)}
    scores = {one.team: one for one in ranking.scores}
    missed = any(not one.low - 1e-9 <= true[one.team] <= one.high + 1e-9 for one in ranking.scores)
    ahead = any(
        true[one] <= true[other] + 0.01
        and other not in scores[one].tied
        and scores[one].rank < scores[other].rank
        for one in true
        for other in true
        if one != other
    )
    return missed, ahead


@pytest.mark.parametrize("copies", [1, 2])
def test_all_intervals_and_all_differences_hold_together(copies):
    truths, runs = [0.8, 0.8, 0.8, 0.8, 0.8, 0.9], 120
    missed = ahead = told = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        belief = None if copies == 1 else qw.Clusters(np.arange(600).tolist() * 1)
        if copies > 1:
            belief = qw.Clusters((np.arange(600) // copies).tolist())
        values = teams_of(rng, 600 // copies, truths, copies)
        ranking = rank_teams(ACCURACY, belief, values, 0.8)
        one, other = wrong(ranking, truths)
        missed, ahead = missed + one, ahead + other
        told += ranking.scores[0].group == 1 and ranking.scores[1].group > 1
    assert missed <= 0.1 * runs + 3 * math.sqrt(0.09 * runs)
    assert ahead <= 0.1 * runs + 3 * math.sqrt(0.09 * runs)
    assert told > (0.6 if copies == 1 else 0.1) * runs  # the one that is better is seen


def test_without_holm_somebody_would_be_wrongly_ahead_too_often():
    truths, runs, wrongly = [0.8] * 6, 120, 0
    for seed in range(runs):
        values = teams_of(np.random.default_rng(seed), 600, truths)
        tables = [table for _, table in values.values()]
        pairs = itertools.permutations(tables, 2)
        wrongly += any(mcnemar(one - other) <= 0.1 for one, other in pairs)
    assert wrongly > 0.3 * runs


def test_groups_and_ranks_say_who_cannot_be_told_apart():
    rows = np.zeros(1000)
    levels = {"ada": 900, "bob": 895, "cyd": 700, "dan": 690, "eve": 100}
    values = {team: (2, (np.arange(1000) < n).astype(float)) for team, n in levels.items()}
    for team, by in (("bob", 200), ("dan", 400)):
        values[team] = (2, np.roll(values[team][1], by))
    ranking = rank_teams(ACCURACY, None, values, 0.95)
    shown = {one.team: (one.rank, one.group, one.first, one.last) for one in ranking.scores}
    assert shown["ada"] == (1, 1, 1, 2)
    assert shown["bob"] == (2, 1, 1, 2)
    assert shown["eve"] == (5, 3, 5, 5)
    assert shown["cyd"][:2] == (3, 2)
    assert ranking.scores[0].tied == ("bob",)
    assert "ada leads, but is not significantly ahead of bob" in ranking.explain()
    assert ranking_from_body(ranking.body()) == ranking
    assert [len(row) for row in ranking.table()[1]] == [8] * 5
    assert "ada" in qw.report.standalone_svg(ranking.chart())
    twins = rank_teams(ACCURACY, None, {"a": (1, rows), "b": (9, rows)}, 0.95)
    assert [(one.rank, one.tied) for one in twins.scores] == [(1, ("b",)), (1, ("a",))]
    alone = rank_teams(ACCURACY, None, {"a": (1, rows)}, 0.95)
    assert "a is the only team" in alone.explain()
    with pytest.raises(qw.InvalidInputError, match="There are no submissions yet"):
        rank_teams(ACCURACY, None, {}, 0.95)


@pytest.mark.parametrize("name", ["f1", "neg_mean_absolute_error", "accuracy"])
def test_every_metric_and_belief_gets_intervals_around_its_score(name):
    metric = parse_metric(name, (0, 1) if "error" in name else None, "1", None, 0.3)
    rng, rows = np.random.default_rng(3), 4000
    chain = qw.MarkovChain([[0.7, 0.3], [0.3, 0.7]])
    for belief in (None, chain, qw.Clusters((np.arange(rows) // 3).tolist())):
        values = {}
        for team, share in (("ada", 0.9), ("bob", 0.2)):
            right = (rng.random(rows) < share).astype(float)
            table = (
                right[:, None]
                if len(metric.signs) == 1
                else np.stack([right * 0.5, (1 - right) * 0.5, (1 - right) * 0.5], axis=1)
            )
            values[team] = (1, table if len(metric.signs) > 1 else table[:, 0])
        ranking = rank_teams(metric, belief, values, 0.95)
        better = "bob" if metric.signs == (-1,) else "ada"
        assert ranking.scores[0].team == better
        assert [one.group for one in ranking.scores] == [1, 2]
        for one in ranking.scores:
            assert one.low < one.value < one.high


def test_a_chain_forgets_within_the_gap():
    chain = qw.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    for share in (0.3, 0.01, 1e-4):
        steps, apart = mixing_steps(chain, share)
        powers = [np.linalg.matrix_power(chain.transition, k) for k in (steps - 1, steps)]
        assert largest_distance(powers[1]) <= apart * (1 + 1e-9) <= share * (1 + 1e-6)
        assert steps == 1 or largest_distance(powers[0]) > share
    box = qw.ChainBox([[0.7, 0.1], [0.2, 0.6]], [[0.9, 0.3], [0.4, 0.8]])
    steps, apart = mixing_steps(box, 0.01)
    assert apart <= 0.01
    stuck = qw.MarkovChain([[1 - 1e-7, 1e-7], [1e-7, 1 - 1e-7]])
    with pytest.raises(qw.UnsupportedError, match="keep no rows apart for the final ranking"):
        mixing_steps(stuck, 0.01)


def test_asked_and_kept_rows_of_a_chain_are_as_good_as_independent():
    """Every path of eight steps: asked, gap, kept, gap, asked."""
    chain = qw.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    asked, kept, gap = (0, 1, 6, 7), (3, 4), 1
    joint: dict[tuple, float] = {}
    for path in itertools.product((0, 1), repeat=8):
        chance = chain.stationary[path[0]]
        for one, other in itertools.pairwise(path):
            chance *= chain.transition[one, other]
        key = tuple(path[i] for i in asked), tuple(path[i] for i in kept)
        joint[key] = joint.get(key, 0.0) + chance
    first, second = ({}, {})
    for (a, f), chance in joint.items():
        first[a], second[f] = first.get(a, 0.0) + chance, second.get(f, 0.0) + chance
    apart = sum(abs(joint[a, f] - first[a] * second[f]) for a in first for f in second) / 2
    theta = largest_distance(np.linalg.matrix_power(chain.transition, gap))
    assert 0.05 < apart <= 2 * theta


def labels(rows, groups=None, belief=None):
    ids = [f"row {i}" for i in range(rows)]
    return Labels(Columns("id", "y", "g"), ids, np.zeros(rows, str), groups, belief)


def test_whole_groups_are_kept_and_the_key_alone_says_which():
    groups = np.array([f"g{i % 37}" for i in range(500)])
    seen = set()
    for key in ("00", "01", "ff"):
        asked, kept = labels(500, groups).split(0.4, 0, key)
        assert not (set(groups[asked]) & set(groups[kept]))
        assert (asked ^ kept).all()
        assert 0.4 <= kept.mean() < 0.45
        seen.add(kept.tobytes())
        order = np.random.default_rng(0).permutation(500)  # another order of the file
        mixed = Labels(
            *(Columns("id", "y", "g"), np.array(labels(500).ids)[order].tolist()),
            *(np.zeros(500, str), groups[order]),
        )
        assert (mixed.split(0.4, 0, key)[1] == kept[order]).all()
    assert len(seen) == 3


def test_rows_are_kept_equally_often():
    often = sum(labels(40).split(0.25, 0, f"{key:04x}")[1] for key in range(800))
    assert (np.abs(often / 800 - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 800)).all()


def test_of_a_series_one_block_is_kept_with_a_gap_on_either_side():
    chain = qw.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    made = labels(2000, None, chain)
    gap, mixing = made.gap_for(0.5, 0.05)
    assert 0 < mixing <= 0.05 / 50
    places = set()
    for key in range(30):
        asked, kept = made.split(0.5, gap, f"{key:02x}")
        at = np.flatnonzero(kept)
        assert (len(at), at[-1] - at[0]) == (1000, 999)
        nearest = min(abs(one - end) for one in np.flatnonzero(asked) for end in (at[0], at[-1]))
        assert nearest == gap + 1
        places.add(int(at[0]))
    assert len(places) > 20
    with pytest.raises(qw.InvalidInputError, match="more than half of the other rows"):
        labels(40, None, chain).gap_for(0.5, 0.05)
    net = qw.GaussianRows([[1, 0.1], [0.1, 1]])
    with pytest.raises(qw.UnsupportedError, match="no part is proven"):
        labels(2, None, net).gap_for(0.5, 0.05)
