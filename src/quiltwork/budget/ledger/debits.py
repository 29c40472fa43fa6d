"""A debit and its answer, within a transaction: the two states of a release.

    nothing → debited → released

A debit is appended before the data are used, an answer after it was drawn and before it is shown;
neither is ever taken back. A key that was debited but has no answer stays so: its answer may have
been drawn and lost, and a crash that depends on the answer would turn drawing again into choosing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from quiltwork.arguments import listed
from quiltwork.budget import Spending
from quiltwork.budget.ledger.amounts import identifier
from quiltwork.budget.ledger.entries import Draft, Entry, canonical, reading, scoped_key
from quiltwork.budget.ledger.log import Log, now
from quiltwork.budget.ledger.records import Quote, Receipt
from quiltwork.budget.ledger.requests import read_request
from quiltwork.budget.ledger.shares import check_named
from quiltwork.budget.ledger.snapshots import States
from quiltwork.budget.ledger.state import DatasetState, Grant
from quiltwork.budget.payment import Request
from quiltwork.errors import InvalidInputError, NotPrivateError, QuiltworkError, StorageError
from quiltwork.exact import float_down, float_up

_COMPUTED = {
    *("before", "dp_epsilon", "influence", "node", "noise_scale", "quilt", "scale"),
    *("once", "per_pair", "per_point", "quilts", "square"),
}
"""What a release's noise says of itself in the request, and in what it spends."""
_LONGEST_ANSWER = 10**8


def debited(
    log: Log,
    states: States,
    dataset: str,
    identity: str,
    asked: Any,
    key: str | None,
    analyst: str | None,
    mark: str | None = None,
) -> Receipt:
    """Append a debit, or find the one that this request, or this key, has made already."""
    mine = log.with_id(identity)
    if mine is not None:
        return _receipt(mine)
    state = states.found(log, dataset)
    check_named(dataset, state.shares, analyst)
    request = read_request(asked, dataset, state.beliefs, state.length)
    if mark is not None:
        request = replace(request, document={**(request.document or {}), "asked": mark})
    earlier = None if key is None else log.with_key(dataset, key, analyst)
    if earlier is not None:
        return _repeated(log, earlier, request, analyst)
    return _append(log, states, state, [(identity, request, key)], analyst)[0]


def debited_together(
    log: Log,
    states: States,
    dataset: str,
    asked: Sequence[tuple[str, Any]],
    keys: Sequence[str | None],
    analyst: str | None,
) -> list[Receipt]:
    """Append debits, each asked for by an identity, if they fit together; nothing otherwise.

    Debits that were made under these keys before are found, with the answers stored so far.
    """
    mine = [log.with_id(identity) for identity, _ in asked]
    if any(mine):
        return [_receipt(one) for one in mine if one is not None]
    state = states.found(log, dataset)
    check_named(dataset, state.shares, analyst)
    requests = [read_request(one, dataset, state.beliefs, state.length) for _, one in asked]
    found = _made_before(log, state, requests, keys, analyst)
    if found or not requests:
        return found
    named = [
        (identity, request, key)
        for (identity, _), request, key in zip(asked, requests, keys, strict=True)
    ]
    return _append(log, states, state, named, analyst)


def _append(
    log: Log,
    states: States,
    state: DatasetState,
    requests: Sequence[tuple[str, Request, str | None]],
    analyst: str | None,
) -> list[Receipt]:
    """Append debits, each with its identity and key, if they fit together."""
    grant = state.grant([request.spending for _, request, _ in requests], analyst)
    return _append_granted(log, states, state, requests, analyst, grant)


def debit_lost(log: Log, states: States, state: DatasetState, asked: Any) -> DatasetState:
    """Append a debit for what may have been released after a backup, if the budget allows it.

    Nobody knows for whom it was, so no share bounds it, nor what is reserved: it has happened.
    """
    request = read_request(asked, state.name, state.beliefs, state.length)
    grant = replace(state, analysts={}).grant([request.spending], None)
    named = [(secrets.token_hex(16), request, None)]
    _append_granted(log, states, state, named, None, grant)
    return states.found(log, state.name)


