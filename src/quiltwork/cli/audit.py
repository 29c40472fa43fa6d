"""`quiltwork audit`: the exact leakage of a release, a ledger or a noise scale under a belief."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import argument, command, option
from quiltwork.cli.output import emit
from quiltwork.cli.series_options import read_beliefs, read_query, read_window
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief
    from quiltwork.queries import Query


@dataclass(frozen=True)
class Audited:
    """The input of an audit: releases, their promised epsilon, a bound, and notes to print."""

    beliefs: tuple[Belief, ...]
    length: int
    releases: list[tuple[Query, Fraction]]
    claimed: Fraction | None
    bound: Callable[[Belief], float]
    secrets: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()


@command(
    example="""
    quiltwork audit release.json --belief belief.json
    quiltwork audit sqlite:///budget.db --dataset heart
    quiltwork audit --belief belief.json --length 100 --query count:walk --scale 1
    quiltwork audit --certificate proof.json --belief belief.json
    """
)
def audit(
    source: str | None = argument(),
    beliefs: tuple[str, ...] = option("What to audit under.", "FILE", names="--belief"),
    dataset: str | None = option("With a ledger: which dataset; may be left out if there is one."),
    length: int | None = option("Without a source: the number of time points."),
    question: str | None = option(
        "Without a source: count:STATE, histogram, …", "QUERY", names="--query"
    ),
    window: str | None = option("With --query: the time points asked about.", "START:STOP"),
    scale: Fraction | None = option(
        "With --query: the scale of the noise that was added to the answer, in its units."
    ),
    secrets: str | None = option("Audit only these time points.  [default: all]", "START:STOP"),
    certificate: str | None = option(
        "Check the proof that a calibration's noise suffices, in exact fractions.", "FILE"
    ),
) -> None:
    """Compute the exact leakage of a release or a ledger.

    SOURCE is a release's JSON file or a ledger's URL. Without it, --query, --scale and --length
    describe added noise, for example that of a library for plain differential privacy, whose
    leakage under the belief is computed. Where the exact leakage is too expensive, the largest
    level found and a proven bound are printed. Exit code 1: a promised epsilon is broken.

    With --certificate the proof that `quiltwork calibrate --certificate` wrote is checked instead.
    """
    from quiltwork.audit import report

    if certificate is not None:
        others = source, dataset, length, question, window, scale, secrets
        if any(value is not None for value in others):
            raise click.UsageError("--certificate can be combined with --belief only")
        _certificate(certificate, read_beliefs(beliefs) if beliefs else ())
        return
    protected = None if secrets is None else read_window(secrets)
    members = read_beliefs(beliefs) if beliefs else None
    if source is None:
        subject = _noise(members, length, question, window, scale)
    elif question is not None or scale is not None or length is not None:
        raise click.UsageError("--query, --scale and --length are for an audit without SOURCE")
    elif "://" in source:
        subject = _ledger(source, dataset, members)
    else:
        subject = _release(source, members)
    audited = report(
        subject.beliefs,
        subject.length,
        subject.releases,
        subject.claimed,
        protected or subject.secrets,
    )
    audited = audited.bounded(lambda belief: subject.bound(subject.beliefs[belief - 1]))
    document = files.dump("audit", 1, audited.body() | {"notes": list(subject.notes)})
    emit(document, [*audited.explain().splitlines(), *subject.notes])
    if audited.sound is False:
        click.get_current_context().exit(1)


def _certificate(path: str, members: tuple[Belief, ...]) -> None:
    """Check a certificate's proof, and that it is about these beliefs."""
    from quiltwork.audit.certificate_claims import check_certificate, is_about

    claims = check_certificate(files.read_bytes(path))
    for number, belief in enumerate(members, start=1):
        if not any(is_about(one, belief) for one in claims):
            raise InvalidInputError(
                f"The certificate is valid, but not about belief {number}: none of its chains has "
                "the same numbers."
            )
    lines = []
    for one in claims:
        first, last = one["secrets"]
        scale = float_up(Fraction(one["scale"]))
        lines.append(
            f"Proven: noise of scale {scale:.6g} on the integers of the answer keeps "
            f"epsilon = {one['epsilon']} for time points {first} to {last} of {one['length']}"
            f"{'' if one['episode'] == 1 else ', every ' + str(one['episode']) + ' in a row'}"
            f", under a chain of {len(one['transition'])} states."
        )
    if not members:
        lines.append("Give --belief to check that the chain is yours.")
    emit(files.dump("certificate-check", 1, {"holds": True, "claims": list(claims)}), lines)


