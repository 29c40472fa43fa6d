"""Questions: previewed for nothing, asked once, planned together. A question is data, never code.

A question about a series is a query as a document (`{"kind": "count", "state": "walk", "window":
[1, 1440]}`), one about counts a table (`{"kind": "table", "by": ["sex"], "where": {"smoker":
["yes"]}}`). Everything that can be refused is refused by what is public, before the debit; the
answer is drawn after it and stored before it is told, so a key is answered once whatever happens.
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
from quiltwork.budget.judging import Usefulness, judged
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
from quiltwork.series.releases.answer import described, release
from quiltwork.series.releases.noise_plan import remembering
from quiltwork.series.releases.previews import preview
from quiltwork.series.releases.record import Release
from quiltwork.service.dataset_rows import Counted, counted_rows, reaching, series_rows
from quiltwork.service.datasets import Column, CountsOf, Registered, SeriesOf, registered
from quiltwork.service.problems import Problem
from quiltwork.service.release_log import columns, shown_debit, shown_release
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.structs import Document, Number, converted, exact_number, shown_as

_MOST_CELLS = 10_000
_MOST_SIMULATED = 100_000
_CONFIDENCE = 0.95


_OF_DATASET = "/v1/datasets/{dataset}"
FEATURE = Feature()


class AskedQuestion(Document, frozen=True):
    """What is asked, and at which level."""

    query: dict[str, Any]
    epsilon: Number


class TableQuery(Document, frozen=True):
    """A table of counts: people by some columns, among those `where` columns have some values."""

    kind: Literal["table"]
    by: Annotated[list[Column], Meta(max_length=10)] = msgspec.field(default_factory=list)
    where: dict[Column, Annotated[list[str], Meta(min_length=1, max_length=10_000)]] = (
        msgspec.field(default_factory=dict)
    )


@dataclass(frozen=True)
class AskedSeries:
    """A query about a series, read and found to fit what is public about it."""

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
        """The kind of noise that the dataset's account adds up."""
        return {"noise": "gaussian", "delta": self.delta} if self.delta else {}

    @property
    def price(self) -> Any:
        """The release, but for its answer."""
        about = (self.data, self.query, self.beliefs, self.epsilon, self.episode)
        return described(*about, **self.noise)

    def preview(self, quote: Quote) -> AnswerPreview:
        """Say what it would cost and how far off it would be."""
        every = list(self.data.coded.values())
        lengths = [len(one) for one in every]
        public = [one.recorded for one in every if one.recorded is not None]
        seen = preview(
            self.price.query,
            self.beliefs,
            length=lengths if public else max(lengths),
            epsilon=self.epsilon,
            confidence=_CONFIDENCE,
            subjects=1 if public else len(lengths),
            episode=self.episode,
            recorded=public or None,
            **self.noise,
        )
        return _previewed(
            quote,
            seen.usefulness,
            cells=seen.cells,
            scale=seen.scale,
            expected_error=seen.expected_error,
            half_width=seen.half_width,
            half_width_of_all=seen.simultaneous_half_width,
            example=self._example(lengths),
            claim=seen.claim,
        )

    def _example(self, lengths: list[int]) -> AnswerExample | None:
        """Answer the query about as many simulated series as there are, each as long.

        None where the beliefs cannot be simulated, or it would take long.
        """
        known = MarkovChain | CyclicChain | DatedChain | HiddenChain
        able = [b for b in self.beliefs if isinstance(b, known) and str(b.initial) != "any"]
        if sum(lengths) > _MOST_SIMULATED or not able:
            return None
        try:
            made = [able[0].sample(length, seed) for seed, length in enumerate(lengths)]
            given = made[0] if len(made) == 1 else made
            asked = (given, self.query, self.beliefs, self.epsilon)
            drawn = release(*asked, episode=self.episode, **self.noise)
        except (InvalidInputError, UnsupportedError):
            return None
        return AnswerExample(*columns(drawn, json.loads(drawn.to_json()).get("intervals")))

    def answer(self, payer: Payer) -> Release:
        """Debit, draw and store."""
        return release(
            self.data,
            self.query,
            self.beliefs,
            self.epsilon,
            ledger=payer,
            episode=self.episode,
            beginning_of=self.length,  # the ledger may be ahead of the rows
            **self.noise,
        )


