"""A debit and its answer, within a transaction: the two states of a release.

    nothing → debited → released

A debit is appended before the data are used, an answer after it was drawn and before it is shown;
neither is ever taken back. A key that was debited but has no answer stays so: its answer may have
been drawn and lost, and a crash that depends on the answer would turn drawing again into choosing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from quiltwork.arguments import listed
from quiltwork.budget import Spending
from quiltwork.budget.ledger.amounts import identifier
from quiltwork.budget.ledger.datasets import DatasetState, Grant
from quiltwork.budget.ledger.entries import Draft, Entry, canonical, reading, scoped_key
from quiltwork.budget.ledger.glances import Glance
from quiltwork.budget.ledger.log_tables import Tables, now
from quiltwork.budget.ledger.records import Quote, Receipt
from quiltwork.budget.ledger.requests import DeclaredSpending, read_request
from quiltwork.budget.ledger.totals import Totals
from quiltwork.budget.payment import Request
from quiltwork.errors import InvalidInputError, NotPrivateError, QuiltworkError, StorageError
from quiltwork.exact import float_down, float_up

_COMPUTED = {
    *("before", "dp_epsilon", "influence", "node", "noise_scale", "quilt", "scale"),
    *("once", "per_pair", "per_point", "quilts"),
}
"""What a release's noise says of itself in the request, and in what it spends."""
_LONGEST_ANSWER = 10**8


def debited(
    tables: Tables,
    totals: Totals,
    state: DatasetState,
    identity: str,
    asked: Any,
    key: str | None,
    analyst: str | None,
    *,
    checked: bool = False,
    grant: Grant | None = None,
    keep: bool = True,
) -> Receipt:
    """Append a debit, or find the one this request has made already.

    What was `checked` to fit together with others is not priced again, nor what has its `grant`.
    Of several together, the caller will `keep` the totals after the last.

    Raises:
        Overtaken: if the grant is for an earlier state of the dataset, and no longer holds.
    """
    mine = tables.with_id(identity)
    if mine is not None:
        return _receipt(mine)
    request = read_request(asked, state.name, state.beliefs, state.length)
    earlier = None if key is None else tables.with_key(state.name, key, analyst)
    if earlier is not None:
        return _repeated(tables, earlier, request, analyst)
    grant = totals.granted(tables, state, request.spending, analyst, checked=checked, earlier=grant)
    draft = drafted(state.name, identity, request, key, analyst, grant.charge)
    entry = _appended(tables, draft, key, analyst)
    totals.debited(tables, state, entry, grant, keep=keep)
    return Receipt(entry.dataset, entry.seq, request.spending, None, entry.hash)


def debited_at_once(
    tables: Tables, totals: Totals, glance: Glance, draft: Draft | str, asked: Any, key: str | None
) -> Receipt | None:
    """Append a debit for nobody in particular by the dataset's row alone; None if that is not
    enough to tell that it fits.

    It is given as a draft, or as its identity if the request is still to be read.
    """
    identity = draft.id if isinstance(draft, Draft) else draft
    mine = tables.with_id(identity)
    if mine is not None:
        return _receipt(mine)
    beliefs = () if isinstance(asked, DeclaredSpending) else totals.beliefs(tables, glance)
    request = read_request(asked, glance.name, beliefs, glance.length)
    earlier = None if key is None else tables.with_key(glance.name, key, None)
    if earlier is not None:
        return _repeated(tables, earlier, request, None)
    after = glance.plus(request.spending)
    if after is None:
        totals.refuse_early(tables, glance, request.spending)
        return None
    if not isinstance(draft, Draft):
        draft = drafted(glance.name, identity, request, key)
    entry = _appended(tables, draft, key)
    totals.debited_at_once(tables, after, entry)
    return Receipt(entry.dataset, entry.seq, request.spending, None, entry.hash)


