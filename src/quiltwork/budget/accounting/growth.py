"""A series that grows: what was released from its beginning is priced again, as a release is.

A release from the first time points may tell more about a later one than about any of them: numbers
that swing agree again after some steps, and a state that shows only a part of what goes on may
depend on pairs of moments that were never compared. So an account grows only as far as its budget
allows. For first-order chains whose states are shown as they are what is true does not rise; there
a claim that rises by rounding alone is no reason to refuse.

Theorem: docs/theory/sweep.md (growing)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from quiltwork.beliefs import Belief, ChainBox, CyclicChain, DatedChain, MarkovChain
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.gaussian_account import GaussianAccount
from quiltwork.budget.accounting.limits import largest_number
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.errors import InvalidInputError, UnsupportedError

AnyAccount: TypeAlias = Account | GaussianAccount
_ROUNDING = Fraction(1, 10**9)
_GROWS_FREELY = (MarkovChain, CyclicChain, DatedChain, ChainBox)
"""First-order chains: given one time point, later ones tell nothing of those before it."""


def check_growth(beliefs: Sequence[Belief], length: int, new: int) -> None:
    """Refuse to let a series of `length` time points grow to `new` ones.

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


def grown(secrets: Secrets, length: int, episode: int) -> Secrets:
    """The secrets of a series of another length, where `episode` time points are one secret."""
    beliefs = tuple(bound.belief for bound in secrets.bounds)
    return Secrets.read(beliefs, length, episode, secrets.pairs)


def growth_fits(before: AnyAccount, after: AnyAccount, limit: Fraction) -> bool:
    """Whether the releases of an account still cost at most `limit` in a longer series."""
    if after.fits(limit):
        return True
    beliefs = [bound.belief for bound in before.secrets.bounds]
    free = before.secrets.pairs is None  # a new point may pass on what is told of other pairs
    free = free and all(isinstance(belief, _GROWS_FREELY) for belief in beliefs)
    return free and before.fits(limit) and after.spent <= before.spent * (1 + _ROUNDING)


def longest_length(fits: Callable[[int], bool], length: int, most: int) -> int:
    """The longest of the lengths length..most that fits, where `length` does. O(log) questions."""
    return length + largest_number(lambda more: fits(length + more), most - length)


def refusal(of: str, costs: tuple[str, str], limit: str, lengths: tuple[int, int, int]) -> str:
    """Say why a series cannot grow: what releases `of` it cost now and would cost, and the limit.

    `lengths` are the present one, the one asked for, and the longest that fits.
    """
    present, asked, longest = lengths
    now, then = costs
    fits = (
        f"the longest series that fits has {longest:,} time points"
        if longest > present
        else "not even one more time point fits"
    )
    return (
        f"In a series of {asked:,} time points what was released{of} would cost {then} instead "
        f"of {now}, above {limit}; {fits}. Nothing was changed. Under this belief a release "
        "may reveal more about later time points than about its own; what is created with its "
        "final length is priced for that length from the beginning."
    )
