"""Any function of the sequence whose Lipschitz constant the user declares.

The declaration is the guarantee: if changing one time point can move the answer by more than
`lipschitz` in L1, the release is not private. `check_lipschitz` searches for such a change. The
answer is rounded to a public grid of at least 2^16 steps per `lipschitz`, and every coordinate's
rounding is charged one step.

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
from quiltwork.beliefs.states import Label, list_states
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import positive_fraction, shortened
from quiltwork.queries.identity import digest_of
from quiltwork.queries.query import IntArray, Integers, Moves, Query, States

_STEPS_BITS = 16
_LARGEST_ANSWER = int(1e300)
"""Sums over subjects, noise and error bars of such answers are still floats."""

Function = Callable[[NDArray[Any]], Any]


@dataclass(frozen=True, kw_only=True)
class CustomQuery(Query):
    """`function` of the window's labels: one number, or one per label in `labels`.

    The function must answer every sequence with numbers between −1e300 and 1e300; where a ledger
    pays, one that does not counts as 0, since an error would tell about the data. A query
    read from a file has no function, but its digest in `known_digest`. Under a ledger's key the
    function is part of the request (`quiltwork.queries.identity` says what of it is noticed).
    """

    kind: ClassVar[str] = "custom"

    function: Function | None = field(compare=False)
    lipschitz: Fraction
    labels: tuple[Label, ...] | None = None
    name: str = "custom"
    known_digest: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lipschitz", positive_fraction(self.lipschitz, "lipschitz"))
        if self.function is not None and not callable(self.function):
            raise InvalidInputError(
                f"A custom query needs a function of the sequence, not {self.function!r}."
            )
        for text in (self.name, self.known_digest or ""):
            if not isinstance(text, str):
                raise InvalidInputError(f"A query's name and digest are text, not {text!r}.")
        if self.labels is not None:
            object.__setattr__(self, "labels", list_states(self.labels))

    @property
    def digest(self) -> str | None:
        """What tells functions of one name apart; None if nothing does (`identity`)."""
        return self.known_digest if self.function is None else digest_of(self.function)

    @property
    def step(self) -> Fraction:
        """The grid's step: the largest power of two of which 2^16 fit into `lipschitz`."""
        power = self.lipschitz.numerator.bit_length() - self.lipschitz.denominator.bit_length()
        power -= Fraction(2) ** power > self.lipschitz
        return Fraction(2) ** (power - _STEPS_BITS)

    @property
    def largest(self) -> int:
        """The most steps that an answer can have."""
        return math.ceil(_LARGEST_ANSWER / self.step)

    @property
    def coordinates(self) -> int:
        """How many numbers the function returns."""
        return 1 if self.labels is None else len(self.labels)

    @property
    def moves(self) -> Moves:
        """By the Lipschitz constant for every point, and by one step for rounding a coordinate."""
        return Moves(math.ceil(self.lipschitz / self.step), once=self.coordinates)

    @property
    def moves_squared(self) -> int:
        """(L + √d)² in steps: as far as in L1, and d coordinates may each be rounded by one."""
        steps, once = math.ceil(self.lipschitz / self.step), self.coordinates
        return steps**2 + once + math.isqrt(4 * steps**2 * once) + 1

    def check(self, states: States) -> None:
        """Refuse a query read from a file, which has lost its function."""
        self._callable()

    def _callable(self) -> Function:
        if self.function is None:
            raise UnsupportedError(
                f"The custom query {self.name!r} was read from a file and has no function; "
                "build it again with queries.custom."
            )
        return self.function

    def rehearse(self, length: int, states: States) -> None:
        """Call the function on a public sequence of this length, so that mistakes show early.

        Raises:
            InvalidInputError: if it fails there or answers something else than finite numbers.
        """
        try:
            self._answer(np.zeros(length, dtype=np.int64), states)
        except Exception as error:
            raise InvalidInputError(
                f"The custom query {self.name!r} fails on {length} times {states[0]!r}: {error}"
            ) from error

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Round the function's answer to the grid.

        Raises:
            InvalidInputError: with a fixed sentence and no cause attached, since an error that
                showed more would be a release of its own.
        """
        with suppress(Exception):
            return self._answer(codes, states)
        raise InvalidInputError(
            f"The custom query {self.name!r} did not answer with finite numbers. The failure "
            "itself may depend on the data; make it answer every sequence of the belief's states."
        )

    def evaluate_quietly(self, codes: IntArray, states: States) -> Integers:
        """Round the function's answer to the grid; a function that fails answers 0.

        Where a ledger pays, an error would tell more about the data than was paid for.
        """
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(BaseException):  # also what a function raises to end the program
                return self._answer(codes, states)
        return np.zeros(self.coordinates, dtype=object)

    def _answer(self, codes: IntArray, states: States) -> Integers:
        numbers = real_numbers(self._callable()(label_array(states)[self.part(codes)]))
        if len(numbers) != self.coordinates:
            raise InvalidInputError(
                f"it returns {len(numbers)} numbers where {self.coordinates} are declared; name "
                "one cell per number with cells=[…]."
            )
        half_up = (math.floor(number / self.step + Fraction(1, 2)) for number in numbers)
        return np.array(list(half_up), dtype=object)

    def cells(self, states: States) -> tuple[Any, ...]:
        """The declared cells, or the query's name."""
        return (self.name,) if self.labels is None else self.labels

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Multiples of the step."""
        return Fraction(0), self.step

    def rounding(self, states: States, points: int, subjects: int) -> Fraction:
        """Half a step for every subject's answer."""
        return self.step / 2 * subjects

    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """One number, or one per declared cell."""
        values = [float(self.step * int(m)) for m in noisy]
        return values[0] if self.labels is None else np.array(values)

    def parameters(self) -> dict[str, Any]:
        """Everything but the function, which is code and stays out of files, but for its digest."""
        cells = {} if self.labels is None else {"cells": labels_to_json(self.labels)}
        digest = self.digest
        told = {} if digest is None else {"digest": digest}
        return {"name": self.name, "lipschitz": str(self.lipschitz), **cells, **told}


def real_numbers(answer: Any) -> list[Fraction]:
    """Read a function's answer exactly: one number or a flat collection of them."""
    flat = np.asarray(answer, dtype=object).ravel()
    return [_exactly(x.item() if isinstance(x, np.generic) else x) for x in flat]


def _exactly(number: Any) -> Fraction:
    finite = isinstance(number, (int, Fraction)) or (
        isinstance(number, float) and math.isfinite(number)
    )
    if not finite or abs(number) > _LARGEST_ANSWER:
        raise InvalidInputError(
            f"it returns {shortened(number)} where a number between -1e300 and 1e300 is needed."
        )
    return Fraction(number)
