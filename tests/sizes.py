"""How many cases a test tries: a sample in `make test`, all of them in `make evidence`."""

from __future__ import annotations

import os

FULL = os.environ.get("HYPOTHESIS_PROFILE") == "evidence"


def sample(size: int, full: int) -> int:
    """The number of cases to try now."""
    return full if FULL else size