@dataclass(frozen=True)
class AskedTable:
    """A table of counts, read and found to name public categories."""

    dataset: str
    query: TableQuery
    epsilon: Fraction
    about: CountsOf
    data: Counted
    length: None = None
    episode: int = 1

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The labels of the cells, in order."""
        return list(product(*(self.about.columns[name] for name in self.query.by)))

    @property
    def _level(self) -> Any:
        most = self.about.at_most
        return table_level(tuple(self.cells), self.epsilon, None, "replace", at_most=most)

    @property
    def price(self) -> Any:
        """The level for replacing one person."""
        return {"dp_epsilon": str(self._level.dp_epsilon), "mechanism": "geometric table"}

    def preview(self, quote: Quote) -> AnswerPreview:
        """Say what it would cost and how far off it would be."""
        law, cells = TwoSidedGeometric.from_alpha(self._level.alphas[0]), len(self.cells)
        error, people = float(law.expected_absolute), self.about.people
        return _previewed(
            quote,
            None if people is None else judged(error, people / cells, "an even share"),
            cells=cells,
            scale=float(law.scale or 0),
            expected_error=error,
            half_width=float(law.simultaneous_quantile(_CONFIDENCE, 1)),
            half_width_of_all=float(law.simultaneous_quantile(_CONFIDENCE, cells)),
            example=None,
            claim=None,
        )

    @property
    def where(self) -> list[str] | None:
        """Who is counted, as it is stored with the request; None for everybody."""
        some = [f"{name}={one}" for name, some in self.query.where.items() for one in some]
        return sorted(some) or None

    def answer(self, payer: Payer) -> CountTable:
        """Debit, draw and store."""
        return release_table(
            self._counts(),
            epsilon=self.epsilon,
            dimensions=self.query.by,
            where=self.where or (),
            ledger=payer,
            at_most=self.about.at_most if self.about.subject is None else None,
        )

    def _counts(self) -> Mapping[Any, int]:
        cells, which = self.cells, np.zeros(len(self.data.subjects), dtype=np.int64)
        for name in self.query.by:
            which = which * len(self.about.columns[name]) + self.data.columns[name]
        inside = np.ones(len(which), dtype=np.bool_)
        for name, some in self.query.where.items():
            codes = [self.about.columns[name].index(one) for one in some]
            inside &= np.isin(self.data.columns[name], codes)
        if self.about.subject is None:
            found = np.bincount(which[inside], minlength=len(cells))
            return dict(zip(cells, found.tolist(), strict=True))
        counts = limited_counts(
            (cells[number] for number in which[inside]),
            self.data.subjects[inside].tolist(),
            cells,
            self.about.at_most,
        )
        return replace(counts, subject=self.about.subject)


Asked: TypeAlias = AskedSeries | AskedTable


def _previewed(quote: Quote, useful: Usefulness | None, **told: Any) -> AnswerPreview:
    """Put what a question costs beside what is told of its answer."""
    return shown_as(
        AnswerPreview,
        quote,
        granted=quote.fits,
        spent_before=quote.before,
        spent_after=quote.after,
        confidence=_CONFIDENCE,
        verdict=None if useful is None else useful.verdict,
        reason=None if useful is None else useful.reason,
        **told,
    )


def read_question(service: Service, found: Registered, question: AskedQuestion) -> Asked:
    """Read a question about a dataset; everything wrong with it is found by what is public."""
    epsilon = exact_number(question.epsilon, "epsilon")
    if isinstance(found.holds, SeriesOf):
        query = read_query(question.query)
        status = service.ledger.status(found.name)
        data = reaching(series_rows(service, found.name, found.holds), query.stop or query.start)
        about = (status.beliefs, status.episode, status.length, status.exact_delta)
        return AskedSeries(found.name, query, epsilon, *about, data)
    table = converted(question.query, TableQuery)
    _check_table(table, found.holds)
    rows = counted_rows(service, found.name)
    return AskedTable(found.name, table, epsilon, found.holds, rows)


def read_query(document: Mapping[str, Any]) -> Query:
    """Read a query that is data; code is refused."""
    if document.get("kind") == "custom":
        raise InvalidInputError("A question is data; a query with its own code is not taken here.")
    return from_document(document)


def _check_table(table: TableQuery, about: CountsOf) -> None:
    for name in (*table.by, *table.where):
        if name not in about.columns:
            raise InvalidInputError(f"The dataset has no column {name!r}.")
    if len(set(table.by)) < len(table.by):
        raise InvalidInputError("by names one column twice.")
    for name, some in table.where.items():
        if len(set(some)) < len(some) or not set(some) <= set(about.columns[name]):
            raise InvalidInputError(f"where names categories of {name!r}, each once.")
    cells = 1
    for name in table.by:
        cells *= len(about.columns[name])
    if cells > _MOST_CELLS:
        raise InvalidInputError(f"The table would have {cells:,} cells; ask for {_MOST_CELLS:,}.")


@dataclass(frozen=True)
class AnswerPayer(Payer):
    """Pays for one answer, and keeps what was stored of it: nothing has to be read back."""

    holds_rows: ClassVar[bool] = True
    episode: int = 1
    stored: list[tuple[Receipt, str]] = field(default_factory=list)

    def secrets(self) -> tuple[None, int]:
        """Return what was read with the question: a curator keeps all values of a point apart."""
        return None, self.episode

    def check(self, asked: Any) -> None:
        """Do nothing: rows and beliefs were read in one transaction with those of the ledger."""

    def debit(self, asked: Any) -> Receipt:
        """Debit it, marked by the question as it was asked."""
        receipt = super().debit(asked)
        if receipt.stored is not None:
            self.stored.append((receipt, receipt.stored))
        return receipt

    def store(self, receipt: Receipt, answer: str) -> None:
        """Store the answer, durably."""
        super().store(receipt, answer)
        self.stored.append((receipt, answer))


def mark_of(question: msgspec.Struct) -> str:
    """Return a digest of a question, whatever the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(question, order="deterministic")).hexdigest()


