"""Longer memory: chains whose next state depends on a context, counted and smoothed.

A context is the part of the past that matters: the last few states, or the last state and how long
it has lasted. The counts of a context are smoothed towards the chain of order 1, so a context
without data has that chain's probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.beliefs.states import Label
from quiltwork.beliefs.transition_counts import (
    count_path_transitions,
    encode_paths,
    parse_smoothing,
    smoothed_rows,
)
from quiltwork.errors import InvalidInputError

MOST_INNER = 100
"""The largest number of contexts of a belief; a calibration then takes some ten seconds."""

CAPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
MOST_AGES = 48
_BLOCKS = 16
_POWERS = range(-5, 4)


@dataclass(frozen=True, eq=False)
class ContextModel:
    """A kind of memory: its contexts and how they follow each other.

    Attributes:
        shows: the last state of each context.
        follows: (contexts, k) the context after a context and a state.
        read: maps a path to the context at every point; −1 where the past is too short.
    """

    shows: IntArray
    follows: IntArray
    read: Callable[[IntArray], IntArray]

    @property
    def states(self) -> int:
        """The number of states k."""
        return int(self.follows.shape[1])


def last_states(size: int, order: int) -> ContextModel:
    """Return the memory of the last `order` states, the oldest first."""
    codes = np.arange(size**order)
    follows = (codes[:, np.newaxis] * size + np.arange(size)) % size**order

    def read(path: IntArray) -> IntArray:
        context = np.zeros(len(path), dtype=np.int64)
        for back in range(order):
            context[back:] += path[: len(path) - back] * size**back
        context[: order - 1] = -1
        return context

    return ContextModel(codes % size, follows, read)


def ages(size: int, cap: int) -> ContextModel:
    """Return the memory of the last state and its duration in time points, up to a cap."""
    state, age = np.divmod(np.arange(size * cap), cap)
    stays = state[:, np.newaxis] == np.arange(size)
    older = (state * cap + np.minimum(age + 1, cap - 1))[:, np.newaxis]
    follows = np.where(stays, older, np.arange(size) * cap)

    def read(path: IntArray) -> IntArray:
        position = np.arange(len(path))
        begins = np.append(True, np.diff(path) != 0)
        age = position - np.maximum.accumulate(np.where(begins, position, 0))
        context = path * cap + np.minimum(age, cap - 1)
        # At the cap the exact duration no longer matters, so a censored stay counts from there on.
        censored = np.cumsum(begins) == 1  # the first state may have begun before the data
        context[censored & (age < cap - 1)] = -1
        return context

    return ContextModel(state, follows, read)


def fold_of_steps(path: IntArray, number: int) -> IntArray:
    """Return the fold, 0 or 1, of each step of a path: blocks are dealt alternately."""
    size = -(-len(path) // _BLOCKS)
    return (np.arange(len(path) - 1) // size + number) % 2


def count_contexts(
    paths: Sequence[IntArray], kind: ContextModel, halves: Sequence[IntArray] | None = None
) -> FloatArray:
    """Return counts of next states per context, (2, contexts, k) by fold; all in fold 0 if none."""
    contexts, size = kind.follows.shape
    counts = np.zeros(2 * contexts * size)
    for number, path in enumerate(paths):
        context = kind.read(path)[:-1]
        half = np.zeros_like(context) if halves is None else halves[number]
        cell = ((half * contexts + context) * size + path[1:])[context >= 0]
        counts += np.bincount(cell, minlength=len(counts))
    return counts.reshape(2, contexts, size)


def smoothed_contexts(
    counts: FloatArray, kind: ContextModel, plain: FloatArray, smoothing: float
) -> FloatArray:
    """Return transition probabilities per context, smoothed towards those of its last state."""
    rows = counts + smoothing * kind.states * plain[kind.shows]
    with np.errstate(invalid="ignore"):
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def inner_matrix(rows: FloatArray, kind: ContextModel) -> FloatArray:
    """Return the transition matrix between contexts."""
    contexts, size = rows.shape
    matrix = np.zeros((contexts, contexts))
    matrix[np.arange(contexts)[:, np.newaxis].repeat(size, axis=1), kind.follows] = rows
    return matrix


def held_out_log_likelihood(
    paths: Sequence[IntArray], kind: ContextModel, size: int, smoothing: float
) -> float:
    """Return the held-out log-likelihood: each fold scored by the fit on the other.

    The chain of order 1 gets the smoothing under which it is likeliest: with too little or too
    much, a longer memory could win merely by repairing that. Steps whose context is not yet known
    are scored by the last state alone, so that kinds of memory are compared on the same steps.
    """
    halves = [fold_of_steps(path, number) for number, path in enumerate(paths)]
    # A longer memory must win against the best smoothing of order 1, not only against this one.
    alone = count_contexts(paths, last_states(size, 1), halves)
    amounts = [smoothing * 4.0**power for power in _POWERS]
    scores = [_plainly(alone, amount) for amount in amounts]
    if len(kind.shows) == size:
        return max(scores)
    amount, counts = amounts[int(np.argmax(scores))], count_contexts(paths, kind, halves)
    total = 0.0
    for fit, test in ((0, 1), (1, 0)):
        plain = _rows(alone[fit], amount)
        rows = smoothed_contexts(counts[fit], kind, plain, smoothing)
        covered = np.zeros((size, size))
        np.add.at(covered, kind.shows, counts[test])
        total += log_likelihood(counts[test], rows) + log_likelihood(alone[test] - covered, plain)
    return total


def _plainly(alone: FloatArray, amount: float) -> float:
    return sum(log_likelihood(alone[1 - half], _rows(alone[half], amount)) for half in (0, 1))


def _rows(counts: FloatArray, amount: float) -> FloatArray:
    weights = counts + amount
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def log_likelihood(seen: FloatArray, rows: FloatArray) -> float:
    """Return the log-likelihood of transition counts under these rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(seen > 0, seen * np.log(rows), 0.0).sum())


