"""Adding the noise: integers in, integers out."""

from __future__ import annotations

import numpy as np

from quiltwork.noise import TwoSidedGeometric, exponential_mechanism
from quiltwork.queries.base import Integers, Query


def draw_answer(query: Query, truth: Integers, law: TwoSidedGeometric) -> tuple[int, ...]:
    """Return the noisy integers, or for the exponential mechanism the index of its choice.

    Scale 0 means that the beliefs need no noise: then the answer is the truth, or the first of
    the largest counts.

    Theorem: docs/theory/query-sensitivity.md
    """
    if query.mechanism == "exponential":
        if law.is_zero:
            return (int(np.argmax(truth)),)
        assert law.scale is not None  # noqa: S101  (plans build laws from scales)
        return (exponential_mechanism([int(u) for u in truth], 1 / law.scale),)
    noise = law.draw(len(truth))
    return tuple(int(t) + int(z) for t, z in zip(truth, noise, strict=True))
