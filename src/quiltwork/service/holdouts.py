"""Holdouts: competitions whose tables are in the vault and whose log is in the data directory.

In mode *rounds* the owner uploads a training table and a holdout, and opens them with a threshold,
a noise and a number of rounds. The training table counts as public, so answers from it are exact;
rounds are paid from a dataset of the ledger whose budget is just large enough. The other modes
need labels only: a *ladder* announces a score only if it clearly beats the best, *one bit* says
only whether it does; they protect no rows and no ledger pays. Tables never change once a holdout
is open. One process at a time holds a log and its secret; every question is answered within its
request, and the log also holds the answer under its Idempotency-Key.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from quiltwork.client.records import Score
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import parse_fraction, to_fraction
from quiltwork.files import read_bytes
from quiltwork.holdout.board import (
    Board,
    SubmissionVerdict,
    Table,
    status_of,
    stored_verdict,
    submission_note,
    verdict_for,
)
from quiltwork.holdout.label_table import need_classes
from quiltwork.holdout.metrics import MetricName, Scoring, parse_metric, plain_label
from quiltwork.holdout.prediction_tables import TrainHoldoutTables, read_table
from quiltwork.holdout.transcript import HOLDOUT, INTERRUPTED, WAITING, Columns, Transcript
from quiltwork.holdout.transcript import read_transcript as read_log
from quiltwork.service.datasets import Column
from quiltwork.service.objects import ObjectKind, StoredObject
from quiltwork.service.settings import private_folder
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document, Name, Number, exact_number

if TYPE_CHECKING:
    from quiltwork.budget import Ledger
    from quiltwork.service.routes import Service
    from quiltwork.service.vault import Vault

WAIT = 10.0
"""Seconds to wait for another process that holds the log."""
SIDES = ("train", "holdout")
_DELETED = "The tables of this holdout were deleted, so it answers no more questions."


class NewHoldout(Document, frozen=True):
    """A holdout to register; `metrics` maps each offered metric to public limits, if it needs them.

    `budget` is the number of rounds, with `threshold` and `noise`; in other modes the number of
    submissions, of which at most `announcements` are announced. `final` is the share of rows held
    back for the final ranking, `attempts` the number of answers for each member. `positive`,
    `variance`, `floor` and `classes` are those of `Scoring`; rounds without classes take the labels
    of the training table.
    """

    name: Name
    id_column: Column
    target: Column
    budget: Annotated[int, Meta(ge=1, le=10**6)]
    threshold: Number | None = None
    noise: Number | None = None
    mode: Literal["rounds", "ladder", "one bit"] = "rounds"
    announcements: Annotated[int, Meta(ge=1, le=10**6)] | None = None
    final: Number | None = None
    attempts: Annotated[int, Meta(ge=1, le=10**6)] | None = None
    group: Column | None = None
    metrics: Annotated[dict[MetricName, tuple[Number, Number] | None], Meta(min_length=1)] = (
        msgspec.field(default_factory=lambda: {"accuracy": None})
    )
    positive: Annotated[str, Meta(max_length=1000)] = "1"
    variance: Number | None = None
    floor: Number | None = None
    classes: (
        Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(min_length=1, max_length=10**5)]
        | None
    ) = None


@dataclass(frozen=True)
class HoldoutRecord(StoredObject):
    """A holdout as it is stored; its state has `train`, `holdout` and once open `transcript`."""

    spec: NewHoldout


HOLDOUTS = ObjectKind("holdout", HoldoutRecord)


def dataset_of(stored: HoldoutRecord) -> str | None:
    """Return the ledger's dataset that pays for rounds; None for modes without a budget."""
    return f"holdout.{stored.name}" if stored.spec.mode == "rounds" else None


def sides_of(mode: str) -> tuple[str, ...]:
    """Return the tables that a mode needs."""
    return SIDES if mode == "rounds" else SIDES[1:]


