"""Where in the day series begin: beliefs with phases, turned to the phases that occur.

When a series begins is public, as its length is. A cyclic belief says what happens by the phase
of the clock; for a series that begins φ phases later than the belief it is the belief turned by φ
(`CyclicChain.starting`), which has the same law at every moment.

Theorem: docs/theory/cyclic-chains.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quiltwork.beliefs.base import Belief
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.errors import InvalidInputError


def placed(beliefs: Sequence[Belief], sequences: Iterable[Any]) -> tuple[Belief, ...]:
    """Turn beliefs about days to every phase in which a sequence is known to begin.

    Noise that is enough for each of the beliefs returned is enough for every subject: under the
    belief given, a subject that begins φ phases later has the law of the belief turned by φ, which
    is in the list; the other subjects are independent of it, so what they add to a pooled answer
    is noise, and a mixture of ratios is at most the largest of them. Other beliefs stay, and so do
    those with a start of their own, which is that of one phase.

    >>> day = CyclicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]])
    >>> placed([day], [[0, 1, 1]]) == (day,)
    True

    Theorem: docs/theory/cyclic-chains.md
    """
    data = list(sequences)
    found: dict[Belief, None] = {}
    for belief in beliefs:
        if isinstance(belief, CyclicChain) and isinstance(belief.initial, str):
            phases = sorted({belief.phases_before(one) for one in data})
            found.update((belief.starting(phase), None) for phase in phases)
        else:
            found[belief] = None
    return tuple(found)


def refuse_misplaced(beliefs: Sequence[Belief], sequences: Iterable[Any]) -> None:
    """Refuse sequences that begin in a phase for which a belief is not among those given.

    Raises:
        InvalidInputError: naming the phase and what to give instead.
    """
    data = list(sequences)
    for belief in beliefs:
        if not isinstance(belief, CyclicChain):
            continue
        for later in sorted({belief.phases_before(one) for one in data} - {0}):
            if not isinstance(belief.initial, str):
                raise InvalidInputError(
                    f"Data begin {later} of {belief.period} phases later than this belief, which "
                    "has a start of its own, that of its first phase; make one with the "
                    "distribution of the other phase, or with initial='stationary'."
                )
            if belief.starting(later) not in beliefs:
                raise InvalidInputError(
                    f"Data begin {later} of {belief.period} phases later than this belief, and the "
                    "beliefs of a ledger are fixed; register the data with its "
                    f"starting({later}), for several phases with a list of one for each "
                    "(quiltwork belief turn writes them)."
                )
