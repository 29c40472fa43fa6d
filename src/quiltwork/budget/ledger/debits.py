"""Debits and their answers within one transaction: the two states of a release.

    nothing → debited → released

A debit is appended before the data are used, an answer after it was drawn and before it is shown;
neither is ever taken back. An idempotency key that was debited and has no answer stays so: the
answer may have been drawn and lost, and drawing noise again after a crash that depends on the
answer would turn chance into a choice.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from quiltwork.arguments import listed
from quiltwork.budget import Spending
from quiltwork.budget.ledger.entries import Draft, Entry, canonical, now, reading, scoped_key
from quiltwork.budget.ledger.ledger_records import Quote, Receipt
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.requests import parse_name, parse_request
from quiltwork.budget.ledger.shares import check_named
from quiltwork.budget.ledger.snapshots import StateCache
from quiltwork.budget.ledger.state import DatasetState, Grant
from quiltwork.budget.payment import Request
from quiltwork.errors import InvalidInputError, NotPrivateError, QuiltworkError, StorageError
from quiltwork.exact import float_down, float_up

_COMPUTED = {
    *("before", "dp_epsilon", "influence", "node", "noise_scale", "quilt", "scale"),
    *("once", "per_pair", "per_point", "quilts", "square"),
}
"""Fields of a request or a spending that are computed when noise is calibrated."""
_LONGEST_ANSWER = 10**8


def append_debit(
    log: Log,
    states: StateCache,
    dataset: str,
    identity: str,
    release: Any,
    key: str | None,
    analyst: str | None,
    mark: str | None = None,
    certificate: str | None = None,
) -> Receipt:
    """Append a debit, or return the receipt of the one that this request or key made already."""
    own = log.with_id(identity)
    if own is not None:
        return _receipt(own)
    state = states.latest(log, dataset)
    check_named(dataset, state.shares, analyst)
    request = parse_request(release, dataset, state.beliefs, state.length)
    if mark is not None:
        request = replace(request, document={**(request.document or {}), "asked": mark})
    earlier = None if key is None else log.with_key(dataset, key, analyst)
    if earlier is not None:
        return _receipt_of_retry(log, earlier, request, analyst)
    return _append(log, states, state, [(identity, request, key)], analyst, certificate)[0]


def append_debits(
    log: Log,
    states: StateCache,
    dataset: str,
    releases: Sequence[tuple[str, Any]],
    keys: Sequence[str | None],
    analyst: str | None,
) -> list[Receipt]:
    """Append debits, each with the identity of its entry, if they fit together; else none.

    For keys that were debited before, return those receipts, with the answers stored so far.
    """
    own = [log.with_id(identity) for identity, _ in releases]
    if any(own):
        return [_receipt(entry) for entry in own if entry is not None]
    state = states.latest(log, dataset)
    check_named(dataset, state.shares, analyst)
    requests = [
        parse_request(release, dataset, state.beliefs, state.length) for _, release in releases
    ]
    receipts = _receipts_of_retry(log, state, requests, keys, analyst)
    if receipts or not requests:
        return receipts
    identified = [
        (identity, request, key)
        for (identity, _), request, key in zip(releases, requests, keys, strict=True)
    ]
    return _append(log, states, state, identified, analyst)


def append_lost_debit(
    log: Log, states: StateCache, state: DatasetState, release: Any
) -> DatasetState:
    """Append a debit for a release that may have followed a backup, if the budget allows it.

    It is known neither for whom nor whether it was made, so no cap and no reserved share bound it.
    """
    request = parse_request(release, state.name, state.beliefs, state.length)
    grant = replace(state, analysts={}).grant([request.spending], None)
    identified = [(secrets.token_hex(16), request, None)]
    _append_granted(log, states, state, identified, None, grant)
    return states.latest(log, state.name)


def _append(
    log: Log,
    states: StateCache,
    state: DatasetState,
    requests: Sequence[tuple[str, Request, str | None]],
    analyst: str | None,
    certificate: str | None = None,
) -> list[Receipt]:
    """Append debits, each with its identity and key, if they fit together."""
    grant = state.grant([request.spending for _, request, _ in requests], analyst)
    return _append_granted(log, states, state, requests, analyst, grant, certificate)


def _append_granted(
    log: Log,
    states: StateCache,
    state: DatasetState,
    requests: Sequence[tuple[str, Request, str | None]],
    analyst: str | None,
    grant: Grant,
    certificate: str | None = None,
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
            **({} if certificate is None else {"certificate": certificate}),
        }
        draft = Draft(identity, state.name, "debit", canonical(body))
        drafts.append((draft, None if key is None else scoped_key(key, analyst)))
        after = log.head.count + len(drafts)
    entries = log.append_all(drafts)
    states.advance(log, state, entries, grant.account)
    return [
        Receipt(state.name, entry.seq, request.spending, None, entry.hash, entry.content["at"])
        for entry, (_, request, _) in zip(entries, requests, strict=True)
    ]


def parse_keys(keys: Iterable[str] | None, number: int) -> list[str | None]:
    """Parse the idempotency keys of several debits, one for each.

    Raises:
        InvalidInputError: for another number of keys, or one that occurs twice.
    """
    if keys is None:
        return [None] * number
    names = [parse_name(key, "key") for key in listed(keys, "keys")]
    if len(names) != number or len(set(names)) < number:
        raise InvalidInputError(
            f"{number} debits need as many different keys, and {len(set(names))} are given."
        )
    return [*names]


def _receipts_of_retry(
    log: Log,
    state: DatasetState,
    requests: Sequence[Request],
    keys: Sequence[str | None],
    analyst: str | None,
) -> list[Receipt]:
    """Return the receipts of debits that were made under these keys before; none for new keys.

    Raises:
        InvalidInputError: if only some keys were used before, or for other requests.
    """
    earlier = [None if key is None else log.with_key(state.name, key, analyst) for key in keys]
    entries = [entry for entry in earlier if entry is not None]
    if entries and len(entries) < len(requests):
        raise InvalidInputError(
            f"{len(entries)} of the {len(requests)} keys were used before, for other requests; "
            "keys of debits that are made together are new together."
        )
    for entry, request in zip(entries, requests, strict=False):
        # In full: a debit without an answer yet will be answered with the noise of this request.
        _refuse_another(entry, request, analyst, dict)
    answers = [log.answer_to(entry.seq) for entry in entries]
    return [
        _receipt(entry, None if answer is None else answer.content["answer"])
        for entry, answer in zip(entries, answers, strict=True)
    ]


def _receipt_of_retry(log: Log, earlier: Entry, request: Request, analyst: str | None) -> Receipt:
    """Return the stored answer of a key, if the request is the same as then."""
    _refuse_another(earlier, request, analyst, _without_computed_noise)
    body = earlier.content
    answer = log.answer_to(earlier.seq)
    if answer is None:
        raise NotPrivateError(
            f"The key {body['key']!r} was debited at {body['at']}, and its answer is not stored: "
            "either another process is still computing it, or a process ended before it had "
            "stored it. What was spent stays spent, and drawing noise again would be a second "
            "release. Retry in a moment; if this message comes again, use a new key, which makes "
            "a new debit."
        )
    return _receipt(earlier, answer.content["answer"])


def _refuse_another(
    earlier: Entry,
    request: Request,
    analyst: str | None,
    comparable: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Refuse a request other than the one that its key stands for."""
    body, new = earlier.content, {**request.body, "analyst": analyst}
    old = {name: body.get(name) for name in new}
    if canonical(comparable(old)) != canonical(comparable(new)):
        raise InvalidInputError(
            f"The key {body['key']!r} was used for another request at {body['at']} (entry "
            f"{earlier.seq}); a key stands for one request for ever. Use a new key."
        )


