"""Releases of series in which clocks change: subjects, ledgers, windows and files of beliefs."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.beliefs import CyclicChain, DatedChain, candidates
from quiltwork.beliefs.cyclic import align_to_starts
from quiltwork.cli.boundary import run
from quiltwork.errors import InvalidInputError
from quiltwork.influence.diagnostics import fit_price
from quiltwork.series import preview, read_series, register_series

ZONE = "Europe/Berlin"
HIST = queries.histogram()


def home(first, days, seed=1, every="h"):
    """Hours at home and away, by the clock."""
    moments = pd.date_range(first, periods=24 * days, freq=every, tz=ZONE)
    awake = (moments.hour > 7) & (moments.hour < 18)
    states = np.where(awake ^ (np.random.default_rng(seed).random(len(moments)) < 0.1), "out", "in")
    return pd.DataFrame({"t": moments, "s": states})


def read(*frames, **options):
    rows = pd.concat([frame.assign(who=f"w{n}") for n, frame in enumerate(frames)])
    return read_series(rows, "s", time="t", subject="who", every="1h", timezone=ZONE, **options)


PUBLIC = CyclicChain.fit(read(home("2025-01-01", 300, seed=7)).data, "day")


def test_a_year_of_a_fleet_takes_the_noise_of_its_worst_begin():
    """Each first instant has a sequence of phases of its own."""
    months = [f"2026-{month:02d}-01" for month in (1, 3, 5, 8, 10, 12)]
    fleet = read(*(home(month, 365, seed) for seed, month in enumerate(months)))
    sequences = list(fleet.data.coded.values())
    members = align_to_starts([PUBLIC], sequences)
    assert [type(one) for one in members] == [DatedChain] * 6
    assert len({tuple(one.phases(8760)) for one in members}) == 6
    together = qw.release(fleet.data, HIST, PUBLIC)
    each = [qw.calibrate(one, 8760, 1.0, query=HIST).exact_scale for one in members]
    assert together.noise_scale == max(each)
    assert together.scale < 1.2 * qw.calibrate(PUBLIC, 8760, 1.0, query=HIST).scale
    assert together.subjects == 6
    same = read(home("2026-01-01", 365, 3), home("2026-01-01", 365, 4))
    assert len(align_to_starts([PUBLIC], same.data.coded.values())) == 1


def test_series_without_a_change_stay_with_the_cycle():
    winter = read(home("2026-01-05", 20))
    (belief,) = align_to_starts([PUBLIC], winter.data.coded.values())
    assert belief == PUBLIC
    both = read(home("2026-01-05", 20), home("2026-03-20", 20))
    kinds = [type(one) for one in align_to_starts([PUBLIC], both.data.coded.values())]
    assert kinds == [CyclicChain, DatedChain]
    assert qw.release(both.data, HIST, PUBLIC).subjects == 2


def test_a_ledger_keeps_the_begin_and_the_changes(tmp_path):
    path = tmp_path / "own.csv"
    rows = home("2026-03-01", 60).assign(t=lambda one: one.t.map(lambda t: t.isoformat()))
    rows.to_csv(path, index=False)
    options = {"time": "t", "every": "1h"}
    own = read_series(path, "s", **options, timezone=ZONE)
    (dated,) = align_to_starts([PUBLIC], own.data.coded.values())
    with qw.Ledger.open(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.create("cycle", PUBLIC, 1440, budget=5)
        with pytest.raises(InvalidInputError, match=r"ledger create --begins 2026-01-01T00"):
            qw.release(own.data, HIST, PUBLIC, ledger=ledger, dataset="cycle")
        ledger.create("d", dated, 1440, budget=5)
        register_series(ledger, "d", str(path), "s", time="t", every="1h")  # the belief's zone
        paid = {"ledger": ledger, "dataset": "d"}
        later = read(home("2026-03-08", 53)).data
        with pytest.raises(
            InvalidInputError, match=r"series from 2026-03-01T00:00\+01:00; make a belief"
        ):
            qw.release(later, HIST, dated, beginning_of=1440, **paid)
        clocks = home("2026-03-01", 20).assign(t=lambda one: one.t.dt.tz_localize(None))
        plain = read_series(clocks, "s", time="t", every="1h")
        assert read_series(path, "s", **options, beliefs=dated).clock.zone == ZONE
        with pytest.raises(InvalidInputError, match="were to be read in UTC; leave timezone out"):
            read_series(path, "s", **options, timezone="UTC", beliefs=dated)
        with pytest.raises(InvalidInputError, match="the data have no time zone; read them with"):
            qw.release(plain.data, HIST, dated, beginning_of=1440, **paid)
        answer = qw.release(own.data, HIST, dated, epsilon=1, **paid)
        march = own.windows("2026-03-29")
        assert march == [(673, 695)]  # 23 hours
        qw.release(own.data, HIST.on(*march[0]), dated, epsilon=1, **paid)
        assert ledger.verify() is not False
        (kept,) = ledger.status("d").beliefs
        assert kept == dated
        assert answer.scale == qw.calibrate(dated, 1440, 1.0, query=HIST).scale
        assert ledger.accountant("d").epsilon() < 2.5
        with pytest.raises(InvalidInputError, match="and the series goes beyond it"):
            ledger.extend("d", 10**6)


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code = run(list(words))
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


def test_files_of_beliefs_are_turned_to_moments_for_ledgers(typed, tmp_path):
    (tmp_path / "day.json").write_text(PUBLIC.to_json())
    bare = json.loads(PUBLIC.to_json()) | {"calendar": None}
    (tmp_path / "bare.json").write_text(json.dumps(bare))
    begins = ("--begins", "2026-03-01T00:00", "--begins", "2026-10-01T00:00+02:00")
    for file, more in (("day.json", ()), ("bare.json", ("--timezone", ZONE))):
        code, _, err = typed("belief", "turn", file, *begins, *more, "-o", "turned.json")
        assert code == 0, err
        found = qw.beliefs.beliefs_from_json((tmp_path / "turned.json").read_text())
        assert [one.begin_words for one in found] == [
            "2026-03-01T00:00+01:00", "2026-10-01T00:00+02:00"
        ]  # fmt: skip
    code, _, err = typed("belief", "turn", "day.json", "--begins", "08:00", "-o", "plain.json")
    assert code == 0, err
    assert isinstance(
        qw.beliefs.belief_from_json((tmp_path / "plain.json").read_text()), CyclicChain
    )
    code, _, err = typed(
        *("belief", "turn", "bare.json", "--begins", "08:00", "--timezone", ZONE, "-o", "x.json")
    )
    assert (code, "depends on its day" in err) == (2, True)


def test_previews_monitors_and_plans_follow_the_clock():
    (dated,) = align_to_starts([PUBLIC], read(home("2026-03-01", 60)).data.coded.values())
    seen = preview(HIST, dated, length=1440)
    assert seen.scale == qw.release(read(home("2026-03-01", 60)).data, HIST, PUBLIC).scale
    watched = qw.monitor(dated, [0.05] * 200)
    assert 0.05 < watched.most_by_now < 0.05 * 200
    assert qw.Accountant(dated, 1440, budget=2).largest_next() > 0.01


def test_a_household_of_a_year_takes_about_what_it_takes_without_a_zone(shared_file):
    """Days of 23 and 25 hours left the belief about the time of day out."""
    raw = pd.read_csv(shared_file("data/power_household_10min.csv.gz"))
    parts = {name: raw[name] for name in ("month", "day", "hour", "minute")}
    raw["t"] = pd.to_datetime({"year": 2008, **parts})
    scales = {}
    for zone in (None, ZONE):
        series = read_series(
            *(raw, "active_power_kw"), time="t", every="1h", edges=[0.3, 1, 2.5],
            timezone=zone, missing="public",
        )  # fmt: skip
        found = {one.name: one for one in candidates(series.data)}
        assert found["time of day"].plausible
        assert not found["durations"].plausible
        members = align_to_starts([found["time of day"].belief], series.data.coded.values())
        scales[zone] = max(fit_price(one, 24 * 366).scale for one in members)
        others = fit_price(found["durations"].belief, 24 * 366).scale
    assert scales[ZONE] <= 18
    assert scales[ZONE] < 1.1 * scales[None]
    assert others > 200  # what was left otherwise
