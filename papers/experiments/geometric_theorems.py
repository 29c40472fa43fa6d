"""The counts paper's Theorem 6.1, Proposition 6.2 and footnote 4, by linear programs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from papers.registry import Progress, experiment, tracked
from papers.result import Findings, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

_SLACK = 1e-9


@experiment(
    "geometric-theorem-6-1",
    title="Only the geometric mechanism is optimal for every consumer",
    item="geometric-mechanism, Theorem 6.1",
    quick={"largest": 3},
    full={"largest": 6},
)
def uniqueness(progress: Progress, largest: int) -> Findings:
    """Uniform prior and binary loss: the range of each entry over all optimal mechanisms."""
    import numpy as np

    from quiltwork.counts import GeometricMechanism

    rows = []
    for n in tracked(progress, range(1, largest + 1)):
        exact = GeometricMechanism(n, alpha=Fraction(1, 2)).matrix(exact=True)
        ends = _optima(n, 0.5)
        off = float(np.abs(ends - np.array(exact, dtype=float)).max())
        rows.append(Row(f"n = {n}, α = 1/2: how far any optimum is from G", round(off, 7), 0.0))
    flat = _optima(1, 1.0)
    rows.append(
        Row(
            "n = 1, α = 1: how far optima are from one another",
            round(float((flat[1] - flat[0]).max()), 7),
            0.0,
            note="the theorem fails there: every constant answer serves as well",
        )
    )
    return Findings(
        "A consumer with a uniform prior and binary loss has no optimum but G, so a mechanism that "
        "is optimal for every consumer is G up to a permutation of its answers. For α = 1, which "
        "the theorem includes, that is false.",
        tuple(rows),
    )


def _optima(n: int, alpha: float) -> Any:
    """Return the least and the largest value of every entry over the witness's optima."""
    import numpy as np
    from scipy.optimize import linprog

    size = n + 1
    private, full = _constraints([(i, i + 1) for i in range(n)], size, size, alpha)
    trace = -np.eye(size).ravel()
    best = linprog(trace, A_ub=private, b_ub=np.zeros(len(private)), A_eq=full, b_eq=np.ones(size))
    held = np.vstack([private, trace])
    limits = [*np.zeros(len(private)), best.fun + _SLACK / 100]
    ends = [
        sign * linprog(sign * entry, A_ub=held, b_ub=limits, A_eq=full, b_eq=np.ones(size)).fun
        for sign in (1, -1)
        for entry in np.eye(size * size)
    ]
    return np.array(ends).reshape(2, size, size)


def _constraints(
    neighbours: Sequence[tuple[int, int]], inputs: int, answers: int, alpha: float
) -> tuple[Any, Any]:
    """Return the rows of α·x_d ≤ x_d' for neighbours, and of probabilities that add up to 1."""
    import numpy as np

    private = []
    for first, second in neighbours:
        for (a, b), r in product(((first, second), (second, first)), range(answers)):
            row = np.zeros((inputs, answers))
            row[a, r], row[b, r] = alpha, -1
            private.append(row.ravel())
    return np.array(private), np.kron(np.eye(inputs), np.ones(answers))


@experiment(
    "geometric-proposition-6-2",
    title="With priors over counts, mechanisms that see only counts are optimal",
    item="geometric-mechanism, Proposition 6.2 and equation (9)",
    quick={"consumers": 4},
    full={"consumers": 40},
)
def obliviousness(progress: Progress, consumers: int) -> Findings:
    """Compare equation (9) over all mechanisms on three rows of a bit and over those on counts."""
    import numpy as np

    from papers.examples.databases import count_of, databases, neighbours

    all_databases = databases((0, 1), 3)
    counts = [count_of(database, bool) for database in all_databases]
    draw, difference, checked = np.random.default_rng(62), 0.0, 0
    for _ in tracked(progress, range(consumers)):
        prior = draw.dirichlet(np.ones(4))
        steps = np.cumsum(draw.random((4, 4)), axis=1)
        loss = np.array([[steps[i, abs(i - r)] * (i != r) for r in range(4)] for i in range(4)])
        alpha = float(draw.uniform(0.1, 0.9))
        by_databases = _worst_case(prior, loss, counts, neighbours(all_databases), alpha)
        by_counts = _worst_case(prior, loss, list(range(4)), [(0, 1), (1, 2), (2, 3)], alpha)
        difference, checked = max(difference, abs(by_databases - by_counts)), checked + 1
    return Findings(
        "The least worst-case loss over priors about databases that induce a prior about counts is "
        "the same whether a mechanism sees the whole database or only the count. Random "
        "priors, monotone losses and levels.",
        (
            Row("consumers", checked),
            Row("largest difference of the two programs", round(difference, 7), 0.0),
        ),
    )


