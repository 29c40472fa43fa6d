"""Tables of many providers: checking and making tables that colluding providers cannot undo.

Everything is imported on first use, so that a command pays for what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what __getattr__ gives at run time, for type checkers and editors
    from quiltwork.publishing import constraints as constraints
    from quiltwork.publishing import generalization as generalization
    from quiltwork.publishing import metrics as metrics
    from quiltwork.publishing import partitioning as partitioning
    from quiltwork.publishing import reports as reports
    from quiltwork.publishing import risk as risk
    from quiltwork.publishing import spark as spark
    from quiltwork.publishing import verification as verification
    from quiltwork.publishing.anonymization import anonymize
    from quiltwork.publishing.constraints import (
        Constraint,
        Custom,
        EntropyLDiversity,
        KAnonymity,
        LDiversity,
        RecursiveLDiversity,
        TCloseness,
    )
    from quiltwork.publishing.constraints.monotonicity import refute
    from quiltwork.publishing.metrics.query_error import query_error
    from quiltwork.publishing.provider_side import own_view
    from quiltwork.publishing.safety import max_m
    from quiltwork.publishing.table import Table
    from quiltwork.publishing.verification import Verdict, verify_m_privacy

_HOME = {
    "Constraint": "constraints",
    "Custom": "constraints",
    "EntropyLDiversity": "constraints",
    "KAnonymity": "constraints",
    "LDiversity": "constraints",
    "RecursiveLDiversity": "constraints",
    "TCloseness": "constraints",
    "Table": "table",
    "Verdict": "verification",
    "anonymize": "anonymization",
    "max_m": "safety",
    "own_view": "provider_side",
    "query_error": "metrics.query_error",
    "refute": "constraints.monotonicity",
    "verify_m_privacy": "verification",
}
_MODULES = (
    "constraints",
    "generalization",
    "metrics",
    "partitioning",
    "reports",
    "risk",
    "spark",
    "verification",
)

__all__ = [
    "Constraint",
    "Custom",
    "EntropyLDiversity",
    "KAnonymity",
    "LDiversity",
    "RecursiveLDiversity",
    "TCloseness",
    "Table",
    "Verdict",
    "anonymize",
    "max_m",
    "own_view",
    "query_error",
    "refute",
    "verify_m_privacy",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"quiltwork.publishing.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"quiltwork.publishing.{name}")
    raise AttributeError(f"module 'quiltwork.publishing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
