"""Options kept in quiltwork.toml, and windows and files as people have them, from the outside."""

from __future__ import annotations

import json
import tomllib
from datetime import datetime
from zoneinfo import ZoneInfo

import click
import pytest

from quiltwork import CyclicChain, Grid, MarkovChain
from quiltwork.cli.config import KEPT, _written, read_config
from quiltwork.errors import InvalidInputError, UnsupportedError

BERLIN = ZoneInfo("Europe/Berlin")
CHAIN = MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["<1", ">=1"])


@pytest.fixture
def meter(tmp_path, monkeypatch):
    """Quarters of an hour over the last Sunday of March, as a meter writes them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUILTWORK_NO_CONFIG", raising=False)
    begin = datetime(2026, 3, 27, tzinfo=BERLIN).timestamp()
    shown = [datetime.fromtimestamp(begin + 900 * i, BERLIN) for i in range(4 * 24 * 4)]
    rows = [f"{t:%d.%m.%Y %H:%M};{'0,4' if t.hour < 18 else '2,1'}" for t in shown]
    (tmp_path / "zähler.csv").write_bytes("\n".join(["Zeit;kW", *rows]).encode("latin-1"))
    (tmp_path / "belief.json").write_text(CHAIN.to_json())
    return shown


READ = ("--value", "kW", "--time", "Zeit", "--edges", "1", "--every", "15min")
ASK = ("release", "zähler.csv", "--query", "count:>=1", "--epsilon", "60", "--json")


def test_the_first_run_keeps_its_options_and_the_next_needs_none(cli, meter, tmp_path):
    first = cli(
        *(*ASK, *READ, "--timezone", "Europe/Berlin", "--belief", "belief.json"),
        *("--window", "2026-03-29"),
    )
    assert first.code == 0, first.err
    assert "read with delimiter ;, decimal comma, times %d.%m.%Y %H:%M" in first.err
    assert first.document["query"]["window"] == [2 * 96 + 1, 2 * 96 + 92]  # a day of 23 hours
    assert first.document["period"] == ["2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00"]
    assert first.document["value"] == sum(t.day == 29 and t.hour >= 18 for t in meter) == 24
    kept = tomllib.loads((tmp_path / "quiltwork.toml").read_text(encoding="utf-8"))
    assert kept == {
        "value": "kW",
        "time": "Zeit",
        "timezone": "Europe/Berlin",
        "edges": "1",
        "every": "15min",
        "belief": ["belief.json"],
    }
    again = cli(*ASK, "--window", "2026-03-29")
    assert again.code == 0, again.err
    assert "those of quiltwork.toml: --value, --time, --timezone, --edges" in again.err
    assert again.document["value"] == 24
    other = cli(*ASK, "--every", "1h", "--window", "last 2 days")  # what is typed wins
    assert other.document["query"]["window"] == [24 + 24 + 23 + 1, 96]  # Monday, an hour of Tuesday
    assert tomllib.loads((tmp_path / "quiltwork.toml").read_text(encoding="utf-8")) == kept
    person = cli(*ASK, "--protect", "person", "--states", "<1,>=1")  # needs no belief
    assert person.code == 0, person.err
    assert cli(*ASK, "--no-config", "--belief", "belief.json").code == 2  # which column?


def test_a_run_succeeds_where_its_options_cannot_be_kept(cli, meter, tmp_path, monkeypatch):
    plain = (*ASK, *READ, "--belief", "belief.json", "--timezone", "Europe/Berlin")
    alone = cli(*plain, "--no-config")
    assert (alone.code, list(tmp_path.glob("*.toml"))) == (0, [])
    (tmp_path / "quiltwork.toml").symlink_to(tmp_path / "absent" / "kept.toml")
    told = cli(*plain)
    assert told.code == 0
    assert "could not be kept in quiltwork.toml" not in told.err  # something is there
    (tmp_path / "quiltwork.toml").unlink()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    placed = [str(tmp_path / word) if (tmp_path / word).is_file() else word for word in plain]
    told = cli(*placed)
    assert told.code == 0
    assert "could not be kept" in told.err


def test_no_password_is_kept():
    """The URL of a ledger may hold one, which is not for a file that others read."""
    command = click.Command("ask", params=[click.Option([f"--{name}"]) for name in KEPT])
    context = command.make_context(
        "ask", ["--value", "kW", "--ledger", "postgresql://ana:secret@db/x", "--dataset", "m"]
    )
    assert _written(context) == 'value = "kW"\n'


def test_a_window_of_several_runs_is_one_question(cli, meter):
    zone = ("--timezone", "Europe/Berlin", "--belief", "belief.json")
    ran = cli(*ASK, *READ, *zone, "--window", "daily 18:00-22:00")
    assert ran.code == 0, ran.err
    assert len(json.loads(ran.out)["query"]["runs"]) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("value = ", "no TOML"),
        ("valeu = 'kW'", "did you mean value"),
        ("epsilon = 1", "that no config has"),
        ("edges = {a = 1}", "must be a text, a number or a list"),
    ],
)
def test_a_config_that_cannot_be_one_gets_a_sentence(tmp_path, text, words):
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        read_config(str(path))


def test_numbers_and_lists_are_as_typed(tmp_path, cli, meter):
    path = tmp_path / "own.toml"
    path.write_text("value = 'kW'\nedges = [1]\nbelief = 'belief.json'\n")
    assert read_config(str(path)) == {"value": "kW", "edges": "1", "belief": ["belief.json"]}
    ran = cli(*ASK, "--config", "own.toml")
    assert ran.code == 0, ran.err
    assert cli(*ASK, "--config", "absent.toml", "--belief", "belief.json").code == 2
    assert "epsilon" not in KEPT


def test_a_kept_zone_can_be_left_out_where_days_must_be_of_equal_length(cli, meter, tmp_path):
    fitted = CyclicChain.fit(["<1", ">=1"] * 96, 96, grid=Grid(step=900, edges=(1,)))
    day = CyclicChain(fitted.matrices, states=fitted.states, grid=fitted.grid, anchor=0)
    (tmp_path / "day.json").write_text(day.to_json())
    (tmp_path / "quiltwork.toml").write_text('timezone = "Europe/Berlin"\nmissing = "split"\n')
    refused = cli(*ASK, *READ, "--belief", "day.json")
    assert refused.code == 2
    assert "--timezone none" in refused.err
    assert cli(*ASK, *READ, "--belief", "day.json", "--timezone", "none").code == 0


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
