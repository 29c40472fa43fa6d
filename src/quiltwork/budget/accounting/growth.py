"""Growing series: the releases made so far are priced again for a longer series.

A release from the first time points may reveal more about a later one than about any of them:
numbers that oscillate agree again after some steps, and under a hidden chain pairs of moments come
into play that were never compared. So an account grows only as far as its budget allows. Under
first-order chains with observed states the true leakage does not rise; there, a total that rises by
rounding alone is no reason to refuse.

Theorem: docs/theory/sweep.md (growing)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias, TypeVar, cast

from quiltwork.beliefs import Belief, ChainBox, CyclicChain, DatedChain, MarkovChain
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.gaussian_account import GaussianAccount
from quiltwork.budget.accounting.headroom import largest_number
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError

AnyAccount: TypeAlias = Account | GaussianAccount
A = TypeVar("A", bound=AnyAccount)

_ROUNDING = Fraction(1, 10**9)
_FREE_TO_GROW = (MarkovChain, CyclicChain, DatedChain, ChainBox)
"""First-order chains: given one time point, later ones are independent of those before it."""


def check_length(beliefs: Sequence[Belief], length: int, new: int) -> None:
    """Refuse to extend a series of `length` time points to `new` ones.

    Raises:
        InvalidInputError: if the new length is shorter.
        UnsupportedError: for beliefs about fixed rows.
    """
    if new < length:
        raise InvalidInputError(f"The series has {length} time points and cannot shrink to {new}.")
    if any(belief.length is not None for belief in beliefs):
        raise UnsupportedError(
            "These beliefs are about fixed rows, so the series cannot grow; open a new account "
            "with beliefs about all rows."
        )


def of_length(secrets: Secrets, length: int, episode: int) -> Secrets:
    """Return the same secrets for a series of another length."""
    beliefs = tuple(bound.belief for bound in secrets.bounds)
    return Secrets.read(beliefs, length, episode, secrets.pairs)


def extended(
    account: A,
    length: int,
    episode: int,
    limit_exceeded: Callable[[A], str | None],
    format_cost: Callable[[A], str],
    source: str = "",
) -> A:
    """Return the account for a longer series, if its releases still fit there.

    Args:
        account: of the series as it is.
        length: the new number of time points.
        episode: how many time points in a row are one secret.
        limit_exceeded: names the limit that a longer account exceeds; None if it exceeds none.
        format_cost: writes what an account spends, for the message.
        source: names the dataset in the message: " from 'meters'".

    Raises:
        BudgetExceeded: if they do not fit; the message names the longest length that does.
        InvalidInputError: if the new length is shorter.
        UnsupportedError: for beliefs about fixed rows, and where caps hold for one length only.
    """
    present = account.secrets.length
    check_length([bound.belief for bound in account.secrets.bounds], present, length)
    if length == present:
        return account
    by_length: dict[int, A] = {}

    def longer(points: int) -> A:
        if points not in by_length:
            secrets = of_length(account.secrets, points, episode)
            by_length[points] = cast(A, account.with_secrets(secrets))
        return by_length[points]

    limit = limit_exceeded(longer(length))
    if limit is None:
        return longer(length)
    extra = largest_number(
        lambda more: limit_exceeded(longer(present + more)) is None,
        length - 1 - present,
    )
    fits = "not even one more time point fits"
    if extra:
        fits = f"the longest series that fits has {present + extra:,} time points"
    raise BudgetExceeded(
        f"In a series of {length:,} time points what was released{source} would cost "
        f"{format_cost(longer(length))} instead of {format_cost(account)}, above {limit}; {fits}. "
        "Nothing was changed. Under this belief a release may reveal more about later time points "
        "than about its own; what is created with its final length is priced for that length from "
        "the beginning."
    )


def fits_when_longer(before: AnyAccount, after: AnyAccount, limit: Fraction) -> bool:
    """Whether the releases of an account still cost at most `limit` in a longer series."""
    if after.fits(limit):
        return True
    # Pairs: a new time point may carry information between pairs that are not kept apart.
    true_leakage_is_constant = before.secrets.pairs is None and all(
        isinstance(bound.belief, _FREE_TO_GROW) for bound in before.secrets.bounds
    )
    return (
        true_leakage_is_constant
        and before.fits(limit)
        and after.spent <= before.spent * (1 + _ROUNDING)
    )
