"""The list of a curator's features, and how a curator is opened. A new feature is a line here."""

from __future__ import annotations

from quiltwork.budget import Ledger
from quiltwork.service import (
    collaborative_tables,
    dashboard,
    dataset_rows,
    datasets,
    holdout_routes,
    jobs,
    members,
    objects,
    plans,
    questions,
    release_log,
)
from quiltwork.service.request_limits import ConcurrencyLimiter
from quiltwork.service.routes import Feature, Service
from quiltwork.service.settings import Settings, private_folder
from quiltwork.service.storage import Storage
from quiltwork.service.vault import Vault

FEATURES: tuple[Feature, ...] = (
    members.FEATURE,
    datasets.FEATURE,
    dataset_rows.FEATURE,
    questions.FEATURE,
    plans.FEATURE,
    release_log.FEATURE,
    jobs.FEATURE,
    objects.FEATURE,
    collaborative_tables.FEATURE,
    holdout_routes.FEATURE,
    dashboard.FEATURE,
)


def open_service(settings: Settings, *, clean: bool = True) -> Service:
    """Open ledger, storage and vault, and create the tables that are not there yet.

    Without `clean` unreferenced files stay: a child process leaves its server's files alone.
    """
    private_folder(settings.data)
    ledger = Ledger.open(settings.database)
    storage = Storage(ledger)
    storage.prepare(feature.schema for feature in FEATURES if feature.schema is not None)
    vault = Vault.opened(private_folder(settings.data / "vault"), settings.key)
    if clean:
        lists = [feature.files for feature in FEATURES if feature.files is not None]
        vault.clean(storage.read(lambda t: {name for files in lists for name in files(t)}))
    return Service(settings, ledger, storage, vault, FEATURES, ConcurrencyLimiter(settings.limits))
