"""The Ladder: its count of possible submissions by enumeration, its rule, its bound."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout.ladder_bound import (
    best_steps,
    ladder_width,
    log_possible_submissions,
    width_at,
)


@pytest.mark.parametrize(("submissions", "steps"), [(1, 1), (3, 2), (4, 3), (5, 2)])
def test_as_many_submissions_are_possible_as_score_sequences_can_begin(submissions, steps):
    scores = range(-1, steps + 1)  # -1: none yet
    beginnings = sum(
        all(a <= b for a, b in itertools.pairwise(sequence))
        for length in range(submissions)
        for sequence in itertools.product(scores, repeat=length)
    )
    assert math.exp(log_possible_submissions(submissions, steps)) == pytest.approx(beginnings)


def test_the_width_is_hoeffding_over_all_of_them_plus_a_step():
    n, k, beta, g = 10_000, 50, 0.05, 10
    count = math.comb(k + g + 1, g + 2)
    expected = math.sqrt(math.log(2 * count / beta) / (2 * n)) + 1 / g
    assert width_at(None, n, k, beta, g) == pytest.approx(expected, rel=1e-9)
    best = best_steps(None, n, k, beta)
    assert ladder_width(None, n, k, beta) == min(
        width_at(None, n, k, beta, g) for g in range(1, 99)
    )
    assert 1 <= best < 99


def board(n=1000, **options):
    return qw.Ladder(np.arange(n), **{"submissions": 20, "steps": 10, **options})


def right_on(share):
    return lambda rows: rows < share * 1000


def test_only_a_clear_improvement_moves_the_board():
    b = board()
    assert b.submit("ada", right_on(0.52)).score == 0.5
    assert b.submit("bob", right_on(0.60)) is None
    assert b.submit("bob", right_on(0.601)).score == 0.6
    assert b.submit("ada", right_on(0.3)) is None
    assert [one.team for one in b.standings()] == ["bob", "ada"]
    assert (b.best, b.submitted, b.remaining) == (0.6, 4, 16)


def test_the_board_is_always_within_a_step_of_the_best_on_the_holdout():
    rng = np.random.default_rng(5)
    b, best = board(submissions=300), 0.0
    for share in rng.random(300):
        b.submit("x", right_on(share))
        best = max(best, math.ceil(share * 1000) / 1000)
        assert abs(b.best - best) <= 1 / b.steps + 1e-12


def test_submissions_are_counted_for_all_teams_together():
    b = board(submissions=2)
    b.submit("ada", right_on(0.5))
    b.submit("bob", right_on(0.5))
    with pytest.raises(qw.BudgetExceeded, match="All 2"):
        b.submit("cyd", right_on(0.9))


def test_a_submission_that_fails_scores_nothing():
    b = board()

    def broken(rows):
        raise ValueError("7291")

    assert b.submit("ada", broken).score == 0
    assert b.submit("bob", lambda rows: np.full(len(rows), np.nan)) is None
    assert b.submit("bob", lambda rows: np.full(len(rows), 7.0)).score == 1.0  # clipped to 1


def test_the_bound_is_named_and_printed_at_the_hosts_rows():
    good, bad = board(n=10**5, steps=None), board(n=20, steps=None)
    assert "Blum and Hardt" in good.explain()
    assert f"{good.width:.4g}" in good.explain()
    assert "vacuous" in bad.explain()
    assert "vacuous" not in good.explain()


def test_clusters_widen_the_bound():
    wide = board(beliefs=qw.Clusters([i // 10 for i in range(1000)]))
    assert wide.width > board().width
    with pytest.raises(qw.InvalidInputError, match="rows"):
        board(beliefs=qw.Clusters([0, 1]))


def test_a_board_goes_on_from_its_document():
    b = board()
    b.submit("ada", right_on(0.52))
    b.submit("bob", right_on(0.2))
    again = qw.Ladder.resume(b.to_json(), np.arange(1000))
    assert (again.best, again.submitted, again.standings()) == (b.best, 2, b.standings())
    assert again.submit("cyd", right_on(0.8)).number == 3
    with pytest.raises(qw.InvalidInputError, match="1000 rows"):
        qw.Ladder.resume(b.to_json(), np.arange(10))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(duplicate):
    with pytest.raises(qw.UnsupportedError):
        duplicate(board())


@pytest.mark.parametrize("change", [{"submissions": 0}, {"steps": 0}, {"confidence": 2}])
def test_arguments_that_make_no_sense_are_refused(change):
    with pytest.raises(qw.InvalidInputError):
        board(**change)


def test_printing_shows_numbers_only():
    assert repr(board()) == "Ladder(1000 rows, 20 of 20 submissions left)"


@pytest.mark.parametrize(
    ("team", "statistic"), [("x", 5), (None, len), ("", len), (" ", len), (7, len), ("\ud800", len)]
)
def test_what_is_no_submission_uses_none(team, statistic):
    board = qw.Ladder(np.arange(100) % 2, submissions=3, steps=10)
    with pytest.raises(qw.InvalidInputError):
        board.submit(team, statistic)
    assert (board.submitted, board.best) == (0, None)
