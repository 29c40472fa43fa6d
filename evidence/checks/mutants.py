"""Broken versions of the package, each of which the project's own checks must catch.

Every mutant is a mistake someone could make: half the noise, a wrong sensitivity, a quilt that
leaves out one nearby node, influence that forgets the left side, the best node instead of the
worst. The check is the one that holds promises against enumeration (`audit_enumeration.excess`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

import quiltwork as qw
from evidence.checks.audit_enumeration import excess, random_case
from quiltwork.influence.quilts.families import IntervalFamily
from quiltwork.influence.quilts.quilt_bound import QuiltBound
from quiltwork.queries import Histogram, Query
from quiltwork.queries.query import Sensitivity

NAME = "Mutants"
CLAIM = "every broken version is caught by the check that holds promises against enumeration"

CASES = 200

Secrets = tuple[int, int] | None


@contextmanager
def half_the_noise() -> Iterator[None]:
    honest = qw.calibrate

    def calibrate(*arguments: Any) -> Any:
        found = honest(*arguments)
        return replace(found, scale=found.scale / 2, exact_scale=found.exact_scale / 2)

    with mock.patch.object(qw, "calibrate", calibrate):
        yield


@contextmanager
def wrong_sensitivity() -> Iterator[None]:
    """A changed point moves a histogram by 2, not by 1."""
    with mock.patch.object(Histogram, "sensitivity", Sensitivity(1)):
        yield


@contextmanager
def quilt_off_by_one() -> Iterator[None]:
    """The nearby set loses its first node."""
    honest = IntervalFamily.span

    def span(self: IntervalFamily, node: int, left: Any, right: Any) -> Any:
        start, stop = honest(self, node, left, right)
        return start + 1, stop

    with mock.patch.object(IntervalFamily, "span", span):
        yield


class _Silent:
    """Rows of influence that claim to say nothing."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)

    def take(self, distances: Any) -> Any:
        return np.zeros_like(self.rows.take(distances))

    def most(self, distances: Any) -> Any:
        return np.zeros_like(self.rows.most(distances))


@contextmanager
def left_side_ignored() -> Iterator[None]:
    honest = IntervalFamily.__init__

    def build(self: IntervalFamily, *arguments: Any, **named: Any) -> None:
        honest(self, *arguments, **named)
        object.__setattr__(self, "left_rows", _Silent(self.left_rows))

    with mock.patch.object(IntervalFamily, "__init__", build):
        yield


@contextmanager
def best_node_instead_of_worst() -> Iterator[None]:
    honest = QuiltBound.worst

    def worst(self: QuiltBound, cost: Any, price: Any, nodes: range) -> Any:
        found = [honest(self, cost, price, range(node, node + 1)) for node in nodes]
        return min(found, key=lambda one: one[0].price)

    with mock.patch.object(QuiltBound, "worst", worst):
        yield


MUTANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "half the noise": half_the_noise,
    "wrong sensitivity": wrong_sensitivity,
    "quilt off by one": quilt_off_by_one,
    "left side ignored": left_side_ignored,
    "min instead of max over nodes": best_node_instead_of_worst,
}


def questions(cases: int) -> Iterator[tuple[qw.MarkovChain, int, Query, Secrets]]:
    """Cases with little slack first (coins, copies, a state never left), then random ones."""
    coins = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    copies = qw.MarkovChain([[1, 0], [0, 1]], initial=[0.5, 0.5])
    sticky = qw.MarkovChain([[0.99, 0.01], [0.01, 0.99]])
    rising = qw.MarkovChain([[0.5, 0.5], [0, 1]], initial=[0.9, 0.1])
    count, histogram = qw.queries.count(1), qw.queries.histogram()
    for chain in (coins, copies, sticky, rising):
        for length in (1, 2, 4):
            yield chain, length, count, None
            yield chain, length, count, (length, length)
            yield chain, length, histogram, None
            yield chain, length, count.on(1, 1), None
    for seed in range(cases):
        case = random_case(seed)
        if case.chain.size**case.length <= 1000:
            yield case.chain, case.length, case.releases[0][0], case.secrets


def broken_promises(method: str, cases: int) -> int:
    """How many promises of a method fail against enumeration."""
    found = [
        excess(chain, length, query, 1.0, method, secrets)
        for chain, length, query, secrets in questions(cases)
    ]
    return sum(over is not None and over > 1e-9 for over in found)


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    counts: dict[str, object] = {}
    for done, (name, mutant) in enumerate(MUTANTS.items(), start=1):
        with mutant():
            caught = broken_promises("exact", CASES)
        assert caught > 0, f"the mutant {name!r} survived"
        counts[f"broken promises found with: {name}"] = caught
        progress(done, len(MUTANTS) + 1)
    for method in ("sweep", "exact", "optimal-scale"):
        honest = broken_promises(method, CASES)
        assert honest == 0, (method, honest)
    counts["broken promises found without a mutant"] = 0
    progress(len(MUTANTS) + 1, len(MUTANTS) + 1)
    return counts
