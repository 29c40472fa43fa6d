"""`release`: a private answer, debited from the ledger before the data are used."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.arguments import instance
from quiltwork.beliefs import Belief, Label, as_beliefs
from quiltwork.beliefs.cyclic import align_to_starts, require_aligned
from quiltwork.beliefs.origins import coded_source
from quiltwork.beliefs.sets import digest
from quiltwork.budget.payment import BEGINNING_OF, Payer, Request, as_payer, pay_and_store
from quiltwork.budget.persons import PEOPLE, is_about_people
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.influence.calibration import Calibration
from quiltwork.influence.calibration_arguments import NoiseKind, parse_noise
from quiltwork.noise import RoundedGaussian, TwoSidedGeometric, exponential_mechanism
from quiltwork.queries.custom import CustomQuery
from quiltwork.queries.query import Integers, Query, States, parse_query
from quiltwork.series.reading.read import refuse_cutting
from quiltwork.series.releases.data import (
    EncodedSeries,
    Source,
    adapt_query,
    assumed_step,
    encode_cells,
    period_of,
    public_states,
    queries_by_sequence,
    read_source,
    recorded_points,
    states_are_all,
    with_time_of_day,
)
from quiltwork.series.releases.gap_patterns import refuse_other_gaps
from quiltwork.series.releases.noise_plan import NoisePlan, make_plan
from quiltwork.series.releases.protection import (
    Protection,
    Who,
    any_series,
    read_protection,
)
from quiltwork.series.releases.record import Release
from quiltwork.series.releases.release_text import FITTED
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.budget import Ledger


def release(
    data: Any,
    query: Query,
    beliefs: Belief | Sequence[Belief] | None,
    epsilon: Number = 1.0,
    method: str | None = None,
    ledger: Ledger | Payer | None = None,
    dataset: str | None = None,
    key: str | None = None,
    analyst: str | None = None,
    secrets: tuple[int, int] | None = None,
    episode: int | None = None,
    protect: Who | None = None,
    beginning_of: int | None = None,
    noise: NoiseKind = "geometric",
    delta: Number = 0,
    pairs: Iterable[tuple[Label, Label]] | None = None,
    certificate: bool = False,
) -> Release:
    """Answer a query with noise that bounds the privacy loss about every secret by epsilon.

    Args:
        data: a sequence of states, or of numbers under Gaussian beliefs (list, array, pandas or
            Polars series, path), or a list or dict of them: independent subjects, whose answers are
            pooled. A list of tuples is one sequence, since tuples are states.
        query: from `qw.queries`.
        beliefs: what an adversary may believe; one belief or a list. Beliefs about days are turned
            to every phase in which a subject is known to begin; with a ledger they are fixed. With
            protect="person" only the states are used, and None does if the query names them.
        epsilon: the guarantee.
        method: how to calibrate; None takes the sweep for chains and trees, else quilts. With
            "entry" on data that depend on each other the guarantee is weaker than asked for: the
            release's `epsilon` is then what it really keeps, and a warning says so.
        ledger: debited before the data are used; needs `dataset`.
        dataset: the ledger's name for the data.
        key: repeating a request under the same key costs nothing and returns the stored answer.
            It identifies the request; a custom query needs `version=` to be part of one.
        analyst: the analyst whose share of the budget is debited.
        secrets: (start, stop) restricts what is protected; by default every time point.
        episode: the number of consecutive time points that are one secret; by default that of the
            ledger's dataset, else one.
        protect: "moment" (a time point), "episode" (`episode` consecutive ones) or "person": a
            subject's whole series, whatever is believed about it, if subjects are independent of
            each other. By default a moment, or an episode where one is given.
        beginning_of: the length of the ledger's dataset, where the data are only its beginning:
            releases about later time points were paid for ahead.
        noise: "geometric" for a pure epsilon; "gaussian" for (epsilon, delta), which needs less
            noise for many questions about the same time points (`docs/how-to/gaussian-noise.md`).
        delta: with Gaussian noise, the probability of a privacy loss above epsilon.
        pairs: the pairs of values that are kept apart, as in `calibrate`; with a ledger those of
            the dataset.
        certificate: store with the ledger's debit a proof that the noise suffices, which a checker
            without floats decides (`Ledger.certificate`, `Ledger.verify(certificates=True)`); for
            a pure epsilon by the sweep, under chains with a known matrix and start.

    Cost: reading the data, plus calibration, which does not grow with their length.

    Raises:
        InvalidInputError: for empty data, missing values, states that the belief does not have,
            data on another grid than the belief's, data that no belief allows where no noise is
            needed, and bad arguments; always before anything is spent. With a ledger, rows of
            beliefs without states are never refused: those without a value count as the lower
            bound of a sum and are in no cell.
        UnsupportedError: with a ledger, if no noise is needed, or a certificate is asked for that
            cannot be written; nothing was recorded.
        BudgetExceeded: if the ledger refuses; nothing was recorded.

    Theorem: docs/theory/query-sensitivity.md, docs/theory/f-sweep.md

    >>> import quiltwork as qw
    >>> chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    >>> answer = release(["rest", "walk"] * 50, qw.queries.histogram(), chain, epsilon=1.0)
    >>> answer.cells, answer.value.shape
    (('rest', 'walk'), (2,))
    """
    exact_epsilon = positive_fraction(epsilon, "epsilon")
    exact_delta = parse_noise(noise, delta)
    parse_query(query)
    members = resolve_beliefs(beliefs, query, protect)
    payer = as_payer(ledger, dataset, key, analyst)
    if payer is not None and pairs is not None:
        raise InvalidInputError(
            "The pairs of values that a ledger's dataset keeps apart are fixed when it is created: "
            "leave pairs out."
        )
    if payer is not None and protect in (None, "moment", "episode"):
        kept_apart, stretch = payer.secrets()
        pairs = kept_apart if episode in (None, 1) else None
        episode = stretch if episode is None and protect != "moment" else episode
    episode = 1 if episode is None else episode
    protection = read_protection(protect, method, secrets, episode, members, exact_delta, pairs)
    paid = payer is not None
    unreleased = prepare_release(data, query, members, exact_epsilon, protection, paid=paid)
    plan, source = unreleased.plan, unreleased.source
    states, members = unreleased.states, unreleased.members
    if isinstance(unreleased.query, CustomQuery) and states:
        unreleased.query.rehearse(plan.length, states)
    unanswered = replace(
        unreleased.record(exact_epsilon, secrets, dataset),
        assumed_step=assumed_step(source, members),
        fitted=_are_fitted(members, source),
    )
    ahead = _ahead(beginning_of, plan.length)
    if payer is not None and plan.recorded is not None and not payer.holds_rows:
        refuse_other_gaps(payer, source.sequences)
    request = cache(
        lambda: _request(unanswered, key, payer if protection.who == "person" else None, ahead)
    )
    if instance(certificate, bool, "certificate"):
        payer = _certified(payer, plan)
    if payer is not None:
        payer.check(request())  # before any cell is looked at
    series = unreleased.encoded()
    if payer is None:
        _check_without_noise(plan, members, series)
    if unanswered.fitted:
        warnings.warn(FITTED, QuiltworkWarning, stacklevel=2)

    def draw() -> Release:
        return unreleased.drawn(unanswered, series)

    return pay_and_store(payer, request, draw, Release.to_json, Release.from_json)


def _certified(payer: Payer | None, plan: NoisePlan) -> Payer:
    """Return the payer with the certificate of the noise, for its debit."""
    from quiltwork.influence.certificate_writer import certificate

    if payer is None:
        raise InvalidInputError(
            "A release's certificate is stored with the debit that pays for it, and no ledger is "
            "given. Pass ledger= and dataset=, or write one without a ledger by "
            "qw.influence.certificate(qw.calibrate(…))."
        )
    if not isinstance(plan.calibration, Calibration):
        raise UnsupportedError(
            "Certificates prove a pure epsilon, and Gaussian noise keeps epsilon and delta. Leave "
            "certificate out, or use geometric noise."
        )
    return replace(payer, certificate=certificate(plan.calibration))


@dataclass(frozen=True, eq=False)
class PreparedRelease:
    """A release before any cell is read.

    Attributes:
        plan: its noise.
        source: the sequences, unread.
        states: the public states; None where rows can hold anything.
        members: the beliefs.
        query: the question.
        paid: whether a ledger pays; then nothing is refused because of the content of cells.
    """

    plan: NoisePlan
    source: Source
    states: States | None
    members: tuple[Belief, ...]
    query: Query
    paid: bool

    def record(
        self, epsilon: Fraction, secrets: tuple[int, int] | None, dataset: str | None
    ) -> Release:
        """Return everything about the release but its answer."""
        plan, states = self.plan, self.states or ()
        query, calibration = plan.query, plan.calibration
        offset, unit = query.grid(plan.points)
        return Release(
            value=None,
            cells=query.cells(states),
            query=query,
            exact_epsilon=max(epsilon, calibration.guarantee),
            noise_scale=plan.noise_scale,
            noisy=(),
            offset=offset,
            unit=unit,
            rounding=query.rounding(states, plan.points, plan.subjects),
            total=plan.total if states_are_all(self.members) else None,
            points=plan.points,
            length=plan.length,
            subjects=plan.subjects,
            method=calibration.method,
            node=calibration.node,
            quilt=calibration.quilt,
            influence=calibration.influence,
            before=calibration.before,
            secrets=None if secrets is None else (secrets[0], secrets[1]),
            episode=calibration.problem.episode,
            delta=plan.delta,
            pairs=calibration.problem.pairs,
            gaps=None if plan.recorded is None else plan.recorded.gaps,
            beliefs=tuple(belief.summary() for belief in self.members),
            belief_digest=digest(self.members),
            dataset=dataset,
        )

    def encoded(self) -> EncodedSeries:
        """Read and encode the cells."""
        return encode_cells(self.source, self.members, self.query, quietly=self.paid)

    def drawn(self, unanswered: Release, series: EncodedSeries) -> Release:
        """Draw the noise and return the release with its answer."""
        query = self.plan.query
        answers = series.answers(queries_by_sequence(query, self.source), quietly=self.paid)
        noisy = draw_answer(query, reduce(np.add, answers), self.plan.law)
        noisy, cells = query.chosen(noisy, unanswered.cells)
        value = query.present(np.array(noisy, dtype=object), self.states or (), self.plan.points)
        period = period_of(self.source, query)
        return replace(unanswered, value=value, noisy=noisy, cells=cells, period=period)


def prepare_release(
    data: Any,
    query: Query,
    members: tuple[Belief, ...],
    epsilon: Fraction,
    protection: Protection,
    *,
    paid: bool,
) -> PreparedRelease:
    """Plan a release from public values; beliefs of a ledger are used unchanged."""
    query, states = adapt_query(query, members), public_states(members, query)
    source = read_source(data, members, states)
    query = with_time_of_day(query, source, alike=paid or source.fleet is not None)
    if protection.who != "person":
        _refuse_cut(members, source, paid=paid)
    if not paid:
        members = align_to_starts(members, source.sequences)
    require_aligned(members, source.sequences)
    recorded = recorded_points(query, source.recorded, source.lengths)
    plan = make_plan(query, members, source.lengths, epsilon, protection, recorded)
    return PreparedRelease(plan, source, states, members, query, paid)


def _refuse_cut(members: tuple[Belief, ...], source: Source, *, paid: bool) -> None:
    """Refuse cut sequences under beliefs that do not protect the parts that were cut off."""
    if not any(getattr(coded_source(one), "cut", False) for one in source.sequences):
        return
    if paid:
        raise UnsupportedError(
            "These sequences were cut to a span, and a ledger accounts for one window of all; put "
            f"them on public days instead, with {argument('days', '2026-03-01:2026-03-31')} and "
            f"{argument('missing', 'state')}."
        )
    refuse_cutting(members)


def describe_release(
    data: Any,
    query: Query,
    beliefs: Belief | Sequence[Belief],
    epsilon: Number = 1.0,
    episode: int = 1,
    method: str | None = None,
    secrets: tuple[int, int] | None = None,
    noise: NoiseKind = "geometric",
    delta: Number = 0,
    pairs: Iterable[tuple[Label, Label]] | None = None,
) -> Release:
    """Describe a release that a ledger would pay, without its answer.

    Uses only public properties of the data: number, lengths and starts of the series.
    """
    exact_epsilon, members = positive_fraction(epsilon, "epsilon"), as_beliefs(beliefs)
    parse_query(query)
    exact_delta = parse_noise(noise, delta)
    protection = read_protection(None, method, secrets, episode, members, exact_delta, pairs)
    unreleased = prepare_release(data, query, members, exact_epsilon, protection, paid=True)
    return unreleased.record(exact_epsilon, secrets, None)


def resolve_beliefs(
    beliefs: Belief | Sequence[Belief] | None, query: Query, protect: str | None
) -> tuple[Belief, ...]:
    """Return the beliefs; for persons without beliefs, one that excludes no series."""
    if beliefs is None:
        if protect != "person":
            raise InvalidInputError(
                "Give what an adversary may believe, such as qw.MarkovChain(…); only "
                f"{argument('protect', 'person')} needs no belief."
            )
        return (any_series(getattr(query, "states", None)),)
    return as_beliefs(beliefs)


def _check_without_noise(
    plan: NoisePlan, members: tuple[Belief, ...], series: EncodedSeries
) -> None:
    """Refuse exact answers about data that contradict every belief.

    Scale 0 is right because an adversary with one of the beliefs learns no more than ε from the
    exact answer. For that adversary this refusal has probability 0, so it reveals nothing that the
    guarantee covers; the message has no value and no position.

    Theorem: docs/theory/query-sensitivity.md
    """
    if not plan.noise_scale and series.fleet is not None:
        raise UnsupportedError("A release without noise is not made on Spark; read the files here.")
    if plan.recorded is not None and not plan.noise_scale:
        raise UnsupportedError(
            "The beliefs leave nothing to protect here, so the exact answer would be published "
            "without noise, and whether such data can occur is not known for a series with gaps. "
            "Use beliefs that leave something to protect."
        )
    if plan.noise_scale or any(
        all(belief.allows(codes) for codes in series.codes) for belief in members
    ):
        return
    raise InvalidInputError(
        "The beliefs leave nothing to protect here, so the exact answer would be published without "
        "noise; but the data contradict every belief given, so nothing would protect them. Use "
        "beliefs under which such data can occur."
    )


def _are_fitted(members: tuple[Belief, ...], source: Source) -> bool:
    """Return whether a belief was fitted on the released data, or on the file they come from."""
    return any(one.sources.include(sequence) for one in members for sequence in source.sequences)


def _ahead(beginning_of: int | None, length: int) -> dict[str, int]:
    """Return the length of the whole series if the data are its beginning, for the ledger."""
    if beginning_of is None:
        return {}
    return {BEGINNING_OF: integer(beginning_of, "beginning_of", length)}


def _request(
    unanswered: Release, key: str | None, for_persons: Payer | None, ahead: dict[str, int]
) -> Request:
    """Return the request to a ledger; a ledger of people accounts for persons, not time points."""
    if unanswered.noise_scale == 0:
        raise UnsupportedError(
            "This release adds no noise, since its beliefs leave nothing to protect, so it has no "
            "level for a ledger to account for. Use beliefs that leave something to protect."
        )
    query = unanswered.query
    if key is not None and isinstance(query, CustomQuery) and query.version is None:
        raise UnsupportedError(
            f"The custom query {query.name!r} has no version, so a retry with this idempotency key "
            "could return the stored answer of another function. Give it one, "
            "queries.custom(…, version='1'), and another whenever the function changes; or leave "
            "key out."
        )
    document = {
        **json.loads(unanswered.to_json()),
        "dp_epsilon": str(unanswered.exact_dp_epsilon),
        **ahead,
    }
    if for_persons is not None and is_about_people(for_persons):
        whole = {"belief_digest": digest((PEOPLE,)), "length": PEOPLE.length}
        spending = Spending.dp(unanswered.exact_epsilon, 1, PEOPLE.length)
        return Request(spending, unanswered.mechanism, {**document, **whole})
    return Request(unanswered.spending, unanswered.mechanism, document)


def draw_answer(
    query: Query, truth: Integers, law: TwoSidedGeometric | RoundedGaussian
) -> tuple[int, ...]:
    """Return the noisy integers, or for the exponential mechanism the index of its choice.

    At scale 0 the beliefs need no noise: the answer is the truth, or the first of the largest
    counts.

    Theorem: docs/theory/query-sensitivity.md
    """
    if query.mechanism == "exponential":
        if law.is_zero:
            return (int(np.argmax(truth)),)
        assert law.scale is not None  # noqa: S101  (plans build laws from scales)
        return (exponential_mechanism([int(u) for u in truth], 1 / law.scale),)
    noise = law.draw(len(truth))
    return tuple(int(t) + int(z) for t, z in zip(truth, noise, strict=True))
