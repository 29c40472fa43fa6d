"""A curator as Python objects, over HTTP, with the standard library alone.

`Curator` asks one, `records` is what it tells, `connection` how it is reached.
"""

from quiltwork.client.curator import Curator
from quiltwork.client.records import (
    Answer,
    Dataset,
    Holdout,
    Job,
    Preview,
    Run,
    Schedule,
    Score,
    Table,
    Verification,
)

__all__ = [
    "Answer",
    "Curator",
    "Dataset",
    "Holdout",
    "Job",
    "Preview",
    "Run",
    "Schedule",
    "Score",
    "Table",
    "Verification",
]
