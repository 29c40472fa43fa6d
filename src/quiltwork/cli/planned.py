"""A release of a stored plan, as `quiltwork release --plan` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork import files

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief
    from quiltwork.budget import Ledger
    from quiltwork.budget.accounting.stored_plan import PlannedLine, StoredPlan
    from quiltwork.budget.ledger.ledger_accountant import LedgerAccountant
    from quiltwork.queries import Query

_MOST_PRICED = 60
"""Lines that are priced one by one, to name those that do not fit."""


@dataclass(frozen=True)
class StoredRelease:
    """A stored plan, one release of which is to be made."""

    plan: StoredPlan

    def carried_out(
        self,
        runs: list[tuple[int, int]] | None,
        name: str | None,
        beliefs: tuple[Belief, ...],
        length: int,
        debit: dict[str, Any],
    ) -> tuple[Query, Fraction, dict[str, Any]]:
        """Return the query, its epsilon, and the ledger's arguments with the release's key.

        Args:
            runs: the time points that the release is about; None if it is named.
            name: its name in the plan; None if it is chosen by its time points.
            beliefs: those of the dataset.
            length: of the series.
            debit: the ledger's arguments; empty without one.
        """
        line = self.plan.named(name) if name is not None else self.plan.about(runs or ())
        epsilon = line.epsilon(beliefs, length, self.plan.episode, self.plan.pairs)
        return line.query, epsilon, {**debit, "key": debit["key"] or line.name} if debit else debit

    @property
    def noise(self) -> dict[str, Any]:
        """The kind of noise of every release, as arguments."""
        return {"noise": "gaussian", "delta": self.plan.delta} if self.plan.delta else {}

    def left(self, ledger: Ledger, dataset: str) -> str:
        """Return how many releases of the plan remain, and whether they fit the budget."""
        left = self.plan.remaining(ledger.history(dataset))
        if not left:
            return "All releases of the plan are made."
        many = f"{len(left):,} of the {len(self.plan.lines):,} releases of the plan"
        remain = f"{many} remain{'s' if len(left) == 1 else ''}"
        excess = self._excess(ledger.accountant(dataset), left)
        if excess is None:
            return f"{remain}, and do not all fit any more: plan them again, with --from."
        if not excess:
            return f"{remain}, and fit{'s' if len(left) == 1 else ''}."
        names = ", ".join(repr(line.name) for line in excess)
        others = ", and the others fit" if len(excess) < len(left) else ""
        return (
            f"{remain}; {names} {'does' if len(excess) == 1 else 'do'} not fit any more{others}. "
            "Plan what remains again: quiltwork ledger plan, with --from."
        )

    def _excess(
        self, account: LedgerAccountant, left: Sequence[PlannedLine]
    ) -> list[PlannedLine] | None:
        """Return the lines that do not fit beside those before them; None if they are too many.

        Cost: one pricing if all fit, else one per line.
        """
        from quiltwork.errors import QuiltworkError

        def fits(lines: Sequence[PlannedLine]) -> bool:
            try:
                return bool(account.fits(*(line.spending(self.plan.length) for line in lines)))
            except QuiltworkError:
                return False

        if fits(left):
            return []
        if len(left) > _MOST_PRICED:
            return None
        fitting: list[PlannedLine] = []
        excess = []
        for line in left:
            if fits([*fitting, line]):
                fitting.append(line)
            else:
                excess.append(line)
        return excess


def read_plan(path: str) -> StoredRelease:
    """Read a plan that `ledger plan -o` wrote."""
    from quiltwork.budget.accounting.stored_plan import StoredPlan

    return StoredRelease(StoredPlan.from_json(files.read_bytes(path)))
