"""Certificates of debits: a proof, stored with the debit, that the noise keeps what it promises.

The text stands in the debit's body, so the log's hashes cover it from before the answer is drawn. A
certificate is checked before it is stored, and again by `Ledger.verify(certificates=True)`: the
checker must accept it, it must be about every belief of the dataset, and it must prove at least the
levels that the debit is charged for.

Theorem: docs/theory/certificates.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork.budget.ledger.entries import damaged, reading
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.state import initial_state
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, QuiltworkError, UnsupportedError

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief

LONGEST_CERTIFICATE = 10**6
"""Characters: every process that folds a dataset's entries reads them."""


def check_debit_certificate(text: str, spending: Spending, beliefs: Sequence[Belief]) -> None:
    """Check that a certificate proves what a debit is charged for, under every belief.

    Raises:
        InvalidInputError: if it is too long, no certificate, or about another chain, other levels
            or another ε.
        NotPrivateError: if the checker does not accept it.
        UnsupportedError: for Gaussian noise, and beliefs that certificates do not cover.
    """
    from quiltwork.audit.certificate_claims import check_certificate, is_about

    if spending.composes_by != "levels":
        raise UnsupportedError(
            "A certificate proves a pure ε from levels per time point; this release composes by "
            f"{spending.composes_by!r}. Debit it without a certificate."
        )
    if len(text) > LONGEST_CERTIFICATE:
        raise UnsupportedError(
            f"The certificate has {len(text):,} characters, and a ledger stores at most "
            f"{LONGEST_CERTIFICATE:,} with a debit. Keep it in a file instead: quiltwork calibrate "
            "--certificate FILE."
        )
    claims = check_certificate(text)
    for number, belief in enumerate(beliefs, start=1):
        about = [claim for claim in claims if is_about(claim, belief)]
        if not about:
            raise InvalidInputError(
                f"The certificate is not about belief {number} of the dataset: none of its chains "
                "has the same numbers."
            )
        if not any(_covers(claim, spending) for claim in about):
            raise InvalidInputError(
                "The certificate proves other levels than the debit is charged for, or a larger "
                "epsilon: write it for the noise of this release."
            )


def _covers(claim: dict[str, Any], spending: Spending) -> bool:
    """Return whether the proven levels are at least those of a spending, for at most its ε."""
    scale = Fraction(claim["scale"])
    proved = _sums((tuple(window), change / scale) for *window, change in claim["charges"])
    charged = _sums(
        ((part.start, part.stop, points), level)
        for part in spending.parts
        for points, level in (
            (1, part.per_point),
            (2, part.per_pair),
            (part.stop - part.start + 1, part.once),
        )
        if level and points <= part.stop - part.start + 1
    )
    promised = spending.epsilon is None or Fraction(claim["epsilon"]) <= spending.epsilon
    return promised and all(level <= proved.get(window, 0) for window, level in charged.items())


def _sums(levels: Iterable[tuple[Any, Fraction]]) -> dict[Any, Fraction]:
    """Return levels by window: first and last time point, and how many neighbours pay once."""
    sums: dict[Any, Fraction] = {}
    for window, level in levels:
        sums[window] = sums.get(window, Fraction(0)) + level
    return sums


def check_stored_certificates(log: Log, datasets: Iterable[str]) -> int:
    """Check the certificates stored with debits; return how many there are.

    Cost: that of the checker for each, seconds for long ones.

    Raises:
        StorageError: naming the first debit that its certificate does not prove.
    """
    count = 0
    for name in datasets:
        steps = log.steps(name)
        beliefs = initial_state(next(steps)).beliefs
        for entry in steps:
            text = entry.content.get("certificate") if entry.kind == "debit" else None
            if text is None:
                continue
            with reading(entry):
                spending = Spending.from_body(entry.content["spending"])
            try:
                check_debit_certificate(text, spending, beliefs)
            except QuiltworkError as error:
                raise damaged(entry, f"its certificate does not prove it. {error}") from error
            count += 1
    return count
