"""A debit carries the proof that its noise suffices, from before the answer is drawn."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

import pytest

import quiltwork as qw
from evidence.faults.raw import raw
from quiltwork.audit import check_certificate
from quiltwork.budget import Ledger, Spending
from quiltwork.errors import (
    InvalidInputError,
    NotPrivateError,
    QuiltworkError,
    StorageError,
    UnsupportedError,
)

QUERY = qw.queries.count("walk")


@pytest.fixture
def data(chain):
    return chain.sample(40, seed=1)


@pytest.fixture
def certified(ledger, chain, data):
    """A ledger with one release before, one with a certificate, and one after."""
    ledger.create("d", chain, 40, 3)
    for proof in (False, True, False):
        qw.release(data, QUERY, chain, 0.5, ledger=ledger, dataset="d", certificate=proof)
    return ledger


def proof_of(chain, epsilon=0.5, query=QUERY, length=40):
    return qw.influence.certificate(qw.calibrate(chain, length, epsilon, query=query))


def test_a_release_stores_its_certificate_with_its_debit(certified, url, tmp_path):
    before, proved, after = certified.history("d")
    text = certified.certificate("d", proved.number)
    assert proved.certificate == hashlib.sha256(text.encode()).hexdigest()
    assert before.certificate is after.certificate is None
    assert certified.certificate("d", before.number) is None
    [claim] = check_certificate(text)
    [[first, last, points, change]] = claim["charges"]
    assert (first, last, points) == (1, 40, 1)
    assert change / Fraction(claim["scale"]) == proved.spending.per_point
    assert certified.verify(certificates=True) == certified.checkpoint()
    # the answer follows the certificate in the log
    kinds = [entry.kind for entry in certified.log(proved.number - 1, 2)]
    assert kinds == ["debit", "answer"]
    # a backup carries it, too
    certified.backup(tmp_path / "backup.jsonl")
    copy = Ledger.restore(tmp_path / "backup.jsonl", f"sqlite:///{tmp_path / 'copy.db'}")
    assert copy.certificate("d", proved.number) == text
    assert copy.verify(certificates=True)


@pytest.mark.parametrize(
    "query",
    [
        qw.queries.histogram(),
        qw.queries.transitions(),
        qw.queries.frequencies(),
        qw.queries.count("walk").on(5, 9),
        qw.queries.count("walk").on_runs(((3, 7), (20, 30))),
    ],
    ids=["histogram", "transitions", "frequencies", "window", "two windows"],
)
def test_every_kind_of_level_is_compared(ledger, chain, data, query):
    ledger.create("d", chain, 40, 3)
    qw.release(data, query, chain, 0.5, ledger=ledger, dataset="d", certificate=True)
    [debit] = ledger.history("d")
    assert debit.certificate
    assert ledger.verify(certificates=True)


def test_a_retry_returns_the_answer_and_keeps_the_first_certificate(ledger, chain, data):
    ledger.create("d", chain, 40, 1)
    paid = {"ledger": ledger, "dataset": "d", "key": "monday", "epsilon": 0.5}
    first = qw.release(data, QUERY, chain, **paid, certificate=True)
    assert qw.release(data, QUERY, chain, **paid) == first
    assert qw.release(data, QUERY, chain, **paid, certificate=True) == first
    [debit] = ledger.history("d")
    assert debit.certificate


def test_what_proves_something_else_is_refused_before_anything_is_spent(ledger, chain):
    ledger.create("d", chain, 40, 3)
    spending = Spending.of_query(QUERY, qw.calibrate(chain, 40, 0.5, query=QUERY).scale, 40, 0.5)
    other = qw.MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.8, 0.2], states=["rest", "walk"])
    lowered = json.loads(proof_of(chain))
    lowered["certificates"][0]["scale"] = str(
        Fraction(lowered["certificates"][0]["scale"]) * Fraction(99, 100)
    )
    for text, sentence in (
        (proof_of(other), "not about belief 1"),
        (proof_of(chain, query=QUERY.on(1, 20)), "other levels"),
        (proof_of(chain, 0.4), "other levels"),
        (json.dumps(lowered), "does not hold"),
        ("no certificate", "JSON"),
        (7, "certificate"),
        ("x" * (10**6 + 1), "characters"),
    ):
        with pytest.raises(QuiltworkError, match=sentence):
            ledger.debit("d", spending, certificate=text)
    # less than what is charged is proved: more noise would be needed
    with pytest.raises(InvalidInputError, match="other levels"):
        ledger.debit("d", spending.times(2), certificate=proof_of(chain))
    with pytest.raises(UnsupportedError, match="pure"):
        ledger.debit("d", Spending.gaussian(1, 40, rho=0.01), certificate=proof_of(chain))
    assert ledger.history("d") == ()
    ledger.debit("d", spending, certificate=proof_of(chain))


def test_noise_without_a_certificate_is_refused_before_anything_is_spent(ledger, chain, data):
    box = qw.ChainBox([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]], states=["rest", "walk"])
    ledger.create("box", box, 40, 1)
    ledger.create("gauss", chain, 40, 1, delta=1e-6)
    with pytest.raises(UnsupportedError, match="Certificates are"):
        qw.release(data, QUERY, box, 0.5, ledger=ledger, dataset="box", certificate=True)
    gaussian = {"noise": "gaussian", "delta": 1e-9, "certificate": True}
    with pytest.raises(UnsupportedError, match="Gaussian"):
        qw.release(data, QUERY, chain, 0.5, ledger=ledger, dataset="gauss", **gaussian)
    with pytest.raises(InvalidInputError, match="no ledger"):
        qw.release(data, QUERY, chain, 0.5, certificate=True)
    assert ledger.history("box") == ledger.history("gauss") == ()


@pytest.mark.parametrize("rehashed", [False, True])
def test_a_changed_certificate_is_found(certified, url, rehashed):
    """By the chain of hashes; by the checker also if somebody wrote the whole log anew."""
    from quiltwork.budget.ledger.entries import Head, _digest, origin

    _, proved, _ = certified.history("d")
    [claim] = check_certificate(certified.certificate("d", proved.number))
    scale = claim["scale"]
    with raw(url) as connection:
        for entry in certified.log():
            body = entry.body
            if entry.seq == proved.number:
                body = body.replace(f'\\"scale\\": \\"{scale}\\"', '\\"scale\\": \\"1\\"')
                body = body.replace(f'\\"scale\\":\\"{scale}\\"', '\\"scale\\":\\"1\\"')
                assert body != entry.body
            if entry.seq == 1:
                head = Head(0, origin(certified.checkpoint().ledger_id)).hash
            head = _digest(head, entry.seq, entry.id, entry.dataset, entry.kind, body)
            quoted = body.replace("'", "''")
            if entry.seq == proved.number:
                connection.execute(
                    f"UPDATE quiltwork_entries SET body = '{quoted}' WHERE seq = {entry.seq}"  # noqa: S608
                )
            if rehashed:
                connection.execute(
                    f"UPDATE quiltwork_entries SET hash = '{head}' WHERE seq = {entry.seq}"  # noqa: S608
                )
        if rehashed:
            connection.execute("DELETE FROM quiltwork_snapshots")
    changed = Ledger.open(url)
    if not rehashed:
        with pytest.raises(StorageError, match="was changed"):
            changed.verify()
        return
    assert changed.verify()
    with pytest.raises(StorageError, match="does not prove it"):
        changed.verify(certificates=True)


def test_a_number_that_is_no_debit_has_no_certificate(certified):
    for number in (1, 10**30):
        with pytest.raises(InvalidInputError, match="no debit"):
            certified.certificate("d", number)
    with pytest.raises(NotPrivateError):
        check_certificate(
            json.dumps({"schema": "quiltwork/certificate", "version": 1, "certificates": []})
        )
