"""One person's rows, enumerated: how far they move the counts, and what that costs."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pandas as pd
import pytest

from quiltwork.counts import limited_counts, release_table
from quiltwork.errors import InvalidInputError

CELLS = ("a", "b")
OTHERS = [("x", "a"), ("y", "b"), ("x", "b"), ("x", "a")]


def own_rows(longest):
    """Every list of cells that one person's rows may have, in an undeclared cell too."""
    for length in range(longest + 1):
        yield from product((*CELLS, "elsewhere"), repeat=length)


def counts_with(rows, at_most):
    """The counts of a file in which one person's rows stand between those of others."""
    lines = [("z", cell) for cell in rows]
    mixed = lines[:1] + OTHERS[:2] + lines[1:2] + OTHERS[2:] + lines[2:]
    return limited_counts([c for _, c in mixed], [s for s, _ in mixed], CELLS, at_most)


@pytest.mark.parametrize("at_most", [1, 2, 3])
@pytest.mark.parametrize("levels", [{"epsilon": 1}, {"alpha": 0.3}])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_whatever_rows_one_person_has_they_cost_epsilon_at_most(at_most, levels, adjacency):
    """The log ratio of the noise between neighbouring files, over all of them: ε is attained."""
    files = [counts_with(rows, at_most) for rows in own_rows(3)]
    nobody = counts_with((), at_most)
    table = release_table(nobody, **levels, adjacency=adjacency)
    costs = dict(zip(CELLS, [-math.log(alpha) for alpha in table.alphas], strict=True))
    pairs = product(files, files) if adjacency == "replace" else product(files, [nobody])
    worst = max(sum(abs(p[c] - q[c]) * costs[c] for c in CELLS) for p, q in pairs)
    assert worst == pytest.approx(table.epsilon, rel=1e-9)
    replaced = max(
        sum(abs(p[c] - q[c]) * costs[c] for c in CELLS) for p, q in product(files, files)
    )
    assert replaced == pytest.approx(float(table.dp_epsilon), rel=1e-9)


def test_rows_in_no_cell_do_not_use_up_the_limit():
    counts = limited_counts(["?", "?", "a", "b"], ["z"] * 4, CELLS, at_most=1)
    assert dict(counts) == {"a": 1, "b": 0}


def test_missing_names_are_one_person():
    missing = [None, float("nan"), pd.NA, pd.NaT, float("nan")]
    counts = limited_counts(["a"] * 6, [*missing, "ann"], CELLS, at_most=2)
    assert dict(counts) == {"a": 3, "b": 0}


@pytest.mark.parametrize(
    "arguments",
    [
        (["a"], ["z", "z"], CELLS),
        (["a"], [["z"]], CELLS),
        ([["a"]], ["z"], CELLS),
        (7, ["z"], CELLS),
        (["a"], ["z"], CELLS, 0),
        (["a"], ["z"], CELLS, 1.0),
    ],
)
def test_what_cannot_be_limited_is_refused(arguments):
    with pytest.raises(InvalidInputError, match=r"every row|at_most"):
        limited_counts(*arguments)


def test_a_limit_is_declared_once_and_goes_with_no_total():
    counts = limited_counts(["a"], ["z"], CELLS, at_most=2)
    with pytest.raises(InvalidInputError, match="leave out at_most"):
        release_table(counts, epsilon=1, at_most=2)
    with pytest.raises(InvalidInputError, match="each counted once"):
        release_table(counts, epsilon=1, total=1)


@pytest.mark.parametrize(
    ("at_most", "adjacency", "words"),
    [
        (None, "add-remove", "one person's row (one cell moves by 1). Each row is assumed to be"),
        (1, "replace", "one person's row (two cells move by 1). Each person has at most one row: "
         "declared, not checked."),
        (3, "replace", "one person's rows (cells move by at most 6 together). Each person has at "
         "most 3 rows: declared, not checked."),
    ],
)  # fmt: skip
def test_a_table_never_says_what_nobody_checked(at_most, adjacency, words):
    table = release_table({"a": 4, "b": 2}, epsilon=1, adjacency=adjacency, at_most=at_most)
    assert words in table.explain()
    assert "counts" not in table.explain()


def test_a_limit_that_is_kept_is_told():
    once, twice = (limited_counts(["a", "b"], ["z", "z"], CELLS, at_most=n) for n in (1, 2))
    kept = release_table(once, epsilon=1, adjacency="add-remove").explain()
    assert "one person's rows (one cell moves by 1). Each person counts in at most one" in kept
    assert "Each person counts at most 2 times" in release_table(twice, epsilon=1).explain()
    alone = release_table(limited_counts(["a"], ["z"], ["a"], 3), alpha=Fraction(1, 2))
    assert "(the count moves by at most 3)" in alone.explain()
    assert alone.epsilon == pytest.approx(3 * math.log(2))
