"""A calibration in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs import Belief, Gaussian, MarkovChain
from quiltwork.errors import UnsupportedError

if TYPE_CHECKING:
    from quiltwork.influence.calibration import Calibration


def explain(found: Calibration) -> str:
    """Say which node needs the noise, what is spent on it and what the others add."""
    if found.exact_scale == 0:
        return "Noise scale 0: under the beliefs given, nothing asked about is unknown."
    if found.method == "entry":
        return _as_if_independent(found)
    if found.nearby == 1 or found.method not in _BY_NODES:
        needs = f"Node {found.node} needs the most."
    else:
        last = found.node + found.nearby - 1
        needs = f"Nodes {found.node} to {last} together need the most."
        if found.nearby >= found.length:
            needs = "All nodes together need it: nothing less hides one of them."
    lines = [
        f"Noise scale {found.scale:.6g} for epsilon {float(found.epsilon):g} "
        f"(method {found.method}, {found.length} time points).",
        *_protects(found),
        needs,
        *(_parts(found) if found.method in _BY_NODES else _quilt_lines(found)),
    ]
    if found.method == "sweep" and _alternates(found.bounds[found.belief - 1].belief):
        lines.append(
            "Its states alternate, so that one answer may tell far less than the worst one with "
            f"this noise: {_alone(found)}."
        )
    return "\n".join([*lines, *deciding(found)])


def deciding(found: Calibration) -> list[str]:
    """Say which of several beliefs decides, and what the others ask for."""
    if len(found.bounds) < 2:
        return []
    others = [scale for n, scale in enumerate(found.scales, 1) if n != found.belief]
    noise = f" For the others noise of scale {max(others):.6g} would do." if others else ""
    belief = found.bounds[found.belief - 1].belief
    return [f"Belief {found.belief} of {len(found.bounds)} decides: {belief!r}.{noise}"]


_BY_NODES = ("sweep", "gaussian")
_SHORT = 500
"""Points up to which the noise of a release that stays alone takes half a second at most."""


def _alone(found: Calibration) -> str:
    """What a release that stays alone needs, where that is found quickly."""
    from quiltwork.influence.calibration import calibrate

    problem, beliefs = found.problem, [one.belief for one in found.bounds]
    unknown = 'for a single release compare method="optimal-scale"'
    alone = problem.query is None or problem.episode > 1 or problem.pairs is not None
    if alone or found.length > _SHORT:
        return unknown
    nodes = problem.nodes.start, problem.nodes.stop - 1
    asked = found.length, found.epsilon, "optimal-scale", problem.query
    try:
        least = calibrate(beliefs, *asked, secrets=nodes).scale
    except UnsupportedError:
        return unknown
    return f'a single release needs {least:.6g}, by method="optimal-scale"'


def _alternates(belief: Belief) -> bool:
    """Whether the slowest part of a chain changes its sign at every step."""
    if not isinstance(belief, MarkovChain) or belief.size < 2:
        return False
    values = np.linalg.eigvals(np.asarray(belief.transition))
    second = values[np.argsort(-np.abs(values))[1]]
    return bool(second.real < 0 and abs(second.imag) < 1e-9)


def _protects(found: Calibration) -> list[str]:
    episode, belief = found.problem.episode, found.bounds[found.belief - 1].belief
    lines = [f"Every stretch of {episode} time points is one secret."] if episode > 1 else []
    if found.problem.pairs is not None:
        named = ", ".join(f"{a} and {b}" for a, b in found.problem.pairs)
        lines.append(f"Kept apart are {named}; other values of a time point may become known.")
    if isinstance(belief, Gaussian):
        apart = "the range" if belief.within is None else f"{float(belief.within):g}"
        lines.append(f"Hidden are true differences of at most {apart}, whatever was recorded.")
    return lines


def _parts(found: Calibration) -> list[str]:
    """What is spent on the node itself, and what the releases tell through its neighbours."""
    if str(found.method) == "gaussian":
        return [
            f"Spent there: {float(found.epsilon) - found.influence:.6g}. The others move with it, "
            f"which adds {added(found.influence, found.before)}.",
        ]
    own = float(found.change * found.unit / found.exact_scale)
    return [
        f"Spent there: {own:.6g}, since it moves the answer by up to {_in_units(found)}.",
        f"Neighbours add {added(found.influence, found.before)}: that is all the answer can tell "
        "about them, passed on by the belief.",
    ]


def added(influence: float, before: float) -> str:
    """What neighbours add; nodes of a tree have none before and after them."""
    if not before:
        return f"{influence:.6g}"
    return f"{before:.6g} from before and {max(0.0, influence - before):.6g} from after"


def _quilt_lines(found: Calibration) -> list[str]:
    return [
        _quilt(found),
        f"Scale: {_in_units(found)} / ({float(found.epsilon):g} − {found.influence:.6g}).",
    ]


def _as_if_independent(found: Calibration) -> str:
    level = f"{float(found.epsilon):g}"
    asked = (
        f"Noise scale {found.scale:.6g} for epsilon {level} if time points were independent "
        f"(method entry, {found.length} time points)."
    )
    if not found.leakage:
        return f"{asked}\nUnder the beliefs given they are, so it keeps that level."
    return (
        f"{asked}\nUnder the beliefs given they are not: about node {found.node} it may leak up to "
        f"{found.leakage:.6g}, so it does not protect time points with epsilon {level}."
    )


def _quilt(found: Calibration) -> str:
    one = found.nearby == 1
    points, are = ("time point", "is") if one else ("time points", "are")
    counts, they = ("counts", "moves") if one else ("count", "they move")
    moves = f"{they} the answer by up to {_in_units(found)}"
    if not found.quilt:
        return (
            f"Its best quilt is empty: {found.nearby} {points} {counts} as nearby and {moves}; "
            "the rest says nothing."
        )
    names = ", ".join(f"X_{node}" for node in found.quilt)
    return (
        f"Its best quilt is {{{names}}}: {found.nearby} {points} {are} nearby and {moves}; "
        f"the rest betrays at most {found.influence:.6g}."
    )


def _in_units(found: Calibration) -> str:
    """How far the answer moves, in its own units."""
    moved = found.change * found.unit
    return str(moved) if moved.denominator == 1 else f"{float(moved):.6g}"