def check_spec(spec: NewHoldout) -> None:
    """Refuse invalid numbers, contradictory options, and metrics that lack a parameter."""
    if spec.final is not None and exact_number(spec.final, "final") >= 1:
        raise InvalidInputError(
            "final is the share of rows held back for the end; it must be below 1."
        )
    if spec.mode != "rounds":
        if (spec.threshold, spec.noise) != (None, None) or len(spec.metrics) != 1:
            raise InvalidInputError(
                "The modes 'ladder' and 'one bit' take one metric, and neither threshold nor "
                "noise: only the best score is announced."
            )
        need_classes(_scoring(spec, next(iter(spec.metrics))))
    else:
        _settings(spec)
        if spec.announcements is not None:
            raise InvalidInputError(
                "Leave out announcements: in mode 'rounds' every answer is announced."
            )
    for name in spec.metrics:
        metric = _scoring(spec, name).read()
        if not math.isfinite(metric.spread(1.0)):
            raise InvalidInputError(
                f"The metric {name} needs a floor: without a lower bound on its denominator no "
                "error bound can be promised."
            )
        if len(metric.signs) > 1 and spec.mode == "rounds":
            raise InvalidInputError(
                f"The metric {name} consists of several means, but a round answers one. Use mode "
                "'ladder'."
            )


def _settings(spec: NewHoldout) -> tuple[Fraction, Fraction]:
    if spec.threshold is None or spec.noise is None:
        raise InvalidInputError(
            "Mode 'rounds' needs a threshold and a noise. Give both, or use mode 'ladder'."
        )
    return exact_number(spec.threshold, "threshold"), exact_number(spec.noise, "noise")


def _scoring(spec: NewHoldout, name: Any) -> Scoring:
    ends = spec.metrics[name]
    limits = None if ends is None else (_limit(ends[0]), _limit(ends[1]))
    variance, floor = (
        None if value is None else exact_number(value, kind)
        for value, kind in ((spec.variance, "variance"), (spec.floor, "floor"))
    )
    positive = plain_label(spec.positive)
    compares = parse_metric(name, limits, positive, variance, floor).labels
    classes = tuple(spec.classes) if spec.classes is not None and compares else None
    return Scoring(name, limits, positive, variance, floor, classes)


def _limit(value: int | float | str) -> Fraction:
    """Return a public limit of a target exactly; unlike other numbers it may be 0 or negative."""
    return to_fraction(parse_fraction(value) if isinstance(value, str) else value, "limits")


@dataclass(frozen=True)
class VaultFiles:
    """The files of a board: tables and predictions in the vault, the log beside it."""

    service: Service
    stored: HoldoutRecord
    log: Path
    wait: float = WAIT

    def table(self, side: str) -> Table:
        """Return header and rows of `train` or `holdout`, as texts."""
        return _table(self.service.vault, self.stored.state[side])

    def named(self, side: str) -> str:
        """Return the name of a table in messages."""
        return "the training table" if side == "train" else "the holdout"

    def keep(self, number: int, content: bytes) -> None:
        """Store predictions, replacing those of an interrupted submission with this number."""
        name = self.stored.name

        def reference(t: Transaction, file: str) -> Iterable[str]:
            interrupted = PREDICTIONS.find(t, name=name, number=number)
            PREDICTIONS.delete(t, name=name, number=number)
            PREDICTIONS.add(t, StoredPredictions(name, number, file))
            return [] if interrupted is None else [interrupted.file]

        self.service.store_file(content, reference)

    def kept(self, number: int) -> bytes:
        """Return the stored predictions of a submission."""
        key = {"name": self.stored.name, "number": number}
        predictions = self.service.read(lambda t: PREDICTIONS.get(t, **key))
        return b"".join(self.service.vault.read(predictions.file))

    def payer(self) -> AbstractContextManager[Ledger | None]:
        """Lend the ledger that pays for rounds; None for other modes."""
        return nullcontext(self.service.ledger if self.stored.spec.mode == "rounds" else None)


@lru_cache(maxsize=8)
def _table(vault: Vault, file: str) -> Table:
    with vault.plain(file, ".csv") as path:
        return read_table(str(path))


