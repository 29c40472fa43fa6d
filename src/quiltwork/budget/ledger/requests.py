"""Parsing and validation of what callers give a ledger: amounts, names and requests.

Amounts are exact and of ordinary size, names are printable text. Every system describes its release
as plain data before it touches the private data; `parse_request` checks that the description is
about the dataset and turns it into the `Request` that is priced and stored.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import digest
from quiltwork.budget.payment import BEGINNING_OF, Request
from quiltwork.budget.spending import Spending, as_spending
from quiltwork.errors import InvalidInputError
from quiltwork.exact import (
    integer,
    parse_stored_fraction,
    positive_fraction,
    shortened,
    to_fraction,
)
from quiltwork.wording import argument, either

_SMALLEST_AMOUNT = Fraction(sys.float_info.min)
_LARGEST_AMOUNT = Fraction(sys.float_info.max)
_MOST_DIGITS = 1000
_TOO_LONG = 10**_MOST_DIGITS
_LONGEST_NAME = 200
_LONGEST_SERIES = 10**15
_LONGEST_LABEL = 1000
_LONGEST_REQUEST = 10**6
# Private parts of a release's document: they belong to its answer and never enter the request.
_ANSWER = ("value", "noisy", "intervals", "shortfall", "verdict", "reason")
_LEVELS = ("per_point", "per_pair", "once", "epsilon", "divergence", "square")


def parse_amount(value: object, name: str) -> Fraction:
    """Parse a budget or a level exactly.

    Raises:
        InvalidInputError: unless it is a positive finite number within the range of normal floats
            (about 2e-308 to 2e308) and of at most 1,000 digits.

    >>> parse_amount(0.1, "budget")
    Fraction(1, 10)
    """
    if isinstance(value, Fraction) and value.numerator > 0:
        fraction = value
    else:
        fraction = positive_fraction(value, name)
    if not _SMALLEST_AMOUNT <= fraction <= _LARGEST_AMOUNT:
        raise InvalidInputError(
            f"{name} is {shortened(value)}, outside the range of normal numbers (about 2e-308 to "
            "2e308); give an ordinary amount such as 0.1."
        )
    if max(fraction.numerator, fraction.denominator) >= _TOO_LONG:
        raise InvalidInputError(
            f"{name} has more than {_MOST_DIGITS:,} digits; round it to a few, towards privacy."
        )
    return fraction


def parse_allowance(value: object, name: str) -> Fraction:
    """Parse a cap or a reserved share: an amount as in `parse_amount`, or 0."""
    fraction = to_fraction(value, name)
    if fraction < 0:
        raise InvalidInputError(f"{name} must be 0 or more, not {shortened(value)}.")
    return parse_amount(value, name) if fraction else fraction


def parse_length(length: object) -> int:
    """Parse the number of time points of a dataset."""
    points = integer(length, "length", 1)
    if points > _LONGEST_SERIES:
        raise InvalidInputError(
            f"length is {shortened(length)}; a dataset has at most 10¹⁵ points."
        )
    return points


def parse_name(value: object, name: str, longest: int = _LONGEST_NAME) -> str:
    """Parse the name of a dataset, an analyst or an idempotency key.

    Raises:
        InvalidInputError: unless it is text of 1 to `longest` printable characters.
    """
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidInputError(
            f"{name} must be text of printable characters, not {shortened(value)}; give a name "
            "such as 'power-2024'."
        )
    if len(value) > longest:
        raise InvalidInputError(f"{name} has {len(value)} characters; give at most {longest}.")
    return value


def parse_request(release: Any, dataset: str, beliefs: tuple[Belief, ...], length: int) -> Request:
    """Parse what is to be debited: a `Request`, a `Spending`, a release, or a description.

    A description is a mapping with `dp_epsilon`, and perhaps `start` and `stop`, for a mechanism of
    that level for substituting one point of the window; or with `rho` or `gdp` for Gaussian noise
    of this ρ or μ. A `belief_digest` must be the dataset's.

    Raises:
        InvalidInputError: for anything else, for levels out of range, and for a release made under
            other beliefs or from a series of another length than the dataset's.
        UnsupportedError: for a release without noise, which no theorem prices.
    """
    if isinstance(release, Spending):
        return Request(_check_size(release))
    if isinstance(release, Mapping):
        document = dict(release)
    elif isinstance(release, Request):
        document = {**(release.document or {}), "mechanism": release.mechanism}
    elif hasattr(release, "spending"):
        document = json.loads(release.to_json()) if hasattr(release, "to_json") else {}
    else:
        raise InvalidInputError(
            f"A debit is for a Spending or a release, not {shortened(release)}; write "
            "Spending.dp(0.1, 1, 10)."
        )
    _check_dataset(dataset, beliefs, length, document)
    if isinstance(release, Mapping):
        spending = _spending_of_description(document, length)
    else:
        spending = as_spending(release)
    mechanism = str(document.get("mechanism", "declared"))
    return Request(_check_size(spending), mechanism, _plain_json(document))


def _check_dataset(
    dataset: str, beliefs: tuple[Belief, ...], length: int, document: Mapping[str, Any]
) -> None:
    """Refuse other beliefs than the dataset's, and data of another length."""
    if document.get("belief_digest") not in (None, digest(beliefs)):
        raise InvalidInputError(
            f"The release was made under other beliefs than those of dataset {dataset!r}, so its "
            "guarantee is not the ledger's; release with "
            + either(f"ledger.status({dataset!r}).beliefs", "the beliefs that `ledger show` names")
            + ", or create a dataset with the beliefs you mean."
        )
    stated = document.get(BEGINNING_OF, document.get("length", length))
    points = integer(stated, "length", 1)
    if points == length:
        return
    extend = either(
        f"ledger.extend({dataset!r}, {points})", f"quiltwork ledger extend URL {dataset} {points}"
    )
    window = either("query.on(start, stop)", "--window START:STOP")
    raise InvalidInputError(
        f"The data have {points} time points, dataset {dataset!r} has {length}; "
        + (
            f"first let it grow: {extend}."
            if points > length
            else f"give all of them and ask about a part with {window}, or, if the rest is "
            f"still to come, say so with {argument('beginning_of', length)}."
        )
    )


