"""A curator for the tests: an application on a fresh database, and a client for each role."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from starlette.testclient import TestClient

from quiltwork.beliefs import MarkovChain
from quiltwork.service.application import create_app
from quiltwork.service.features import open_service
from quiltwork.service.members import NewToken, invite, issue
from quiltwork.service.routes import Service
from quiltwork.service.settings import Limits, Settings
from tests.budget.ledger.conftest import postgres  # noqa: F401  (a fixture)

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
ROWS = "activity\n" + "rest\nwalk\nrest\nrest\n" * 25
PEOPLE = "who,sex,smoker\n" + "".join(
    f"p{i},{'fm'[i % 2]},{'yes' if i % 3 else 'no'}\n" for i in range(60)
)


@dataclass
class Team:
    """A running curator; `as_(member)` asks as somebody who was invited."""

    service: Service
    client: TestClient
    secrets: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)

    def join(self, member: str, role: str, by: str = "olga") -> None:
        """Invite somebody and keep a token for `as_`."""
        invite(self.service, member, role, by)
        self.secrets[member] = issue(self.service, member, by, NewToken()).secret

    def ask(self, member: str | None, method: str, path: str, key: str | None = None, **rest):
        """One request as a member, or as nobody."""
        headers = {**rest.pop("headers", {})}
        if member is not None:
            headers["Authorization"] = f"Bearer {self.secrets[member]}"
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.client.request(method, path, headers=headers, **rest)

    def told(self, member: str | None, method: str, path: str, key: str | None = None, **rest):
        """What a request that is granted is told."""
        answer = self.ask(member, method, path, key, **rest)
        assert answer.is_success, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def send(self, member: str, dataset: str, rows: str):
        """Upload rows as CSV."""
        headers = {"Content-Type": "text/csv"}
        path = f"/v1/datasets/{dataset}/rows"
        return self.told(member, "POST", path, content=rows.encode(), headers=headers)


@pytest.fixture
def limits():
    return Limits()


@pytest.fixture
def settings(tmp_path, limits):
    return Settings(f"sqlite:///{tmp_path / 'curator.db'}", tmp_path / "data", limits=limits)


@pytest.fixture
def team(settings):
    """A curator with one member in each role: olga, pia, anna, udo."""
    service = open_service(settings)
    with TestClient(create_app(service), "http://127.0.0.1") as client:
        running = Team(service, client)
        for member, role in (
            ("olga", "owner"),
            ("pia", "provider"),
            ("anna", "analyst"),
            ("udo", "auditor"),
        ):
            running.join(member, role)
        yield running


@pytest.fixture
def steps(team):
    """A series of olga's, of which pia adds rows and anna asks."""
    team.told(
        *("olga", "POST", "/v1/datasets"),
        json={
            "name": "steps",
            "budget": 1,
            "series": {"belief": json.loads(CHAIN.to_json()), "value": "activity"},
        },
    )
    for member in ("pia", "anna"):
        team.told("olga", "PUT", f"/v1/datasets/steps/access/{member}", json={})
    team.send("pia", "steps", ROWS)
    return "steps"


@pytest.fixture
def survey(team):
    """Counts of people."""
    team.told(
        *("olga", "POST", "/v1/datasets"),
        json={
            "name": "survey",
            "budget": 1,
            "counts": {
                "columns": {"sex": ["f", "m"], "smoker": ["yes", "no"]},
                "subject": "who",
                "people": 60,
            },
        },
    )
    team.told("olga", "PUT", "/v1/datasets/survey/access/anna", json={"cap": "1/2"})
    team.send("olga", "survey", PEOPLE)
    return "survey"
