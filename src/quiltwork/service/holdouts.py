"""Holdouts and their standings: named metrics of predictions by row id, answered at once.

The owner uploads a training table and a holdout and opens them with a threshold, a noise and a
number of rounds; from then on neither changes. The training table counts as public: analysts have
it to learn from, and answers that come from it are exact. The budget of the rounds is a dataset of
the ledger, just large enough for them. Answers are those of `ReusableHoldout`, whose transcript and
secret are in the data directory; one process at a time holds them, and a question is answered
within its request. A key that was answered is answered again from what was kept, also if the
curator ended in between: the transcript knows it by its label.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections.abc import Mapping
from contextlib import closing
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from quiltwork.errors import InvalidInputError
from quiltwork.exact import to_fraction, typed_fraction
from quiltwork.service import jobs
from quiltwork.service.objects import Kind, StoredObject
from quiltwork.service.settings import private_folder
from quiltwork.service.storage import Schema, Transaction
from quiltwork.service.structs import Document, Name, Number, exact_number

if TYPE_CHECKING:
    from quiltwork.holdout import Answer, ReusableHoldout
    from quiltwork.holdout.metrics import Metric
    from quiltwork.holdout.studies import Study
    from quiltwork.holdout.transcript import Transcript
    from quiltwork.service.routes import Service
    from quiltwork.service.uploads import Upload
    from quiltwork.service.vault import Vault

SIDES = ("train", "holdout")
SCHEMA = Schema(
    "standings",
    (
        (
            """CREATE TABLE curator_standings (
                name TEXT NOT NULL,
                member TEXT NOT NULL,
                mark TEXT NOT NULL,
                digest TEXT NOT NULL,
                number BIGINT NOT NULL,
                score TEXT NOT NULL,
                PRIMARY KEY (name, member, mark)
            )""",
        ),
    ),
)
_turns: dict[str, threading.Lock] = {}
_turns_lock = threading.Lock()
_Column = Annotated[str, Meta(min_length=1, max_length=200)]
MetricName: TypeAlias = Literal[
    "accuracy", "neg_brier_score", "neg_mean_absolute_error", "neg_mean_squared_error"
]


class NewHoldout(Document, frozen=True):
    """A holdout to register; `metrics` names those that may be asked, errors with public ends."""

    name: Name
    id_column: _Column
    target: _Column
    threshold: Number
    noise: Number
    budget: Annotated[int, Meta(ge=1, le=10**6)]
    group: _Column | None = None
    metrics: Annotated[dict[MetricName, tuple[Number, Number] | None], Meta(min_length=1)] = (
        msgspec.field(default_factory=lambda: {"accuracy": None})
    )


class Score(Document, frozen=True):
    """An answer; larger is better. `overfit` says that it came from the holdout, with noise."""

    member: str
    metric: str
    number: int
    value: float
    overfit: bool
    remaining: int
    at: str


Held: TypeAlias = StoredObject[NewHoldout]
"""A holdout; `made` has the files `train` and `holdout`, and a `transcript` once it is open."""
HOLDOUTS = Kind("holdout", NewHoldout)


def dataset_of(stored: Held) -> str:
    """Return the ledger's name for a holdout's budget."""
    return f"holdout.{stored.name}"


def check_asked(asked: NewHoldout) -> None:
    """Refuse numbers that are none, and a metric that has no public ends and needs some.

    Raises:
        InvalidInputError: naming it.
    """
    exact_number(asked.threshold, "threshold")
    exact_number(asked.noise, "noise")
    for name in asked.metrics:
        _measure(asked, name)


def _measure(asked: NewHoldout, name: Any) -> Metric:
    from quiltwork.holdout.metrics import read_metric

    ends = asked.metrics[name]
    return read_metric(name, None if ends is None else (_end(ends[0]), _end(ends[1])))


def _end(value: int | float | str) -> Fraction:
    """Read a public end of a target exactly; the lower one is often 0 or below."""
    return to_fraction(typed_fraction(value) if isinstance(value, str) else value, "limits")


def put_side(service: Service, stored: Held, side: str, upload: Upload) -> int:
    """Keep one of the two tables, as CSV, the columns that are used; return how many rows it has.

    Raises:
        InvalidInputError: once the holdout is open, or for a file that cannot be read.
    """
    from quiltwork.holdout.studies import read_table

    if upload.suffix != ".csv":
        raise InvalidInputError("The tables of a holdout are uploaded as CSV.")
    asked = stored.asked
    with upload.table() as path:
        _, rows = read_table(str(path))
        named = filter(None, (asked.id_column, asked.target, asked.group))
        kept = upload.only(path, list(dict.fromkeys(named)))

    def work(t: Transaction, file: str) -> list[str]:
        now = HOLDOUTS.current(t, stored.name)
        if "transcript" in now.made:
            raise InvalidInputError("The holdout is open, and its tables do not change any more.")
        HOLDOUTS.update(t, now, **{side: file})
        t.note("act", f"gave the {side} table of holdout {stored.name}", stored.owner)
        return [now.made[side]] if side in now.made else []

    service.keep(kept, work)
    return len(rows)


def open_holdout(service: Service, stored: Held) -> None:
    """Check both tables, set the budget in the ledger and begin the transcript.

    Raises:
        InvalidInputError: if a table is missing or they do not go together.
    """
    from quiltwork.beliefs import MarkovChain
    from quiltwork.budget import Accountant, Spending
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.algorithm import AlgorithmSettings

    with _turn(stored.name):
        stored = service.storage.read(lambda t: HOLDOUTS.current(t, stored.name))
        if "transcript" in stored.made:
            return
        if not stored.made.keys() >= set(SIDES):
            raise InvalidInputError("Upload the training table and the holdout first.")
        study, rounds = study_of(service, stored), stored.asked.budget
        threshold = exact_number(stored.asked.threshold, "threshold")
        noise = exact_number(stored.asked.noise, "noise")
        rows, belief = len(study.holdout), study.belief()
        ties = belief or MarkovChain([[0.5, 0.5], [0.5, 0.5]])  # rows that know nothing of others
        settings = AlgorithmSettings.choose(rows, threshold, noise, rounds)
        whole = Spending.dp(settings.round_epsilon * rounds, 1, rows)
        length = rows if belief is None else None
        total = Accountant(ties, length).after(whole).total
        dataset = dataset_of(stored)
        if dataset not in {status.dataset for status in service.ledger.datasets()}:
            service.ledger.create(dataset, ties, length, total)
        name = f"{secrets.token_hex(16)}.jsonl"
        made = ReusableHoldout(
            study.train,
            study.holdout,
            belief,
            threshold=threshold,
            noise=noise,
            budget=rounds,
            path=_folder(service) / name,
            ledger=service.ledger,
            dataset=dataset,
            columns=study.columns,
        )
        made.close()

        def work(t: Transaction) -> None:
            now = HOLDOUTS.current(t, stored.name)
            if "transcript" not in now.made:
                HOLDOUTS.update(t, now, transcript=name)
                t.note("act", f"opened holdout {stored.name}", stored.owner, dataset)

        service.storage.write(work)


def ask(
    service: Service, stored: Held, member: str, key: str, metric: str, said: Mapping[str, str]
) -> Score:
    """Score predictions, once for each key of a member; blocks until it is answered.

    Raises:
        InvalidInputError: for ids that do not match, with how many; a metric that is not offered;
            a key of another question. Nothing was asked.
        BudgetExceeded: once all rounds are spent.
    """
    from quiltwork.holdout.questions import plain_label

    if "transcript" not in stored.made:
        raise InvalidInputError("The holdout is not open yet.")
    if metric not in stored.asked.metrics:
        offered = ", ".join(sorted(stored.asked.metrics))
        raise InvalidInputError(f"This holdout is asked for {offered}.")
    measure = _measure(stored.asked, metric)
    given = {plain_label(name): text for name, text in said.items()}
    digest = hashlib.sha256(json.dumps([metric, sorted(given.items())]).encode()).hexdigest()
    with _turn(stored.name):
        found = service.storage.read(lambda t: _scored(t, stored.name, member, key))
        if found is not None:
            if found[0] != digest:
                raise InvalidInputError(
                    "This Idempotency-Key asked another question; use a new one."
                )
            return found[1]
        study = study_of(service, stored)
        statistic = study.about_predictions(given, measure)
        label = f"{member} {hashlib.sha256(key.encode()).hexdigest()} {metric}"
        with closing(_resumed(service, stored, study)) as opened:
            number, answer = _answered(opened.transcript, label) or (0, None)
            if answer is None:
                answer = opened.ask(statistic, label=label)
                number = opened.asked
        score = Score(
            member=member,
            metric=metric,
            number=number,
            value=measure.value([answer.value]),
            overfit=answer.overfit,
            remaining=answer.remaining,
            at=jobs.written(jobs.now()),
        )
        service.storage.write(lambda t: _keep(t, stored, key, digest, score))
        return score


def _keep(t: Transaction, stored: Held, key: str, digest: str, score: Score) -> None:
    """Keep an answer under its key, and note that it was asked for."""
    t.rows(
        "INSERT INTO curator_standings (name, member, mark, digest, number, score) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        *(stored.name, score.member, key, digest, score.number),
        msgspec.json.encode(score).decode(),
    )
    t.note("act", f"asked holdout {stored.name}", score.member, dataset_of(stored))


def _scored(t: Transaction, name: str, member: str, key: str) -> tuple[str, Score] | None:
    """Return the answer under a member's key, and the digest of its question."""
    where = "WHERE name = ? AND member = ? AND mark = ?"
    row = t.row(f"SELECT digest, score FROM curator_standings {where}", name, member, key)  # noqa: S608
    return None if row is None else (str(row[0]), msgspec.json.decode(row[1], type=Score))


