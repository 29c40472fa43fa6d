"""Attacks from the literature on every kind of leaderboard, on the same rows.

Rows have a label and many yes/no features, ten of which are weakly correlated with it. Rows are
independent, come in copies, or follow each other in time. In the last case every feature and the
label is a chain that stays with probability 0.8. A product of such chains forgets as fast as one of
them, so a chain of two states is the belief. A submission is a vote for every row of the holdout,
of the training set and of fresh rows; fresh rows serve only to compute the true accuracy.

The attacks are Blum and Hardt's boosting of random votes, selection of features by their score,
hill climbing with restarts, flips of blocks of labels by row id, and a bandit that learns which of
its arms raise the score. An honest analyst fits on training rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, Clusters, MarkovChain
from quiltwork.errors import BudgetExceeded
from quiltwork.holdout import Ladder, ReusableHoldout, plan_holdout
from quiltwork.holdout.one_bit import OneBit, final_score_width

Votes = NDArray[np.bool_]
STAYS, COPIES, ACCURACY, INFORMED = 0.8, 4, 0.55, 10
"""P(stay) in time, copies of a row, accuracy of an informative feature, number of those."""
WORLDS = ("independent", "duplicated", "in time")
BOARDS = ("plain", "Ladder", "one bit", "counting", "counting, noise")
CONFIDENCE = 0.95


@dataclass(frozen=True)
class World:
    """Rows of the holdout, then of the training set, then fresh rows."""

    name: str
    rows: int
    labels: Votes
    features: NDArray[np.bool_]
    belief: Belief | None

    def truth(self, votes: Votes) -> float:
        """Return the accuracy of votes on fresh rows."""
        return float((votes == self.labels)[2 * self.rows :].mean())


def make_world(name: str, rows: int, features: int, seed: int) -> World:
    """Draw rows: as many for training as in the holdout, twice as many fresh ones."""
    rng = np.random.default_rng(seed)
    parts = [_draw_rows(name, count, features, rng) for count in (rows, rows, 2 * rows)]
    labels = np.concatenate([labels for labels, _ in parts])
    table = np.concatenate([table for _, table in parts])
    belief: Belief | None = None
    if name == "duplicated":
        belief = Clusters((np.arange(rows) // COPIES).tolist())
    if name == "in time":
        belief = MarkovChain([[STAYS, 1 - STAYS], [1 - STAYS, STAYS]])
    return World(name, rows, labels, table, belief)


def _draw_rows(
    name: str, rows: int, features: int, rng: np.random.Generator
) -> tuple[Votes, NDArray[np.bool_]]:
    """Draw labels, and features of which the first `INFORMED` agree with them a little."""
    count = -(-rows // COPIES) if name == "duplicated" else rows
    if name == "in time":
        steps = rng.random((count, features + 1)) >= STAYS
        steps[0] = rng.random(features + 1) < 0.5
        table = np.logical_xor.accumulate(steps, axis=0)
    else:
        table = rng.random((count, features + 1)) < 0.5
    labels, columns = table[:, 0], table[:, 1:].copy()
    if name == "in time":  # informative features are wrong in stretches
        wrong = np.logical_xor.accumulate(rng.random((count, INFORMED)) >= STAYS, axis=0)
        agrees = ~wrong | (rng.random((count, INFORMED)) < 2 * ACCURACY - 1)
    else:
        agrees = rng.random((count, INFORMED)) < ACCURACY
    columns[:, :INFORMED] = labels[:, None] == agrees
    if name == "duplicated":
        labels, columns = (
            np.repeat(labels, COPIES)[:rows],
            np.repeat(columns, COPIES, axis=0)[:rows],
        )
    return labels, columns


@dataclass(frozen=True)
class BoardAnswer:
    """The answer of a board: whether this is the best submission, and a score if it shows one."""

    better: bool
    score: float | None


class Board(Protocol):
    """A leaderboard under attack."""

    promise: float
    step: float

    def ask(self, votes: Votes) -> BoardAnswer:
        """Submit votes."""

    def claim(self) -> float:
        """Return the best score shown at the end."""


class Plain:
    """A board that shows every score as it is."""

    promise, step = 1.0, 0.0  # nothing is promised

    def __init__(self, world: World, submissions: int) -> None:
        self._labels, self._rows, self._best = world.labels, world.rows, 0.0

    def ask(self, votes: Votes) -> BoardAnswer:
        """Submit votes."""
        score = float((votes == self._labels)[: self._rows].mean())
        better, self._best = score > self._best, max(score, self._best)
        return BoardAnswer(better, score)

    def claim(self) -> float:
        """Return the best score shown at the end."""
        return self._best


class Steps:
    """A Ladder, or a board of one bit."""

    def __init__(self, kind: type[Ladder], world: World, submissions: int) -> None:
        self._labels = world.labels
        self._board = kind(np.arange(world.rows), world.belief, submissions=submissions)
        self.step, self.promise = 1 / self._board.steps, self._board.width
        if isinstance(self._board, OneBit):
            self.promise = final_score_width(self.promise, self._board.steps)

    def ask(self, votes: Votes) -> BoardAnswer:
        """Submit votes."""
        right = votes == self._labels
        moved = self._board.submit("climber", lambda rows: right[rows])
        return BoardAnswer(moved is not None, None if moved is None else moved.score)

    def claim(self) -> float:
        """Return the best score shown at the end."""
        if isinstance(self._board, OneBit):
            return self._board.final()
        return float(self._board.best or 0.0)


class Reused:
    """The reusable holdout by counting, with noise or without."""

    def __init__(self, protect: str | None, world: World, submissions: int) -> None:
        plan = plan_holdout(
            world.belief,
            queries=submissions,
            overfits=8,
            samples=world.rows,
            protect=protect,
            mechanism="counting",
        )
        rows = np.arange(world.rows)
        self._labels, self._best, self.promise = world.labels, 0.0, plan.tolerance
        self._held = ReusableHoldout(
            rows + world.rows,
            rows,
            world.belief,
            threshold=plan.threshold,
            noise=plan.noise,
            budget=plan.overfits,
            values=plan.values,
            queries=plan.queries,
        )
        self.step = plan.threshold + 1 / (plan.values or 1)

    def ask(self, votes: Votes) -> BoardAnswer:
        """Submit votes."""
        right = votes == self._labels
        score = self._held.ask(lambda rows: right[rows]).value
        better, self._best = score > self._best, max(score, self._best)
        return BoardAnswer(better, score)

    def claim(self) -> float:
        """Return the best score shown at the end."""
        return self._best


def make_board(name: str, world: World, submissions: int) -> Board:
    """Create a board on the world's holdout."""
    if name == "plain":
        return Plain(world, submissions)
    if name in ("Ladder", "one bit"):
        return Steps(Ladder if name == "Ladder" else OneBit, world, submissions)
    return Reused("rows" if name == "counting, noise" else None, world, submissions)


