"""Questions: previewed at no cost, and answered once for each Idempotency-Key.

A question is data, never code: about a series a query document (`{"kind": "count", "state": "walk",
"window": [1, 1440]}`), about counts a table (`{"kind": "table", "by": ["sex"], "where": {"smoker":
["yes"]}}`). Refusals depend on public facts only and come before the debit. The answer is drawn
after the debit and stored before it is returned, so a retry gets the stored answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from quiltwork.beliefs import CyclicChain, DatedChain, HiddenChain, MarkovChain
from quiltwork.beliefs.origins import CodedSequences
from quiltwork.budget import Quote, Receipt
from quiltwork.budget.judging import Usefulness, judge
from quiltwork.budget.payment import Payer
from quiltwork.client.records import AnswerExample, AnswerPreview, Released
from quiltwork.counts.contributors import limited_counts
from quiltwork.counts.count_table import CountTable, release_table
from quiltwork.counts.count_table_level import table_level
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    UnsupportedError,
)
from quiltwork.noise import TwoSidedGeometric
from quiltwork.queries import Query
from quiltwork.queries.document import from_document
from quiltwork.series.releases.answer import describe_release, release
from quiltwork.series.releases.noise_plan import remembering
from quiltwork.series.releases.previews import preview
from quiltwork.series.releases.record import Release
from quiltwork.service.dataset_rows import CodedPeople, people_rows, reaching, series_rows
from quiltwork.service.datasets import Column, CountsOf, Registered, SeriesOf, registered
from quiltwork.service.problems import Problem
from quiltwork.service.release_log import columns, debit_record, release_record
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.structs import Document, Number, as_struct, copy_fields, exact_number

_MAX_CELLS = 10_000
_MAX_SIMULATED = 100_000
_CONFIDENCE = 0.95


_OF_DATASET = "/v1/datasets/{dataset}"
FEATURE = Feature()


class NewQuestion(Document, frozen=True):
    """A query and the privacy level to answer it at."""

    query: dict[str, Any]
    epsilon: Number


class TableQuery(Document, frozen=True):
    """A table of counts by some columns, of the people whose `where` columns have given values."""

    kind: Literal["table"]
    by: Annotated[list[Column], Meta(max_length=10)] = msgspec.field(default_factory=list)
    where: dict[Column, Annotated[list[str], Meta(min_length=1, max_length=10_000)]] = (
        msgspec.field(default_factory=dict)
    )


@dataclass(frozen=True)
class SeriesQuestion:
    """A parsed query about a series, checked against the public facts about it."""

    dataset: str
    query: Query
    epsilon: Fraction
    beliefs: Any
    episode: int
    length: int | None
    delta: Fraction
    data: CodedSequences
    where: None = None

    @property
    def noise(self) -> dict[str, Any]:
        """The noise that the dataset's account can add up: Gaussian with δ, else geometric."""
        return {"noise": "gaussian", "delta": self.delta} if self.delta else {}

    @property
    def price(self) -> Any:
        """The description of the release, without its answer."""
        arguments = (self.data, self.query, self.beliefs, self.epsilon, self.episode)
        return describe_release(*arguments, **self.noise)

    def preview(self, quote: Quote) -> AnswerPreview:
        """Return the cost and the expected error of an answer."""
        subjects = list(self.data.coded.values())
        lengths = [len(series) for series in subjects]
        recorded = [series.recorded for series in subjects if series.recorded is not None]
        estimate = preview(
            self.price.query,
            self.beliefs,
            length=lengths if recorded else max(lengths),
            epsilon=self.epsilon,
            confidence=_CONFIDENCE,
            subjects=1 if recorded else len(lengths),
            episode=self.episode,
            recorded=recorded or None,
            **self.noise,
        )
        return _answer_preview(
            quote,
            estimate.usefulness,
            cells=estimate.cells,
            scale=estimate.scale,
            expected_error=estimate.expected_error,
            half_width=estimate.half_width,
            half_width_of_all=estimate.simultaneous_half_width,
            example=self._example(lengths),
            claim=estimate.claim,
        )

    def _example(self, lengths: list[int]) -> AnswerExample | None:
        """Return an answer about simulated series of the same number and lengths.

        None if no belief can be simulated, or the series are too long for a preview.
        """
        kinds = MarkovChain | CyclicChain | DatedChain | HiddenChain
        models = [b for b in self.beliefs if isinstance(b, kinds) and str(b.initial) != "any"]
        if sum(lengths) > _MAX_SIMULATED or not models:
            return None
        try:
            samples = [models[0].sample(length, seed) for seed, length in enumerate(lengths)]
            data = samples[0] if len(samples) == 1 else samples
            arguments = (data, self.query, self.beliefs, self.epsilon)
            answer = release(*arguments, episode=self.episode, **self.noise)
        except (InvalidInputError, UnsupportedError):
            return None
        return AnswerExample(*columns(answer, json.loads(answer.to_json()).get("intervals")))

    def answer(self, payer: Payer) -> Release:
        """Debit the ledger, draw the answer and store it."""
        return release(
            self.data,
            self.query,
            self.beliefs,
            self.epsilon,
            ledger=payer,
            episode=self.episode,
            beginning_of=self.length,  # the ledger may be ahead of the rows, never behind
            **self.noise,
        )


