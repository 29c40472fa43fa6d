"""What noise that was made for some beliefs tells under others.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quiltwork.beliefs import Belief
from quiltwork.influence.calibration_arguments import check_states, outlooks
from quiltwork.influence.question import Question


def leak_under(
    beliefs: Belief | Sequence[Belief], question: Question, scale: Fraction
) -> tuple[float, int]:
    """Return a bound on what noise of this scale tells about any secret, and the worst node.

    `scale` is that of the noise on the query's integers. Cost: one sweep per belief.

    Raises:
        InvalidInputError: for beliefs about other states or rows.
    """
    seen = outlooks(beliefs, question.length, None)
    check_states(question.query, [one.belief for one in seen])
    told = [one.told(question, scale) for one in seen]
    leak, answer = max(told, key=lambda one: one[0])
    return leak, answer.node
