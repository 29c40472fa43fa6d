from __future__ import annotations

import pytest

from papers.experiments import anonymization


def quiet(done: int, total: int) -> None:
    pass


@pytest.fixture(autouse=True)
def _data(shared_file, monkeypatch):
    path = shared_file("data/adult.csv.gz")
    monkeypatch.setenv("QUILTWORK_SHARED", str(path.parent.parent))


def test_the_hospitals_become_1_private():
    result = anonymization.hospitals_made_private.function(quiet)
    assert result.rows[0].ours == "True"
    assert sum(int(row.ours.rpartition(": ")[2].split()[0]) for row in result.rows[1:]) == 10


@pytest.mark.parametrize(
    ("one", "size"),
    [
        (anonymization.figure_9, {"rows": 9000, "queries": 200, "points": 2}),
        (anonymization.figure_10, {"most": 3000, "queries": 200, "steps": 2}),
        (anonymization.figure_12, {"rows": 1000, "queries": 200, "points": 2}),
    ],
)
def test_provider_aware_never_errs_more_than_the_baseline(one, size):
    result = one.function(quiet, **size)
    errors = {row.quantity: row.ours for row in result.rows}
    aware = {name: error for name, error in errors.items() if name.startswith("provider-aware, ")}
    assert len(aware) >= 2
    for name, error in aware.items():
        for other in ("baseline", "baseline by loss"):
            assert error <= 1.02 * errors[name.replace("provider-aware", other)]


def test_all_verification_strategies_make_the_same_groups():
    result = anonymization.figure_11.function(quiet, **anonymization.figure_11.quick)
    assert result.rows[-1].ours == 0