@dataclass(frozen=True)
class TableQuestion:
    """A parsed question for a table of counts, which names public categories only."""

    dataset: str
    query: TableQuery
    epsilon: Fraction
    about: CountsOf
    data: CodedPeople
    length: None = None
    episode: int = 1

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The labels of the table's cells, in order."""
        return list(product(*(self.about.columns[name] for name in self.query.by)))

    @property
    def _level(self) -> Any:
        limit = self.about.at_most
        return table_level(tuple(self.cells), self.epsilon, None, "replace", at_most=limit)

    @property
    def price(self) -> Any:
        """The level for replacing one person."""
        return {"dp_epsilon": str(self._level.dp_epsilon), "mechanism": "geometric table"}

    def preview(self, quote: Quote) -> AnswerPreview:
        """Return the cost and the expected error of an answer."""
        noise, cells = TwoSidedGeometric.from_alpha(self._level.alphas[0]), len(self.cells)
        error, people = float(noise.expected_absolute), self.about.people
        return _answer_preview(
            quote,
            None if people is None else judge(error, people / cells, "an even share"),
            cells=cells,
            scale=float(noise.scale or 0),
            expected_error=error,
            half_width=float(noise.simultaneous_quantile(_CONFIDENCE, 1)),
            half_width_of_all=float(noise.simultaneous_quantile(_CONFIDENCE, cells)),
            example=None,
            claim=None,
        )

    @property
    def where(self) -> list[str] | None:
        """The conditions on people, as they are stored with the release; None for everybody."""
        values = self.query.where.items()
        return sorted(f"{name}={value}" for name, chosen in values for value in chosen) or None

    def answer(self, payer: Payer) -> CountTable:
        """Debit the ledger, draw the answer and store it."""
        return release_table(
            self._counts(),
            epsilon=self.epsilon,
            dimensions=self.query.by,
            where=self.where or (),
            ledger=payer,
            at_most=self.about.at_most if self.about.subject is None else None,
        )

    def _counts(self) -> Mapping[Any, int]:
        cells, cell_of = self.cells, np.zeros(len(self.data.subjects), dtype=np.int64)
        for name in self.query.by:  # the row's position in the product of all categories
            cell_of = cell_of * len(self.about.columns[name]) + self.data.columns[name]
        chosen = np.ones(len(cell_of), dtype=np.bool_)
        for name, values in self.query.where.items():
            codes = [self.about.columns[name].index(value) for value in values]
            chosen &= np.isin(self.data.columns[name], codes)
        if self.about.subject is None:
            counted = np.bincount(cell_of[chosen], minlength=len(cells))
            return dict(zip(cells, counted.tolist(), strict=True))
        counts = limited_counts(
            (cells[number] for number in cell_of[chosen]),
            self.data.subjects[chosen].tolist(),
            cells,
            self.about.at_most,
        )
        return replace(counts, subject=self.about.subject)


Question: TypeAlias = SeriesQuestion | TableQuestion


def _answer_preview(quote: Quote, useful: Usefulness | None, **accuracy: Any) -> AnswerPreview:
    """Return a preview: the cost from the ledger's quote, and the accuracy of the answer."""
    return copy_fields(
        AnswerPreview,
        quote,
        granted=quote.fits,
        spent_before=quote.before,
        spent_after=quote.after,
        confidence=_CONFIDENCE,
        verdict=None if useful is None else useful.verdict,
        reason=None if useful is None else useful.reason,
        **accuracy,
    )


def parse_question(service: Service, dataset: Registered, new: NewQuestion) -> Question:
    """Parse a question about a dataset and check it against the public facts."""
    epsilon = exact_number(new.epsilon, "epsilon")
    description = dataset.description
    if isinstance(description, SeriesOf):
        query = parse_query(new.query)
        status = service.ledger.status(dataset.name)
        rows = series_rows(service, dataset.name, description)
        data = reaching(rows, query.stop or query.start)
        facts = (status.beliefs, status.episode, status.length, status.exact_delta)
        return SeriesQuestion(dataset.name, query, epsilon, *facts, data)
    table = as_struct(new.query, TableQuery)
    _check_table(table, description)
    people = people_rows(service, dataset.name)
    return TableQuestion(dataset.name, table, epsilon, description, people)


def parse_query(document: Mapping[str, Any]) -> Query:
    """Return the query of a document; one with code of its own is refused."""
    if document.get("kind") == "custom":
        raise InvalidInputError("A curator takes no custom queries: a question is data, not code.")
    return from_document(document)


