"""`quiltwork audit` from the outside: releases, ledgers, and the noise of plain privacy."""

from __future__ import annotations

import pytest

import quiltwork as qw

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=["rest", "walk"])
DATA = ["rest", "walk", "walk", "rest", "rest"] * 20
COUNT = qw.queries.count("walk")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "belief.json").write_text(CHAIN.to_json())
    released = qw.release(DATA, COUNT, CHAIN, epsilon=1)
    (tmp_path / "release.json").write_text(released.to_json())
    return tmp_path


def test_a_release_keeps_its_promise_with_room_to_spare(cli, folder):
    ran = cli("audit", "release.json", "--belief", "belief.json")
    assert ran.code == 0, ran.err
    assert "True level: 0.2409" in ran.out
    assert "The promise of 1 holds." in ran.out
    assert "4.15 times" in ran.out
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
    assert "True level: 3.298" in ran.out
    assert "Plain differential privacy calls this noise 1 per time point" in ran.out


def test_other_beliefs_break_the_promise_and_the_exit_code_says_so(cli, folder):
    sticky = qw.MarkovChain([[0.999, 0.001], [0.001, 0.999]], states=["rest", "walk"])
    (folder / "sticky.json").write_text(sticky.to_json())
    ran = cli("audit", "release.json", "--belief", "sticky.json")
    assert ran.code == 1
    assert "BROKEN" in ran.out
    assert "other beliefs" in ran.out


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
        (["release.json"], "give --belief"),
        (["missing.json", "--belief", "belief.json"], "Cannot read 'missing.json'"),
        (["release.json", "--belief", "belief.json", "--scale", "2"], "without a source"),
        (["sqlite:///two.db"], "choose one with --dataset"),
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
