"""`verify_m_privacy`: does a table withstand every coalition of m of its providers? `max_m`: how
many does it withstand, who breaks it next, and what mends it?

By Observation 2.1 m-privacy only gets harder as m grows, so `max_m` finds it by halving, for each
group that breaches what all before it withstand.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import choice
from quiltwork.errors import UnsupportedError
from quiltwork.exact import integer
from quiltwork.tables.constraints.constraint import Conjunction, Constraint, as_constraint, read_m
from quiltwork.tables.constraints.k_anonymity import KAnonymity
from quiltwork.tables.group import SparseCounts, count_groups
from quiltwork.tables.table import Table, read_table
from quiltwork.tables.verification.counted_groups import (
    FirstBreach,
    Names,
    first_breach,
    verify_counts,
)
from quiltwork.tables.verification.group_search import LIMIT, AnyMethod
from quiltwork.tables.verification.verdict import Verdict


def verify_m_privacy(
    table: Table,
    constraint: Constraint | Callable[..., bool],
    m: int,
    method: AnyMethod = "exact",
    limit: int = LIMIT,
) -> Verdict:
    """Verify a table against every coalition of at most m providers (Definition 2.1).

    Args:
        table: groups are the rows with equal quasi-identifiers.
        constraint: for example `KAnonymity(3) & LDiversity(2)`, or your own function.
        m: how many providers may collude; 0 asks about outsiders. In a group of n providers at
            most n − 1 of them collude.
        method: "exact", which searches values instead of coalitions where that is smaller and
            takes any constraint; or the paper's "direct", "top-down", "bottom-up", "binary" and
            "adaptive", for EG-monotonic constraints.
        limit: checks within one group after which a search gives up; the verdict is then not
            private, with `settled` False.

    Raises:
        InvalidInputError: for a negative m, an unknown method or something that is no constraint.
        UnsupportedError: for a paper's method with a constraint that is not EG monotonic, and for
            such a constraint with too many sets to try.

    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "hospital": ["A", "A", "B"], "age": ["20..30"] * 3, "ill": ["flu", "cold", "flu"]})
    >>> table = Table(frame, "hospital", ["age"], "ill")
    >>> from quiltwork.tables.constraints import KAnonymity
    >>> print(verify_m_privacy(table, KAnonymity(2), m=1).explain())
    Not private: A breaches 2-anonymity in the group (20..30). Left there without their own:
    1 (flu: 1).

    Theorem: docs/theory/m-privacy.md
    """
    size, asked = read_m(m), as_constraint(constraint)
    choice(method, get_args(AnyMethod), "method")
    if method != "exact" and not asked.eg_monotonic:
        loose = next(part for part in asked.parts if not part.eg_monotonic)
        raise UnsupportedError(
            f"{method} prunes coalitions, which is sound only if the constraint is EG monotonic; "
            f"{loose} is not. Use method='exact'."
        )
    limit = integer(limit, "limit", 1)
    if read_table(table).kind == "spark":
        from quiltwork.tables.spark.workers import verify_spark

        if method != "exact":
            raise UnsupportedError(
                f"Spark tables are verified by method='exact' only, not {method!r}."
            )
        return verify_spark(table, asked, size)
    counts = count_groups(table.encoded, table.groups.labels, table.groups.count)
    names, bound = (table.encoded, table.group_values), asked.bind(table.encoded)
    return verify_counts(names, counts, bound, size, method, limit)


class MaxM(int):
    """The largest coalition size a table withstands; an integer with the reasons.

    −1 means that not even a recipient who is no provider is withstood.

    Attributes:
        breach: the verdict at one more provider, with coalition, group and what is left; None if
            every possible coalition is withstood.
        largest_passing_k: the largest k with which the table withstands one more provider, if
            lowering k alone does that.
    """

    breach: Verdict | None
    largest_passing_k: int | None

    def __new__(cls, value: int, breach: Verdict | None, largest_passing_k: int | None) -> MaxM:
        """Make the integer and keep the reasons."""
        number = super().__new__(cls, value)
        number.breach = breach
        number.largest_passing_k = largest_passing_k
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
        if not self.breach.settled:
            safe = f"Proven {safe[0].lower()}{safe[1:]} More may be withstood."
        elif self.largest_passing_k is not None:
            mend = f" With k = {self.largest_passing_k} it would {asked}."
        elif "-anonymity" in self.breach.constraint and "-anonymity" not in self.breach.broken:
            mend = f" No smaller k would make it {asked}."
        return f"{safe} At m = {self.breach.m}: {self.breach.explain()}{mend}"


def max_m(table: Table, constraint: Constraint | Callable[..., bool], limit: int = LIMIT) -> MaxM:
    """Return the largest m for which the table is m-private, as an integer that can explain itself.

    Verifies every group about once, exactly, and the weakest ones O(log n) times. A group that
    cannot be settled within the limit, or a constraint with too many sets to try, counts as
    breached. All searches together take about 1.5 times as many steps as `limit`, each at most a
    third of those that are left: about a second. Steps are counted, not timed, so that the same
    table has the same answer. It may then be too small, and its `breach` is not settled.

    Raises:
        InvalidInputError: if the constraint is none.
        UnsupportedError: if not even m = 0 can be decided.

    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "hospital": ["A", "A", "B", "C"], "age": ["20..30"] * 4, "ill": ["flu"] * 4})
    >>> safe = max_m(Table(frame, "hospital", ["age"], "ill"), KAnonymity(2))
    >>> safe == 1, safe.breach.coalition, safe.largest_passing_k
    (True, ('A', 'B'), 1)

    Theorem: docs/theory/m-privacy.md
    """
    return max_m_from(table, constraint, integer(limit, "limit", 1), -1)


def max_m_from(
    table: Table, constraint: Constraint | Callable[..., bool], limit: int, known: int
) -> MaxM:
    """Return `max_m` of a table that is known to withstand `known`."""
    bound = as_constraint(constraint).bind(read_table(table).encoded)
    counts = count_groups(table.encoded, table.groups.labels, table.groups.count)
    names = table.encoded, table.group_values
    safe, breach, start = len(table.encoded.providers) - 1, None, 0
    left = 3 * limit // 2

    def next_breach(groups: NDArray[np.int64], m: int) -> FirstBreach:
        nonlocal left
        found = first_breach(names, counts, groups, bound, m, "exact", limit, left)
        left -= found.searched
        if found.refused is not None and m == 0:
            raise found.refused
        return found

    while safe > known and start < counts.groups:
        found = next_breach(np.arange(start, counts.groups), safe)
        if found.group < 0:
            break
        # Nothing is asked again: all before this group withstand more, and it what is found now.
        start, alone = found.group + 1, np.array([found.group])
        low, high, breach = known, safe, found.verdict
        while high - low > 1:
            middle = (low + high) // 2
            found = next_breach(alone, middle)
            if found.group < 0:
                low = middle
            else:
                high, breach = middle, found.verdict
        safe = low
    mend = None
    if breach is not None and breach.settled:
        mend = _mending_k(names, counts, bound, breach.m, max(left, limit // 4))
    return MaxM(safe, breach, mend)


def _mending_k(
    names: Names, counts: SparseCounts, constraint: Constraint, m: int, limit: int
) -> int | None:
    """Return the largest k that withstands m; None if another part is breached or no k helps."""
    ks = [part.records_asked for part in constraint.parts if part.records_alone]
    others = tuple(part for part in constraint.parts if not part.records_alone)
    every = np.arange(counts.groups)

    def private(asked: Constraint) -> bool:
        return first_breach(names, counts, every, asked, m, "exact", limit, limit).group < 0

    if not ks or not (not others or private(Conjunction(others))):
        return None
    low, high = 0, max(ks)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if private(KAnonymity(middle)) else (low, middle)
    return low or None
