"""The table of rights, tried from the routes: every role, own and other's objects, and nobody."""

from __future__ import annotations

import json

import pytest

from quiltwork.beliefs import MarkovChain
from quiltwork.service.features import FEATURES
from quiltwork.service.jobs import new_id, submit
from quiltwork.service.rights import RIGHTS, ROLES

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
RULES = {"quasi_identifiers": ["age"], "sensitive": "ill", "k": 2}
HOLDOUT = {"id_column": "id", "target": "y", "threshold": 0.1, "noise": 0.1, "budget": 1}
ROUTES = [route for part in FEATURES for route in part.routes]
MEMBERS = {"owner": "olga", "provider": "pia", "analyst": "anna", "auditor": "udo"}
BODIES = {
    "register_dataset": lambda: {"name": "new", "budget": 1, "counts": {"columns": {"a": ["b"]}}},
    "invite_member": lambda: {"name": "newcomer", "role": "analyst"},
    "ask": lambda: {"query": {"kind": "histogram"}, "epsilon": 0.01},
    "preview": lambda: {"query": {"kind": "histogram"}, "epsilon": 0.01},
    "plan": lambda: {"questions": [{"query": {"kind": "histogram"}}]},
    "remap": lambda: {"people": 5},
    "make_table": lambda: {"name": "new", "rules": RULES},
    "set_table_rules": lambda: RULES,
    "register_holdout": lambda: {**HOLDOUT, "name": "new"},
    "ask_holdout": lambda: {"predictions": {"1": "0"}},
}
"""Bodies that are taken; others are empty documents."""


def series(name):
    return {
        "name": name,
        "budget": 5,
        "series": {"belief": json.loads(CHAIN.to_json()), "value": "state"},
    }


@pytest.fixture
def house(team):
    """Objects of two owners: `mine` and people of olga's, `theirs` and people of otto's."""
    team.join("otto", "owner", "otto")
    for member, role in (("pit", "provider"), ("amy", "analyst"), ("una", "auditor")):
        team.join(member, role, "otto")
    for owner, name, people in (
        ("olga", "mine", ("pia", "anna")),
        ("otto", "theirs", ("pit", "amy")),
    ):
        team.told(owner, "POST", "/v1/datasets", json=series(name))
        team.send(owner, name, "state\nrest\nwalk\n")
        for member in people:
            team.told(owner, "PUT", f"/v1/datasets/{name}/access/{member}", json={})
        team.told(owner, "POST", "/v1/tables", json={"name": name, "rules": RULES})
        team.told(owner, "POST", "/v1/holdouts", json={"name": name, **HOLDOUT})
        for member in people:
            for kind in ("tables", "holdouts"):
                team.told(owner, "PUT", f"/v1/{kind}/{name}/access/{member}")
    for member in team.secrets:
        team.made[member] = new_id()
        team.service.storage.write(lambda t, who=member: submit(t, who, "x", team.made[who]))
    return team


def token_of(team, member):
    row = team.service.storage.read(
        lambda t: t.row("SELECT id FROM curator_tokens WHERE member = ?", member)
    )
    return row[0]


def objects(team, role, own):
    """A value for each parameter of a path: the role's own object, or another's."""
    self_or_other = MEMBERS[role] if own else "una"
    return {
        "dataset": "mine" if own else "theirs",
        "member": self_or_other,
        "token": token_of(team, self_or_other),
        "release": "1",
        "job": team.made[self_or_other],
        "table": "mine" if own else "theirs",
        "holdout": "mine" if own else "theirs",
        "side": "train",
    }


def request(team, member, route, values):
    path = route.path
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    rest = {}
    if route.request is not None:
        rest["json"] = BODIES.get(route.name, dict)()
    if route.upload:
        rest = {"content": b"state\nrest\n", "headers": {"Content-Type": "text/csv"}}
    return team.ask(member, route.method, path, "key" if route.spends else None, **rest)


def parameters(route):
    return [part.strip("{}") for part in route.path.split("/") if part.startswith("{")]


def test_every_route_has_its_line_and_every_line_its_route():
    assert {route.action for route in ROUTES} == set(RIGHTS)
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    known = {name for part in FEATURES for name in part.ownership}
    for route in ROUTES:
        assert set(parameters(route)) <= known | set(route.free), route.path


