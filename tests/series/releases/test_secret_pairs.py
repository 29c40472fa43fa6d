"""A release that keeps apart chosen pairs of values says so, wherever it is read."""

from __future__ import annotations

import pytest

import quiltwork as qw
from quiltwork.errors import InvalidInputError

ROOMS = qw.MarkovChain(
    [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], states=["kitchen", "bath", "away"]
)
DATA = ["kitchen", "bath", "away", "away"] * 25
COUNT = qw.queries.count("bath")


def test_a_release_with_pairs_takes_the_noise_of_its_calibration_and_keeps_them_in_its_file():
    pairs = [("bath", "kitchen")]
    answer = qw.release(DATA, COUNT, ROOMS, 1, pairs=pairs)
    needed = qw.calibrate(ROOMS, 100, 1, query=COUNT, pairs=pairs).scale
    assert needed <= answer.scale < 1.02 * needed < qw.calibrate(ROOMS, 100, 1, query=COUNT).scale
    again = qw.Release.from_json(answer.to_json())
    assert again.pairs == answer.pairs == (("kitchen", "bath"),)
    assert "keeping apart kitchen from bath and nothing else" in again.explain()
    assert answer.leak_under(ROOMS)[0] <= 1
    assert '"pairs"' not in qw.release(DATA, COUNT, ROOMS, 1).to_json()


def test_with_a_ledger_pairs_are_those_of_the_dataset(tmp_path):
    with qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.create("rooms", ROOMS, 100, 2)
        asked = {"ledger": ledger, "dataset": "rooms", "pairs": [("bath", "kitchen")]}
        with pytest.raises(InvalidInputError, match="fixed when it is created"):
            qw.release(DATA, COUNT, ROOMS, 1, **asked)
        assert not ledger.history("rooms")


def test_a_person_hides_all_values():
    with pytest.raises(InvalidInputError, match="leave method, secrets and pairs"):
        qw.release(DATA, COUNT, ROOMS, 1, protect="person", pairs=[("bath", "kitchen")])
