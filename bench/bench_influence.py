"""Calibration: noise and time beside the paper's loops and other published bounds.

The loops (evidence/paper_loops.py) visit every node and every quilt, so the races are on series
that they can finish. Noise is compared on the same chains in the same run: the sweep, quilts, the
peers of peers_sweep.py, and a floor below which some mechanism of these levels tells more than ε.
The tables without a peer show that nothing grows with the length, and what many states and slow
mixing cost.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable

import numpy as np

from bench import peers_sweep as peers
from bench.harness import RESULTS, compare
from evidence.paper_loops import mqm_exact
from papers.experiments.time_series import noise_floor
from quiltwork.beliefs import MarkovChain
from quiltwork.influence import calibrate, dp_for_bayesian_dp

EXAMPLE = np.array([[0.9, 0.1], [0.4, 0.6]])
LENGTH = 100


def sticky(size: int, stay: float) -> np.ndarray:
    """A walk between levels that stays where it is with probability `stay`."""
    levels = np.arange(size)
    moves = np.exp(-np.abs(levels[:, None] - levels) / 3.0) + 1e-3
    moves /= moves.sum(axis=1, keepdims=True)
    return (1 - stay) * moves + stay * np.eye(size)


CHAINS = {
    ".9 .1 / .4 .6": EXAMPLE,
    ".8 .2 / .3 .7": np.array([[0.8, 0.2], [0.3, 0.7]]),
    ".6 .4 / .4 .6": np.array([[0.6, 0.4], [0.4, 0.6]]),
    "3 states, with zeros": np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]),
    "4 levels, sticky": sticky(4, 0.5),
    "10 levels": sticky(10, 0.0),
}


def fresh(matrix: np.ndarray, initial: object, length: int, method: str) -> Callable[[], float]:
    """A calibration of a new chain each time, so that nothing computed before is used again."""
    return lambda: calibrate(MarkovChain(matrix, initial), length, 1, method).scale


def race(title: str, chain: MarkovChain, length: int, repeats: int) -> None:
    ours = fresh(chain.transition, chain.initial, length, "exact")

    def loops() -> float:
        return mqm_exact(chain, length, 1.0)[0]

    assert abs(ours() / loops() - 1) < 1e-9, "both must find the same scale"
    compare(title, {"quiltwork": ours, "the paper's loops": loops}, repeats=repeats)


def scale_at(leak: Callable[[float], float], epsilon: float) -> float:
    """The scale at which a level of 1/scale on every point leaks ε."""
    low, high = 1 / epsilon, LENGTH / epsilon
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if leak(1 / middle) > epsilon else (low, middle)
    return high


def noise_beside_peers() -> None:
    """Noise for one count of a stationary series, by every bound that applies."""
    header = ("floor", "sweep", "Cao et al.", "MQMExact", "MQMApprox", "Ghosh, Kleinberg", "group")
    known = ("sweep, any rows known", "Lange et al.")
    rows = []
    for name, matrix in CHAINS.items():
        chain = MarkovChain(matrix)
        backward = (chain.stationary[:, None] * matrix / chain.stationary).T
        for epsilon in (1.0, 10.0):
            scales = {
                method: calibrate(chain, LENGTH, epsilon, method).scale
                for method in ("sweep", "exact", "approx", "group")
            }
            temporal = scale_at(
                lambda level, m=matrix, b=backward: peers.temporal_privacy_leakage(
                    m, b, [level] * LENGTH
                ).max(),
                epsilon,
            )
            inferential = peers.inferential_factor(matrix, LENGTH) / epsilon
            least = noise_floor(chain, LENGTH, 1, epsilon)
            assert least <= min(scales["sweep"], temporal) * (1 + 1e-6)
            level = peers.level_for_markov_chain_bound(matrix, epsilon)
            rows.append(
                (
                    name,
                    epsilon,
                    least,
                    scales["sweep"],
                    temporal,
                    scales["exact"],
                    scales["approx"],
                    inferential,
                    scales["group"],
                    1 / dp_for_bayesian_dp(chain, epsilon, length=LENGTH),
                    1 / level if level else math.inf,
                )
            )
    publish(("chain", "ε", *header, *known), rows)


def publish(header: tuple[str, ...], rows: list[tuple]) -> None:
    lines = [
        f"## Noise for one count, {LENGTH} points, stationary start",
        "",
        "Scales of Laplace noise. Below the floor some mechanism of the same level per point tells "
        "more than ε. Cao et al. bound one mechanism per point; that their recursion covers counts "
        "of all points is the sweep's theorem. — where a bound gives nothing. The last two hold "
        "against adversaries who know other rows.",
        "",
        f"| {' | '.join(header)} |",
        f"|---|{'---:|' * (len(header) - 1)}",
    ]
    lines += [f"| {row[0]} | {' | '.join(map(_shown, row[1:]))} |" for row in rows]
    print("\n".join(lines))
    stem = RESULTS / "noise-for-one-count-beside-peers"
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([header, *rows])


def _shown(value: float) -> str:
    return "—" if math.isinf(value) else f"{value:.4g}"


def main() -> None:
    noise_beside_peers()
    walk = sticky(51, 0.0)
    start = np.eye(51)[0]
    race("Calibration, 2 states, T = 100, known start", MarkovChain(EXAMPLE, [1, 0]), 100, 5)
    race("Calibration, 8 states, T = 60, stationary", MarkovChain(sticky(8, 0.0)), 60, 3)
    for size, repeats in ((2, 9), (4, 9), (10, 5), (51, 3)):
        matrix = sticky(size, 0.0)
        compare(
            f"Sweep and exact quilts, {size} states",
            {
                "sweep": fresh(matrix, "stationary", 10**6, "sweep"),
                "exact quilts": fresh(matrix, "stationary", 10**6, "exact"),
            },
            repeats=repeats,
        )
    compare(
        "Calibration and length, 2 states, known start",
        {f"T = 10^{n}": fresh(EXAMPLE, [1, 0], 10**n, "exact") for n in (4, 6, 8)},
    )
    compare(
        "Calibration of 51 states, T = 10^6, exact",
        {
            "stationary start": fresh(walk, "stationary", 10**6, "exact"),
            "known start": fresh(walk, start, 10**6, "exact"),
            "any start": fresh(walk, "any", 10**6, "exact"),
            "stationary, slow": fresh(sticky(51, 0.9), "stationary", 10**6, "exact"),
            "known start, slow": fresh(sticky(51, 0.9), start, 10**6, "exact"),
        },
        repeats=3,
    )
    compare(
        "Calibration of 500 states, T = 10^6, approx",
        {
            "spread out": fresh(
                np.random.default_rng(1).dirichlet(np.ones(500), 500), "any", 10**6, "approx"
            ),
            "a walk": fresh(sticky(500, 0.5), "stationary", 10**6, "approx"),
        },
        repeats=3,
    )
    slow = np.array([[0.9995, 0.0005], [0.0005, 0.9995]])
    compare(
        "Calibration of a slow chain (gap 0.001), T = 10^8",
        {
            "stationary start": fresh(slow, "stationary", 10**8, "exact"),
            "known start": fresh(slow, [1, 0], 10**8, "exact"),
        },
        repeats=3,
    )


if __name__ == "__main__":
    main()
