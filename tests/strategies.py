"""Hypothesis strategies for random beliefs: zeros, periodic, deterministic and absorbing included.

Matrices are small integer weights divided by their row sums, so a test can redo a computation in
exact fractions with `exact_rows`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from quiltwork.beliefs import ChainBox, MarkovChain

LABELS = st.one_of(
    st.text(max_size=5).filter(lambda text: text.isprintable()),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.tuples(st.integers(0, 3), st.text("ab", max_size=2)),
)


def weights(size: int, smallest: int = 0, largest: int = 9):
    """A row of integer weights with a positive sum."""
    row = st.lists(st.integers(smallest, largest), min_size=size, max_size=size)
    return row.filter(lambda values: sum(values) > 0)


def divided(row: list[int]) -> list[float]:
    return [value / sum(row) for value in row]


@st.composite
def positive_weights(draw, size: int):
    """Every transition possible."""
    return [draw(weights(size, smallest=1)) for _ in range(size)]


@st.composite
def sparse_weights(draw, size: int):
    """Any transitions may be impossible; often reducible, sometimes periodic."""
    return [draw(weights(size)) for _ in range(size)]


@st.composite
def deterministic_weights(draw, size: int):
    """Every state has one successor: permutations, cycles, sinks."""
    successors = draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size))
    return [[int(y == successor) for y in range(size)] for successor in successors]


@st.composite
def periodic_weights(draw, size: int):
    """States in d ≥ 2 layers, each layer leading to the next only (d = 1 for one state)."""
    layers = draw(st.integers(min(2, size), size))
    layer = [x % layers for x in range(size)]
    rows = []
    for x in range(size):
        row = draw(weights(size, smallest=1))
        following = (layer[x] + 1) % layers
        rows.append([w if layer[y] == following else 0 for y, w in enumerate(row)])
    return rows


@st.composite
def absorbing_weights(draw, size: int):
    """At least one state that is never left."""
    rows = draw(sparse_weights(size))
    for x in draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=size)):
        rows[x] = [int(y == x) for y in range(size)]
    return rows


SHAPES = {
    "positive": positive_weights,
    "sparse": sparse_weights,
    "deterministic": deterministic_weights,
    "periodic": periodic_weights,
    "absorbing": absorbing_weights,
}


@st.composite
def weight_matrices(draw, min_states: int = 1, max_states: int = 4, shapes=tuple(SHAPES)):
    """Integer weights of a transition matrix, of one of the named shapes."""
    size = draw(st.integers(min_states, max_states))
    return draw(SHAPES[draw(st.sampled_from(shapes))](size))


def stochastic_matrices(min_states: int = 1, max_states: int = 4, shapes=tuple(SHAPES)):
    """Transition matrices as float arrays."""
    found = weight_matrices(min_states, max_states, shapes)
    return found.map(lambda rows: np.array([divided(row) for row in rows]))


def distributions(size: int):
    """Probability vectors, half of them with zeros or a single possible state."""
    certain = st.integers(0, size - 1).map(lambda x: [int(y == x) for y in range(size)])
    return st.one_of(weights(size), weights(size, smallest=1), certain).map(
        lambda row: np.array(divided(row))
    )


@st.composite
def chains(
    draw,
    min_states: int = 1,
    max_states: int = 4,
    shapes=tuple(SHAPES),
    initials=("given", "stationary", "any"),
):
    """Markov chains of any shape with any kind of start.

    A chain without a unique stationary distribution gets another kind of start from `initials`,
    or is rejected if there is none.
    """
    matrix = draw(stochastic_matrices(min_states, max_states, shapes))
    kinds = list(initials)
    if len(MarkovChain(matrix, initial="any").recurrent_classes) > 1:
        kinds = [kind for kind in kinds if kind != "stationary"]
        assume(kinds)
    kind = draw(st.sampled_from(kinds))
    return MarkovChain(matrix, draw(distributions(len(matrix))) if kind == "given" else kind)


@st.composite
def positive_chains(draw, min_states: int = 2, max_states: int = 4, initials=("stationary",)):
    """Irreducible, aperiodic chains in which every transition is possible."""
    return draw(chains(min_states, max_states, ("positive",), initials))


@st.composite
def boxes(draw, min_states: int = 1, max_states: int = 4):
    """Boxes around a random matrix, zero bounds included."""
    matrix = draw(stochastic_matrices(min_states, max_states))
    below, above = (
        np.array(draw(st.lists(st.floats(0, 0.5), min_size=matrix.size, max_size=matrix.size)))
        for _ in range(2)
    )
    lower = np.maximum(0, matrix - below.reshape(matrix.shape))
    upper = np.minimum(1, matrix + above.reshape(matrix.shape))
    return ChainBox(lower, upper)


def exact_rows(matrix) -> list[list[Fraction]]:
    """Rows as fractions that sum to exactly 1: each entry read as its nearest small fraction."""
    rows = [[Fraction(value).limit_denominator(10**6) for value in row] for row in matrix.tolist()]
    return [[value / sum(row) for value in row] for row in rows]
