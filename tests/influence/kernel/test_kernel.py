"""The compiled loops: against a general solver, in parts, in threads, under other arithmetic."""

from __future__ import annotations

import ctypes
import platform
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from quiltwork.beliefs.evolution import ordered_product
from quiltwork.influence import kernel
from quiltwork.influence.kernel import (
    KernelError,
    SpanningTrees,
    building,
    library,
    programs,
    sweeps,
)
from quiltwork.influence.kernel.library import MORE, call_until_done


def by_solver(p, q, limits):
    """max log p·u − log q·u, u(z) ≤ e^A[z,y]·u(y), with q·u = 1."""
    size, rows = len(p), []
    for z in range(size):
        for y in range(size):
            if z != y:
                row = np.zeros(size)
                row[z], row[y] = np.exp(-max(limits[z, y], 0)), -np.exp(min(limits[z, y], 0))
                rows.append(row)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(-p, rows, np.zeros(len(rows)), [q], [1], options=tight)
    return np.log(-found.fun)


def apart(size):
    """All ordered pairs of different states, and whether two states differ."""
    differ = ~np.eye(size, dtype=bool)
    return np.nonzero(differ), differ


def stretch(rng, size, nodes, to_left, spans=(1,)):
    """The arguments of a sweep of a random chain, from bounds of a random law."""
    matrix = rng.dirichlet(np.ones(size), size)
    pairs, differ = apart(size)
    powers = [np.linalg.matrix_power(matrix, span) for span in spans]
    rows = [one.T if to_left else one for one in powers]
    above, below = (np.stack([one[x] for one in rows]) for x in pairs)
    law = np.log(rng.dirichlet(np.ones(size)))
    return {
        "above": above,
        "below": below,
        "span": np.array(spans),
        "margins": np.zeros(len(spans)),
        "pairs": pairs,
        "distinguishable": differ,
        "start": (law[:, np.newaxis] - law)[np.newaxis],
        "levels": rng.gamma(1, 0.5, nodes),
        "possible": np.ones((nodes, size), dtype=bool),
        "block": np.repeat(np.arange(len(spans))[:, np.newaxis], nodes, axis=1),
        "to_left": to_left,
        "any_start": False,
    }


@pytest.mark.parametrize("to_left", [True, False])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_node_of_a_sweep_has_the_bounds_of_a_general_solver(size, to_left):
    nodes, (pairs, differ) = 5, apart(size)
    given = stretch(np.random.default_rng(size), size, nodes, to_left)
    found, bounds = kernel.sweep(**given), given["start"][0]
    for step in range(1, nodes):
        limits = bounds + given["levels"][step - 1] * differ
        ahead = np.zeros((size, size))
        for m, (x, y) in enumerate(zip(*pairs, strict=True)):
            ahead[x, y] = by_solver(given["above"][0, m], given["below"][0, m], limits)
        assert found[step] == pytest.approx(ahead, abs=1e-7)
        assert (found[step] >= ahead - 2e-9).all()
        bounds = ahead


def test_longer_spans_only_lower_bounds_and_pay_for_what_is_between():
    size, nodes = 4, 12
    given = stretch(np.random.default_rng(5), size, nodes, False, spans=(1, 2, 4))
    names = "above", "below", "span", "margins", "block"
    plain, two = (given | {name: given[name][:many] for name in names} for many in (1, 2))
    spans, single = kernel.sweep(**given), kernel.sweep(**plain)
    assert (spans <= single + 1e-12).all()
    assert (spans < single - 1e-3).any()
    jump = {name: given[name][1:2] for name in ("above", "below")}
    ends = {name: given[name][:2] for name in ("levels", "possible")}
    alone = kernel.sweep(**plain | jump | ends | {"block": plain["block"][:, :2]})
    bound = alone[1] + given["levels"][1] * ~np.eye(size, dtype=bool)  # and pays what is between
    assert kernel.sweep(**two)[2] == pytest.approx(np.minimum(single[2], bound), abs=1e-12)


