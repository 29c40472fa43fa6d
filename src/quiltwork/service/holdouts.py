"""Competitions: named metrics of predictions by row id, answered at once, and who stands where.

The owner uploads a training table and a holdout and opens them with a threshold, a noise and a
number of rounds; from then on neither changes. Or, as a *ladder*, labels alone and a number of
submissions: only what clearly beats the best is told, no row is protected and no ledger pays. The
training table counts as public: analysts have it to learn from, and answers that come from it are
exact. The budget of the rounds is a dataset of the ledger, just large enough for them. Transcripts
and their secrets are in the data directory; one process at a time holds them, and a question is
answered within its request. A key that was answered is answered again from what was kept, also if
the curator ended in between: the transcript knows it by its label.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from quiltwork.client.records import Score
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import to_fraction, typed_fraction
from quiltwork.holdout.board import Board, read_board
from quiltwork.holdout.leaderboard import need_classes
from quiltwork.holdout.metrics import Metric, MetricName, Scoring, read_metric
from quiltwork.holdout.transcript import Columns, Transcript, read_transcript
from quiltwork.service import jobs, ladders
from quiltwork.service.datasets import Column
from quiltwork.service.objects import Kind, StoredObject
from quiltwork.service.settings import private_folder
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document, Name, Number, exact_number

if TYPE_CHECKING:
    from quiltwork.holdout.studies import Study
    from quiltwork.service.routes import Service
    from quiltwork.service.vault import Vault

SIDES = ("train", "holdout")


class NewHoldout(Document, frozen=True):
    """A holdout to register; `metrics` names those that may be asked, errors with public ends.

    `budget` is of rounds, with `threshold` and `noise`; of a ladder, of submissions. `attempts` is
    how many answers each member may get; `positive`, `variance`, `floor` and `classes` are those of
    `Scoring`; of rounds, the labels of the training table are the classes if none are given.
    """

    name: Name
    id_column: Column
    target: Column
    budget: Annotated[int, Meta(ge=1, le=10**6)]
    threshold: Number | None = None
    noise: Number | None = None
    mode: Literal["rounds", "ladder"] = "rounds"
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
class Held(StoredObject):
    """A holdout; `made` has the files `train` and `holdout`, and a `transcript` once it is open."""

    asked: NewHoldout


HOLDOUTS = Kind("holdout", Held)


def dataset_of(stored: Held) -> str | None:
    """Return the ledger's name for a holdout's budget; no ledger pays for a ladder."""
    return None if stored.asked.mode == "ladder" else f"holdout.{stored.name}"


def sides_of(mode: str) -> tuple[str, ...]:
    """Return which tables one needs."""
    return SIDES[1:] if mode == "ladder" else SIDES


def check_asked(asked: NewHoldout) -> None:
    """Refuse numbers that are none, and a metric that lacks what it needs or needs more rounds."""
    numbers = (asked.threshold, asked.noise)
    if asked.mode == "ladder":
        if numbers != (None, None) or len(asked.metrics) != 1:
            raise InvalidInputError(
                "A ladder has one metric, and neither threshold nor noise: it tells no score but "
                "the best."
            )
        need_classes(_scoring(asked, next(iter(asked.metrics))))
    else:
        _settings(asked)
    for name in asked.metrics:
        metric = measure_of(asked, name)
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
    from quiltwork.holdout.metrics import plain_label

    ends = asked.metrics[name]
    limits = None if ends is None else (_end(ends[0]), _end(ends[1]))
    variance, floor = (
        None if one is None else exact_number(one, kind)
        for one, kind in ((asked.variance, "variance"), (asked.floor, "floor"))
    )
    positive = plain_label(asked.positive)
    compares = read_metric(name, limits, positive, variance, floor).labels
    classes = tuple(asked.classes) if asked.classes is not None and compares else None
    return Scoring(name, limits, positive, variance, floor, classes)


def measure_of(asked: NewHoldout, name: Any) -> Metric:
    """Return a metric that may be asked."""
    return _scoring(asked, name).read()


def _end(value: int | float | str) -> Fraction:
    """Read a public end of a target exactly; the lower one is often 0 or below."""
    return to_fraction(typed_fraction(value) if isinstance(value, str) else value, "limits")


def open_holdout(service: Service, stored: Held) -> None:
    """Check both tables, set the budget in the ledger and begin the transcript."""
    with service.lock_for("holdout", stored.name):
        stored = service.read(lambda t: HOLDOUTS.current(t, stored.name))
        refuse_deleted(stored)
        if "transcript" in stored.made:
            return
        if not stored.made.keys() >= set(sides_of(stored.asked.mode)):
            raise InvalidInputError(f"Upload first: {', '.join(sides_of(stored.asked.mode))}.")
        name = f"{secrets.token_hex(16)}.jsonl"
        path = _folder(service) / name
        if stored.asked.mode == "ladder":
            ladders.begin(path, _labels(service, stored), stored.asked.budget)
        else:
            _begin_rounds(service, stored, path)

        def work(t: Transaction) -> None:
            now = HOLDOUTS.current(t, stored.name)
            if "transcript" not in now.made:
                if now.made != stored.made:
                    raise InvalidInputError("A table was given anew meanwhile; open it again.")
                HOLDOUTS.update(t, now, transcript=name)
                t.note("act", f"opened holdout {stored.name}", stored.owner, dataset_of(stored))

        service.write(work)


def refuse_deleted(stored: Held) -> None:
    """Refuse a holdout whose tables are gone."""
    if "deleted" in stored.made:
        raise BudgetExceeded("The tables of this holdout were deleted: nothing more is answered.")


def _begin_rounds(service: Service, stored: Held, path: Path) -> None:
    """Set the budget in the ledger and begin the transcript."""
    from quiltwork.beliefs import MarkovChain
    from quiltwork.budget import Accountant, Spending
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.algorithm import AlgorithmSettings

    study, rounds = study_of(service, stored), stored.asked.budget
    threshold, noise = _settings(stored.asked)
    rows, belief = len(study.holdout), study.belief()
    ties = belief or MarkovChain([[0.5, 0.5], [0.5, 0.5]])  # rows that know nothing of others
    settings = AlgorithmSettings.choose(rows, threshold, noise, rounds)
    whole = Spending.dp(settings.round_epsilon * rounds, 1, rows)
    length = rows if belief is None else None
    total = Accountant(ties, length).after(whole).total
    dataset = str(dataset_of(stored))
    if dataset not in {status.dataset for status in service.ledger.datasets()}:
        service.ledger.create(dataset, ties, length, total)
    ReusableHoldout(
        study.train,
        study.holdout,
        belief,
        threshold=threshold,
        noise=noise,
        budget=rounds,
        path=path,
        ledger=service.ledger,
        dataset=dataset,
        columns=study.columns,
    ).close()


def ask(
    service: Service, stored: Held, member: str, key: str, metric: str, said: Mapping[str, str]
) -> Score:
    """Score predictions, once for each key of a member; blocks until it is answered.

    Ids that do not match, a metric that is not offered and a key of another question are refused,
    and nothing was asked then.
    """
    from quiltwork.holdout.metrics import plain_label

    if "transcript" not in stored.made:
        raise InvalidInputError("The holdout is not open yet.")
    if metric not in stored.asked.metrics:
        offered = ", ".join(sorted(stored.asked.metrics))
        raise InvalidInputError(f"This holdout is asked for {offered}.")
    measure = measure_of(stored.asked, metric)
    given = {plain_label(name): text for name, text in said.items()}
    if len(given) < len(said):
        raise InvalidInputError("An id occurs twice among the predictions. Nothing was asked.")
    digest = hashlib.sha256(json.dumps([metric, sorted(given.items())]).encode()).hexdigest()
    with service.lock_for("holdout", stored.name):
        asked = {"name": stored.name, "member": member, "mark": key}
        found = service.read(lambda t: KEPT.one(t, **asked))
        if found is not None:
            if found.digest != digest:
                raise InvalidInputError(
                    "This Idempotency-Key asked another question; use a new one."
                )
            return found.score
        refuse_deleted(service.read(lambda t: HOLDOUTS.current(t, stored.name)))
        mark = hashlib.sha256(json.dumps([key, digest]).encode()).hexdigest()
        label = f"{member} {mark} {metric}"
        if stored.asked.mode == "ladder":
            rows, path = _labels(service, stored), path_of(service, stored)
            check = partial(_check_attempts, stored.asked, member)
            told = ladders.submit(path, rows, label, given, check)
        else:
            told = _by_rounds(service, stored, label, given, measure)
        score = Score(member=member, metric=metric, at=jobs.written(jobs.now()), **told)

        def work(t: Transaction) -> None:
            KEPT.add(t, KeptScore(**asked, digest=digest, number=score.number, score=score))
            t.note("act", f"asked holdout {stored.name}", member, dataset_of(stored))

        service.write(work)
        return score


def _by_rounds(
    service: Service, stored: Held, label: str, said: Mapping[str, str], measure: Metric
) -> dict[str, Any]:
    """Ask the reusable holdout, unless it knows the label already."""
    from quiltwork.holdout import ReusableHoldout

    study, path = study_of(service, stored), path_of(service, stored)
    statistic = study.about_predictions(said, measure)
    tables, payer = (study.train, study.holdout), (service.ledger, dataset_of(stored))
    with closing(ReusableHoldout.resume(path, *tables, *payer, ladders.WAIT)) as opened:
        entries = [one for one in opened.transcript.entries if one.question == label]
        known = next((one for one in entries if one.value is not None), None)
        if known is not None:  # by a curator that ended before it had kept it
            number, answer = known.number, known.answer(opened.transcript.settings)
        else:
            _check_attempts(stored.asked, label.split()[0], opened.transcript)
            answer = opened.ask(statistic, label=label)
            number = opened.asked
    spread = measure.interval([answer.value], answer.noise_sd)
    return {
        "number": number,
        "value": measure.value([answer.value]),
        "overfit": answer.overfit,
        "remaining": answer.remaining,
        "noise_sd": (spread.high - spread.low) / 2,
    }


def attempts_of(told: Transcript | Board | None, member: str) -> int:
    """Return how many answers a member got, or has begun to get."""
    return 0 if told is None else sum(one.startswith(f"{member} ") for one in told.labels)


def _check_attempts(asked: NewHoldout, member: str, told: Transcript | Board) -> None:
    """Refuse a member who has used up her attempts."""
    if asked.attempts is not None and attempts_of(told, member) >= asked.attempts:
        raise BudgetExceeded(f"All {asked.attempts:,} attempts of yours are used.")


def study_of(service: Service, stored: Held) -> Study:
    """Return both tables."""
    files = [stored.made[side] for side in SIDES]
    return _study(service.vault, *files, _columns(stored.asked))


def forget_rows() -> None:
    """Forget the tables that were read lately."""
    _study.cache_clear()
    ladders.scored.cache_clear()


@lru_cache(maxsize=4)
def _study(vault: Vault, train: str, holdout: str, columns: Columns) -> Study:
    from quiltwork.holdout.studies import read_study

    with (
        vault.plain(train, ".csv") as public,
        vault.plain(holdout, ".csv") as private,
    ):
        return read_study(str(public), str(private), columns)


def told_by(service: Service, stored: Held) -> Transcript | Board | None:
    """Return everything that an open holdout has said, as far as its secret seals it."""
    from quiltwork.holdout.folders import sealed_lines

    if "transcript" not in stored.made or "deleted" in stored.made:
        return None
    read = read_board if stored.asked.mode == "ladder" else read_transcript
    return read(sealed_lines(path_of(service, stored)))


def _labels(service: Service, stored: Held) -> ladders.Labels:
    """Return where the labels of a ladder are, and how they are scored."""
    scoring = _scoring(stored.asked, next(iter(stored.asked.metrics)))
    return ladders.Labels(service.vault, stored.made["holdout"], _columns(stored.asked), scoring)


def _columns(asked: NewHoldout) -> Columns:
    return Columns(asked.id_column, asked.target, asked.group)


def path_of(service: Service, stored: Held) -> Path:
    """Return where the lines of an open holdout are."""
    return _folder(service) / str(stored.made["transcript"])


def _folder(service: Service) -> Path:
    return private_folder(service.settings.data / "holdouts")


@dataclass(frozen=True)
class KeptScore:
    """An answer under its key, and the digest of its question."""

    name: str
    member: str
    mark: str
    digest: str
    number: int
    score: Score


KEPT = TableOf("curator_standings", KeptScore, "name, member, mark")
SCHEMA = Schema("standings", (KEPT,))


def scores(t: Transaction, name: str, member: str | None = None) -> list[Score]:
    """Return every answer, or those of one member, in order."""
    found = [one.score for one in KEPT.all(t, "name = ? ORDER BY number", name)]
    return [one for one in found if member in (None, one.member)]


def standings(t: Transaction, name: str) -> list[Score]:
    """Return every member's best answer for each metric, best first."""
    best: dict[tuple[str, str], tuple[float, Score]] = {}
    for one in scores(t, name):
        known = best.get((one.member, one.metric))
        if one.value is not None and (known is None or one.value > known[0]):
            best[one.member, one.metric] = (one.value, one)
    ranked = sorted(best.values(), key=lambda found: (found[1].metric, -found[0], found[1].number))
    return [one for _, one in ranked]