Ask = Callable[[Votes], BoardAnswer]
Attack = Callable[[World, Ask, int, np.random.Generator], None]


def _vote(votes: Sequence[Votes], rng: np.random.Generator, rows: int) -> Votes:
    """Return the majority of votes, with ties broken at random; random votes if there are none."""
    if not votes:
        return rng.random(rows) < 0.5
    return np.asarray(np.mean(votes, axis=0) + rng.normal(0, 1e-9, rows) > 0.5)


def boosting(world: World, ask: Ask, submissions: int, rng: np.random.Generator) -> None:
    """Submit random votes, keep the good, invert the bad, and submit their majority."""
    chosen: list[Votes] = []
    for _ in range(submissions - 1):
        votes = rng.random(len(world.labels)) < 0.5
        answer = ask(votes)
        if answer.better or (answer.score is not None and answer.score > 0.5):
            chosen.append(votes)
        elif answer.score is not None:
            chosen.append(~votes)
    ask(_vote(chosen, rng, len(world.labels)))


def selection(world: World, ask: Ask, submissions: int, rng: np.random.Generator) -> None:
    """Submit single features; vote with those that are good on training rows and on the board."""
    training = slice(world.rows, 2 * world.rows)
    chosen: list[Votes] = []
    for column in world.features.T[: submissions - 1]:
        agrees_in_training = (column == world.labels)[training].mean() > 0.5
        votes = column if agrees_in_training else ~column
        answer = ask(votes)
        if answer.better or (answer.score is not None and answer.score > 0.5):
            chosen.append(votes)
    ask(_vote(chosen, rng, len(world.labels)))


