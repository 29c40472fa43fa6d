"""A year on the command line with Gaussian noise: create, plan, release, spend, verify, monitor."""

from __future__ import annotations

import json
import re

import pytest

import quiltwork as qw


@pytest.fixture
def belief(tmp_path):
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    path = tmp_path / "belief.json"
    path.write_text(chain.to_json())
    return str(path)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture
def year(tmp_path):
    path = tmp_path / "year.csv"
    path.write_text("state\n" + "rest\nwalk\nrest\n" * 120)
    return str(path)


@pytest.fixture
def made(cli, url, belief):
    new = ("ledger", "create", url, "d", "--belief", belief, "--length", "360", "--budget", "1")
    assert cli(*new, "--delta", "1e-6").code == 0
    return url


def test_a_plan_of_rolling_windows_is_carried_out_line_by_line(cli, made, belief, year, tmp_path):
    plan = str(tmp_path / "plan.json")
    asked = cli(
        "ledger",
        "plan",
        made,
        "d",
        "--ask",
        "count:walk@180/90",
        "-o",
        plan,
        "--report",
        str(tmp_path / "plan.html"),
    )
    assert asked.code == 0
    assert "every release has about the noise" in (tmp_path / "plan.html").read_text("utf-8")
    assert "Take geometric noise" in asked.out
    document = json.loads((tmp_path / "plan.json").read_text())
    assert (document["delta"], len(document["releases"])) == ("1/1000000", 3)
    common = ("--belief", belief, "--value", "state", "--plan", plan, "--ledger", made)
    for number in (1, 2, 3):
        name = f"count:walk@180/90 {number}"
        told = cli("release", year, *common, "--line", name, "--json")
        assert told.code == 0
        released = json.loads(told.out)
        planned = document["releases"][number - 1]["scale"]
        assert planned <= float(qw.Release.from_json(told.out).noise_scale) <= 1.01 * planned
        assert released["delta"] == "1/1000000"
    assert "All releases of the plan are made" in told.err
    assert "allow is used of 'd'" in told.err
    history = cli("ledger", "history", made, "d").out
    assert len(re.findall(r"μ 0\.0\d+", history)) == 3
    shown = json.loads(cli("ledger", "show", made, "d", "--json").out)["datasets"][0]
    assert shown["delta"] == 1e-6
    assert 0.97 < shown["used"] <= 1
    assert cli("ledger", "verify", made).code == 0


def test_what_fits_and_debits_of_others(cli, made, belief, year):
    told = cli("ledger", "largest", made, "d", "--ask", "histogram")
    assert "μ = 0.071" in told.out
    epsilon = re.search(r"asked with epsilon ([\d.]+) and delta", told.out)[1]
    answer = ("release", year, "--belief", belief, "--value", "state", "--query", "histogram")
    paid = (*answer, "--noise", "gaussian", "--delta", "1e-6", "--ledger", made, "--dataset", "d")
    assert cli(*paid, "--epsilon", epsilon).code == 0
    spent = cli("ledger", "spend", made, "d", "--rho", "0.001")
    assert spent.code == 1
    assert "above the squares that ε = 1 and δ = 1e-06 allow" in spent.err
    refused = cli(*answer, "--epsilon", "0.5", "--ledger", made, "--dataset", "d")
    assert refused.code == 1
    assert "where a pure ε = 1 grants 0.2997" in refused.err


def test_a_share_for_pure_releases(cli, url, belief):
    new = ("ledger", "create", url, "d", "--belief", belief, "--length", "360", "--budget", "1")
    swap = ("--neighbours", "substitute")
    made = cli(*new, "--delta", "1e-6", "--pure", "0.1")
    assert made.code == 0
    assert cli("ledger", "spend", url, "d", "--epsilon", "0.1", *swap).code == 0
    assert cli("ledger", "spend", url, "d", "--rho", "0.001").code == 0
    assert cli("ledger", "spend", url, "d", "--epsilon", "0.01", *swap).code == 1
    assert cli(*new, "--pure", "0.1").code == 2
    people = cli("ledger", "create", url, "p", "--people", "--budget", "1", "--delta", "1e-6")
    assert people.code == 2


def test_the_monitor_says_what_is_claimed_and_what_is_true(cli, belief):
    asked = ("monitor", "--belief", belief, "--length", "365")
    told = cli(*asked, "--rho", "0.015", "--delta", "1e-6", "--under", "1")
    assert told.code == 0
    assert "ε = 0.7147 at δ = 1e-06 is claimed about each" in told.out
    assert "keeps it for ever" in told.out
    document = json.loads(cli(*asked, "--gdp", "0.1", "--delta", "1e-6", "--json").out)
    assert document["claimed"] < document["most_by_now"] < document["alike"]
    each = cli(*asked, "--epsilon", "0.1", "--level-delta", "1e-9", "--delta", "1e-6")
    assert "ε = 0.1 and δ = 1e-09 at each of 365" in each.out
    assert cli(*asked, "--rho", "0.015").code == 2
    assert cli(*asked, "--delta", "1e-6").code == 2
