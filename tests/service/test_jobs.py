"""The job table: leases, fences, cancelling, the place in the queue; two workers and kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from evidence.faults.server import new_database
from quiltwork.service import jobs
from quiltwork.service.features import open_service
from quiltwork.service.jobs import shown
from quiltwork.service.settings import Settings


@pytest.fixture(params=["sqlite", "postgres"])
def service(request, tmp_path):
    """A curator on each kind of database."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'curator.db'}"
    else:
        url = new_database(request.getfixturevalue("postgres"), f"t{uuid.uuid4().hex}")
    opened = open_service(Settings(url, tmp_path / "data"))
    yield opened
    opened.ledger.close()


def submitted(service, mark="a", **body):
    return service.storage.write(
        lambda t: jobs.submit(t, "count", "olga", "x", body, mark, jobs.new_id())
    )


def found(service, identity):
    return service.storage.read(lambda t: jobs.JOBS.one(t, id=identity))


def told(service, identity):
    return service.storage.read(lambda t: shown(t, jobs.JOBS.one(t, id=identity)))


def abandoned(service):
    """Lease the next job as a worker that is never heard of again."""
    lease = jobs.claim(service.storage, "gone", 0.0)
    time.sleep(0.005)
    return lease


def test_a_mark_makes_one_job_and_places_are_told(service):
    first, second = submitted(service, "a"), submitted(service, "b")
    assert submitted(service, "a") == first
    assert [told(service, one).place for one in (first, second)] == [0, 1]
    assert "none is running" in told(service, first).waiting_for
    jobs.worker_beat(service.storage, "w", jobs.now())
    assert told(service, second).waiting_for == "1 job before it"
    assert told(service, second).worker_age < 60


def test_a_worker_that_lost_its_lease_can_write_nothing(service):
    name = submitted(service)
    lost = abandoned(service)
    held = jobs.claim(service.storage, "other", 60)
    assert (held.id, held.attempts, held.fence) == (name, 2, lost.fence + 1)

    def also(t):
        t.note("act", "published", "olga")

    for attempt in (
        lambda: jobs.finish(service.storage, lost, jobs.Outcome({"stale": True}, also)),
        lambda: jobs.fail(service.storage, lost, "failed", "stale"),
        lambda: jobs.beat(service.storage, lost, 1, 2, 60),
        lambda: jobs.give_back(service.storage, lost),
    ):
        with pytest.raises(jobs.LeaseLostError):
            attempt()
    assert found(service, name) == held
    assert not [note for note in service.ledger.notes() if note.text == "published"]
    jobs.finish(service.storage, held, jobs.Outcome({"right": True}, also))
    assert found(service, name).result == {"right": True}
    assert len([note for note in service.ledger.notes() if note.text == "published"]) == 1
    with pytest.raises(jobs.LeaseLostError):
        jobs.finish(service.storage, held, jobs.Outcome({"again": True}))


def test_an_abandoned_job_is_taken_over_once_and_then_fails_with_a_sentence(service):
    name = submitted(service)
    abandoned(service)
    abandoned(service)
    assert jobs.claim(service.storage, "third", 60) is None
    assert told(service, name).state == "failed"
    assert "ended twice" in told(service, name).error


def test_a_clock_that_is_set_back_strands_no_job_and_vouches_for_no_worker(service, monkeypatch):
    name, real = submitted(service), jobs.now
    submitted(service, "next")
    lost = jobs.claim(service.storage, "gone", 10)
    jobs.worker_beat(service.storage, "gone", jobs.now())
    monkeypatch.setattr(jobs, "now", lambda: real() - 60_000)  # another machine's clock
    assert jobs.claim(service.storage, "other", 10, only=name) is None
    monkeypatch.setattr(jobs, "now", lambda: real() - 3_600_000)
    assert "none is running" in told(service, submitted(service, "next")).waiting_for
    held = jobs.claim(service.storage, "other", 10)
    assert (held.id, held.fence) == (name, lost.fence + 1)
    jobs.finish(service.storage, held, jobs.Outcome({}))


def test_a_job_that_is_put_back_keeps_its_place_and_its_attempts(service):
    first, _ = submitted(service, "a"), submitted(service, "b")
    for _ in range(3):
        jobs.give_back(service.storage, jobs.claim(service.storage, "w", 60))
    assert jobs.claim(service.storage, "w", 60).id == first


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_where_its_worker_looks(service):
    waiting, running = submitted(service, "b"), submitted(service, "a")
    lease = jobs.claim(service.storage, "w", 60, only=running)
    for one in (waiting, running):
        service.storage.write(lambda t, one=one: jobs.cancel(t, one))
    assert told(service, waiting).state == "cancelled"
    assert told(service, running).waiting_for == "its worker, to stop where it can"
    assert jobs.beat(service.storage, lease, 1, 2, 60) is True
    assert jobs.claim(service.storage, "w", 60) is None


def begun(service, tmp_path):
    command = [sys.executable, str(Path(__file__).with_name("working.py"))]
    return subprocess.Popen(
        [*command, service.settings.database, str(tmp_path / "data")], stdin=subprocess.PIPE
    )


def until(condition, looks=2400):
    for _ in range(looks):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it does not come to pass")


def test_two_workers_share_the_queue_and_survive_kill_9_of_one(service, tmp_path):
    """One job hangs in its first attempt, one in every attempt until it is cancelled."""
    quick = [submitted(service, f"quick {n}") for n in range(6)]
    hanging, stuck = submitted(service, "hang", hang=1), submitted(service, "stuck", hang=9)
    workers = {str(one.pid): one for one in (begun(service, tmp_path) for _ in range(2))}
    try:
        until(lambda: found(service, hanging).state == "running")
        killed = found(service, hanging).worker.split("-")[-2]
        os.kill(int(killed), signal.SIGKILL)
        until(lambda: found(service, stuck).state == "running")
        service.storage.write(lambda t: jobs.cancel(t, stuck))
        until(lambda: found(service, hanging).state == "done")
        until(lambda: all(found(service, one).state == "done" for one in quick))
        assert found(service, hanging).attempts == 2
        assert found(service, hanging).worker.split("-")[-2] != killed
        until(lambda: found(service, stuck).state == "cancelled")
        texts = [note.text for note in service.ledger.notes()]
        assert sorted(t for t in texts if t.startswith("did")) == sorted(
            f"did {one}" for one in (*quick, hanging)
        )
        service.ledger.verify()
    finally:
        for one in workers.values():
            one.stdin.close()
        ends = {pid: one.wait(30) for pid, one in workers.items()}
    assert ends == {pid: -signal.SIGKILL if pid == killed else 0 for pid in workers}
