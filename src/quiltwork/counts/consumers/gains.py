"""The value of a consumer's optimal remap, in numbers and in words."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from quiltwork.arguments import instance
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.geometric_mechanism import GeometricMechanism
from quiltwork.counts.optimality.consumer_program import OptimalityCertificate, optimal_mechanism
from quiltwork.counts.remaps.remap import Remap
from quiltwork.exact import float_up
from quiltwork.results import ResultBase

_LARGEST_EPSILON = 60.0
_LARGEST_SEARCH = 20_000
_LARGEST_PROGRAM = 16  # about a second


@dataclass(frozen=True)
class Gain(ResultBase):
    """The value of the optimal remap to one consumer.

    Attributes:
        remap: the consumer's optimal remap.
        prior_loss: the least expected loss without any release, from the prior alone.
        equivalent_epsilon: the ε at which answers at face value would have the same loss; None if
            none up to 60 has, or n is above 20,000.
        epsilon: the level of the release; infinite at α = 0.
        made_for_it: if the loss is not monotone and n ≤ 16, the certificate of the consumer's
            optimal mechanism of this level, from its linear program; None otherwise.
    """

    remap: Remap
    prior_loss: float
    equivalent_epsilon: float | None
    epsilon: float
    made_for_it: OptimalityCertificate | None = None

    @property
    def saved(self) -> float:
        """The share of the face-value loss that the remap saves."""
        face = self.remap.face_value_loss
        return 1 - self.remap.expected_loss / face if face else 0.0

    def explain(self) -> str:
        """Return the gain in a few lines."""
        remap = self.remap
        different = sum(i != r for i, r in enumerate(remap.mapping) if r is not None)
        lines = [
            f"{remap.loss_name} loss, counts 0..{remap.n}, {_level(self.epsilon)}",
            f"expected loss without any release: {self.prior_loss:.6g}",
            f"expected loss at face value:       {remap.face_value_loss:.6g}",
            f"expected loss after the remap:     {remap.expected_loss:.6g}"
            f" ({100 * self.saved:.1f} % less than at face value)",
            f"the remap changes {different} of {remap.n + 1} answers",
        ]
        if self.equivalent_epsilon is not None:
            more = 100 * (self.equivalent_epsilon / self.epsilon - 1)
            lines.append(
                "at face value, the same loss would take epsilon = "
                f"{self.equivalent_epsilon:.4g}: {more:.1f} % more privacy budget"
            )
        if doubtful := int(remap.posteriors.doubtful.sum()):
            lines.append(
                f"the reading of {doubtful} answers is unknown: the prior is below the smallest "
                "float there and has no logarithms"
            )
        lines.append(_verdict(remap))
        if self.made_for_it is not None:
            loss, gap = float(self.made_for_it.expected_loss), float(self.made_for_it.gap)
            lines.append(
                f"the best mechanism for this consumer (optimal_mechanism) has loss {loss:.6g}, at "
                f"most {gap:.1g} above the optimum"
            )
        return "\n".join(lines)


def _level(epsilon: float) -> str:
    return "alpha = 0: no privacy" if math.isinf(epsilon) else f"epsilon = {epsilon:.6g}"


def _verdict(remap: Remap) -> str:
    condition = remap.universality
    if condition.condition == "monotone":
        return "no mechanism of this privacy level is better for this consumer (monotone loss)"
    if condition.condition == "single crossing":
        return (
            "no mechanism of this privacy level is better for this consumer (the loss is not "
            f"monotone, {condition.detail}, but single-crossing)"
        )
    if condition.condition == "not decided":
        return "whether another mechanism would be better for this consumer was not decided"
    return (
        f"the loss is not monotone: {condition.detail}; another mechanism may be better for this "
        "consumer, see optimal_mechanism"
    )


def consumer_gain(mechanism: GeometricMechanism, consumer: Consumer) -> Gain:
    """Compute the value of a consumer's optimal remap.

    Cost: about 10 remaps, and for a loss that is not monotone a linear program.

    >>> gain = consumer_gain(GeometricMechanism(3, alpha=0.5), Consumer([0.5, 0, 0, 0.5]))
    >>> round(gain.saved, 3)
    0.143
    """
    remap = instance(mechanism, GeometricMechanism, "mechanism").remap(consumer)
    unordered = remap.universality.condition == "fails" and mechanism.n <= _LARGEST_PROGRAM
    without_release = GeometricMechanism(mechanism.n, alpha=1).remap(consumer)
    level = math.inf if mechanism.dp_epsilon is None else float_up(mechanism.dp_epsilon)
    return Gain(
        remap,
        without_release.expected_loss,
        _equivalent(mechanism.n, consumer, remap.expected_loss, level),
        level,
        optimal_mechanism(consumer, mechanism.n, mechanism.alpha).certificate
        if unordered
        else None,
    )


def _equivalent(n: int, consumer: Consumer, target: float, epsilon: float) -> float | None:
    """Return the least ε at which face value reaches the target loss, to eight digits."""
    from scipy.optimize import brentq

    if n > _LARGEST_SEARCH or not 0 < epsilon < _LARGEST_EPSILON or target <= 0:
        return None

    def above(log_level: float) -> float:
        face = GeometricMechanism(n, epsilon=math.exp(log_level)).remap(consumer).face_value_loss
        return math.log(max(face, sys.float_info.min)) - math.log(target)

    # In logarithms: level and loss range over orders of magnitude.
    low, high = math.log(epsilon), math.log(_LARGEST_EPSILON)
    if above(high) > 0:
        return None
    return math.exp(brentq(above, low, high, xtol=1e-9)) if above(low) > 0 else epsilon
