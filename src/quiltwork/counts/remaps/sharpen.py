"""Remaps that sharpen time-series releases: what the chain already says, combined with the answer.

The noise of a quilt release is two-sided geometric, so a reader who believes a Markov chain can
remap each released count with the chain's own count distribution as the prior. It is
post-processing: no privacy is spent and intervals stay those of the noise. Counts pooled over
independent subjects have the convolution of their distributions. Cost: the count distribution,
O(T²·k²), once per cell.

Theorem: docs/theory/geometric-mechanism.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.arguments import instance, listed
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.consumers.priors import ChainCounts
from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.levels import alpha_for_epsilon
from quiltwork.counts.remaps.remap import Remap
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.series.releases.record import Release

_KINDS = ("count", "histogram", "frequencies")


@dataclass(frozen=True)
class Sharpened:
    """A release with its counts remapped for one reader.

    Attributes:
        release: the release with the new value, marked with the step.
        expected_loss: the reader's expected loss per cell, after.
        face_value_loss: the same without the remap, answers clipped to 0..points.
    """

    release: Release
    expected_loss: tuple[float, ...]
    face_value_loss: tuple[float, ...]


def sharpen(
    release: Release,
    chain: MarkovChain,
    loss: Any = "absolute",
    lengths: Sequence[int] | None = None,
) -> Sharpened:
    """Remap the counts of a release for a reader who believes `chain`.

    The guarantee does not rest on the chain; only the reader's gain does. Cells are remapped one
    by one, so a histogram need not add up afterwards. For several subjects, pooled and independent
    of each other, `lengths` says how many time points were asked about of each; it may be left out
    if all have equally many.

    Raises:
        UnsupportedError: for queries that do not count states, or if no noise was added.
        InvalidInputError: if the lengths are needed and missing, or do not fit the release.
    """
    from quiltwork.series.releases.record import Release

    query = instance(release, Release, "release").query
    if query.kind not in _KINDS or release.noise_scale == 0:
        raise UnsupportedError(
            f"A {query.kind} release cannot be sharpened; counts, histograms and "
            "frequencies with noise can."
        )
    moments = _lengths(release, lengths)
    mechanism = GeometricMechanism(release.points, alpha=alpha_for_epsilon(1 / release.noise_scale))
    started = _started(chain, release.window[0])
    remaps = [
        mechanism.remap(Consumer(ChainCounts(started, state, moments), loss))
        for state in release.cells
    ]
    counts = [remap(value) for remap, value in zip(remaps, release.noisy, strict=True)]
    return Sharpened(
        release.processed(_shown(release, counts), f"remapped for {_name(remaps)} loss"),
        tuple(remap.expected_loss for remap in remaps),
        tuple(remap.face_value_loss for remap in remaps),
    )


def _lengths(release: Release, lengths: Sequence[int] | None) -> tuple[int, ...]:
    """Return how many time points were asked about of each subject."""
    first, last = release.window
    each, rest = divmod(release.points, release.subjects)
    if lengths is None:
        if rest or each != last - first + 1:
            raise InvalidInputError(
                f"The release pools {release.subjects} subjects of different lengths: give "
                "lengths=[…], how many time points were asked about of each."
            )
        return (each,) * release.subjects
    read = tuple(integer(length, "a length", 1) for length in listed(lengths, "lengths"))
    if len(read) != release.subjects or sum(read) != release.points:
        raise InvalidInputError(
            f"The lengths are those of {len(read)} subjects and {sum(read)} time points; the "
            f"release has {release.subjects} and {release.points}."
        )
    return read


def _started(chain: MarkovChain, first: int) -> MarkovChain:
    """Return the chain as seen from the window's first moment."""
    if first == 1:
        return chain
    from quiltwork.beliefs import MarkovChain

    return MarkovChain(chain.transition, initial=chain.marginal(first), states=chain.states)


def _shown(release: Release, counts: list[int]) -> Any:
    if release.query.kind == "count":
        return counts[0]
    values = np.array(counts)
    return values if release.query.kind == "histogram" else values * float(release.unit)


def _name(remaps: list[Remap]) -> str:
    return remaps[0].loss_name
