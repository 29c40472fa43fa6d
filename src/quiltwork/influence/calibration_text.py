"""The explanation of a calibration in plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs import Belief, Gaussian, MarkovChain
from quiltwork.errors import UnsupportedError

if TYPE_CHECKING:
    from quiltwork.influence.calibration import Calibration


def explain(calibration: Calibration) -> str:
    """Say which node needs the noise, what is spent on it, and what its neighbours add."""
    if calibration.exact_scale == 0:
        return "Noise scale 0: under the given beliefs no protected time point has a secret."
    if calibration.method == "entry":
        return _as_if_independent(calibration)
    if calibration.nearby == 1 or calibration.method not in _BY_NODES:
        needs = f"Node {calibration.node} needs the most."
    else:
        last = calibration.node + calibration.nearby - 1
        needs = f"Nodes {calibration.node} to {last} together need the most."
        if calibration.nearby >= calibration.length:
            needs = "All nodes together need it: less noise would not protect any of them."
    lines = [
        f"Noise scale {calibration.scale:.6g} for epsilon {float(calibration.epsilon):g} "
        f"(method {calibration.method}, {calibration.length} time points).",
        *_protects(calibration),
        needs,
        *(_parts(calibration) if calibration.method in _BY_NODES else _quilt_lines(calibration)),
    ]
    if calibration.method == "sweep" and _alternates(
        calibration.bounds[calibration.belief - 1].belief
    ):
        lines.append(
            "Its states alternate, so the query may leak far less than the worst query with this "
            f"noise: {_alone(calibration)}."
        )
    return "\n".join([*lines, *decisive_belief(calibration)])


def decisive_belief(calibration: Calibration) -> list[str]:
    """Say which of several beliefs determines the noise, and what the others need."""
    if len(calibration.bounds) < 2:
        return []
    other_scales = [
        scale for number, scale in enumerate(calibration.scales, 1) if number != calibration.belief
    ]
    noise = f" The others need noise of scale {max(other_scales):.6g}." if other_scales else ""
    belief = calibration.bounds[calibration.belief - 1].belief
    number = f"{calibration.belief} of {len(calibration.bounds)}"
    return [f"Belief {number} determines the noise: {belief!r}.{noise}"]


_BY_NODES = ("sweep", "gaussian")
_SHORT = 500
"""Up to this length the exact calibration of a single release takes half a second at most."""


def _alone(calibration: Calibration) -> str:
    """The noise of a single release by the exact calibration, if that is quick."""
    from quiltwork.influence.calibration import calibrate

    problem, beliefs = calibration.problem, [bound.belief for bound in calibration.bounds]
    hint = 'for a single release compare method="optimal-scale"'
    unsupported = problem.query is None or problem.episode > 1 or problem.pairs is not None
    if unsupported or calibration.length > _SHORT:
        return hint
    nodes = problem.nodes.start, problem.nodes.stop - 1
    arguments = calibration.length, calibration.epsilon, "optimal-scale", problem.query
    try:
        least = calibrate(beliefs, *arguments, secrets=nodes).scale
    except UnsupportedError:
        return hint
    return f'a single release needs {least:.6g}, by method="optimal-scale"'


def _alternates(belief: Belief) -> bool:
    """Whether the slowest part of a chain changes its sign at every step."""
    if not isinstance(belief, MarkovChain) or belief.size < 2:
        return False
    eigenvalues = np.linalg.eigvals(np.asarray(belief.transition))
    second = eigenvalues[np.argsort(-np.abs(eigenvalues))[1]]
    return bool(second.real < 0 and abs(second.imag) < 1e-9)


def _protects(calibration: Calibration) -> list[str]:
    """Sentences on what is protected: episodes, pairs of values, differences of numbers."""
    episode, belief = calibration.problem.episode, calibration.bounds[calibration.belief - 1].belief
    lines = [f"Every stretch of {episode} time points is one secret."] if episode > 1 else []
    if calibration.problem.pairs is not None:
        named = ", ".join(f"{a} and {b}" for a, b in calibration.problem.pairs)
        lines.append(f"Secret pairs of values: {named}. Other values may become known.")
    if isinstance(belief, Gaussian):
        apart = "the range" if belief.within is None else f"{float(belief.within):g}"
        lines.append(f"True differences of at most {apart} are hidden, whatever was recorded.")
    return lines


def _parts(calibration: Calibration) -> list[str]:
    """The level spent on the node itself, and the leakage through its neighbours."""
    if str(calibration.method) == "gaussian":
        return [
            f"Spent there: {float(calibration.epsilon) - calibration.influence:.6g}. The others "
            "move with it, "
            f"which adds {neighbours_text(calibration.influence, calibration.before)}.",
        ]
    own = float(calibration.change * calibration.unit / calibration.exact_scale)
    return [
        f"Spent there: {own:.6g}, since it moves the answer by up to {_in_units(calibration)}.",
        f"Neighbours add {neighbours_text(calibration.influence, calibration.before)}: the most "
        "that the answer reveals about them, passed on by the belief.",
    ]


def neighbours_text(influence: float, before: float) -> str:
    """The leakage through neighbours; in a tree they are neither before nor after the node."""
    if not before:
        return f"{influence:.6g}"
    return f"{before:.6g} from before and {max(0.0, influence - before):.6g} from after"


def _quilt_lines(calibration: Calibration) -> list[str]:
    """The best quilt and the formula of the scale."""
    return [
        _quilt(calibration),
        f"Scale: {_in_units(calibration)} / "
        f"({float(calibration.epsilon):g} − {calibration.influence:.6g}).",
    ]


def _as_if_independent(calibration: Calibration) -> str:
    """The explanation of the baseline "entry", with its true leakage."""
    level = f"{float(calibration.epsilon):g}"
    claim = (
        f"Noise scale {calibration.scale:.6g} for epsilon {level} if time points were independent "
        f"(method entry, {calibration.length} time points)."
    )
    if not calibration.leakage:
        return f"{claim}\nUnder the given beliefs they are independent, so this level holds."
    return (
        f"{claim}\nUnder the given beliefs they are not: up to {calibration.leakage:.6g} may leak "
        f"about node {calibration.node}, so time points are not protected with epsilon {level}."
    )


def _quilt(calibration: Calibration) -> str:
    """A sentence on the best quilt and its nearby set."""
    is_single = calibration.nearby == 1
    points, are = ("time point", "is") if is_single else ("time points", "are")
    counts, they = ("counts", "moves") if is_single else ("count", "they move")
    moves = f"{they} the answer by up to {_in_units(calibration)}"
    if not calibration.quilt:
        return (
            f"Its best quilt is empty: {calibration.nearby} {points} {counts} as nearby and "
            f"{moves}; no other time point has influence."
        )
    names = ", ".join(f"X_{node}" for node in calibration.quilt)
    return (
        f"Its best quilt is {{{names}}}: {calibration.nearby} {points} {are} nearby and {moves}; "
        f"the influence of the rest is at most {calibration.influence:.6g}."
    )


def _in_units(calibration: Calibration) -> str:
    """The sensitivity of the answer, in its own units."""
    change = calibration.change * calibration.unit
    return str(change) if change.denominator == 1 else f"{float(change):.6g}"
