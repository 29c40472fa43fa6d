"""Uploads: within limits, or refused before they do harm; told by place, never by value."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import anyio
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quiltwork.service.problems import Problem
from quiltwork.service.request_limits import ConcurrencyLimiter, limited_body
from quiltwork.service.settings import Limits
from tests.service.conftest import CHAIN, PEOPLE, ROWS

CANARY = "zq7xcanary"


@pytest.fixture
def limits():
    return Limits(upload=20_000, unpacked=5, rows=200, columns=4, field=50, bytes=10_000)


@pytest.fixture
def settings(settings, limits):
    return replace(settings, limits=limits, key=bytes(32))


def sent(team, content, **headers):
    path = "/v1/datasets/survey/rows"
    given = {"Content-Type": "text/csv", **headers}
    return team.ask("olga", "POST", path, content=content, headers=given)


def test_rows_come_as_csv_as_gzip_and_as_parquet(team, survey):
    packed = gzip.compress(PEOPLE.encode())
    assert sent(team, packed, **{"Content-Encoding": "gzip"}).status_code == 201
    file = io.BytesIO()
    pd.read_csv(io.StringIO(PEOPLE)).to_parquet(file)
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    assert sent(team, file.getvalue(), **kind).status_code == 201
    assert sent(team, b"PAR1 no parquet", **kind).status_code == 422


def test_long_texts_and_lists_in_parquet_are_refused_before_they_are_unpacked(team, survey):
    """One text of half a million letters, said a hundred times, is a small file."""
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    before = team.service.vault.names()
    file = io.BytesIO()
    pq.write_table(pa.table({"who": ["p"], "sexé": ["f"], "smoker": ["yes"]}), file)
    broken = file.getvalue().replace("sexé".encode(), b"sex\xff\xfe")
    assert sent(team, broken, **kind).status_code == 422
    for column in (["r" * 500_000] * 100, [["f"]] * 3, ["r" * 49] * 200):
        file = io.BytesIO()
        rows = {"who": ["p"] * len(column), "sex": column, "smoker": ["yes"] * len(column)}
        pq.write_table(pa.table(rows), file, compression="zstd")
        answer = sent(team, file.getvalue(), **kind)
        assert answer.status_code == 422, answer.text
        assert any(word in answer.text for word in ("characters", "lists", "unpacks")), answer.text
    assert team.service.vault.names() == before


def padded(number, length):
    """A number as Thrift writes it, in so many bytes."""
    parts = [number >> 7 * place & 0x7F | 0x80 for place in range(length)]
    return bytes([*parts[:-1], parts[-1] & 0x7F])


def test_a_parquet_file_that_lies_about_its_sizes_is_refused(team, survey):
    file = io.BytesIO()
    rows = {"who": ["p"] * 200, "sex": ["r" * 49] * 200, "smoker": ["yes"] * 200}
    pq.write_table(pa.table(rows), file, compression="zstd", use_dictionary=False)
    content, told = file.getvalue(), pq.read_metadata(file).row_group(0)
    sizes = [told.total_byte_size, told.column(1).total_uncompressed_size]
    for size in sizes:  # twice the number, for the sign
        content = content.replace(padded(2 * size, 3), padded(20, 3))
    assert pq.read_metadata(io.BytesIO(content)).row_group(0).total_byte_size == 10 < min(sizes)
    answer = sent(team, content, **{"Content-Type": "application/vnd.apache.parquet"})
    assert "unpacks" in answer.json()["detail"]


def test_a_child_that_reads_a_file_cannot_take_all_memory():
    """The head of a page says how large it is unpacked, and whoever reads it takes that much."""
    taken = "import pyarrow; from quiltwork.service import parquet, settings; {limit} "
    taken += "pyarrow.allocate_buffer(2**30)"
    limited = "parquet._limit_memory(settings.Limits(bytes=10_000));"
    codes = []
    for limit in ("", limited):
        command = [sys.executable, "-c", taken.format(limit=limit)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        codes.append((ran.returncode, "MemoryError" in ran.stderr))
    assert codes == [(0, False), (1, True)]


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"who,sex,smoker\n" + b"p,f,yes\n" * 5000, {}, 413),
        (b"who,sex,smoker\n" + b"p,f,yes\n" * 300, {}, 422),
        (b"who,sex,smoker,a,b\np,f,yes,1,2\n", {}, 422),
        (f"who,sex,smoker\n{CANARY * 10},f,yes\n".encode(), {}, 422),
        (f"who,sex,smoker\np,{CANARY},yes\n".encode(), {}, 422),
        (f"who,sex\np,{CANARY}\n".encode(), {}, 422),
        (f"who,sex,smoker\np,f,yes,{CANARY}\n".encode(), {}, 422),
        (b"\x00\xff\xfe" + CANARY.encode(), {}, 422),
        (b"", {}, 422),
        (gzip.compress(b"a" * 3_000_000), {"Content-Encoding": "gzip"}, 413),
        (b"no gzip", {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(PEOPLE.encode())[:-9], {"Content-Encoding": "gzip"}, 400),
        (b"a,b\n", {"Content-Encoding": "br"}, 415),
        (b"a,b\n", {"Content-Type": "text/html"}, 415),
    ],
)
def test_what_cannot_be_taken_is_refused_and_kept_nowhere(team, survey, content, headers, status):
    before = team.service.vault.names()
    answer = sent(team, content, **headers)
    assert answer.status_code == status, answer.text
    assert CANARY not in answer.text
    assert "/" not in answer.json()["detail"].replace("text/csv", "").replace("application/", "")
    assert team.service.vault.names() == before


@pytest.mark.parametrize("seconds", [60, 0.02])
def test_a_body_that_stops_coming_or_drips_gives_its_place_back(seconds):
    async def dripping():
        while True:
            yield b"s"
            await anyio.sleep(seconds)

    async def read():
        with pytest.raises(Problem) as told:
            async for _ in limited_body(dripping(), 100, pause=0.1):
                pass
        assert told.value.status == 408

    in_a_loop(read)


def in_a_loop(work):
    with ThreadPoolExecutor(1) as aside:  # a browser's tests leave a loop in this thread
        return aside.submit(anyio.run, work).result()


def test_one_token_holds_half_of_the_places():
    async def ask():
        places, inside, most = ConcurrencyLimiter(Limits(requests=6, uploads=4)), [], []

        async def one(token, file):
            async with places.slot(token, file=file):
                inside.append((token, file))
                most.append(inside.count((token, file)))
                if file:
                    assert sum(is_file for _, is_file in inside) <= 4
                await anyio.sleep(0.001)
                inside.remove((token, file))

        async with anyio.create_task_group() as group:
            for number in range(60):
                group.start_soon(one, "abc"[number % 3], number % 2 == 0)
        return len(most), max(most)

    assert in_a_loop(ask) == (60, 3)


def test_one_token_computes_in_half_of_the_threads_and_keeps_no_reader_waiting():
    async def ask():
        places = ConcurrencyLimiter(Limits(reads=4, changes=4))
        inside, most, guard = [], {}, threading.Lock()

        def work(token, reads):
            with guard:
                inside.append((token, reads))
                seen = (token, reads), reads
                for kind, count in zip(
                    seen,
                    (inside.count(seen[0]), sum(of == reads for _, of in inside)),
                    strict=True,
                ):
                    most[kind] = max(most.get(kind, 0), count)
            time.sleep(0.005)
            with guard:
                inside.remove((token, reads))

        async def one(number):
            token, reads = "abc"[number % 3], number % 2 == 0
            await places.run(partial(work, token, reads), token, file=False, reads=reads)

        async with anyio.create_task_group() as group:
            for number in range(90):
                group.start_soon(one, number)
        return most

    most = in_a_loop(ask)
    assert {most[token, reads] for token in "abc" for reads in (True, False)} == {2}
    assert (most[True], most[False]) == (4, 4)


def test_who_loses_the_right_while_sending_is_not_taken(team, steps):
    """The right is checked before the first byte, and when the last one has come."""

    def parts():
        yield ROWS.encode()
        team.service.storage.write(lambda t: t.rows("DELETE FROM curator_access"))

    before, kind = team.service.vault.names(), {"Content-Type": "text/csv"}
    answer = team.ask("pia", "POST", "/v1/datasets/steps/rows", content=parts(), headers=kind)
    assert answer.status_code == 404, answer.text
    assert team.told("olga", "GET", "/v1/datasets/steps")["length"] == 100
    assert team.service.vault.names() == before


def test_a_series_takes_rows_of_its_states_that_follow_each_other(team, steps):
    path, kind = "/v1/datasets/steps/rows", {"Content-Type": "text/csv"}
    for wrong in (f"activity\nrest\n{CANARY}\n", "other\nrest\n", "activity\n\n", "activity\n"):
        answer = team.ask("pia", "POST", path, content=wrong.encode(), headers=kind)
        assert answer.status_code == 422, answer.text
        assert CANARY not in answer.text
    assert team.told("pia", "GET", "/v1/datasets/steps")["length"] == 100
    other = team.ask("olga", "POST", path, content=ROWS.encode(), headers=kind)
    assert other.json()["length"] == 100  # olga's rows are another subject than pia's


@pytest.mark.parametrize("every", [None, "10min"])
def test_rows_that_come_one_at_a_time_are_on_one_clock(team, every):
    """A single row does not say how far the next one is, unless that was registered."""
    about = {"belief": json.loads(CHAIN.to_json()), "value": "state", "time": "at", "every": every}
    dated = {"name": "dated", "budget": 1, "series": about}
    team.told("olga", "POST", "/v1/datasets", json=dated)
    path, kind = "/v1/datasets/dated/rows", {"Content-Type": "text/csv"}

    def taken(*minutes):
        rows = "".join(f"2026-01-01T00:{minute:02}:00Z,rest\n" for minute in minutes)
        content = f"at,state\n{rows}".encode()
        return team.ask("olga", "POST", path, content=content, headers=kind).is_success

    assert taken(0, 10)
    assert not any(taken(*wrong) for wrong in ([30], [10], [30, 40]))
    assert taken(20) == (every is not None)
    assert taken(*([30, 40] if every else [20, 30, 40]))
    assert team.told("olga", "GET", "/v1/datasets/dated")["length"] == 5


def test_who_looks_for_what_is_not_hers_is_noted(team, steps):
    for name in ("nothing", "steps"):
        team.told("olga", "DELETE", "/v1/datasets/steps/access/anna")
        assert team.ask("anna", "GET", f"/v1/datasets/{name}").status_code == 404
    log = team.told("udo", "GET", "/v1/log?limit=1000")["items"]
    noted = [one["content"]["text"] for one in log if one["kind"] == "refusal"]
    assert noted == ["may not dataset.read, or there is no such dataset"] * 2
    for _ in range(103):
        assert team.ask("anna", "GET", "/v1/log").status_code == 403
    log = team.told("udo", "GET", "/v1/log?limit=1000")["items"]
    assert sum(one["kind"] == "refusal" for one in log) == 100
