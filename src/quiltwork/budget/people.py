"""A ledger of people: budgets for what is told about any person, without a belief about moments.

Every answer is about all people alike and has one level for replacing all that one of them gave.
Such levels add up, whatever each person's rows have to do with each other, as long as persons are
independent. So one entry stands for everybody: `PEOPLE`, a single cluster that a ledger accounts
for by adding up levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.beliefs import Clusters

if TYPE_CHECKING:
    from quiltwork.budget.payment import Payer

PEOPLE = Clusters(["any person"])
"""What a ledger of people is created with: `ledger.create("survey", PEOPLE, None, budget=1)`."""


def is_about_people(payer: Payer) -> bool:
    """Whether the dataset that pays counts persons."""
    return payer.ledger.status(payer.dataset).beliefs == (PEOPLE,)
