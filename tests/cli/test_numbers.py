"""Numbers under Gaussian beliefs, from the command line."""

from __future__ import annotations

import pytest

from quiltwork import GaussianSeries

AR = GaussianSeries(ar=[0.8])
READ = ("load.csv", "--belief", "belief.json", "--value", "load", "--epsilon", "0.5")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "belief.json").write_text(AR.to_json())
    loads = 1.5 + 0.5 * AR.sample(300, seed=1)
    (tmp_path / "load.csv").write_text("\n".join(["load", *(f"{one:.4f}" for one in loads)]))
    return tmp_path


def test_the_noise_of_a_mean_is_told(cli, folder):
    ran = cli(
        "calibrate",
        "--belief",
        "belief.json",
        "--length",
        "300",
        "--epsilon",
        "1",
        "--query",
        "sum:0:4",
    )
    assert ran.code == 0, ran.err
    assert "Noise scale 36 " in ran.out
    assert "ifferences" in ran.out


def test_a_mean_is_previewed_released_and_paid(cli, folder):
    ledger = ("--ledger", "sqlite:///budget.db", "--dataset", "load")
    created = cli(
        "ledger", "create", "sqlite:///budget.db", "load", "--belief", "belief.json",
        "--length", "300", "--budget", "1",
    )  # fmt: skip
    assert created.code == 0, created.err
    assert cli("release", *READ, "--query", "mean:0:4", "--preview").code == 0
    for code in (0, 0, 1):
        ran = cli("release", *READ, "--query", "mean:0:4", *ledger, "--json")
        assert ran.code == code, ran.err
    assert cli("ledger", "verify", "sqlite:///budget.db").code == 0


def test_a_histogram_is_refused_with_a_way_out(cli, folder):
    ran = cli("release", *READ, "--query", "histogram")
    assert ran.code in (1, 2)
    assert "Ask queries.mean(lo, hi)" in ran.err
