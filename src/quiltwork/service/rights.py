"""Access rights: one table of actions and roles; what is not in it is forbidden.

A role may do an action on any object ("any"), on its own objects ("own"), or not at all. Ownership
is checked by path parameter (`Feature.ownership`):

- a dataset belongs to the owner who registered it, and to members with access to it;
- a member belongs to herself and to the owner who invited her;
- a token belongs to its member and to the owner who invited that member;
- a job belongs to the member who started it;
- a table or holdout belongs to the owner who made it, and to admitted members.

A caller limited to her own objects gets the same 404 for another's object as for a missing one.
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
"""Action → role → scope. An action is written as object.verb."""


@dataclass(frozen=True)
class Caller:
    """An authenticated member, with her role and the limits of the token that she used.

    `token` is the token's id; `datasets` and `actions` list what it is limited to, None for
    everything that the member may use.
    """

    member: str
    role: Role
    token: str
    datasets: frozenset[str] | None = None
    actions: frozenset[str] | None = None


def scope(caller: Caller, action: str) -> Scope | None:
    """Return the scope of an action for a caller; None if she may not do it."""
    if caller.actions is not None and action not in caller.actions:
        return None
    return RIGHTS.get(action, {}).get(caller.role)
