"""`PEOPLE`: budgets per person, without a belief about time points.

Every answer is about all persons alike and has one level for replacing all rows of one of them.
Such levels add up whatever the dependence between one person's rows, as long as persons are
independent. So one entry represents every person: `PEOPLE`, a single cluster, for which a ledger
adds up levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.beliefs import Clusters

if TYPE_CHECKING:
    from quiltwork.budget.payment import Payer

PEOPLE = Clusters(["any person"])
"""The belief of a dataset of persons: `ledger.create("survey", PEOPLE, None, budget=1)`."""


def is_about_people(payer: Payer) -> bool:
    """Whether the budget of the paying dataset is per person."""
    return payer.ledger.status(payer.dataset).beliefs == (PEOPLE,)
