"""`quiltwork serve`: a running curator, in one process."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from quiltwork import files
from quiltwork.cli.command import command, option
from quiltwork.cli.output import as_json, emit, progress
from quiltwork.errors import StorageError, UnsupportedError
from quiltwork.exact import counted

_BACKLOG = 2048
"""Connections that wait for their turn, from the moment the address is told."""


@command(
    example="""
    quiltwork serve
    quiltwork serve --demo
    quiltwork serve --database postgresql://curator@db/curator --data /var/lib/quiltwork
    quiltwork serve --new-token olga
    """
)
def serve(
    database: str | None = option(
        "Where ledger and members are kept: sqlite:///curator.db or postgresql://…  [default: "
        "curator.db in the data directory]",
        "URL",
    ),
    data: str | None = option(
        "Where rows are kept; only you may read it.  [default: quiltwork in your data directory]",
        "DIRECTORY",
    ),
    host: str = option("The address to listen on.", default="127.0.0.1"),
    port: int = option("0 for any.", kind=click.IntRange(0, 65535), default=8000),
    allow_host: tuple[str, ...] = option(
        "A name under which requests may come in, besides those of this machine; repeatable.",
        "NAME",
    ),
    trust_proxy: tuple[str, ...] = option(
        "The address of a proxy that says in --user-header who has signed in; repeatable.",
        "ADDRESS",
    ),
    user_header: str = option(
        "With --trust-proxy: the header with a member's name; dropped from all other requests.",
        "HEADER",
        default="",
    ),
    access_log: bool = option(
        "Write a line for each request to standard error: route, status, time; no names."
    ),
    owner: str | None = option("The first owner's name.  [default: yours]", "NAME"),
    new_token: str | None = option(
        "Make a new token for a member, show it once, and end.", "MEMBER"
    ),
    demo: bool = option(
        "Fill a new curator with four made-up stories and show a token for each role; without "
        "--data it is gone when it is stopped."
    ),
) -> None:
    """Run a curator: the trusted third party for a team.

    The first start makes an owner and shows her token, once. Rows are encrypted at rest with the
    key in QUILTWORK_KEY, if there is one: 32 bytes in base64. Stop it with Ctrl-C.
    """
    try:
        import uvicorn

        from quiltwork.service import dashboard
        from quiltwork.service.application import create_app
        from quiltwork.service.features import open_service
    except ImportError as error:
        raise UnsupportedError(
            f"A curator needs {error.name}: pip install 'quiltwork[server]'."
        ) from None
    from quiltwork.service.members import NewToken, first_owner, issue, member_of
    from quiltwork.service.publication_process import publishing
    from quiltwork.service.settings import LOOPBACK, Settings, key_from, private_folder
    from quiltwork.service.single_server import single_server

    with ExitStack() as held:
        usual = held.enter_context(TemporaryDirectory()) if demo else usual_folder()
        folder = Path(data or usual)
        url = database or f"sqlite:///{private_folder(folder) / 'curator.db'}"
        names = (*LOOPBACK, *allow_host)
        settings = Settings(
            database=url,
            data=folder,
            key=key_from(),
            allowed_hosts=names,
            proxies=trust_proxy,
            user_header=user_header,
        )
        if access_log:
            _log_requests()
        if new_token is None:
            held.enter_context(single_server(url))
        service = open_service(settings, clean=new_token is None)
        if new_token is not None:
            if member_of(service, new_token) is None:
                raise click.UsageError(f"There is no member {new_token!r}")
            made = NewToken(label="made at the machine")
            _tell({"token": issue(service, new_token, new_token, made).secret})
            return
        if settings.key is not None and (clear := service.vault.unencrypted()):
            files_kept = counted(clear, "file")
            click.echo(
                f"Warning: {files_kept} of {str(folder)!r} from before there was a key "
                f"{'is' if clear == 1 else 'are'} not encrypted; the key seals what is written "
                "from now on. Delete such rows and add them again.",
                err=True,
            )
        listening = held.enter_context(_listening(host, port))
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        if demo:
            click.echo("Making up four stories: up to a minute after an install.", err=True)
            _tell({"address": address}, dashboard.fill(service))
        else:
            secret = first_owner(service, owner or _own_name())
            _tell({"address": address, **({} if secret is None else {"token": secret})})
        config = uvicorn.Config(
            create_app(service, dashboard.routes),
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # hosts.Entrance reads them
            server_header=False,
        )
        with suppress(KeyboardInterrupt), publishing(service):
            uvicorn.Server(config).run(sockets=[listening])


def _log_requests() -> None:
    import logging

    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("quiltwork.access")
    log.setLevel(logging.INFO)
    log.addHandler(shown)


def usual_folder() -> Path:
    """Return where a curator is if nothing else is said."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "quiltwork"


