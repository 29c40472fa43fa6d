"""Gaussian beliefs: numbers that move together.

A Gaussian belief says how strongly numbers are correlated, and nothing about their means. Its data
are numbers, not states. `within` is part of it, since it says what is hidden: a true difference of
at most so much at one time point or row.

Theorem: docs/theory/gaussian.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.arguments import listed
from quiltwork.beliefs.belief import Belief, parse_stored_field
from quiltwork.beliefs.documents import field
from quiltwork.beliefs.gaussian_algebra import toeplitz
from quiltwork.beliefs.grids import Grid, grid_suffix, parse_grid
from quiltwork.beliefs.matrices import FloatArray, frozen
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, parse_stored_fraction, positive_fraction, to_fraction

MOST_MEMORY = 32
_MOST_LAGS = 10**6
_LONGEST_SAMPLE = 10**8
_ROUNDING = 1e-9
_FARTHEST = Fraction(10**12)


class Gaussian(Belief):
    """What Gaussian beliefs share: no states, and how large a true difference is hidden.

    `within` is in units of the data; None stands for the range hi − lo of whatever is asked.
    """

    states = None
    within: Fraction | None

    def ratio(self, span: Fraction) -> Fraction:
        """The difference that is hidden, as a multiple of the range of a query.

        Raises:
            InvalidInputError: if the two cannot be meant in one unit.
        """
        ratio = Fraction(1) if self.within is None else self.within / span
        if not 1 / _FARTHEST <= ratio <= _FARTHEST:
            raise InvalidInputError(
                "within and the range that is asked about are more than 10^12 times apart; give "
                "both in the same unit."
            )
        return ratio

    @property
    def farthest(self) -> Fraction | None:
        """How far any number moves when a secret does; None where nobody said `within`."""
        return self.within


@dataclass(frozen=True, init=False, eq=False, repr=False)
class GaussianSeries(Gaussian):
    """A stationary Gaussian series: numbers, each correlated with those some steps away.

    Give one of `ar`, `autocorrelation` and `bounds`. The mean may be any, and change with time.
    A series that starts with another variance than it goes on with is not stationary, and may tell
    far more.

    Args:
        ar: the coefficients of an autoregression, X_t = ar[0]·X_{t−1} + ar[1]·X_{t−2} + … + noise;
            at most 32. They must make the series stationary.
        autocorrelation: the correlations at lags 1, 2, …; 0 beyond the last one.
        bounds: (lowest, highest), for every autoregression with one coefficient between them.
        within: how large a true difference at one time point is hidden, in units of the data; by
            default the range hi − lo of what is asked. Clipping the data does not bound it.
        grid: what a time point is, if that is to be checked.

    Raises:
        InvalidInputError: for coefficients that make no stationary series.

    >>> GaussianSeries(ar=[0.8]).autocorrelation(3)
    array([1.   , 0.8  , 0.64 , 0.512])
    >>> GaussianSeries(ar=[1.0])
    Traceback (most recent call last):
        ...
    quiltwork.errors.InvalidInputError: ar=[1] makes no stationary series: what happened long ago
    would not be forgotten. Give coefficients of one that is, for example [0.8].
    """

    ar: tuple[Fraction, ...]
    correlations: tuple[Fraction, ...]
    finite: bool
    bounds: tuple[Fraction, Fraction] | None
    within: Fraction | None
    grid: Grid | None
    length = None
    schema = "belief/gaussian-series"

    def __init__(
        self,
        ar: Sequence[Number] | None = None,
        *,
        autocorrelation: Sequence[Number] | None = None,
        bounds: Sequence[Number] | None = None,
        within: Number | None = None,
        grid: Grid | None = None,
    ) -> None:
        if sum(part is not None for part in (ar, autocorrelation, bounds)) != 1:
            raise InvalidInputError(
                "Give a GaussianSeries one of ar=[0.8], autocorrelation=[0.8, 0.5] and "
                "bounds=(0, 0.8)."
            )
        given = ar if ar is not None else autocorrelation
        name = "ar" if ar is not None else "autocorrelation"
        numbers = _read_bounds(bounds) if bounds is not None else _read_numbers(given, name)
        coefficients: tuple[Fraction, ...] = ()
        if autocorrelation is not None:
            _check_autocorrelation(numbers)
            found = numbers
        else:
            coefficients = (max(numbers, key=abs),) if bounds is not None else numbers
            found = _first_correlations(coefficients)
        ends = None if bounds is None else (numbers[0], numbers[1])
        finite, hidden = autocorrelation is not None, parse_within(within)
        self.__setstate__((coefficients, found, finite, ends, hidden, parse_grid(grid)))

    def autocorrelation(self, lags: int) -> FloatArray:
        """Return the correlations at lags 0..lags; with `bounds`, the largest of the set."""
        most = integer(lags, "lags", 0, _MOST_LAGS)
        found = [1.0, *map(float, self.correlations)][: most + 1]
        if self.finite:
            return np.array(found + [0.0] * (most + 1 - len(found)))
        coefficients = [float(one) for one in self.ar]
        while len(found) <= most:
            found.append(sum(c * found[-j] for j, c in enumerate(coefficients, start=1)))
        return np.array(found)

    def sample(self, length: int, seed: int) -> FloatArray:
        """Simulate a series with mean 0 and variance 1; for tests and demonstrations only."""
        size = integer(length, "length", 1, _LONGEST_SAMPLE)
        random = np.random.default_rng(integer(seed, "seed", 0))
        if self.finite:
            return self._circular(size, random)
        memory = len(self.ar)
        first = self.autocorrelation(memory)[:memory].tolist()
        start = np.linalg.cholesky(np.array(toeplitz(first)))
        found = list(start @ random.standard_normal(memory))
        coefficients = [float(one) for one in self.ar]
        spread = np.sqrt(1 - float(np.dot(coefficients, self.autocorrelation(memory)[1:])))
        for shock in (spread * random.standard_normal(max(size - memory, 0))).tolist():
            found.append(shock + sum(c * found[-j] for j, c in enumerate(coefficients, start=1)))
        return np.array(found[:size])

    def _circular(self, size: int, random: np.random.Generator) -> FloatArray:
        """A piece of a ring long enough that its ends do not meet: exact, by FFT."""
        memory = len(self.correlations)
        ring = np.zeros(size + 2 * memory + 1)
        ring[0] = 1.0
        ring[1 : memory + 1] = [float(one) for one in self.correlations]
        ring[-memory:] = ring[memory:0:-1]
        spread = np.sqrt(np.maximum(np.fft.fft(ring).real, 0.0))
        shocks = np.fft.fft(random.standard_normal(len(ring)))
        return np.asarray(np.fft.ifft(spread * shocks).real[:size])

    def _written(self) -> dict[str, Any]:
        return {
            "ar": None if self.finite or self.bounds else list(map(str, self.ar)),
            "autocorrelation": list(map(str, self.correlations)) if self.finite else None,
            "bounds": None if self.bounds is None else list(map(str, self.bounds)),
            "within": None if self.within is None else str(self.within),
            "grid": None if self.grid is None else self.grid.to_document(),
            "sources": [],
        }

    @classmethod
    def _arguments(cls, document: dict[str, Any]) -> dict[str, Any]:
        lists = {
            name: parse_stored_list(document, name) for name in ("ar", "autocorrelation", "bounds")
        }
        grid = parse_stored_field(document, "grid")
        return {**lists, "within": parse_stored_within(document), "grid": grid}

    def __repr__(self) -> str:
        """Show the numbers, and what is hidden where that was said."""
        if self.bounds is not None:
            what = f"bounds=({_shown(self.bounds)})"
        elif self.finite:
            what = f"autocorrelation=[{_shown(self.correlations)}]"
        else:
            what = f"ar=[{_shown(self.ar)}]"
        return f"GaussianSeries({what}{within_suffix(self)}{grid_suffix(self.grid)})"


def parse_within(within: Any) -> Fraction | None:
    """Return how large a difference is hidden, exactly; None where nobody said."""
    return None if within is None else positive_fraction(within, "within")


def within_suffix(belief: Gaussian) -> str:
    """What to add to a belief's name."""
    return "" if belief.within is None else f", within={float(belief.within):g}"


