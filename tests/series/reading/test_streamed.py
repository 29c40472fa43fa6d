"""Files that are read block by block, against pandas, and columns in few bytes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from quiltwork.errors import InvalidInputError
from quiltwork.series import read_series
from quiltwork.series.reading import assembly, columns, streamed
from quiltwork.series.reading.packing import Progressions, packed, unpacked

EDGES, LABELS = [-0.5, 0.5], ["low", "middle", "high"]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(columns, "_BLOCK", 2048)
    monkeypatch.setattr(streamed, "_AT_ONCE", 50)  # rows that are sorted in one of 16 passes


def _rows(kind, seed):
    """Rows of three subjects: one after the other, by turns, or in no order at all."""
    random = np.random.default_rng(seed)
    frames = []
    for who, begin in (("b", 7_200), ("a", 0), ("c", 90_000)):
        seconds = begin + np.cumsum(random.choice([300, 600, 900, 4_000], 400))
        kw = np.where(random.random(400) < 0.05, np.nan, random.normal(size=400).round(3))
        frames.append(pd.DataFrame({"who": who, "t": seconds, "kw": kw}))
    rows = pd.concat(frames, ignore_index=True)
    if kind == "by turns":
        return rows.sort_values("t", kind="stable")
    return rows.sample(frac=1, random_state=seed) if kind == "shuffled" else rows


@pytest.mark.parametrize("kind", ["apart", "by turns", "shuffled"])
@pytest.mark.parametrize("rule", ["mean", "sum", "max", "last", "first"])
def test_steps_are_gathered_as_pandas_gathers_them(tmp_path, small_blocks, kind, rule):
    rows, path = _rows(kind, 3), tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    options = {"time": "t", "subject": "who", "edges": EDGES, "labels": LABELS}
    read = read_series(path, "kw", **options, every="30min", rule=rule, missing="state")
    assert list(read.data) == list(dict.fromkeys(rows.who))
    for who, own in rows.groupby("who"):
        present = own.dropna().sort_values("t", kind="stable")
        gathered = present.groupby(present.t // 1800).kw.agg(rule)
        steps = range(int(own.t.min() // 1800), int(own.t.max() // 1800) + 1)
        expected = [
            "missing" if np.isnan(x) else LABELS[int(np.searchsorted(EDGES, x, side="right"))]
            for x in gathered.reindex(steps)
        ]
        assert read.data[who].tolist() == expected
        assert read.data.coded[who].start == steps[0] * 1800


@pytest.mark.parametrize("kind", ["apart", "by turns", "shuffled"])
def test_records_keep_their_order_in_time(tmp_path, small_blocks, kind):
    rows, path = _rows(kind, 4).fillna(0.0), tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    read = read_series(path, "kw", time="t", subject="who", edges=EDGES, labels=LABELS)
    for who, own in rows.groupby("who"):
        codes = np.searchsorted(EDGES, own.sort_values("t").kw, side="right")
        assert read.data[who].tolist() == [LABELS[code] for code in codes]


def test_blocks_are_what_files_in_order_are_read_by(tmp_path, small_blocks, monkeypatch):
    path = tmp_path / "rows.csv"
    _rows("by turns", 5).to_csv(path, index=False)
    sizes = []
    kept = streamed.Outline.take_in
    monkeypatch.setattr(
        streamed.Outline,
        "take_in",
        lambda self, who, when: sizes.append(len(who)) or kept(self, who, when),
    )
    read_series(path, "kw", time="t", subject="who", edges=EDGES, missing="split")
    assert sum(sizes) == 1200
    assert max(sizes) < 200


ODD_FILES = {
    "plain": "t,kw\n0,1\n1800,0\n",
    "unended": "t,kw\n0,-1\n1800,1",
    "quoted": 't,kw\n0,"1"\n1800,0\n',
    "dos": "t,kw\r\n0,-1\r\n1800,0\r\n",
    "more": "kw,other,t\n1,x,0\n0,x,3600\n",
    "german": "t;kw\n0;0,7\n1800;0,1\n",
    "gap": "t,kw\n0,1\n\n1800,n.d.\n3600,0\n",
    "empty": "t,kw\n0,1\n",
}


@pytest.mark.parametrize("missing", ["state", "split"])
def test_many_small_files_are_read_as_one_by_one(tmp_path, monkeypatch, missing):
    random = np.random.default_rng(2)
    for place, text in enumerate([*ODD_FILES.values(), *20 * [ODD_FILES["plain"]]]):
        body = text.replace("1800", str(1800 * random.integers(1, 4)))
        (tmp_path / f"m{random.integers(10)}{place}.csv").write_bytes(body.encode())
    options = {"time": "t", "subject": "filename", "edges": EDGES, "every": "30min"}
    read = []
    for most in (1, 3, 1000):
        monkeypatch.setattr(assembly, "_MOST_TOGETHER", most)
        found = read_series(tmp_path, "kw", **options, missing=missing)
        starts = [one.start for one in found.data.coded.values()]
        shown = {who: states.tolist() for who, states in found.data.items()}
        read.append((shown, starts, found.points, found.missing, found.grid))
    assert read[0] == read[1] == read[2]
    (tmp_path / "m5.csv").write_text("t,kw\n0,12:30\n")
    with pytest.raises(InvalidInputError, match=r"m5\.csv: Row 1 of column 'kw' holds no number"):
        read_series(tmp_path, "kw", **options, missing=missing)


@given(
    arrays.arrays(
        st.sampled_from([np.int8, np.int32, np.int64]),
        st.integers(0, 60),
        elements=st.integers(-5, 5),
    )
)
def test_integers_are_read_back(part):
    for one in (part, part.cumsum(), np.repeat(part, 30)):
        assert unpacked(packed(one)).tolist() == one.tolist()
        assert unpacked(packed(one)).dtype == one.dtype


@given(st.lists(st.floats(-3, 3).map(lambda x: round(x, 1)) | st.just(float("nan")), max_size=400))
def test_numbers_are_read_back(values):
    part = np.array(values, dtype=np.float64)
    np.testing.assert_array_equal(unpacked(packed(part)), part)


def test_a_year_of_quarters_takes_a_few_numbers():
    moments = np.tile(np.arange(0, 35_040 * 900, 900), 20)
    kept = packed(moments)
    assert isinstance(kept, Progressions)
    assert len(kept.lengths) < 60
    spread = np.sort(np.random.default_rng(1).integers(0, 10**8, 1000))
    assert packed(spread).distances.nbytes == 4000
