"""A dataset's state from its rows, or from an earlier state and the entries written since.

Rows are used only if they are those of the dataset's last entry. What follows from the entries in
one way only is compared with them; the rows of levels are bound by a digest.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from quiltwork.budget import Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.ledger.account_rows import DIGESTS, Kept, digest
from quiltwork.budget.ledger.datasets import Analyst, Dataset, Recent, Safe, replayed
from quiltwork.budget.ledger.entries import Head, reading
from quiltwork.budget.ledger.tables import Tables
from quiltwork.budget.ledger.total_rows import (
    agrees,
    analyst_text,
    check_log_reaches,
    read_analyst,
    read_body,
    read_found,
)
from quiltwork.exact import integer, written_fraction

Earlier: TypeAlias = Callable[[], tuple[Spending, ...]]
"""Finds the releases of an account, in order."""

_FEW = 256
"""So many entries of others are rather added to what is known than the rows read again."""
_RECENT = 512
"""So many of the latest debits are remembered."""
EVERYBODY = ""
"""In the place of an analyst: the account of all releases."""


class Alone(NamedTuple):
    """The account of one analyst with everything up to entry number `last`."""

    kept: Kept
    account: Account
    last: int


def caught_up(
    tables: Tables,
    known: Dataset,
    last: Head,
    stored: tuple[str, str] | None,
    earlier: Earlier,
) -> Dataset | None:
    """Add what others have written since to a state; None if that is much, or not the rows.

    Cost: the new entries, whatever came before them. What the entries say is compared with
    the rows, but for the levels: these are bound by their digest, and by whoever reads them.
    """
    body = read_body(known.name, stored)
    if body is None or tables.hash_at(known.last.count) != known.last.hash:
        return None
    entries = list(islice(tables.steps(known.name, known.last.count), _FEW + 1))
    if len(entries) > _FEW:
        return None
    retired, length, debits, named = known.retired, known.length, [], set()
    for entry in entries:
        content = entry.content
        with reading(entry):
            match entry.kind:
                case "debit":
                    spending = Spending.from_body(content["spending"])
                    debits.append(Recent(entry.seq, content["analyst"], spending))
                    named.add(content["analyst"])
                case "allot":
                    named.add(content["analyst"])
                case "extend":
                    length = integer(content["length"], "length", 1)
                case "retire":
                    retired = str(content["reason"])
    spendings = [one.spending for one in debits]
    try:
        before = known.account if length == known.length else known.longer(length)
        account = before.plus(spendings) if spendings else replace(before)
        own = known.account.known if length == known.length else None
        found = read_found(body["found"], account)
        account.knowing(None if found is None else found.with_endless_of(own))
        analysts, bound = _analysts(tables, known, named - {None})
        kept = known.kept.later(account, int(body["digest"], 16), spendings)
        recent, since = remembered(known, debits)
        state = replace(
            known,
            last=last,
            account=account.kept(earlier),
            kept=kept,
            analysts=analysts,
            digest=bound,
            retired=retired,
            safe=replace(known.safe, level=read_safe(body).level),
            recent=recent,
            since=since,
        )
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None
    return state if agrees(body, state) else None


def _analysts(
    tables: Tables, known: Dataset, named: Collection[str]
) -> tuple[dict[str, Analyst], int]:
    """The analysts, of whom those `named` may have changed, and the digest of all."""
    texts = tables.totals_of(known.name, named)
    changed = {who: read_analyst(json.loads(text)) for who, text in texts.items()}
    old = {who: analyst_text(known.analysts[who]) for who in texts if who in known.analysts}
    bound = (known.digest - digest(old) + digest(texts)) % DIGESTS
    return {**known.analysts, **changed}, bound


def alone_caught_up(tables: Tables, state: Dataset, analyst: str, known: Alone) -> Alone | None:
    """Add an analyst's debits that others have written since to her account."""
    if known.last >= state.since:
        later = (one for one in state.recent if one.number > known.last)
        spendings = [one.spending for one in later if one.analyst == analyst]
    else:
        entries = list(islice(tables.steps(state.name, known.last), _FEW + 1))
        if len(entries) > _FEW:
            return None
        debits = [entry.content for entry in entries if entry.kind == "debit"]
        own = [body for body in debits if body.get("analyst") == analyst]
        spendings = [Spending.from_body(body["spending"]) for body in own]
    before, secrets = known.account, state.account.secrets
    after = (before if before.secrets is secrets else before.seen_by(secrets)).plus(spendings)
    bound = state.analysts.get(analyst, Analyst()).kept.digest
    return Alone(known.kept.later(after, bound, spendings), after, state.last.count)


def loaded(
    tables: Tables,
    name: str,
    last: Head,
    stored: tuple[str, str] | None,
    known: Dataset | None,
    earlier: Earlier,
) -> Dataset | None:
    """Read a dataset's state from its rows; None if they are not what was written."""
    body = read_body(name, stored)
    if body is None or stored is None:
        return None
    check_log_reaches(tables, name, stored[0])
    others = tables.totals_of_analysts(name)
    try:
        if (body["seq"], body["hash"]) != (last.count, last.hash):
            return None
        if int(body["analysts"], 16) != digest(others):
            return None
        found = _read(tables, name, last, body, others, known)
        return None if found is None else replace(found, account=found.account.kept(earlier))
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None


def _read(
    tables: Tables,
    name: str,
    last: Head,
    body: Mapping[str, Any],
    others: Mapping[str, str],
    known: Dataset | None,
) -> Dataset | None:
    """The state that rows describe; its first entry, if not known, says what it is about."""
    if known is not None and known.created == body["created"]:
        begun = known
    else:
        created = tables.at(body["created"])
        if created is None or (created.dataset, created.kind) != (name, "create"):
            return None
        begun, _ = replayed(name, [created])
    if begun.length != body["length"]:
        begun = replace(begun, account=begun.longer(body["length"]))
    kept = Kept.from_body(body)
    account = kept.account(tables.levels(name, EVERYBODY), begun.account.secrets)
    account.knowing(read_found(body["found"], account))
    return replace(
        begun,
        last=last,
        account=account,
        kept=kept,
        analysts={who: read_analyst(json.loads(text)) for who, text in others.items()},
        digest=int(body["analysts"], 16),
        retired=body["retired"],
        safe=read_safe(body),
        recent=(),
        since=last.count,
    )


def remembered(state: Dataset, debits: list[Recent]) -> tuple[tuple[Recent, ...], int]:
    """The latest debits with new ones, and the entry since which they are all."""
    recent = (*state.recent, *debits)
    if len(recent) <= 2 * _RECENT:
        return recent, state.since
    return recent[-_RECENT:], recent[-_RECENT - 1].number


def read_safe(body: Mapping[str, Any]) -> Safe:
    """Read the level that is safe."""
    return Safe(written_fraction(body["safe"], "safe"))
