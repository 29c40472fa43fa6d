"""A release in plain words."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs.gaps import silence_claim
from quiltwork.beliefs.grids import duration
from quiltwork.exact import float_down
from quiltwork.influence.calibration_text import neighbours_text
from quiltwork.influence.tradeoffs.curves import gaussian_level
from quiltwork.queries.document import to_document

if TYPE_CHECKING:
    from quiltwork.series.releases.record import Release


_MOST_SHOWN = 16
FITTED = (
    "The belief was fitted on the data being released or on the file they come from, so the noise "
    "scale itself depends on them and the guarantee does not hold. Fit on public data or on other "
    "subjects, or use a wide ChainBox."
)


def explain_release(release: Release) -> str:
    """Say what was released, with which noise and why that much, and what it protects."""
    promise = _protects(release)
    if release.fitted:
        promise = f"{FITTED} With a belief from elsewhere it would read: {promise}"
    lines = [_what(release), _noise(release), _reason(release), promise]
    if release.noise_scale:
        lines.append(str(release.usefulness))
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
    """Say what is claimed where gaps are public, and how many there are."""
    return (
        f"{silence_claim()} {gaps:,} of the {points + gaps:,} time points asked about have no "
        "record; what they were is protected as the others are."
    )


def _what(release: Release) -> str:
    start, stop = release.window
    who = "" if release.subjects == 1 else f" of each of {release.subjects} independent subjects"
    document = to_document(release.query)
    parameters = [f"{k} {v!r}" for k, v in document.items() if k not in ("kind", "window", "runs")]
    details = f" ({', '.join(parameters)})" if parameters else ""
    when = "" if release.period is None else f", {release.period[0]} to {release.period[1]}"
    runs = release.query.runs
    several = (
        f", {len(runs)} runs with {release.query.points(release.length)} of them" if runs else ""
    )
    points = f"time points {start}..{stop}{when}{several}{who}"
    return f"Released: {release.query.words}{details} over {points}: {_shown(release)}."


def _shown(release: Release) -> str:
    """The value on one line; of many cells only their number."""
    if len(release.cells) > _MOST_SHOWN:
        return f"{len(release.cells)} numbers"
    return " ".join(repr(release.value).split())


def _noise(release: Release) -> str:
    if release.noise_scale == 0:
        return "Noise: none; under the beliefs the exact answer tells no more than ε allows."
    if release.mechanism == "exponential":
        return (
            f"Noise: exponential mechanism, P(state) ∝ exp(count / {release.scale:.6g}); with 95 % "
            f"confidence its count is within {release.shortfall()} of the largest."
        )
    if release.delta:
        return (
            f"Noise: Gaussian of standard deviation {release.scale:.6g}, rounded to the grid, on "
            f"each cell ({len(release.cells)} in all); expected absolute error "
            f"{release.expected_error:.6g}."
        )
    return (
        f"Noise: two-sided geometric of scale {release.scale:.6g} on each cell "
        f"({len(release.cells)} in all); expected absolute error {release.expected_error:.6g}."
    )


def _reason(release: Release) -> str:
    if release.protects == "person":
        moved = _spent(release, 1, release.length) * release.noise_scale * release.unit
        return (
            "Calibrated for whole series, without any belief: replacing one moves the answer by "
            f"up to {float(moved):.6g} in all."
        )
    if release.delta:
        return _gaussian(release)
    if release.method == "entry":
        return (
            "Calibrated by method 'entry', as if no time point said anything about the others: "
            "what that protects under the beliefs is told next."
        )
    if release.method == "sweep":
        return _swept(release)
    if release.method == "gaussian":
        return (
            f"Calibrated by method 'gaussian': the worst time point or row is {release.node}; what "
            f"moves with it adds {release.influence:.6g} to what is spent on it. Hidden are true "
            "differences of at most the belief's `within`, by default the range."
        )
    if release.node is None or release.quilt is None:
        return f"Calibrated by method {release.method!r}."
    quilt = ", ".join(f"X_{node}" for node in release.quilt) or "empty"
    return (
        f"Calibrated by method {release.method!r}: the worst time point is X_{release.node}, its "
        f"best quilt is {{{quilt}}} with max-influence {release.influence:.6g}."
    )


def _swept(release: Release) -> str:
    """What is spent on the worst secret itself, and what its neighbours add."""
    if release.node is None or release.noise_scale == 0:
        return "Calibrated by method 'sweep'."
    if not release.influence and _spent(release, 1, release.length) <= release.exact_epsilon:
        return (
            "Calibrated by method 'sweep': the noise hides all time points at once, so nothing is "
            "left for neighbours to tell."
        )
    last = min(release.node + release.episode - 1, release.length)
    worst = f"time point is X_{release.node}"
    if last > release.node:
        worst = f"stretch is X_{release.node}..X_{last}"
    return (
        f"Calibrated by method 'sweep': the worst {worst}. On it "
        f"{float(_spent(release, release.node, last)):.6g} is spent, and its neighbours add "
        f"{neighbours_text(release.influence, release.before)}."
    )


def _gaussian(release: Release) -> str:
    """How much of the noise is there for what hangs together."""
    if not release.noise_scale:
        return f"Calibrated by method {release.method!r}."
    alone = gaussian_level(float_down(release.exact_epsilon), float_down(release.delta))
    excess = max(1.0, alone / release.gdp)
    moved = math.sqrt(release.query.squared_l2_sensitivity) * float(release.unit)
    return (
        f"Calibrated by method {release.method!r}: one time point moves the answer by at most "
        f"{moved:.6g} in L2, and what time points tell about each other asks "
        f"for {excess:.3g} times the noise that each alone would need."
    )


def _spent(release: Release, start: int, stop: int) -> Fraction:
    moved = release.query.l1_sensitivity(np.array([start]), np.array([stop]), release.length)
    return int(moved[0]) / release.noise_scale


def stretch(episode: int) -> str:
    """Name a secret."""
    return "time point" if episode == 1 else f"stretch of {episode} time points"


def _protects(release: Release) -> str:
    if release.protects == "person":
        return (
            f"Protects every person with ε = {release.epsilon:g}: the whole of their series, "
            "whatever is believed about it, as long as persons are independent of each other."
        )
    which = f"every {stretch(release.episode)}"
    if release.secrets is not None:
        within = f"the time points {release.secrets[0]}..{release.secrets[1]}"
        which = within if release.episode == 1 else f"{which} within {within}"
    if release.pairs is not None:
        named = ", ".join(f"{a} from {b}" for a, b in release.pairs)
        which += f", keeping apart {named} and nothing else,"
    kept = f"ε = {release.epsilon:g}"
    if release.delta:
        kept += f" and δ = {float(release.delta):g}"
    guarantee = f"Protects {which} with {kept} against each of: {'; '.join(release.beliefs)}."
    if release.delta and release.noise_scale:
        return (
            f"{guarantee} Substituting one point, whatever the belief, is hidden as by Gaussian "
            f"differential privacy of level {release.gdp:.6g}, of which squares add up."
        )
    if release.exact_dp_epsilon is None:
        return guarantee
    return (
        f"{guarantee} Substituting one point, whatever the belief, changes probabilities by at "
        f"most e^{release.dp_epsilon:.6g}."
    )
