"""`quiltwork release`: a private answer from a series, with its error bars."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.calibrate import METHODS
from quiltwork.cli.command import (
    argument,
    command,
    confidence_option,
    level_number,
    option,
    option_group,
)
from quiltwork.cli.output import Targets, interval_table, note, progress
from quiltwork.cli.paying import TypedLedger, tell_quote, telling_what_is_left
from quiltwork.cli.planned import read_plan
from quiltwork.cli.series_options import (
    QUERY_HELP,
    Reading,
    pairs_option,
    protect_option,
    read,
    read_beliefs,
    read_episode,
    read_pairs,
    read_query,
    read_states,
)
from quiltwork.errors import InvalidInputError

if TYPE_CHECKING:
    from quiltwork.queries.query import Query
    from quiltwork.series import Release, Series


@command(
    example="""
    quiltwork release patient.csv --value activity --belief belief.json --query histogram \\
        --epsilon 1
    quiltwork release meters.csv --value kw --edges 0.5,2 --subject meter --time time \\
        --every 10min --belief box.json --query frequencies --epsilon 1 -o release.json
    quiltwork release patient.csv --value activity --belief belief.json --query count:walk \\
        --window 1:1440 --epsilon 0.5 --preview
    quiltwork release meters.csv --plan plan.json --month 2026-03 --ledger sqlite:///budget.db
    """
)
def release(
    file: str = argument(),
    reading: Reading = option_group(Reading),
    belief: tuple[str, ...] = option(
        "What an adversary may believe, as written by `fit`; repeat for a set. Not needed with "
        "--ledger, which keeps it, nor with --protect person and --states.",
        "FILE",
    ),
    states: str | None = option("Without --belief: the public states, as rest,walk.", "LIST"),
    question: str | None = option(f"{QUERY_HELP}  [histogram]", "QUERY", names="--query"),
    window: str | None = option(
        "Ask about these time points only: 1:1440, 2026-03-01:2026-03-07 (both days included), "
        "2026-03, 'last 7 days', 'Mondays 18:00-22:00'.",
        "WHEN",
        names="--window --month",
    ),
    epsilon: Fraction | None = option("The privacy level.", kind=level_number),
    plan: str | None = option(
        "Instead of --query and --epsilon: a plan that `ledger plan -o` wrote, whose release about "
        "the time points of --window is made, with the planned noise. With --ledger its name is "
        "the key, so that it is made once.",
        "FILE",
    ),
    line: str | None = option("With --plan: the release of this name, as 'monthly 3'.", "NAME"),
    noise: Any = option(
        "Geometric noise keeps a pure epsilon, Gaussian noise epsilon and delta.",
        kind=("geometric", "gaussian"),
        default="geometric",
    ),
    delta: Fraction | None = option("With --noise gaussian: the chance that is left."),
    method: Any = option("How to bound influence.", kind=METHODS),
    secrets: str | None = option("Protect only these time points.", "START:STOP"),
    protect: str | None = protect_option,
    pairs: str | None = pairs_option,
    apart: bool = option(
        "One release for each subject instead of one for all together; each costs its own "
        "subject epsilon."
    ),
    backend: str = option(
        "Who reads and counts a folder of files; noise is drawn here, once.",
        kind=("local", "spark"),
        default="local",
    ),
    preview: bool = option("Show the error to expect; nothing is released."),
    payer: TypedLedger = option_group(TypedLedger),
    beginning: bool = option(
        "With --ledger: FILE has the dataset from its first time point on, and more is to come."
    ),
    polish: bool = option(
        "Make the numbers possible ones, which costs nothing: none below 0 or above all there is, "
        "adding up to what is public. Intervals stay those of the noise."
    ),
    certificate: str | None = option(
        "With --ledger: store a proof that the noise suffices with the debit, and write it here.",
        "FILE",
    ),
    confidence: Fraction = confidence_option("Of the intervals."),
    to: Targets = option_group(Targets),
    others: tuple[str, ...] = option(
        "With --report: beliefs that may fit better, and the privacy loss if they were true.",
        "FILE",
    ),
) -> None:
    """Release an answer about FILE under the given beliefs.

    The answer reveals at most epsilon about any single time point of any subject, to an adversary
    who believes any of the beliefs. Subjects are independent of each other: the noise of an answer
    for all of them is that of one subject.

    With --ledger, what was registered for the dataset (`ledger register`) and its beliefs need not
    be typed again.
    """
    from quiltwork.series import possible

    polished: Callable[[Release], Release] = possible if polish else lambda released: released
    if (noise == "gaussian") != (delta is not None):
        raise click.UsageError("--noise gaussian goes with --delta, and --delta with it")
    if apart and (payer.ledger or to.plot or to.report):
        raise click.UsageError("--apart goes with none of --ledger, --plot and --report")
    if certificate is not None and (not payer.ledger or preview):
        raise click.UsageError("--certificate needs --ledger, and a release: no --preview")
    if apart and backend == "spark":
        raise click.UsageError("--apart needs --backend local")
    stored = None
    if plan is not None:
        excluded = (question, epsilon, method, secrets, delta, states)
        if any(one is not None for one in excluded) or apart or protect == "person":
            raise click.UsageError(
                "--plan says what is asked and with which noise: it goes without --query, "
                "--epsilon, --method, --secrets, --noise, --states, --apart and --protect person"
            )
        if (window is None) == (line is None):
            raise click.UsageError("--plan needs --window, or --line: which of its releases?")
        stored = read_plan(plan)
        payer = replace(payer, dataset=payer.dataset or (payer.ledger and stored.plan.dataset))
    elif epsilon is None or line is not None:
        raise click.UsageError("Give --epsilon, or --plan with --window or --line")
    debit = payer.open()
    beliefs = _beliefs(belief, states, protect, debit)
    if stored is not None:
        stored.plan.check(beliefs)
    query = read_query(question or "histogram", beliefs[0].states, None)
    if beginning and not debit:
        raise click.UsageError("--beginning goes with --ledger, whose dataset is longer")
    protected = _protected(protect, beliefs, reading.every, debit)
    alternatives = _alternatives(others, to.report, beliefs)
    check_delivery(query, to, polish)
    series = _series(file, reading, belief, beliefs, states, backend, debit)
    persons = protect == "person"
    if stored is not None:
        runs = None if window is None else series.windows(window)
        length = max(series.lengths)
        query, epsilon, debit = stored.carried_out(runs, line, beliefs, length, debit)
        protected = {"episode": stored.plan.episode, **stored.noise}
        window = None
    if window is not None and (preview or not apart):
        paid = bool(debit)
        query, series = _on_window(query, series, window, beliefs, paid=paid, persons=persons)
        window = None
    options = {
        "epsilon": epsilon,
        "method": method,
        "secrets": None if secrets is None else series.window(secrets),
        "noise": noise,
        "delta": delta or 0,
        "pairs": read_pairs(pairs, beliefs),
        **protected,
    }
    if debit and pairs is not None:
        raise click.UsageError("--pairs is fixed for the dataset of a ledger: `ledger create`")
    if preview:
        _preview(query, beliefs, series, options, debit, confidence, to, apart, persons)
        return
    if apart:
        _release_apart(query, beliefs, series, options, window, polished, confidence, to)
        return

    from quiltwork.series import release as answer

    whole = debit["ledger"].status(debit["dataset"]).length if beginning else None
    if whole and whole > max(series.lengths):
        debit["beginning_of"] = whole
    with telling_what_is_left(debit, stored) as remaining:
        options["certificate"] = certificate is not None
        before = debit["ledger"].checkpoint().count if certificate is not None else 0
        released = polished(answer(series.data, query, beliefs, **options, **debit))
        if certificate is not None:
            _write_certificate(certificate, debit, released, before)
        context = None
        if to.report is not None:
            from quiltwork.series.releases.release_page import ReportContext

            context = ReportContext(remaining(), series.grid.step)
            if debit:
                status = debit["ledger"].status(debit["dataset"])
                context = replace(context, ledger_level=(status.budget, status.delta))
            if stored is not None and debit:
                from quiltwork.cli.plan_page import carried_out

                whose = debit["ledger"], debit["dataset"], debit["analyst"]
                context = replace(context, plan=carried_out(stored.plan, series, *whose))
        to.deliver(
            released.to_json(),
            released_lines(released, confidence),
            released,
            confidence,
            others=alternatives,
            context=context,
        )


def _write_certificate(path: str, debit: dict[str, Any], released: Release, before: int) -> None:
    """Write the certificate stored with the debit of this release."""
    ledger, dataset = debit["ledger"], debit["dataset"]
    if debit["key"] is not None:
        paid = ledger.debit_with_answer(dataset, debit["key"], debit["analyst"])[0]
    else:
        # other processes debit, too; equal spendings have equal certificates
        new = ledger.history(dataset, before)
        paid = next(one for one in new if one.certificate and one.spending == released.spending)
    text = ledger.certificate(dataset, paid.number)
    if text is None:
        note(
            f"Debit {paid.number} was made without a certificate earlier: {path!r} is not written."
        )
    else:
        files.write(path, text + "\n")


def _series(
    file: str,
    reading: Reading,
    belief: tuple[str, ...],
    beliefs: Any,
    states: str | None,
    backend: str,
    debit: dict[str, Any],
) -> Series:
    """Read the file; where a ledger pays, only as its data were registered."""
    if not debit:
        return read(file, reading.completed(belief, file), beliefs=beliefs, backend=backend)
    from quiltwork.series.registration import refuse_unregistered, registered_reading

    ledger, dataset = debit["ledger"], debit["dataset"]
    named = {"states": beliefs[0].states} if states is not None else {}

    def check(path: str, column: str, arguments: dict[str, Any]) -> None:
        refuse_unregistered(ledger, dataset, path, column, {**arguments, **named})

    registered = registered_reading(ledger, dataset)
    completed = reading.completed(belief, file, registered)
    return read(file, completed, beliefs=beliefs, backend=backend, check=check)


def _preview(
    query: Query,
    beliefs: Any,
    series: Series,
    options: dict[str, Any],
    debit: dict[str, Any],
    confidence: Fraction,
    to: Targets,
    apart: bool,
    persons: bool,
) -> None:
    """Show the error to expect, and with a ledger what the release would cost."""
    from quiltwork.series import preview as foresee

    coded = list(series.data.coded.values())
    foreseen_beliefs = beliefs
    if not debit:
        from quiltwork.beliefs.cyclic import align_to_starts

        foreseen_beliefs = align_to_starts(beliefs, coded)
    elif not persons:
        options["pairs"] = debit["ledger"].status(debit["dataset"]).pairs
    if apart:
        coded = sorted(coded, key=len)[-1:]
    recorded = [one.recorded for one in coded if one.recorded is not None] or None
    foreseen = foresee(
        query,
        foreseen_beliefs,
        length=[*map(len, coded)],
        confidence=float(confidence),
        recorded=recorded,
        **options,
    )
    to.deliver(foreseen.to_json(), foreseen.explain().splitlines(), foreseen)
    if debit and not persons:
        from quiltwork.series.releases.answer import describe_release

        tell_quote(debit, describe_release(series.data, query, beliefs, **options))


def _release_apart(
    query: Query,
    beliefs: Any,
    series: Series,
    options: dict[str, Any],
    window: str | None,
    polished: Callable[[Release], Release],
    confidence: Fraction,
    to: Targets,
) -> None:
    """Make one release for each subject."""
    from quiltwork.beliefs.origins import CodedSequences
    from quiltwork.series import release as answer

    with progress(series.data.coded.items(), "Releasing") as bar:
        releases = {
            str(subject): polished(
                answer(
                    CodedSequences({subject: sequence}),
                    query if window is None else query.on_runs(series.windows(window, subject)),
                    beliefs,
                    **options,
                )
            )
            for subject, sequence in bar
        }
    body = {"releases": {name: json.loads(one.to_json()) for name, one in releases.items()}}
    lines = [
        text
        for name, one in releases.items()
        for text in (f"{name}:", *(f"  {line}" for line in released_lines(one, confidence)), "")
    ]
    to.deliver(files.dump("releases", 1, body), lines)


def _on_window(
    query: Query, series: Series, window: str, beliefs: Any, *, paid: bool, persons: bool
) -> tuple[Query, Series]:
    """Return the query on a window of all sequences; or on each one's own part of it."""
    from quiltwork.series.reading.clock import is_span
    from quiltwork.series.reading.read import refuse_cutting

    begins = {(one.start, len(one)) for one in series.data.coded.values()}
    if len(begins) == 1 or not is_span(window):
        return query.on_runs(series.windows(window)), series
    if paid:
        raise InvalidInputError(
            "The sequences do not begin together, and a ledger accounts for one window of all: put "
            "them on public days with --days and --missing public, or --missing state under a "
            "belief that has the state 'missing' too, and create the dataset for these."
        )
    if not persons:
        refuse_cutting(beliefs)
    return query, series.during(window)