@pytest.mark.parametrize("to_left", [True, False])
def test_a_sweep_goes_on_from_its_last_nodes_as_if_it_had_not_stopped(to_left):
    given = stretch(np.random.default_rng(7), 4, 30, to_left, spans=(1, 2, 4))
    whole = kernel.sweep(**given)
    later = {name: given[name][9:] for name in ("levels", "possible")}
    rest = kernel.sweep(**given | later | {"start": whole[9:13], "block": given["block"][:, 9:]})
    assert rest == pytest.approx(whole[9:], abs=1e-12)


def test_two_states_by_ratios_are_those_by_programs():
    rng = np.random.default_rng(3)
    for to_left in (True, False):
        given = stretch(rng, 2, 40, to_left)
        rows = np.stack([given["above"][0, 0], given["below"][0, 0]])
        found = kernel.sweep_two(rows, np.exp(given["start"][0]), np.exp(given["levels"]))
        assert np.log(found) == pytest.approx(kernel.sweep(**given), abs=1e-10)


def random_programs(rng, size, count=6):
    p, q = (rng.dirichlet(np.ones(size) * rng.choice([0.3, 1]), count) for _ in range(2))
    p[rng.random(p.shape) < 0.2], q[rng.random(q.shape) < 0.2] = 0, 0
    p[:, 0], q[:, 0] = p[:, 0] + 1e-3, q[:, 0] + 1e-3
    small = rng.random(p.shape) < 0.1
    p[small] *= 10.0 ** -rng.uniform(100, 300, small.sum())
    limits = rng.gamma(1, rng.choice([0.1, 3, 60]), (2, size, size))
    for z in range(size):
        limits[:, z, z] = 0
    for z in range(size):
        limits = np.minimum(limits, limits[:, :, [z]] + limits[:, [z], :])
    return p, q, limits, np.sort(rng.integers(0, 2, count))


def solved(*given):
    """Twice: the second time from kept trees, under limits that have moved."""
    *rows, limits, group = given
    first = kernel.solve(*rows, limits, group, SpanningTrees.none(*given[0].shape))
    second = kernel.solve(*rows, limits * 1.1, group, first[-1])
    return b"".join(one.tobytes() for found in (first, second) for one in found[:4])


def many(seed=0):
    rng = np.random.default_rng(seed)
    return [random_programs(rng, int(rng.integers(1, 12))) for _ in range(60)]


def test_work_in_parts_gives_the_digits_of_work_at_once(monkeypatch):
    rng = np.random.default_rng(8)
    lines = [stretch(rng, size, 9, size % 2 == 0, spans=(1, 2)) for size in (1, 2, 3, 6)]

    def everything():
        return [solved(*one) for one in many()], [kernel.sweep(**one).tobytes() for one in lines]

    whole = everything()
    parts = 0

    def counted(call):
        nonlocal parts
        while (status := call()) == MORE:
            parts += 1
        assert status == 0

    for module in (programs, sweeps):
        monkeypatch.setattr(module, "MOST_WORK", 0)
        monkeypatch.setattr(module, "call_until_done", counted)
    assert whole == (
        [solved(*one) for one in many()],
        [kernel.sweep(**one).tobytes() for one in lines],
    )
    assert parts > 500


def test_threads_get_the_digits_of_one_alone():
    """The kernel lets other threads run; they share the trees that they begin with."""
    cases, trees = many(1), {}
    for *rows, limits, group in cases:
        trees[id(limits)] = kernel.solve(*rows, limits, group, SpanningTrees.none(*rows[0].shape))[
            -1
        ]

    def work(_):
        found = []
        for *rows, limits, group in cases:
            again = kernel.solve(*rows, limits * 1.1, group, trees[id(limits)])
            found += [one.tobytes() for one in again[:4]]
        return found

    alone = work(0)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == alone for found in pool.map(work, range(16)))


