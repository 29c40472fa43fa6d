"""A curator as Python objects, over HTTP, with the standard library alone.

`Curator` asks one, `records` is what it tells, `connection` how it is reached.
"""

from quiltwork.client.curator import Curator
from quiltwork.client.records import (
    AnswerPreview,
    CollaborativeTable,
    Dataset,
    Holdout,
    Job,
    Released,
    Schedule,
    ScheduledRun,
    Score,
    Verification,
)

__all__ = [
    "AnswerPreview",
    "CollaborativeTable",
    "Curator",
    "Dataset",
    "Holdout",
    "Job",
    "Released",
    "Schedule",
    "ScheduledRun",
    "Score",
    "Verification",
]
