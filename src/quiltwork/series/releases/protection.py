"""The secret to protect: each moment, each episode, or each person with the whole series.

Moments and episodes are protected against adversaries with the given beliefs. Persons need no
belief if they are independent of each other: noise of scale Δ/ε protects a whole series, where Δ is
the sensitivity of the answer to replacing all of it.

Theorem: docs/theory/query-sensitivity.md (persons)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from quiltwork.arguments import choice
from quiltwork.beliefs import Belief, ChainBox, Label
from quiltwork.beliefs.secrets import SecretPairs, parse_pairs
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_up, integer, privacy_level
from quiltwork.influence import Calibration, GaussianCalibration, calibrate
from quiltwork.influence.belief_bound import CalibrationProblem
from quiltwork.influence.calibration_arguments import answer_unit
from quiltwork.noise import RoundedGaussian, TwoSidedGeometric
from quiltwork.queries.query import Query
from quiltwork.wording import argument, either

Who: TypeAlias = Literal["moment", "episode", "person"]
WHO: tuple[Who, ...] = ("moment", "episode", "person")


@dataclass(frozen=True)
class Protection:
    """The secret: a time point, `episode` consecutive ones, or a person's whole series.

    With `pairs` only these values of a time point are kept apart.
    """

    who: Who
    method: str | None = None
    secrets: tuple[int, int] | None = None
    episode: int = 1
    delta: Fraction = Fraction(0)
    pairs: SecretPairs | None = None

    def calibrated(
        self, query: Query, members: tuple[Belief, ...], lengths: Counter[int], epsilon: Fraction
    ) -> Calibration | GaussianCalibration:
        """Return the noise that the query needs for series of these lengths."""
        if self.who == "person":
            return _for_persons(query, lengths, epsilon)
        rows = all(belief.length is not None for belief in members)
        counted = None if rows else lengths
        problem = members, counted, epsilon, self.method, query, self.secrets, self.episode
        if not self.delta:
            return calibrate(*problem, pairs=self.pairs)
        return calibrate(*problem, noise="gaussian", delta=self.delta, pairs=self.pairs)

    @property
    def law(self) -> type[TwoSidedGeometric] | type[RoundedGaussian]:
        """The noise that is added to each integer."""
        return law_of(self.delta)


def law_of(delta: Fraction) -> type[TwoSidedGeometric] | type[RoundedGaussian]:
    """Return the kind of noise: Gaussian for (ε, δ), geometric for a pure ε."""
    return RoundedGaussian if delta else TwoSidedGeometric


def read_protection(
    protect: Any,
    method: str | None,
    secrets: Any,
    episode: Any,
    members: Sequence[Belief],
    delta: Fraction = Fraction(0),
    pairs: Any = None,
) -> Protection:
    """Parse who is protected; None is a moment, or an episode if `episode` is above 1."""
    stretch = integer(episode, "episode", 1)
    if protect is None:
        kind: Who = "moment" if stretch == 1 else "episode"
        apart = parse_pairs(pairs, members, stretch)
        return Protection(kind, method, secrets, stretch, delta, apart)
    who = cast("Who", choice(protect, WHO, "protect"))
    apart = None if who == "person" else parse_pairs(pairs, members, stretch)
    if (who == "episode") != (stretch > 1):
        raise InvalidInputError(
            f"{argument('protect', 'episode')} hides stretches of time points: say how many with "
            f"{argument('episode', 18)}."
            if who == "episode"
            else f"{argument('episode', stretch)} goes with {argument('protect', 'episode')}, not "
            f"with {argument('protect', who)}."
        )
    if who != "person":
        return Protection(who, method, secrets, stretch, delta, apart)
    if delta:
        raise UnsupportedError(
            f"{argument('protect', 'person')} takes geometric noise: how far replacing a whole "
            "series moves an "
            "answer is known in L1 only. Leave noise and delta out."
        )
    if method not in (None, "group") or secrets is not None or pairs is not None:
        raise InvalidInputError(
            f"{argument('protect', 'person')} hides the whole series without any belief: leave "
            "method, secrets and "
            "pairs out."
        )
    if any(belief.length is not None for belief in members):
        raise UnsupportedError(
            f"{argument('protect', 'person')} is about one series for each person, and these "
            "beliefs are about "
            "rows of one data set; put all rows of a person into one cluster of qw.Clusters."
        )
    return Protection("person")


def any_series(states: Sequence[Label] | None) -> ChainBox:
    """Return the belief that excludes nothing: any series of these states."""
    if not states:
        raise InvalidInputError(
            "Without a belief the states are unknown, and the cells of a release must not depend "
            "on the data; "
            + either("write queries.histogram(states=[…])", "name them with --states a,b")
            + ", or give a belief."
        )
    shape = (len(states), len(states))
    return ChainBox(np.zeros(shape), np.ones(shape), states=states)


def _for_persons(query: Query, lengths: Counter[int], epsilon: Fraction) -> Calibration:
    """Return the noise that protects a whole series, whatever is believed about it."""
    longest = max(lengths)
    change = max(int(query.l1_sensitivity(1, n, n)) for n in lengths)
    unit = answer_unit(query, lengths)
    scale = change * unit / privacy_level(epsilon, "epsilon")
    return Calibration(
        scale=float_up(scale),
        exact_scale=scale,
        epsilon=epsilon,
        node=1,
        quilt=(),
        influence=0.0,
        nearby=longest,
        change=change,
        method="group",
        belief=1,
        length=longest,
        problem=CalibrationProblem(query, longest, range(1, longest + 1), longest),
        bounds=(),
        unit=unit,
    )