def parse_stored_list(document: dict[str, Any], name: str) -> list[Fraction] | None:
    """Read a list of exact numbers as text from a document; None for null."""
    found = field(document, name)
    if found is None:
        return None
    return [parse_stored_fraction(one, f"An entry of {name}") for one in listed(found, name)]


def parse_stored_within(document: dict[str, Any]) -> Fraction | None:
    """Read `within` from a document."""
    found = field(document, "within")
    return None if found is None else parse_stored_fraction(found, "within")


def _shown(numbers: Sequence[Fraction], most: int = 6) -> str:
    shown = ", ".join(f"{float(one):g}" for one in numbers[:most])
    return shown if len(numbers) <= most else f"{shown}, … ({len(numbers)} in all)"


def _read_numbers(values: Any, name: str) -> tuple[Fraction, ...]:
    parts = listed(values, name)
    if not 1 <= len(parts) <= MOST_MEMORY:
        raise InvalidInputError(
            f"{name} has {len(parts)} entries; give 1 to {MOST_MEMORY} numbers, one per lag."
        )
    numbers = tuple(
        to_fraction(part, f"Entry {position} of {name}")
        for position, part in enumerate(parts, start=1)
    )
    if any(abs(number) > 2**MOST_MEMORY for number in numbers):
        raise InvalidInputError(f"An entry of {name} is far larger than in any stationary series.")
    return numbers