def debited_together(
    tables: Tables,
    totals: Totals,
    state: DatasetState,
    asked: Sequence[tuple[str, Any]],
    keys: Sequence[str | None],
    analyst: str | None,
) -> list[Receipt]:
    """Append debits, each with its identity, if they fit together.

    Cost: one pricing for all, if the dataset's row does not tell that they fit, and one more each
    where there are analysts; the rows they change.
    """
    if not asked:
        return []
    requests = [read_request(one, state.name, state.beliefs, state.length) for _, one in asked]
    spendings = [request.spending for request in requests]
    account = None if state.are_clear(spendings) else state.check(spendings)
    if analyst is not None or state.analysts:
        found, after = [], state
        for (identity, one), key in zip(asked, keys, strict=True):
            of = (identity, one, key, analyst)
            found.append(debited(tables, totals, after, *of, checked=True, keep=False))
            after = totals.latest(tables, state)
        totals.keep(tables, state)
        return found
    entries = [
        _appended(tables, drafted(state.name, identity, request, key), key)
        for (identity, _), request, key in zip(asked, requests, keys, strict=True)
    ]
    totals.debited_together(tables, state, entries, account)
    return [
        Receipt(entry.dataset, entry.seq, request.spending, None, entry.hash)
        for entry, request in zip(entries, requests, strict=True)
    ]


def drafted(
    dataset: str,
    identity: str,
    request: Request,
    key: str | None,
    analyst: str | None = None,
    charge: Fraction | None = None,
) -> Draft:
    """Write a debit as an entry that has no place in the log yet."""
    body = {
        **request.body,
        "at": now(),
        "key": key,
        "analyst": analyst,
        "charge": None if charge is None else str(charge),
    }
    return Draft(identity, dataset, "debit", canonical(body))


def ready_draft(dataset: str, identity: str, asked: Any, key: str | None) -> Draft | str:
    """Write a debit before others have to wait for it, if the dataset need not be looked at."""
    is_read = isinstance(asked, DeclaredSpending)
    return drafted(dataset, identity, asked, key) if is_read else identity


def _appended(tables: Tables, draft: Draft, key: str | None, analyst: str | None = None) -> Entry:
    return tables.append(draft, key=None if key is None else scoped_key(key, analyst))


def priced(
    tables: Tables,
    totals: Totals,
    state: DatasetState,
    asked: Any,
    key: str | None,
    analyst: str | None,
) -> Grant | Receipt:
    """Price a debit without making it, or find the one that was made under its key."""
    request = read_request(asked, state.name, state.beliefs, state.length)
    earlier = None if key is None else tables.with_key(state.name, key, analyst)
    if earlier is not None:
        return _repeated(tables, earlier, request, analyst)
    return totals.granted(tables, state, request.spending, analyst)


def read_keys(keys: Iterable[str] | None, number: int) -> list[str | None]:
    """Read the keys of several debits, one for each.

    Raises:
        InvalidInputError: for another number of them, or one that occurs twice.
    """
    if keys is None:
        return [None] * number
    found = [identifier(key, "key") for key in listed(keys, "keys")]
    if len(found) != number or len(set(found)) < number:
        raise InvalidInputError(
            f"{number} debits need as many different keys, and {len(set(found))} are given."
        )
    return [*found]


def made_before(
    tables: Tables,
    state: DatasetState,
    asked: Sequence[tuple[str, Any]],
    keys: Sequence[str | None],
    analyst: str | None,
) -> list[Receipt] | None:
    """The debits that were made under these keys, with the answers stored so far, or by an attempt
    whose connection was lost; None if none was.

    Raises:
        InvalidInputError: if some of the keys were used and others not, or for other requests.
    """
    earlier = [None if key is None else tables.with_key(state.name, key, analyst) for key in keys]
    entries = [entry for entry in earlier if entry is not None]
    mine = [tables.with_id(identity) for identity, _ in asked]
    if any(mine):
        return [_receipt(one) for one in mine if one is not None]
    if not entries:
        return None
    if len(entries) < len(asked):
        raise InvalidInputError(
            f"{len(entries)} of the {len(asked)} keys were used before, for other requests; keys "
            "of debits that are made together are new together."
        )
    for entry, (_, one) in zip(entries, asked, strict=True):
        request = read_request(one, state.name, state.beliefs, state.length)
        _refuse_another(entry, request, analyst, _exactly)  # some may not have been answered yet
    answers = [tables.answer_to(entry.seq) for entry in entries]
    return [
        _receipt(entry, None if answer is None else answer.content["answer"])
        for entry, answer in zip(entries, answers, strict=True)
    ]


