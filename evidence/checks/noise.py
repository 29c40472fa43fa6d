"""The sampler's tables multiply to the exact law, and its draws follow it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from quiltwork.noise import RoundedGaussian, TwoSidedGeometric
from quiltwork.noise.finite_law import SamplingTable
from quiltwork.noise.geometric import build_sampler

NAME = "noise"
CLAIM = (
    "two-sided geometric noise has exactly its law: in fractions from the tables, and drawn; "
    "rounded Gaussian noise is drawn from its law"
)

SCALES = (Fraction(1, 3), Fraction(3, 2), Fraction(5), Fraction(12934051, 10**6), Fraction(1000))
REJECT = 1e-9
Law = type[TwoSidedGeometric] | type[RoundedGaussian]


def check(cases: int, draws: int, progress=lambda done, total: None) -> dict[str, object]:
    """Raise at the first table that is off, or a test of draws that lacks its power."""
    simulated = np.random.default_rng(7)
    entries = 0
    for case in range(cases):
        denominator = int(simulated.integers(2, 201))
        alpha = Fraction(int(simulated.integers(1, denominator)), denominator)
        word_bits, digit_bits = int(simulated.integers(2, 9)), int(simulated.integers(1, 4))
        entries += exact_law(alpha, word_bits, digit_bits)
        progress(case + 1, cases + 2 * len(SCALES))
    p_values: dict[str, dict[str, float]] = {}
    for done, (law, scale) in enumerate(product((TwoSidedGeometric, RoundedGaussian), SCALES), 1):
        fitting = drawn_from(law, scale, draws)
        p_values.setdefault(law.__name__, {})[str(scale)] = round(fitting, 4)
        progress(cases + done, cases + 2 * len(SCALES))
    return {
        "random alphas": cases,
        "probabilities equal in fractions": entries,
        "draws per scale": draws,
        **{f"p-values by scale, {name}": found for name, found in p_values.items()},
        "scales off by 1 % rejected": 2 * len(SCALES),
        "violations": 0,
    }


def drawn_from(law: Law, scale: Fraction, draws: int) -> float:
    """The p-value of draws from their own law; one that is off by 1 % must be rejected."""
    drawn = law.from_scale(scale).draw(draws)
    fitting = p_value(drawn, law.from_scale(scale))
    wrong = p_value(drawn, law.from_scale(scale * Fraction(101, 100)))
    assert fitting > REJECT, f"scale {scale}: p = {fitting}"
    assert wrong < REJECT, f"scale {scale}: a scale off by 1 % is not rejected, p = {wrong}"
    return fitting


def run(progress) -> dict[str, object]:
    return check(2_000, 20_000_000, progress)


def exact_law(alpha: Fraction, word_bits: int, digit_bits: int) -> int:
    """Compare every probability that the tables give with (1−α)/(1+α)·α^|z|; how many."""
    sampler = build_sampler(TwoSidedGeometric.from_alpha(alpha), word_bits, digit_bits)
    magnitude, excess = probabilities(sampler.magnitude), probabilities(sampler.excess)
    low = {0: Fraction(1)}
    for place, table in sampler.digits:
        low = {
            value + place * digit: p * q
            for (value, p), (digit, q) in product(low.items(), enumerate(probabilities(table)))
        }
    assert sorted(low) == list(range(sampler.place))
    last = len(magnitude) - 1
    reached = {0: magnitude[0]}
    for value, p in low.items():
        for outcome in range(1, last):
            reached[1 + value + sampler.place * (outcome - 1)] = p * magnitude[outcome] / 2
        for beyond, q in enumerate(excess[:-1]):
            at = 1 + value + sampler.place * (last - 1 + beyond)
            reached[at] = p * magnitude[last] * q / 2
    for z, probability in reached.items():
        assert probability == (1 - alpha) / (1 + alpha) * alpha**z, (alpha, z)
    return len(reached)


def probabilities(table: SamplingTable) -> list[Fraction]:
    """The exact probabilities of a table's outcomes."""
    thresholds = table.thresholds
    assert thresholds.exact is not None
    edges = [Fraction(0), *map(thresholds.exact, range(thresholds.count)), Fraction(1)]
    return [high - low for low, high in pairwise(edges)]


def p_value(draws: np.ndarray, law: TwoSidedGeometric | RoundedGaussian) -> float:
    """Pearson's chi-square over about a hundred cells of equal width."""
    from scipy import stats

    edge = law.quantile(0.999)
    width = max(1, (2 * edge + 1) // 101)
    cells = -(-(2 * edge + 1) // width)
    each = np.array([law.probability(z) for z in range(-edge, -edge + cells * width)])
    inside = each.reshape(cells, width).sum(axis=1)
    below = law.tail(edge) / 2
    expected = np.concatenate([[below], inside, [1 - below - inside.sum()]]) * len(draws)
    index = np.clip((draws + edge) // width, -1, cells) + 1
    counts = np.bincount(index, minlength=cells + 2)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, len(expected) - 1))
