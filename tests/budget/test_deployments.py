"""Public deployments that protect a day: their levels, and what a year of them tells."""

from __future__ import annotations

import pytest

import quiltwork as qw
from quiltwork.budget import deployment
from quiltwork.budget.deployments import DEPLOYMENTS
from quiltwork.errors import InvalidInputError


def test_levels_for_adding_and_removing_count_twice():
    assert float(deployment("google_mobility").level()["levels"]) == 2.64
    for one in DEPLOYMENTS.values():
        swapped, added = one.level(), one.level("add-remove")
        (name,) = swapped
        assert added[name] == swapped[name] * (4 if name == "rho" else 2)
    with pytest.raises(InvalidInputError, match="there are google_mobility"):
        deployment("nobody")
    with pytest.raises(InvalidInputError, match="neighbours"):
        deployment("google_mobility").level("both")


def test_the_command_asks_a_registry_entry(cli_run, tmp_path):
    days = tmp_path / "days.json"
    days.write_text(qw.MarkovChain([[0.9, 0.1], [0.1, 0.9]]).to_json())
    asked = ("monitor", "--belief", str(days), "--deployed")
    assert "google_mobility: user-day" in cli_run(*asked, "?")[1]
    told = cli_run(*asked, "google_mobility", "--length", "365")
    assert "up to 6.88842 about one time point" in told[1]
    twice = cli_run(*asked, "google_mobility", "--length", "9", "--neighbours", "add-remove")
    assert "level 5.28" in twice[1]
    assert cli_run(*asked, "wikimedia_current_usage_data", "--length", "9")[0] == 2
    assert cli_run(*asked, "google_mobility", "--length", "9", "--epsilon", "1")[0] == 2
    assert cli_run(*asked, "nobody", "--length", "9")[0] == 2


@pytest.fixture
def cli_run(capsys):
    from quiltwork.cli.boundary import run

    def call(*arguments):
        code = run(list(arguments))
        return code, capsys.readouterr().out

    return call


@pytest.mark.parametrize(
    ("stated", "substituted"),
    [
        (("--epsilon", "0.1"), ("--epsilon", "0.2")),
        (("--rho", "0.01", "--delta", "1e-6"), ("--rho", "0.04", "--delta", "1e-6")),
        (("--gdp", "0.1", "--delta", "1e-6"), ("--gdp", "0.2", "--delta", "1e-6")),
        (("--deployed", "google_mobility"), ("--epsilon", "5.28")),
    ],
)
def test_add_remove_levels_count_as_levels_for_substitution(cli_run, tmp_path, stated, substituted):
    path = tmp_path / "days.json"
    path.write_text(qw.MarkovChain([[0.9, 0.1], [0.2, 0.8]]).to_json())
    rest = ("--belief", str(path), "--length", "30", "--json")
    assert cli_run("monitor", *stated, "--neighbours", "add-remove", *rest) == cli_run(
        "monitor", *substituted, *rest
    )
