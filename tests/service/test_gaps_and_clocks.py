"""The curator's series with public gaps, and by the clock of a zone."""

from __future__ import annotations

import pandas as pd
import pytest

from evidence.curators import INDEPENDENT, running
from quiltwork.beliefs import CyclicChain
from quiltwork.beliefs.calendars import Calendar
from quiltwork.beliefs.grids import Grid
from quiltwork.errors import QuiltworkError


@pytest.fixture(scope="module")
def olga(tmp_path_factory):
    with running(tmp_path_factory.mktemp("curator")) as curator:
        yield curator.as_("olga")


def rows(path, first, labels):
    times = pd.date_range(first, periods=len(labels), freq="h", tz="Europe/Berlin")
    lines = [f"{t.isoformat()},{s}" for t, s in zip(times, labels, strict=True) if s is not None]
    path.write_text("t,s\n" + "\n".join(lines) + "\n")
    return path


def test_public_gaps_are_kept_with_the_rows_and_said_before_anything_is_spent(olga, tmp_path):
    about = {"time": "t", "every": "1h", "missing": "public", "na_values": ["off"]}
    olga.register_series("home", INDEPENDENT, 9, "s", **about)
    olga.add_rows(
        "home", rows(tmp_path / "a.csv", "2026-01-05 00:00", ["rest", None, "off", "walk"])
    )
    with pytest.raises(
        QuiltworkError,
        match=r"^1 time point of the rows has a state that the belief does not name; it names rest",
    ):
        olga.add_rows("home", rows(tmp_path / "b.csv", "2026-01-05 04:00", ["rest", "NA"]))
    olga.add_rows("home", rows(tmp_path / "c.csv", "2026-01-05 09:00", ["walk", "walk"]))
    question = {"kind": "histogram"}
    seen = olga.preview("home", question, 8)
    assert "public and independent of the states" in seen.claim
    assert "7 of the 11 time points asked about have no record" in seen.claim
    answer = olga.ask("home", question, 8, key="k")
    assert answer.document["gaps"] == 7
    assert answer.document["total"] == "4"
    assert "have no record" in answer.text


def test_a_belief_that_follows_the_clock_pays_for_its_own_begin(olga, tmp_path):
    begin = int(pd.Timestamp("2026-03-28", tz="Europe/Berlin").timestamp())
    matrices = [[[0.9, 0.1], [0.4, 0.6]]] * 12 + [[[0.5, 0.5], [0.2, 0.8]]] * 12
    day = CyclicChain(matrices, states=["rest", "walk"], grid=Grid(step="1h"), anchor=0)
    dated = day.beginning(begin, Calendar.of("Europe/Berlin", begin, begin))
    labels = ["rest", "walk", "walk"] * 16
    about = {"time": "t", "every": "1h", "timezone": "Europe/Berlin"}
    for name, belief in (("cycle", day), ("dated", dated)):
        olga.register_series(name, belief, 9, "s", **about)
        olga.add_rows(name, rows(tmp_path / f"{name}.csv", "2026-03-28", labels))
    with pytest.raises(QuiltworkError, match="beliefs of a ledger are fixed"):
        olga.ask("cycle", {"kind": "histogram"}, 1, key="c")
    answer = olga.ask("dated", {"kind": "histogram"}, 1, key="d")
    assert answer.document["length"] == 48
    assert "by the clock of Europe/Berlin" in answer.document["beliefs"][0]
