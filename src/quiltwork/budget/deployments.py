"""`DEPLOYMENTS`: public deployments that protect a time slice, with their published levels.

From OpenDP's registry of deployments (registry.opendp.org, November 2026): entries whose unit of
protection is a day, or a part of one, of a user or a device. Most do not state whether their level
is for adding and removing a unit or for substituting one. Here a time point is substituted, so
levels for adding and removing count twice (ε and μ) or four times (ρ).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

Neighbours = Literal["substitute", "add-remove"]


def level_factor(neighbours: Neighbours) -> int:
    """Return the factor that turns a level for these neighbours into one for substitution.

    ρ is multiplied by its square.

    >>> level_factor("add-remove")
    2
    """
    choice(neighbours, ("substitute", "add-remove"), "neighbours")
    return 2 if neighbours == "add-remove" else 1


@dataclass(frozen=True)
class Deployment:
    """The published guarantee of one release of a deployment.

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
        factor = level_factor(neighbours)
        if self.epsilon is not None:
            return {"levels": self.epsilon * factor}
        return {"rho": (self.rho or Fraction(0)) * factor**2}


DEPLOYMENTS = {
    deployment.name: deployment
    for deployment in (
        Deployment("google_mobility", "user-day", epsilon=Fraction("2.64")),
        Deployment("covid19_search_trends_symptoms", "user-day", epsilon=Fraction("1.68")),
        Deployment("movement_ranges_maps", "user-day", epsilon=Fraction(2)),
        Deployment("telemetry_collection_windows", "user-quarter-day", 4, Fraction("1.672")),
        Deployment("wikimedia_current_usage_data", "device-day", rho=Fraction("0.015")),
    )
}


def deployment(name: str) -> Deployment:
    """Return a deployment by its name in the registry.

    Raises:
        InvalidInputError: for another name; the message lists the known ones.

    >>> deployment("movement_ranges_maps").unit
    'user-day'
    """
    if not isinstance(name, str) or name not in DEPLOYMENTS:
        names = ", ".join(DEPLOYMENTS)
        raise InvalidInputError(
            f"There is no deployment {shortened(name)} here; there are {names}. For another one "
            "give its level: --epsilon, or --rho with --delta."
        )
    return DEPLOYMENTS[name]
