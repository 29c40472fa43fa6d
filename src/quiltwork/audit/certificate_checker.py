"""A checker of certificates: does this much noise keep ε, decided in exact fractions?

It imports nothing of the package, uses no floats, and runs alone:
`python certificate_checker.py FILE`. Everything clever happened when the certificate was written;
this file only verifies inequalities, and they are the hypotheses of statements that Coq has
checked (`proofs/Statements.v`), named where they are used. Format: docs/reference/files.md.

A level s is the factor e^s here. States are numbered from 0, time points from 1. What has to be
rounded is rounded to 200 binary digits, in the direction that makes the check harder to pass.

Theorem: docs/theory/certificates.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any

BITS, SQUARINGS, MOST_STEPS, LARGEST_LEVEL = 200, 100, 64, 10**4
Matrix = list[list[Fraction]]
Bounds = dict[tuple[int, int], Fraction]  # by pairs of states; no entry: no bound
Program = tuple[list[Fraction], list[Fraction], Fraction, Bounds]


class RefusedError(Exception):
    """Raised if the certificate does not prove that the noise suffices; names the step."""


def require(truth: bool, sentence: str) -> None:
    """Raise RefusedError unless the condition holds."""
    if not truth:
        raise RefusedError(sentence)


def number(text: Any) -> Fraction:
    """Return the fraction of a text such as "3/4" or "0.75"; no signs, so it is at least 0."""
    digits = text.replace("/", "", 1).replace(".", "", 1)
    require(digits.isdigit(), "A number is not written in digits.")
    return Fraction(text)


def integer(value: Any, least: int, most: int) -> int:
    """Return an integer after checking its range."""
    require(type(value) is int and least <= value <= most, "An integer is out of range.")
    return int(value)


def last_digit(x: Fraction) -> Fraction:
    """Return the value of the last of about 200 binary digits of x."""
    return Fraction(2) ** int(x.numerator.bit_length() - x.denominator.bit_length() - BITS)


def down(x: Fraction) -> Fraction:
    """Return x rounded down."""
    return last_digit(x) * (x // last_digit(x))


def up(x: Fraction) -> Fraction:
    """Return x rounded up."""
    return last_digit(x) * -(-x // last_digit(x))


@cache
def exp_down(x: Fraction) -> Fraction:
    """Return a lower bound on e^x: (1 + x/N)^N, N = 2^100, by repeated squaring."""
    require(abs(x) <= LARGEST_LEVEL, "A level is too high.")
    power = 1 + x / (1 << SQUARINGS)
    for _ in range(SQUARINGS):
        power = down(power * power)
    return power


def exp_up(x: Fraction) -> Fraction:
    """Return an upper bound on e^x."""
    return 1 / exp_down(-x)


def times(a: Iterable[Fraction], b: Iterable[Fraction]) -> Fraction:
    """Return the scalar product of two vectors."""
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), Fraction(0))


def product(a: Matrix, b: Matrix, rounded: Callable[[Fraction], Fraction]) -> Matrix:
    """Return the product of two matrices, rounded."""
    columns = list(zip(*b, strict=True))
    return [[rounded(times(row, column)) for column in columns] for row in a]


def proved(p: list[Fraction], q: list[Fraction], most: Fraction, limits: Bounds, flow: Any) -> bool:
    """Return whether p·v ≤ most·(q·v) for all v ≥ 0 with v[z] ≤ limits[z, y]·v[y].

    `flow_statement`: each [z, y, w] of the flow, w ≥ 0, adds w·(limits[z, y]·v[y] − v[z]) ≥ 0. It
    suffices that with these p − most·q is nowhere positive.
    """
    excess = [above - most * below for above, below in zip(p, q, strict=True)]
    for z, y, weight in flow:
        excess[z] -= number(weight)
        excess[y] += number(weight) * limits[z, y]
    return max(excess) <= 0


class ChainClaim:
    """What a certificate is about: a chain, what the release charges its time points, and ε."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.rows = [[number(entry) for entry in row] for row in document["transition"]]
        start = [number(entry) for entry in document["initial"]]
        for row in (*self.rows, start):
            require(len(row) == len(self.rows) and sum(row) == 1, "A row is not a distribution.")
        self.states, self.laws = range(len(start)), [(start, start)]
        self.stationary = product([start], self.rows, Fraction) == [start]
        self.shows = [integer(value, 0, len(start) - 1) for value in document["shows"]]
        require(len(self.shows) == len(start), "shows has another length than transition.")
        self.hidden = len(set(self.shows)) < len(self.shows)
        self.length = integer(document["length"], 1, 10**9)
        self.epsilon, scale = number(document["epsilon"]), number(document["scale"])
        self.charges = []
        for first, last, span, change in document["charges"]:
            integer(last, integer(first, 1, self.length), self.length)
            level = integer(change, 1, 10**30) / scale
            self.charges.append((first, last, integer(span, 1, last - first + 1), level))

    def law(self, t: int) -> tuple[list[Fraction], list[Fraction]]:
        """Return the law of the state at t, rounded down and up; 0 stays 0."""
        while not self.stationary and len(self.laws) < t:
            low, high = ([law] for law in self.laws[-1])
            self.laws.append((product(low, self.rows, down)[0], product(high, self.rows, up)[0]))
        return self.laws[0 if self.stationary else t - 1]

    def values(self, t: int) -> list[int]:
        """Return the observed values that are possible at t."""
        return sorted({self.shows[x] for x in self.states if self.law(t)[1][x]})

    def level(self, begin: int, end: int, side: str = "both") -> Fraction:
        """Return the level of all windows that meet begin..end.

        With a side, only those that begin there ("right") or end there ("left") pay. Behind hidden
        states every point pays for all its windows (`shown_statement`).
        """
        total, side = Fraction(0), "both" if self.hidden else side
        for first, last, span, level in self.charges:
            least = max(first, begin if side == "right" else begin - span + 1)
            most = min(last - span + 1, end - span + 1 if side == "left" else end)
            total += max(0, most - least + 1) * level
        return total

    def highest(self, points: int, side: str = "both") -> Fraction:
        """Return the highest level of `points` neighbours: it is linear between these corners."""
        ends = {1, self.length}
        for first, last, span, _ in self.charges:
            ends |= {first, first + span - 1, last - span + 1, last}
        begins = {t + d - e for t in ends for d in (-1, 0, 1) for e in (0, points - 1)}
        possible = {min(max(t, 1), self.length - points + 1) for t in begins}
        return max(self.level(t, t + points - 1, side) for t in possible)

    def limits(self, bounds: Bounds, level: Fraction, raised: int | None = None) -> Bounds:
        """Return the bounds, times e^level for states that show different values.

        With `raised`, for v[z]·e^level in place of v[z] where z does not show this value.
        """
        shows, factors = self.shows, [exp_up(level * n) for n in range(3)]
        return {
            (x, y): bound
            * factors[(shows[x] != shows[y]) + (shows[y] == raised) - (shows[x] == raised)]
            for (x, y), bound in bounds.items()
        }

    def program(self, t: int, own: Fraction, both: Bounds, a: int, b: int) -> Program:
        """Return p, q, Λ and limits such that p·W ≤ Λ·(q·W) keeps ε between observed a and b.

        `secret_statement`, W[x] = P(x)·E[output | x]: the outputs' probabilities given a and b are
        p·W / P(a) and q·W / P(b). W is raised where a is not shown, so that Λ has e^(ε−own), which
        is exactly 1 where a point is charged all of ε.
        """
        low, high = self.law(t)
        p, q = (
            [Fraction(self.shows[x] == value and high[x] > 0) for x in self.states]
            for value in (a, b)
        )
        most = exp_down(self.epsilon - own) * times(p, low) / times(q, high)
        return p, q, most, self.limits(both, own, a)


