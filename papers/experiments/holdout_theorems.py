"""The holdout paper's equations, lemmas and theorems in numbers, and where they are wrong."""

from __future__ import annotations

import math

from papers.registry import Progress, experiment
from papers.result import Findings, Row

_CHAIN = ((0.6, 0.4), (0.4, 0.6))


@experiment(
    "holdout-adversaries",
    title="The leakage to each adversary, and the lemmas that bound it",
    item="holdout-bayesian-dp, equations (3) to (6), Lemmas 2 to 4",
    quick={"rows": 4},
    full={"rows": 6},
)
def adversaries(progress: Progress, rows: int) -> Findings:
    """Randomized response on a short chain, every adversary enumerated."""
    from papers.examples import adversaries as paper
    from quiltwork.beliefs import MarkovChain
    from quiltwork.influence import bayesian_dp

    level = 0.1
    joint = paper.chain_table((0.5, 0.5), _CHAIN, rows)
    kernel = paper.randomized_response((2,) * rows, level)
    everybody = list(paper.adversaries(rows))
    leaks = {}
    for done, (target, known_rows) in enumerate(everybody, start=1):
        leaks[target, known_rows] = paper.leakage(joint, kernel, target, known_rows)
        progress(done, len(everybody))
    chain = MarkovChain(_CHAIN)
    middle = rows // 2
    rest = tuple(row for row in range(rows) if row != middle)
    return Findings(
        "Equation (3) for every adversary of a short chain. An adversary who knows all other rows "
        "learns what differential privacy allows; one who knows none learns more. The lemmas are "
        "above all of them, the tight bound is closer.",
        (
            Row("level of the mechanism, differential privacy", level),
            Row("(3), an adversary who knows all other rows", leaks[middle, rest]),
            Row("(3), an adversary who knows none", leaks[middle, ()]),
            Row("(4), the worst of all adversaries", max(leaks.values())),
            Row("our tight bound", bayesian_dp(chain, level, length=rows)),
            Row("Lemmas 2 to 4", bayesian_dp(chain, level, length=rows, bound="paper")),
            Row("(5), influence on a neighbour", paper.influence(joint, middle, (middle - 1,))),
            Row(
                "(6), the same given the other neighbour",
                paper.influence(joint, middle, (middle - 1,), (middle + 1,)),
            ),
            Row("(6), on a row behind a known neighbour", _separated(joint, middle), 0.0),
        ),
    )


def _separated(joint: object, middle: int) -> float:
    from papers.examples.adversaries import influence

    value = influence(joint, middle, (middle - 2,), (middle - 1,))  # type: ignore[arg-type]
    return round(value, 12)


@experiment(
    "holdout-theorems",
    title="Sample sizes of Theorems 1 to 3 and Lemma 1, with their errors",
    item="holdout-bayesian-dp, Theorems 1 to 3, Lemma 1, equations (7), (8), (31)",
    quick={"finest": 2},
    full={"finest": 4},
)
def theorems(progress: Progress, finest: int) -> Findings:
    """The formulae in an example, their errors, and Theorem 2's rate for chains."""
    from papers.examples.adversaries import (
        lemma_1_rows,
        rows_of_theorem_1,
    )
    from quiltwork.beliefs import Clusters, MarkovChain
    from quiltwork.holdout import plan_holdout
    from quiltwork.holdout.guarantee import max_information
    from quiltwork.holdout.max_information import max_information_of_paper

    tau, beta, m, budget, c = 0.1, 0.05, 100, 5, 0.5
    noise = (1 - c) * tau / (12 * math.log(4 * m / beta))
    part, share = (1 - c) * tau / 4, beta / 2 / m
    printed = rows_of_theorem_1(None, budget, noise, part, share, 1)
    one_cluster = rows_of_theorem_1(Clusters([0] * 250), 1, 17.0, 0.4, 0.05, 250)
    chain, rates = MarkovChain(_CHAIN), []
    for step in range(finest):
        tolerance = 0.1 / 4**step
        sigma = (1 - c) * tolerance / (12 * math.log(4 * m / beta))
        fine = (1 - c) * tolerance / 4
        rows = rows_of_theorem_1(chain, budget, sigma, fine, share, 10**6)
        rate = budget * math.log(1 / tolerance) / tolerance**2 * math.log(m / beta)
        name = f"Theorem 2 for a chain at τ = {tolerance:g}, rows over its rate"
        rates.append(Row(name, rows / rate))
        progress(step + 1, finest)
    epsilon, count = 0.1, 100
    missed = sum(0.5 for coin in (0, 1) if abs(coin - 0.5) >= 0.4)
    counted = plan_holdout(queries=m, overfits=budget, tolerance=tau)
    return Findings(
        "Theorem 1's sample size, and what (31) makes of it by a wrong substitution. For dependent "
        "rows its concentration step fails: one cluster of copies satisfies (8) and always errs. "
        "For chains the rows that Lemmas 2 to 4 ask for grow as Theorem 2 says, whatever the "
        "constants.",
        (
            Row("Theorem 2, rows by (8), independent", math.ceil(printed)),
            Row("the same by (31)", math.ceil(printed), 727_963, note="it substitutes wrongly"),
            Row(
                "Lemma 1 with its constant corrected",
                math.ceil(lemma_1_rows(2, budget, noise, part, share)),
            ),
            Row(
                "our plan, max-information",
                plan_holdout(
                    queries=m, overfits=budget, tolerance=tau, mechanism="max-information"
                ).samples,
            ),
            Row("our plan, counting", counted.samples),
            Row("one cluster of 250 copies, rows by (8)", one_cluster, 248.2),
            Row("how often its mean is off by 0.4 or more", missed, 0.05, note="a copied coin"),
            Row(
                "Theorem 3, bits for ε = 0.1, 100 rows, β = 0.05",
                max_information_of_paper(epsilon, count, 0.05),
            ),
            Row("our constant, bits", max_information(count * epsilon**2, 0.05)),
            *rates,
        ),
    )
