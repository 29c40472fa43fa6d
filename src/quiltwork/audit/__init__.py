"""Audit: the exact privacy loss of a release under a belief, and the least noise for a given loss.

| call | answers |
|---|---|
| `leakage` | the exact leakage of releases with additive noise |
| `worst_case` | the same, with the secret and the output that reach it |
| `report` | whether a promised epsilon holds, and how much noise it wastes |
| `odds` | prior and posterior of every time point for one output |
| `misspecification` | the leakage if an adversary holds other beliefs than those assumed |
| `check_certificate` | whether a calibration's proof holds, in exact fractions |

`ends` decides at any length where the extreme outputs leak the most, `laws` everywhere else.
"""

from quiltwork.audit.audit_report import Report, report
from quiltwork.audit.certificate_claims import check_certificate
from quiltwork.audit.exact_leakage import Leakage, leakage, worst_case
from quiltwork.audit.misspecification import Misspecification, misspecification
from quiltwork.audit.odds import Odds, odds

__all__ = [
    "Leakage",
    "Misspecification",
    "Odds",
    "Report",
    "check_certificate",
    "leakage",
    "misspecification",
    "odds",
    "report",
    "worst_case",
]


def __dir__() -> list[str]:
    return sorted(__all__)
