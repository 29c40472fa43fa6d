from __future__ import annotations

import pytest

import quiltwork as qw
from papers.experiments.quilts import LEVEL, NODE, TRANSITION, figure_1


def test_figure_1_cuts_the_chain_as_the_paper_says():
    """Q = {X_{i−a}, X_{i+b}}, N between them, R the rest; one-sided where a side is dropped."""
    result = figure_1.function(lambda done, total: None, length=13)
    chart = result.figures[0].chart
    rows = dict(zip(chart.rows, chart.texts, strict=True))
    assert "".join(rows["{X4, X9}"]) == "RRRQNNiNQRRRR"
    assert "".join(rows["{X6, X8}"]) == "RRRRRQiQRRRRR"
    assert "".join(rows["{X3}"]) == "RRQNNNiNNNNNN"
    assert "".join(rows["{}"]) == "NNNNNNiNNNNNN"


def test_its_numbers_are_those_of_the_chain():
    result = figure_1.function(lambda done, total: None, length=13)
    ours = {row.quantity: row.ours for row in result.rows}
    chain = qw.MarkovChain(TRANSITION)
    assert ours["max-influence of {X4, X9}"] == pytest.approx(
        qw.max_influence(chain, NODE, (4, 9), 13), abs=1e-12
    )
    level = ours[f"level of a {LEVEL}-DP mechanism against every adversary"]
    assert level >= qw.bayesian_dp(chain, LEVEL, length=13), "chains are swept, networks are not"
    assert ours["projective influence h of {}"] == 0
