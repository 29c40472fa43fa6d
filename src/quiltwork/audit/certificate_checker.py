"""A checker of certificates: does this much noise keep what it promises, in exact fractions?

A certificate names a chain, what a release charges its time points, the scale of its noise and ε,
and holds bounds with a spanning tree for each: the hypotheses of the theorems in
`proofs/Statements.v` (`program_statement`, `endless_statement`, `sweep_statement`,
`shown_statement`). This file checks these hypotheses and nothing else. It
imports nothing of the package, uses no floats, and can be read and run alone:
`python certificate_checker.py FILE`. Format: docs/reference/files.md.

Levels are factors here, e^s for a level s. Numbers are rounded to 96 binary digits, always in the
direction that makes the check harder to pass. Cost: O(k³) fractions for each side and stage.

Theorem: docs/theory/certificates.md
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from functools import cache
from typing import Any

ZERO, ONE = Fraction(0), Fraction(1)
BITS = 96
MOST_STATES, MOST_STEPS, MOST_LENGTH = 256, 64, 10**9
LARGEST_LEVEL = 10**4


class RefusedError(Exception):
    """Raised if the certificate does not prove that the noise suffices; names the step."""


def up(x: Fraction) -> Fraction:
    """Return x rounded up to 96 binary digits."""
    shift = BITS - x.numerator.bit_length() + x.denominator.bit_length()
    if shift >= 0:
        return Fraction(-((-x.numerator << shift) // x.denominator), 1 << shift)
    return Fraction(-(-x.numerator // (x.denominator << -shift)) << -shift)


def down(x: Fraction) -> Fraction:
    """Return x ≥ 0 rounded down to 96 binary digits."""
    return ONE / up(ONE / x) if x else ZERO


@cache
def exp_up(x: Fraction) -> Fraction:
    """Return an upper bound on e^x, x ≥ 0: the series of x/2^n < 1, squared n times."""
    halvings = max(x.numerator // x.denominator, 0).bit_length() + 4
    y = x / (1 << halvings)  # at most 1/16: the rest of the series is below twice its first term
    term = total = ONE
    for n in range(1, 24):
        term = up(term * y / n) if y else ZERO
        total += term
    total = up(total + 2 * term)
    for _ in range(halvings):
        total = up(total * total)
    return total


def exp_down(x: Fraction) -> Fraction:
    """Return a lower bound on e^x, x ≥ 0: partial sums of the same series."""
    halvings = max(x.numerator // x.denominator, 0).bit_length() + 4
    y, total = x / (1 << halvings), ONE
    for n in range(24, 0, -1):
        total = down(1 + y * total / n)
    for _ in range(halvings):
        total = down(total * total)
    return total


def require(truth: bool, sentence: str) -> None:
    """Raise RefusedError unless the condition holds."""
    if not truth:
        raise RefusedError(sentence)


def as_fraction(text: Any) -> Fraction:
    """Return the fraction ≥ 0 of a text such as "3/4" or "0"."""
    require(isinstance(text, str) and len(text) < 10**5, "A number is not written as a string.")
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise RefusedError("A number is not a fraction.") from None
    require(value >= 0, "A number is negative.")
    return value


def as_integer(value: Any, least: int, most: int) -> int:
    """Return an integer after checking its range."""
    require(isinstance(value, int) and not isinstance(value, bool), "An integer is missing.")
    require(least <= value <= most, "An integer is out of range.")
    return int(value)


Matrix = list[list[Fraction]]
Bounds = list[list[Fraction | None]]  # None: no bound is claimed


def stationary(rows: Matrix) -> list[Fraction]:
    """Return the exact stationary law of an irreducible matrix, by GTH elimination."""
    work = [list(row) for row in rows]
    for n in range(len(rows) - 1, 0, -1):
        out = sum(work[n][:n], ZERO)
        for i in range(n):
            share = work[i][n] / out
            for j in range(n if share else 0):
                work[i][j] += share * work[n][j]
        for i in range(n):
            work[i][n] = work[i][n] / out
    law = [ONE]
    for n in range(1, len(rows)):
        law.append(sum((law[i] * work[i][n] for i in range(n)), ZERO))
    total = sum(law)
    law = [value / total for value in law]
    require(product([law], rows, Fraction) == [law], "The law of the states is not stationary.")
    return law


def recurrent(rows: Matrix) -> list[int]:
    """Return the states that every state can reach: the only closed class, if there is one."""
    size = len(rows)
    reach = [{y for y in range(size) if rows[x][y] or x == y} for x in range(size)]
    for y in range(size):
        for x in range(size):
            reach[x] |= reach[y] if y in reach[x] else set()
    return sorted(set.intersection(*reach))


class Chain:
    """The Markov chain of a certificate, with laws and matrix powers rounded outward."""

    def __init__(self, document: dict[str, Any]) -> None:
        read = document["transition"]
        require(
            isinstance(read, list) and 1 <= len(read) <= MOST_STATES, "transition is no matrix."
        )
        rows = [[as_fraction(entry) for entry in row] for row in read]
        require(
            all(len(row) == len(rows) and sum(row) for row in rows), "transition is not square."
        )
        rows = [[entry / sum(row) for entry in row] for row in rows]
        shows = [as_integer(one, 0, len(rows) - 1) for one in document["shows"]]
        require(len(shows) == len(rows), "shows has another length than transition.")
        self.length = as_integer(document["length"], 1, MOST_LENGTH)
        self.settled = document["initial"] == "stationary"
        if self.settled:
            kept = recurrent(rows)
            require(bool(kept), "The chain has no single stationary law.")
            rows = [[rows[x][z] for z in kept] for x in kept]
            shows, law = [shows[x] for x in kept], stationary(rows)
        else:
            law = [as_fraction(entry) for entry in document["initial"]]
            require(len(law) == len(rows) and sum(law) > 0, "initial is no law of the states.")
            law = [entry / sum(law) for entry in law]
        self.rows, self.shows, self.size = rows, shows, len(rows)
        self.hidden = len(set(shows)) < len(shows)
        self.laws = [(law, law)]
        self.powers = {1: (rows, rows)}

    def power(self, n: int, side: int) -> Matrix:
        """Return P^n rounded down (side 0) or up (side 1)."""
        if n not in self.powers:
            below, above = (
                product(self.power(n - 1, one), self.power(1, one), (down, up)[one])
                for one in (0, 1)
            )
            self.powers[n] = below, above
        return self.powers[n][side]

    def law(self, t: int, side: int) -> list[Fraction]:
        """Return the law of X_t, t from 1, rounded down (side 0) or up (side 1)."""
        while not self.settled and len(self.laws) < t:
            below, above = (
                product([self.laws[-1][one]], self.power(1, one), (down, up)[one])[0]
                for one in (0, 1)
            )
            self.laws.append((below, above))
        return self.laws[0 if self.settled else t - 1][side]

    def occurs(self, t: int) -> list[int]:
        """Return the possible states of X_t."""
        return [x for x in range(self.size) if self.law(t, 1)[x]]

    def labels(self, t: int) -> set[int]:
        """Return the possible shown states at a time point."""
        return {self.shows[x] for x in self.occurs(t)}

    def differ(self, x: int, y: int) -> bool:
        """Return whether two states show different states in the data."""
        return self.shows[x] != self.shows[y]


def product(a: Matrix, b: Matrix, side: Any) -> Matrix:
    """Return the product of two matrices, rounded to one side."""
    columns = list(zip(*b, strict=True))
    return [
        [
            side(sum((x * y for x, y in zip(row, col, strict=True) if x and y), ZERO))
            for col in columns
        ]
        for row in a
    ]


class ChargedLevels:
    """The level charged per time point: each `span` neighbours in first..last pay change/scale."""

    def __init__(self, document: dict[str, Any], hidden: bool) -> None:
        self.length, self.hidden = document["length"], hidden
        scale = as_fraction(document["scale"])
        require(scale > 0, "The scale is 0.")
        self.charges = []
        for first, last, span, change in document["charges"]:
            as_integer(first, 1, self.length), as_integer(last, first, self.length)
            as_integer(span, 1, last - first + 1)
            self.charges.append((first, last, span, as_integer(change, 1, 10**30) / scale))
        require(sum(one[3] for one in self.charges) <= LARGEST_LEVEL, "The levels are too high.")

    def block(self, begin: int, end: int, first: int, last: int, span: int) -> int:
        """Return the number of windows of `span` points in first..last that meet begin..end."""
        return max(0, min(end, last - span + 1) - max(begin - span + 1, first) + 1)

    def own(self, begin: int, end: int) -> Fraction:
        """Return the total level of all windows that meet begin..end."""
        return sum((s * self.block(begin, end, *w) for *w, s in self.charges), ZERO)

    def side(self, t: int, left: bool) -> Fraction:
        """Return the level of windows that end (left) or begin (right) at t; of all if hidden."""
        if self.hidden:
            return self.own(t, t)
        total = ZERO
        for first, last, span, s in self.charges:
            begin = t - span + 1 if left else t
            total += s if first <= begin <= last - span + 1 else ZERO
        return total

    def corners(self) -> list[int]:
        """Return the time points between which the charged level is linear."""
        corners = {1, self.length}
        for first, last, span, _ in self.charges:
            corners |= {first, first + span - 1, last - span + 1, last}
        near = {t + d for t in corners for d in (-1, 0, 1)}
        return sorted(t for t in near if 1 <= t <= self.length)


def metric_closure(limits: Bounds, states: list[int]) -> Bounds:
    """Return the metric closure of limits: bounds that follow via other states."""
    closure = [list(row) for row in limits]
    for y in states:
        for x in states:
            first = closure[x][y]
            for z in states:
                second, old = closure[y][z], closure[x][z]
                if first is not None and second is not None and len({x, y, z}) == 3:
                    via = up(first * second)
                    closure[x][z] = via if old is None or via < old else old
    return closure


def tree_vector(
    tree: list[int], limits: Bounds, states: list[int]
) -> tuple[list[int], list[Fraction]]:
    """Return the states from the roots outwards, and the vector defined by a tree.

    tree[z] is 0 for a root, p + 1 where z is at its upper limit over p, −(p + 1) at its lower one.
    """
    vector, order = [ZERO] * len(tree), [z for z in states if tree[z] == 0]
    for z in order:
        vector[z] = ONE
    for parent in order:  # grows while it is read
        for z in states:
            if abs(tree[z]) == parent + 1:
                limit = limits[z][parent] if tree[z] > 0 else limits[parent][z]
                if limit is None or z == parent:
                    raise RefusedError("A tree uses a limit that does not exist.")
                above = vector[parent]
                vector[z] = up(limit * above) if tree[z] > 0 else down(above / limit)
                order.append(z)
    require(len(order) == len(states), "A tree does not span its states.")
    return order, vector


def proved(
    p: list[Fraction],
    q: list[Fraction],
    most: Fraction,
    limits: Bounds,
    states: list[int],
    tree: Any,
) -> bool:
    """Return whether the tree proves p·v ≤ most·(q·v) for all v within the limits.

    `program_statement`: every state passes the excess of its subtree on to its parent. Without a
    tree no limit is used, and the inequality must hold in every entry.
    """
    if tree is None:
        return all(p[z] <= most * q[z] for z in states)
    require(isinstance(tree, list) and len(tree) == len(limits), "A tree has a wrong size.")
    for entry in tree:
        as_integer(entry, -len(tree), len(tree))
    order, vector = tree_vector(tree, limits, states)
    much = [ZERO] * len(tree)
    for z in reversed(order):
        much[z] += (p[z] - most * q[z]) * vector[z]
        if tree[z] <= 0 and much[z] > 0:
            return False
        if tree[z]:
            much[abs(tree[z]) - 1] += max(much[z], ZERO) if tree[z] > 0 else much[z]
    return True


class Side:
    """The bounds of one side: node by node from its end, or one for all nodes."""

    def __init__(
        self, name: str, document: dict[str, Any], chain: Chain, levels: ChargedLevels
    ) -> None:
        self.name, self.left, self.chain, self.levels = name, name == "left", chain, levels
        read = document[name]
        self.infinite = read["endless"] is True
        fixed = chain.settled or not (self.infinite and self.left)
        require(fixed, "One bound for all nodes on the left needs a stationary start.")
        size = range(chain.size)
        self.bounds: list[Bounds] = [
            [[None if one is None else as_fraction(one) for one in row] for row in matrix]
            for matrix in read["bounds"]
        ]
        self.steps = read["steps"]
        for matrix in (*self.bounds, *self.steps):
            require([len(row) for row in matrix] == [len(size)] * len(size), f"{name}: wrong size.")
        count = 1 if self.infinite else len(self.bounds) - 1
        require(
            len(self.steps) == count and len(self.bounds) >= 1, f"{name}: bounds or steps miss."
        )
        require(
            not self.infinite or len(self.bounds) == 1, f"{name}: several bounds for all nodes."
        )
        self.most = max(levels.side(t, self.left) for t in levels.corners())
        self.kept: tuple[Any, Bounds] | None = None

    def node(self, j: int) -> int:
        """Return the time point with j others beyond it on this side."""
        return j + 1 if self.left else self.chain.length - j

    def at(self, t: int) -> Bounds:
        """Return the bounds at a time point."""
        j = 0 if self.infinite else (t - 1 if self.left else self.chain.length - t)
        require(j < len(self.bounds), f"{self.name}: time point {t} has no bounds.")
        return self.bounds[j]

    def charged(self, j: int) -> Fraction:
        """Return the level charged on this side at the time point with j others beyond it."""
        return self.most if self.infinite else self.levels.side(self.node(j), self.left)

    def check(self) -> None:
        """Check the bounds at the end of the series, and every step from there."""
        chain, start = self.chain, self.bounds[0]
        for x, y in pairs(self.states(0)):
            low, high = (chain.law(1, 0)[y], chain.law(1, 1)[x]) if self.left else (ONE, ONE)
            least = start[x][y]
            require(
                least is None or high <= least * low, f"{self.name}: the end is above its bound."
            )
        for j, steps in enumerate(self.steps, start=1):
            limits: dict[int, Bounds] = {}
            for x, y in pairs(self.states(0 if self.infinite else j)):
                bound = self.bounds[0 if self.infinite else j][x][y]
                if bound is not None:
                    require(isinstance(steps[x][y], list), f"{self.name}: a step is missing.")
                    n, tree = steps[x][y]
                    as_integer(n, 1, MOST_STEPS if self.infinite else min(j, MOST_STEPS))
                    if n not in limits:
                        limits[n] = self.limits(0 if self.infinite else j - n)
                    self.step(j, n, tree, limits[n], x, y, bound)

    def states(self, j: int) -> list[int]:
        """Return the states to compare: the possible ones on the left, all on the right."""
        return self.chain.occurs(self.node(j)) if self.left else list(range(self.chain.size))

    def limits(self, j: int) -> Bounds:
        """Return limits on the ratio of two states' values at the node with j others beyond it."""
        if self.infinite and self.kept is not None:
            return self.kept[1]
        level, states = exp_up(self.charged(j)), self.states(j)
        limits_: Bounds = [[None] * self.chain.size for _ in range(self.chain.size)]
        for x, y in pairs(states):
            bound = self.bounds[j][x][y]
            if bound is not None:
                limits_[x][y] = up(bound * level) if self.chain.differ(x, y) else bound
        self.kept = None, metric_closure(limits_, states)
        return self.kept[1]

    def step(
        self, j: int, n: int, tree: Any, limits: Bounds, x: int, y: int, bound: Fraction
    ) -> None:
        """Check F(bounds) ≤ bounds for one pair of states, by a step of n nodes."""
        begin = 0 if self.infinite else j - n
        between = exp_up(sum((self.charged(begin + i) for i in range(1, n)), ZERO))
        if self.infinite:
            between = exp_up(self.most * (n - 1))
        below, above = self.chain.power(n, 0), self.chain.power(n, 1)
        p, q = (
            ([row[x] for row in above], [row[y] for row in below])
            if self.left
            else (above[x], below[y])
        )
        if not proved(p, q, down(bound / between), limits, self.states(begin), tree):
            where = "every node" if self.infinite else f"time point {self.node(j)}"
            raise RefusedError(f"{self.name}: a step at {where} is above its bound.")


