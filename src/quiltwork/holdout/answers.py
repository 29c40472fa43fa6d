"""What the holdout says about one question."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from quiltwork.exact import nearest_float
from quiltwork.holdout.transcript import Entry


@dataclass(frozen=True)
class Answer:
    """What the holdout says about one question.

    Attributes:
        value: the answer.
        overfit: whether training set and holdout differ, so that `value` comes from the holdout
            with noise; otherwise it is the training set's own.
        remaining: how many more such answers there are.
        exact: the value as a fraction.
    """

    value: float
    overfit: bool
    remaining: int
    exact: Fraction


def answer_of(entry: Entry) -> Answer:
    """Return what an entry of the transcript shows to whoever asked."""
    value = entry.value or Fraction()
    return Answer(nearest_float(value), entry.overfit, entry.remaining, value)
