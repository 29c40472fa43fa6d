"""Members and their tokens."""

from __future__ import annotations


def test_everybody_is_told_who_she_is(team):
    for member, role in (("olga", "owner"), ("udo", "auditor")):
        answer = team.ask(member, "GET", "/v1/me")
        assert answer.status_code == 200
        assert (answer.json()["member"], answer.json()["role"]) == (member, role)
    assert team.ask(None, "GET", "/v1/me").status_code == 401
