"""`max_m`: how many colluding providers a table withstands, who breaks it next, and what mends it.

By Observation 2.1 m-privacy only gets harder as m grows, so the largest m is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable

from quiltwork.errors import UnsupportedError
from quiltwork.exact import integer
from quiltwork.tables.constraints.constraint import Conjunction, Constraint, as_constraint
from quiltwork.tables.constraints.sizes import KAnonymity
from quiltwork.tables.group import SparseCounts, count_groups
from quiltwork.tables.table import Table, read_table
from quiltwork.tables.verification import LIMIT, Verdict, verify_counts


class MaxM(int):
    """The largest coalition size a table withstands; an integer with the reasons.

    −1 means that not even a recipient who is no provider is withstood.

    Attributes:
        breach: the verdict at one more provider, with coalition, group and what is left; None if
            every possible coalition is withstood.
        mending_k: the largest k with which the table withstands one more provider, if lowering k
            alone does that.
    """

    breach: Verdict | None
    mending_k: int | None

    def __new__(cls, value: int, breach: Verdict | None, mending_k: int | None) -> MaxM:
        """Make the integer and keep the reasons."""
        number = super().__new__(cls, value)
        number.breach = breach
        number.mending_k = mending_k
        return number

    def explain(self) -> str:
        """Say how many are withstood, who breaks it, and which k would mend it."""
        if self.breach is None:
            most = f"{int(self)} provider{'' if self == 1 else 's'}"
            return f"Safe against every coalition (up to {most})."
        safe = f"Safe against coalitions of at most {int(self)}."
        if self <= 0:
            safe = f"{'Safe only' if self == 0 else 'Not safe even'} against outsiders."
        asked = f"withstand {self.breach.m}" if self.breach.m else "be safe against outsiders"
        mend = ""
        if self.mending_k is not None:
            mend = f" With k = {self.mending_k} it would {asked}."
        elif "-anonymity" in self.breach.constraint:
            mend = f" No smaller k would make it {asked}."
        return f"{safe} At m = {self.breach.m}: {self.breach.explain()}{mend}"


def max_m(table: Table, constraint: Constraint | Callable[..., bool], limit: int = LIMIT) -> MaxM:
    """Return the largest m for which the table is m-private, as an integer that can explain itself.

    Verifies O(log n) times, exactly. A group that cannot be settled within the limit, or a
    constraint with too many sets to try, counts as breached.

    Raises:
        InvalidInputError: if the constraint is none.
        UnsupportedError: if not even m = 0 can be decided.

    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "hospital": ["A", "A", "B", "C"], "age": ["20..30"] * 4, "ill": ["flu"] * 4})
    >>> safe = max_m(Table(frame, "hospital", ["age"], "ill"), KAnonymity(2))
    >>> safe == 1, safe.breach.coalition, safe.mending_k
    (True, ('A', 'B'), 1)

    Theorem: docs/theory/m-privacy.md
    """
    limit = integer(limit, "limit", 1)
    bound = as_constraint(constraint).bind(read_table(table).encoded)
    counts = count_groups(table.encoded, table.groups.labels, table.groups.count)
    verdicts: dict[int, Verdict] = {}

    def withstands(m: int) -> bool:
        verdicts[m] = _verdict(table, counts, bound, m, limit)
        return verdicts[m].private

    most = len(table.encoded.providers) - 1
    if withstands(most):
        return MaxM(most, None, None)
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if withstands(middle) else (low, middle)
    return MaxM(low, verdicts[high], _mending_k(table, counts, bound, high, limit))


def _verdict(
    table: Table, counts: SparseCounts, constraint: Constraint, m: int, limit: int
) -> Verdict:
    try:
        return verify_counts(table, counts, constraint, m, "exact", limit)
    except UnsupportedError:
        if m == 0:
            raise
        return Verdict(False, (), (), 0, m, "exact", str(constraint), settled=False)


def _mending_k(
    table: Table, counts: SparseCounts, constraint: Constraint, m: int, limit: int
) -> int | None:
    """Return the largest k that withstands m; None if another part is breached or no k helps."""
    ks = [part.k for part in constraint.parts if isinstance(part, KAnonymity)]
    others = tuple(part for part in constraint.parts if not isinstance(part, KAnonymity))
    if not ks or not (not others or _verdict(table, counts, Conjunction(others), m, limit).private):
        return None
    low, high = 0, max(ks)
    while high - low > 1:
        middle = (low + high) // 2
        private = _verdict(table, counts, KAnonymity(middle), m, limit).private
        low, high = (middle, high) if private else (low, middle)
    return low or None
