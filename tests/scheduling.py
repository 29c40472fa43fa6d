"""Which tests share a worker, and which go first.

A file is one piece of work, so that what its tests share is made once; folders whose tests share
a server are one piece too. Pieces that take long go first: at the end no worker waits for another.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SERVERS = (  # one Spark, one PostgreSQL, one browser
    "tests/tables/spark",
    "tests/budget/ledger",
    "tests/service/dashboard",
)
LONG = (
    "tests/budget/ledger/test_ledger.py",  # compiles the loops while the other worker is on Spark
    *SERVERS,
    "tests/test_docs_site.py",
    "tests/test_docs_examples.py",
    "tests/test_packaging.py",
)


def piece(test: str) -> str:
    """The folder or file with which a test is handed out."""
    file = test.partition("::")[0]
    return next((folder for folder in SERVERS if file.startswith(f"{folder}/")), file)


def turn(test: str) -> int:
    """Smaller goes first."""
    return next((at for at, place in enumerate(LONG) if test.startswith(place)), len(LONG))


class ByPiece(LoadScopeScheduling):
    """Hands out files and folders in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return piece(nodeid)
