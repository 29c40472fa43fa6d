"""Checking beliefs: the verdict, the leak behind it, and what caution costs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from quiltwork import audit, calibrate, queries
from quiltwork.beliefs import ChainBox, Clusters, MarkovChain, candidates
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import percent
from quiltwork.influence.diagnostic_charts import caution_chart, check_charts
from quiltwork.influence.diagnostics import check_belief, noise_by_distance
from quiltwork.report import BarChart, inline_svg

TRUTH = MarkovChain([[0.95, 0.05], [0.1, 0.9]], states=["rest", "walk"])
SAID = MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["rest", "walk"])
SAMPLE = TRUTH.sample(5000, seed=1)


def test_a_belief_that_forgets_too_fast_is_contradicted_and_leaks():
    found = check_belief(SAID, SAMPLE, length=200)
    assert not found.fits
    assert found.contradictions()[0].startswith("stays in 'rest' last 21.4 steps on average")
    best = candidates(SAMPLE)[0].belief
    made = calibrate(SAID, 200, 1, query=queries.histogram())
    told = audit.leakage(best, 200, [(queries.histogram(), made.exact_scale)])
    assert found.level == pytest.approx(told, rel=1e-9)
    assert f"would leak up to {told:.3g} if" in found.verdict()


def test_the_truth_fits_and_so_does_a_list_with_it():
    assert check_belief(TRUTH, SAMPLE, length=50).fits
    listed = check_belief([SAID, TRUTH], SAMPLE, length=50)
    assert listed.fits
    assert listed.best.belief is TRUTH
    assert len(listed.body()["beliefs"]) == 2


def test_a_wide_box_keeps_its_promise():
    box = ChainBox([[0.9, 0.02], [0.05, 0.8]], [[0.98, 0.1], [0.2, 0.95]], ["rest", "walk"])
    found = check_belief(box, SAMPLE, length=50)
    assert found.fits
    assert found.misspecification.keeps
    assert "would keep that" in found.verdict()


def test_a_cautious_belief_that_does_not_fit_says_so():
    slow = MarkovChain([[0.99, 0.01], [0.02, 0.98]], states=["rest", "walk"])
    found = check_belief(slow, SAMPLE, length=50)
    assert not found.fits
    assert "yet a release made for 1 would keep that" in found.verdict()


def test_steps_that_are_ruled_out_come_first():
    never = MarkovChain([[0.9, 0.1], [1, 0]], states=["rest", "walk"])
    found = check_belief(never, SAMPLE, length=50)
    share = np.mean((SAMPLE[:-1] == "walk") & (SAMPLE[1:] == "walk"))
    assert (
        found.contradictions()[0] == f"the belief rules out {percent(share)} of the sample's steps"
    )
    assert found.body()["beliefs"][0]["per_step"] is None
    json.loads(found.to_json())


def test_no_noise_has_no_bound():
    certain = MarkovChain([[0, 1], [1, 0]], initial=[1, 0], states=["rest", "walk"])
    found = check_belief(certain, SAMPLE, length=50)
    assert found.misspecification is None
    assert found.level == math.inf
    assert "would have no noise at all" in found.verdict()


def test_a_belief_fitted_on_the_sample_is_noticed():
    fitted = MarkovChain.fit(SAMPLE)
    assert "fitted on this sample" in check_belief(fitted, SAMPLE, length=20).explain()
    assert "fitted on this sample" not in check_belief(TRUTH, SAMPLE, length=20).explain()


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(UnsupportedError, match="Clusters is not about sequences"):
        check_belief(Clusters([1, 1]), SAMPLE)
    with pytest.raises(InvalidInputError, match="length"):
        check_belief(TRUTH, SAMPLE, length=0)
    with pytest.raises(InvalidInputError, match="epsilon"):
        check_belief(TRUTH, SAMPLE, epsilon=-1)


def test_charts_show_the_likelihoods_and_every_state():
    found = check_belief(SAID, SAMPLE, length=50)
    first, *others = check_charts(found)
    lost = dict(first.bars)
    best = max(one.per_step for one in found.candidates)
    assert lost["this belief"] == pytest.approx(best - found.best.per_step)
    assert [chart.title for chart in others] == [
        "What a histogram would tell",
        *("Memory of 'rest'", "Stays in 'rest'", "Memory of 'walk'", "Stays in 'walk'"),
    ]
    assert all("<svg" in inline_svg(chart) for chart in (first, *others))


def test_noise_grows_with_how_wrong_one_may_be():
    noise = noise_by_distance(SAID, 100, 1, [0, 0.05, 0.2])
    assert noise[0][1] == calibrate(SAID, 100, 1, query=queries.histogram()).scale
    box = ChainBox([[0.75, 0.15], [0.35, 0.55]], [[0.85, 0.25], [0.45, 0.65]], SAID.states)
    told = calibrate(box, 100, 1, query=queries.histogram()).scale
    assert noise[1][1] == pytest.approx(told, rel=1e-9)
    assert noise[0][1] < noise[1][1] < noise[2][1]
    chart = caution_chart(noise, 100, 1)
    assert isinstance(chart, BarChart)
    assert chart.bars[1] == ("off by 0.05", noise[1][1])


def slow_regimes(p, length, seed):
    """Coins of two kinds, drawn while a regime lasts that changes once in 250 steps."""
    random = np.random.default_rng(seed)
    regime = np.cumsum(random.random(length) < 0.004) % 2
    return (random.random(length) < np.where(regime, p, 1 - p)).astype(int)


def test_the_best_that_was_tried_does_not_fit_if_its_memory_is_too_short():
    sample = slow_regimes(0.3, 4000, 3)
    fitted = MarkovChain.fit(sample)
    found = check_belief(MarkovChain(fitted.transition), sample, length=50)
    assert found.likely
    assert not found.fits
    assert "autocorrelation" in found.contradictions()[0]
    assert found.verdict().startswith(
        "It does not fit, though none that was tried is much likelier"
    )


@pytest.mark.parametrize("length", [300, 4000])
def test_the_truth_is_not_contradicted_by_chance(length):
    verdicts = [
        check_belief(TRUTH, TRUTH.sample(length, seed=seed), length=5).contradictions()
        for seed in range(8)
    ]
    assert verdicts == [[]] * 8


def test_a_belief_on_its_own_sample_is_judged_by_held_out_halves():
    fitted = MarkovChain.fit(SAMPLE)
    found = check_belief(fitted, SAMPLE, length=20)
    own = next(one.per_step for one in found.candidates if one.name == "order 1")
    assert found.fitted
    assert found.held_out
    assert found.best.per_step == own
    assert found.verdict().startswith("It fits the sample that it was fitted on; ")
    assert "each half scored by the other" in found.explain()
    assert found.score_title == "Likelihood of held-out steps"
    box = ChainBox.fit(SAMPLE)
    unknown = check_belief(box, SAMPLE, length=20)
    assert not unknown.held_out
    assert unknown.body()["held_out"] is False
    assert "was not held out and is not judged" in unknown.explain()
    assert unknown.score_title == "Likelihood of steps, held out for the fitted ones alone"
