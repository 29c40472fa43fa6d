"""Who may do what: one table of actions and roles, and nothing that is not in it.

A role may do an action on any object ("any"), on its own ones ("own"), or not at all. Whose an
object is, is asked by the name of the path's parameter (`belongs` of a part):

- a dataset belongs to the owner who registered it, and to those who were given access to it;
- a member belongs to herself and to the owner who invited her;
- a token belongs to its member and to the owner who invited her;
- a job belongs to who asked for it;
- a table or holdout belongs to the owner who made it, and to those who were admitted.

Who may do an action on own objects only is told that others do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Role: TypeAlias = Literal["owner", "provider", "analyst", "auditor"]
Scope: TypeAlias = Literal["any", "own"]
ROLES: tuple[Role, ...] = get_args(Role)

_EVERYBODY_OWN: Mapping[Role, Scope] = dict.fromkeys(ROLES, "own")

RIGHTS: Mapping[str, Mapping[Role, Scope]] = {
    "self.read": dict.fromkeys(ROLES, "any"),
    "member.create": {"owner": "any"},
    "member.list": {"owner": "own"},
    "member.remove": {"owner": "own"},
    "token.create": {"owner": "own"},
    "token.list": _EVERYBODY_OWN,
    "token.revoke": _EVERYBODY_OWN,
    "dataset.create": {"owner": "any"},
    "dataset.list": {"owner": "own", "provider": "own", "analyst": "own", "auditor": "any"},
    "dataset.read": {"owner": "own", "provider": "own", "analyst": "own", "auditor": "any"},
    "dataset.share": {"owner": "own"},
    "dataset.retire": {"owner": "own"},
    "data.add": {"owner": "own", "provider": "own"},
    "data.delete": {"owner": "own"},
    "question.preview": {"owner": "own", "analyst": "own"},
    "question.plan": {"owner": "own", "analyst": "own"},
    "question.ask": {"owner": "own", "analyst": "own"},
    "release.read": {"owner": "own", "analyst": "own"},
    "release.remap": {"owner": "own", "analyst": "own"},
    "ledger.read": {"owner": "own", "auditor": "any"},
    "job.list": {"owner": "own", "analyst": "own"},
    "job.read": {"owner": "own", "analyst": "own", "auditor": "any"},
    "job.cancel": {"owner": "own", "analyst": "own"},
    "table.create": {"owner": "any"},
    "table.list": {"owner": "own", "provider": "own", "analyst": "own", "auditor": "any"},
    "table.read": {"owner": "own", "provider": "own", "analyst": "own", "auditor": "any"},
    "table.rules": {"owner": "own"},
    "table.admit": {"owner": "own"},
    "table.give": {"provider": "own"},
    "table.publish": {"owner": "own"},
    "table.published": {"owner": "own", "provider": "own", "analyst": "own"},
    "table.report": {"owner": "own", "auditor": "any"},
    "table.check": {"provider": "own"},
    "holdout.create": {"owner": "any"},
    "holdout.list": {"owner": "own", "analyst": "own", "auditor": "any"},
    "holdout.read": {"owner": "own", "analyst": "own", "auditor": "any"},
    "holdout.admit": {"owner": "own"},
    "holdout.give": {"owner": "own"},
    "holdout.open": {"owner": "own"},
    "holdout.delete": {"owner": "own"},
    "holdout.finish": {"owner": "own"},
    "holdout.ask": {"owner": "own", "analyst": "own"},
    "holdout.scores": {"owner": "own", "analyst": "own"},
    "holdout.standings": {"owner": "own", "analyst": "own"},
    "log.read": {"auditor": "any"},
    "log.verify": {"auditor": "any"},
}
"""Action → role → on which objects. The first word is what is acted on."""


@dataclass(frozen=True)
class Caller:
    """Who asks: a member with one role, by a token that may be narrower than the role.

    `token` is the identity of the token; `datasets` and `actions` are those that it is for, None
    for all of the member's.
    """

    member: str
    role: Role
    token: str
    datasets: frozenset[str] | None = None
    actions: frozenset[str] | None = None


def scope(caller: Caller, action: str) -> Scope | None:
    """Return on which objects a caller may do an action; None for none."""
    if caller.actions is not None and action not in caller.actions:
        return None
    return RIGHTS.get(action, {}).get(caller.role)
