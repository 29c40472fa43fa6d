"""Conditions under which the geometric mechanism is universally optimal for a loss.

The paper requires that l(i, r) does not decrease in |i−r|. Its proof needs less: for every two
answers r < r', the counts that prefer r precede the counts that prefer r' (*single crossing*).
Every function of the error that falls up to error 0 and rises after it has this property,
asymmetric ones included. Cost: O(n) for functions of the error, O(n²) for monotone losses, O(n³)
otherwise.

Theorem: docs/theory/geometric-mechanism.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from quiltwork.counts.consumers.loss_functions import (
    Binary,
    CallableLoss,
    ErrorLoss,
    FloatArray,
    Loss,
    Pinball,
    Power,
)

Condition: TypeAlias = Literal["monotone", "single crossing", "fails", "not decided"]

_LARGEST_TABLE = 4_000
_LARGEST_CALLED = 1_000
_LARGEST_CUBE = 600
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Universality:
    """Whether Theorem 3.1 covers a loss, and why.

    Attributes:
        condition: the condition that holds; "fails" if none does.
        detail: the answers that violate the paper's monotonicity, in words; "" if none do.
    """

    condition: Condition
    detail: str = ""

    @property
    def proven(self) -> bool:
        """Whether remapping the geometric mechanism is proven optimal for this loss."""
        return self.condition in ("monotone", "single crossing")


def universality(loss: Loss, n: int) -> Universality:
    """Decide whether the remapped geometric mechanism is optimal for a loss on 0..n.

    >>> from quiltwork.counts.consumers.loss_functions import asymmetric, parse_loss
    >>> universality(parse_loss("squared"), 10).condition
    'monotone'
    >>> print(universality(asymmetric(2, 1), 10).detail)
    l(1, 0) = 2 exceeds l(1, 2) = 1 although answer 2 is no nearer to count 1
    """
    # Monotone by definition: no table is needed at any n.
    if isinstance(loss, (Binary, Power)) or loss == Pinball():
        return Universality("monotone")
    if isinstance(loss, Pinball):
        return Universality("single crossing", monotone_failure(_table(loss, min(n, 2))))
    if isinstance(loss, ErrorLoss) and is_unimodal(by_error := loss.by_error(n)):
        return _of_unimodal(by_error)
    if n > (_LARGEST_CALLED if isinstance(loss, CallableLoss) else _LARGEST_TABLE):
        return Universality("not decided", f"n = {n} is too large to check every pair")
    losses = _table(loss, n)
    failure = monotone_failure(losses)
    if not failure:
        return Universality("monotone")
    if has_decreasing_differences(losses):
        return Universality("single crossing", failure)
    if n > _LARGEST_CUBE:
        return Universality("not decided", failure)
    return Universality("single crossing" if crosses_once(losses) else "fails", failure)


def is_unimodal(by_error: FloatArray) -> bool:
    """Whether a loss of the errors −n..n falls up to error 0 and rises after it. O(n)."""
    n = len(by_error) // 2
    steps = np.diff(by_error)
    return bool((steps[:n] <= 0).all() and (steps[n:] >= 0).all())


def _of_unimodal(by_error: FloatArray) -> Universality:
    n = len(by_error) // 2
    unequal = np.flatnonzero(~np.isclose(by_error[n:], by_error[n::-1], rtol=_TOLERANCE, atol=0))
    if not unequal.size:
        return Universality("monotone")
    error = int(unequal[0])
    return Universality(
        "single crossing",
        f"error {error} costs {by_error[n + error]:g} and error {-error} costs "
        f"{by_error[n - error]:g}",
    )


def monotone_failure(losses: FloatArray) -> str:
    """Return in words where l(i, r) decreases in |i−r|, or "" if nowhere. O(n²).

    Answers at equal distance must have equal losses.
    """
    n = len(losses) - 1
    slack = _TOLERANCE * float(losses.max(initial=1.0))
    for i in range(n + 1):
        by_distance = np.argsort(np.abs(np.arange(n + 1) - i), kind="stable")
        distances = np.abs(by_distance - i)
        row = losses[i, by_distance]
        drops = np.flatnonzero(
            (row[1:] < row[:-1] - slack)
            | ((distances[1:] == distances[:-1]) & (row[1:] > row[:-1] + slack))
        )
        if drops.size:
            near, far = by_distance[drops[0]], by_distance[drops[0] + 1]
            worse, better = (near, far) if losses[i, near] > losses[i, far] else (far, near)
            return (
                f"l({i}, {worse}) = {losses[i, worse]:g} exceeds l({i}, {better}) = "
                f"{losses[i, better]:g} although answer {better} is no nearer to count {i}"
            )
    return ""


def has_decreasing_differences(losses: FloatArray) -> bool:
    """Whether l(i, r+1) − l(i, r) never increases with i, as for every convex φ(r−i). O(n²)."""
    slack = _TOLERANCE * float(losses.max(initial=1.0))
    return bool((np.diff(np.diff(losses, axis=1), axis=0) <= slack).all())


def crosses_once(losses: FloatArray) -> bool:
    """Whether for all r < r' the counts with l(i, r) < l(i, r') precede those with >. O(n³).

    A count indifferent between the two is put on the side of the nearer one, like the perturbation
    in the proof.
    """
    n = len(losses) - 1
    slack = _TOLERANCE * float(losses.max(initial=1.0))
    counts = np.arange(n + 1)[:, None]
    for gap in range(1, n + 1):
        preference = losses[:, gap:] - losses[:, : n + 1 - gap]
        nearer = np.arange(n + 1 - gap) + gap / 2 - 1 / 3 - counts
        sign = np.where(np.abs(preference) > slack, preference, nearer) > 0
        if (sign[1:] & ~sign[:-1]).any():
            return False
    return True


def _table(loss: Loss, n: int) -> FloatArray:
    return loss.table(np.arange(n + 1)[:, None], np.arange(n + 1)[None, :])
