"""A curator to look at: the four stories of `quiltwork demo`, with a member in every role."""

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
Ask: TypeAlias = Callable[..., Any]
"""Asks a curator for a member, by the name of a route."""
SHOWN = (OWNER, "anna", "north", "udo")
"""Whose tokens are told: one in each role."""
_FLIPS = ("tails", "heads")
_ROWS = 10_000
_DAY = 144
"""Ten-minute steps of a day."""


def fill(service: Service) -> dict[str, str]:
    """Tell the stories, all made up, to an empty curator; return a token for each role.

    Costs a few seconds, most of them for the first compiled sweep and the table.
    """
    if service.read(lambda t: t.row("SELECT name FROM curator_members")) is not None:
        raise InvalidInputError("This curator is in use; a demonstration needs --data of its own.")
    for name, role in TEAM.items():
        invite(service, name, role, OWNER)

    def ask(who: str, name: str, *arguments: Any, **rest: Any) -> Any:
        return service.ask(caller(who), name, *arguments, **rest)

    for story in (_series, _counts, _table, _leaderboard):
        story(ask)
    finish_waiting(service)
    return {
        f"{name} ({TEAM[name]})": issue(service, name, OWNER, NewToken(label="demo", days=1)).secret
        for name in SHOWN
    }


def caller(name: str) -> Caller:
    """Return a member of the demo as one who asks."""
    return Caller(name, TEAM[name], "demo")


def _series(ask: Ask) -> None:
    """Four weeks of one person, of which some days are published already."""
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
    said = "What a tracker notes every ten minutes: rest, walk or run."
    asked: dict[str, Any] = {"name": "activity", "budget": 4, "series": about, "text": said}
    ask(OWNER, "register_dataset", None, asked)
    moments = days.sample(story.LENGTH, story.SEED)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begun = today - timedelta(minutes=10 * story.LENGTH)
    rows = [
        f"{begun + timedelta(minutes=10 * i):%Y-%m-%dT%H:%M:%SZ},{state}"
        for i, state in enumerate(moments)
    ]
    ask(OWNER, "add_rows", name, parts=_file("at,activity", *rows))
    ask(OWNER, "share_dataset", {**name, "member": "anna"}, {"cap": "2"})
    for week in range(4):
        window = [1 + 7 * _DAY * week, 7 * _DAY * (week + 1)]
        asked = {"query": {"kind": "histogram", "window": window}, "epsilon": "0.8"}
        ask("anna", "ask", name, asked, key=f"week-{week}")
    asked = {"query": {"kind": "transitions"}, "epsilon": "0.2"}
    ask(OWNER, "ask", name, asked, key="transitions")


def _counts(ask: Ask) -> None:
    """How residents travel to work."""
    from quiltwork.demo import counts_chapter as story

    name = {"dataset": "commuting"}
    said = "How the residents of a town travel to work."
    about = {"columns": {"mode": list(story.MODES)}}
    asked: dict[str, Any] = {"name": "commuting", "budget": 1, "counts": about, "text": said}
    ask(OWNER, "register_dataset", None, asked)
    ask(OWNER, "add_rows", name, parts=_file("mode", *story.survey()))
    ask(OWNER, "share_dataset", {**name, "member": "anna"}, {})
    asked = {"query": {"kind": "table", "by": ["mode"]}, "epsilon": "0.1"}
    ask("anna", "ask", name, asked, key="modes")


def _table(ask: Ask) -> None:
    """Patients of four hospitals, published so that none of them can undo it."""
    from quiltwork.demo import tables_chapter as story

    name = {"table": "admissions"}
    columns = {"quasi_identifiers": ["age", "zip"], "sensitive": "disease"}
    rules = {**columns, "k": story.K, "l": story.L, "m": story.M}
    ask(OWNER, "make_table", None, {"name": name["table"], "rules": rules})
    people = story.patients().frame.to_pylist()
    for hospital in story.HOSPITALS:
        who = hospital.lower()
        ask(OWNER, "admit_to_table", {**name, "member": who})
        rows = [
            f"{one['age']},{one['zip']},{one['disease']}"
            for one in people
            if one["hospital"] == hospital
        ]
        ask(who, "give_rows", name, parts=_file("age,zip,disease", *rows))
    ask(OWNER, "admit_to_table", {**name, "member": "anna"})
    ask(OWNER, "publish_table", name)


def _leaderboard(ask: Ask) -> None:
    """Coin flips to predict: nothing can be learnt, and the board does not praise who tries."""
    import numpy as np

    from quiltwork.demo import holdout_chapter as story

    name = {"holdout": "coin-flips"}
    rng = np.random.default_rng(story.SEED)
    asked = {"id_column": "id", "target": "side", "threshold": "0.04", "noise": "0.002"}
    ask(OWNER, "register_holdout", None, {"name": name["holdout"], "budget": 5, **asked})
    truth = {
        side: {f"{side}-{i}": flip for i, flip in enumerate(rng.integers(0, 2, _ROWS))}
        for side in ("train", "holdout")
    }
    for side, rows in truth.items():
        lines = (f"{i},{_FLIPS[flip]}" for i, flip in rows.items())
        ask(OWNER, "give_side", {**name, "side": side}, parts=_file("id,side", *lines))
    ask(OWNER, "open_holdout", name)
    ask(OWNER, "admit_to_holdout", {**name, "member": "anna"})
    learnt = {i: _FLIPS[flip] for i, flip in truth["train"].items()}
    guesses = rng.integers(0, 2, _ROWS)
    guessed = {i: _FLIPS[flip] for i, flip in zip(truth["holdout"], guesses, strict=True)}
    heads = dict.fromkeys([*truth["train"], *truth["holdout"]], _FLIPS[1])
    for who, said in ((OWNER, heads), ("anna", {**learnt, **guessed})):
        ask(who, "ask_holdout", name, {"predictions": said}, key="first")


def _file(*lines: str) -> list[bytes]:
    return ["\n".join([*lines, ""]).encode()]
