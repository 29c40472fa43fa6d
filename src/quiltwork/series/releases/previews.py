"""What a release would look like, before anything is spent and without any data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.beliefs import Belief, as_beliefs
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, float_up, integer, positive_fraction
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries.base import Query, States, read_query
from quiltwork.queries.document import to_document
from quiltwork.results import ResultBase
from quiltwork.series.releases.data import asked_of, fixed_length, public_states
from quiltwork.series.releases.error_bars import half_steps, shortfall
from quiltwork.series.releases.explanation import stretch
from quiltwork.series.releases.plan import Plan, make_plan

_MOST_SUBJECTS = 10**10


@dataclass(frozen=True)
class Preview(ResultBase):
    """The error of a release that has not been made, in units of its value.

    Attributes:
        query: what would be asked, on its grid.
        epsilon: what it would keep under every belief; more than asked for only with "entry".
        scale: of the noise that would be added.
        expected_error: expected absolute error of one cell; for the most common state, a bound on
            how far its count lies below the largest on average.
        expected_total_error: the same summed over all cells (L1).
        half_width: of each cell's interval at `confidence`; for the most common state the
            shortfall.
        simultaneous_half_width: of intervals that hold for all cells at once.
        cells: how many.
        confidence: of the half-widths.
        method: of the calibration.
        episode: how many time points in a row would be one secret.
    """

    query: Query
    epsilon: float
    scale: float
    expected_error: float
    expected_total_error: float
    half_width: float
    simultaneous_half_width: float
    cells: int
    confidence: float
    method: str
    episode: int = 1
    schema = ("preview", 1)

    def body(self) -> dict[str, Any]:
        """Return it as JSON values, with the query as a document."""
        held = {**super().body(), "query": to_document(self.query), "guarantee": self.epsilon}
        del held["epsilon"]
        return held

    def explain(self) -> str:
        """Say it in a sentence."""
        level = f"At ε = {self.epsilon:g}"
        if self.episode > 1:
            level += f" for every {stretch(self.episode)}"
        if self.query.mechanism == "exponential":
            return (
                f"{level} the chosen state's count is within {self.half_width:g} "
                f"of the largest with {100 * self.confidence:g} % confidence."
            )
        return (
            f"{level} a cell ({self.cells} in all) errs by "
            f"{self.expected_error:.6g} on average; {100 * self.confidence:g} % intervals are "
            f"±{self.half_width:.6g} a cell, ±{self.simultaneous_half_width:.6g} for all at once."
        )


def preview(
    query: Query,
    beliefs: Belief | Sequence[Belief],
    *,
    length: int | None = None,
    epsilon: Number = 1.0,
    confidence: float = 0.95,
    method: str | None = None,
    secrets: tuple[int, int] | None = None,
    subjects: int = 1,
    episode: int = 1,
) -> Preview:
    """Return scale, expected error and interval widths of a release, without data or cost.

    Args:
        query: from `qw.queries`.
        beliefs: one belief or a list.
        length: of the series; None for beliefs about a fixed number of rows.
        epsilon: the guarantee.
        confidence: of the half-widths.
        method: of calibration, as in `release`.
        secrets: as in `release`.
        subjects: how many series of this length would be pooled.
        episode: as in `release`.

    >>> from quiltwork import Clusters, queries
    >>> people = Clusters(range(1000))
    >>> print(preview(queries.histogram(states=["a", "b"]), people, epsilon=1.0).explain())
    At ε = 1 a cell (2 in all) errs by 1.91903 on average; 95 % intervals are ±6 a cell,
    ±7 for all at once.
    """
    members = as_beliefs(beliefs)
    read_query(query)
    query = asked_of(query, members)
    states = public_states(members, query) or ()
    lengths = _lengths(members, length, integer(subjects, "subjects", 1, _MOST_SUBJECTS))
    exact_epsilon = positive_fraction(epsilon, "epsilon")
    plan = make_plan(query, members, lengths, exact_epsilon, method, secrets, episode)
    if query.mechanism == "exponential":
        errors = _label_errors(plan, len(states), confidence)
    else:
        errors = _number_errors(plan, states, confidence)
    _, unit = plan.query.grid(plan.points)
    cells = len(plan.query.cells(states))
    return Preview(
        query=plan.query,
        epsilon=float(max(exact_epsilon, plan.calibration.guarantee)),
        scale=float_up(plan.noise_scale * unit),
        expected_error=errors[0],
        expected_total_error=errors[0] * (1 if query.mechanism == "exponential" else cells),
        half_width=errors[1],
        simultaneous_half_width=errors[2],
        cells=cells,
        confidence=float(confidence),
        method=plan.calibration.method,
        episode=plan.calibration.question.episode,
    )


def _lengths(members: tuple[Belief, ...], length: int | None, subjects: int) -> Counter[int]:
    rows = fixed_length(members)
    if rows is None:
        if length is None:
            raise InvalidInputError("length is missing: give the number of time points.")
        return Counter({integer(length, "length", 1): subjects})
    if length not in (None, rows) or subjects != 1:
        raise InvalidInputError(
            f"The belief is about {rows} rows of one data set; leave length and subjects out."
        )
    return Counter([rows])


def _number_errors(plan: Plan, states: States, confidence: object) -> tuple[float, float, float]:
    _, unit = plan.query.grid(plan.points)
    rounding = plan.query.rounding(states, plan.points, plan.subjects)
    cells = len(plan.query.cells(states))
    expected = Fraction(plan.law.expected_absolute) * unit + rounding
    widths = [half_steps(plan.law, confidence, n) * unit + rounding for n in (1, cells)]
    return float_up(expected), float_up(widths[0]), float_up(widths[1])


def _label_errors(plan: Plan, states: int, confidence: object) -> tuple[float, float, float]:
    missed = float(shortfall(plan.noise_scale, states, confidence))
    return expected_shortfall(plan.noise_scale, states), missed, missed
