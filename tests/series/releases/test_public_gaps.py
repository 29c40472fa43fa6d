"""Public gaps: what is told about a time point at, beside and away from them, by enumeration."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.series import preview, read_series, register_series
from quiltwork.series.releases.answer import describe_release
from quiltwork.series.releases.release_page import release_page

CHAINS = {
    "sticky": qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"]),
    "given start": qw.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.1, 0.9], ["a", "b"]),
    "with zeros": qw.MarkovChain(
        [[0.5, 0.5, 0], [0, 0.6, 0.4], [0.7, 0, 0.3]], states=["a", "b", "c"]
    ),
}
LENGTH = 6


def series_of(labels, **options):
    """Read labels, hour by hour; None is a missing row."""
    times = pd.date_range("2026-01-05", periods=len(labels), freq="h")
    frame = pd.DataFrame({"t": times, "s": pd.Series(labels, dtype=object)})
    options = {"missing": "public", **options}
    return read_series(frame, "s", time="t", every="1h", **options)


def patterns():
    for mask in product([True, False], repeat=LENGTH):
        if any(mask):
            yield np.array(mask)


def paths_of(chain):
    """Every path with its probability."""
    for path in product(range(chain.size), repeat=LENGTH):
        steps = pairwise(path)
        yield path, chain.start[path[0]] * np.prod([chain.transition[a, b] for a, b in steps])


def answer_of(query, path, mask):
    """The integers of an answer, counted one by one."""
    if query.kind == "count":
        return (sum(mask[t] and path[t] == 1 for t in range(LENGTH)),)
    if query.kind == "transitions":
        both = [t for t in range(LENGTH - 1) if mask[t] and mask[t + 1]]
        return tuple(
            sum((path[t], path[t + 1]) == pair for t in both)
            for pair in product(range(2), repeat=2)
        )
    return tuple(sum(mask[t] and path[t] == s for t in range(LENGTH)) for s in range(2))


def told_at_each_point(query, chain, mask, scale):
    """The exact leakage at each time point: all paths, all answers, all outputs that matter.

    A ratio of mixtures of two-sided geometric laws is extreme at the values of their centres.
    """
    laws = [{} for _ in range(LENGTH * chain.size)]
    for path, p in paths_of(chain):
        answer = answer_of(query, path, mask)
        for t, state in enumerate(path) if p else ():
            law = laws[t * chain.size + state]
            law[answer] = law.get(answer, 0.0) + p
    centres = sorted({answer for law in laws for answer in law})
    outputs = list(product(*map(sorted, map(set, zip(*centres, strict=True)))))
    kernel = np.array(
        [[-sum(map(abs, np.subtract(o, c))) / float(scale) for c in centres] for o in outputs]
    )
    worst = []
    for t in range(LENGTH):
        rows = []
        for law in laws[t * chain.size : (t + 1) * chain.size]:
            if law:
                weights = np.array([law.get(c, 0.0) for c in centres])
                rows.append(np.log(np.exp(kernel) @ (weights / weights.sum())))
        worst.append(max(float((a - b).max()) for a in rows for b in rows))
    return worst


ASKED = [
    *((name, queries.count("b")) for name in CHAINS),
    *((name, q()) for name in [*CHAINS][:2] for q in (queries.histogram, queries.transitions)),
]


@pytest.mark.parametrize(("name", "query"), ASKED)
def test_no_time_point_leaks_more_than_epsilon_wherever_the_gaps_are(name, query):
    chain = CHAINS[name]
    at, beside, away = [], [], []
    for mask in patterns():
        series = series_of([("a" if there else None) for there in mask], beliefs=chain)
        try:
            made = describe_release(series.data, query, chain, epsilon=1.0)
        except InvalidInputError:
            assert query.kind == "transitions"
            assert not (mask[:-1] & mask[1:]).any()
            continue
        assert made.gaps == (~mask).sum()
        for t, leak in enumerate(told_at_each_point(query, chain, mask, made.noise_scale)):
            near = ~mask[max(t - 1, 0) : t + 2]
            (at if not mask[t] else beside if near.any() else away).append(leak)
    assert len(at) > 50
    for leaks in (at, beside, away):
        assert max(leaks) <= 1 + 1e-9
    assert max(at) > 0.2  # a state at a gap is no secret that costs nothing
    if query.kind == "count" and chain.size == 2:
        assert max(away) > 0.95  # so a claim that is off by 5 % fails


def test_answers_denominators_pairs_and_totals_count_what_was_recorded():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[0, 1], grid=qw.Grid(step="1h"))
    labels = [0, 1, None, 1, 1, None, None, 0, 1, 1]
    series = series_of(labels, beliefs=chain)
    given = pd.Series(labels)
    sure = {"beliefs": chain, "epsilon": 90}
    mean = qw.release(series.data, queries.mean(0, 1), **sure)
    assert mean.value == pytest.approx(given.mean(), abs=0.1)  # 0.5 of all ten is off by 0.21
    assert (mean.points, mean.gaps) == (7, 3)
    shares = qw.release(series.data, queries.frequencies(), **sure)
    assert shares.value.tolist() == [float((given == s).sum()) / 7 for s in (0, 1)]
    moves = qw.release(series.data, queries.transitions(), **sure)
    assert moves.value.tolist() == [[0, 2], [0, 2]]
    assert moves.total == moves.value.sum() == 4
    part = qw.release(series.data, queries.histogram().on(2, 4), **sure)
    assert (part.value.tolist(), part.total, part.gaps) == ([0, 2], 2, 1)
    assert qw.release(series.data[None][5:9], queries.histogram(), **sure).value.tolist() == [1, 1]
    with pytest.raises(InvalidInputError, match="No time point in the window"):
        qw.release(series.data, queries.histogram().on(6, 7), **sure)
    again = type(mean).from_json(mean.to_json())
    assert again == mean
    assert "treated as public and independent of the states" in again.explain()
    assert "3 of the 10 time points asked about have no record" in again.explain()
    assert "10 time points, 7 of them recorded" in release_page(again)


def test_noise_and_levels_are_those_of_the_whole_window():
    chain = CHAINS["sticky"]
    whole = describe_release(["a"] * 50, queries.histogram(), chain)
    gaps = series_of([None if t % 3 else "a" for t in range(49)] + ["a"], beliefs=chain)
    part = describe_release(gaps.data, queries.histogram(), chain)
    assert part.noise_scale == whole.noise_scale
    assert part.spending == whole.spending  # a value that comes late needs no other account


def test_fits_count_neighbours_that_were_recorded():
    random = np.random.default_rng(3)
    labels = [str(s) if random.random() > 0.2 else None for s in random.choice(["a", "b"], 2000)]
    series = series_of(labels)
    pairs = pd.Series(labels)
    both = pairs.notna() & pairs.shift(-1).notna()
    counts = pd.crosstab(pairs[both], pairs.shift(-1)[both]).to_numpy()
    rows = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    chain = qw.MarkovChain.fit(series.data)
    assert np.allclose(chain.transition, rows)
    assert chain.fitted_on(series.data)
    assert len(recorded_runs(series.data.coded.values())) > 100
    for belief in (
        qw.MarkovChain.fit(series.data, order=2),
        qw.CyclicChain.fit(series.data, "day"),
        qw.ChainBox.fit(series.data),
        *qw.plausible(series.data),
    ):
        assert belief.states == ("a", "b")
        assert belief.fitted_on(series.data)


def test_what_needs_every_time_point_is_refused():
    chain = CHAINS["sticky"]
    series = series_of(["a", None, "b"], beliefs=chain)
    custom = queries.custom(lambda states: len(set(states)), lipschitz=1)
    with pytest.raises(UnsupportedError, match="and gaps have none"):
        qw.release(series.data, custom, chain)
    with pytest.raises(UnsupportedError, match="an answer that leaves points out may reveal more"):
        qw.release(series.data, queries.histogram(), chain, method="optimal-scale")
    with pytest.raises(UnsupportedError, match="not about a series of states"):
        qw.release(series.data, queries.histogram(states=["a", "b"]), qw.Clusters(range(3)))
    with pytest.raises(InvalidInputError, match="reversed or strided slice"):
        qw.release(series.data[None][::-1], queries.histogram(), chain)
    odd = series_of(["a", None, "x"], beliefs=chain)
    with pytest.raises(InvalidInputError, match=r"Position 3 holds none of the belief's states"):
        qw.release(odd.data, queries.histogram(), chain)


@pytest.mark.parametrize(("edges", "word"), [([1], "offline"), (None, "NA")])
def test_only_declared_words_are_public_gaps(tmp_path, edges, word):
    """A word that somebody writes for a state is no gap because it looks like one."""
    path = tmp_path / "s.csv"
    path.write_text(f"s\n0\n2\n\n{word}\n0\n")
    with pytest.raises(InvalidInputError, match=r"Row 4 .* (undeclared word|not declared)"):
        read_series(path, "s", edges=edges, missing="public")
    read = read_series(path, "s", edges=edges, missing="public", na_values=[word])
    assert [one is None for one in read.data[None]] == [False, False, True, True, False]
    assert read_series(path, "s", edges=edges, missing="state").missing == 2


def test_a_ledger_takes_the_gaps_that_were_registered_and_no_others(tmp_path):
    chain = CHAINS["sticky"]
    path = tmp_path / "own.csv"
    path.write_text("s\n" + "a\nb\n\n" * 10)
    other = tmp_path / "other.csv"
    other.write_text("s\n" + "a\n\nb\n" * 10)
    own, moved = (read_series(p, "s", missing="public", beliefs=chain) for p in (path, other))
    with qw.Ledger.open(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.create("d", chain, 30, budget=9)
        paid = {"ledger": ledger, "dataset": "d"}
        with pytest.raises(InvalidInputError, match="public gaps are registered with the data"):
            qw.release(own.data, queries.histogram(), chain, **paid)
        register_series(ledger, "d", str(path), "s", missing="public")
        with pytest.raises(InvalidInputError, match="not the gaps registered"):
            qw.release(moved.data, queries.histogram(), chain, **paid)
        assert not ledger.history("d")
        answer = qw.release(own.data, queries.histogram(), chain, epsilon=0.5, **paid)
        assert answer.gaps == 10
        assert len(ledger.history("d")) == 1
        ledger.verify()


def test_previews_say_the_claim_and_count_what_was_recorded():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[0, 1])
    series = series_of([0, None, None, 1] * 50, beliefs=chain)
    masks = [one.recorded for one in series.data.coded.values()]
    seen = preview(queries.mean(0, 1), chain, length=series.lengths, recorded=masks)
    made = qw.release(series.data, queries.mean(0, 1), chain)
    assert seen.scale == pytest.approx(made.scale)
    assert "100 of the 200 time points asked about have no record" in seen.explain()
    with pytest.raises(InvalidInputError, match="one entry for each time point"):
        preview(queries.mean(0, 1), chain, length=7, recorded=masks)


def test_a_month_of_a_household_is_useful_with_public_gaps(shared_file):
    """Thirty outages of up to three days; as a state they take ten times the noise and more."""
    raw = pd.read_csv(shared_file("data/power_household_10min.csv.gz"))
    random = np.random.default_rng(1)
    for begin in random.integers(0, len(raw) - 500, 30):
        raw.loc[begin : begin + random.integers(20, 400), "active_power_kw"] = np.nan
    shown = {}
    for missing in ("state", "public"):
        read = read_series(raw, "active_power_kw", edges=[0.3, 1, 2.5], missing=missing)
        belief = qw.MarkovChain.fit(read.data, order=2)
        shown[missing] = preview(queries.histogram(), belief, length=30 * 144)
    assert read.missing > 5000
    assert shown["public"].usefulness.verdict == "useful"
    assert shown["state"].usefulness.verdict == "useless"
    assert shown["state"].scale > 10 * shown["public"].scale