def standings(t: Transaction, name: str) -> list[Score]:
    """Return every member's best answer for each metric, best first."""
    rows = t.rows("SELECT score FROM curator_standings WHERE name = ? ORDER BY number", name)
    best: dict[tuple[str, str], Score] = {}
    for (text,) in rows:
        one = msgspec.json.decode(text, type=Score)
        known = best.get((one.member, one.metric))
        if known is None or one.value > known.value:
            best[one.member, one.metric] = one
    return sorted(best.values(), key=lambda one: (one.metric, -one.value, one.number))


def files(t: Transaction) -> list[str]:
    """Return the files of the vault that holdouts need."""
    rows = t.rows("SELECT made FROM curator_objects WHERE kind = 'holdout'")
    found = [json.loads(text) for (text,) in rows]
    return [made[side] for made in found for side in SIDES if side in made]


def _answered(transcript: Transcript, label: str) -> tuple[int, Answer] | None:
    """What was answered under a label, by a curator that ended before it had kept it."""
    for entry in transcript.entries:
        if entry.question == label and entry.value is not None:
            return entry.number, entry.answer()
    return None


def study_of(service: Service, stored: Held) -> Study:
    """Return both tables."""
    asked, files = stored.asked, [stored.made[side] for side in SIDES]
    return _study(service.vault, *files, asked.id_column, asked.target, asked.group)


@lru_cache(maxsize=4)
def _study(
    vault: Vault, train: str, holdout: str, identity: str, target: str, group: str | None
) -> Study:
    from quiltwork.holdout.studies import read_study
    from quiltwork.holdout.transcript import Columns

    with (
        vault.plain(train, ".csv") as public,
        vault.plain(holdout, ".csv") as private,
    ):
        return read_study(str(public), str(private), Columns(identity, target, group))


def transcript_of(service: Service, stored: Held) -> Transcript | None:
    """Return everything that an open holdout has said."""
    from quiltwork.holdout.transcript import load_transcript

    if "transcript" not in stored.made:
        return None
    return load_transcript(_folder(service) / stored.made["transcript"])


def _resumed(service: Service, stored: Held, study: Study) -> ReusableHoldout:
    from quiltwork.holdout import ReusableHoldout

    return ReusableHoldout.resume(
        _folder(service) / stored.made["transcript"],
        study.train,
        study.holdout,
        service.ledger,
        dataset_of(stored),
    )


def _folder(service: Service) -> Path:
    return private_folder(service.settings.data / "holdouts")


def _turn(name: str) -> threading.Lock:
    with _turns_lock:
        return _turns.setdefault(name, threading.Lock())
