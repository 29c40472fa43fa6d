"""Entries of the log in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class EntryRow:
    """One entry as a row of a table."""

    number: int
    at: str
    who: str
    kind: str
    what: str
    dataset: str
    hash: str


def line(entry: Any) -> EntryRow:
    """Return an entry of the log as it is shown."""
    body = entry.content
    who = body.get("who") or body.get("analyst") or ""
    return EntryRow(
        entry.number,
        str(body.get("at", "")),
        str(who),
        entry.kind,
        _said(entry.kind, body),
        entry.dataset,
        entry.hash,
    )


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
