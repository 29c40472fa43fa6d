"""The page about the curator names every route, right, kind of refusal and limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

from quiltwork.beliefs import MarkovChain
from quiltwork.client import Curator
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


UNASKED = {
    "list_members",
    "list_tokens",
    "remove_member",
    "set_table_rules",
    "delete_own_rows",
    "remap",
    "show_release",
    "show_leakage",
    "show_score_file",
    "show_ranking_file",
    "ask_holdout_by_file",
}
"""Routes that no method of the client asks: people do, on pages."""


class Recorded:
    """Stands for the wire: keeps what the client would send, and answers nothing of use."""

    url = "http://127.0.0.1"

    def __init__(self):
        self.sent = set()

    def request(self, method, path, body=None, *, key=None, media_type="", retry=False):
        self.sent.add((method, path, key is not None, body is not None and media_type != ""))
        ranking = {"metric": "", "confidence": 0.95, "method": "", "scores": []}
        return {"rows": 0, "secret": "", "content": "", "items": [], **ranking}

    def pages(self, path):
        self.sent.add(("GET", path, False, False))
        return iter(())


ARGUMENTS = {
    "beliefs": MarkovChain([[0.5, 0.5]] * 2, states=["a", "b"]),
    "columns": {"sex": ["f", "m"]},
    "questions": [{"query": {"kind": "histogram"}}],
    "query": {"kind": "histogram"},
    "predictions": {"1": "0"},
    "quasi_identifiers": ["age"],
    "role": "analyst",
    "kind": "table",
    "budget": 1,
    "epsilon": 1,
    "k": 2,
    "cap": 1,
    "reserved": 1,
}


def test_every_method_of_the_client_asks_a_route_as_its_record_says(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("age\n3\n")
    client, wire = Curator("http://127.0.0.1", "t"), Recorded()
    client._connection = wire
    methods = [name for name in vars(Curator) if not name.startswith("_")]
    for name in methods:
        needed = [
            one.name
            for one in signature(getattr(client, name)).parameters.values()
            if one.kind is one.POSITIONAL_OR_KEYWORD
        ]
        files = dict.fromkeys(("file", "train", "holdout"), file)
        own = {"holdout": "x"} if name != "register_holdout" else {}
        given = {one: {**ARGUMENTS, **files, **own}.get(one, one) for one in needed}
        if name in ("admit", "dismiss"):
            getattr(client, name)("holdout", "x", "anna")
        made = getattr(client, name)(**{**given, **({"key": "k"} if "key" in needed else {})})
        list(made) if isinstance(made, Iterator) else None
    routes = {
        one.name: (one.method, re.compile(re.sub(r"{\w+}", "[^/]+", one.path) + r"(\?.*)?"), one)
        for feature in FEATURES
        for one in feature.routes
    }
    asked = set()
    for method, path, keyed, sends in wire.sent:
        found = [n for n, (verb, at, _) in routes.items() if verb == method and at.fullmatch(path)]
        assert len(found) == 1, (method, path)
        name = found[0]
        route = routes[name][2]
        assert keyed == route.spends, name
        assert sends <= (route.upload or route.request is not None), name
        asked.add(name)
    assert asked | UNASKED == routes.keys()
    assert not asked & UNASKED


def test_what_is_answered_as_json_with_csv_inside_is_not_documented_as_csv():
    for name in ("tables/{table}/publication", "tables/{table}/row-groups", "ranking/file"):
        (line,) = [row for row in PAGE.splitlines() if f"{name}`" in row and "`GET" in row]
        assert "CSV text in" in line
        assert "JSON" in line
