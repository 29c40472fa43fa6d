"""The Ladder: its count of possible submissions by enumeration, its rule, its bound."""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
import threading

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout.counting import exponents, ladder_levels
from quiltwork.holdout.ladder import least_width, width_at
from quiltwork.holdout.sealed_log import chain_line, secret_path
from quiltwork.holdout.transcript import AnnouncementRule, Transcript, read_transcript


@pytest.mark.parametrize(("submissions", "steps"), [(1, 1), (3, 2), (4, 3), (5, 2)])
def test_as_many_submissions_are_possible_as_score_sequences_can_begin(submissions, steps):
    scores = range(-1, steps + 1)  # -1: none yet
    beginnings = sum(
        all(a <= b for a, b in itertools.pairwise(sequence))
        for length in range(submissions)
        for sequence in itertools.product(scores, repeat=length)
    )
    # a board that shows the highest score has nothing more to announce, and is held to nothing
    finished = math.comb(submissions, steps + 2)
    levels = np.exp(ladder_levels(submissions, steps))
    assert levels.sum() == pytest.approx(beginnings - finished)
    assert beginnings == math.comb(submissions + steps + 1, steps + 2)


def test_the_width_is_hoeffding_over_all_of_them_plus_a_step():
    n, k, beta, g = 10_000, 50, 0.05, 10
    levels = [math.comb(k, b + 1) * math.comb(g + 1, b) for b in range(g + 1)]
    least_share = min(1 / (2 * sum(levels)) + 1 / (2 * len(levels) * one) for one in levels)
    expected = math.sqrt(math.log(2 / (beta * least_share)) / (2 * n)) + 1 / g
    assert width_at(None, n, k, beta, g) == pytest.approx(expected + 2**-21, rel=1e-9)
    width, best = least_width(None, n, k, beta)
    least = min(width_at(None, n, k, beta, g) for g in range(1, 99))
    assert width == width_at(None, n, k, beta, best) <= 1.001 * least


def test_who_asks_for_no_score_but_the_best_is_told_to_use_a_ladder():
    plan = qw.plan_holdout(queries=1000, tolerance=0.1)
    assert (plan.mechanism, plan.overfits, plan.noise) == ("ladder", 0, 0.0)

    def width(n, g):
        exponent = exponents(ladder_levels(1000, g), 0.05)[-1]
        return math.sqrt(exponent / (2 * n)) + 2**-21 + 1 / g

    assert width(plan.samples, plan.values) <= 0.1
    least = min(width(round(0.998 * plan.samples), g) for g in range(1, 200))
    assert least > 0.1
    made = qw.Ladder(np.arange(plan.samples), submissions=1000)
    assert (made.steps, made.width <= 0.1, plan.threshold) == (plan.values, True, 1 / made.steps)
    assert qw.plan_holdout(queries=1000, samples=plan.samples).tolerance == pytest.approx(
        made.width, rel=2e-4
    )
    assert qw.plan_holdout(tolerance=0.1, samples=plan.samples).queries >= 1000
    assert "best score of 1,000 submissions" in plan.explain()
    assert "a Ladder" in qw.plan_holdout(queries=9, overfits=2, tolerance=0.2).explain()
    with pytest.raises(qw.InvalidInputError, match="submissions=1000"):
        qw.ReusableHoldout.from_plan(plan, np.zeros(9), np.zeros(plan.samples))
    for wrong in ({"overfits": 5, "tolerance": 0.1}, {}):
        with pytest.raises(qw.InvalidInputError, match="improvements only"):
            qw.plan_holdout(queries=1000, mechanism="ladder", **wrong)
    with pytest.raises(qw.UnsupportedError, match="protects no row"):
        qw.plan_holdout(queries=1000, tolerance=0.1, protect="rows")


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