def forget_rows() -> None:
    """Clear the cache of tables, after their deletion."""
    _table.cache_clear()


def board_of(service: Service, stored: HoldoutRecord) -> Board:
    """Return the board of an open holdout."""
    if "transcript" not in stored.state:
        raise InvalidInputError("The holdout is not open yet. Its owner opens it.")
    return Board(VaultFiles(service, stored, path_of(service, stored)))


def open_holdout(service: Service, stored: HoldoutRecord) -> None:
    """Check the tables, create the budget in the ledger and start the board."""
    with service.lock_for("holdout", stored.name):
        stored = service.read(lambda t: HOLDOUTS.current(t, stored.name))
        refuse_deleted(stored)
        if "transcript" in stored.state:
            return
        if not stored.state.keys() >= set(sides_of(stored.spec.mode)):
            raise InvalidInputError(
                f"Upload these tables first: {', '.join(sides_of(stored.spec.mode))}."
            )
        name = f"{secrets.token_hex(16)}.jsonl"
        _start_board(service, stored, _folder(service) / name)

        def work(t: Transaction) -> None:
            now = HOLDOUTS.current(t, stored.name)
            if "transcript" not in now.state:
                if now.state != stored.state:
                    raise InvalidInputError(
                        "A table was replaced meanwhile. Open the holdout again."
                    )
                HOLDOUTS.update(t, now, transcript=name)
                t.note("act", f"opened holdout {stored.name}", stored.owner, dataset_of(stored))

        service.write(work)


def refuse_deleted(stored: HoldoutRecord) -> None:
    """Refuse a holdout whose tables were deleted."""
    if "deleted" in stored.state:
        raise BudgetExceeded(_DELETED)


def _start_board(service: Service, stored: HoldoutRecord, path: Path) -> None:
    spec = stored.spec
    options: dict[str, Any] = {
        "submissions": spec.budget,
        "announcements": spec.announcements,
    }
    if spec.mode == "rounds":
        threshold, noise = _settings(spec)
        options = {
            "threshold": threshold,
            "noise": noise,
            "budget": spec.budget,
            "dataset": dataset_of(stored),
            "pay": lambda study: _set_budget(service, stored, study),
        }
    Board.create(
        VaultFiles(service, stored, path),
        Columns(spec.id_column, spec.target, spec.group),
        [_scoring(spec, name) for name in spec.metrics],
        spec.mode,
        name=stored.name,
        final=0 if spec.final is None else exact_number(spec.final, "final"),
        **options,
    )


def _set_budget(service: Service, stored: HoldoutRecord, study: TrainHoldoutTables) -> None:
    """Create the ledger's dataset for the rounds, with a budget just large enough for them."""
    from quiltwork.beliefs import MarkovChain
    from quiltwork.budget import Accountant, Spending
    from quiltwork.holdout.algorithm import AlgorithmSettings

    rounds, (threshold, noise) = stored.spec.budget, _settings(stored.spec)
    rows, belief = len(study.holdout), study.belief()
    ties = belief or MarkovChain([[0.5, 0.5], [0.5, 0.5]])  # independent rows
    settings = AlgorithmSettings.choose(rows, threshold, noise, rounds)
    whole = Spending.dp(settings.round_epsilon * rounds, 1, rows)
    length = rows if belief is None else None
    total = Accountant(ties, length).after(whole).total
    dataset = str(dataset_of(stored))
    if dataset not in {status.dataset for status in service.ledger.datasets()}:
        service.ledger.create(dataset, ties, length, total)


def ask(
    service: Service,
    stored: HoldoutRecord,
    member: str,
    key: str,
    metric: str,
    predictions: Mapping[str, str],
) -> Score:
    """Score predictions, once for each idempotency key of a member; blocks until answered.

    Ids that do not match, a metric that is not offered, and a key that was used for another
    question are refused before anything is spent.
    """
    board = board_of(service, stored)
    by_id = {plain_label(name): text for name, text in predictions.items()}
    if len(by_id) < len(predictions):
        raise InvalidInputError("The predictions repeat an id. Nothing was spent.")
    with service.lock_for("holdout", stored.name):
        now = service.read(lambda t: HOLDOUTS.current(t, stored.name))
        if "deleted" in now.state:
            return _stored_score(service, now, member, key, metric, by_id)
        verdict = board.submit(member, by_id, key, metric, stored.spec.attempts)
        if not verdict.repeated:
            service.write(
                lambda t: t.note("act", f"asked holdout {stored.name}", member, dataset_of(stored))
            )
    return _score(verdict)