def _check_table(table: TableQuery, about: CountsOf) -> None:
    for name in (*table.by, *table.where):
        if name not in about.columns:
            raise InvalidInputError(f"The dataset has no column {name!r}.")
    if len(set(table.by)) < len(table.by):
        raise InvalidInputError("`by` repeats a column.")
    for name, values in table.where.items():
        if len(set(values)) < len(values) or not set(values) <= set(about.columns[name]):
            raise InvalidInputError(
                f"`where` must list categories of column {name!r}, each of them once."
            )
    cells = 1
    for name in table.by:
        cells *= len(about.columns[name])
    if cells > _MAX_CELLS:
        raise InvalidInputError(
            f"The table would have {cells:,} cells; at most {_MAX_CELLS:,} are allowed."
        )


@dataclass(frozen=True)
class AnswerPayer(Payer):
    """A payer that keeps the receipt and the stored answer, so that neither is read back."""

    holds_rows: ClassVar[bool] = True
    episode: int = 1
    stored: list[tuple[Receipt, str]] = field(default_factory=list)

    def secrets(self) -> tuple[None, int]:
        """Return the dataset's secrets, already read: all values, for the registered episode."""
        return None, self.episode

    def check(self, request: Any) -> None:
        """Skip the check: rows and beliefs were read in the transaction that read the ledger."""

    def debit(self, request: Any) -> Receipt:
        """Debit the release; keep the receipt if its key has an answer already."""
        receipt = super().debit(request)
        if receipt.stored is not None:
            self.stored.append((receipt, receipt.stored))
        return receipt

    def store(self, receipt: Receipt, answer: str) -> None:
        """Store the answer durably."""
        super().store(receipt, answer)
        self.stored.append((receipt, answer))


def digest_of(question: msgspec.Struct) -> str:
    """Return a digest of a question, independent of the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(question, order="deterministic")).hexdigest()


@dataclass(frozen=True)
class Lookup:
    """What one transaction found for a request: the stored answer of its key, or the question.

    Both are None if the dataset's rows were deleted.
    """

    stored: Released | None
    question: Question | None


def _look_up(call: Call) -> Lookup:
    """Return the stored answer, or else the question parsed against the dataset's current state."""
    stored = _stored_answer(call)
    if stored is not None:
        return Lookup(stored, None)
    dataset = registered(call.service, call.path["dataset"])
    if dataset.deleted:
        return Lookup(None, None)
    return Lookup(None, parse_question(call.service, dataset, call.body))


@FEATURE.at(
    "POST",
    f"{_OF_DATASET}/releases",
    "question.ask",
    request=NewQuestion,
    status=201,
    spends=True,
    load=_look_up,
)
def _ask(call: Call) -> Released:
    """Answer a question, once for each Idempotency-Key; the budget is debited first."""
    lookup: Lookup = call.loaded
    if lookup.stored is not None:
        return lookup.stored
    # A concurrent request with the same key waits here, and then gets the stored answer.
    with call.service.lock_for("ask", call.path["dataset"], call.member, call.key):
        return _answer(call, lookup)


def _answer(call: Call, lookup: Lookup) -> Released:
    """Debit, draw and store the answer; start over if the series grew meanwhile."""
    service, digest = call.service, digest_of(call.body)
    while lookup.stored is None:
        question = lookup.question
        if question is None:
            raise BudgetExceeded("The rows of this dataset were deleted: nothing more is released.")
        try:
            keyed = (question.dataset, call.key, call.member, digest)
            payer = AnswerPayer(service.ledger, *keyed, question.episode)
            with remembering(service.plan_cache):
                answer = question.answer(payer)
        except InvalidInputError:
            newer = service.read(lambda _: _look_up(call))
            unchanged = newer.question is None or newer.question.length == question.length
            if newer.stored is None and unchanged:
                raise
            lookup = newer
        except NotPrivateError:
            raise _lost_answer() from None
        else:
            receipt, text = payer.stored[-1]
            return release_record(receipt, call.member, question.where, text, answer)
    return lookup.stored


def _stored_answer(call: Call) -> Released | None:
    """Return the answer stored under the request's key; 422 if the key was for another question."""
    kept = call.service.ledger.debit_with_answer(call.path["dataset"], call.key, call.member)
    if kept is None:
        return None
    debit, answer = kept
    if debit.request.get("asked") != digest_of(call.body):
        raise InvalidInputError(
            "This Idempotency-Key was used for another question. Use a new key for each question."
        )
    return None if answer is None else debit_record(debit, answer)


def _lost_answer() -> Problem:
    """Return the refusal for a key that was debited but has no stored answer."""
    return Problem(
        409,
        "not-private",
        "This key was debited, but its answer was never stored: the curator stopped between the "
        "two. The debit stands, and drawing again would be a second release. Ask under a new key, "
        "which is debited again.",
    )


@FEATURE.at("POST", f"{_OF_DATASET}/preview", "question.preview", request=NewQuestion)
def _preview(call: Call) -> AnswerPreview:
    """Show what an answer would cost and its expected error; nothing is spent."""
    service, dataset = call.service, registered(call.service, call.path["dataset"])
    question = parse_question(service, dataset, call.body)
    with remembering(service.plan_cache):
        # The spending alone is quoted: rows may lag behind the length that the ledger covers.
        price = getattr(question.price, "spending", question.price)
        return question.preview(service.ledger.preview(dataset.name, price, call.member))