def _own_name() -> str:
    import getpass

    try:
        found = getpass.getuser()
    except (OSError, KeyError):
        found = ""
    name = re.sub("[^A-Za-z0-9._-]", "", found).lstrip("._-")
    return name[:100] or "owner"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # asyncio sends at once only on sockets that name their protocol; accepted ones inherit it.
        return socket.socket(family, made.type, socket.IPPROTO_TCP, fileno=made.detach())
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise StorageError(
            f"Cannot listen on {host}, port {port}: {why}; choose another --port."
        ) from None


def _tell(found: dict[str, str], tokens: Mapping[str, str] | None = None) -> None:
    """Say where the curator is and, once, the token; it is on no other line and in no URL."""
    if as_json():
        click.echo(files.dump("curator", 1, {**found, **({"tokens": tokens} if tokens else {})}))
    else:
        if "address" in found:
            click.echo(f"The curator listens at {found['address']}")
        if "token" in found:
            click.echo(f"Token, shown this once: {found['token']}")
        if tokens:
            click.echo("Tokens to sign in with, shown this once:")
        for name, secret in (tokens or {}).items():
            click.echo(f"  {name:<18} {secret}")
    sys.stdout.flush()


@command(
    example="""
    QUILTWORK_NEW_KEY=$(openssl rand -base64 32) quiltwork rotate-key --data /var/lib/quiltwork
    """
)
def rotate_key(
    database: str | None = option(
        "That of the curator.  [default: curator.db in the data directory]", "URL"
    ),
    data: str | None = option(
        "The curator's data directory.  [default: quiltwork in your data directory]", "DIRECTORY"
    ),
) -> None:
    """Change the key of a curator's files.

    The files are sealed with the key in QUILTWORK_KEY, or plain without one, and get the one in
    QUILTWORK_NEW_KEY. Stop the curator first. Killed at any moment, the command is run again with
    the same keys until it ends; before that no curator starts. Then put the new key in
    QUILTWORK_KEY, and keep the old one for as long as there are backups that need it.
    """
    try:
        from quiltwork.service.rotation import rotate
        from quiltwork.service.single_server import single_server
    except ImportError as error:
        raise UnsupportedError(
            f"A curator needs {error.name}: pip install 'quiltwork[server]'."
        ) from None
    from quiltwork.service.settings import NEW_KEY, key_from, private_folder

    new = key_from(name=NEW_KEY)
    if new is None:
        raise click.UsageError(f"Put the new key into the environment variable {NEW_KEY}")
    folder = private_folder(Path(data) if data else usual_folder())
    url = database or f"sqlite:///{folder / 'curator.db'}"
    with single_server(url), progress(1000, "Sealing") as bar:

        def tell(done: int, total: int) -> None:
            bar.update(1000 * done // total - bar.pos)

        sealed = rotate(private_folder(folder / "vault"), key_from(), new, tell)
    emit(files.dump("key-rotation", 1, {"sealed": sealed}), [f"{sealed:,} files have the new key."])
