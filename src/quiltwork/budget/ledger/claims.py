"""What a dataset promises, and the bound by which a debit was granted.

A `Claim` is fixed when a dataset is created: a pure ε, or (ε, δ) with caps per time point. Under a
pure ε costs add up, and budgets, shares and charges are amounts of ε. Under (ε, δ) no filter on the
reached profile is sound, so the whole claim holds from the first debit, and what is shared out are
shares of the caps, numbers from 0 to 1. Caps are computed once and recorded, because another
version of the f-sweep may find them slightly larger or smaller.

A `RecordedBound` is kept with every debit: the total as the granting version computed it. A later
correction may raise totals, even above a budget. Then nothing more is granted from the dataset, and
the message names the correction; nobody is accused.

Theorem: docs/theory/ledger.md, docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.accountant import Accountant
from quiltwork.budget.accounting.caps import (
    Cap,
    GaussianBudget,
    cap_of_every_length,
    cap_of_length,
)
from quiltwork.budget.accounting.gaussian_account import (
    ALL,
    GaussianAccount,
    noise_that_fits,
)
from quiltwork.budget.accounting.gaussian_accountant import GaussianAccountant
from quiltwork.budget.accounting.growth import AnyAccount as AnyAccount
from quiltwork.budget.accounting.headroom import Grants, what_fits
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger.requests import parse_amount
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

VERSION = 1
"""Version of the bounds; every correction that raises a total raises it."""
CORRECTIONS: dict[int, str] = {}
"""What each version from 2 on corrected, as a clause: "the bound of … was too low"."""

_CAP_TOLERANCE = 1.01
"""Cap searches of different versions agree to within this factor."""
_ROUNDING = Fraction(1, 10**9)
_ROUNDING_OF_SWEEPS = Fraction(1, 2**26)


@dataclass(frozen=True)
class Claim:
    """The privacy claim of a dataset: a pure ε, or with `gaussian` (ε, δ) and its caps."""

    budget: Fraction
    gaussian: GaussianBudget | None = None

    @classmethod
    def compute(cls, secrets: Secrets, budget: Number, delta: Number, pure: Number) -> Claim:
        """Validate the arguments and fix a claim; with a δ this computes caps by some f-sweeps.

        Raises:
            InvalidInputError: for invalid arguments, with the offending value.
            UnsupportedError: for beliefs without an account of Gaussian noise.
        """
        limit, pure_share = parse_amount(budget, "budget"), to_fraction(pure, "pure")
        if pure_share < 0:
            raise InvalidInputError(f"pure must not be negative, not {pure!r}.")
        if not to_fraction(delta, "delta"):
            if pure_share:
                raise InvalidInputError("pure is a share for pure releases; it goes with delta.")
            return cls(limit)
        if secrets.pairs is not None:
            raise UnsupportedError("An account with delta keeps all values apart; leave pairs out.")
        exact_delta = proper_fraction(delta, "delta")
        return cls(limit, GaussianBudget.compute(secrets, limit, exact_delta, pure_share))

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Claim:
        """Read what `to_body` wrote.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        budget = parse_stored_fraction(body["budget"], "budget")
        if "delta" not in body:
            return cls(budget)
        delta, pure = (parse_stored_fraction(body[name], name) for name in ("delta", "pure"))
        return cls(budget, GaussianBudget(budget, delta, pure, _read_cap(body["cap"])))

    def to_body(self) -> dict[str, Any]:
        """Write the claim as JSON values."""
        body: dict[str, Any] = {"budget": str(self.budget)}
        if self.gaussian is None or self.gaussian.cap is None:
            return body
        parts = {"delta": str(self.gaussian.delta), "pure": str(self.gaussian.pure)}
        return {**body, **parts, "cap": asdict(self.gaussian.cap)}

    @property
    def delta(self) -> Fraction:
        """The probability δ left for exceeding ε; 0 for a pure ε."""
        return Fraction(0) if self.gaussian is None else self.gaussian.delta

    @property
    def limit(self) -> Fraction:
        """The most that all debits may spend: the budget, or 1 for all of the caps."""
        return self.budget if self.gaussian is None else ALL

    def account(self, secrets: Secrets) -> AnyAccount:
        """Return an empty account of the kind that keeps this claim."""
        if self.gaussian is None:
            return Account(secrets)
        return GaussianAccount.empty(secrets, self.gaussian)

    def accountant(self, account: AnyAccount, episode: int) -> AnyAccountant:
        """Return an accountant for an account that keeps this claim."""
        if isinstance(account, GaussianAccount):
            return GaussianAccountant.of(account, episode)
        return Accountant.of(account, self.budget, episode)

    def format_amount(self, amount: Fraction, *, up: bool = True) -> str:
        """Write a cost as text: an amount of ε, or the share of the caps in percent."""
        value = float_up(amount) if up else max(0.0, float_down(amount))
        return f"{value:.9g}" if self.gaussian is None else f"{100 * value:.6g} %"

    @property
    def limit_text(self) -> str:
        """The limit on all debits, as text for messages."""
        epsilon = f"{float_down(self.budget):.9g}"
        if self.gaussian is None:
            return f"the budget of {epsilon}"
        return f"the squares that ε = {epsilon} and δ = {float(self.delta):g} allow a time point"

    def what_fits(
        self, account: AnyAccount, refused: Sequence[Spending], grants: Grants | None = None
    ) -> str:
        """Say which smaller release would fit in place of the refused ones.

        `grants` decides about limits other than the budget, such as an analyst's cap.
        """
        if isinstance(account, GaussianAccount):
            return noise_that_fits(account, refused, grants)
        return what_fits(account, self.budget, refused, grants)

    def check(self, name: str, secrets: Secrets) -> None:
        """Recompute the caps of dataset `name` and compare the recorded ones with them.

        Raises:
            StorageError: if a recorded cap is higher by more than the search tolerance.
        """
        if self.gaussian is None or self.gaussian.cap is None:
            return
        recorded, delta, pure = self.gaussian.cap, self.gaussian.delta, self.gaussian.pure
        compute = cap_of_every_length if recorded.unlimited else cap_of_length
        computed = compute(secrets, self.budget, delta, pure)
        if computed is None or recorded.level > computed.level * _CAP_TOLERANCE:
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