class Side:
    """The bounds of one side: of the nodes with j = 0, 1, … others beyond them, or of all nodes."""

    def __init__(self, claim: ChainClaim, left: bool, bounds: list[Any], endless: bool) -> None:
        self.claim, self.left, self.endless = claim, left, endless
        self.name = "left" if left else "right"
        self.kernel = [list(row) for row in zip(*claim.rows, strict=True)] if left else claim.rows
        self.bounds = [self.parsed(matrix) for matrix in bounds]
        self.most = claim.highest(1, self.name)
        self.limits, self.power = cache(self._limits), cache(self._power)

    def parsed(self, matrix: Any) -> Bounds:
        """Return the bounds of all pairs that have one."""
        pairs = permutations(self.claim.states, 2)
        return {(x, y): number(matrix[x][y]) for x, y in pairs if matrix[x][y] is not None}

    def node(self, j: int) -> int:
        """Return the time point with j others beyond it on this side."""
        return 1 + j if self.left else self.claim.length - j

    def at(self, t: int) -> Bounds:
        """Return the bounds at time point t."""
        return self.bounds[0 if self.endless else t - 1 if self.left else self.claim.length - t]

    def level(self, j: int) -> Fraction:
        """Return what node j is charged on this side."""
        t = self.node(j)
        return self.most if self.endless else self.claim.level(t, t, self.name)

    def _limits(self, j: int) -> Bounds:
        """Return limits on the ratio of two states' values at node j."""
        return self.claim.limits(self.bounds[0 if self.endless else j], self.level(j))

    def _power(self, n: int) -> tuple[Matrix, Matrix]:
        """Return the n-th power of the kernel, rounded down and up."""
        if n == 1:
            return self.kernel, self.kernel
        low, high = self.power(n - 1)
        return product(low, self.kernel, down), product(high, self.kernel, up)

    def step(self, j: int, n: int, x: int, y: int) -> tuple[list[Fraction], list[Fraction]]:
        """Return p and q for n nodes at once to node j, 0 for what never occurs on the left."""
        (low, high), zero = self.power(n), Fraction(0)
        if not self.left:
            return high[x], low[y]
        law = self.claim.law(self.node(j - n))[1]
        p, q = ([e if law[z] else zero for z, e in enumerate(row)] for row in (high[x], low[y]))
        return p, q

    def between(self, j: int, n: int) -> Fraction:
        """Return the charges of the nodes that n nodes at once to node j pass over."""
        return exp_up(sum((self.level(i) for i in range(j - n + 1, j)), Fraction(0)))

    def check(self, steps: list[Any]) -> None:
        """Check the bounds at the end of the series, and every step from there.

        `sweep_statement`, `shown_statement`: the recursion. `endless_statement`: one bound that is
        above its own step at the highest level, in a chain that starts in its stationary law.
        """
        law = self.claim.law(1)[0]
        for (x, y), bound in self.bounds[0].items():
            holds = law[x] <= bound * law[y] if self.left else bound >= 1
            require(holds, f"{self.name}: the end is above its bound.")
        fixed = self.claim.stationary or not (self.left and self.endless)
        require(fixed, "left: one bound for all nodes needs a stationary start.")
        require(len(self.bounds) == 1 or not self.endless, "All nodes have one bound.")
        targets = self.bounds if self.endless else self.bounds[1:]
        for j, (target, step) in enumerate(zip(targets, steps, strict=True), start=1):
            for (x, y), bound in target.items():
                n, flow = step[x][y]
                integer(n, 1, MOST_STEPS if self.endless else min(j, MOST_STEPS))
                p, q = self.step(j, n, x, y)
                holds = proved(p, q, bound / self.between(j, n), self.limits(j - n), flow)
                where = "every node" if self.endless else f"time point {self.node(j)}"
                require(holds, f"{self.name}: the step to {where} is above its bound.")


