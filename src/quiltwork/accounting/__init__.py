"""Accounting: what many releases from the same data cost together, and how to plan them.

`Accountant` keeps the total of one series, `plan` finds the noise for releases to come, and
`compose` has the theorems as functions.
"""

from quiltwork.accounting import compose
from quiltwork.accounting.accountant import Accountant
from quiltwork.accounting.explain import Explanation
from quiltwork.accounting.planning import PlannedRelease, ReleasePlan, plan
from quiltwork.accounting.profile import LeakageProfile
from quiltwork.accounting.schedule import Planned, calendar, repeated
from quiltwork.accounting.spending import Spending
from quiltwork.accounting.theorems import Bound

__all__ = [
    "Accountant",
    "Bound",
    "Explanation",
    "LeakageProfile",
    "Planned",
    "PlannedRelease",
    "ReleasePlan",
    "Spending",
    "calendar",
    "compose",
    "plan",
    "repeated",
]