def restarts(world: World, ask: Ask, submissions: int, rng: np.random.Generator) -> None:
    """Hill climbing: change a few features of a committee; restart after ten failures."""
    size, failures, committee = world.features.shape[1], 10, np.zeros(0, dtype=int)
    for _ in range(submissions):
        if failures >= 10:
            committee, failures = rng.integers(0, size, 25), 0
        candidate = committee.copy()
        candidate[rng.integers(0, 25, 3)] = rng.integers(0, size, 3)
        if ask(world.features[:, candidate].mean(axis=1) > 0.5).better:
            committee, failures = candidate, 0
        else:
            failures += 1


def flips(world: World, ask: Ask, submissions: int, rng: np.random.Generator) -> None:
    """Learn labels by row id: flip a block of predictions, keep it if the score rises."""
    votes, best = rng.random(len(world.labels)) < 0.5, 0.0
    for _ in range(submissions):
        candidate = votes.copy()
        candidate[rng.choice(world.rows, world.rows // 50, replace=False)] ^= True
        answer = ask(candidate)
        if answer.better or (answer.score is not None and answer.score > best):
            votes, best = candidate, best if answer.score is None else answer.score


def bandit(world: World, ask: Ask, submissions: int, rng: np.random.Generator) -> None:
    """Bandit over twenty groups of features: try the most successful, keep what lifts the score."""
    arms = np.array_split(rng.permutation(world.features.shape[1]), 20)
    pulls, wins = np.ones(20), np.ones(20)
    committee = [world.features[:, 0]]
    for turn in range(submissions):
        arm = int(np.argmax(wins / pulls + np.sqrt(2 * np.log(turn + 2) / pulls)))
        column = world.features[:, rng.choice(arms[arm])]
        candidate = [*committee, column if rng.random() < 0.5 else ~column]
        answer = ask(_vote(candidate, rng, len(world.labels)))
        pulls[arm] += 1
        if answer.better:
            wins[arm] += 1
            committee = candidate


def honest(world: World, ask: Ask, submissions: int, rng: np.random.Generator) -> None:
    """Fit on training rows only: vote with a growing number of their best features."""
    training = slice(world.rows, 2 * world.rows)
    agree = (world.features[training] == world.labels[training, None]).mean(axis=0)
    order = np.argsort(-np.abs(agree - 0.5))
    turned = np.where(agree > 0.5, world.features, ~world.features)
    for size in range(1, min(30, submissions, len(order)), 2):
        ask(turned[:, order[:size]].mean(axis=1) > 0.5)


ATTACKS: dict[str, Attack] = {
    "votes": boosting,
    "features": selection,
    "restarts": restarts,
    "flips": flips,
    "bandit": bandit,
    "honest": honest,
}


@dataclass(frozen=True)
class Climb:
    """The final claim of a board beside the true accuracy.

    Attributes:
        claim: the best score that the board shows.
        truth: the best score of all submissions on fresh rows.
        held: the best score on the holdout itself.
        promise: how far the claim may be above or below the truth.
        step: by how much an honest improvement may stay unnoticed.
        submissions: the number before the budget was spent.
    """

    world: str
    attack: str
    board: str
    claim: float
    truth: float
    held: float
    promise: float
    step: float
    submissions: int


def climb(world: World, attack: str, board: str, submissions: int, seed: int) -> Climb:
    """Run one attack on one board."""
    target = make_board(board, world, submissions)
    true_scores, holdout_scores = [0.0], [0.0]

    def ask(votes: Votes) -> BoardAnswer:
        answer = target.ask(votes)
        true_scores.append(world.truth(votes))
        holdout_scores.append(float((votes == world.labels)[: world.rows].mean()))
        return answer

    with suppress(BudgetExceeded):
        ATTACKS[attack](world, ask, submissions, np.random.default_rng(seed))
    outcome: Any = (
        target.claim(),
        max(true_scores),
        max(holdout_scores),
        target.promise,
        target.step,
        len(true_scores) - 1,
    )
    return Climb(world.name, attack, board, *outcome)
