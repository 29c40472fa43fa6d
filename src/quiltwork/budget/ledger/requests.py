"""What may be debited: a spending, a release, or a release's own description of itself.

Rooms that release something describe it as plain data before they touch the data: which mechanism,
which query, the exact noise scale, or just the level for substituting one point. This is where
such a description becomes the `Spending` that the accountant prices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.budget import Spending
from quiltwork.budget.ledger.numbers import amount, points, read_amount
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened

_LONGEST_LABEL = 1000
_LEVELS = ("per_point", "per_pair", "once", "epsilon", "divergence")


@dataclass(frozen=True)
class Request:
    """A spending with the mechanism behind it and the document that describes it."""

    spending: Spending
    mechanism: str = "declared"
    document: Mapping[str, Any] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """Everything that makes two requests the same one."""
        return {
            "spending": self.spending.to_body(),
            "mechanism": self.mechanism,
            "request": dict(self.document or {}),
        }


def read_request(asked: Any, dataset: str, beliefs: tuple[Belief, ...], length: int) -> Request:
    """Read a `Spending`, a `Release`, or a release's description.

    A description has `query`, `noise_scale`, `length`, `exact_epsilon` and `method` as in a
    release's document; or `dp_epsilon`, and perhaps `start` and `stop`, for a release that is that
    private for substituting one point of the window. A `belief_digest` must be the dataset's.

    Raises:
        InvalidInputError: for anything else, for levels out of range, and for a release that was
            made under other beliefs or from a series of another length than the dataset's.
        UnsupportedError: for a release without noise, which no theorem prices.
    """
    if isinstance(asked, Spending):
        return Request(_checked(asked))
    if isinstance(asked, Mapping):
        description = dict(asked)
    elif hasattr(asked, "to_json") and hasattr(asked, "noise_scale"):
        description = json.loads(asked.to_json())
    else:
        raise InvalidInputError(
            f"A debit is for a Spending or a release, not {shortened(asked)}; write "
            "Spending.dp(0.1, 1, 10)."
        )
    _check_it_is_about(dataset, beliefs, length, description)
    try:
        if "query" in description:
            spending = _spending_of_query(description)
        else:
            spending = _spending_of_level(description, length)
    except (KeyError, TypeError) as error:
        raise InvalidInputError(
            f"The description of the release lacks something, or cannot be read ({error})."
        ) from None
    return Request(
        _checked(spending), str(description.get("mechanism", "declared")), _plain(description)
    )


def _check_it_is_about(
    dataset: str, beliefs: tuple[Belief, ...], length: int, description: Mapping[str, Any]
) -> None:
    from quiltwork.series.releases.document import digest

    if description.get("belief_digest") not in (None, digest(beliefs)):
        raise InvalidInputError(
            f"The release was made under other beliefs than those of dataset {dataset!r}, so its "
            f"guarantee is not the ledger's; release with ledger.status({dataset!r}).beliefs, or "
            "create a dataset with the beliefs you mean."
        )
    found = integer(description.get("length", length), "length", 1)
    if found == length:
        return
    raise InvalidInputError(
        f"The data have {found} time points, dataset {dataset!r} has {length}; "
        + (
            f"first let it grow: ledger.extend({dataset!r}, {found})."
            if found > length
            else "give all of them, and ask about a part with query.on(start, stop)."
        )
    )


@dataclass(frozen=True)
class _Described:
    """A release as far as its description tells it."""

    query: Any
    noise_scale: Fraction
    length: int
    exact_epsilon: Fraction
    method: str


def _spending_of_query(description: Mapping[str, Any]) -> Spending:
    from quiltwork.queries.document import from_document

    return Spending.from_release(
        _Described(
            query=from_document(description["query"]),
            noise_scale=_scale(description["noise_scale"]),
            length=description["length"],
            exact_epsilon=read_amount(description["exact_epsilon"], "epsilon"),
            method=description["method"],
        )
    )


def _scale(text: object) -> Fraction:
    """Read a noise scale; 0 stands for no noise."""
    return Fraction(0) if text == "0" else read_amount(text, "noise_scale")


def _spending_of_level(description: Mapping[str, Any], length: int) -> Spending:
    if "dp_epsilon" not in description:
        raise InvalidInputError(
            "A debit needs a level: its description has neither a query with its noise nor "
            "dp_epsilon."
        )
    level = description["dp_epsilon"]
    if level == "0":  # nothing is told, but the answer to a key is kept
        return Spending(1, length, label=str(description.get("label", "")))
    read = read_amount if isinstance(level, str) else amount
    return Spending.dp(
        read(level, "dp_epsilon"),
        description.get("start", 1),
        description.get("stop", length),
        label=str(description.get("label", "")),
    )


def _checked(spending: Spending) -> Spending:
    points(spending.stop)
    if len(spending.label) > _LONGEST_LABEL:
        raise InvalidInputError(
            f"label has {len(spending.label):,} characters; give at most {_LONGEST_LABEL:,}."
        )
    for name in _LEVELS:
        if getattr(spending, name):
            amount(getattr(spending, name), name)
    return spending


def _plain(description: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the answer and write exact numbers as text: what JSON makes of the description.

    Raises:
        InvalidInputError: if it holds what JSON has not.
    """
    kept = {
        name: value
        for name, value in description.items()
        if name not in ("mechanism", "value", "noisy")
    }
    try:
        found: dict[str, Any] = json.loads(json.dumps(kept, default=_own, allow_nan=False))
    except (RecursionError, TypeError, ValueError):
        raise InvalidInputError(
            "A release describes itself by text, finite numbers, and lists and dictionaries of "
            "them; this description holds something else."
        ) from None
    return found


def _own(value: Any) -> Any:
    """Write a fraction as text, and NumPy's numbers as Python's own."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(value)
