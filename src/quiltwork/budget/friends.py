"""Releases of other libraries as spendings: an OpenDP measurement, a dp_accounting event, a curve.

A pure level is debited as it is, Gaussian noise by its μ, anything else by the least μ whose
trade-off lies above its own: Gaussian noise of that level hides what it hides. A bare (ε, δ) has no
such μ, since with probability δ it may tell everything, and a bare ρ none either, since its tails
are not known; both are refused. Neither library is imported: what is given is asked.

Theorem: docs/theory/f-sweep.md (setting)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from quiltwork.arguments import choice
from quiltwork.budget.deployments import Neighbours
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_up, integer, positive_fraction, shortened
from quiltwork.influence.tradeoffs.curves import gaussian_curve

_PLACES = 400
_HALVINGS = 60
_LARGEST_LEVEL = 1e6


def least_gdp(profile: Callable[[float], float], largest: Number) -> float:
    """Return the least μ whose trade-off lies above a privacy profile, rounded up.

    Args:
        profile: δ of the mechanism at every ε ≥ 0, for either order of neighbours; it falls.
        largest: an ε beyond which it is 0: its privacy loss is never larger.

    Raises:
        InvalidInputError: if it is not 0 there, does not fall, or is no probability.
        UnsupportedError: if no μ is enough.

    >>> import math
    >>> laplace = lambda epsilon: max(0.0, 1 - math.exp((epsilon - 1) / 2))
    >>> round(least_gdp(laplace, 1), 3)
    1.032
    """
    if not callable(profile):
        raise InvalidInputError("profile must be a function from ε to δ.")
    end = float_up(positive_fraction(largest, "largest"))
    places = [end * n / _PLACES for n in range(_PLACES + 1)]
    told = [_probability(profile(place), place) for place in places]
    if any(later > before for before, later in pairwise(told)):
        raise InvalidInputError("A privacy profile falls as ε grows, and this one rises.")
    if told[-1] > 0:
        raise InvalidInputError(
            f"At ε = {end:g} the profile is still {told[-1]:g}: what may tell everything with some "
            "chance is hidden by no Gaussian noise. Give an ε beyond which it is 0."
        )
    steps = [  # between two places the profile is at most what it is at the first
        (math.exp(after), told[n]) for n, after in enumerate(places[1:]) if told[n] > 0
    ]

    def lies_above(level: float) -> bool:
        return all(_below(gaussian_curve(level, gamma)) >= delta for gamma, delta in steps)

    low, high = 0.0, 1.0
    while not lies_above(high):
        low, high = high, 2 * high
        if high > _LARGEST_LEVEL:
            raise UnsupportedError("No Gaussian noise hides as much as this mechanism tells.")
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if lies_above(middle) else (middle, high)
    return high


def _below(value: float) -> float:
    """A curve that was rounded up, as a bound from below."""
    return value * (1 - 1e-9)


def _probability(value: Any, place: float) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found <= 1:
        raise InvalidInputError(
            f"At ε = {place:g} the profile is {shortened(value)}, and δ lies between 0 and 1."
        )
    return found


def spendings_of(
    mechanism: Any,
    start: int,
    stop: int,
    *,
    neighbours: Neighbours = "add-remove",
    label: str = "",
) -> tuple[Spending, ...]:
    """Return what a mechanism of another library spends on each point of a window.

    Args:
        mechanism: an OpenDP measurement, or an event of dp_accounting: Gaussian, Laplace, of a pure
            level, or composed of such.
        start: the first time point that it uses.
        stop: the last.
        neighbours: what its level is for. An OpenDP measurement is asked about two added or removed
            records, which a substitution is, or with "substitute" about one changed record.
        label: a name for people.

    Raises:
        UnsupportedError: for a bare (ε, δ), a bare ρ, and what is none of these.
    """
    choice(neighbours, ("substitute", "add-remove"), "neighbours")
    window, name = (integer(start, "start", 1), integer(stop, "stop", start)), label
    if hasattr(mechanism, "map") and hasattr(mechanism, "output_measure"):
        return _of_measurement(mechanism, window, 2 if neighbours == "add-remove" else 1, name)
    return tuple(_of_event(mechanism, window, 2 if neighbours == "add-remove" else 1, name))


def _of_measurement(
    measurement: Any, window: tuple[int, int], distance: int, label: str
) -> tuple[Spending, ...]:
    measure = str(measurement.output_measure)
    if not measure.startswith("MaxDivergence"):
        raise UnsupportedError(
            f"An OpenDP measurement in {measure.partition('(')[0]} says too little of itself to "
            "add up: a bare (ε, δ), or a ρ without its tails. Give one of pure ε, or Gaussian "
            "noise of quiltwork's own, or least_gdp of its privacy profile."
        )
    level = positive_fraction(measurement.map(d_in=distance), "The measurement's ε")
    return (Spending.dp(level, *window, label),)


def _of_event(event: Any, window: tuple[int, int], factor: int, label: str) -> list[Spending]:
    kind = type(event).__name__
    if kind == "NoOpDpEvent":
        return []
    if kind == "ComposedDpEvent":
        parts = [_of_event(one, window, factor, label) for one in event.events]
        return [one for part in parts for one in part]
    if kind == "SelfComposedDpEvent":
        times = integer(event.count, "count", 0)
        return [one.times(times) for one in _of_event(event.event, window, factor, label) if times]
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
        "what is composed of them. Of a mechanism whose privacy profile is known give least_gdp of "
        "it; a bare (ε, δ) can be looked at with monitor(…, level_delta=…), as a plan fixed "
        "beforehand."
    )
