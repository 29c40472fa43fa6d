"""The optimal mechanism for a chain: private by enumeration, optimal by an independent program."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import quiltwork as qw
from evidence import leakage as enumerated
from evidence.checks.audit_enumeration import random_chain
from quiltwork import queries
from quiltwork.counts.consumers.consumer import ChainCounts

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
USER = qw.Consumer(ChainCounts(CHAIN, 1))


def leakage_of(table, chain, length, query) -> float:
    """The level of a mechanism on the count, path by path."""
    paths = enumerated.all_paths(chain, length)
    counts = enumerated.answers(query, chain.states, paths[0])[:, 0]
    return enumerated.table_leakage(paths, table[counts], range(1, length + 1))


def dense_optimum(chain, length, query, user, epsilon, cap) -> float:
    """The whole program at once, with laws by enumeration and all rows written out."""
    rows, weight = enumerated.all_paths(chain, length)
    counts = enumerated.answers(query, chain.states, rows)[:, 0]
    start, stop = query.window(length)
    n = stop - start + 1
    limits = []
    for node in range(length):
        laws = [
            np.bincount(counts[rows[:, node] == a], weight[rows[:, node] == a], minlength=n + 1)
            for a in np.unique(rows[:, node])
        ]
        laws = [law / law.sum() for law in laws]
        limits += [a - math.exp(epsilon) * b for a in laws for b in laws if a is not b]
    if cap is not None:
        for c in range(n):
            for one, other in ((c, c + 1), (c + 1, c)):
                row = np.zeros(n + 1)
                row[one], row[other] = 1, -math.exp(cap)
                limits.append(row)
    answers = np.arange(n + 1)
    cost = user.probabilities(n)[:, None] * np.abs(answers[:, None] - answers)
    constraints = [np.kron(row, np.eye(n + 1)[r]) for row in limits for r in range(n + 1)]
    sums = np.kron(np.eye(n + 1), np.ones(n + 1))
    return linprog(
        cost.ravel(),
        A_ub=np.array(constraints) if constraints else None,
        b_ub=np.zeros(len(constraints)) if constraints else None,
        A_eq=sums,
        b_eq=np.ones(n + 1),
    ).fun


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cap", [None, 1.5])
def test_it_is_private_by_enumeration_and_optimal_by_a_dense_program(seed, cap):
    draw = np.random.default_rng(seed)
    chain, length = random_chain(draw), int(draw.integers(2, 6))
    query = queries.count(int(draw.integers(chain.size)))
    if seed % 3 == 0:
        query = query.on(2, length)
    user = qw.Consumer()
    found = qw.optimal_for_chain(chain, length, 1, user, query, cap)
    assert leakage_of(found.matrix, chain, length, query) <= 1 + 1e-9
    best = dense_optimum(chain, length, query, user, 1, cap)
    assert found.expected_loss == pytest.approx(best, abs=1e-6)
    assert found.certificate.lower_bound <= best + 1e-6
    if cap is not None:
        ratios = found.matrix[:-1] / found.matrix[1:]
        assert np.abs(np.log(ratios)).max() <= cap + 1e-9


@pytest.mark.parametrize(("cap", "loss"), [(None, 0.401), (2, 0.63), (1, 1.06)])
def test_the_worked_example(cap, loss):
    found = qw.optimal_for_chain(CHAIN, 30, 1, USER, queries.count(1), cap)
    assert found.expected_loss == pytest.approx(loss, abs=0.005)
    assert found.geometric_loss == pytest.approx(2.15, abs=0.005)
    assert found.expected_loss - found.certificate.lower_bound < 1e-5
    assert found.leakage() <= 1 + 1e-12
    other = qw.MarkovChain([[0.92, 0.08], [0.42, 0.58]], initial=[0.8, 0.2])
    assert found.leakage(other) > 1.2


def test_two_runs_without_a_cap_tell_far_more_than_twice_epsilon():
    found = qw.optimal_for_chain(CHAIN, 30, 1, USER, queries.count(1))
    twice = np.einsum("cr,cs->crs", found.matrix, found.matrix).reshape(31, -1)
    from quiltwork.counts.chains.chain_program import table_leakage

    assert table_leakage(CHAIN, 30, queries.count(1), twice) > 10


def test_the_certificate_is_about_the_table_that_is_drawn_from():
    found = qw.optimal_for_chain(CHAIN, 8, 1, qw.Consumer(), queries.count(1), dp_epsilon=2)
    assert all(sum(row) == 1 and min(row) >= 0 for row in found.exact)
    paths = enumerated.all_paths(CHAIN, 8)
    counts = enumerated.answers(queries.count(1), CHAIN.states, paths[0])[:, 0]
    weight = [Fraction(float(w)) for w in paths[1]]
    e_up = Fraction(math.nextafter(math.e, 3))
    for node in range(8):
        law = {}
        for a in (0, 1):
            chosen = [j for j in range(len(weight)) if paths[0][j, node] == a]
            whole = sum(weight[j] for j in chosen)
            law[a] = [
                sum(weight[j] * found.exact[counts[j]][r] for j in chosen) / whole for r in range(9)
            ]
        for r in range(9):
            assert law[0][r] <= e_up * law[1][r]
            assert law[1][r] <= e_up * law[0][r]


def test_a_set_of_beliefs_is_covered():
    other = qw.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    alone = qw.optimal_for_chain(CHAIN, 10, 1, qw.Consumer(), queries.count(1))
    both = qw.optimal_for_chain([CHAIN, other], 10, 1, qw.Consumer(), queries.count(1))
    assert alone.leakage(other) > 1.01
    assert both.leakage(CHAIN) <= 1 + 1e-9
    assert both.leakage(other) <= 1 + 1e-9
    assert both.expected_loss > alone.expected_loss


def test_a_ledger_prices_it_by_its_cap_and_refuses_company_without_one(tmp_path):
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("capped", CHAIN, 10, 50)
    capped = qw.optimal_for_chain(CHAIN, 10, 1, qw.Consumer(), queries.count(1), dp_epsilon=2)
    assert 0 <= capped.release(4, ledger, "capped", key="a") <= 10
    assert capped.release(4, ledger, "capped", key="a") == capped.release(
        9, ledger, "capped", key="a"
    )
    assert ledger.history("capped")[0].spending.dp_epsilon == 2
    ledger.create("alone", CHAIN, 10, 50)
    free = qw.optimal_for_chain(CHAIN, 10, 1, qw.Consumer(), queries.count(1))
    free.release(4, ledger, "alone")
    with pytest.raises(qw.QuiltworkError):
        capped.release(4, ledger, "alone")


def test_a_chain_without_secrets_gets_the_exact_answer():
    sure = qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    found = qw.optimal_for_chain(sure, 6, 1, qw.Consumer(), queries.count(1))
    assert found.expected_loss == pytest.approx(0, abs=1e-9)
    assert found.leakage() == 0


def test_it_says_what_it_trusts():
    found = qw.optimal_for_chain(CHAIN, 6, 1, qw.Consumer(), queries.count(1))
    assert "nothing else may be released" in found.explain()
    assert '"quiltwork/chain-mechanism"' in found.to_json()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": queries.histogram()}, "count of one state"),
        ({"length": 200}, "the limit is"),
        ({"epsilon": 0}, "greater than 0"),
        ({"dp_epsilon": -1}, "greater than 0"),
        ({"beliefs": qw.MarkovChain(CHAIN.transition, "any")}, "initial='any'"),
    ],
)
def test_what_has_no_program_is_refused(arguments, message):
    given = {
        "beliefs": CHAIN,
        "length": 6,
        "epsilon": 1,
        "user": qw.Consumer(),
        "query": queries.count(1),
    } | arguments
    with pytest.raises(qw.QuiltworkError, match=message):
        qw.optimal_for_chain(**given)
