"""`Release`: a private answer with everything needed to read, check and account for it.

A release is a frozen record of public values: the noisy integers, their scale, the noise and the
calibration. It does not contain the true answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Sequence

    from quiltwork.beliefs import Belief
    from quiltwork.budget.judging import Usefulness
    from quiltwork.report import Chart
    from quiltwork.series.releases.protection import Who
    from quiltwork.series.releases.release_page import ReportContext


@dataclass(frozen=True, eq=False, repr=False)
class Release(ChartedResult):
    """A private answer with its noise, its guarantee and its error bars.

    >>> import quiltwork as qw
    >>> chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    >>> answer = qw.release(["rest", "walk"] * 50, qw.queries.count("walk"), chain, epsilon=1.0)
    >>> answer.epsilon, answer.protects, round(answer.scale, 4)
    (1.0, 'moment', 3.2982)

    Attributes:
        value: the answer to read: an int (count), a float (mean, sum, custom), a label (most
            common), or an array with one entry per cell (a square matrix for transitions).
        cells: the labels of the entries, row by row.
        query: the question, on the grid that was used.
        exact_epsilon: the bound on the privacy loss under every belief, exactly; `epsilon` is the
            same as a float. Above the requested ε only with the method "entry".
        noise_scale: the scale of the noise added to the integers, exactly.
        noisy: the integers after noise (for the most common state: its index).
        offset: the value of the integer 0: an integer m stands for offset + unit·m.
        unit: the value of one step of the integers; `scale` is noise_scale·unit.
        rounding: a bound on the error of the grid in a cell; part of every interval.
        total: the sum of the true cells, where it is public.
        points: the number of time points asked about, over all subjects.
        length: the length of the longest subject.
        subjects: the number of independent subjects that were pooled.
        method: the method of calibration.
        node: the time point that needs the most noise; of an episode the first.
        quilt: the active quilt of `node`, where the method works by quilts.
        influence: the leakage that all other time points add at `node`: by the sweep through the
            noisy answer, by quilts the max-influence of the quilt.
        secrets: the protected time points, or None for all.
        beliefs: each belief as the text of its repr.
        belief_digest: SHA-256 of the beliefs' JSON without their sources.
        dataset: the ledger's name for the data, if a ledger was debited.
        processing: free post-processing steps applied to `value`, in order.
        episode: the number of consecutive time points that are one secret.
        before: the part of `influence` from earlier time points; 0 where the method has none.
        assumed_step: the beliefs' step in seconds, if that of the data was unknown; else None.
        period: the first moment of the window and the end, in ISO 8601, if times are known.
        delta: the probability of a privacy loss above epsilon; 0 unless the noise is Gaussian.
        fitted: whether a belief was fitted on the released data; then the guarantee does not hold,
            since the noise depends on them.
        pairs: the pairs of values that are kept apart, or None for all.
        gaps: the number of time points asked about without a record, where gaps are claimed to be
            public; None without that claim. `points` leaves them out.
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

    @property
    def usefulness(self) -> Usefulness:
        """Whether the answer is useless, rough or useful, judged by the released answer alone."""
        from quiltwork.series.releases.usefulness import usefulness_of

        return usefulness_of(self)

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

    def processed(self, value: Any, step: str, **changes: Any) -> Release:
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

    def to_json(self) -> str:
        """Write the release as a document of schema `quiltwork/release`."""
        from quiltwork.series.releases.release_document import release_to_json

        return release_to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Release:
        """Read what `to_json` wrote; a custom query comes back without its function."""
        from quiltwork.series.releases.release_document import release_from_json

        return release_from_json(text)

    def chart(self, confidence: Number = 0.95) -> Chart:
        """Return the value with its intervals, as a chart.

        Raises:
            UnsupportedError: for a label.
        """
        from quiltwork.series.releases.release_page import release_chart

        return release_chart(self, confidence)

    def report(
        self,
        path: str | Path,
        confidence: Number = 0.95,
        others: Belief | Sequence[Belief] | None = None,
        context: ReportContext | None = None,
    ) -> None:
        """Write a page to forward: numbers, a picture, what is protected and against whom.

        Args:
            path: where to write the HTML file.
            confidence: of the intervals.
            others: beliefs that may fit better; the page adds the privacy loss under each of them.
            context: what the release does not know: its budget and the length of a time point.
        """
        from quiltwork import files
        from quiltwork.series.releases.release_page import release_page

        files.write(files.as_path(path), release_page(self, confidence, others, context))

    def explain(self, others: Belief | Sequence[Belief] | None = None) -> str:
        """Say in plain words what was released, how, and what it protects.

        Args:
            others: beliefs that may fit better than those of the release: the privacy loss under
                each of them is added, as `qw.audit.misspecification` computes it.
        """
        from quiltwork.series.releases.release_text import explain_release

        if others is None:
            return explain_release(self)
        from quiltwork.audit import misspecification

        return f"{explain_release(self)}\n{misspecification(self, others).explain()}"

    def __eq__(self, other: object) -> bool:
        """Compare as documents."""
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash((self.noisy, self.noise_scale, self.belief_digest))

    def __repr__(self) -> str:
        """Show the value, the guarantee and the noise."""
        return (
            f"Release({self.query.kind}, value={self.value!r}, epsilon={self.epsilon!r}, "
            f"scale={self.scale:.6g})"
        )
