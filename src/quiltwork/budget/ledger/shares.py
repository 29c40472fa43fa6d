"""Several analysts on one budget: caps and reserved shares.

The budget bounds what all analysts learn together, so it holds for their collusion. Shares divide
it. What an analyst is *charged* is by how much her debits raised the joint total when they were
granted, so that the charges of all add up to the total. A reserved share is what others must leave:
a debit for X is granted only if

    total after it + Σ_{A ≠ X} max(0, reserved_A − charged_A) ≤ budget,

and then A can always be charged up to her reserved share. For (ε, δ) total and budget are shares of
the caps, of which the budget is 1. A cap bounds both what an analyst is
charged and what her own answers, without those of the others, can tell.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from quiltwork.budget.ledger.claims import Claim
from quiltwork.budget.ledger.records import Share
from quiltwork.errors import BudgetExceeded, InvalidInputError


def unused_by_others(
    shares: Mapping[str, Share], charged: Mapping[str, Fraction], analyst: str | None
) -> Fraction:
    """Return what is reserved for analysts other than this one and not yet used by them.

    >>> unused_by_others({"ana": Share(reserved=Fraction(1, 2))}, {"ana": Fraction(1, 8)}, "ben")
    Fraction(3, 8)
    """
    return sum(
        (
            max(Fraction(0), share.reserved - charged.get(name, Fraction(0)))
            for name, share in shares.items()
            if name != analyst
        ),
        Fraction(0),
    )


def check_share(
    analyst: str,
    share: Share,
    shares: Mapping[str, Share],
    charged: Mapping[str, Fraction],
    claim: Claim,
    spent: Fraction,
) -> None:
    """Refuse a share that could not be kept.

    Raises:
        InvalidInputError: if it reserves more than its own cap, or for (ε, δ) is more than all.
        BudgetExceeded: if it reserves more than is left beside what is spent and reserved.
    """
    if claim.delta and max(share.cap or 0, share.reserved) > 1:
        raise InvalidInputError(
            "With δ a cap or a reserved part is a share of the squares that a time point may "
            "spend, from 0 to 1: give .25 for a quarter of them."
        )
    if share.cap is not None and share.reserved > share.cap:
        raise InvalidInputError(
            f"{claim.shown(share.reserved)} would be reserved for {analyst!r}, who may use at "
            f"most {claim.shown(share.cap, up=False)}; reserve less or raise the cap."
        )
    own = max(Fraction(0), share.reserved - charged.get(analyst, Fraction(0)))
    free = claim.limit - spent - unused_by_others(shares, charged, analyst)
    if own > free:
        raise BudgetExceeded(
            f"{claim.shown(own)} more would be reserved for {analyst!r}, but only "
            f"{claim.shown(free, up=False)} is neither spent nor reserved. Nothing was changed."
        )


class NotAllottedError(InvalidInputError):
    """A debit for nobody, or for somebody without a share, where others have caps."""


def check_named(dataset: str, shares: Mapping[str, Share], analyst: str | None) -> None:
    """Refuse a request that would get around a cap, by no name or by a new one.

    It names nobody else.

    Raises:
        NotAllottedError: if somebody has a cap, and this analyst has no share.
    """
    if analyst not in shares and any(share.cap is not None for share in shares.values()):
        problem = (
            "say for whom this is, with analyst="
            if analyst is None
            else f"{analyst!r} has no share, so let the owner allot one"
        )
        raise NotAllottedError(
            f"The budget of {dataset!r} is shared out among analysts with caps: {problem}. "
            "Nothing was recorded."
        )


def refuse_reserved(dataset: str, kept: Fraction, after: Fraction, claim: Claim) -> None:
    """Refuse a debit that would use what is reserved for others.

    Raises:
        BudgetExceeded: if it does.
    """
    if after + kept > claim.limit:
        raise BudgetExceeded(
            f"This would raise the total of {dataset!r} to {claim.shown(after)}, and "
            f"{claim.shown(kept)} of {claim.whole} is reserved for other "
            "analysts. Nothing was recorded."
        )


def refuse_above_cap(analyst: str, cap: Fraction, spent: Fraction, claim: Claim) -> None:
    """Refuse a debit that takes an analyst above the cap, by charge or by what she learns alone.

    Raises:
        BudgetExceeded: if it does.
    """
    if spent > cap:
        raise BudgetExceeded(
            f"This would take {analyst!r} to {claim.shown(spent)}, above the cap of "
            f"{claim.shown(cap, up=False)} for this analyst. Nothing was recorded."
        )