def _read_bounds(values: Any) -> tuple[Fraction, ...]:
    numbers = _read_numbers(values, "bounds")
    if len(numbers) != 2 or not -1 < numbers[0] <= numbers[1] < 1:
        raise InvalidInputError(
            "bounds must be the lowest and the highest coefficient of an autoregression, both "
            f"between -1 and 1, for example (0, 0.8), not ({_shown(numbers)})."
        )
    return numbers


def _first_correlations(ar: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Return the correlations at lags 1..p of an autoregression, exactly, by Levinson's recursion.

    Down: the last coefficient is the partial correlation at its lag, and without it those of the
    next lower order are left; the series is stationary if and only if all lie within (-1, 1). Up
    again: ρ_m = Σ_j a_j·ρ_{m−j} by the coefficients of order m.
    """
    orders = [ar]
    while len(last := orders[-1]) > 1 and abs(last[-1]) < 1:
        pairs = zip(last[:-1], last[-2::-1], strict=True)
        orders.append(tuple((a + last[-1] * b) / (1 - last[-1] ** 2) for a, b in pairs))
    if any(abs(one[-1]) >= 1 for one in orders):
        raise InvalidInputError(
            f"ar=[{_shown(ar)}] makes no stationary series: what happened long ago would not be "
            "forgotten. Give coefficients of one that is, for example [0.8]."
        )
    found: list[Fraction] = []
    for one in reversed(orders):
        before = [*reversed(found), Fraction(1)]
        found.append(sum((a * r for a, r in zip(one, before, strict=True)), Fraction(0)))
    return tuple(found)


def _check_autocorrelation(numbers: tuple[Fraction, ...]) -> None:
    """Refuse correlations that no series has: some frequency would have negative power."""
    for lag, number in enumerate(numbers, start=1):
        if not -1 < number < 1:
            raise InvalidInputError(
                f"The autocorrelation at lag {lag} is {float(number):g}; give numbers between -1 "
                "and 1."
            )
    ring = np.zeros(64 * (len(numbers) + 1))
    ring[1 : len(numbers) + 1] = [float(number) for number in numbers]
    power = 1 + 2 * frozen(np.fft.fft(ring).real)
    if power.min() < -_ROUNDING:
        raise InvalidInputError(
            "No series has these autocorrelations and none beyond the last one: some frequency "
            "would have negative power. Give more lags, or the coefficients of an autoregression "
            "(ar=)."
        )
