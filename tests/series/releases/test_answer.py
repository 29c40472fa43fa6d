"""Releases end to end: the noise that is drawn, what is recorded, what is refused."""

import json
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import Clusters, InvalidInputError, MarkovChain, QuiltworkWarning, queries
from quiltwork.beliefs import Grid, belief_from_json
from quiltwork.series import Release, read_series
from quiltwork.series.releases.release_page import ReportContext, release_page

MATRIX = [[0.9, 0.1], [0.4, 0.6]]
CHAIN = MarkovChain(MATRIX, initial=[0.8, 0.2], states=["rest", "walk"])
DATA = ["rest", "walk", "walk", "rest"] * 10


def statistic(draws, scale):
    """Chi-square of draws against P(z) ∝ e^(−|z|/scale), over cells of expected count ≥ 20."""
    alpha = math.exp(-1 / scale)
    size = len(draws)
    edge = max(1, int(scale * math.log(size / 40)))
    values = np.arange(-edge, edge + 1)
    mass = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)
    beyond = alpha ** (edge + 1) / (1 + alpha)
    expected = size * np.concatenate([[beyond], mass, [beyond]])
    clipped = np.clip(draws, -edge - 1, edge + 1) + edge + 1
    observed = np.bincount(clipped, minlength=2 * edge + 3)
    return float(((observed - expected) ** 2 / expected).sum()), 2 * edge + 2


@pytest.fixture(scope="module", name="noise")
def noise_fixture():
    """200,000 draws: the errors of a histogram of independent rows, one in each cell."""
    rows = range(200_000)
    answer = qw.release(rows, queries.histogram(states=rows), Clusters(rows), epsilon=0.25)
    return answer.value - 1


def test_releases_carry_the_noise_they_say(noise):
    found, freedom = statistic(noise, 8.0)
    assert found < freedom + 8 * math.sqrt(2 * freedom)  # by chance once in 9·10⁹ runs


@pytest.mark.parametrize("wrong", [0.95, 1.05])
def test_the_same_test_rejects_a_scale_that_is_5_percent_off(noise, wrong):
    found, freedom = statistic(noise, 8.0 * wrong)
    assert found > freedom + 8 * math.sqrt(2 * freedom)  # 8 more standard deviations away


def test_intervals_of_releases_cover_the_truth_as_often_as_they_say():
    people = Clusters(range(1000))
    rows = [row % 500 for row in range(1000)]
    answers = [qw.release(rows, queries.histogram(states=range(500)), people) for _ in range(10)]
    inside = np.concatenate(
        [(a.interval(0.9).low <= 2) & (a.interval(0.9).high >= 2) for a in answers]
    )
    promised = 1 - answers[0].law.tail(answers[0].law.quantile(0.9))
    assert promised >= 0.9
    assert abs(inside.mean() - promised) < 7 * math.sqrt(promised * (1 - promised) / len(inside))


def test_noise_on_the_commonest_state_follows_its_law():
    """P(a) = 1/(1 + e^(−gap/scale)) with gap 2 and scale 2; half or twice the scale is noticed."""
    people, trials = Clusters(range(4)), 3000
    query = queries.most_common(states=["a", "b"])
    chosen = [qw.release(["a", "a", "a", "b"], query, people).value for _ in range(trials)]
    share, truth = chosen.count("a") / trials, 1 / (1 + math.exp(-1))
    spread = math.sqrt(truth * (1 - truth) / trials)
    assert abs(share - truth) < 7 * spread
    assert all(abs(share - 1 / (1 + math.exp(-r))) > 7 * spread for r in (0.5, 2))


def test_without_uncertainty_there_is_no_noise():
    clock = MarkovChain([[0, 1], [1, 0]], initial=[1, 0], states=["tick", "tock"])
    beat = ["tick", "tock", "tick"]
    assert qw.release(beat, queries.histogram(), clock).value.tolist() == [2, 1]
    assert qw.release(beat, queries.most_common(), clock).value == "tick"
    answer = qw.release(beat, queries.count("tick"), clock)
    assert (answer.value, answer.scale) == (2, 0.0)
    assert answer.interval() == (2, 2)
    assert Release.from_json(answer.to_json()) == answer
    assert "none" in answer.explain()
    single = MarkovChain([[1.0]], states=["only"])
    assert qw.release(["only"] * 5, queries.frequencies(), single).value.tolist() == [1.0]
    numbers = MarkovChain([[1.0]], states=[0.3])
    assert qw.release([0.3] * 5, queries.mean(0, 1), numbers).value == pytest.approx(0.3)


