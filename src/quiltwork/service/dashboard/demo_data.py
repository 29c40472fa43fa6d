"""Demo data for a curator: the four stories of `quiltwork demo`, with members in every role."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from quiltwork.errors import InvalidInputError
from quiltwork.service.members import NewToken, invite, issue
from quiltwork.service.publication_process import finish_waiting
from quiltwork.service.rights import Caller, Role
from quiltwork.service.routes import Service

OWNER = "olga"
TEAM: dict[str, Role] = {
    OWNER: "owner",
    "anna": "analyst",
    "north": "provider",
    "east": "provider",
    "south": "provider",
    "west": "provider",
    "udo": "auditor",
}
Api: TypeAlias = Callable[..., Any]
"""Calls a route of the curator by name, as a member."""
SHOWN = (OWNER, "anna", "north", "udo")
"""The members whose tokens are printed, one in each role."""
_FLIPS = ("tails", "heads")
_ROWS = 10_000
_DAY = 144
"""Ten-minute steps of a day."""


def fill(service: Service) -> dict[str, str]:
    """Fill an empty curator with simulated data; return a token for each role.

    Takes a few seconds, mostly for compiling the sweep once and for the table.
    """
    if service.read(lambda t: t.row("SELECT name FROM curator_members")) is not None:
        raise InvalidInputError(
            "This curator is in use. Give the demo an empty directory with --data."
        )
    for name, role in TEAM.items():
        invite(service, name, role, OWNER)

    def api(member: str, route: str, *arguments: Any, **rest: Any) -> Any:
        return service.call(caller(member), route, *arguments, **rest)

    for story in (_series, _counts, _table, _leaderboard):
        story(api)
    finish_waiting(service)
    return {
        f"{name} ({TEAM[name]})": issue(service, name, OWNER, NewToken(label="demo", days=1)).secret
        for name in SHOWN
    }


def caller(name: str) -> Caller:
    """Return a demo member as a caller."""
    return Caller(name, TEAM[name], "demo")


def _series(api: Api) -> None:
    """Four weeks of one person's activity, with some answers released."""
    from quiltwork.beliefs import MarkovChain, beliefs_to_json
    from quiltwork.demo import series_chapter as story

    days = MarkovChain(story.TRANSITION, states=story.STATES)
    volunteers = [days.sample(story.LENGTH, story.SEED + i) for i in range(1, story.VOLUNTEERS + 1)]
    belief = MarkovChain.fit(volunteers, smoothing=0.5, states=story.STATES)
    name = {"dataset": "activity"}
    about: dict[str, Any] = {
        "belief": json.loads(beliefs_to_json(belief)),
        "value": "activity",
        "time": "at",
        "every": "10min",
        "timezone": "UTC",
    }
    text = "One person's activity every ten minutes: rest, walk or run."
    spec: dict[str, Any] = {"name": "activity", "budget": 4, "series": about, "text": text}
    api(OWNER, "register_dataset", None, spec)
    moments = days.sample(story.LENGTH, story.SEED)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = today - timedelta(minutes=10 * story.LENGTH)
    rows = [
        f"{start + timedelta(minutes=10 * i):%Y-%m-%dT%H:%M:%SZ},{state}"
        for i, state in enumerate(moments)
    ]
    api(OWNER, "add_rows", name, parts=_file("at,activity", *rows))
    api(OWNER, "share_dataset", {**name, "member": "anna"}, {"cap": "2"})
    for week in range(4):
        window = [1 + 7 * _DAY * week, 7 * _DAY * (week + 1)]
        question = {"query": {"kind": "histogram", "window": window}, "epsilon": "0.8"}
        api("anna", "ask", name, question, key=f"week-{week}")
    question = {"query": {"kind": "transitions"}, "epsilon": "0.2"}
    api(OWNER, "ask", name, question, key="transitions")


def _counts(api: Api) -> None:
    """How residents of a town travel to work."""
    from quiltwork.demo import counts_chapter as story

    name = {"dataset": "commuting"}
    text = "How the residents of a town travel to work."
    about = {"columns": {"mode": list(story.MODES)}}
    spec: dict[str, Any] = {"name": "commuting", "budget": 1, "counts": about, "text": text}
    api(OWNER, "register_dataset", None, spec)
    api(OWNER, "add_rows", name, parts=_file("mode", *story.survey()))
    api(OWNER, "share_dataset", {**name, "member": "anna"}, {})
    question = {"query": {"kind": "table", "by": ["mode"]}, "epsilon": "0.1"}
    api("anna", "ask", name, question, key="modes")


def _table(api: Api) -> None:
    """Patients of four hospitals in one table that withstands each of them."""
    from quiltwork.demo import tables_chapter as story

    name = {"table": "admissions"}
    columns = {"quasi_identifiers": ["age", "zip"], "sensitive": "disease"}
    rules = {**columns, "k": story.K, "l": story.L, "m": story.M}
    api(OWNER, "make_table", None, {"name": name["table"], "rules": rules})
    people = story.patients().frame.to_pylist()
    for hospital in story.HOSPITALS:
        provider = hospital.lower()
        api(OWNER, "admit_to_table", {**name, "member": provider})
        rows = [
            f"{person['age']},{person['zip']},{person['disease']}"
            for person in people
            if person["hospital"] == hospital
        ]
        api(provider, "give_rows", name, parts=_file("age,zip,disease", *rows))
    api(OWNER, "admit_to_table", {**name, "member": "anna"})
    api(OWNER, "publish_table", name)


def _leaderboard(api: Api) -> None:
    """Coin flips to predict: nothing can be learnt, and the board shows scores near 50 %."""
    import numpy as np

    from quiltwork.demo import holdout_chapter as story

    name = {"holdout": "coin-flips"}
    rng = np.random.default_rng(story.SEED)
    spec = {"id_column": "id", "target": "side", "threshold": "0.04", "noise": "0.002"}
    api(OWNER, "register_holdout", None, {"name": name["holdout"], "budget": 5, **spec})
    truth = {
        side: {f"{side}-{i}": flip for i, flip in enumerate(rng.integers(0, 2, _ROWS))}
        for side in ("train", "holdout")
    }
    for side, rows in truth.items():
        lines = (f"{i},{_FLIPS[flip]}" for i, flip in rows.items())
        api(OWNER, "give_side", {**name, "side": side}, parts=_file("id,side", *lines))
    api(OWNER, "open_holdout", name)
    api(OWNER, "admit_to_holdout", {**name, "member": "anna"})
    learnt = {i: _FLIPS[flip] for i, flip in truth["train"].items()}
    guesses = rng.integers(0, 2, _ROWS)
    guessed = {i: _FLIPS[flip] for i, flip in zip(truth["holdout"], guesses, strict=True)}
    heads = dict.fromkeys([*truth["train"], *truth["holdout"]], _FLIPS[1])
    for member, predictions in ((OWNER, heads), ("anna", {**learnt, **guessed})):
        api(member, "ask_holdout", name, {"predictions": predictions}, key="first")


def _file(*lines: str) -> list[bytes]:
    return ["\n".join([*lines, ""]).encode()]