def check(document: Any) -> None:
    """Check that the noise is proved to keep ε under every chain; RefusedError names the step."""
    try:
        require(len(document["certificates"]) > 0, "There is no certificate.")
        for certificate in document["certificates"]:
            check_claim(certificate)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise RefusedError(f"The certificate is incomplete ({type(error).__name__}).") from None


def check_claim(document: Any) -> None:
    """Check both sides, and what they leave of ε at every secret."""
    claim, pairs, (first, last) = ChainClaim(document), document["pairs"], document["secrets"]
    integer(last, integer(first, 1, claim.length), claim.length)
    points = integer(document["episode"], 1, last - first + 1)
    require(points == 1 or pairs is None, "Episodes keep all pairs of values apart.")
    if claim.level(1, claim.length) <= claim.epsilon:
        return  # the whole answer is charged at most epsilon, whatever the belief
    sides = [(document[name], name == "left") for name in ("left", "right")]
    left, right = (Side(claim, end, d["bounds"], d["endless"] is True) for d, end in sides)
    left.check(document["left"]["steps"])
    right.check(document["right"]["steps"])
    if left.endless and right.endless:  # time points differ in what they are charged only
        secrets = [(first, claim.highest(points))]
    else:
        begins = range(first, last - points + 2)
        secrets = [(t, claim.level(t, t + points - 1)) for t in begins]
    for place, (t, own) in enumerate(secrets):
        sentence = f"The secret at time point {t} leaks more than epsilon."
        if points > 1:
            require(episode_kept(claim, t, points, own, left, right), sentence)
            continue
        before, after = left.at(t), right.at(t)
        both = {pair: before[pair] * after[pair] for pair in before.keys() & after.keys()}
        for a, b in permutations(claim.values(t), 2):
            if pairs is None or [a, b] in pairs or [b, a] in pairs:
                flow = document["flows"][place][a][b]
                require(proved(*claim.program(t, own, both, a, b), flow), sentence)


def episode_kept(
    claim: ChainClaim, t: int, points: int, own: Fraction, left: Side, right: Side
) -> bool:
    """Return whether ε is kept for the states at t..t+points−1, charged `own` together.

    `episode_statement`, `episode_shown_statement`: the largest bound of each end, at least 1.
    """
    stop, (low, high), worst = t + points - 1, claim.law(t), [Fraction(1)] * 2
    if all(len(claim.values(i)) == 1 for i in range(t, stop + 1)):
        return True  # nothing is secret
    for x, y in permutations(claim.states, 2):
        if low[x] and low[y]:
            worst[0] = max(worst[0], left.at(t)[x, y] * high[y] / low[x])
        if claim.law(stop)[0][x] and claim.law(stop)[0][y]:
            worst[1] = max(worst[1], right.at(stop)[x, y])
    return worst[0] * worst[1] <= exp_down(claim.epsilon - own)


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
