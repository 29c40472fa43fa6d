"""Competitions: boards whose tables are in the vault, answered at once, and how they end.

The owner uploads a training table and a holdout and opens them with a threshold, a noise and a
number of rounds; from then on neither changes. Or labels alone and a number of submissions: a
*ladder* tells only what clearly beats the best, a board of *one bit* only whether it does; no row
is protected and no ledger pays. The training table counts as public: analysts have it to learn
from, and answers that come from it are exact. The budget of the rounds is a dataset of the ledger,
just large enough for them. Logs and their secrets are in the data directory; one process at a time
holds them, and a question is answered within its request. What was answered is in the log, also
under its Idempotency-Key.
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
from quiltwork.service.objects import Kind, StoredObject
from quiltwork.service.settings import private_folder
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document, Name, Number, exact_number

if TYPE_CHECKING:
    from quiltwork.budget import Ledger
    from quiltwork.service.routes import Service
    from quiltwork.service.vault import Vault

WAIT = 10.0
"""Seconds for which another process that answers is waited for."""
SIDES = ("train", "holdout")
_DELETED = "The tables of this holdout were deleted: nothing more is answered."


class NewHoldout(Document, frozen=True):
    """A holdout to register; `metrics` names those that may be asked, errors with public ends.

    `budget` is of rounds, with `threshold` and `noise`; of other modes, of submissions, of which
    `announcements` are announced at most. `final` is the share of the rows that is kept apart for
    the end. `attempts` is how many answers each member may get; `positive`, `variance`, `floor` and
    `classes` are those of `Scoring`; of rounds, the labels of the training table are the classes if
    none are given.
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
    """A holdout; `made` has the files `train` and `holdout`, and a `transcript` once it is open."""

    asked: NewHoldout


HOLDOUTS = Kind("holdout", HoldoutRecord)


def dataset_of(stored: HoldoutRecord) -> str | None:
    """Return the ledger's name for a holdout's budget; no ledger pays for a ladder."""
    return f"holdout.{stored.name}" if stored.asked.mode == "rounds" else None


def sides_of(mode: str) -> tuple[str, ...]:
    """Return which tables one needs."""
    return SIDES if mode == "rounds" else SIDES[1:]


def check_asked(asked: NewHoldout) -> None:
    """Refuse numbers that are none, and a metric that lacks what it needs or needs more rounds."""
    if asked.final is not None and exact_number(asked.final, "final") >= 1:
        raise InvalidInputError("final is the share of the rows that is kept apart: below 1.")
    if asked.mode != "rounds":
        if (asked.threshold, asked.noise) != (None, None) or len(asked.metrics) != 1:
            raise InvalidInputError(
                "A ladder or a board of one bit has one metric, and neither threshold nor noise: "
                "it tells no score but the best."
            )
        need_classes(_scoring(asked, next(iter(asked.metrics))))
    else:
        _settings(asked)
        if asked.announcements is not None:
            raise InvalidInputError("Rounds announce every answer; leave out announcements.")
    for name in asked.metrics:
        metric = _scoring(asked, name).read()
        if not math.isfinite(metric.spread(1.0)):
            raise InvalidInputError(
                f"{name} promises nothing without the floor of what it divides by."
            )
        if len(metric.signs) > 1 and asked.mode == "rounds":
            raise InvalidInputError(
                f"{name} is made of several means, and a round answers one; take the mode 'ladder'."
            )


def _settings(asked: NewHoldout) -> tuple[Fraction, Fraction]:
    if asked.threshold is None or asked.noise is None:
        raise InvalidInputError("Rounds need a threshold and a noise; or take the mode 'ladder'.")
    return exact_number(asked.threshold, "threshold"), exact_number(asked.noise, "noise")


def _scoring(asked: NewHoldout, name: Any) -> Scoring:
    ends = asked.metrics[name]
    limits = None if ends is None else (_end(ends[0]), _end(ends[1]))
    variance, floor = (
        None if one is None else exact_number(one, kind)
        for one, kind in ((asked.variance, "variance"), (asked.floor, "floor"))
    )
    positive = plain_label(asked.positive)
    compares = parse_metric(name, limits, positive, variance, floor).labels
    classes = tuple(asked.classes) if asked.classes is not None and compares else None
    return Scoring(name, limits, positive, variance, floor, classes)


def _end(value: int | float | str) -> Fraction:
    """Read a public end of a target exactly; the lower one is often 0 or below."""
    return to_fraction(parse_fraction(value) if isinstance(value, str) else value, "limits")


