"""Misfit: what releases tell if an adversary believes something else than they were made for.

A guarantee holds under the beliefs it was calibrated to. Under another belief the same noise has
another level, which the sweep bounds and, for one query on plain chains, the audit knows exactly.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from quiltwork.audit.exact_leakage import worst_case
from quiltwork.beliefs import Belief, Label, as_beliefs
from quiltwork.beliefs.states import show_labels
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.results import ResultBase


class Made(Protocol):
    """What was released, calibrated or spent: it can say what it leaks under other beliefs."""

    @property
    def states(self) -> tuple[Label, ...] | None:
        """The states that it is about, as far as it knows them."""

    def level_kept(self) -> float:
        """What it keeps under the beliefs that it was made for."""

    def leak_under(self, beliefs: Any) -> tuple[float, int | None]:
        """A bound on what it tells under others, and the time point that leaks most."""

    def for_audit(self) -> tuple[list[tuple[Any, Any]], int, tuple[int, int] | None] | None:
        """What the exact audit takes (queries with scales, length, secrets), if it can."""


@dataclass(frozen=True)
class Misfit(ResultBase):
    """The level that was promised, and what holds under other beliefs.

    Attributes:
        promised: under the beliefs that the releases were made for.
        bound: under the others, at most; the sweep's, rounded up.
        exact: under the others exactly, rounded up, where the audit knows it; else None.
        node: the time point that may leak most; None if nothing is unknown.
        beliefs: the others, in words …
        each: … and what it tells under each of them, at most.
    """

    promised: float
    bound: float
    exact: float | None
    node: int | None
    beliefs: tuple[str, ...]
    each: tuple[float, ...] = ()

    @property
    def keeps(self) -> bool:
        """Whether the promise is proven under the other beliefs too."""
        return min(self.bound, self.exact or self.bound) <= self.promised * (1 + 2.0**-30)

    def explain(self) -> str:
        """Say it in a few lines."""
        alone = len(self.beliefs) == 1
        others = self.beliefs[0] if alone else f"{len(self.beliefs)} other beliefs"
        lines = [
            f"Made for {self.promised:.6g}; under {others} it tells at most {self.bound:.6g} about "
            "a time point"
            + (f", most about time point {self.node}." if self.node is not None else ".")
        ]
        if not alone:
            lines += [
                f"  {level:.6g} under {belief}"
                for level, belief in zip(self.each, self.beliefs, strict=True)
            ]
        if self.exact is not None:
            lines.append(f"The exact level of this answer there is {self.exact:.6g}.")
        if self.keeps:
            lines.append(f"So the promise holds under {'it' if alone else 'them'} too.")
        else:
            lines.append(
                "If an adversary may believe that, calibrate with both: beliefs=[this, the other]."
            )
        return "\n".join(lines)


def misfit(made: Made, other: Belief | Sequence[Belief]) -> Misfit:
    """Return what a release, a calibration or an account leaks under other beliefs.

    Cost: one sweep per belief, and an exact audit where one is in reach.

    Args:
        made: a `Release`, a `Calibration` or an `Accountant`.
        other: one belief or a list, about the same states; the worst counts.

    Raises:
        InvalidInputError: for anything else, and beliefs about other states.

    >>> from quiltwork.influence import calibrate
    >>> from quiltwork.beliefs import MarkovChain
    >>> made = calibrate(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 100, 1.0)
    >>> found = misfit(made, MarkovChain([[0.95, 0.05], [0.2, 0.8]]))
    >>> round(found.bound, 3), found.keeps
    (2.451, False)
    """
    if not hasattr(made, "leak_under"):
        raise InvalidInputError(
            f"A {type(made).__name__} is neither a Release, a Calibration nor an Accountant; give "
            "one of these."
        )
    members = as_beliefs(other)
    _refuse_other_states(made.states, members)
    told = [made.leak_under([belief]) for belief in members]
    bound, node = max(told, key=lambda one: one[0])
    exact, question = None, made.for_audit()
    if question is not None:
        releases, length, secrets = question
        with suppress(UnsupportedError):
            exact = worst_case(members, length, releases, secrets=secrets).epsilon
    words = tuple(repr(belief) for belief in members)
    most = max(bound, exact or 0.0)
    return Misfit(made.level_kept(), most, exact, node, words, tuple(leak for leak, _ in told))


def _refuse_other_states(known: tuple[Label, ...] | None, members: Sequence[Belief]) -> None:
    for belief in members:
        if known is not None and belief.states is not None and belief.states != known:
            raise InvalidInputError(
                f"This was made for the states {show_labels(known)}, and the other belief is about "
                f"{show_labels(belief.states)}; give one about the same states in the same order."
            )
