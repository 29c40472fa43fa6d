"""What a release would look like, before anything is spent and without any data."""

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
from quiltwork.exact import Number, float_up, integer, positive_fraction
from quiltwork.influence.calibration_arguments import NoiseKind, parse_noise
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries.document import to_document
from quiltwork.queries.query import Query, States, parse_query
from quiltwork.report.charts import BarChart
from quiltwork.results import ChartedResult
from quiltwork.series.releases.answer import believed
from quiltwork.series.releases.data import (
    asked_of,
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
        """Whether the answer would be useless, rough or useful, and why."""
        of = "what the answer can be" if self.cells == 1 else "what a cell may be expected to be"
        return judge(self.expected_error, self.signal, of)

    def body(self) -> dict[str, Any]:
        """Return it as JSON values, with the query as a document."""
        held = {**super().body(), "query": to_document(self.query), "guarantee": self.epsilon}
        del held["epsilon"]
        return {**held, **self.usefulness._asdict(), "protections": self.records()}

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each of moment, episode and person, with noise, error and verdict."""
        shown = ("protect", "episode", "scale", "expected_error", "half_width")
        ordered = sorted((self, *self.others), key=lambda one: WHO.index(one.protect))
        return [
            {name: getattr(one, name) for name in shown} | {"verdict": one.usefulness.verdict}
            for one in ordered
        ]

    def chart(self) -> BarChart:
        """Return how far off an answer may be, by who is protected."""
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
        """Write a page about the choice: what each protection costs, and what would help."""
        from quiltwork.report import bullets, figure, page, section, table

        header = ["protected", "noise", "expected error", "half of an interval", "verdict"]
        shown = ("scale", "expected_error", "half_width", "verdict")
        rows = [
            (_secret(row["protect"], row["episode"]), *(row[name] for name in shown))
            for row in self.records()
        ]
        costs = [figure(self.chart()), table("In units of the answer", header, rows)]
        said = [self._in_a_sentence(), str(self.usefulness), *self.advice]
        said += [] if self.claim is None else [self.claim]
        parts = [
            section("Who is protected", *costs, anchor="who"),
            section("In words", bullets(said), anchor="words"),
        ]
        files.write(
            files.as_path(path),
            page(f"Before releasing: {self.query.words}", "Nothing was released or spent.", parts),
        )

    def explain(self) -> str:
        """Say what error to expect, whether that is useful, and what others would cost."""
        claim = [] if self.claim is None else [self.claim]
        said = [self._in_a_sentence(), str(self.usefulness), *self.advice, *claim]
        return "\n".join([*said, *self._rows()])

    def _rows(self) -> list[str]:
        if not self.others:
            return []
        rows = [
            f"  {_secret(row['protect'], row['episode']):<32}noise {row['scale']:<10.4g}"
            f"±{row['half_width']:<10.4g}{row['verdict']}"
            for row in self.records()
        ]
        cheap = any(
            one.protect == "person" and one.expected_error <= _CHEAP * one.signal
            for one in (self, *self.others)
        )
        return ["Side by side:", *rows, *([_plain_dp()] if cheap else [])]

    def _in_a_sentence(self) -> str:
        level = f"At ε = {self.epsilon:g}"
        if self.delta:
            level += f" and δ = {self.delta:g}"
        if self.protect == "person":
            level += " for every person"
        elif self.episode > 1:
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

    What it would take to protect a moment, an episode and a person stands side by side.

    Args:
        query: from `qw.queries`.
        beliefs: one belief or a list.
        length: of the series, or of each of several; None for beliefs about a fixed number of rows.
        epsilon: the guarantee.
        confidence: of the half-widths.
        method: of calibration, as in `release`.
        secrets: as in `release`.
        subjects: how many series of this length would be pooled.
        episode: as in `release`.
        protect: as in `release`.
        noise: as in `release`.
        delta: as in `release`.
        recorded: which time points of each series have a record, where gaps are public.
        pairs: as in `release`.

    >>> from quiltwork import Clusters, queries
    >>> people = Clusters(range(1000))
    >>> print(preview(queries.histogram(states=["a", "b"]), people, epsilon=1.0).explain())
    At ε = 1 a cell (2 in all) errs by 1.91903 on average; 95 % intervals are ±6 a cell,
    ±7 for all at once.
    Useful: the expected error of 1.919 is 0.384 % of what a cell may be expected to be.
    """
    parse_query(query)
    members = believed(beliefs, query, protect)
    left = parse_noise(noise, delta)
    protection = read_protection(protect, method, secrets, episode, members, left, pairs)
    query = asked_of(query, members)
    states = public_states(members, query) or ()
    lengths = _lengths(members, length, integer(subjects, "subjects", 1, _MOST_SUBJECTS))
    exact_epsilon = positive_fraction(epsilon, "epsilon")

    there = None
    if recorded is not None:
        if lengths != Counter(map(len, recorded)):
            raise InvalidInputError("recorded has one entry for each time point of each series.")
        there = recorded_points(query, recorded, [*map(len, recorded)])

    def seen(one: Protection) -> Preview:
        plan = make_plan(query, members, lengths, exact_epsilon, one, there)
        return _preview_of(plan, one, states, exact_epsilon, confidence)

    found = seen(protection)
    said = beliefs is not None and members != (any_series(states or (0,)),)
    known = said and fixed_length(members) is None and method is None and not left
    others = _others(protection, members, max(lengths)) if known else []
    if there is not None:
        found = replace(found, claim=gap_claim(there.points, there.gaps))
    return replace(found, others=tuple(_each_that_can(seen, others)))


def _others(asked: Protection, members: tuple[Belief, ...], length: int) -> Iterator[Protection]:
    """What else could be protected: a usual episode where none was asked for."""
    if asked.who != "moment":
        yield Protection("moment", secrets=asked.secrets)
    if asked.who != "episode":
        usual = min(usual_episode(members), length)
        if usual > 1:
            yield Protection("episode", secrets=asked.secrets, episode=usual)
    if asked.who != "person":
        yield Protection("person")


def usual_episode(members: tuple[Belief, ...]) -> int:
    """Return an hour in steps, a day where a step is not much shorter than one, 10 if unknown."""
    steps = [belief.grid.step for belief in members if belief.grid is not None]
    step = next((one for one in steps if one), None)
    if step is None:
        return 10
    return max(2, -(-(3600 if step <= 1200 else 86400) // step))


def _each_that_can(
    seen: Callable[[Protection], Preview], others: Iterable[Protection]
) -> Iterator[Preview]:
    for one in others:
        with suppress(UnsupportedError):
            yield seen(one)


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
        "There are so many persons that hiding each as a whole costs little, so plain differential "
        f"privacy for persons is the right tool: {argument('protect', 'person')} needs no belief. "
        "For sums and means by group over independent people use OpenDP or Tumult Analytics."
    )
