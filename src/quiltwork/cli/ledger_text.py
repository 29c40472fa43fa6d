"""Datasets and debits of a ledger as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from quiltwork.budget.people import PEOPLE
from quiltwork.cli.output import text_table

if TYPE_CHECKING:
    from quiltwork.budget import Debit, Status


def status_document(status: Status) -> dict[str, Any]:
    """Write a dataset; exact numbers are text."""
    return {
        "dataset": status.dataset,
        "beliefs": [repr(belief) for belief in status.beliefs],
        "length": status.length,
        "episode": status.episode,
        "budget": str(status.exact_budget),
        "total": status.total,
        "remaining": status.remaining,
        "debits": status.debits,
        "retired": status.retired,
        "shares": {
            name: {
                "cap": None if share.cap is None else str(share.cap),
                "reserved": str(share.reserved),
            }
            for name, share in status.shares.items()
        },
        "charged": {name: float(charge) for name, charge in status.charged.items()},
    }


def status_lines(statuses: Sequence[Status]) -> Iterator[str]:
    """Show datasets as a table; a single one with its beliefs and shares."""
    rows = [
        [
            s.dataset,
            "any" if s.length is None or s.beliefs == (PEOPLE,) else s.length,
            s.debits,
            f"{s.total:.6g}",
            f"{s.budget:.6g}",
            f"{s.remaining:.6g}",
            "open" if s.retired is None else f"retired: {s.retired}",
        ]
        for s in statuses
    ]
    header = ["dataset", "length", "debits", "total", "budget", "left", "state"]
    yield from text_table(header, rows)
    if len(statuses) != 1:
        return
    (status,) = statuses
    yield ""
    if status.beliefs == (PEOPLE,):
        yield (
            "accounts for persons, each replaced as a whole; an epsilon for adding or removing one "
            "is debited twice, which --adjacency replace avoids"
        )
    else:
        yield from (f"belief: {belief!r}" for belief in status.beliefs)
    if status.episode > 1:
        yield f"protects every stretch of {status.episode} time points"
    for name in sorted({*status.shares, *status.charged}):
        share = status.shares.get(name)
        cap = "none" if share is None or share.cap is None else f"{float(share.cap):.6g}"
        reserved = 0.0 if share is None else float(share.reserved)
        charged = float(status.charged.get(name, 0))
        yield f"analyst {name}: charged {charged:.6g}, cap {cap}, reserved {reserved:.6g}"


def debit_document(debit: Debit) -> dict[str, Any]:
    """Write a debit."""
    return {
        "number": debit.number,
        "at": debit.at,
        "state": debit.state,
        "spending": debit.spending.to_body(),
        "composes_by": debit.composes_by,
        "mechanism": debit.mechanism,
        "analyst": debit.analyst,
        "charge": None if debit.charge is None else str(debit.charge),
        "key": debit.key,
        "request": dict(debit.request),
    }


def history_lines(debits: Sequence[Debit]) -> Iterator[str]:
    """Show debits as a table."""
    if not debits:
        yield "No debits yet."
        return
    rows = [
        [
            debit.number,
            debit.at,
            f"{debit.spending.start}..{debit.spending.stop}",
            _level(debit),
            debit.mechanism,
            debit.composes_by,
            debit.state,
            debit.analyst or "",
            debit.key or "",
        ]
        for debit in debits
    ]
    header = ["entry", "at", "window", "DP level", "mechanism", "composes by", "state"]
    yield from text_table([*header, "analyst", "key"], rows)


def _level(debit: Debit) -> str:
    level = debit.spending.dp_epsilon
    return "none" if level is None else f"{float(level):.6g}"
