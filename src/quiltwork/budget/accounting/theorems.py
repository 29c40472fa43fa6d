"""Every theorem's bound on an account, one function per theorem, and which of them is the total.

Each returns a `Bound`: its value where the theorem applies, else the reason why it does not. Only
bounds for every time point can be the total. Theorem 3.1 is about secrets inside two windows, and
more can leak between them (`docs/theory/composition.md`), so it is shown with its scope and never
lowers the total.

Theorem: docs/theory/composition.md, docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from quiltwork.budget import compose
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up
from quiltwork.influence.belief_bound import BeliefBound
from quiltwork.influence.quilts.quilt_bound import QuiltBound
from quiltwork.influence.sweep import Charge
from quiltwork.results import ResultBase, plain

_MOST_UNITS = 1 << 60

EVERYWHERE = "every time point"


@dataclass(frozen=True)
class Bound:
    """One theorem's bound on the leakage of an account.

    Attributes:
        theorem: its name.
        epsilon: the bound; None where the theorem does not apply.
        scope: the time points for which it holds.
        note: how the number was computed, or why the theorem does not apply.
        won: whether this bound is the account's total.
    """

    theorem: str
    epsilon: float | None
    scope: str
    note: str
    won: bool = False


@dataclass(frozen=True)
class Explanation(ResultBase):
    """The total of an account and all bounds considered; `print` it, or read `bounds`."""

    epsilon: float
    bounds: tuple[Bound, ...]

    @property
    def winner(self) -> Bound:
        """The bound that is the total."""
        return next(bound for bound in self.bounds if bound.won)

    def records(self) -> list[dict[str, Any]]:
        """Return a row per bound."""
        return [plain(bound) for bound in self.bounds]

    def explain(self) -> str:
        """Return a line per bound, the winner marked."""
        return str(self)

    def __str__(self) -> str:
        """Return a line per bound, the winner marked."""
        width = max(len(bound.theorem) for bound in self.bounds)
        lines = [f"total ε = {self.epsilon:.9g}, for every time point"]
        for bound in self.bounds:
            mark = "*" if bound.won else " "
            value = "      –" if bound.epsilon is None else f"{bound.epsilon:7.6g}"
            scope = "" if bound.epsilon is None else f" {bound.scope};"
            lines.append(f"{mark} {bound.theorem:<{width}} {value} {scope} {bound.note}".rstrip())
        return "\n".join(lines)


def explain(account: Account) -> Explanation:
    """Return every bound. Cost: O(distinct windows) calibrations beside the account's total."""
    bounds = [theorem(account) for theorem in _THEOREMS]
    total = float_up(account.total)
    everywhere = [b for b in bounds if b.epsilon is not None and b.scope == EVERYWHERE]
    winner = min(everywhere, key=lambda bound: float(bound.epsilon or 0.0))
    marked = tuple(replace(bound, won=bound is winner) for bound in bounds)
    return Explanation(min(total, float(winner.epsilon or Fraction(0))), marked)


def swept(account: Account) -> Bound:
    """Return the bound of the sweep over all releases; of nearby sets for rows in no order."""
    name = _sweep_name(account)
    if account.by_theorem_3_6:
        return Bound(name, None, EVERYWHERE, "some releases compose by other theorems only")
    worst = account.worst
    if worst.node is None or worst.exact == 0:
        return Bound(name, float_up(worst.exact), EVERYWHERE, "nothing can leak")
    if worst.quilt or name == "Nearby rows":
        note = f"row {worst.node}, its nearby rows {worst.own:.4g}, influence {worst.after:.4g}"
    else:
        parts = f"its neighbours add {worst.after:.4g}"
        if worst.before:
            parts = f"earlier ones add {worst.before:.4g}, later ones {worst.after:.4g}"
        note = f"time point {worst.node}: {worst.own:.4g} spent there, {parts}"
    return Bound(name, float_up(worst.exact), EVERYWHERE, note)


def _sweep_name(account: Account) -> str:
    """Return the name of the bound on all releases; that for rows where beliefs differ."""
    names = {bound.theorem for bound in account.secrets.bounds}
    return names.pop() if len(names) == 1 else QuiltBound.theorem


def _is_gaussian(account: Account) -> bool:
    return not all(bound.by_levels for bound in account.secrets.bounds)


def sequential(account: Account) -> Bound:
    """Theorem 3.7: the sum of each release's cost alone, by quilts; swept costs do not add up."""
    name = "Theorem 3.7 (sum)"
    if (why := _without_quilts(account)) is not None:
        return Bound(name, None, EVERYWHERE, why)
    costs = costs_by_quilts(account)
    note = f"the sum of what each of the {len(costs)} releases costs alone, by quilts"
    positive = [cost for cost in costs if cost]
    return Bound(name, compose.sequential(positive, mqm=True), EVERYWHERE, note)


def same_quilts(account: Account) -> Bound:
    """Theorem 2.6: K times the largest level, as all choose from one set of quilts."""
    name = "Theorem 2.6 (K·max)"
    why = _without_quilts(account)
    if why is not None or not account.count:
        return Bound(name, None, EVERYWHERE, why or "it is about releases with a DP level")
    largest = max(costs_by_quilts(account))
    note = f"{account.count} releases that choose from the same quilts; never below the sum"
    total = compose.same_quilts([largest] * account.count) if largest else 0.0
    return Bound(name, total, EVERYWHERE, note)


