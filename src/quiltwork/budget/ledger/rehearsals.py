"""Rehearsals: a release from simulated data, priced as the real one would be."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quiltwork.beliefs import CyclicChain, HiddenChain, MarkovChain
from quiltwork.budget.ledger.receipts import Preview
from quiltwork.budget.ledger.records import Status
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number
from quiltwork.queries import Query

if TYPE_CHECKING:
    from quiltwork.budget.ledger.ledger import Ledger
    from quiltwork.series import Release


@dataclass(frozen=True)
class Rehearsal:
    """What a release would cost and look like.

    Attributes:
        preview: what the debit would do.
        release: the release of simulated data, with its error bars.
        data: the simulated data.
    """

    preview: Preview
    release: Release
    data: Any

    @property
    def expected_error(self) -> float:
        """The expected absolute error of one cell."""
        return self.release.expected_error


def rehearsal(
    ledger: Ledger, dataset: str, query: Query, epsilon: Number, method: str | None, seed: int
) -> Rehearsal:
    """Simulate the dataset from the first of its beliefs that can, release, and price.

    Raises:
        UnsupportedError: if none of them says how the values are distributed.
    """
    from quiltwork.series import release

    status = ledger.status(dataset)
    data = _simulated(status, seed)
    released = release(data, query, status.beliefs, epsilon, method)
    return Rehearsal(ledger.preview(dataset, released), released, data)


def _simulated(status: Status, seed: int) -> Any:
    for belief in status.beliefs:
        if isinstance(belief, MarkovChain | CyclicChain | HiddenChain):
            with suppress(UnsupportedError):
                return belief.sample(status.length or 1, seed)
    raise UnsupportedError(
        f"The beliefs of {status.dataset!r} do not say how its values are distributed, so nothing "
        "can be simulated; price a Spending with preview(), or release made-up data of your own."
    )