def _worst_case(
    prior: Any, loss: Any, counts: Sequence[int], pairs: Sequence[tuple[int, int]], alpha: float
) -> float:
    """Return the least value of (9): Σ_i p_i·max over databases d of count i of their loss."""
    import numpy as np
    from scipy.optimize import linprog

    inputs, answers = len(counts), loss.shape[1]
    private, full = _constraints(pairs, inputs, answers, alpha)
    size = inputs * answers
    worst = np.zeros((inputs, size + len(prior)))
    for d, count in enumerate(counts):
        worst[d, d * answers : (d + 1) * answers] = loss[count]
        worst[d, size + count] = -1
    wide = np.vstack([np.pad(private, ((0, 0), (0, len(prior)))), worst])
    program = linprog(
        [*np.zeros(size), *prior],
        A_ub=wide,
        b_ub=np.zeros(len(wide)),
        A_eq=np.pad(full, ((0, 0), (0, len(prior)))),
        b_eq=np.ones(inputs),
    )
    return float(program.fun)


@experiment(
    "geometric-footnote-4",
    title="A vertex that no remap of the geometric mechanism gives",
    item="geometric-mechanism, footnote 4",
)
def footnote_4(progress: Progress) -> Findings:
    """n = 2, α = 1/2: its rank among the tight constraints, its derivation, what is better."""
    import numpy as np

    from quiltwork.counts import GeometricMechanism, derive
    from quiltwork.counts.optimality.exact_matrix import compose, deterministic

    alpha = Fraction(1, 2)
    near, far = 1 / (1 + alpha), alpha / (1 + alpha)
    vertex = [[near, Fraction(0), far], [far, Fraction(0), near], [near, Fraction(0), far]]
    private, full = _constraints([(0, 1), (1, 2)], 3, 3, float(alpha))
    flat = np.array(vertex, dtype=float).ravel()
    zeros = np.eye(9)[flat == 0]
    tight = np.vstack([private[np.abs(private @ flat) < 1e-12], full, zeros])
    remap = derive(vertex, alpha)
    geometric = GeometricMechanism(2, alpha=alpha).matrix(exact=True).tolist()
    better = compose(geometric, deterministic((0, 2, 2)))
    return Findings(
        "The mechanism with rows (2/3, 0, 1/3), (1/3, 0, 2/3) and the first again is a vertex of "
        "the private ones and no remap of G. The remap 0, 2, 2 has its rows 0 and 1 and answers "
        "count 2 better, so no consumer with a strictly monotone loss wants the vertex.",
        (
            Row(
                "independent constraints that are tight, of 9", int(np.linalg.matrix_rank(tight)), 9
            ),
            Row("largest violation of privacy", float(max((private @ flat).max(), 0.0)), 0.0),
            Row("whether a remap of G gives it", str(remap.derivable), "False"),
            Row("least entry of the only y with x = y∘G", str(min(map(min, remap.remap)))),
            Row(
                "rows 0 and 1 of the remap 0, 2, 2 that are its own",
                2 - sum(a != b for a, b in zip(vertex[:2], better[:2], strict=True)),
                2,
            ),
            Row("count 2 is answered right, vertex", str(vertex[2][2])),
            Row("count 2 is answered right, remap 0, 2, 2", str(better[2][2])),
        ),
    )
