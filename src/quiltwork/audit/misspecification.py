"""Misspecification: the leakage of releases if an adversary holds other beliefs than assumed.

A guarantee holds under the beliefs it was calibrated for. Under other beliefs the same noise has
another level: the sweep bounds it, and for one query on chains the audit computes it exactly.

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
from quiltwork.wording import either

_ROUNDING = 1 + 2.0**-30
"""Bounds are rounded up: a level that equals the promise may come out above it by so much."""


class LeakageSource(Protocol):
    """A release, calibration or account whose leakage can be bounded under any beliefs."""

    @property
    def states(self) -> tuple[Label, ...] | None:
        """The states it is about; None if it does not record them."""

    def level_kept(self) -> float:
        """The level promised under the beliefs it was made for."""

    def leak_under(self, beliefs: Any) -> tuple[float, int | None]:
        """A bound on the leakage under other beliefs, and the time point that leaks the most."""

    def for_audit(self) -> tuple[list[tuple[Any, Any]], int, tuple[int, int] | None] | None:
        """Queries with scales, length and secrets for the exact audit; None if it cannot do it."""


@dataclass(frozen=True)
class Misspecification(ResultBase):
    """The level that was promised, and the leakage under other beliefs.

    Attributes:
        promised: the level under the beliefs that the noise was made for.
        bound: an upper bound on the leakage under the others, by the sweep; rounded up.
        exact: the exact leakage under the others, rounded up, where the audit can compute it.
        node: the time point that may leak the most; None if nothing is unknown.
        beliefs: the other beliefs, in words.
        each: an upper bound on the leakage under each of them.
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
        return min(self.bound, self.exact or self.bound) <= self.promised * _ROUNDING

    def explain(self) -> str:
        """State promise, bounds and conclusion in a few lines."""
        alone = len(self.beliefs) == 1
        others = "the other belief" if alone else f"{len(self.beliefs)} other beliefs"
        worst = f", most about time point {self.node:,}" if self.node is not None else ""
        lines = [
            f"Promised: {self.promised:.6g}. Under {others} the leakage about a time point is at "
            f"most {self.bound:.6g}{worst}."
        ]
        if alone:
            lines[0] += f" The other belief: {self.beliefs[0]}."
        else:
            lines += [
                f"  {level:.6g} under {belief}"
                for level, belief in zip(self.each, self.beliefs, strict=True)
            ]
        if self.exact is not None:
            lines.append(f"The exact leakage of this answer there is {self.exact:.6g}.")
        if self.keeps:
            lines.append(f"So the promise holds under {'it' if alone else 'them'} too.")
        else:
            both = either("beliefs=[this, the other]", "--belief THIS --belief OTHER")
            lines.append(f"If an adversary may believe that, calibrate with both: {both}.")
        return "\n".join(lines)


def misspecification(release: LeakageSource, others: Belief | Sequence[Belief]) -> Misspecification:
    """Return the leakage of a release, a calibration or an account under other beliefs.

    Cost: one sweep per belief, and an exact audit where its law is small enough.

    Args:
        release: a `Release`, a `Calibration` or an `Accountant`.
        others: one belief or a list, about the same states; the worst counts.

    Raises:
        InvalidInputError: for anything else, and for beliefs about other states.

    >>> from quiltwork.influence import calibrate
    >>> from quiltwork.beliefs import MarkovChain
    >>> calibration = calibrate(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 100, 1.0)
    >>> wrong = misspecification(calibration, MarkovChain([[0.95, 0.05], [0.2, 0.8]]))
    >>> round(wrong.bound, 3), wrong.keeps
    (2.451, False)
    """
    if not hasattr(release, "leak_under"):
        raise InvalidInputError(
            f"A {type(release).__name__} is neither a Release, a Calibration nor an Accountant; "
            "give one of these."
        )
    members = as_beliefs(others)
    _require_same_states(release.states, members)
    bounds = [release.leak_under([belief]) for belief in members]
    bound, node = max(bounds, key=lambda level_and_node: level_and_node[0])
    exact, arguments = None, release.for_audit()
    if arguments is not None:
        releases, length, secrets = arguments
        with suppress(UnsupportedError):
            exact = worst_case(members, length, releases, secrets=secrets).epsilon
    return Misspecification(
        promised=release.level_kept(),
        bound=max(bound, exact or 0.0),
        exact=exact,
        node=node,
        beliefs=tuple(belief.summary() for belief in members),
        each=tuple(level for level, _ in bounds),
    )


def _require_same_states(states: tuple[Label, ...] | None, members: Sequence[Belief]) -> None:
    for belief in members:
        if states is not None and belief.states is not None and belief.states != states:
            raise InvalidInputError(
                f"This was made for the states {show_labels(states)}, and the other belief is "
                f"about {show_labels(belief.states)}; give one about the same states in the same "
                "order."
            )
