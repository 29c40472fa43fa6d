"""The curator's tables: in the ledger's database and transactions, on both kinds."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace

import pytest

from evidence.checks.curator_load import check as shared
from evidence.faults.server import new_database
from quiltwork.errors import StorageError
from quiltwork.service.features import open_service
from quiltwork.service.members import first_owner, invite, member_of
from quiltwork.service.problems import problem_of
from quiltwork.service.storage import VERSION, Schema
from tests.budget.ledger.conftest import postgres  # noqa: F401  (a fixture)

RULES = {"quasi_identifiers": ["age"], "sensitive": "ill", "k": 2}


@pytest.fixture(params=["sqlite", "postgres"])
def service(request, settings):
    if request.param == "postgres":
        url = new_database(request.getfixturevalue("postgres"), f"t{uuid.uuid4().hex}")
        settings = replace(settings, database=url)
    return open_service(settings)


def test_a_second_start_finds_what_the_first_has_made(service):
    assert first_owner(service, "olga") is not None
    again = open_service(service.settings)
    assert first_owner(again, "otto") is None
    assert member_of(again, "olga") is not None


def test_what_a_crash_has_left_goes_once_nobody_can_be_about_to_name_it(settings):
    vault = open_service(settings).vault
    left, cut = vault.write([b"rows"]), vault.folder / f"{32 * 'a'}.part"
    cut.write_bytes(b"half")
    assert {left} == open_service(settings).vault.names()
    for path in (vault.folder / left, cut):
        os.utime(path, (0, 0))
    assert not open_service(settings).vault.names()
    assert not cut.exists()


def test_what_is_written_and_its_note_are_there_together_or_not_at_all(service):
    invite(service, "olga", "owner", "olga")

    def work(t):
        t.rows("UPDATE curator_members SET removed = 'now' WHERE name = ?", "olga")
        t.note("act", "removed olga", "olga")
        raise KeyError

    before = service.ledger.checkpoint()
    with pytest.raises(KeyError):
        service.storage.write(work)
    assert member_of(service, "olga") is not None
    assert service.ledger.checkpoint() == before
    assert service.ledger.notes()[0].kind == "act"
    service.ledger.verify()


def test_analysts_share_a_budget_on_postgres(postgres):  # noqa: F811
    found = shared(4, 4, 10, database=new_database(postgres, f"t{uuid.uuid4().hex}"))
    assert (found["answered"], found["refused"]) == (10, 6)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_tables_of_another_version_are_refused(service, version):
    service.storage.prepare([Schema("extra"), Schema("extra")])
    service.write(lambda t: t.rows("UPDATE curator_schema SET version = ?", version))
    with pytest.raises(StorageError, match=f"version {version}, and this release"):
        service.storage.prepare([Schema("extra")])


def test_what_failed_is_told_to_the_log_and_not_to_clients(caplog):
    told = problem_of(StorageError("The ledger '/srv/curator.db' could not be written."))
    assert (told.status, "/srv" in told.detail) == (503, False)
    assert "/srv/curator.db" in caplog.text
