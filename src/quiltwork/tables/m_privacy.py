"""`verify_m_privacy`: checks a table against every coalition of m of its providers.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from quiltwork.arguments import choice
from quiltwork.errors import UnsupportedError
from quiltwork.exact import integer
from quiltwork.tables.codes.group import count_groups
from quiltwork.tables.constraints.constraint import Constraint, as_constraint, parse_m
from quiltwork.tables.table import Table, as_table
from quiltwork.tables.verification.breach_search import LIMIT, AnyMethod
from quiltwork.tables.verification.group_verification import verify_counts
from quiltwork.tables.verification.verdict import Verdict
from quiltwork.wording import argument


def verify_m_privacy(
    table: Table,
    constraint: Constraint | Callable[..., bool],
    m: int,
    method: AnyMethod = "exact",
    limit: int = LIMIT,
) -> Verdict:
    """Verify that a table withstands every coalition of at most m providers (Definition 2.1).

    Args:
        table: its groups are the rows with equal quasi-identifiers.
        constraint: for example `KAnonymity(3) & LDiversity(2)`, or your own function.
        m: how many providers may collude; 0 checks outsiders only. In a group of n providers, at
            most n − 1 of them collude.
        method: "exact", which searches values instead of coalitions where that is smaller and takes
            any constraint; or the paper's "direct", "top-down", "bottom-up", "binary" and
            "adaptive", for EG-monotonic constraints.
        limit: the checks within one group after which a search gives up; the verdict is then not
            private, with `settled` False.

    Raises:
        InvalidInputError: for a negative m, an unknown method, or an invalid constraint.
        UnsupportedError: for a method of the paper with a constraint that is not EG monotonic, and
            for such a constraint with too many sets to try.

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
    size, rule = parse_m(m), as_constraint(constraint)
    choice(method, get_args(AnyMethod), "method")
    if method != "exact" and not rule.eg_monotonic:
        offending = next(part for part in rule.parts if not part.eg_monotonic)
        raise UnsupportedError(
            f"{method} prunes coalitions, which is sound only if the constraint is EG monotonic; "
            f"{offending} is not. Use {argument('method', 'exact')}."
        )
    limit = integer(limit, "limit", 1)
    if as_table(table).kind == "spark":
        from quiltwork.tables.spark.workers import verify_spark

        if method != "exact":
            raise UnsupportedError(
                f"Spark tables are verified by {argument('method', 'exact')} only, not {method!r}."
            )
        return verify_spark(table, rule, size)
    counts = count_groups(table.encoded, table.groups.labels, table.groups.count)
    names, bound = (table.encoded, table.group_values), rule.bind(table.encoded)
    return verify_counts(names, counts, bound, size, method, limit)
