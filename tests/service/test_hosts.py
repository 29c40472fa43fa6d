from __future__ import annotations

import logging
import os
import re

import pytest

from quiltwork.errors import StorageError


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:80", "127.0.0.1:80@evil.example"]
)
def test_under_a_name_that_was_not_allowed_nothing_is_answered(team, host):
    for path in ("/v1/me", "/healthz", "/"):
        answer = team.ask("olga", "GET", path, headers={"Host": host})
        assert answer.status_code == 421
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000"])
def test_names_of_this_machine_are_allowed(team, host):
    assert team.ask("olga", "GET", "/v1/me", headers={"Host": host}).status_code == 200


def test_it_is_ready_while_database_and_data_directory_can_be_used(team, monkeypatch):
    assert team.ask(None, "GET", "/readyz").json() == {"status": "ready"}
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda *_: False)  # nobody can be kept out by rights as root
        assert team.ask(None, "GET", "/readyz").status_code == 503

    def away(work):
        raise StorageError("The database is away.")

    monkeypatch.setattr(team.service.storage, "read", away)
    answer = team.ask(None, "GET", "/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})


def test_the_access_log_has_routes_and_no_names_or_values(team, steps, caplog):
    caplog.set_level(logging.INFO, "quiltwork.access")
    team.ask("anna", "GET", "/v1/datasets/steps")
    team.ask("anna", "GET", "/v1/datasets/canary-7f")
    team.ask(None, "GET", "/v1/me?token=canary-7f")
    lines = [one.getMessage() for one in caplog.records if one.name == "quiltwork.access"]
    assert [line.rsplit(" ", 2)[0] for line in lines] == [
        "GET /v1/datasets/{dataset} 200",
        "GET /v1/datasets/{dataset} 404",
        "GET /v1/me 401",
    ]
    assert not re.search("steps|anna|canary", "\n".join(lines))


def test_nobody_is_sent_elsewhere_with_a_token(team):
    """A redirection would lead from https to what the server takes for its own address."""
    for path in ("/v1/datasets/", "/v1/datasets//", "/v1/me/"):
        answer = team.client.get(path, headers=bearer(team), follow_redirects=False)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"


def bearer(team):
    return {"Authorization": f"Bearer {team.secrets['olga']}"}
