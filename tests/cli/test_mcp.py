"""Agents: four tools over MCP and HTTP, and a climber of another user who finds nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib import error, request

import numpy as np
import pytest
from starlette.testclient import TestClient

import quiltwork as qw
from quiltwork.cli import mcp
from quiltwork.cli.mcp import agents_app, board_tools, bridge
from quiltwork.holdout.folders import board_of, create_board
from quiltwork.holdout.metrics import Scoring
from quiltwork.holdout.transcript import Columns

ROWS = 2000
CLASSES = Scoring(classes=("0", "1"))
LABELS = np.random.default_rng(8).integers(0, 2, ROWS)


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    home = tmp_path_factory.mktemp("owner")
    labels = home / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{i},{y}\n" for i, y in enumerate(LABELS)))
    labels.chmod(0o600)
    create_board(str(home / "race"), str(labels), Columns("id", "label"), CLASSES, submissions=400)
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
    found = board_of(str(race / "race")).standings()
    assert 20 <= found.submitted <= 40
    assert abs(found.places[0].value - 0.5) <= found.width

    # The owner does read them: it is the user that keeps them apart.
    assert (race / "labels.csv").read_text().startswith("id,label")
    with open(f"/proc/{pid}/environ", "rb") as own:
        assert own.read(1)


def test_http_refuses_in_sentences_and_other_names_of_the_host(served):
    from mcp import Client

    url, _ = served
    status, told = post(url, {"predictions": {"0": 1}})
    assert (status, "1,999 of 2,000 rows have no prediction" in told) == (400, True)
    status, told = post(url, {"predictions": {str(i): 0.3 for i in range(len(LABELS))}})
    assert (status, "accuracy compares labels" in told) == (400, True)
    status, told = post(url, {"predictions": 5})
    assert (status, "Submit {" in told) == (400, True)
    before = json.loads(request.urlopen(f"{url}/left").read())["left"]  # noqa: S310
    said = {"predictions": {str(i): int(one) for i, one in enumerate(LABELS)}}
    assert post(url, said)[1]["better"] is True

    nulls = {str(i): None for i in range(12_000)}
    hostile = [nulls, list(nulls), "x" * 10**6, 5, {"x" * 10**6: 1}, {str(i): [i] for i in nulls}]
    hostile += [{str(i): "x" * 9999 for i in range(ROWS)}, {"x" * 999 + str(i): 1 for i in nulls}]
    refused = []

    async def over_mcp(where):
        async with Client(where) as client:
            names = sorted(tool.name for tool in (await client.list_tools()).tools)
            asked = await client.call_tool("task", {})
            wrong = await client.call_tool("submit", {"predictions": {"0": 1}})
            right = await client.call_tool("submit", said)
            left = await client.call_tool("left", {})
            for sent in (*hostile, None):
                given = {} if sent is None else {"predictions": sent}
                refused.append(await client.call_tool("submit", given))
            numbers = ("x" * 5000, 1.5, True, None, 10**30)
            refused.extend([await client.call_tool("choose", {"number": one}) for one in numbers])
            return names, asked, wrong, right, left

    for where in (f"{url}/mcp", bridge(url)):
        with ThreadPoolExecutor(1) as aside:  # a browser's tests leave a loop in this thread
            told = aside.submit(asyncio.run, over_mcp(where)).result()
        names, asked, wrong, right, left = told
        own = ["submit_file"] if where != f"{url}/mcp" else []
        assert names == ["add", "choose", "ids", "left", "submit", *own, "task"]
        assert asked.structured_content["metric"] == "accuracy"
        assert wrong.is_error
        assert "1,999 of 2,000 rows have no prediction" in wrong.content[0].text
        shown = right.structured_content  # the same predictions: stored answer
        assert (shown["better"], shown["repeated"]) == (True, True)
    assert len(refused) == 2 * (len([*hostile, None]) + 5)
    for one in refused:  # a line each, however much was sent
        text = one.content[0].text
        assert (one.is_error, len(text) < 1000) == (True, True), text[:1000]
        assert len(text.splitlines()) == 1
    assert left.structured_content["left"] == before - 1


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
            twice = ("127.0.0.1:8765, evil.example", "evil@127.0.0.1", "[::1]evil", "::1")
            for name in ("evil.example", "127.0.0.1.evil.example", "", *twice):
                assert status(path, host=name) == 403
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp"):
            assert status("/submit", **{"content-type": kind, "host": own[0]}) == 415


def test_what_others_may_read_or_write_is_not_served_at_the_start_nor_later(race, capsys):
    tools = board_tools(str(race / "race"), "agent")
    said = {str(i): 1 for i in range(ROWS)}
    before = tools["left"]()["left"]
    for name, mode, word in (
        ("labels.csv", 0o644, "chmod 600"),
        ("race/board.jsonl.secret", 0o640, "chmod 600"),
        ("race/board.jsonl", 0o620, "chmod go-w"),
        ("race", 0o777, "chmod go-w"),
    ):
        own = (race / name).stat().st_mode
        (race / name).chmod(mode)
        with pytest.raises(qw.InvalidInputError, match=word):
            board_tools(str(race / "race"), "agent")
        with pytest.raises(qw.StorageError, match=r"^Internal error\. The owner of the board"):
            tools["submit"](said)
        assert word in capsys.readouterr().err
        (race / name).chmod(own)
    assert tools["left"]()["left"] == before
    with pytest.raises(qw.InvalidInputError, match="There is no holdout"):
        agents_app("nowhere", "agent", "127.0.0.1")
    with pytest.raises(qw.InvalidInputError, match="--url is an address"):
        bridge("file:///etc/passwd")


def test_a_bridge_to_another_server_says_that_it_is_no_leaderboard():
    """Any web server answers 404 with a page, which is no answer of a board."""
    with serving(SimpleHTTPRequestHandler) as url, ThreadPoolExecutor(1) as aside:

        async def ask():
            from mcp import Client

            async with Client(bridge(url)) as client:
                return await client.call_tool("task", {})

        refused = aside.submit(asyncio.run, ask()).result()
    assert refused.is_error
    assert f"{url} is not a leaderboard (HTTP Error 404" in refused.content[0].text


@contextmanager
def serving(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_damaged_table_tells_agents_nothing_and_its_owner_all(race, capsys):
    client = TestClient(agents_app(str(race / "race"), "agent", "127.0.0.1"), "http://127.0.0.1")
    labels, said = race / "labels.csv", {"predictions": {str(i): 1 for i in range(ROWS)}}
    good = labels.read_text()
    for bad in ("no,such\n1,2\n", good.replace("\n7,", "\n8,"), good + "1,2,3\n", "\0\xff"):
        labels.write_text(bad)
        answer = client.post("/submit", json=said)
        assert answer.status_code == 500
        assert answer.json() == {"error": mcp._FAILED}
        assert "labels.csv" in capsys.readouterr().err
    labels.write_text(good)
    wrong = client.post("/submit", json={"predictions": {**said["predictions"], "5": " "}})
    assert (wrong.status_code, "for id '5': accuracy needs labels" in wrong.text) == (400, True)
    for told in ("YES", "nan", 2):
        wrong = client.post("/submit", json={"predictions": {**said["predictions"], "5": told}})
        assert (wrong.status_code, "the classes are '0', '1'" in wrong.text) == (400, True)
    sent = {"content-type": "application/json"}
    twice = client.post("/submit", content='{"predictions": {"0": 1, "0": 0}}', headers=sent)
    assert (twice.status_code, "names '0' twice" in twice.text) == (400, True)


def test_a_task_tells_the_ids_in_no_telling_order_and_how_rows_are_scored(tmp_path):
    rents = tmp_path / "rents.csv"
    rents.write_text("id,rent\n" + "".join(f"{900 - i},{i}\n" for i in range(400)))
    rents.chmod(0o600)
    scoring = Scoring("neg_mean_absolute_error", (0, 400))
    folder = str(tmp_path / "race")
    create_board(folder, str(rents), Columns("id", "rent"), scoring, submissions=5)
    tools = board_tools(folder, "agent", "Rents of flats.")
    task = tools["task"]()
    assert task["scoring"]["limits"] == ["0", "400"]
    assert (task["about"], task["identity"], task["rows"]) == ("Rents of flats.", "id", 400)
    assert tools["ids"]()["ids"] == sorted(str(i) for i in range(501, 901))
    with pytest.raises(qw.InvalidInputError, match="needs numbers here"):
        tools["submit"]({**dict.fromkeys(tools["ids"]()["ids"], 7), "501": "much"})
    assert tools["left"]()["left"] == 5


@pytest.mark.parametrize("path", ["/submit", "/mcp"])
def test_a_client_that_hangs_up_is_no_failure(race, path, caplog):
    app = agents_app(str(race / "race"), "agent", "127.0.0.1")
    parts = iter([{"type": "http.request", "body": b"{", "more_body": True}])
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    headers.append((b"accept", b"application/json, text/event-stream"))
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    scope |= {"query_string": b"", "scheme": "http", "http_version": "1.1"}

    async def receive():
        return next(parts, {"type": "http.disconnect"})

    async def send(_):
        pass

    async def call():
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)

    with ThreadPoolExecutor(1) as aside:
        aside.submit(asyncio.run, call()).result()
    assert not [one for one in caplog.records if one.exc_info]


def test_either_a_folder_or_an_address(cli):
    assert cli("mcp").code == 2
    assert cli("mcp", "race", "--url", "http://x").code == 2
