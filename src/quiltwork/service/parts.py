"""What a curator is made of. A new part is a line here."""

from __future__ import annotations

from quiltwork.service import (
    dashboard,
    datasets,
    holdout_routes,
    job_routes,
    log,
    members,
    objects,
    plans,
    questions,
    releases,
    rows,
    schedule_routes,
    shares,
    table_routes,
)
from quiltwork.service.routes import Part

PARTS: tuple[Part, ...] = (
    members.PART,
    datasets.PART,
    shares.PART,
    rows.PART,
    questions.PART,
    plans.PART,
    releases.PART,
    job_routes.PART,
    schedule_routes.PART,
    objects.PART,
    table_routes.PART,
    holdout_routes.PART,
    log.PART,
    dashboard.PART,
)
