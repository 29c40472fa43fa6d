"""`quiltwork calibrate`: the noise that beliefs require, computed without data."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import belief_option, command, level_number, option
from quiltwork.cli.output import emit, text_table
from quiltwork.cli.series_options import (
    QUERY_HELP,
    pairs_option,
    protect_option,
    read_beliefs,
    read_episode,
    read_pairs,
    read_query,
    read_window,
    step_lines,
)
from quiltwork.errors import QuiltworkError, QuiltworkWarning
from quiltwork.files import dump, write

if TYPE_CHECKING:
    from quiltwork.influence import Calibration

NOISES = ("geometric", "gaussian")
METHODS = ("sweep", "exact", "approx", "spectral", "contraction", "optimal-scale", "group", "entry")


@command(
    example="""
    quiltwork calibrate --belief belief.json --length 10080 --epsilon 1
    quiltwork calibrate --belief belief.json --length 10080 --epsilon 1 \\
        --query count:walk --window 1:1440
    quiltwork calibrate --belief belief.json --length 10080 --epsilon 1 --protect 3h
    quiltwork calibrate --belief belief.json --length 10080 --epsilon 1 --pairs home:away
    quiltwork calibrate --belief belief.json --length 10080 --epsilon 1 --compare
    quiltwork calibrate --belief belief.json --length 10080 --epsilon 1 --certificate proof.json
    quiltwork calibrate --belief belief.json --length 10080 --epsilon 1 \\
        --noise gaussian --delta 1e-6 --releases 365
    """
)
def calibrate(
    belief: tuple[str, ...] = belief_option,
    length: int | None = option("Number of time points; leave out for clusters."),
    epsilon: Fraction = option("The privacy level.", kind=level_number),
    method: Any = option(
        "How to bound influence; by default the sweep for chains and trees, else the best quilts.",
        kind=METHODS,
    ),
    question: str | None = option(
        f"{QUERY_HELP} Without one, any query of sensitivity 1 per time point.",
        "QUERY",
        names="--query",
    ),
    window: str | None = option("With --query: the time points asked about.", "START:STOP"),
    secrets: str | None = option("Protect only these time points; default: all.", "START:STOP"),
    protect: str | None = protect_option,
    pairs: str | None = pairs_option,
    compare: bool = option("Show every method side by side."),
    noise: Any = option(
        "Geometric noise gives a pure epsilon, Gaussian noise epsilon and delta.",
        kind=NOISES,
        default="geometric",
    ),
    delta: Fraction | None = option(
        "With --noise gaussian: the probability of a privacy loss above epsilon."
    ),
    releases: int | None = option(
        "With --noise gaussian: how many such releases share epsilon and delta."
    ),
    certificate: str | None = option(
        "Write a certificate that this noise suffices; quiltwork audit checks it.", "FILE"
    ),
) -> None:
    """Compute the noise scale that beliefs require.

    Several beliefs make a set: the noise suffices for each of them.
    """
    from quiltwork import influence

    if window is not None and question is None:
        raise click.UsageError("--window goes with --query")
    if noise == "geometric" and (delta is not None or releases is not None):
        raise click.UsageError("--delta and --releases go with --noise gaussian")
    if noise == "gaussian" and (delta is None or compare):
        raise click.UsageError("--noise gaussian needs --delta, and has no --compare")
    if certificate is not None and (compare or noise == "gaussian"):
        raise click.UsageError("--certificate goes with geometric noise, without --compare")
    if compare and method is not None:
        raise click.UsageError("--compare shows every method: leave out --method")
    beliefs = read_beliefs(belief)
    query = None if question is None else read_query(question, beliefs[0].states, window)
    protected = None if secrets is None else read_window(secrets)
    if protect == "person" and method is None and not compare:
        protect, method = None, "group"  # the whole series is one secret
    episode, apart = read_episode(protect, beliefs), read_pairs(pairs, beliefs)

    if noise == "gaussian":
        problem = beliefs, length, epsilon, method, query, protected, episode
        calibrated = influence.calibrate(
            *problem, noise="gaussian", delta=delta or 0, releases=releases or 1, pairs=apart
        )
        lines = [*calibrated.explain().splitlines(), *step_lines(beliefs)]
        emit(calibrated.to_json(), lines)
        return

    def run(name: Any) -> Calibration:
        problem = beliefs, length, epsilon, name, query, protected, episode
        return influence.calibrate(*problem, pairs=apart)

    if not compare:
        calibration = run(method)
        if certificate is not None:
            from quiltwork.influence.certificate_writer import certificate as written

            write(certificate, written(calibration) + "\n")
        lines = [*calibration.explain().splitlines(), *step_lines(beliefs)]
        emit(calibration.to_json(), lines)
        return
    rows = [(name, *_scale_and_note(run, name)) for name in METHODS]
    body = {"methods": [{"method": n, "scale": s, "note": note} for n, s, note in rows]}
    shown = [(n, "-" if scale is None else f"{scale:.6g}", note) for n, scale, note in rows]
    lines = text_table(["method", "scale", "note"], shown)
    emit(dump("calibration-comparison", 1, json.loads(json.dumps(body))), lines)


def _scale_and_note(run: Any, name: str) -> tuple[float | None, str]:
    """Return a method's scale and a remark; without a scale if the method does not apply."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuiltworkWarning)
        try:
            calibrated = run(name)
        except QuiltworkError as error:
            return None, str(error)
    scale, worst = calibrated.scale, f"worst time point {calibrated.node:,}"
    if calibrated.leakage:
        return scale, f"not private: it may leak up to {calibrated.leakage:.6g}"
    if calibrated.method == "sweep":
        return scale, f"{worst}, neighbours add {calibrated.influence:.6g}"
    quilt = ", ".join(f"{node:,}" for node in calibrated.quilt or ())
    return scale, f"{worst}, quilt of the time points {quilt}" if quilt else worst
