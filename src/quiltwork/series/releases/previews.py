"""Previews: the error of a release before anything is spent, without using data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.beliefs import Belief, Label
from quiltwork.budget.judging import Usefulness, judge
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_up,
    format_number,
    integer,
    positive_fraction,
)
from quiltwork.influence.calibration_arguments import NoiseKind, parse_noise
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries.document import to_document
from quiltwork.queries.query import Query, States, parse_query
from quiltwork.report.charts import BarChart
from quiltwork.results import ChartedResult
from quiltwork.series.releases.answer import resolve_beliefs
from quiltwork.series.releases.data import (
    adapt_query,
    fixed_length,
    public_states,
    recorded_points,
)
from quiltwork.series.releases.error_bars import shortfall
from quiltwork.series.releases.noise_plan import NoisePlan, make_plan
from quiltwork.series.releases.protection import (
    WHO,
    Protection,
    Who,
    any_series,
    read_protection,
)
from quiltwork.series.releases.release_text import gap_claim, stretch
from quiltwork.series.releases.usefulness import advice, signal_of
from quiltwork.wording import argument

_MOST_SUBJECTS = 10**10
_CHEAP = 0.05


@dataclass(frozen=True)
class Preview(ChartedResult):
    """The expected error of a release that has not been made, in units of its value.

    Attributes:
        query: the question, on its grid.
        epsilon: the bound on the privacy loss; above the requested one only with "entry".
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
        signal: the size that the error is compared with: the range of the answer, or an even
            share of the total where cells share one.
        protect: what would be one secret: "moment", "episode" or "person".
        others: the same for the other two, where the beliefs say something about them.
        advice: what drives the noise and what would help, in sentences.
        delta: with Gaussian noise, the chance that is left; else 0.
        claim: what is claimed where gaps are public, and how many there are; else None.
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
    signal: float = 0.0
    protect: Who = "moment"
    others: tuple[Preview, ...] = field(default=(), repr=False)
    advice: tuple[str, ...] = ()
    delta: float = 0.0
    claim: str | None = None
    schema = ("preview", 1)

    @property
    def usefulness(self) -> Usefulness:
        """Whether the answer would be useless, rough or useful, with the reason."""
        of = "what the answer can be" if self.cells == 1 else "what a cell may be expected to be"
        return judge(self.expected_error, self.signal, of)

    def body(self) -> dict[str, Any]:
        """Return the preview as JSON values, with the query as a document."""
        body = {**super().body(), "query": to_document(self.query), "guarantee": self.epsilon}
        del body["epsilon"]
        return {**body, **self.usefulness._asdict(), "protections": self.records()}

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each of moment, episode and person: noise, error and verdict."""
        shown = ("protect", "episode", "scale", "expected_error", "half_width")
        ordered = sorted((self, *self.others), key=lambda row: WHO.index(row.protect))
        return [
            {name: getattr(row, name) for name in shown} | {"verdict": row.usefulness.verdict}
            for row in ordered
        ]

    def chart(self) -> BarChart:
        """Return a chart of the error, by who is protected."""
        shown = f"{100 * self.confidence:g} %"
        return BarChart(
            f"How far off one number may be at ε = {self.epsilon:g}, by who is protected",
            f"Half of a {shown} interval; {str(self.usefulness).lower()}",
            "half of an interval",
            tuple(
                (_secret(row["protect"], row["episode"]), row["half_width"])
                for row in self.records()
            ),
        )

    def report(self, path: str | Path) -> None:
        """Write a page that compares the protections, with advice."""
        from quiltwork.report import bullets, figure, page, section, table

        header = ["protected", "noise", "expected error", "half of an interval", "verdict"]
        shown = ("scale", "expected_error", "half_width", "verdict")
        rows = [
            (_secret(row["protect"], row["episode"]), *(row[name] for name in shown))
            for row in self.records()
        ]
        costs = [figure(self.chart()), table("In units of the answer", header, rows)]
        lines = [self._error_words(), str(self.usefulness), *self.advice]
        lines += [] if self.claim is None else [self.claim]
        parts = [
            section("Who is protected", *costs, anchor="who"),
            section("In words", bullets(lines), anchor="words"),
        ]
        files.write(
            files.as_path(path),
            page(f"Before releasing: {self.query.words}", "Nothing was released or spent.", parts),
        )

    def explain(self) -> str:
        """Describe the expected error, whether it is useful, and what other protections cost."""
        claim = [] if self.claim is None else [self.claim]
        lines = [self._error_words(), str(self.usefulness), *self.advice, *claim]
        return "\n".join([*lines, *self._rows()])

    def _rows(self) -> list[str]:
        if not self.others:
            return []
        rows = [
            f"  {_secret(row['protect'], row['episode']):<32}"
            f"noise {format_number(row['scale']):<10}"
            f"±{format_number(row['half_width']):<10}{row['verdict']}"
            for row in self.records()
        ]
        cheap = any(
            one.protect == "person" and one.expected_error <= _CHEAP * one.signal
            for one in (self, *self.others)
        )
        return ["Side by side:", *rows, *([_plain_dp()] if cheap else [])]

    def _error_words(self) -> str:
        level = f"At ε = {self.epsilon:g}"
        if self.delta:
            level += f" and δ = {self.delta:g}"
        if self.protect == "person":
            level += " for every person"
        elif self.episode > 1:
            level += f" for every {stretch(self.episode)}"
        error, width = format_number(self.expected_error), format_number(self.half_width)
        share = f"{100 * self.confidence:g}"
        if self.query.mechanism == "exponential":
            return (
                f"{level} the chosen state's count is within {width} of the largest with {share} % "
                "confidence."
            )
        if self.cells == 1:
            return f"{level} the expected error is {error}; {share} % intervals are ±{width}."
        return (
            f"{level} the expected error of each of {self.cells:,} cells is {error}; {share} % "
            f"intervals are ±{width} a cell, ±{format_number(self.simultaneous_half_width)} for "
            "all at once."
        )


def preview(
    query: Query,
    beliefs: Belief | Sequence[Belief] | None,
    *,
    length: int | Sequence[int] | None = None,
    epsilon: Number = 1.0,
    confidence: float = 0.95,
    method: str | None = None,
    secrets: tuple[int, int] | None = None,
    subjects: int = 1,
    episode: int = 1,
    protect: Who | None = None,
    noise: NoiseKind = "geometric",
    delta: Number = 0,
    recorded: Sequence[NDArray[np.bool_]] | None = None,
    pairs: Iterable[tuple[Label, Label]] | None = None,
) -> Preview:
    """Return scale, expected error and interval widths of a release, without data or cost.

    The noise for protecting a moment, an episode and a person is shown side by side.

    Args:
        query: from `qw.queries`.
        beliefs: one belief or a list.
        length: of the series, or of each of several; None for beliefs about a fixed number of rows.
        epsilon: the bound on the privacy loss.
        confidence: of the half-widths.
        method: of calibration, as in `release`.
        secrets: as in `release`.
        subjects: the number of series of this length to pool.
        episode: as in `release`.
        protect: as in `release`.
        noise: as in `release`.
        delta: as in `release`.
        recorded: a mask of the recorded time points of each series, where gaps are public.
        pairs: as in `release`.

    >>> from quiltwork import Clusters, queries
    >>> people = Clusters(range(1000))
    >>> print(preview(queries.histogram(states=["a", "b"]), people, epsilon=1.0).explain())
    At ε = 1 the expected error of each of 2 cells is 1.919; 95 % intervals are ±6 a cell,
    ±7 for all at once.
    Useful: the expected error of 1.919 is 0.384 % of what a cell may be expected to be.
    """
    parse_query(query)
    members = resolve_beliefs(beliefs, query, protect)
    exact_delta = parse_noise(noise, delta)
    protection = read_protection(protect, method, secrets, episode, members, exact_delta, pairs)
    query = adapt_query(query, members)
    states = public_states(members, query) or ()
    lengths = _lengths(members, length, integer(subjects, "subjects", 1, _MOST_SUBJECTS))
    exact_epsilon = positive_fraction(epsilon, "epsilon")

    counts = None
    if recorded is not None:
        if lengths != Counter(map(len, recorded)):
            raise InvalidInputError("recorded has one entry for each time point of each series.")
        counts = recorded_points(query, recorded, [*map(len, recorded)])

    def preview_of(secret: Protection) -> Preview:
        plan = make_plan(query, members, lengths, exact_epsilon, secret, counts)
        return _preview_of(plan, secret, states, exact_epsilon, confidence)

    requested = preview_of(protection)
    has_belief = beliefs is not None and members != (any_series(states or (0,)),)
    series = has_belief and fixed_length(members) is None
    comparable = series and method is None and not exact_delta
    others = _others(protection, members, max(lengths)) if comparable else []
    if counts is not None:
        requested = replace(requested, claim=gap_claim(counts.points, counts.gaps))
    return replace(requested, others=tuple(_supported(preview_of, others)))


def _others(
    requested: Protection, members: tuple[Belief, ...], length: int
) -> Iterator[Protection]:
    """Yield the other protections; the episode is a usual one."""
    if requested.who != "moment":
        yield Protection("moment", secrets=requested.secrets)
    if requested.who != "episode":
        usual = min(usual_episode(members), length)
        if usual > 1:
            yield Protection("episode", secrets=requested.secrets, episode=usual)
    if requested.who != "person":
        yield Protection("person")


def usual_episode(members: tuple[Belief, ...]) -> int:
    """Return an hour in steps, a day where a step is not much shorter than one, 10 if unknown."""
    steps = [belief.grid.step for belief in members if belief.grid is not None]
    step = next((one for one in steps if one), None)
    if step is None:
        return 10
    return max(2, -(-(3600 if step <= 1200 else 86400) // step))


def _supported(
    preview_of: Callable[[Protection], Preview], others: Iterable[Protection]
) -> Iterator[Preview]:
    for protection in others:
        with suppress(UnsupportedError):
            yield preview_of(protection)


def _preview_of(
    plan: NoisePlan,
    protection: Protection,
    states: States,
    epsilon: Fraction,
    confidence: float,
) -> Preview:
    query, cells = plan.query, len(plan.query.cells(states))
    signal = signal_of(plan, cells)
    if query.mechanism == "exponential":
        errors = _label_errors(plan, len(states), confidence)
    else:
        errors = _number_errors(plan, states, confidence)
    _, unit = query.grid(plan.points)
    return Preview(
        query=query,
        epsilon=float(max(epsilon, plan.calibration.guarantee)),
        scale=float_up(plan.noise_scale * unit),
        expected_error=errors[0],
        expected_total_error=errors[0] * (1 if query.mechanism == "exponential" else cells),
        half_width=errors[1],
        simultaneous_half_width=errors[2],
        cells=cells,
        confidence=float(confidence),
        method=plan.calibration.method,
        episode=plan.calibration.problem.episode,
        signal=signal,
        protect=protection.who,
        advice=tuple(advice(plan, errors[0], signal)),
        delta=float_up(plan.delta),
    )


def _secret(who: str, episode: int) -> str:
    return {"moment": "each moment", "person": "each person"}.get(who, f"each {stretch(episode)}")


def _lengths(
    members: tuple[Belief, ...], length: int | Sequence[int] | None, subjects: int
) -> Counter[int]:
    rows = fixed_length(members)
    if rows is None and isinstance(length, (list, tuple)) and length:
        return Counter(integer(one, "length", 1) for one in length)
    if rows is None:
        if length is None:
            raise InvalidInputError("length is missing: give the number of time points.")
        return Counter({integer(length, "length", 1): subjects})
    if length not in (None, rows) or subjects != 1:
        raise InvalidInputError(
            f"The belief is about {rows} rows of one data set; leave length and subjects out."
        )
    return Counter([rows])


def _number_errors(
    plan: NoisePlan, states: States, confidence: object
) -> tuple[float, float, float]:
    _, unit = plan.query.grid(plan.points)
    rounding = plan.query.rounding(states, plan.points, plan.subjects)
    cells = len(plan.query.cells(states))
    expected = Fraction(plan.law.expected_absolute) * unit + rounding
    together = (plan.query.chosen_among or n for n in (1, cells))
    reach = [plan.law.simultaneous_quantile(confidence, n) for n in together]
    widths = [steps * unit + rounding for steps in reach]
    return float_up(expected), float_up(widths[0]), float_up(widths[1])


def _label_errors(plan: NoisePlan, states: int, confidence: object) -> tuple[float, float, float]:
    missed = float(shortfall(plan.noise_scale, states, confidence))
    return expected_shortfall(plan.noise_scale, states), missed, missed


def _plain_dp() -> str:
    return (
        "There are so many persons that protecting each as a whole costs little, so plain "
        f"differential privacy is the right tool: {argument('protect', 'person')} needs no belief. "
        "For sums and means by group over independent people use OpenDP or Tumult Analytics."
    )
