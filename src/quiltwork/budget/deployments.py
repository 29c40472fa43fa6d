"""Public deployments that protect a time slice, by what they publish about themselves.

From OpenDP's registry of deployments (registry.opendp.org, November 2026): entries whose unit of
protection is a day, or a part of one, of a user or a device. Levels are as published. Of most it is
not said whether they are for adding and removing a unit or for substituting one; a time point is
substituted, so that of the former ε and μ count twice, and ρ four times.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

Neighbours = Literal["substitute", "add-remove"]


@dataclass(frozen=True)
class Deployment:
    """What a deployment says about one release.

    Attributes:
        name: in the registry.
        unit: what one release protects.
        per_day: how many such units a day has.
        epsilon: its pure level; None where it is ρ of Gaussian noise.
        rho: of Gaussian noise, or None.
    """

    name: str
    unit: str
    per_day: int = 1
    epsilon: Fraction | None = None
    rho: Fraction | None = None

    def level(self, neighbours: Neighbours = "substitute") -> dict[str, Any]:
        """Return the level for substituting one unit, as arguments of `monitor`.

        >>> DEPLOYMENTS["google_mobility"].level("add-remove")
        {'levels': Fraction(132, 25)}
        """
        choice(neighbours, ("substitute", "add-remove"), "neighbours")
        twice = neighbours == "add-remove"
        if self.epsilon is not None:
            return {"levels": self.epsilon * (2 if twice else 1)}
        return {"rho": (self.rho or Fraction(0)) * (4 if twice else 1)}


def _all(*found: Deployment) -> dict[str, Deployment]:
    return {one.name: one for one in found}


DEPLOYMENTS = _all(
    Deployment("google_mobility", "user-day", epsilon=Fraction("2.64")),
    Deployment("covid19_search_trends_symptoms", "user-day", epsilon=Fraction("1.68")),
    Deployment("movement_ranges_maps", "user-day", epsilon=Fraction(2)),
    Deployment("telemetry_collection_windows", "user-quarter-day", 4, Fraction("1.672")),
    Deployment("wikimedia_current_usage_data", "device-day", rho=Fraction("0.015")),
)


def deployment(name: str) -> Deployment:
    """Return a deployment by its name in the registry.

    Raises:
        InvalidInputError: for another name; it lists those there are.
    """
    if name not in DEPLOYMENTS:
        known = ", ".join(DEPLOYMENTS)
        raise InvalidInputError(
            f"There is no deployment {shortened(name)} here; there are {known}. Of another one "
            "give its level: --epsilon, or --rho with --delta."
        )
    return DEPLOYMENTS[name]
