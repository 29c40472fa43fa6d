"""Slow references for anonymization: one group at a time, straight from the definitions."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

Row = Sequence[Any]


def withstands(pairs: Iterable[tuple[Any, Any]], k: int, l: int, m: int) -> bool:  # noqa: E741
    """Try every coalition on a group of (provider, sensitive value)."""
    pairs = list(pairs)
    providers = sorted({provider for provider, _ in pairs})
    size = min(m, len(providers) - 1)
    for members in combinations(providers, size):
        left = [value for provider, value in pairs if provider not in members]
        if len(left) < k or len(set(left)) < l:
            return False
    return True


def groups_withstand(
    groups: Sequence[Any],
    providers: Sequence[Any],
    values: Sequence[Any],
    k: int,
    l: int,  # noqa: E741
    m: int,
) -> bool:
    """Try every coalition on every group of a table."""
    by_group: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
    for group, provider, value in zip(groups, providers, values, strict=True):
        by_group[group].append((provider, value))
    return all(withstands(pairs, k, l, m) for pairs in by_group.values())


def mondrian(
    codes: Sequence[Sequence[int]],
    places: Sequence[Sequence[float]],
    private: Callable[[list[int]], bool],
) -> set[frozenset[int]]:
    """Cut along the widest range in the middle; the next widest if a side is not private.

    `codes` is quasi-identifier × row. Widths are compared exactly as the floats that they are.
    """

    def width(axis: int, rows: list[int]) -> float:
        here = [codes[axis][row] for row in rows]
        return places[axis][max(here)] - places[axis][min(here)]

    def cut(rows: list[int]) -> set[frozenset[int]]:
        widths = [width(axis, rows) for axis in range(len(codes))]
        for axis in sorted(range(len(codes)), key=lambda a: -widths[a]):
            if widths[axis] <= 0:
                break
            left, right = halves(codes[axis], rows)
            if private(left) and private(right):
                return cut(left) | cut(right)
        return {frozenset(rows)}

    return cut(list(range(len(codes[0]))))


def halves(column: Sequence[int], rows: list[int]) -> tuple[list[int], list[int]]:
    """Cut between two codes so that the sides are most equal; the left larger if there is a tie."""
    counts = Counter(column[row] for row in rows)
    best: tuple[Fraction, int, int] | None = None
    below = 0
    for code in sorted(counts)[:-1]:
        below += counts[code]
        rank = (abs(Fraction(len(rows), 2) - below), -below, code)
        best = rank if best is None else min(best, rank)
    assert best is not None
    code = best[2]
    return [r for r in rows if column[r] <= code], [r for r in rows if column[r] > code]


def best_cut(
    codes: Sequence[Sequence[int]],
    places: Sequence[Sequence[float]],
    axis: int,
    rows: list[int],
    allowed: Callable[[list[int]], bool],
    density: float = 0.0,
) -> float:
    """The least loss of both sides over every cut along one quasi-identifier.

    A side loses its rows × (the roots of its widths − density × the logarithm of its rows).
    """

    def loss(side: list[int]) -> float:
        roots = sum(
            (place[max(column[r] for r in side)] - place[min(column[r] for r in side)]) ** 0.5
            for column, place in zip(codes, places, strict=True)
        )
        return len(side) * (roots - density * math.log(len(side)))

    best = float("inf")
    for code in sorted({codes[axis][r] for r in rows})[:-1]:
        left = [r for r in rows if codes[axis][r] <= code]
        right = [r for r in rows if codes[axis][r] > code]
        if allowed(left) and allowed(right):
            best = min(best, loss(left) + loss(right))
    return best
