"""Entry point of the child process that makes one publication (`publication_process.py`)."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from quiltwork.service import jobs
from quiltwork.service.features import open_service
from quiltwork.service.publication_process import DATABASE, run_job
from quiltwork.service.settings import Settings, key_from


def _exit_with_server() -> None:
    # Standard input is a pipe from the server: it closes when the server ends, however it ends.
    while os.read(0, 1):
        pass
    os._exit(1)


def main(data: str, identity: str) -> None:
    """Run a started job; exit at once when the server is gone."""
    threading.Thread(target=_exit_with_server, daemon=True).start()
    settings = Settings(database=os.environ[DATABASE], data=Path(data), key=key_from())
    service = open_service(settings, clean=False)
    run_job(service, service.read(lambda t: jobs.JOBS.get(t, id=identity)))


if __name__ == "__main__":
    main(*sys.argv[1:])
