"""Holdouts and their standings: named metrics of predictions by row id, answered at once.

The owner uploads a training table and a holdout and opens them with a threshold, a noise and a
number of rounds; from then on neither changes. The budget of the rounds is a dataset of the ledger,
just large enough for them. Answers are those of `ReusableHoldout`, whose transcript and secret are
in the data directory; one process at a time holds them, and a question is answered within its
request. A key that was answered is answered again from what was kept, also if the curator ended in
between: the transcript knows it by its label.
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
from typing import TYPE_CHECKING

from quiltwork.errors import InvalidInputError
from quiltwork.service import jobs
from quiltwork.service.holdout_rows import Rules, Score, Stored, current, dataset_of, keep, scored
from quiltwork.service.settings import private_folder
from quiltwork.service.storage import Transaction
from quiltwork.service.tables import told_without

if TYPE_CHECKING:
    from quiltwork.holdout import Answer, ReusableHoldout
    from quiltwork.holdout.metrics import Metric
    from quiltwork.holdout.studies import Study
    from quiltwork.holdout.transcript import Transcript
    from quiltwork.service.routes import Service
    from quiltwork.service.uploads import Upload
    from quiltwork.service.vault import Vault

SIDES = ("train", "holdout")
_turns: dict[str, threading.Lock] = {}
_turns_lock = threading.Lock()


def check_metrics(rules: Rules) -> None:
    """Refuse a metric that has no public ends and needs some.

    Raises:
        InvalidInputError: naming the metric.
    """
    for name in rules.metrics:
        _measure(rules, name)


def _measure(rules: Rules, name: str) -> Metric:
    from quiltwork.holdout.metrics import read_metric

    ends = rules.metrics[name]
    return read_metric(name, None if ends is None else (Fraction(ends[0]), Fraction(ends[1])))


def put_side(service: Service, stored: Stored, side: str, upload: Upload) -> int:
    """Keep one of the two tables, as CSV; return how many rows it has.

    Raises:
        InvalidInputError: once the holdout is open, or for a file that cannot be read.
    """
    from quiltwork.holdout.studies import read_table

    if upload.suffix != ".csv":
        raise InvalidInputError("The tables of a holdout are uploaded as CSV.")
    with upload.table() as path:
        with told_without(path):
            _, rows = read_table(str(path))
        file = service.vault.write([path.read_bytes()])

    def work(transaction: Transaction) -> str:
        now = current(transaction, stored.name)
        if now.transcript:
            raise InvalidInputError("The holdout is open, and its tables do not change any more.")
        transaction.rows(
            f"UPDATE curator_holdouts SET {side} = ? WHERE name = ?",  # noqa: S608
            *(file, stored.name),
        )
        transaction.note("act", f"gave the {side} table of holdout {stored.name}", stored.owner)
        return now.train if side == "train" else now.holdout

    try:
        replaced = service.storage.write(work)
    except BaseException:
        service.vault.delete(file)
        raise
    if replaced not in ("", file):
        service.vault.delete(replaced)
    return len(rows)


def open_holdout(service: Service, stored: Stored) -> None:
    """Check both tables, set the budget in the ledger and begin the transcript.

    Raises:
        InvalidInputError: if a table is missing or they do not go together.
    """
    from quiltwork.beliefs import MarkovChain
    from quiltwork.budget import Accountant, Spending
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.algorithm import Settings

    with _turn(stored.name):
        stored = service.storage.read(lambda t: current(t, stored.name))
        if stored.transcript:
            return
        if not (stored.train and stored.holdout):
            raise InvalidInputError("Upload the training table and the holdout first.")
        rules, study = stored.rules, study_of(service, stored)
        rows, belief = len(study.holdout), study.belief()
        ties = belief or MarkovChain([[0.5, 0.5], [0.5, 0.5]])  # rows that know nothing of others
        settings = Settings.choose(
            rows, Fraction(rules.threshold), Fraction(rules.noise), rules.budget
        )
        whole = Spending.dp(settings.round_epsilon * rules.budget, 1, rows)
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
            threshold=Fraction(rules.threshold),
            noise=Fraction(rules.noise),
            budget=rules.budget,
            path=_folder(service) / name,
            ledger=service.ledger,
            dataset=dataset,
            columns=study.columns,
        )
        made.close()

        def work(transaction: Transaction) -> None:
            transaction.rows(
                "UPDATE curator_holdouts SET transcript = ? WHERE name = ? AND transcript = ''",
                *(name, stored.name),
            )
            transaction.note("act", f"opened holdout {stored.name}", stored.owner, dataset)

        service.storage.write(work)


def ask(
    service: Service, stored: Stored, member: str, key: str, metric: str, said: Mapping[str, str]
) -> Score:
    """Score predictions, once for each key of a member; blocks until it is answered.

    Raises:
        InvalidInputError: for ids that do not match, with how many; a metric that is not offered;
            a key of another question. Nothing was asked.
        BudgetExceeded: once all rounds are spent.
    """
    from quiltwork.holdout.questions import plain_label

    rules = stored.rules
    if not stored.transcript:
        raise InvalidInputError("The holdout is not open yet.")
    if metric not in rules.metrics:
        raise InvalidInputError(f"This holdout is asked for {', '.join(sorted(rules.metrics))}.")
    measure = _measure(rules, metric)
    given = {plain_label(name): text for name, text in said.items()}
    digest = hashlib.sha256(json.dumps([metric, sorted(given.items())]).encode()).hexdigest()
    with _turn(stored.name):
        found = service.storage.read(lambda t: scored(t, stored.name, member, key))
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
            member,
            metric,
            number,
            measure.value([answer.value]),
            answer.overfit,
            answer.remaining,
            jobs.now(),
        )
        service.storage.write(lambda t: keep(t, stored, key, digest, score))
        return score


def _answered(transcript: Transcript, label: str) -> tuple[int, Answer] | None:
    """What was answered under a label, by a curator that ended before it had kept it."""
    for entry in transcript.entries:
        if entry.question == label and entry.value is not None:
            return entry.number, entry.answer()
    return None


def study_of(service: Service, stored: Stored) -> Study:
    """Return both tables."""
    rules = stored.rules
    return _study(
        service.vault, stored.train, stored.holdout, rules.identity, rules.target, rules.group
    )


@lru_cache(maxsize=4)
def _study(
    vault: Vault, train: str, holdout: str, identity: str, target: str, group: str | None
) -> Study:
    from quiltwork.holdout.studies import read_study
    from quiltwork.holdout.transcript import Columns

    with (
        vault.plain(train, ".csv") as public,
        vault.plain(holdout, ".csv") as private,
        told_without(public, private),
    ):
        return read_study(str(public), str(private), Columns(identity, target, group))


def transcript_of(service: Service, stored: Stored) -> Transcript | None:
    """Return everything that an open holdout has said."""
    from quiltwork.holdout.transcript import load_transcript

    if not stored.transcript:
        return None
    return load_transcript(_folder(service) / stored.transcript)


def _resumed(service: Service, stored: Stored, study: Study) -> ReusableHoldout:
    from quiltwork.holdout import ReusableHoldout

    return ReusableHoldout.resume(
        _folder(service) / stored.transcript,
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
