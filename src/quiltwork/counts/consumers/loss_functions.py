"""Loss functions l(i, r): the cost of answer r when the count is i.

`Pinball` (absolute and asymmetric), the squared `Power` and `Binary` have remaps at any n; other
powers, `ErrorLoss` (any function of the error r−i), `MatrixLoss` and `CallableLoss` up to n =
10,000. `parse_loss` turns a name, a matrix or a function into one of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, parse_fraction, positive_fraction, shortened, to_fraction

_LARGEST_FLOAT = sys.float_info.max
_LARGEST_LOG = math.log(_LARGEST_FLOAT) - 1e-9

_PLAIN = {int, float, bool, np.float64, np.int64, np.bool_}

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


class Loss(Protocol):
    """The interface of every loss; i is the true count, r the answer."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    def table(self, counts: IntArray, answers: IntArray) -> FloatArray:
        """Return l(i, r) for broadcastable arrays of counts and answers."""

    def exact(self, count: int, answer: int) -> Fraction:
        """Return l(i, r) exactly; irrational powers as their nearest float."""


@dataclass(frozen=True)
class Pinball:
    """A loss of `under` per unit that the answer is too low, `over` per unit too high."""

    under: Fraction = Fraction(1)
    over: Fraction = Fraction(1)

    @property
    def name(self) -> str:
        """ "absolute", or "asymmetric" with its two rates."""
        if self.under == self.over == 1:
            return "absolute"
        return f"asymmetric({shortened(self.under)}, {shortened(self.over)})"

    @property
    def level(self) -> Fraction:
        """The quantile of the posterior that minimises this loss."""
        return self.under / (self.under + self.over)

    def table(self, counts: IntArray, answers: IntArray) -> FloatArray:
        """Return under·(i−r)⁺ + over·(r−i)⁺."""
        error = np.asarray(counts - answers, dtype=np.float64)
        return np.where(error > 0, float(self.under) * error, -float(self.over) * error)

    def exact(self, count: int, answer: int) -> Fraction:
        """Return under·(i−r)⁺ + over·(r−i)⁺."""
        error = count - answer
        return self.under * error if error > 0 else -self.over * error


@dataclass(frozen=True)
class Power:
    """The loss |i−r|^exponent, exponent > 0."""

    exponent: Fraction

    @property
    def name(self) -> str:
        """ "squared", or the power."""
        return "squared" if self.exponent == 2 else f"power({_plain(self.exponent)})"

    def table(self, counts: IntArray, answers: IntArray) -> FloatArray:
        """Return |i−r|^exponent."""
        distance = np.abs(np.asarray(counts - answers, dtype=np.float64))
        self.refuse_beyond_floats(int(distance.max(initial=0)))
        return np.asarray(distance ** float(self.exponent))

    def refuse_beyond_floats(self, distance: int) -> None:
        """Refuse distances at which the loss overflows a float."""
        if distance > 1 and self.exponent > _LARGEST_LOG / math.log(distance):
            raise InvalidInputError(
                f"Under the {self.name} loss an error of {distance} overflows a float; give a "
                "smaller exponent."
            )

    def exact(self, count: int, answer: int) -> Fraction:
        """Return |i−r|^exponent, exactly where the exponent is an integer."""
        distance = abs(count - answer)
        self.refuse_beyond_floats(distance)
        if self.exponent.denominator == 1:
            return Fraction(distance**self.exponent.numerator)
        return Fraction(float(distance) ** float(self.exponent))


@dataclass(frozen=True)
class Binary:
    """The loss 0 for the right answer, 1 for any other."""

    @property
    def name(self) -> str:
        """Binary."""
        return "binary"

    def table(self, counts: IntArray, answers: IntArray) -> FloatArray:
        """Return 1 where i ≠ r."""
        return np.asarray(np.asarray(counts) != np.asarray(answers), dtype=np.float64)

    def exact(self, count: int, answer: int) -> Fraction:
        """Return 1 if i ≠ r."""
        return Fraction(int(count != answer))


