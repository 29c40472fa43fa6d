"""Shares: who may use a dataset, and how much of its budget."""

from __future__ import annotations

from quiltwork.budget.ledger.tables import now
from quiltwork.errors import InvalidInputError
from quiltwork.service.datasets import Dataset, registered, shown
from quiltwork.service.members import member_of
from quiltwork.service.routes import Call, Part, Route
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Number, exact_number


class NewShare(Document, frozen=True):
    """What a member may use: at most `cap`, and `reserved` whatever others do."""

    cap: Number | None = None
    reserved: Number | None = None


def _share_out(call: Call) -> Dataset:
    """Give access, and a share of the budget to those who ask."""
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


def _take_back(call: Call) -> None:
    service, dataset, member = call.service, call.path["dataset"], call.path["member"]

    def work(t: Transaction) -> None:
        t.rows("DELETE FROM curator_access WHERE dataset = ? AND member = ?", dataset, member)
        t.note("act", f"took access from {member}", call.caller.member, dataset)

    service.storage.write(work)
    status = service.ledger.status(dataset)
    if member in status.shares and status.retired is None and status.shares[member].reserved:
        service.ledger.allot(dataset, member, status.shares[member].cap)


_ACCESS = "/v1/datasets/{dataset}/access/{member}"

PART = Part(
    routes=(
        Route(
            *("share_dataset", "PUT", _ACCESS, "dataset.share", _share_out),
            "Let somebody use a dataset, an analyst with a cap or a reserved share.",
            request=NewShare,
            response=Dataset,
        ),
        Route(
            *("unshare_dataset", "DELETE", _ACCESS, "dataset.share", _take_back),
            "Take access back.",
            status=204,
        ),
    ),
)