@dataclass(frozen=True)
class VaultFiles:
    """Where a board's things are: tables and predictions in the vault, its log beside it."""

    service: Service
    stored: HoldoutRecord
    log: Path
    wait: float = WAIT

    def table(self, side: str) -> Table:
        """Return the header and the rows of `train` or `holdout`, as text."""
        return _table(self.service.vault, self.stored.made[side])

    def named(self, side: str) -> str:
        """Return how messages call a table."""
        return "the training table" if side == "train" else "the holdout"

    def keep(self, number: int, content: bytes) -> None:
        """Keep what was predicted; what an interrupted submission of this number left goes."""
        name = self.stored.name

        def naming(t: Transaction, file: str) -> Iterable[str]:
            before = KEPT.one(t, name=name, number=number)
            KEPT.delete(t, name=name, number=number)
            KEPT.add(t, KeptPredictions(name, number, file))
            return [] if before is None else [before.file]

        self.service.keep(content, naming)

    def kept(self, number: int) -> bytes:
        """Return what was predicted."""
        which = {"name": self.stored.name, "number": number}
        found = self.service.read(lambda t: KEPT.named(t, **which))
        return b"".join(self.service.vault.read(found.file))

    def payer(self) -> AbstractContextManager[Ledger | None]:
        """Lend the ledger, which pays for rounds."""
        return nullcontext(self.service.ledger if self.stored.asked.mode == "rounds" else None)


@lru_cache(maxsize=8)
def _table(vault: Vault, file: str) -> Table:
    with vault.plain(file, ".csv") as path:
        return read_table(str(path))


def forget_rows() -> None:
    """Forget the tables that were read lately."""
    _table.cache_clear()


def board_of(service: Service, stored: HoldoutRecord) -> Board:
    """Return the board of an open holdout."""
    if "transcript" not in stored.made:
        raise InvalidInputError("The holdout is not open yet.")
    return Board(VaultFiles(service, stored, path_of(service, stored)))


def open_holdout(service: Service, stored: HoldoutRecord) -> None:
    """Check both tables, set the budget in the ledger and begin the board."""
    with service.lock_for("holdout", stored.name):
        stored = service.read(lambda t: HOLDOUTS.current(t, stored.name))
        refuse_deleted(stored)
        if "transcript" in stored.made:
            return
        if not stored.made.keys() >= set(sides_of(stored.asked.mode)):
            raise InvalidInputError(f"Upload first: {', '.join(sides_of(stored.asked.mode))}.")
        name = f"{secrets.token_hex(16)}.jsonl"
        _begin(service, stored, _folder(service) / name)

        def work(t: Transaction) -> None:
            now = HOLDOUTS.current(t, stored.name)
            if "transcript" not in now.made:
                if now.made != stored.made:
                    raise InvalidInputError("A table was given anew meanwhile; open it again.")
                HOLDOUTS.update(t, now, transcript=name)
                t.note("act", f"opened holdout {stored.name}", stored.owner, dataset_of(stored))

        service.write(work)


def refuse_deleted(stored: HoldoutRecord) -> None:
    """Refuse a holdout whose tables are gone."""
    if "deleted" in stored.made:
        raise BudgetExceeded(_DELETED)


def _begin(service: Service, stored: HoldoutRecord, path: Path) -> None:
    asked = stored.asked
    options: dict[str, Any] = {
        "submissions": asked.budget,
        "announcements": asked.announcements,
    }
    if asked.mode == "rounds":
        threshold, noise = _settings(asked)
        options = {
            "threshold": threshold,
            "noise": noise,
            "budget": asked.budget,
            "dataset": dataset_of(stored),
            "pay": lambda study: _set_budget(service, stored, study),
        }
    Board.create(
        VaultFiles(service, stored, path),
        Columns(asked.id_column, asked.target, asked.group),
        [_scoring(asked, name) for name in asked.metrics],
        asked.mode,
        name=stored.name,
        final=0 if asked.final is None else exact_number(asked.final, "final"),
        **options,
    )


