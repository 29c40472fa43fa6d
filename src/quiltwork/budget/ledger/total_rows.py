"""The rows of a dataset's totals as text: its own, sealed by a hash, and one per analyst."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from quiltwork.budget.accounting.worst_point import FoundTotal
from quiltwork.budget.ledger.account_rows import Kept, read_charge
from quiltwork.budget.ledger.datasets import Analyst, DatasetState
from quiltwork.budget.ledger.entries import canonical
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.records import Share, read_share
from quiltwork.errors import StorageError
from quiltwork.exact import written_fraction
from quiltwork.influence.belief_bound import WorstPoint


def check_log_reaches(tables: Tables, name: str, text: str) -> None:
    """Refuse a log that lacks an entry which the totals include: debits were taken out of it.

    Raises:
        StorageError: if it does.
    """
    try:
        body = json.loads(text)
        number, found = int(body["seq"]), tables.hash_at(int(body["seq"]))
    except (KeyError, TypeError, ValueError):
        return  # no row of ours, though sealed like one
    if found == body["hash"]:
        entry = tables.at(number)  # whose hash is checked
        if entry is None or entry.dataset != name or entry.kind == "answer":
            found = None
    if found != body["hash"]:
        raise StorageError(
            f"The totals of {name!r} include entry {number}, and the log has none, or another: "
            "entries were cut off or rewritten. Nothing was granted. Restore a backup, and give it "
            "the newest checkpoint."
        )


def check_log_is_whole(tables: Tables, name: str) -> None:
    """Refuse to add up a log that has fewer of the latest debits than the dataset's row counts.

    Raises:
        StorageError: if debits were taken out of it.
    """
    body = read_body(name, tables.total(name))
    try:
        last = tables.last_step(name)
        if body is None or last is None or (body["seq"], body["hash"]) != (last.count, last.hash):
            return
        waiting, since = int(body["waiting"]), int(body["since"])
    except (KeyError, TypeError, ValueError):
        return  # no row of ours, though sealed like one
    if sum(entry.kind == "debit" for entry in tables.steps(name, since)) < waiting:
        raise StorageError(
            f"The totals of {name!r} count {waiting} debits after entry {since}, and the log has "
            "fewer: entries were taken out. Nothing was granted. Restore a backup, and give it the "
            "newest checkpoint."
        )


def sealed(state: DatasetState) -> tuple[str, str]:
    """Return body and hash of a dataset's own row."""
    ahead, found = state.ahead, state.found
    body = {
        **state.kept.body(),
        **summed(state),
        "since": ahead.since,
        "waiting": len(ahead.debits),
        "all": str(ahead.total),
        "most": str(ahead.peak),
        "safe": None if state.safe is None else str(state.safe),
        "found": None if found is None else _found_body(found),
    }
    return sealed_body(state.name, body)


def sealed_body(name: str, body: Mapping[str, Any]) -> tuple[str, str]:
    """Return a dataset's own row as text, with its hash."""
    text = canonical(body)
    return text, seal(name, text)


def summed(state: DatasetState) -> dict[str, Any]:
    """Write what follows from the entries in one way only, beside the releases."""
    return {
        "created": state.created,
        "seq": state.last.count,
        "hash": state.last.hash,
        "length": state.length,
        "budget": str(state.budget),
        "by_levels": state.by_levels,
        "retired": state.retired,
        "analysts": f"{state.digest:064x}",
    }


def read_body(name: str, stored: tuple[str, str] | None) -> dict[str, Any] | None:
    """Return what a row says; None if it is not what was sealed."""
    if stored is None or stored[1] != seal(name, stored[0]):
        return None
    try:
        body = json.loads(stored[0])
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _found_body(found: FoundTotal) -> dict[str, Any] | None:
    """Write the worst time point; nothing where it leaks without bound in a part, as JSON has no
    such number.
    """
    worst = found.worst
    if not all(map(math.isfinite, (worst.own, worst.before, worst.after, *found.peaks))):
        return None
    return {
        "exact": str(worst.exact),
        "node": worst.node,
        "parts": [worst.own, worst.before, worst.after],
        "quilt": list(worst.quilt),
        "peaks": list(found.peaks),
    }


def read_found(body: Mapping[str, Any] | None, everything: Fraction) -> FoundTotal | None:
    """Read the worst time point, if it was known when the row was written.

    `everything` is what all releases charge together.

    Raises:
        KeyError, TypeError, ValueError: if it is something else.
    """
    if body is None:
        return None
    own, before, after = map(float, body["parts"])
    exact = written_fraction(body["exact"], "exact")
    worst = WorstPoint(exact, body["node"], own, before, after, tuple(body["quilt"]))
    return FoundTotal(worst, everything, tuple(map(float, body["peaks"])))


def seal(name: str, text: str) -> str:
    """Return the hash that goes with a row."""
    return hashlib.sha256(canonical({name: text}).encode()).hexdigest()


def texts(analysts: Mapping[str, Analyst]) -> dict[str, str]:
    """Write the rows of analysts, by name."""
    return {name: analyst_text(analyst) for name, analyst in analysts.items()}


def analyst_text(analyst: Analyst) -> str:
    """Write the row of an analyst."""
    share = analyst.share or Share()
    return canonical(
        {
            **analyst.kept.body(),
            "charged": str(analyst.charged),
            "cap": None if share.cap is None else str(share.cap),
            "reserved": None if analyst.share is None else str(share.reserved),
        }
    )


def read_analyst(body: Mapping[str, Any]) -> Analyst:
    """Read what `analyst_text` wrote.

    Raises:
        KeyError, TypeError, ValueError: if it is something else.
    """
    share = None if body["reserved"] is None else read_share(body)
    return Analyst(share, read_charge(body, "charged"), Kept.from_body(body))
