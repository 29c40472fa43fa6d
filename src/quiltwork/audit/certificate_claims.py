"""`check_certificate`: the claims of a calibration's certificate, checked in exact fractions.

`influence.certificate_writer` writes certificates, `certificate_checker` checks them and imports
nothing of the package.

Theorem: docs/theory/certificates.md
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
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
    rows = [_shares(row) for row in inner.transition.tolist()]
    initial = inner.initial
    law = stationary(rows) if isinstance(initial, str) else _shares(np.asarray(initial).tolist())
    return {
        "transition": [[str(entry) for entry in row] for row in rows],
        "initial": [str(entry) for entry in law],
        "shows": list(
            belief.shown.tolist() if isinstance(belief, HiddenChain) else range(inner.size)
        ),
    }


def _shares(numbers: list[float]) -> list[Fraction]:
    """Return numbers divided by their sum, exactly."""
    fractions = [Fraction(value) for value in numbers]
    return [value / sum(fractions) for value in fractions]


def stationary(rows: list[list[Fraction]]) -> list[Fraction]:
    """Return the exact stationary law of a matrix with one closed class, by GTH elimination."""
    size = len(rows)
    reach = [{y for y in range(size) if rows[x][y] or x == y} for x in range(size)]
    for y, x in product(range(size), repeat=2):
        reach[x] |= reach[y] if y in reach[x] else set()
    recurrent = sorted(set.intersection(*reach))
    if not recurrent:
        raise UnsupportedError("The chain has no single stationary law.")
    work = [[rows[x][y] for y in recurrent] for x in recurrent]
    for n in range(len(work) - 1, 0, -1):
        out = sum(work[n][:n], Fraction(0))
        for i in range(n):
            work[i][n] /= out
            for j in range(n):
                work[i][j] += work[i][n] * work[n][j]
    law = [Fraction(1)]
    for n in range(1, len(work)):
        law.append(sum((law[i] * work[i][n] for i in range(n)), Fraction(0)))
    total, place = sum(law), {x: i for i, x in enumerate(recurrent)}
    return [law[place[x]] / total if x in place else Fraction(0) for x in range(size)]
