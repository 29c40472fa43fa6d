"""The worker process: started with the server, started again when it dies, stopped gently."""

from __future__ import annotations

import os
import signal
import threading
import time

from quiltwork.cli.boundary import run
from quiltwork.errors import InvalidInputError
from quiltwork.service import jobs, worker
from quiltwork.service.jobs import Outcome
from tests.service.test_jobs import until

PACE = worker.Pace(lease=5, beat=0.02, look=0.01)


def workers(service):
    rows = service.storage.read(lambda t: t.rows("SELECT id FROM curator_workers"))
    return {int(name.split("-")[-2]) for (name,) in rows}


def submitted(service, mark="a"):
    return service.storage.write(
        lambda t: jobs.submit(t, "try", "olga", "x", {}, mark, jobs.new_id())
    )


def carried_out(service, monkeypatch, function, mark="a", stop=None):
    monkeypatch.setitem(jobs.WORKS, "try", function)
    name = submitted(service, mark)
    lease = jobs.claim(service.storage, "w", PACE.lease, only=name)
    worker.carry_out(service, lease, PACE, stop)
    return service.storage.read(lambda t: jobs.JOBS.one(t, id=name))


def test_a_worker_that_is_killed_is_started_again_and_leaves_with_the_server(team, settings):
    with worker.supervised(settings):
        until(lambda: workers(team.service))
        (first,) = workers(team.service)
        os.kill(first, signal.SIGKILL)
        until(lambda: workers(team.service) - {first})
    assert workers(team.service) == {first}  # the second took its leave, the first could not


def test_what_fails_is_told_in_a_sentence_and_never_with_what_was_raised(team, monkeypatch):
    def refused(*_):
        raise InvalidInputError("There is nothing to do.")

    def broken(*_):
        raise KeyError("canary-77aa")

    assert carried_out(team.service, monkeypatch, refused).error == "There is nothing to do."
    found = carried_out(team.service, monkeypatch, broken, "b")
    assert found.state == "failed"
    assert "fault of the curator" in found.error
    assert "canary" not in found.error


def endless(service, lease, progress):
    for step in range(10_000):
        time.sleep(0.005)
        progress(step, 10_000)
    return Outcome({})


def test_a_worker_told_to_stop_puts_its_job_back(team, monkeypatch):
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    found = carried_out(team.service, monkeypatch, endless, stop=stop)
    assert (found.state, found.attempts) == ("queued", 0)


def test_a_cancelled_job_ends_at_its_next_point_of_progress(team, monkeypatch):
    def cancel():
        team.told("olga", "POST", f"/v1/jobs/{name}/cancellation")

    monkeypatch.setitem(jobs.WORKS, "try", endless)
    name = submitted(team.service)
    lease = jobs.claim(team.service.storage, "w", PACE.lease)
    threading.Timer(0.1, cancel).start()
    worker.carry_out(team.service, lease, PACE)
    told = team.told("olga", "GET", f"/v1/jobs/{name}")
    assert (told["state"], told["cancel_requested"]) == ("cancelled", True)
    assert 0 < told["done"] < told["total"]


def test_the_command_does_what_waits_and_ends(team, settings):
    name = submitted(team.service)
    line = ["worker", "--database", settings.database, "--data", str(settings.data), "--once"]
    assert run(line) == 0
    found = team.service.storage.read(lambda t: jobs.JOBS.one(t, id=name))
    assert found.state == "failed"  # nobody knows this kind of work