def _noise(
    members: tuple[Belief, ...] | None,
    length: int | None,
    question: str | None,
    window: str | None,
    scale: Fraction | None,
) -> Audited:
    if members is None or length is None or question is None or scale is None:
        raise click.UsageError(
            "give SOURCE (a release's JSON or a ledger's URL), or --belief, --length, --query and "
            "--scale"
        )
    query = read_query(question, members[0].states, window)
    return Audited(members, length, [(query, scale)], None, _sweep(length, query, scale))


def _sweep(length: int, query: Query, scale: Fraction) -> Callable[[Belief], float]:
    """Return the sweep's bound on the leakage of noise on one answer, as a function of a belief."""

    def bound(belief: Belief) -> float:
        from quiltwork.influence.calibration import leak_under
        from quiltwork.influence.calibration_arguments import as_problem, check_states

        asked = check_states(query, [belief]) or query
        unit = asked.grid(asked.points(length))[1]
        question = as_problem(asked, length, None, 1)
        return leak_under([belief], question, scale / unit)[0] if scale else math.inf

    return bound


def _release(path: str, members: tuple[Belief, ...] | None) -> Audited:
    from quiltwork.beliefs.sets import digest
    from quiltwork.series import Release
    from quiltwork.series.releases.belief_text import belief_words

    if members is None:
        raise click.UsageError(
            "a release stores only a digest of its beliefs: give them with --belief"
        )
    released = Release.from_json(files.read_bytes(path))
    notes = []
    if digest(members) != released.belief_digest:
        notes.append(
            "Note: the release was calibrated under another list of beliefs than the one given, "
            f"namely {' and '.join(map(belief_words, released.beliefs))}; its promise is about "
            "these only."
        )
    if released.subjects > 1:
        notes.append(
            f"Note: {released.subjects} independent subjects were pooled; this is the leakage of "
            "the longest, audited alone. Pooling can only lower it; that of a shorter subject may "
            "differ."
        )
    _check_cells(released.query, released.cells, members)
    pairs = [_pair(released.query, released.length, released.noise_scale)]
    claimed, secrets = released.exact_epsilon, released.secrets

    def bound(belief: Belief) -> float:
        leak: float = released.leak_under([belief])[0]
        return leak

    return Audited(members, released.length, pairs, claimed, bound, secrets, tuple(notes))


def _ledger(url: str, dataset: str | None, members: tuple[Belief, ...] | None) -> Audited:
    from quiltwork.beliefs.documents import labels_from_json
    from quiltwork.budget import Ledger
    from quiltwork.queries import from_document

    with Ledger.open(url) as ledger:
        name = dataset or _only_dataset(status.dataset for status in ledger.datasets())
        status, debits = ledger.status(name), ledger.history(name)
    described = [debit.request for debit in debits if "query" in debit.request]
    if not described:
        raise InvalidInputError(
            f"No debit of dataset {name!r} records its query, so there is no noise to audit; "
            "releases made with qw.release record it."
        )
    notes = []
    if len(described) < len(debits):
        notes.append(
            f"Note: {len(debits) - len(described)} of {len(debits)} debits record a level but no "
            "query; their leakage is part of the promise, not of this audit."
        )
    length = status.length or max(int(request["length"]) for request in described)
    audited = members or status.beliefs
    pairs = []
    for request in described:
        query = from_document(request["query"])
        if "cells" in request:
            _check_cells(query, tuple(labels_from_json(request["cells"])), audited)
        pairs.append(_pair(query, int(request["length"]), Fraction(request["noise_scale"])))
    claimed = status.exact_total

    def bound(belief: Belief) -> float:
        from quiltwork.budget import Accountant

        account = Accountant(belief, length)
        account.add_all([debit.spending for debit in debits])
        return account.epsilon()

    return Audited(audited, length, pairs, claimed, bound, None, tuple(notes))


def _pair(query: Query, length: int, noise_scale: Fraction) -> tuple[Query, Fraction]:
    """Return the query on its window, and the noise scale of one subject in units of the answer."""
    unit = query.grid(query.points(length))[1]
    return query.on_runs(query.windows(length)), noise_scale * unit


def _check_cells(query: Query, cells: tuple[Any, ...], members: tuple[Belief, ...]) -> None:
    """Raise InvalidInputError for beliefs about other states than those released."""
    from quiltwork.beliefs.states import show_labels

    for belief in members:
        if belief.states is None:
            continue
        query.check(belief.states)
        if tuple(query.cells(belief.states)) != tuple(cells):
            raise InvalidInputError(
                f"The release has the cells {show_labels(cells)}, but the belief has the states "
                f"{show_labels(belief.states)}; audit it under a belief about the same states."
            )


def _only_dataset(names: Iterable[str]) -> str:
    datasets = list(names)
    if len(datasets) == 1:
        return datasets[0]
    shown = ", ".join(datasets) or "none"
    raise InvalidInputError(f"The ledger has the datasets {shown}; select one with --dataset.")
