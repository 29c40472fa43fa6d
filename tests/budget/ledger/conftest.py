"""Ledgers for the tests: a fresh one in a file, and one on a throw-away PostgreSQL server."""

from __future__ import annotations

import uuid

import pytest

from evidence.faults.server import NoServerError, new_database, running_server
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Ledger


@pytest.fixture(scope="session")
def postgres():
    """The URL of a running server, without a database."""
    try:
        with running_server() as url:
            yield url
    except NoServerError as problem:
        pytest.skip(f"no PostgreSQL: {problem}")


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'budget.db'}"


@pytest.fixture
def postgres_url(postgres):
    return new_database(postgres, f"t{uuid.uuid4().hex}")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    """A place for a new ledger in each kind of database."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def ledger(url):
    with Ledger.open(url) as opened:
        yield opened


@pytest.fixture(scope="session")
def independent():
    """A chain whose time points are independent, so that costs are plain sums."""
    return MarkovChain([[0.5, 0.5], [0.5, 0.5]])


@pytest.fixture(scope="session")
def chain():
    return MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=["rest", "walk"])
