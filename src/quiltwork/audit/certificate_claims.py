"""`check_certificate`: the claims of a calibration's certificate, checked in exact fractions.

`influence.certificate_writer` writes certificates, `certificate_checker` checks them and imports
nothing of the package.

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
    """Return the claims of a certificate, one per chain, after checking each in exact fractions.

    Raises:
        InvalidInputError: if the text is not a certificate.
        NotPrivateError: if it does not prove its claims, naming the step that fails.
    """
    document = files.load(text, "certificate", (1,))
    try:
        checker.check(document)
    except checker.RefusedError as error:
        raise NotPrivateError(f"The certificate does not hold. {error}") from None
    return tuple(
        {name: claim[name] for name in _CLAIMED if name in claim}
        for claim in document["certificates"]
    )


def is_about(claim: dict[str, Any], belief: Belief) -> bool:
    """Return whether a claim is about this belief: its numbers agree to the last digit."""
    return all(claim.get(name) == value for name, value in chain_numbers(belief).items())


def chain_numbers(belief: Belief) -> dict[str, Any]:
    """Return the numbers of a chain, as a certificate stores them."""
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