def _beliefs(
    paths: tuple[str, ...], states: str | None, protect: str | None, debit: dict[str, Any]
) -> Any:
    """Read the beliefs; without files those of the ledger's dataset, or for persons the states."""
    if paths:
        if states is not None:
            raise click.UsageError("--states goes without --belief, which names its own")
        return read_beliefs(paths)
    if protect == "person" and states is not None:
        from quiltwork.series.releases.protection import any_series

        return (any_series(read_states(states)),)
    if debit and states is None:
        known = debit["ledger"].status(debit["dataset"]).beliefs
        if all(belief.states is not None for belief in known):
            return known
    raise click.UsageError(
        "Give what an adversary may believe with --belief (write one with `quiltwork belief "
        "make` or `fit`), or protect whole persons with --protect person --states a,b"
    )


def _alternatives(paths: tuple[str, ...], report: str | None, beliefs: Any) -> Any:
    """Read beliefs that may fit better; errors in them are raised before anything is paid."""
    if not paths:
        return None
    if report is None:
        raise click.UsageError("--others goes with --report, whose page shows them")
    alternatives = read_beliefs(paths)
    if any(one.states != beliefs[0].states for one in alternatives):
        raise click.UsageError("--others must be about the states of --belief, in their order")
    return alternatives


def _protected(
    text: str | None, beliefs: Any, every: str | None, debit: dict[str, Any]
) -> dict[str, Any]:
    """Read who is protected, as arguments of a release; by default as the ledger's dataset is."""
    if text == "person":
        return {"protect": "person"}
    if text is None and debit:
        episode = debit["ledger"].status(debit["dataset"]).episode
        if episode > 1:
            note(
                f"Stretches of {episode:,} time points are protected, as in the ledger; "
                "--protect moment asks for less."
            )
        return {"episode": episode}
    return {"episode": read_episode(text, beliefs, every)}


