"""Rehearsals: a release from simulated data, priced as the real one would be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from quiltwork.arguments import instance
from quiltwork.beliefs import Belief, CyclicChain, HiddenChain, MarkovChain
from quiltwork.budget import Ledger, Quote
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number
from quiltwork.queries import Query
from quiltwork.series.releases.answer import release
from quiltwork.series.releases.record import Release


@dataclass(frozen=True)
class Rehearsal:
    """What a release would cost and look like.

    Attributes:
        quote: what the debit would do.
        release: the release of simulated data, with its error bars.
        data: the simulated data.
    """

    quote: Quote
    release: Release
    data: Any

    @property
    def expected_error(self) -> float:
        """The expected absolute error of one cell."""
        return self.release.expected_error


def rehearse(
    ledger: Ledger,
    dataset: str,
    query: Query,
    epsilon: Number = 1.0,
    method: str | None = None,
    seed: int = 0,
) -> Rehearsal:
    """Make a release from data simulated from the dataset's beliefs, and price the real one.

    Shows cost, expected error and a made-up answer; nothing is spent and no data are used. The
    first belief that says how values are distributed is the one to simulate from.

    Raises:
        UnsupportedError: if none of them says so.
    """
    status = instance(ledger, Ledger, "ledger").status(dataset)
    data = simulated(status.beliefs, status.length or 1, seed)
    released = release(data, query, status.beliefs, epsilon, method)
    return Rehearsal(ledger.preview(dataset, released), released, data)


def simulated(beliefs: Sequence[Belief], length: int, seed: int = 0) -> Any:
    """Return a series drawn from the first of the beliefs that says how values are distributed.

    Raises:
        UnsupportedError: if none of them does.
    """
    for belief in beliefs:
        if isinstance(belief, MarkovChain | CyclicChain | HiddenChain):
            with suppress(UnsupportedError):
                return belief.sample(length, seed)
    raise UnsupportedError(
        "The beliefs do not say how values are distributed, so nothing can be simulated; price a "
        "Spending with preview(), or release made-up data of your own."
    )
