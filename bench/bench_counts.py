"""Remaps against qif, and what consumers lose with the tools they have.

qif is the only other tool with optimal remaps; without it (pip install qif) its rows are left out.
OpenDP and diffprivlib release geometric counts that are read at face value.
"""

from __future__ import annotations

import csv
import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import opendp.prelude as dp
from scipy import stats

from bench.harness import RESULTS, compare
from bench.peers import diffprivlib_mechanisms
from quiltwork.counts import Consumer, ErrorLoss, GeometricMechanism

EPSILON = 0.3
PEOPLE = 1001
DRAWS = 20_000
CONSUMERS = {
    "planner (binomial prior, absolute)": Consumer(stats.binom(PEOPLE, 0.02), "absolute"),
    "ward (Poisson prior, too low costs 4 times)": Consumer(stats.poisson(25), "asymmetric:4:1"),
    "statistician (Poisson prior, squared)": Consumer(stats.poisson(25), "squared"),
}


def qif() -> Any:
    """The library, or None if it is not installed."""
    try:
        return importlib.import_module("qif")
    except ImportError:
        print("qif is not installed: its rows are left out")
        return None


def qif_remap(library: Any, n: int, consumer: Consumer) -> Callable[[], Any]:
    """Everything qif needs for one remap table, from prior and loss on."""
    counts = np.arange(n + 1)
    prior = consumer.probabilities(n)

    def run() -> Any:
        # qif wants answers in rows and counts in columns.
        losses = consumer.loss.table(counts[None, :], counts[:, None])
        channel = library.mechanism.d_privacy.geometric(n + 1, EPSILON)
        return library.measure.l_risk.strategy(losses, prior, channel)

    return run


def bench_tables() -> None:
    library = qif()
    for name, consumer in CONSUMERS.items():
        mechanism = GeometricMechanism(PEOPLE, epsilon=EPSILON)
        contestants: dict[str, Callable[[], Any]] = {
            "quiltwork": partial(mechanism.remap, consumer)
        }
        if library is not None:
            contestants["qif"] = qif_remap(library, PEOPLE, consumer)
            check_agreement(mechanism, consumer, contestants["qif"]())
        compare(f"Remap table, 1,001 people, {name.split(' (')[0]}", contestants, repeats=5)


def check_agreement(mechanism: GeometricMechanism, consumer: Consumer, strategy: Any) -> None:
    """Both tables must cost the same: another implementation, the same optimum."""
    counts = np.arange(mechanism.n + 1)
    weights = consumer.probabilities(mechanism.n)[:, None] * mechanism.matrix()
    costs = weights.T @ consumer.loss.table(counts[:, None], counts[None, :])
    other = costs[counts, np.asarray(strategy).ravel().astype(int)].sum()
    own = mechanism.remap(consumer).expected_loss
    assert abs(own - other) <= 1e-9 * max(1, own), (own, other)


def bench_large() -> None:
    for n in (100_000, 1_000_000):
        mechanism = GeometricMechanism(n, epsilon=EPSILON)
        prior = stats.binom(n, 0.02)
        contestants = {
            loss: partial(mechanism.remap, Consumer(prior, loss))
            for loss in ("absolute", "asymmetric:4:1", "squared", "binary")
        }
        compare(f"Remap table, {n:,} people, by loss", contestants, repeats=3)
    remap = GeometricMechanism(PEOPLE, epsilon=EPSILON).remap(next(iter(CONSUMERS.values())))
    released = np.random.default_rng(0).integers(-50, 1100, 1_000_000)
    compare(
        "Remapping a million released counts",
        {"quiltwork": lambda: remap(released), "numpy clip": lambda: np.clip(released, 0, PEOPLE)},
        repeats=9,
    )


def bench_whole_posteriors() -> None:
    """Losses that take every pair of count and answer, under little and much noise."""
    capped = ErrorLoss(lambda error: min(abs(error), 10), "capped at 10")
    losses = {"power:1/2": "power:1/2", "power:3": "power:3", "capped at 10": capped}
    for n, repeats in ((PEOPLE, 9), (10_000, 3)):
        contestants = {
            f"{name}, alpha = {alpha}": partial(
                GeometricMechanism(n, alpha=alpha).remap, Consumer("uniform", loss)
            )
            for name, loss in losses.items()
            for alpha in (0.5, 0.999)
        }
        compare(f"Remap table, {n:,} people, other losses", contestants, repeats=repeats)


def face_value_tools() -> dict[str, Callable[[int], int]]:
    """Each tool's own release of one count of `PEOPLE` people at ε."""
    mechanism = GeometricMechanism(PEOPLE, epsilon=EPSILON)
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    opendp = dp.m.make_laplace(*space, scale=1 / EPSILON)
    plain = diffprivlib_mechanisms()
    truncated = plain.GeometricTruncated(epsilon=EPSILON, sensitivity=1, lower=0, upper=PEOPLE)
    return {
        "quiltwork, face value": mechanism.release,
        "opendp, face value": opendp,
        "diffprivlib, face value": truncated.randomise,
    }


def bench_losses() -> None:
    """What each consumer loses per released count, measured on simulated truths."""
    rng = np.random.default_rng(7)
    rows = []
    for name, consumer in CONSUMERS.items():
        prior = consumer.probabilities(PEOPLE)
        truths = rng.choice(PEOPLE + 1, size=DRAWS, p=prior)
        remap = GeometricMechanism(PEOPLE, epsilon=EPSILON).remap(consumer)
        for tool, release in face_value_tools().items():
            start = time.perf_counter()
            released = np.array([release(int(count)) for count in truths])
            seconds = (time.perf_counter() - start) / DRAWS
            losses = consumer.loss.table(truths, np.clip(released, 0, PEOPLE))
            rows.append((name, tool, losses.mean(), losses.std() / DRAWS**0.5, seconds))
            if tool.startswith("quiltwork"):
                start = time.perf_counter()
                read = remap(released)
                seconds += (time.perf_counter() - start) / DRAWS
                losses = consumer.loss.table(truths, read)
                error = losses.std() / DRAWS**0.5
                assert abs(losses.mean() - remap.expected_loss) < 6 * error
                rows.append((name, "quiltwork, remapped", losses.mean(), error, seconds))
    publish(rows)


def publish(rows: list[tuple[str, str, float, float, float]]) -> None:
    lines = [
        f"## What consumers lose, {PEOPLE:,} people, ε = {EPSILON}, {DRAWS:,} releases each",
        "",
        "| consumer | tool | mean loss | ± standard error | time per count |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| {consumer} | {tool} | {loss:.3f} | {error:.3f} | {1e6 * seconds:.1f} µs |"
        for consumer, tool, loss, error, seconds in rows
    ]
    print("\n".join(lines))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "what-consumers-lose.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (RESULTS / "what-consumers-lose.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["consumer", "tool", "mean_loss", "standard_error", "seconds_per_count"])
        writer.writerows(rows)


def main() -> None:
    dp.enable_features("contrib")
    bench_losses()
    bench_tables()
    bench_large()
    bench_whole_posteriors()


if __name__ == "__main__":
    main()
