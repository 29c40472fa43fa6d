"""`quiltwork ledger …`: budgets of datasets, kept in SQLite or PostgreSQL."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import (
    argument,
    belief_option,
    command,
    exact_number,
    group,
    level_number,
    option,
    option_group,
    report_option,
)
from quiltwork.cli.output import check_targets, emit, note
from quiltwork.cli.series_options import (
    Reading,
    pairs_option,
    protect_option,
    read,
    read_beliefs,
    read_episode,
    read_pairs,
    read_states,
)
from quiltwork.cli.turned_beliefs import followed_zones, turned_beliefs
from quiltwork.errors import BudgetExceeded, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quiltwork.budget import Checkpoint, Ledger, Status


@group()
def ledger() -> None:
    """Keep durable budgets: debit before release.

    URL is sqlite:///FILE (four slashes for an absolute path) or postgresql://user@host/database.
    """


def _opened(url: str) -> Ledger:
    from quiltwork.budget import Ledger

    return Ledger.open(url)


@command(
    example="""
    quiltwork ledger create sqlite:///budget.db meters --belief belief.json --length 52560 \\
        --budget 1
    quiltwork ledger create sqlite:///budget.db team --belief belief.json --length 52560 \\
        --budget 1 --delta 1e-6
    quiltwork ledger create sqlite:///budget.db home --belief day.json --length 52560 \\
        --budget 2 --begins 2026-01-01T00:00
    quiltwork ledger create sqlite:///budget.db survey --people --budget 1
    """
)
def create(
    url: str = argument(),
    dataset: str = argument(),
    belief: tuple[str, ...] = belief_option,
    people: bool = option(
        "Account for persons instead: counts, and releases with --protect person. Needs no "
        "belief, if persons are independent of each other."
    ),
    length: int | None = option("Time points; not for beliefs about rows.", "N"),
    begins: str | None = option(
        "When the series begins, for beliefs about the time of day: 2026-01-01T00:00. They then "
        "follow its clock through the changes of their zone.",
        "TIME",
    ),
    budget: Fraction = option(
        "The most that all releases together may leak about any time point, or any person.",
        kind=level_number,
    ),
    protect: str | None = protect_option,
    pairs: str | None = pairs_option,
    delta: Fraction | None = option(
        "Account for Gaussian noise: the probability left for exceeding the budget."
    ),
    pure: Fraction | None = option("With --delta: the largest sum of pure levels beside it."),
) -> None:
    """Create a dataset with its beliefs and its budget.

    The first one creates the file or the tables. Beliefs, budget and what is protected are fixed
    for ever. Give the final length if it is known: `extend` is refused where the releases made so
    far would exceed the budget in a longer series.

    With --delta, caps on the squares of Gaussian levels per time point are computed now; a debit
    is an addition, growing is free under caps that hold for every length, and shares of analysts
    are shares of the caps, from 0 to 1.
    """
    if pure is not None and delta is None:
        raise click.UsageError("--pure is a share beside Gaussian noise: give --delta, too")
    if people:
        from quiltwork.budget.persons import PEOPLE

        if belief or length is not None or pairs or protect not in (None, "person"):
            raise click.UsageError(
                "--people needs no belief: leave out --belief, --length, --pairs and --protect"
            )
        if delta is not None:
            raise click.UsageError("--people accounts for a pure epsilon: leave out --delta")
        _show([_opened(url).create(dataset, PEOPLE, None, budget)])
        return
    beliefs = read_beliefs(belief)
    if delta is not None and (zones := followed_zones(beliefs)):
        follow = f"follow the clock of {' and '.join(zones)} through its changes"
        if begins is not None:
            raise UnsupportedError(
                f"Gaussian noise supports chains and cyclic chains, and with --begins the beliefs "
                f"{follow}. Leave out --delta; or take a belief without a time of day (quiltwork "
                "fit --single)."
            )
        note(
            f"The beliefs {follow}, which Gaussian noise does not support: only data without a "
            "time zone can be registered here. For others leave out --delta, or take a belief "
            "without a time of day (quiltwork fit --single)."
        )
    elif begins is not None:
        beliefs = tuple(turned_beliefs(beliefs, (begins,), None, " ".join(belief)))
    elif zones := followed_zones(beliefs):
        note(
            f"The beliefs follow the clock of {' and '.join(zones)}, and a ledger keeps them for "
            "one beginning: if clocks change while the series lasts, create the dataset with "
            "--begins 2026-01-01T00:00, the time of its first time point."
        )
    claim = read_episode(protect, beliefs), delta or 0, pure or 0, read_pairs(pairs, beliefs)
    _show([_opened(url).create(dataset, beliefs, length, budget, *claim)])


@command(example="quiltwork ledger extend sqlite:///budget.db meters 105120")
def extend(
    url: str = argument(),
    dataset: str = argument(),
    length: int = argument(),
) -> None:
    """Let a dataset grow to LENGTH time points, if its releases still fit the budget.

    Under chains they do. Under numbers and longer memory a release may reveal more in a longer
    series: then it is best to create a dataset with its final length.
    """
    _show([_opened(url).extend(dataset, length)])


@command(
    example="""
    quiltwork ledger register sqlite:///budget.db meters own.csv --value kw --time time
    quiltwork ledger register sqlite:///budget.db survey people.csv --rows
    """
)
def register(
    url: str = argument(),
    dataset: str = argument(),
    file: str = argument(),
    reading: Reading = option_group(Reading),
    states: str | None = option("For a ledger of people: the states, as rest,walk.", "LIST"),
    rows: bool = option("FILE is for `quiltwork count`."),
) -> None:
    """Check the rows of FILE once, and take no other data for a dataset.

    Give the options of `quiltwork release`, or --rows and those of `quiltwork count`. Problems with
    rows are reported here, to you. From then on, releases that this ledger pays for accept this
    file, unchanged and read with these options, and no other. Register a file again after a change.
    The ledger stores a digest of its path, size and times of change, when the series begins, and
    nothing else of its content.
    """
    from functools import partial

    from quiltwork.series.registration import register_rows, register_series

    opened = _opened(url)
    if rows:
        dialect = {"delimiter": reading.delimiter, "encoding": reading.encoding}
        registered = f"{register_rows(opened, dataset, file, dialect):,} rows"
    else:
        labels = None if states is None else read_states(states)
        take = partial(register_series, opened, dataset)
        registered = f"{read(file, reading, states=labels, take=take).points:,} time points"
    click.echo(f"{registered} registered for {dataset!r}.", err=True)
    _show([opened.status(dataset)])


@command(example="quiltwork ledger allot sqlite:///budget.db meters ana --cap 0.5 --reserved 0.2")
def allot(
    url: str = argument(),
    dataset: str = argument(),
    analyst: str = argument(),
    cap: Fraction | None = option("The most this analyst may use; with δ a share from 0 to 1."),
    reserved: Fraction | None = option("What others must leave; with δ a share from 0 to 1."),
) -> None:
    """Give ANALYST a cap or a reserved share of the budget.

    The budget bounds what all analysts learn together, whatever their shares. Once anybody has a
    cap, only analysts named here can spend. An option that is left out changes nothing; without
    both, cap and reserved share are lifted, and ANALYST may use whatever is left.
    """
    changes = {"cap": cap, "reserved": reserved}
    typed = {name: amount for name, amount in changes.items() if amount is not None}
    _show([_opened(url).allot(dataset, analyst, **(typed or changes))])


@command(example='quiltwork ledger retire sqlite:///budget.db meters --reason "study ended"')
def retire(
    url: str = argument(),
    dataset: str = argument(),
    reason: str = option("Kept in the ledger.", default="no longer used"),
) -> None:
    """Close a dataset for good; its history stays."""
    _show([_opened(url).retire(dataset, reason)])


@command(
    example="""
    quiltwork ledger show sqlite:///budget.db
    quiltwork ledger show sqlite:///budget.db meters
    """
)
def show(
    url: str = argument(),
    dataset: str | None = argument(),
) -> None:
    """Show budget, total and state of all datasets or one."""
    opened = _opened(url)
    _show(opened.datasets() if dataset is None else [opened.status(dataset)])


def _show(statuses: Iterable[Status]) -> None:
    from quiltwork.cli.ledger_text import status_document, status_lines

    listed = list(statuses)
    body = {"datasets": [status_document(status) for status in listed]}
    emit(files.dump("ledger-status", 1, body), status_lines(listed))


_after = option("Start after this entry.", "NUMBER", default=0)
_limit = option("List at most so many.", "N")


@command(
    example="""
    quiltwork ledger history sqlite:///budget.db meters
    quiltwork ledger history sqlite:///budget.db meters --after 2000 --limit 50
    """
)
def history(
    url: str = argument(),
    dataset: str = argument(),
    after: int = _after,
    limit: int | None = _limit,
) -> None:
    """List the granted debits of a dataset."""
    from quiltwork.cli.ledger_text import debit_document, history_lines

    debits = _opened(url).history(dataset, after, limit)
    body = {"dataset": dataset, "debits": [debit_document(debit) for debit in debits]}
    emit(files.dump("ledger-history", 1, body), history_lines(debits))


@command(example="quiltwork ledger notes sqlite:///budget.db --limit 20")
def notes(
    url: str = argument(),
    after: int = _after,
    limit: int | None = _limit,
) -> None:
    """List notes: refused debits, and what a service read for others. They change no total."""
    notes = _opened(url).notes(after, limit)
    lines = [
        f"{note.number:>8}  {note.at}  {note.kind:<8} {note.dataset}  "
        f"{note.who or '-'}: {note.text}"
        for note in notes
    ]
    emit(files.dump("ledger-notes", 1, {"notes": [note.body() for note in notes]}), lines)


@command(
    example="""
    quiltwork ledger verify sqlite:///budget.db
    quiltwork ledger verify sqlite:///budget.db --checkpoint monday.json
    quiltwork ledger verify sqlite:///budget.db --checkpoint monday.json --since
    quiltwork ledger verify sqlite:///budget.db --certificates
    """
)
def verify(
    url: str = argument(),
    checkpoint: str | None = option("Written by `export --checkpoint` earlier.", "FILE"),
    since: bool = option("Check only the entries after the checkpoint, which is quick."),
    certificates: bool = option(
        "Check also, in exact fractions, the certificates that are stored with debits."
    ),
) -> None:
    """Verify that the log is as it was written; exit code 3 if not.

    With a checkpoint that was kept elsewhere, also that nothing before it was cut off, rewritten
    or replaced by a backup.
    """
    earlier = _read_checkpoint(checkpoint)
    if since and certificates:
        raise click.UsageError("--certificates checks all debits: leave --since out")
    if since:
        if earlier is None:
            raise click.UsageError("--since needs --checkpoint FILE, to start from")
        end = _opened(url).verify_since(earlier)
        new = end.count - earlier.count
        emit(
            end.to_json(), [f"Intact: {new} entries since {checkpoint!r} are as they were written."]
        )
        return
    end = _opened(url).verify(earlier, certificates=certificates)
    against = "" if checkpoint is None else f" and continue {checkpoint!r}"
    proved = " Every stored certificate proves its debit." if certificates else ""
    emit(end.to_json(), [f"Intact: {end.count} entries are as they were written{against}.{proved}"])


@command(
    example="""
    quiltwork ledger export sqlite:///budget.db --output backup.jsonl
    quiltwork ledger export sqlite:///budget.db --checkpoint monday.json
    quiltwork ledger export sqlite:///budget.db --output last.jsonl --last
    """
)
def export(
    url: str = argument(),
    output: str | None = option(
        "Write the whole log here, for `restore`.", "FILE", names="-o --output"
    ),
    checkpoint: str | None = option("Write a checkpoint here; keep it elsewhere.", "FILE"),
    last: bool = option("Retire every dataset first: the ledger goes on where it is restored."),
) -> None:
    """Write a backup, a checkpoint, or both; without options, print a checkpoint."""
    opened = _opened(url)
    if last and output is None:
        raise click.UsageError("--last needs --output FILE, from which the ledger is restored")
    if output is None:
        end = opened.checkpoint()
    else:
        end = opened.last_backup(output) if last else opened.backup(output)
    lines = [f"Checkpoint: {end.count} entries, {end.hash}"]
    if checkpoint is not None:
        files.write(checkpoint, end.to_json() + "\n", files.OWNER_ONLY)
        lines.append(f"Checkpoint in {checkpoint}")
    if output is not None:
        lines.append(f"Backup in {output}")
    emit(end.to_json(), lines)


@command(
    example="""
    quiltwork ledger restore backup.jsonl sqlite:///new.db --checkpoint monday.json
    quiltwork ledger restore backup.jsonl sqlite:///new.db --lost meters=0.2
    """
)
def restore(
    file: str = argument(),
    url: str = argument(),
    checkpoint: str | None = option("The newest one known.", "FILE"),
    lost: tuple[str, ...] = option(
        "The most that releases after the backup spent on each time point; 0 if there were none.",
        "DATASET=LEVEL",
    ),
) -> None:
    """Restore a ledger from a backup, after the ledger itself was lost.

    Debits that followed the backup are not in it, so all datasets come back retired, except those
    for which --lost states what may have been spent since: that is debited. After `export --last`
    nothing followed, and every dataset is open again: that is how a ledger is moved.
    """
    from quiltwork.budget import Ledger

    files.refuse_device(file)
    lost_levels = dict(_parse_lost(text) for text in lost)
    _show(Ledger.restore(file, url, _read_checkpoint(checkpoint), lost_levels).datasets())


def _parse_lost(text: str) -> tuple[str, list[dict[str, Any]]]:
    name, separator, level = text.rpartition("=")
    if not separator or not name:
        raise click.UsageError(f"--lost takes DATASET=LEVEL, such as meters=0.2, not {text!r}.")
    amount = exact_number(level)
    return name, [{"dp_epsilon": amount, "label": "lost after the backup"}] if amount else []


@command(
    example="""
    quiltwork ledger plan sqlite:///budget.db meters --ask histogram@144 --ask histogram@1008
    quiltwork ledger plan sqlite:///budget.db meters --year 2025 --timezone Europe/Berlin \\
        --monthly histogram -o plan.json --report plan.html
    quiltwork ledger plan sqlite:///budget.db meters --year 2025 --points-per-day 144 \\
        --begins 2025-01-01T00:00 \\
        --daily histogram --weekly histogram --monthly histogram -o plan.json
    """
)
def plan(
    url: str = argument(),
    dataset: str = argument(),
    ask: tuple[str, ...] = option(
        "A query as in `release`; @144 repeats it on consecutive windows of 144 time points, @28/1 "
        "on the last 28 of every one, @1:10 asks it on time points 1 to 10, @2026-03 in March.",
        "QUERY[@WINDOW]",
    ),
    year: int | None = option("Plan a calendar year instead.", "YEAR"),
    points_per_day: int | None = option("With --year.  [default: by the beliefs' step]", "N"),
    begins: str | None = option(
        "When the first time point is, for dates: 2026-03-01T00:00.  [default: by the beliefs or "
        "the registered data]",
        "TIME",
    ),
    earliest: str | None = option(
        "Leave out releases that begin before this date: 2026-04. To plan the rest again.",
        "DATE",
        names="--from",
    ),
    timezone: str | None = option(
        "With --year: days and months are those of this zone's clocks; or none.  [default: that of "
        "the registered data]",
        "ZONE",
    ),
    daily: str | None = option("With --year: every day.", "QUERY"),
    weekly: str | None = option("With --year: every seven days.", "QUERY"),
    monthly: str | None = option("With --year: every month.", "QUERY"),
    protect: str | None = protect_option,
    output: str | None = option(
        "Write the plan here, for `quiltwork release --plan`.", "FILE", names="-o --output"
    ),
    report: str | None = report_option,
) -> None:
    """Find the noise with which planned releases use up the budget exactly.

    Nothing is spent; `quiltwork release --plan` makes each of them with the planned noise. Every
    kind of release is shown with its expected error, a verdict, and the error if the budget were
    split evenly. For a dataset with δ noise is Gaussian, beside geometric noise for the same
    budget: the plan says which is quieter, and by how much. Episodes are as long as those of the
    dataset, or with --protect longer.
    """
    from quiltwork.budget import plan as plan_releases
    from quiltwork.budget.accounting.stored_plan import plan_document
    from quiltwork.cli.dataset_times import dataset_times
    from quiltwork.cli.ledger_text import read_schedule

    check_targets(output, report)
    opened = _opened(url)
    status = opened.status(dataset)
    if status.retired is not None:
        raise BudgetExceeded(f"Dataset {dataset!r} is retired ({status.retired}): nothing to plan.")
    spent = [debit.spending for debit in opened.history(dataset)]
    kinds = {"daily": daily, "weekly": weekly, "monthly": monthly}
    times = dataset_times(opened, status, begins, timezone, points_per_day)
    queries = read_schedule(ask, status, year, kinds, times, earliest)
    releases = plan_releases(
        status.beliefs,
        length=status.length,
        budget=status.exact_budget,
        queries=queries,
        spent=spent,
        episode=(episode := max(status.episode, read_episode(protect, status.beliefs))),
        pairs=(pairs := status.pairs if episode == 1 else None),
        delta=status.exact_delta,
        pure=opened.accountant(dataset).profile().pure_share if status.delta else 0,
    )
    settings = dataset, status.length or len(releases.items), episode, status.beliefs, pairs
    document = files.dump("ledger-plan", 1, plan_document(releases, *settings))
    useless = all(item.verdict == "useless" for item in releases.items)
    if spent and useless and (output or report):
        raise BudgetExceeded(
            "Every planned release would be useless: too little of the budget is left beside the "
            "releases made before. Nothing was written. Leave out what is made with --from "
            "2026-04, or plan fewer releases."
        )
    if report is not None:
        from quiltwork.budget.accounting.stored_plan import StoredPlan
        from quiltwork.cli.plan_page import plan_dates, plan_page

        stored = StoredPlan.from_json(document)
        dated = None if times is None else plan_dates(stored, times)
        files.write(report, plan_page(releases, stored, status.beliefs, dated))
    lines = [*releases.table().splitlines(), "", *releases.explain().splitlines()]
    lines += [] if releases.spent else ["Nothing was spent before."]
    if output is not None:
        files.write(output, document + "\n")
        lines.append(f"Plan in {output}")
    emit(document, lines)


@command(
    example="""
    quiltwork ledger largest sqlite:///budget.db meters
    quiltwork ledger largest sqlite:///budget.db meters --window 1:4464 --ask histogram
    """
)
def largest(
    url: str = argument(),
    dataset: str = argument(),
    window: str | None = option(
        "On these time points: START:STOP, or dates such as 2026-02.  [default: all]", "WINDOW"
    ),
    ask: str | None = option("Also show the smallest noise for this query there.", "QUERY"),
    analyst: str | None = option("Within this analyst's share.", "NAME"),
) -> None:
    """Show the largest release that still fits: its level, its epsilon, and its noise.

    Nothing is spent.
    """
    from quiltwork.cli.dataset_times import dated_window
    from quiltwork.cli.largest_release import largest_document, largest_lines, largest_release
    from quiltwork.cli.series_options import read_query, read_window

    opened = _opened(url)
    status = opened.status(dataset)
    points = (1, status.length or 1)
    if window is not None:
        points = read_window(window) if "-" not in window else dated_window(opened, status, window)
    query = None if ask is None else read_query(ask, status.beliefs[0].states, None).on(*points)
    release = largest_release(opened, status, points, query, analyst)
    emit(files.dump("ledger-largest", 1, largest_document(release)), largest_lines(release))


@command(
    example="""
    quiltwork ledger spend sqlite:///budget.db meters --epsilon 0.1 --neighbours add-remove \\
        --start 1 --stop 4464 --what "OpenDP report"
    quiltwork ledger spend sqlite:///budget.db meters --rho 0.001 --what "days of March"
    """
)
def spend(
    url: str = argument(),
    dataset: str = argument(),
    epsilon: Fraction | None = option(
        "The level of a mechanism of pure differential privacy, per time point.",
        kind=level_number,
    ),
    rho: Fraction | None = option("Instead, for a dataset with a delta: rho of Gaussian noise."),
    neighbours: Any = option(
        "What its level is for: a time point that is added or removed (OpenDP's "
        "symmetric distance, most libraries), or one that is substituted.",
        kind=("add-remove", "substitute"),
    ),
    start: int = option("The first time point used.", "N", default=1),
    stop: int | None = option("The last one.  [default: the end of the series]", "N"),
    what: str = option("What was released, for the history.", "TEXT", default=""),
    key: str | None = option("An idempotency key: repeating it debits nothing.", "TEXT"),
    analyst: str | None = option("The analyst whose share is debited.", "NAME"),
) -> None:
    """Debit a release of another program, before it is made.

    All releases from a dataset share one budget, whichever program makes them. The level is per
    time point; a level for adding or removing records is debited twice, since substituting a
    record is removing one and adding one.
    """
    from quiltwork.cli.largest_release import spend as debit
    from quiltwork.cli.paying import spent_so_far

    if (epsilon is None) == (rho is None):
        raise click.UsageError("give --epsilon, or --rho for Gaussian noise")
    if epsilon is not None and neighbours is None:
        raise click.UsageError(
            "give the neighbours that the level is for: --neighbours add-remove (OpenDP, most "
            "libraries), or --neighbours substitute"
        )
    opened = _opened(url)
    length = opened.status(dataset).length or 1
    level = epsilon, rho, neighbours == "add-remove"
    receipt = debit(opened, dataset, level, (start, stop or length), what, key, analyst)
    status = opened.status(dataset)
    body = {
        "dataset": dataset,
        "entry": receipt.number,
        "spending": receipt.spending.to_body(),
        "total": status.total,
        "budget": status.budget,
    }
    debited = f"Entry {receipt.number}: debited on time points {start}..{stop or length}."
    emit(files.dump("ledger-spend", 1, body), [debited, f"{spent_so_far(status)}."])


def _read_checkpoint(path: str | None) -> Checkpoint | None:
    if path is None:
        return None
    from quiltwork.budget import Checkpoint

    return Checkpoint.from_json(files.read_bytes(path))


_COMMANDS = (create, extend, register, allot, spend, show, largest, history, notes, plan, verify)
for one in (*_COMMANDS, export, restore, retire):
    ledger.add_command(one)
