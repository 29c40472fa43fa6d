"""Shares: caps and reserved parts that divide one budget among several analysts.

The budget bounds what all analysts learn together, so it covers their collusion. What an analyst is
*charged* is by how much her debits raised the joint total when they were granted, so the charges of
all add up to the total. A reserved part is what others must leave: a debit for X is granted only if

    total after it + Σ_{A ≠ X} max(0, reserved_A − charged_A) ≤ budget,

and then A can always be charged up to her reserved part. Under (ε, δ) totals and budgets are shares
of the caps, and the budget is 1. A cap bounds both an analyst's charges and the cost of her own
releases alone.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from quiltwork.budget.ledger.claims import Claim
from quiltwork.budget.ledger.ledger_records import Share
from quiltwork.errors import BudgetExceeded, InvalidInputError


class NotAllottedError(InvalidInputError):
    """A debit for an analyst without a share, or for none, where others have caps."""


def reserved_for_others(
    shares: Mapping[str, Share], charged: Mapping[str, Fraction], analyst: str | None
) -> Fraction:
    """Return what is reserved for other analysts and not yet used by them.

    >>> reserved_for_others({"ana": Share(reserved=Fraction(1, 2))}, {"ana": Fraction(1, 8)}, "ben")
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
    """Refuse a share that could not be honoured.

    Raises:
        InvalidInputError: if it reserves more than its own cap, or the cap exceeds the budget (for
            (ε, δ): 1).
        BudgetExceeded: if it reserves more than is neither spent nor reserved.
    """
    text = claim.format_amount
    if claim.delta and max(share.cap or 0, share.reserved) > 1:
        raise InvalidInputError(
            "With δ a cap or a reserved part is a share of the squares that a time point may "
            "spend, from 0 to 1: give .25 for a quarter of them."
        )
    if share.cap is not None and share.cap > claim.limit:
        raise InvalidInputError(
            f"A cap of {text(share.cap, up=False)} is above the budget of "
            f"{text(claim.limit, up=False)} and would limit nothing: give a smaller one, or none."
        )
    if share.cap is not None and share.reserved > share.cap:
        raise InvalidInputError(
            f"{text(share.reserved)} would be reserved for {analyst!r}, who may use at "
            f"most {text(share.cap, up=False)}; reserve less or raise the cap."
        )
    needed = max(Fraction(0), share.reserved - charged.get(analyst, Fraction(0)))
    free = claim.limit - spent - reserved_for_others(shares, charged, analyst)
    if needed > free:
        raise BudgetExceeded(
            f"{text(needed)} more would be reserved for {analyst!r}, but only "
            f"{text(free, up=False)} is neither spent nor reserved. Nothing was changed."
        )


def check_named(dataset: str, shares: Mapping[str, Share], analyst: str | None) -> None:
    """Refuse a request that would evade a cap by giving no analyst, or a new name.

    The message names no other analyst.

    Raises:
        NotAllottedError: if anybody has a cap and this analyst has no share.
    """
    if analyst not in shares and any(share.cap is not None for share in shares.values()):
        remedy = (
            "say for whom this is, with analyst="
            if analyst is None
            else f"{analyst!r} has no share, so let the owner allot one"
        )
        raise NotAllottedError(
            f"The budget of {dataset!r} is shared out among analysts with caps: {remedy}. "
            "Nothing was recorded."
        )


def refuse_reserved(dataset: str, reserved: Fraction, after: Fraction, claim: Claim) -> None:
    """Refuse a debit after which others could not use what is reserved for them.

    Raises:
        BudgetExceeded: if the total `after` it and the reserved parts exceed the limit.
    """
    if after + reserved > claim.limit:
        raise BudgetExceeded(
            f"This would raise the total of {dataset!r} to {claim.format_amount(after)}, and "
            f"{claim.format_amount(reserved)} of {claim.limit_text} is reserved for other "
            "analysts. Nothing was recorded."
        )


def refuse_above_cap(analyst: str, cap: Fraction, spent: Fraction, claim: Claim) -> None:
    """Refuse a debit that takes an analyst above the cap.

    Raises:
        BudgetExceeded: if what the analyst would have `spent` exceeds the cap.
    """
    if spent > cap:
        raise BudgetExceeded(
            f"This would take {analyst!r} to {claim.format_amount(spent)}, above the cap of "
            f"{claim.format_amount(cap, up=False)} for this analyst. Nothing was recorded."
        )
