"""The budget ledger: durable debits before every release, in SQLite or PostgreSQL."""

from quiltwork.ledger.checkpoints import Checkpoint
from quiltwork.ledger.durable import LedgerAccountant
from quiltwork.ledger.ledger import Ledger
from quiltwork.ledger.receipts import Preview, Receipt
from quiltwork.ledger.records import Debit, Share, Status
from quiltwork.ledger.rehearsals import Rehearsal

__all__ = [
    "Checkpoint",
    "Debit",
    "Ledger",
    "LedgerAccountant",
    "Preview",
    "Receipt",
    "Rehearsal",
    "Share",
    "Status",
]