def pairs(states: list[int]) -> list[tuple[int, int]]:
    """Return all ordered pairs of different states."""
    return [(x, y) for x in states for y in states if x != y]


def check(document: dict[str, Any]) -> None:
    """Check that the noise is proved to keep ε under every chain, in exact fractions.

    Raises:
        RefusedError: if a proof fails, naming the step.
    """
    chains = document.get("certificates") if isinstance(document, dict) else None
    require(isinstance(chains, list) and len(chains) > 0, "The file holds no certificate.")
    for one in chains or ():
        check_one(one)


def check_one(document: dict[str, Any]) -> None:
    """Check that the noise is proved to keep ε under one chain."""
    try:
        _check(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise RefusedError(f"The certificate is incomplete ({type(error).__name__}).") from None


def _check(document: dict[str, Any]) -> None:
    chain = Chain(document)
    levels = ChargedLevels(document, chain.hidden)
    epsilon = as_fraction(document["epsilon"])
    require(0 < epsilon <= LARGEST_LEVEL, "epsilon is out of range.")
    first, last = document["secrets"]
    as_integer(first, 1, chain.length), as_integer(last, first, chain.length)
    episode = as_integer(document["episode"], 1, last - first + 1)
    if levels.own(1, chain.length) <= epsilon:
        return  # the whole answer is charged at most epsilon, whatever the belief
    left, right = (Side(name, document, chain, levels) for name in ("left", "right"))
    left.check()
    right.check()
    if left.infinite and right.infinite:  # nodes differ only in what they are charged
        ends = [(t, min(t + episode - 1, chain.length)) for t in levels.corners()]
        ends += [(max(t - episode + 1, 1), t) for t in levels.corners()]
        secrets = [(first, max(levels.own(*block) for block in ends))]
    else:
        begins = range(first, last - episode + 2)
        secrets = [(t, levels.own(t, t + episode - 1)) for t in begins]
    for place, (t, own) in enumerate(secrets):
        before, after = conditional_bounds(chain, t, left.at(t)), right.at(t + episode - 1)
        end = chain.occurs(t + episode - 1)
        apart = [
            (x, y)
            for x, y in pairs(end)
            if chain.differ(x, y) and in_pairs(document["pairs"], x, y, chain)
        ]
        known = all(len(chain.labels(i)) == 1 for i in range(t, t + episode))
        if known or (episode == 1 and not apart):
            continue
        require(own <= epsilon, f"The time point {t} alone is charged more than epsilon.")
        rest = exp_down(epsilon - own)
        if episode > 1:
            require(document["pairs"] is None, "Episodes keep all pairs apart.")
            holds = largest_bound(before, chain.occurs(t)) * largest_bound(after, end) <= rest
        else:
            holds = all(
                required_bound(before[x][y]) * required_bound(after[x][y]) <= rest for x, y in apart
            )
        if not holds and episode == 1 and chain.hidden:
            limits = combined_limits(chain, t, exp_up(own), before, after)
            trees = document["shown"][place]
            holds = shown_states_bounded(
                chain, t, limits, exp_down(epsilon), document["pairs"], trees
            )
        require(holds, f"The secret at time point {t} leaks more than epsilon.")


def in_pairs(chosen: Any, x: int, y: int, chain: Chain) -> bool:
    """Return whether two states are a secret pair."""
    return chosen is None or any({chain.shows[x], chain.shows[y]} == set(one) for one in chosen)


def required_bound(value: Fraction | None) -> Fraction:
    """Return a bound; RefusedError if it is missing."""
    if value is None:
        raise RefusedError("A pair of states that is secret has no bound.")
    return value


def largest_bound(bounds: Bounds, states: list[int]) -> Fraction:
    """Return the largest factor at one end of an episode; equal states there have factor 1."""
    return max([ONE, *(required_bound(bounds[x][y]) for x, y in pairs(states))])


def conditional_bounds(chain: Chain, t: int, bounds: Bounds) -> Bounds:
    """Return bounds on joint probabilities as bounds given the state, divided by the law."""
    low, high, conditional = chain.law(t, 0), chain.law(t, 1), [list(row) for row in bounds]
    for x, y in pairs(chain.occurs(t)):
        bound = bounds[x][y]
        conditional[x][y] = None if bound is None else bound * high[y] / low[x]
    return conditional


def combined_limits(chain: Chain, t: int, own: Fraction, before: Bounds, after: Bounds) -> Bounds:
    """Return limits on the ratio of an output's probabilities given two hidden states."""
    limits: Bounds = [[None] * chain.size for _ in range(chain.size)]
    for x, y in pairs(chain.occurs(t)):
        first, second = before[x][y], after[x][y]
        if first is not None and second is not None:
            limits[x][y] = up(first * second * (own if chain.differ(x, y) else ONE))
    return metric_closure(limits, chain.occurs(t))


def law_given_shown(chain: Chain, t: int, label: int, side: int) -> list[Fraction]:
    """Return the law of the hidden state given the shown state, rounded down or up."""
    law, other = chain.law(t, side), chain.law(t, 1 - side)
    total = sum(other[z] for z in range(chain.size) if chain.shows[z] == label)
    rounded = (down, up)[side]
    return [rounded(e / total) if chain.shows[z] == label else ZERO for z, e in enumerate(law)]


def shown_states_bounded(
    chain: Chain, t: int, limits: Bounds, most: Fraction, chosen: Any, trees: Any
) -> bool:
    """Return whether the bound holds for shown states, given the law of the states behind them."""
    states = chain.occurs(t)
    first = {chain.shows[x]: x for x in reversed(states)}
    return all(
        proved(
            law_given_shown(chain, t, a, 1),
            law_given_shown(chain, t, b, 0),
            most,
            limits,
            states,
            trees[a][b],
        )
        for a, x in first.items()
        for b, y in first.items()
        if a != b and in_pairs(chosen, x, y, chain)
    )


def main(paths: list[str]) -> int:
    """Check the files; return 0 if each proves its claims, 1 if not, 2 without files."""
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
            check(document)
        except (RefusedError, ValueError, OSError) as error:
            print(f"{path}: refused. {error}")
            return 1
        for one in document["certificates"]:
            print(f"{path}: noise of scale {one['scale']} keeps epsilon {one['epsilon']}.")
    return 0 if paths else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
