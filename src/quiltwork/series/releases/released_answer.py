"""`ReleasedAnswer`: the public values of a private answer, and what is computed from them.

A frozen record: the noisy integers, their scale, the noise and the calibration. It does not contain
the true answer. Texts, pages and documents are made from it by the modules above; `Release` gives
them as methods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from quiltwork.arguments import flag
from quiltwork.beliefs.secrets import SecretPairs
from quiltwork.budget.spending import Spending
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number, float_up
from quiltwork.noise import RoundedGaussian, TwoSidedGeometric
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries.cells import OverStates
from quiltwork.queries.query import Query, States
from quiltwork.results import ChartedResult
from quiltwork.series.releases.error_bars import (
    Interval,
    ends,
    refuse_label_interval,
    shortfall,
)
from quiltwork.series.releases.protection import law_of

if TYPE_CHECKING:
    from quiltwork.series.releases.protection import Who


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedAnswer(ChartedResult):
    """The values of a private answer: noise, guarantee, error bars and level for accountants.

    `Release` describes the fields.
    """

    value: Any
    cells: tuple[Any, ...]
    query: Query
    exact_epsilon: Fraction
    noise_scale: Fraction
    noisy: tuple[int, ...]
    offset: Fraction
    unit: Fraction
    rounding: Fraction
    total: Fraction | None
    points: int
    length: int
    subjects: int
    method: str
    node: int | None
    quilt: tuple[int, ...] | None
    influence: float
    secrets: tuple[int, int] | None
    beliefs: tuple[str, ...]
    belief_digest: str
    dataset: str | None = None
    processing: tuple[str, ...] = ()
    episode: int = 1
    before: float = 0.0
    assumed_step: int | None = None
    period: tuple[str, str] | None = None
    fitted: bool = False
    delta: Fraction = Fraction(0)
    pairs: SecretPairs | None = None
    gaps: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, np.ndarray):
            frozen = self.value.copy()
            frozen.flags.writeable = False
            object.__setattr__(self, "value", frozen)

    @property
    def epsilon(self) -> float:
        """The bound on the privacy loss of this release, for any protected secret."""
        return float(self.exact_epsilon)

    def level_kept(self) -> float:
        """The guarantee as a float, rounded up."""
        return float_up(self.exact_epsilon)

    @property
    def states(self) -> States | None:
        """The states of a release that has a cell for each state; else None."""
        query = self.query
        return query.states_among(self.cells) if isinstance(query, OverStates) else None

    def leak_under(self, beliefs: Any) -> tuple[float, int]:
        """Return a bound on the leakage of this release under other beliefs, and the worst node."""
        from quiltwork.influence.calibration import leak_under
        from quiltwork.influence.calibration_arguments import as_problem

        question = as_problem(self.query, self.length, self.secrets, self.episode, self.pairs)
        if self.delta:
            from quiltwork.influence.gaussian_noise import epsilon_under

            leak, _ = epsilon_under(beliefs, question, self.noise_scale, self.delta)
            return leak, self.node or 1
        return leak_under(beliefs, question, self.noise_scale)

    def for_audit(
        self,
    ) -> tuple[list[tuple[Query, Number]], int, tuple[int, int] | None] | None:
        """Return (query, scale), length and secrets for an exact audit; None if there is none."""
        alone = self.subjects == 1 and self.episode == 1 and self.pairs is None
        if not alone or self.delta or self.gaps:  # exact for the whole window alone
            return None
        return [(self.query, self.noise_scale * self.unit)], self.length, self.secrets

    @property
    def protects(self) -> Who:
        """The secret: a "moment", an "episode", or a "person" with the whole series."""
        if self.method == "group" and self.episode >= self.length:
            return "person"
        return "moment" if self.episode == 1 else "episode"

    @property
    def scale(self) -> float:
        """The scale of the noise actually added, in units of the value, rounded up."""
        return float_up(self.noise_scale * self.unit)

    @property
    def mechanism(self) -> str:
        """How noise was added: "two-sided geometric", "rounded gaussian" or "exponential"."""
        return "rounded gaussian" if self.delta else self.query.mechanism

    @property
    def law(self) -> TwoSidedGeometric | RoundedGaussian:
        """The distribution of the noise on each integer."""
        return law_of(self.delta).from_scale(self.noise_scale)

    @property
    def square(self) -> Fraction:
        """The squared level μ² of Gaussian noise for substituting one time point; it is additive.

        0 for other noise. `gdp` is μ, and ρ of zero-concentrated differential privacy is μ²/2.
        """
        if not self.delta or not self.noise_scale:
            return Fraction(0)
        return self.query.squared_l2_sensitivity / self.noise_scale**2

    @property
    def gdp(self) -> float:
        """The level μ of Gaussian differential privacy for substituting one time point."""
        return math.sqrt(self.square) * (1 + 2.0**-50)

    @property
    def exact_dp_epsilon(self) -> Fraction | None:
        """The level for substituting one time point, over all pairs of sequences.

        Accountants price this level. None for releases without noise and for Gaussian noise, which
        have no pure level.
        """
        if self.delta:
            return None
        nodes = np.arange(3) + self.window[0]
        if self.query.runs:
            nodes = np.array(self.query.runs).ravel()
        most = int(self.query.l1_sensitivity(nodes, nodes, self.length).max())
        if most == 0:
            return Fraction(0)
        return most / self.noise_scale if self.noise_scale else None

    @property
    def spending(self) -> Spending:
        """The spending of this release, as accountants and ledgers record it.

        Raises:
            UnsupportedError: if it added no noise, so that it has no level.
        """
        if self.noise_scale == 0:
            raise UnsupportedError(
                "This release added no noise, since its beliefs leave nothing to protect; it has "
                "no level to account for under others. Release it with beliefs that do."
            )
        if self.delta:
            return Spending.of_gaussian(
                self.query, self.noise_scale, self.length, epsilon=self.exact_epsilon
            )
        return Spending.of_query(
            self.query,
            self.noise_scale,
            self.length,
            epsilon=self.exact_epsilon,
            quilts=f"{self.method} at scale {self.noise_scale}",
        )

    @property
    def dp_epsilon(self) -> float:
        """`exact_dp_epsilon` as a float, rounded up; infinite where there is none."""
        level = self.exact_dp_epsilon
        return float("inf") if level is None else float_up(level)

    @property
    def window(self) -> tuple[int, int]:
        """The time points asked about, in the longest subject."""
        return self.query.window(self.length)

    @property
    def expected_error(self) -> float:
        """The expected absolute error of one cell; for a label, of its count below the largest."""
        if self.mechanism == "exponential":
            return expected_shortfall(self.noise_scale, len(self.cells))
        return float_up(Fraction(self.law.expected_absolute) * self.unit + self.rounding)

    def interval(self, confidence: Number = 0.95, simultaneous: bool = False) -> Interval:
        """Return an interval that covers the true answer with at least this probability.

        Per cell, or with `simultaneous` for all cells at once. Exact from the distribution of the
        noise; post-processing does not change it, since it adds no knowledge about the truth.

        Raises:
            InvalidInputError: if confidence is not strictly between 0 and 1.
            UnsupportedError: for a label; see `shortfall`.

        Theorem: docs/theory/public-grid-queries.md
        """
        if self.mechanism == "exponential":
            raise refuse_label_interval()
        every = len(self.cells) if flag(simultaneous, "simultaneous") else 1
        together = self.query.chosen_among or every
        steps = self.law.simultaneous_quantile(confidence, together)
        low, high = ends(self.noisy, steps, self.offset, self.unit, self.rounding)
        if isinstance(self.value, np.ndarray):
            return Interval(low.reshape(self.value.shape), high.reshape(self.value.shape))
        return Interval(low[0].item(), high[0].item())

    def shortfall(self, confidence: Number = 0.95) -> int:
        """Return a bound on how far the chosen state's count is below the largest.

        Raises:
            UnsupportedError: for everything but the most common state; see `interval`.
        """
        if self.mechanism != "exponential":
            raise UnsupportedError("Only the most common state has a shortfall; use interval().")
        return shortfall(self.noise_scale, len(self.cells), confidence)

    def as_dict(self) -> dict[Any, Any]:
        """Return the value's entries by cell."""
        if not isinstance(self.value, np.ndarray):
            return {self.cells[0]: self.value} if len(self.cells) == 1 else {"value": self.value}
        return dict(zip(self.cells, self.value.ravel().tolist(), strict=True))

    def processed(self, value: Any, step: str, **changes: Any) -> Self:
        """Return the release with another point estimate and the name of the step added."""
        return replace(self, value=value, processing=(*self.processing, step), **changes)

    def records(self) -> list[dict[str, Any]]:
        """Return a row per cell: its label, its value and its 0.95 interval, where it has one."""
        if self.mechanism == "exponential":
            return [{"value": self.value}]
        names = ("cell", "value", "low", "high")
        columns = (np.ravel(one).tolist() for one in (self.value, *self.interval()))
        return [
            dict(zip(names, row, strict=True)) for row in zip(self.cells, *columns, strict=True)
        ]
