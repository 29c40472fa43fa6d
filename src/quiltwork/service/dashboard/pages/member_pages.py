"""Members and their tokens, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from quiltwork.service.dashboard.web import PageRequest, PageView, attempted, whole_number
from quiltwork.service.problems import Problem

_PAGE = 50
"""Members on a page."""
_ROLES = {
    "owner": "registers data, sets budgets, invites others",
    "provider": "uploads rows, never sees those of others",
    "analyst": "asks, and sees what is released to her",
    "auditor": "reads ledger and log, and verifies them",
}


def members(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show who was invited, a page at a time, and a form to invite somebody."""
    after = visit.query.get("after", "")
    page = {"limit": _PAGE, **({"after": after} if after else {})}
    found = visit.ask("list_members", query=page)
    values = {
        "heading": "Members",
        "members": found.items,
        "next": found.next,
        "after": after,
        "roles": _ROLES,
        "refused": refused,
    }
    return PageView("members.html", values)


def invite(visit: PageRequest) -> PageView:
    """Invite somebody and show her first token, once."""
    name = visit.form.get("name", "").strip()
    asked = {"name": name, "role": visit.form.get("role", "")}
    _, refused = attempted(lambda: visit.ask("invite_member", body=asked))
    if refused is not None:
        return members(visit, refused)
    return make_token(visit, name, "first token")


def member(visit: PageRequest, issued: Any = None) -> PageView:
    """Show somebody's tokens."""
    name = visit.path.get("member") or issued.token.member
    found = sorted(
        visit.everything("list_tokens", {"member": name}),
        key=lambda one: (one.revoked is not None, one.created),
    )
    mine = name == visit.caller.member
    heading = "Your tokens" if mine else f"Tokens of {name}"
    values = {"heading": heading, "name": name, "tokens": found, "issued": issued, "mine": mine}
    return PageView("member.html", values)


def issue(visit: PageRequest) -> PageView:
    """Make a token and show it, once."""
    return make_token(visit, visit.path["member"], visit.form.get("label", ""))


def make_token(visit: PageRequest, name: str, label: str) -> PageView:
    """Make a token as the form says; without one, for everything that the member may."""
    asked: dict[str, Any] = {"label": label}
    if days := visit.form.get("days"):
        asked["days"] = whole_number(days, "The number of days")
    if datasets := visit.form.get("datasets", "").replace(",", " ").split():
        asked["datasets"] = datasets
    return member(visit, visit.ask("make_token", {"member": name}, asked))


def log(visit: PageRequest, verified: Any = None) -> PageView:
    """Show the audit log, a page at a time."""
    after = visit.query.get("after", "")
    found = visit.ask(
        "read_log", query={"after": whole_number(after or "0", "The entry"), "limit": 100}
    )
    values = {
        "heading": "Audit log",
        "entries": [_shown(one) for one in found.items],
        "next": found.next,
        "after": after,
        "verified": verified,
    }
    return PageView("log.html", values)


def verify(visit: PageRequest) -> PageView:
    """Check the chain and every total, and say what was found above the log."""
    return log(visit, visit.ask("verify_log"))


def _shown(entry: Any) -> dict[str, Any]:
    """Return an entry of the log as a row of a table, in words."""
    body = entry.content
    return {
        "number": entry.number,
        "at": body.get("at", ""),
        "who": body.get("who") or body.get("analyst") or "",
        "kind": entry.kind,
        "what": _said(entry.kind, body),
        "dataset": entry.dataset,
        "hash": entry.hash,
    }


def _said(kind: str, body: Mapping[str, Any]) -> str:
    match kind:
        case "create":
            length = body.get("length")
            points = f", {length:,} time points" if length and length > 1 else ""
            return f"made with a budget of {_exact(body['budget'])}{points}"
        case "extend":
            return f"grew to {body['length']:,} time points"
        case "allot":
            cap = body.get("cap")
            most = f"at most {_exact(cap)}" if cap is not None else "no cap"
            return f"{most}, {_exact(body['reserved'])} reserved"
        case "debit":
            charge = body.get("charge")
            raised = f", which raised the total by {_exact(charge)}" if charge is not None else ""
            return f"debited for {_asked(body)}{raised}"
        case "answer":
            return f"answer to entry {body['debit']} stored"
        case "retire":
            return f"retired: {body['reason']}"
        case "register":
            return "its data were checked and registered"
    return str(body.get("text", ""))


def _asked(body: Mapping[str, Any]) -> str:
    """Name what was asked by the kind of its query, or the mechanism."""
    request = body.get("request")
    query = request.get("query") if isinstance(request, Mapping) else None
    kind = query.get("kind") if isinstance(query, Mapping) else None
    return str(kind or body.get("mechanism") or "a release").replace("_", " ")


def _exact(text: object) -> str:
    """Write an exact number shortly.

    >>> _exact("1/10"), _exact("2")
    ('0.1', '2')
    """
    return f"{float(Fraction(str(text))):.4g}"
