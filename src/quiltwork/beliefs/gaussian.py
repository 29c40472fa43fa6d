"""Gaussian beliefs: jointly Gaussian numbers with known correlations and any means.

The data are numbers, not states. `within` is part of the belief, since it defines the secret: a
true difference of at most `within` at one time point or row.

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
from quiltwork.beliefs.grids import Grid, grid_suffix, grid_words, parse_grid
from quiltwork.beliefs.matrices import FloatArray, frozen
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, parse_stored_fraction, positive_fraction, to_fraction

MOST_MEMORY = 32
"""Lags of a series; exact recursions in fractions grow with their square."""
_MOST_LAGS = 10**6
_LONGEST_SAMPLE = 10**8
_ROUNDING = 1e-9
"""Room for a power of 0, which some series have at a frequency, to be rounded below 0."""
_FARTHEST = Fraction(10**12)
"""Beyond this ratio of `within` and the range of a query, their units almost certainly differ."""


class Gaussian(Belief):
    """The base class of Gaussian beliefs: no states, and the true difference that is hidden.

    `within` is in units of the data; None stands for the range hi − lo of the query.
    """

    states = None
    within: Fraction | None

    def ratio(self, span: Fraction) -> Fraction:
        """Return the hidden difference as a multiple of a query's range.

        Raises:
            InvalidInputError: if the two differ so much that their units must differ.
        """
        ratio = Fraction(1) if self.within is None else self.within / span
        if not 1 / _FARTHEST <= ratio <= _FARTHEST:
            raise InvalidInputError(
                "within and the range of the query differ by a factor of more than 10^12; give "
                "both in the same unit."
            )
        return ratio

    @property
    def farthest(self) -> Fraction | None:
        """The largest change of any number when a secret changes; None without `within`."""
        return self.within


@dataclass(frozen=True, init=False, eq=False, repr=False)
class GaussianSeries(Gaussian):
    """A stationary Gaussian series of numbers, by its autoregression or autocorrelations.

    Give one of `ar`, `autocorrelation` and `bounds`. The mean may be any, and change with time. A
    series whose variance at the start differs is not stationary, and may leak far more.

    Args:
        ar: the coefficients of an autoregression, X_t = ar[0]·X_{t−1} + ar[1]·X_{t−2} + … + noise;
            at most 32. They must make the series stationary.
        autocorrelation: the correlations at lags 1, 2, …; 0 beyond the last one.
        bounds: (lowest, highest), for every autoregression with one coefficient between them.
        within: the largest true difference at one time point that is hidden, in units of the data;
            by default the range hi − lo of the query. Clipping the data does not bound it.
        grid: the step of the data, to be checked against them.

    Raises:
        InvalidInputError: for coefficients of no stationary series.

    >>> GaussianSeries(ar=[0.8]).autocorrelation(3)
    array([1.   , 0.8  , 0.64 , 0.512])
    >>> GaussianSeries(ar=[1.0])
    Traceback (most recent call last):
        ...
    quiltwork.errors.InvalidInputError: ar=[1] is not stationary: the effect of the past would not
    fade. Give the coefficients of a stationary series, for example [0.8].
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
        values = ar if ar is not None else autocorrelation
        name = "ar" if ar is not None else "autocorrelation"
        numbers = _parse_bounds(bounds) if bounds is not None else _parse_lags(values, name)
        coefficients: tuple[Fraction, ...] = ()
        if autocorrelation is not None:
            _check_autocorrelation(numbers)
            correlations = numbers
        else:
            coefficients = (max(numbers, key=abs),) if bounds is not None else numbers
            correlations = _first_correlations(coefficients)
        ends = None if bounds is None else (numbers[0], numbers[1])
        finite, hidden = autocorrelation is not None, parse_within(within)
        self.__setstate__((coefficients, correlations, finite, ends, hidden, parse_grid(grid)))

    def autocorrelation(self, lags: int) -> FloatArray:
        """Return the autocorrelations at lags 0..lags; with `bounds`, the largest of the set."""
        most = integer(lags, "lags", 0, _MOST_LAGS)
        values = [1.0, *map(float, self.correlations)][: most + 1]
        if self.finite:
            return np.array(values + [0.0] * (most + 1 - len(values)))
        coefficients = [float(a) for a in self.ar]
        while len(values) <= most:
            values.append(sum(c * values[-j] for j, c in enumerate(coefficients, start=1)))
        return np.array(values)

    def sample(self, length: int, seed: int) -> FloatArray:
        """Return a simulated series of mean 0 and variance 1; for tests and demonstrations."""
        size = integer(length, "length", 1, _LONGEST_SAMPLE)
        random = np.random.default_rng(integer(seed, "seed", 0))
        if self.finite:
            return self._circular(size, random)
        memory = len(self.ar)
        first = self.autocorrelation(memory)[:memory].tolist()
        # Started from the stationary law: from zeros the first values would vary too little.
        start = np.linalg.cholesky(np.array(toeplitz(first)))
        series = list(start @ random.standard_normal(memory))
        coefficients = [float(a) for a in self.ar]
        # What the past explains is taken off, so that the variance stays 1.
        spread = np.sqrt(1 - float(np.dot(coefficients, self.autocorrelation(memory)[1:])))
        for shock in (spread * random.standard_normal(max(size - memory, 0))).tolist():
            series.append(shock + sum(c * series[-j] for j, c in enumerate(coefficients, start=1)))
        return np.array(series[:size])

    def _circular(self, size: int, random: np.random.Generator) -> FloatArray:
        """Return a stretch of a longer circular series, whose ends are independent; by FFT."""
        memory = len(self.correlations)
        ring = np.zeros(size + 2 * memory + 1)
        ring[0] = 1.0
        ring[1 : memory + 1] = [float(number) for number in self.correlations]
        ring[-memory:] = ring[memory:0:-1]
        # Powers that are 0 may be rounded below it.
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

    def summary(self) -> str:
        """Return the numbers, the hidden difference and the grid in words."""
        if self.bounds is not None:
            low, high = (f"{float(end):g}" for end in self.bounds)
            law = f"any Gaussian autoregression with one coefficient from {low} to {high}"
        elif self.finite:
            law = f"a Gaussian series with autocorrelations {_shown(self.correlations)} and then 0"
        else:
            noun = "coefficient" if len(self.ar) == 1 else "coefficients"
            law = f"a Gaussian autoregression with {noun} {_shown(self.ar)}"
        return f"{law}{within_words(self)}{grid_words(self.grid)}"

    def __repr__(self) -> str:
        """Return the numbers, and `within` if it is set."""
        if self.bounds is not None:
            numbers = f"bounds=({_shown(self.bounds)})"
        elif self.finite:
            numbers = f"autocorrelation=[{_shown(self.correlations)}]"
        else:
            numbers = f"ar=[{_shown(self.ar)}]"
        return f"GaussianSeries({numbers}{within_suffix(self)}{grid_suffix(self.grid)})"


