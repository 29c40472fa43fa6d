"""A release in words: what was asked, how much noise and why, what is protected, in odds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs.gaps import silence_claim
from quiltwork.beliefs.grids import duration
from quiltwork.exact import counted, float_down, format_number
from quiltwork.influence.tradeoffs.curves import gaussian_level
from quiltwork.queries.document import to_document
from quiltwork.series.releases.belief_text import belief_words
from quiltwork.series.releases.period_text import node_words, period_words
from quiltwork.series.releases.usefulness import usefulness_of

if TYPE_CHECKING:
    from quiltwork.series.releases.released_answer import ReleasedAnswer


_MOST_SHOWN = 16
FITTED = (
    "The belief was fitted on the data being released or on the file they come from, so the noise "
    "scale itself depends on them and the guarantee does not hold. Fit on public data or on other "
    "subjects, or use a wide ChainBox."
)


def explain_release(release: ReleasedAnswer) -> str:
    """Say what was released, the noise and its reason, what is protected, and how useful it is."""
    promise = protection_words(release)
    if release.fitted:
        promise = f"{FITTED} With a belief from elsewhere it would read: {promise}"
    lines = [_what(release), noise_words(release), reason_words(release), promise]
    if (plain := plain_dp_words(release)) is not None:
        lines[-1] += f" {plain}"
    if release.noise_scale:
        lines.append(str(usefulness_of(release)))
    if release.assumed_step is not None:
        lines.append(
            "The step of the data was not given: the belief is one time point per "
            f"{duration(release.assumed_step)}, and says nothing about data on another step."
        )
    if release.gaps is not None:
        lines.append(gap_claim(release.points, release.gaps))
    if release.processing:
        lines.append(
            f"Post-processed at no cost: {', then '.join(release.processing)}. Intervals are those "
            "of the answer before it."
        )
    return "\n".join(lines)


def gap_claim(points: int, gaps: int) -> str:
    """Return the claim that is made where gaps are public, with the number of gaps."""
    return f"{silence_claim()} {gap_words(points, gaps)}"


def gap_words(points: int, gaps: int) -> str:
    """Return how many time points have no record."""
    return (
        f"{gaps:,} of the {points + gaps:,} time points asked about have no record; their states "
        "are protected as the others are."
    )


def odds_words(epsilon: float, delta: float = 0.0) -> str:
    """Return ε in odds: by which factor they change, and what becomes of an even chance.

    >>> print(odds_words(1.0))
    The odds between two states at a time point change by a factor of at most 2.718: a chance of
    50 % becomes at most 73.1 %.
    """
    if epsilon > 30:
        return f"Odds may change by a factor of e^{epsilon:.4g}, which protects nothing."
    chance = 100 / (1 + math.exp(-epsilon))
    percent = f"{chance:.1f} %" if chance < 99.9 else f"{math.floor(chance * 1e4) / 1e4:g} %"
    text = (
        "The odds between two states at a time point change by a factor of at most "
        f"{format_number(math.exp(epsilon))}: a chance of 50 % becomes at most {percent}"
    )
    return f"{text}, but for a probability of {delta:g}." if delta else f"{text}."


def value_words(release: ReleasedAnswer) -> str:
    """Return the released numbers by cell on one line; of many cells their number."""
    values = np.asarray(release.value).ravel().tolist()
    if len(values) > _MOST_SHOWN:
        return counted(len(values), "number")
    if len(values) == 1:
        return _value_text(values[0])
    pairs = zip(release.cells, values, strict=True)
    return "; ".join(f"{_cell_text(cell)}: {_value_text(value)}" for cell, value in pairs)


def _value_text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return format_number(value, 6) if isinstance(value, float) else str(value)


def _cell_text(cell: object) -> str:
    return " → ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)


def _what(release: ReleasedAnswer) -> str:
    start, stop = release.window
    who = "" if release.subjects == 1 else f" of each of {release.subjects:,} independent subjects"
    document = to_document(release.query)
    hidden = ("kind", "window", "runs")
    parameters = [f"{k} {_parameter(v)}" for k, v in document.items() if k not in hidden]
    details = f" ({', '.join(parameters)})" if parameters else ""
    when = "" if release.period is None else f" ({period_words(release.period)})"
    several = ""
    if runs := release.query.runs:
        inside = release.query.points(release.length)
        several = f", {len(runs):,} runs with {inside:,} of them"
    points = f"time points {start:,} to {stop:,}{when}{several}{who}"
    return f"Released: {release.query.words}{details} over {points}. {value_words(release)}."


def _parameter(value: object) -> str:
    """Write a parameter of a query; labels are stored with their type, as {"str": "rest"}."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, list):
        return ", ".join(map(_parameter, value))
    return str(value)


def noise_words(release: ReleasedAnswer) -> str:
    """Return which noise was added, and how far off an answer is expected to be."""
    if release.noise_scale == 0:
        return "Noise: none; under the beliefs the exact answer reveals no more than ε allows."
    scale, error = format_number(release.scale), format_number(release.expected_error)
    if release.mechanism == "exponential":
        return (
            f"Noise: exponential mechanism, P(state) ∝ exp(count / {scale}); with 95 % "
            f"confidence its count is within {release.shortfall():,} of the largest."
        )
    kind = "two-sided geometric of scale"
    if release.delta:
        kind = "Gaussian, rounded to the grid, of standard deviation"
    cells = counted(len(release.cells), "cell")
    return f"Noise: {kind} {scale} on each of {cells}; expected absolute error {error}."