def best_cap(paths: Sequence[IntArray], size: int, smoothing: float) -> int:
    """Return the cap of durations with the best held-out likelihood; the smallest of ties."""
    able = [cap for cap in CAPS if cap == 1 or cap * size <= MOST_AGES]
    return max(
        able, key=lambda cap: held_out_log_likelihood(paths, ages(size, cap), size, smoothing)
    )


@dataclass(frozen=True, eq=False)
class FittedMemory:
    """A fitted chain between contexts, from which `MarkovChain.fit` builds a `HiddenChain`.

    Attributes:
        transition: the transition matrix between contexts.
        shows: the label of each context's last state.
        states: the labels in order.
    """

    transition: FloatArray
    shows: list[Label]
    states: tuple[Label, ...]


def parse_memory_start(initial: Any) -> Literal["stationary", "any"]:
    """Return the start of a chain with memory; only "stationary" and "any" determine it."""
    if isinstance(initial, str) and initial == "stationary":
        return "stationary"
    if isinstance(initial, str) and initial == "any":
        return "any"
    raise InvalidInputError(
        "A belief with memory begins with a past, and a distribution of first states does not "
        "determine it; use initial='stationary' or 'any'."
    )


def fit_memory(
    sequences: Sequence[Any],
    smoothing: object,
    states: Iterable[Any] | None,
    grid: Grid | None,
    order: int,
    durations: bool,
) -> FittedMemory:
    """Return transitions fitted with longer memory: an order above 1, or durations."""
    if durations and order > 1:
        raise InvalidInputError(
            "order and durations are two kinds of memory; ask for one, or give a list of both "
            "beliefs."
        )
    paths, labels = encode_paths(sequences, states, grid)
    amount, size = parse_smoothing(smoothing), len(labels)
    paths = [path for path in paths if len(path) > order]
    if not paths:
        raise InvalidInputError(
            f"No sequence has more than {order} time points, so none shows what follows {order} "
            "states; use a lower order, or longer sequences."
        )
    if durations:
        kind = ages(size, best_cap(paths, size, max(amount, 0.5)))
    else:
        kind = order_contexts(size, order)
    plain = smoothed_rows(count_path_transitions(paths, labels), smoothing)
    rows = smoothed_contexts(count_contexts(paths, kind)[0], kind, plain, amount)
    if not (rows >= 0).all():  # 0/0, where neither the context nor its last state was observed
        raise InvalidInputError(
            "Some pasts never occur in the data, so without smoothing their next state has no "
            "estimate; use smoothing > 0."
        )
    shows = [labels[code] for code in kind.shows.tolist()]
    return FittedMemory(inner_matrix(rows, kind), shows, labels)


def order_contexts(size: int, order: int) -> ContextModel:
    """Return the memory of `order` states, if it is small enough to calibrate."""
    if size**order > MOST_INNER:
        raise InvalidInputError(
            f"{size} states and order {order} make {size**order:,} pasts; at most {MOST_INNER} are "
            "calibrated here. Merge states (wider edges), or use a lower order."
        )
    return last_states(size, order)