def check_delivery(query: Query, to: Targets, polish: bool) -> None:
    """Refuse options that would keep the answer from being delivered, before anything is spent."""
    to.check()
    if polish and query.mechanism == "exponential":
        raise click.UsageError("--polish is for numbers, and this query answers with a state")
    if to.plot is not None:
        from quiltwork.series.releases.error_bars import refuse_label_interval

        if query.mechanism == "exponential":
            raise refuse_label_interval()


def released_lines(released: Release, confidence: Fraction) -> Iterator[str]:
    """Show an answer with its intervals, and say what it protects."""
    if released.mechanism == "exponential":
        yield f"most common state: {released.value}"
        yield f"its count is within {released.shortfall(confidence)} of the largest, with "
        yield f"{float(100 * confidence):g} % confidence"
    else:
        yield from _table(released, confidence)
    yield ""
    if released.period is not None:
        runs = released.query.runs
        many = f", {len(runs)} runs of time points in between" if runs else ""
        yield f"From {released.period[0]} to {released.period[1]}{many}."
    yield from released.explain().splitlines()[1:]


def _table(released: Release, confidence: Fraction) -> Iterator[str]:
    import numpy as np

    from quiltwork.series.releases.release_page import cell_name

    each = released.interval(confidence)
    together = released.interval(confidence, simultaneous=True)
    columns = [
        np.atleast_1d(np.asarray(part)).ravel()
        for part in (released.value, each.low, each.high, together.low, together.high)
    ]
    width = float(np.min(columns[2] - columns[1]))  # shown to two digits; whole numbers as such
    places = max(0, 2 - math.ceil(math.log10(width))) if 0 < width < 10 and width % 1 else 0
    rows = [
        [
            cell_name(cell),
            f"{value:.{places}f}",
            f"[{a:.{places}f}, {b:.{places}f}]",
            f"[{c:.{places}f}, {d:.{places}f}]",
        ]
        for cell, value, a, b, c, d in zip(released.cells, *columns, strict=True)
    ]
    header = ["cell", released.query.words, f"{float(100 * confidence):g} % interval"]
    yield from interval_table(header, rows)
