"""The page about the curator names every route, right, kind of refusal and limit."""

from __future__ import annotations

from pathlib import Path

from quiltwork.service.features import FEATURES
from quiltwork.service.problems import KINDS
from quiltwork.service.rights import RIGHTS, ROLES
from quiltwork.service.settings import Limits

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "service.md").read_text("utf-8")


def test_every_route_is_described_as_it_describes_itself():
    for route in (route for part in FEATURES for route in part.routes):
        line = f"| `{route.method} {route.path}` | `{route.action}` | {route.summary} |"
        assert line in PAGE, line


def test_the_table_of_rights_is_the_one_that_is_kept():
    for action, roles in RIGHTS.items():
        line = f"| `{action}` | " + " | ".join(roles.get(role, "") for role in ROLES) + " |"
        assert line in PAGE, line


def test_every_kind_of_refusal_and_every_limit_is_named():
    assert all(f"| `{kind}` |" in PAGE for kind in KINDS)
    limits = Limits()
    for number in (limits.rows, limits.columns, limits.field):
        assert f"{number:,}" in PAGE
    assert f"{limits.upload // 10**6} MB" in PAGE
