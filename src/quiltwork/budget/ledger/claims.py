"""What a dataset promises, fixed when it is begun: ε, or (ε, δ) with caps per time point.

A claim of ε adds up costs, and a budget, a share or a charge is a part of ε. For (ε, δ) what was
reached is no filter, so the claim is proven whole from the first debit, and what is shared out are
parts of the caps: numbers from 0 to 1. Caps are computed once and recorded, because another version
of the f-sweep may compute a hair's breadth more or less.

Theorem: docs/theory/ledger.md, docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.accountant import Accountant
from quiltwork.budget.accounting.caps import Cap
from quiltwork.budget.accounting.gaussian_account import (
    ALL,
    GaussianAccount,
    Room,
    noise_that_fits,
)
from quiltwork.budget.accounting.gaussian_accountant import GaussianAccountant
from quiltwork.budget.accounting.growth import AnyAccount as AnyAccount
from quiltwork.budget.accounting.limits import Grants, what_fits
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger.amounts import amount
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    parse_stored_fraction,
    proper_fraction,
    to_fraction,
)

AnyAccountant: TypeAlias = Accountant | GaussianAccountant

_CLOSE = 1.01
"""Caps are found to less than that."""


@dataclass(frozen=True)
class Claim:
    """ε, and for (ε, δ) the room that caps leave; None for a pure ε."""

    budget: Fraction
    room: Room | None = None

    @classmethod
    def fixed(cls, secrets: Secrets, budget: Number, delta: Number, pure: Number) -> Claim:
        """Fix a claim; with a δ its caps are computed, which takes some f-sweeps.

        Raises:
            InvalidInputError: for arguments that make no sense, with the offending value.
            UnsupportedError: for beliefs that Gaussian noise is not accounted for under.
        """
        limit, share = amount(budget, "budget"), to_fraction(pure, "pure")
        if share < 0:
            raise InvalidInputError(f"pure must not be negative, not {pure!r}.")
        if not to_fraction(delta, "delta"):
            if share:
                raise InvalidInputError("pure is a share for pure releases; it goes with delta.")
            return cls(limit)
        if secrets.pairs is not None:
            raise UnsupportedError("An account with delta keeps all values apart; leave pairs out.")
        return cls(limit, Room.of(secrets, limit, proper_fraction(delta, "delta"), share))

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Claim:
        """Read what `to_body` wrote.

        Raises:
            KeyError, TypeError, ValueError: if it is something else.
        """
        budget = parse_stored_fraction(body["budget"], "budget")
        if "delta" not in body:
            return cls(budget)
        delta, pure = (parse_stored_fraction(body[name], name) for name in ("delta", "pure"))
        return cls(budget, Room(budget, delta, pure, _read_cap(body["cap"])))

    def to_body(self) -> dict[str, Any]:
        """Write it as JSON values."""
        body: dict[str, Any] = {"budget": str(self.budget)}
        if self.room is None or self.room.cap is None:
            return body
        shares = {"delta": str(self.room.delta), "pure": str(self.room.pure)}
        return {**body, **shares, "cap": asdict(self.room.cap)}

    @property
    def delta(self) -> Fraction:
        """The chance that is left for more; 0 for a pure ε."""
        return Fraction(0) if self.room is None else self.room.delta

    @property
    def limit(self) -> Fraction:
        """What debits may spend together: the budget, or all of the caps."""
        return self.budget if self.room is None else ALL

    def account(self, secrets: Secrets) -> AnyAccount:
        """An account that keeps it, of nothing yet."""
        return Account(secrets) if self.room is None else GaussianAccount.empty(secrets, self.room)

    def accountant(self, account: AnyAccount, episode: int) -> AnyAccountant:
        """An accountant of an account that keeps it."""
        if isinstance(account, GaussianAccount):
            return GaussianAccountant.of(account, episode)
        return Accountant.of(account, self.budget, episode)

    def shown(self, amount: Fraction, *, up: bool = True) -> str:
        """What is shared out, as text: a part of ε, or a share of the caps in percent."""
        value = float_up(amount) if up else max(0.0, float_down(amount))
        return f"{value:.9g}" if self.room is None else f"{100 * value:.6g} %"

    @property
    def whole(self) -> str:
        """All that debits may spend, as text."""
        shown = f"{float_down(self.budget):.9g}"
        if self.room is None:
            return f"the budget of {shown}"
        return f"the squares that ε = {shown} and δ = {float(self.delta):g} allow a time point"

    def what_fits(
        self, account: AnyAccount, refused: Sequence[Spending], grants: Grants | None = None
    ) -> str:
        """Say what would fit in place of what was refused; `grants` tells what else refuses."""
        if isinstance(account, GaussianAccount):
            return noise_that_fits(account, refused, grants)
        return what_fits(account, self.budget, refused, grants)

    def check(self, name: str, secrets: Secrets) -> None:
        """Compute the caps again; a recorded one may be above them by less than they are exact.

        Raises:
            StorageError: if it is above by more.
        """
        if self.room is None or self.room.cap is None:
            return
        again = Room.of(secrets, self.budget, self.room.delta, self.room.pure).cap
        recorded = self.room.cap
        higher = again is None or recorded.level > again.level * _CLOSE
        if higher or (recorded.unlimited and again is not None and not again.unlimited):
            raise StorageError(
                f"The cap recorded for dataset {name!r} is more than its (ε, δ) allow under its "
                "beliefs, by this version of the f-sweep. Nothing more should be granted from it: "
                "retire it."
            )


def _read_cap(body: Mapping[str, Any]) -> Cap:
    level, alone = float(body["level"]), float(body["alone"])
    if not (0 < level <= alone or level == alone) or not isinstance(body["unlimited"], bool):
        raise ValueError(body)
    return Cap(level, alone, str(body["method"]), body["unlimited"])
