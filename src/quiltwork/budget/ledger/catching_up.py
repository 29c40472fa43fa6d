"""A dataset's state from its rows, or from an earlier state and the debits written since.

Rows are used only if they are those of the dataset's last entry, which a seal and digests bind.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

from quiltwork.budget import Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.ledger.account_rows import DIGESTS, Kept, digest, read_charge
from quiltwork.budget.ledger.ahead import Ahead, Recent
from quiltwork.budget.ledger.datasets import Analyst, DatasetState, replayed
from quiltwork.budget.ledger.entries import Entry, Head
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.total_rows import (
    analyst_text,
    check_log_reaches,
    read_analyst,
    read_body,
    read_found,
    texts,
)

Earlier: TypeAlias = Callable[[], tuple[Spending, ...]]
"""Finds the releases of an account, in order."""

_FEW = 256
"""So many entries are rather read than rows of levels."""
EVERYBODY = ""
"""In the place of an analyst: the account of all releases."""


class Overtaken(Exception):  # noqa: N818  (no error: it is always answered)
    """Others have written to the dataset since the debit was priced."""


class Unusable(Exception):  # noqa: N818  (no error: it is always answered)
    """The rows of the dataset `name` cannot be added to before they are set right."""

    def __init__(self, name: str) -> None:
        """Say which dataset."""
        super().__init__(name)
        self.name = name


def caught_up(
    tables: Tables,
    known: DatasetState,
    last: Head,
    stored: tuple[str, str] | None,
    earlier: Earlier,
) -> DatasetState | None:
    """Add what others have debited since to a state; None if that is much, or something else.

    Cost: one row, and the new debits.
    """
    body = read_body(known.name, stored)
    if body is None or tables.hash_at(known.last.count) != known.last.hash:
        return None
    try:
        if (body["seq"], body["hash"], body["created"], body["length"]) != (
            *(last.count, last.hash),
            *(known.created, known.length),
        ):
            return None
        new = _few_debits(tables, known.name, known.last.count)
        if new is None or body["since"] != known.ahead.since or Kept.from_body(body) != known.kept:
            return None
        ahead = _ahead(body, (*known.ahead.debits, *new))
        analysts, bound = known.analysts, int(body["analysts"], 16)
        if bound != known.digest:
            analysts = _analysts(tables, known, new, bound)
        own = known.account.known if "account" in known.__dict__ else known.found
        found = read_found(body["found"], ahead.total)
        after = replace(
            known,
            last=last,
            ahead=ahead,
            analysts=analysts,
            digest=bound,
            retired=body["retired"],
            safe=read_safe(body),
            found=None if found is None else found.with_endless_of(own),
            earlier=earlier,
        )
        if "account" in known.__dict__:
            account = known.account.plus([debit.spending for debit in new])
            after.__dict__["account"] = account.kept(earlier).knowing(after.found)
        return after
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None


def _few_debits(tables: Tables, name: str, after: int) -> tuple[Recent, ...] | None:
    """The debits after an entry; None if there are many."""
    entries = list(islice(tables.steps(name, after, _FEW + 1), _FEW + 1))
    if len(entries) > _FEW:
        return None
    return tuple(Recent.of(entry) for entry in entries if entry.kind == "debit")


def _ahead(body: Mapping[str, Any], debits: tuple[Recent, ...]) -> Ahead:
    """The debits that are not in the rows of levels.

    Raises:
        ValueError: if they are not as many as the row says.
    """
    if len(debits) != body["waiting"]:
        raise ValueError("debits are missing")
    total, peak = (read_charge(body, name) for name in ("all", "most"))
    return Ahead(int(body["since"]), total, peak, debits)


def _all_analysts(tables: Tables, name: str) -> tuple[dict[str, Analyst], int]:
    texts = tables.totals_of_analysts(name)
    return {who: read_analyst(json.loads(text)) for who, text in texts.items()}, digest(texts)


def _analysts(
    tables: Tables, known: DatasetState, new: tuple[Recent, ...], bound: int
) -> Mapping[str, Analyst]:
    """The analysts that a digest binds, of whom those with new debits have changed, or others.

    Raises:
        ValueError: if there are no such analysts.
    """
    texts = tables.totals_of(known.name, {one.analyst for one in new if one.analyst is not None})
    old = {who: analyst_text(known.analysts[who]) for who in texts if who in known.analysts}
    if bound == (known.digest - digest(old) + digest(texts)) % DIGESTS:
        changed = {who: read_analyst(json.loads(text)) for who, text in texts.items()}
        return {**known.analysts, **changed}
    found, digested = _all_analysts(tables, known.name)
    if digested != bound:
        raise ValueError("the rows of analysts were changed")
    return found


def settled_account(tables: Tables, state: DatasetState, analyst: str) -> Account:
    """The account of an analyst's releases alone, as far as it is in her rows of levels.

    Raises:
        ArithmeticError, ValueError: if the rows are not the ones that were kept.
    """
    kept = state.analysts.get(analyst, Analyst()).kept
    return kept.account(tables.levels(state.name, analyst), state.base.secrets)


def loaded(
    tables: Tables,
    name: str,
    last: Head,
    stored: tuple[str, str] | None,
    known: DatasetState | None,
    earlier: Earlier,
) -> DatasetState | None:
    """Read a dataset's state from its rows; None if they are not what was written."""
    body = read_body(name, stored)
    if body is None or stored is None:
        return None
    check_log_reaches(tables, name, stored[0])
    try:
        if (body["seq"], body["hash"]) != (last.count, last.hash):
            return None
        analysts, bound = _all_analysts(tables, name)
        if int(body["analysts"], 16) != bound:
            return None
        begun = as_begun(tables, name, body, known)
        if begun is None or (body["budget"], body["by_levels"]) != (
            *(str(begun.budget), begun.by_levels),
        ):
            return None
        kept = Kept.from_body(body)
        base = kept.account(tables.levels(name, EVERYBODY), begun.base.secrets)
        entries = tables.steps(name, int(body["since"]))
        debits = tuple(Recent.of(entry) for entry in entries if entry.kind == "debit")
        ahead = _ahead(body, debits)
        return replace(
            begun,
            last=last,
            base=base,
            ahead=ahead,
            kept=kept,
            analysts=analysts,
            digest=bound,
            retired=body["retired"],
            safe=read_safe(body),
            found=read_found(body["found"], ahead.total),
            earlier=earlier,
        )
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None


def as_begun(
    tables: Tables, name: str, body: Mapping[str, Any], known: DatasetState | None
) -> DatasetState | None:
    """The dataset as its first entry has it, in the series as long as it is.

    What is `known` may be of a transaction that was not committed: it is compared with the log.
    """
    if (
        known is not None
        and known.created == body["created"]
        and tables.hash_at(known.last.count) == known.last.hash
    ):
        begun = known
    else:
        created = tables.at(body["created"])
        if created is None or (created.dataset, created.kind) != (name, "create"):
            return None
        begun, _ = replayed(name, [created])
    if begun.length != body["length"]:
        begun = replace(begun, base=begun.longer(body["length"]))
    return begun


def read_safe(body: Mapping[str, Any]) -> Fraction | None:
    """Read the level that is safe; None if nobody has looked for it."""
    return None if body["safe"] is None else read_charge(body, "safe")


def added_up(name: str, entries: Iterable[Entry]) -> tuple[DatasetState, dict[str, Account]]:
    """Add up a dataset's entries: its state, and the account of each analyst alone."""
    state, alone = replayed(name, entries)
    return replace(state, digest=digest(texts(state.analysts))), alone
