"""What tests share is made once per run: a file, or a folder with a server, stays on one worker."""

from __future__ import annotations

from types import SimpleNamespace

from tests.conftest import pytest_xdist_make_scheduler
from tests.scheduling import LONG, SERVERS, piece, turn

SPARK = [f"tests/tables/spark/test_{name}.py::test_{at}" for name in "ab" for at in range(4)]
SITE = [f"tests/test_docs_site.py::test_{at}[x@y]" for at in range(4)]
OTHERS = [f"tests/noise/test_{name}.py::test_{at}" for name in "cde" for at in range(4)]


def test_servers_and_files_have_one_worker_and_the_long_go_first():
    collected = sorted([*OTHERS, *SITE, *SPARK], key=turn)
    assert collected == [*SPARK, *SITE, *OTHERS]
    options = SimpleNamespace(loadscopereorder=True)
    config = SimpleNamespace(option=options, getvalue={"tx": ["2*popen"]}.get)
    scheduler = pytest_xdist_make_scheduler(config, None)
    sent: dict[str, list[str]] = {}

    class Worker:
        shutting_down = False

        def __init__(self, name):
            self.gateway = SimpleNamespace(id=name)

        def send_runtest_some(self, places):
            sent.setdefault(self.gateway.id, []).extend(collected[at] for at in places)

        def shutdown(self):
            self.shutting_down = True

    workers = [Worker("first"), Worker("second")]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, collected)
    scheduler.schedule()
    done = dict.fromkeys(sent, 0)
    while any(done[name] < len(tests) for name, tests in sent.items()):
        for worker in workers:
            name = worker.gateway.id
            if done[name] < len(sent[name]):
                scheduler.mark_test_complete(worker, collected.index(sent[name][done[name]]))
                done[name] += 1
    assert sent["first"][: len(SPARK)] == SPARK
    assert sent["second"][: len(SITE)] == SITE
    assert sorted(sent["first"] + sent["second"]) == sorted(collected)
    places = {name: {piece(test) for test in tests} for name, tests in sent.items()}
    assert not places["first"] & places["second"]


def test_every_place_named_exists(request):
    for place in (*SERVERS, *LONG):
        assert (request.config.rootpath / place).exists(), place
