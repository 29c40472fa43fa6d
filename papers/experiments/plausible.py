"""Beliefs that fit real data: the noise each needs, and its leakage if another one is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from papers.experiments.time_series import POWER_EDGES
from papers.registry import Progress, experiment, shared_file, tracked
from papers.result import Findings, Row, Sheet, Value
from quiltwork.errors import UnsupportedError

if TYPE_CHECKING:
    from quiltwork.beliefs import CyclicChain

HEADER = (
    "series",
    "belief",
    "held out, nats per step",
    "noise at ε = 1",
    "leakage under the likeliest, at most",
)


@experiment("plausible-beliefs", title="Noise and leakage of beliefs with days, memory and ages")
def plausible_beliefs(progress: Progress) -> Findings:
    """Four beliefs fitted on public series: held-out likelihood, noise, and misspecification.

    The noise is that of a histogram of a series of the released length. The last column bounds the
    leakage of this noise if the likeliest belief is true, by the sweep.
    """
    from quiltwork import audit, calibrate, queries
    from quiltwork.beliefs import candidates

    table: list[tuple[Value, ...]] = []
    rows = []
    for name, (data, length, period) in tracked(progress, _cases().items()):
        fitted = candidates(data, period=period)
        likeliest = fitted[0]
        for candidate in fitted:
            calibration = calibrate(candidate.belief, length, 1.0, query=queries.histogram())
            leakage = audit.misspecification(calibration, likeliest.belief).bound
            table.append(
                (
                    name,
                    candidate.name,
                    round(candidate.per_step, 4),
                    round(calibration.scale, 2),
                    round(leakage, 3),
                )
            )
            if candidate.name == "order 1":
                unit = f"under {likeliest.name}"
                rows.append(Row(f"{name}: ε = 1 under order 1 leaks", round(leakage, 3), unit=unit))
    return Findings(
        "Each noise scale keeps ε = 1 under its own belief. An adversary may know the likeliest "
        "belief, under which more is leaked. A guarantee under the list of all plausible beliefs "
        "takes the largest of these scales.",
        tuple(rows),
        (),
        (Sheet("beliefs", HEADER, tuple(table)),),
    )


def _cases() -> dict[str, tuple[Any, int, int]]:
    """Return name → sequences to fit a belief on, the released length, the period."""
    from quiltwork.series import read_series

    cases: dict[str, tuple[Any, int, int]] = {
        "simulated days, half hours": (simulated_days().sample(48 * 120, seed=1), 48 * 30, 48)
    }
    try:
        activity = read_series(
            shared_file("data/activity_nhanes.csv.gz"),
            "state4",
            time="minute_of_record",
            subject="seqn",
            states=(0, 1, 2, 3),
        )
        people = list(activity.data.values())
        cases["activity, minutes, 4 states"] = people[1:], len(people[0]), 1440
        power = read_series(
            shared_file("data/power_household_10min.csv.gz"),
            "active_power_kw",
            edges=list(POWER_EDGES["4 levels"]),
            missing="state",
        )
        (readings,) = power.data.values()
        half = len(readings) // 2
        cases["power, ten minutes, 4 levels"] = readings[:half], len(readings) - half, 144
    except UnsupportedError:
        pass  # without the data, only simulated days are computed
    return cases


def simulated_days() -> CyclicChain:
    """Return a chain of days: asleep at night, out in the morning, in and out in the evening."""
    from quiltwork.beliefs import CyclicChain

    night, morning = [[0.98, 0.02], [0.5, 0.5]], [[0.7, 0.3], [0.1, 0.9]]
    evening = [[0.85, 0.15], [0.3, 0.7]]
    return CyclicChain([night] * 14 + [morning] * 18 + [evening] * 16, states=["in", "out"])
