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
        from quiltwork.errors import QuiltworkError

        made = [debit.request.get("query") for debit in ledger.history(dataset)]
        left = self.plan.remaining([query for query in made if isinstance(query, dict)])
        if not left:
            return "All releases of the plan are made."
        try:
            spendings = (line.spending(self.plan.length) for line in left)
            fits = ledger.accountant(dataset).fits(*spendings)
        except QuiltworkError:
            fits = False
        many = f"{len(left):,} of the {len(self.plan.lines):,} releases of the plan"
        if len(left) == 1:
            verdict = "fits" if fits else "does not fit any more: plan again"
            return f"{many} remains, and {verdict}."
        return f"{many} remain, and {'fit' if fits else 'do not fit any more: plan again'}."


def read_plan(path: str) -> StoredRelease:
    """Read a plan that `ledger plan -o` wrote."""
    from quiltwork.budget.accounting.stored_plan import StoredPlan

    return StoredRelease(StoredPlan.from_json(files.read_bytes(path)))
