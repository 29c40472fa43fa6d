"""The classic experiment: choose features with a holdout, again and again, and see who is fooled.

Labels are ±1 fair coins; attributes are ±1 too, so that a product with the label is a mean over
rows. The analyst keeps features whose tie with the label is strong on the training set and on the
holdout with the same sign, and lets the strongest k of them vote. For simulation only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Clusters
from quiltwork.errors import BudgetExceeded
from quiltwork.holdout.evaluation import Statistic
from quiltwork.holdout.reusable import ReusableHoldout

_CHUNK = 500


@dataclass(frozen=True)
class World:
    """The distribution of the rows of the classic experiment.

    Attributes:
        rows: n, of each set.
        features: d.
        signal: how many features are correlated with the label.
        bias: their correlation with the label.
        shared: the share of a feature's value copied from a common factor of its block of ten.
        copies: the number of equal rows in each cluster.
    """

    rows: int
    features: int
    signal: int = 0
    bias: float = 0.06
    shared: float = 0.0
    copies: int = 1

    def draw(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw a set: one column per feature, the label last; True stands for +1."""
        count = self.rows // self.copies
        label = rng.integers(0, 2, count).astype(bool)
        data = np.empty((count, self.features + 1), dtype=bool)
        for start in range(0, self.features, _CHUNK):
            stop = min(start + _CHUNK, self.features)
            block = rng.integers(0, 2, (count, stop - start), dtype=np.uint8).astype(bool)
            if self.shared:
                factors = rng.integers(0, 2, (count, -(-(stop - start) // 10))).astype(bool)
                taken = rng.random((count, stop - start), dtype=np.float32) < self.shared
                block = np.where(taken, np.repeat(factors, 10, axis=1)[:, : stop - start], block)
            data[:, start:stop] = block
        copied = rng.random((count, self.signal)) < self.bias
        data[:, : self.signal] = np.where(copied, label[:, None], data[:, : self.signal])
        data[:, -1] = label
        return np.repeat(data, self.copies, axis=0)

    @property
    def threshold(self) -> float:
        """Twice 1/√n for n independent rows: 0.04 for a correlation at n = 10,000."""
        return float(2 / np.sqrt(self.rows / self.copies))

    @property
    def noise(self) -> float:
        """An eighth of the threshold, so that an answer's noise is half of it."""
        return self.threshold / 8

    @property
    def beliefs(self) -> Clusters | None:
        """How the rows depend on each other."""
        if self.copies == 1:
            return None
        return Clusters((np.arange(self.rows) // self.copies).tolist())


@dataclass(frozen=True)
class Claims:
    """Accuracies of the vote of k features on three sets of rows.

    Attributes:
        sizes: the numbers k.
        train: on the training set.
        holdout: as the holdout answers.
        fresh: on fresh rows.
        rounds: of the holdout that were spent; 0 for a plain holdout.
    """

    sizes: tuple[int, ...]
    train: tuple[float, ...]
    holdout: tuple[float, ...]
    fresh: tuple[float, ...]
    rounds: int = 0


def run_classic(
    world: World, sizes: Sequence[int], seed: int, budget: int = 2000
) -> tuple[Claims, Claims]:
    """Run the analyst once with a plain holdout and once with a reusable one, on the same rows.

    O(rows·features). The reusable holdout's noise is fresh at every run.
    """
    rng = np.random.default_rng(seed)
    train, held, fresh = (world.draw(rng) for _ in range(3))
    inside = _correlations(train)
    plain = _claims(sizes, inside, _correlations(held), train, held, fresh)
    h = ReusableHoldout(
        train, held, world.beliefs, threshold=world.threshold, noise=world.noise, budget=budget
    )
    correlations = [2 * answer.value - 1 for answer in h.ask_many(_questions(world.features))]
    correlations += [0.0] * (world.features - len(correlations))
    ours = _claims(sizes, inside, np.array(correlations), train, held, fresh, h)
    return plain, ours


def _agreement(data: NDArray[np.bool_], start: int, stop: int) -> NDArray[np.bool_]:
    return np.asarray(data[:, start:stop] == data[:, -1:])


def _questions(features: int) -> list[Statistic]:
    def about(start: int, stop: int) -> Statistic:
        return lambda data: _agreement(data, start, stop)

    return [about(a, min(a + _CHUNK, features)) for a in range(0, features, _CHUNK)]


def _correlations(data: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return each feature's correlation with the label."""
    features = data.shape[1] - 1
    parts = [
        _agreement(data, a, min(a + _CHUNK, features)).mean(axis=0)
        for a in range(0, features, _CHUNK)
    ]
    return 2 * np.concatenate(parts) - 1


def _claims(
    sizes: Sequence[int],
    inside: NDArray[np.float64],
    outside: NDArray[np.float64],
    train: NDArray[np.bool_],
    held: NDArray[np.bool_],
    fresh: NDArray[np.bool_],
    holdout: ReusableHoldout | None = None,
) -> Claims:
    edge = 1 / np.sqrt(len(train))
    kept = (np.abs(inside) >= edge) & (np.abs(outside) >= edge) & (inside * outside > 0)
    order = np.argsort(-np.where(kept, np.abs(inside), 0))[: int(kept.sum())]
    rows: list[tuple[float, float, float]] = []
    for size in sizes:
        chosen = order[:size]
        straight = inside[chosen] > 0

        def right(
            data: NDArray[np.bool_],
            chosen: NDArray[np.int64] = chosen,
            straight: NDArray[np.bool_] = straight,
        ) -> NDArray[np.bool_]:
            votes = 2 * (data[:, chosen] == straight).sum(axis=1) >= len(chosen)
            return np.asarray(votes == data[:, -1])

        claimed = float(right(held).mean()) if holdout is None else _answer(holdout, right)
        rows.append((float(right(train).mean()), claimed, float(right(fresh).mean())))
    first, second, third = zip(*rows, strict=True)
    spent = 0 if holdout is None else holdout.budget - holdout.remaining
    return Claims(tuple(sizes), first, second, third, spent)


def _answer(holdout: ReusableHoldout, right: Statistic) -> float:
    try:
        return holdout.ask(right).value
    except BudgetExceeded:
        return float("nan")
