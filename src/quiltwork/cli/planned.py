"""A release of a stored plan, as `quiltwork release --plan` makes it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork import files

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief
    from quiltwork.budget import Ledger
    from quiltwork.budget.accounting.stored_plan import StoredPlan
    from quiltwork.queries import Query


@dataclass(frozen=True)
class CarriedPlan:
    """A plan that was read, one release of which is to be made."""

    plan: StoredPlan

    def carried_out(
        self,
        runs: list[tuple[int, int]] | None,
        name: str | None,
        beliefs: tuple[Belief, ...],
        length: int,
        debit: dict[str, Any],
    ) -> tuple[Query, Fraction, dict[str, Any]]:
        """Return the query, its epsilon, and who pays under which key.

        The release is about these runs of time points, or has this name.
        """
        line = self.plan.named(name) if name is not None else self.plan.about(runs or ())
        epsilon = line.epsilon(beliefs, length, self.plan.episode, self.plan.pairs)
        return line.query, epsilon, {**debit, "key": debit["key"] or line.name} if debit else debit

    @property
    def noise(self) -> dict[str, Any]:
        """The kind of noise of every release, as arguments."""
        return {"noise": "gaussian", "delta": self.plan.delta} if self.plan.delta else {}

    def left(self, ledger: Ledger, dataset: str) -> str:
        """How many releases of the plan were not made yet, and whether they fit."""
        from quiltwork.errors import QuiltworkError

        queries = [one.request.get("query") for one in ledger.history(dataset)]
        left = self.plan.remaining([one for one in queries if isinstance(one, dict)])
        many = f"{len(left):,} of the {len(self.plan.lines):,} releases of the plan"
        if not left:
            return "All releases of the plan are made."
        try:
            fit = ledger.accountant(dataset).fits(*(one.spending(self.plan.length) for one in left))
        except QuiltworkError:
            fit = False
        if len(left) == 1:
            return f"{many} remains, and {'fits' if fit else 'does not fit any more: plan again'}."
        return f"{many} remain, and {'fit' if fit else 'do not fit any more: plan again'}."


def read_plan(path: str, beliefs: tuple[Belief, ...]) -> CarriedPlan:
    """Read a plan for these beliefs."""
    from quiltwork.budget.accounting.stored_plan import StoredPlan

    plan = StoredPlan.from_json(files.read_bytes(path))
    plan.check(beliefs)
    return CarriedPlan(plan)
