from __future__ import annotations

from papers import all_experiments


def quietly(done: int, total: int) -> None:
    assert 0 < done <= total


def run(name, **size):
    return all_experiments()[name].function(quietly, **size)


def test_table_one_as_corrected():
    rows = {row.quantity: row for row in run("m-privacy-table-1").rows}
    assert rows["T_a, k = 3, l = 2, m = 1"].comparison() == "equal"
    assert rows["T_b, k = 3, l = 2, m = 1"].ours == "broken by P1"
    assert rows["T_b, k = 2, l = 2, m = 1"].ours == "private"
    assert rows["T_b, k = 3, l = 2: withstands"].note == "with k = 2 it would withstand one more"


def test_the_figures_have_every_method_with_its_spread():
    found = run("m-privacy-figure-7", groups=2, most=8)
    assert len(found.figures) == 8
    for figure in found.figures:
        names = [series.name for series in figure.chart.lines]
        assert names == ["direct", "bottom-up", "top-down", "binary", "adaptive", "exact"]
        for series in figure.chart.lines:
            assert len(series.spread) == len(series.points)
            for (_, y), (low, high) in zip(series.points, series.spread, strict=True):
                assert low <= y <= high


def test_the_score_is_nearly_linear_in_the_records_per_provider():
    """Fewer providers than in the paper, whose searches take seconds and are not looked at here."""
    found = run("m-privacy-figure-8", groups=1, most=10, providers=10, m=3)
    rows = {row.quantity: row for row in found.rows}
    assert rows["R²"].ours > 0.85
    assert rows["slope of the score by records per provider"].ours > 0.014