@dataclass(frozen=True, eq=False)
class ErrorLoss:
    """Any function of the error r − i, tabulated once for any n.

    >>> capped = ErrorLoss(lambda error: min(abs(error), 3), "capped at 3")
    >>> capped.exact(10, 2)
    Fraction(3, 1)
    """

    function: Callable[[int], Any]
    name: str = "function of the error"

    def by_error(self, n: int) -> FloatArray:
        """Return the losses of the errors −n..n."""
        losses = [float(call_loss(self.function, self.name, e)) for e in range(-n, n + 1)]
        return _checked(np.array(losses), self.name)

    def table(self, counts: IntArray, answers: IntArray) -> FloatArray:
        """Look up the losses in a table of all errors that occur."""
        errors = np.asarray(answers - counts, dtype=np.int64)
        reach = int(np.abs(errors).max(initial=0))
        return np.asarray(self.by_error(reach)[errors + reach])

    def exact(self, count: int, answer: int) -> Fraction:
        """Return the function of r − i, read exactly."""
        return to_fraction(call_loss(self.function, self.name, answer - count), "the loss")


@dataclass(frozen=True, eq=False)
class MatrixLoss:
    """A loss given as a matrix: entry [i, r]."""

    entries: FloatArray
    fractions: tuple[tuple[Fraction, ...], ...] | None = None
    name: str = "matrix"

    @property
    def n(self) -> int:
        """The largest count it covers."""
        return len(self.entries) - 1

    def table(self, counts: IntArray, answers: IntArray) -> FloatArray:
        """Look the entries up."""
        return np.asarray(self.entries[counts, answers])

    def exact(self, count: int, answer: int) -> Fraction:
        """Return the entry as an exact fraction."""
        if max(count, answer) > self.n:
            raise InvalidInputError(
                f"The loss matrix covers counts 0..{self.n}, not {max(count, answer)}."
            )
        if self.fractions is not None:
            return self.fractions[count][answer]
        return to_fraction(float(self.entries[count, answer]), "the loss")


@dataclass(frozen=True, eq=False)
class CallableLoss:
    """Any function of the count and the answer, called once per pair."""

    function: Callable[[int, int], Any]
    name: str = "callable"

    def table(self, counts: IntArray, answers: IntArray) -> FloatArray:
        """Call the function on every pair."""
        i, r = np.broadcast_arrays(counts, answers)
        losses = np.empty(i.shape)
        lines = zip(np.atleast_2d(i), np.atleast_2d(r), np.atleast_2d(losses), strict=True)
        for line_counts, line_answers, line in lines:
            line[:] = self._line(line_counts.tolist(), line_answers.tolist())
        return _checked(losses, self.name)

    def _line(self, counts: list[int], answers: list[int]) -> list[float]:
        """Return one line of losses; fast for plain numbers, else pair by pair."""
        pairs = list(zip(counts, answers, strict=True))
        try:
            line = [self.function(i, r) for i, r in pairs]
            if {type(loss) for loss in line} <= _PLAIN and 0 <= min(line) <= max(line):
                return [float(loss) for loss in line]
        except Exception:  # noqa: S110  (retried pair by pair, to name the failing one)
            pass
        return [float(call_loss(self.function, self.name, i, r)) for i, r in pairs]

    def exact(self, count: int, answer: int) -> Fraction:
        """Return the function's value as an exact fraction."""
        return to_fraction(call_loss(self.function, self.name, count, answer), "the loss")


def call_loss(function: Callable[..., Any], name: str, *arguments: int) -> Number:
    """Return the value of a user's function, which must be a number."""
    try:
        loss = function(*arguments)
    except Exception as error:
        raise InvalidInputError(
            f"The {name} loss failed at {_pair(arguments)}: {type(error).__name__}: {error}. It "
            "must return a number ≥ 0 for every count and answer."
        ) from error
    value = loss.item() if isinstance(loss, (np.generic, np.ndarray)) and loss.ndim == 0 else loss
    if isinstance(value, (int, float, Fraction, Decimal)) and 0 <= value <= _LARGEST_FLOAT:
        return int(value) if isinstance(value, bool) else value
    raise InvalidInputError(
        f"A loss must be finite and at least 0; the {name} loss returned {shortened(loss)} at "
        f"{_pair(arguments)}."
    )


