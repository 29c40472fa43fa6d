"""`check_lipschitz`: a randomized search for a counterexample to a declared Lipschitz constant.

A counterexample disproves the declaration, and with it the privacy of every release made under it;
finding none proves nothing. The search uses simulated sequences, never data. Cost: about
`trials` × (number of states) calls of the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.beliefs.sequences import label_array
from quiltwork.beliefs.states import Label, distinct_labels
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer
from quiltwork.queries.custom import CustomQuery, real_numbers
from quiltwork.queries.query import IntArray, States
from quiltwork.results import ResultBase

_STATES_TRIED = 8
_MOST = 10**6  # trials, and time points of one sequence


@dataclass(frozen=True)
class Violation(ResultBase):
    """A counterexample: two sequences that differ in one point, with answers too far apart.

    `change` is the L1 distance of the answers; None if the function failed on `after`, or returned
    anything but finite numbers.
    """

    before: tuple[Label, ...]
    after: tuple[Label, ...]
    position: int
    change: Fraction | None
    declared: Fraction

    def explain(self) -> str:
        """State the counterexample in a sentence.

        >>> Violation((0, 0), (0, 1), 2, Fraction(3), Fraction(1)).explain()
        'Changing point 2 from 0 to 1 changes the answer by 3, more than the declared 1.'
        """
        old, new = self.before[self.position - 1], self.after[self.position - 1]
        if self.change is None:
            return f"With point {self.position} at {new}, the answer is not a finite number."
        return (
            f"Changing point {self.position} from {old} to {new} changes the answer by "
            f"{float(self.change):g}, more than the declared {float(self.declared):g}."
        )


def check_lipschitz(
    query: CustomQuery, states: Sequence[Any], length: int, trials: int = 1000, seed: int = 0
) -> Violation | None:
    """Return a time point whose change exceeds the declared Lipschitz constant; None if none found.

    Half of the trials start from random sequences (skewed, constant or in long runs), half from a
    neighbour of the sequence with the largest change so far. An excess of up to one step of the
    query's grid does not count: releases are charged for it.

    Raises:
        InvalidInputError: if the query is not custom, or the window does not fit `length`.

    >>> from quiltwork import queries
    >>> switches = queries.custom(lambda x: np.abs(np.diff(x)).sum(), lipschitz=1)
    >>> violation = check_lipschitz(switches, [0, 1], length=6)
    >>> violation.change
    Fraction(2, 1)
    """
    if not isinstance(query, CustomQuery):
        raise InvalidInputError(
            f"Only custom queries declare a Lipschitz constant, not {type(query).__name__}."
        )
    query.check(())
    labels = distinct_labels(states)
    if len(labels) < 2:
        raise InvalidInputError("Give at least two states; with one, no point can change.")
    start, stop = query.window(integer(length, "length", 1, _MOST))
    random = np.random.default_rng(integer(seed, "seed", 0))
    largest, best = Fraction(-1), _fresh(random, len(labels), length)
    for trial in range(integer(trials, "trials", 1, _MOST)):
        base = _fresh(random, len(labels), length) if trial % 2 else _nearby(random, best, labels)
        position = int(random.integers(start, stop + 1))
        change = _largest_change(query, base, position, labels, random)
        if isinstance(change, Violation):
            return change
        if change >= largest:
            largest, best = change, base
    return None


def _fresh(random: np.random.Generator, size: int, length: int) -> IntArray:
    """Return a random sequence: independent with skewed shares, or in runs."""
    weights = random.dirichlet(np.full(size, random.choice([0.1, 1.0, 10.0])))
    values = random.choice(size, size=length, p=weights)
    keep = random.random(length) < random.choice([0.0, 0.5, 0.95, 1.0])
    keep[0] = False
    return values[np.maximum.accumulate(np.where(keep, 0, np.arange(length)))].astype(np.int64)


def _nearby(random: np.random.Generator, base: IntArray, states: States) -> IntArray:
    """Return the sequence with one point redrawn."""
    changed = base.copy()
    changed[random.integers(len(base))] = random.integers(len(states))
    return changed


def _largest_change(
    query: CustomQuery, base: IntArray, position: int, states: States, random: np.random.Generator
) -> Violation | Fraction:
    """Return the largest change over up to eight other states at a position, or a violation."""
    answer, largest = _answer(query, base, states), Fraction(0)
    if answer is None:
        return _violation(query, base, base, position, states, None)
    others = [code for code in range(len(states)) if code != base[position - 1]]
    for code in random.permutation(others)[:_STATES_TRIED]:
        after = base.copy()
        after[position - 1] = code
        changed = _answer(query, after, states)
        if changed is None:
            return _violation(query, base, after, position, states, None)
        change = sum((abs(a - b) for a, b in zip(answer, changed, strict=True)), Fraction(0))
        if change > query.lipschitz + query.step:
            return _violation(query, base, after, position, states, change)
        largest = max(largest, change)
    return largest


def _answer(query: CustomQuery, codes: IntArray, states: States) -> list[Fraction] | None:
    assert query.function is not None  # noqa: S101  (checked by the caller)
    try:
        numbers = real_numbers(query.function(label_array(states)[query.part(codes)]))
    except Exception:
        return None
    return numbers if len(numbers) == query.coordinates else None


def _violation(
    query: CustomQuery,
    before: IntArray,
    after: IntArray,
    position: int,
    states: States,
    change: Fraction | None,
) -> Violation:
    old, new = (tuple(states[code] for code in codes) for codes in (before, after))
    return Violation(old, new, position, change, query.lipschitz)
