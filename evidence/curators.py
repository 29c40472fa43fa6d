"""A curator as a process of its own, with a team: started, asked, killed and started again."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from quiltwork.beliefs import MarkovChain
from quiltwork.client import Curator

# It runs in another process; importing it makes stored results depend on its source.
importlib.import_module("quiltwork.service.application")

INDEPENDENT = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["rest", "walk"])
LENGTH = 100


@dataclass
class Running:
    """A curator on a port of the loopback address."""

    folder: Path
    database: str
    port: int
    tokens: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it listens; the first owner is olga."""
        command = [sys.executable, "-m", "quiltwork", "serve", "--json", "--owner", "olga"]
        command += ["--data", str(self.folder / "data"), "--database", self.database]
        with (self.folder / "stderr").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "QUILTWORK_KEY": "00" * 32},
            )
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        if "token" in told:
            self.tokens["olga"] = told["token"]

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an administrator would."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None

    def as_(self, member: str) -> Curator:
        """A client with the token of a member."""
        return Curator(self.address, self.tokens[member])

    def join(self, member: str, role: str) -> None:
        """Let olga invite somebody."""
        olga = self.as_("olga")
        olga.invite(member, role)  # type: ignore[arg-type]
        self.tokens[member] = olga.make_token(member)


@contextmanager
def running(folder: Path, database: str | None = None) -> Iterator[Running]:
    """A curator that ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    curator = Running(folder, database or f"sqlite:///{folder / 'curator.db'}", port)
    curator.start()
    try:
        yield curator
    finally:
        curator.stop()


def with_steps(curator: Running, budget: int = 10, name: str = "steps") -> None:
    """Let olga register a series of independent steps, so that levels simply add up."""
    olga = curator.as_("olga")
    olga.register_series(name, INDEPENDENT, budget, "activity", length=LENGTH)
    rows = curator.folder / "rows.csv"
    rows.write_text("activity\n" + "rest\nwalk\n" * (LENGTH // 2))
    olga.add_rows(name, rows)