def _set_budget(service: Service, stored: HoldoutRecord, study: TrainHoldoutTables) -> None:
    """Begin the dataset of the ledger that pays for the rounds: just large enough for them."""
    from quiltwork.beliefs import MarkovChain
    from quiltwork.budget import Accountant, Spending
    from quiltwork.holdout.algorithm import AlgorithmSettings

    rounds, (threshold, noise) = stored.asked.budget, _settings(stored.asked)
    rows, belief = len(study.holdout), study.belief()
    ties = belief or MarkovChain([[0.5, 0.5], [0.5, 0.5]])  # rows that know nothing of others
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
    said: Mapping[str, str],
) -> Score:
    """Score predictions, once for each key of a member; blocks until it is answered.

    Ids that do not match, a metric that is not offered and a key of another question are refused,
    and nothing was asked then.
    """
    board = board_of(service, stored)
    given = {plain_label(name): text for name, text in said.items()}
    if len(given) < len(said):
        raise InvalidInputError("An id occurs twice among the predictions. Nothing was asked.")
    with service.lock_for("holdout", stored.name):
        now = service.read(lambda t: HOLDOUTS.current(t, stored.name))
        if "deleted" in now.made:
            return _answered_before(service, now, member, key, metric, given)
        told = board.submit(member, given, key, metric, stored.asked.attempts)
        if not told.repeated:
            service.write(
                lambda t: t.note("act", f"asked holdout {stored.name}", member, dataset_of(stored))
            )
    return _score(told)


def _answered_before(
    service: Service,
    stored: HoldoutRecord,
    member: str,
    key: str,
    metric: str,
    said: Mapping[str, str],
) -> Score:
    """Answer a request that was answered before the tables were deleted, and no other."""
    told = transcript_of(service, stored)
    note = submission_note(str(stored.made.get("requests", "")), member, key, metric, said)
    known = None if told is None else stored_verdict(told, member, note)
    if known is None:
        raise BudgetExceeded(_DELETED)
    return _score(known)


def choose(service: Service, stored: HoldoutRecord, member: str, number: int) -> None:
    """Name the submission of a member that is scored at the end."""
    with service.lock_for("holdout", stored.name):
        refuse_deleted(stored)
        board_of(service, stored).choose(member, number)
        service.write(
            lambda t: t.note("act", f"named submission {number} of holdout {stored.name}", member)
        )


def finish(service: Service, stored: HoldoutRecord) -> None:
    """End a competition; once more changes nothing."""
    with service.lock_for("holdout", stored.name):
        refuse_deleted(stored)
        board = board_of(service, stored)
        ended = board.transcript.ended
        board.finish()
        if not ended:
            service.write(lambda t: t.note("act", f"ended holdout {stored.name}", stored.owner))


def transcript_of(service: Service, stored: HoldoutRecord) -> Transcript | None:
    """Return everything that a holdout has said; None before it is open."""
    if "transcript" not in stored.made:
        return None
    if "deleted" in stored.made:  # with its secret, so nothing seals the log any more
        return read_log(read_bytes(path_of(service, stored)).decode())
    return board_of(service, stored).transcript


def path_of(service: Service, stored: HoldoutRecord) -> Path:
    """Return where the lines of an open holdout are."""
    return _folder(service) / str(stored.made["transcript"])


def _folder(service: Service) -> Path:
    return private_folder(service.settings.data / "holdouts")


@dataclass(frozen=True)
class KeptPredictions:
    """What a submission predicted: the file of the vault."""

    name: str
    number: int
    file: str


KEPT = TableOf("curator_predictions", KeptPredictions, "name, number")
SCHEMA = Schema("predictions", (KEPT,))


def scores(service: Service, stored: HoldoutRecord, member: str | None = None) -> list[Score]:
    """Return every answer, or those of one member, in order."""
    told = transcript_of(service, stored)
    if told is None:
        return []
    answered = (one for one in told.entries if one.outcome not in (WAITING, INTERRUPTED))
    return [_score(verdict_for(told, one)) for one in answered if member in (None, one.label)]


def standings(service: Service, stored: HoldoutRecord) -> list[Score]:
    """Return every member's best answer for each metric, best first, with where its truth is."""
    told = transcript_of(service, stored)
    if told is None:
        return []
    best: dict[tuple[str, str], Score] = {}
    for place in status_of(told).places:
        known = _score(verdict_for(told, told.entries[place.number - 1]))
        shown = replace(known, value=place.value, low=place.low, high=place.high)
        best.setdefault((place.team, place.metric), shown)
    return list(best.values())


def _score(told: SubmissionVerdict) -> Score:
    return Score(
        member=told.team,
        metric=told.metric,
        number=told.number,
        value=told.value,
        overfit=told.outcome == HOLDOUT,
        remaining=told.left,
        at=told.at,
        noise_sd=told.noise_sd,
    )
