"""What a curator is made of. A new feature is a line here."""

from __future__ import annotations

from quiltwork.service import (
    dashboard,
    dataset_rows,
    datasets,
    holdout_routes,
    job_routes,
    log,
    members,
    objects,
    plans,
    questions,
    releases,
    schedule_routes,
    shares,
    table_routes,
)
from quiltwork.service.routes import Feature

FEATURES: tuple[Feature, ...] = (
    members.FEATURE,
    datasets.FEATURE,
    shares.FEATURE,
    dataset_rows.FEATURE,
    questions.FEATURE,
    plans.FEATURE,
    releases.FEATURE,
    job_routes.FEATURE,
    schedule_routes.FEATURE,
    objects.FEATURE,
    table_routes.FEATURE,
    holdout_routes.FEATURE,
    log.FEATURE,
    dashboard.FEATURE,
)