def _pair(arguments: tuple[int, ...]) -> str:
    names = ("error",) if len(arguments) == 1 else ("count", "answer")
    return ", ".join(f"{name} {value}" for name, value in zip(names, arguments, strict=True))


def power(exponent: Number) -> Power | Pinball:
    """Return the loss |i−r|^exponent; exponent 1 is the absolute loss.

    >>> power(2).name, power(1).name
    ('squared', 'absolute')
    """
    degree = positive_fraction(exponent, "the exponent of a power loss")
    return Pinball() if degree == 1 else Power(degree)


def asymmetric(under: Number, over: Number) -> Pinball:
    """Return the loss that weighs answers too low by `under`, too high by `over`.

    >>> asymmetric(under=3, over=1).level
    Fraction(3, 4)
    """
    return Pinball(positive_fraction(under, "under"), positive_fraction(over, "over"))


_NAMED: dict[str, Loss] = {
    "absolute": Pinball(),
    "squared": Power(Fraction(2)),
    "binary": Binary(),
}


def parse_loss(loss: Any) -> Loss:
    """Turn a name, a matrix, a function l(i, r) or a Loss into a Loss.

    Names: "absolute", "squared", "binary", "power:Q", "asymmetric:UNDER:OVER".

    >>> parse_loss("power:3/2").name
    'power(1.5)'
    """
    if isinstance(loss, str):
        return _named(loss)
    if hasattr(loss, "table") and hasattr(loss, "exact"):
        known: Loss = loss
        return known
    if callable(loss):
        return CallableLoss(loss, getattr(loss, "__name__", "callable"))
    return _matrix(loss)


def _named(text: str) -> Loss:
    kind, *arguments = text.split(":")
    read = [parse_fraction(argument) for argument in arguments]
    numbers = [number for number in read if number is not None]
    if kind == "power" and len(numbers) == len(read) == 1:
        return power(numbers[0])
    if kind == "asymmetric" and len(numbers) == len(read) == 2:
        return asymmetric(*numbers)
    if text in _NAMED:
        return _NAMED[text]
    raise InvalidInputError(
        f"Unknown loss {shortened(text)}; give absolute, squared, binary, power:Q, "
        "asymmetric:UNDER:OVER, a matrix or a function of (count, answer)."
    )


def _matrix(loss: Any) -> MatrixLoss:
    try:
        entries = np.array(loss, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        entries = np.zeros(())
    if entries.ndim == 0:
        _refuse_ragged(loss)
        raise InvalidInputError(
            f"A loss must be a name, a matrix or a function of (count, answer), not "
            f"{shortened(loss)}."
        )
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1] or len(entries) < 2:
        raise InvalidInputError(
            f"A loss matrix must be square with n + 1 rows, one per count; this one has shape "
            f"{entries.shape}."
        )
    rows = loss.tolist() if isinstance(loss, np.ndarray) else loss
    fractions = None
    if any(isinstance(value, Fraction) for row in rows for value in row):
        fractions = tuple(tuple(to_fraction(value, "a loss") for value in row) for row in rows)
    return MatrixLoss(_checked(entries, "matrix"), fractions)


def _refuse_ragged(loss: Any) -> None:
    """Name the first row of a list of rows whose length differs from the first row's."""
    rows = loss if isinstance(loss, (list, tuple)) else []
    if len(rows) > 1 and all(isinstance(row, (list, tuple)) for row in rows):
        for place, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise InvalidInputError(
                    "A loss matrix must be square with n + 1 rows, one per count; in this one row "
                    f"{place} has {len(row)} entries and row 0 has {len(rows[0])}."
                )


def _checked(losses: FloatArray, name: str) -> FloatArray:
    bad = losses[~((losses >= 0) & np.isfinite(losses))]
    if bad.size:
        raise InvalidInputError(
            f"A loss must be finite and at least 0; the {name} loss contains {float(bad.flat[0])}."
        )
    return losses


def _plain(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"
