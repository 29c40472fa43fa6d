"""Members and their tokens, and the audit log."""

from __future__ import annotations

from typing import Any

from quiltwork.service.dashboard.entries import line
from quiltwork.service.dashboard.web import Go, Shown, Visit, read_problem
from quiltwork.service.problems import Problem

_ROLES = {
    "owner": "registers data, sets budgets, invites others",
    "provider": "uploads rows, never sees those of others",
    "analyst": "asks, and sees what is released to her",
    "auditor": "reads ledger and log, and verifies them",
}


def members(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show who was invited, and a form to invite somebody."""
    found = visit.everything("list_members")
    values = {"heading": "Members", "members": found, "roles": _ROLES, "refused": refused}
    return Shown("members.html", values, refused.status if refused else 200)


def invite(visit: Visit) -> Shown | Go:
    """Invite somebody and show her first token, once."""
    name = visit.form.get("name", "").strip()
    asked = {"name": name, "role": visit.form.get("role", "")}
    _, refused = read_problem(lambda: visit.ask("invite_member", body=asked))
    if refused is not None:
        return members(visit, refused)
    return make_token(visit, name, "first token")


def remove(visit: Visit) -> Go:
    """Remove somebody."""
    visit.ask("remove_member", visit.path)
    return Go("/members", "removed")


def member(visit: Visit, issued: Any = None) -> Shown:
    """Show somebody's tokens."""
    name = visit.path.get("member") or issued.token.member
    found = sorted(
        visit.everything("list_tokens", {"member": name}),
        key=lambda one: (one.revoked is not None, one.created),
    )
    mine = name == visit.caller.member
    heading = "Your tokens" if mine else f"Tokens of {name}"
    values = {"heading": heading, "name": name, "tokens": found, "issued": issued, "mine": mine}
    return Shown("member.html", values)


def issue(visit: Visit) -> Shown:
    """Make a token and show it, once."""
    return make_token(visit, visit.path["member"], visit.form.get("label", ""))


def make_token(visit: Visit, name: str, label: str) -> Shown:
    """Make a token as the form says; without one, for everything that the member may."""
    asked: dict[str, Any] = {"label": label}
    if days := visit.form.get("days"):
        asked["days"] = whole(days, "The number of days")
    if datasets := visit.form.get("datasets", "").replace(",", " ").split():
        asked["datasets"] = datasets
    return member(visit, visit.ask("make_token", {"member": name}, asked))


def revoke(visit: Visit) -> Go:
    """Revoke a token."""
    visit.ask("revoke_token", visit.path)
    return Go(f"/members/{visit.path['member']}", "revoked")


def log(visit: Visit, verified: Any = None) -> Shown:
    """Show the audit log, a page at a time."""
    after = visit.query.get("after", "")
    found = visit.ask("read_log", query={"after": whole(after or "0", "The entry"), "limit": 100})
    values = {
        "heading": "Audit log",
        "entries": [line(one) for one in found.items],
        "next": found.next,
        "after": after,
        "verified": verified,
    }
    return Shown("log.html", values)


def verify(visit: Visit) -> Shown:
    """Check the chain and every total, and say what was found above the log."""
    return log(visit, visit.ask("verify_log"))


def whole(text: str, what: str) -> int:
    """Read a whole number of a form or an address."""
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Problem(422, "invalid-input", f"{what} is a whole number.")
    return int(text)
