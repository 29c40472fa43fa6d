"""Shares: who may use a dataset, and how much of its budget."""

from __future__ import annotations

from quiltwork.budget.ledger.tables import now
from quiltwork.errors import InvalidInputError
from quiltwork.service.datasets import Dataset, registered, shown
from quiltwork.service.members import member_of
from quiltwork.service.routes import Call, Feature, Routes
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Number, exact_number

_ACCESS = "/v1/datasets/{dataset}/access/{member}"
_routes = Routes()


class NewShare(Document, frozen=True):
    """What a member may use: at most `cap`, and `reserved` whatever others do."""

    cap: Number | None = None
    reserved: Number | None = None


@_routes.at("PUT", _ACCESS, "dataset.share", request=NewShare)
def _share_dataset(call: Call) -> Dataset:
    """Let somebody use a dataset, an analyst with a cap or a reserved share."""
    service, dataset, member = call.service, call.path["dataset"], call.path["member"]
    invited = member_of(service, member)
    if invited is None or invited.role not in ("analyst", "provider"):
        raise InvalidInputError("Access is given to analysts and providers.")
    owner = registered(service, dataset).owner
    if invited.role == "analyst":
        if owner not in service.ledger.status(dataset).shares:
            service.ledger.allot(dataset, owner)
        limits = {"cap": call.body.cap, "reserved": call.body.reserved}
        given = {
            name: exact_number(part, name) for name, part in limits.items() if part is not None
        }
        service.ledger.allot(dataset, member, **given)

    def work(t: Transaction) -> None:
        t.rows(
            "INSERT INTO curator_access (dataset, member, given) VALUES (?, ?, ?) "
            "ON CONFLICT (dataset, member) DO NOTHING",
            *(dataset, member, now()),
        )
        t.note("act", f"gave {member} access", call.caller.member, dataset)

    service.storage.write(work)
    return shown(service, registered(service, dataset), call.caller)


@_routes.at("DELETE", _ACCESS, "dataset.share", status=204)
def _unshare_dataset(call: Call) -> None:
    """Take access back."""
    service, dataset, member = call.service, call.path["dataset"], call.path["member"]

    def work(t: Transaction) -> None:
        t.rows("DELETE FROM curator_access WHERE dataset = ? AND member = ?", dataset, member)
        t.note("act", f"took access from {member}", call.caller.member, dataset)

    service.storage.write(work)
    status = service.ledger.status(dataset)
    if member in status.shares and status.retired is None and status.shares[member].reserved:
        service.ledger.allot(dataset, member, status.shares[member].cap)


FEATURE = Feature(routes=tuple(_routes))