def parse_within(within: Any) -> Fraction | None:
    """Return the hidden difference as a fraction; None if it is not set."""
    return None if within is None else positive_fraction(within, "within")


def within_words(belief: Gaussian) -> str:
    """Return the part of a belief's summary about `within`."""
    if belief.within is None:
        return ""
    return f", in which true differences of up to {float(belief.within):g} are hidden"


def within_suffix(belief: Gaussian) -> str:
    """Return the part of a belief's repr about `within`."""
    return "" if belief.within is None else f", within={float(belief.within):g}"


def parse_stored_list(document: dict[str, Any], name: str) -> list[Fraction] | None:
    """Return a list of exact numbers from a document; None for null."""
    values = field(document, name)
    if values is None:
        return None
    return [parse_stored_fraction(entry, f"An entry of {name}") for entry in listed(values, name)]


def parse_stored_within(document: dict[str, Any]) -> Fraction | None:
    """Return `within` from a document."""
    within = field(document, "within")
    return None if within is None else parse_stored_fraction(within, "within")


def _shown(numbers: Sequence[Fraction], most: int = 6) -> str:
    shown = ", ".join(f"{float(number):g}" for number in numbers[:most])
    return shown if len(numbers) <= most else f"{shown}, … ({len(numbers)} in all)"


def _parse_lags(values: Any, name: str) -> tuple[Fraction, ...]:
    parts = listed(values, name)
    if not 1 <= len(parts) <= MOST_MEMORY:
        raise InvalidInputError(
            f"{name} has {len(parts)} entries; give 1 to {MOST_MEMORY} numbers, one per lag."
        )
    numbers = tuple(
        to_fraction(part, f"Entry {position} of {name}")
        for position, part in enumerate(parts, start=1)
    )
    # A stationary series of order p has |a_j| ≤ C(p, j) < 2^p, as its roots lie within 1.
    if any(abs(number) > 2**MOST_MEMORY for number in numbers):
        raise InvalidInputError(f"An entry of {name} is far larger than in any stationary series.")
    return numbers


def _parse_bounds(values: Any) -> tuple[Fraction, ...]:
    numbers = _parse_lags(values, "bounds")
    if len(numbers) != 2 or not -1 < numbers[0] <= numbers[1] < 1:
        raise InvalidInputError(
            "bounds must be the lowest and the highest coefficient of an autoregression, both "
            f"between -1 and 1, for example (0, 0.8), not ({_shown(numbers)})."
        )
    return numbers


def _first_correlations(ar: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Return the exact correlations at lags 1..p of an autoregression, by Levinson's recursion.

    Downwards: the last coefficient is the partial correlation at its lag, and removing it gives the
    coefficients of the next lower order; the series is stationary if and only if all partial
    correlations lie within (-1, 1). Upwards: ρ_m = Σ_j a_j·ρ_{m−j} by those of order m.
    """
    orders = [ar]
    while len(last := orders[-1]) > 1 and abs(last[-1]) < 1:
        pairs = zip(last[:-1], last[-2::-1], strict=True)
        orders.append(tuple((a + last[-1] * b) / (1 - last[-1] ** 2) for a, b in pairs))
    if any(abs(order[-1]) >= 1 for order in orders):
        raise InvalidInputError(
            f"ar=[{_shown(ar)}] is not stationary: the effect of the past would not fade. Give the "
            "coefficients of a stationary series, for example [0.8]."
        )
    correlations: list[Fraction] = []
    for order in reversed(orders):
        before = [*reversed(correlations), Fraction(1)]
        correlations.append(sum((a * r for a, r in zip(order, before, strict=True)), Fraction(0)))
    return tuple(correlations)


def _check_autocorrelation(numbers: tuple[Fraction, ...]) -> None:
    """Raise InvalidInputError for correlations of no series: a frequency with negative power."""
    for lag, number in enumerate(numbers, start=1):
        if not -1 < number < 1:
            raise InvalidInputError(
                f"The autocorrelation at lag {lag} is {float(number):g}; give numbers between -1 "
                "and 1."
            )
    # At 64 frequencies per lag a dip below 0 between two of them is shallow.
    ring = np.zeros(64 * (len(numbers) + 1))
    ring[1 : len(numbers) + 1] = [float(number) for number in numbers]
    power = 1 + 2 * frozen(np.fft.fft(ring).real)
    if power.min() < -_ROUNDING:
        raise InvalidInputError(
            "No series has these autocorrelations and 0 beyond the last one: some frequency would "
            "have negative power. Give more lags, or the coefficients of an autoregression (ar=)."
        )
