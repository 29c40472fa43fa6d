"""Steps of data: shown by their times, compared with the belief's, and told where not known."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from quiltwork import InvalidInputError, MarkovChain, QuiltworkWarning, queries, release
from quiltwork.beliefs import Grid
from quiltwork.series import read_series

HOURLY = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"], grid=Grid(step="1h"))
STATES = ["a", "b", "b", "a"]


def moments(step, start="2026-01-01"):
    return pd.date_range(start, periods=4, freq=step)


def seconds(count):
    return [1_767_225_600 + count * i for i in range(4)]


TIMED = {
    "text": lambda step: moments(step).strftime("%Y-%m-%dT%H:%M:%S").tolist(),
    "moments": moments,
    "with an offset": lambda step: moments(step).tz_localize("Europe/Berlin"),
    "seconds": lambda step: seconds(int(pd.Timedelta(step).total_seconds())),
}


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize(("step", "agrees"), [("1h", True), ("15min", False), ("2h", False)])
def test_regular_times_show_their_step(kind, step, agrees):
    table = pd.DataFrame({"time": TIMED[kind](step), "state": STATES})
    read = read_series(table, "state", time="time")
    assert read.grid.step == pd.Timedelta(step).total_seconds()
    copies = [read, copy.deepcopy(read), pickle.loads(pickle.dumps(read))]  # noqa: S301
    for data in [one.data for one in copies] + [read.data[None][1:3]]:
        if agrees:
            assert release(data, queries.count("b"), HOURLY).assumed_step is None
        else:
            with pytest.raises(InvalidInputError, match="for steps of 1h, but the data are on st"):
                release(data, queries.count("b"), HOURLY)
    assert MarkovChain.fit(read.data).grid.step == read.grid.step


@pytest.mark.parametrize(
    ("name", "said", "apart", "unit"),
    [
        ("minutes", None, 1, "minutes"),
        ("t (h)", None, 1, "hours"),
        ("second", None, 60, "seconds"),
        ("t", "minutes", 1, "minutes"),
        ("hours", "days", 1, "days"),
        ("minute", None, 10**8, "seconds"),
    ],
)
def test_whole_numbers_count_what_is_said_or_what_their_column_is_called(
    tmp_path, name, said, apart, unit
):
    far = apart if apart == 10**8 else 0
    numbers = [far + (60 if far else apart) * i for i in range(4)]
    path = tmp_path / "counted.csv"
    pd.DataFrame({name: numbers, "state": STATES}).to_csv(path, index=False)
    step = {"hours": "1h", "days": "1d"}.get(unit, "1min")
    for source in (path, pd.read_csv(path)):
        options = {"time": name, "date_format": said}
        read = read_series(source, "state", **options, every=step)
        assert read.data[None].tolist() == STATES
        assert read.reading == f"Numbers of {name!r} are {unit} since 1970."
        assert read_series(source, "state", **options).grid == read.grid


def test_a_grid_refuses_whole_numbers_of_which_nobody_knows_what_they_count(tmp_path):
    path = tmp_path / "counted.csv"
    for name in ("t", "minute_of_hour"):  # the second speaks of two units
        path.write_text(f"{name},state\n" + "".join(f"{10 * i},a\n" for i in range(120)))
        for source in (path, pd.read_csv(path)):
            for grid in ({"every": "10min"}, {"beliefs": HOURLY}):
                with pytest.raises(InvalidInputError, match=f"column '{name}' count seconds, min"):
                    read_series(source, "state", time=name, **grid)
            order = read_series(source, "state", time=name)
            assert (order.points, order.grid.step, order.reading) == (120, None, "")
    path.write_text("t,state\n0,a\n10,a\n20,b\n40,a\n")
    with pytest.warns(QuiltworkWarning, match=r"Times are 10 apart.* \(date_format='minutes'\)"):
        read_series(path, "state", time="t")


@pytest.mark.parametrize(("step", "agrees"), [("1h", True), ("15min", False), ("2h", False)])
def test_an_index_of_moments_shows_its_step(step, agrees):
    for index in (moments(step), moments(step).tz_localize("UTC"), moments(step).as_unit("s")):
        given = pd.Series(STATES, index=index)
        table = pd.DataFrame({"state": STATES}, index=index)
        for data in (given, given[1:], read_series(table, "state").data):
            if agrees:
                assert release(data, queries.count("b"), HOURLY).assumed_step is None
            else:
                with pytest.raises(InvalidInputError, match="for steps of 1h, but"):
                    release(data, queries.count("b"), HOURLY)
        assert MarkovChain.fit(given).grid == Grid(step=step)


@pytest.mark.filterwarnings("ignore:Times are 15min apart, and some are missing")
@pytest.mark.parametrize(
    ("minutes", "step"),
    [
        ([0, 15, 30, 60], 15),  # one record is missing
        ([0, 15, 45, 75], None),
        ([0, 15, 30, 50], None),
        ([0, 15, 30], 15),
        ([60, 30, 0, 15], 15),  # sorted by the reader
        ([0, 15], 15),
        ([0], None),
    ],
)
def test_missing_records_do_not_hide_a_step(minutes, step):
    times = pd.Timestamp("2026-01-01") + pd.to_timedelta(minutes, unit="min")
    table = pd.DataFrame({"time": times, "state": STATES[: len(minutes)]})
    read = read_series(table, "state", time="time")
    assert read.grid.step == (None if step is None else 60 * step)


def test_a_copy_does_not_forget_which_file_it_came_from(tmp_path):
    path = tmp_path / "states.csv"
    path.write_text("state\n" + "\n".join(STATES))
    read = read_series(path, "state")
    belief = MarkovChain.fit(read.data)
    copy.copy(read)
    again = MarkovChain.from_json(belief.to_json())
    with pytest.warns(QuiltworkWarning, match="fitted on the data"):
        release(read.data, queries.count("b"), again)


def test_a_step_that_is_not_known_is_told():
    read = read_series(pd.DataFrame({"time": moments("1h"), "state": STATES}), "state", time="time")
    array = read.data[None]
    gaps = moments("1h").delete(1).append(moments("1h")[-1:] + pd.Timedelta("2h"))
    counted = pd.DataFrame({"time": [4, 5, 6, 7], "state": STATES})
    unknown = [
        STATES,
        array.copy(),
        np.concatenate([array, array]),
        array[::2],
        array[::-1],
        pd.Series(STATES),
        pd.Series(STATES, index=gaps),
        pd.Series(STATES, index=moments("500ms")),
        read_series(counted, "state", time="time").data,
        {1: array, 2: STATES},
    ]
    for data in unknown:
        told = release(data, queries.count("b"), HOURLY)
        assert told.assumed_step == json.loads(told.to_json())["assumed_step"] == 3600
        assert "not given: the belief is one time point per 1h" in told.explain()
        assert type(told).from_json(told.to_json()) == told
    plain = release(STATES, queries.count("b"), MarkovChain(HOURLY.transition, states=["a", "b"]))
    assert "assumed_step" not in json.loads(plain.to_json())
    assert "step of the data" not in plain.explain()