def _spending_of_description(document: Mapping[str, Any], length: int) -> Spending:
    """Return the spending of a mechanism that is described by its level."""
    window = document.get("start", 1), document.get("stop", length)
    label = str(document.get("label", ""))
    name = next((level for level in ("dp_epsilon", "rho", "gdp") if level in document), None)
    if name is None:
        raise InvalidInputError(
            "A debit needs a level: its description has no dp_epsilon, rho or gdp. Give a "
            "Spending, or a release itself."
        )
    stated = document[name]
    if name == "dp_epsilon" and stated == "0":
        return Spending(1, length, label=label)  # reveals nothing, but its key stores an answer
    exact = parse_stored_fraction(stated, name) if isinstance(stated, str) else stated
    level = parse_amount(exact, name)
    if name == "dp_epsilon":
        return Spending.dp(level, *window, label)
    if name == "rho":
        return Spending.gaussian(*window, rho=level, label=label)
    return Spending.gaussian(*window, gdp=level, label=label)


def _check_size(spending: Spending) -> Spending:
    """Return the spending if its numbers and its label are of ordinary size."""
    parse_length(spending.stop)
    if len(spending.label) > _LONGEST_LABEL:
        raise InvalidInputError(
            f"label has {len(spending.label):,} characters; give at most {_LONGEST_LABEL:,}."
        )
    for name in _LEVELS:
        if getattr(spending, name):
            parse_amount(getattr(spending, name), name)
    return spending


def _plain_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description without its answer, as JSON values with exact numbers as text.

    Raises:
        InvalidInputError: if a value has no JSON form, or the whole is too long.
    """
    public = {
        name: value
        for name, value in document.items()
        if name not in ("mechanism", BEGINNING_OF, *_ANSWER)
    }
    try:
        text = json.dumps(public, default=_json_value, allow_nan=False)
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
    body: dict[str, Any] = json.loads(text)
    return body


def _json_value(value: Any) -> Any:
    """Convert a fraction to text, and a NumPy number to a Python number."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(value)
