"""Certificates of calibrations, read and checked: what they claim, proved in exact fractions.

`influence.certificate` writes them, `certificate_checker` checks them and knows neither.

Theorem: docs/theory/certificates.md
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork import files
from quiltwork.audit import certificate_checker as checker
from quiltwork.beliefs import HiddenChain, MarkovChain
from quiltwork.errors import NotPrivateError, UnsupportedError

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief

_CLAIMED = (
    *("epsilon", "scale", "length", "charges", "secrets", "episode", "pairs"),
    *("transition", "initial", "shows"),
)


def check_certificate(text: str | bytes) -> tuple[dict[str, Any], ...]:
    """Return what a certificate's chains claim, having checked every one in exact fractions.

    Raises:
        InvalidInputError: if this is no certificate.
        NotPrivateError: if it does not prove what it claims, saying where.
    """
    document = files.load(text, "certificate", (1,))
    try:
        checker.check(document)
    except checker.RefusedError as error:
        raise NotPrivateError(f"The certificate does not hold. {error}") from None
    return tuple(
        {name: one[name] for name in _CLAIMED if name in one} for one in document["certificates"]
    )


def speaks_of(claimed: dict[str, Any], belief: Belief) -> bool:
    """Whether a checked claim is about this belief: the same numbers, to the last digit."""
    stated = chain_numbers(belief)
    return all(claimed.get(name) == value for name, value in stated.items())


def chain_numbers(belief: Belief) -> dict[str, Any]:
    """The numbers of a chain, as they are stored."""
    inner = belief.inner if isinstance(belief, HiddenChain) else belief
    if not isinstance(inner, MarkovChain) or (
        isinstance(inner.initial, str) and inner.initial != "stationary"
    ):
        raise UnsupportedError(
            "Certificates are for chains with a known matrix and a known or stationary start."
        )
    initial, shows = inner.initial, list(range(inner.size))
    if not isinstance(initial, str):
        initial = [str(Fraction(e)) for e in np.asarray(initial).tolist()]  # type: ignore[assignment]
    return {
        "transition": [[str(Fraction(e)) for e in row] for row in inner.transition.tolist()],
        "initial": initial,
        "shows": belief.shown.tolist() if isinstance(belief, HiddenChain) else shows,
    }