@dataclass(frozen=True)
class Looked:
    """What is known of a question when its caller is recognised: the answer under its key, if any.

    Without one it is `asked` of the dataset as it is now; None if that has no rows any more.
    """

    known: Released | None
    asked: Asked | None


def _looked(call: Call) -> Looked:
    """Return the stored answer, or the question as it can be answered now."""
    known = _known(call)
    if known is not None:
        return Looked(known, None)
    found = registered(call.service, call.path["dataset"])
    return Looked(None, None if found.deleted else read_question(call.service, found, call.body))


@FEATURE.at(
    "POST",
    f"{_OF_DATASET}/releases",
    "question.ask",
    request=AskedQuestion,
    status=201,
    spends=True,
    look=_looked,
)
def _ask(call: Call) -> Released:
    """Answer a question, once for each key; its budget is debited first."""
    looked: Looked = call.seen
    if looked.known is not None:
        return looked.known
    with call.service.lock_for("ask", call.path["dataset"], call.who, call.key):
        return _answer(call, looked)  # who asks twice at once waits for the first


def _answer(call: Call, looked: Looked) -> Released:
    """Debit, draw and store; again as long as the series grows in between."""
    service, mark = call.service, mark_of(call.body)
    while looked.known is None:
        asked = looked.asked
        if asked is None:
            raise BudgetExceeded("The rows of this dataset were deleted: nothing more is released.")
        try:
            payer = AnswerPayer(
                service.ledger, asked.dataset, call.key, call.who, mark, asked.episode
            )
            with remembering(service.plans):
                answer = asked.answer(payer)
        except InvalidInputError:
            again = service.read(lambda _: _looked(call))
            if again.known is None and (again.asked is None or again.asked.length == asked.length):
                raise
            looked = again
        except NotPrivateError:
            raise _lost() from None
        else:
            receipt, text = payer.stored[-1]
            return shown_release(receipt, call.who, asked.where, text, answer)
    return looked.known


def _known(call: Call) -> Released | None:
    """Return what was answered under a key; None if it was not, and 422 for another question."""
    kept = call.service.ledger.kept(call.path["dataset"], call.key, call.who)
    if kept is None:
        return None
    debit, answer = kept
    if debit.request.get("asked") != mark_of(call.body):
        raise InvalidInputError(
            "This key was used for another question; a key stands for one question for ever."
        )
    return None if answer is None else shown_debit(debit, answer)


def _lost() -> Problem:
    """What is said of a key whose answer is gone: whoever was answering it is no more."""
    return Problem(
        409,
        "not-private",
        "This key was debited, and its answer was never stored: the curator was stopped "
        "between the two. What was spent stays spent, and drawing again would be a second "
        "release. Ask with a new key, which is debited anew.",
    )


@FEATURE.at("POST", f"{_OF_DATASET}/preview", "question.preview", request=AskedQuestion)
def _preview(call: Call) -> AnswerPreview:
    """Say what an answer would cost and how far off it would be; nothing is spent."""
    service, found = call.service, registered(call.service, call.path["dataset"])
    asked = read_question(service, found, call.body)
    with remembering(service.plans):
        price = getattr(asked.price, "spending", asked.price)  # whatever the length of the rows
        return asked.preview(service.ledger.preview(found.name, price, call.who))