def destroys(route):
    back = route.name.startswith(("dismiss", "unshare"))  # olga takes nothing back from herself
    return (route.method == "DELETE" and not back) or route.name == "retire_dataset"


def test_who_may_do_what_that_leaves_all_in_place(house):
    for route in ROUTES:
        if not destroys(route):
            tried(house, route)


@pytest.mark.parametrize("route", list(filter(destroys, ROUTES)), ids=lambda route: route.name)
def test_who_may_do_what_that_takes_something_away(house, route):
    tried(house, route)


def tried(house, route):
    """Ask for one thing as everybody, about own objects and those of others."""
    assert request(house, None, route, objects(house, "owner", own=True)).status_code == 401
    for role in (*ROLES[1:], "owner"):  # the owner last: she may take away what others ask for
        allowed = RIGHTS[route.action].get(role)
        for own in (False, True):
            if destroys(route) and own and allowed and role != "owner":
                continue  # tried with the owner: nobody else has anything to lose twice
            answer = request(house, MEMBERS[role], route, objects(house, role, own=own))
            case = (route.name, role, own, answer.text)
            if allowed is None:
                assert answer.status_code == 403, case
            elif allowed == "own" and not own and set(parameters(route)) - set(route.free):
                assert answer.status_code == 404, case
            else:
                assert answer.status_code not in (401, 403, 500), case
                if not route.free:
                    assert answer.status_code != 404, case


def test_a_narrowed_token_is_for_its_actions_and_datasets_only(house):
    def narrowed(**how):
        made = house.told("olga", "POST", "/v1/members/olga/tokens", json=how)
        house.secrets["narrow"] = made["secret"]

    narrowed(actions=["dataset.read"])
    assert house.ask("narrow", "GET", "/v1/datasets/mine").status_code == 200
    assert house.ask("narrow", "GET", "/v1/datasets").status_code == 403
    narrowed(datasets=["elsewhere"])
    assert house.ask("narrow", "GET", "/v1/datasets/mine").status_code == 404
    assert house.told("narrow", "GET", "/v1/datasets")["items"] == []
    assert house.ask("narrow", "GET", "/v1/members").status_code == 403
    assert house.ask("narrow", "POST", "/v1/members/olga/tokens", json={}).status_code == 403
    narrowed(actions=["token.create"])
    assert house.ask("narrow", "POST", "/v1/members/olga/tokens", json={}).status_code == 403
    wider = {"actions": ["token.create"]}
    known = house.told("olga", "GET", "/v1/members/olga/tokens")["items"]
    made = house.told("narrow", "POST", "/v1/members/olga/tokens", json={**wider, "days": 3650})
    assert made["token"]["expires"] <= max(one["expires"] for one in known)


def test_revoked_expired_and_removed_are_told_apart_by_nobody(house):
    token = token_of(house, "anna")
    assert house.ask("anna", "GET", "/v1/me").status_code == 200
    house.told("olga", "DELETE", f"/v1/members/anna/tokens/{token}")
    revoked = house.ask("anna", "GET", "/v1/me")
    house.told("olga", "DELETE", "/v1/members/pia")
    removed = house.ask("pia", "GET", "/v1/me")
    house.service.storage.write(
        lambda t: t.rows("UPDATE curator_tokens SET expires = ?", "2020-01-01T00:00:00+00:00")
    )
    expired = house.ask("olga", "GET", "/v1/me")
    none = house.ask(None, "GET", "/v1/me")
    assert {one.text for one in (revoked, removed, expired)} == {none.text}
    assert none.status_code == 401


def test_a_token_is_stored_as_its_hash_and_its_use_is_seen(house, settings):
    from quiltwork.service.members import write_last_uses

    house.told("anna", "GET", "/v1/me")
    write_last_uses(house.service)
    (token,) = house.told("anna", "GET", "/v1/members/anna/tokens")["items"]
    assert token["used"] is not None
    stored = house.service.storage.read(lambda t: t.rows("SELECT * FROM curator_tokens"))
    assert not any(secret in str(stored) for secret in house.secrets.values())
