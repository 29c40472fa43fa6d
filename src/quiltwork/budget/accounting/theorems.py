"""Every bound on an account, one function per theorem, and the one that won.

Each returns a `Bound`: its value where the theorem applies, else the reason why it does not. Only
bounds for every time point can be the total. Theorem 3.1 speaks of secrets inside two windows;
between the windows more can leak (`docs/theory/composition.md`), so it is shown
with its scope and never lowers the total.

Theorem: docs/theory/composition.md, docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from quiltwork.budget import compose
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.worst_point import Secrets
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
    """What one theorem says about an account.

    `epsilon` is None where the theorem does not apply; `note` then says why, and otherwise how the
    number came about. `won` marks the bound that is the account's total.
    """

    theorem: str
    epsilon: float | None
    scope: str
    note: str
    won: bool = False


@dataclass(frozen=True)
class Explanation(ResultBase):
    """The total of an account and all that was considered; `print` it, or read `bounds`."""

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
        """Show a line per bound, the winner marked."""
        return str(self)

    def __str__(self) -> str:
        """Show a line per bound, the winner marked."""
        width = max(len(bound.theorem) for bound in self.bounds)
        lines = [f"total ε = {self.epsilon:.9g}, for every time point"]
        for bound in self.bounds:
            mark = "*" if bound.won else " "
            value = "      –" if bound.epsilon is None else f"{bound.epsilon:7.6g}"
            scope = "" if bound.epsilon is None else f" {bound.scope};"
            lines.append(f"{mark} {bound.theorem:<{width}} {value} {scope} {bound.note}".rstrip())
        return "\n".join(lines)


def explain(account: Account) -> Explanation:
    """Compute every bound. O(distinct windows) calibrations beside the account's own total."""
    bounds = [theorem(account) for theorem in _THEOREMS]
    total = float_up(account.total)
    everywhere = [b for b in bounds if b.epsilon is not None and b.scope == EVERYWHERE]
    winner = min(everywhere, key=lambda bound: float(bound.epsilon or 0.0))
    marked = tuple(replace(bound, won=bound is winner) for bound in bounds)
    return Explanation(min(total, float(winner.epsilon or Fraction(0))), marked)


def swept(account: Account) -> Bound:
    """The sweep over all releases; for rows in no order, their nearby sets."""
    name = _name(account)
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


def _name(account: Account) -> str:
    """What the bound on all releases is called; that of rows where beliefs differ in theirs."""
    names = {one.theorem for one in account.secrets.bounds}
    return names.pop() if len(names) == 1 else QuiltBound.theorem


def _numbers(account: Account) -> bool:
    return not all(one.by_levels for one in account.secrets.bounds)


def sequential(account: Account) -> Bound:
    """Theorem 3.7: the sum of what each release costs alone, by quilts: swept costs do not add."""
    name = "Theorem 3.7 (sum)"
    if (why := _without_quilts(account)) is not None:
        return Bound(name, None, EVERYWHERE, why)
    alone = quilt_singles(account)
    note = f"the sum of what each of the {len(alone)} releases costs alone, by quilts"
    told = [one for one in alone if one]
    return Bound(name, compose.sequential(told, mqm=True), EVERYWHERE, note)


def same_quilts(account: Account) -> Bound:
    """Theorem 2.6: K times the largest level, as all choose from one set of quilts."""
    name = "Theorem 2.6 (K·max)"
    why = _without_quilts(account)
    if why is not None or not account.count:
        return Bound(name, None, EVERYWHERE, why or "it is about releases with a DP level")
    most = max(quilt_singles(account))
    note = f"{account.count} releases that choose from the same quilts; never below the sum"
    total = compose.same_quilts([most] * account.count) if most else 0.0
    return Bound(name, total, EVERYWHERE, note)


def _without_quilts(account: Account) -> str | None:
    """Why a theorem on quilts does not apply; None if it does."""
    if account.by_theorem_3_6:
        return "it is about releases with a DP level"
    if account.secrets.episode > 1:
        return "it is about single time points"
    return "it is about quilts, and Gaussian beliefs have none" if _numbers(account) else None