@dataclass(frozen=True)
class RecordedBound:
    """An upper bound on the cost of all releases up to a debit, as computed when it was granted.

    Attributes:
        total: the bound, rounded up; for (ε, δ) a share of the caps.
        by: "levels" if a bound by levels was enough, "priced" if a theorem was evaluated,
            "squares" for caps.
        version: of the bounds that computed it.
    """

    total: float
    by: str
    version: int

    @classmethod
    def of(cls, account: AnyAccount, limit: Fraction) -> RecordedBound:
        """Return the bound that shows that an account is within a limit."""
        total, by = account.bound(limit)
        return cls(float_up(total), by, VERSION)

    def to_body(self) -> dict[str, Any]:
        """Write the bound as JSON values."""
        return {"total": self.total, "by": self.by, "version": self.version}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> RecordedBound:
        """Read what `to_body` wrote.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        return cls(float(body["total"]), str(body["by"]), int(body["version"]))

    def allows(self, account: AnyAccount) -> bool:
        """Whether an account costs no more than this bound, up to rounding."""
        return account.fits(Fraction(self.total) * (1 + _ROUNDING_OF_SWEEPS))


def exceeds_limit(account: AnyAccount, limit: Fraction) -> bool:
    """Whether an account spends more than its limit, by more than rounding can explain."""
    return not account.fits(limit) and account.spent > limit * (1 + _ROUNDING)


def over_budget_message(name: str, spent: Fraction, claim: Claim, granted_by: int) -> str:
    """Explain why dataset `name` now costs more than its budget: which bounds were corrected."""
    corrections = [text for version, text in CORRECTIONS.items() if granted_by < version <= VERSION]
    reason = ""
    if corrections:
        reason = f" Since it was granted by version {granted_by}, {'; '.join(corrections)}."
    return (
        f"What was released from {name!r} costs {claim.format_amount(spent)} by version {VERSION} "
        f"of the bounds, above {claim.limit_text}.{reason} Nothing more is granted from it."
    )