def _repeated(tables: Tables, earlier: Entry, request: Request, analyst: str | None) -> Receipt:
    """The stored answer of a key, if it is asked for by the same request as then."""
    _refuse_another(earlier, request, analyst, _as_asked)
    body = earlier.content
    answer = tables.answer_to(earlier.seq)
    if answer is None:
        raise NotPrivateError(
            f"The key {body['key']!r} was debited at {body['at']}, but its answer is not stored: "
            "another process is still at it, or one died before it had stored the answer. What "
            "was spent stays spent, and drawing noise again would be a second release. Ask again "
            "in a moment; if this stays so, use a new key, which is debited anew."
        )
    return _receipt(earlier, answer.content["answer"])


def _refuse_another(
    earlier: Entry,
    request: Request,
    analyst: str | None,
    compared: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Refuse a request that is not the one its key stands for."""
    body, asked = earlier.content, {**request.body, "analyst": analyst}
    same = {name: body.get(name) for name in asked}
    if canonical(compared(same)) != canonical(compared(asked)):
        raise InvalidInputError(
            f"The key {body['key']!r} was used for another request at {body['at']} (entry "
            f"{earlier.seq}); a key stands for one request for ever. Use a new key."
        )


def _exactly(body: dict[str, Any]) -> dict[str, Any]:
    """All of a request."""
    return body


def _as_asked(body: dict[str, Any]) -> dict[str, Any]:
    """A request without the noise that was computed for it: later versions may find a little less.

    Only a release says what it was computed from; of other requests everything is compared. It is
    enough where the answer is stored: another noise is then neither drawn nor told.
    """
    if (body["request"] or {}).get("schema") != "quiltwork/release":
        return body
    kept = {
        part: {name: one for name, one in body[part].items() if name not in _COMPUTED}
        for part in ("request", "spending")
    }
    return {**body, **kept}


def _receipt(entry: Entry, stored: str | None = None) -> Receipt:
    with reading(entry):
        spending = Spending.from_body(entry.content["spending"])
    return Receipt(entry.dataset, entry.seq, spending, stored, entry.hash)


def stored_answer(tables: Tables, receipt: Receipt, identity: str, answer: str) -> None:
    """Append the answer to a debit, once.

    Raises:
        InvalidInputError: if there is one already, or it is too long for a database.
        StorageError: if the debit is not in the ledger.
    """
    if len(answer) > _LONGEST_ANSWER:
        raise InvalidInputError(
            f"The answer has {len(answer):,} characters, and the ledger keeps at most "
            f"{_LONGEST_ANSWER:,}; ask for less at a time. What was debited stays spent."
        )
    if tables.with_id(identity) is not None:
        return
    if tables.answer_to(receipt.number) is not None:
        raise InvalidInputError(
            f"Debit {receipt.number} has its answer already, and a debit pays for one answer only."
        )
    paid = tables.at(receipt.number)
    if paid is None or (paid.dataset, paid.kind) != (receipt.dataset, "debit"):
        raise StorageError(f"Debit {receipt.number} of {receipt.dataset!r} is not in the ledger.")
    body = {"debit": receipt.number, "answer": answer, "at": now()}
    draft = Draft(identity, receipt.dataset, "answer", canonical(body))
    tables.append(draft, debit=receipt.number)


def find_answer(tables: Tables, dataset: str, key: str, analyst: str | None) -> str | None:
    """Return the answer stored under a key of an analyst."""
    debit = tables.with_key(dataset, key, analyst)
    answer = None if debit is None else tables.answer_to(debit.seq)
    return None if answer is None else str(answer.content["answer"])


def previewed(
    tables: Tables, totals: Totals, state: DatasetState, spending: Any, analyst: str | None
) -> Quote:
    """Say what a debit would do."""
    asked = read_request(spending, state.name, state.beliefs, state.length).spending
    alone = None if analyst is None else partial(totals.alone, tables, state, analyst)
    refusal = None
    try:
        state.grant(asked, analyst, alone)
    except QuiltworkError as error:
        refusal = str(error)
    after = state.price(asked)
    return Quote(
        dataset=state.name,
        before=float_up(state.account.total),
        after=None if after is None else float_up(after),
        budget=float_down(state.budget),
        refusal=refusal,
        composes_by=asked.composes_by,
    )
