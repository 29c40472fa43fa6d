"""A worker process for the tests, with a kind of job that can hang."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from quiltwork.service import jobs, worker
from quiltwork.service.features import open_service
from quiltwork.service.settings import Settings

PACE = worker.Pace(lease=1.5, beat=0.2, look=0.05)


def count(service, lease, progress):
    """Hang in the first attempts, as many as the job says; else note that it was done."""
    while lease.attempts <= lease.body.get("hang", 0):
        time.sleep(0.05)
        progress(1, 2)
    progress(2, 2)
    return jobs.Outcome({}, lambda t: t.note("act", f"did {lease.id}", lease.owner))


if __name__ == "__main__":
    jobs.WORKS["count"] = count
    opened = open_service(Settings(sys.argv[1], Path(sys.argv[2])), clean=False)
    worker.run(opened, PACE, supervised=True)
