"""What a belief's file keeps of how its data were read, and windows as people have them."""

from __future__ import annotations

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from quiltwork import CyclicChain, Grid, MarkovChain
from quiltwork.beliefs.sets import beliefs_from_json, digest
from quiltwork.errors import UnsupportedError

BERLIN = ZoneInfo("Europe/Berlin")
CHAIN = MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["<1", ">=1"])


@pytest.fixture
def meter(tmp_path, monkeypatch):
    """Quarters of an hour over the last Sunday of March, as a meter writes them."""
    monkeypatch.chdir(tmp_path)
    begin = datetime(2026, 3, 27, tzinfo=BERLIN).timestamp()
    shown = [datetime.fromtimestamp(begin + 900 * i, BERLIN) for i in range(4 * 24 * 4)]
    rows = [f"{t:%d.%m.%Y %H:%M};{'0,4' if t.hour < 18 else '2,1'}" for t in shown]
    (tmp_path / "zähler.csv").write_bytes("\n".join(["Zeit;kW", *rows]).encode("latin-1"))
    (tmp_path / "belief.json").write_text(CHAIN.to_json())
    return shown


READ = ("--value", "kW", "--time", "Zeit", "--edges", "1", "--every", "15min")
ZONE = ("--timezone", "Europe/Berlin", "--belief", "belief.json")
ASK = ("release", "zähler.csv", "--query", "count:>=1", "--epsilon", "60", "--json")


def test_a_release_reads_as_the_data_of_its_belief_were_read(cli, meter, tmp_path):
    fitted = cli("fit", "zähler.csv", *READ, *ZONE[:2], "--single", "-o", "fitted.json")
    assert fitted.code == 0, fitted.err
    window = ("--time", "Zeit", "--window", "2026-03-29")
    ran = cli(*ASK, *window, "--belief", "fitted.json")
    assert ran.code == 0, ran.err
    assert "--value kW, --timezone Europe/Berlin" in ran.err
    assert ran.document["query"]["window"] == [2 * 96 + 1, 2 * 96 + 92]  # a day of 23 hours
    assert ran.document["value"] == sum(t.day == 29 and t.hour >= 18 for t in meter) == 24
    other = cli(*ASK, *window, "--timezone", "none", "--belief", "fitted.json")  # typed, it wins
    assert (
        "Time point 201, 2026-03-29 02:00, is missing" in other.err
    )  # the hour that no clock of Berlin showed
    (tmp_path / "own.csv").write_text("at,power\n2026-01-01T00:00,0.2\n2026-01-01T00:15,1.7\n")
    own = ("release", "own.csv", "--time", "at", "--belief", "fitted.json", "--epsilon", "1")
    assert "say which one to read" in cli(*own).err  # it has no column of that name
    assert cli(*own, "--value", "power").code == 0


def test_a_word_for_nothing_is_declared_by_the_option_of_the_command(cli, meter, tmp_path):
    (tmp_path / "words.csv").write_text("at,kW\n2026-01-01T00:00,0.2\n2026-01-01T00:15,n/a\n")
    words = ("words.csv", "--value", "kW", "--time", "at", "--edges", "1", "--missing", "public")
    for refused in (
        cli("fit", *words, "-o", "f.json"),
        cli("release", *words, "--belief", "belief.json", "--epsilon", "1"),
    ):
        assert "name it with --na." in refused.err


def test_how_data_are_read_is_no_part_of_a_beliefs_identity(cli, meter, tmp_path):
    assert cli("fit", "zähler.csv", *READ, *ZONE[:2], "--single", "-o", "zone.json").code == 0
    document = json.loads((tmp_path / "zone.json").read_text())
    assert document["reading"] == {"value": "kW", "timezone": "Europe/Berlin"}
    plain, zone = {**document, "reading": {"value": "kW"}}, beliefs_from_json(json.dumps(document))
    assert digest(zone) == digest(beliefs_from_json(json.dumps(plain)))
    assert json.loads(zone[0].to_json()).keys() == document.keys() - {"reading"}
    (tmp_path / "plain.json").write_text(json.dumps(plain))
    ask = (*ASK, "--time", "Zeit", "--belief", "plain.json", "--belief", "zone.json")
    assert cli(*ask).code == 0
    (tmp_path / "plain.json").write_text(json.dumps({**plain, "reading": {"value": "Zeit"}}))
    assert "say which one to read" in cli(*ask).err  # they do not agree


def test_a_window_of_several_runs_is_one_question(cli, meter):
    ran = cli(*ASK, *READ, *ZONE, "--window", "daily 18:00-22:00")
    assert ran.code == 0, ran.err
    assert "read with delimiter ;, decimal comma, times %d.%m.%Y %H:%M" in ran.err
    assert len(json.loads(ran.out)["query"]["runs"]) == 4


def test_a_kept_zone_is_followed_through_changes_or_left_out(cli, meter, tmp_path):
    fitted = CyclicChain.fit(["<1", ">=1"] * 96, 96, grid=Grid(step=900, edges=(1,)))
    day = CyclicChain(fitted.matrices, states=fitted.states, grid=fitted.grid, anchor=0)
    kept = {**json.loads(day.to_json()), "reading": {"timezone": "Europe/Berlin"}}
    (tmp_path / "day.json").write_text(json.dumps(kept))
    followed = cli(*ASK, *READ, "--missing", "public", "--belief", "day.json")
    assert followed.code == 0
    assert "by the clock of Europe/Berlin, from 2026-03-27T00:00+01:00" in followed.out
    assert (
        cli(*ASK, *READ, "--missing", "public", "--belief", "day.json", "--timezone", "none").code
        == 0
    )


def test_a_spark_that_is_started_shows_no_pages(cli, meter, monkeypatch):
    """Spark's pages show values, such as names of files of persons, to the network."""
    from quiltwork.tables.spark import session

    started = []

    def start(settings=None, log_level=None):
        started.append((settings or {}).get("spark.ui.enabled"))
        raise UnsupportedError("no Spark here")

    monkeypatch.setattr(session, "spark_session", start)
    assert cli(*ASK, *READ, "--belief", "belief.json", "--backend", "spark").code != 0
    assert started == ["false"]
