"""Releases of other libraries as spendings: OpenDP measurements, dp_accounting events, profiles.

A pure level is debited as it is, Gaussian noise by its μ, any other mechanism by the least μ whose
trade-off curve lies above its own: Gaussian noise of that level dominates it. A bare (ε, δ) has no
such μ, since with probability δ it may reveal everything, and a bare ρ has none either, since its
tails are not known; both are refused. Neither library is imported: objects are recognized by their
attributes.

Theorem: docs/theory/f-sweep.md (setting)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from quiltwork.budget.deployments import Neighbours, level_factor
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_up, integer, positive_fraction, shortened
from quiltwork.influence.tradeoffs.curves import gaussian_curve

_GRID_POINTS = 400
_HALVINGS = 60
_LARGEST_LEVEL = 1e6


def least_gdp(profile: Callable[[float], float], largest: Number) -> float:
    """Return the least μ whose trade-off curve lies above a privacy profile, rounded up.

    Args:
        profile: δ of the mechanism at every ε ≥ 0, for either order of neighbours; decreasing.
        largest: the largest privacy loss: an ε beyond which the profile is 0.

    Raises:
        InvalidInputError: if the profile is not 0 there, not decreasing, or no probability.
        UnsupportedError: if no μ is enough.

    >>> import math
    >>> laplace = lambda epsilon: max(0.0, 1 - math.exp((epsilon - 1) / 2))
    >>> round(least_gdp(laplace, 1), 3)
    1.032
    """
    if not callable(profile):
        raise InvalidInputError("profile must be a function from ε to δ.")
    end = float_up(positive_fraction(largest, "largest"))
    grid = [end * n / _GRID_POINTS for n in range(_GRID_POINTS + 1)]
    deltas = [_probability(profile(epsilon), epsilon) for epsilon in grid]
    if any(later > earlier for earlier, later in pairwise(deltas)):
        raise InvalidInputError("A privacy profile decreases as ε grows, and this one rises.")
    if deltas[-1] > 0:
        raise InvalidInputError(
            f"At ε = {end:g} the profile is still {deltas[-1]:g}. A mechanism that may reveal "
            "everything with some probability is dominated by no Gaussian noise. Give an ε beyond "
            "which the profile is 0."
        )
    # Between two grid points the profile is at most its value at the first of them.
    steps = [(math.exp(grid[n + 1]), delta) for n, delta in enumerate(deltas) if delta > 0]

    def lies_above(level: float) -> bool:
        # The margin is above the rounding of `gaussian_curve`, which rounds up.
        return all(gaussian_curve(level, gamma) * (1 - 1e-9) >= delta for gamma, delta in steps)

    low, high = 0.0, 1.0
    while not lies_above(high):
        low, high = high, 2 * high
        if high > _LARGEST_LEVEL:
            raise UnsupportedError("No Gaussian noise hides as much as this mechanism reveals.")
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if lies_above(middle) else (middle, high)
    return high


def _probability(value: Any, epsilon: float) -> float:
    try:
        delta = float(value)
    except (TypeError, ValueError):
        delta = math.nan
    if not 0 <= delta <= 1:
        raise InvalidInputError(
            f"At ε = {epsilon:g} the profile is {shortened(value)}, and δ lies between 0 and 1."
        )
    return delta


def spendings_of(
    mechanism: Any,
    start: int,
    stop: int,
    *,
    neighbours: Neighbours = "add-remove",
    label: str = "",
) -> tuple[Spending, ...]:
    """Return the spendings of a mechanism of another library on each point of a window.

    Args:
        mechanism: an OpenDP measurement, or an event of dp_accounting: Gaussian, Laplace, of a pure
            level, or composed of such.
        start: the first time point that it uses.
        stop: the last.
        neighbours: the neighbours that its level is for. An OpenDP measurement is evaluated at
            d_in = 2, two added or removed records, which make a substitution; with "substitute" at
            d_in = 1, one changed record.
        label: a name for people.

    Raises:
        UnsupportedError: for a bare (ε, δ), a bare ρ, and any other object.

    >>> class LaplaceDpEvent:  # as dp_accounting has it
    ...     noise_multiplier = 20
    >>> spendings_of(LaplaceDpEvent(), 1, 100)[0].dp_epsilon
    Fraction(1, 10)
    """
    factor = level_factor(neighbours)
    window = (integer(start, "start", 1), integer(stop, "stop", start))
    if hasattr(mechanism, "map") and hasattr(mechanism, "output_measure"):
        return _of_measurement(mechanism, window, factor, label)
    return tuple(_of_event(mechanism, window, factor, label))


def _of_measurement(
    measurement: Any, window: tuple[int, int], distance: int, label: str
) -> tuple[Spending, ...]:
    measure = str(measurement.output_measure)
    if not measure.startswith("MaxDivergence"):
        raise UnsupportedError(
            f"An OpenDP measurement in {measure.partition('(')[0]} has no level that adds up: it "
            "is a bare (ε, δ), or a ρ without its tails. Give one of pure ε, or Gaussian "
            "noise of quiltwork's own, or least_gdp of its privacy profile."
        )
    level = positive_fraction(measurement.map(d_in=distance), "The measurement's ε")
    return (Spending.dp(level, *window, label),)


def _of_event(event: Any, window: tuple[int, int], factor: int, label: str) -> list[Spending]:
    kind = type(event).__name__
    if kind == "NoOpDpEvent":
        return []
    if kind == "ComposedDpEvent":
        parts = [_of_event(part, window, factor, label) for part in event.events]
        return [spending for part in parts for spending in part]
    if kind == "SelfComposedDpEvent":
        count = integer(event.count, "count", 0)
        spendings = _of_event(event.event, window, factor, label) if count else []
        return [spending.times(count) for spending in spendings]
    if kind == "GaussianDpEvent":
        noise = positive_fraction(event.noise_multiplier, "noise_multiplier")
        return [Spending.gaussian(*window, gdp=Fraction(factor) / noise, label=label)]
    if kind == "LaplaceDpEvent":
        noise = positive_fraction(event.noise_multiplier, "noise_multiplier")
        return [Spending.dp(Fraction(factor) / noise, *window, label)]
    if kind == "EpsilonDeltaDpEvent" and event.delta == 0:
        level = positive_fraction(event.epsilon, "epsilon")
        return [Spending.dp(factor * level, *window, label)]
    raise UnsupportedError(
        f"{kind} has no level that adds up: only Gaussian and Laplace noise, pure levels, and "
        "what is composed of them. For a mechanism with a known privacy profile give least_gdp of "
        "it; a bare (ε, δ) can be analysed with monitor(…, level_delta=…), as a plan fixed "
        "beforehand."
    )
