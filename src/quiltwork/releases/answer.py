"""`release`: one private answer, debited before the data are used."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief, as_beliefs
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.exact import Number, positive_fraction
from quiltwork.queries.base import Integers, Query
from quiltwork.queries.custom import Custom
from quiltwork.releases.data import Encoded, check_query, read_data
from quiltwork.releases.document import digest
from quiltwork.releases.draw import draw_answer
from quiltwork.releases.ledgers import BudgetLedger
from quiltwork.releases.plan import Plan, make_plan
from quiltwork.releases.record import Release


def release(
    data: Any,
    query: Query,
    beliefs: Belief | Sequence[Belief],
    epsilon: Number = 1.0,
    method: str | None = None,
    ledger: BudgetLedger | None = None,
    dataset: str | None = None,
    key: str | None = None,
    secrets: tuple[int, int] | None = None,
) -> Release:
    """Answer a query so that no protected time point is betrayed by more than epsilon.

    Args:
        data: a sequence of states (list, array, pandas or Polars series, path), or a list or dict
            of them: independent subjects, whose answers are pooled. A list of tuples is one
            sequence, since tuples are states.
        query: from `qw.queries`.
        beliefs: what an adversary may believe; one belief or a list.
        epsilon: the guarantee.
        method: how to calibrate; None takes the exact method where the belief allows.
        ledger: debited before the data are used; needs `dataset`.
        dataset: the ledger's name for the data.
        key: repeating a request under the same key costs nothing and returns the stored answer.
        secrets: (start, stop) restricts what is protected; by default every time point.

    Cost: reading the data, plus calibration, which does not grow with their length.

    Raises:
        InvalidInputError: for empty data, missing values, states the belief does not know, and
            bad arguments; always before anything is spent.
        BudgetExceeded: if the ledger refuses; nothing was recorded.

    Theorem: query-sensitivity

    >>> import quiltwork as qw
    >>> chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    >>> answer = release(["rest", "walk"] * 50, qw.queries.histogram(), chain, epsilon=1.0)
    >>> answer.cells, answer.value.shape
    (('rest', 'walk'), (2,))
    """
    members = as_beliefs(beliefs)
    exact_epsilon = positive_fraction(epsilon, "epsilon")
    check_query(query)
    _check_ledger(ledger, dataset, key)
    series = read_data(data, members, query)
    plan = make_plan(query, members, series.lengths, exact_epsilon, method, secrets)
    if isinstance(query, Custom) and series.states:
        query.rehearse(plan.length, series.states)
    _warn_if_fitted(members, series)
    unanswered = _record(plan, members, series, exact_epsilon, secrets, dataset)
    if ledger is None or dataset is None:
        return _answered(unanswered, plan, series)
    receipt = ledger.debit(dataset, _request(unanswered), key)
    if receipt.stored is not None:
        return Release.from_json(receipt.stored)
    answer = _answered(unanswered, plan, series)
    receipt.complete(answer.to_json())
    return answer


def _check_ledger(ledger: Any, dataset: Any, key: Any) -> None:
    for name, text in (("dataset", dataset), ("key", key)):
        if text is not None and (not isinstance(text, str) or not text):
            raise InvalidInputError(f"{name} must be text that is not empty, not {text!r}.")
    if ledger is None and (dataset is not None or key is not None):
        raise InvalidInputError(
            "dataset and key belong to a ledger, and none is given: nothing would be debited. "
            "Pass ledger=, or leave them out."
        )
    if ledger is not None and dataset is None:
        raise InvalidInputError(
            "A ledger is given without dataset=, so it cannot know whose budget to debit."
        )


def _warn_if_fitted(members: tuple[Belief, ...], series: Encoded) -> None:
    if any(belief.fitted_on(sequence) for belief in members for sequence in series.source):
        warnings.warn(
            "The belief was fitted on the data being released, so the noise scale itself depends "
            "on them and the guarantee does not hold. Fit on public data or on other subjects, or "
            "use a wide ChainBox.",
            QuiltworkWarning,
            stacklevel=3,
        )


def _record(
    plan: Plan,
    members: tuple[Belief, ...],
    series: Encoded,
    epsilon: Fraction,
    secrets: tuple[int, int] | None,
    dataset: str | None,
) -> Release:
    """Return everything about the release but its answer."""
    query, calibration = plan.query, plan.calibration
    offset, unit = query.grid(plan.points)
    return Release(
        value=None,
        cells=query.cells(series.states),
        query=query,
        exact_epsilon=epsilon,
        noise_scale=plan.noise_scale,
        noisy=(),
        offset=offset,
        unit=unit,
        rounding=query.rounding(series.states, plan.points, plan.subjects),
        total=query.total(plan.points, plan.subjects),
        points=plan.points,
        length=plan.length,
        subjects=plan.subjects,
        method=calibration.method,
        node=calibration.node,
        quilt=calibration.quilt,
        influence=calibration.influence,
        secrets=None if secrets is None else (secrets[0], secrets[1]),
        beliefs=tuple(repr(belief) for belief in members),
        belief_digest=digest(members),
        dataset=dataset,
    )


def _request(unanswered: Release) -> dict[str, Any]:
    document = json.loads(unanswered.to_json())
    level = unanswered.exact_dp_epsilon
    return {
        **{name: part for name, part in document.items() if name not in ("value", "noisy")},
        "dp_epsilon": None if level is None else str(level),
    }


def _answered(unanswered: Release, plan: Plan, series: Encoded) -> Release:
    answers = (plan.query.evaluate(codes, series.alphabet) for codes in series.codes)
    truth: Integers = reduce(np.add, answers)
    noisy = draw_answer(plan.query, truth, plan.law)
    value = plan.query.present(np.array(noisy, dtype=object), series.states, plan.points)
    return replace(unanswered, value=value, noisy=noisy)
