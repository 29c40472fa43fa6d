"""A curator with pages, for a client in process and for a browser."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time
from dataclasses import dataclass

import pytest
import uvicorn
from starlette.testclient import TestClient

from quiltwork.service import dashboard
from quiltwork.service.application import create_app
from quiltwork.service.features import open_service
from quiltwork.service.members import NewToken, invite, issue
from quiltwork.service.settings import Settings

TEAM = {"olga": "owner", "pia": "provider", "anna": "analyst", "udo": "auditor"}
PAGE = {"Accept": "text/html,application/xhtml+xml"}


@dataclass
class Visitor:
    """Somebody with a browser's manners: follows redirects, keeps cookies, sends forms."""

    client: TestClient

    def get(self, path, **rest):
        return self.client.get(path, headers=PAGE, **rest)

    def post(self, path, page="/sign-in", **fields):
        """Send a form as the page at `page` would."""
        shown = self.get(page)
        value = re.search(r'name="form" value="(\w+)"', shown.text)[1]
        headers = {**PAGE, "Origin": str(self.client.base_url), "Sec-Fetch-Site": "same-origin"}
        return self.client.post(path, data={"form": value, **fields}, headers=headers)

    def sign_in(self, secret):
        return self.post("/sign-in", token=secret)


@dataclass
class House:
    """A curator and the tokens of its members."""

    service: object
    app: object
    secrets: dict[str, str]

    def visitor(self, member=None):
        found = Visitor(TestClient(self.app, "http://127.0.0.1"))
        if member is not None:
            assert found.sign_in(self.secrets[member]).status_code == 200
        return found


def open_house(settings, members=TEAM):
    service = open_service(settings)
    secrets = {}
    for member, role in members.items():
        invite(service, member, role, "olga")
        secrets[member] = issue(service, member, "olga", NewToken(label="first token")).secret
    return House(service, create_app(service, dashboard.routes), secrets)


@pytest.fixture
def house(settings):
    found = open_house(settings)
    with TestClient(found.app, "http://127.0.0.1"):
        yield found


@pytest.fixture(scope="session")
def stories(tmp_path_factory):
    """The curator of `quiltwork serve --demo`, without a worker."""
    folder = tmp_path_factory.mktemp("curator")
    service = open_service(Settings(f"sqlite:///{folder / 'c.db'}", folder / "data"))
    secrets = {name.split()[0]: secret for name, secret in dashboard.fill(service).items()}
    yield House(service, create_app(service, dashboard.routes), secrets)
    service.ledger.close()


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium; Playwright brings the protocol, not the browser."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("Chromium absent: none of chromium, chromium-browser, google-chrome is there")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


class Serving:
    """A curator on a free port of this machine, while it is entered."""

    def __init__(self, app) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
