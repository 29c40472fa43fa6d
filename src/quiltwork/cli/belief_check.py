"""`quiltwork belief check` compares a belief with a public sample; `belief turn` rotates one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from quiltwork import files
from quiltwork.cli.command import argument, belief_option, command, option, option_group
from quiltwork.cli.output import check_targets, deliver, emit, progress, text_table
from quiltwork.cli.series_options import Reading, read, read_beliefs

if TYPE_CHECKING:
    from quiltwork.beliefs.goodness_of_fit import Comparison, Stays
    from quiltwork.influence.diagnostics import BeliefCheck

_MOST_STATES = 8


@command(
    example="""
    quiltwork belief check --belief belief.json --against volunteers.csv --value activity \\
        --subject person --time minute
    quiltwork belief check --belief belief.json --against pilot.csv --value state --time time \\
        --length 1440 --epsilon 0.5 --report check.html
    """
)
def check(
    belief: tuple[str, ...] = belief_option,
    file: str = option("The public sample, CSV or Parquet.", "FILE", names="--against"),
    reading: Reading = option_group(Reading),
    length: int | None = option(
        "Time points of the series to be released.  [default: a day where the step is known, else "
        "the longest sequence of the sample]"
    ),
    epsilon: Fraction = option(
        "The epsilon of the histogram whose leakage is computed.", default="1"
    ),
    html: str | None = option(
        "Write everything with pictures to this page.", "FILE", names="--report"
    ),
    plot: str | None = option("Draw the likelihood of each belief; --report has all.", "FILE"),
) -> None:
    """Check how well a belief fits a public sample, and what that means for a release.

    The sample is scored under the belief and, by halves, under beliefs fitted on the other half.
    Then durations of stays, memory, time of day and impossible steps are compared; and the leakage
    of a histogram calibrated with the belief is computed, if the best fitted belief were true.
    Several files are a set of beliefs.
    """
    check_targets(None, html, plot)
    from quiltwork.beliefs.goodness_of_fit import require_comparable
    from quiltwork.influence.diagnostic_charts import check_charts
    from quiltwork.influence.diagnostics import check_belief
    from quiltwork.report.figures import write_figure

    beliefs = read_beliefs(belief)
    for one in beliefs:  # before a file is read as theirs
        require_comparable(one)
    series = read(file, reading.completed(belief, file), beliefs=beliefs)
    with progress(1, "Checking") as bar:
        found = check_belief(beliefs, series.data, length=length, epsilon=epsilon, grid=series.grid)
        bar.update(1)
    if html is not None:
        files.write(html, _page(found))
    if plot is not None:
        write_figure(plot, check_charts(found)[0])
    emit(found.to_json(), _lines(found, [path for path in (html, plot) if path is not None]))


def _lines(check: BeliefCheck, pictures: list[str]) -> Iterator[str]:
    from quiltwork.influence.diagnostics import traits

    said = check.explain().splitlines()
    yield said[0]
    noun = "sequence" if len(check.sample.paths) == 1 else "sequences"
    yield ""
    yield f"{check.sample.steps:,} steps in {len(check.sample.paths):,} {noun}."
    yield from said[1:]
    for title, header, rows in _tables(check):
        yield ""
        yield title
        yield from text_table(header, rows)
    yield ""
    yield from traits(check)
    yield (
        f"A histogram of {check.length:,} time points calibrated with the belief has noise of "
        f"scale {check.scale:.4g}."
    )
    if pictures:
        yield f"Pictures: {', '.join(pictures)}"


def _tables(check: BeliefCheck) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    names = ("this belief", *(f"belief {place}" for place in range(2, 1 + len(check.members))))
    scored = [(name, m.per_step) for name, m in zip(names, check.members, strict=True)]
    scored += [(f"fitted: {one.name}", one.per_step) for one in check.candidates]
    best = max(score for _, score in scored)
    yield (
        check.score_title,
        ["belief", "nats per step", "beside the best"],
        [[name, _number(score, 4), _number(score - best, 4)] for name, score in scored],
    )
    one, states = check.best, [str(state) for state in check.sample.states][:_MOST_STATES]
    stays = zip(states, one.stays, one.believed_stays, strict=False)
    yield (
        "Stays in time points: mean, and what nine of ten do not exceed",
        ["state", "stays", "mean", "believed", "nine of ten", "believed"],
        [[name, *_stay_cells(seen, said)] for name, seen, said in stays],
    )
    yield (
        "Autocorrelation: sample / belief",
        ["state", *(f"lag {lag}" for lag in one.lags)],
        [[name, *_lag_cells(one, state)] for state, name in enumerate(states)],
    )


def _stay_cells(seen: Stays | None, said: Stays | None) -> list[str]:
    return [
        "0" if seen is None else str(seen.ended),
        "-" if seen is None else f"{seen.mean:.3g}",
        "-" if said is None else _number(said.mean, 1),
        "-" if seen is None or seen.most is None else f"{seen.most:.0f}",
        "-" if said is None or said.most is None else _number(said.most, 0),
    ]


def _lag_cells(one: Comparison, state: int) -> list[str]:
    pairs = zip(one.autocorrelation[:, state], one.believed[:, state], strict=True)
    return [f"{_number(seen, 2)}/{_number(said, 2)}" for seen, said in pairs]


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.{digits}f}" if math.isfinite(value) else "impossible" if value < 0 else "ever"


def _page(check: BeliefCheck) -> str:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.influence.diagnostic_charts import caution_chart, check_charts
    from quiltwork.influence.diagnostics import noise_by_distance, traits
    from quiltwork.report import bullets, figure, page, section, table

    said, charts = check.explain().splitlines(), check_charts(check)
    if isinstance(check.best.belief, MarkovChain):
        noise = noise_by_distance(check.best.belief, check.length, check.epsilon)
        charts.append(caution_chart(noise, check.length, check.epsilon))
    tables = [table(title, header, rows) for title, header, rows in _tables(check)]
    return page(
        "Does the belief fit?",
        said[0],
        [
            section(
                "What was found", bullets([*said[1:], *traits(check)]), *tables, anchor="found"
            ),
            section("Pictures", *map(figure, charts), anchor="pictures"),
        ],
        "The sample is public; no private series was read.",
    )


@command(
    example="""
    quiltwork belief turn belief.json --begins 08:00 -o from8.json
    quiltwork belief turn belief.json --begins 08:00 --begins 20:00 -o both.json
    quiltwork belief turn belief.json --begins 2026-01-01T00:00 --timezone Europe/Berlin \\
        -o year.json
    """
)
def turn(
    file: str = argument(),
    begins: tuple[str, ...] = option(
        "When a series begins: 08:00, or 2026-03-01T08:00 where weekdays matter; can be repeated.",
        "TIME",
        required=True,
    ),
    output: str = option("Write the beliefs here; - prints them.", "FILE", names="-o --output"),
    timezone: str | None = option(
        "Follow the clock of this zone through its changes.  [default: that of the data of the "
        "fit, where TIME has a date]",
        "ZONE",
    ),
) -> None:
    """Turn beliefs about days to series that begin at these times.

    A release does so by itself. A ledger keeps beliefs as they are: create its dataset with
    --begins, or with the file written here, which has one belief for each time. Where clocks of a
    zone change while the series last, give the day too: the file then keeps the changes. Beliefs
    without a time of day stay as they are.
    """
    from quiltwork.beliefs import beliefs_to_json
    from quiltwork.cli.turned_beliefs import turned_beliefs

    check_targets(output)
    turned = turned_beliefs(read_beliefs((file,)), begins, timezone, file)
    document = beliefs_to_json(turned)
    deliver(document, [*map(repr, turned), f"Written to {output}."], (), output)
