"""`quiltwork audit` from the outside: releases, ledgers, and the noise of plain privacy."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import quiltwork as qw
from quiltwork.beliefs import beliefs_to_json

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=["rest", "walk"])
DATA = ["rest", "walk", "walk", "rest", "rest"] * 20
COUNT = qw.queries.count("walk")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "belief.json").write_text(CHAIN.to_json())
    released = qw.release(DATA, COUNT, CHAIN, epsilon=1, method="exact")
    (tmp_path / "release.json").write_text(released.to_json())
    return tmp_path


def test_a_release_keeps_its_promise_with_room_to_spare(cli, folder):
    ran = cli("audit", "release.json", "--belief", "belief.json")
    assert ran.code == 0, ran.err
    assert "True epsilon: 0.2409" in ran.out
    assert "The promised epsilon of 1 holds." in ran.out
    assert "4.15 times the true epsilon" in ran.out
    document = cli("audit", "release.json", "--belief", "belief.json", "--json").document
    assert document["schema"] == "quiltwork/audit"
    assert document["sound"] is True
    assert document["notes"] == []


def test_plain_noise_hears_what_it_leaks(cli, folder):
    ran = cli(
        *("audit", "--belief", "belief.json", "--length", "100"),
        *("--query", "count:walk", "--scale", "1"),
    )
    assert ran.code == 0, ran.err
    assert "True epsilon: 3.298" in ran.out
    assert "Plain differential privacy gives this noise an epsilon of 1 per time point" in ran.out


def test_other_beliefs_break_the_promise_and_the_exit_code_says_so(cli, folder):
    sticky = qw.MarkovChain([[0.999, 0.001], [0.001, 0.999]], states=["rest", "walk"])
    (folder / "sticky.json").write_text(sticky.to_json())
    ran = cli("audit", "release.json", "--belief", "sticky.json")
    assert ran.code == 1
    assert "BROKEN" in ran.out
    assert "calibrated under another list of beliefs than the one given" in ran.out


def test_a_belief_that_was_one_of_several_is_not_told_that_nothing_was_promised(cli, folder):
    released = qw.release(
        DATA, COUNT, [CHAIN, qw.MarkovChain(CHAIN.transition, states=CHAIN.states)]
    )
    (folder / "several.json").write_text(released.to_json())
    ran = cli("audit", "several.json", "--belief", "belief.json")
    assert ran.code == 0, ran.err
    assert CHAIN.summary() in ran.out
    assert "its promise is about these only" in ran.out


def test_a_ledger_is_audited_jointly(cli, folder):
    url = f"sqlite:///{folder}/budget.db"
    with qw.Ledger.open(url) as ledger:
        ledger.create("heart", CHAIN, 100, 3)
        for day in (1, 2):
            qw.release(DATA, COUNT, CHAIN, epsilon=1, ledger=ledger, dataset="heart", key=str(day))
        total = ledger.status("heart").total
        ledger.accountant("heart").spend(dp_epsilon=0.001)
    ran = cli("audit", url, "--json")
    assert ran.code == 0, ran.err
    releases = [(COUNT, qw.calibrate(CHAIN, 100, 1, query=COUNT).exact_scale)] * 2
    assert ran.document["lower"] == pytest.approx(qw.audit.leakage(CHAIN, 100, releases))
    assert ran.document["lower"] < total <= ran.document["claimed"]
    assert "1 of 3 debits" in ran.document["notes"][0]
    assert cli("audit", url, "--dataset", "heart").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--belief, --length"),
        (["release.json"], "give them with --belief"),
        (["missing.json", "--belief", "belief.json"], "Cannot read 'missing.json'"),
        (["release.json", "--belief", "belief.json", "--scale", "2"], "without SOURCE"),
        (["sqlite:///two.db"], "select one with --dataset"),
    ],
)
def test_what_is_missing_is_named(cli, folder, arguments, message):
    with qw.Ledger.open(f"sqlite:///{folder}/two.db") as ledger:
        ledger.create("heart", CHAIN, 100, 3)
        ledger.create("sleep", CHAIN, 100, 3)
    ran = cli("audit", *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_a_ledger_without_queries_has_nothing_to_audit(cli, folder):
    url = f"sqlite:///{folder}/levels.db"
    with qw.Ledger.open(url) as ledger:
        ledger.create("heart", CHAIN, 100, 3)
        ledger.accountant("heart").spend(dp_epsilon=0.001)
    ran = cli("audit", url)
    assert ran.code == 2
    assert "no noise to" in ran.err


def test_a_sum_is_audited_in_its_own_units(cli, folder):
    numbers = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=[0, 100])
    (folder / "numbers.json").write_text(numbers.to_json())
    asked = ("--belief", "numbers.json", "--length", "6", "--query", "sum:0:100", "--scale", "600")
    ran = cli("audit", *asked)
    assert "True epsilon: 0.451666" in ran.out
    assert "the answer 600 " in ran.out
    assert "noise an epsilon of 0.166667 per" in ran.out
    released = qw.release([0, 100] * 3, qw.queries.sum(0, 100), numbers, epsilon=1)
    (folder / "sum.json").write_text(released.to_json())
    ran = cli("audit", "sum.json", "--belief", "numbers.json", "--json")
    known = qw.audit.leakage(numbers, 6, [(qw.queries.sum(0, 100), released.scale)])
    assert ran.document["upper"] == pytest.approx(known, abs=1e-9)
    assert ran.document["output"] == [600]


def test_a_pooled_mean_is_audited_with_the_noise_of_one_subject(cli, folder):
    numbers = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=[0, 1])
    (folder / "numbers.json").write_text(numbers.to_json())
    pooled = qw.release([[0, 1] * 3] * 5, qw.queries.mean(0, 1), numbers, epsilon=1)
    (folder / "mean.json").write_text(pooled.to_json())
    ran = cli("audit", "mean.json", "--belief", "numbers.json", "--json")
    known = qw.audit.leakage(numbers, 6, [(qw.queries.sum(0, 1), 30 * pooled.scale)])
    assert ran.document["upper"] == pytest.approx(known, abs=1e-9)


def test_a_belief_about_other_states_is_refused(cli, folder):
    three = qw.MarkovChain([[0.5, 0.3, 0.2]] * 3, states=["<0.5", "0.5..2", ">2"])
    released = qw.release(["<0.5", ">2"] * 5, qw.queries.histogram(), three, epsilon=1)
    (folder / "three.json").write_text(released.to_json())
    ran = cli("audit", "three.json", "--belief", "belief.json")
    assert ran.code == 2
    assert "about the same states" in ran.err
    assert "True epsilon" not in ran.out


@pytest.mark.parametrize("scale", ["1e-320", "1e999", "1e999999999"])
def test_a_scale_beyond_all_floats_gets_one_sentence(cli, folder, scale):
    asked = ("--belief", "belief.json", "--length", "9", "--query", "count:walk")
    ran = cli("audit", *asked, "--scale", scale)
    assert ran.code == 2
    assert "far outside the range" in ran.err
    for epsilon in ("1e999", "1e-320"):
        ran = cli("calibrate", "--belief", "belief.json", "--length", "9", "--epsilon", epsilon)
        assert ran.code == 2
        assert "far outside the range" in ran.err


def test_an_edge_beyond_all_floats_gets_one_sentence(cli, folder):
    (folder / "data.csv").write_text("x\n1\n2\n3\n")
    ran = cli("fit", "data.csv", "--value", "x", "--edges", "1e999")
    assert ran.code == 2
    assert "larger than any float" in ran.err


DAY = qw.CyclicChain(
    [[[0.9, 0.1], [0.4, 0.6]], [[0.4, 0.6], [0.7, 0.3]]], ["rest", "walk"], initial=[0.8, 0.2]
)
NAPS = qw.HiddenChain(
    [[0.9, 0.1, 0], [0, 0.5, 0.5], [0.3, 0, 0.7]], ["rest", "walk", "walk"], [1, 0, 0]
)


def test_a_list_of_days_and_hidden_states_is_audited_exactly(cli, folder):
    listed = [DAY, NAPS, CHAIN]
    (folder / "list.json").write_text(beliefs_to_json(listed))
    made = qw.release(DATA, COUNT, listed, epsilon=1)
    (folder / "made.json").write_text(made.to_json())
    ran = cli("audit", "made.json", "--belief", "list.json")
    assert ran.code == 0, ran.err
    truth = max(qw.audit.leakage(one, 100, [(COUNT, made.scale)]) for one in listed)
    assert f"True epsilon: {truth:.6g}." in ran.out


def test_where_the_law_is_too_large_the_bound_of_the_sweep_stands_in(cli, folder):
    (folder / "day.json").write_text(DAY.to_json())
    made = qw.release(DAY.sample(4_500, seed=1), qw.queries.histogram(), DAY, epsilon=1)
    (folder / "made.json").write_text(made.to_json())
    ran = cli("audit", "made.json", "--belief", "day.json")
    assert ran.code == 0, ran.err
    assert "(a proven bound, by the sweep). The exact law is too large to compute." in ran.out
    assert "The promised epsilon of 1 holds." in ran.out
    document = cli(
        *("audit", "--belief", "day.json", "--length", "4500"),
        *("--query", "count:walk", "--scale", "30", "--json"),
    ).document
    assert document["joint"] is False
    assert document["lower"] < document["bound"] == document["upper"]
    with qw.Ledger.open(f"sqlite:///{folder}/days.db") as ledger:
        ledger.create("days", DAY, 4_500, 3)
        for key in "ab":
            qw.release(DAY.sample(4_500), COUNT, DAY, ledger=ledger, dataset="days", key=key)
        account, total = ledger.accountant("days"), ledger.status("days").total
        assert qw.audit.misspecification(account, CHAIN).bound == account.leak_under([CHAIN])[0]
    ran = cli("audit", f"sqlite:///{folder}/days.db", "--json")
    assert ran.code == 0, ran.err
    assert ran.document["bound"] == pytest.approx(total)
    assert ran.document["sound"] is True
    asked = [(COUNT, made.noise_scale)]
    assert qw.audit.leakage(DAY, 300, asked) <= qw.audit.misspecification(made, DAY).bound


def test_a_calibration_carries_its_proof(cli, folder):
    written = cli(
        *("calibrate", "--belief", "belief.json", "--length", "100", "--epsilon", "1"),
        *("--certificate", "proof.json"),
    )
    assert written.code == 0, written.err
    ran = cli("audit", "--certificate", "proof.json", "--belief", "belief.json")
    assert ran.code == 0, ran.err
    assert "Proven: noise of scale 3.3364" in ran.out
    text = (folder / "proof.json").read_text()
    scale = json.loads(text)["certificates"][0]["scale"]
    (folder / "proof.json").write_text(
        text.replace(scale, str(Fraction(scale) * Fraction(99, 100)))
    )
    ran = cli("audit", "--certificate", "proof.json")
    assert ran.code == 1
    assert "The certificate does not hold." in ran.err
    (folder / "other.json").write_text(qw.MarkovChain([[0.8, 0.2], [0.4, 0.6]]).to_json())
    (folder / "proof.json").write_text(text)
    ran = cli("audit", "--certificate", "proof.json", "--belief", "other.json")
    assert ran.code == 2
    assert "is valid, but not about belief 1" in ran.err
    assert cli("audit", "release.json", "--certificate", "proof.json").code == 2
