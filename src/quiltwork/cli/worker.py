"""`quiltwork worker`: carry out a curator's jobs and schedules, beside its server or elsewhere."""

from __future__ import annotations

from pathlib import Path

from quiltwork.cli.command import command, option
from quiltwork.cli.serve import usual_folder
from quiltwork.errors import UnsupportedError


@command(
    example="""
    quiltwork worker --database sqlite:////srv/curator/curator.db --data /srv/curator
    quiltwork worker --database sqlite:///curator.db --data curator --once
    """
)
@option(
    "--database URL",
    "That of the curator.  [default: curator.db in the data directory]",
    envvar="QUILTWORK_DATABASE",
)
@option(
    "--data DIRECTORY", "The curator's data directory.  [default: quiltwork in your data directory]"
)
@option("--once", "End when nothing is left to do.", bool)
@option("--supervised", "End with the standard input.", bool, hidden=True)
def worker(database: str | None, data: str | None, once: bool, supervised: bool) -> None:
    """Carry out the jobs and schedules of a curator.

    `quiltwork serve` keeps one worker running by itself. More of them share the work; they need the
    same database, data directory and QUILTWORK_KEY. Stop one with Ctrl-C: it puts its job back.
    """
    try:
        from quiltwork.service.worker import Pace, finish_waiting, open_for_work, run
    except ImportError as error:
        raise UnsupportedError(
            f"A worker needs {error.name}: pip install 'quiltwork[server]'."
        ) from None
    from quiltwork.service.settings import Settings, key_from, private_folder

    folder = private_folder(Path(data) if data else usual_folder())
    settings = Settings(
        database=database or f"sqlite:///{folder / 'curator.db'}", data=folder, key=key_from()
    )
    service = open_for_work(settings)
    if once:
        finish_waiting(service, Pace())
    else:
        run(service, Pace(), supervised=supervised)
