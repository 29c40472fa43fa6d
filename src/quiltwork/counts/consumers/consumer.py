"""A consumer: what it believes about the count, and what a wrong answer costs it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.arguments import listed
from quiltwork.counts.consumers.losses import FloatArray, Loss, MatrixLoss, read_loss
from quiltwork.counts.consumers.priors import read_fractions, read_probabilities
from quiltwork.counts.consumers.universality import Universality, universality
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer


@dataclass(frozen=True, init=False, eq=False)
class Consumer:
    """A prior over 0..n and a loss l(count, answer).

    Args:
        prior: n + 1 probabilities, "uniform", a SciPy distribution (conditioned on 0..n),
            `ChainCounts(chain, state)`, or any object with `probabilities(n)`.
        loss: "absolute", "squared", "binary", "power:Q", "asymmetric:UNDER:OVER", a matrix, a
            function of (count, answer), or a loss from `quiltwork.counts.consumers.losses`.

    >>> user = Consumer([0.5, 0, 0, 0.5], loss="binary")
    >>> user.probabilities(3).tolist()
    [0.5, 0.0, 0.0, 0.5]
    """

    prior: Any
    loss: Loss

    def __init__(self, prior: Any = "uniform", loss: Any = "absolute") -> None:
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "loss", read_loss(loss))
        if isinstance(prior, str):
            read_probabilities(prior, 1)
        elif isinstance(prior, (list, tuple, np.ndarray)):
            read_probabilities(prior, len(listed(prior, "prior")) - 1)

    def probabilities(self, n: int) -> FloatArray:
        """Return the prior over 0..n."""
        self._check_size(n)
        return read_probabilities(self.prior, n)

    def fractions(self, n: int) -> list[Fraction]:
        """Return the prior over 0..n in exact fractions that add up to 1."""
        self._check_size(n)
        return read_fractions(self.prior, n)

    def universality(self, n: int) -> Universality:
        """Say whether the remapped geometric mechanism is proven optimal for this loss."""
        self._check_size(n)
        return universality(self.loss, n)

    def _check_size(self, n: int) -> None:
        integer(n, "n", 1)
        if isinstance(self.loss, MatrixLoss) and self.loss.n != n:
            raise InvalidInputError(
                f"The loss matrix covers counts 0..{self.loss.n}; the mechanism has n = {n}."
            )