def group(account: Account) -> Bound:
    """Group privacy: everything is nearby."""
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
    """Theorem 3.1: two stretches apart, for secrets inside them."""
    name, nowhere = "Theorem 3.1 (parallel)", "secrets inside two windows"
    stretches, bounds = apart(account.spendings), account.secrets.bounds
    if _numbers(account) or any(one.belief.length is not None for one in bounds):
        return Bound(name, None, nowhere, "it is about chains")
    if account.by_theorem_3_6 or len(stretches) != 2:
        count = len(stretches)
        return Bound(name, None, nowhere, f"it is about two stretches apart; here are {count}")
    beliefs, length = [one.belief for one in bounds], bounds[0].length
    window_a, window_b = (covered(part) for part in stretches)
    ab, ba = compose.influence_between(beliefs, window_a, window_b, length)
    a, b = (level_inside(part, account) for part in stretches)
    if not (a and b):
        return Bound(name, None, nowhere, "one of the two stretches leaks nothing")
    scope = f"{window_a[0]}..{window_a[1]} and {window_b[0]}..{window_b[1]} only"
    note = f"levels {a:.4g} and {b:.4g}, influences {ab:.4g} and {ba:.4g}"
    return Bound(name, compose.parallel(a, b, ab, ba), scope, note)


_THEOREMS = (swept, general, sequential, same_quilts, group, parallel)


def quilt_singles(account: Account) -> list[Fraction]:
    """What each release costs alone by quilts, whose levels add up."""
    secrets = account.secrets
    bounds = [one.by_quilts() for one in secrets.bounds]

    def cost(spending: Spending) -> Fraction:
        costs = (_by_quilts(bound, spending, secrets.nodes) for bound in bounds)
        return max(one for one in costs if one is not None)

    return _each(account.spendings, secrets, cost)


def _by_quilts(bound: BeliefBound, spending: Spending, nodes: range) -> Fraction | None:
    """What the worst node pays with its best quilt; charges as integers that cannot overflow."""
    charges = spending.per_point, spending.per_pair, spending.once
    unit = math.lcm(*(charge.denominator for charge in charges))
    size = spending.stop - spending.start + 1
    if not any(charges):
        return Fraction(0)
    unit = min(unit, max(1, int(_MOST_UNITS / (max(charges) * 2 * size))))
    point, pair, once = (math.ceil(unit * one) for one in charges)
    charge = Charge(spending.start, spending.stop, point, pair, once, spending.runs)
    return bound.cost_alone(charge, unit, nodes)


def _each(
    spendings: Sequence[Spending], secrets: Secrets, cost: Callable[[Spending], Fraction]
) -> list[Fraction]:
    central: dict[tuple[object, ...], Spending] = {}
    for one in spendings:
        known = central.setdefault(shape_of(one), one)
        central[shape_of(one)] = min(
            known, one, key=lambda s: abs(s.start + s.stop - secrets.length)
        )
    costs = {shape: cost(one) for shape, one in central.items()}
    return [costs[shape_of(one)] for one in spendings]


def shape_of(spending: Spending) -> tuple[object, ...]:
    """What releases have in common that differ in where their windows lie."""
    charges = spending.per_point, spending.per_pair, spending.once
    runs = tuple((a - spending.start, b - spending.start) for a, b in spending.runs)
    return spending.stop - spending.start, runs, charges


def apart(spendings: Iterable[Spending]) -> list[list[Spending]]:
    """Group releases whose windows meet, in order of time."""
    groups: list[list[Spending]] = []
    end = 0
    for spending in sorted(spendings, key=lambda one: one.start):
        if spending.start > end:
            groups.append([])
        groups[-1].append(spending)
        end = max(end, spending.stop)
    return groups


def level_inside(spendings: Sequence[Spending], account: Account) -> float:
    """The level of some releases for secrets inside the stretch they cover."""
    first, last = covered(spendings)
    return float_up(Account(replace(account.secrets, first=first, last=last)).plus(spendings).total)


def covered(spendings: Sequence[Spending]) -> tuple[int, int]:
    """The first and the last time point of the windows of some releases."""
    return min(one.start for one in spendings), max(one.stop for one in spendings)
