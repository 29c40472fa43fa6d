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
    """The certificate does not prove that the noise suffices; the message says where."""


def up(x: Fraction) -> Fraction:
    """The least number of 96 digits at or above x > 0; 0 for 0."""
    shift = BITS - x.numerator.bit_length() + x.denominator.bit_length()
    if shift >= 0:
        return Fraction(-((-x.numerator << shift) // x.denominator), 1 << shift)
    return Fraction(-(-x.numerator // (x.denominator << -shift)) << -shift)


def down(x: Fraction) -> Fraction:
    """The largest number of 96 digits at or below x ≥ 0."""
    return ONE / up(ONE / x) if x else ZERO


@cache
def exp_up(x: Fraction) -> Fraction:
    """A number at or above e^x, x ≥ 0: the series of x/2^n < 1, squared n times."""
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
    """A number at or below e^x, x ≥ 0: the partial sums of the same series are all below it."""
    halvings = max(x.numerator // x.denominator, 0).bit_length() + 4
    y, total = x / (1 << halvings), ONE
    for n in range(24, 0, -1):
        total = down(1 + y * total / n)
    for _ in range(halvings):
        total = down(total * total)
    return total


def need(truth: bool, sentence: str) -> None:
    """Refuse the certificate unless this holds."""
    if not truth:
        raise RefusedError(sentence)


def number(text: Any) -> Fraction:
    """A positive fraction or 0, as it is written: "3/4" or "0"."""
    need(isinstance(text, str) and len(text) < 10**5, "A number is not written as a string.")
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise RefusedError("A number is not a fraction.") from None
    need(value >= 0, "A number is negative.")
    return value


def whole(value: Any, least: int, most: int) -> int:
    """An integer of a range."""
    need(isinstance(value, int) and not isinstance(value, bool), "An integer is missing.")
    need(least <= value <= most, "An integer is out of range.")
    return int(value)


Matrix = list[list[Fraction]]
Bounds = list[list[Fraction | None]]  # None: no bound is claimed


def stationary(rows: Matrix) -> list[Fraction]:
    """The law with law·rows = law of an irreducible matrix, exactly (GTH elimination)."""
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
    need(product([law], rows, Fraction) == [law], "The law of the states is not stationary.")
    return law


def recurrent(rows: Matrix) -> list[int]:
    """The states that every state can reach: the only closed class, where there is one."""
    size = len(rows)
    reach = [{y for y in range(size) if rows[x][y] or x == y} for x in range(size)]
    for y in range(size):
        for x in range(size):
            reach[x] |= reach[y] if y in reach[x] else set()
    return sorted(set.intersection(*reach))


class Chain:
    """The belief that a certificate names, with laws and powers rounded outward."""

    def __init__(self, document: dict[str, Any]) -> None:
        read = document["transition"]
        need(isinstance(read, list) and 1 <= len(read) <= MOST_STATES, "transition is no matrix.")
        rows = [[number(entry) for entry in row] for row in read]
        need(all(len(row) == len(rows) and sum(row) for row in rows), "transition is not square.")
        rows = [[entry / sum(row) for entry in row] for row in rows]
        shows = [whole(one, 0, len(rows) - 1) for one in document["shows"]]
        need(len(shows) == len(rows), "shows has another length than transition.")
        self.length = whole(document["length"], 1, MOST_LENGTH)
        self.settled = document["initial"] == "stationary"
        if self.settled:
            kept = recurrent(rows)
            need(bool(kept), "The chain has no single stationary law.")
            rows = [[rows[x][z] for z in kept] for x in kept]
            shows, law = [shows[x] for x in kept], stationary(rows)
        else:
            law = [number(entry) for entry in document["initial"]]
            need(len(law) == len(rows) and sum(law) > 0, "initial is no law of the states.")
            law = [entry / sum(law) for entry in law]
        self.rows, self.shows, self.size = rows, shows, len(rows)
        self.hidden = len(set(shows)) < len(shows)
        self.laws = [(law, law)]
        self.powers = {1: (rows, rows)}

    def power(self, n: int, side: int) -> Matrix:
        """P^n at or below itself (side 0), or at or above (side 1)."""
        if n not in self.powers:
            below, above = (
                product(self.power(n - 1, one), self.power(1, one), (down, up)[one])
                for one in (0, 1)
            )
            self.powers[n] = below, above
        return self.powers[n][side]

    def law(self, t: int, side: int) -> list[Fraction]:
        """The law of X_t, t from 1, at or below (side 0), or at or above (side 1)."""
        while not self.settled and len(self.laws) < t:
            below, above = (
                product([self.laws[-1][one]], self.power(1, one), (down, up)[one])[0]
                for one in (0, 1)
            )
            self.laws.append((below, above))
        return self.laws[0 if self.settled else t - 1][side]

    def occurs(self, t: int) -> list[int]:
        """The states that X_t can take."""
        return [x for x in range(self.size) if self.law(t, 1)[x]]

    def labels(self, t: int) -> set[int]:
        """What the data can show at a time point."""
        return {self.shows[x] for x in self.occurs(t)}

    def differ(self, x: int, y: int) -> bool:
        """Whether the data tell the two states apart."""
        return self.shows[x] != self.shows[y]


def product(a: Matrix, b: Matrix, side: Any) -> Matrix:
    """The product of two matrices, rounded to one side."""
    columns = list(zip(*b, strict=True))
    return [
        [
            side(sum((x * y for x, y in zip(row, col, strict=True) if x and y), ZERO))
            for col in columns
        ]
        for row in a
    ]


class ChargedLevels:
    """What every time point is charged: each `span` neighbours in first..last pay change/scale."""

    def __init__(self, document: dict[str, Any], hidden: bool) -> None:
        self.length, self.hidden = document["length"], hidden
        scale = number(document["scale"])
        need(scale > 0, "The scale is 0.")
        self.charges = []
        for first, last, span, change in document["charges"]:
            whole(first, 1, self.length), whole(last, first, self.length)
            whole(span, 1, last - first + 1)
            self.charges.append((first, last, span, whole(change, 1, 10**30) / scale))
        need(sum(one[3] for one in self.charges) <= LARGEST_LEVEL, "The levels are too high.")

    def block(self, begin: int, end: int, first: int, last: int, span: int) -> int:
        """How many windows of `span` in first..last meet begin..end."""
        return max(0, min(end, last - span + 1) - max(begin - span + 1, first) + 1)

    def own(self, begin: int, end: int) -> Fraction:
        """What all windows that meet begin..end pay."""
        return sum((s * self.block(begin, end, *w) for *w, s in self.charges), ZERO)

    def side(self, t: int, left: bool) -> Fraction:
        """What windows that end (left) or begin (right) at t pay; all of them for hidden states."""
        if self.hidden:
            return self.own(t, t)
        total = ZERO
        for first, last, span, s in self.charges:
            begin = t - span + 1 if left else t
            total += s if first <= begin <= last - span + 1 else ZERO
        return total

    def corners(self) -> list[int]:
        """Between these time points what a point is charged is linear."""
        found = {1, self.length}
        for first, last, span, _ in self.charges:
            found |= {first, first + span - 1, last - span + 1, last}
        near = {t + d for t in found for d in (-1, 0, 1)}
        return sorted(t for t in near if 1 <= t <= self.length)


def closed(limits: Bounds, states: list[int]) -> Bounds:
    """The limits that follow by way of other states."""
    found = [list(row) for row in limits]
    for y in states:
        for x in states:
            first = found[x][y]
            for z in states:
                second, old = found[y][z], found[x][z]
                if first is not None and second is not None and len({x, y, z}) == 3:
                    way = up(first * second)
                    found[x][z] = way if old is None or way < old else old
    return found


def hang(tree: list[int], limits: Bounds, states: list[int]) -> tuple[list[int], list[Fraction]]:
    """The states from the roots outwards, and the vector that the tree says.

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
                    raise RefusedError("A tree rests on a limit that is none.")
                above = vector[parent]
                vector[z] = up(limit * above) if tree[z] > 0 else down(above / limit)
                order.append(z)
    need(len(order) == len(states), "A tree is no tree.")
    return order, vector


def proved(
    p: list[Fraction],
    q: list[Fraction],
    most: Fraction,
    limits: Bounds,
    states: list[int],
    tree: Any,
) -> bool:
    """Whether the tree proves p·v ≤ most·(q·v) for all v within the limits.

    `program_statement`: every state passes on to its parent what it and those below have too much
    of. Without a tree no limit is used, and every entry has to do.
    """
    if tree is None:
        return all(p[z] <= most * q[z] for z in states)
    need(isinstance(tree, list) and len(tree) == len(limits), "A tree has a wrong size.")
    for entry in tree:
        whole(entry, -len(tree), len(tree))
    order, vector = hang(tree, limits, states)
    much = [ZERO] * len(tree)
    for z in reversed(order):
        much[z] += (p[z] - most * q[z]) * vector[z]
        if tree[z] <= 0 and much[z] > 0:
            return False
        if tree[z]:
            much[abs(tree[z]) - 1] += max(much[z], ZERO) if tree[z] > 0 else much[z]
    return True


class Side:
    """The bounds of one side, node by node from its end, or of every node at once."""

    def __init__(
        self, name: str, document: dict[str, Any], chain: Chain, levels: ChargedLevels
    ) -> None:
        self.name, self.left, self.chain, self.levels = name, name == "left", chain, levels
        read = document[name]
        self.endless = read["endless"] is True
        fixed = chain.settled or not (self.endless and self.left)
        need(fixed, "One bound for all nodes on the left needs a stationary start.")
        size = range(chain.size)
        self.bounds: list[Bounds] = [
            [[None if one is None else number(one) for one in row] for row in matrix]
            for matrix in read["bounds"]
        ]
        self.steps = read["steps"]
        for matrix in (*self.bounds, *self.steps):
            need([len(row) for row in matrix] == [len(size)] * len(size), f"{name}: wrong size.")
        count = 1 if self.endless else len(self.bounds) - 1
        need(len(self.steps) == count and len(self.bounds) >= 1, f"{name}: bounds or steps miss.")
        need(not self.endless or len(self.bounds) == 1, f"{name}: several bounds for all nodes.")
        self.most = max(levels.side(t, self.left) for t in levels.corners())
        self.kept: tuple[Any, Bounds] | None = None

    def node(self, j: int) -> int:
        """The time point with j others on this side."""
        return j + 1 if self.left else self.chain.length - j

    def at(self, t: int) -> Bounds:
        """The bounds at a time point."""
        j = 0 if self.endless else (t - 1 if self.left else self.chain.length - t)
        need(j < len(self.bounds), f"{self.name}: time point {t} has no bounds.")
        return self.bounds[j]

    def charged(self, j: int) -> Fraction:
        """What the time point with j others beyond it pays on this side."""
        return self.most if self.endless else self.levels.side(self.node(j), self.left)

    def check(self) -> None:
        """The end, and every step from there."""
        chain, start = self.chain, self.bounds[0]
        for x, y in pairs(self.states(0)):
            low, high = (chain.law(1, 0)[y], chain.law(1, 1)[x]) if self.left else (ONE, ONE)
            least = start[x][y]
            need(least is None or high <= least * low, f"{self.name}: the end is above its bound.")
        for j, steps in enumerate(self.steps, start=1):
            limits: dict[int, Bounds] = {}
            for x, y in pairs(self.states(0 if self.endless else j)):
                bound = self.bounds[0 if self.endless else j][x][y]
                if bound is not None:
                    need(isinstance(steps[x][y], list), f"{self.name}: a step is missing.")
                    n, tree = steps[x][y]
                    whole(n, 1, MOST_STEPS if self.endless else min(j, MOST_STEPS))
                    if n not in limits:
                        limits[n] = self.limits(0 if self.endless else j - n)
                    self.step(j, n, tree, limits[n], x, y, bound)

    def states(self, j: int) -> list[int]:
        """The states that can be there: on the right all are compared."""
        return self.chain.occurs(self.node(j)) if self.left else list(range(self.chain.size))

    def limits(self, j: int) -> Bounds:
        """How far apart two states' prospects are at the time point with j others beyond it."""
        if self.endless and self.kept is not None:
            return self.kept[1]
        level, states = exp_up(self.charged(j)), self.states(j)
        found: Bounds = [[None] * self.chain.size for _ in range(self.chain.size)]
        for x, y in pairs(states):
            bound = self.bounds[j][x][y]
            if bound is not None:
                found[x][y] = up(bound * level) if self.chain.differ(x, y) else bound
        self.kept = None, closed(found, states)
        return self.kept[1]

    def step(
        self, j: int, n: int, tree: Any, limits: Bounds, x: int, y: int, bound: Fraction
    ) -> None:
        """F(bounds) ≤ bounds for one pair, by n nodes at once."""
        begin = 0 if self.endless else j - n
        between = exp_up(sum((self.charged(begin + i) for i in range(1, n)), ZERO))
        if self.endless:
            between = exp_up(self.most * (n - 1))
        below, above = self.chain.power(n, 0), self.chain.power(n, 1)
        p, q = (
            ([row[x] for row in above], [row[y] for row in below])
            if self.left
            else (above[x], below[y])
        )
        if not proved(p, q, down(bound / between), limits, self.states(begin), tree):
            where = "every node" if self.endless else f"time point {self.node(j)}"
            raise RefusedError(f"{self.name}: a step at {where} is above its bound.")


def pairs(states: list[int]) -> list[tuple[int, int]]:
    """All ordered pairs of different states."""
    return [(x, y) for x in states for y in states if x != y]


def check(document: dict[str, Any]) -> None:
    """Pass if every chain's noise is proved to keep its ε, in exact fractions.

    Raises:
        RefusedError: if one is not, saying where.
    """
    chains = document.get("certificates") if isinstance(document, dict) else None
    need(isinstance(chains, list) and len(chains) > 0, "The file holds no certificate.")
    for one in chains or ():
        check_one(one)


def check_one(document: dict[str, Any]) -> None:
    """Pass if the noise is proved to keep its ε under one chain."""
    try:
        _check(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise RefusedError(f"The certificate is incomplete ({type(error).__name__}).") from None


def _check(document: dict[str, Any]) -> None:
    chain = Chain(document)
    levels = ChargedLevels(document, chain.hidden)
    epsilon = number(document["epsilon"])
    need(0 < epsilon <= LARGEST_LEVEL, "epsilon is out of range.")
    first, last = document["secrets"]
    whole(first, 1, chain.length), whole(last, first, chain.length)
    episode = whole(document["episode"], 1, last - first + 1)
    if levels.own(1, chain.length) <= epsilon:
        return  # whatever changes pays no more
    left, right = (Side(name, document, chain, levels) for name in ("left", "right"))
    left.check()
    right.check()
    if left.endless and right.endless:  # nodes differ only in what they are charged
        ends = [(t, min(t + episode - 1, chain.length)) for t in levels.corners()]
        ends += [(max(t - episode + 1, 1), t) for t in levels.corners()]
        secrets = [(first, max(levels.own(*block) for block in ends))]
    else:
        begins = range(first, last - episode + 2)
        secrets = [(t, levels.own(t, t + episode - 1)) for t in begins]
    for place, (t, own) in enumerate(secrets):
        before, after = prior(chain, t, left.at(t)), right.at(t + episode - 1)
        end = chain.occurs(t + episode - 1)
        apart = [
            (x, y)
            for x, y in pairs(end)
            if chain.differ(x, y) and in_pairs(document["pairs"], x, y, chain)
        ]
        known = all(len(chain.labels(i)) == 1 for i in range(t, t + episode))
        if known or (episode == 1 and not apart):
            continue
        need(own <= epsilon, f"The time point {t} alone is charged more than epsilon.")
        rest = exp_down(epsilon - own)
        if episode > 1:
            need(document["pairs"] is None, "Episodes keep all pairs apart.")
            holds = largest(before, chain.occurs(t)) * largest(after, end) <= rest
        else:
            holds = all(bounded(before[x][y]) * bounded(after[x][y]) <= rest for x, y in apart)
        if not holds and episode == 1 and chain.hidden:
            limits = both_sides(chain, t, exp_up(own), before, after)
            trees = document["shown"][place]
            holds = shown_apart(chain, t, limits, exp_down(epsilon), document["pairs"], trees)
        need(holds, f"The secret at time point {t} leaks more than epsilon.")


def in_pairs(chosen: Any, x: int, y: int, chain: Chain) -> bool:
    """Whether the two states are to be kept apart."""
    return chosen is None or any({chain.shows[x], chain.shows[y]} == set(one) for one in chosen)


def bounded(value: Fraction | None) -> Fraction:
    """The bound that there has to be."""
    if value is None:
        raise RefusedError("A pair of states that is secret has no bound.")
    return value


def largest(bounds: Bounds, states: list[int]) -> Fraction:
    """The most that one end of an episode adds; assignments may agree there, which adds 1."""
    return max([ONE, *(bounded(bounds[x][y]) for x, y in pairs(states))])


def prior(chain: Chain, t: int, bounds: Bounds) -> Bounds:
    """The bounds of joint probabilities as bounds given the state: the law is taken off."""
    low, high, found = chain.law(t, 0), chain.law(t, 1), [list(row) for row in bounds]
    for x, y in pairs(chain.occurs(t)):
        bound = bounds[x][y]
        found[x][y] = None if bound is None else bound * high[y] / low[x]
    return found


def both_sides(chain: Chain, t: int, own: Fraction, before: Bounds, after: Bounds) -> Bounds:
    """How far apart the releases can be given two hidden states."""
    limits: Bounds = [[None] * chain.size for _ in range(chain.size)]
    for x, y in pairs(chain.occurs(t)):
        first, second = before[x][y], after[x][y]
        if first is not None and second is not None:
            limits[x][y] = up(first * second * (own if chain.differ(x, y) else ONE))
    return closed(limits, chain.occurs(t))


def behind(chain: Chain, t: int, label: int, side: int) -> list[Fraction]:
    """The law of the hidden state given what it shows, at or below itself, or at or above."""
    law, other = chain.law(t, side), chain.law(t, 1 - side)
    total = sum(other[z] for z in range(chain.size) if chain.shows[z] == label)
    rounded = (down, up)[side]
    return [rounded(e / total) if chain.shows[z] == label else ZERO for z, e in enumerate(law)]


def shown_apart(
    chain: Chain, t: int, limits: Bounds, most: Fraction, chosen: Any, trees: Any
) -> bool:
    """Hidden states: what is shown is secret, and the law of the state behind it is known."""
    states = chain.occurs(t)
    first = {chain.shows[x]: x for x in reversed(states)}
    return all(
        proved(behind(chain, t, a, 1), behind(chain, t, b, 0), most, limits, states, trees[a][b])
        for a, x in first.items()
        for b, y in first.items()
        if a != b and in_pairs(chosen, x, y, chain)
    )


def main(paths: list[str]) -> int:
    """Check the files; 0 if each proves what it says."""
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
