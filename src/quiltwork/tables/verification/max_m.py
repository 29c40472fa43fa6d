"""`max_m`: the largest number of colluding providers that a table withstands, and why no more.

By Observation 2.1, m-privacy only gets harder as m grows. So the number is found by bisection, for
each group that breaches what all groups before it withstand.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quiltwork.exact import integer
from quiltwork.tables.codes.group import Ints, SparseCounts, count_groups
from quiltwork.tables.constraints.constraint import Conjunction, Constraint, as_constraint
from quiltwork.tables.constraints.k_anonymity import KAnonymity
from quiltwork.tables.table import Table, as_table
from quiltwork.tables.verification.breach_search import LIMIT, Finding
from quiltwork.tables.verification.group_verification import Names, first_breach, verdict_of
from quiltwork.tables.verification.verdict import Verdict


class MaxM(int):
    """The largest coalition size that a table withstands: an integer with its reasons.

    −1 means that not even recipients who are no providers are withstood.

    Attributes:
        breach: the verdict at one more provider, with coalition, group and what is left; None if
            every possible coalition is withstood.
        largest_passing_k: the largest k with which the table withstands one more provider, if
            lowering k alone achieves that.
    """

    breach: Verdict | None
    largest_passing_k: int | None

    def __new__(cls, value: int, breach: Verdict | None, largest_passing_k: int | None) -> MaxM:
        """Create the integer with its reasons."""
        number = super().__new__(cls, value)
        number.breach = breach
        number.largest_passing_k = largest_passing_k
        return number

    def explain(self, asked: int | None = None) -> str:
        """Return in words how many are withstood, who breaks it, and which k would pass.

        The breach at m = `asked` is left out, as it was reported before.
        """
        if self.breach is None:
            size = f"{int(self)} provider{'' if self == 1 else 's'}"
            return f"Safe against every coalition (up to {size})."
        safe = f"Safe against coalitions of at most {int(self)}."
        if self <= 0:
            safe = f"{'Safe only' if self == 0 else 'Not safe even'} against outsiders."
        goal = f"withstand {self.breach.m}" if self.breach.m else "be safe against outsiders"
        remedy = ""
        if not self.breach.settled:
            safe = f"Proven {safe[0].lower()}{safe[1:]} More may be withstood."
        elif self.largest_passing_k is not None:
            remedy = f" With k = {self.largest_passing_k} it would {goal}."
        elif "-anonymity" in self.breach.constraint and "-anonymity" not in self.breach.broken:
            remedy = f" No smaller k would make it {goal}."
        if asked != self.breach.m:
            safe += f" At m = {self.breach.m}: {self.breach.explain()}"
        return f"{safe}{remedy}"

    def body(self) -> dict[str, Any]:
        """Return it as JSON values."""
        breach = self.breach
        return {
            "m": int(self),
            "coalition": [] if breach is None else [str(p) for p in breach.coalition],
            "group": [] if breach is None else [str(v) for v in breach.group],
            "left_size": None if breach is None else breach.left_size,
            "largest_passing_k": self.largest_passing_k,
        }


def max_m(table: Table, constraint: Constraint | Callable[..., bool], limit: int = LIMIT) -> MaxM:
    """Return the largest m for which the table is m-private, as an integer that can explain itself.

    Every group is verified about once, exactly, and the weakest ones O(log n) times. A group that
    cannot be decided within the limit, or a constraint with too many sets to try, counts as
    breached; the result may then be too small, and its `breach` is not settled. All searches
    together take about 1.5 times as many steps as `limit`, each at most a third of the remaining
    ones: about a second. Steps are counted, not timed, so that the same table always has the same
    answer.

    Raises:
        InvalidInputError: if the constraint is invalid.
        UnsupportedError: if not even m = 0 can be decided.

    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "hospital": ["A", "A", "B", "C"], "age": ["20..30"] * 4, "ill": ["flu"] * 4})
    >>> safe = max_m(Table(frame, "hospital", ["age"], "ill"), KAnonymity(2))
    >>> safe == 1, safe.breach.coalition, safe.largest_passing_k
    (True, ('A', 'B'), 1)

    Theorem: docs/theory/m-privacy.md
    """
    return max_m_above(table, constraint, integer(limit, "limit", 1), -1)


def max_m_above(
    table: Table, constraint: Constraint | Callable[..., bool], limit: int, known: int
) -> MaxM:
    """Return `max_m` of a table that is known to withstand `known` colluding providers."""
    bound = as_constraint(constraint).bind(as_table(table).encoded)
    counts = count_groups(table.encoded, table.groups.labels, table.groups.count)
    return max_m_of_counts((table.encoded, table.group_values), counts, bound, limit, known)


def max_m_of_counts(
    names: Names, counts: SparseCounts, bound: Constraint, limit: int, known: int
) -> MaxM:
    """Return `max_m` of counted groups that are known to withstand `known` colluding providers."""
    safe, weakest, start = len(names[0].providers) - 1, None, 0
    # A budget over all groups, so that many hard groups cannot take limit checks each.
    remaining = 3 * limit // 2

    def next_breach(groups: Ints, m: int) -> Finding:
        nonlocal remaining
        finding = first_breach(counts, groups, bound, m, "exact", limit, remaining)
        remaining -= finding.cost
        if finding.refused is not None and m == 0:
            raise finding.refused
        return finding

    while safe > known and start < counts.groups:
        finding = next_breach(np.arange(start, counts.groups), safe)
        if finding.group < 0:
            break
        # Earlier groups withstand more than this one, so they need no further check.
        start, single = finding.group + 1, np.array([finding.group])
        low, high, weakest = known, safe, (safe, finding)
        while high - low > 1:
            middle = (low + high) // 2
            finding = next_breach(single, middle)
            if finding.group < 0:
                low = middle
            else:
                high, weakest = middle, (middle, finding)
        safe = low
    if weakest is None:
        return MaxM(safe, None, None)
    size, finding = weakest
    breach = verdict_of(names, finding, size, "exact", bound)
    smaller = None
    if breach.settled:
        smaller = _largest_passing_k(counts, bound, size, max(remaining, limit // 4))
    return MaxM(safe, breach, smaller)


def _largest_passing_k(
    counts: SparseCounts, constraint: Constraint, m: int, limit: int
) -> int | None:
    """Return the largest k that withstands m; None if another part fails, or no k passes."""
    ks = [part.records_asked for part in constraint.parts if part.records_alone]
    others = tuple(part for part in constraint.parts if not part.records_alone)
    every = np.arange(counts.groups)

    def private(candidate: Constraint) -> bool:
        return first_breach(counts, every, candidate, m, "exact", limit, limit).group < 0

    # Lowering k helps only if nothing else fails.
    if not ks or not (not others or private(Conjunction(others))):
        return None
    low, high = 0, max(ks)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if private(KAnonymity(middle)) else (low, middle)
    return low or None