def _stored_score(
    service: Service,
    stored: HoldoutRecord,
    member: str,
    key: str,
    metric: str,
    predictions: Mapping[str, str],
) -> Score:
    """Return the stored answer to a retry after the tables were deleted; else refuse."""
    transcript = transcript_of(service, stored)
    note = submission_note(str(stored.state.get("requests", "")), member, key, metric, predictions)
    verdict = None if transcript is None else stored_verdict(transcript, member, note)
    if verdict is None:
        raise BudgetExceeded(_DELETED)
    return _score(verdict)


def choose(service: Service, stored: HoldoutRecord, member: str, number: int) -> None:
    """Choose the submission of a member that counts in the final ranking."""
    with service.lock_for("holdout", stored.name):
        refuse_deleted(stored)
        board_of(service, stored).choose(member, number)
        service.write(
            lambda t: t.note("act", f"named submission {number} of holdout {stored.name}", member)
        )


def finish(service: Service, stored: HoldoutRecord) -> None:
    """End a competition; ending it again changes nothing."""
    with service.lock_for("holdout", stored.name):
        refuse_deleted(stored)
        board = board_of(service, stored)
        ended = board.transcript.ended
        board.finish()
        if not ended:
            service.write(lambda t: t.note("act", f"ended holdout {stored.name}", stored.owner))


def transcript_of(service: Service, stored: HoldoutRecord) -> Transcript | None:
    """Return the transcript of a holdout; None before it is open."""
    if "transcript" not in stored.state:
        return None
    if "deleted" in stored.state:  # the log's secret is gone too, so its seal cannot be checked
        return read_log(read_bytes(path_of(service, stored)).decode())
    return board_of(service, stored).transcript


def path_of(service: Service, stored: HoldoutRecord) -> Path:
    """Return the path of an open holdout's log."""
    return _folder(service) / str(stored.state["transcript"])


def _folder(service: Service) -> Path:
    return private_folder(service.settings.data / "holdouts")


@dataclass(frozen=True)
class StoredPredictions:
    """The predictions of one submission, in a vault file."""

    name: str
    number: int
    file: str


PREDICTIONS = TableOf("curator_predictions", StoredPredictions, "name, number")
SCHEMA = Schema("predictions", (PREDICTIONS,))


def scores(service: Service, stored: HoldoutRecord, member: str | None = None) -> list[Score]:
    """Return all answers in order, or those of one member."""
    transcript = transcript_of(service, stored)
    if transcript is None:
        return []
    return [
        _score(verdict_for(transcript, entry))
        for entry in transcript.entries
        if entry.outcome not in (WAITING, INTERRUPTED) and member in (None, entry.label)
    ]


def standings(service: Service, stored: HoldoutRecord) -> list[Score]:
    """Return each member's best answer for each metric, best first, with its interval."""
    transcript = transcript_of(service, stored)
    if transcript is None:
        return []
    best: dict[tuple[str, str], Score] = {}
    for row in status_of(transcript).places:
        score = _score(verdict_for(transcript, transcript.entries[row.number - 1]))
        with_interval = replace(score, value=row.value, low=row.low, high=row.high)
        best.setdefault((row.team, row.metric), with_interval)
    return list(best.values())


def _score(verdict: SubmissionVerdict) -> Score:
    return Score(
        member=verdict.team,
        metric=verdict.metric,
        number=verdict.number,
        value=verdict.value,
        overfit=verdict.outcome == HOLDOUT,
        remaining=verdict.left,
        at=verdict.at,
        noise_sd=verdict.noise_sd,
    )