def test_what_is_recorded():
    answer = qw.release(DATA, queries.histogram().on(5, 30), CHAIN, epsilon=0.1)
    calibration = qw.calibrate(CHAIN, 40, 0.1, query=queries.histogram().on(5, 30))
    assert answer.exact_epsilon == Fraction(1, 10)
    assert answer.noise_scale == calibration.exact_scale
    assert answer.scale == pytest.approx(calibration.scale)
    assert answer.window == (5, 30)
    assert (answer.points, answer.length, answer.subjects) == (26, 40, 1)
    assert (answer.node, answer.quilt) == (calibration.node, calibration.quilt)
    assert answer.dp_epsilon == pytest.approx(2 / answer.scale)
    assert answer.mechanism == "two-sided geometric"
    assert set(answer.as_dict()) == {"rest", "walk"}
    shown = answer.explain()
    assert "time points 5 to 30" in shown
    assert "most noise is needed for time point" in shown
    assert "X_" not in shown
    assert "array(" not in shown


@pytest.mark.parametrize(
    ("query", "moves"),
    [
        (queries.count("walk"), 1),
        (queries.frequencies(), 2),
        (queries.transitions(), 4),
        (queries.transitions().on(3, 4), 2),
        (queries.most_common(), 2),
    ],
)
def test_the_level_per_substituted_point_is_its_change_over_the_scale(query, moves):
    answer = qw.release(DATA, query, CHAIN)
    assert answer.dp_epsilon == pytest.approx(moves / float(answer.noise_scale))
    assert Fraction(answer.dp_epsilon) >= moves / answer.noise_scale


def test_a_mean_lies_on_its_public_grid_and_its_scale_is_in_its_units():
    coin = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=[0.5, 1.0])
    answer = qw.release([0.5, 1.0] * 50, queries.mean(0, 1), coin, epsilon=1.0)
    step = answer.query.step
    assert step.numerator == 1
    assert step.denominator.bit_count() == 1
    assert answer.value == float(Fraction(1, 2) + answer.noisy[0] * step / 100)
    assert answer.scale == pytest.approx(0.5 / 100)  # the states' own range
    total = qw.release([0.5, 1.0] * 50, queries.sum(0, 2), coin, epsilon=1.0)
    assert total.scale == pytest.approx(0.5)


@pytest.mark.filterwarnings("ignore:epsilon is:quiltwork.QuiltworkWarning")
def test_values_differ_from_the_truth_by_the_noise_only():
    """With a huge epsilon the noise vanishes, so evaluation and presentation show."""
    near = {"epsilon": 1e6}
    coin = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=[0.25, 1.0])
    data = [0.25, 1.0, 1.0, 1.0]
    assert qw.release(data, queries.mean(0, 1), coin, **near).value == pytest.approx(
        0.8125, abs=1e-4
    )
    assert qw.release(data, queries.sum(-1, 1), coin, **near).value == pytest.approx(3.25, abs=1e-3)
    assert qw.release(data, queries.histogram(), coin, **near).value.tolist() == [1, 3]
    assert qw.release(data, queries.frequencies().on(2, 4), coin, **near).value.tolist() == [0, 1]
    assert qw.release(data, queries.transitions(), coin, **near).value.tolist() == [[0, 1], [0, 2]]
    assert qw.release(data, queries.most_common(), coin, **near).value == 1.0
    pooled = qw.release([data, data[:1]], queries.frequencies(), coin, **near)
    assert pooled.value.tolist() == [0.4, 0.6]
    assert (pooled.points, pooled.length, pooled.subjects) == (5, 4, 2)
    switches = queries.custom(lambda x: (x[1:] != x[:-1]).sum(), lipschitz=2)
    assert qw.release(data, switches, coin, **near).value == pytest.approx(1.0, abs=1e-3)


def test_released_transitions_of_many_states_are_those_of_the_data():
    """Pooled over two subjects and against Python's own counting, with next to no noise."""
    size = 17
    walk = MarkovChain(np.full((size, size), 1 / size))
    data = [walk.sample(400, seed=seed) for seed in (1, 2)]
    answer = qw.release(data, queries.transitions(), walk, epsilon=99)
    counted = sum((Counter(pairwise(one.tolist())) for one in data), Counter())
    truth = [[counted[a, b] for b in range(size)] for a in range(size)]
    low, high = answer.interval(1 - 1e-12, simultaneous=True)
    assert ((low <= truth) & (truth <= high)).all()
    assert (high - low).max() <= 5
    assert qw.ChainBox.from_counts(low, high, 0.999999).contains(walk)


