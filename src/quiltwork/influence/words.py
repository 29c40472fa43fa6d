"""A calibration in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quiltwork.influence.calibration import Calibration


def explain(found: Calibration) -> str:
    """Say which node needs the noise, what its best quilt is, and what that costs."""
    if found.exact_scale == 0:
        return "Noise scale 0: under the beliefs given, nothing asked about is unknown."
    lines = [
        f"Noise scale {found.scale:.6g} for epsilon {float(found.epsilon):g} "
        f"(method {found.method}, {found.length} time points).",
        f"Node {found.node} needs the most.",
        _quilt(found),
        f"Scale: {found.change} / ({float(found.epsilon):g} − {found.influence:.6g}).",
    ]
    if len(found.question.outlooks) > 1:
        lines.append(f"Belief {found.belief} of {len(found.question.outlooks)} decides.")
    return "\n".join(lines)


def _quilt(found: Calibration) -> str:
    points = "time point" if found.nearby == 1 else "time points"
    moves = f"they move the answer by up to {found.change}"
    if not found.quilt:
        return (
            f"Its best quilt is empty: {found.nearby} {points} count as nearby and {moves}; "
            "the rest says nothing."
        )
    names = ", ".join(f"X_{node}" for node in found.quilt)
    return (
        f"Its best quilt is {{{names}}}: {found.nearby} {points} are nearby and {moves}; "
        f"the rest betrays at most {found.influence:.6g}."
    )
