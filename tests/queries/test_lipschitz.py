"""The search for broken declarations finds them, and does not cry wolf."""

import numpy as np
import pytest

from quiltwork import InvalidInputError, queries
from quiltwork.queries import check_lipschitz


def switches(x):
    return int((x[1:] != x[:-1]).sum())


def longest_run(x):
    edges = np.flatnonzero(x[1:] != x[:-1])
    return int(np.diff([-1, *edges, len(x) - 1]).max())


def distinct(x):
    return len(set(x.tolist()))


@pytest.mark.parametrize(
    ("function", "constant"),
    [(switches, 2), (distinct, 1), (lambda x: [(x == 0).sum(), (x == 1).sum()], 2)],
)
def test_true_constants_pass_and_smaller_ones_are_caught(function, constant):
    cells = ["a", "b"] if constant == 2 and function is not switches else None
    honest = queries.custom(function, lipschitz=constant, cells=cells)
    assert check_lipschitz(honest, [0, 1, 2], length=12, trials=300) is None
    wrong = queries.custom(function, lipschitz=0.95 * constant, cells=cells)
    violation = check_lipschitz(wrong, [0, 1, 2], length=12, trials=300)
    assert violation.change == constant


def test_a_violation_can_be_replayed():
    query = queries.custom(longest_run, lipschitz=1)
    violation = check_lipschitz(query, ["a", "b"], length=20, trials=500)
    before, after = (np.array(side) for side in (violation.before, violation.after))
    assert np.flatnonzero(before != after).tolist() == [violation.position - 1]
    assert abs(longest_run(before) - longest_run(after)) == violation.change > 1
    assert "more than the declared 1." in violation.explain()


def test_rare_inputs_are_reached_by_climbing():
    """A bonus that appears only when all twelve points agree."""
    query = queries.custom(lambda x: 5.0 * (x == 1).all() + x.sum(), lipschitz=1)
    assert check_lipschitz(query, [0, 1], length=12, trials=2000) is not None


def test_failures_count_as_violations():
    query = queries.custom(lambda x: 1.0 / (x[0] != 1), lipschitz=1)
    with np.errstate(divide="ignore"):
        violation = check_lipschitz(query, [0, 1], length=3)
    assert violation.change is None
    assert "is not a finite number" in violation.explain()


def test_only_the_window_is_changed():
    query = queries.custom(lambda x: 10 * x.sum(), lipschitz=10).on(2, 3)
    assert check_lipschitz(query, [0, 1], length=6, trials=100) is None


def test_the_search_is_reproducible():
    query = queries.custom(longest_run, lipschitz=1)
    assert check_lipschitz(query, [0, 1], 20, seed=3) == check_lipschitz(query, [0, 1], 20, seed=3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_lipschitz(queries.histogram(), [0, 1], 5),
        lambda: check_lipschitz(queries.custom(len, lipschitz=1), [0], 5),
        lambda: check_lipschitz(queries.custom(len, lipschitz=1), [0, 1], 0),
        lambda: check_lipschitz(queries.custom(len, lipschitz=1).on(4, 9), [0, 1], 5),
    ],
)
def test_what_cannot_be_checked_is_refused(call):
    with pytest.raises(InvalidInputError):
        call()
