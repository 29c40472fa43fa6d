"""Lost connections: a proxy in front of PostgreSQL that hangs up around a COMMIT.

`before` the server hears of it, `after` it has answered, or `during`: the request is passed on and
the line is cut at once. In all cases one request makes exactly one debit.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Literal
from urllib.parse import urlsplit

from evidence.faults.outcome import Outcome
from evidence.faults.work import INDEPENDENT, LENGTH
from quiltwork.budget import Ledger, Spending

Moment = Literal["before", "during", "after"]


def lost_around_commit(url: str, repeats: int = 5, most_cuts: int = 3) -> Outcome:
    """Cut the line at the first, second … commit of each request."""
    outcome = Outcome("connections lost before, during and after commit (postgresql)")
    ledger = Ledger.open(url)
    for moment in ("before", "during", "after"):
        for cuts in range(1, most_cuts + 1):
            for repeat in range(repeats):
                name = f"{moment} {cuts} {repeat}"
                ledger.create(name, INDEPENDENT, LENGTH, 1)
                with cutting_proxy(url, moment, cuts) as through:
                    receipt = Ledger.open(through).debit(name, Spending.dp(Fraction(1, 9), 1, 4))
                    receipt.complete("answer")
                found = ledger.history(name)
                right = [debit.state for debit in found] == ["released"]
                outcome.add(None if right else f"{name}: {len(found)} debits")
    ledger.verify()
    return outcome


@contextmanager
def cutting_proxy(url: str, moment: str, cuts: int) -> Iterator[str]:
    """A URL that leads to the same database and loses its first `cuts` commits."""
    parts = urlsplit(url)
    left = [cuts]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        threading.Thread(
            target=_accept, args=(listening, target, moment, left), daemon=True
        ).start()
        port = listening.getsockname()[1]
        yield parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl()
        listening.shutdown(socket.SHUT_RDWR)


def _accept(
    listening: socket.socket, target: tuple[str, int], moment: str, left: list[int]
) -> None:
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            server = socket.create_connection(target)
            cut = threading.Event()
            for work in (
                lambda c=client, s=server, e=cut: _requests(c, s, e, moment, left),
                lambda c=client, s=server, e=cut: _answers(c, s, e),
            ):
                threading.Thread(target=work, daemon=True).start()


def _requests(
    client: socket.socket, server: socket.socket, cut: threading.Event, moment: str, left: list[int]
) -> None:
    with suppress(OSError):
        while data := client.recv(65536):
            if b"COMMIT" in data and left[0] > 0:
                left[0] -= 1
                if moment == "after":
                    cut.set()  # the server's next answer is the last thing that happens
                    server.sendall(data)
                    return
                if moment == "during":
                    server.sendall(data)
                break
            server.sendall(data)
    _hang_up(client, server)


def _answers(client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
    with suppress(OSError):
        while data := server.recv(65536):
            if cut.is_set():
                break
            client.sendall(data)
    _hang_up(client, server)


def _hang_up(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