def test_pooling_needs_the_noise_of_one_subject():
    one = qw.release(DATA, queries.histogram(), CHAIN)
    many = qw.release({"ann": DATA, "bob": DATA[:20], "cem": DATA}, queries.histogram(), CHAIN)
    assert many.noise_scale == one.noise_scale
    assert many.points == 100


def test_the_record_never_holds_the_truth():
    """The document of two neighbouring data sets differs in noisy numbers only."""
    first, second = (
        json.loads(qw.release(data, queries.histogram(), CHAIN).to_json())
        for data in (DATA, [*DATA[:-1], "walk"])
    )
    differing = {name for name in first if first[name] != second[name]}
    shown = {"intervals", "verdict", "reason"}  # which follow from the noisy numbers
    assert differing <= {"value", "noisy", *shown}
    without = {name: part for name, part in first.items() if name not in shown}
    assert json.loads(qw.Release.from_json(json.dumps(without)).to_json()) == first


def test_the_page_to_forward_says_what_it_does_not_hide():
    page = release_page(qw.release(DATA, queries.histogram(), CHAIN))
    assert "What it does not hide" in page
    assert "more strongly correlated" in page
    of_persons = qw.release([DATA], queries.histogram(), CHAIN, protect="person")
    assert "strongly correlated" not in release_page(of_persons)


def test_the_page_bounds_what_other_releases_of_a_ledger_reveal():
    answer = qw.release(DATA, queries.histogram(), CHAIN, epsilon=0.25)
    assert "nothing limits what they reveal together" in release_page(answer)
    page = release_page(answer, context=ReportContext(ledger_level=(1.0, 0.0)))
    assert "nothing limits" not in page
    assert "all that this ledger counts stays together within ε = 1." in page
    assert "by a factor of at most 2.718" in page
    assert "by a factor of at most 1.284" in page
    assert "in hours" not in page
    hours = f"{len(DATA) / 6:.6g} hours"
    assert hours in release_page(answer, context=ReportContext(step=600))


def test_several_sequences_are_named_beside_their_window():
    answer = qw.release([DATA] * 4, queries.histogram(), CHAIN, epsilon=20)
    assert f"this window of 4 sequences of {len(DATA)} time points" in answer.usefulness.reason
    answer = qw.release([DATA, DATA[:3]], queries.histogram(), CHAIN, epsilon=20)
    assert f"2 sequences of up to {len(DATA)} time points" in answer.usefulness.reason


def test_a_belief_fitted_on_the_data_warns():
    fitted = MarkovChain.fit(DATA, smoothing=0.5)
    with pytest.warns(QuiltworkWarning, match="fitted on the data"):
        told = qw.release(DATA, queries.histogram(), fitted)
    again = qw.Release.from_json(told.to_json())
    for text in (told.explain(), again.explain(), release_page(again)):
        assert "the guarantee does not hold" in text  # also for who gets it forwarded
    with pytest.warns(QuiltworkWarning, match="fitted on the data"):
        qw.release(
            [DATA[:7], DATA],
            queries.histogram(),
            [MarkovChain(MATRIX, states=fitted.states), fitted],
        )
    days = np.array(DATA)
    fitted = MarkovChain.fit(days)
    with pytest.warns(QuiltworkWarning, match="fitted on the data"):
        qw.release(days[:-1], queries.histogram(), fitted)
    other = qw.release(days.copy(), queries.histogram(), fitted)
    assert "does not hold" not in other.explain()  # somebody else's, as far as can be told


def test_a_release_from_the_file_of_the_fit_warns(tmp_path):
    path = tmp_path / "day.csv"
    path.write_text("state\n" + "\n".join(DATA))
    fitted = belief_from_json(MarkovChain.fit(read_series(path, "state").data).to_json())
    with pytest.warns(QuiltworkWarning, match="the file they come from"):
        qw.release(path, queries.histogram(), fitted)
    with pytest.warns(QuiltworkWarning, match="the file they come from"):
        qw.release({"ann": path}, queries.histogram(), fitted)


METER = [0.1, 0.2, 3.0, 2.9, 0.1, 0.3, 1.0, 1.1]
LABELS = ("low", "middle", "high")


@pytest.fixture
def meter(tmp_path):
    path = tmp_path / "meter.csv"
    rows = [f"{15 * i},{kw}" for i, kw in enumerate(METER)]
    path.write_text("\n".join(["minutes,kw", *rows]))
    return path