def _without_computed_noise(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request without the noise computed for it, which a later version may lower a little.

    Used where the answer is stored, so that other noise would neither be drawn nor reported. Only a
    release states what its noise was computed from; other requests are compared in full.
    """
    if (body["request"] or {}).get("schema") != "quiltwork/release":
        return body
    stated = {
        part: {name: value for name, value in body[part].items() if name not in _COMPUTED}
        for part in ("request", "spending")
    }
    return {**body, **stated}


def _receipt(entry: Entry, stored: str | None = None) -> Receipt:
    with reading(entry):
        spending = Spending.from_body(entry.content["spending"])
        at = str(entry.content["at"])
    return Receipt(entry.dataset, entry.seq, spending, stored, entry.hash, at)


def append_answer(log: Log, receipt: Receipt, identity: str, answer: str) -> None:
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
    debit = log.at(receipt.number)
    if debit is None or (debit.dataset, debit.kind) != (receipt.dataset, "debit"):
        raise StorageError(f"Debit {receipt.number} of {receipt.dataset!r} is not in the ledger.")
    body = {"debit": receipt.number, "answer": answer, "at": now()}
    draft = Draft(identity, receipt.dataset, "answer", canonical(body))
    log.append(draft, debit=receipt.number)


def answer_for_key(log: Log, dataset: str, key: str, analyst: str | None) -> str | None:
    """Return the answer stored under an analyst's key; None without one."""
    debit = log.with_key(dataset, key, analyst)
    answer = None if debit is None else log.answer_to(debit.seq)
    return None if answer is None else str(answer.content["answer"])


def quote_debit(state: DatasetState, release: Any, analyst: str | None) -> Quote:
    """Return what a debit would cost and whether it would be granted, without making it."""
    check_named(state.name, state.shares, analyst)
    spending = parse_request(release, state.name, state.beliefs, state.length).spending
    refusal = after = None
    try:
        state.grant([spending], analyst)
    except QuiltworkError as error:
        refusal = str(error)
    with suppress(QuiltworkError):  # no theorem combines it with the releases before
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