def _without_quilts(account: Account) -> str | None:
    """Return why a theorem on quilts does not apply; None if it does."""
    if account.by_theorem_3_6:
        return "it is about releases with a DP level"
    if account.secrets.episode > 1:
        return "it is about single time points"
    return "it is about quilts, and Gaussian beliefs have none" if _is_gaussian(account) else None


def group(account: Account) -> Bound:
    """Group privacy: the charge of all time points together."""
    name = "Group privacy"
    if account.by_theorem_3_6:
        return Bound(name, None, EVERYWHERE, "some releases have no DP level")
    note = "all time points may change together; holds under any belief"
    return Bound(name, float_up(account.usage.total), EVERYWHERE, note)


def general(account: Account) -> Bound:
    """Theorem 3.6: releases with a bound on their divergence, or a release that is alone."""
    alone = account.spendings and account.spendings[-1].composes_by == "nothing"
    name = "A single release" if alone else "Theorem 3.6 (general)"
    if not alone and not any(s.composes_by == "general" for s in account.spendings):
        return Bound(name, None, EVERYWHERE, "no release came with a bound on its divergence")
    note = "its own level; nothing may follow" if alone else "the sweep, then ε + 2E of each"
    return Bound(name, float_up(account.total), EVERYWHERE, note)


def parallel(account: Account) -> Bound:
    """Theorem 3.1: two disjoint stretches of releases, for secrets inside them."""
    name, inside = "Theorem 3.1 (parallel)", "secrets inside two windows"
    stretches, bounds = _stretches(account.spendings), account.secrets.bounds
    if _is_gaussian(account) or any(bound.belief.length is not None for bound in bounds):
        return Bound(name, None, inside, "it is about chains")
    if account.by_theorem_3_6 or len(stretches) != 2:
        count = len(stretches)
        return Bound(name, None, inside, f"it is about two stretches apart; here are {count}")
    beliefs, length = [bound.belief for bound in bounds], bounds[0].length
    window_a, window_b = (_covered(stretch) for stretch in stretches)
    ab, ba = compose.influence_between(beliefs, window_a, window_b, length)
    a, b = (_level_inside(stretch, account) for stretch in stretches)
    if not (a and b):
        return Bound(name, None, inside, "one of the two stretches leaks nothing")
    scope = f"{window_a[0]}..{window_a[1]} and {window_b[0]}..{window_b[1]} only"
    note = f"levels {a:.4g} and {b:.4g}, influences {ab:.4g} and {ba:.4g}"
    return Bound(name, compose.parallel(a, b, ab, ba), scope, note)


_THEOREMS = (swept, general, sequential, same_quilts, group, parallel)


def costs_by_quilts(account: Account) -> list[Fraction]:
    """Return what each release costs alone by quilts, whose levels add up.

    Of equal releases on windows of equal length, the one closest to the middle decides for all.
    """
    secrets = account.secrets
    bounds = [bound.by_quilts() for bound in secrets.bounds]
    central: dict[tuple[object, ...], Spending] = {}
    for spending in account.spendings:
        shape = shape_of(spending)
        central[shape] = min(
            central.get(shape, spending),
            spending,
            key=lambda other: abs(other.start + other.stop - secrets.length),
        )
    costs = {}
    for shape, spending in central.items():
        each = (_cost_by_quilts(bound, spending, secrets.nodes) for bound in bounds)
        costs[shape] = max(cost for cost in each if cost is not None)
    return [costs[shape_of(spending)] for spending in account.spendings]


def _cost_by_quilts(bound: BeliefBound, spending: Spending, nodes: range) -> Fraction | None:
    """Return the cost for the worst node with its best quilt."""
    charges = spending.per_point, spending.per_pair, spending.once
    if not any(charges):
        return Fraction(0)
    unit = math.lcm(*(charge.denominator for charge in charges))
    size = spending.stop - spending.start + 1
    # Integer charges, rounded up and small enough that no sum over the window overflows.
    unit = min(unit, max(1, int(_MOST_UNITS / (max(charges) * 2 * size))))
    point, pair, once = (math.ceil(unit * charge) for charge in charges)
    charge = Charge(spending.start, spending.stop, point, pair, once, spending.runs)
    return bound.cost_alone(charge, unit, nodes)


def shape_of(spending: Spending) -> tuple[object, ...]:
    """Return a key that is equal for releases that differ only in where their windows lie."""
    charges = spending.per_point, spending.per_pair, spending.once
    runs = tuple((a - spending.start, b - spending.start) for a, b in spending.runs)
    return spending.stop - spending.start, runs, charges


def _stretches(spendings: Iterable[Spending]) -> list[list[Spending]]:
    """Group releases whose windows overlap, in order of time."""
    groups: list[list[Spending]] = []
    end = 0
    for spending in sorted(spendings, key=lambda spending: spending.start):
        if spending.start > end:
            groups.append([])
        groups[-1].append(spending)
        end = max(end, spending.stop)
    return groups


def _level_inside(spendings: Sequence[Spending], account: Account) -> float:
    """Return the level of releases for secrets inside the stretch that they cover."""
    first, last = _covered(spendings)
    secrets = replace(account.secrets, first=first, last=last)
    return float_up(Account(secrets).plus(spendings).total)


def _covered(spendings: Sequence[Spending]) -> tuple[int, int]:
    """Return the first and the last time point of the windows of releases."""
    return min(spending.start for spending in spendings), max(
        spending.stop for spending in spendings
    )
