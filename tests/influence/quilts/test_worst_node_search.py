"""Searches: the best quilt and the worst node, against trying all of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.influence.quilts.families import TO_END, IntervalFamily, ListedFamily, PairRows
from quiltwork.influence.quilts.intervals import best_interval
from quiltwork.influence.quilts.prices import LeakAt, ScaleFor
from quiltwork.influence.quilts.worst_node_search import (
    intersection,
    price_at,
    worst_in_family,
    worst_node,
)
from tests.influence.quilts.listed import Listed
from tests.sizes import sample


def falling_rows(rng, reach: int, columns: int) -> PairRows:
    """Random non-negative rows, one per distance, that fall with it."""
    rows = np.sort(rng.exponential(1.0, (reach, columns)), axis=0)[::-1]
    rows *= np.exp(-rng.uniform(0, 0.5, columns) * np.arange(reach)[:, None])
    flat = np.zeros((columns, 1))
    return PairRows(reach, lambda d: rows[d - 1][:, :, None], flat, np.arange(columns), reach + 1)


@st.composite
def problems(draw):
    """A family with random rows, a windowed cost and a price."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    length = draw(st.integers(2, 40))
    columns = draw(st.integers(1, 4))
    reaches = [draw(st.integers(0, length - 1)) for _ in range(2)]
    first = draw(st.integers(1, length))
    nodes = range(first, length + 1, draw(st.integers(1, 3)))
    origin = draw(st.integers(1, first))
    left, right = (falling_rows(rng, reach, columns) for reach in reaches)
    family = IntervalFamily(nodes, length, left, right, origin)
    start = draw(st.integers(1, length))
    stop = draw(st.integers(start, length))
    extra = draw(st.integers(0, 2))

    def cost(a, b):
        points = np.maximum(np.minimum(b, stop) - np.maximum(a, start) + 1, 0)
        return np.where(points > 0, 2 * points + extra, 0)

    price = draw(
        st.sampled_from([ScaleFor(Fraction(1)), ScaleFor(Fraction(3)), LeakAt(Fraction(1, 9))])
    )
    return family, cost, price


@given(problems(), st.data())
@settings(max_examples=150)
def test_the_best_quilt_is_the_best_of_all_candidates(problem, data):
    family, cost, price = problem
    node = data.draw(st.sampled_from(family.nodes))
    best = best_interval(family, node, cost, price)
    assert best.price == price_at(Listed(family).at(node), node, cost, price).price
    start, stop = family.span(node, np.array([best.left]), np.array([best.right]))
    assert float(price(cost(start, stop), np.array([best.influence]))[0]) == best.price


@given(problems())
@settings(max_examples=sample(75, full=150))
def test_the_worst_node_is_the_worst_of_all_nodes(problem):
    family, cost, price = problem
    found = worst_in_family(family, cost, price, range(1, family.length + 1))
    every = Listed(family)
    everyone = {node: price_at(every.at(node), node, cost, price).price for node in family.nodes}
    assert found.price == max(everyone.values())
    assert everyone[found.node] == found.price


@given(problems(), st.data())
@settings(max_examples=60)
def test_the_worst_node_is_looked_for_among_the_wanted_ones(problem, data):
    family, cost, price = problem
    first = data.draw(st.integers(1, family.length))
    wanted = range(first, data.draw(st.integers(first, family.length)) + 1)
    found = worst_in_family(family, cost, price, wanted)
    inside = [node for node in family.nodes if node in wanted]
    if not inside:
        assert found is None
    else:
        every = Listed(family)
        assert found.price == max(price_at(every.at(n), n, cost, price).price for n in inside)


@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 40), st.integers(1, 40))
def test_the_common_nodes_of_two_ranges(first, step, start, stop):
    nodes, wanted = range(first, 40, step), range(start, stop)
    assert list(intersection(nodes, wanted)) == [node for node in nodes if node in wanted]


def test_arbitrary_sets_are_searched_node_by_node():
    """A star: node 3 is next to all others; its quilt is empty, theirs is {3}."""
    alike = (
        *(np.array([0, 1, 1]), np.array([1, 1, 4]), np.array([5, 2, 5])),
        *(((), (3,)), np.array([0.0, 0.5])),
    )
    leaves = [ListedFamily(nodes, *alike) for nodes in (range(1, 3), range(4, 6))]
    centre = ListedFamily(range(3, 4), np.array([0]), np.array([1]), np.array([5]))

    def cost(start, stop):
        return stop - start + 1

    found, family = worst_node([*leaves, centre], cost, ScaleFor(Fraction(1)), range(1, 6))
    assert (found.price, found.node, family) == (5.0, 3, centre)
    alone, _ = worst_node(leaves, cost, ScaleFor(Fraction(2)), range(1, 6))
    assert (alone.price, alone.quilt) == (2.5, ())
    quieter, _ = worst_node(leaves, cost, LeakAt(Fraction(1)), range(4, 6))
    assert (quieter.node, quieter.quilt, quieter.nearby) == (4, (3,), 4)


def test_a_family_that_is_not_the_worst_is_never_refined():
    nothing = falling_rows(np.random.default_rng(0), 0, 1)

    def refuse():
        raise AssertionError("refined although it is not the worst")

    def cost(start, stop):
        return stop - start + 1

    low = IntervalFamily(range(1, 3), 2, nothing, nothing, refinement=refuse)
    high = IntervalFamily(range(3, 9), 9, nothing, nothing)
    found, _ = worst_node([low, high], cost, ScaleFor(Fraction(1)), range(1, 10))
    assert found.cost == 9
    assert found.quilt == ()
    assert TO_END == -1
