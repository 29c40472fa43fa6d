"""`CustomQuery`: any function of the sequence with a declared Lipschitz constant.

The guarantee rests on the declaration: if one time point can change the answer by more than
`lipschitz` in L1, the release is not private. `check_lipschitz` searches for such a counterexample.
The answer is rounded to a public grid of at least 2^16 steps per `lipschitz`, and the rounding of
every coordinate is charged one step.

Theorem: docs/theory/public-grid-queries.md
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.sequences import label_array
from quiltwork.beliefs.states import Label, distinct_labels
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import positive_fraction, shortened
from quiltwork.queries.query import IntArray, Integers, Query, Sensitivity, States

_STEPS_BITS = 16
_LARGEST_ANSWER = int(1e300)
"""Sums over subjects, noise and error bars of such answers are still floats."""

Function = Callable[[NDArray[Any]], Any]


@dataclass(frozen=True, kw_only=True)
class CustomQuery(Query):
    """`function` of the window's labels: one number, or one per label in `labels`.

    The function must return numbers between −1e300 and 1e300 for every sequence; where a ledger
    pays, a failure counts as 0, since an error would leak. A query read from a file has no
    function. `version` identifies the function under a ledger's idempotency key.
    """

    kind: ClassVar[str] = "custom"

    function: Function | None = field(compare=False)
    lipschitz: Fraction
    labels: tuple[Label, ...] | None = None
    name: str = "custom"
    version: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lipschitz", positive_fraction(self.lipschitz, "lipschitz"))
        if self.function is not None and not callable(self.function):
            raise InvalidInputError(
                f"A custom query needs a function of the sequence, not {self.function!r}."
            )
        for text in (self.name, self.version or ""):
            if not isinstance(text, str):
                raise InvalidInputError(f"A query's name and version are text, not {text!r}.")
        if self.labels is not None:
            object.__setattr__(self, "labels", distinct_labels(self.labels))

    @property
    def step(self) -> Fraction:
        """The step of the grid: the largest power of two that is at most lipschitz/2^16."""
        power = self.lipschitz.numerator.bit_length() - self.lipschitz.denominator.bit_length()
        # Bit lengths give the logarithm up to one; the comparison decides exactly.
        power -= Fraction(2) ** power > self.lipschitz
        return Fraction(2) ** (power - _STEPS_BITS)

    @property
    def largest(self) -> int:
        """The largest answer, 1e300, in steps of the grid."""
        return math.ceil(_LARGEST_ANSWER / self.step)

    @property
    def coordinates(self) -> int:
        """The number of numbers that the function returns."""
        return 1 if self.labels is None else len(self.labels)

    @property
    def sensitivity(self) -> Sensitivity:
        """The Lipschitz constant per time point, plus one step per coordinate for rounding."""
        return Sensitivity(math.ceil(self.lipschitz / self.step), once=self.coordinates)

    @property
    def squared_l2_sensitivity(self) -> int:
        """(L + √d)² in steps, rounded up: each of d coordinates may be rounded by one step."""
        steps, once = math.ceil(self.lipschitz / self.step), self.coordinates
        # isqrt rounds down, so 1 is added: 2L√d in integers, rounded up.
        return steps**2 + once + math.isqrt(4 * steps**2 * once) + 1

    def check(self, states: States) -> None:
        """Raise UnsupportedError for a query read from a file, which has no function."""
        self._callable()

    def _callable(self) -> Function:
        if self.function is None:
            raise UnsupportedError(
                f"The custom query {self.name!r} was read from a file and has no function; "
                "build it again with queries.custom."
            )
        return self.function

    def rehearse(self, length: int, states: States) -> None:
        """Call the function on a public sequence of this length, to find mistakes early.

        Raises:
            InvalidInputError: if it raises there or returns anything but finite numbers.
        """
        try:
            self._answer(np.zeros(length, dtype=np.int64), states)
        except Exception as error:
            raise InvalidInputError(
                f"The custom query {self.name!r} fails on {length} times {states[0]!r}: {error}"
            ) from error

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the function's answer, rounded to the grid.

        Raises:
            InvalidInputError: with a fixed message and no cause attached, since the details of a
                failure can depend on the data.
        """
        with suppress(Exception):
            return self._answer(codes, states)
        raise InvalidInputError(
            f"The custom query {self.name!r} failed, or did not return finite numbers. Whether it "
            "fails may depend on the data; make it return numbers for every sequence of states."
        )

    def evaluate_quietly(self, codes: IntArray, states: States) -> Integers:
        """Return the function's answer, rounded to the grid; 0 if the function fails.

        Where a ledger pays, an error would leak more about the data than was paid for.
        """
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(BaseException):  # SystemExit, too, would leak
                return self._answer(codes, states)
        return np.zeros(self.coordinates, dtype=object)

    def _answer(self, codes: IntArray, states: States) -> Integers:
        numbers = real_numbers(self._callable()(label_array(states)[self.part(codes)]))
        if len(numbers) != self.coordinates:
            raise InvalidInputError(
                f"it returns {len(numbers)} numbers where {self.coordinates} are declared; name "
                "one cell per number with cells=[…]."
            )
        # Half up and not half to even: it commutes with shifts by one step, as the proof needs.
        half_up = (math.floor(number / self.step + Fraction(1, 2)) for number in numbers)
        return np.array(list(half_up), dtype=object)

    def cells(self, states: States) -> tuple[Any, ...]:
        """Return the declared cells, or the query's name."""
        return (self.name,) if self.labels is None else self.labels

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Return the multiples of the step as the grid."""
        return Fraction(0), self.step

    def rounding(self, states: States, points: int, subjects: int) -> Fraction:
        """Return half a step per subject."""
        return self.step / 2 * subjects

    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """Return one number, or one per declared cell."""
        values = [float(self.step * int(m)) for m in noisy]
        return values[0] if self.labels is None else np.array(values)

    def parameters(self) -> dict[str, Any]:
        """Return name, constant, cells and version; the function is code and not stored."""
        cells = {} if self.labels is None else {"cells": labels_to_json(self.labels)}
        version = {} if self.version is None else {"version": self.version}
        return {"name": self.name, "lipschitz": str(self.lipschitz), **cells, **version}


def real_numbers(answer: Any) -> list[Fraction]:
    """Return a function's answer as exact fractions: one number, or a collection of them."""
    flat = np.asarray(answer, dtype=object).ravel()
    return [_as_fraction(x.item() if isinstance(x, np.generic) else x) for x in flat]


def _as_fraction(number: Any) -> Fraction:
    finite = isinstance(number, (int, Fraction)) or (
        isinstance(number, float) and math.isfinite(number)
    )
    if not finite or abs(number) > _LARGEST_ANSWER:
        raise InvalidInputError(
            f"it returns {shortened(number)} where a number between -1e300 and 1e300 is needed."
        )
    return Fraction(number)