@pytest.fixture
def interrupts():
    """Python's own handler of Ctrl-C, which a shell's background job does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_long_work_can_be_interrupted():
    calls = 0

    def call():
        nonlocal calls
        calls += 1
        assert calls < 100, "nobody heard the interrupt"
        if calls == 3:
            signal.raise_signal(signal.SIGINT)
        return MORE

    with pytest.raises(KeyboardInterrupt):
        call_until_done(call)
    assert calls == 3


FLUSH = {
    "x86_64": "#include <xmmintrin.h>\nvoid set(unsigned on) { _mm_setcsr(on ? 0x9fc0 : 0x1f80); }",
    "arm64": "void set(unsigned long on)"
    '{ on = on ? 1ul << 24 : 0; __asm__ volatile("msr fpcr, %0" : : "r"(on)); }',
}


@pytest.fixture
def flush(tmp_path):
    """A function that has numbers near 0 flushed to 0 in this thread, or no longer."""
    machine = platform.machine().replace("aarch64", "arm64")
    source, made = tmp_path / "flush.c", tmp_path / "flush.so"
    source.write_text(FLUSH[machine], encoding="utf-8")
    command = [*building.compilers()[0], "-shared", "-fPIC", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    flushed = ctypes.CDLL(str(made)).set
    yield flushed
    flushed(0)


def test_flushing_small_numbers_to_zero_changes_no_digit(flush):
    tiny, cases = np.array([1e-310]), many(2)
    p, q = np.array([[0.4, 1e-310, 0.6]]), np.array([[0.5, 0.0, 0.5]])
    cases.append((p, q, np.full((1, 3, 3), 250.0) * ~np.eye(3, dtype=bool), np.zeros(1, dtype=int)))
    plain = [solved(*one) for one in cases]
    try:
        flush(1)
        flushes = float((tiny * 1.0)[0]) == 0
        under = [solved(*one) for one in cases]
        still = float((tiny * 1.0)[0]) == 0
    finally:
        flush(0)
    assert flushes
    assert still  # the kernel leaves what it found
    assert under == plain


def test_products_are_summed_in_the_order_of_the_inner_index():
    rng = np.random.default_rng(6)
    for shape in ((1, 1, 1), (2, 3, 4), (7, 26, 5), (3, 0, 2)):
        rows, inner, columns = shape
        left, right = rng.normal(size=(2, rows, inner)), rng.normal(size=(2, inner, columns))
        expected = np.zeros((2, rows, columns))
        for m in range(inner):
            expected += left[:, :, m, np.newaxis] * right[:, np.newaxis, m]
        assert kernel.product(left, right).tobytes() == expected.tobytes()
        assert kernel.product(left[0, 0], right[0]).tobytes() == expected[0, 0].tobytes()
        assert ordered_product(left[0], right[0]).tobytes() == expected[0].tobytes()
    matrix = rng.dirichlet(np.ones(4), 4)
    assert kernel.power(matrix, 13) == pytest.approx(np.linalg.matrix_power(matrix, 13), rel=1e-13)
    with pytest.raises(ValueError, match="no product"):
        kernel.product(np.ones((2, 3)), np.ones((2, 3)))


def test_one_state_and_no_pair_are_nothing_to_do():
    given = stretch(np.random.default_rng(1), 1, 4, True)
    assert (kernel.sweep(**given) == 0).all()
    values, *_ = kernel.solve(
        np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 1, 1)), np.zeros(1), SpanningTrees.none(1, 1)
    )
    assert values == pytest.approx(0, abs=1e-11)


def test_what_is_unknown_never_lowers_a_bound():
    """NaN and infinite bounds count as none, and rows that share no state tell everything."""
    rng = np.random.default_rng(9)
    for size in (2, 3, 4):
        given = stretch(rng, size, 6, False)
        honest = kernel.sweep(**given)
        for odd in (np.nan, np.inf):
            start = given["start"].copy()
            start[:, 0, 1] = odd
            found = kernel.sweep(**given | {"start": start})[1:]
            assert not np.isnan(found).any()
            assert (found >= honest[1:] - 1e-9).all()
            levels = np.where(np.arange(6) == 2, odd, given["levels"])
            found = kernel.sweep(**given | {"levels": levels})
            assert not np.isnan(found).any()
            assert (found >= honest - 1e-9).all()
    disjoint = stretch(rng, 4, 3, False)
    for name, states in (("above", [2, 3]), ("below", [0, 1])):
        disjoint[name] = disjoint[name].copy()
        disjoint[name][..., states] = 0
    bounds, limits = kernel.sweep(**disjoint), disjoint["start"] + disjoint["levels"][0]
    assert (bounds[1] > limits[0].min()).any()
    unlimited = kernel.sweep(**disjoint | {"start": np.full((1, 4, 4), np.inf)})
    assert np.isinf(unlimited[1][~np.eye(4, dtype=bool)]).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"above": -1.0}, "negative or not finite"),
        ({"below": np.nan}, "negative or not finite"),
        ({"above": np.inf}, "negative or not finite"),
        ({"span": 0}, "out of range"),
        ({"block": 1}, "out of range"),
        ({"block": -1}, "out of range"),
        ({"start": np.zeros((7, 3, 3))}, "out of range"),
    ],
)
def test_hostile_input_is_refused_in_a_sentence(changed, words):
    given = stretch(np.random.default_rng(2), 3, 6, True)
    for name, value in changed.items():
        given[name] = given[name].copy() if np.ndim(value) == 0 else value
        if np.ndim(value) == 0:
            given[name].flat[-1] = value
    with pytest.raises(KernelError, match=words):
        kernel.sweep(**given)
    with pytest.raises(ValueError, match="differ in shape: \\['distinguishable'\\]"):
        kernel.sweep(**given | {"distinguishable": np.ones((2, 2), dtype=bool)})


def test_hostile_trees_and_groups_are_refused_in_a_sentence():
    rows, limits = np.full((2, 3), 1 / 3), np.zeros((1, 3, 3))
    honest, group = SpanningTrees.none(2, 3), np.zeros(2, dtype=int)
    kernel.solve(rows, rows, limits, group, honest)
    for name, value in (("parent", 3), ("parent", -1), ("order", 3), ("order", -3)):
        trees = SpanningTrees.none(2, 3)
        getattr(trees, name)[1, 0] = value
        with pytest.raises(KernelError, match="refers to a state"):
            kernel.solve(rows, rows, limits, group, trees)
    with pytest.raises(KernelError, match="out of range"):
        kernel.solve(rows, rows, limits, np.array([0, 1]), honest)
    with pytest.raises(ValueError, match="limits"):
        kernel.solve(rows, rows, np.zeros((1, 2, 2)), group, honest)
    with pytest.raises(KernelError, match="out of range"):
        library.workspace(-1)


def test_linear_equations_are_those_of_a_library_and_of_an_iteration():
    rng = np.random.default_rng(10)
    for size in (1, 2, 7, 40):
        jacobian = 0.9 * rng.dirichlet(np.ones(size), size)
        jacobian[rng.random((size, size)) < 0.5] = 0
        matrix, right = np.eye(size) - jacobian, rng.normal(size=(size, 2))
        expected = np.linalg.solve(matrix, right)
        assert kernel.solve_linear(matrix, right) == pytest.approx(expected, rel=1e-11)
        assert kernel.solve_linear(matrix, right[:, 0]) == pytest.approx(expected[:, 0], rel=1e-11)
        found = kernel.iterate(csr_array(jacobian), right[:, 0], 200)
        assert found == pytest.approx(expected[:, 0], rel=1e-8, abs=1e-8)
    turning = np.array([[0.0, 2.0], [-3.0, 0.0]])  # no pivot where elimination begins
    assert kernel.solve_linear(turning, np.array([2.0, 3.0])) == pytest.approx([-1, 1])
    assert not np.isfinite(kernel.solve_linear(np.ones((2, 2)), np.array([1.0, 2.0]))).all()
    assert kernel.solve_linear(np.empty((0, 0)), np.empty(0)).shape == (0,)
    assert kernel.iterate(csr_array(np.eye(3)), np.ones(3), 50) is None
    with pytest.raises(ValueError, match="do not fit"):
        kernel.solve_linear(np.eye(2), np.ones(3))
