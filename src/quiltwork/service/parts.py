"""What a curator is made of. A new part is a line here."""

from __future__ import annotations

from quiltwork.service import dashboard, datasets, log, members, questions, releases, rows
from quiltwork.service.routes import Part

PARTS: tuple[Part, ...] = (
    members.PART,
    datasets.PART,
    rows.PART,
    questions.PART,
    releases.PART,
    log.PART,
    dashboard.PART,
)