def _append_granted(
    log: Log,
    states: States,
    state: DatasetState,
    requests: Sequence[tuple[str, Request, str | None]],
    analyst: str | None,
    grant: Grant,
) -> list[Receipt]:
    drafts: list[tuple[Draft, str | None]] = []
    after = state.head.count
    for (identity, request, key), charge in zip(requests, grant.charges, strict=True):
        body = {
            **request.body,
            "after": after,
            "at": now(),
            "key": key,
            "analyst": analyst,
            "charge": None if charge is None else str(charge),
            "bound": grant.bound.to_body(),
        }
        draft = Draft(identity, state.name, "debit", canonical(body))
        drafts.append((draft, None if key is None else scoped_key(key, analyst)))
        after = log.head.count + len(drafts)
    entries = log.append_all(drafts)
    states.add(log, state, entries, grant.account)
    return [
        Receipt(state.name, entry.seq, request.spending, None, entry.hash, entry.content["at"])
        for entry, (_, request, _) in zip(entries, requests, strict=True)
    ]


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


def _made_before(
    log: Log,
    state: DatasetState,
    requests: Sequence[Request],
    keys: Sequence[str | None],
    analyst: str | None,
) -> list[Receipt]:
    """The debits that were made under these keys; none if none was.

    Raises:
        InvalidInputError: if some of the keys were used and others not, or for other requests.
    """
    earlier = [None if key is None else log.with_key(state.name, key, analyst) for key in keys]
    entries = [entry for entry in earlier if entry is not None]
    if entries and len(entries) < len(requests):
        raise InvalidInputError(
            f"{len(entries)} of the {len(requests)} keys were used before, for other requests; "
            "keys of debits that are made together are new together."
        )
    for entry, request in zip(entries, requests, strict=False):
        _refuse_another(entry, request, analyst, _exactly)  # some may not have been answered yet
    answers = [log.answer_to(entry.seq) for entry in entries]
    return [
        _receipt(entry, None if answer is None else answer.content["answer"])
        for entry, answer in zip(entries, answers, strict=True)
    ]


def _repeated(log: Log, earlier: Entry, request: Request, analyst: str | None) -> Receipt:
    """The stored answer of a key, if it is asked for by the same request as then."""
    _refuse_another(earlier, request, analyst, _as_asked)
    body = earlier.content
    answer = log.answer_to(earlier.seq)
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
        at = str(entry.content["at"])
    return Receipt(entry.dataset, entry.seq, spending, stored, entry.hash, at)


def stored_answer(log: Log, receipt: Receipt, identity: str, answer: str) -> None:
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
    if log.with_id(identity) is not None:
        return
    if log.answer_to(receipt.number) is not None:
        raise InvalidInputError(
            f"Debit {receipt.number} has its answer already, and a debit pays for one answer only."
        )
    paid = log.at(receipt.number)
    if paid is None or (paid.dataset, paid.kind) != (receipt.dataset, "debit"):
        raise StorageError(f"Debit {receipt.number} of {receipt.dataset!r} is not in the ledger.")
    body = {"debit": receipt.number, "answer": answer, "at": now()}
    draft = Draft(identity, receipt.dataset, "answer", canonical(body))
    log.append(draft, debit=receipt.number)


def find_answer(log: Log, dataset: str, key: str, analyst: str | None) -> str | None:
    """Return the answer stored under a key of an analyst."""
    debit = log.with_key(dataset, key, analyst)
    answer = None if debit is None else log.answer_to(debit.seq)
    return None if answer is None else str(answer.content["answer"])


def previewed(state: DatasetState, asked: Any, analyst: str | None) -> Quote:
    """Say what a debit would do."""
    check_named(state.name, state.shares, analyst)
    spending = read_request(asked, state.name, state.beliefs, state.length).spending
    refusal = after = None
    try:
        state.grant([spending], analyst)
    except QuiltworkError as error:
        refusal = str(error)
    with suppress(QuiltworkError):  # no theorem says
        after = float_up(state.account.plus([spending]).spent)
    return Quote(
        dataset=state.name,
        before=float_up(state.account.spent),
        after=after,
        budget=float_down(state.claim.budget),
        refusal=refusal,
        composes_by=spending.composes_by,
        delta=float(state.claim.delta),
    )
