"""Post-processing at no privacy cost: answers that satisfy known constraints.

Each function returns a new release with another point estimate and the name of the step. The noisy
integers are unchanged, and so is every interval: it says where the truth lies given the noise, and
post-processing adds no knowledge. A processed value may therefore lie outside its cell's interval.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import instance
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, to_fraction
from quiltwork.queries.custom import CustomQuery
from quiltwork.series.releases.record import Release

_LARGEST_BOUNDS = {"i": 2**62, "f": 10**300}  # beyond, numbers are no machine words


def possible(release: Release) -> Release:
    """Return a possible answer near the released one, as `--polish` does.

    Cells with a public total are projected (`nonnegative`); others are clipped to the least and the
    largest value that so many time points can have. Counts are rounded to whole numbers.

    Raises:
        UnsupportedError: for a label, and for a custom query, whose possible answers are unknown.
    """
    integral = _numbers(release).dtype.kind == "i"
    if isinstance(release.query, CustomQuery):
        raise UnsupportedError(
            "The possible answers of a custom query are unknown; give its bounds to clip(release, "
            "low, high)."
        )
    if release.total is not None:
        near = nonnegative(release)
        return round_to_integers(near) if integral else near
    most = release.points * release.query.subdivision
    return clip(release, release.offset, release.offset + most * release.unit)


def clip(release: Release, low: Number | None = 0, high: Number | None = None) -> Release:
    """Clip values to the bounds `low` and `high`; None leaves a side open.

    The sum of the cells changes, and values near a bound get a bias.
    """
    bounds = [None if b is None else to_fraction(b, "A bound") for b in (low, high)]
    below, above = bounds
    values = _numbers(release)
    most = _LARGEST_BOUNDS[values.dtype.kind]
    if any(b is not None and abs(b) > most for b in bounds):
        raise InvalidInputError("A bound is far beyond every answer; leave it open with None.")
    if below is not None and above is not None and below > above:
        raise InvalidInputError(f"low must not exceed high, not {low!r} and {high!r}.")
    exact = values.dtype.kind == "i" and all(b is None or b.denominator == 1 for b in bounds)
    clipped = values
    if below is not None:
        clipped = np.maximum(clipped, int(below) if exact else float(below))
    if above is not None:
        clipped = np.minimum(clipped, int(above) if exact else float(above))
    shown = ["" if b is None else f"{float(b):g}" for b in bounds]
    return release.processed(_shaped(release, clipped), f"clip to {shown[0]}..{shown[1]}")


def consistent(release: Release) -> Release:
    """Shift all k cells equally so that they add up to the public total: the nearest such answer.

    Differences between cells stay. The expected squared error falls by 1/k of its value.
    """
    values, total = _numbers(release).astype(float), _total(release)
    return release.processed(
        _shaped(release, values + (total - values.sum()) / values.size), "consistent total"
    )


def nonnegative(release: Release) -> Release:
    """Project onto the answers without negative cells that add up to the public total.

    Values become max(x − θ, 0) with one θ for all cells. It is the nearest such answer in L2, and
    none is nearer in L1; so in L2 it is never further from the truth than the noisy answer. Cost:
    one sort.

    Theorem: docs/theory/public-grid-queries.md
    """
    projected = project(_numbers(release).ravel().astype(float), _total(release))
    shape = np.shape(release.value)
    return release.processed(_shaped(release, projected.reshape(shape)), "nonnegative projection")


def normalize(release: Release) -> Release:
    """Turn counts into shares: negative cells become 0, and all are divided by their sum.

    Intervals are those of count / public total. Without a positive cell, shares are equal.
    """
    values, total = _numbers(release), release.total
    if total is None or total == 0:
        raise _needs_total(release)
    positive = np.maximum(values.astype(float), 0)
    mass = positive.sum()
    shares = positive / mass if mass > 0 else np.full(positive.shape, 1 / positive.size)
    return release.processed(
        _shaped(release, shares),
        "normalize",
        unit=release.unit / total,
        rounding=release.rounding / total,
        offset=release.offset / total,
        total=Fraction(1),
    )


def round_to_integers(release: Release) -> Release:
    """Round to integers; cells that add up to the public total keep doing so.

    Where they do, the largest fractional parts round up (ties: the first cell); elsewhere each
    value rounds half up.
    """
    values = _numbers(release).astype(float)
    floors = np.floor(values)
    total = release.total
    adds_up = total is not None and abs(values.sum() - float(total)) <= 1e-9 * max(1, float(total))
    if adds_up and total is not None and total.denominator == 1:
        missing = int(total) - int(floors.sum())
        order = np.argsort(-(values - floors).ravel(), kind="stable")
        extra = np.zeros(values.size)
        extra[order[:missing]] = 1
        rounded = floors + extra.reshape(values.shape)
    else:
        rounded = np.floor(values + 0.5)
    return release.processed(_shaped(release, rounded.astype(np.int64)), "round to integers")


def project(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return max(values − θ, 0) with the θ that makes them add up to `total` ≥ 0. O(k log k).

    >>> project(np.array([6.0, -2.0, 3.0]), 7.0)
    array([5., 0., 2.])
    """
    descending = np.sort(values)[::-1]
    thresholds = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    kept = int(np.flatnonzero(descending >= thresholds).max(initial=0))
    return np.asarray(np.maximum(values - thresholds[kept], 0))


def _numbers(release: Release) -> NDArray[Any]:
    values = np.asarray(instance(release, Release, "release").value)
    if release.mechanism == "exponential" or values.dtype.kind not in "if":
        raise UnsupportedError("A label cannot be post-processed as a number.")
    return values


def _shaped(release: Release, values: NDArray[Any]) -> Any:
    return values if isinstance(release.value, np.ndarray) else values.item()


def _total(release: Release) -> float:
    if release.total is None:
        raise _needs_total(release)
    return float(release.total)


def _needs_total(release: Release) -> UnsupportedError:
    return UnsupportedError(
        f"The cells of a {release.query.kind} have no public total to agree with; a histogram, "
        "frequencies and transitions have."
    )
