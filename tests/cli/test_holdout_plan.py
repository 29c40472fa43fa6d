"""`quiltwork holdout plan`, which looks at no data."""

from __future__ import annotations

import pytest

import quiltwork as qw


def test_plans_end_with_1_if_the_promise_does_not_hold(cli, tmp_path):
    arguments = ["holdout", "plan", "--queries", "100", "--overfits", "5"]
    good = cli(*arguments, "--tolerance", "0.1", "--json")
    assert good.code == 0
    assert (good.document["samples"], good.document["epsilon"]) == (24_121, None)
    clustered = cli(*arguments, "--tolerance", "0.1", "--cluster-size", "3", "--json")
    assert clustered.code == 0
    assert clustered.document["samples"] == pytest.approx(3 * 24_121, rel=1e-4)
    arguments += ["--protect", "rows", "--mechanism", "max-information"]
    nothing = cli(*arguments, "--samples", "1", "--json")
    assert (nothing.code, nothing.document["tolerance"], nothing.document["noise"]) == (
        1,
        None,
        None,
    )
    assert "Promise: none" in cli(*arguments, "--samples", "1").out
    picture = tmp_path / "plan.png"
    vacuous = cli(*arguments, "--samples", "1000", "--plot", str(picture))
    assert vacuous.code == 1
    assert "vacuous" in vacuous.out
    assert picture.stat().st_size > 1000


def test_a_plan_takes_beliefs_from_files(cli, tmp_path):
    path = tmp_path / "belief.json"
    path.write_text(qw.Clusters(range(10)).to_json())
    arguments = ["holdout", "plan", "--queries", "9", "--overfits", "1", "--tolerance", "0.2"]
    assert cli(*arguments, "--belief", str(path)).code == 1
    both = cli(*arguments, "--belief", str(path), "--cluster-size", "2")
    assert both.code == 2
    for size in ("0", "1" * 400):
        assert cli(*arguments, "--cluster-size", size).code == 2


@pytest.mark.parametrize(
    "more", [["--tolerance", "1e-300"], ["--tolerance", "0.1", "--confidence", "0." + "9" * 21]]
)
def test_plans_beyond_what_floats_can_follow_are_refused(cli, more):
    refused = cli("holdout", "plan", "--queries", "100", "--overfits", "5", *more)
    assert refused.code == 2
    assert "fault in quiltwork" not in refused.err