def hourly(**grid):
    grid = Grid(**{"step": "1h", "edges": (0.5, 2), "labels": LABELS, "rule": "mean", **grid})
    return MarkovChain(np.full((3, 3), 1 / 3), states=LABELS, grid=grid)


def test_data_read_on_another_grid_are_refused_and_nothing_is_spent(meter, tmp_path):
    def read(**options):
        options = {"every": "1h", "edges": [0.5, 2], "labels": LABELS, **options}
        return read_series(meter, "kw", time="minutes", **options).data

    ledger = qw.Ledger.open(f"sqlite:///{tmp_path / 'budget.db'}")
    chain = hourly()
    ledger.create("d", chain, 2, 1)
    paid = {"ledger": ledger, "dataset": "d", "epsilon": 0.1}
    qw.release(read(), queries.histogram(), chain, **paid)
    for options, words in (
        ({"every": "15min"}, "made for steps of 1h, but the data are on steps of 15min"),
        ({"edges": [0.5, 3]}, "the edges 0.5, 2.0, but the data are on the edges 0.5, 3.0"),
        (
            {"labels": LABELS[::-1]},
            "'low', 'middle', 'high', but the data are on the states 'high'",
        ),
        ({"rule": "max"}, "the mean of each step, but the data are on the max of each step"),
    ):
        data = read(**options)
        for part in (data, list(data.values()), data[None], data[None][:2], {"ann": data[None]}):
            with pytest.raises(InvalidInputError, match=words):
                qw.release(part, queries.histogram(), chain, **paid)
    assert ledger.status("d").debits == 1
    qw.release([str(label) for label in read()[None]], queries.histogram(), chain)  # unknown grid


def test_a_path_is_read_on_the_beliefs_grid(meter, tmp_path):
    one = tmp_path / "kw.csv"
    one.write_text("\n".join(["kw", *map(str, METER)]))
    binned = hourly(step=None, rule=None)
    released = qw.release(one, queries.histogram(), binned, epsilon=99)
    assert released.as_dict() == {"low": 4, "middle": 2, "high": 2}
    with pytest.raises(InvalidInputError, match="about steps of 1h, and without times"):
        qw.release(one, queries.histogram(), hourly())


BAD_ARGUMENTS = [
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": True}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"epsilon": float("inf")}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"query": "histogram"}, "qw.queries"),
    ({"query": queries.histogram}, "qw.queries"),
    ({"query": queries.count("run")}, "'run'"),
    ({"query": queries.mean(0, 1)}, "not a finite number"),
    ({"query": queries.histogram().on(3, 90)}, "does not fit"),
    ({"query": queries.histogram(states=["a"])}, "leave them out"),
    ({"beliefs": []}, "belie"),
    ({"beliefs": "chain"}, "belie"),
    ({"beliefs": [CHAIN, MarkovChain(MATRIX)]}, "states"),
    ({"method": "magic"}, "magic"),
    ({"secrets": (3, 2)}, "protected time point"),
    ({"secrets": (0, 2)}, "protected time point"),
    ({"secrets": 3}, "secrets"),
    ({"dataset": "d"}, "nothing would be debited"),
    ({"key": "k"}, "nothing would be debited"),
    ({"ledger": object()}, "without dataset"),
    ({"ledger": object(), "dataset": ""}, "dataset"),
    ({"ledger": object(), "dataset": "d", "key": 3}, "key"),
]


@pytest.mark.parametrize(("change", "words"), BAD_ARGUMENTS, ids=range(len(BAD_ARGUMENTS)))
def test_bad_arguments_are_refused_with_a_sentence(change, words):
    arguments = {"query": queries.histogram(), "beliefs": CHAIN, **change}
    with pytest.raises(InvalidInputError, match=words):
        qw.release(DATA, **arguments)


def test_unequal_lengths_and_windows():
    with pytest.raises(InvalidInputError, match="length 4"):
        qw.release([DATA, DATA[:4]], queries.histogram().on(2, 6), CHAIN)
    assert qw.release([DATA, DATA[:6]], queries.histogram().on(2, 6), CHAIN).points == 10


def test_the_histogram_path_needs_no_scipy():
    code = """
import sys
import quiltwork as qw
chain = qw.MarkovChain([[.9, .1], [.4, .6]], initial=[.8, .2], states=["rest", "walk"])
answer = qw.release(["rest", "walk"] * 50, qw.queries.histogram(), chain)
answer.interval(), answer.to_json(), answer.explain()
print([name for name in sys.modules if name.split(".")[0] in
       ("scipy", "networkx", "pandas", "polars", "matplotlib")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
