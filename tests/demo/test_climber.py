from __future__ import annotations

from quiltwork.demo.climber import simulate_attack


def test_a_climber_gains_on_a_plain_board_and_not_on_ours():
    """Where the gaps are at least ten times the noise's scale, so chance does not decide."""
    found = simulate_attack(rows=1000, questions=600, threshold=0.08, noise=0.004, budget=200)
    last = found.climbs[-1]
    assert last.questions == 600
    assert last.plain > 0.65
    assert abs(last.reusable - 0.5) < 0.08 + 4 * 0.004 * 25
    assert abs(last.ladder - 0.5) < found.ladder_width
    assert [climb.questions for climb in found.climbs] == [60, 120, 240, 360, 480, 600]


def test_a_spent_budget_is_shown_as_no_answer():
    found = simulate_attack(rows=100, questions=40, threshold=0, noise=0.002, budget=1)
    assert found.climbs[-1].reusable is None
    assert found.climbs[-1].rounds == 1
