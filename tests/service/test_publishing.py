"""Publications in child processes of the one server: cancelled, killed and taken up once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from evidence.curators import running
from evidence.faults.server import new_database
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.service import jobs, publication_process
from quiltwork.service.features import open_service
from quiltwork.service.settings import Settings
from quiltwork.service.single_server import single_server

ROWS = 3_000
"""Of each provider: they take a few seconds."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """A database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'curator.db'}"
    return new_database(request.getfixturevalue("postgres"), f"t{uuid.uuid4().hex}")


@pytest.fixture
def service(url, tmp_path):
    """A curator on each kind of database."""
    opened = open_service(Settings(url, tmp_path / "data"))
    yield opened
    opened.ledger.close()


def submitted(service):
    name = jobs.new_id()
    service.write(lambda t: jobs.submit(t, "olga", "x", name))
    return name


def found(service, identity):
    return service.read(lambda t: jobs.JOBS.find(t, id=identity))


def test_jobs_wait_in_order_and_are_taken_up_once(service):
    first, second = submitted(service), submitted(service)
    places = [
        service.read(lambda t, one=one: jobs.job_record(t, jobs.JOBS.get(t, id=one))).place
        for one in (first, second)
    ]
    assert places == [0, 1]
    begun = jobs.start_next(service.storage)
    assert (begun.id, begun.attempts) == (first, 1)
    jobs.return_to_queue(service.storage, begun)  # the server stops: that counts as nothing
    for attempt in (1, 2):
        begun = jobs.start_next(service.storage)
        assert (begun.id, begun.attempts) == (first, attempt)
        jobs.note_progress(service.storage, begun, 1, 2)
        jobs.requeue_interrupted(service.storage)  # its process was killed
        with pytest.raises(jobs.LeaseLostError):
            jobs.note_progress(service.storage, begun, 2, 2)
    ended = found(service, first)
    assert ended.state == "failed"
    assert "died twice" in ended.error
    assert jobs.start_next(service.storage).id == second


def test_what_fails_is_told_in_a_sentence_and_never_with_what_was_raised(service, monkeypatch):
    def refused(*_):
        raise InvalidInputError("There is nothing to do.")

    def broken(*_):
        raise KeyError("canary-77aa")

    errors = []
    for function in (refused, broken):
        monkeypatch.setattr(publication_process, "published_from", function)
        name = submitted(service)
        publication_process.finish_waiting(service)
        assert found(service, name).state == "failed"
        errors.append(found(service, name).error)
    assert errors[0] == "There is nothing to do."
    assert "Internal error of the curator" in errors[1]
    assert "canary" not in errors[1]


def test_a_second_server_on_the_same_database_is_refused(url):
    with (
        single_server(url),
        pytest.raises(StorageError, match="Another curator is running"),
        single_server(url),
    ):
        pass
    with single_server(url):
        pass  # the first has ended


def test_a_second_command_on_the_same_database_ends_with_a_sentence(tmp_path):
    with running(tmp_path) as curator:
        command = [sys.executable, "-m", "quiltwork", "serve", "--port", "0"]
        command += ["--data", str(tmp_path / "other"), "--database", curator.database]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 3
        assert "Another curator is running" in ran.stderr
        curator.kill()
        curator.start()  # what was killed holds nothing


def child_of(job):
    """The process that publishes, by its command line."""
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdigit() else []
        except OSError:
            continue
        if job.encode() in words:
            return int(folder.name)
    return None


def until(condition, looks=6000):
    for _ in range(looks):
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError("it does not come to pass")


def queued(curator, folder, name):
    """A table that takes a moment, and the job that publishes it."""
    olga = curator.as_("olga")
    olga.make_table(name, ["age", "zip"], "ill", k=3, m=1)
    rows = "".join(f"{20 + n % 60},{1000 + n * 7919 % 9000},{n % 5}\n" for n in range(ROWS))
    (folder / "part.csv").write_text(f"age,zip,ill\n{rows}")
    for provider in ("north", "south"):
        olga.admit("table", name, provider)
        curator.as_(provider).give_rows(name, folder / "part.csv")
    return olga.publish(name).id


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc")
def test_a_child_that_is_killed_is_followed_by_one_other_and_a_cancelled_one_is_killed(tmp_path):
    with running(tmp_path) as curator:
        olga = curator.as_("olga")
        for provider in ("north", "south"):
            curator.join(provider, "provider")
        job = queued(curator, tmp_path, "first")
        os.kill(until(lambda: child_of(job)), signal.SIGKILL)
        until(lambda: olga.job(job).state == "done")
        assert olga.job(job).attempts == 2
        assert olga.published("first").count("\n") == 2 * ROWS + 1

        cancelled = queued(curator, tmp_path, "second")
        child = until(lambda: child_of(cancelled))
        assert olga.cancel(cancelled).state == "cancelled"
        until(lambda: not Path(f"/proc/{child}").exists())
        assert olga.table("second").state == "collecting"

        again = olga.publish("second").id
        until(lambda: child_of(again))
        curator.kill()  # the server; its child ends with it
        until(lambda: child_of(again) is None)
        curator.start()
        until(lambda: olga.job(again).state == "done")
        assert olga.job(again).attempts == 2
        until(lambda: not (tmp_path / "data" / "publishing").exists())
