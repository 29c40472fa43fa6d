"""Plans: the noise with which questions to come cost a budget together; nothing is spent."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quiltwork.budget import Planned, plan, repeated
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.service.datasets import SeriesOf, registered
from quiltwork.service.questions import read_query
from quiltwork.service.routes import Call, Feature
from quiltwork.service.structs import Document, Number, exact_number

_MOST = 20_000


FEATURE = Feature()


class PlannedQuestion(Document, frozen=True):
    """A query to come; with `every`, on one window of so many time points after another."""

    query: dict[str, Any]
    every: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    weight: Number = 1
    label: Annotated[str, Meta(max_length=200)] = ""


class NewPlan(Document, frozen=True):
    """Questions to come, and what they may cost together; by default all that is left."""

    questions: Annotated[list[PlannedQuestion], Meta(min_length=1, max_length=1000)]
    budget: Number | None = None


class PlanItem(Document, frozen=True):
    """One release of a plan."""

    kind: str
    label: str
    window: list[int | None]
    scale: float
    expected_error: float
    signal_range: float
    verdict: str
    cost_alone: float
    naive_error: float | None


_TOLD = frozenset(PlanItem.__struct_fields__)


class Plan(Document, frozen=True):
    """Releases with the noise with which they cost the budget together."""

    dataset: str
    budget: float
    total: float
    items: list[PlanItem]
    text: str


@FEATURE.at("POST", "/v1/datasets/{dataset}/plan", "question.plan", request=NewPlan)
def _plan(call: Call) -> Plan:
    """Find the noise with which questions to come cost a budget together."""
    service, found = call.service, registered(call.service, call.path["dataset"])
    if not isinstance(found.holds, SeriesOf):
        raise UnsupportedError("Levels of counts add up; plans are for series.")
    status = service.ledger.status(found.name)
    if status.retired is not None:
        raise BudgetExceeded(f"The dataset is retired ({status.retired}): nothing to plan.")
    asked = sum(-(-(status.length or 1) // (one.every or 10**18)) for one in call.body.questions)
    if asked > _MOST:
        raise InvalidInputError(f"A plan has at most {_MOST:,} questions, repeated ones counted.")
    budget = status.exact_budget
    if call.body.budget is not None and not status.delta:
        budget = min(budget, status.exact_total + exact_number(call.body.budget, "budget"))
    made = plan(
        status.beliefs,
        length=status.length,
        budget=budget,
        queries=[one for asked in call.body.questions for one in _planned(asked, status.length)],
        spent=[debit.spending for debit in service.ledger.history(found.name)],
        episode=status.episode,
        delta=status.exact_delta,
        pairs=status.pairs,
    )
    windows = [[one.planned.query.start, one.planned.query.stop] for one in made.items]
    items = [
        PlanItem(window=window, **{name: row[name] for name in row.keys() & _TOLD})
        for window, row in zip(windows, made.records(), strict=True)
    ]
    return Plan(found.name, float(made.budget), made.total, items, made.explain())


def _planned(asked: PlannedQuestion, length: int | None) -> tuple[Planned, ...]:
    query, weight = read_query(asked.query), exact_number(asked.weight, "weight")
    if asked.every is None:
        return (Planned(query, asked.label, asked.label, weight),)
    return repeated(query, asked.every, length or 1, asked.label, weight)
