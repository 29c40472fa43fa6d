"""Agents: three tools over MCP and HTTP, and a climber of another user who finds nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib import error, request

import numpy as np
import pytest
from mcp import Client
from starlette.testclient import TestClient

import quiltwork as qw
from quiltwork.cli.mcp import agents_app, board_tools, bridge
from quiltwork.holdout.leaderboard import create_leaderboard
from quiltwork.holdout.metrics import Scoring
from quiltwork.holdout.standings import read_leaderboard
from quiltwork.holdout.transcript import Columns

ROWS = 2000
LABELS = np.random.default_rng(8).integers(0, 2, ROWS)


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    home = tmp_path_factory.mktemp("owner")
    labels = home / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{i},{y}\n" for i, y in enumerate(LABELS)))
    labels.chmod(0o600)
    create_leaderboard(
        str(home / "race"), str(labels), Columns("id", "label"), Scoring(), submissions=400
    )
    return home


@pytest.fixture(scope="module")
def served(race):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "quiltwork", "mcp", "race", "--port", str(port)]
    server = subprocess.Popen(command, cwd=race, stderr=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            request.urlopen(f"{url}/task")  # noqa: S310
            break
        except OSError:
            assert server.poll() is None, server.stderr.read()
            time.sleep(0.05)
    yield url, server.pid
    server.kill()
    server.wait()
    server.stderr.close()


def post(url, document, **headers):
    sent = {"Content-Type": "application/json", **headers}
    asked = request.Request(f"{url}/submit", json.dumps(document).encode(), sent)  # noqa: S310
    try:
        with request.urlopen(asked) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except error.HTTPError as refused:
        return refused.code, refused.read().decode()


CLIMBER = """
import ctypes, glob, json, os, sys
from urllib import request
import numpy as np

url, server, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rows = json.load(request.urlopen(f"{url}/task"))["rows"]  # imports what a request needs
rng = np.random.default_rng(0)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.chdir("/tmp")
seen = []
wanted = [f"{folder}/labels.csv", f"{folder}/race/board.jsonl", f"{folder}/race/board.jsonl.secret",
          f"/proc/{server}/mem", f"/proc/{server}/environ", f"/proc/{server}/maps",
          *glob.glob(f"/proc/{server}/fd/*"), f"/proc/{server}/cwd/labels.csv"]
for path in wanted:
    try:
        seen.append((path, len(open(path, "rb").read(1))))
    except OSError:
        pass
try:
    open(f"{folder}/race/board.jsonl", "a"); seen.append("write")
except OSError:
    pass
for act in (lambda: os.kill(server, 0), lambda: os.listdir(folder)):
    try:
        act(); seen.append("act")
    except OSError:
        pass
if ctypes.CDLL(None).ptrace(16, server, 0, 0) == 0:
    seen.append("ptrace")

def submit(votes):
    said = {"predictions": {str(i): int(v) for i, v in enumerate(votes)}}
    sent = {"Content-Type": "application/json"}
    answer = request.urlopen(request.Request(f"{url}/submit", json.dumps(said).encode(), sent))
    return json.load(answer)["better"]

kept = []
for _ in range(20):
    votes = rng.integers(0, 2, rows)
    if submit(votes):
        kept.append(votes)
    if kept:
        submit(np.mean(kept, axis=0) > rng.random(rows))
print(json.dumps(seen))
"""


def test_a_climber_of_another_user_sees_nothing_and_climbs_nothing(served, race):
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    url, pid = served
    climb = [sys.executable, "-c", CLIMBER, url, str(pid), str(race)]
    ran = subprocess.run(climb, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == []
    found = read_leaderboard(str(race / "race"))
    assert 20 < found.submitted <= 40
    assert abs(found.places[0].value - 0.5) <= found.width

    # The owner does read them: it is the user that keeps them apart.
    assert (race / "labels.csv").read_text().startswith("id,label")
    with open(f"/proc/{pid}/environ", "rb") as own:
        assert own.read(1)


def test_http_refuses_in_sentences_and_other_names_of_the_host(served):
    url, _ = served
    status, told = post(url, {"predictions": {"0": 1}})
    assert (status, "1,999 have no prediction" in told) == (400, True)
    status, told = post(url, {"predictions": 5})
    assert (status, "Submit {" in told) == (400, True)
    before = json.loads(request.urlopen(f"{url}/left").read())["left"]  # noqa: S310
    said = {"predictions": {str(i): int(one) for i, one in enumerate(LABELS)}}
    assert post(url, said)[1]["better"] is True

    async def over_mcp(where):
        async with Client(where) as client:
            names = sorted(tool.name for tool in (await client.list_tools()).tools)
            asked = await client.call_tool("task", {})
            wrong = await client.call_tool("submit", {"predictions": {"0": 1}})
            right = await client.call_tool("submit", said)
            left = await client.call_tool("left", {})
            return names, asked, wrong, right, left

    for where in (f"{url}/mcp", bridge(url)):
        with ThreadPoolExecutor(1) as aside:  # a browser's tests leave a loop in this thread
            told = aside.submit(asyncio.run, over_mcp(where)).result()
        names, asked, wrong, right, left = told
        assert names == ["left", "submit", "task"]
        assert asked.structured_content["metric"] == "accuracy"
        assert wrong.is_error
        assert "1,999 have no prediction" in wrong.content[0].text
        assert right.structured_content["better"] is False
    assert left.structured_content["left"] == before - 3


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "board.example"])  # noqa: S104
def test_pages_of_other_places_ask_for_nothing_and_every_own_address_answers(race, host):
    sent = {"content-type": "application/json", "accept": "application/json"}
    own = ["10.1.2.3:8765", "[::1]:8765", "localhost", *([host] if "." in host else [])]

    with TestClient(agents_app(str(race / "race"), "agent", host)) as client:

        def status(path, **headers):
            text = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
            return client.post(path, content=text, headers={**sent, **headers}).status_code

        for path, good in (("/submit", 400), ("/mcp", 200)):
            for name in own:
                assert status(path, host=name) == good
                assert status(path, host=name, origin=f"http://{name}") == good
                for other in ("http://evil.example", "null", "http://localhost:99"):
                    assert status(path, host=name, origin=other) == 403
            for name in ("evil.example", "127.0.0.1.evil.example", ""):
                assert status(path, host=name) == 403
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp"):
            assert status("/submit", **{"content-type": kind, "host": own[0]}) == 415


def test_labels_that_others_may_read_are_not_served(race):
    (race / "labels.csv").chmod(0o644)
    with pytest.raises(qw.InvalidInputError, match="chmod 600"):
        board_tools(str(race / "race"), "agent")
    (race / "labels.csv").chmod(0o600)
    with pytest.raises(qw.InvalidInputError, match="There is no holdout"):
        agents_app("nowhere", "agent", "127.0.0.1")
    with pytest.raises(qw.InvalidInputError, match="--url is an address"):
        bridge("file:///etc/passwd")


def test_either_a_folder_or_an_address(cli):
    assert cli("mcp").code == 2
    assert cli("mcp", "race", "--url", "http://x").code == 2
