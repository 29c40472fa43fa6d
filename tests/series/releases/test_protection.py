"""Moments, episodes and persons: what is one secret, and the noise that each of them takes."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import InvalidInputError, UnsupportedError, queries
from quiltwork.budget import PEOPLE
from quiltwork.noise import TwoSidedGeometric

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
LENGTHS = (3, 4)
EPSILON = Fraction(7, 10)
COUNTED = [
    queries.count(1),
    queries.histogram(),
    queries.histogram().on(2, 3),
    queries.frequencies(),
    queries.transitions(),
    queries.mean(0, 1),
    queries.sum(0, 1),
]


def series(length):
    return itertools.product((0, 1), repeat=length)


def farthest(query, length):
    """The most that replacing one whole series moves the integers: all pairs of series."""
    answers = [query.evaluate(np.array(one), (0, 1)) for one in series(length)]
    return max(int(abs(a - b).sum()) for a, b in itertools.product(answers, repeat=2))


@pytest.mark.parametrize("query", COUNTED, ids=lambda q: f"{q.kind}{q.stop or ''}")
def test_replacing_a_whole_enumerated_series_moves_probabilities_by_epsilon_and_no_less(query):
    data = [[0, 1, 0], [1, 1, 0, 1]]
    answer = qw.release(data, query, CHAIN, epsilon=EPSILON, protect="person")
    moved = max(farthest(answer.query, length) for length in LENGTHS)
    assert answer.noise_scale == moved / EPSILON
    assert (answer.protects, answer.episode, answer.subjects) == ("person", 4, 2)


def test_the_odds_between_any_two_series_of_a_person_move_by_epsilon():
    """All answers near the truth, all pairs of series of the second person, the first one fixed."""
    answer = qw.release(
        [[0, 1, 0], [1, 1, 0]], queries.count(1), CHAIN, epsilon=1, protect="person"
    )
    law = TwoSidedGeometric.from_scale(answer.noise_scale)
    told = [
        {seen: law.probability(seen - 1 - sum(one)) for seen in range(-8, 14)} for one in series(3)
    ]
    ratios = [
        math.log(a[seen] / b[seen]) for a, b in itertools.product(told, repeat=2) for seen in a
    ]
    assert 0.97 < max(ratios) <= 1 + 1e-12


def test_the_most_common_state_of_persons_is_chosen_as_privately():
    answer = qw.release([[0, 1, 0]] * 5, queries.most_common(), CHAIN, epsilon=1, protect="person")
    scale = float(answer.noise_scale)

    def chances(ones):
        weights = [math.exp((15 - ones) / scale), math.exp(ones / scale)]
        return [weight / sum(weights) for weight in weights]

    told = [chances(5 + ones) for ones in range(4)]  # four other persons, and this one's 0..3
    pairs = [zip(*two, strict=True) for two in itertools.product(told, repeat=2)]
    most = max(math.log(a / b) for two in pairs for a, b in two)
    assert 0.4 < most <= 1


def test_persons_need_no_belief_and_beliefs_change_nothing_about_their_noise():
    data = [[0, 1, 0], [1, 1, 0]]
    free = qw.release(data, queries.histogram(states=[0, 1]), None, protect="person")
    surely = qw.MarkovChain([[1, 0], [0, 1]], initial=[1, 0])
    bound = qw.release(data[:1], queries.histogram(), [surely, CHAIN], protect="person")
    assert free.noise_scale == bound.noise_scale == 6
    assert "whole of their series" in free.explain()
    assert qw.Release.from_json(free.to_json()) == free
    with pytest.raises(InvalidInputError, match="the states are unknown"):
        qw.release(data, queries.count(1), None, protect="person")
    with pytest.raises(InvalidInputError):
        qw.release(data, queries.histogram(states=[0, 1]), None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"protect": "people"}, "protect"),
        ({"protect": "episode"}, "episode=18"),
        ({"protect": "person", "episode": 3}, "goes with protect='episode'"),
        ({"protect": "moment", "episode": 3}, "goes with protect='episode'"),
        ({"protect": "person", "method": "sweep"}, "leave method"),
        ({"protect": "person", "secrets": (1, 2)}, "secrets and pairs out"),
    ],
)
def test_contradictions_are_refused(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        qw.release([0, 1, 0], queries.histogram(), CHAIN, **arguments)
    with pytest.raises(InvalidInputError, match=words):
        qw.preview(queries.histogram(), CHAIN, length=3, **arguments)


def test_rows_of_clusters_are_no_persons():
    with pytest.raises(UnsupportedError, match="one cluster"):
        qw.release([0, 1], queries.count(1), qw.Clusters([1, 2]), protect="person")


def test_moment_and_episode_are_what_they_were():
    data = [0, 1] * 20
    for given, older in (
        ({"protect": "moment"}, {}),
        ({"protect": "episode", "episode": 5}, {"episode": 5}),
    ):
        a, b = (qw.release(data, queries.histogram(), CHAIN, **one) for one in (given, older))
        assert (a.noise_scale, a.protects) == (b.noise_scale, given["protect"])


def test_a_ledger_of_people_adds_up_the_levels_of_persons(tmp_path):
    data, query = [[0, 1, 0]] * 9, queries.histogram(states=[0, 1])
    with qw.Ledger.open(f"sqlite:///{tmp_path}/people.db") as ledger:
        ledger.create("people", PEOPLE, None, budget=1)
        pays = {"ledger": ledger, "dataset": "people"}
        first = qw.release(data, query, None, 0.5, protect="person", key="a", **pays)
        assert qw.release(data, query, None, 0.5, protect="person", key="a", **pays) == first
        qw.counts.release_table({"yes": 3}, epsilon=0.25, **pays)
        assert ledger.status("people").total == 0.75
        with pytest.raises(qw.BudgetExceeded):
            qw.release(data, query, None, 0.5, protect="person", **pays)
        with pytest.raises(InvalidInputError, match="other beliefs"):
            qw.release(data, queries.histogram(), CHAIN, 0.1, **pays)
        ledger.verify()


@pytest.mark.parametrize(("episode", "total"), [(3, 0.5), (1, 0.5 / 3)])
def test_a_ledger_of_moments_is_debited_what_persons_tell_about_its_secrets(
    tmp_path, episode, total
):
    with qw.Ledger.open(f"sqlite:///{tmp_path}/moments.db") as ledger:
        coins = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
        ledger.create("series", coins, 3, budget=1, episode=episode)
        paid = {"ledger": ledger, "dataset": "series"}
        qw.release([0, 1, 0], queries.histogram(), coins, 0.5, protect="person", **paid)
        assert ledger.status("series").total == pytest.approx(total)


def test_without_a_belief_nothing_is_said_about_moments():
    seen = qw.preview(queries.histogram(states=[0, 1]), None, length=9, protect="person")
    assert [row["protect"] for row in seen.records()] == ["person"]


def test_previews_show_all_three_side_by_side():
    query, asked = queries.histogram(), {"length": 1440, "subjects": 1000, "epsilon": 1}
    seen = qw.preview(query, CHAIN, **asked)
    rows = {row["protect"]: row for row in seen.records()}
    assert list(rows) == ["moment", "episode", "person"]
    assert rows["moment"]["scale"] == seen.scale == qw.calibrate(CHAIN, 1440, 1, query=query).scale
    alone = qw.calibrate(CHAIN, 1440, 1, query=query, episode=10)
    assert rows["episode"]["scale"] == alone.scale
    assert rows["person"]["scale"] == 2880
    assert json.loads(seen.to_json())["protections"] == seen.records()
    assert "OpenDP or Tumult" in seen.explain()
    few = qw.preview(query, CHAIN, **{**asked, "subjects": 2})
    assert few.records()[2]["verdict"] == "useless"
    assert "OpenDP" not in few.explain()
    person = qw.preview(query, CHAIN, **asked, protect="person")
    assert person.records() == seen.records()
    assert person.explain().startswith("At ε = 1 for every person the expected ")


@pytest.mark.parametrize(
    ("step", "points"), [(600, 6), (60, 60), (3600, 24), (86400, 2), (None, 10)]
)
def test_a_usual_episode_is_an_hour_or_a_day(step, points):
    body = json.loads(CHAIN.to_json())
    body["grid"] = None if step is None else {**(body.get("grid") or {}), "step": step}
    belief = qw.MarkovChain.from_json(json.dumps(body))
    seen = qw.preview(queries.histogram(), belief, length=5000)
    assert [row["episode"] for row in seen.records()] == [1, points, 5000]
