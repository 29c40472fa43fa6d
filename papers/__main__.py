"""`python -m papers`: the papers' experiments, as `make reproduce` runs them."""

from __future__ import annotations

import sys

from papers.command import reproduce
from quiltwork.cli.boundary import run

sys.exit(run(sys.argv[1:], reproduce))
