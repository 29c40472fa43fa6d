"""Files that are read block by block, against pandas, and through temporary files."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.series import read_series
from quiltwork.series.reading import streamed
from quiltwork.series.reading.streamed import Spilled

EDGES, LABELS = [-0.5, 0.5], ["low", "middle", "high"]


KINDS = ("apart", "by turns", "shuffled")


def _rows(kind):
    """Rows of three subjects: one after the other, by turns, or in no order at all."""
    random = np.random.default_rng(3)
    frames = []
    for who, begin in (("b", 7_200), ("a", 0), ("c", 90_000)):
        seconds = begin + np.cumsum(random.choice([300, 600, 900, 4_000], 12_000))
        kw = np.where(random.random(12_000) < 0.05, np.nan, random.normal(size=12_000).round(3))
        frames.append(pd.DataFrame({"who": who, "t": seconds, "kw": kw, "note": 150 * "x"}))
    rows = pd.concat(frames, ignore_index=True)
    if kind == "by turns":
        return rows.sort_values("t", kind="stable")
    return rows.sample(frac=1, random_state=3) if kind == "shuffled" else rows


@pytest.fixture(scope="module")
def several_blocks(tmp_path_factory):
    """Each kind of rows, and a file of them that is read in two blocks."""
    folder, found = tmp_path_factory.mktemp("rows"), {}
    for kind in KINDS:
        found[kind] = _rows(kind), folder / f"{kind}.csv"
        found[kind][0].to_csv(found[kind][1], index=False)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", ["mean", "sum", "max", "last", "first"])
def test_steps_are_gathered_as_pandas_gathers_them(several_blocks, kind, rule):
    rows, path = several_blocks[kind]
    options = {"time": "t", "subject": "who", "edges": EDGES, "labels": LABELS}
    options |= {"every": "30min", "date_format": "seconds"}
    read = read_series(path, "kw", **options, rule=rule, missing="state")
    assert list(read.data) == list(dict.fromkeys(rows.who))
    for who, own in rows.groupby("who"):
        present = own.dropna().sort_values("t", kind="stable")
        gathered = present.groupby(present.t // 1800).kw.agg(rule)
        steps = range(int(own.t.min() // 1800), int(own.t.max() // 1800) + 1)
        values = gathered.reindex(steps)
        labels = np.array(LABELS)[np.searchsorted(EDGES, values.fillna(0), side="right")]
        assert read.data[who].tolist() == np.where(values.isna(), "missing", labels).tolist()
        assert read.data.coded[who].start == steps[0] * 1800


@pytest.mark.parametrize("kind", KINDS)
def test_records_keep_their_order_in_time(several_blocks, kind):
    rows, path = several_blocks[kind]
    read = read_series(
        path, "kw", time="t", subject="who", edges=EDGES, labels=LABELS, missing="state"
    )
    for who, own in rows.groupby("who"):
        values = own.sort_values("t").kw
        labels = np.array(LABELS)[np.searchsorted(EDGES, values.fillna(0), side="right")]
        assert read.data[who].tolist() == np.where(values.isna(), "missing", labels).tolist()


def test_blocks_are_what_files_in_order_are_read_by(several_blocks, monkeypatch):
    sizes = []
    kept = streamed.Outline.take_in
    monkeypatch.setattr(
        streamed.Outline,
        "take_in",
        lambda self, who, when: sizes.append(len(who)) or kept(self, who, when),
    )
    path = several_blocks["by turns"][1]
    read_series(path, "kw", time="t", subject="who", edges=EDGES, missing="public")
    assert sum(sizes) == 36_000
    assert max(sizes) < 30_000


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


@pytest.mark.parametrize("missing", ["state", "public"])
def test_many_small_files_are_read_as_one_by_one(tmp_path, missing):
    """Some of them together; of two that are larger, each with its neighbours."""
    random = np.random.default_rng(2)
    for place, text in enumerate([*ODD_FILES.values(), *20 * [ODD_FILES["plain"]]]):
        body = text.replace("1800", str(1800 * random.integers(1, 4)))
        (tmp_path / f"m{random.integers(10)}{place}.csv").write_bytes(body.encode())
    long = "t,kw\n" + "".join(f"{1800 * i},{i % 2}\n" for i in range(50_000))
    for name in ("m3", "m6"):
        (tmp_path / f"{name}.csv").write_text(long)
    options = {"time": "t", "subject": "filename", "edges": EDGES, "every": "30min"}
    options |= {"date_format": "seconds", "na_values": ["n.d."]}
    found = read_series(tmp_path, "kw", **options, missing=missing)
    alone = [
        read_series(path, "kw", **options, missing=missing)
        for path in sorted(tmp_path.glob("*.csv"))
    ]
    for own in ("data", "data.coded"):
        together = attrgetter(own)(found)
        apart = {who: one for file in alone for who, one in attrgetter(own)(file).items()}
        assert list(together) == list(apart)
        for who, one in apart.items():
            if own == "data":
                assert together[who].tolist() == one.tolist()
            else:
                assert together[who].start == one.start
    for counted in ("points", "missing"):
        assert getattr(found, counted) == sum(getattr(file, counted) for file in alone)
    assert {file.grid for file in alone} == {found.grid}
    (tmp_path / "m5.csv").write_text("t,kw\n0,12:30\n")
    with pytest.raises(InvalidInputError, match=r"m5\.csv: Row 1 of column 'kw' holds no number"):
        read_series(tmp_path, "kw", **options, missing=missing)


@given(st.lists(st.integers(0, 60), max_size=20), st.integers(0, 20))
def test_what_does_not_fit_in_memory_is_read_back_from_a_file(sizes, number):
    parts = [np.arange(n, dtype=(np.int8, np.int64, np.float64)[n % 3]) for n in sizes]
    found = Spilled(in_memory=100)
    for part in parts:
        found.add(part)
    for _ in range(2):
        for one, part in zip(found, parts, strict=True):
            assert (one.tolist(), one.dtype) == (part.tolist(), part.dtype)
    found.cut(number)
    assert [one.tolist() for one in found] == [part.tolist() for part in parts[:number]]


def test_a_full_disk_is_told(monkeypatch):
    monkeypatch.setattr(streamed, "TemporaryFile", partial(open, "/dev/full", "wb", buffering=0))
    with pytest.raises(StorageError, match=r"No space left on device\. Name a folder with room"):
        Spilled(100).add(np.zeros(100))
    monkeypatch.setattr(streamed, "TemporaryFile", partial(open, "/dev/full", "wb"))
    with pytest.raises(StorageError, match="No space left"):  # at once, however small the part is
        Spilled(0).add(np.zeros(1))


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20)), max_size=30),
        min_size=1,
    ).filter(any),
    st.sampled_from([1, 10**10, 5 * 10**16]),
    st.integers(1, 20),
)
def test_rows_are_sorted_by_subject_and_time_and_equal_ones_stay_in_order(drawn, apart, at_once):
    """Keys of far times are so long that their places do not fit behind them."""
    drawn = [[(who, when * apart) for who, when in some] for some in drawn]
    blocks, count = [], 0
    for some in drawn:
        who, when = np.array(some, dtype=np.int64).reshape(-1, 2).T
        blocks.append((who.astype(np.int8), when, np.arange(count, count + len(some))))
        count += len(some)
    again = streamed.sorted_by_time(lambda: iter(blocks), at_once, in_memory=64)
    rows = [row for block in drawn for row in block]
    order = sorted(range(count), key=rows.__getitem__)
    for _ in range(2):
        who, when, place = (np.concatenate(one).tolist() for one in zip(*again(), strict=True))
        assert place == order
        assert list(zip(who, when, strict=True)) == sorted(rows)