def test_a_board_goes_on_from_its_file(tmp_path):
    path = tmp_path / "board.jsonl"
    b = board(path=path)
    b.submit("ada", right_on(0.52))
    b.submit("bob", right_on(0.2))
    with pytest.raises(qw.StorageError, match="in use"):
        qw.Ladder.resume(path, np.arange(1000))
    b.close()
    with pytest.raises(qw.InvalidInputError, match="closed"):
        b.submit("cyd", right_on(0.8))
    again = qw.Ladder.resume(path, np.arange(1000))
    assert (again.best, again.submitted, again.standings()) == (b.best, 2, b.standings())
    assert again.to_json() == b.to_json()
    assert again.submit("cyd", right_on(0.8)).number == 3
    again.close()
    assert qw.Ladder.resume(path, np.arange(1000)).best == 0.8
    for file in (path, secret_path(path)):
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "beliefs",
    [
        None,
        qw.Clusters([f"family {i // 10}" for i in range(1000)]),
        qw.MarkovChain([[0.9, 0.1], [0.2, 0.8]]),
        qw.MarkovChain([[0.9, 0.1], [0.2, 0.8]], initial="any"),
        [qw.MarkovChain([[0.6, 0.4], [0.4, 0.6]]), qw.Clusters([i // 5 for i in range(1000)])],
    ],
)
def test_a_resumed_board_keeps_its_beliefs_and_its_width(tmp_path, beliefs):
    path = tmp_path / "board.jsonl"
    b = board(beliefs=beliefs, path=path, steps=None, confidence=0.9)
    b.close()
    assert "family" not in path.read_text()
    again = qw.Ladder.resume(path, np.arange(1000))
    assert again.width == b.width
    assert again.width == width_at(beliefs, 1000, 20, 1 - 0.9, b.steps)
    assert again.explain() == b.explain()


def test_a_board_of_clusters_stays_within_its_width_when_it_is_resumed(tmp_path, monkeypatch):
    """Labels are one coin per cluster, so every guess is right half of the time. The width of
    independent rows, which a board without its beliefs would show, breaks."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    n, size, submissions, broken = 8000, 200, 40, 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = np.column_stack([np.arange(n), np.repeat(rng.integers(0, 2, n // size), size)])
        path = tmp_path / f"{seed}.jsonl"
        b = qw.Ladder(
            rows, qw.Clusters(np.arange(n) // size), submissions=submissions, steps=20, path=path
        )
        whole = b.width
        for at in range(submissions):
            guess = rng.integers(0, 2, n // size)
            b.submit("x", lambda some, g=guess: g[some[:, 0] // size] == some[:, 1])
            if at == submissions // 2:
                b.close()
                b = qw.Ladder.resume(path, rows)
        assert abs(b.best - 0.5) <= b.width == whole
        broken += abs(b.best - 0.5) > width_at(None, n, submissions, 0.05, 20)
    assert broken >= 2


@pytest.mark.parametrize(
    "other",
    [np.arange(1000) + 0.0, np.arange(1, 1001), np.arange(1000)[::-1], np.arange(10)],
)
def test_a_board_is_not_resumed_with_other_data(tmp_path, other):
    path = tmp_path / "board.jsonl"
    board(path=path).close()
    with pytest.raises(qw.StorageError, match="other data"):
        qw.Ladder.resume(path, other)
    qw.Ladder.resume(path, np.arange(1000))


def test_the_file_of_a_board_lets_nobody_try_guesses_of_the_rows(tmp_path):
    """The digest in the readable file is another one each time, and its key is elsewhere."""
    commitments = set()
    for name in "ab":
        path = tmp_path / f"{name}.jsonl"
        board(path=path).close()
        commitments.add(json.loads(path.read_text().split("\n")[0])["commitment"])
        key = json.loads(secret_path(path).read_text())["key"]
        assert key not in path.read_text()
    assert len(commitments) == 2


def test_no_change_to_the_file_of_a_board_regains_a_submission(tmp_path):
    path = tmp_path / "board.jsonl"
    b = board(submissions=2, path=path)
    states = [path.read_text()]
    for share in (0.5, 0.7):
        b.submit("ada", right_on(share))
        states.append(path.read_text())
    with pytest.raises(qw.BudgetExceeded, match="All 2"):
        b.submit("ada", right_on(0.9))
    b.close()
    more = states[-1].replace('"submissions": 2', '"submissions": 20')
    other = states[-1].replace('"beliefs": null', '"beliefs": {}')
    for text in (*states[:-1], more, other, states[-1][:-9]):
        assert text != states[-1]
        path.write_text(text)
        with pytest.raises(qw.StorageError, match=r"cut, edited or replaced|Line"):
            qw.Ladder.resume(path, np.arange(1000))
    path.write_text(states[-1])
    again = qw.Ladder.resume(path, np.arange(1000))
    assert again.remaining == 0
    with pytest.raises(qw.BudgetExceeded, match="All 2"):
        again.submit("ada", right_on(0.9))


def test_a_submission_counts_before_it_is_scored_and_shows_after_it_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "board.jsonl"
    b = board(path=path)
    lines = []

    def watching(rows):
        lines.append(path.read_text().count("\n"))
        return rows < 500

    b.submit("ada", watching)
    assert lines[0] == 2
    real = b._log.append

    def full(bodies, secret):
        if "outcome" in bodies[0]:
            raise qw.StorageError("No space left")
        return real(bodies, secret)

    monkeypatch.setattr(b._log, "append", full)
    with pytest.raises(qw.StorageError, match="No space"):
        b.submit("bob", right_on(0.9))
    assert (b.best, b.submitted) == (0.5, 2)
    again = qw.Ladder.resume(path, np.arange(1000))
    assert (again.best, again.submitted, again.remaining) == (0.5, 2, 18)


RULES = Transcript(AnnouncementRule("ladder", 10, 20, 0.95, 10), "00", "", None)


def told(value):
    return {"outcome": "announced", "value": value}


@pytest.mark.parametrize(
    "body",
    [
        {"number": 3, "label": "x"},
        {"number": 2, **told("1/2")},
        {"number": 1, **told("1e10000000")},
        {"number": 1, **told("1/3")},
        {"number": 1, **told("-1/10")},
        {"number": 1, **told("11/10")},
        {"number": 1, **told(0.5)},
        {"number": 1, "outcome": "unmoved", "value": "1/2"},
        {"number": 1, "outcome": "better", "value": None},
        {"number": 1, "outcome": "kept", "value": None},
        {"number": 1, "outcome": "announced", "value": None},
        {"number": 1},
        {"number": True, "label": "x"},
        {"number": 2, "label": 7},
        {"number": 2, "label": "x", "note": {"other": "1"}},
        {"label": "x"},
        {"named": {"ada": 2}},
        {"named": {"bob": 1}},
        {"chosen": {"ada": 0}},
        {"ranking": {}},
        {"best": "1/3"},
    ],
)
def test_lines_that_no_board_writes_are_refused(body):
    first = chain_line({"number": 1, "label": "ada"}, RULES.header())
    good = "\n".join([RULES.header(), first, chain_line({"number": 1, **told("1/2")}, first)])
    assert read_transcript(good).standings[0].score == 0.5
    with pytest.raises(qw.StorageError, match="Line 3"):
        read_transcript("\n".join([RULES.header(), first, chain_line(body, first)]))


@pytest.mark.parametrize("change", [{"rows": 10**400}, {"submissions": 0}, {"steps": "10"}, None])
def test_a_board_without_its_rules_is_refused(change):
    rules = json.loads(RULES.header())
    changed = {"schema": rules["schema"], "version": 1} if change is None else {**rules, **change}
    with pytest.raises(qw.StorageError, match="Line 1"):
        read_transcript(json.dumps(changed))
    with pytest.raises(qw.InvalidInputError):
        read_transcript("")


def test_a_submission_may_wait_for_a_thread_that_submits():
    b = board()

    def impatient(rows):
        thread = threading.Thread(target=b.submit, args=("inner", right_on(0.3)))
        thread.start()
        thread.join()
        return rows < 500

    assert b.submit("outer", impatient).score == 0.5
    assert b.submitted > 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(duplicate):
    with pytest.raises(qw.UnsupportedError):
        duplicate(board())


@pytest.mark.parametrize(
    "change", [{"submissions": 0}, {"steps": 0}, {"steps": 2**21}, {"confidence": 2}]
)
def test_arguments_that_make_no_sense_are_refused(change):
    with pytest.raises(qw.InvalidInputError):
        board(**change)


def test_printing_shows_numbers_only():
    assert repr(board()) == "Ladder(1000 rows, 20 of 20 submissions left)"


@pytest.mark.parametrize(
    ("team", "statistic"),
    [("x", 5), (None, len), ("", len), (" ", len), (7, len), ("\ud800", len), ("x" * 201, len)],
)
def test_what_is_no_submission_uses_none(team, statistic):
    board = qw.Ladder(np.arange(100) % 2, submissions=3, steps=10)
    with pytest.raises(qw.InvalidInputError):
        board.submit(team, statistic)
    assert (board.submitted, board.best) == (0, None)
