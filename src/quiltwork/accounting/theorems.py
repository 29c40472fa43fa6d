"""The bounds that may apply to an account, one function per theorem.

Each returns a `Bound`: its value where the theorem applies, else the reason why it does not.

Theorem: composition, joint-quilt-accountant
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from quiltwork import queries
from quiltwork.accounting import compose
from quiltwork.accounting.account import Account
from quiltwork.accounting.joint import NEGLIGIBLE, Quilts
from quiltwork.accounting.spending import Spending
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_up
from quiltwork.influence.adaptive import Outlook

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


def mark(bound: Bound, won: bool) -> Bound:
    """Return the bound with its mark."""
    return replace(bound, won=won)


def joint_quilt(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """The joint quilt of all releases, with what Theorem 3.6 adds."""
    name = "Joint quilt"
    if account.by_theorem_3_6:
        return Bound(name, None, EVERYWHERE, "some releases compose by other theorems only")
    worst = account.joint.worst()
    if worst.node is None:
        return Bound(name, float_up(worst.exact), EVERYWHERE, "nothing can leak")
    quilt = ", ".join(map(str, worst.quilt)) or "none"
    settled = worst.missing <= NEGLIGIBLE * worst.exact
    how = (
        "exact minimum over quilts"
        if settled
        else (
            f"a bound: quilts up to {account.joint.quilts.reach} time points away were tried, and "
            f"farther ones could lower it by {worst.missing:.3g} at most"
        )
    )
    note = f"time point {worst.node}, quilt {{{quilt}}}, influence {worst.influence:.4g}; {how}"
    return Bound(name, float_up(worst.exact), EVERYWHERE, note)


def carried(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """The total before the series grew, plus the group cost of what came after."""
    name = "Before growing"
    if account.carried is None or account.by_theorem_3_6:
        return Bound(name, None, EVERYWHERE, "the series has not grown")
    return Bound(
        name,
        float_up(account.carried),
        EVERYWHERE,
        "the total when the series last grew, plus the group cost of the releases since",
    )


def sequential(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """Theorem 3.7: the sum of what each release costs alone."""
    name = "Theorem 3.7 (sum)"
    if account.by_theorem_3_6:
        return Bound(name, None, EVERYWHERE, "it is about releases with a DP level")
    alone = singles(account.spendings, outlooks)
    note = f"the sum of what each of the {len(alone)} releases costs alone"
    return Bound(name, float_up(sum(alone, Fraction(0))), EVERYWHERE, note)


def same_quilts(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """Theorem 2.6: K times the largest, if all releases have the same quilts."""
    name = "Theorem 2.6 (K·max)"
    spendings = account.spendings
    if account.by_theorem_3_6 or not spendings:
        return Bound(name, None, EVERYWHERE, "it is about releases with a DP level")
    if len({quilt_sets(spending) for spending in spendings}) > 1:
        return Bound(name, None, EVERYWHERE, "the releases have different quilt sets")
    most = max(singles(spendings, outlooks))
    note = f"{len(spendings)} releases with the same quilts"
    return Bound(name, float_up(len(spendings) * most), EVERYWHERE, note)


def quilt_sets(spending: Spending) -> tuple[object, ...]:
    """What the active quilts of a release depend on: its record, or its window and charges."""
    charges = spending.per_point, spending.per_pair, spending.once
    return (spending.start, spending.stop, spending.quilts or charges)


def group(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """Group privacy: everything is nearby."""
    name = "Group privacy"
    if account.by_theorem_3_6:
        return Bound(name, None, EVERYWHERE, "some releases have no DP level")
    note = "all time points may change together; holds under any belief"
    return Bound(name, float_up(account.joint.usage.total), EVERYWHERE, note)


def general(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """Theorem 3.6: releases with a bound on their divergence, or a release that is alone."""
    alone = account.spendings and account.spendings[-1].composes_by == "nothing"
    name = "A single release" if alone else "Theorem 3.6 (general)"
    if not alone and not any(s.composes_by == "general" for s in account.spendings):
        return Bound(name, None, EVERYWHERE, "no release came with a bound on its divergence")
    note = "its own level; nothing may follow" if alone else "joint quilts, then ε + 2E of each"
    return Bound(name, float_up(account.total), EVERYWHERE, note)


def parallel(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """Theorem 3.1: two stretches apart, for secrets inside them."""
    name, nowhere = "Theorem 3.1 (parallel)", "secrets inside two windows"
    stretches = apart(account.spendings)
    if any(one.belief.length is not None for one in outlooks):
        return Bound(name, None, nowhere, "it is about chains")
    if account.by_theorem_3_6 or len(stretches) != 2:
        count = len(stretches)
        return Bound(name, None, nowhere, f"it is about two stretches apart; here are {count}")
    beliefs, length = [one.belief for one in outlooks], outlooks[0].length
    window_a, window_b = (covered(part) for part in stretches)
    ab, ba = compose.influence_between(beliefs, window_a, window_b, length)
    a, b = (level_inside(part, outlooks) for part in stretches)
    if not (a and b):
        return Bound(name, None, nowhere, "one of the two stretches leaks nothing")
    scope = f"{window_a[0]}..{window_a[1]} and {window_b[0]}..{window_b[1]} only"
    note = f"levels {a:.4g} and {b:.4g}, influences {ab:.4g} and {ba:.4g}"
    return Bound(name, compose.parallel(a, b, ab, ba), scope, note)


def far_apart(account: Account, outlooks: tuple[Outlook, ...]) -> Bound:
    """Theorem 3.3: two MQMApprox releases far apart, for secrets inside their windows."""
    name, nowhere = "Theorem 3.3 (parallel)", "secrets inside two windows"
    spendings = sorted(account.spendings, key=lambda spending: spending.start)
    if len(spendings) != 2 or not all(by_mqm_approx(spending) for spending in spendings):
        return Bound(name, None, nowhere, "it is about two MQMApprox releases (method='spectral')")
    first, second = spendings
    if first.stop >= second.start:
        return Bound(name, None, nowhere, "the two windows are not apart")
    if first.once or second.once:
        return Bound(name, None, nowhere, "it is not checked for answers that pay for rounding")
    windows = covered([first]), covered([second])
    levels = first.epsilon or Fraction(0), second.epsilon or Fraction(0)
    try:
        checked = compose.far_parallel(
            [one.belief for one in outlooks],
            windows[0],
            levels[0],
            windows[1],
            levels[1],
            query_a=queries.transitions() if first.per_pair else None,
            query_b=queries.transitions() if second.per_pair else None,
        )
    except UnsupportedError as error:
        return Bound(name, None, nowhere, str(error))
    scope = f"{first.start}..{first.stop} and {second.start}..{second.stop} only"
    return Bound(name, checked.epsilon, scope, checked.reason)


def by_mqm_approx(spending: Spending) -> bool:
    """Whether a release was calibrated by Lemma 2.3."""
    return spending.epsilon is not None and (spending.quilts or "").startswith("spectral ")


ALL = (joint_quilt, carried, general, sequential, same_quilts, group, parallel, far_apart)


def singles(spendings: Sequence[Spending], outlooks: tuple[Outlook, ...]) -> list[Fraction]:
    """What each release costs alone; computed once for windows that differ by a shift."""
    quilts = Quilts(outlooks, 1, outlooks[0].length)
    known: dict[tuple[object, ...], Fraction] = {}
    costs = []
    for spending in spendings:
        shape = _shape(spending, quilts)
        if shape not in known:
            known[shape] = Account.empty(quilts).plus([spending]).total
        costs.append(known[shape])
    return costs


def _shape(spending: Spending, quilts: Quilts) -> tuple[object, ...]:
    """Equal for releases whose windows lie equally far from where nodes begin to differ."""
    margin = quilts.reach + quilts.first_alike
    return (
        spending.stop - spending.start,
        min(spending.start, margin),
        min(quilts.length - spending.stop, margin),
        (spending.per_point, spending.per_pair, spending.once),
    )


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


def level_inside(spendings: Sequence[Spending], outlooks: tuple[Outlook, ...]) -> float:
    """The level of some releases for secrets inside the stretch they cover."""
    inside = Account.empty(Quilts(outlooks, *covered(spendings))).plus(spendings)
    return float_up(inside.total)


def covered(spendings: Sequence[Spending]) -> tuple[int, int]:
    """The first and the last time point of the windows of some releases."""
    return min(one.start for one in spendings), max(one.stop for one in spendings)
