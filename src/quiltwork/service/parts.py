"""What a curator is made of. A new part is a line here."""

from __future__ import annotations

from quiltwork.service import datasets, log, members, plans, questions, releases, rows, shares
from quiltwork.service.routes import Part

PARTS: tuple[Part, ...] = (
    members.PART,
    datasets.PART,
    shares.PART,
    rows.PART,
    questions.PART,
    plans.PART,
    releases.PART,
    log.PART,
)
