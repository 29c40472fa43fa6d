"""Calibration: published numbers, enumeration, and what a user sees."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quiltwork as qw
from evidence import enumeration
from evidence.checks import influence_bounds, method_order
from evidence.paper_loops import mqm_exact
from quiltwork import queries
from quiltwork.beliefs import ChainBox, Clusters, MarkovChain
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.exact import positive_fraction
from quiltwork.influence import calibrate, influence_curve
from tests.sizes import sample
from tests.strategies import chains

RESTLESS = [[0.9, 0.1], [0.4, 0.6]]
STATIONARY = MarkovChain(RESTLESS, initial=[0.8, 0.2])


@pytest.mark.parametrize(
    ("method", "scale"),
    [
        ("sweep", 3.336409),
        ("exact", 12.839964),
        ("approx", 15.652104),
        ("contraction", 15.903150),
        ("spectral", 31.709760),
        ("group", 100.0),
    ],
)
def test_each_method_gives_its_derived_number(method, scale):
    assert calibrate(STATIONARY, 100, 1, method).scale == pytest.approx(scale, abs=1e-6)


@given(st.integers(1, 60), st.fractions(Fraction(1, 100), 9), st.integers(2, 4), st.data())
@settings(max_examples=40)
def test_an_independent_chain_needs_exactly_the_noise_of_plain_dp(length, epsilon, size, data):
    row = np.array(data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)), float)
    start = data.draw(
        st.sampled_from(["stationary", "any", np.eye(size)[0], np.full(size, 1 / size)])
    )
    chain = MarkovChain(np.tile(row / row.sum(), (size, 1)), start)
    found = calibrate(chain, length, epsilon)
    known = length == 1 and isinstance(start, np.ndarray) and start.max() == 1
    assert found.exact_scale == (0 if known else 1 / epsilon)
    assert found.influence == 0


def test_no_method_leaks_more_than_epsilon_and_exact_is_the_best_over_all_separators():
    influence_bounds.check(60)


def test_the_methods_are_ordered():
    method_order.check(12)


@given(
    chains(2, 4, initials=("given", "stationary")), st.integers(8, 25), st.sampled_from([0.3, 1, 4])
)
@settings(max_examples=sample(12, full=25))
def test_longer_series_agree_with_the_loops_of_the_paper(chain, length, epsilon):
    scale, _ = mqm_exact(chain, length, epsilon)
    assert calibrate(chain, length, epsilon, "exact").scale == pytest.approx(scale, rel=1e-9)
    assert calibrate(chain, length, epsilon).scale <= scale * 1.2


def changes(kind: str, start: int, stop: int):
    """How far the nodes of a set move the query: written down independently of the queries."""
    window = range(start, stop + 1)
    if kind == "transitions":
        return lambda nodes: 2 * sum(t in nodes or t + 1 in nodes for t in window[:-1])
    return lambda nodes: (1 if kind == "count" else 2) * len(set(nodes) & set(window))


@given(chains(2, 3, initials=("given", "stationary")), st.integers(1, 6), st.data())
@settings(max_examples=40)
def test_a_query_on_a_window_is_charged_what_it_touches_of_the_nearby_set(chain, length, data):
    start = data.draw(st.integers(1, length))
    stop = data.draw(st.integers(start, length))
    first = data.draw(st.integers(1, length))
    last = data.draw(st.integers(first, length))
    kind = data.draw(st.sampled_from(["count", "histogram", "transitions"]))
    query = queries.count(0) if kind == "count" else getattr(queries, kind)()
    weighted = enumeration.paths(chain, length)
    best = enumeration.scale(
        weighted, length, 1.5, changes(kind, start, stop), range(first, last + 1)
    )
    asked = query.on(start, stop)
    found = calibrate(chain, length, 1.5, "exact", asked, (first, last))
    assert found.scale == pytest.approx(best, rel=1e-9)
    assert best == 0 or first <= found.node <= last
    swept = calibrate(chain, length, 1.5, query=asked, secrets=(first, last))
    assert swept.scale <= best * (1 + 1e-9)
    swept = calibrate(chain, length, 1.5, query=asked, secrets=(first, last))
    assert swept.scale <= best * (1 + 1e-9)


@given(chains(2, 4), st.lists(st.integers(1, 40), min_size=1, max_size=5))
@settings(max_examples=sample(5, full=20))
def test_of_several_subjects_the_longest_decides(chain, lengths):
    apart = [calibrate(chain, length, 1).scale for length in lengths]
    together = calibrate(chain, lengths, 1)
    assert together.length == max(lengths)
    assert max(apart) <= together.scale * (1 + 1e-8)
    assert together.scale <= max(apart)


def test_several_beliefs_cost_as_much_as_the_worst():
    other = MarkovChain([[0.8, 0.2], [0.3, 0.7]], initial=[0.9, 0.1])
    found = calibrate([other, STATIONARY], 100, 1)
    assert found.scale == calibrate(STATIONARY, 100, 1).scale
    assert found.belief == 2
    assert "Belief 2 of 2" in found.explain()


def test_none_sweeps_chains():
    box = ChainBox([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]])
    assert calibrate(STATIONARY, 50, 1).method == "sweep"
    assert calibrate(box, 50, 1).method == "sweep"
    assert calibrate(Clusters(["a", "b"]), None, 1).method == "exact"
    with pytest.raises(UnsupportedError, match="needs a chain"):
        calibrate(Clusters(["a", "b"]), None, 1, "sweep")
    with pytest.raises(UnsupportedError, match="ChainBox has many chains"):
        calibrate(box, 50, 1, "exact")


def test_a_slowly_mixing_chain_is_found_far_out():
    slow = MarkovChain([[0.9995, 0.0005], [0.0005, 0.9995]])
    found = calibrate(slow, 10**8, 1, "exact")
    assert found.scale == pytest.approx(7384.372483, abs=1e-5)


def test_quilts_more_than_a_million_nodes_away_are_found():
    """The scale of a slow chain is inversely proportional to how often it changes its state."""
    slow, slower = (
        [calibrate(MarkovChain([[1 - g, g], [g, 1 - g]]), 10**8, 1, by) for by in ("exact", None)]
        for g in (1e-4, 1e-6)
    )
    assert slower[0].nearby > 1 << 21
    for found, other in zip(slow, slower, strict=True):
        assert other.scale == pytest.approx(100 * found.scale, rel=1e-3)


def test_a_chain_that_mixes_over_a_hundred_thousand_nodes_from_a_known_start():
    """Far beyond the nodes that are followed one by one: close to any start, never above it."""
    sticky = [[0.9999, 0.0001], [0.0001, 0.9999]]
    known, free = (
        calibrate(MarkovChain(sticky, start), 10**8, 1, "exact") for start in ([1, 0], "any")
    )
    settled = calibrate(MarkovChain(sticky), 10**8, 1, "exact")
    assert settled.scale <= known.scale * (1 + 1e-4)
    assert known.scale == pytest.approx(free.scale, rel=1e-3)
    swept = [calibrate(MarkovChain(sticky, start), 10**8, 1) for start in ([1, 0], "stationary")]
    assert swept[1].scale * (1 - 1e-9) <= swept[0].scale < known.scale / 3


@pytest.mark.parametrize(
    ("matrix", "initial", "scale"),
    [
        ([[0, 1], [1, 0]], "stationary", 10**8),
        ([[0, 1], [1, 0]], "any", 10**8),
        ([[0, 1], [1, 0]], [1, 0], 0),
        ([[0.9, 0.1], [0, 1]], [1, 0], 10**8 - 1),
        ([[1, 0], [0, 1]], [0.5, 0.5], 10**8),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [0, 1, 0], 0),
    ],
)
def test_chains_that_never_forget_need_everything_or_nothing(matrix, initial, scale):
    chain = MarkovChain(matrix, initial)
    assert calibrate(chain, 10**8, 1, "exact").exact_scale == scale
    assert calibrate(chain, 10**8, 1).exact_scale == pytest.approx(scale, rel=1e-7)


def test_a_periodic_chain_that_started_in_one_phase_forgets_within_it():
    """Two phases of two states each; seen every second step it is an ordinary chain."""
    matrix = [[0, 0, 0.7, 0.3], [0, 0, 0.2, 0.8], [0.6, 0.4, 0, 0], [0.3, 0.7, 0, 0]]
    chain = MarkovChain(matrix, initial=[0.5, 0.5, 0, 0])
    assert calibrate(chain, 10**8, 1).scale == pytest.approx(
        calibrate(chain, 400, 1).scale, rel=1e-9
    )
    quilts = calibrate(chain, 40, 1, "exact").scale
    assert quilts == pytest.approx(mqm_exact(chain, 40, 1)[0], rel=1e-9)
    assert calibrate(chain, 40, 1).scale < quilts / 2
    assert calibrate(MarkovChain(matrix), 400, 1).scale == 400


def test_clusters_need_the_size_of_the_largest():
    homes = Clusters(["a", "b", "a", "c", "a", "b"])
    found = calibrate(homes, None, Fraction(1, 3))
    assert (found.exact_scale, found.node, found.nearby) == (9, 1, 3)
    on_window = calibrate(homes, None, 1, query=queries.count("x").on(2, 6))
    assert (on_window.exact_scale, on_window.node) == (2, 1)
    assert calibrate(homes, None, 1, secrets=(4, 4)).exact_scale == 1


@pytest.mark.parametrize("belief", [ChainBox([[1]], [[1]]), MarkovChain([[1.0]])])
@pytest.mark.parametrize("method", [None, "approx", "contraction"])
def test_a_belief_with_one_state_needs_no_noise(belief, method):
    assert calibrate(belief, 10, 1, method).exact_scale == 0
    assert calibrate(belief, 1, 1, method, queries.histogram()).exact_scale == 0


def test_group_and_entry_are_the_two_extremes():
    assert calibrate(STATIONARY, 100, Fraction(1, 3), "group").exact_scale == 300
    with pytest.warns(QuiltworkWarning, match="may leak up to") as caught:
        found = calibrate(STATIONARY, 100, Fraction(1, 3), "entry")
    assert found.exact_scale == 3
    leak = influence_curve(STATIONARY, 100).epsilon(Fraction(1, 3))
    assert f"{leak:.6g}" in str(caught[0].message)
    assert leak > 1.1
    assert found.guarantee == Fraction(leak)
    assert json.loads(found.to_json())["guarantee"] == leak
    assert "time points are not protected with epsilon 0.333333" in found.explain()
    assert calibrate(STATIONARY, 100, Fraction(1, 3)).guarantee == Fraction(1, 3)


def test_entry_keeps_its_level_where_time_points_are_independent():
    for level in (0.5, 0.1):
        found = calibrate(MarkovChain([[0.3, 0.7], [0.3, 0.7]]), 10, level, "entry")
        assert found.guarantee == Fraction(str(level))
        assert "so this level holds" in found.explain()


def test_entry_says_under_which_belief_it_leaks_the_most():
    loose = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    with pytest.warns(QuiltworkWarning):
        found = calibrate([loose, STATIONARY, loose], 100, 1, "entry")
    assert found.belief == 2
    assert float(found.guarantee) == pytest.approx(found.change + found.influence)


def test_levels_are_not_told_from_noise_by_entry():
    with pytest.raises(qw.InvalidInputError, match="its levels do not hold"):
        influence_curve(STATIONARY, 10, "entry")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "epsilon must be greater than 0"),
        ({"epsilon": True}, "must be a number"),
        ({"epsilon": math.nan}, "finite"),
        ({"length": None}, "length is missing"),
        ({"length": 0}, "at least 1"),
        ({"length": []}, "empty"),
        ({"length": 2.5}, "integer"),
        ({"method": "best"}, "choose one of sweep"),
        ({"secrets": (5, 200)}, "the series has 100"),
        ({"secrets": (9, 5)}, "at least 9"),
        ({"secrets": 5}, r"\(start, stop\)"),
        ({"query": "histogram"}, "queries.histogram"),
        ({"query": queries.histogram().on(90, 101)}, "does not fit"),
        ({"beliefs": []}, "empty"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments, message):
    asked = {"beliefs": STATIONARY, "length": 100, "epsilon": 1, **arguments}
    with pytest.raises(InvalidInputError, match=message):
        calibrate(**asked)


def test_spectral_refuses_chains_it_says_nothing_about():
    with pytest.raises(UnsupportedError, match="not aperiodic"):
        calibrate(MarkovChain([[0, 1], [1, 0]]), 10, 1, "spectral")
    with pytest.raises(UnsupportedError, match="not irreducible"):
        calibrate(MarkovChain([[0.5, 0.5], [0, 1]], "any"), 10, 1, "spectral")


def test_the_length_of_clusters_is_theirs():
    with pytest.raises(InvalidInputError, match="about 2 rows"):
        calibrate(Clusters(["a", "a"]), 3, 1)


def test_it_explains_itself():
    text = calibrate(STATIONARY, 100, 1).explain()
    for part in ("3.33641", "Spent there: 0.299723", "add 0.350138 from before", "sweep"):
        assert part in text
    text = calibrate(STATIONARY, 200, 1, episode=60).explain()
    assert "together need the most" in text
    text = calibrate(MarkovChain(RESTLESS, [1, 0]), 100, 1, "exact").explain()
    for part in ("12.934", "Node 8", "X_1, X_13", "11 time points", "0.149532", "exact"):
        assert part in text
    assert "is empty" in calibrate(MarkovChain([[0, 1], [1, 0]]), 5, 1, "exact").explain()
    assert (
        "no protected time point has a secret"
        in calibrate(MarkovChain([[0, 1], [1, 0]], [1, 0]), 5, 1).explain()
    )


def test_its_document_holds_the_exact_numbers():
    found = calibrate(STATIONARY, 100, 0.1)
    document = json.loads(found.to_json())
    assert document["schema"] == "quiltwork/calibration"
    assert Fraction(document["exact_scale"]) == found.exact_scale
    assert Fraction(document["epsilon"]) == Fraction(1, 10)
    assert tuple(document["quilt"]) == found.quilt


@given(chains(2, 4), st.integers(1, 30), st.floats(0.01, 20))
@settings(max_examples=30)
def test_the_exact_scale_keeps_every_node_within_epsilon_in_fractions(chain, length, epsilon):
    """σ satisfies change/σ + e ≤ ε exactly, and the float is not below it."""
    found = calibrate(chain, length, epsilon, "exact")
    assert Fraction(found.scale) >= found.exact_scale
    if found.exact_scale:
        cost = Fraction(found.change) / found.exact_scale + Fraction(found.influence)
        assert cost <= Fraction(str(epsilon))


def test_epsilon_is_kept_as_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert calibrate(STATIONARY, 10, Fraction(1, 7)).epsilon == Fraction(1, 7)


def test_a_calibration_can_be_sent_to_another_process():
    found = calibrate(STATIONARY, 100, 1, query=queries.histogram())
    copy = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert copy == found
    assert copy.per_node() == found.per_node()


def test_the_exact_path_loads_no_scipy():
    code = (
        "import sys, quiltwork as qw\n"
        "chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])\n"
        "qw.calibrate(chain, 100, 1, query=qw.queries.histogram())\n"
        "qw.influence_curve(chain, 100).dp_epsilon(1)\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"scipy", "networkx", "pandas", "matplotlib"} & set(loaded.stdout.split())


def test_lengths_beyond_64_bits_are_refused():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    for length in (10**13 + 1, 10**30, 10**5000):
        for ask in (
            lambda n: qw.calibrate(chain, n, 1),
            lambda n: qw.influence_curve(chain, n),
            lambda n: qw.Accountant(chain, n),
            lambda n: qw.max_influence(chain, 5, (3,), n),
        ):
            with pytest.raises(qw.InvalidInputError, match="at most 10,000,000,000,000"):
                ask(length)
    assert qw.calibrate(chain, 10**13, 1).scale > 0


@pytest.mark.parametrize("epsilon", [1e-320, 10**400, Fraction(1, 10**400), 10**4000])
def test_levels_beyond_all_floats_are_refused(epsilon):
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    for ask in (
        lambda: qw.calibrate(chain, 100, epsilon),
        lambda: qw.calibrate(chain, 100, epsilon, "optimal-scale"),
        lambda: qw.release([0, 1], queries.count(1), chain, epsilon=epsilon),
        lambda: qw.influence_curve(chain, 100).dp_epsilon(epsilon),
        lambda: qw.Accountant(chain, 100, budget=epsilon),
    ):
        with pytest.raises(qw.InvalidInputError, match="between 1e-300 and 1e300"):
            ask()


@pytest.mark.filterwarnings("ignore:epsilon is:quiltwork.QuiltworkWarning")
@pytest.mark.parametrize("epsilon", [1e-12, 1e6])
def test_extreme_levels_still_work(epsilon):
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    found = qw.calibrate(chain, 100, epsilon)
    assert found.exact_scale * positive_fraction(epsilon, "epsilon") >= 1
    released = qw.release([0, 1] * 50, queries.mean(0, 1), chain, epsilon=epsilon)
    assert released.epsilon == epsilon


def test_an_unknown_method_hears_of_all_methods():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    with pytest.raises(qw.InvalidInputError, match="group, entry, optimal-scale, or None"):
        qw.calibrate(chain, 10, 1, "best")


def test_a_query_that_does_not_fit_the_states_is_refused():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    with pytest.raises(qw.InvalidInputError, match="not a finite number"):
        qw.calibrate(chain, 10, 1, query=queries.mean(0, 1))
    with pytest.raises(qw.InvalidInputError, match="not a state of the belief"):
        qw.calibrate(chain, 10, 1, "optimal-scale", query=queries.count("run"))


def test_one_time_point_is_nearby():
    people = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    words = qw.calibrate(people, 5, 1, "exact").explain()
    assert "1 time point " in words
    assert "they" not in words
    assert " are nearby" not in words


def test_the_words_are_in_units_of_the_answer():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[0, 50])
    found = qw.calibrate(chain, 100, 1, "exact", queries.sum(0, 50))
    assert found.scale == pytest.approx(50 * qw.calibrate(chain, 100, 1, "exact").scale, rel=1e-9)
    assert found.scale == pytest.approx(
        float(found.change * found.unit) / (1 - found.influence), rel=1e-9
    )
    assert f"up to {50 * found.change};" in found.explain()


def test_a_quilt_that_is_one_number_is_refused():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    with pytest.raises(qw.InvalidInputError, match="quilt must be a list"):
        qw.max_influence(chain, 5, 3, 10)


def test_an_alternating_chain_is_told_of_the_exact_scale() -> None:
    count = queries.count(1)
    alternating, sticky = [[0.1, 0.9], [0.9, 0.1]], [[0.9, 0.1], [0.4, 0.6]]
    told = calibrate(MarkovChain(alternating), 100, 1, query=count)
    assert 'method="optimal-scale"' in told.explain()
    least = calibrate(MarkovChain(alternating), 100, 1, method="optimal-scale", query=count)
    assert least.scale < told.scale / 10
    assert "optimal-scale" not in calibrate(MarkovChain(sticky), 100, 1, query=count).explain()
