from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from papers.examples import databases
from quiltwork.counts.consumers.loss_functions import parse_loss
from tests.counts.oracle import is_private, priors

HALF = Fraction(1, 2)


def private_on_databases(raw, pairs, alpha):
    """Mix with uniform answers until all neighbouring databases keep α."""
    width = len(raw[0])
    violation = max(
        max(alpha * a - b, alpha * b - a, Fraction(0))
        for i, j in pairs
        for a, b in zip(raw[i], raw[j], strict=True)
    )
    share = violation * width / ((1 - alpha) + violation * width)
    return [[(1 - share) * entry + share / width for entry in row] for row in raw]


def average_over_databases(mechanism, predicate):
    """The mechanism of Proposition 6.2: row i averages the databases of count i."""
    groups = {}
    for database, row in mechanism.items():
        groups.setdefault(databases.count_of(database, predicate), []).append(row)
    return [
        [sum(column, Fraction(0)) / len(groups[i]) for column in zip(*groups[i], strict=True)]
        for i in sorted(groups)
    ]


def worst_case_loss(mechanism, prior, loss, predicate):
    """Objective (9): each count's weight on the database of that count that suffers most."""
    worst = [Fraction(0)] * len(prior)
    for database, row in mechanism.items():
        i = databases.count_of(database, predicate)
        worst[i] = max(worst[i], sum(x * loss.exact(i, r) for r, x in enumerate(row)))
    return sum(p * w for p, w in zip(prior, worst, strict=True))


@pytest.mark.parametrize(("domain", "rows"), [((0, 1), 3), (("a", "b", "c"), 2)])
@settings(max_examples=15)
@given(st.data())
def test_averaging_keeps_privacy_and_the_worst_case(domain, rows, data):
    """Proposition 6.2 on random mechanisms over all databases."""
    everything = databases.databases(domain, rows)
    pairs = databases.neighbours(everything)
    raw = [data.draw(priors(rows)) for _ in everything]
    table = private_on_databases(raw, pairs, HALF)
    mechanism = dict(zip(everything, table, strict=True))

    def predicate(row):
        return row in (1, "b", "c")

    averaged = average_over_databases(mechanism, predicate)
    assert is_private(averaged, HALF)
    prior = data.draw(priors(rows))
    loss = data.draw(st.sampled_from([parse_loss("absolute"), parse_loss("binary")]))
    worst = worst_case_loss(mechanism, prior, loss, predicate)
    spread = {d: averaged[databases.count_of(d, predicate)] for d in everything}
    assert worst_case_loss(spread, prior, loss, predicate) <= worst
    direct = sum(
        prior[i] * averaged[i][r] * loss.exact(i, r)
        for i in range(rows + 1)
        for r in range(rows + 1)
    )
    assert worst_case_loss(spread, prior, loss, predicate) == direct


def test_neighbours_differ_in_one_row():
    everything = databases.databases((0, 1), 3)
    assert len(databases.neighbours(everything)) == 12


def best_for(prior, loss):
    """The optimum over all mechanisms on databases of three bits, from SciPy alone."""
    everything = databases.databases((0, 1), 3)
    costs = np.array(
        [[float(prior.get(d, 0)) * float(loss(sum(d), r)) for r in range(4)] for d in everything]
    )
    rows = []
    for i, j in databases.neighbours(everything):
        for r in range(4):
            for a, b in ((i, j), (j, i)):
                row = np.zeros((8, 4))
                row[a, r], row[b, r] = 0.5, -1
                rows.append(row.ravel())
    sums = np.kron(np.eye(8), np.ones((1, 4)))
    result = linprog(costs.ravel(), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(8))
    return result.fun, dict(zip(everything, result.x.reshape(8, 4), strict=True))


@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_figure_4_is_the_first_consumers_optimum(delta):
    prior = databases.database_prior(Fraction(1, 10), swapped=False)
    value, found = best_for(prior, lambda i, r: abs(i - r) ** (1 - delta) if i != r else 0)
    for database, row in databases.FIGURE_4.items():
        assert np.allclose(found[database], [float(row.get(r, 0)) for r in range(4)], atol=1e-7)
    attained = sum(
        p * sum(x * abs(sum(d) - r) for r, x in databases.FIGURE_4[d].items())
        for d, p in prior.items()
    )
    assert attained == Fraction(77, 240)
    assert value == pytest.approx(77 / 240, abs=1e-9)


def test_no_mechanism_serves_both_consumers():
    """Theorem 6.3: exact lower bounds; the first is attained by Figure 4."""
    found = databases.no_common_optimum()
    assert found.alone == Fraction(77, 240)
    assert found.excess == Fraction(1, 40)


def test_the_second_consumer_is_the_first_with_two_rows_swapped():
    first = databases.database_prior(Fraction(1, 10), swapped=False)
    second = databases.database_prior(Fraction(1, 10), swapped=True)
    assert sum(first.values()) == sum(second.values()) == 1
    assert second[1, 0, 1] == first[0, 1, 1]


@settings(max_examples=40)
@given(st.lists(st.fractions(0, 1, max_denominator=20), min_size=4, max_size=4))
def test_figure_5_serves_both_and_is_never_private(deltas):
    rows = databases.figure_5(deltas)
    swap = {(1, 0, 0): (0, 1, 0), (0, 1, 0): (1, 0, 0), (1, 0, 1): (0, 1, 1), (0, 1, 1): (1, 0, 1)}
    for database, (el, em, en, oh) in rows.items():
        assert el + em + en + oh == 1
        assert el + en == databases.FIGURE_4[database][1]
        assert el + oh == databases.FIGURE_4[swap[database]][1]
    forced = all(
        4 * a >= b and 4 * b >= a
        for one, two in (((1, 0, 0), (0, 1, 0)), ((1, 0, 1), (0, 1, 1)))
        for a, b in zip(rows[one], rows[two], strict=True)
    )
    assert forced is (deltas == [1] * 4)
    neighbours = zip(rows[1, 0, 0], rows[1, 0, 1], strict=True)
    assert not (forced and all(2 * a >= b and 2 * b >= a for a, b in neighbours))


def test_the_contradiction_is_the_papers():
    assert databases.figure_5_contradiction() == (Fraction(7, 12), Fraction(1, 6))
