"""The pages of members, their tokens, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from quiltwork.service.dashboard.web import (
    PageRequest,
    PageView,
    parse_whole_number,
    try_or_problem,
)
from quiltwork.service.problems import Problem

_PAGE_SIZE = 50
_ROLES = {
    "owner": "registers datasets, sets budgets, invites members",
    "provider": "uploads rows, never sees those of others",
    "analyst": "asks questions and sees the released answers",
    "auditor": "reads and verifies the ledger and the audit log",
}


def members(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the invited members, a page at a time, and a form to invite another."""
    after = request.query.get("after", "")
    query = {"limit": _PAGE_SIZE, **({"after": after} if after else {})}
    page = request.api("list_members", query=query)
    values = {
        "heading": "Members",
        "members": page.items,
        "next": page.next,
        "after": after,
        "roles": _ROLES,
        "refused": refused,
    }
    return PageView("members.html", values)


def invite(request: PageRequest) -> PageView:
    """Invite a member and show her first token, once."""
    name = request.form.get("name", "").strip()
    new = {"name": name, "role": request.form.get("role", "")}
    _, refused = try_or_problem(lambda: request.api("invite_member", body=new))
    if refused is not None:
        return members(request, refused)
    return make_token(request, name, "first token")


def member(request: PageRequest, issued: Any = None) -> PageView:
    """Show a member's tokens, and the secret of one just `issued`."""
    name = request.path.get("member") or issued.token.member
    tokens = sorted(
        request.list_all("list_tokens", {"member": name}),
        key=lambda token: (token.revoked is not None, token.created),
    )
    mine = name == request.caller.member
    heading = "Your tokens" if mine else f"Tokens of {name}"
    values = {"heading": heading, "name": name, "tokens": tokens, "issued": issued, "mine": mine}
    return PageView("member.html", values)


def issue(request: PageRequest) -> PageView:
    """Make a token and show its secret, once."""
    return make_token(request, request.path["member"], request.form.get("label", ""))


def make_token(request: PageRequest, name: str, label: str) -> PageView:
    """Make the token that a form describes; by default for everything that the member may do."""
    new: dict[str, Any] = {"label": label}
    if days := request.form.get("days"):
        new["days"] = parse_whole_number(days, "The number of days")
    if datasets := request.form.get("datasets", "").replace(",", " ").split():
        new["datasets"] = datasets
    return member(request, request.api("make_token", {"member": name}, new))


def log(request: PageRequest, verified: Any = None) -> PageView:
    """Show the audit log, a page at a time."""
    after = request.query.get("after", "")
    page = request.api(
        "read_log", query={"after": parse_whole_number(after or "0", "The entry"), "limit": 100}
    )
    values = {
        "heading": "Audit log",
        "entries": [_log_row(entry) for entry in page.items],
        "next": page.next,
        "after": after,
        "verified": verified,
    }
    return PageView("log.html", values)


def verify(request: PageRequest) -> PageView:
    """Verify the chain and every total, and show the result above the log."""
    return log(request, request.api("verify_log"))


def _log_row(entry: Any) -> dict[str, Any]:
    """Return an entry of the log as a row of the page's table."""
    body = entry.content
    return {
        "number": entry.number,
        "at": body.get("at", ""),
        "who": body.get("who") or body.get("analyst") or "",
        "kind": entry.kind,
        "what": _in_words(entry.kind, body),
        "dataset": entry.dataset,
        "hash": entry.hash,
    }


def _in_words(kind: str, body: Mapping[str, Any]) -> str:
    """Return an entry of the ledger's chain as a phrase."""
    match kind:
        case "create":
            length = body.get("length")
            points = f", {length:,} time points" if length and length > 1 else ""
            return f"created with a budget of {_exact(body['budget'])}{points}"
        case "extend":
            return f"grew to {body['length']:,} time points"
        case "allot":
            cap = body.get("cap")
            most = f"at most {_exact(cap)}" if cap is not None else "no cap"
            return f"{most}, {_exact(body['reserved'])} reserved"
        case "debit":
            charge = body.get("charge")
            raised = f", which raised the total by {_exact(charge)}" if charge is not None else ""
            return f"debited for {_query_kind(body)}{raised}"
        case "answer":
            return f"answer to entry {body['debit']} stored"
        case "retire":
            return f"retired: {body['reason']}"
        case "register":
            return "its data were validated and registered"
    return str(body.get("text", ""))


def _query_kind(body: Mapping[str, Any]) -> str:
    """Return the kind of a debit's query, or else its mechanism."""
    request = body.get("request")
    query = request.get("query") if isinstance(request, Mapping) else None
    kind = query.get("kind") if isinstance(query, Mapping) else None
    return str(kind or body.get("mechanism") or "a release").replace("_", " ")


def _exact(text: object) -> str:
    """Format an exact number with four significant digits.

    >>> _exact("1/10"), _exact("2")
    ('0.1', '2')
    """
    return f"{float(Fraction(str(text))):.4g}"
