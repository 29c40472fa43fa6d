"""The commands `quiltwork serve`, which runs a curator, and `quiltwork rotate-key`."""

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
"""Connections that may wait to be accepted, from the moment the address is printed."""


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
        "The database of ledger and members: sqlite:///curator.db or postgresql://…  [default: "
        "curator.db in the data directory]",
        "URL",
    ),
    data: str | None = option(
        "The folder of rows, readable by you only.  [default: quiltwork in your data directory]",
        "DIRECTORY",
    ),
    host: str = option("The address to listen on.", default="127.0.0.1"),
    port: int = option(
        "The port to listen on; 0 for any free one.", kind=click.IntRange(0, 65535), default=8000
    ),
    allow_host: tuple[str, ...] = option(
        "A host name that requests may use, besides those of this machine; repeatable.",
        "NAME",
    ),
    trust_proxy: tuple[str, ...] = option(
        "The IP address of a proxy that names the signed-in user in --user-header; repeatable.",
        "ADDRESS",
    ),
    user_header: str = option(
        "With --trust-proxy: the header with the member's name; removed from all other requests.",
        "HEADER",
        default="",
    ),
    access_log: bool = option(
        "Log each request to standard error: route, status and duration, no names."
    ),
    owner: str | None = option("The name of the first owner.  [default: yours]", "NAME"),
    new_token: str | None = option("Make a token for a member, print it once, and exit.", "MEMBER"),
    demo: bool = option(
        "Fill a new curator with simulated data and print a token for each role; without --data "
        "everything is deleted at the end."
    ),
) -> None:
    """Run a curator: the trusted third party for a team.

    The first start creates an owner and prints her token, once. If the environment variable
    QUILTWORK_KEY holds a key (32 bytes in base64), rows are encrypted at rest. Stop with Ctrl-C.
    """
    try:
        import uvicorn

        from quiltwork.service import dashboard
        from quiltwork.service.application import create_app
        from quiltwork.service.features import open_service
    except ImportError as error:
        raise UnsupportedError(
            f"A curator needs the package {error.name}: pip install 'quiltwork[server]'."
        ) from None
    from quiltwork.service.members import NewToken, first_owner, issue, member_of
    from quiltwork.service.publication_process import publishing
    from quiltwork.service.settings import LOOPBACK, Settings, key_from, private_folder
    from quiltwork.service.single_server import single_server

    with ExitStack() as resources:
        default = resources.enter_context(TemporaryDirectory()) if demo else default_folder()
        folder = Path(data or default)
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
            resources.enter_context(single_server(url))
        service = open_service(settings, clean=new_token is None)
        if new_token is not None:
            if member_of(service, new_token) is None:
                raise click.UsageError(f"There is no member {new_token!r}")
            new = NewToken(label="made at the machine")
            _print_access({"token": issue(service, new_token, new_token, new).secret})
            return
        if settings.key is not None and (plain := service.vault.unencrypted()):
            click.echo(
                f"Warning: {counted(plain, 'file')} in {str(folder)!r} from before there was a key "
                f"{'is' if plain == 1 else 'are'} not encrypted. Encrypt them with `quiltwork "
                "rotate-key`, or delete those rows and add them again.",
                err=True,
            )
        listener = resources.enter_context(_listener(host, port))
        url_host = f"[{host}]" if ":" in host else host
        address = f"http://{url_host}:{listener.getsockname()[1]}/"
        if demo:
            click.echo("Simulating data for the demo; the first time takes a minute.", err=True)
            _print_access({"address": address}, dashboard.fill(service))
        else:
            secret = first_owner(service, owner or _user_name())
            _print_access({"address": address, **({} if secret is None else {"token": secret})})
        config = uvicorn.Config(
            create_app(service, dashboard.routes),
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # hosts.HostMiddleware reads them, from trusted proxies only
            server_header=False,
        )
        with suppress(KeyboardInterrupt), publishing(service):
            uvicorn.Server(config).run(sockets=[listener])


def _log_requests() -> None:
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log = logging.getLogger("quiltwork.access")
    log.setLevel(logging.INFO)
    log.addHandler(handler)


def default_folder() -> Path:
    """Return the default data directory, following the XDG base directory specification."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "quiltwork"


def _user_name() -> str:
    """Return the system's user name as a member's name; "owner" if it has none."""
    import getpass

    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    name = re.sub("[^A-Za-z0-9._-]", "", user).lstrip("._-")
    return name[:100] or "owner"


def _listener(host: str, port: int) -> socket.socket:
    """Return a listening socket whose connections send without Nagle's delay."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # asyncio sets TCP_NODELAY only on sockets that name their protocol; accepted ones inherit.
        return socket.socket(family, server.type, socket.IPPROTO_TCP, fileno=server.detach())
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StorageError(
            f"Cannot listen on {host}, port {port}: {reason}. Choose another --port."
        ) from None


def _print_access(access: dict[str, str], tokens: Mapping[str, str] | None = None) -> None:
    """Print the address and, once, the tokens, which are never in a URL or in a log."""
    if as_json():
        click.echo(files.dump("curator", 1, {**access, **({"tokens": tokens} if tokens else {})}))
    else:
        if "address" in access:
            click.echo(f"The curator listens at {access['address']}")
        if "token" in access:
            click.echo(f"Token, shown this once: {access['token']}")
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
        "The curator's database.  [default: curator.db in the data directory]", "URL"
    ),
    data: str | None = option(
        "The curator's data directory.  [default: quiltwork in your data directory]", "DIRECTORY"
    ),
) -> None:
    """Change the key of a curator's files.

    Files encrypted with the key in QUILTWORK_KEY, or not encrypted if it is unset, are encrypted
    with the key in QUILTWORK_NEW_KEY. Stop the curator first. If the command is interrupted, run it
    again with the same keys; until it ends no curator starts. Then set QUILTWORK_KEY to the new
    key, and keep the old one as long as backups need it.
    """
    try:
        from quiltwork.service.rotation import rotate
        from quiltwork.service.single_server import single_server
    except ImportError as error:
        raise UnsupportedError(
            f"A curator needs the package {error.name}: pip install 'quiltwork[server]'."
        ) from None
    from quiltwork.service.settings import NEW_KEY, key_from, private_folder

    new = key_from(name=NEW_KEY)
    if new is None:
        raise click.UsageError(f"Set the environment variable {NEW_KEY} to the new key")
    folder = private_folder(Path(data) if data else default_folder())
    url = database or f"sqlite:///{folder / 'curator.db'}"
    with single_server(url), progress(1000, "Encrypting") as bar:

        def advance(done: int, total: int) -> None:
            bar.update(1000 * done // total - bar.pos)

        sealed = rotate(private_folder(folder / "vault"), key_from(), new, advance)
    emit(
        files.dump("key-rotation", 1, {"sealed": sealed}),
        [
            f"{counted(sealed, 'file')} encrypted with the new key."
            if sealed
            else f"No file is left to encrypt: set QUILTWORK_KEY to the key in {NEW_KEY}."
        ],
    )
