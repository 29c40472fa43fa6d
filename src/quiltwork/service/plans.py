"""Plans: the noise at which future questions together cost a given budget; nothing is spent."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quiltwork.budget import Planned, plan, repeated
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.service.datasets import SeriesOf, registered
from quiltwork.service.questions import parse_query
from quiltwork.service.routes import Call, Feature
from quiltwork.service.structs import Document, Number, exact_number

_MAX_QUESTIONS = 20_000


FEATURE = Feature()


class PlannedQuestion(Document, frozen=True):
    """A planned query; with `every`, one on each consecutive window of that many time points."""

    query: dict[str, Any]
    every: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    weight: Number = 1
    label: Annotated[str, Meta(max_length=200)] = ""


class NewPlan(Document, frozen=True):
    """Planned questions and their budget; by default all that is left."""

    questions: Annotated[list[PlannedQuestion], Meta(min_length=1, max_length=1000)]
    budget: Number | None = None


class PlanItem(Document, frozen=True):
    """One planned release."""

    kind: str
    label: str
    window: list[int | None]
    scale: float
    expected_error: float
    signal_range: float
    verdict: str
    cost_alone: float
    naive_error: float | None


_ITEM_FIELDS = frozenset(PlanItem.__struct_fields__)


class Plan(Document, frozen=True):
    """Planned releases, with the noise at which together they cost the budget."""

    dataset: str
    budget: float
    total: float
    items: list[PlanItem]
    text: str


@FEATURE.at("POST", "/v1/datasets/{dataset}/plan", "question.plan", request=NewPlan)
def _plan(call: Call) -> Plan:
    """Find the noise at which future questions together cost a given budget."""
    service, dataset = call.service, registered(call.service, call.path["dataset"])
    if not isinstance(dataset.description, SeriesOf):
        raise UnsupportedError(
            "Plans are for series. Levels of count tables simply add up, so divide the budget."
        )
    status = service.ledger.status(dataset.name)
    if status.retired is not None:
        raise BudgetExceeded(f"The dataset is retired ({status.retired}): nothing can be planned.")
    questions, length = call.body.questions, status.length or 1
    if sum(-(-length // (question.every or 10**18)) for question in questions) > _MAX_QUESTIONS:
        raise InvalidInputError(
            f"A plan has at most {_MAX_QUESTIONS:,} questions, each repetition counted."
        )
    budget = status.exact_budget
    if call.body.budget is not None and not status.delta:
        budget = min(budget, status.exact_total + exact_number(call.body.budget, "budget"))
    planned = plan(
        status.beliefs,
        length=status.length,
        budget=budget,
        queries=[item for question in questions for item in _planned(question, status.length)],
        spent=[debit.spending for debit in service.ledger.history(dataset.name)],
        episode=status.episode,
        delta=status.exact_delta,
        pairs=status.pairs,
    )
    windows = [[item.planned.query.start, item.planned.query.stop] for item in planned.items]
    items = [
        PlanItem(window=window, **{name: record[name] for name in record.keys() & _ITEM_FIELDS})
        for window, record in zip(windows, planned.records(), strict=True)
    ]
    return Plan(dataset.name, float(planned.budget), planned.total, items, planned.explain())


def _planned(question: PlannedQuestion, length: int | None) -> tuple[Planned, ...]:
    query, weight = parse_query(question.query), exact_number(question.weight, "weight")
    if question.every is None:
        return (Planned(query, question.label, question.label, weight),)
    return repeated(query, question.every, length or 1, question.label, weight)