def reason_words(release: ReleasedAnswer) -> str:
    """Return why that much noise was needed: the method, and the time point that decided."""
    if release.protects == "person":
        moved = _spent(release, 1, release.length) * release.noise_scale * release.unit
        return (
            "Calibrated for whole series, without any belief: replacing one moves the answer by "
            f"up to {format_number(float(moved))} in all."
        )
    if release.delta:
        return _gaussian_reason(release)
    method = f"Calibrated by method {release.method}"
    if release.method == "entry":
        return (
            f"{method}, as if no time point said anything about the others: what that protects "
            "under the beliefs follows."
        )
    if release.method == "sweep":
        return _sweep_reason(release)
    if release.method == "gaussian":
        return (
            f"{method}: the worst time point or row is {release.node:,}; correlated points add "
            f"{format_number(release.influence)} to what is spent on it. True differences of at "
            "most the belief's `within` are hidden, by default the range."
        )
    if release.node is None or release.quilt is None:
        return f"{method}."
    quilt = ", ".join(f"{node:,}" for node in release.quilt)
    surrounded = f"its best quilt is the time points {quilt}" if quilt else "its quilt is empty"
    return (
        f"{method}: the worst is {node_words(release, release.node)}; {surrounded}, with "
        f"max-influence {format_number(release.influence)}."
    )


def _sweep_reason(release: ReleasedAnswer) -> str:
    """Say what is spent on the worst secret itself, and what its neighbours add."""
    if release.node is None or release.noise_scale == 0:
        return "Calibrated by method sweep."
    if not release.influence and _spent(release, 1, release.length) <= release.exact_epsilon:
        return (
            "Calibrated by method sweep: the noise hides all time points at once, so neighbours "
            "add nothing."
        )
    last = min(release.node + release.episode - 1, release.length)
    own = format_number(float(_spent(release, release.node, last)))
    before, after = release.before, max(0.0, release.influence - release.before)
    others = f"its neighbours add {format_number(release.influence)}"  # of a tree, no order
    if before:
        others = (
            f"the time points before add {format_number(before)}, and those after "
            f"{format_number(after)}"
        )
    return (
        f"Calibrated by method sweep: most noise is needed for "
        f"{node_words(release, release.node, last)}. {own} of ε is spent there; {others}."
    )


def _gaussian_reason(release: ReleasedAnswer) -> str:
    """Say by how much dependence between time points raises Gaussian noise."""
    if not release.noise_scale:
        return f"Calibrated by method {release.method}."
    alone = gaussian_level(float_down(release.exact_epsilon), float_down(release.delta))
    excess = max(1.0, alone / release.gdp)
    moved = math.sqrt(release.query.squared_l2_sensitivity) * float(release.unit)
    return (
        f"Calibrated by method {release.method}: one time point moves the answer by at most "
        f"{format_number(moved)} in L2, and dependence between time points asks for "
        f"{format_number(excess, 3)} times the noise that each alone would need."
    )


def _spent(release: ReleasedAnswer, start: int, stop: int) -> Fraction:
    sensitivity = release.query.l1_sensitivity(np.array([start]), np.array([stop]), release.length)
    return int(sensitivity[0]) / release.noise_scale


def stretch(episode: int) -> str:
    """Name what is one secret."""
    return "time point" if episode == 1 else f"stretch of {episode:,} time points"


def secret_words(release: ReleasedAnswer) -> str:
    """Name what the release protects, with "every" before it."""
    if release.protects == "person":
        return "every person, with the whole of their series"
    secret = f"every {stretch(release.episode)}"
    if release.secrets is not None:
        within = f"the time points {release.secrets[0]:,} to {release.secrets[1]:,}"
        secret = within if release.episode == 1 else f"{secret} within {within}"
    if release.pairs is not None:
        pairs = ", ".join(f"{a} from {b}" for a, b in release.pairs)
        secret += f", keeping apart {pairs} and nothing else,"
    return secret


def protection_words(release: ReleasedAnswer) -> str:
    """Return the guarantee: what is protected, how well, and against which beliefs."""
    if release.protects == "person":
        return (
            f"Protects every person with ε = {release.epsilon:g}: the whole of their series, "
            "whatever is believed about it, as long as persons are independent of each other."
        )
    level = f"ε = {release.epsilon:g}"
    if release.delta:
        level += f" and δ = {float(release.delta):g}"
    beliefs = "; ".join(map(belief_words, release.beliefs))
    against = (
        "an adversary whose belief is"
        if len(release.beliefs) == 1
        else f"an adversary whose belief is any of these {len(release.beliefs)}:"
    )
    odds = odds_words(release.epsilon, float(release.delta))
    return f"Protects {secret_words(release)} with {level}, against {against} {beliefs}. {odds}"


def plain_dp_words(release: ReleasedAnswer) -> str | None:
    """Return the level of plain differential privacy, for one time point; None if there is none."""
    if release.protects == "person" or not release.noise_scale:
        return None
    if release.delta:
        return (
            "Whatever the belief, substituting one point is hidden as by Gaussian differential "
            f"privacy of level {format_number(release.gdp)}, of which squares add up."
        )
    if release.exact_dp_epsilon is None:
        return None
    return (
        "Whatever the belief, substituting one point changes probabilities by a factor of at most "
        f"{format_number(math.exp(min(release.dp_epsilon, 700)))} (plain differential privacy with "
        f"ε = {format_number(release.dp_epsilon)})."
    )
