"""One bit: its count of possible submissions by enumeration, its rule, widths and last score."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import OneBit
from quiltwork.holdout.ladder import least_width
from quiltwork.holdout.one_bit import final_score_width, verdict_width
from quiltwork.holdout.sealed_log import chain_line
from quiltwork.holdout.transcript import AnnouncementRule, Transcript, read_transcript


def board(**options):
    return OneBit(np.arange(1000), **{"submissions": 20, "steps": 10, **options})


def right_on(share):
    return lambda rows: rows < share * 1000


@pytest.mark.parametrize(("submissions", "steps"), [(1, 1), (5, 2), (12, 3)])
def test_the_widths_are_hoeffding_over_all_beginnings_of_verdicts(submissions, steps):
    beginnings = sum(
        sum(verdicts) <= steps
        for length in range(submissions)
        for verdicts in itertools.product((0, 1), repeat=length)
    )
    n, beta, chain = 10_000, 0.05, qw.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    levels = [math.comb(submissions, b + 1) for b in range(min(steps + 1, submissions))]
    assert sum(levels) == beginnings
    least_share = min(1 / (2 * sum(levels)) + 1 / (2 * len(levels) * one) for one in levels)
    width = math.sqrt(math.log(2 / (beta * least_share)) / (2 * n)) + 2**-21
    found = verdict_width(None, n, submissions, beta, steps)
    assert found == pytest.approx(1 / steps + 2 * width, rel=1e-8)
    assert found >= 1 / steps + 2 * width
    assert final_score_width(found, steps) == pytest.approx(width + 1 / (8 * steps), rel=1e-8)
    assert verdict_width(chain, n, submissions, beta, steps) > found
    best, at = least_width(None, n, 500, beta, width=verdict_width)
    every = [verdict_width(None, n, 500, beta, g) for g in range(1, 99)]
    assert every[at - 1] == best <= 1.005 * min(every)


def test_every_analyst_hears_one_of_the_beginnings_that_are_counted():
    """All sequences of three scores on four rows, with steps of a half."""
    told = set()
    for scores in itertools.product(range(5), repeat=3):
        made = OneBit(np.arange(4), submissions=3, steps=2)
        heard = [made.submit("x", lambda rows, s=s: rows < s) is not None for s in scores]
        told |= {tuple(heard[:length]) for length in range(3)}
        lifts = [s for s, better in zip(scores, heard, strict=True) if better]
        assert all(b - a > 2 for a, b in itertools.pairwise(lifts))
    assert len(told) <= sum(math.comb(3, lifts + 1) for lifts in range(3))
    assert max(map(sum, told)) == 2


def test_an_honest_analyst_is_never_more_than_a_step_above_what_is_told():
    """The last score is rounded up, by an eighth of a step at most."""
    for seed in range(5):
        made, shares = board(submissions=60), np.random.default_rng(seed).integers(0, 1000, 60)
        lifted = [int(s) for s in shares if made.submit("x", right_on(s / 1000)) is not None]
        assert 0 <= made.final() - lifted[-1] / 1000 < 1 / 80
        assert max(shares) / 1000 - made.final() <= 1 / 10
    for right, last in ((0.513, 42), (0.525, 42), (0.526, 43), (0.999, 80)):
        made = board()
        made.submit("x", right_on(right))
        assert (made.best, made.final(), made.best) == (None, last / 80, last / 80)


def test_a_board_goes_on_as_what_it_was_begun_as(tmp_path):
    path = tmp_path / "board.jsonl"
    made = board(path=path)
    made.submit("ada", right_on(0.5))
    made.close()
    with pytest.raises(qw.InvalidInputError, match="rule 'one bit'"):
        qw.Ladder.resume(path, np.arange(1000))
    again = OneBit.resume(path, np.arange(1000))
    assert again.submit("bob", right_on(0.6)) is None
    assert again.submit("bob", right_on(0.601)).score is None
    assert again.final() == 0.6125
    assert (again.remaining, repr(again)) == (
        0,
        "OneBit(1000 rows, 0 of 20 submissions left)",
    )
    again.close()
    assert OneBit.resume(path, np.arange(1000)).best == 0.6125
    assert "0.6" not in path.read_text().partition("best")[0]


@pytest.mark.parametrize(
    "bodies",
    [
        [{"number": 1, "outcome": "announced", "value": "1/2"}],
        [{"number": 1, "outcome": "better", "value": "1/2"}],
        [{"best": "1/81"}],
        [{"best": "81/80"}],
        [{"best": "1/80"}, {"number": 1, "outcome": "better", "value": None}],
        [{"best": "1/80"}, {"named": {"ada": 1}}],
    ],
)
def test_lines_that_no_board_of_one_bit_writes_are_refused(bodies):
    lines = [Transcript(AnnouncementRule("one bit", 10, 20, 0.95, 10), "00", "", None).header()]
    for body in ({"number": 1, "label": "ada"}, *bodies):
        lines.append(chain_line(body, lines[-1]))
    with pytest.raises(qw.StorageError, match=f"Line {len(lines)}"):
        read_transcript("\n".join(lines))
    header = json.dumps({**json.loads(lines[0]), "rule": "counting"})
    with pytest.raises(qw.StorageError, match="rule must be"):
        read_transcript(header)
