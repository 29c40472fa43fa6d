from __future__ import annotations

import pytest


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
