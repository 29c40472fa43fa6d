"""What may be debited: a request, a spending, a release, or a description of a mechanism.

Systems describe what they will draw as plain data before they touch the data. Here that becomes
the `Request` that is priced and stored, after it was checked to be about the dataset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import digest
from quiltwork.budget.ledger.amounts import amount, points, read_amount
from quiltwork.budget.payment import BEGINNING_OF, Request
from quiltwork.budget.spending import Spending, as_spending
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened
from quiltwork.wording import argument, either

_LONGEST_LABEL = 1000
_LONGEST_REQUEST = 10**6
_ANSWER = ("value", "noisy", "intervals", "shortfall", "verdict", "reason")
_LEVELS = ("per_point", "per_pair", "once", "epsilon", "divergence", "square")


def read_request(asked: Any, dataset: str, beliefs: tuple[Belief, ...], length: int) -> Request:
    """Read a `Request`, a `Spending`, a release, or a description of a mechanism.

    A description has `dp_epsilon`, and perhaps `start` and `stop`, for a mechanism that is that
    private for substituting one point of the window; or `rho` of Gaussian noise, or its μ, `gdp`.
    A `belief_digest` must be the dataset's.

    Raises:
        InvalidInputError: for anything else, for levels out of range, and for a release that was
            made under other beliefs or from a series of another length than the dataset's.
        UnsupportedError: for a release without noise, which no theorem prices.
    """
    if isinstance(asked, Spending):
        return Request(_checked(asked))
    if isinstance(asked, Mapping):
        document = dict(asked)
    elif isinstance(asked, Request):
        document = {**(asked.document or {}), "mechanism": asked.mechanism}
    elif hasattr(asked, "spending"):
        document = json.loads(asked.to_json()) if hasattr(asked, "to_json") else {}
    else:
        raise InvalidInputError(
            f"A debit is for a Spending or a release, not {shortened(asked)}; write "
            "Spending.dp(0.1, 1, 10)."
        )
    _check_it_is_about(dataset, beliefs, length, document)
    of_level = isinstance(asked, Mapping)
    spending = _spending_of_level(document, length) if of_level else as_spending(asked)
    return Request(_checked(spending), str(document.get("mechanism", "declared")), _plain(document))


def _check_it_is_about(
    dataset: str, beliefs: tuple[Belief, ...], length: int, description: Mapping[str, Any]
) -> None:
    """Refuse other beliefs than the dataset's, and data of another length."""
    if description.get("belief_digest") not in (None, digest(beliefs)):
        raise InvalidInputError(
            f"The release was made under other beliefs than those of dataset {dataset!r}, so its "
            "guarantee is not the ledger's; release with "
            + either(f"ledger.status({dataset!r}).beliefs", "the beliefs that `ledger show` names")
            + ", or create a dataset with the beliefs you mean."
        )
    stated = description.get(BEGINNING_OF, description.get("length", length))
    found = integer(stated, "length", 1)
    if found == length:
        return
    grow = either(
        f"ledger.extend({dataset!r}, {found})", f"quiltwork ledger extend URL {dataset} {found}"
    )
    part = either("query.on(start, stop)", "--window START:STOP")
    raise InvalidInputError(
        f"The data have {found} time points, dataset {dataset!r} has {length}; "
        + (
            f"first let it grow: {grow}."
            if found > length
            else f"give all of them and ask about a part with {part}, or, if the rest is "
            f"still to come, say so with {argument('beginning_of', length)}."
        )
    )


def _spending_of_level(description: Mapping[str, Any], length: int) -> Spending:
    window = description.get("start", 1), description.get("stop", length)
    label = str(description.get("label", ""))
    for name in ("rho", "gdp"):
        if name in description and "dp_epsilon" not in description:
            stated = description[name]
            read = read_amount if isinstance(stated, str) else amount
            level = read(stated, name)
            rho, gdp = (level, None) if name == "rho" else (None, level)
            return Spending.gaussian(*window, rho=rho, gdp=gdp, label=label)
    if "dp_epsilon" not in description:
        raise InvalidInputError(
            "A debit needs a level: its description has no dp_epsilon, rho or gdp. Give a "
            "Spending, or a release itself."
        )
    level = description["dp_epsilon"]
    if level == "0":  # nothing is told, but the answer to a key is kept
        return Spending(1, length, label=label)
    read = read_amount if isinstance(level, str) else amount
    return Spending.dp(read(level, "dp_epsilon"), *window, label)


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
        if name not in ("mechanism", BEGINNING_OF, *_ANSWER)
    }
    try:
        text = json.dumps(kept, default=_own, allow_nan=False)
    except (RecursionError, TypeError, ValueError):
        raise InvalidInputError(
            "A release describes itself by text, finite numbers, and lists and dictionaries of "
            "them; this description holds something else."
        ) from None
    if len(text) > _LONGEST_REQUEST:
        raise InvalidInputError(
            f"A release's description of itself has {len(text):,} characters as JSON; the ledger "
            f"keeps at most {_LONGEST_REQUEST:,} for each debit."
        )
    found: dict[str, Any] = json.loads(text)
    return found


def _own(value: Any) -> Any:
    """Write a fraction as text, and NumPy's numbers as Python's own."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(value)
